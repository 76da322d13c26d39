"""The program that times paths: passes over the cells, and cuts until every cell follows one arc.

Any feasible profile stays below the arcs of maximal acceleration that leave an upper bound forward and below those of maximal
deceleration that reach it backward (comparison of solutions). So the optimum is the minimum of such arcs: a backward pass over the cells
gives the largest x from which the end can be reached, a forward pass the largest one that can be reached from the start. Cells are then
cut where the arc changes: where another row becomes active, where x meets the limit of speed, where a bound is exceeded between the
ends, and where the polynomial is not exact enough (`settle_programs.py`). What is left when no cell needs a cut is the continuous
optimum, with all its switching points at ends of cells.

Bobrow, Dubowsky & Gibson (1985) have the phase plane and its arcs; Pham (2014) the points of zero inertia, where a row loses u.
"""

from __future__ import annotations

import numpy as np

from ..kernel.programs import Floats, Kernels, empty, load, maximum, minimum, repeat, splat, sqrt, total
from .cell_programs import (
    COARSE,
    CREPT,
    FRESH,
    GUESS,
    KIND,
    LARGEST,
    NEXT,
    RESIDUAL,
    ROW,
    S0,
    S1,
    STATE,
    X0,
    X1,
    U,
    X,
    Y,
    make_first,
    stride,
)
from .collocation import POINTS, WEIGHTS
from .cut_programs import cut_off, regular
from .halving_programs import SPAN, following, halve
from .pass_programs import TIMED, bent_passes, passes, shorten
from .polynomial_programs import coefficients
from .settle_programs import SLIDE, settle
from .standstill import stands

UNFINISHED, ROUGH, STILL = 6, 7, 8
"""The outcome of a path, beside the results of `passes`."""
ROUNDS = 45
SAME = 1e-9
"""Relative difference of x from the limit of speed that is none."""
RECORD = 32
"""Numbers of a cell in the result: s₀, s₁, kind, state, row, x, residual, both largest x, time, then increments and u at the points, and
the speeds of its clock at both ends (`clock_speeds`)."""

SLOWER = 0.5
"""Part of the speed at one end of a cell below which the speed at the other one is small beside it."""

_GAUSS = np.pad((np.polynomial.legendre.leggauss(10)[0] + 1) / 2, (0, 6), constant_values=0.5)
_GAUSS_WEIGHTS = np.pad(np.polynomial.legendre.leggauss(10)[1] / 2, (0, 6))
_POINTS = np.ascontiguousarray(POINTS)
_WEIGHTS = np.ascontiguousarray(WEIGHTS).ravel()


def time_paths(
    kernels: Kernels,
    paths: int,
    cells: int,
    spans: Floats,
    kinds: Floats,
    c: Floats,
    d: Floats,
    size: int,
    order: int,
    nv: int,
    coarse: Floats,
    ends: Floats,
    constants: Floats,
    R: int,
    V: int,
    curved: int,
    w: Floats,
    z: Floats,
    v: Floats,
    out: Floats,
    room: int,
    told: Floats,
    how: Floats,
    most: int,
) -> int:
    """The number of paths that were timed before the room in `out`, in cells, ended; -1 where there was no memory for rows.

    kernels              for each path the function of its rows, all bound to `coarse`: what a path needs stays in the processor's cache;
                         then those of halves (`halving_programs.py`)
    paths, cells         paths for which there is room, coarse cells of each
    spans (cells and halves, SPAN)
                         s at both ends of each coarse cell, and work
    kinds (paths, cells) how s runs over it
    c, d, size, order, nv
                         what rows are computed from: polynomials (order, nv), highest power first, and where on them, at ten points of
                         each cell; the size of c of a cell, 0: it has one at each point, and cells cannot be halved
    coarse (cells and halves, 10, 4 R + V)
                         work: the rows of a path at ten points; then, of cells that were cut, their polynomials
    ends (paths, 2)      x at start and end, LARGE where it is free, or becomes so as the path rests there
    constants (3, R)     damping and dry friction of rows, and low velocities of powers
    w, z, v              work: cells, slacks, speeds
    how (2,)             the number of paths; the last coefficient of the polynomials, beside the largest value of the row, beyond which
                         a cell is too long
    most                 cells of a path
    told (paths, 4)      what became of each path; the number of its cells, or where it failed; a value; its duration
    """
    used = 0
    asked = int(how[0])
    for k in range(asked):
        if room - used < most:
            return k
        if stands(k, cells, spans, kinds, c, d, size, order, nv, ends, told):
            told[4 * k] = float(STILL)
            continue
        if repeat(kernels, k, 10, cells) != 0:
            return -1
        for i in range(cells):
            spans[SPAN * i + 2] = kinds[k * cells + i]
            spans[SPAN * i + 3] = float(i + 1) if i + 1 < cells else -1.0
        long = halve(kernels, paths, k, cells, spans, coarse, c, d, size, 4 * R + V, R, how[1], v)
        if long < 0:
            return -1
        status = ROUGH
        if long == 0:
            status = time_path(k, spans, coarse, ends, constants, R, V, curved, w, z, v, told, most)
        else:
            for i in range(cells):
                kinds[k * cells + i] = spans[SPAN * i + 2]
        told[4 * k] = float(status)
        if status == TIMED:
            count = write_out(w, k, R, V, out, RECORD * used, told)
            told[4 * k + 1] = float(count)
            used += count
    return asked


