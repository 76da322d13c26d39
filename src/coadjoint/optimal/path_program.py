"""The program that times paths: passes over the cells, and cuts until every cell follows one arc.

Any feasible profile stays below the arcs of maximal acceleration that leave an upper bound forward and below those of maximal
deceleration that reach it backward (comparison of solutions). So the optimum is the minimum of such arcs: a backward pass over the cells
gives the largest x from which the end can be reached, a forward pass the largest one that can be reached from the start. Cells are then
cut where the arc changes: where another row becomes active, where x meets the limit of speed, where a bound is exceeded between the
ends, and where the polynomial is not exact enough (`arc_programs.py`). What is left when no cell needs a cut is the continuous
optimum, with all its switching points at ends of cells.

Bobrow, Dubowsky & Gibson (1985) have the phase plane and its arcs; Pham (2014) the points of zero inertia, where a row loses u.
"""

from __future__ import annotations

import numpy as np

from ..kernel.programs import Floats, empty, least, load, maximum, minimum, some, splat, sqrt, store
from .arc_programs import SLIDE, best_row, first_root, follow, gather, settle
from .cell_programs import (
    CAP,
    COARSE,
    FRESH,
    GUESS,
    KIND,
    LARGEST,
    LEAST,
    MAPS,
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
    as_polynomials,
    make_cell,
    make_linear,
    place,
    rows_at,
    stride,
)
from .collocation import LARGE, MONOMIALS, POINTS, WEIGHTS

ROUNDS = 45
SAME = 1e-9
"""Relative difference of x from the limit of speed that is none."""
ZERO = 1e-9
"""A coefficient is zero below this part of its largest value in the cell."""
RECORD = 32
"""Numbers of a cell in the result: s₀, s₁, kind, state, row, x, residual, both largest x, time, then increments and u at the points."""
TIMED, NEVER, BRAKE, BELOW, START, END, UNFINISHED, ROUGH = range(8)
"""What became of a path."""

_GAUSS = (np.polynomial.legendre.leggauss(10)[0] + 1) / 2
_GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(10)[1] / 2
_POINTS = np.ascontiguousarray(POINTS)
_WEIGHTS = np.ascontiguousarray(WEIGHTS).ravel()
_MONOMIALS = np.ascontiguousarray(MONOMIALS).ravel()


def time_paths(
    paths: int,
    first: Floats,
    spans: Floats,
    kinds: Floats,
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
    smooth: float,
    most: int,
) -> int:
    """How many paths were timed before the room in `out`, in cells, ended.

    first (paths + 1)    number of the first coarse cell of every path
    spans (cells, 2)     s at both ends of each coarse cell
    kinds (cells,)       how s runs over it
    coarse (cells, 10, 4 R + V)
                         its rows at ten points; afterwards their polynomials
    ends (paths, 2)      x at start and end, LARGE where it is free
    constants (2, R)     damping and dry friction of rows
    w, z, v              work: cells, slacks, speeds
    smooth               the last coefficient of the polynomials, beside the largest value of the row, beyond which a cell is too long
    most                 cells of a path
    told (paths, 4)      what became of each path; the number of its cells, or where it failed; a value; its duration
    """
    used = 0
    for k in range(paths):
        if room - used < most:
            return k
        begin = int(first[k])
        end = int(first[k + 1])
        status = time_path(begin, end, k, spans, kinds, coarse, ends, constants, R, V, curved, w, z, v, told, smooth, most)
        told[4 * k] = float(status)
        if status == TIMED:
            count = write_out(w, k, R, V, out, RECORD * used, told)
            told[4 * k + 1] = float(count)
            used += count
    return paths


