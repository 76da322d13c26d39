"""Maximum posterior estimates under a prior of one's choice and bounds.

entropic     γ D(Σ ‖ Σ₀) of Lee, Wensing & Park (2019), and the reference of it: does not depend on frames or units, convex
riemannian   γ/2 d(Σ, Σ₀)², d the affine-invariant distance |log λ(Σ₀⁻¹ Σ)|: does not depend on frames or units, not convex in φ
euclidean    γ/2 |φ - φ₀|², in SI units: as ridge regression; depends on frames and units

To second order at Σ₀ the first two are γ/2 |Σ₀^-½ dΣ Σ₀^-½|². Where a prior does not keep a body possible, a barrier does. The weight γ is
the one with which held-back stretches are predicted best, unless it is given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arguments import one_of
from ..errors import CoadjointError
from ..lie import inertia
from ..words import short
from .consistency import ConsistentFit, log_determinants
from .equations import Equations
from .interior import BASIS, Program
from .model import BARRIER, GAMMAS, Choice, Collapsed, Fit, Fitter

PRIORS = ("entropic", "riemannian", "euclidean")
MOST = float(np.finfo(float).max)
"""The largest number."""


def checked_prior(prior: Any, weight: Any) -> tuple[str, float | None]:
    """The kind of a prior, and its weight or None."""
    given = weight if isinstance(prior, str) or weight is not None else prior
    if isinstance(prior, str):
        one_of("auto", *PRIORS)(prior, "prior")
    elif not isinstance(prior, int | float) or weight is not None:
        raise CoadjointError(f"prior is {short(prior)}; choose among {', '.join(map(repr, PRIORS))}, and weight= for its weight.")
    if given is not None and not (isinstance(given, int | float) and 0 < given <= MOST):
        raise CoadjointError(f"the weight of the prior is {short(given)}; expected a positive number, or none to have it chosen.")
    return (prior if isinstance(prior, str) and prior != "auto" else "entropic"), None if given is None else float(given)


@dataclass
class PhysicalFit(ConsistentFit):
    """The minimum of ½ xᵀ A x - bᵀ x + γ P(φ) - μ (Σ log x_k + Σ log(C x - d) + log det Σ), the last unless P is the entropic prior."""

    kind: str = "entropic"
    C: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    d: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.C = self.C if len(self.d) else np.zeros((0, self.A.shape[0]))
        self._whiten = np.linalg.inv(np.linalg.cholesky(np.asarray(inertia.pseudo(self.prior))))
        self._forms = self._whiten[:, None] @ BASIS @ np.swapaxes(self._whiten, 1, 2)[:, None]

    def value(self, x: np.ndarray, gamma: float, mu: float, centred: bool = True) -> float:
        slack = self.C @ x - self.d
        if slack.min(initial=1.0) <= 0:
            return np.inf
        total = -mu * float(np.log(slack).sum()) if len(slack) else 0.0
        if self.kind == "entropic":
            return total + super().value(x, gamma, mu, centred)
        phi = self.inertias(x)
        log = log_determinants(phi)
        if not np.isfinite(log).all() or (len(self.positive) and x[self.positive].min() <= 0):
            return np.inf
        total += float(0.5 * x @ self.A @ x - self.b @ x) - mu * float(log.sum()) - mu * float(np.log(x[self.positive]).sum())
        if self.kind == "euclidean":
            return total + 0.5 * gamma * float(((phi - self.prior) ** 2).sum())
        eigenvalues = np.linalg.eigvalsh(self._relative(phi))
        return total + 0.5 * gamma * float((np.log(eigenvalues) ** 2).sum())

    def derivatives(self, x: np.ndarray, gamma: float, mu: float, centred: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and a positive definite Hessian: of the distance, which is not convex, its curvature where that is positive."""
        if self.kind == "entropic":
            g, H = super().derivatives(x, gamma, mu, centred)
        else:
            barrier = ConsistentFit(self.A, self.b, self.K, self.prior, self.positive)
            g, H = barrier.derivatives(x, mu, mu, centred=False)
            first, second = self._euclidean(x) if self.kind == "euclidean" else self._riemannian(x)
            g = g + gamma * (first.reshape(-1) @ self.K)
            H = H + gamma * (np.swapaxes(self._blocks, 1, 2) @ second @ self._blocks).sum(0)
        if len(self.d):
            slack = self.C @ x - self.d
            g, H = g - mu * (1.0 / slack) @ self.C, H + mu * (self.C.T / slack**2) @ self.C
        return g, H

    def _relative(self, phi: np.ndarray) -> np.ndarray:
        """L₀⁻¹ Σ L₀⁻ᵀ (n, 4, 4)."""
        return np.asarray(self._whiten @ np.asarray(inertia.pseudo(phi)) @ np.swapaxes(self._whiten, 1, 2))

    def _euclidean(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.inertias(x) - self.prior, np.broadcast_to(np.eye(10), (len(self.prior), 10, 10))

    def _riemannian(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂ ½ d² = tr(U (log λ / λ) Uᵀ dW); the second derivative has divided differences of log λ / λ, here none below a positive one."""
        values, U = np.linalg.eigh(self._relative(self.inertias(x)))
        f = np.log(values) / values
        turned = np.swapaxes(U, 1, 2)[:, None] @ self._forms @ U[:, None]
        first = np.einsum("lkii,li->lk", turned, f)
        a, b = values[:, :, None], values[:, None, :]
        near = np.abs(a - b) < 1e-6 * (a + b)
        middle = 0.5 * (a + b)
        slope = np.where(near, (1.0 - np.log(middle)) / middle**2, (f[:, :, None] - f[:, None, :]) / np.where(near, 1.0, a - b))
        slope = np.maximum(slope, 0.1 / (a * b))
        second = np.einsum("lkij,lij,lmij->lkm", turned, slope, turned)
        return first, second


def feasible_start(robot_name: str, x: np.ndarray, K: np.ndarray, positive: np.ndarray, C: np.ndarray, d: np.ndarray) -> np.ndarray:
    """x moved inside of the bounds, if it is not."""
    if not len(d) or (C @ x - d).min() > 0:
        return x
    scale = np.maximum(np.abs(x), 1e-3)
    rows = np.zeros((len(positive), len(x)))
    rows[np.arange(len(positive)), positive] = 1.0
    program = Program(np.diag(scale**-2), x / scale**2, K, C=np.concatenate([C, rows]), d=np.concatenate([d, np.zeros(len(rows))]))
    for gap in (1e-1, 1e-3, 1e-6):
        found = program.solve(x, gap)
        if (C @ found - d).min() > 0 and np.isfinite(log_determinants((K @ found).reshape(-1, 10))).all():
            return found
    raise CoadjointError(f"no possible bodies of robot {robot_name!r} fulfil the bounds together; widen them.")


@dataclass
class Posterior:
    """The estimate of a fitter's model under a prior and bounds."""

    fitter: Fitter
    choice: Choice
    kind: str
    C: np.ndarray
    """(m, 10 n_links)."""
    d: np.ndarray

    def minimum(self, A: np.ndarray, b: np.ndarray, x: np.ndarray, gamma: float) -> np.ndarray:
        """The maximum posterior for the log-likelihood -½ xᵀAx + bᵀx."""
        K, positive = self.fitter.K(self.choice), self.fitter.positive(self.choice)
        C = self.C @ K
        x = feasible_start(self.fitter.s.robot.name, x, K, positive, C, self.d)
        problem = PhysicalFit(A, b, K, self.fitter.prior, positive, kind=self.kind, C=C, d=self.d)
        return problem.followed(x, gamma, BARRIER)

    def solve(self, eq: Equations, fit: Fit, gamma: float | None) -> Fit:
        """The fit, its weights iterated; γ by held-back stretches if it is None."""
        if gamma is None:
            gamma = self.by_held_back(eq, fit)
        fitter, choice, sums = self.fitter, self.choice, eq.total()
        x, tilt, gains, variance = fit.x, fit.tilt, fit.gains, fit.variance
        for _ in range(12):
            made = fitter.collapse(sums, tilt, x[: fitter.s.rank], choice.tilt)
            A, b = fitter.weighted(made, choice, tilt, gains, variance)
            x, tilt, gains = fitter.absorbed(choice, self.minimum(A, b, x, gamma), tilt, gains)
            new = fitter.mean_squares(sums, choice, x, tilt, gains)
            done = np.abs(np.log(new / variance)).max() < 1e-4
            variance = new
            if done:
                break
        return fitter.fit(choice, x, tilt, gains, gamma, variance)

    def by_held_back(self, eq: Equations, fit: Fit) -> float:
        """The weight with which blocks are most likely by fits to the others, weights of joints being those of a fit."""
        fitter, choice = self.fitter, self.choice
        own = fitter.collapse((eq.G, eq.c, eq.yy), fit.tilt, fit.x[: fitter.s.rank], choice.tilt)
        rest = Collapsed(*(x.sum(0) - x for x in own))
        A, b = fitter.weighted(rest, choice, fit.tilt, fit.gains, fit.variance)
        blocks = fitter.assemble(own, choice, fit.gains)
        found = []
        points = np.array([fit.x] * len(eq.G))
        for gamma in GAMMAS:
            for fold in range(len(eq.G)):
                points[fold] = self.minimum(A[fold], b[fold], points[fold], gamma)
            total = 0.0
            for j, (index, G, c, yy) in enumerate(blocks):
                z = points[:, index]
                squares = yy - 2.0 * (c * z).sum(-1) + ((G @ z[..., None])[..., 0] * z).sum(-1)
                total += float(squares.sum() / fit.variance[j])
            found.append((total, gamma))
        return min(found)[1]
