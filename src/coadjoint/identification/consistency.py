"""Physically consistent inertias: pseudo-inertias that are positive definite, by a barrier method on 4×4 blocks.

The pseudo-inertia Σ = ∫ (x, 1)(x, 1)ᵀ dm of a possible body is positive definite, and it is linear in the ten parameters φ. The divergence

    D(Σ ‖ Σ₀) = tr(Σ₀⁻¹ Σ) - log det(Σ₀⁻¹ Σ) - 4

of Lee, Wensing & Park (2019) does not depend on frames or units, grows without bound at the boundary, and is convex in φ. So a quadratic
plus γ D is minimised by Newton steps that never leave the possible bodies, and exp(-γ D) is a Wishart density, whose integral is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.special import multigammaln

from ..errors import CoadjointError
from ..lie import inertia
from .interior import BASIS as _BASIS
from .interior import Program

FLOOR = 1e-4
"""The least second moment of a projected body, relative to its largest."""


def pseudo(parameters: np.ndarray) -> np.ndarray:
    """Σ (..., 4, 4) of ten parameters (..., 10), as one product."""
    return np.asarray(parameters @ _BASIS.reshape(10, 16)).reshape(*np.shape(parameters)[:-1], 4, 4)


def log_determinants(parameters: np.ndarray) -> np.ndarray:
    """log det Σ (...) of ten parameters (..., 10); -inf where the body is not possible."""
    Sigma = pseudo(parameters)
    try:
        L = np.linalg.cholesky(Sigma)
    except np.linalg.LinAlgError:
        return np.full(Sigma.shape[:-2], -np.inf)
    return np.asarray(2.0 * np.log(np.einsum("...ii->...i", L)).sum(-1))


def divergence(parameters: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """D(Σ ‖ Σ₀) (...) of ten parameters (..., 10) from those of a prior (..., 10)."""
    inverse = np.linalg.inv(np.asarray(inertia.pseudo(prior)))
    trace = np.einsum("...ij,...ji->...", inverse, np.asarray(inertia.pseudo(parameters)))
    return np.asarray(trace - log_determinants(parameters) + log_determinants(prior) - 4.0)


def geodesic_distance(parameters: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """The affine-invariant Riemannian distance (...) of two pseudo-inertias: |log of the eigenvalues of Σ₀⁻¹ Σ|."""
    L = np.linalg.cholesky(np.asarray(inertia.pseudo(prior)))
    W = np.linalg.solve(L, np.asarray(inertia.pseudo(parameters)))
    eigenvalues = np.linalg.eigvalsh(np.linalg.solve(L, np.swapaxes(W, -1, -2)))
    return np.asarray(np.sqrt((np.log(eigenvalues) ** 2).sum(-1)))


def consistent(parameters: np.ndarray, names: Sequence[str] = ()) -> tuple[np.ndarray, list[str]]:
    """Ten parameters (n, 10) moved to possible bodies where they are not, and a note for each that was.

    The second moments about the centre of mass keep their axes, and none is less than FLOOR times the largest. A mass that is not positive
    (a least-squares result such as -4e-17) becomes 0, and all of the link with it.
    """
    out, notes = np.array(parameters, dtype=float).reshape(-1, 10), []
    total = max(float(np.abs(out[:, 0]).sum()), 1e-300)
    for i, phi in enumerate(out):
        name = names[i] if len(names) else f"link {i + 1}"
        if not np.isfinite(phi).all():
            raise CoadjointError(f"{name}: a parameter is not a finite number: {phi.tolist()}")
        if phi[0] <= 1e-12 * total:
            if phi.any():
                notes.append(f"{name}: the mass {phi[0]:.3g} is not positive; the link is taken as massless")
            out[i] = 0.0
            continue
        mass, com, about = (np.asarray(x) for x in inertia.to_body(phi))
        second = 0.5 * np.trace(about) * np.eye(3) - about
        values, axes = np.linalg.eigh(second)
        least = FLOOR * max(values[-1], 0.0)
        if values[0] >= 1e-12 * abs(values[-1]) and values[-1] > 0:
            continue
        if values[-1] <= 0:  # no extent at all: a ball as large as the centre of mass is far away
            least = FLOOR * max(float(com @ com), 1e-4) * float(mass)
        moved = np.maximum(values, least)
        second = axes * moved @ axes.T
        out[i] = np.asarray(inertia.from_body(mass, com, np.trace(second) * np.eye(3) - second))
        notes.append(f"{name}: no body has these inertias (second moment {values[0]:.3g}); the nearest possible ones are used")
    return out, notes


FAR = 10.0
"""The ratio of weights from which on a primal-dual method goes to the minimum: along thin bodies the steps of Newton's would be short."""


