"""The rotation group SO(3) and its algebra.

Rotation vectors ω are `(..., 3)`, rotation matrices R `(..., 3, 3)`; leading axes are batch axes and broadcast.
"""

from __future__ import annotations

import numpy as np

from ..arguments import argument
from ..arrays import Array, dot, like, matrix, stack
from . import quaternion
from ._series import a_and_b, c_of, column, d_of


def hat(w: Array) -> Array:
    """The skew matrix [w] with [w] x = w × x: (..., 3) -> (..., 3, 3)."""
    w = argument("w", w, 3)
    x, y, z = w[..., 0], w[..., 1], w[..., 2]
    return matrix([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def vee(W: Array) -> Array:
    """The vector of a skew matrix, vee(hat(w)) = w: (..., 3, 3) -> (..., 3)."""
    W = argument("W", W, 3, 3)
    return stack([W[..., 2, 1], W[..., 0, 2], W[..., 1, 0]])


def exp(w: Array) -> Array:
    """The rotation by |w| about w: 1 + sin θ/θ [w] + (1 - cos θ)/θ² [w]², θ = |w|: (..., 3) -> (..., 3, 3)."""
    w = argument("w", w, 3)
    a, b = a_and_b(dot(w, w))
    return quaternion.rotation(w, column(a) * w, column(b) * w)


def log(R: Array) -> Array:
    """The rotation vector of R, of length at most π, exp(log(R)) = R: (..., 3, 3) -> (..., 3).

    Through the quaternion, so it keeps its digits at every angle and never meets an arccos past 1. At θ = π, where u π and
    -u π are the same rotation, the largest component of the result is positive.
    """
    return quaternion.log(quaternion.from_matrix(argument("R", R, 3, 3)))


def _one_plus(x: Array, y: Array, w: Array) -> Array:
    """1 + x [w] + y [w]²."""
    W = hat(w)
    return like(np.eye(3), w) + column(column(x)) * W + column(column(y)) * (W @ W)


def dexp(w: Array) -> Array:
    """The derivative of exp, right-trivialised (angular velocity in space): d/dt exp(w) = [dexp(w) ẇ] exp(w).

    1 + (1 - cos θ)/θ² [w] + (θ - sin θ)/θ³ [w]²: (..., 3) -> (..., 3, 3). It is singular at θ = 2π, 4π, …
    """
    w = argument("w", w, 3)
    s = dot(w, w)
    return _one_plus(a_and_b(s)[1], c_of(s), w)


def dexp_body(w: Array) -> Array:
    """The derivative of exp, left-trivialised (angular velocity in the body): d/dt exp(w) = exp(w) [dexp_body(w) ẇ].

    dexp_body(w) = dexp(-w) = exp(w)ᵀ dexp(w) = dexp(w)ᵀ.
    """
    return dexp(-argument("w", w, 3))


def dexp_inverse(w: Array) -> Array:
    """dexp(w)⁻¹ = 1 - ½ [w] + (1 - θ/2 cot θ/2)/θ² [w]²: (..., 3) -> (..., 3, 3).

    Towards θ = 2π its entries grow as 1/(2π - θ), and so does their relative sensitivity to w: an error of ε in w becomes
    ε 2π/(2π - θ) in the result. Rotation vectors from `log` have θ ≤ π, far from that.
    """
    w = argument("w", w, 3)
    s = dot(w, w)
    return _one_plus(-0.5, d_of(s), w)


def dexp_inverse_body(w: Array) -> Array:
    """dexp_body(w)⁻¹ = dexp_inverse(-w)."""
    return dexp_inverse(-argument("w", w, 3))
