"""Doubts about a log, beside the robot's description: order, signs, units and times of its columns, joints that stand still."""

from __future__ import annotations

import numpy as np

from ..dynamics import inverse_dynamics
from ..robot.robot import Robot
from .arrangements import BETTER, FINE, TRIED, Change, Finding, changes, left_over
from .preparation import Prepared

ROWS = 400
"""Rows that are looked at."""
ENOUGH = 2
"""Equations for each unknown, below which there are too few."""
SCALE = 30.0
"""The ratio of measured to expected forces above which another unit is suspected."""
STRONG = 0.05
"""The part of the largest force above which a joint's force tells something."""
KNOWN, OTHER, CLEAR = 0.25, 1.2, 4.0
"""What a description may leave of forces whose factor it tells, a factor that is not 1, and how many times as far from 1 as from those of
other joints it is, in logarithms."""
ONE = 1.6
"""The factor of one joint's force that is not 1, if those of the others all but are."""
FACTORS = {1.3558: "lbf ft", 0.11298: "lbf in", 9.80665: "kgf m", 0.0980665: "kgf cm", 0.01: "N cm"}
"""What other units of torques are in N m."""
UNIT, EXACT = 0.1, 0.02
"""How near a factor is to one of them at most, or where those of all joints are the same; in logarithms, as they scatter."""
LATE = 2.0
"""Seconds by which forces may be late or early."""
ROUNDING = 1e-12
"""The part of forces that is rounding."""
SHIFTS = 200
"""Shifts to either side that are tried first: a hundredth of a second apart, then those beside the best one."""
MANY = 64
"""Rows from which on this can be told …"""
EXPLAINED = 0.02
"""… unless a fit leaves less than this of the forces: then the description is far off, and they are not late."""


def still(robot: Robot, data: Prepared) -> list[str]:
    """Sentences about joints that do not move."""
    return [
        f"{name}: the joint does not move; its friction and what only its motion shows stay unknown"
        for name, x in zip(robot.v_names, data.v.T, strict=True)
        if not np.abs(x).max() > 0
    ]


def doubts(robot: Robot, data: Prepared, left: float) -> tuple[list[str], bool]:
    """Sentences about joints whose forces or positions look like those of another joint, of the opposite sign or of another unit, or late,
    and whether a fit leaves much for that reason: a factor it takes up, columns in another place it does not.

    `left`: what the fit leaves of the forces, relatively. A motion of another time leaves much.
    """
    rows = slice(None, None, max(1, len(data) // ROWS))
    q, v, a, tau = (x[rows] for x in (data.q, data.v, data.a, data.tau))
    expected = np.asarray(inverse_dynamics(robot, q, v, a))
    if unit := _scale(expected, tau):
        return [unit], False
    told = data.used.any(0) & (np.ptp(tau, axis=0) > 0)
    if found := [_sentence(robot, x) for x in changes(robot, q, v, a, tau, told)]:
        return found, True
    if found := _factors(robot, expected, v, tau, told):
        return found, False
    found = [] if left < EXPLAINED else _late(robot, data, told)
    return found, bool(found)


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


def _factors(robot: Robot, expected: np.ndarray, v: np.ndarray, tau: np.ndarray, told: np.ndarray) -> list[str]:
    """Sentences about forces that are the expected ones times a factor: of all joints the same one, or of one joint alone."""
    n = robot.nv
    factor, left = np.ones(n), np.ones(n)
    for j in np.flatnonzero(told & (_norm(expected) > STRONG * _norm(expected).max())):
        X = np.stack([expected[:, j], np.ones(len(v)), v[:, j], np.sign(v[:, j])], axis=1)
        x = np.linalg.lstsq(X, tau[:, j], rcond=None)[0]
        factor[j], left[j] = x[0], np.linalg.norm(tau[:, j] - X @ x) / np.linalg.norm(tau[:, j] - tau[:, j].mean())
    known = np.flatnonzero((left < KNOWN) & (factor > 0))
    if len(known) < 2:
        return []
    middle = float(np.median(factor[known]))
    scatter = float(np.abs(np.log(factor[known] / middle)).max())
    if not 1 / OTHER < middle < OTHER and abs(np.log(middle)) > CLEAR * scatter:
        unit = min(FACTORS, key=lambda x: abs(np.log(x * middle)))
        like = f", as they would be in {FACTORS[unit]}" if abs(np.log(unit * middle)) < min(max(scatter, EXACT), UNIT) else ""
        return [
            f"the measured forces of all joints are {middle:.3g} times those that the description expects{like}: are their unit and gains "
            "right (gains= scales them), or are all links so much heavier or lighter?"
        ]
    for j in known:
        others = factor[known[known != j]]
        if len(others) > 1 and np.all(np.abs(np.log(others)) < np.log(OTHER)) and not 1 / ONE < factor[j] < ONE:
            return [
                f"{robot.v_names[j]}: the measured force is {factor[j]:.3g} times the expected one, those of other joints "
                f"{np.median(others):.3g} times: is its unit, gear ratio or gain right? gains= scales it."
            ]
    return []


def _late(robot: Robot, data: Prepared, told: np.ndarray) -> list[str]:
    """A sentence if forces of some time later or earlier are those that the description expects."""
    numbers, counts = np.unique(data.stretch, return_counts=True)
    own = data.stretch == numbers[np.argmax(counts)]
    q, v, a, tau = (x[own] for x in (data.q, data.v, data.a, data.tau))
    expected = np.asarray(inverse_dynamics(robot, q, v, a))
    most = min(int(LATE / data.step), len(q) // 4)
    if len(q) < MANY or not left_over(expected, v, tau)[told].max(initial=0.0) > TRIED or most < 1:
        return []

    thin = max(1, len(q) // ROWS)

    def left(k: int, least: float = FINE) -> float:
        rows = np.arange(max(0, -k), len(q) - max(0, k), thin)
        return float(np.log(np.maximum(left_over(expected[rows], v[rows], tau[rows + k])[told], least)).sum())

    stride = max(1, most // SHIFTS)
    near = min(range(-(most // stride) * stride, most + 1, stride), key=left)
    best = min(range(max(near - 2 * stride, -most), min(near + 2 * stride, most) + 1), key=lambda k: left(k, ROUNDING))
    if best == 0 or left(best) > left(0) + np.log(BETTER):
        return []
    word = "later" if best > 0 else "earlier"
    return [
        f"the forces that were measured {abs(best) * data.step:.2g} s {word} are those that the description expects: are the channels of "
        f"one clock? delay={best * data.step:.2g} shifts them."
    ]


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
