"""`coadjoint redundancy`: what a robot can do besides its task, and how it drifts round a closed path."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from ..files import check_output
from ..show.redundancy import Redundancy, redundancy, suggest
from ..show.terminal import number, table, vector
from .robots import read_robot


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
    """What the figure shows, in numbers."""
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
            f"{robot.name}: task {task}, {task.size} rows of {robot.nv} freedoms, {robot.nv - task.size} to spare",
            str(report),
            "",
            f"at q = {vector(shown.start)}, the kinetic energy of each joint moving alone:",
            joints,
            "",
            f"round a circle of {shown.path.duration:g} s, drift in √⟨dq, dq⟩ of kinetic energy:",
            table(head, rows, "lrrrrr"),
        ]
    )
