"""`coadjoint geometry`: curvature, geodesics and balance of a robot."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import a_moving_robot
from ..design import balance
from ..files import check_output
from ..geometry import flatness
from ..show.geometry import Geometry, geometry, pair
from ..show.terminal import number, table, vector
from ..words import printable
from .robots import add_robot, name_of

HELP = "compute curvature, geodesics and balance of a robot over two of its joints"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    which = "the two joints, by name or by number; without it the two whose plane is curved most"
    parser.add_argument("--joints", nargs=2, metavar=("I", "J"), help=which)
    parser.add_argument("--plot", metavar="FILE", help="draw it: .png, .svg, .pdf or .html")


def run(args: argparse.Namespace) -> None:
    from ..robot.load import load

    if args.plot:
        from ..show.plots import check_figure

        check_figure(args.plot)
        check_output(args.plot, args.robot if Path(args.robot).is_file() else None)
    robot = load(args.robot, base=args.base, fixed_joints=args.fixed_joints)
    a_moving_robot(robot, "robot")
    a, b = pair(robot, args.joints)
    print(f"{name_of(robot)}: {balance(robot)}")
    print(f"{name_of(robot)}: {flatness(robot)}")
    shown = geometry(robot, (a.v + 1, b.v + 1))
    print()
    print(as_text(shown))
    if args.plot:
        from ..show.geometry import draw_geometry

        draw_geometry(args.plot, shown)
        print(f"drew {args.plot}")


def as_text(shown: Geometry) -> str:
    """The content of the figure as text."""
    a, b = shown.pair
    rows = []
    for name, values in (
        ("sectional curvature of the two", shown.curvature.sectional),
        ("scalar curvature", shown.curvature.scalar),
    ):
        known = values[np.isfinite(values)]
        rows.append((name, *(number(x) for x in ((known.min(), known.mean(), known.max()) if known.size else (None,) * 3))))
    lines = [
        f"over {_span(a)} and {_span(b)}:",
        table(("", "least", "mean", "most"), rows, "lrrr"),
        "",
        f"from {vector(shown.start)} to {vector(shown.goal)} in 1 s:",
    ]
    if shown.motions is None:
        lines.append("no geodesic found")
    else:
        least, straight = shown.motions.means
        more = 100 * (straight / least - 1)
        lines.append(
            f"mean kinetic energy {number(least)} J along the geodesic, {number(straight)} J straight ({number(more)} % more)"
        )
    if shown.spread is not None:
        apart = shown.spread.distance[-1] / shown.spread.time[-1]
        lines.append(f"neighbouring geodesics end {number(apart)} times as far apart as in flat space")
    return "\n".join(lines)


def _span(joint: Any) -> str:
    return f"{printable(joint.name)} {number(joint.lower)} … {number(joint.upper)} {joint.unit}"
