"""Programs on arcs in a cell: x along a row or along a limit of speed, and how far all limits are from it."""

from __future__ import annotations

import numpy as np

from ..kernel.programs import Floats, empty, load, splat, sqrt, store, where
from .cell_programs import KIND, MAPS, S0, S1, linear_at, rows_at
from .collocation import AT_START, COUNT, INTEGRAL, MONOMIALS, POINTS, WEIGHTS, powers
from .polynomial_programs import TIE, first_root

_WEIGHTS = np.ascontiguousarray(WEIGHTS).ravel()
_INTEGRAL = np.pad(INTEGRAL, ((0, 0), (0, 7))).ravel()
_INCREMENTS = np.pad(INTEGRAL.T, ((0, 0), (0, 6))).ravel()
_AT_START = np.ascontiguousarray(AT_START)
_SLOPES = np.pad((2.0 * (powers(POINTS)[:, :-1] * np.arange(1, COUNT)) @ MONOMIALS[1:]).T, ((0, 0), (0, 6))).ravel()


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
    pivots = empty(16)
    for i in range(9):
        inverse = 1.0 / m[17 * i]
        pivots[i] = inverse
        for j in range(i + 1, 9):
            factor = m[16 * j + i] * inverse
            if i < 7:
                store(m, 16 * j, load(m, 16 * j) - factor * load(m, 16 * i))
            store(m, 16 * j + 8, load(m, 16 * j + 8) - factor * load(m, 16 * i + 8))
    slopes = empty(10)
    for i in range(8, -1, -1):
        slopes[i + 1] = m[16 * i + 9] * pivots[i]
        for j in range(i):
            m[16 * j + 9] -= m[16 * j + i] * slopes[i + 1]
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


def fastest(w: Floats, c: int, R: int, V: int, p: int) -> int:
    """The least limit of speed at a point."""
    at = c + rows_at(R) + p * (4 * R + V) + 4 * R
    best = 0
    for k in range(1, V):
        if w[at + k] > w[at + best]:
            best = k
    return best


def corner(w: Floats, c: int, R: int, V: int, found: Floats) -> float:
    """σ of a corner of the limit of speed, where another one is the least from then on; -1 where one holds at both ends (found)."""
    W = 4 * R + V
    rows = c + rows_at(R) + 4 * R
    first = fastest(w, c, R, V, 0)
    last = fastest(w, c, R, V, 9)
    found[0] = float(first)
    if first == last:
        return -1.0
    values = empty(16)
    for p in range(10):
        values[p] = w[rows + p * W + first] - w[rows + p * W + last]
    if values[9] >= -TIE * w[rows + 9 * W + last]:
        return -1.0
    if values[0] <= TIE * w[rows + first]:
        found[0] = float(last)
        return -1.0
    return first_root(values)


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
    first_half = splat(0.0)
    second_half = splat(0.0)
    for j in range(10):
        first_half = first_half + out[j] * load(_SLOPES, 16 * j)
        second_half = second_half + out[j] * load(_SLOPES, 16 * j + 8)
    store(out, 16, first_half)
    store(out, 24, second_half)
    for p in range(10):
        weight = _WEIGHTS[10 * kind + p]
        out[16 + p] = out[16 + p] * half / (weight if weight > 0.0 else 1.0)
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
                value = where(load(constants, 2 * R + k) > 0.0, value * abs(d) * root, value)
            store(z, to, 1.0 - value)
            store(z, to + R, 1.0 + value)
    for p in range(10):
        for k in range(0, V, 8):
            store(z, p * (2 * R + V) + 2 * R + k, 1.0 - (x + arc[p]) * load(w, rows + p * W + 4 * R + k))


def best_row(w: Floats, c: int, R: int, side: int, x: float, found: Floats) -> None:
    """found: the least x at the far end by any row from x at this end, and the row."""
    ends = empty(8)
    smallest = 1e300
    row = 0
    for k in range(0, R, 8):
        at = c + MAPS + 2 * R * side + k
        store(ends, 0, load(w, at) * x + load(w, at + R))  # increments: in short cells rows differ by less than x is rounded
        for i in range(8):
            if ends[i] < smallest:
                smallest = ends[i]
                row = k + i
    found[0] = x + smallest
    found[1] = float(row)
