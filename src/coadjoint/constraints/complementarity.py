"""Linear complementarity problems: which unilateral rows push, which rows of dry friction stick, and their forces."""

from __future__ import annotations

import numpy as np

from ..errors import CoadjointError
from .metric_rows import DEPENDENT_SQUARE, gram_lengths

CONTRADICTION = "the bilateral rows contradict each other: no impulses or forces satisfy them all."


def complementarity(G: np.ndarray, b: np.ndarray, unilateral: np.ndarray) -> np.ndarray:
    """λ (m,) with w = G λ + b: w = 0 on bilateral rows, and 0 ≤ λ ⊥ w ≥ 0 on those marked in `unilateral` (m,)."""
    return box_complementarity(G, b, np.where(unilateral, 0.0, -np.inf), np.full(len(b), np.inf))


def box_complementarity(G: np.ndarray, b: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """λ (m,) between lower and upper (m,) with w = G λ + b: w ≥ 0 where λ is at its lower bound, ≤ 0 at its upper one, else w = 0.

    Infinite bounds make a bilateral row, [0, ∞) a unilateral one, [-μ, μ] one of dry friction. G (m, m) is symmetric and
    positive semidefinite. These are the optimality conditions of the minimum of ½ λᵀ G λ + bᵀ λ in the box, which an active-set
    method finds in
    finitely many steps; where rows are redundant, those that are not at a bound share their load.
    """
    scale = gram_lengths(G)
    G, b, bounds, lower, upper = G / np.outer(scale, scale), b / scale, (lower, upper), lower * scale, upper * scale
    m = len(b)
    size = max(float(np.max(np.abs(b), initial=0.0)), np.finfo(float).tiny)
    lam = np.clip(np.zeros(m), lower, upper)
    free = (lam > lower) & (lam < upper)
    for _ in range(10 * m + 10):
        lam, free, consistent = _least(G, b, lam, free, lower, upper, size)
        if not consistent:
            raise CoadjointError(CONTRADICTION)
        w = G @ lam + b
        wrong = np.where(free | (lower == upper), 0.0, np.where(lam <= lower, -w, w))
        if np.max(wrong, initial=0.0) <= DEPENDENT_SQUARE * size:
            return np.where(lam <= lower, bounds[0], np.where(lam >= upper, bounds[1], lam / scale))
        free = free.copy()
        free[np.argmax(wrong)] = True
    raise CoadjointError(f"the complementarity problem of {m} rows was not solved; the rows are too badly conditioned.")


def _least(
    G: np.ndarray, b: np.ndarray, lam: np.ndarray, free: np.ndarray, lower: np.ndarray, upper: np.ndarray, size: float
) -> tuple[np.ndarray, np.ndarray, bool]:
    """The minimum over the free rows, the others fixed; rows that would leave the box stay at its boundary."""
    free = free.copy()
    while True:
        rows = np.flatnonzero(free)
        H, right = G[np.ix_(rows, rows)], b[rows] + G[np.ix_(rows, ~free)] @ lam[~free]
        solution = np.linalg.lstsq(H, -right, rcond=DEPENDENT_SQUARE)[0] if len(rows) else np.zeros(0)
        rest = H @ solution + right
        direction = np.zeros_like(lam)
        bounded = np.max(np.abs(rest), initial=0.0) <= 1e3 * DEPENDENT_SQUARE * size
        direction[rows] = solution - lam[rows] if bounded else -rest  # redundant rows that contradict: down along their null space
        least = 0.0 if not bounded else DEPENDENT_SQUARE * size
        falling, rising = free & (direction < -least), free & (direction > least)
        reach = np.full(len(lam), np.inf)
        reach[falling] = np.maximum(lam - lower, 0.0)[falling] / -direction[falling]
        reach[rising] = np.maximum(upper - lam, 0.0)[rising] / direction[rising]
        far = float(np.min(reach, initial=np.inf))
        if bounded and far >= 1.0:
            return np.clip(lam + direction, lower, upper), free, True
        if not np.isfinite(far):
            return lam, free, False
        out = int(np.argmin(reach))
        lam = lam + far * direction
        lam[out], free[out] = (lower if falling[out] else upper)[out], False
