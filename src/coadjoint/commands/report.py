"""`coadjoint report`: the page of a robot, one HTML file that computes."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..show.page.source import source_of
from ..show.report import check_page, report
from .robots import add_robot, name_of, read_robot

HELP = "write the page of a robot: one HTML file that shows it, moves it and computes its dynamics, without a server"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("-o", "--out", metavar="FILE", default="", help="the page to write (default: the robot's name and .html)")
    parser.add_argument("--states", metavar="TABLE", help="a table of states (time, q, v) that the page plays")


def run(args: argparse.Namespace) -> None:
    source = args.robot if Path(args.robot).is_file() else None
    out = args.out or f"{Path(args.robot).stem}.html"
    check_page(out, source, args.states)
    robot = read_robot(args.robot, args.base, args.fixed_joints)
    motion = None
    if args.states:
        from ..motion.trajectory import Trajectory

        motion = Trajectory.load(args.states, robot)
    text = report(robot, out, motion=motion, source=source_of(args.robot, args.base, args.fixed_joints))
    print(f"wrote {out}: {name_of(robot)}, {robot.nv} freedoms, {len(text.encode()) / 1e6:.2f} MB")
