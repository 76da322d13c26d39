"""Unit quaternions, in the order (x, y, z, w) everywhere: `(..., 4)`, leading axes are batch axes and broadcast.

q = (u sin θ/2, cos θ/2) is the rotation by θ about the unit vector u; q and -q are the same rotation.
"""

from __future__ import annotations

from ..arguments import argument, arguments
from ..arrays import Array, concat, cross, dot, matrix, namespace, stack
from ._series import angle_over_sine, column, cos_half, sinc_half


def multiply(p: Array, q: Array) -> Array:
    """p ⊗ q, so that to_matrix(p ⊗ q) = to_matrix(p) to_matrix(q): (..., 4), (..., 4) -> (..., 4)."""
    p, q = arguments(("p", p, (4,)), ("q", q, (4,)))
    u, v, pw, qw = p[..., :3], q[..., :3], p[..., 3:], q[..., 3:]
    return concat([pw * v + qw * u + cross(u, v), pw * qw - column(dot(u, v))])


def conjugate(q: Array) -> Array:
    """(-x, -y, -z, w), the inverse of a unit quaternion."""
    q = argument("q", q, 4)
    return concat([-q[..., :3], q[..., 3:]])


def normalize(q: Array) -> Array:
    """q / |q|."""
    q = argument("q", q, 4)
    return q / column(namespace(q).sqrt(dot(q, q)))


def exp(w: Array) -> Array:
    """The unit quaternion of the rotation vector w: (..., 3) -> (..., 4)."""
    w = argument("w", w, 3)
    s = dot(w, w)
    return concat([column(0.5 * sinc_half(s)) * w, column(cos_half(s))])


def log(q: Array) -> Array:
    """The rotation vector of q, of length at most π: (..., 4) -> (..., 3).

    q and -q have the same, that of the shorter way round. At θ = π (w = 0) both ways are equally long and (x, y, z) itself
    is the axis. The length of q does not matter.
    """
    q = argument("q", q, 4)
    xp = namespace(q)
    u, w = q[..., :3], q[..., 3]
    back = xp.less(w, 0.0)
    ratio = angle_over_sine(dot(u, u), xp.where(back, -w, w))
    return column(xp.where(back, -ratio, ratio)) * u


def to_matrix(q: Array) -> Array:
    """The rotation matrix of a unit quaternion, 1 + 2 w [u] + 2 [u]²: (..., 4) -> (..., 3, 3)."""
    q = argument("q", q, 4)
    u = q[..., :3]
    twice = u + u
    return rotation(u, twice * q[..., 3:], twice)


def rotation(u: Array, a: Array, b: Array) -> Array:
    """1 + [a] + [b][u] for vectors a and b along u: (..., 3) each -> (..., 3, 3). Rodrigues' formula, nine products."""
    u, a, b = arguments(("u", u, (3,)), ("a", a, (3,)), ("b", b, (3,)))
    (x, y, z), (ax, ay, az), (bx, by, bz) = ([c[..., k] for k in range(3)] for c in (u, a, b))
    xx, yy, zz = bx * x, by * y, bz * z
    xy, yz, zx = bx * y, by * z, bz * x
    return matrix(
        [
            [1.0 - (yy + zz), xy - az, zx + ay],
            [xy + az, 1.0 - (zz + xx), yz - ax],
            [zx - ay, yz + ax, 1.0 - (xx + yy)],
        ]
    )


def from_matrix(R: Array) -> Array:
    """The unit quaternion of a rotation matrix, w ≥ 0: (..., 3, 3) -> (..., 4).

    The symmetric matrix 4 q qᵀ is linear in R. Its row with the largest diagonal entry (at least 1), divided by its length,
    is ±q without cancellation, at every angle and also where R is orthogonal only to rounding. At θ = π, where both signs
    have w = 0, the largest of x, y, z is positive.
    """
    R = argument("R", R, 3, 3)
    xp = namespace(R)
    xx, yy, zz = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    xy, yz, zx = R[..., 1, 0] + R[..., 0, 1], R[..., 2, 1] + R[..., 1, 2], R[..., 0, 2] + R[..., 2, 0]
    wx, wy, wz = R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]
    largest = 1.0 + ((xx + yy) + zz)
    row = [wx, wy, wz, largest]
    for other, diagonal in (
        ([1.0 + (xx - yy - zz), xy, zx, wx], 1.0 + (xx - yy - zz)),
        ([xy, 1.0 + (yy - zz - xx), yz, wy], 1.0 + (yy - zz - xx)),
        ([zx, yz, 1.0 + (zz - xx - yy), wz], 1.0 + (zz - xx - yy)),
    ):
        larger = xp.less(largest, diagonal)
        row = [xp.where(larger, x, y) for x, y in zip(other, row, strict=True)]
        largest = xp.where(larger, diagonal, largest)
    back = xp.less(row[3], 0.0)
    return normalize(stack([xp.where(back, -x, x) for x in row]))


def rate(q: Array, w: Array) -> Array:
    """q̇ = ½ q ⊗ (ω, 0) for the angular velocity ω in the body frame: (..., 4), (..., 3) -> (..., 4)."""
    q, w = arguments(("q", q, (4,)), ("w", w, (3,)))
    u, half = q[..., :3], 0.5 * w
    return concat([q[..., 3:] * half + cross(u, half), -column(dot(u, half))])
