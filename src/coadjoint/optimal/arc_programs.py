"""Programs on arcs: what x follows inside a cell, and where the cell must be cut because that is not one exact arc."""

from __future__ import annotations

import numpy as np

from ..kernel.programs import Floats, empty, largest, least, load, maximum, minimum, splat, sqrt, store, where
from .cell_programs import CAP, KIND, MAPS, RESIDUAL, ROW, S0, S1, STATE, U, X, Y, linear_at, rows_at
from .collocation import AT_START, COUNT, INTEGRAL, MONOMIALS, POINTS, WEIGHTS, powers

TOLERANCE = 1e-10
"""Largest violation of a row, relative to its limit."""
EXACT = 1e-11
"""Largest relative difference of x at the end of a cell between both rules, and of speeds that are the same."""
NEAR = 0.2
"""Slacks below this at the points of a cell are looked at between them."""
SHORTEST = 1e-11
"""No piece of a cell becomes shorter."""
TIE = 1e-10
"""Relative difference of speeds that are the same."""
MIXED, FORWARD, BACKWARD, SLIDE = 0, 1, -1, 2
"""Several arcs; a row followed forward; a row followed backward; the limit of speed."""
PLACES = np.concatenate([np.linspace(0.0, 1.0, 67), np.full(5, 0.5)])
"""Where polynomials are looked at; the last five fill up a block."""
LAST = 66

_DENSE = powers(PLACES) @ MONOMIALS
_DENSE[0], _DENSE[LAST] = np.eye(COUNT)[0], np.eye(COUNT)[-1]
_DENSE = np.ascontiguousarray(_DENSE.T).ravel()
_MONOMIALS = np.ascontiguousarray(MONOMIALS).ravel()
_POINTS = np.ascontiguousarray(POINTS)
_WEIGHTS = np.ascontiguousarray(WEIGHTS).ravel()
_INTEGRAL = np.pad(INTEGRAL, ((0, 0), (0, 7))).ravel()
_INCREMENTS = np.pad(INTEGRAL.T, ((0, 0), (0, 6))).ravel()
_AT_START = np.ascontiguousarray(AT_START)
_SLOPES = np.ascontiguousarray(2.0 * (powers(POINTS)[:, :-1] * np.arange(1, COUNT)) @ MONOMIALS[1:]).ravel()
_TAIL = np.ascontiguousarray(MONOMIALS[-2])


def follow(w: Floats, c: int, R: int, V: int, row: int, backward: int, x: float, out: Floats) -> None:
    """Increments of x (out, from 0 on) and u (from 16 on) at the points where x follows a row, forward from s₀ or backward from s₁."""
    W = 4 * R + V
    rows = c + rows_at(R)
    linear = c + linear_at(R, V)
    kind = int(w[c + KIND])
    half = 0.5 / (w[c + S1] - w[c + S0])
    added = 0.0
    for p in range(10):
        added += w[rows + p * W + row]
    sign = 1.0 if added >= 0.0 else -1.0
    up = (sign > 0.0) == (backward == 0)
    m = empty(144)
    for j in range(9):
        p = j + 1 if backward == 0 else 8 - j
        at = linear + p * 4 * R + row
        weight = _WEIGHTS[10 * kind + p]
        beta = (w[at] if up else -w[at + R]) * weight
        gamma = (w[at + 2 * R] if up else w[at + 3 * R]) * weight
        store(m, 16 * j, beta * load(_INTEGRAL, 16 * (j + 1)))
        store(m, 16 * j + 8, beta * load(_INTEGRAL, 16 * (j + 1) + 8))
        m[17 * j] += max(w[rows + p * W + row] * sign, 0.0) * half
        m[16 * j + 9] = gamma - beta * x
    for i in range(8):
        inverse = 1.0 / m[17 * i]
        for j in range(i + 1, 9):
            factor = m[16 * j + i] * inverse
            if i < 7:
                store(m, 16 * j, load(m, 16 * j) - factor * load(m, 16 * i))
            store(m, 16 * j + 8, load(m, 16 * j + 8) - factor * load(m, 16 * i + 8))
    slopes = empty(10)
    for i in range(8, -1, -1):
        value = m[16 * i + 9]
        for j in range(i + 1, 9):
            value -= m[16 * i + j] * slopes[j + 1]
        slopes[i + 1] = value / m[17 * i]
    value = 0.0
    for j in range(9):
        value += _AT_START[j] * slopes[j + 1]
    slopes[0] = value
    first = splat(0.0)
    second = splat(0.0)
    for j in range(9):
        first = first + slopes[j + 1] * load(_INCREMENTS, 16 * j)
        second = second + slopes[j + 1] * load(_INCREMENTS, 16 * j + 8)
    y = empty(16)
    store(y, 0, first)
    store(y, 8, second)
    for p in range(10):
        q = p if backward == 0 else 9 - p
        weight = _WEIGHTS[10 * kind + p]
        out[p] = y[q]
        out[16 + p] = (slopes[q] if backward == 0 else -slopes[q]) * half / (weight if weight > 0.0 else 1.0)
    at_rest(kind, out)