def time_path(
    begin: int,
    end: int,
    path: int,
    spans: Floats,
    kinds: Floats,
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
    smooth: float,
    most: int,
) -> int:
    """What became of one path; its cells are records in w, each with the number of the next or -1, from number 0 on."""
    size = stride(R, V)
    told[4 * path + 1] = 0.0
    count = end - begin
    if as_polynomials(coarse, kinds, begin, end, 4 * R + V, R, smooth, v) > 0:
        return ROUGH
    for i in range(count):
        c = i * size
        w[c + S0] = spans[2 * (begin + i)]
        w[c + S1] = spans[2 * (begin + i) + 1]
        w[c + KIND] = kinds[begin + i]
        w[c + COARSE] = float(begin + i)
        w[c + NEXT] = float(i + 1) if i + 1 < count else -1.0
        w[c + X0] = -1.0
        for p in range(10):
            w[c + GUESS + p] = -1.0
        make_cell(w, c, coarse, spans, constants, R, V, curved)
    count = regular(w, count, coarse, spans, constants, R, V, curved, most)
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
                    divide(w, i, count, cut, coarse, spans, constants, R, V, curved)
                    count += 1
            i = after
        if count == before:
            told[4 * path + 2] = float(turn)
            return TIMED
    return UNFINISHED


def regular(w: Floats, count: int, coarse: Floats, spans: Floats, constants: Floats, R: int, V: int, curved: int, most: int) -> int:
    """The number of cells after they are cut where a row has zero inertia, so that no coefficient of u changes its sign inside one."""
    size = stride(R, V)
    values = empty(16)
    i = 0
    tries = 0
    while i >= 0:
        c = i * size
        row = changing(w, c, R, V, 0)
        shift = 0
        if row < 0 and curved == 1:
            row = changing(w, c, R, V, 3 * R)
            shift = 3 * R
        if row < 0 or tries >= 12 or count >= most - 8 or w[c + S1] - w[c + S0] <= 1e-9:
            i = int(w[c + NEXT])
            tries = 0
        else:
            gather(w, c + rows_at(R) + shift + row, 4 * R + V, values)
            sigma = first_root(values)
            if sigma <= 1e-12 or sigma >= 1.0 - 1e-12:
                sigma = 0.5
            divide(w, i, count, sigma, coarse, spans, constants, R, V, curved)
            count += 1
            tries += 1
    return count


def changing(w: Floats, c: int, R: int, V: int, shift: int) -> int:
    """The first row whose coefficient, of u or at another place of the rows, changes its sign in the cell; -1 where none does."""
    W = 4 * R + V
    lows = empty(8)
    for k in range(0, R, 8):
        at = c + rows_at(R) + shift + k
        low = load(w, at)
        high = low
        for p in range(1, 10):
            low = minimum(low, load(w, at + p * W))
            high = maximum(high, load(w, at + p * W))
        most = ZERO * maximum(high, -low)
        if some((high > most) & (low < -most)):
            store(lows, 0, minimum(high - most, -low - most))
            for i in range(8):
                if lows[i] > 0.0:
                    return k + i
    return -1


def divide(
    w: Floats,
    i: int,
    count: int,
    sigma: float,
    coarse: Floats,
    spans: Floats,
    constants: Floats,
    R: int,
    V: int,
    curved: int,
) -> None:
    """Cell i cut at σ: it becomes the left part, the cell with number `count` the right one."""
    size = stride(R, V)
    c = i * size
    d = count * size
    kind = int(w[c + KIND])
    s = w[c + S0] + (w[c + S1] - w[c + S0]) * place(kind, sigma)
    w[d + S0] = s
    w[d + S1] = w[c + S1]
    w[c + S1] = s
    w[d + COARSE] = w[c + COARSE]
    w[d + NEXT] = w[c + NEXT]
    w[c + NEXT] = float(count)
    w[d + X0] = -1.0
    w[d + KIND] = 0.0 if kind == 1 else w[c + KIND]
    w[c + KIND] = 0.0 if kind == 2 else w[c + KIND]
    if curved == 1:
        guesses(w, c, d, kind)
    make_cell(w, c, coarse, spans, constants, R, V, curved)
    make_cell(w, d, coarse, spans, constants, R, V, curved)


