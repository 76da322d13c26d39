"""Derivatives of constrained dynamics by the state and the joint forces, exact.

Differentiate M a + h - Aᵀ λ = τ and A a + Ȧ v = 0 with a and λ as they come out: with F the derivative of inverse dynamics at a less
that of Aᵀ λ at fixed λ, and B that of A a + Ȧ v at fixed a,

    ∂a = P M⁻¹ (∂τ - F) - A♯ B,      ∂λ = A♯ᵀ (M ∂a + F - ∂τ).

Where rows depend on each other, that ∂λ is only the part of the change that acts on the robot. Which λ is the shortest also changes with q.
With D the lengths of the rows in the metric M⁻¹, y = D λ is in the range of D⁻¹ A; with Π the projector onto that range and z such that
A z = D y, differentiating y = Π y adds

    D⁻¹ (1 - Π) (D⁻¹ ∂A z - 2 ∂D λ).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arguments import a_robot, states, takes
from ..arrays import Array, ArrayLike, concat, mv, transpose
from ..dynamics.articulated import mass_matrix_inverse
from ..dynamics.christoffel import mass_matrix_derivative
from ..dynamics.derivatives import inverse_dynamics_derivatives
from ..kernel.runtime import native
from ..memo import recent
from ..robot.robot import Robot
from ..traced import evaluated
from .constraint import Constraint, checked, constraint_bias, constraint_jacobian
from .dynamics import constrained_dynamics
from .functions import graph_of
from .metric_rows import DEPENDENT
from .projection import constraint_inverse, constraint_jacobian_derivative
from .rank import decompose, vanishing


class Derivatives(NamedTuple):
    """Derivatives of a (..., nv, nv) and λ (..., m, nv) by q, along the tangent vectors of `integrate`, by v and by τ."""

    da_dq: np.ndarray
    da_dv: np.ndarray
    da_dtau: np.ndarray
    dlambda_dq: np.ndarray
    dlambda_dv: np.ndarray
    dlambda_dtau: np.ndarray


def constraint_terms(robot: Robot, constraint: Constraint, q: Any, v: Any, a: Any, multipliers: Any) -> tuple[np.ndarray, ...]:
    """∂(Aᵀ λ)/∂q (..., nv, nv) at fixed λ, and ∂(A a + Ȧ v) by q and by v (..., m, nv) at fixed a."""
    n, m = robot.nv, multipliers.shape[-1]

    def run(q: Array, v: Array, a: Array, multipliers: Array) -> Array:
        from ..kernel.passes.derive import jacobian_of

        along = transpose(robot.rate(q, np.eye(n)))

        def held(q: Array, v: Array) -> Array:
            return mv(constraint_jacobian(robot, constraint, q), a) + constraint_bias(robot, constraint, q, v)

        force = jacobian_of(lambda x: mv(transpose(constraint_jacobian(robot, constraint, x)), multipliers), q)[1] @ along
        parts = [force, jacobian_of(lambda x: held(x, v), q)[1] @ along, jacobian_of(lambda x: held(q, x), v)[1]]
        return concat([x.reshape(-1) for x in parts])

    constraint = checked(constraint, robot)
    key = (constraint, "terms")
    graph = graph_of(robot, key, run, q=(robot.nq,), v=(n,), a=(n,), multipliers=(m,))
    try:
        flat = recent(robot, ("terms", key), lambda: native.build(graph).call)(q, v, a, multipliers)
    except native.NativeError:
        flat = evaluated(graph, q, v, a, multipliers)
    return tuple(x.reshape(*x.shape[:-1], x.shape[-1] // n, n) for x in np.split(flat, [n * n, n * n + m * n], axis=-1))


def _shift(robot: Robot, constraint: Constraint, q: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """The part of ∂λ/∂q (..., m, nv) in the null space of Aᵀ, where the shortest λ changes; 0 for independent rows."""
    d, m = decompose(robot, constraint, q), multipliers.shape[-1]
    if np.all(d.rank == m):
        return np.zeros(1)
    A, dA = constraint_jacobian(robot, constraint, q), constraint_jacobian_derivative(robot, constraint, q)
    W, dM = mass_matrix_inverse(robot, q), mass_matrix_derivative(robot, q)
    length, inverse_A = d.length, A @ W
    # Rows that vanish have the length 1, always.
    square = 2 * np.einsum("...kj,...kji->...ki", inverse_A, dA) - np.einsum("...ka,...kb,...abi->...ki", inverse_A, inverse_A, dM)
    nothing = vanishing(robot, A)
    by_length = np.where(nothing[..., None], 0.0, square / (2 * length[..., None]))
    scaled = A / length[..., None]
    z = mv(np.linalg.pinv(scaled, rcond=DEPENDENT), length * multipliers)
    independent = np.arange(d.s.shape[-1]) < d.rank[..., None]
    U = np.where(independent[..., None, :], d.U, 0.0)
    across = np.eye(m) - U @ transpose(U)
    change = np.einsum("...kai,...a->...ki", dA, z) / length[..., None] - 2 * by_length * multipliers[..., None]
    result: np.ndarray = across @ change / length[..., None]
    return result


@takes(robot=a_robot)
def constrained_dynamics_derivatives(
    robot: Robot, constraint: Constraint, q: ArrayLike, v: ArrayLike, tau: ArrayLike
) -> Derivatives:
    """∂a and ∂λ of `constrained_dynamics` by q, v and τ, rows a and λ.

    For dependent rows, both hold as long as the rows stay dependent, and ∂λ is the derivative of the shortest λ.
    """
    q, v, tau = states(robot, q=(q, robot.nq), v=(v, robot.nv), tau=(tau, robot.nv))
    constraint = checked(constraint, robot)
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
        back @ (M @ da_dq + by_q) + _shift(robot, constraint, q, multipliers),
        back @ (M @ da_dv + by_v),
        back @ (M @ free - np.eye(robot.nv)),
    )
