"""The subproblems of Paden and Kahan: angles about given axes that bring points to given places.

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

from typing import NamedTuple

import numpy as np

from ..arrays import Array, cross, dot, namespace


class Angle(NamedTuple):
    """(sin q, cos q), and q itself where it is known more cheaply than by the arctangent of these."""

    sin: Array
    cos: Array
    number: Array | None = None


TINY = 1e-60
"""A vector whose length to the fourth power is below this has no direction."""


def angle(q: Angle) -> Array:
    """q in [-π, π] as a number; sin and cos may also be multiples of it."""
    return namespace(q.sin, q.cos).atan2(q.sin, q.cos) if q.number is None else q.number


def wrapped(x: Array) -> Array:
    """An angle within ±3π as the same angle within ±π."""
    xp = namespace(x)
    x = xp.where(xp.less(np.pi, x), x - 2 * np.pi, x)
    return xp.where(xp.less(x, -np.pi), x + 2 * np.pi, x)


def turned(w: Array, q: Angle, p: Array) -> Array:
    """R(q) p = p + sin q w×p + (1 - cos q) w×(w×p)."""
    across = cross(w, p)
    return p + q.sin[..., None] * across + (1.0 - q.cos)[..., None] * cross(w, across)


def back(q: Angle) -> Angle:
    """The angle -q."""
    return Angle(-q.sin, q.cos, None if q.number is None else -q.number)


def subproblem1(w: Array, p: Array, k: Array) -> Angle:
    """q with R(q) p = k: the angle between the projections of p and k orthogonal to the axis."""
    return _unit(azimuth(w, p, k))


def azimuth(w: Array, p: Array, k: Array) -> Angle:
    """`subproblem1` as a pair of any length, which is enough for `angle`."""
    # Both turned by a right angle, and without what is along the axis, whose rounding would drown the rest.
    u, v = cross(w, p), cross(w, k)
    return Angle(dot(w, cross(u, v)), dot(u, v))


def subproblem2(w1: Array, w2: Array, p: Array, k: Array) -> tuple[tuple[Angle, Angle], tuple[Angle, Angle]]:
    """Both pairs of angles (q₁, q₂) with R₁(q₁) R₂(q₂) p = k: R₂ p has the height of k on the first axis, which turns it there."""
    first, second = subproblem4(w2, w1, p, dot(w1, k))
    return (subproblem1(w1, turned(w2, first, p), k), first), (subproblem1(w1, turned(w2, second, p), k), second)


def subproblem3(w: Array, p: Array, k: Array, square: Array) -> tuple[Angle, Angle]:
    """Both q with |R(q) p - k|² = square: k · R(q) p = ½ (|p|² + |k|² - square)."""
    return subproblem4(w, k, p, 0.5 * (dot(p, p) + dot(k, k) - square))


def subproblem4(w: Array, h: Array, p: Array, d: Array) -> tuple[Angle, Angle]:
    """Both q with h · R(q) p = d: a cos q + b sin q = r, with a and b from the projections of h and p orthogonal to the axis."""
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
    return both(a, b, r, s)


def both(a: Array, b: Array, r: Array, s: Array) -> tuple[Angle, Angle]:
    """The angles φ ± β with (cos φ, sin φ) = (a, b) and (cos β, sin β) = (r, s): one arctangent for two where a and b are constants."""
    xp = namespace(a, b, r, s)
    phi, beta = xp.atan2(b, a), xp.atan2(s, r)
    return Angle(b * r + a * s, a * r - b * s, wrapped(phi + beta)), Angle(b * r - a * s, a * r + b * s, wrapped(phi - beta))


def _unit(q: Angle) -> Angle:
    """The pair scaled to length 1; (0, 1) where both are zero."""
    xp = namespace(q.sin, q.cos)
    square = q.sin * q.sin + q.cos * q.cos
    some = xp.less(TINY, square)
    scale = 1.0 / xp.sqrt(xp.where(some, square, 1.0))
    return Angle(xp.where(some, q.sin * scale, 0.0), xp.where(some, q.cos * scale, 1.0))
