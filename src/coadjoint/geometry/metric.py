"""The connection of the metric M, and what is differentiated with it.

The metric itself is `mass_matrix`, on forces `mass_matrix_inverse`. Vectors are velocities (..., nv), covectors forces. For a
spherical, planar or free joint components are by the frame X of its velocities, and ∂/∂qʲ is the derivative along X_j, the tangent
of `integrate`.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, dot, mv, namespace, transpose
from ..dynamics.articulated import mass_matrix_inverse
from ..dynamics.christoffel import check_metric, christoffel
from ..dynamics.composite import mass_matrix
from ..dynamics.coriolis import coriolis_matrix
from ..dynamics.singular import explain_singular
from ..kernel.dispatch import kernel
from ..robot.robot import Robot


@kernel("nv nv nv", q="nq", no_result=explain_singular, joint_space=True, largest=14)
def connection(robot: Robot, q: Array) -> Array:
    """Γ̂ᵏ_ij (..., k, i, j) with ∇_{X_i} X_j = Γ̂ᵏ_ij X_k: a geodesic has aᵏ + Γ̂ᵏ_ij vⁱ vʲ = 0. Γ̂ᵏ_ij = mᵏʰ Γ_ijh."""
    inverse, symbols = mass_matrix_inverse(robot, q), christoffel(robot, q)
    n = robot.nv
    raised = inverse @ transpose(symbols.reshape((*symbols.shape[:-3], n * n, n)))
    raised = raised.reshape((*raised.shape[:-2], n, n, n))
    regular = inverse[..., 0, 0] > 0.0 if n else None
    return raised if regular is None else namespace(raised).where(regular[..., None, None, None], raised, np.nan)


@kernel("nv", q="nq", x="nv", y="nv", dy="nv nv", no_result=explain_singular, joint_space=True)
def covariant_derivative(robot: Robot, q: Array, x: Array, y: Array, dy: Array) -> Array:
    """∇_x y (..., nv), how a field y changes along x: xʲ ∂yⁱ/∂qʲ + Γ̂ⁱ_jk xʲ yᵏ, with dy[..., i, j] = ∂yⁱ/∂qʲ.

    Without assembling Γ̂: Γ̂(x, y) = M⁻¹ C(x) y.
    """
    check_metric(robot)
    return mv(dy, x) + mv(mass_matrix_inverse(robot, q), mv(coriolis_matrix(robot, q, x), y))


@kernel("nv", q="nq", df="nv", no_result=explain_singular, joint_space=True)
def gradient(robot: Robot, q: Array, df: Array) -> Array:
    """The gradient M⁻¹ df (..., nv) of a function with differential df, its derivatives by q: ⟨grad f, x⟩ = df(x)."""
    return mv(mass_matrix_inverse(robot, q), df)


@kernel("", q="nq", y="nv", dy="nv nv", no_result=explain_singular, joint_space=True, largest=14)
def divergence(robot: Robot, q: Array, y: Array, dy: Array) -> Array:
    """div y = tr(∇y) = ∂yⁱ/∂qⁱ + Γ̂ⁱ_ij yʲ (...), with dy[..., i, j] = ∂yⁱ/∂qʲ: how fast the flow of y spreads volume.

    For coordinates Γ̂ⁱ_ij = ∂_j log √det M.
    """
    check_metric(robot)
    symbols = christoffel(robot, q)
    spread = (mass_matrix_inverse(robot, q)[..., None] * symbols.swapaxes(-1, -2)).sum((-3, -2))
    return namespace(dy).einsum("...ii->...", dy) + dot(spread, y)


@kernel("", q="nq", x="nv", y="nv", joint_space=True)
def inner_product(robot: Robot, q: Array, x: Array, y: Array) -> Array:
    """⟨x, y⟩ = xᵀ M y (...); ½ ⟨v, v⟩ is the kinetic energy of a velocity v."""
    return dot(x, mv(mass_matrix(robot, q), y))
