"""Programs on one cell of a path: its rows at ten points, the maps of these rows from end to end, and the range of speeds.

A cell is a record of numbers in the work array `w`, from `c` on. Rows r < R and limits of speed k < V come in blocks of eight; those that
fill up a block limit nothing. Every row is lower ≤ a u ≤ upper with bounds that are linear in x = ṡ²:

    a u + b₊ x ≤ h₊,    a u + b₋ x ≥ -h₋.
"""

from __future__ import annotations

import numpy as np

from ..kernel.programs import Floats, empty, largest, least, load, maximum, minimum, some, splat, sqrt, store, where
from .collocation import DERIVATIVE, GROWTH, LARGE, MONOMIALS, POINTS, WEIGHTS
from .halving_programs import SPAN

FLAT = 1e-12
"""A row whose coefficient of u is smaller than this, beside that of x, in a whole cell bounds x by itself."""

ZERO = 1e-9
"""A coefficient is zero below this part of its largest value in the cell."""

INEXACT = 1e-2
"""Q may be so much below zero, beside its size in a short cell: it is only inexact."""

NEAR_REST = 0.1
"""√x, beside its largest value in a cell, below which the slope of friction is not that of √x itself."""

S0, S1, KIND, COARSE, NEXT, STATE, ROW, X, RESIDUAL, X0, X1, FRESH = range(12)
LEAST, LARGEST = 12, 14
CAP, STEEPEST, BENT, CREPT, Y, U, GUESS, STEPPED, MAPS = 16, 26, 27, 29, 32, 48, 64, 74, 80
"""Places in a record: numbers, then ten at the points each, and between these the largest coefficient of u, x at both ends for which the
guess is settled, and the end of which the least possible was just cut off, -1 or 1; then the last steps of both passes
(`pass_programs.step`) and the maps; after these the rows (`rows_at`), and these made linear."""
UNSETTLED = -2.0
"""x at the ends of a cell whose guess is not settled."""

_POINTS = np.ascontiguousarray(POINTS)
_WEIGHTS = np.ascontiguousarray(WEIGHTS).ravel()
_DERIVATIVE = np.ascontiguousarray(DERIVATIVE).ravel()
_MONOMIALS = np.ascontiguousarray(MONOMIALS).ravel()


def rows_at(R: int) -> int:
    """The index at which the rows of a record begin: at each point a, b, g, d (R each) and the inverse limits of speed (V)."""
    return MAPS + 4 * R


def linear_at(R: int, V: int) -> int:
    """The index at which the linear bounds begin: at each point b₊, b₋, h₊, h₋ (R each)."""
    return MAPS + 4 * R + 10 * (4 * R + V)


def stride(R: int, V: int) -> int:
    """Numbers of a record."""
    return MAPS + 4 * R + 10 * (4 * R + V) + 40 * R


def as_polynomials(coarse: Floats, cell: int, W: int) -> None:
    """Values at the ten points of a coarse cell become coefficients of powers of 2σ - 1."""
    values = empty(80)
    for k in range(0, W, 8):
        at = cell * 10 * W + k
        for p in range(10):
            store(values, 8 * p, load(coarse, at + p * W))
        for j in range(10):
            added = splat(0.0)
            for p in range(10):
                added = added + _MONOMIALS[10 * j + p] * load(values, 8 * p)
            store(coarse, at + j * W, added)


def place(kind: int, sigma: float) -> float:
    """(s - s₀) / h at σ."""
    if kind == 0:
        return sigma
    if kind == 1:
        return sigma * sigma
    return sigma * (2.0 - sigma)


def make_first(w: Floats, c: int, coarse: Floats, spans: Floats, constants: Floats, R: int, V: int, curved: int) -> None:
    """A cell that is a whole coarse one: its rows are the values there, which become polynomials when it is cut or bends."""
    W = 4 * R + V
    number = int(w[c + COARSE])
    if w[c + KIND] != 0.0:
        as_polynomials(coarse, number, W)
        make_cell(w, c, coarse, spans, constants, R, V, curved)
    else:
        for p in range(10):
            for k in range(0, W, 8):
                if curved == 1 or k < 3 * R or k >= 4 * R:
                    store(w, c + rows_at(R) + p * W + k, load(coarse, (10 * number + p) * W + k))
        finish_cell(w, c, constants, R, V, curved)
    before = c - stride(R, V)
    if curved == 0 and c > 0 and same_rows(w, before + rows_at(R) + 9 * W, c + rows_at(R), R):
        w[c + LEAST] = w[before + LEAST + 1]
        w[c + LARGEST] = min(w[before + LARGEST + 1], w[c + CAP])
    else:
        speed_range(w, c, R, V, 0)
    speed_range(w, c, R, V, 1)


