"""One limit along one cell of a path: a linear differential equation, solved by Radau collocation.

Along a path q(s) with x = ṡ² and u = s̈ = ½ dx/ds every limit is a row a(s) u + b(s) x ≤ γ(s). Where it is active and a > 0,

    ½ a dx/ds + b x = γ,

so that x at the end of a cell is an affine function of x at its start, x₁ = x₀ + P x₀ + Q. Five Radau points (order 9) find P and Q; the
method is L-stable, which is what the cell after a point of zero inertia, a = 0, needs: there the solution forgets x₀. The same
equation read backwards gives x₀ from x₁.

A cell has ten points: those of the backward rule and those of the forward rule, both ends among them. A profile on a cell is
the polynomial of degree nine through its values there.
"""

from __future__ import annotations

from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from scipy.special import roots_jacobi

from ..arrays import Array, namespace, stack
from ..families import built

STAGES = 5
COUNT = 2 * STAGES
GROWTH = 2.0
"""Growth over one cell, as an exponent, beyond which a row is left out: it is found violated there, and the cell divided."""
LARGE = 1e30
"""Stands for no limit."""

RADAU = np.append(np.sort((roots_jacobi(STAGES - 1, 1, 0)[0] + 1) / 2), 1.0)
"""Radau points (the last is 1) of a forward step; a backward step has 1 - c."""
POINTS = np.concatenate([np.sort(1 - RADAU), RADAU])
"""All points of a cell: first those of the backward rule, from 0 on, then those of the forward rule, to 1; not in order, but symmetric."""
START, END = 0, COUNT - 1
BACKWARD, FORWARD = tuple(range(STAGES - 1, -1, -1)), tuple(range(STAGES, COUNT))
"""Places of the points in the order in which a rule goes through them."""


def _lagrange(nodes: np.ndarray) -> list[Polynomial]:
    """The polynomials of τ = 2σ - 1 that are 1 at one node σ and 0 at the others."""
    t = 2 * nodes - 1
    return [Polynomial.fromroots(np.delete(t, k)) / np.prod(x - np.delete(t, k)) for k, x in enumerate(t)]


def _values(basis: list[Polynomial], at: np.ndarray) -> np.ndarray:
    return np.stack([p(2 * at - 1) for p in basis], axis=-1)


def powers(sigma: np.ndarray) -> np.ndarray:
    """(..., COUNT): powers of 2σ - 1."""
    return (2 * np.asarray(sigma)[..., None] - 1) ** np.arange(COUNT)


_STEP = _lagrange(np.append(0.0, RADAU))[1:]
DERIVATIVE = 2 * _values([p.deriv() for p in _STEP], RADAU)
"""dy/dσ at the Radau points from the values of y there; y vanishes at σ = 0."""
SPREAD = {1: _values(_STEP, POINTS), -1: _values(_STEP, 1 - POINTS)}
"""Increments at all points of a cell from those at the Radau points: of forward and of backward steps."""
MONOMIALS = np.array([np.pad(p.coef, (0, COUNT - len(p.coef))) for p in _lagrange(POINTS)]).T
"""Coefficients of powers of 2σ - 1, lowest first, of the polynomial through values at the points."""
_SLOPE = _lagrange(POINTS[1:])
INTEGRAL = np.stack([0.5 * (p.integ()(2 * POINTS - 1) - p.integ()(-1.0)) for p in _SLOPE], axis=-1)
"""(COUNT, COUNT - 1): ∫ from 0 to the points of the polynomial through values at all points but the first."""
AT_START = _values(_SLOPE, np.zeros(1))[0]
"""Its value at σ = 0."""

LINEAR, FROM_REST, TO_REST = 0, 1, 2
"""How s runs over a cell: s₀ + h σ; s₀ + h σ², in which √x is smooth where x grows from 0; s₀ + h σ (2 - σ), where it falls to 0."""


