"""The screws of twists (Chasles) and of wrenches (Poinsot).

A twist is a rotation about a line and a translation along it; a wrench is a force along a line and a couple about it. Both
are a line, a pitch h and a magnitude M. See Žefran & Bullo (2004), section 1, who put the linear part first.

| | twist (ω, v) | wrench (m, f) | point | direction | pitch | magnitude |
|---|---|---|---|---|---|---|
| general | M (d, r × d + h d) | M (r × d + h d, d) | r, the axis' point nearest the origin | d | h | \\|ω\\|, \\|f\\| |
| pure rotation, pure force | h = 0 | h = 0 | r | d | 0 | \\|ω\\|, \\|f\\| |
| pure translation, pure couple | (0, M d) | (M d, 0) | 0 | d | ∞ | \\|v\\|, \\|m\\| |
| zero | 0 | 0 | 0 | 0 | 0 | 0 |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arguments import argument, arguments
from ..arrays import Array, concat, cross, dot, namespace
from ._series import column

# A resultant this much smaller than the moment would put the axis beyond the range of float64: it counts as none.
_NEGLIGIBLE = 1e-300


class Screw(NamedTuple):
    """A line, a pitch and a magnitude; leading axes are batch axes."""

    point: Array
    """The point of the axis that is nearest to the origin, (..., 3); any point of the axis serves to build a screw."""
    direction: Array
    """The axis' unit vector, (..., 3)."""
    pitch: Array
    """Translation per radian, or couple per force, (...); ∞ for a pure translation or couple."""
    magnitude: Array
    """The angular speed |ω| or force |f|, (...); the speed |v| or couple |m| where the pitch is infinite."""

    def twist(self) -> Array:
        """The twist (ω, v) of this screw, (..., 6); inverse to `from_twist`."""
        resultant, moment = self._resultant_and_moment()
        return concat([resultant, moment])

    def wrench(self) -> Array:
        """The wrench (m, f) of this screw, (..., 6); inverse to `from_wrench`."""
        resultant, moment = self._resultant_and_moment()
        return concat([moment, resultant])

    def _resultant_and_moment(self) -> tuple[Array, Array]:
        r, d, h, M = arguments(
            ("point", self.point, (3,)),
            ("direction", self.direction, (3,)),
            ("pitch", self.pitch, ()),
            ("magnitude", self.magnitude, ()),
        )
        xp = namespace(r, d, h, M)
        finite = xp.less(xp.abs(h), np.inf)
        lever = cross(r, d) + column(xp.where(finite, h, 0.0)) * d
        finite, M = column(finite), column(M)
        return xp.where(finite, M * d, 0.0), M * xp.where(finite, lever, d)


def from_twist(V: Array) -> Screw:
    """The screw of a twist (ω, v), by Chasles' theorem: (..., 6) -> Screw."""
    V = argument("V", V, 6)
    return _screw(V[..., :3], V[..., 3:])


def from_wrench(F: Array) -> Screw:
    """The screw of a wrench (m, f), by Poinsot's theorem: (..., 6) -> Screw."""
    F = argument("F", F, 6)
    return _screw(F[..., 3:], F[..., :3])


def _screw(resultant: Array, moment: Array) -> Screw:
    """d = ω/|ω|, h = d·v/|ω|, r = d×v/|ω|; every case by selection, none by branching, and no square under- or overflows."""
    xp = namespace(resultant)
    turning = xp.less(_NEGLIGIBLE * _largest(moment), _largest(resultant))
    magnitude, direction = _polar(xp.where(column(turning), resultant, moment))
    arm = moment / column(xp.where(turning, magnitude, 1.0))
    without_line = xp.where(xp.less(0.0, magnitude), np.inf + 0.0 * magnitude, 0.0)
    pitch = xp.where(turning, dot(direction, arm), without_line)
    point = xp.where(column(turning), cross(direction, arm), 0.0)
    return Screw(point, direction, pitch, magnitude)


def _largest(x: Array) -> Array:
    """The largest |component|."""
    xp = namespace(x)
    size = xp.abs(x)
    return xp.maximum(xp.maximum(size[..., 0], size[..., 1]), size[..., 2])


def _polar(x: Array) -> tuple[Array, Array]:
    """Length and unit vector of x; both 0 where x is 0."""
    xp = namespace(x)
    largest = _largest(x)
    # Powers of two that bring every length into the range where its square neither under- nor overflows.
    bits, limit = (60, 1e18) if str(x.dtype).endswith("float32") else (600, 1e140)
    small, large = xp.less(largest, 1.0 / limit), xp.less(limit, largest)
    factor = xp.where(small, 2.0**bits, xp.where(large, 2.0**-bits, 0.0 * largest + 1.0))
    scaled = x * column(factor)
    nonzero = xp.less(0.0, largest)
    length = xp.sqrt(xp.where(nonzero, dot(scaled, scaled), 1.0))
    return xp.where(nonzero, length / factor, 0.0), scaled / column(length)
