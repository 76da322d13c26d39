"""The fit: Gauss-Newton on all unknowns with priors, a robust loss by reweighting, and what it says of held-back configurations.

Minimised is Σₙ ρ(rₙ) + Σₖ (θₖ/σₖ)² with rₙ a configuration's residuals over their scale and ρ that of Student's t: a configuration far off
counts little, whichever of its numbers are off. Scale and degrees of freedom are estimated with the rest; ν = ∞ is least squares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from ..arrays import Array
from ..lie import se3
from .chain import Chain
from .measured import Measured
from .terms import PRIOR, Terms

FREEDOMS = (1.5, 3.0, 6.0, 15.0, np.inf)
"""Degrees of freedom among which the most likely are taken."""

FINEST = 1e-8
"""The smallest scale of residuals [rad, m]: below it rounding would be taken for information."""

APART = 1e-3
"""The least ratio of two scales: steps to a fit of which one part is exact and the other far off would be along a curve, and tiny."""

REST = 1e-3
"""The fall of the cost, of which 1 is a standard deviation squared, below which a step is the last."""

UNKNOWN = 1.0
"""The unit [rad, m] of steps of base, tool and points. They have no prior: a step is reckoned from where they are."""

LARGE = 1e12
"""Above this AᵀA loses the prior's 1 to rounding, and A itself is factored."""


@dataclass(frozen=True, eq=False)
class State:
    """All unknowns: screws' displacements, coefficients of terms, base, and those of the measurement."""

    eta: Array
    """Coordinates (Σ 4 or 2,) along the chain's directions."""
    coefficients: Array
    base: Array
    measured: Measured

    def twists(self, chain: Chain) -> Array:
        """η (n, 6)."""
        found, at = [], 0
        for directions in chain.directions:
            found.append(self.eta[at : at + len(directions)] @ directions)
            at += len(directions)
        return np.array(found)

    def moved(self, step: Array) -> State:
        a, b = len(self.eta), len(self.eta) + len(self.coefficients)
        base, rest = self.base, step[b:]
        if self.measured.has_base:
            base, rest = base @ se3.exp(rest[:6]), rest[6:]
        return State(self.eta + step[:a], self.coefficients + step[a:b], base, self.measured.moved(rest))


@dataclass(frozen=True, eq=False)
class Problem:
    """Configurations q (N, nq) with the terms' functions at them."""

    chain: Chain
    terms: Terms
    q: Array
    functions: Array

    @property
    def own(self) -> Array:
        return self.q[:, list(self.chain.coordinates)]

    def delta(self, state: State) -> Array:
        """δ (N, n)."""
        delta = np.zeros((len(self.q), len(self.chain.links)))
        for i in range(delta.shape[1]):
            mine = self.terms.joint == i
            delta[:, i] = self.functions[:, mine] @ state.coefficients[mine]
        return delta

    def poses(self, state: State) -> Array:
        return self.chain.poses(self.own, state.twists(self.chain), self.delta(state), state.base)[2]

    def linearised(self, state: State) -> tuple[Array, Array]:
        """Residuals (N, d) and the prediction's Jacobian (N, d, m) by eta, coefficients, base and the measurement's unknowns."""
        T, by_eta, by_delta, by_base = self.chain.jacobian(self.own, state.twists(self.chain), self.delta(state), state.base)
        by_term = by_delta[:, :, self.terms.joint] * self.functions[:, None]
        parts = [by_eta, by_term, by_base] if state.measured.has_base else [by_eta, by_term]
        twist, own = state.measured.derivatives(T)
        return state.measured.residual(T), np.concatenate([twist @ np.concatenate(parts, axis=2), own], axis=2)

    def names(self, state: State) -> tuple[str, ...]:
        geometry = [
            f"{name} {what} {k}"
            for name, d in zip(self.chain.names, self.chain.directions, strict=True)
            for what, k in _kinds(len(d))
        ]
        base = [f"base {x}" for x in ("wx", "wy", "wz", "x", "y", "z")] if state.measured.has_base else []
        return (*geometry, *self.terms.names, *base, *state.measured.names)

    def deviations(self, state: State) -> Array:
        geometry = [PRIOR[what] for d in self.chain.directions for what, _ in _kinds(len(d))]
        rest = (6 if state.measured.has_base else 0) + len(state.measured.names)
        return np.concatenate([geometry, self.terms.deviations(), np.full(rest, UNKNOWN)])

    def displacements(self, state: State) -> Array:
        """The unknowns that have a prior at zero, and zeros."""
        rest = (6 if state.measured.has_base else 0) + len(state.measured.names)
        return np.concatenate([state.eta, state.coefficients, np.zeros(rest)])


