"""Programs that halve coarse cells of a path whose rows are no polynomials there, and compute the rows of the halves."""

from __future__ import annotations

import numpy as np

from ..kernel.programs import Floats, Kernels, largest, load, maximum, repeat, splat, store
from .collocation import MONOMIALS, POINTS

LEVELS, EXTRA = 3, 32
"""How often cells of a path are halved in the program, and how many halves there are each time; beyond, the grid becomes another one."""
SPAN = 4
"""Numbers of a coarse cell in `spans`: s at both ends, its kind, the number of the next or -1."""
ROUGH_KIND = 8.0
"""Added to the kind of a cell that is too long."""

FAINT = 1e-14
"""Part of the largest row of a kind that is rounding."""

_TAIL = np.ascontiguousarray(MONOMIALS[-1])
_POINTS = np.ascontiguousarray(POINTS)


def halve(
    kernels: Kernels,
    paths: int,
    path: int,
    cells: int,
    spans: Floats,
    coarse: Floats,
    c: Floats,
    d: Floats,
    size: int,
    W: int,
    R: int,
    smooth: float,
    sizes: Floats,
) -> int:
    """The number of cells that are still too long after halves of long ones took their places in `spans`; -1 where memory ends.

    kernels          the functions of rows of every path (paths), then those of the halves of each level
    spans            (cells + LEVELS EXTRA, SPAN)
    c, d             what rows are computed from: polynomials (size) and ten places; of the paths, then of the halves. No cell is
                     halved if size is 0
    sizes (2 W,)     work
    """
    long = too_long(coarse, cells, spans, W, R, smooth, sizes)
    if long == 0 or size == 0:
        return long
    begin = 0
    end = cells
    for level in range(LEVELS):
        made = 0
        for i in range(begin, end):
            if spans[SPAN * i + 2] >= ROUGH_KIND:
                if made + 2 > EXTRA:
                    return 1
                put_halves(i, cells + level * EXTRA + made, path, paths, cells, spans, c, d, size)
                made += 2
        begin = cells + level * EXTRA
        end = begin + made
        if repeat(kernels, paths + level, 10, made) != 0:
            return -1
        rough = 0
        for i in range(begin, end):
            if is_long(coarse, i, W, sizes):
                spans[SPAN * i + 2] += ROUGH_KIND
                rough += 1
        if rough == 0:
            return 0
    return 1


def following(spans: Floats, i: int) -> int:
    """The number of the cell in the place of cell i: itself, or the first of its halves; -1 for -1."""
    while i >= 0 and spans[SPAN * i + 3] < -1.0:
        i = int(-2.0 - spans[SPAN * i + 3])
    return i


def put_halves(i: int, at: int, path: int, paths: int, cells: int, spans: Floats, c: Floats, d: Floats, size: int) -> None:
    """The halves of cell i, as cells `at` and `at + 1`: their spans, polynomials and places. Cell i leaves the path."""
    first = paths * cells - cells  # of halves, in c and d, beside their number in spans
    mine = path * cells + i if i < cells else first + i
    kind = spans[SPAN * i + 2] - ROUGH_KIND
    left = spans[SPAN * i]
    right = spans[SPAN * i + 1]
    middle = 0.5 * (left + right)
    origin = d[10 * mine]
    for side in range(2):
        half = at + side
        spans[SPAN * half] = left if side == 0 else middle
        spans[SPAN * half + 1] = middle if side == 0 else right
        spans[SPAN * half + 2] = kind if kind == 0.0 or (kind == 1.0) == (side == 0) else 0.0
        spans[SPAN * half + 3] = float(at + 1) if side == 0 else spans[SPAN * i + 3]
        begin = origin if side == 0 else origin + (middle - left)
        for p in range(10):
            d[10 * (first + half) + p] = begin + (middle - left) * _POINTS[p]
        for k in range(size):
            c[size * (first + half) + k] = c[size * mine + k]
    spans[SPAN * i + 3] = -2.0 - float(at)


def too_long(coarse: Floats, cells: int, spans: Floats, W: int, R: int, smooth: float, sizes: Floats) -> int:
    """The number of coarse cells that are too long for rows as polynomials; ROUGH_KIND is added to their kind.

    The last coefficient is then larger than this part of the largest value along the path, and is not rounding; `sizes` has it.
    """
    for k in range(0, W, 8):
        size = splat(1.0 if k >= 2 * R and k < 3 * R else 0.0)
        tail = splat(0.0)
        for cell in range(cells):
            added = splat(0.0)
            for p in range(10):
                value = load(coarse, (10 * cell + p) * W + k)
                size = maximum(size, abs(value))
                added = added + _TAIL[p] * value
            tail = maximum(tail, abs(added))
        store(sizes, k, size)
        store(sizes, W + k, tail)
    longest = splat(0.0)
    for kind in range(5):
        begin = kind * R
        end = begin + R if kind < 4 else W
        most = splat(0.0)
        for k in range(begin, end, 8):
            most = maximum(most, load(sizes, k))
        least = FAINT * largest(most)
        for k in range(begin, end, 8):
            size = maximum(load(sizes, k) * smooth, least)
            store(sizes, k, size)
            longest = maximum(longest, load(sizes, W + k) / 256.0 - size)
    if largest(longest) <= 0.0:
        return 0
    rough = 0
    for cell in range(cells):
        if is_long(coarse, cell, W, sizes):
            spans[SPAN * cell + 2] += ROUGH_KIND
            rough += 1
    return rough


def is_long(coarse: Floats, cell: int, W: int, sizes: Floats) -> bool:
    """True if the last coefficient of a row in a cell is larger than in `sizes`."""
    over = splat(0.0)
    for k in range(0, W, 8):
        at = cell * 10 * W + k
        added = splat(0.0)
        for p in range(10):
            added = added + _TAIL[p] * load(coarse, at + p * W)
        over = maximum(over, abs(added) / 256.0 - load(sizes, k))
    return largest(over) > 0.0
