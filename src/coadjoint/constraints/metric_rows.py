"""Rows A (..., m, n) in the metric W = M⁻¹, and solvers of A W Aᵀ λ = b.

Rows are divided by their lengths |A_k| = √(A_k W A_kᵀ), so that units do not matter. Three solvers, one for each need:

    MetricRows         straight code, exact; NaN where rows depend on each other
    RegularizedRows    straight code; dependent rows share their load. G + ε 1 is inverted in the place of G = A W Aᵀ, and every
                       correction is repeated until the effect is gone: after k turns the (ε / σ²)ᵏ-th part is left, σ the least
                       singular value of independent rows
    decompose          NumPy, by singular values: dependent rows share their load, and contradictions are known. `least_squares`
                       does the same where only G is known

All tolerances of constraints stand here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, concat, like, mirror, mv, namespace, solve_spd, transpose

ZERO = 1e-11
"""A row with entries below this, relative to the size of the robot and of the other rows, is zero up to rounding."""
SHORT = 1e-12
"""A row shorter than this, relative to 1 and the longest, is zero up to rounding, as those of a planar loop orthogonal to its
plane.
"""
ALIKE = 1e-6
"""The least sin² of the angle between a row and the others that needs no singular values: above it, ten digits are left."""
DEPENDENT = 1e-8
"""Singular values of rows below this fraction of the largest count as zero: the rows are dependent up to rounding, √ε of double
precision.
"""
DEPENDENT_SQUARE = 1e-11
"""Eigenvalues of G below this fraction of the largest count as zero. They are squares of singular values, and rounding is 1e-16 of
the largest.
"""
REGULARIZATION, TURNS = 1e-8, 3
"""ε, and how often a correction is repeated: rows at an angle of 1e-2 or more are then solved to 1e-12."""
CONTRADICTION = 1e-6
"""The fraction of the right-hand side by which dependent rows may contradict each other: rounding and a little drift."""

OVERCONSTRAINED_SQUARE = 1e-6
OVERCONSTRAINED_REGULARIZATION, OVERCONSTRAINED_TURNS = 1e-3, 8
OVERCONSTRAINED_LENGTH = 0.1
"""The bound where rows depend on each other on the constraint only, and nearly so beside it, as in Bennett's linkage: a row that
vanishes on the constraint has no direction beside it, so rows shorter than this part of all together are not made longer."""


def row_lengths(square: Array, real: Array | None = None) -> Array:
    """|A_k| (..., m) from A_k W A_kᵀ; 1 for rows that are rounding: those not `real` (..., m), or whose square is not positive."""
    xp, positive = namespace(square), square > 0.0
    return xp.sqrt(xp.where(positive if real is None else real & positive, square, 1.0 + 0.0 * square))


def gram_lengths(G: np.ndarray) -> np.ndarray:
    """|A_k| (m,) of the rows whose Gram matrix is G (m, m); 1 for those that are rounding."""
    square = np.diag(G)
    return row_lengths(square, square > (SHORT * max(1.0, np.sqrt(square.max(initial=0.0)))) ** 2)


def inverse(a: Array) -> Array:
    """a⁻¹ (..., n, n) of a symmetric positive definite matrix."""
    return solve_spd(a, like(np.eye(a.shape[-1]), a))


class MetricRows:
    """Rows A (..., m, n), with inverse_A = W Aᵀ (..., n, m), and their scaled Gram matrix. length (..., m): other than their own."""

    def __init__(self, A: Array, inverse_A: Array, length: Array | None = None) -> None:
        self.A, self.inverse_A = A, inverse_A
        G = A @ inverse_A
        self.length: Array = row_lengths(namespace(G).einsum("...kk->...k", G)) if length is None else length
        self.G = mirror(G / (self.length[..., :, None] * self.length[..., None, :]))

    def solve(self, b: Array, regular: Array | None = None) -> Array:
        """(A W Aᵀ)⁻¹ b (..., m, k) for b (..., m, k); NaN where rows depend on each other, or states are not `regular` (...)."""
        m, length = self.G.shape[-1], self.length[..., None]
        good: Any = regular
        found = solve_spd(self.G, concat([like(np.eye(m), self.G), b / length]))
        for k in range(m):
            apart = found[..., k, k]  # 1 / sin² of the angle between row k and the others
            alone = (apart > 0.0) & (apart < 1.0 / ALIKE)
            good = alone if good is None else good & alone
        return namespace(b, self.G).where(good[..., None, None], found[..., m:] / length, np.nan)


class RegularizedRows(MetricRows):
    """Rows and the impulses that cancel their rates, also for dependent rows; corrections must be repeated `turns` times."""

    def __init__(self, A: Array, W: Array, length: Array, overconstrained: bool = False) -> None:
        super().__init__(A, W @ transpose(A), length)
        self.W = W
        epsilon, self.turns = REGULARIZATION, TURNS
        if overconstrained:
            epsilon, self.turns = OVERCONSTRAINED_REGULARIZATION, OVERCONSTRAINED_TURNS
        self.inverse = inverse(self.G + epsilon * like(np.eye(A.shape[-2]), A))

    def impulse(self, rate: Array) -> Array:
        """Aᵀ Λ (..., n) that cancels the rate (..., m) of the rows."""
        return mv(transpose(self.A), mv(self.inverse, -rate / self.length) / self.length)

    def tangent(self, p: Array) -> Array:
        """The momentum p + Aᵀ Λ (..., n), with A W (p + Aᵀ Λ) = 0."""
        for _ in range(self.turns):
            p = p + self.impulse(mv(self.A, mv(self.W, p)))
        return p

    def mobility(self) -> Array:
        """W (..., n, n) for the motions along which the rows are at rest."""
        found, rows = self.W, self.A / self.length[..., None]
        for _ in range(self.turns):
            found = found - self.W @ (transpose(rows) @ (self.inverse @ (rows @ found)))
        return 0.5 * (found + transpose(found))


class Decomposition(NamedTuple):
    """A L⁻ᵀ with M = L Lᵀ, its rows divided by their lengths, as U diag(s) Wᵀ; entries beyond the rank are zero."""

    L: np.ndarray
    length: np.ndarray
    """(..., m) of the rows in the metric W; 1 for rows that are zero."""
    U: np.ndarray
    s: np.ndarray
    Wt: np.ndarray
    rank: np.ndarray

    @property
    def inverse(self) -> np.ndarray:
        """1/s, zero beyond the rank."""
        independent = np.arange(self.s.shape[-1]) < self.rank[..., None]
        return np.where(independent, 1.0 / np.where(independent, self.s, 1.0), 0.0)

    def multipliers(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The shortest λ (..., m) with A W Aᵀ λ = b (..., m), and by how much dependent rows contradict each other (..., m)."""
        r = b / self.length
        along = np.where(self.inverse > 0, mv(transpose(self.U), r), 0.0)
        return mv(self.U, along * self.inverse**2) / self.length, r - mv(self.U, along)

    def change(self, b: np.ndarray, damping: float = 0.0) -> np.ndarray:
        """W Aᵀ λ (..., n) of that λ: the shortest x in the metric with A x = b (..., m); damping shortens it further."""
        gain = self.inverse / (1.0 + damping * self.inverse**2) if damping else self.inverse
        return self.lower(mv(transpose(self.Wt), gain * mv(transpose(self.U), b / self.length)))

    def inverse_metric(self, f: np.ndarray) -> np.ndarray:
        """W f (..., n)."""
        return self.lower(np.linalg.solve(self.L, f[..., None])[..., 0])

    def lower(self, y: np.ndarray) -> np.ndarray:
        """L⁻ᵀ y (..., n)."""
        return np.linalg.solve(transpose(self.L), y[..., None])[..., 0]

    def pseudo_inverse(self) -> np.ndarray:
        """A♯ (..., n, m): A♯ b is `change(b)`."""
        back = np.linalg.solve(transpose(self.L), transpose(self.Wt) * self.inverse[..., None, :])
        found: np.ndarray = back @ transpose(self.U) / self.length[..., None, :]
        return found


