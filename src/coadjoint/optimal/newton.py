"""Newton's step of the interior-point method: one linear system for each problem, definite along its equalities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import eigh, qr, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotrs

if TYPE_CHECKING:
    from .interior_point import Local

DEPENDENT = 1e-9
"""A pivot of the equalities' Jacobian, beside the largest, that counts as zero."""
SADDLE = -1e-6
"""An eigenvalue of the Hessian with unit diagonal that counts as negative."""

Inverse = Callable[[np.ndarray], np.ndarray]


@dataclass
class Step:
    """Changes of the variables, multipliers and slacks."""

    dx: np.ndarray
    dy: np.ndarray
    ds: np.ndarray
    dz: np.ndarray
    definite: np.ndarray
    """(b,): whether the Hessian was positive definite along the equalities."""


def newton_step(local: Local, s: np.ndarray, z: np.ndarray, y: np.ndarray, mu: np.ndarray, convex: np.ndarray) -> Step:
    """The step at slacks s and multipliers z, y towards s z = mu (b,).

    Where the Hessian is indefinite a convex model takes its place, or where `convex` (b,) is false the Hessian with negative
    eigenvalues made positive.
    """
    sigma, gap, E = z / s, local.c - s, local.equality_jacobian
    barrier = mu[:, None] / s
    right = -local.gradient + (y[:, None] @ E)[:, 0] + local.pull(barrier - sigma * gap)
    H = local.hessian(z, y, sigma)
    spaces = [spaces_of(one) if len(one) else None for one in E]
    inverses = [_inverse(_reduced(one, space)) for one, space in zip(H, spaces, strict=True)]
    definite = np.array([one is not None for one in inverses])
    bad = np.flatnonzero(~definite & convex)
    if bad.size:
        H[bad] = local.some(bad).hessian(z[bad], y[bad], sigma[bad], convex=True)
    dx, dy = np.zeros_like(right), np.zeros_like(y)
    for k, (found, space) in enumerate(zip(inverses, spaces, strict=True)):
        inverse = found
        if inverse is None:
            reduced = _reduced(H[k], space)
            inverse = (_inverse(reduced) if convex[k] else None) or _absolute_inverse(reduced)
        dx[k], dy[k] = _solved(H[k], space, inverse, right[k], -local.e[k])
    ds = local.push(dx) + gap
    return Step(dx, dy, ds, barrier - z - sigma * ds, definite)


@dataclass
class Spaces:
    """Range and null space of the rows E (k, n) of rank r, from Eᵀ P = Q R."""

    along: np.ndarray
    """An orthonormal basis of the null space (n, n - r)."""
    across: np.ndarray
    """One of the row space (n, r)."""
    triangle: np.ndarray
    """R (r, r)"""
    rows: np.ndarray
    """The r rows that are independent; others depend on them, as those of a pose of an arm with fewer than six joints."""
    count: int


def spaces_of(E: np.ndarray) -> Spaces:
    """The spaces of the rows E."""
    Q, R, order = qr(E.T, pivoting=True)
    sizes = np.abs(np.diag(R))
    r = int((sizes > DEPENDENT * sizes.max(initial=0.0)).sum())
    return Spaces(Q[:, r:], Q[:, :r], R[:r, :r], order[:r], len(E))


def full(H: np.ndarray) -> np.ndarray:
    """The symmetric matrix with this upper triangle."""
    return np.asarray(np.triu(H) + np.triu(H, 1).T)


def _reduced(H: np.ndarray, spaces: Spaces | None) -> np.ndarray:
    """H along the equalities, its upper triangle."""
    return H if spaces is None else spaces.along.T @ full(H) @ spaces.along


def _solved(
    H: np.ndarray, spaces: Spaces | None, inverse: Inverse, right: np.ndarray, goal: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """dx and dy with H dx - Eᵀ dy = right and E dx = goal, in the independent rows."""
    if spaces is None:
        return inverse(right), np.zeros((0, *right.shape[1:]))
    H = full(H)
    onto = spaces.across @ solve_triangular(spaces.triangle, goal[spaces.rows], trans=1)
    dx = onto + spaces.along @ inverse(spaces.along.T @ (right - H @ onto))
    dy = np.zeros((spaces.count, *right.shape[1:]))
    dy[spaces.rows] = solve_triangular(spaces.triangle, spaces.across.T @ (H @ dx - right))
    return dx, dy


def _inverse(H: np.ndarray) -> Inverse | None:
    """b ↦ H⁻¹ b for the upper triangle H, or None where it is not positive definite."""
    if not len(H):
        return lambda b: b
    factor, info = dpotrf(H.T, lower=1, clean=0)
    return None if info or not np.isfinite(factor[-1, -1]) else lambda b: dpotrs(factor, b, lower=1)[0]


def _scaled(H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """H with a unit diagonal, and the factors (n,) by which rows and columns were multiplied."""
    size = np.abs(np.diag(H))
    root = 1.0 / np.sqrt(np.maximum(size, 1e-12 * size.max(initial=1e-300)))
    return H * np.outer(root, root), root


def _absolute_inverse(H: np.ndarray) -> Inverse:
    """b ↦ |H|⁻¹ b, with negative eigenvalues made positive and small ones bounded, so that every step goes downhill."""
    scaled, root = _scaled(H)
    values, vectors = eigh(scaled, lower=False)
    strength = np.maximum(np.abs(values), 1e-9 * np.abs(values).max(initial=1e-300))
    return lambda b: root * (vectors @ ((vectors.T @ (root * b)) / strength))


def least_curvature(H: np.ndarray, E: np.ndarray) -> float:
    """The least eigenvalue of H, with unit diagonal, along the equalities E."""
    reduced = _reduced(H, spaces_of(E) if len(E) else None)
    return float(eigh(_scaled(reduced)[0], lower=False, eigvals_only=True).min(initial=np.inf)) if len(reduced) else np.inf


def negative(H: np.ndarray, E: np.ndarray) -> bool:
    """True if H has a negative eigenvalue along the equalities E."""
    return least_curvature(H, E) < SADDLE


def is_definite(H: np.ndarray, E: np.ndarray) -> bool:
    """True if H, its upper triangle, is positive definite along the equalities E."""
    return _inverse(_reduced(H, spaces_of(E) if len(E) else None)) is not None
