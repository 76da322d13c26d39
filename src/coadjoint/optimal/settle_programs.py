"""Programs that settle a cell: what x follows inside it, and where it must be cut because that is not one exact arc."""

from __future__ import annotations

import numpy as np

from ..kernel.programs import Floats, empty, largest, least, load, maximum, minimum, splat, store, where
from .arc_programs import along_limit, best_row, corner, fastest, follow, slacks
from .cell_programs import CAP, KIND, RESIDUAL, ROW, S0, S1, STATE, STEEPEST, ZERO, U, X, Y, linear_at, rows_at
from .collocation import MONOMIALS, POINTS
from .cut_programs import SHORTEST
from .polynomial_programs import BEFORE, PLACES, TIE, change, dense, dip, first_root, gather, root_between, violated

TOLERANCE = 1e-10
"""Largest violation of a row, relative to its limit."""
EXACT = 1e-11
"""Largest relative difference of x at the end of a cell between both rules, and of speeds that are the same."""
NEAR = 0.2
"""Slacks below this at the points of a cell are looked at between them."""
GRAZING = 1e-3
"""Slacks below this at places between them are looked at between the places too."""
ROUGHEST, RESTING, FALLS = 1e-6, 1e-9, 0.7
"""Cells shorter than this are not cut where only their arc is inexact; so short where x falls, within a cell, by this part: near rest."""
AT_REST = 5e-10
"""The same of the row that is followed, in a cell from or to rest under friction, however short."""
MIXED, FORWARD, BACKWARD, SLIDE = 0, 1, -1, 2
"""Several arcs; a row followed forward; a row followed backward; the limit of speed."""

_POINTS = np.ascontiguousarray(POINTS)
_TAIL = np.ascontiguousarray(MONOMIALS[-2])


def settle(
    w: Floats, c: int, constants: Floats, R: int, V: int, curved: int, x0: float, x1: float, near: float, z: Floats
) -> float:
    """The curve that x follows in a cell, from x at both ends; σ where to cut the cell, -1 where it need not be cut."""
    h = w[c + S1] - w[c + S0]
    ahead = empty(2)
    behind = empty(2)
    best_row(w, c, R, 0, x0, ahead)
    best_row(w, c, R, 1, x1, behind)
    at_0 = same(x0, w[c + CAP], near)
    at_1 = same(x1, w[c + CAP + 9], near)
    state = MIXED
    if same(x1, ahead[0], EXACT) or (at_1 and not at_0 and same(x1, ahead[0], near)):
        state = FORWARD
    elif same(x0, behind[0], EXACT) or (at_0 and not at_1 and same(x0, behind[0], near)):
        state = BACKWARD
    elif at_0 and at_1:
        state = SLIDE
    tiny = state == MIXED and h < 4.0 * SHORTEST
    if tiny:
        state = FORWARD
    w[c + STATE] = float(state)
    w[c + RESIDUAL] = 0.0
    cut = -1.0
    if state == MIXED:
        w[c + ROW] = -1.0
        cut = crossing(w, c, constants, R, V, curved, x0, x1, ahead, behind, z)
    else:
        cut = pure_cut(w, c, constants, R, V, curved, x0, x1, near, ahead, behind, z)
    if tiny:  # what is left of a cut, at a corner of the profile: straight from end to end, u between those of both arcs
        rear = empty(32)
        follow(w, c, R, V, int(behind[1]), 1, x1, rear)
        for p in range(10):
            w[c + Y + p] = _POINTS[p] * (x1 - x0)
            if abs(rear[16 + p]) < 1e300:
                w[c + U + p] = 0.5 * (w[c + U + p] + rear[16 + p])
        w[c + RESIDUAL] = 0.0
    if tiny or (h <= 2.0 * SHORTEST and w[c + RESIDUAL] > TOLERANCE and state != SLIDE):
        keep_within(w, c, R, V)
    if h <= 2.0 * SHORTEST or cut < 0.0:
        return -1.0
    edge = min(0.5, SHORTEST / h)
    if (cut < edge or cut > 1.0 - edge) and w[c + RESIDUAL] < 1e-9 and state != MIXED:
        return -1.0
    return float(min(max(cut, edge), 1.0 - edge))


