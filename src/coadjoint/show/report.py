"""The report of a robot: one HTML file that carries its dynamics with it, to be opened from disk, on a phone, in a lecture."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import a_robot, takes
from ..constraints import assemble
from ..constraints.constraint import Constraint, checked
from ..errors import CoadjointError, ModelWarning
from ..files import as_path, check_output, replacing
from ..motion.trajectory import Trajectory
from ..robot.robot import Robot
from ..words import short
from .page.equations import equations_of
from .page.html import html
from .page.model import describe, packed, start, visuals
from .page.programs import LIGHT, programs

STATES = 1800
"""The most states of a motion in a page: half a minute at 60 per second."""

TRIANGLES, FEW_TRIANGLES = 60_000, 10_000
"""The most triangles of a robot's own shapes, in a page and in a notebook."""

FREEDOMS = 12
"""Up to this number of freedoms a notebook's page carries every function of the robot."""


@takes(robot=a_robot)
def report(
    robot: Robot,
    path: str | Path | None = None,
    *,
    motion: Trajectory | None = None,
    constraints: Constraint | None = None,
    source: str = "",
) -> str:
    """The page of a robot as text, which is also written to `path`, whole or not at all.

    It shows the robot in space with sliders for every freedom, and computes poses, the mass matrix, joint forces by term, energies,
    reactions and ellipsoids itself, by functions of this robot as JavaScript. It needs neither a server nor a network.

    motion: a trajectory to be played. constraints: loops that the page keeps closed, by default those of the motion, or the robot's own.
    source: the Python expression that gives the robot, for "copy as Python"; without it the page offers the robot as a file.
    """
    if path is not None:
        check_page(path)
    text = page_text(robot, motion=motion, constraints=constraints, source=source)
    if path is not None:
        with replacing(path) as part:
            part.write_text(text, encoding="utf-8", newline="\n")
    return text


def check_page(path: str | Path, *inputs: str | None) -> None:
    """Refuse a name that is not that of an HTML page, or that cannot be written."""
    if as_path(path).suffix.lower() not in (".html", ".htm"):
        raise CoadjointError(f"{path}: a report is an HTML page; give it a name that ends in .html.")
    check_output(path, *inputs)


def page_text(
    robot: Robot,
    *,
    motion: Trajectory | None = None,
    constraints: Constraint | None = None,
    source: str = "",
    light: bool = False,
    more: dict[str, Any] | None = None,
    **options: Any,
) -> str:
    """The page; `light` without the large functions of large robots and without formulas. `more`: further values for its script."""
    robot = robot.consolidated()
    if motion is not None and not isinstance(motion, Trajectory):
        raise CoadjointError(f"motion is {short(motion)}; expected a Trajectory, as from coadjoint.simulate.")
    if not isinstance(source, str):
        raise CoadjointError(f"source is {short(source)}; expected the text of a Python expression.")
    if motion is not None and motion.robot.fingerprint != robot.fingerprint:
        raise CoadjointError(f"the motion is one of robot {motion.robot.name!r}, not of {robot.name!r}.")
    if motion is not None and motion.q.ndim != 2:
        raise CoadjointError("the motion is a batch of motions; give one of them.")
    if constraints is None and motion is not None:
        constraints = motion.constraints
    if constraints is None and robot.loops:
        constraints = Constraint.loops(robot)
    at = None
    if constraints is not None:
        constraints = checked(constraints, robot)
        at = assembled(robot, constraints)
        constraints = constraints.at(robot, at)
    made = programs(robot, constraints, LIGHT if light and robot.nv > FREEDOMS else None)
    model = describe(robot, source, constraints, at)
    if at is not None:
        model["start"] = at.tolist()
    shapes, notes = visuals(robot, FEW_TRIANGLES if light else TRIANGLES)
    model["warnings"] = list(dict.fromkeys([*model["warnings"], *notes]))
    model |= {"visuals": shapes}
    model |= {"leftOut": list(made.left_out), "motion": None if motion is None else _states(motion)}
    model |= more or {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        saved = "" if light else robot.to_json()
    return html(
        model,
        made.text,
        saved=saved,
        equations="" if light else equations_of(robot, constraints is not None),
        wasm=made.wasm,
        **options,
    )


def assembled(robot: Robot, constraints: Constraint) -> np.ndarray:
    """A configuration that satisfies the constraints, near the start; the start itself where none is found there."""
    q = start(robot)
    for seed in range(8):
        try:
            return np.asarray(assemble(robot, constraints, q if not seed else robot.random(seed)))
        except CoadjointError:
            continue
    return q


def _states(motion: Trajectory) -> dict[str, str]:
    """The states of a motion, evenly spaced where there are very many."""
    time, q, v = motion.time, motion.q, motion.v
    if len(time) > STATES:
        time = np.linspace(time[0], motion.end, STATES)
        q, v = motion(time)
    return {"name": "motion", "time": packed(time - time[0]), "q": packed(q), "v": packed(v)}
