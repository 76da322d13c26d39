"""Steps of Levenberg and Marquardt's method towards targets, with limits.

From a configuration q, with e the weighted differences from the targets and ė = -J v (`targets.py`),

    v = (JᵀJ + λ)⁻¹ Jᵀ e,    q ← q ⊕ v, kept within the limits

and where JJᵀ is the smaller matrix v = Jᵀ(JJᵀ + λ)⁻¹ e, which is the same. A joint that stands at a limit and that the gradient Jᵀe
drives out of it is held there. λ = μ |e|², so that the last steps to a target that is reached are Newton's (the search lets it grow no
farther than 10 μ: a target may be far away).

    search     takes every step: the quickest way to a solution where there is one near
    descend    takes back a step that does not reduce |e|², and raises μ: the way to the nearest pose where there is none
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Array, concat, like, mv, namespace, solve_spd, stack, transpose
from ..errors import CoadjointError
from ..robot.robot import Robot
from .targets import Target, residual

DAMPING = 0.03
"""μ of the search: of 0.01, 0.03, 0.1 and 0.3 the one that finds most within ten steps, for 6 and 7 joints alike."""

LEAST = 1e-13
"""The least λ, as a fraction of the trace of JJᵀ: it keeps the factorisation defined where J is singular."""

TINY = 1e-100
"""The least λ where J = 0: no joint moves the frames."""

ROUNDING = 1e-13
"""Relative differences of |e|² that may be rounding."""


def search(robot: Robot, q: Array, goal: Array, targets: Sequence[Target]) -> tuple[Array, Array]:
    """The next configuration, and of this one |e|² and the largest square of an angle or distance left: (..., nq), (..., 2)."""
    e, J, left = residual(robot, q, goal, targets)
    J = J * free_to_move(robot, q, mv(transpose(J), e))[..., None, :]
    cost = (e * e).sum(-1)
    return _moved(robot, q, e, J, DAMPING * cost / (1.0 + 0.1 * cost)), stack([cost, largest_square(left)])


def descend(
    robot: Robot, q: Array, trial: Array, state: Array, goal: Array, targets: Sequence[Target]
) -> tuple[Array, Array, Array]:
    """Judge the trial, and propose the next: (q, trial, state) -> (q, trial, state).

    q: the best so far. state (..., 4): μ, and of q |e|², the largest square of an angle or distance left, and |Jᵀe|² of what is free.
    Near the end |e|² changes by less than its rounding; then the gradient decides.
    """
    xp = namespace(q, trial, state)
    e, J, left = residual(robot, trial, goal, targets)
    J = J * free_to_move(robot, trial, mv(transpose(J), e))[..., None, :]
    gradient = mv(transpose(J), e)
    new = stack([(e * e).sum(-1), largest_square(left), (gradient * gradient).sum(-1)])
    mu, old = state[..., 0], state[..., 1:]
    lower = xp.less(new[..., 0], old[..., 0] * (1.0 - ROUNDING))
    flatter = xp.logical_and(xp.less_equal(new[..., 0], old[..., 0] * (1.0 + ROUNDING)), xp.less_equal(new[..., 2], old[..., 2]))
    better = xp.logical_or(lower, flatter)
    mu = xp.where(better, xp.maximum(0.3 * mu, 1e-6), 10.0 * mu)
    q = xp.where(better[..., None], trial, q)
    further = _moved(robot, trial, e, J, mu * new[..., 0])
    state = concat([mu[..., None], xp.where(better[..., None], new, old)])
    return q, xp.where(better[..., None], further, q), state


def _moved(robot: Robot, q: Array, e: Array, J: Array, damping: Array) -> Array:
    """q ⊕ v, within the limits; J has no columns for what is held."""
    m, n = J.shape[-2:]
    ridge = (damping + LEAST * (J * J).sum((-1, -2)) + TINY)[..., None, None] * like(np.eye(min(m, n)), q)
    if m <= n:
        v = mv(transpose(J), solve_spd(J @ transpose(J) + ridge, e[..., None])[..., 0])
    else:
        v = solve_spd(transpose(J) @ J + ridge, mv(transpose(J), e)[..., None])[..., 0]
    return clamped(robot, robot.integrate(q, v))


def free_to_move(robot: Robot, q: Array, gradient: Array) -> Array:
    """1 for every freedom that may move, 0 for those of joints at a limit that the gradient (..., nv) drives out of it."""
    xp = namespace(q, gradient)
    (lower, upper), place = limits(robot), coordinate_of_velocity(robot)
    free = []
    for k in range(robot.nv):
        i = place.get(k)
        held = [
            xp.logical_and(beyond, outward)
            for limit, beyond, outward in (
                (lower, None if i is None else xp.less_equal(q[..., i], lower[i]), xp.less(gradient[..., k], 0.0)),
                (upper, None if i is None else xp.less_equal(upper[i], q[..., i]), xp.less(0.0, gradient[..., k])),
            )
            if i is not None and np.isfinite(limit[i])
        ]
        one = 0.0 * gradient[..., k] + 1.0
        free.append(xp.where(held[0] if len(held) == 1 else xp.logical_or(*held), 0.0 * one, one) if held else one)
    return stack(free)


def coordinate_of_velocity(robot: Robot) -> dict[int, int]:
    """The coordinate of q whose rate each velocity is, where it is one; others belong to spherical, planar and free joints."""
    return {
        robot._v_slices[i].start + k: robot._q_slices[i].start + k
        for i, kind in enumerate(robot.kinds)
        if i not in robot.mimics and kind.group is None
        for k in range(kind.nv)
    }


def limits(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """The limits of q (nq,), with those that joints which mimic a coordinate have by themselves."""
    lower, upper = np.array(robot.lower), np.array(robot.upper)
    for i, (source, ratio, offset) in robot.mimics.items():
        joint, k = robot.links[i].joint, robot._q_slices[source]
        if ratio != 0.0:
            ends = np.sort([(np.asarray(x, dtype=float) - offset) / ratio for x in (joint.lower, joint.upper)], axis=0)
            lower[k], upper[k] = np.maximum(lower[k], ends[0]), np.minimum(upper[k], ends[1])
            if np.any(lower[k] > upper[k]):
                raise CoadjointError(
                    f"no position of joint {robot.links[source].joint.name!r} is within its limits and those of {joint.name!r}, which "
                    "mimics it; widen one of them."
                )
    return lower, upper


def clamped(robot: Robot, q: Array) -> Array:
    """q (..., nq) with every coordinate that has limits within them."""
    xp = namespace(q)
    parts = []
    for k, (lower, upper) in enumerate(zip(*limits(robot), strict=True)):
        x = q[..., k]
        x = xp.where(xp.less(x, float(lower)), 0.0 * x + float(lower), x) if np.isfinite(lower) else x
        parts.append(xp.where(xp.less(float(upper), x), 0.0 * x + float(upper), x) if np.isfinite(upper) else x)
    return stack(parts)


def largest_square(x: Array) -> Array:
    """The largest entry over the last axis."""
    xp = namespace(x)
    value = x[..., 0]
    for k in range(1, x.shape[-1]):
        value = xp.maximum(value, x[..., k])
    return value