def keep_within(w: Floats, c: int, R: int, V: int) -> None:
    """In a cell that is too short to be cut: the same u at all points, within all rows, where there is one. x does not notice.

    Values of u that were only put within rows one by one would lie on a bent line, and the polynomial through them beyond it.
    """
    W = 4 * R + V
    highest = splat(1e300)
    lowest = splat(-1e300)
    for p in range(10):
        x = w[c + X] + w[c + Y + p]
        for k in range(0, R, 8):
            a = load(w, c + rows_at(R) + p * W + k)
            at = c + linear_at(R, V) + p * 4 * R + k
            over = load(w, at + 2 * R) - load(w, at) * x
            under = -load(w, at + 3 * R) - load(w, at + R) * x
            kept = abs(a) > 1e-30
            size = where(kept, a, 1.0)
            highest = minimum(highest, where(kept, where(a > 0.0, over, under) / size, 1e300))
            lowest = maximum(lowest, where(kept, where(a > 0.0, under, over) / size, -1e300))
    high = least(highest)
    low = largest(lowest)
    if low <= high:
        u = min(max(w[c + U + 4], low), high)
        for p in range(10):
            w[c + U + p] = u
        w[c + RESIDUAL] = 0.0


def pure_cut(
    w: Floats,
    c: int,
    constants: Floats,
    R: int,
    V: int,
    curved: int,
    x0: float,
    x1: float,
    near: float,
    ahead: Floats,
    behind: Floats,
    z: Floats,
) -> float:
    """The arc of a cell that follows one row or the limit of speed, put into its record; σ of a cut, or -1."""
    state = int(w[c + STATE])
    h = w[c + S1] - w[c + S0]
    arc = empty(32)
    found = empty(2)
    row = -1
    x = x0
    off = 0.0
    own = 0
    if state == SLIDE:
        bend = corner(w, c, R, V, found)
        if bend >= 0.0:
            w[c + RESIDUAL] = 1.0
            return bend
        limit = int(found[0])
        along_limit(w, c, R, V, limit, 0, arc)
        gap = abs(w[c + CAP] + arc[9] - x1) / max(x1, 1e-30)
        off = 0.0 if gap < 2.0 * near else gap
        own = 2 * R + limit
    else:
        back = 1 if state == BACKWARD else 0
        x = x1 if back == 1 else x0
        row = int(behind[1]) if back == 1 else int(ahead[1])
        follow(w, c, R, V, row, back, x, arc)
        far = x + (arc[0] if back == 1 else arc[9])
        off = abs(far - (behind[0] if back == 1 else ahead[0])) / max(max(x0, x1), 1e-30)
        own = row if rising(w, c, R, V, row) == (back == 0) else row + R
    w[c + ROW] = float(row)
    w[c + X] = x
    size = 0.0
    for p in range(10):
        w[c + Y + p] = arc[p]
        w[c + U + p] = arc[16 + p]
        size += abs(arc[p]) + abs(arc[16 + p])
    if not (size < 1e300):
        w[c + RESIDUAL] = 1.0
        return 0.5
    slacks(w, c, constants, R, V, curved, x, arc, z)
    columns = 2 * R + V
    inexact = 0.0
    if row >= 0:
        for p in range(10):
            inexact = max(inexact, abs(z[p * columns + own]))
    deepest(z, columns, own, found)
    worst = -found[0]
    w[c + RESIDUAL] = max(worst, inexact)
    tail = 0.0
    for p in range(10):
        tail += _TAIL[p] * arc[16 + p]
    inexact = max(inexact, 0.3 / 128.0 * abs(tail) * w[c + STEEPEST])
    rough = (off > EXACT or inexact > (TOLERANCE if w[c + KIND] == 0.0 else AT_REST)) and h > finest(x0, x1)
    if worst <= TOLERANCE and not rough:
        return -1.0
    cut = 0.5
    values = empty(16)
    which = int(found[1])
    gather(z, which, columns, values)
    if not (rough and worst < (TOLERANCE if row < 0 else 1e-6)):
        if state == SLIDE and which >= 2 * R:  # a corner of the limit of speed: where two of them cross
            for p in range(10):
                at = c + rows_at(R) + p * (4 * R + V) + 2 * R
                values[p] = w[at + own] - w[at + which]
        cut = turning(w, c, R, V, which)
        if cut >= 0.0:
            return cut
        cut = violated(values)
    return take_over(w, c, constants, R, V, curved, row, state == BACKWARD, x, which, z, cut)