def _kinds(size: int) -> list[tuple[str, int]]:
    return [("tilt", 1), ("tilt", 2), ("shift", 1), ("shift", 2)][:size]


@dataclass(frozen=True, eq=False)
class Fit:
    """A state, and how well the configurations agree with it."""

    problem: Problem
    state: State
    residual: Array
    jacobian: Array
    """(N, d, m), columns times the prior deviations."""
    weights: Array
    """(N,): 1 for a usual configuration, small for one far off."""
    scale: Array
    """(d,) of the residuals."""
    freedoms: float
    iterations: int
    converged: bool

    @property
    def scaled(self) -> tuple[Array, Array]:
        """Jacobian and residuals over their scale, times the root of the weights."""
        root = np.sqrt(self.weights)[:, None] / self.scale
        return self.jacobian * root[..., None], self.residual * root


def fit(problem: Problem, state: State, loss: str = "robust", most: int = 30) -> Fit:
    """The most likely unknowns, from a state nearby: Gauss-Newton steps, within each of which weights and scales come to rest."""
    deviations, groups = problem.deviations(state), state.measured.groups
    weights, freedoms, damping = np.ones(len(problem.q)), np.inf, 0.0
    r, J = problem.linearised(state)
    J *= deviations
    scale = scales(r, weights, groups, len(deviations))
    robust, since = False, 0
    for k in range(1, most + 1):
        x = problem.displacements(state) / deviations
        since += robust
        step, fall, weights, scale, freedoms = _reweighted(
            r, J, x, weights, groups, damping, robust, freedoms if since > 2 else None
        )
        root = np.sqrt(weights)[:, None] / scale
        trial = state.moved(deviations * step)
        new_r = trial.measured.residual(problem.poses(trial))
        if not _cost(new_r * root, problem.displacements(trial) / deviations) <= _cost(r * root, x) * (1 + 1e-9) + 1e-9:
            damping = max(10.0 * damping, 1e-6 * float(np.max(np.sum((J * root[..., None]) ** 2, axis=(0, 1)))))
            if k < most:
                continue
        state, damping = trial, 0.0 if damping < 1.0 else 0.1 * damping
        r, J = problem.linearised(state)
        J *= deviations
        if fall < REST and damping == 0.0 and (robust or loss != "robust"):
            return Fit(problem, state, r, J, weights, scale, float(freedoms), k, True)
        # weights are for a fit that is near its end: before it everything is far off
        robust = robust or (loss == "robust" and fall < 0.1 * r.size)
    return Fit(problem, state, r, J, weights, scale, float(freedoms), most, False)


def _reweighted(
    r: Array,
    J: Array,
    x: Array,
    weights: Array,
    groups: Array,
    damping: float,
    robust: bool,
    freedoms: float | None,
) -> tuple[Array, float, Array, Array, float]:
    """The step (m,) of the linear problem in units of prior deviations, the fall of its cost, and weights, scales, freedoms at its end."""
    flat = J.reshape(-1, J.shape[2])
    step, now = np.zeros(J.shape[2]), r
    nu, total = np.inf if freedoms is None else freedoms, 0.0
    for turn in range(12 if robust else 1):
        scale = scales(now, weights, groups, J.shape[2])
        if robust and np.all(scale > FINEST):
            weights, nu = _weights(now / scale, freedoms if turn < 2 else nu)
            scale = scales(now, weights, groups, J.shape[2])
        root = (np.sqrt(weights)[:, None] / scale).ravel()
        A = flat * root[:, None]
        g = A.T @ (now.ravel() * root) - (x + step)
        more = cho_solve((upper(A, 1.0 + damping), False), g, check_finite=False)
        step = step + more
        total += abs(float(g @ more))
        now = r - (flat @ step).reshape(r.shape)
        if float(g @ more) < REST:
            break
    return step, total, weights, scale, nu


def _cost(z: Array, x: Array) -> float:
    return float(np.sum(z**2) + x @ x)


def upper(A: Array, prior: float = 1.0) -> Array:
    """The triangle R (m, m) with RᵀR = AᵀA + prior · 1."""
    H = A.T @ A
    if float(np.max(np.diag(H))) < LARGE:
        H[np.diag_indices_from(H)] += prior
        return np.asarray(cholesky(H, check_finite=False))
    return np.asarray(np.linalg.qr(np.concatenate([A, np.sqrt(prior) * np.eye(A.shape[1])]), mode="r"))


