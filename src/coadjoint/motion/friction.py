"""Friction of the joints: viscous, d v, and dry (Coulomb), a set: |f| ≤ μ where v = 0, and f = -μ sign(v) elsewhere.

A joint sticks as long as a force within ±μ can hold it. What the forces of all sticking joints are, together with those of constraints
and contacts, is one problem of complementarity in the metric M⁻¹: `box_complementarity`, exactly, where `simulate` looks for events, and
`box_forces` here, in a fixed number of operations, for steps of fixed length.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, like, mv, namespace, solve_spd, stack
from ..constraints.metric_rows import REGULARIZATION, inverse
from ..robot.robot import Robot

SWEEPS, ROUNDS, TURNS = 4, 3, 3
"""Sweeps over the joints one by one that find which are inside their bounds, then turns that solve for all of these; so many rounds."""
ROUNDING = 1e-14
"""A mobility of a joint below this, relative to the largest, is rounding: the constraint fixes the joint."""


def friction_coefficients(robot: Robot) -> tuple[Array, Array]:
    """The viscous coefficients d and the dry friction μ of every velocity, (nv,) each, including those of mimic joints."""
    ratio = robot.tree_v(np.ones(robot.nv))
    return robot.from_tree(robot.damping * ratio), robot.from_tree(robot.friction * np.sign(ratio))


def has_dry_friction(robot: Robot) -> bool:
    """True if a joint has dry friction, or may have: numbers that are variables."""
    return not robot.has_plain_numbers or bool(np.any(np.asarray(robot.friction) != 0))


def locked(W: Array, held: Array) -> Array:
    """The inverse M⁻¹ = W (..., n, n) of the mass matrix of a robot with some joints locked, held (..., n) being 1 there and 0 elsewhere.

    W - W E (Eᵀ W E)⁻¹ Eᵀ W, whose rows and columns of these joints vanish.
    """
    one = like(np.eye(W.shape[-1]), W)
    rows, columns = held[..., :, None], held[..., None, :]
    inner = rows * W * columns + (1.0 - rows) * one
    found = W - W @ (rows * solve_spd(inner, rows * W))
    return (1.0 - rows) * found * (1.0 - columns)


def box_forces(W: Array, u: Array, lower: Array, upper: Array) -> Array:
    """x (..., n) between the bounds with w = W x + u: w ≥ 0 where x is at its lower bound, ≤ 0 at its upper one, else w = 0.

    W (..., n, n) is symmetric and positive semidefinite. Straight code: sweeps of Gauss and Seidel find which are inside their bounds,
    and these are then solved for together.
    """
    xp, n = namespace(W, u), u.shape[-1]
    size = xp.einsum("...kk->...k", W)
    least = ROUNDING * (size.sum(-1)[..., None] + 0.0 * size)
    free = size > least
    scale = xp.where(free, size, 1.0 + 0.0 * size)
    x = _clip(0.0 * u, lower, upper)
    for _ in range(ROUNDS):
        for _ in range(SWEEPS):
            entries = [x[..., k] for k in range(n)]
            for k in range(n):
                w = u[..., k] + sum(W[..., k, j] * entries[j] for j in range(n))
                moved = _clip(entries[k] - w / scale[..., k], lower[..., k], upper[..., k])
                entries[k] = xp.where(free[..., k], moved, entries[k])
            x = stack(entries)
        inside = xp.where((x > lower) & (x < upper) & free, 1.0 + 0.0 * x, 0.0 * x)
        rows, columns, one = inside[..., :, None], inside[..., None, :], like(np.eye(n), W)
        inner = rows * W * columns + (1.0 - rows) * one + REGULARIZATION * (rows * scale[..., :, None]) * one
        for _ in range(TURNS):
            x = x - inside * mv(inverse(inner), inside * (mv(W, x) + u))
        x = _clip(x, lower, upper)
    return x


def _clip(x: Array, lower: Array, upper: Array) -> Array:
    xp = namespace(x)
    return xp.where(x < lower, lower + 0.0 * x, xp.where(x > upper, upper + 0.0 * x, x))