def same_rows(w: Floats, one: int, other: int, R: int) -> bool:
    """True if the rows at two points are the same to the last bit, as where cells meet inside a piece of the path."""
    off = splat(0.0)
    for k in range(0, 3 * R, 8):
        off = off + abs(load(w, one + k) - load(w, other + k))
    return largest(off) == 0.0


def make_cell(w: Floats, c: int, coarse: Floats, spans: Floats, constants: Floats, R: int, V: int, curved: int) -> None:
    """The rows of a cell between its s₀ and s₁, from the polynomials of its coarse cell, and what follows but the ranges of speed."""
    W = 4 * R + V
    number = int(w[c + COARSE])
    kind = int(w[c + KIND])
    left = spans[SPAN * number]
    scale = 2.0 / (spans[SPAN * number + 1] - left)
    h = w[c + S1] - w[c + S0]
    t = empty(16)
    for p in range(10):
        t[p] = (w[c + S0] + h * place(kind, _POINTS[p]) - left) * scale - 1.0
    t[9] = (w[c + S1] - left) * scale - 1.0
    for k in range(0, W, 8):
        if curved == 1 or k < 3 * R or k >= 4 * R:
            evaluate(coarse, number * 10 * W + k, W, t, w, c + rows_at(R) + k)
    finish_cell(w, c, constants, R, V, curved)


def evaluate(coarse: Floats, at: int, W: int, t: Floats, w: Floats, to: int) -> None:
    """Eight polynomials at the ten points t, written to w."""
    m0 = load(coarse, at)
    m1 = load(coarse, at + W)
    m2 = load(coarse, at + 2 * W)
    m3 = load(coarse, at + 3 * W)
    m4 = load(coarse, at + 4 * W)
    m5 = load(coarse, at + 5 * W)
    m6 = load(coarse, at + 6 * W)
    m7 = load(coarse, at + 7 * W)
    m8 = load(coarse, at + 8 * W)
    m9 = load(coarse, at + 9 * W)
    for p in range(10):
        x = t[p]
        high = (((m9 * x + m8) * x + m7) * x + m6) * x + m5
        store(w, to + p * W, ((((high * x + m4) * x + m3) * x + m2) * x + m1) * x + m0)


def finish_cell(w: Floats, c: int, constants: Floats, R: int, V: int, curved: int) -> None:
    """Put into the record what follows from the rows of a cell but the ranges of speed."""
    w[c + FRESH] = 1.0
    caps(w, c, R, V)
    make_linear(w, c, constants, R, V, curved)


def caps(w: Floats, c: int, R: int, V: int) -> None:
    """The largest x by velocities and by rows that do not depend on u; the latter are the last of the inverse limits.

    The largest coefficient of u, too.
    """
    W = 4 * R + V
    rows = c + rows_at(R)
    steep = splat(0.0)
    for p in range(10):
        w[rows + p * W + W - 1] = 0.0
    for k in range(0, R, 8):
        most = splat(0.0)
        size = splat(0.0)
        for p in range(10):
            a = abs(load(w, rows + p * W + k))
            most = maximum(most, a)
            size = maximum(size, a + abs(load(w, rows + p * W + R + k)))
        steep = maximum(steep, most)
        flat = (most <= FLAT * size) & (size > 0.0)
        if some(flat):
            for p in range(10):
                b = load(w, rows + p * W + R + k)
                g = load(w, rows + p * W + 2 * R + k)
                bound = maximum(where(b > 0.0, 1.0 - g, 1.0 + g), 1.0 / LARGE)
                own = largest(where(flat, abs(b) / bound, 0.0))
                w[rows + p * W + W - 1] = max(w[rows + p * W + W - 1], own)
    w[c + STEEPEST] = largest(steep)
    for p in range(10):
        inverse = splat(1.0 / LARGE)
        for k in range(0, V, 8):
            inverse = maximum(inverse, load(w, rows + p * W + 4 * R + k))
        w[c + CAP + p] = 1.0 / largest(inverse)


