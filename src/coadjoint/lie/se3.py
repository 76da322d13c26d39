"""The Euclidean group SE(3), its adjoint and its coadjoint actions.

Twists (ω, v) and wrenches (m, f) are `(..., 6)`, angular part first; poses T are `(..., 4, 4)`; leading axes are batch
axes and broadcast. The recursions use the actions (`Ad_act` and so on), which need far fewer multiplications than products
with the 6×6 operators.
"""

from __future__ import annotations

import numpy as np

from ..arguments import argument, arguments
from ..arrays import Array, block, concat, cross, dot, like, matrix, mv, namespace, transpose
from ..errors import CoadjointError
from . import so3
from ._series import a_and_b, c_of, column, d_of, db_ds, dc_ds, dd_ds


def pose(R: Array, p: Array) -> Array:
    """The pose with rotation R and translation p: (..., 3, 3), (..., 3) -> (..., 4, 4)."""
    R, p = arguments(("R", R, (3, 3)), ("p", p, (3,)))
    return block([[concat([R, p[..., None]])], [like([[0.0, 0.0, 0.0, 1.0]], R)]])


def rotation(T: Array) -> Array:
    """The rotation matrix of a pose: (..., 4, 4) -> (..., 3, 3)."""
    return argument("T", T, 4, 4)[..., :3, :3]


def translation(T: Array) -> Array:
    """The translation of a pose: (..., 4, 4) -> (..., 3)."""
    return argument("T", T, 4, 4)[..., :3, 3]


def inverse(T: Array) -> Array:
    """T⁻¹ = (Rᵀ, -Rᵀ p)."""
    T = argument("T", T, 4, 4)
    Rt = transpose(T[..., :3, :3])
    return pose(Rt, -mv(Rt, T[..., :3, 3]))


def hat(xi: Array) -> Array:
    """The matrix [[ω], v; 0, 0] of a twist: (..., 6) -> (..., 4, 4)."""
    xi = argument("xi", xi, 6)
    top = concat([so3.hat(xi[..., :3]), xi[..., 3:, None]])
    return block([[top], [like([[0.0, 0.0, 0.0, 0.0]], xi)]])


def vee(X: Array) -> Array:
    """The twist of a matrix, vee(hat(xi)) = xi: (..., 4, 4) -> (..., 6)."""
    X = argument("X", X, 4, 4)
    return concat([so3.vee(X[..., :3, :3]), X[..., :3, 3]])


def exp(xi: Array) -> Array:
    """The pose exp([ξ]): (..., 6) -> (..., 4, 4). Park, Bobrow & Ploen (1995), eqs. (15)-(17), for any |ω|.

    p = v + b ω×v + c ω×(ω×v), b = (1 - cos θ)/θ², c = (θ - sin θ)/θ³, θ = |ω|.
    """
    xi = argument("xi", xi, 6)
    w, v = xi[..., :3], xi[..., 3:]
    s = dot(w, w)
    wv = cross(w, v)
    return pose(so3.exp(w), v + column(a_and_b(s)[1]) * wv + column(c_of(s)) * cross(w, wv))


def log(T: Array) -> Array:
    """The twist ξ with exp(ξ) = T and |ω| ≤ π: (..., 4, 4) -> (..., 6).

    v = p - ½ ω×p + d ω×(ω×p), d = (1 - θ/2 cot θ/2)/θ². At θ = π the sign of ω is that of `so3.log`.
    """
    T = argument("T", T, 4, 4)
    p = T[..., :3, 3]
    w = so3.log(T[..., :3, :3])
    wp = cross(w, p)
    return concat([w, p - 0.5 * wp + column(d_of(dot(w, w))) * cross(w, wp)])