@dataclass
class ConsistentFit:
    """The minimum of ½ xᵀ A x - bᵀ x + Σ γ_l D(Σ_l ‖ Σ₀_l) - μ Σ log x_k over x, where φ = K x and k runs through `positive`."""

    A: np.ndarray
    b: np.ndarray
    K: np.ndarray
    """(10 n, p): the inertial parameters of n links that have mass."""
    prior: np.ndarray
    """(n, 10)."""
    positive: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    steps: int = 0

    def __post_init__(self) -> None:
        self.prior = np.asarray(self.prior, dtype=float).reshape(-1, 10)
        n = len(self.prior)
        self._inverse = np.linalg.inv(pseudo(self.prior)) if n else np.zeros((0, 4, 4))
        self._log = log_determinants(self.prior) if n else np.zeros(0)
        self._trace = np.einsum("kij,lji->lk", _BASIS, self._inverse)
        self._blocks = self.K.reshape(n, 10, -1)

    def inertias(self, x: np.ndarray) -> np.ndarray:
        """(n, 10)."""
        return np.asarray(self.K @ x).reshape(-1, 10)

    def value(self, x: np.ndarray, gamma: float, mu: float, centred: bool = True) -> float:
        """The objective; infinite outside of the possible bodies. Not `centred`: only the barrier -γ Σ log det Σ."""
        if len(self.positive) and x[self.positive].min() <= 0:
            return np.inf
        phi = self.inertias(x)
        D = -log_determinants(phi)
        if centred:
            D = D + self._log + (self._trace * phi).sum(-1) - 4.0
        total = 0.5 * x @ self.A @ x - self.b @ x + gamma * D.sum()
        return float(total - mu * np.log(x[self.positive]).sum()) if len(self.positive) else float(total)

    def derivatives(self, x: np.ndarray, gamma: float, mu: float, centred: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian: ∂ log det = tr(Σ⁻¹ B_k), ∂² = -tr(Σ⁻¹ B_k Σ⁻¹ B_l)."""
        g, H = self.A @ x - self.b, self.A.copy()
        if len(self.prior):
            C = np.linalg.inv(pseudo(self.inertias(x)))[:, None] @ _BASIS
            first = -np.trace(C, axis1=-2, axis2=-1) + (self._trace if centred else 0.0)
            flat = C.reshape(len(C), 10, 16)
            second = flat @ np.swapaxes(np.swapaxes(C, -1, -2).reshape(len(C), 10, 16), -1, -2)
            g += gamma * (first.reshape(-1) @ self.K)
            H += gamma * (self.K.T @ (second @ self._blocks).reshape(self.K.shape))
        k = self.positive
        if len(k):
            g[k] -= mu / x[k]
            H[k, k] += mu / x[k] ** 2
        return g, H

    def newton(
        self, x: np.ndarray, gamma: float, mu: float, centred: bool = True, tolerance: float = 1e-12, most: int = 60
    ) -> np.ndarray:
        """The minimum, by damped Newton steps from x, a possible point."""
        old = self.value(x, gamma, mu, centred)
        for _ in range(most):
            g, H = self.derivatives(x, gamma, mu, centred)
            step = -_solve(H, g)
            slope = float(g @ step)
            self.steps += 1
            if -slope < tolerance * (1.0 + abs(gamma)):
                return x + step if np.isfinite(self.value(x + step, gamma, mu, centred)) else x
            t, slack = 1.0, 1e-13 * (abs(old) + abs(float(self.b @ x)))
            while not (new := self.value(x + t * step, gamma, mu, centred)) <= old + 0.2 * t * slope + slack:
                t *= 0.5
                if t < 1e-10:
                    return x
            x, old = x + t * step, new
        return x

    def followed(self, x: np.ndarray, gamma: float, mu: float, tolerance: float = 1e-8) -> np.ndarray:
        """The minimum, the weight falling from one at which x is nearly the minimum: far from it single Newton steps would be short."""
        g, H = self.derivatives(x, gamma, mu)
        weight = float(g @ _solve(H, g)) / (4 * max(len(self.prior), 1))
        if weight > FAR * gamma > 0:
            rows = np.eye(len(x))[self.positive]
            linear = self.b - gamma * (self._trace.reshape(-1) @ self.K)
            near = Program(self.A, linear, self.K, C=rows, d=np.zeros(len(rows))).solve(x, least=gamma)
            if self.value(near, gamma, mu) < self.value(x, gamma, mu):
                return self.newton(near, gamma, mu, tolerance=tolerance)
        while weight > gamma:
            x = self.newton(x, weight, max(mu, 1e-2 * weight), tolerance=0.05, most=8)
            weight *= 0.1
        return self.newton(x, gamma, mu, tolerance=tolerance)

    def constrained(self, x: np.ndarray, gap: float = 1e-8) -> np.ndarray:
        """The minimum of the quadratic alone under Σ_l ⪰ 0 and x_k ≥ 0, its value within `gap`, relatively."""
        rows = np.zeros((len(self.positive), len(x)))
        rows[np.arange(len(rows)), self.positive] = 1.0
        return Program(self.A, self.b, self.K, C=rows, d=np.zeros(len(rows))).solve(x, gap)

    def log_evidence(self, x: np.ndarray, gamma: float, mu: float) -> float:
        """log ∫ exp(-½ xᵀAx + bᵀx) p(x | γ) dx by Laplace's method at the minimum x, but for terms without γ."""
        _, H = self.derivatives(x, gamma, mu)
        scale = 1.0 / np.sqrt(np.diag(H).clip(1e-300))
        _, log = np.linalg.slogdet(H * scale[:, None] * scale)
        log -= 2.0 * np.log(scale).sum()
        return float(-self.value(x, gamma, mu) - 0.5 * log - len(self.prior) * _log_normaliser(gamma))


def _log_normaliser(gamma: float) -> float:
    """log ∫ exp(-γ D(Σ ‖ Σ₀)) dΣ over 4×4 matrices, but for a power of det Σ₀: that of a Wishart density with 2γ + 5 degrees of freedom."""
    return float(4.0 * gamma - 4.0 * (gamma + 2.5) * np.log(gamma) + multigammaln(gamma + 2.5, 4))


def _solve(H: np.ndarray, g: np.ndarray) -> np.ndarray:
    """H⁻¹ g of a symmetric, nearly positive definite H, whose columns are scaled to one."""
    scale = 1.0 / np.sqrt(np.diag(H).clip(1e-300))
    S = H * scale[:, None] * scale
    for ridge in (0.0, 1e-13, 1e-11, 1e-9, 1e-6):
        L, failed = dpotrf(S + ridge * np.eye(len(S)) if ridge else S, lower=1)
        if not failed:
            return np.asarray(scale * dpotrs(L, scale * g, lower=1)[0])
    return np.asarray(scale * np.linalg.lstsq(S, scale * g, rcond=None)[0])