def make_linear(w: Floats, c: int, constants: Floats, R: int, V: int, curved: int) -> None:
    """Linear bounds: of rows in √x about the guess. Then the maps.

    constants (3 R): for each row its damping and its dry friction, relative to its limit, and where it is a power the
    velocity below which it does not matter, else 0.
    """
    W = 4 * R + V
    rows = c + rows_at(R)
    to = c + linear_at(R, V)
    for k in range(0, R, 8):
        if curved == 0:
            for p in range(10):
                b = load(w, rows + p * W + R + k)
                g = load(w, rows + p * W + 2 * R + k)
                store(w, to + p * 4 * R + k, b)
                store(w, to + p * 4 * R + R + k, b)
                store(w, to + p * 4 * R + 2 * R + k, 1.0 - g)
                store(w, to + p * 4 * R + 3 * R + k, 1.0 + g)
        else:
            curved_bounds(w, c, constants, R, V, k)
    maps(w, c, R, V)
    w[c + BENT] = UNSETTLED
    w[c + STEPPED] = -1e300
    w[c + STEPPED + 3] = -1e300


def curved_bounds(w: Floats, c: int, constants: Floats, R: int, V: int, k: int) -> None:
    """Linear bounds of a block of rows about the guess; dry friction alone where there is no guess.

    Friction is a part of the row. A power is limited by a force of 1 / (|q'| √x), which is convex: its tangent is below it.
    """
    W = 4 * R + V
    rows = c + rows_at(R)
    to = c + linear_at(R, V)
    damping = load(constants, k)
    slow = load(constants, 2 * R + k)
    floor = 0.0  # near rest the slope of √x has no bound: a lower one, with the right value
    for p in range(10):
        floor = max(floor, w[c + GUESS + p])
    floor = NEAR_REST * sqrt(floor)
    tangent = 0.5 if int(w[c + KIND]) == 0 else 0.0
    free = 1.0 if int(w[c + KIND]) == 0 else 1e3  # cells at rest are so short that powers do not matter
    way = splat(0.0)
    for p in range(10):
        way = way + load(w, rows + p * W + 3 * R + k)
    dry = where(way > 0.0, load(constants, R + k), where(way < 0.0, -load(constants, R + k), 0.0))
    for p in range(10):
        b = load(w, rows + p * W + R + k)
        g = load(w, rows + p * W + 2 * R + k) + dry
        d = load(w, rows + p * W + 3 * R + k)
        guess = w[c + GUESS + p]
        known = 1.0 if guess >= 0.0 else 0.0
        root = sqrt(max(guess, 1e-24)) if guess >= 0.0 else 1.0
        e = damping * d * known
        slope = e * (0.5 / max(root, floor))
        rest = e * root - slope * (root * root)
        speed = maximum(maximum(abs(d) * (root * known), slow), 1e-30)
        most = where(slow > 0.0, free / speed, 1.0)
        bend = where(slow > 0.0, known * tangent * d * d / (speed * speed * speed), 0.0)  # minus the slope of that bound
        most = where(slow > 0.0, most + bend * (speed * speed) / maximum(d * d, 1e-30), 1.0)
        store(w, to + p * 4 * R + k, b + slope + bend)
        store(w, to + p * 4 * R + R + k, b + slope - bend)
        store(w, to + p * 4 * R + 2 * R + k, most - g - rest)
        store(w, to + p * 4 * R + 3 * R + k, most + g + rest)