def time_path(
    path: int,
    spans: Floats,
    coarse: Floats,
    ends: Floats,
    constants: Floats,
    R: int,
    V: int,
    curved: int,
    w: Floats,
    z: Floats,
    v: Floats,
    told: Floats,
    most: int,
) -> int:
    """The status of one path; its cells are records in w, each with the number of the next or -1, from number 0 on."""
    size = stride(R, V)
    told[4 * path + 1] = 0.0
    count = 0
    i = following(spans, 0)
    while i >= 0:
        c = count * size
        count += 1
        w[c + S0] = spans[SPAN * i]
        w[c + S1] = spans[SPAN * i + 1]
        w[c + KIND] = spans[SPAN * i + 2]
        w[c + COARSE] = float(i)
        i = following(spans, int(spans[SPAN * i + 3]))
        w[c + NEXT] = float(count) if i >= 0 else -1.0
        w[c + X0] = -1.0
        w[c + CREPT] = 0.0
        for p in range(10):
            w[c + GUESS + p] = -1.0
        make_first(w, c, coarse, spans, constants, R, V, curved)
    count = regular(w, count, coarse, spans, constants, R, V, curved, most)
    if curved == 1:
        count = shorten(w, v, ends, path, count, coarse, spans, constants, R, V, told, most)
    for turn in range(ROUNDS + 1):
        status = passes(w, v, ends, path, R, V, told, most)
        if curved == 1:
            status = bent_passes(w, v, ends, path, constants, R, V, told, most, status)
        if status != TIMED:
            return status
        before = count
        i = 0
        while i >= 0:
            c = i * size
            after = int(w[c + NEXT])
            if w[c + FRESH] > 0.5:
                cut = settle(w, c, constants, R, V, curved, w[c + X0], w[c + X1], SAME, z)
                w[c + FRESH] = 0.0
                if cut >= 0.0:
                    told[4 * path + 1] = w[c + S0]
                    if turn == ROUNDS or count >= most:
                        return UNFINISHED
                    cut_off(w, i, count, cut, coarse, spans, constants, R, V, curved)
                    count += 1
            i = after
        if count == before:
            told[4 * path + 2] = float(turn)
            return TIMED
    return UNFINISHED


def write_out(w: Floats, path: int, R: int, V: int, out: Floats, to: int, told: Floats) -> int:
    """The number of cells of a path, after they are written to `out`, in order; the largest excess of a row and the duration are told."""
    size = stride(R, V)
    count = 0
    duration = 0.0
    worst = 0.0
    i = 0
    at = to
    while i >= 0:
        c = i * size
        out[at] = w[c + S0]
        out[at + 1] = w[c + S1]
        out[at + 2] = w[c + KIND]
        out[at + 3] = w[c + STATE]
        out[at + 4] = w[c + ROW]
        out[at + 5] = w[c + X]
        out[at + 6] = w[c + RESIDUAL]
        out[at + 7] = w[c + LARGEST]
        out[at + 8] = w[c + LARGEST + 1]
        for p in range(10):
            out[at + 10 + p] = w[c + Y + p]
            out[at + 20 + p] = w[c + U + p]
        out[at + 9] = time_of(w, c, out, at + 30)
        duration += out[at + 9]
        worst = max(worst, w[c + RESIDUAL])
        count += 1
        at += RECORD
        i = int(w[c + NEXT])
    told[4 * path + 2] = worst
    told[4 * path + 3] = duration
    smooth(out, to, count)
    return count


