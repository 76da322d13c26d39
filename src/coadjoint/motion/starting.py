"""What a simulation starts from: states that satisfy the constraints, or an error that says which row does not, and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import mv
from ..constraints.constraint import Constraint, checked
from ..errors import CoadjointError
from ..robot.robot import Robot

CLOSED = 1e-6
"""Largest value of a holonomic row that counts as rounding of the caller; the first step removes it."""
MOVING = 1e-6
"""Largest velocity of a row, beside that of the state, that counts as such."""


def check_start(robot: Robot, constraint: Any, q: np.ndarray, v: np.ndarray) -> Constraint:
    """The constraint with what it leaves open as it is at the first of the states; an error where a state q, v does not satisfy it."""
    constraint = checked(constraint).at(robot, q.reshape(-1, robot.nq)[0])
    names = constraint.names(robot)
    rows = constraint.holonomic_rows(robot)
    if len(rows):
        far = np.abs(constraint.residual(robot, q)).reshape(-1, len(rows)).max(0)
        k = int(np.argmax(far))
        if not far[k] <= CLOSED:
            raise CoadjointError(
                f"q does not satisfy the constraint: row {int(rows[k])} ({names[rows[k]]}) is off by {far[k]:.3g}. Start from a "
                "configuration that does, as `coadjoint.constraints.project` finds it nearby, or `coadjoint.constraints.assemble` from a rough guess."
            )
    rate = np.abs(mv(constraint.jacobian(robot, q), v)).reshape(-1, len(names)).max(0)
    k = int(np.argmax(rate))
    if not rate[k] <= MOVING * max(1.0, float(np.abs(v).max())):
        raise CoadjointError(
            f"v is inconsistent with the constraint: row {k} ({names[k]}) has the velocity {rate[k]:.3g}, expected 0. Start with a "
            "velocity that satisfies it, as `coadjoint.constraints.project` gives it."
        )
    return constraint