def place(kind: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """(s - s₀) / h at σ."""
    return np.where(kind == LINEAR, sigma, np.where(kind == FROM_REST, sigma**2, sigma * (2 - sigma)))


WEIGHTS = np.stack([np.ones(COUNT), 2 * POINTS, 2 * (1 - POINTS)])
"""d((s - s₀)/h)/dσ at the points, for every kind of cell."""


@cache
def step_map() -> Any:
    """A kernel of one row on one cell: increments y = P x₀ + Q (..., stages) each at the Radau points, in the direction of the step.

    alpha, beta, gamma (..., stages): α u + β x ≤ γ at these points, α ≥ 0, u counted in the direction of the step; weight (..., stages) is
    ds/dσ / h and h the length of the cell. Where the row bounds no speed that could be reached, Q = LARGE.
    """

    def row(alpha: Array, beta: Array, gamma: Array, weight: Array, h: Array) -> tuple[Array, Array]:
        xp, n = namespace(alpha), STAGES
        half = [alpha[..., j] / (2.0 * h[..., 0]) for j in range(n)]
        b, c = [weight[..., j] * beta[..., j] for j in range(n)], [weight[..., j] * gamma[..., j] for j in range(n)]
        grows = 0.0 * h[..., 0]
        for j in range(n):
            over = xp.where(-b[j] > GROWTH * half[j], 1.0 + grows * 0.0, grows * 0.0)
            grows = xp.maximum(grows, over)
        size = [xp.abs(half[j]) + xp.abs(b[j]) + 1e-300 for j in range(n)]
        matrix = [[(half[j] * DERIVATIVE[j, k] + (b[j] if j == k else 0.0)) / size[j] for k in range(n)] for j in range(n)]
        P, Q = _solved(matrix, [[-b[j] / size[j], c[j] / size[j]] for j in range(n)])
        out = grows > 0.5
        flat = sum(half) <= 0.0
        bad = xp.where(flat, 1.0 + 0.0 * grows, xp.where(out, 1.0 + 0.0 * grows, 0.0 * grows)) > 0.5
        keep: Any = lambda y, z: xp.where(bad, z + 0.0 * grows, y)
        return stack([keep(y, -1.0) for y in P]), stack([keep(y, LARGE) for y in Q])

    shapes = dict.fromkeys(("alpha", "beta", "gamma", "weight"), (STAGES,)) | {"h": (1,)}
    return built(None, row, shapes, "timing_row")  # type: ignore[arg-type]


def _solved(matrix: list[list[Any]], right: list[list[Any]]) -> list[list[Any]]:
    """Solutions for every right-hand side by Gauss's elimination, unrolled; these matrices need no exchanges of rows."""
    n = len(matrix)
    rows = [[*matrix[j], *right[j]] for j in range(n)]
    for k in range(n):
        inverse = 1.0 / rows[k][k]
        for j in range(k + 1, n):
            factor = rows[j][k] * inverse
            rows[j] = [*rows[j][: k + 1], *(x - factor * y for x, y in zip(rows[j][k + 1 :], rows[k][k + 1 :], strict=True))]
    found = []
    for m in range(len(right[0])):
        values: list[Any] = [None] * n
        for k in reversed(range(n)):
            total = rows[k][n + m]
            for j in range(k + 1, n):
                total = total - rows[k][j] * values[j]
            values[k] = total / rows[k][k]
        found.append(values)
    return found


@cache
def arc() -> Any:
    """A kernel of the row that is followed in a cell: slopes w = dx/dσ (..., COUNT) with ½ α w / h + β weight x = weight γ at all points.

    As for `step_map`, but at all points of the cell, those that the step comes to first standing first; x (..., 1) is where it starts.
    """

    def follow(alpha: Array, beta: Array, gamma: Array, weight: Array, h: Array, x: Array) -> Array:
        n = COUNT - 1
        half = [alpha[..., j + 1] / (2.0 * h[..., 0]) for j in range(n)]
        b = [weight[..., j + 1] * beta[..., j + 1] for j in range(n)]
        right = [weight[..., j + 1] * gamma[..., j + 1] - b[j] * x[..., 0] for j in range(n)]
        matrix = [[b[j] * INTEGRAL[j + 1, k] + (half[j] if j == k else 0.0) for k in range(n)] for j in range(n)]
        (w,) = _solved(matrix, [[y] for y in right])
        return stack([sum(AT_START[k] * w[k] for k in range(n)), *w])

    shapes = dict.fromkeys(("alpha", "beta", "gamma", "weight"), (COUNT,)) | {"h": (1,), "x": (1,)}
    return built(None, follow, shapes, "timing_arc")  # type: ignore[arg-type]


@cache
def passing(rows: int) -> Any:
    """A kernel of one cell: the largest x at its end from x at its start, min(cap, min over rows of x + P x + Q)."""

    def step(x: Array, P: Array, Q: Array, cap: Array) -> Array:
        xp = namespace(x)
        value = cap[..., 0]
        for r in range(rows):
            value = xp.minimum(value, x[..., 0] + (P[..., r] * x[..., 0] + Q[..., r]))
        return stack([value])

    return built(None, step, {"x": (1,), "P": (rows,), "Q": (rows,), "cap": (1,)}, f"timing_pass_{rows}")  # type: ignore[arg-type]


@cache
def speed_range(rows: int) -> Any:
    """A kernel of one point: the least and the largest x for which some u meets all rows lo ≤ a u + b x ≤ hi.

    Rows are taken in pairs, an upper bound of u against a lower one: (α_j β_i - α_i β_j) x ≤ α_j γ_i + α_i γ_j.
    """

    def point(a: Array, b: Array, lo: Array, hi: Array) -> Array:
        xp = namespace(a)
        zero = 0.0 * a[..., 0]
        largest, least = LARGE + zero, zero
        up = a > 0
        alpha = xp.abs(a)
        b_up, b_down = xp.where(up, b, -b), xp.where(up, -b, b)
        c_up, c_down = xp.where(up, hi, -lo), xp.where(up, -lo, hi)
        pairs = []
        for i, j in permutations(range(rows), 2):
            A_i, A_j = alpha[..., i], alpha[..., j]
            pairs.append((A_j * b_up[..., i] + A_i * b_down[..., j], A_j * c_up[..., i] + A_i * c_down[..., j], A_i + A_j))
        for r in range(rows):  # by itself where it does not depend on u
            flat = xp.where(alpha[..., r] <= 2e-12 * xp.abs(b[..., r]), 1.0 + zero, zero)
            pairs.append((flat * b[..., r], flat * hi[..., r], flat))
            pairs.append((-flat * b[..., r], -flat * lo[..., r], flat))
        for k, g, size in pairs:
            tiny = 1e-13 * size
            bound = g / xp.where(xp.abs(k) > tiny, k, 1.0 + zero)
            none = xp.where(g < -1e-12 * size, -1.0 + zero, LARGE + zero)  # where x has no part in it
            largest = xp.minimum(largest, xp.where(k > tiny, bound, xp.where(k < -tiny, LARGE + zero, none)))
            least = xp.maximum(least, xp.where(k < -tiny, bound, zero))
        return stack([least, largest])

    shapes = dict.fromkeys(("a", "b", "lo", "hi"), (rows,))
    return built(None, point, shapes, f"timing_range_{rows}")  # type: ignore[arg-type]
