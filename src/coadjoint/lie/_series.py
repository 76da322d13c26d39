"""The even functions of the angle that the exponentials of SO(3) and SE(3) and their derivatives need.

All take s = θ² = |ω|² and are analytic in s, for all s or for s < (2π)²; only their closed forms cancel near s = 0. Below
s = 1 a series in s is used, above it the closed form. So values and derivatives, automatic ones too, keep their digits at
any angle, and θ = √s is never differentiated at zero.

    a = sin θ / θ,  b = (1 - cos θ) / θ²,  c = (θ - sin θ) / θ³,  d = (1 - θ/2 cot θ/2) / θ²
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial

from ..arrays import Array, namespace

_SWITCH = 1.0
_TERMS = range(10)
_COS_HALF = [(-0.25) ** k / factorial(2 * k) for k in _TERMS]
_SINC_HALF = [(-0.25) ** k / factorial(2 * k + 1) for k in _TERMS]
_B = [(-1) ** k / factorial(2 * k + 2) for k in _TERMS]
_C = [(-1) ** k / factorial(2 * k + 3) for k in _TERMS]
# |B_2k| / (2k)!, k = 1, 2, …, with the Bernoulli numbers B_2k; the ratio of successive terms tends to 1/(2π)².
_D = [
    1 / 12,
    1 / 720,
    1 / 30240,
    1 / 1209600,
    1 / 47900160,
    691 / 1307674368000,
    1 / 74724249600,
    3617 / 10670622842880000,
    43867 / 5109094217170944000,
    174611 / 802857662698291200000,
    77683 / 14101100039391805440000,
    236364091 / 1693824136731743669452800000,
]
_ATAN = [(-1) ** k / (2 * k + 1) for k in _TERMS]


def column(x: Array) -> Array:
    """A scalar (...) as (..., 1), to multiply vectors; a plain number stays one."""
    return x[..., None] if hasattr(x, "shape") else x


def polynomial(coefficients: Sequence[float], s: Array) -> Array:
    """Σ_k coefficients[k] s^k."""
    value = coefficients[-1] * s + coefficients[-2]
    for c in coefficients[-3::-1]:
        value = value * s + c
    return value


def _derivative(coefficients: Sequence[float]) -> list[float]:
    return [k * c for k, c in enumerate(coefficients)][1:]


def _choose(s: Array, series: Sequence[float], closed: Callable[[Array], Array]) -> Array:
    """The series for s < 1 and the closed form elsewhere, each evaluated only where it is finite with its derivatives."""
    xp = namespace(s)
    small = xp.less(s, _SWITCH)
    return xp.where(small, polynomial(series, xp.where(small, s, 0.0)), closed(xp.where(small, 1.0, s)))


def _half(s: Array) -> tuple[Array, Array]:
    """cos θ/2 and sinc θ/2 = sin θ/2 / (θ/2) for s ≥ 1. The closed forms below use these: half angles do not cancel."""
    xp = namespace(s)
    half = 0.5 * xp.sqrt(s)
    return xp.cos(half), xp.sin(half) / half


def cos_half(s: Array) -> Array:
    """cos θ/2."""
    return _choose(s, _COS_HALF, lambda s: _half(s)[0])


def sinc_half(s: Array) -> Array:
    """sinc θ/2."""
    return _choose(s, _SINC_HALF, lambda s: _half(s)[1])


def a_and_b(s: Array) -> tuple[Array, Array]:
    """a = cos θ/2 sinc θ/2 and b = ½ sinc² θ/2."""
    cos, sinc = cos_half(s), sinc_half(s)
    return cos * sinc, 0.5 * sinc * sinc


def _c(s: Array) -> Array:
    cos, sinc = _half(s)
    return (1.0 - cos * sinc) / s


def c_of(s: Array) -> Array:
    """c = (1 - a) / s."""
    return _choose(s, _C, _c)


def d_of(s: Array) -> Array:
    """d = (1 - θ/2 cot θ/2) / s; it has a pole at θ = 2π."""

    def closed(s: Array) -> Array:
        cos, sinc = _half(s)
        return (1.0 - cos / sinc) / s

    return _choose(s, _D, closed)


def db_ds(s: Array) -> Array:
    """db/ds = (a - 2b) / 2s."""

    def closed(s: Array) -> Array:
        cos, sinc = _half(s)
        return 0.5 * sinc * (cos - sinc) / s

    return _choose(s, _derivative(_B), closed)


def dc_ds(s: Array) -> Array:
    """dc/ds = (b - 3c) / 2s."""

    def closed(s: Array) -> Array:
        _, sinc = _half(s)
        return (0.25 * sinc * sinc - 1.5 * _c(s)) / s

    return _choose(s, _derivative(_C), closed)


def dd_ds(s: Array) -> Array:
    """dd/ds = (1/sinc² + θ/2 cot θ/2 - 2) / 2s²."""

    def closed(s: Array) -> Array:
        cos, sinc = _half(s)
        return (1.0 / (sinc * sinc) + cos / sinc - 2.0) / (2.0 * s * s)

    return _choose(s, _derivative(_D), closed)


def angle_over_sine(n2: Array, w: Array) -> Array:
    """2 atan2(n, w) / n for n = √n2 ≥ 0 and w ≥ 0 not both 0: what turns (n·axis, w) into a rotation vector."""
    xp = namespace(n2, w)
    small = xp.less(n2, 0.01 * w * w)
    w1 = xp.where(small, w, 1.0)
    t2 = xp.where(small, n2, 0.0) / (w1 * w1)
    n = xp.sqrt(xp.where(small, 1.0, n2))
    return xp.where(small, 2.0 * polynomial(_ATAN, t2) / w1, 2.0 * xp.atan2(n, w) / n)