def at_rest(kind: int, out: Floats) -> None:
    """u where it would be 0 / 0: at the end where x begins or ends at rest, from the other points."""
    value = 0.0
    if kind == 1:
        for j in range(9):
            value += _AT_START[j] * out[17 + j]
        out[16] = value
    if kind == 2:
        for j in range(9):
            value += _AT_START[j] * out[24 - j]
        out[25] = value


def fastest(w: Floats, c: int, R: int, V: int) -> int:
    """The limit of speed that is the least on average."""
    W = 4 * R + V
    rows = c + rows_at(R) + 4 * R
    best = 0
    most = -1.0
    for k in range(V):
        added = 0.0
        for p in range(10):
            added += w[rows + p * W + k]
        if added > most:
            most = added
            best = k
    return best


def along_limit(w: Floats, c: int, R: int, V: int, limit: int, first: int, out: Floats) -> None:
    """Increments and u, as from `follow`, along a limit of speed from the point `first` on."""
    W = 4 * R + V
    rows = c + rows_at(R) + 4 * R + limit
    for p in range(10):
        out[p] = 1.0 / max(w[rows + p * W], 1e-30)
    base = out[first]
    for p in range(10):
        out[p] -= base
    half = 0.5 / (w[c + S1] - w[c + S0])
    kind = int(w[c + KIND])
    for p in range(10):
        value = 0.0
        for j in range(10):
            value += _SLOPES[10 * p + j] * out[j]
        weight = _WEIGHTS[10 * kind + p]
        out[16 + p] = value * half / (weight if weight > 0.0 else 1.0)
    at_rest(kind, out)


def slacks(w: Floats, c: int, constants: Floats, R: int, V: int, curved: int, x: float, arc: Floats, z: Floats) -> None:
    """z[p (2 R + V) …]: how far every row is from its upper and its lower bound, and x from its limits, relative."""
    W = 4 * R + V
    rows = c + rows_at(R)
    for k in range(0, R, 8):
        way = splat(0.0)
        if curved == 1:
            for p in range(10):
                way = way + load(w, rows + p * W + 3 * R + k)
        for p in range(10):
            to = p * (2 * R + V) + k
            at = rows + p * W + k
            square = x + arc[p]
            value = load(w, at) * arc[16 + p] + load(w, at + R) * square + load(w, at + 2 * R)
            if curved == 1:
                root = sqrt(max(square, 1e-24))
                dry = load(constants, R + k)
                d = load(w, at + 3 * R)
                value = value + where(way > 0.0, dry, where(way < 0.0, -dry, 0.0)) + load(constants, k) * d * root
            store(z, to, 1.0 - value)
            store(z, to + R, 1.0 + value)
    for p in range(10):
        for k in range(0, V, 8):
            store(z, p * (2 * R + V) + 2 * R + k, 1.0 - (x + arc[p]) * load(w, rows + p * W + 4 * R + k))


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


def root_between(values: Floats, low: float, high: float) -> float:
    """The root of the polynomial through ten values between σ = low and high, where its signs differ: Newton, halving where it leaves."""
    a = low
    b = high
    m = empty(16)
    for j in range(10):
        v = 0.0
        for p in range(10):
            v += _MONOMIALS[10 * j + p] * values[p]
        m[j] = v
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
        if abs(step) < 1e-15 or b - a < 1e-15:
            return x
        x = x - step
        if not (x > a and x < b) or turn % 3 == 2:
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


def violated(values: Floats) -> float:
    """Where to cut a cell in which this slack is negative: where the violation ends, if it is at one end only; else where it is deepest."""
    f = empty(72)
    dense(values, f, 0)
    below = 0
    low = 1
    for k in range(LAST + 1):
        if f[k] < 0.0:
            below += 1
        if k > 0 and k < LAST and f[k] < f[low]:
            low = k
    if below == LAST + 1:
        return 0.5
    first = f[0] < -1e-13
    last = f[LAST] < -1e-13
    if first and not last:
        return first_root(values)
    if last and not first:
        return last_root(values)
    bend = f[low - 1] - 2.0 * f[low] + f[low + 1]
    shift = 0.5 * (f[low - 1] - f[low + 1]) / bend if bend != 0.0 else 0.0
    return float(PLACES[low] + min(max(shift, -1.0), 1.0) * (PLACES[1] - PLACES[0]))


