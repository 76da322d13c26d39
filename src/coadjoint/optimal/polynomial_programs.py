"""Programs on polynomials of degree nine over a cell, given by their values at its ten points: values between them, and roots."""

from __future__ import annotations

import numpy as np

from ..kernel.programs import Floats, empty, least, load, minimum, splat, store, where
from .collocation import COUNT, MONOMIALS, powers

CLOSE = 1e-12
"""The last step of Newton to a root, as a part of the cell."""
TIE = 1e-10
"""Relative difference of speeds that are the same."""
PLACES = np.concatenate([np.linspace(0.0, 1.0, 67), np.full(5, 0.5)])
"""The places at which polynomials are evaluated; the last five fill up a block."""
LAST = 66
BEFORE = 8
"""Room before values at places, for those that look at their neighbours: `dip`."""

_DENSE = powers(PLACES) @ MONOMIALS
_DENSE[0], _DENSE[LAST] = np.eye(COUNT)[0], np.eye(COUNT)[-1]
_DENSE = np.ascontiguousarray(_DENSE.T).ravel()
_COEFFICIENTS = np.pad(MONOMIALS.T, ((0, 0), (0, 6))).ravel()
_CLIFF = -1e30 * 4.0 ** np.arange(8)


def gather(z: Floats, at: int, step: int, out: Floats) -> None:
    """Ten numbers, one from every point."""
    for p in range(10):
        out[p] = z[at + p * step]


def dense(values: Floats, out: Floats, to: int) -> None:
    """The polynomial through ten values at all places."""
    for q in range(0, 72, 8):
        v = splat(0.0)
        for p in range(10):
            v = v + values[p] * load(_DENSE, 72 * p + q)
        store(out, to + q, v)


def coefficients(values: Floats, m: Floats) -> None:
    """m (16): the coefficients of powers of 2σ - 1 of the polynomial through ten values."""
    low = splat(0.0)
    high = splat(0.0)
    for p in range(10):
        low = low + values[p] * load(_COEFFICIENTS, 16 * p)
        high = high + values[p] * load(_COEFFICIENTS, 16 * p + 8)
    store(m, 0, low)
    store(m, 8, high)


def root_between(values: Floats, low: float, high: float) -> float:
    """The root of the polynomial through ten values between σ = low and high, where its signs differ: Newton, halving where it leaves."""
    a = low
    b = high
    m = empty(16)
    coefficients(values, m)
    start = m[9]
    t = 2.0 * a - 1.0
    for j in range(8, -1, -1):
        start = start * t + m[j]
    x = 0.5 * (a + b)
    for turn in range(48):
        t = 2.0 * x - 1.0
        value = m[9]
        slope = 0.0
        for j in range(8, -1, -1):
            slope = slope * t + value
            value = value * t + m[j]
        slope = 2.0 * slope
        if value == 0.0:
            return x
        if (value > 0.0) == (start > 0.0):
            a = x
        else:
            b = x
        step = value / slope if slope != 0.0 else 1e30
        if b - a < 1e-15:
            return x
        x = x - step
        inside = x > a and x < b
        if inside and abs(step) < CLOSE:
            return x
        if not inside or turn % 3 == 2:
            x = 0.5 * (a + b)
    return x


def first_root(values: Floats) -> float:
    """The first σ where the function changes its sign; 0.5 where it does not."""
    f = empty(72)
    dense(values, f, 0)
    for k in range(LAST):
        if f[k] * f[k + 1] <= 0.0 and f[k] != 0.0:
            return root_between(values, PLACES[k], PLACES[k + 1])
    return 0.5


def last_root(values: Floats) -> float:
    turned = empty(16)
    for p in range(10):
        turned[p] = values[9 - p]
    return 1.0 - first_root(turned)


