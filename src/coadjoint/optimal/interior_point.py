"""A primal-dual interior-point method for small problems with exact second derivatives.

    minimise f(x)  subject to  c(x) ≥ 0,  e(x) = 0.

With slacks s > 0, c(x) - s = 0, and multipliers z > 0, the perturbed conditions are ∇f - Cᵀz - Eᵀy = 0, s z = μ. Newton's step solves

    (W + Cᵀ Σ C) dx - Eᵀ dy = -(∇f - Cᵀz - Eᵀy) + Cᵀ(μ/s - z - Σ (c - s)),    E dx = -e,    Σ = z/s,

with W the Hessian of the Lagrangian, or a positive semidefinite matrix near it where it is indefinite along the equalities. Steps are
cut so that s and z stay positive and an ℓ₁ merit function falls; μ falls as the conditions are met. Nocedal & Wright (2006), chapter 19;
Wächter & Biegler (2006).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, qr

PATIENCE = 12
"""Steps with a convex model where the Hessian is indefinite: they lead to the nearest valley, but slowly out of a saddle. After so many of
them the Hessian itself is taken, its negative eigenvalues made positive."""


class Local(Protocol):
    """A problem near one point."""

    @property
    def f(self) -> float: ...

    @property
    def c(self) -> np.ndarray:
        """(m,), c ≥ 0 where the constraints hold."""

    @property
    def e(self) -> np.ndarray:
        """(k,), 0 where they hold."""

    def gradient(self) -> np.ndarray: ...

    def pull(self, z: np.ndarray) -> np.ndarray:
        """Cᵀ z (n,)."""

    def push(self, dx: np.ndarray) -> np.ndarray:
        """C dx (m,)."""

    def equality_jacobian(self) -> np.ndarray:
        """E (k, n)."""

    def hessian(self, z: np.ndarray, y: np.ndarray, sigma: np.ndarray, convex: bool = False) -> np.ndarray:
        """W + Cᵀ diag(sigma) C (n, n); if `convex`, a positive semidefinite matrix in the place of W."""


@dataclass
class Solution:
    """Where the method stopped."""

    x: np.ndarray
    f: float
    z: np.ndarray
    """Multipliers (m,) of the inequalities, ≥ 0."""
    y: np.ndarray
    """Multipliers (k,) of the equalities."""
    error: float
    """The largest violation of the conditions of first order, scaled by the multipliers."""
    converged: bool
    message: str
    table: list[dict[str, float]] = field(default_factory=list)
    """A row for every iteration: cost, violation, error, barrier, length of the step, whether the Hessian was indefinite."""


def solve(
    at: Callable[[np.ndarray], Local],
    values: Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray]],
    x: np.ndarray,
    *,
    tolerance: float = 1e-9,
    iterations: int = 200,
    scale: float = 1.0,
    report: Callable[[int, float], None] | None = None,
) -> Solution:
    """The minimiser near x (n,). `at` gives a problem's derivatives at a point, `values` f, c and e alone.

    scale: the size of gradients that counts as one, for the test of stationarity. Ctrl-C returns what is there.
    """
    local = at(x)
    s = np.maximum(local.c, 1e-2 * np.maximum(1.0, np.abs(local.c)))
    mu = 0.1 * max(abs(local.f), 1e-3) / max(1, s.size) if s.size else 0.0
    z, y = mu / s, np.zeros(local.e.size)
    penalty, rows, message = 1.0, [], f"stopped after {iterations} iterations"
    converged, error, saddles = False, np.inf, 0
    try:
        for k in range(iterations):
            error = _error(local, s, z, y, 0.0, scale)
            rows.append({"cost": local.f, "violation": _violation(local, s), "error": error, "barrier": mu})
            if report is not None:
                report(k, error)
            if error < tolerance:
                converged, message = True, f"optimal: the conditions of first order hold to {error:.1e}"
                break
            while s.size and _error(local, s, z, y, mu, scale) < 10 * mu / scale and mu > 0.1 * tolerance * scale / max(1, s.size):
                mu = max(0.09 * tolerance * scale / max(1, s.size), min(0.2 * mu, mu**1.5))
            dx, dy, ds, dz, indefinite = _direction(local, s, z, y, mu, convex=saddles < PATIENCE)
            saddles += indefinite
            longest, longest_dual = _within(s, ds), _within(z, dz)
            penalty = max(penalty, 2.0 * float(np.abs(np.concatenate([y + dy, z + dz, [0.0]])).max()))
            alpha = _search(values, local, x, s, dx, ds, mu, penalty, longest)
            rows[-1] |= {"step": alpha, "indefinite": indefinite}
            if alpha is None or alpha * np.abs(dx).max() < 1e-15 * (1.0 + np.abs(x).max()):
                message = f"no further progress: the conditions of first order hold to {error:.1e}"
                converged = error < 100 * tolerance
                if alpha is None:
                    break
            x = x + alpha * dx
            local = at(x)
            s = _slacks(local.c, s + alpha * ds)
            y, z = y + alpha * dy, z + longest_dual * dz
            z = np.clip(z, mu / (1e10 * s), 1e10 * mu / s) if s.size else z
            if message.startswith("no further"):
                break
    except KeyboardInterrupt:
        message = "interrupted: this is the best so far"
    return Solution(x, local.f, z, y, error, converged, message, rows)


def _slacks(c: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Slacks of constraints that hold are what is left of them; of others what the step gave."""
    return np.where(c > 0, c, s)


