"""`coadjoint design`: choose numbers of a robot so that an objective is least over a motion or over random configurations."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from ..arguments import a_moving_robot
from ..design import Design, objectives, optimize
from ..design.studies import STUDIES
from ..errors import CoadjointError
from ..motion.example_motion import smooth_motion
from ..robot.robot import Robot
from ..robot.save import check_format, save
from ..show.design import draw_design
from ..show.terminal import Progress
from .robots import add_robot, check_files, read_robot, tell

HELP = "choose masses, lengths or inertias of a robot so that effort, curvature or base reactions are least"
OBJECTIVES: dict[str, Callable[..., Any]] = {
    "effort": objectives.effort,
    "reaction": objectives.base_reaction,
    "curvature": objectives.curvature,
    "variation": objectives.variation,
}
CONFIGURATIONS = 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    parser.epilog = "In the place of ROBOT, a built-in study: " + ", ".join(sorted(STUDIES)) + "."
    parser.add_argument(
        "--parameters", nargs="+", metavar="NAME", help="sets of numbers that may change, as masses lengths inertial:link2"
    )
    least = "what is least: effort or reaction on the base along a smooth motion, curvature or variation of the inertias (default: effort)"
    parser.add_argument("--objective", choices=sorted(OBJECTIVES), help=least)
    parser.add_argument(
        "--bounds", nargs=3, action="append", default=[], metavar=("NAME", "LOW", "HIGH"), help="limits of a set or of one number"
    )
    parser.add_argument("--out", metavar="FILE", help="write the robot: .json, .urdf or .xml")
    parser.add_argument(
        "--plot", metavar="FILE", help="draw the cost over the iterations and the numbers: .png, .svg, .pdf or .html"
    )


def run(args: argparse.Namespace) -> None:
    if args.robot not in STUDIES and not args.parameters:
        raise CoadjointError("expected --parameters with the numbers that may change, as --parameters masses lengths.")
    if args.robot in STUDIES and (args.parameters or args.bounds or args.objective):
        raise CoadjointError(
            f"{args.robot!r} is a built-in study with numbers of its own; leave out --parameters, --bounds and --objective."
        )
    check_files(args, check=check_format)
    if args.robot in STUDIES:
        design = STUDIES[args.robot]()
    else:
        robot = read_robot(args.robot, args.base, args.fixed_joints)
        tell(robot.notes)
        a_moving_robot(robot, "robot")
        objective = args.objective or "effort"
        with Progress("designing") as report:
            design = optimize(
                robot,
                args.parameters,
                OBJECTIVES[objective],
                states=_states(robot, objective),
                bounds=_bounds(args),
                report=report,
            )
    print(design)
    _write(args, design)


def _states(robot: Robot, objective: str) -> dict[str, Any]:
    if objective in ("curvature", "variation"):
        return {"q": robot.random(np.random.default_rng(0), (CONFIGURATIONS,))}
    motion = smooth_motion(robot)
    return {"q": motion.q, "v": motion.v, "a": motion.a}


def _bounds(args: argparse.Namespace) -> dict[str, tuple[float, float]]:
    found = {}
    for name, low, high in args.bounds:
        try:
            found[name] = float(low), float(high)
        except ValueError:
            raise CoadjointError(f"--bounds {name} {low} {high}: expected two numbers after the name.") from None
    return found


def _write(args: argparse.Namespace, design: Design) -> None:
    if args.out:
        save(design.robot, args.out)
        print(f"wrote {args.out}")
    if args.plot:
        draw_design(args.plot, design)
        print(f"drew {args.plot}")