def scales(r: Array, weights: Array, groups: Array, unknowns: int) -> Array:
    """The root of the weighted mean square (d,) of each group of residuals, corrected for the number of unknowns."""
    found = np.empty(r.shape[1])
    spare = max(1.0 - unknowns / r.size, 0.1)
    for group in np.unique(groups):
        mine = groups == group
        found[mine] = np.sqrt(np.mean(weights[:, None] * r[:, mine] ** 2) / spare)
    return np.maximum(found, max(FINEST, APART * float(np.max(found))))


def _weights(z: Array, freedoms: float | None) -> tuple[Array, float]:
    """Weights (N,) of configurations with scaled residuals z (N, d) by Student's t, and its degrees of freedom where not given.

    The residuals of a configuration go together, so they count as three independent numbers at most.
    """
    size = min(z.shape[1], 3)
    x = np.mean(z**2, axis=1) * size
    if freedoms is None:
        freedoms = max(FREEDOMS, key=lambda nu: _likelihood(x, size, nu))
    if not np.isfinite(freedoms):
        return np.ones(len(z)), freedoms
    s = _own_scale(x, size, freedoms)
    weights = (freedoms + size) / (freedoms + x / s)
    return weights / s, freedoms


def _own_scale(x: Array, size: int, nu: float) -> float:
    """The most likely s with x / s the squared length of a t-distributed vector."""
    s = float(np.median(x)) / size + 1e-300
    for _ in range(15):
        s = float(np.mean((nu + size) / (nu + x / s) * x)) / size + 1e-300
    return s


def _likelihood(x: Array, size: int, nu: float) -> float:
    from scipy.special import gammaln

    if not np.isfinite(nu):
        s = float(np.mean(x)) / size
        return float(-0.5 * np.sum(x / s) - 0.5 * size * len(x) * np.log(2 * np.pi * s))
    s = _own_scale(x, size, nu)
    constant = gammaln(0.5 * (nu + size)) - gammaln(0.5 * nu) - 0.5 * size * np.log(nu * np.pi * s)
    return float(np.sum(constant - 0.5 * (nu + size) * np.log1p(x / (nu * s))))


def held_back(found: Fit, columns: Array) -> Array:
    """Residuals (N, d) of every configuration, were it left out of a fit of these unknowns: (I - Hₙₙ)⁻¹ rₙ, without fitting again.

    Of unknowns that are left out the linear part is given back to the residuals, so that each choice is fitted to the same numbers.
    """
    A, b = found.scaled
    n, d, _ = A.shape
    values = found.problem.displacements(found.state) / found.problem.deviations(found.state)
    y = b + A @ values
    X = A[:, :, columns].reshape(n * d, -1)
    R = upper(X)
    Z = solve_triangular(R, X.T, trans=1, check_finite=False)
    solution = solve_triangular(R, Z @ y.ravel(), check_finite=False)
    r = (y.ravel() - X @ solution).reshape(n, d)
    Z = Z.T.reshape(n, d, -1)
    left = np.eye(d) - Z @ np.swapaxes(Z, 1, 2)
    root = np.sqrt(found.weights)[:, None] / found.scale
    return np.linalg.solve(left, r[..., None])[..., 0] / root


def covariance(found: Fit) -> Array:
    """The covariance of all unknowns (m, m), with configurations as they scatter: residuals of one go together, those of two do not.

    H⁻¹ (Σ gₙ gₙᵀ + I) H⁻¹, gₙ the configuration's part of the gradient with its residuals as they were, were it left out: the jackknife
    (MacKinnon & White 1985), whose intervals keep their promise with few configurations as well; I is the prior's part.
    """
    A, b = found.scaled
    n, d, m = A.shape
    half = solve_triangular(upper(A.reshape(n * d, m)), np.eye(m), check_finite=False)
    inverse = half @ half.T
    Z = A @ half
    left = np.eye(d) - Z @ np.swapaxes(Z, 1, 2)
    e = np.linalg.solve(left, b[..., None])
    g = (np.swapaxes(A, 1, 2) @ e)[..., 0]
    middle = g.T @ g + np.eye(m)
    deviations = found.problem.deviations(found.state)
    return deviations[:, None] * (inverse @ middle @ inverse) * deviations


def reduced(found: Fit, terms: Terms) -> Problem:
    """The problem with some of the terms."""
    keep = [k for k, name in enumerate(found.problem.terms.names) if name in set(terms.names)]
    return replace(found.problem, terms=terms, functions=found.problem.functions[:, keep])


def restricted(state: State, old: Terms, new: Terms) -> State:
    """The state of fewer terms."""
    kept = set(new.names)
    return replace(state, coefficients=np.array([c for c, name in zip(state.coefficients, old.names, strict=True) if name in kept]))
