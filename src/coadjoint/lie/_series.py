"""The even functions of the angle that the exponentials of SO(3) and SE(3) and their derivatives need.

All take s = |ω|² and are entire in s, or analytic for s < (2π)²: at s = 0 nothing happens but cancellation in the closed
forms. Below s = 1 a series in s is used, above it the closed form. So values and all derivatives, automatic ones too, keep
their digits at any angle, and |ω| = sqrt(s) is never differentiated at zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial

from ..arrays import Array, namespace

_SWITCH = 1.0
_TERMS = range(10)
_COS_HALF = [(-0.25) ** k / factorial(2 * k) for k in _TERMS]
_SINC_HALF = [(-0.25) ** k / factorial(2 * k + 1) for k in _TERMS]
_C = [(-1) ** k / factorial(2 * k + 3) for k in _TERMS]


def polynomial(coefficients: Sequence[float], s: Array) -> Array:
    """Σ_k coefficients[k] s^k."""
    value = coefficients[-1] * s + coefficients[-2]
    for c in coefficients[-3::-1]:
        value = value * s + c
    return value


def _choose(s: Array, series: Sequence[float], closed: Callable[[Array], Array]) -> Array:
    """The series for s < 1 and the closed form elsewhere, each evaluated only where it is finite with its derivatives."""
    xp = namespace(s)
    small = xp.less(s, _SWITCH)
    one = 0.0 * s + 1.0
    return xp.where(small, polynomial(series, xp.where(small, s, one)), closed(xp.where(small, one, s)))


def cos_half(s: Array) -> Array:
    """cos(θ/2), θ = √s."""
    xp = namespace(s)
    return _choose(s, _COS_HALF, lambda s: xp.cos(0.5 * xp.sqrt(s)))


def sinc_half(s: Array) -> Array:
    """sin(θ/2) / (θ/2)."""
    xp = namespace(s)

    def closed(s: Array) -> Array:
        half = 0.5 * xp.sqrt(s)
        return xp.sin(half) / half

    return _choose(s, _SINC_HALF, closed)


def exp_coefficients(s: Array) -> tuple[Array, Array]:
    """a = sin θ / θ and b = (1 - cos θ) / θ², from half angles so that neither cancels."""
    c, u = cos_half(s), sinc_half(s)
    return c * u, 0.5 * u * u


def dexp_coefficient(s: Array) -> Array:
    """c = (θ - sin θ) / θ³."""
    return _choose(s, _C, lambda s: (1.0 - exp_coefficients(s)[0]) / s)