def maps(w: Floats, c: int, R: int, V: int) -> None:
    """x at the far end, x + P x + Q, of every row, forward from s₀ and backward from s₁, by five Radau points each.

    A row that lets the robot stand still everywhere in the cell has Q ≥ 0. Where it has not, as beside a zero of inertia of high order,
    the five points say nothing of the row, and it is left out: where it is violated the cell is cut.
    """
    W = 4 * R + V
    rows = c + rows_at(R)
    linear = c + linear_at(R, V)
    kind = int(w[c + KIND])
    half = 0.5 / (w[c + S1] - w[c + S0])
    for k in range(0, R, 8):
        added = splat(0.0)
        for p in range(10):
            added = added + load(w, rows + p * W + k)
        sign = where(added >= 0.0, 1.0, -1.0)
        most = splat(0.0)
        low = splat(0.0)
        size = splat(0.0)
        for p in range(10):
            a = load(w, rows + p * W + k) * sign
            most = maximum(most, a)
            low = minimum(low, a)
            size = maximum(size, abs(load(w, rows + p * W + R + k)))
        kept = where(most <= FLAT * size, 0.0, sign)
        turns = low < -ZERO * most
        m = empty(560)
        bounded = empty(16)
        lowest = empty(16)
        for side in range(2):
            grows = splat(0.0)
            steep = splat(0.0)
            least_free = splat(LARGE)
            free = splat(0.0)
            for j in range(5):
                p = 5 + j if side == 0 else 4 - j
                row = 280 * side + 56 * j
                weight = _WEIGHTS[10 * kind + p]
                alpha = maximum(load(w, rows + p * W + k) * kept, 0.0) * half
                high = load(w, linear + p * 4 * R + k)
                below = load(w, linear + p * 4 * R + R + k)
                over = load(w, linear + p * 4 * R + 2 * R + k)
                under = load(w, linear + p * 4 * R + 3 * R + k)
                up = sign > 0.0 if side == 0 else sign < 0.0
                beta = where(up, high, -below) * weight
                gamma = where(up, over, under) * weight
                grows = maximum(grows, where(-beta > GROWTH * alpha, 1.0, 0.0))
                steep = steep + alpha
                least_free = minimum(least_free, gamma)
                free = free + gamma
                for i in range(5):
                    store(m, row + 8 * i, alpha * _DERIVATIVE[5 * j + i])
                store(m, row + 8 * j, load(m, row + 8 * j) + beta)
                store(m, row + 40, -beta)
                store(m, row + 48, gamma)
            store(bounded, 8 * side, where((grows > 0.5) | (steep <= 0.0) | turns, 0.0, 1.0))
            store(lowest, 8 * side, where(least_free >= 0.0, -INEXACT * free / maximum(steep, 1e-300), -1e300))
        for i in range(4):
            for side in range(2):  # in turn, as each waits for its division
                row = 280 * side + 56 * i
                inverse = 1.0 / load(m, row + 8 * i)
                for j in range(i + 1, 5):
                    other = 280 * side + 56 * j
                    factor = load(m, other + 8 * i) * inverse
                    for q in range(i + 1, 7):
                        store(m, other + 8 * q, load(m, other + 8 * q) - factor * load(m, row + 8 * q))
        for side in range(2):
            last = 1.0 / load(m, 280 * side + 256)
            P = load(m, 280 * side + 264) * last
            Q = load(m, 280 * side + 272) * last
            bad = (load(bounded, 8 * side) < 0.5) | (load(lowest, 8 * side) > Q) | ~(abs(P) + abs(Q) < 1e300)
            store(w, c + MAPS + 2 * R * side + k, where(bad, -1.0, P))
            store(w, c + MAPS + 2 * R * side + R + k, where(bad, LARGE, Q))


def speed_range(w: Floats, c: int, R: int, V: int, end: int) -> None:
    """The least and the largest x at an end for which some u meets all rows, an upper bound of u of one against a lower one of another."""
    W = 4 * R + V
    p = 9 * end
    rows = c + rows_at(R) + p * W
    linear = c + linear_at(R, V) + p * 4 * R
    highest = splat(LARGE)
    lowest = splat(0.0)
    above = splat(LARGE)  # the least bound as a quotient, above / over, and the largest one: there is one division at the end
    over = splat(1.0)
    below = splat(0.0)
    under = splat(1.0)
    for i in range(R):
        a = w[rows + i]
        if a != 0.0 or w[rows + R + i] != 0.0:
            up = a > 0.0
            b = w[linear + i] if up else -w[linear + R + i]
            g = w[linear + 2 * R + i] if up else w[linear + 3 * R + i]
            a = abs(a)
            for k in range(0, R, 8):
                A = load(w, rows + k)
                rising = A > 0.0
                A = abs(A)
                B = where(rising, -load(w, linear + R + k), load(w, linear + k))
                G = where(rising, load(w, linear + 3 * R + k), load(w, linear + 2 * R + k))
                slope = A * b + a * B
                free = A * g + a * G
                size = A + a
                tiny = 1e-13 * size
                falls = slope > tiny
                rises = slope < -tiny
                less = falls & (free * over < above * slope)
                more = rises & (free * under < below * slope)
                above = where(less, free, above)
                over = where(less, slope, over)
                below = where(more, -free, below)
                under = where(more, -slope, under)
                highest = where(falls | rises | ~(free < -1e-12 * size), highest, -1.0)
    highest = minimum(highest, above / over)
    lowest = maximum(lowest, below / under)
    for k in range(0, R, 8):
        A = abs(load(w, rows + k))
        for side in range(2):
            slope = load(w, linear + k) if side == 0 else -load(w, linear + R + k)
            flat = (2e-12 * abs(slope) >= A) & (slope != 0.0)
            bound = load(w, linear + 2 * R + side * R + k) / where(flat, slope, 1.0)
            highest = minimum(highest, where(flat & (slope > 0.0), bound, LARGE))
            lowest = maximum(lowest, where(flat & (slope < 0.0), bound, 0.0))
    w[c + LEAST + end] = largest(lowest)
    w[c + LARGEST + end] = min(least(highest), w[c + CAP + p])