def exp_screw(S: Array, q: Array) -> Array:
    """exp([S] q) for a screw S = (ω, v) with |ω| = 1 or ω = 0: (..., 6), (...) -> (..., 4, 4).

    Park, Bobrow & Ploen (1995), eqs. (15)-(17):

        R = 1 + sin q [ω] + (1 - cos q) [ω]²,  p = (q 1 + (1 - cos q) [ω] + (q - sin q) [ω]²) v

    grouped so that everything that depends on S alone is a constant, and one sine and one cosine are all that remains.
    For tiny q the error is a few ulp of the screw's own lengths (1 in R, |v| in p), which is what a pose is good for; `exp`
    keeps relative accuracy in tiny motions as well.
    """
    S, q = arguments(("S", S, (6,)), ("q", q, ()))
    _check_unit(S)
    xp = namespace(q)
    sin, cos = xp.sin(q), xp.cos(q)
    versine = 1.0 - cos
    w, v = S[..., :3], S[..., 3:]
    x, y, z = w[..., 0], w[..., 1], w[..., 2]
    n = dot(w, w)
    xx, yy, zz = x * x, y * y, z * z
    xy, yz, zx = versine * (x * y), versine * (y * z), versine * (z * x)
    sx, sy, sz = sin * x, sin * y, sin * z
    still = 1.0 - n
    R = matrix(
        [
            [still + xx + (yy + zz) * cos, xy - sz, zx + sy],
            [xy + sz, still + yy + (zz + xx) * cos, yz - sx],
            [zx - sy, yz + sx, still + zz + (xx + yy) * cos],
        ]
    )
    axial = column(dot(w, v)) * w
    along = column(still) * v + axial  # (1 + [ω]²) v
    across = column(n) * v - axial  # -[ω]² v
    p = column(q) * along + column(versine) * cross(w, v) + column(sin) * across
    return pose(R, p)


def _check_unit(S: Array) -> None:
    """An error for a screw of numbers with |ω| plainly neither 1 nor 0; steps of finite differences by S may pass."""
    if namespace(S) is np:
        n = (S[..., :3] ** 2).sum(-1)
        wrong = np.abs(n * (n - 1.0)) > 1e-3
        if wrong.any():
            length = np.sqrt(np.max(n, where=wrong, initial=0.0))
            raise CoadjointError(
                f"exp_screw needs a screw with |ω| = 1 or ω = 0, not |ω| = {length:g}: divide S by |ω| and multiply q by it, "
                "or use exp(S q)."
            )


def _dual(x: Array, y: Array, dx: Array, dy: Array, xi: Array) -> Array:
    """[[J, 0], [J', J]] with J = 1 + x [ω] + y [ω]² and J' its derivative along v; dx = dx/ds, dy = dy/ds, s = |ω|².

    ad_ξ is [ω + ε v] in dual numbers (ε² = 0), so a power series in ad_ξ is that of [ω] evaluated at ω + ε v.
    """
    w, v = xi[..., :3], xi[..., 3:]
    W, V = so3.hat(w), so3.hat(v)
    x, y, dx, dy, ds = (column(column(z)) for z in (x, y, dx, dy, 2.0 * dot(w, v)))
    WW = W @ W
    J = like(np.eye(3), xi) + x * W + y * WW
    dJ = x * V + y * (W @ V + V @ W) + ds * (dx * W + dy * WW)
    return block([[J, like(np.zeros((3, 3)), xi)], [dJ, J]])


def dexp(xi: Array) -> Array:
    """The derivative of exp, right-trivialised (twist in space): d/dt exp(ξ) = [dexp(ξ) ξ̇] exp(ξ): (..., 6) -> (..., 6, 6).

    dexp(ξ) = Σ_k ad_ξᵏ / (k + 1)!. It is singular at |ω| = 2π, 4π, …
    """
    xi = argument("xi", xi, 6)
    s = dot(xi[..., :3], xi[..., :3])
    return _dual(a_and_b(s)[1], c_of(s), db_ds(s), dc_ds(s), xi)


def dexp_body(xi: Array) -> Array:
    """The derivative of exp, left-trivialised (twist in the body): d/dt exp(ξ) = exp(ξ) [dexp_body(ξ) ξ̇].

    dexp_body(ξ) = dexp(-ξ) = Ad_{exp(-ξ)} dexp(ξ).
    """
    return dexp(-argument("xi", xi, 6))


def dexp_inverse(xi: Array) -> Array:
    """dexp(ξ)⁻¹ = Σ_k B_k ad_ξᵏ / k!, with the Bernoulli numbers B_k, summed: (..., 6) -> (..., 6, 6).

    Towards θ = |ω| = 2π its blocks grow as 1/(2π - θ), the lower left one as 1/(2π - θ)², and so does what rounding of ξ
    does to them. Twists from `log` have θ ≤ π, far from that.
    """
    xi = argument("xi", xi, 6)
    s = dot(xi[..., :3], xi[..., :3])
    return _dual(-0.5, d_of(s), 0.0, dd_ds(s), xi)


