"""`coadjoint convert`: a robot from one format to another."""

from __future__ import annotations

import argparse

from ..errors import CoadjointError
from ..files import check_output
from ..robot.save import check_format, save
from .robots import ROBOT, read_robot, tell

HELP = "write a robot as URDF, MJCF or JSON, by the extension"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robot", metavar="IN", help=ROBOT)
    parser.add_argument("out", metavar="OUT", help="the file to write: .urdf, .xml (MJCF) or .json")
    parser.add_argument("--force", action="store_true", help="overwrite OUT if it exists")


def run(args: argparse.Namespace) -> None:
    check_format(args.out)
    out = check_output(args.out, args.robot)
    if out.exists() and not args.force:
        raise CoadjointError(f"{out} exists already; --force overwrites it.")
    robot = read_robot(args.robot, fixed_joints="keep")
    tell(robot.warnings)
    save(robot, out)
    print(f"wrote {out}: {robot!r}")
