"""The robot argument that most commands take."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

from ..errors import ModelWarning
from ..files import check_output
from ..motion.tables import check_format
from ..robot.load import load
from ..robot.robot import Robot
from ..words import printable

ROBOT = "a bundled robot (see `coadjoint zoo`) or a file: .urdf, .sdf, .xml (MJCF), .json"


def add_robot(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that every command on one robot takes."""
    parser.add_argument("robot", metavar="ROBOT", help=ROBOT)
    parser.add_argument("--base", choices=("fixed", "free"), default="fixed", help="may the base move? (default: fixed)")
    joints = "whether links of fixed joints become part of what carries them (default: merge)"
    parser.add_argument("--fixed-joints", choices=("merge", "keep"), default="merge", help=joints)


def one_number(text: str) -> float:
    """The number of an argument that takes several, separated by spaces."""
    try:
        return float(text)
    except ValueError:
        told = "separate numbers by spaces" if "," in text else "expected a number"
        raise argparse.ArgumentTypeError(f"{printable(text)!r}: {told}") from None


def name_of(robot: Robot) -> str:
    """The robot's name, safe to print."""
    return printable(robot.name)


def read_robot(source: str, base: str = "fixed", fixed_joints: str = "merge") -> Robot:
    """The robot, read without printing warnings: they are collected in `robot.warnings`, each once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return load(source, base=base, fixed_joints=fixed_joints)


def tell(texts: Iterable[str]) -> None:
    """Print each text as a warning."""
    for text in texts:
        warnings.warn(text, ModelWarning, stacklevel=2)


def check_files(args: argparse.Namespace, *inputs: str | None, check: Callable[[str], object] = check_format) -> None:
    """Check the names of the file `--out`, the figure `--plot` and the film `--animate` before any work: none may replace another.

    Nor may one replace the robot's file or another input. `check` refuses what `--out` cannot be, by default all but tables.
    """
    taken = [args.robot if Path(args.robot).is_file() else None, *inputs]
    if args.out:
        check(args.out)
        check_output(args.out, *taken)
    if args.plot:
        from ..show.plots import check_figure

        check_figure(args.plot)
        check_output(args.plot, *taken, args.out)
    if getattr(args, "animate", None):
        from ..show.animation import check_animation

        check_animation(args.animate)
        check_output(args.animate, *taken, args.out, args.plot)
