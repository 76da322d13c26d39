"""The rotation group SO(3) and its algebra.

Rotation vectors ω are `(..., 3)`, rotation matrices R `(..., 3, 3)`; leading axes are batch axes and broadcast.
"""

from __future__ import annotations

from ..arrays import Array, dot, matrix, stack
from ._arguments import argument
from ._series import exp_coefficients


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
    x, y, z = w[..., 0], w[..., 1], w[..., 2]
    a, b = exp_coefficients(dot(w, w))
    ax, ay, az = a * x, a * y, a * z
    bx, by, bz = b * x, b * y, b * z
    xx, yy, zz = bx * x, by * y, bz * z
    xy, yz, zx = bx * y, by * z, bz * x
    return matrix(
        [
            [1.0 - (yy + zz), xy - az, zx + ay],
            [xy + az, 1.0 - (zz + xx), yz - ax],
            [zx - ay, yz + ax, 1.0 - (xx + yy)],
        ]
    )