def guesses(w: Floats, c: int, d: int, kind: int) -> None:
    """The guess of a cell that was cut, for both its parts."""
    known = w[c + GUESS] >= 0.0
    m = empty(16)
    for j in range(10):
        value = 0.0
        for p in range(10):
            value += _MONOMIALS[10 * j + p] * w[c + GUESS + p]
        m[j] = value
    left = w[c + S0]
    whole = w[d + S1] - left
    for part in range(2):
        at = c if part == 0 else d
        for p in range(10):
            here = w[at + S0] + (w[at + S1] - w[at + S0]) * place(int(w[at + KIND]), _POINTS[p])
            phi = min(max((here - left) / whole, 0.0), 1.0)
            t = 2.0 * inside(kind, phi) - 1.0
            value = m[9]
            for j in range(8, -1, -1):
                value = value * t + m[j]
            w[at + GUESS + p] = max(value, 0.0) if known else -1.0


def inside(kind: int, phi: float) -> float:
    """σ from (s - s₀) / h."""
    if kind == 0:
        return phi
    if kind == 1:
        return float(sqrt(phi))
    return 1.0 - float(sqrt(1.0 - phi))


def step(w: Floats, c: int, R: int, side: int, x: float, cap: float) -> float:
    """The largest x at the far end of a cell from x at this end."""
    found = splat(cap)
    for k in range(0, R, 8):
        at = c + MAPS + 2 * R * side + k
        found = minimum(found, x + (load(w, at) * x + load(w, at + R)))
    return least(found)


def passes(w: Floats, v: Floats, ends: Floats, path: int, R: int, V: int, told: Floats, most: int) -> int:
    """x at both ends of every cell of the fastest profile over the cells, or why there is none.

    v holds, over the nodes, numbers of cells, the largest possible x, that from which the end can be reached, the profile, the least x.
    """
    size = stride(R, V)
    room = most + 8
    n = 0
    i = 0
    v[room] = LARGE
    v[4 * room] = 0.0
    while i >= 0:
        c = i * size
        v[n] = float(c)
        v[room + n] = min(v[room + n], w[c + LARGEST])
        v[4 * room + n] = max(v[4 * room + n], w[c + LEAST])
        n += 1
        v[room + n] = w[c + LARGEST + 1]
        v[4 * room + n] = w[c + LEAST + 1]
        i = int(w[c + NEXT])
    x = min(v[room + n], ends[2 * path + 1])
    v[2 * room + n] = x
    for k in range(n - 1, -1, -1):
        x = step(w, int(v[k]), R, 1, x, v[room + k])
        v[2 * room + k] = x
    x = ends[2 * path]
    if x >= LARGE:
        x = v[2 * room]
    v[3 * room] = x
    for k in range(n):
        x = step(w, int(v[k]), R, 0, x, v[2 * room + k + 1])
        v[3 * room + k + 1] = x
    for k in range(n):
        c = int(v[k])
        if v[3 * room + k] != w[c + X0] or v[3 * room + k + 1] != w[c + X1]:
            w[c + X0] = v[3 * room + k]
            w[c + X1] = v[3 * room + k + 1]
            w[c + FRESH] = 1.0
    return failure(w, v, n, ends, path, told, most)


def failure(w: Floats, v: Floats, n: int, ends: Floats, path: int, told: Floats, most: int) -> int:
    """Why a path has no profile: a node where no speed is possible, where it cannot be braked or met, or an end that is too fast."""
    room = most + 8
    fastest = 0.0
    for k in range(n + 1):
        fastest = max(fastest, abs(v[3 * room + k]))
    status = TIMED
    at = 0
    for k in range(n + 1):
        cap = v[room + k]
        low = v[4 * room + k]
        slack = 1e-9 * max(min(abs(cap), fastest), 1e-9)
        if (cap < -slack or low > cap + slack) and status != NEVER:
            status = NEVER
            at = k
        if v[2 * room + k] < min(low, 1e-12) - slack and status != NEVER:
            status = BRAKE  # the last place: a pass backward spreads it to all places before
            at = k
        if v[3 * room + k] < low - slack and status == TIMED:
            status = BELOW
            at = k
    if status == TIMED and v[3 * room] > v[2 * room] * (1.0 + 1e-9) + 1e-15:
        status = START
    if status == TIMED and ends[2 * path + 1] < LARGE and v[3 * room + n] < ends[2 * path + 1] * (1.0 - 1e-9) - 1e-15:
        status = END
        at = n
    if status != TIMED:
        told[4 * path + 1] = w[int(v[at]) + S0] if at < n else 1.0
        told[4 * path + 2] = v[3 * room + n] if status == END else v[2 * room + at]
    return status


