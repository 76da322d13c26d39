"""Programs that find where a path stands still: dq/ds and d²q/ds² at the points of its coarse cells."""

from __future__ import annotations

import numpy as np

from ..kernel.programs import Floats, empty, largest, least, load, maximum, minimum, splat
from .collocation import LARGE, LINEAR, POINTS
from .halving_programs import SPAN

STILL = 1e-9
"""dq/ds, beside its largest value on the path, that is zero."""

_POINTS = np.ascontiguousarray(POINTS)


def stands(
    path: int,
    cells: int,
    spans: Floats,
    kinds: Floats,
    c: Floats,
    d: Floats,
    size: int,
    order: int,
    nv: int,
    ends: Floats,
    told: Floats,
) -> bool:
    """True if a path stands still somewhere; the place and the largest |dq/ds| are told. For the arguments see `path_program.time_paths`.

    At an end where dq/ds = 0 the robot rests whatever ds/dt is, which is then left free.
    """
    first = path * cells
    speeds = empty(4)
    range_of_speeds(first, cells, c, d, size, order, nv, speeds)
    still = STILL * speeds[0]
    if speeds[1] <= still:
        most = 0.0
        for i in range(10 * cells):
            most = max(most, derivative(10 * first + i, 2, c, d, size, order, nv))
        for i in range(10 * cells):
            rests = derivative(10 * first + i, 1, c, d, size, order, nv) <= still
            if rests and derivative(10 * first + i, 2, c, d, size, order, nv) <= max(still, STILL * most):
                cell = i // 10
                left = spans[SPAN * cell]
                told[4 * path + 1] = left + (spans[SPAN * cell + 1] - left) * _POINTS[i - 10 * cell]
                told[4 * path + 2] = speeds[0]
                return True
    if speeds[2] <= still:
        ends[2 * path] = LARGE
        kinds[first] = float(LINEAR)
    if speeds[3] <= still:
        ends[2 * path + 1] = LARGE
        kinds[first + cells - 1] = float(LINEAR)
    return False


def range_of_speeds(first: int, cells: int, c: Floats, d: Floats, size: int, order: int, nv: int, found: Floats) -> None:
    """found: the largest and the least |dq/ds|, that of the fastest joint, and those at both ends."""
    found[0] = 0.0
    found[1] = 1e300
    found[2] = derivative(10 * first, 1, c, d, size, order, nv)
    found[3] = derivative(10 * (first + cells) - 1, 1, c, d, size, order, nv)
    if size == 0:
        for i in range(10 * first, 10 * (first + cells)):
            speed = derivative(i, 1, c, d, size, order, nv)
            found[0] = max(found[0], speed)
            found[1] = min(found[1], speed)
        return
    most = splat(0.0)
    low = splat(1e300)
    for i in range(first, first + cells):
        one = load(d, 10 * i)
        other = load(d, 10 * i + 2)  # ten points are eight, and the last eight
        fast = splat(0.0)
        faster = splat(0.0)
        for j in range(nv):
            at = size * i + j
            rate = splat(0.0)
            rate_there = splat(0.0)
            value = splat(c[at])
            value_there = splat(c[at])
            for k in range(1, order):
                rate = rate * one + value
                rate_there = rate_there * other + value_there
                value = value * one + c[at + k * nv]
                value_there = value_there * other + c[at + k * nv]
            fast = maximum(fast, abs(rate))
            faster = maximum(faster, abs(rate_there))
        most = maximum(most, maximum(fast, faster))
        low = minimum(low, minimum(fast, faster))
    found[0] = largest(most)
    found[1] = least(low)


def derivative(i: int, which: int, c: Floats, d: Floats, size: int, order: int, nv: int) -> float:
    """The largest |dq/ds|, or |d²q/ds²|, of all joints at point i."""
    at = i * order * nv if size == 0 else (i // 10) * size
    far = d[i]
    most = 0.0
    for j in range(nv):
        value = c[at + j]
        rate = 0.0
        curve = 0.0
        for k in range(1, order):
            curve = curve * far + 2.0 * rate
            rate = rate * far + value
            value = value * far + c[at + k * nv + j]
        most = max(most, abs(rate if which == 1 else curve))
    return most