def dexp_inverse_body(xi: Array) -> Array:
    """dexp_body(ξ)⁻¹ = dexp_inverse(-ξ)."""
    return dexp_inverse(-argument("xi", xi, 6))


def Ad(T: Array) -> Array:
    """The adjoint operator [[R, 0], [[p]R, R]] on twists, T exp(ξ) = exp(Ad_T ξ) T: (..., 4, 4) -> (..., 6, 6)."""
    T = argument("T", T, 4, 4)
    R = T[..., :3, :3]
    return block([[R, like(np.zeros((3, 3)), R)], [so3.hat(T[..., :3, 3]) @ R, R]])


def Ad_dual(T: Array) -> Array:
    """Ad_Tᵀ, the dual operator on wrenches: (..., 4, 4) -> (..., 6, 6)."""
    return transpose(Ad(T))


def ad(xi: Array) -> Array:
    """The operator ad_ξ η = [ξ, η], [[ω], 0; [v], [ω]]: (..., 6) -> (..., 6, 6)."""
    xi = argument("xi", xi, 6)
    W = so3.hat(xi[..., :3])
    return block([[W, like(np.zeros((3, 3)), xi)], [so3.hat(xi[..., 3:]), W]])


def ad_dual(xi: Array) -> Array:
    """ad_ξᵀ, the dual operator on wrenches: (..., 6) -> (..., 6, 6)."""
    return transpose(ad(xi))


def _pose_and_vector(T: Array, name: str, x: Array) -> tuple[Array, Array, Array, Array]:
    T, x = arguments(("T", T, (4, 4)), (name, x, (6,)))
    return T[..., :3, :3], T[..., :3, 3], x[..., :3], x[..., 3:]


def Ad_act(T: Array, V: Array) -> Array:
    """Ad_T V = (R ω, R v + p × R ω)."""
    R, p, w, v = _pose_and_vector(T, "V", V)
    Rw = mv(R, w)
    return concat([Rw, mv(R, v) + cross(p, Rw)])


def Ad_inv_act(T: Array, V: Array) -> Array:
    """Ad_{T⁻¹} V = (Rᵀ ω, Rᵀ (v - p × ω))."""
    R, p, w, v = _pose_and_vector(T, "V", V)
    Rt = transpose(R)
    return concat([mv(Rt, w), mv(Rt, v - cross(p, w))])


def Ad_dual_act(T: Array, F: Array) -> Array:
    """Ad_Tᵀ F = (Rᵀ (m - p × f), Rᵀ f): a wrench of the frame that T starts from, seen in the frame that T leads to."""
    R, p, m, f = _pose_and_vector(T, "F", F)
    Rt = transpose(R)
    return concat([mv(Rt, m - cross(p, f)), mv(Rt, f)])


def Ad_inv_dual_act(T: Array, F: Array) -> Array:
    """Ad_{T⁻¹}ᵀ F = (R m + p × R f, R f)."""
    R, p, m, f = _pose_and_vector(T, "F", F)
    Rf = mv(R, f)
    return concat([mv(R, m) + cross(p, Rf), Rf])


def ad_act(V: Array, W: Array) -> Array:
    """The bracket [V, W] = (ω × ω', ω × v' + v × ω'). Park, Bobrow & Ploen (1995), eq. (1)."""
    V, W = arguments(("V", V, (6,)), ("W", W, (6,)))
    w, v, w2, v2 = V[..., :3], V[..., 3:], W[..., :3], W[..., 3:]
    return concat([cross(w, w2), cross(w, v2) + cross(v, w2)])


def ad_dual_act(V: Array, F: Array) -> Array:
    """ad_Vᵀ F = (m × ω + f × v, f × ω)."""
    V, F = arguments(("V", V, (6,)), ("F", F, (6,)))
    w, v, m, f = V[..., :3], V[..., 3:], F[..., :3], F[..., 3:]
    return concat([cross(m, w) + cross(f, v), cross(f, w)])
