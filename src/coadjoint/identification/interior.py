"""Quadratic programs over possible bodies: a primal-dual interior-point method on 4×4 blocks.

    minimise ½ xᵀ A x - bᵀ x    under    Σ_l(φ_l) ⪰ 0,  φ = K x + k,    and    C x ≥ d.

With slacks S_l = Σ_l and s = C x - d and multipliers Z_l, z, Newton's method is applied to S Z = μ 1, s z = μ (the direction of Helmberg,
Kojima and Monteiro) while μ falls; each step is a predictor and a corrector (Mehrotra). The start need not fulfil the constraints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from ..lie import inertia

BASIS = np.asarray(inertia.pseudo(np.eye(10)))
"""(10, 4, 4): Σ = Σ_k φ_k of these."""
_FLAT = BASIS.reshape(10, 16)
STEPS = 60
SHORTEN = 0.99
"""The part of the way to the boundary that a step goes."""


@dataclass
class Program:
    """A quadratic program over possible bodies."""

    A: np.ndarray
    b: np.ndarray
    K: np.ndarray
    """(10 n, p)."""
    k: np.ndarray | None = None
    """(10 n,), or None for 0."""
    C: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    d: np.ndarray = field(default_factory=lambda: np.zeros(0))
    steps: int = 0
    feasible: bool = False
    """True if the last solution fulfils the constraints."""

    def __post_init__(self) -> None:
        p = len(self.b)
        self.C = self.C if len(self.C) else np.zeros((0, p))
        self._blocks = self.K.reshape(-1, 10, p)
        self._degree = 4 * len(self._blocks) + len(self.d)

    def pseudo(self, x: np.ndarray) -> np.ndarray:
        """Σ (n, 4, 4)."""
        phi = self.K @ x if self.k is None else self.K @ x + self.k
        return np.asarray((phi.reshape(-1, 10) @ _FLAT).reshape(-1, 4, 4))

    def solve(self, x: np.ndarray, gap: float = 1e-8, least: float = 0.0) -> np.ndarray:
        """The minimum, its value within `gap` relatively, from x; or about the point of the central path where μ is `least`."""
        size = max(abs(float(self.b @ x)), abs(float(x @ self.A @ x)), 1e-300)
        mu = size / max(self._degree, 1)
        S, s = _positive(self.pseudo(x)), self.C @ x - self.d
        s = np.maximum(s, 1e-2 * np.maximum(np.abs(s).max(initial=0.0), 1e-3))
        Z, z = mu * np.linalg.inv(S), mu / s
        for _ in range(STEPS):
            try:
                x, S, s, Z, z = self._step(x, S, s, Z, z, least)
            except np.linalg.LinAlgError:  # nearer to the boundary than rounding
                break
            self.steps += 1
            mu = self._mu(S, s, Z, z)
            off = max(float(np.abs(self.pseudo(x) - S).max(initial=0.0)), float(np.abs(self.C @ x - self.d - s).max(initial=0.0)))
            self.feasible = off <= 1e-9 * max(float(np.abs(S).max(initial=0.0)), float(np.abs(s).max(initial=0.0)))
            value = abs(float(0.5 * x @ self.A @ x - self.b @ x))
            if self.feasible and (mu * self._degree <= gap * max(value, 1e-12 * size) if not least else mu < 1.5 * least):
                break
        return x

    def _mu(self, S: np.ndarray, s: np.ndarray, Z: np.ndarray, z: np.ndarray) -> float:
        return (float((S * Z).sum()) + float(s @ z)) / max(self._degree, 1)

    def _step(
        self, x: np.ndarray, S: np.ndarray, s: np.ndarray, Z: np.ndarray, z: np.ndarray, least: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        inverse = np.linalg.inv(S)
        rp, rl = self.pseudo(x) - S, self.C @ x - self.d - s
        rd = self.A @ x - self.b
        left = (inverse[:, None] @ BASIS @ Z[:, None]).reshape(-1, 10, 16)  # S⁻¹ B_k Z
        M = left @ _FLAT.T
        M = 0.5 * (M + np.swapaxes(M, 1, 2))
        H = self.A + (np.swapaxes(self._blocks, 1, 2) @ M @ self._blocks).sum(0) + (self.C.T * (z / s)) @ self.C
        solve = _factored(H)

        def direction(mu: float, W: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
            """Towards S Z = μ, with second-order terms W (n, 4, 4) and w (m,)."""
            fixed = mu * inverse - _sym(inverse @ (rp @ Z + W))
            own = mu / s - (z * rl + w) / s
            dx = solve(-rd + ((fixed.reshape(-1, 16) @ _FLAT.T).reshape(-1) @ self.K) + own @ self.C)
            dphi = (self.K @ dx).reshape(-1, 10)
            dS = (dphi @ _FLAT).reshape(-1, 4, 4) + rp
            ds = self.C @ dx + rl
            dZ = mu * inverse - Z - _sym(inverse @ (dS @ Z + W))
            return dx, dS, ds, dZ, mu / s - z - (z * ds + w) / s

        roots = np.linalg.inv(np.linalg.cholesky(np.concatenate([S, Z])))
        both = np.concatenate([s, z])
        now = self._mu(S, s, Z, z)
        dx, dS, ds, dZ, dz = direction(0.0, np.zeros_like(S), np.zeros_like(s))
        t = min(_longest(roots, dS, dZ), _shortest(both, ds, dz), 1.0)
        ahead = self._mu(S + t * dS, s + t * ds, Z + t * dZ, z + t * dz)
        sigma = min(max(ahead / now, 0.0) ** 3, 1.0) if now > 0 else 0.0
        dx, dS, ds, dZ, dz = direction(max(max(sigma, 1e-6) * now, least), dS @ dZ, ds * dz)
        t = min(SHORTEN * min(_longest(roots, dS, dZ), _shortest(both, ds, dz)), 1.0)
        return x + t * dx, S + t * dS, s + t * ds, Z + t * _sym(dZ), z + t * dz


def _sym(X: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 * (X + np.swapaxes(X, -1, -2)))


def _positive(S: np.ndarray) -> np.ndarray:
    """S with eigenvalues that are at least a small part of the largest."""
    if not len(S):
        return S
    values, vectors = np.linalg.eigh(S)
    values = np.maximum(values, 1e-4 * np.maximum(values[:, -1:], 1e-12))
    return np.asarray((vectors * values[:, None]) @ np.swapaxes(vectors, 1, 2))


def _longest(roots: np.ndarray, *directions: np.ndarray) -> float:
    """The largest step t with X + t D ⪰ 0 for all blocks X, whose inverse Cholesky factors are `roots`."""
    if not len(roots):
        return np.inf
    least = float(np.linalg.eigvalsh(roots @ np.concatenate(directions) @ np.swapaxes(roots, 1, 2)).min())
    return np.inf if least >= 0 else -1.0 / least


def _shortest(s: np.ndarray, *directions: np.ndarray) -> float:
    ds = np.concatenate(directions)
    down = ds < 0
    return float((-s[down] / ds[down]).min()) if down.any() else np.inf


def _factored(H: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """x ↦ H⁻¹ x of a symmetric, nearly positive definite H, whose columns are scaled to one."""
    scale = 1.0 / np.sqrt(np.diag(H).clip(1e-300))
    S = H * scale[:, None] * scale
    for ridge in (0.0, 1e-14, 1e-12, 1e-10, 1e-7):
        factor, failed = dpotrf(S + ridge * np.eye(len(S)) if ridge else S)
        if not failed:
            return lambda g: np.asarray(scale * dpotrs(factor, scale * g)[0])
    inverse = np.linalg.pinv(S, hermitian=True)
    return lambda g: np.asarray(scale * (inverse @ (scale * g)))
