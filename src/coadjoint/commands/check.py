"""`coadjoint check`: does a robot obey the laws of mechanics, and do other engines agree?"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from ..checking import Check, check
from ..errors import CoadjointError
from ..robot.plausibility import doubtful_numbers, impossible_inertias, massless_joints
from ..show.terminal import table
from ..words import printable
from .robots import add_robot, name_of, read_robot

HELP = "check the laws that a robot must obey, and compare with Pinocchio and MuJoCo where they are installed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)


def run(args: argparse.Namespace) -> None:
    robot = read_robot(args.robot, args.base, args.fixed_joints)
    checks = check(robot, args.robot if Path(args.robot).is_file() else None)
    light = [f"joint {x!r} moves no mass" for x in massless_joints(robot)]
    doubts = list(dict.fromkeys([*robot.warnings, *impossible_inertias(robot), *light, *doubtful_numbers(robot)]))
    print(f"{name_of(robot)}: {robot.n_links} links, {robot.nv} freedoms")
    print()
    print(table(("law", "error", "allowed", "", "remark"), [_row(x) for x in checks], "lrrll"))
    if doubts:
        print("\ndoubts about the description:")
        for text in doubts:
            print(f"- {printable(text)}")
    broken = [x.name for x in checks if not x.holds]
    print()
    if broken:
        raise CoadjointError(f"{name_of(robot)} breaks: {'; '.join(broken)}.")
    print("every law holds" + (", but the description has doubts" if doubts else ""))


def _row(x: Check) -> list[str]:
    if np.isnan(x.error):
        return [x.name, "", "", "", x.remark]
    return [x.name, f"{x.error:.1e}", f"{x.allowed:.0e}", "holds" if x.holds else "BROKEN", x.remark]