def smooth(out: Floats, to: int, count: int) -> None:
    """Cells that are too short for a slope, left over by cuts on the limit of speed, take the slopes of their neighbours."""
    for k in range(count - 1, -1, -1):
        at = to + k * RECORD
        if out[at + 3] == float(SLIDE) and out[at + 1] - out[at] < 1e-8:
            after = k + 1 < count and out[at + RECORD + 3] == float(SLIDE)
            u = out[at + 20]
            if after or (k == 0 and count > 1):
                u = out[at + RECORD + 20]
            elif k > 0:
                u = out[at - RECORD + 29]
            for p in range(10):
                out[at + 20 + p] = u


def time_of(w: Floats, c: int, speeds: Floats, to: int) -> float:
    """The time that a cell takes, as in `timing.Clock`; the speeds of its clock are written."""
    back = w[c + STATE] < 0.0
    kind = int(w[c + KIND])
    h = w[c + S1] - w[c + S0]
    ratio = empty(16)
    for p in range(10):
        far = 1.0 - _POINTS[p] if back else _POINTS[p]
        slope = 2.0 * h * w[c + U + p] * _WEIGHTS[10 * kind + p] * (-1.0 if back else 1.0)
        ratio[p] = w[c + Y + p] / far if far > 0.0 else slope
    m = empty(16)
    coefficients(ratio, m)
    clock_speeds(w, c, m, speeds, to)
    y0 = speeds[to]
    y1 = speeds[to + 1]
    both = max(y0 + y1, 1e-300)
    added = splat(0.0)
    for k in range(0, 16, 8):
        rho = load(_GAUSS, k)
        phi = minimum(maximum(rho * (2.0 * y0 + rho * (y1 - y0)) / both, 0.0), 1.0)
        sigma = phi
        if kind == 1:
            sigma = sqrt(phi)
        if kind == 2:
            sigma = 1.0 - sqrt(1.0 - phi)
        t = 2.0 * sigma - 1.0
        value = splat(m[9])
        for j in range(8, -1, -1):
            value = value * t + m[j]
        even = y0 + rho * (y1 - y0)
        x = w[c + X] + (1.0 - sigma if back else sigma) * value
        added = added + load(_GAUSS_WEIGHTS, k) * even / sqrt(maximum(x, 1e-4 * even * even + 1e-300))
    return float(2.0 * h / both * total(added))


def clock_speeds(w: Floats, c: int, m: Floats, speeds: Floats, to: int) -> None:
    """The speeds at both ends with which s would be reached at ρ under a constant s̈, from the coefficients m of (x - X) / distance.

    Where one of them is much smaller, x has a root close behind that end. If x of the even motion has the same root, their quotient is
    smooth beside it; speeds that only agree at the ends would leave a thin layer there.
    """
    y0 = sqrt(max(w[c + X] + w[c + Y], 0.0))
    y1 = sqrt(max(w[c + X] + w[c + Y + 9], 0.0))
    speeds[to] = y0
    speeds[to + 1] = y1
    if int(w[c + KIND]) != 0 or min(y0, y1) > SLOWER * max(y0, y1) or min(y0, y1) <= 0.0:
        return
    back = w[c + STATE] < 0.0
    end = 0.0 if y0 < y1 else 1.0
    sigma = end
    for _ in range(6):
        t = 2.0 * sigma - 1.0
        value = m[9]
        slope = 0.0
        for j in range(8, -1, -1):
            slope = slope * t + value
            value = value * t + m[j]
        far = 1.0 - sigma if back else sigma
        x = w[c + X] + far * value
        slope = 2.0 * slope * far + (-value if back else value)
        sigma -= x / slope if slope != 0.0 else 0.0
    behind = sigma if y0 < y1 else 1.0 - sigma  # negative
    if behind < 0.0 and behind > -1.0:
        part = sqrt(behind / (behind - 1.0))
        if y0 < y1:
            speeds[to] = part * y1
        else:
            speeds[to + 1] = part * y0
