"""Programs that pass over the cells of a path: backward from its end and forward from its start, and why there is no profile."""

from __future__ import annotations

from ..kernel.programs import Floats, empty, least, load, maximum, minimum, splat, sqrt, where
from .arc_programs import best_row, follow
from .cell_programs import (
    BENT,
    CAP,
    FRESH,
    GUESS,
    KIND,
    LARGEST,
    LEAST,
    MAPS,
    NEXT,
    S0,
    STEPPED,
    UNSETTLED,
    X0,
    X1,
    make_linear,
    rows_at,
    speed_range,
    stride,
)
from .collocation import LARGE
from .cut_programs import divide

TIMED, NEVER, BRAKE, BELOW, START, END = range(6)
"""The outcome of a path."""
SETTLED = 1e-13
"""Change of √x, beside its largest value, for which rows in √x are not made linear anew: what does not depend on it stays as it is."""


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


def step(w: Floats, c: int, R: int, side: int, x: float, cap: float) -> float:
    """The largest x at the far end of a cell from x at this end. It is kept: most cells are as they were in the last pass."""
    last = c + STEPPED + 3 * side
    if w[last] != x or w[last + 1] != cap:
        found = splat(cap)
        for k in range(0, R, 8):
            at = c + MAPS + 2 * R * side + k
            found = minimum(found, x + (load(w, at) * x + load(w, at + R)))
        w[last] = x
        w[last + 1] = cap
        w[last + 2] = least(found)
    return float(w[last + 2])


def failure(w: Floats, v: Floats, n: int, ends: Floats, path: int, told: Floats, most: int) -> int:
    """The reason why a path has no profile: a node where no speed is possible, where it cannot be braked or met, or an end that is too
    fast."""
    room = most + 8
    fastest = 0.0
    for k in range(n + 1):
        fastest = max(fastest, abs(v[3 * room + k]))
    status = TIMED
    at = 0
    for k in range(n + 1):
        cap = v[room + k]
        low = v[4 * room + k]
        slack = max(1e-9 * max(min(abs(cap), fastest), 1e-9), 1e-12 * fastest)
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
    w: Floats, v: Floats, ends: Floats, path: int, constants: Floats, R: int, V: int, told: Floats, most_cells: int, known: int
) -> int:
    """`passes` with rows in √x made linear about the profile itself, again and again until it no longer changes.

    On the way a profile may fail that does not in the end. Powers begin with a profile so slow that they do not matter: the tangent of
    their bound is below it, so that the next profile, made within tangents to this one, is feasible and faster.
    known: what `passes` found before, without guess.
    """
    size = stride(R, V)
    status = known
    for _ in range(60):
        fastest = 0.0
        i = 0
        while i >= 0:
            for p in range(10):
                fastest = max(fastest, w[i * size + GUESS + p])
            i = int(w[i * size + NEXT])
        most = SETTLED * sqrt(fastest)
        off = 0.0
        slower = 1.0
        i = 0
        while i >= 0:
            c = i * size
            first = w[c + GUESS] < 0.0
            off = max(off, guess(w, c, R, V, most))
            for p in range(10):
                fastest = max(fastest, w[c + GUESS + p])
                if first:
                    off = LARGE
                    slower = min(slower, slowest(w, c, constants, R, V, p) / max(w[c + GUESS + p], 1e-30))
            i = int(w[c + NEXT])
        i = 0
        while i >= 0:
            c = i * size
            if w[c + BENT] < 0.0 or slower < 1.0:
                for p in range(10):
                    w[c + GUESS + p] *= slower
                make_linear(w, c, constants, R, V, 1)
                speed_range(w, c, R, V, 0)
                speed_range(w, c, R, V, 1)
            i = int(w[c + NEXT])
        if off > most:
            status = passes(w, v, ends, path, R, V, told, most_cells)
        if off <= 1e-12 * sqrt(fastest):
            return status
    return status


def guess(w: Floats, c: int, R: int, V: int, most: float) -> float:
    """By how much the profile in a cell differs from its guess, beside √x: rows are in √x, and near rest x is small.

    Beyond `most` it becomes the guess. Else the cell is settled for this x at both ends, which are kept.
    """
    x0 = w[c + X0]
    x1 = w[c + X1]
    if x0 == w[c + BENT] and x1 == w[c + BENT + 1]:
        return 0.0
    front = empty(32)
    rear = empty(32)
    best = empty(2)
    found = empty(10)
    best_row(w, c, R, 0, x0, best)
    follow(w, c, R, V, int(best[1]), 0, x0, front)
    best_row(w, c, R, 1, x1, best)
    follow(w, c, R, V, int(best[1]), 1, x1, rear)
    off = 0.0
    for p in range(10):
        x = max(min(min(x0 + front[p], x1 + rear[p]), w[c + CAP + p]), 0.0)
        if not (abs(front[p]) + abs(rear[p]) < 1e300):
            x = max(min(x0, x1), 0.0)
        off = max(off, abs(x - w[c + GUESS + p]) / sqrt(max(x, 1e-30)))
        found[p] = x
    if off <= most:
        w[c + BENT] = x0
        w[c + BENT + 1] = x1
        return off
    w[c + BENT] = UNSETTLED
    for p in range(10):
        w[c + GUESS + p] = found[p]
    return off


def slowest(w: Floats, c: int, constants: Floats, R: int, V: int, p: int) -> float:
    """The x at a point below which no power matters."""
    found = splat(LARGE)
    for k in range(0, R, 8):
        slow = load(constants, 2 * R + k)
        d = load(w, c + rows_at(R) + p * (4 * R + V) + 3 * R + k)
        found = minimum(found, where(slow > 0.0, slow * slow / maximum(d * d, 1e-30), LARGE))
    return least(found)


def shorten(
    w: Floats,
    v: Floats,
    ends: Floats,
    path: int,
    count: int,
    coarse: Floats,
    spans: Floats,
    constants: Floats,
    R: int,
    V: int,
    told: Floats,
    most: int,
) -> int:
    """The number of cells after the first and the last, at rest, are cut so short that no power matters there."""
    size = stride(R, V)
    for _ in range(14):
        passes(w, v, ends, path, R, V, told, most)
        before = count
        i = 0
        while i >= 0:
            c = i * size
            after = int(w[c + NEXT])
            if w[c + KIND] != 0.0:
                x = max(w[c + X0], w[c + X1])
                cut = False
                for p in range(10):
                    cut = cut or x > 4.0 * slowest(w, c, constants, R, V, p)
                if cut:
                    divide(w, i, count, 0.5, coarse, spans, constants, R, V, 1)
                    count += 1
            i = after
        if count == before:
            return count
    return count