def decompose(A: np.ndarray, L: np.ndarray, zero: np.ndarray) -> Decomposition:
    """Rows A (..., m, n) in the metric M = L Lᵀ, L lower triangular; zero (..., m): which of them are zero up to rounding."""
    B = transpose(np.linalg.solve(L, transpose(A)))
    length = np.where(zero, 1.0, np.linalg.norm(B, axis=-1))
    U, s, Wt = np.linalg.svd(np.where(zero[..., None], 0.0, B / length[..., None]), full_matrices=False)
    return Decomposition(L, length, U, s, Wt, (s > DEPENDENT * np.maximum(s[..., :1], 1.0)).sum(-1))


def least_squares(G: np.ndarray, b: np.ndarray, overconstrained: bool = False) -> np.ndarray:
    """G⁻¹ b (m,) for the Gram matrix G (m, m) of rows scaled to about the same length, by powers of two; the shortest where they depend."""
    length, dependent = gram_lengths(G), DEPENDENT_SQUARE
    if overconstrained:
        length, dependent = np.sqrt(np.diag(G) + OVERCONSTRAINED_LENGTH**2 * np.trace(G)), OVERCONSTRAINED_SQUARE
    scale = np.exp2(np.round(np.log2(length)))
    found: np.ndarray = np.linalg.lstsq(G / np.outer(scale, scale), b / scale, rcond=dependent)[0] / scale
    return found


def pseudo_inverse(a: np.ndarray, scale: np.ndarray | float) -> np.ndarray:
    """The pseudo-inverse of matrices (..., m, n) where singular values below DEPENDENT of a scale (...) vanish."""
    U, s, Vt = np.linalg.svd(a, full_matrices=False)
    kept = s > DEPENDENT * np.asarray(scale)[..., None]
    inverse = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)
    found: np.ndarray = transpose(Vt) * inverse[..., None, :] @ transpose(U)
    return found