def deepest(z: Floats, columns: int, own: int, found: Floats) -> None:
    """found: the least slack in the cell, but for column `own`, and its column; slacks that come near zero are looked at between points."""
    worst = 1e300
    column = 0
    values = empty(16)
    f = empty(72)
    lows = empty(8)
    for k in range(0, columns, 8):
        low = load(z, k)
        for p in range(1, 10):
            low = minimum(low, load(z, p * columns + k))
        store(lows, 0, low)
        for i in range(8):
            if k + i != own and lows[i] < NEAR:
                gather(z, k + i, columns, values)
                dense(values, f, 0)
                inside = load(f, 0)
                for q in range(8, 72, 8):
                    inside = minimum(inside, load(f, q))
                value = min(lows[i], least(inside))
                if value < worst:
                    worst = value
                    column = k + i
    found[0] = worst
    found[1] = float(column)


def best_row(w: Floats, c: int, R: int, side: int, x: float, found: Floats) -> None:
    """found: the least x at the far end by any row from x at this end, and the row."""
    ends = empty(8)
    least_x = 1e300
    row = 0
    for k in range(0, R, 8):
        at = c + MAPS + 2 * R * side + k
        store(ends, 0, x + (load(w, at) * x + load(w, at + R)))
        for i in range(8):
            if ends[i] < least_x:
                least_x = ends[i]
                row = k + i
    found[0] = least_x
    found[1] = float(row)


def same(x: float, y: float, part: float) -> bool:
    """Whether x is not less than y, but for this part of it."""
    return x >= y - part * max(abs(y), 1e-30)


def settle(
    w: Floats, c: int, constants: Floats, R: int, V: int, curved: int, x0: float, x1: float, near: float, z: Floats
) -> float:
    """What x follows in a cell from x at both its ends; σ where to cut it, -1 where it need not be."""
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
    if tiny:  # what is left of a cut, at a corner of the profile: straight from end to end
        for p in range(10):
            w[c + Y + p] = _POINTS[p] * (x1 - x0)
        w[c + RESIDUAL] = 0.0
    if h <= 2.0 * SHORTEST or cut < 0.0:
        return -1.0
    edge = min(0.5, SHORTEST / h)
    if (cut < edge or cut > 1.0 - edge) and w[c + RESIDUAL] < 1e-9 and state != MIXED:
        return -1.0
    return float(min(max(cut, edge), 1.0 - edge))


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
    row = -1
    x = x0
    off = 0.0
    own = 0
    if state == SLIDE:
        limit = fastest(w, c, R, V)
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
    found = empty(2)
    deepest(z, columns, own, found)
    worst = -found[0]
    w[c + RESIDUAL] = max(worst, inexact)
    tail = 0.0
    for p in range(10):
        tail += _TAIL[p] * arc[16 + p]
    inexact = max(inexact, 0.3 / 128.0 * abs(tail) * steepest(w, c, R, V))
    rough = (off > EXACT or inexact > TOLERANCE) and h > 1e-6
    if worst <= TOLERANCE and not rough:
        return -1.0
    cut = 0.5
    values = empty(16)
    which = int(found[1])
    gather(z, which, columns, values)
    if not (rough and worst < (TOLERANCE if row < 0 else 1e-6)):
        cut = violated(values)
    return take_over(w, c, constants, R, V, curved, row, state == BACKWARD, x, which, z, cut)


def rising(w: Floats, c: int, R: int, V: int, row: int) -> bool:
    """Whether the coefficient of u of a row is positive in the cell."""
    added = 0.0
    for p in range(10):
        added += w[c + rows_at(R) + p * (4 * R + V) + row]
    return added >= 0.0


def steepest(w: Floats, c: int, R: int, V: int) -> float:
    """The largest coefficient of u."""
    most = splat(0.0)
    for p in range(10):
        for k in range(0, R, 8):
            most = maximum(most, abs(load(w, c + rows_at(R) + p * (4 * R + V) + k)))
    return largest(most)


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


def change(curves: Floats, found: Floats) -> int:
    """The place before which the least of three curves becomes another one for the first time; found: both their numbers.

    Where curves begin or end together, the next place decides; where none changes both numbers are the same.
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
        if curves[72 * int(label[inside]) + end] - lowest <= TIE * abs(lowest):
            label[end] = label[inside]
    for q in range(LAST):
        if label[q] != label[q + 1]:
            found[0] = label[q]
            found[1] = label[q + 1]
            return q
    found[0] = label[0]
    found[1] = label[0]
    return 0


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
        along_limit(w, c, R, V, fastest(w, c, R, V), first, arc)
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