def finest(x0: float, x1: float) -> float:
    """The length of a cell below which it is not cut for an inexact arc."""
    return RESTING if min(x0, x1) < FALLS * max(x0, x1) else ROUGHEST


def crossing(
    w: Floats,
    c: int,
    constants: Floats,
    R: int,
    V: int,
    curved: int,
    x0: float,
    x1: float,
    ahead: Floats,
    behind: Floats,
    z: Floats,
) -> float:
    """σ where x first changes, in a mixed cell, from the arc ahead or the limit of speed to another of these or to the arc behind."""
    W = 4 * R + V
    rows = c + rows_at(R) + 4 * R
    front = empty(32)
    rear = empty(32)
    follow(w, c, R, V, int(ahead[1]), 0, x0, front)
    follow(w, c, R, V, int(behind[1]), 1, x1, rear)
    curves = empty(288)
    values = empty(16)
    for p in range(10):
        values[p] = x0 + front[p]
    dense(values, curves, 0)
    for p in range(10):
        values[p] = x1 + rear[p]
    dense(values, curves, 72)
    f = empty(72)
    which = empty(72)
    for q in range(0, 72, 8):
        store(curves, 144 + q, splat(0.0))
        store(which, q, splat(0.0))
    for k in range(V):
        gather(w, rows + k, W, values)
        if values[0] != 0.0 or values[9] != 0.0 or values[4] != 0.0:
            dense(values, f, 0)
            for q in range(0, 72, 8):
                now = load(curves, 144 + q)
                mine = load(f, q)
                store(which, q, where(mine > now, float(k), load(which, q)))
                store(curves, 144 + q, maximum(now, mine))
    for q in range(0, 72, 8):
        store(curves, 144 + q, 1.0 / maximum(load(curves, 144 + q), 1e-30))
    place = change(curves, f)
    one = int(f[0])
    other = int(f[1])
    first = int(which[place])
    second = int(which[place + 1])
    for p in range(10):
        a = x0 + front[p] if one == 0 else x1 + rear[p]
        b = x0 + front[p] if other == 0 else x1 + rear[p]
        gap = a - b
        if other == 2:
            gap = a * w[rows + p * W + second] - 1.0
        elif one == 2:
            gap = 1.0 - b * w[rows + p * W + first]
        values[p] = gap if abs(gap) < 1e300 else 0.0
    cut = root_between(values, PLACES[place], PLACES[place + 1])
    off = abs(x0 + front[9] - ahead[0]) / max(abs(x0 + front[9]), 1e-30)
    off = max(off, abs(x1 + rear[0] - behind[0]) / max(abs(x1 + rear[0]), 1e-30))
    if one == other or (off > EXACT and abs(cut - 0.5) > 0.4999 and w[c + S1] - w[c + S0] > 1e-7):
        cut = 0.5
    slacks(w, c, constants, R, V, curved, x0, front, z)
    worst = 0
    for k in range(2 * R + V):
        if z[k] < z[worst]:
            worst = k
    cut = take_over(w, c, constants, R, V, curved, int(ahead[1]), False, x0, worst, z, cut)
    if x0 >= w[c + CAP] * (1.0 - TIE):
        cut = take_over(w, c, constants, R, V, curved, int(ahead[1]), False, x0, 2 * R, z, cut)
    if x1 >= w[c + CAP + 9] * (1.0 - TIE) and (x0 < w[c + CAP] * (1.0 - TIE)):
        cut = take_over(w, c, constants, R, V, curved, int(behind[1]), True, x1, 2 * R, z, cut)
    return cut


