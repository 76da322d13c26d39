"""Keeping states on a constraint inside compiled code: a fixed number of corrections, rows that depend on each other allowed.

Rows are divided by their length in the metric, so that units do not matter. A M⁻¹ Aᵀ gets a small multiple of 1 added, so that redundant
rows do no harm, and every correction is repeated until the effect of that is gone: what is left after k turns is the
(REGULARIZATION / σ²)ᵏ-th part, σ the least singular value of independent rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array, like, mv, namespace, solve_spd, stack, transpose
from ..constraints.constraint import ZERO, Constraint, checked, robot_size
from ..constraints.manifold import check_state
from ..constraints.rank import is_overconstrained, note_overconstrained
from ..dynamics import forward_dynamics, mass_matrix
from ..kernel.dispatch import kernel
from ..robot.robot import Robot
from .friction import locked

REGULARIZATION = 1e-8
"""What is added to A M⁻¹ Aᵀ of rows of length one."""
TURNS = 3
OVERCONSTRAINED = 1e-3, 8
"""What is added, and turns, where rows depend on each other on the constraint only, and nearly so beside it."""
CHORDS = 6
"""Turns for q: each gains a factor of about the distance from the constraint, which long steps make large."""


def constraint_at(robot: Robot, constraints: Any, q: np.ndarray) -> Constraint | None:
    """All constraints, one or several, as one, with what they leave open, and functions, as they are at q (nq,); None without any."""
    several = list(constraints) if isinstance(constraints, list | tuple) else [] if constraints is None else [checked(constraints)]
    return Constraint.all(several).at(robot, q) if several else None


def check_start(robot: Robot, constraints: Any, q: np.ndarray, v: np.ndarray) -> Constraint | None:
    """The same with what is left open as it is at the first of the states; an error where a state q, v does not satisfy them."""
    constraint = constraint_at(robot, constraints, q.reshape(-1, robot.nq)[0]) if q.size else None
    if constraint is not None:
        check_state(robot, constraint, q, v)
        note_overconstrained(robot, constraint, robot.normalize(q.reshape(-1, robot.nq)[0]))
    return constraint


def inverse(a: Array) -> Array:
    """A⁻¹ (..., n, n) of a symmetric positive definite matrix."""
    return solve_spd(a, like(np.eye(a.shape[-1]), a))


class Bound:
    """The constraint at q, with W = M⁻¹ or near it: what impulses it answers with. held (..., nv): 1 for joints that are locked.

    Rows have the length that they have without locked joints: those which only these could move are then nothing beside 1.
    """

    def __init__(self, robot: Robot, constraint: Constraint, q: Array, W: Array, held: Array | None = None) -> None:
        self.robot, self.constraint, self.q = robot, constraint, q
        self.W = W if held is None else locked(W, held)
        self.A = constraint.jacobian(robot, q)
        one, xp = like(np.eye(self.A.shape[-2]), self.A), namespace(self.A)
        square, size = ((self.A @ W @ transpose(self.A)) * one).sum(-1), xp.abs(self.A).sum(-1)
        least = ZERO * (robot_size(robot) + size.sum(-1)[..., None])  # shorter rows are rounding, and are not made longer
        self.length = xp.sqrt(xp.where((size > least) & (square > 0.0), square, 1.0 + 0.0 * square))
        regularization, self.turns = REGULARIZATION, TURNS
        if is_overconstrained(robot, constraint):  # rows that vanish on the constraint have no direction beside it: they stay short
            regularization, self.turns = OVERCONSTRAINED
            self.length = xp.sqrt(square + 0.01 * square.sum(-1)[..., None])
        G = self.A @ self.W @ transpose(self.A)
        self.inverse = inverse(G / (self.length[..., :, None] * self.length[..., None, :]) + regularization * one)

    def impulse(self, rate: Array) -> Array:
        """Aᵀ Λ (..., nv) that takes the rate (..., m) of the rows away."""
        return mv(transpose(self.A), mv(self.inverse, -rate / self.length) / self.length)

    def tangent(self, p: Array) -> Array:
        """The momentum p + Aᵀ Λ, with A M⁻¹ (p + Aᵀ Λ) = 0."""
        for _ in range(self.turns):
            p = p + self.impulse(mv(self.A, mv(self.W, p)))
        return p


def row_rates(robot: Robot, constraint: Constraint, values: Array, velocities: Array) -> Array:
    """The rows' values where they have one (None if none has), and their velocities (..., m) elsewhere."""
    place = {int(row): k for k, row in enumerate(constraint.holonomic_rows(robot))}
    return stack([values[..., place[k]] if k in place else velocities[..., k] for k in range(velocities.shape[-1])])


def nearest_state(robot: Robot, constraint: Constraint, q: Array, v: Array, held: Array | None = None) -> tuple[Array, Array]:
    """q and v from nearby to the constraint, along the metric: chords of Newton's iteration for q, the projection P v for v.

    Joints that are held (..., nv), marked with 1, stay where they are.
    """
    q = robot.normalize(q)
    bound = Bound(robot, constraint, q, inverse(mass_matrix(robot, q)), held)
    if len(constraint.holonomic_rows(robot)):
        for _ in range(CHORDS):
            far = row_rates(robot, constraint, constraint.residual(robot, q), 0.0 * bound.A[..., 0])
            q = robot.integrate(q, mv(bound.W, bound.impulse(far)))
        bound = Bound(robot, constraint, q, inverse(mass_matrix(robot, q)), held)
    for _ in range(bound.turns):
        v = v + mv(bound.W, bound.impulse(mv(bound.A, v)))
    return q, v


@kernel("nq", "nv", q="nq", v="nv")
def project_state(robot: Robot, constraint: Constraint, q: Array, v: Array) -> tuple[Array, Array]:
    """q and v from nearby to the constraint, along the metric."""
    return nearest_state(robot, constraint, q, v)


@kernel("nv", q="nq", v="nv", tau="nv")
def constrained_acceleration(robot: Robot, constraint: Constraint, q: Array, v: Array, tau: Array, friction: bool = False) -> Array:
    """The acceleration of `constrained_dynamics`, also where rows depend on each other."""
    a = forward_dynamics(robot, q, v, tau, friction=friction)
    bound, bias = Bound(robot, constraint, q, inverse(mass_matrix(robot, q))), constraint.bias(robot, q, v)
    for _ in range(bound.turns):
        a = a + mv(bound.W, bound.impulse(mv(bound.A, a) + bias))
    return a
