"""Linear complementarity: which unilateral rows push, and how hard."""

from __future__ import annotations

import numpy as np

from ..errors import CoadjointError

TOLERANCE = 1e-11
"""What is rounding beside the largest entry of its kind."""
NOTHING = 1e-12
"""Rows shorter than this in the metric are rounding, as those of a planar loop across its plane."""

CONTRADICTION = "the bilateral rows contradict each other: no impulses or forces satisfy them all."


def complementarity(G: np.ndarray, b: np.ndarray, unilateral: np.ndarray) -> np.ndarray:
    """λ (m,) with w = G λ + b: w = 0 on bilateral rows, and 0 ≤ λ ⊥ w ≥ 0 on those marked in `unilateral` (m,).

    G (m, m) is symmetric and positive semidefinite. These are the conditions for the least of ½ λᵀ G λ + bᵀ λ over λ ≥ 0 on unilateral
    rows, which an active-set method finds in finitely many steps; λ of least length where rows are redundant.
    """
    scale = _lengths(G)
    G, b = G / np.outer(scale, scale), b / scale
    m = len(b)
    size = max(float(np.max(np.abs(b), initial=0.0)), np.finfo(float).tiny)
    lam, active = np.zeros(m), ~unilateral
    for _ in range(10 * m + 10):
        lam, active, consistent = _settle(G, b, lam, active, unilateral, size)
        if not consistent:
            raise CoadjointError(CONTRADICTION)
        w = G @ lam + b
        w[active] = 0.0
        if np.min(w, initial=0.0) >= -TOLERANCE * size:
            return lam / scale
        active = active.copy()
        active[np.argmin(w)] = True
    raise CoadjointError(f"the complementarity problem of {m} rows was not solved; the rows are too badly conditioned.")


def _lengths(G: np.ndarray) -> np.ndarray:
    """The lengths (m,) of rows, which make those of different units alike; 1 for rows that are nothing."""
    length = np.sqrt(np.maximum(np.diag(G), 0.0))
    return np.where(length > NOTHING, length, 1.0)


def _settle(
    G: np.ndarray, b: np.ndarray, lam: np.ndarray, active: np.ndarray, unilateral: np.ndarray, size: float
) -> tuple[np.ndarray, np.ndarray, bool]:
    """The least over the active rows; rows whose λ would become negative leave them on the way."""
    active = active.copy()
    while True:
        rows = np.flatnonzero(active)
        H = G[np.ix_(rows, rows)]
        solution = np.linalg.lstsq(H, -b[rows], rcond=TOLERANCE)[0] if len(rows) else np.zeros(0)
        rest = H @ solution + b[rows]
        direction = np.zeros_like(lam)
        bounded = np.max(np.abs(rest), initial=0.0) <= 1e3 * TOLERANCE * size
        direction[rows] = solution - lam[rows] if bounded else -rest  # redundant rows that contradict: down along their null space
        falling = active & unilateral & (direction < (0.0 if not bounded else -TOLERANCE * size))
        reach = np.full(len(lam), np.inf)
        reach[falling] = np.maximum(lam[falling], 0.0) / -direction[falling]
        far = float(np.min(reach, initial=np.inf))
        if bounded and far >= 1.0:
            lam = lam + direction
            lam[unilateral] = np.maximum(lam[unilateral], 0.0)
            return lam, active, True
        if not np.isfinite(far):
            return lam, active, False
        lam = lam + far * direction
        out = int(np.argmin(reach))
        lam[out], active[out] = 0.0, False
