"""The optimiser of exciting motions: maximal log det of information under limits, by an augmented Lagrangian with exact gradients.

Of A = A₀ + ∫ Xᵀ W X dt, X being the base regressor along the motion,

    d log det A = 2 ∫ tr(A⁻¹ Xᵀ W dX) dt,

so the gradient by the motion is the transposed derivative of X, applied to 2 W X A⁻¹ dt: one native `vjp` by q, v and a. As q, v and a are
linear in the coefficients, three products with the basis give the gradient by these. The inner problems are solved by L-BFGS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize

from .excitation_basis import Basis
from .excitation_limits import Limits, smooth_friction_rate

MARGIN = 0.003
"""Least part of a limit that a design keeps free at its samples; more where the motion goes farther between them."""
OUTER, INNER = 15, 60
"""Most updates of multipliers, and iterations between them."""
DENSE = 10
"""Limits are checked at so many times for every sample."""
REGULAR = 1e-9
"""Part of the mean information that is added, so that a motion which shows too little has a gradient all the same."""

Rows = dict[str, np.ndarray]
"""Values of limits by kind: position, velocity, acceleration, torque, distance."""


@dataclass(frozen=True)
class Design:
    """One design problem, sampled at times t (N,) with quadrature weights."""

    limits: Limits
    basis: Basis
    center: np.ndarray
    """The start, or the middle of the motion (nv,)."""
    regressor: Callable[..., np.ndarray]
    regressor_vjp: Callable[..., Any]
    weight: np.ndarray
    """1/σ² of every force (nv,)."""
    scale: np.ndarray
    """(r,): base parameters are measured in units of 1/scale, which changes log det by a constant only."""
    known: np.ndarray
    """(r, r): information of logs, in these units."""
    normalized: bool
    """The criterion is log det of the correlation matrix of the columns, not of the information."""
    t: np.ndarray
    dt: np.ndarray

    @cached_property
    def phi(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The basis at the samples."""
        return self.basis.at(self.t)

    def motion(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v, a (N, nv) of the coefficients x (free · nv,), which are measured in half ranges of the joints."""
        c = x.reshape(-1, len(self.center)) * self.half
        p, d, dd = self.phi
        return self.center + p @ c, d @ c, dd @ c

    @property
    def half(self) -> np.ndarray:
        result: np.ndarray = 0.5 * (self.limits.upper - self.limits.lower)
        return result

    def pulled_back(self, dq: np.ndarray, dv: np.ndarray, da: np.ndarray) -> np.ndarray:
        """The gradient by x of a function whose gradients by q, v and a (N, nv) are given."""
        p, d, dd = self.phi
        result: np.ndarray = ((p.T @ dq + d.T @ dv + dd.T @ da) * self.half).reshape(-1)
        return result

    def information(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A (r, r) and the weighted, scaled X (N, nv, r)."""
        X = self.regressor(q, v, a) * self.scale
        flat = X * np.sqrt(self.weight[:, None] * self.dt[:, None, None])
        # Products of small matrices, one after the other: threads of a large one would cost more than they gain.
        return self.known + (np.swapaxes(flat, -1, -2) @ flat).sum(0), X

    def criterion(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """-log det / r and its gradient by x."""
        q, v, a = self.motion(x)
        value, (dq, dv, da) = self.objective(q, v, a)
        return value, self.pulled_back(dq, dv, da)

    def objective(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[float, tuple[np.ndarray, ...]]:
        """-log det / r, and its gradients by q, v and a (N, nv)."""
        A, X = self.information(q, v, a)
        r = len(A)
        regular = REGULAR * max(float(np.trace(A)) / r, 1e-12)
        value = np.linalg.slogdet(A + regular * np.eye(r))[1]
        G = np.linalg.inv(A + regular * np.eye(r))
        G = G + np.eye(r) * (REGULAR / r * np.trace(G))  # the regular part follows the trace of A
        if self.normalized:
            size = np.diag(A)
            value -= np.log(size).sum()
            G = G - np.diag(1.0 / size)
        weights = (-2.0 / r) * (X @ G) * self.scale * (self.weight[:, None] * self.dt[:, None, None])
        return -value / r, self.regressor_vjp(q, v, a, weights)

    # --- limits as rows g ≤ 0, and their augmented Lagrangian

    def rows(self, q: np.ndarray, v: np.ndarray, a: np.ndarray, margins: dict[str, float]) -> dict[str, np.ndarray]:
        """Rows g by kind, two-sided ones twice (upper, lower), with a part of each limit kept free."""
        L = self.limits
        signed = L.signed(q, v, a)
        found = {kind: np.concatenate([y, -y], axis=-1) - (1.0 - margins.get(kind, MARGIN)) for kind, y in signed.items()}
        if L.distances is not None:
            found["distance"] = (L.clearance - L.distances(q)) / L.scale + margins.get("distance", MARGIN)
        return found

    @cached_property
    def dense(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The basis at the times at which limits are checked."""
        return self.basis.at(np.linspace(0.0, self.basis.duration, DENSE * len(self.t) + 1))

    def dense_motion(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v, a at the times at which limits are checked."""
        c = x.reshape(-1, len(self.center)) * self.half
        p, d, dd = self.dense
        return self.center + p @ c, d @ c, dd @ c

    def penalty(self, q: Any, v: Any, a: Any, multipliers: Rows, margins: dict[str, float], mu: float) -> Any:
        """Σ (max(0, λ + μ g)² - λ²) / 2μ · dt/T, and its gradients by q, v and a."""
        L, share, total = self.limits, (self.dt / self.dt.sum())[:, None], 0.0
        dq, dv, da = np.zeros_like(q), np.zeros_like(q), np.zeros_like(q)
        for kind, g in self.rows(q, v, a, margins).items():
            pull = np.maximum(0.0, multipliers[kind] + mu * g)
            total += float((share * (pull**2 - multipliers[kind] ** 2)).sum()) / (2 * mu)
            pull = share * pull
            if not pull.any():
                continue
            n = q.shape[-1]
            net = pull[:, :n] - pull[:, n:] if kind != "distance" else pull
            if kind == "position":
                dq += net / self.half
            elif kind == "velocity":
                dv += net / L.velocity
            elif kind == "acceleration":
                da += net / L.acceleration
            elif kind == "torque":
                parts = L.torque_vjp(q, v, a, net / L.effort)
                dq, dv, da = dq + parts[0], dv + parts[1], da + parts[2]
                dv += ((net / L.effort)[:, None, :] @ smooth_friction_rate(L.robot, v, L.robot.damping, L.robot.friction))[:, 0]
            else:
                dq -= L.distances_vjp(q, net / L.scale)
        return total, (dq, dv, da)

    def lagrangian(self, x: np.ndarray, multipliers: Rows, margins: dict[str, float], mu: float) -> tuple[float, np.ndarray]:
        """The augmented Lagrangian and its gradient by x."""
        q, v, a = self.motion(x)
        f, by_f = self.objective(q, v, a)
        p, by_p = self.penalty(q, v, a, multipliers, margins, mu)
        return f + p, self.pulled_back(*(s + t for s, t in zip(by_f, by_p, strict=True)))

    def solve(self, x: np.ndarray, report: Callable[[float], None] | None = None) -> np.ndarray:
        """A local optimum from x, feasible at dense times unless the search ran out of turns."""
        margins: dict[str, float] = {}
        multipliers = {kind: np.zeros_like(g) for kind, g in self.rows(*self.motion(x), margins).items()}
        mu, before = 40.0, np.inf
        for turn in range(OUTER):
            options = {"maxiter": INNER, "maxcor": 20}
            x = minimize(self.lagrangian, x, (multipliers, margins, mu), jac=True, method="L-BFGS-B", options=options).x
            rows = self.rows(*self.motion(x), margins)
            checked = {kind: float(g.max()) for kind, g in self.limits.rows(*self.dense_motion(x)).items()}
            multipliers = {kind: np.maximum(0.0, multipliers[kind] + mu * g) for kind, g in rows.items()}
            if report:
                report((turn + 1) / OUTER)
            worst = max(float(g.max()) for g in rows.values())
            if max(checked.values()) <= 0 and worst < MARGIN and turn >= 2:
                break
            for kind, g in rows.items():  # how much farther the motion goes between samples
                beyond = checked[kind] - (float(g.max()) - margins.get(kind, MARGIN))
                margins[kind] = max(MARGIN, 1.2 * beyond)
            mu, before = (mu * 4 if worst > 0.4 * before else mu), worst
        return x
