"""Derivatives of constrained dynamics by the state and the joint forces, exact.

Differentiate M a + h - Aᵀ λ = τ and A a + Ȧ v = 0 with a and λ as they come out: with F the derivative of inverse dynamics at a less
that of Aᵀ λ at fixed λ, and B that of A a + Ȧ v at fixed a,

    ∂a = P M⁻¹ (∂τ - F) - A♯ B,      ∂λ = A♯ᵀ (M ∂a + F - ∂τ).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, concat, mv, transpose
from ..dynamics.derivatives import inverse_dynamics_derivatives
from ..geometry.flow import states
from ..kernel.runtime import native
from ..robot.robot import Robot
from .constraint import Constraint, checked, constraint_bias, constraint_jacobian
from .dynamics import constrained_dynamics
from .functions import evaluated, graph_of
from .projection import constraint_inverse


class Derivatives(NamedTuple):
    """Of a (..., nv, nv) and λ (..., m, nv) by q, along the tangent vectors of `integrate`, by v and by τ."""

    da_dq: np.ndarray
    da_dv: np.ndarray
    da_dtau: np.ndarray
    dlambda_dq: np.ndarray
    dlambda_dv: np.ndarray
    dlambda_dtau: np.ndarray


def constraint_terms(robot: Robot, constraint: Constraint, q: Any, v: Any, a: Any, multipliers: Any) -> tuple[np.ndarray, ...]:
    """∂(Aᵀ λ)/∂q (..., nv, nv) at fixed λ, and ∂(A a + Ȧ v) by q and by v (..., m, nv) at fixed a."""
    n, m = robot.nv, multipliers.shape[-1]

    def run(q: Array, v: Array, a: Array, multipliers: Array) -> tuple[Array, ...]:
        from ..kernel.passes.derive import jacobian_of

        along = transpose(robot.rate(q, np.eye(n)))

        def held(q: Array, v: Array) -> Array:
            return mv(constraint_jacobian(robot, constraint, q), a) + constraint_bias(robot, constraint, q, v)

        force = jacobian_of(lambda x: mv(transpose(constraint_jacobian(robot, constraint, x)), multipliers), q)[1] @ along
        parts = [force, jacobian_of(lambda x: held(x, v), q)[1] @ along, jacobian_of(lambda x: held(q, x), v)[1]]
        return concat([x.reshape(-1) for x in parts])

    key = (checked(constraint), "terms")
    graph = graph_of(robot, key, run, q=(robot.nq,), v=(n,), a=(n,), multipliers=(m,))
    kept = robot._cache.setdefault("constraint terms", {})
    try:
        flat = kept.setdefault(key, native.build(graph))(q, v, a, multipliers)
    except native.NativeError:
        flat = evaluated(graph, q, v, a, multipliers)
    return tuple(x.reshape(*x.shape[:-1], -1, n) for x in np.split(flat, [n * n, n * n + m * n], axis=-1))


def constrained_dynamics_derivatives(robot: Robot, constraint: Constraint, q: Any, v: Any, tau: Any) -> Derivatives:
    """∂a and ∂λ of `constrained_dynamics` by q, v and τ, rows a and λ.

    Where rows depend on each other, ∂a holds as long as they go on doing so, and ∂λ is the change of the shortest λ.
    """
    q, v, tau = states(robot, q=(q, robot.nq), v=(v, robot.nv), tau=(tau, robot.nv))
    a, multipliers = constrained_dynamics(robot, constraint, q, v, tau)
    force_q, held_q, held_v = constraint_terms(robot, constraint, q, v, a, multipliers)
    by_q, by_v, M = inverse_dynamics_derivatives(robot, q, v, a)
    inverse = constraint_inverse(robot, constraint, q)
    onto = np.eye(robot.nv) - inverse @ constraint.jacobian(robot, q)
    free = onto @ np.linalg.inv(M)
    by_q = by_q - force_q
    da_dq, da_dv = -free @ by_q - inverse @ held_q, -free @ by_v - inverse @ held_v
    back = np.swapaxes(inverse, -1, -2)
    return Derivatives(
        da_dq,
        da_dv,
        free,
        back @ (M @ da_dq + by_q),
        back @ (M @ da_dv + by_v),
        back @ (M @ free - np.eye(robot.nv)),
    )
