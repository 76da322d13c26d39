"""The conditions of first order at an optimum, linear in small changes, with the limits that hold as rows.

    W dx - Eᵀ dy - Cᵀ dz = r,    E dx = g,    C dx + D dz = h,    D = s/z,

W the Hessian of the Lagrangian with what the other limits add. A solver that eliminates dz adds Cᵀ D⁻¹ C to W: where limits hold to 1e-11
that is 10¹² times as large, and W is lost in its rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import lu_factor, lu_solve, solve_triangular

from .newton import full, spaces_of

BALANCED = 3
"""The number of times that rows and columns are divided by the roots of their largest entries."""


def solver(
    W: np.ndarray, E: np.ndarray, C: np.ndarray, D: np.ndarray
) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """(r, g, h) ↦ dx, columns each; W is the upper triangle."""
    W, spaces = full(W), spaces_of(E) if len(E) else None
    along = np.eye(len(W)) if spaces is None else spaces.along
    n = along.shape[1]
    K = np.block([[along.T @ W @ along, (C @ along).T], [C @ along, -np.diag(D)]])
    size = np.ones(len(K))
    for _ in range(BALANCED):
        size /= np.sqrt(np.maximum(np.abs(K * np.outer(size, size)).max(1, initial=0.0), 1e-300))
    K *= np.outer(size, size)
    factors = lu_factor(K)

    def solve(r: np.ndarray, g: np.ndarray, h: np.ndarray) -> np.ndarray:
        onto = np.zeros_like(r)
        if spaces is not None:
            onto = spaces.across @ solve_triangular(spaces.triangle, g[spaces.rows], trans=1)
        right = size[:, None] * np.concatenate([along.T @ (r - W @ onto), h - C @ onto])
        found = lu_solve(factors, right)
        found += lu_solve(factors, right - K @ found)
        return np.asarray(onto + along @ (size[:n, None] * found[:n]))

    return solve
