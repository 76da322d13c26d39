"""Projection of states onto a constraint inside compiled code: a fixed number of corrections; dependent rows are allowed.

The rows are those of `constraints/metric_rows.py`, regularised: every correction is repeated until the effect of that is gone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array, mv, namespace, stack, transpose
from ..constraints.constraint import Constraint, checked, robot_size
from ..constraints.manifold import check_state
from ..constraints.metric_rows import OVERCONSTRAINED_LENGTH, ZERO, RegularizedRows, inverse, row_lengths
from ..constraints.rank import is_overconstrained, note_overconstrained
from ..dynamics import forward_dynamics, mass_matrix
from ..kernel.dispatch import kernel
from ..robot.robot import Robot
from .friction import locked

CHORDS = 6
"""Turns for q: each gains a factor of about the distance from the constraint, which long steps make large."""


def constraint_at(robot: Robot, constraints: Any, q: np.ndarray) -> Constraint | None:
    """One or several constraints as one, with open values fixed at those at q (nq,) and functions frozen; None without any."""
    several = list(constraints) if isinstance(constraints, list | tuple) else [] if constraints is None else [checked(constraints)]
    return Constraint.all(several).at(robot, q) if several else None


def check_start(robot: Robot, constraints: Any, q: np.ndarray, v: np.ndarray) -> Constraint | None:
    """`constraint_at` the first of the states; an error if a state q, v does not satisfy the constraints."""
    constraint = constraint_at(robot, constraints, q.reshape(-1, robot.nq)[0]) if q.size else None
    if constraint is not None:
        check_state(robot, constraint, q, v)
        note_overconstrained(robot, constraint, robot.normalize(q.reshape(-1, robot.nq)[0]))
    return constraint


class ConstraintRows(RegularizedRows):
    """The rows of a constraint at q in the metric W = M⁻¹ or near it. held (..., nv): 1 for joints that are locked.

    Rows have the length that they have without locked joints: those which only these could move then vanish beside 1.
    """

    def __init__(self, robot: Robot, constraint: Constraint, q: Array, W: Array, held: Array | None = None) -> None:
        self.constraint = constraint
        A, overconstrained = constraint.jacobian(robot, q), is_overconstrained(robot, constraint)
        xp = namespace(A)
        square, size = xp.einsum("...kk->...k", A @ (W @ transpose(A))), xp.abs(A).sum(-1)
        if overconstrained:
            length = xp.sqrt(square + OVERCONSTRAINED_LENGTH**2 * square.sum(-1)[..., None])
        else:
            length = row_lengths(square, size > ZERO * (robot_size(robot) + size.sum(-1)[..., None]))
        super().__init__(A, W if held is None else locked(W, held), length, overconstrained)


def row_rates(robot: Robot, constraint: Constraint, values: Array, velocities: Array) -> Array:
    """The rows' values where they have one (None if none has), and their velocities (..., m) elsewhere."""
    place = {int(row): k for k, row in enumerate(constraint.holonomic_rows(robot))}
    return stack([values[..., place[k]] if k in place else velocities[..., k] for k in range(velocities.shape[-1])])


def nearest_state(robot: Robot, constraint: Constraint, q: Array, v: Array, held: Array | None = None) -> tuple[Array, Array]:
    """q and v from nearby to the constraint, along the metric: chords of Newton's iteration for q, the projection P v for v.

    Joints that are held (..., nv), marked with 1, stay where they are.
    """
    q = robot.normalize(q)
    rows = ConstraintRows(robot, constraint, q, inverse(mass_matrix(robot, q)), held)
    if len(constraint.holonomic_rows(robot)):
        for _ in range(CHORDS):
            far = row_rates(robot, constraint, constraint.residual(robot, q), 0.0 * rows.A[..., 0])
            q = robot.integrate(q, mv(rows.W, rows.impulse(far)))
        rows = ConstraintRows(robot, constraint, q, inverse(mass_matrix(robot, q)), held)
    for _ in range(rows.turns):
        v = v + mv(rows.W, rows.impulse(mv(rows.A, v)))
    return q, v


@kernel("nq", "nv", q="nq", v="nv")
def project_state(robot: Robot, constraint: Constraint, q: Array, v: Array) -> tuple[Array, Array]:
    """q and v from nearby to the constraint, along the metric."""
    return nearest_state(robot, constraint, q, v)


@kernel("nv", q="nq", v="nv", tau="nv")
def constrained_acceleration(robot: Robot, constraint: Constraint, q: Array, v: Array, tau: Array, friction: bool = False) -> Array:
    """The acceleration of `constrained_dynamics`, also where rows depend on each other."""
    a = forward_dynamics(robot, q, v, tau, friction=friction)
    rows, bias = ConstraintRows(robot, constraint, q, inverse(mass_matrix(robot, q))), constraint.bias(robot, q, v)
    for _ in range(rows.turns):
        a = a + mv(rows.W, rows.impulse(mv(rows.A, a) + bias))
    return a