def dip(values: Floats, f: Floats, most: float, found: Floats) -> None:
    """found: the least value of the polynomial between places and where it is; 0 and -1 where parabolas do not go below `most` < 0.

    f (BEFORE + 72 + BEFORE): its values at the places, from BEFORE on; what is beside them is written. A curve that grazes zero, or
    leaves it at the end of a cell, can be negative between two places only.
    """
    found[0] = 0.0
    found[1] = -1.0
    f[BEFORE - 1] = -1e30  # falls so steeply beyond both ends that no parabola opens upward there
    store(f, BEFORE + LAST + 1, load(_CLIFF, 0))
    lowest = splat(0.0)
    for q in range(0, 72, 8):
        left = load(f, q + BEFORE - 1)
        here = load(f, q + BEFORE)
        right = load(f, q + BEFORE + 1)
        bend = left - 2.0 * here + right
        slope = 0.5 * (right - left)
        inside = bend > abs(slope)
        lowest = minimum(lowest, where(inside, here - 0.5 * slope * slope / where(inside, bend, 1.0), 0.0))
    if least(lowest) >= most:
        return
    at = 0
    depth = 0.0
    for k in range(1, LAST):
        c = k + BEFORE
        bend_here = f[c - 1] - 2.0 * f[c] + f[c + 1]
        slope_here = 0.5 * (f[c + 1] - f[c - 1])
        if bend_here > abs(slope_here) and f[c] - 0.5 * slope_here * slope_here / bend_here < depth:
            depth = f[c] - 0.5 * slope_here * slope_here / bend_here
            at = k
    if at > 0:
        lowest_between(values, PLACES[at - 1], PLACES[at + 1], found)


def lowest_between(values: Floats, low: float, high: float, found: Floats) -> None:
    """found: the least value between σ = low and high, where the polynomial is convex, and its place: Newton, halving where it leaves."""
    m = empty(16)
    coefficients(values, m)
    a = low
    b = high
    x = 0.5 * (a + b)
    for _ in range(30):
        t = 2.0 * x - 1.0
        value = m[9]
        slope = 0.0
        bend = 0.0
        for j in range(8, -1, -1):
            bend = bend * t + slope
            slope = slope * t + value
            value = value * t + m[j]
        if value < found[0]:
            found[0] = value
            found[1] = x
        if slope > 0.0:
            b = x
        else:
            a = x
        step = slope / (4.0 * bend) if bend > 0.0 else 1e30
        if abs(step) < 1e-12 or b - a < 1e-12:
            return
        x = x - step
        if not (x > a and x < b):
            x = 0.5 * (a + b)


def violated(values: Floats) -> float:
    """The place at which to cut a cell in which this slack is negative: the end of the violation, if it is at one end only; else its
    deepest point."""
    f = empty(88)
    dense(values, f, BEFORE)
    below = 0
    low = 1
    for k in range(LAST + 1):
        if f[BEFORE + k] < 0.0:
            below += 1
        if k > 0 and k < LAST and f[BEFORE + k] < f[BEFORE + low]:
            low = k
    if below == LAST + 1:
        return 0.5
    if below == 0:
        found = empty(2)
        dip(values, f, 0.0, found)
        if found[1] >= 0.0:
            return float(found[1])
    first = f[BEFORE] < -1e-13
    last = f[BEFORE + LAST] < -1e-13
    if first and not last:
        return first_root(values)
    if last and not first:
        return last_root(values)
    bend = f[BEFORE + low - 1] - 2.0 * f[BEFORE + low] + f[BEFORE + low + 1]
    shift = 0.5 * (f[BEFORE + low - 1] - f[BEFORE + low + 1]) / bend if bend != 0.0 else 0.0
    return float(PLACES[low] + min(max(shift, -1.0), 1.0) * (PLACES[1] - PLACES[0]))


def change(curves: Floats, found: Floats) -> int:
    """The place before which the least of three curves becomes another one for the first time; found: both their numbers.

    Of curves that begin or end together the one counts that is least at the next place; where none changes both numbers are the same.
    """
    label = empty(72)
    for q in range(LAST + 1):
        k = 0
        if curves[72 + q] < curves[q]:
            k = 1
        if curves[144 + q] < curves[72 * k + q]:
            k = 2
        label[q] = float(k)
    for side in range(2):
        end = 0 if side == 0 else LAST
        inside = 1 if side == 0 else LAST - 1
        lowest = curves[72 * int(label[end]) + end]
        next_place = 1e300
        for k in range(3):
            if curves[72 * k + end] - lowest <= TIE * abs(lowest) and curves[72 * k + inside] < next_place:
                next_place = curves[72 * k + inside]
                label[end] = float(k)
    for q in range(LAST):
        if label[q] != label[q + 1]:
            found[0] = label[q]
            found[1] = label[q + 1]
            return q
    found[0] = label[0]
    found[1] = label[0]
    return 0
