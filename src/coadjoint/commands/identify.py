"""`coadjoint identify`: the model of a robot from its log."""

from __future__ import annotations

import argparse

from ..errors import CoadjointError
from ..files import check_output
from ..identification import identify
from ..robot.save import check_format, save
from ..show.identification import check_report
from ..show.terminal import Progress
from .robots import add_robot, read_robot, tell

HELP = "identify inertias, friction and offsets of a robot from a log of its motion"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument(
        "log", metavar="LOG", nargs="+", help="tables with time, q, tau and perhaps v, a: .csv, .tsv, .parquet, .npz, bags"
    )
    parser.add_argument("--out", metavar="FILE", help="write the identified robot: .json, .urdf or .xml (MJCF)")
    parser.add_argument("--report", metavar="FILE", help="write a page with figures and tables: .html")
    parser.add_argument(
        "--cutoff", type=float, metavar="HZ", help="frequency of the zero-phase low-pass (default: 10 where needed)"
    )
    parser.add_argument(
        "--gains", type=float, nargs="+", metavar="K", help="force for a current of one, joint by joint: tau is currents"
    )
    parser.add_argument("--parameters", action="store_true", help="print all parameters with their intervals")


def run(args: argparse.Namespace) -> None:
    for path in (args.out, args.report):
        if path:
            check_output(path, *args.log)
    if args.out:
        check_format(args.out)
    if args.report:
        check_report(args.report)
    robot = read_robot(args.robot, args.base, args.fixed_joints)
    tell(robot.notes)
    if not robot.nv:
        raise CoadjointError(f"robot {robot.name!r} has no joint that moves.")
    with Progress("identifying") as report:
        report(0.0)
        fit = identify(robot, args.log, cutoff=args.cutoff or "auto", gains=args.gains)
    print(fit)
    for text in fit.advice:
        print(f"advice: {text}")
    if args.parameters:
        print()
        print(fit.parameters)
    if args.out:
        save(fit.robot, args.out)
        print(f"wrote {args.out}")
    if args.report:
        fit.report(args.report)
        print(f"wrote {args.report}")
