"""Checks that states of robots that differ in their numbers satisfy a constraint, before a motion and after it."""

from __future__ import annotations

import numpy as np

from ..arrays import Array, mv
from ..constraints.constraint import Constraint
from ..constraints.manifold import check_state, check_vanishing
from ..constraints.rank import ConstraintError
from ..families import Family
from ..robot.robot import Robot

TOLERANCE = 1e-6
"""The largest violation of a constraint, in metres, radians and their rates."""


def check_rows(
    family: Family, constraint: Constraint, states: list[np.ndarray], numbers: list[np.ndarray], batch: tuple[int, ...]
) -> None:
    """`check_state` for states q (N, nq), v (N, nv) of robots that may differ in their numbers (N, size)."""
    robot = family.robot
    if not family:
        q, v = (x.reshape(*batch, x.shape[-1]) for x in states)
        check_state(robot, constraint, q, v)
        return
    names, holonomic = np.array(constraint.names(robot)), constraint.holonomic_rows(robot)

    def values(robot: Robot, _: tuple[Array, ...], q: Array, v: Array) -> tuple[Array, Array]:
        slip = mv(constraint.jacobian(robot, q), v)
        return (constraint.residual(robot, q) if len(holonomic) else 0.0 * slip), slip

    found = family.compiled(("rows", constraint), values, "rows", q=(robot.nq,), v=(robot.nv,))(*states, *numbers)
    phi, slip = (x.reshape(*batch, x.shape[-1]) for x in found)
    if len(holonomic):
        remedy = "`constraints.project(robot, constraint, q)`"
        check_vanishing(phi, names[holonomic], TOLERANCE, "q is off the constraint", remedy)
    speed = np.abs(states[1]).max(-1, initial=0.0).reshape(*batch, 1)
    remedy = "`constraints.project_velocity(robot, constraint, q, v)`"
    check_vanishing(slip, names, TOLERANCE * (1.0 + speed), "v violates the constraint", remedy)


def check_kept(
    family: Family, constraint: Constraint, states: list[np.ndarray], numbers: list[np.ndarray], batch: tuple[int, ...]
) -> None:
    """Raise an error if a motion has left the constraint, as steps beyond a singular state do; NaN states are ignored."""
    finite = np.isfinite(states[0]).all(-1) & np.isfinite(states[1]).all(-1)
    try:
        check_rows(family, constraint, [x[finite] for x in states], [x[finite] for x in numbers], (int(finite.sum()),))
    except ConstraintError as error:
        raise ConstraintError(
            f"the motion left the constraint, at the end {str(error).split(' Bring')[0]} Steps are too long for it, or a state on the "
            "way is singular: take shorter steps, or `simulate`."
        ) from None
