"""The inertia of a rigid body in its four forms, and how they change with the frame.

- mass m, centre of mass c, inertia about the centre of mass I_c (3×3);
- ten parameters `(..., 10)`: m, h = m c (3), the inertia about the frame's origin Ixx Ixy Ixz Iyy Iyz Izz. This form is
  linear in the mass distribution: bodies are joined by adding parameters. The other functions take it;
- spatial inertia J `(..., 6, 6)`, the kinetic energy ½ Vᵀ J V of a twist V;
- pseudo-inertia Σ `(..., 4, 4)`, the mass distribution's second moments ∫ (x, 1)(x, 1)ᵀ dm, with Σ' = T Σ Tᵀ.
"""

from __future__ import annotations

import numpy as np

from ..arguments import a_number, argument, arguments
from ..arrays import Array, asfloat, block, concat, cross, dot, like, matrix, mv, namespace, stack, transpose
from ..errors import ShapeError
from . import se3, so3
from ._series import column

_UPPER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


def _symmetric(six: Array) -> Array:
    """The symmetric matrix with the upper triangle xx xy xz yy yz zz: (..., 6) -> (..., 3, 3)."""
    xx, xy, xz, yy, yz, zz = (six[..., k] for k in range(6))
    return matrix([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _upper(S: Array) -> Array:
    """The upper triangle of a symmetric matrix: (..., 3, 3) -> (..., 6)."""
    return stack([S[..., i, j] for i, j in _UPPER])


def _scalar_matrix(x: Array) -> Array:
    """x 1: (...) -> (..., 3, 3)."""
    return column(column(x)) * like(np.eye(3), asfloat(x))


def _trace(S: Array) -> Array:
    return S[..., 0, 0] + S[..., 1, 1] + S[..., 2, 2]


def _steiner(g: Array, p: Array) -> Array:
    """The upper triangle of 2 g·p 1 - g pᵀ - p gᵀ: (..., 6)."""
    x, y, z = (g[..., k] * p[..., k] for k in range(3))
    xy, xz, yz = (-(g[..., i] * p[..., j] + p[..., i] * g[..., j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    return stack([2.0 * (y + z), xy, xz, 2.0 * (z + x), yz, 2.0 * (x + y)])


def from_body(mass: Array, com: Array, inertia: Array) -> Array:
    """Ten parameters from mass, centre of mass and inertia about it, in one frame: (...), (..., 3), (..., 3, 3) -> (..., 10)."""
    mass, com, inertia = arguments(("mass", mass, ()), ("com", com, (3,)), ("inertia", inertia, (3, 3)))
    h = column(mass) * com
    return concat([column(mass), h, _upper(inertia) + _steiner(0.5 * h, com)])


def to_body(parameters: Array) -> tuple[Array, Array, Array]:
    """Mass, centre of mass and inertia about it; the centre of a massless body is given as the origin."""
    parameters = argument("parameters", parameters, 10)
    xp = namespace(parameters)
    mass, h = parameters[..., 0], parameters[..., 1:4]
    massless = xp.equal(mass, 0.0)
    com = xp.where(column(massless), 0.0, h / column(xp.where(massless, 1.0, mass)))
    return mass, com, _symmetric(parameters[..., 4:] - _steiner(0.5 * h, com))


def rotational(parameters: Array) -> Array:
    """The inertia about the frame's origin: (..., 10) -> (..., 3, 3)."""
    return _symmetric(argument("parameters", parameters, 10)[..., 4:])


def spatial(parameters: Array) -> Array:
    """J = [[I, [h]], [-[h], m 1]]: (..., 10) -> (..., 6, 6). Park, Bobrow & Ploen (1995), eq. (21)."""
    parameters = argument("parameters", parameters, 10)
    H = so3.hat(parameters[..., 1:4])
    return block([[rotational(parameters), H], [-H, _scalar_matrix(parameters[..., 0])]])


def from_spatial(J: Array) -> Array:
    """Ten parameters of a spatial inertia: (..., 6, 6) -> (..., 10)."""
    J = argument("J", J, 6, 6)
    return concat([J[..., 5, 5:], so3.vee(J[..., :3, 3:]), _upper(J[..., :3, :3])])


def pseudo(parameters: Array) -> Array:
    """Σ = [[½ tr(I) 1 - I, h], [hᵀ, m]]: (..., 10) -> (..., 4, 4)."""
    parameters = argument("parameters", parameters, 10)
    h, about_origin = parameters[..., 1:4, None], rotational(parameters)
    second = _scalar_matrix(0.5 * _trace(about_origin)) - about_origin
    return block([[second, h], [transpose(h), parameters[..., :1, None]]])


def from_pseudo(Sigma: Array) -> Array:
    """Ten parameters of a pseudo-inertia: (..., 4, 4) -> (..., 10)."""
    Sigma = argument("Sigma", Sigma, 4, 4)
    second = Sigma[..., :3, :3]
    return concat([Sigma[..., 3, 3:], Sigma[..., :3, 3], _upper(_scalar_matrix(_trace(second)) - second)])


def pseudo_dual(gradient: Array) -> Array:
    """G (..., 4, 4), symmetric, with tr(G Σ) = gradient · parameters for every body: (..., 10) -> (..., 4, 4)."""
    gradient = argument("gradient", gradient, 10)
    m, x, y, z, xx, xy, xz, yy, yz, zz = (gradient[..., k] for k in range(10))
    xy, xz, yz, x, y, z = -0.5 * xy, -0.5 * xz, -0.5 * yz, 0.5 * x, 0.5 * y, 0.5 * z
    return matrix([[yy + zz, xy, xz, x], [xy, xx + zz, yz, y], [xz, yz, xx + yy, z], [x, y, z, m]])


def transform(T: Array, parameters: Array) -> Array:
    """The body's parameters in another frame, T being the pose of the present frame in it: (..., 4, 4), (..., 10) -> (..., 10).

    m' = m, h' = R h + m p, I' = R I Rᵀ + 2 g·p 1 - g pᵀ - p gᵀ with g = R h + ½ m p; of R I Rᵀ one triangle is computed.
    """
    T, parameters = arguments(("T", T, (4, 4)), ("parameters", parameters, (10,)))
    R, p = T[..., :3, :3], T[..., :3, 3]
    mass = parameters[..., :1]
    Rh, half = mv(R, parameters[..., 1:4]), 0.5 * mass * p
    RI = R @ _symmetric(parameters[..., 4:])
    turned = stack([dot(RI[..., i, :], R[..., j, :]) for i, j in _UPPER])
    return concat([mass, Rh + 2.0 * half, turned + _steiner(Rh + half, p)])


def transform_pseudo(T: Array, Sigma: Array) -> Array:
    """Σ' = T Σ Tᵀ, computed by its upper triangle: (..., 4, 4), (..., 4, 4) -> (..., 4, 4)."""
    return pseudo(transform(T, from_pseudo(Sigma)))


def apply(parameters: Array, V: Array) -> Array:
    """The momentum J V = (I ω + h × v, m v - h × ω) of a body that moves with the twist V: (..., 10), (..., 6) -> (..., 6)."""
    parameters, V = arguments(("parameters", parameters, (10,)), ("V", V, (6,)))
    w, v, h = V[..., :3], V[..., 3:], parameters[..., 1:4]
    return concat([mv(rotational(parameters), w) + cross(h, v), parameters[..., :1] * v - cross(h, w)])


def kinetic_energy(parameters: Array, V: Array) -> Array:
    """½ tr([V] Σ [V]ᵀ) = ½ Vᵀ J V: (..., 10), (..., 6) -> (...).

    Brockett, Stokes & Park (1993), eq. (7), with the pseudo-inertia in the place of their √(det I / 2) I⁻¹, which does not
    give the rotational energy and does not exist for det I = 0.
    """
    parameters, V = arguments(("parameters", parameters, (10,)), ("V", V, (6,)))
    X = se3.hat(V)[..., :3, :]
    return 0.5 * (X @ pseudo(parameters) * X).sum((-2, -1))


def violations(parameters: Array, tolerance: float = 1e-12) -> list[str]:
    """The properties of J that no mass distribution has, one sentence each, with the amount; empty for a possible body.

    A body is possible if and only if its pseudo-inertia is positive semidefinite: m ≥ 0, and the principal moments about the
    centre of mass obey the triangle inequalities. Zero mass with zero inertia is possible. Amounts below `tolerance` times
    the largest entry of the inertia count as rounding. Parameters are (10,), NumPy numbers.
    """
    parameters = np.asarray(argument("parameters", parameters, 10), dtype=np.float64)
    if parameters.ndim != 1:
        raise ShapeError(f"violations reads one body, (10,), not {parameters.shape}; call it for each.")
    if not np.isfinite(parameters).all():
        return [f"a parameter is not a finite number: {parameters.tolist()}"]
    found = []
    with np.errstate(over="ignore", invalid="ignore"):
        mass, _, inertia = to_body(parameters)
    h = parameters[1:4]
    if mass < 0.0:
        found.append(f"the mass {mass:g} is negative")
    if mass == 0.0 and h.any():
        found.append(f"the mass is 0, but mass times centre of mass is ({h[0]:g}, {h[1]:g}, {h[2]:g})")
    if not np.isfinite(inertia).all():
        return [*found, "the inertia about the centre of mass is too large for a number"]
    small, middle, large = np.linalg.eigvalsh(inertia)
    slack = a_number(tolerance, "tolerance") * max(np.abs(parameters[4:]).max(), np.abs(inertia).max())
    if small < -slack:
        found.append(f"the principal moment {small:g} about the centre of mass is negative")
    if large - (small + middle) > slack:
        found.append(
            f"the principal moments about the centre of mass, {small:g}, {middle:g} and {large:g}, break the triangle "
            f"inequality: the largest exceeds the sum of the others by {large - (small + middle):g}"
        )
    return found
