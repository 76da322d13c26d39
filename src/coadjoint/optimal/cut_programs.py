"""Programs that cut cells: at points of zero inertia, and wherever they are told to."""

from __future__ import annotations

import numpy as np

from ..kernel.programs import Floats, empty, least, load, maximum, minimum, some, splat, sqrt, store, where
from .cell_programs import (
    CAP,
    COARSE,
    CREPT,
    GUESS,
    KIND,
    LARGEST,
    LEAST,
    NEXT,
    S0,
    S1,
    X0,
    ZERO,
    as_polynomials,
    make_cell,
    place,
    rows_at,
    speed_range,
    stride,
)
from .collocation import LARGE, POINTS
from .halving_programs import SPAN
from .polynomial_programs import coefficients, first_root, gather

SHORTEST = 1e-11
"""The least length of a piece of a cell."""
HALVED = 1e-8
"""The least length of a cell that is halved where cuts creep."""

_POINTS = np.ascontiguousarray(POINTS)


def regular(w: Floats, count: int, coarse: Floats, spans: Floats, constants: Floats, R: int, V: int, curved: int, most: int) -> int:
    """The number of cells after they are cut where a row has zero inertia, so that no coefficient of u changes its sign inside one."""
    size = stride(R, V)
    values = empty(16)
    i = 0
    tries = 0
    while i >= 0:
        c = i * size
        row = changing(w, c, R, V, 0, curved)
        shift = 0
        if row < 0 and curved == 1:
            row = changing(w, c, R, V, 3 * R, 1)
            shift = 3 * R
        if row < 0 or tries >= 12 or count >= most - 8 or w[c + S1] - w[c + S0] <= 1e-9:
            i = int(w[c + NEXT])
            tries = 0
        else:
            gather(w, c + rows_at(R) + shift + row, 4 * R + V, values)
            sigma = first_root(values)
            if sigma <= 1e-12 or sigma >= 1.0 - 1e-12:
                sigma = 0.5
            if min(sigma, 1.0 - sigma) * (w[c + S1] - w[c + S0]) < SHORTEST:  # it is at the end: no cell becomes empty
                i = int(w[c + NEXT])
                tries = 0
            else:
                divide(w, i, count, sigma, coarse, spans, constants, R, V, curved)
                count += 1
                tries += 1
    return count


def changing(w: Floats, c: int, R: int, V: int, shift: int, idle: int) -> int:
    """The first row whose coefficient, of u or at another place of the rows, changes its sign in the cell; -1 where none does.

    Without `idle` only rows that can become active in the cell count.
    """
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
        turns = (high > most) & (low < -most)
        if some(turns) and idle == 0:
            reach(w, c, R, V, k, lows)
            turns = turns & (load(lows, 0) > 0.99)
        if some(turns):
            store(lows, 0, where(turns, 1.0, 0.0))
            for i in range(8):
                if lows[i] > 0.0:
                    return k + i
    return -1


def reach(w: Floats, c: int, R: int, V: int, k: int, out: Floats) -> None:
    """The largest values of eight rows in the cell, for any x below the limit of speed and any u within the bounds of all rows."""
    W = 4 * R + V
    found = splat(0.0)
    for p in range(10):
        at = c + rows_at(R) + p * W
        x = w[c + CAP + p]
        u = splat(LARGE)
        for j in range(0, R, 8):
            a = abs(load(w, at + j))
            u = minimum(u, (1.0 + abs(load(w, at + R + j)) * x + abs(load(w, at + 2 * R + j))) / maximum(a, 1e-30))
        most = least(u)
        found = maximum(found, abs(load(w, at + k)) * most + abs(load(w, at + R + k)) * x + abs(load(w, at + 2 * R + k)))
    store(out, 0, found)


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
    number = int(w[c + COARSE])
    if kind == 0 and w[c + S0] == spans[SPAN * number] and w[c + S1] == spans[SPAN * number + 1]:  # it is cut for the first time
        as_polynomials(coarse, number, 4 * R + V)
    s = w[c + S0] + (w[c + S1] - w[c + S0]) * place(kind, sigma)
    w[d + S0] = s
    w[d + S1] = w[c + S1]
    w[c + S1] = s
    w[d + COARSE] = w[c + COARSE]
    w[d + NEXT] = w[c + NEXT]
    w[c + NEXT] = float(count)
    w[d + X0] = -1.0
    w[c + CREPT] = 0.0
    w[d + CREPT] = 0.0
    w[d + KIND] = 0.0 if kind == 1 else w[c + KIND]
    w[c + KIND] = 0.0 if kind == 2 else w[c + KIND]
    if curved == 1:
        guesses(w, c, d, kind)
    make_cell(w, c, coarse, spans, constants, R, V, curved)
    make_cell(w, d, coarse, spans, constants, R, V, curved)
    speed_range(w, d, R, V, 0)
    if curved == 0:  # only the cut is new
        w[d + LEAST + 1] = w[c + LEAST + 1]
        w[d + LARGEST + 1] = min(w[c + LARGEST + 1], w[d + CAP + 9])
        w[c + LEAST + 1] = w[d + LEAST]
        w[c + LARGEST + 1] = min(w[d + LARGEST], w[c + CAP + 9])
        w[c + LARGEST] = min(w[c + LARGEST], w[c + CAP])
    else:
        speed_range(w, d, R, V, 1)
        speed_range(w, c, R, V, 0)
        speed_range(w, c, R, V, 1)


def cut_off(
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
    """As `divide`, but a cell of which the least possible was just cut off at one end is halved before it is cut there again.

    A row that was left out in a long cell is violated from its end on, and one in whose place it is followed only there: cuts would creep.
    """
    size = stride(R, V)
    h = w[i * size + S1] - w[i * size + S0]
    side = 0.0
    if min(sigma, 1.0 - sigma) * h < 2.0 * SHORTEST and h > HALVED:
        side = -1.0 if sigma < 0.5 else 1.0
        if w[i * size + CREPT] == side:
            sigma = 0.5
            side = 0.0
    divide(w, i, count, sigma, coarse, spans, constants, R, V, curved)
    w[(count if side < 0.0 else i) * size + CREPT] = side


def guesses(w: Floats, c: int, d: int, kind: int) -> None:
    """The guess of a cell that was cut, for both its parts."""
    known = w[c + GUESS] >= 0.0
    values = empty(16)
    gather(w, c + GUESS, 1, values)
    m = empty(16)
    coefficients(values, m)
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
