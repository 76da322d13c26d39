"""Newton's method for the nearest pose where a target is out of reach.

There ½ |e|² has a minimum that is not zero, and steps that know only J converge slowly: the Hessian has a part with e in it. Here the
Hessian of ½ |e|² is taken from differences of its gradient -Jᵀe, which is exact. Joints at a limit that the gradient presses
against it are held; directions of negative curvature are followed downhill.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays import Array, mv, stack, transpose
from ..robot.robot import Robot
from .levenberg import ROUNDING, clamped, free_to_move, largest_square
from .targets import Target, residual

DIFFERENCE = 1e-5
"""The step of the finite differences for the Hessian; its error of about 1e-10 affects only the rate of convergence."""

FLAT = 1e-12
"""The gradient that counts as zero."""

FARTHEST = 0.5
"""The longest step, in radians or metres."""


def slope(robot: Robot, q: Array, goal: Array, targets: Sequence[Target]) -> tuple[Array, Array]:
    """The gradient of ½ |e|² (..., nv); and |e|² and the largest square of an angle or distance left, (..., 2)."""
    e, J, left = residual(robot, q, goal, targets)
    return -mv(transpose(J), e), stack([(e * e).sum(-1), largest_square(left)])


def converged_to_nearest(
    robot: Robot, q: np.ndarray, goal: np.ndarray, slope: Callable[..., Any], steps: int = 25
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The configurations of the nearest poses, starting from q (n, nq): q, |e|² with the largest remaining square (n, 2), and
    whether the gradient vanishes (n,).
    """
    q, scale = np.array(q), np.ones(len(q))
    g, state = slope(q, goal)
    g = g * free_to_move(robot, q, -g)
    for _ in range(steps):
        on = np.flatnonzero(np.abs(g).max(-1) > FLAT)
        if not len(on):
            break
        v = _newton(robot, q[on], goal[on], g[on], slope) * scale[on, None]
        v = v / np.maximum(1.0, np.abs(v).max(-1, keepdims=True) / FARTHEST)
        trial = clamped(robot, robot.integrate(q[on], v))
        g1, state1 = slope(trial, goal[on])
        g1 = g1 * free_to_move(robot, trial, -g1)
        lower = state1[:, 0] < state[on, 0] * (1.0 - ROUNDING)
        flatter = (state1[:, 0] <= state[on, 0] * (1.0 + ROUNDING)) & (np.abs(g1).max(-1) < np.abs(g[on]).max(-1))
        better = lower | flatter
        scale[on] = np.where(better, np.minimum(1.0, 4.0 * scale[on]), 0.25 * scale[on])
        kept = on[better]
        q[kept], g[kept], state[kept] = trial[better], g1[better], state1[better]
    return q, state, np.abs(g).max(-1) <= 1e-10


def _newton(robot: Robot, q: np.ndarray, goal: np.ndarray, g: np.ndarray, slope: Callable[..., Any]) -> np.ndarray:
    """-|H|⁻¹ g (n, nv) on the freedoms that may move, |H| the Hessian with the sizes of its eigenvalues."""
    free = g != 0.0
    ahead, behind = (
        np.stack([slope(robot.integrate(q, sign * DIFFERENCE * e), goal)[0] for e in np.eye(robot.nv)], axis=-1) for sign in (1, -1)
    )
    H = (ahead - behind) / (2 * DIFFERENCE) * (free[:, :, None] & free[:, None, :])
    values, vectors = np.linalg.eigh((H + np.swapaxes(H, -1, -2)) / 2)
    sizes = np.abs(values)
    sizes = np.maximum(sizes, 1e-9 * np.maximum(sizes.max(-1, keepdims=True), 1e-9))
    result: np.ndarray = -(vectors @ ((np.swapaxes(vectors, -1, -2) @ g[..., None]) / sizes[..., None]))[..., 0] * free
    return result
