"""The subproblems of Paden and Kahan: angles about given axes that bring points to where they shall be.

B. Paden, Kinematics and control of robot manipulators (1986), as in Murray, Li & Sastry (1994), chapter 3, section 3.2; the fourth from
Elias & Wen, Canonical subproblems for robot inverse kinematics (2022). w is a unit vector, R(q) the rotation by q about it, points are
seen from a point on the axis:

    1    R(q) p = k
    2    R₁(q₁) R₂(q₂) p = k, axes that meet
    3    |R(q) p - k| = δ
    4    h · R(q) p = d

An angle is given as the pair (sin q, cos q), which is what further work needs; `angle` makes a number of it. Where there is no exact
solution the pair is that of the nearest: both solutions are then the same. Where every angle is a solution, it is 0.
"""

from __future__ import annotations

from ..arrays import Array, cross, dot, namespace

Angle = tuple[Array, Array]
"""(sin q, cos q)."""

TINY = 1e-60
"""The fourth power of a length below which a direction is none."""


def angle(pair: Angle) -> Array:
    """q in [-π, π] of (sin q, cos q), or of a multiple of it."""
    return namespace(*pair).atan2(*pair)


def turned(w: Array, pair: Angle, p: Array) -> Array:
    """R(q) p = p + sin q w×p + (1 - cos q) w×(w×p)."""
    sin, cos = pair
    across = cross(w, p)
    return p + sin[..., None] * across + (1.0 - cos)[..., None] * cross(w, across)


def back(pair: Angle) -> Angle:
    """The angle -q."""
    return -pair[0], pair[1]


def subproblem1(w: Array, p: Array, k: Array) -> Angle:
    """q with R(q) p = k: the angle between what of p and of k is across the axis."""
    return _unit(*azimuth(w, p, k))


def azimuth(w: Array, p: Array, k: Array) -> Angle:
    """`subproblem1` as a pair of any length, which is enough for `angle`."""
    # Both turned by a right angle, and without what is along the axis, whose rounding would drown the rest.
    u, v = cross(w, p), cross(w, k)
    return dot(w, cross(u, v)), dot(u, v)


def subproblem2(w1: Array, w2: Array, p: Array, k: Array) -> tuple[tuple[Angle, Angle], tuple[Angle, Angle]]:
    """Both pairs of angles (q₁, q₂) with R₁(q₁) R₂(q₂) p = k: R₂ p has the height of k on the first axis, which turns it there."""
    first, second = subproblem4(w2, w1, p, dot(w1, k))
    return (subproblem1(w1, turned(w2, first, p), k), first), (subproblem1(w1, turned(w2, second, p), k), second)


def subproblem3(w: Array, p: Array, k: Array, square: Array) -> tuple[Angle, Angle]:
    """Both q with |R(q) p - k|² = square: k · R(q) p = ½ (|p|² + |k|² - square)."""
    return subproblem4(w, k, p, 0.5 * (dot(p, p) + dot(k, k) - square))


def subproblem4(w: Array, h: Array, p: Array, d: Array) -> tuple[Angle, Angle]:
    """Both q with h · R(q) p = d: a cos q + b sin q = r, with a and b from what of h and of p is across the axis."""
    axial = dot(w, h) * dot(w, p)
    a, b, r = dot(cross(w, h), cross(w, p)), dot(h, cross(w, p)), d - axial
    xp = namespace(a, b, r)
    square = a * a + b * b
    some = xp.less(TINY, square)
    n = xp.sqrt(xp.where(some, square, 1.0))
    r = xp.where(some, xp.where(xp.less(n, r), n, xp.where(xp.less(r, -n), -n, r)), n)
    a, b = xp.where(some, a, 1.0) / n, xp.where(some, b, 0.0) / n
    r = r / n
    s = xp.sqrt((1.0 - r) * (1.0 + r))
    return (b * r + a * s, a * r - b * s), (b * r - a * s, a * r + b * s)


def _unit(sin: Array, cos: Array) -> Angle:
    """The pair of length 1 in that direction; (0, 1) where there is none."""
    xp = namespace(sin, cos)
    square = sin * sin + cos * cos
    some = xp.less(TINY, square)
    scale = 1.0 / xp.sqrt(xp.where(some, square, 1.0))
    return xp.where(some, sin * scale, 0.0), xp.where(some, cos * scale, 1.0)