def take_over(
    w: Floats,
    c: int,
    constants: Floats,
    R: int,
    V: int,
    curved: int,
    row: int,
    back: bool,
    x: float,
    worst: int,
    z: Floats,
    cut: float,
) -> float:
    """σ where the arc of a limit that is violated from the beginning on meets the row that was followed; else `cut`.

    Behind a point of zero inertia an arc that starts below its row is steep: what it violates there says little of where it should begin.
    """
    columns = 2 * R + V
    first = 9 if back else 0
    capped = x >= w[c + CAP + first] * (1.0 - TIE)
    leaves = capped and worst >= 2 * R  # the limit of speed is followed until the row is too weak for it
    if row < 0 or not (leaves or z[first * columns + worst] < -TOLERANCE):
        return cut
    if not capped and (worst >= 2 * R or worst == row or worst == row + R):
        return cut
    arc = empty(32)
    if capped:
        along_limit(w, c, R, V, fastest(w, c, R, V, first), first, arc)
    else:
        follow(w, c, R, V, worst if worst < R else worst - R, 1 if back else 0, x, arc)
    size = 0.0
    for p in range(10):
        size += abs(arc[p]) + abs(arc[16 + p])
    if not (size < 1e300):
        return cut
    slacks(w, c, constants, R, V, curved, x, arc, z)
    own = row if rising(w, c, R, V, row) != back else row + R
    values = empty(16)
    low = 1e300
    for p in range(10):
        values[p] = z[(9 - p if back else p) * columns + own]
        low = min(low, values[p])
    if not (values[0] > 0.0 and low < 0.0):
        return cut
    root = first_root(values)
    if leaves and (root < 1e-6 or root > 1.0 - 1e-6):
        return cut
    return 1.0 - root if back else root


def same(x: float, y: float, part: float) -> bool:
    """True if x is not less than y, up to this part of y."""
    return x >= y - part * max(abs(y), 1e-30)


def rising(w: Floats, c: int, R: int, V: int, row: int) -> bool:
    """True if the coefficient of u of a row is positive in the cell."""
    added = 0.0
    for p in range(10):
        added += w[c + rows_at(R) + p * (4 * R + V) + row]
    return added >= 0.0


def turning(w: Floats, c: int, R: int, V: int, which: int) -> float:
    """σ where the row of a slack has zero inertia, where its coefficient of u changes its sign; -1 where it does not."""
    if which >= 2 * R:
        return -1.0
    values = empty(16)
    gather(w, c + rows_at(R) + (which if which < R else which - R), 4 * R + V, values)
    low = 0.0
    high = 0.0
    for p in range(10):
        low = min(low, values[p])
        high = max(high, values[p])
    most = ZERO * max(high, -low)
    return first_root(values) if high > most and low < -most else -1.0


def deepest(z: Floats, columns: int, own: int, found: Floats) -> None:
    """found: the least slack in the cell, but for column `own`, and its column; slacks that come near zero are looked at between points."""
    worst = 1e300
    column = 0
    values = empty(16)
    f = empty(88)
    lows = empty(8)
    lowest = empty(2)
    for k in range(0, columns, 8):
        low = load(z, k)
        for p in range(1, 10):
            low = minimum(low, load(z, p * columns + k))
        store(lows, 0, low)
        for i in range(8):
            if k + i != own and lows[i] < NEAR:
                gather(z, k + i, columns, values)
                dense(values, f, BEFORE)
                inside = load(f, BEFORE)
                for q in range(8, 72, 8):
                    inside = minimum(inside, load(f, BEFORE + q))
                value = min(lows[i], least(inside))
                if value < GRAZING and value > -TOLERANCE:
                    dip(values, f, -TOLERANCE, lowest)
                    value = min(value, lowest[0])
                if value < worst:
                    worst = value
                    column = k + i
    found[0] = worst
    found[1] = float(column)
