"""What looks wrong in a log beside the robot's description: order, signs and units of its columns, joints that stand still."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..dynamics import inverse_dynamics
from ..robot.robot import Robot
from .preparation import Prepared

ROWS = 400
"""Rows that are looked at."""
POOR = 0.3
"""A relative error that is told."""
TRIED = 0.1
"""A relative error of the description above which columns of positions are tried in other orders and signs."""
BETTER = 0.5
"""The part of an error that must be left for another order or sign to be named."""
SCALE = 30.0
"""The ratio of measured to expected forces above which another unit is suspected."""
STRONG = 0.05
"""The part of the largest force above which a joint's force tells something."""

Finding = tuple[tuple[str, ...], float]
"""Sentences, and what is left of the forces if they are true."""


def doubts(robot: Robot, data: Prepared) -> list[str]:
    """Sentences about joints whose forces or positions look like those of another joint, of the opposite sign or of another unit."""
    rows = slice(None, None, max(1, len(data) // ROWS))
    q, v, a, tau = (x[rows] for x in (data.q, data.v, data.a, data.tau))
    expected = np.asarray(inverse_dynamics(robot, q, v, a))
    still = [
        f"{name}: the joint does not move; its friction and what only its motion shows stay unknown"
        for name, x in zip(robot.v_names, v.T, strict=True)
        if not np.abs(x).max() > 0
    ]
    if unit := _scale(expected, tau):
        return [*still, unit]
    found = [*_forces(robot, expected, tau), *_positions(robot, expected, q, v, a, tau)]
    return still + list(min(found, key=lambda x: x[1])[0] if found else ())


def poor(error: float) -> list[str]:
    """That a model explains little of the forces, as it does of columns in another order or in other units."""
    if error < POOR:
        return []
    return [
        f"the model explains little of the measured forces (relative error {100 * error:.0f} %): are the columns of the "
        "log in the order of the robot's joints, their signs and units right?"
    ]


def _norm(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt((x * x).sum(0)))


def _scale(expected: np.ndarray, tau: np.ndarray) -> str:
    """That all forces are many times as large or small as expected; "" if they are not."""
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


def _forces(robot: Robot, expected: np.ndarray, tau: np.ndarray) -> list[Finding]:
    """Columns of forces of the other sign or in another order: the assignment of columns to joints that leaves least."""
    x, y, names = expected - expected.mean(0), tau - tau.mean(0), robot.v_names
    strong = np.flatnonzero((_norm(expected) > STRONG * _norm(expected).max()) & (_norm(x) > 0))
    if not len(strong):
        return []
    x, y = x[:, strong], y[:, strong]
    plain = np.array([_norm(one[:, None] - y) for one in x.T]) / _norm(x)[:, None]
    own = np.diag(plain)
    wrong = np.flatnonzero((_norm(x + y) / _norm(x) < BETTER * own) & (own > 1.0))
    if len(wrong):
        change = np.ones(tau.shape[1])
        change[strong[wrong]] = -1.0
        left = float(np.linalg.norm(tau * change - expected))
        if len(wrong) == len(strong) > 1:
            left = float(np.linalg.norm(tau + expected))
            return [
                (
                    ("all measured forces have the opposite sign of the expected ones: are they those on the drives? Give -tau.",),
                    left,
                )
            ]
        text = "the measured force has the opposite sign of the expected one: is its sign wrong?"
        return [(tuple(f"{names[k]}: {text}" for k in strong[wrong]), left)]
    _, column = linear_sum_assignment(plain)
    moved = np.flatnonzero(column != np.arange(len(column)))
    other = plain[moved, column[moved]]
    if not len(moved) or other.sum() > BETTER * own[moved].sum() or other.max() > 0.7:
        return []
    order = np.arange(tau.shape[1])
    order[strong] = strong[column]
    left = float(np.linalg.norm(tau[:, order] - expected))
    if len(moved) == 2:
        first, second = (names[strong[k]] for k in moved)
        return [((f"{first} and {second}: each one's force is like the one expected of the other: are they swapped?",), left)]
    places = ", ".join(f"that of {names[strong[k]]} stands in the column of {names[strong[column[k]]]}" for k in moved)
    return [((f"the measured forces look as if in another order: {places}: are the columns right?",), left)]


def _positions(robot: Robot, expected: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray, tau: np.ndarray) -> list[Finding]:
    """A position of the other sign, or two that are swapped, with which the description agrees much better."""
    size = float(np.linalg.norm(tau))
    error = float(np.linalg.norm(tau - expected))
    if q.shape != v.shape or not error > TRIED * size:
        return []
    n = robot.nv
    changes: list[tuple[np.ndarray, np.ndarray, tuple[int, ...]]]
    changes = [(np.arange(n), np.where(np.arange(n) == j, -1.0, 1.0), (j,)) for j in range(n)]
    for i, j in combinations(range(n), 2):
        order = np.arange(n)
        order[[i, j]] = j, i
        changes.append((order, np.ones(n), (i, j)))
    left = []
    for order, sign, _ in changes:
        other = inverse_dynamics(robot, q[:, order] * sign, v[:, order] * sign, a[:, order] * sign)
        left.append(float(np.linalg.norm(tau - np.asarray(other))))
    best = int(np.argmin(left))
    if left[best] > BETTER * error:
        return []
    names = [robot.v_names[k] for k in changes[best][2]]
    what = (
        f"with the other sign of the position of {names[0]}"
        if len(names) == 1
        else f"with the positions of {' and '.join(names)} swapped"
    )
    text = f"{what} the description leaves {100 * left[best] / size:.0f} % of the forces unexplained instead of {100 * error / size:.0f} %"
    return [((f"{text}: are these columns right?",), left[best])]
