"""`coadjoint convert`: a robot from one format to another."""

from __future__ import annotations

import argparse

from ..errors import CoadjointError
from ..files import check_output
from ..robot.save import check_format, save
from .robots import read_robot, tell


def run(args: argparse.Namespace) -> None:
    check_format(args.out)
    out = check_output(args.out, args.robot)
    if out.exists() and not args.force:
        raise CoadjointError(f"{out} exists already; --force overwrites it.")
    robot = read_robot(args.robot, fixed_joints="keep")
    tell(robot.warnings)
    save(robot, out)
    print(f"wrote {out}: {robot!r}")
