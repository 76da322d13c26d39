"""`coadjoint redundancy`: self-motions of a robot with a task, and its drift after a closed path."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from ..files import check_output
from ..show.redundancy import Redundancy, redundancy, suggest
from ..show.terminal import number, table, vector
from ..words import printable
from .robots import add_robot, name_of, read_robot

HELP = "compute the null motions of a redundant robot, and its drift around a closed path"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("--frame", metavar="NAME", help="the frame that has the task (default: tip, or the last one)")
    rows = "rows of its twist (ω, v), 0 to 5, as 3 4 5 for the position; without it as many as leave freedoms"
    parser.add_argument("--rows", nargs="+", type=int, metavar="K", help=rows)
    parser.add_argument("--loops", type=int, default=3, metavar="N", help="how often round the path (default: 3)")
    parser.add_argument("--plot", metavar="FILE", help="draw it: .png, .svg, .pdf or .html")


def run(args: argparse.Namespace) -> None:
    if args.plot:
        from ..show.plots import check_figure

        check_figure(args.plot)
        check_output(args.plot, args.robot if Path(args.robot).is_file() else None)
    robot = read_robot(args.robot, args.base, args.fixed_joints)
    task = suggest(robot, args.frame, args.rows)
    shown = redundancy(robot, task.frame, task.rows, loops=args.loops)
    print(as_text(shown))
    if args.plot:
        from ..show.redundancy import draw_redundancy

        draw_redundancy(args.plot, shown)
        print(f"drew {args.plot}")


def as_text(shown: Redundancy) -> str:
    """The content of the figure as text."""
    robot, task, report = shown.robot, shown.task, shown.report
    joints = table(
        ("joint", "horizontal", "vertical"),
        [(name, number(h), number(v)) for name, h, v in zip(robot.v_names, *shown.split, strict=True)],
        "lrr",
    )
    rows = []
    for name, tracks, drift in zip(("lift", "pseudoinverse"), shown.tracks, shown.drifts, strict=True):
        first = tracks[0]
        off = np.max([np.max(track.error) for track in tracks])
        largest = float(np.max(np.abs(first.drift)))
        rows.append((name, f"{off:.1e}", number(largest), number(drift[1]), number(drift[-1]), number(np.min(first.dexterity))))
    loops = len(shown.tracks[0])
    head = ("", "off the path", "max |dq| in 1", "drift after 1", f"after {loops}", "dexterity")
    return "\n".join(
        [
            f"{name_of(robot)}: task {printable(str(task))}, {task.size} rows of {robot.nv} freedoms, {robot.nv - task.size} to spare",
            str(report),
            "",
            f"at q = {vector(shown.start)}, the kinetic energy of each joint moving alone:",
            joints,
            "",
            f"round a circle of {shown.path.duration:g} s, drift in √⟨dq, dq⟩ of kinetic energy:",
            table(head, rows, "lrrrrr"),
        ]
    )