def _violation(local: Local, s: np.ndarray) -> float:
    return float(np.abs(np.concatenate([local.c - s, local.e, [0.0]])).max())


def _error(local: Local, s: np.ndarray, z: np.ndarray, y: np.ndarray, mu: float, scale: float) -> float:
    stationary = local.gradient() - local.pull(z) - local.equality_jacobian().T @ y
    size = scale * max(1.0, float(np.abs(np.concatenate([z, y, [0.0]])).mean()) / max(scale, 1e-300))
    slack = float(np.abs(s * z - mu).max(initial=0.0)) / size
    return max(float(np.abs(stationary).max(initial=0.0)) / size, slack, _violation(local, s))


def _direction(
    local: Local, s: np.ndarray, z: np.ndarray, y: np.ndarray, mu: float, convex: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, bool]:
    sigma = z / s
    gap = local.c - s
    E = local.equality_jacobian()
    right = -(local.gradient() - local.pull(z) - E.T @ y) + local.pull(mu / s - z - sigma * gap)
    across, along = _bases(E, right.size)
    onto = across @ np.linalg.solve(E @ across, -local.e) if len(E) else np.zeros_like(right)
    H = local.hessian(z, y, sigma)
    inverse, indefinite = _inverse(along.T @ H @ along if len(E) else H), False
    if inverse is None:
        H = local.hessian(z, y, sigma, convex=True) if convex else H
        inverse, indefinite = _absolute_inverse(along.T @ H @ along if len(E) else H), True
    dx = onto + along @ inverse(along.T @ (right - H @ onto)) if len(E) else inverse(right)
    dy = np.linalg.solve((E @ across).T, across.T @ (H @ dx - right)) if len(E) else np.zeros(0)
    ds = local.push(dx) + gap
    return dx, dy, ds, mu / s - z - sigma * ds, indefinite


def _bases(E: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal bases of the row space (n, k) and of the null space (n, n - k) of E (k, n)."""
    if not len(E):
        return np.zeros((n, 0)), np.zeros((n, 0))
    whole = qr(E.T)[0]
    return whole[:, : len(E)], whole[:, len(E) :]


def _scaled(H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """H with a unit diagonal, and the factors (n,) by which rows and columns were multiplied."""
    size = np.abs(np.diag(H))
    root = 1.0 / np.sqrt(np.maximum(size, 1e-12 * size.max(initial=1e-300)))
    return H * np.outer(root, root), root


def _inverse(H: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
    """b ↦ H⁻¹ b, or None where H is not positive definite."""
    scaled, root = _scaled(H)
    try:
        factor = cho_factor(scaled, lower=True)
    except np.linalg.LinAlgError:
        return None
    return lambda b: root * cho_solve(factor, root * b)


def _absolute_inverse(H: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """b ↦ |H|⁻¹ b, with negative eigenvalues made positive and small ones bounded, so that every step goes downhill."""
    scaled, root = _scaled(H)
    values, vectors = eigh(scaled)
    strength = np.maximum(np.abs(values), 1e-9 * np.abs(values).max())
    return lambda b: root * (vectors @ ((vectors.T @ (root * b)) / strength))


def _within(x: np.ndarray, dx: np.ndarray) -> float:
    """The longest step, at most 1, that leaves x positive."""
    falling = dx < 0
    return float(min(1.0, (-0.995 * x[falling] / dx[falling]).min(initial=1.0)))


def _search(
    values: Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray]],
    local: Local,
    x: np.ndarray,
    s: np.ndarray,
    dx: np.ndarray,
    ds: np.ndarray,
    mu: float,
    penalty: float,
    longest: float,
) -> float | None:
    """The first step among longest, longest/2, … at which the merit function falls enough; None if there is none."""

    def merit(f: float, c: np.ndarray, e: np.ndarray, s: np.ndarray) -> float:
        barrier = -mu * float(np.log(s).sum()) if s.size else 0.0
        return f + barrier + penalty * float(np.abs(c - s).sum() + np.abs(e).sum())

    now = merit(local.f, local.c, local.e, s)
    violation = float(np.abs(local.c - s).sum() + np.abs(local.e).sum())
    slope = float(local.gradient() @ dx) - (mu * float((ds / s).sum()) if s.size else 0.0) - penalty * violation
    alpha = longest
    noise = 1e-13 * (abs(now) + 1.0)
    for _ in range(40):
        f, c, e = values(x + alpha * dx)
        if np.isfinite(f):
            held = (c > 0) | (local.c <= 0)  # what holds goes on to hold
            after = merit(f, c, e, _slacks(c, s + alpha * ds))
            if held.all() and after <= now + 1e-4 * alpha * min(slope, 0.0) + noise:
                return alpha
        alpha *= 0.5
    return None
