"""Doubts about a log, beside the robot's description: order, signs and units of its columns, joints that stand still."""

from __future__ import annotations

import numpy as np

from ..dynamics import inverse_dynamics
from ..robot.robot import Robot
from .arrangements import Change, Finding, changes
from .preparation import Prepared

ROWS = 400
"""Rows that are looked at."""
POOR = 0.3
"""A relative error that is told."""
ENOUGH = 2
"""Equations for each unknown, below which there are too few."""
SCALE = 30.0
"""The ratio of measured to expected forces above which another unit is suspected."""
STRONG = 0.05
"""The part of the largest force above which a joint's force tells something."""


def still(robot: Robot, data: Prepared) -> list[str]:
    """Sentences about joints that do not move."""
    return [
        f"{name}: the joint does not move; its friction and what only its motion shows stay unknown"
        for name, x in zip(robot.v_names, data.v.T, strict=True)
        if not np.abs(x).max() > 0
    ]


def doubts(robot: Robot, data: Prepared) -> list[str]:
    """Sentences about joints whose forces or positions look like those of another joint, of the opposite sign or of another unit."""
    rows = slice(None, None, max(1, len(data) // ROWS))
    q, v, a, tau = (x[rows] for x in (data.q, data.v, data.a, data.tau))
    expected = np.asarray(inverse_dynamics(robot, q, v, a))
    if unit := _scale(expected, tau):
        return [unit]
    told = data.used.any(0) & (np.ptp(tau, axis=0) > 0)
    return [_sentence(robot, x) for x in changes(robot, q, v, a, tau, told)]


def poor(error: float) -> list[str]:
    """A warning that a model explains little of the forces, as it does of columns in another order or in other units."""
    if error < POOR:
        return []
    return [
        f"the model explains little of the measured forces (relative error {100 * error:.0f} %): are the columns of the "
        "log in the order of the robot's joints, their signs and units right?"
    ]


def few(data: Prepared, unknowns: int) -> list[str]:
    """A warning that there are hardly more equations than unknowns."""
    count = int(data.used.sum())
    if count >= ENOUGH * unknowns:
        return []
    return [
        f"the {len(data)} rows that are left over {len(data) * data.step:.2g} s give {count} equations for {unknowns} unknowns: too few to "
        "tell them apart, so that most stay near the description. Record a longer motion."
    ]


def _norm(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt((x * x).sum(0)))


def _scale(expected: np.ndarray, tau: np.ndarray) -> str:
    """A warning that all forces are many times as large or small as expected; "" if they are not."""
    strong = (_norm(expected) > STRONG * _norm(expected).max()) & (_norm(tau) > 0)
    if not strong.any():
        return ""
    ratio = float(np.median(_norm(tau)[strong] / _norm(expected)[strong]))
    if 1 / SCALE < ratio < SCALE:
        return ""
    return (
        f"the measured forces are {ratio:.2g} times those that the description expects: are they in N m and N? gains= scales them, "
        "such as 0.001 for each joint if they are in N mm."
    )


def _sentence(robot: Robot, found: Finding) -> str:
    """A sentence that says what a change of columns would explain."""
    change, n = found.change, robot.nv
    concerned = change.concerned
    names = [robot.v_names[k] for k in concerned]
    if change.what == "forces":
        if len(names) == n > 1 and np.all(change.sign < 0):
            return "all measured forces have the opposite sign of the expected ones: are they those on the drives? Give -tau."
        if change.sign.min() < 0:
            return f"{names[0]}: the measured force has the opposite sign of the expected one: is its sign wrong?"
        if len(names) == 2:
            return f"{names[0]} and {names[1]}: each one's force is like the one expected of the other: are they swapped?"
        return f"the measured forces look as if in another order: {_places(robot, change)}: are the columns right?"
    what = "the position" if change.what == "positions" else "the position and the force"
    if change.sign.min() < 0:
        how, ask = f"with the other sign of {what} of {names[0]}", "does the description turn this joint the other way?"
    elif len(names) == 2:
        how, ask = (
            f"with {what.replace('position', 'positions').replace('force', 'forces')} of {names[0]} and {names[1]} swapped",
            "",
        )
    else:
        how, ask = (
            f"with {what.replace('position', 'positions').replace('force', 'forces')} in another order ({_places(robot, change)})",
            "",
        )
    text = f"{how} the description leaves {found.after:.0f} % of the forces unexplained instead of {found.before:.0f} %"
    return f"{text}: {ask or 'are these columns right?'}"


def _places(robot: Robot, change: Change) -> str:
    """The columns of each joint."""
    names = robot.v_names
    return ", ".join(f"that of {names[k]} stands in the column of {names[change.order[k]]}" for k in change.concerned)