def bent_passes(
    w: Floats, v: Floats, ends: Floats, path: int, constants: Floats, R: int, V: int, told: Floats, most: int, known: int
) -> int:
    """`passes` with rows in √x made linear about the profile itself, again and again until it no longer changes.

    known: what `passes` found before.
    """
    size = stride(R, V)
    status = known
    for _ in range(60):
        if status != TIMED:
            return status
        fastest = 0.0
        off = 0.0
        i = 0
        while i >= 0:
            c = i * size
            if w[c + GUESS] < 0.0:
                off = 1.0
            off = max(off, guess(w, c, R, V))
            for p in range(10):
                fastest = max(fastest, w[c + GUESS + p])
            make_linear(w, c, constants, R, V, 1)
            i = int(w[c + NEXT])
        status = passes(w, v, ends, path, R, V, told, most)
        if off <= 1e-12 * fastest:
            return status
    return status


def guess(w: Floats, c: int, R: int, V: int) -> float:
    """The profile in a cell becomes its guess; by how much it changed."""
    front = empty(32)
    rear = empty(32)
    best = empty(2)
    x0 = w[c + X0]
    x1 = w[c + X1]
    best_row(w, c, R, 0, x0, best)
    follow(w, c, R, V, int(best[1]), 0, x0, front)
    best_row(w, c, R, 1, x1, best)
    follow(w, c, R, V, int(best[1]), 1, x1, rear)
    off = 0.0
    for p in range(10):
        x = max(min(min(x0 + front[p], x1 + rear[p]), w[c + CAP + p]), 0.0)
        off = max(off, abs(x - w[c + GUESS + p]))
        w[c + GUESS + p] = x
    return off


def write_out(w: Floats, path: int, R: int, V: int, out: Floats, to: int, told: Floats) -> int:
    """The number of cells of a path, after they are written to `out`, in order; its duration is told."""
    size = stride(R, V)
    count = 0
    duration = 0.0
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
        out[at + 9] = time_of(w, c)
        duration += out[at + 9]
        count += 1
        at += RECORD
        i = int(w[c + NEXT])
    told[4 * path + 3] = duration
    smooth(out, to, count)
    return count


def smooth(out: Floats, to: int, count: int) -> None:
    """What is left of cuts on the limit of speed, cells too short for a slope, goes on like the cells beside them."""
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


def time_of(w: Floats, c: int) -> float:
    """The time that a cell takes, as in `timing.Clock`."""
    back = w[c + STATE] < 0.0
    kind = int(w[c + KIND])
    h = w[c + S1] - w[c + S0]
    m = empty(16)
    ratio = empty(16)
    for p in range(10):
        far = 1.0 - _POINTS[p] if back else _POINTS[p]
        slope = 2.0 * h * w[c + U + p] * _WEIGHTS[10 * kind + p] * (-1.0 if back else 1.0)
        ratio[p] = w[c + Y + p] / far if far > 0.0 else slope
    for j in range(10):
        value = 0.0
        for p in range(10):
            value += _MONOMIALS[10 * j + p] * ratio[p]
        m[j] = value
    y0 = sqrt(max(w[c + X] + w[c + Y], 0.0))
    y1 = sqrt(max(w[c + X] + w[c + Y + 9], 0.0))
    both = max(y0 + y1, 1e-300)
    added = 0.0
    for k in range(10):
        rho = _GAUSS[k]
        phi = min(max(rho * (2.0 * y0 + rho * (y1 - y0)) / both, 0.0), 1.0)
        sigma = inside(kind, phi)
        t = 2.0 * sigma - 1.0
        value = m[9]
        for j in range(8, -1, -1):
            value = value * t + m[j]
        even = y0 + rho * (y1 - y0)
        x = w[c + X] + (1.0 - sigma if back else sigma) * value
        added += _GAUSS_WEIGHTS[k] * even / sqrt(max(x, 1e-4 * even * even + 1e-300))
    return float(2.0 * h / both * added)
