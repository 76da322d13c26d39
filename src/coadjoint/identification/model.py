"""Fits of a model to normal matrices: maximum posterior with weights per joint, and the choice of the model.

Unknown are x = (β, η, f, δ): base parameters β, the other inertial parameters η, which no force shows, coefficients f of friction, and
changes δ of the direction of gravity. The inertial parameters are φ = K x. Forces are bilinear in β and δ: Gauss–Newton steps.

Residuals of real robots are correlated over many rows, so N rows say less than N independent ones: the likelihood is raised to the
power 1 / c, c being the mean over joints of the sum of the autocorrelations. Priors are then as strong beside the data as they should be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .consistency import ConsistentFit
from .equations import LOCAL, SMOOTH, Equations, Structure
from .friction import POSITIVE

TILT = np.radians(1.0)
"""The standard deviation of a mounting's tilt that is expected."""
GAMMAS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Weights of the entropic prior among which the evidence chooses."""
GAIN = 3.0
"""The least gain of held-back log-likelihood for which a term is taken."""
BARRIER = 1e-3
"""The weight of -log x for coefficients that are positive."""
EXACT = 1e-8
"""The least standard deviation of a residual, relative to the force."""


@dataclass(frozen=True)
class Choice:
    """The columns that a model uses: for every joint numbers of `LOCAL`; whether the direction of gravity is free."""

    local: tuple[tuple[int, ...], ...]
    tilt: bool = False

    @property
    def unknowns(self) -> list[tuple[int, int]]:
        """(joint, number of LOCAL) of each coefficient of friction."""
        return [(j, k) for j, own in enumerate(self.local) for k in own]


@dataclass
class Fit:
    """A solution: x, the tilt, and what it was made with."""

    x: np.ndarray
    tilt: np.ndarray
    gamma: float
    variance: np.ndarray
    """(nv,): mean squares of residuals."""
    inertial: np.ndarray
    """(10 n_links,)."""
    coefficients: dict[tuple[int, int], float]
    """Of friction, by (joint, number of LOCAL)."""


class Fitter:
    """Solves for one structure, prior and correlation c (nv,)."""

    def __init__(self, s: Structure, prior: np.ndarray, correlation: np.ndarray) -> None:
        self.s, self.prior, self.correlation = s, np.asarray(prior).reshape(-1, 10), correlation
        M, piv = s.base.matrix, list(s.base.pivots)
        rest = [k for k in range(M.shape[1]) if k not in set(piv)]
        self.rest, self.hidden = rest, len(rest)
        self.K0 = np.zeros((M.shape[1], M.shape[1]))
        self.K0[piv, range(len(piv))] = 1.0
        self.K0[np.ix_(piv, range(len(piv), M.shape[1]))] = -M[:, rest]
        self.K0[rest, range(len(piv), M.shape[1])] = 1.0
        self.start = np.concatenate([M @ self.prior.reshape(-1), self.prior.reshape(-1)[rest]])

    def assemble(
        self, sums: tuple[np.ndarray, ...], choice: Choice, tilt: np.ndarray, beta: np.ndarray
    ) -> list[tuple[np.ndarray, ...]]:
        """For every joint (columns of x, G, c) of the linearised model, c being of τ, whose residual at x is τ - X x."""
        G, c = sums[0], sums[1]
        r, p = self.s.rank, self.s.rank + self.hidden
        offset, unknowns = self.s.blocks * r, choice.unknowns
        made: list[tuple[np.ndarray, ...]] = []
        for j in range(len(G)):
            own = [k for k, (i, _) in enumerate(unknowns) if i == j]
            wide = np.zeros((self.s.size, r + len(own) + (len(tilt) if choice.tilt else 0)))
            wide[:r, :r] = np.eye(r)
            for d, t in enumerate(tilt):
                wide[(d + 1) * r : (d + 2) * r, :r] = t * np.eye(r)
                if choice.tilt:
                    wide[(d + 1) * r : (d + 2) * r, r + len(own) + d] = beta
            for k, i in enumerate(own):
                wide[offset + unknowns[i][1], r + k] = 1.0
            index = [*range(r), *(p + i for i in own), *(range(p + len(unknowns), p + len(unknowns) + 2) if choice.tilt else ())]
            made.append((np.array(index), wide.T @ G[j] @ wide, wide.T @ c[j]))
        return made

    def size(self, choice: Choice) -> int:
        return len(self.start) + len(choice.unknowns) + (2 if choice.tilt else 0)

    def K(self, choice: Choice) -> np.ndarray:
        return np.pad(self.K0, ((0, 0), (0, self.size(choice) - len(self.start))))

    def first(self, choice: Choice) -> np.ndarray:
        x = np.zeros(self.size(choice))
        x[: len(self.start)] = self.start
        for k, (_, number) in enumerate(choice.unknowns):
            x[len(self.start) + k] = 1e-2 if LOCAL[number][0] in POSITIVE else 0.0
        return x

    def continued(self, choice: Choice, fit: Fit) -> np.ndarray:
        """Where to start from a fit of another model."""
        x = self.first(choice)
        x[: len(self.start)] = np.concatenate([self.s.base.matrix @ fit.inertial, fit.inertial[self.rest]])
        for k, key in enumerate(choice.unknowns):
            value = fit.coefficients.get(key, 0.0)
            x[len(self.start) + k] = max(value, 1e-4) if LOCAL[key[1]][0] in POSITIVE else value
        return x

    def positive(self, choice: Choice) -> np.ndarray:
        return np.array([len(self.start) + k for k, (_, i) in enumerate(choice.unknowns) if LOCAL[i][0] in POSITIVE], dtype=int)

    def weighted(
        self, sums: tuple[np.ndarray, ...], choice: Choice, tilt: np.ndarray, beta: np.ndarray, variance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A and b of the log-likelihood -½ xᵀAx + bᵀx."""
        n = self.size(choice)
        A, b = np.zeros((n, n)), np.zeros(n)
        weight = 1.0 / (variance * self.correlation)
        for j, (index, G, c) in enumerate(self.assemble(sums, choice, tilt, beta)):
            A[np.ix_(index, index)] += weight[j] * G
            b[index] += weight[j] * c
        if choice.tilt:
            for d in range(2):
                A[n - 2 + d, n - 2 + d] += 1.0 / TILT**2
                b[n - 2 + d] -= tilt[d] / TILT**2
        return A, b

    def residual_squares(self, sums: tuple[np.ndarray, ...], choice: Choice, tilt: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Σ (τ - X x)² (nv,), the direction of gravity being `tilt`."""
        out = np.empty(len(sums[2]))
        z = x.copy()
        if choice.tilt:
            z[-2:] = 0.0
        for j, (index, G, c) in enumerate(self.assemble(sums, choice, tilt, x[: self.s.rank])):
            out[j] = sums[2][j] - 2.0 * c @ z[index] + z[index] @ G @ z[index]
        return out

    def mean_squares(self, sums: tuple[np.ndarray, ...], choice: Choice, tilt: np.ndarray, x: np.ndarray) -> np.ndarray:
        size = sums[2] / sums[3].clip(1)
        floor = EXACT**2 * np.maximum(size, 1e-6 * size.max())
        return np.asarray(np.maximum(self.residual_squares(sums, choice, tilt, x) / sums[3].clip(1), floor))

    # --- the entropic fit

    def solve(self, sums: tuple[np.ndarray, ...], choice: Choice, gamma: float, start: Fit | None, rounds: int = 8) -> Fit:
        """The maximum posterior, weights and the direction of gravity being iterated with it."""
        x = self.first(choice) if start is None else self.continued(choice, start)
        tilt = np.zeros(len(self.s.horizontal)) if start is None else start.tilt.copy()
        size = sums[2] / sums[3].clip(1)
        variance = 1e-2 * size if start is None else np.maximum(start.variance, 1e-6 * size)  # no smaller: steps start far away
        for _ in range(rounds):
            if choice.tilt:
                x[-2:] = 0.0
            A, b = self.weighted(sums, choice, tilt, x[: self.s.rank], variance)
            problem = ConsistentFit(A, b, self.K(choice), self.prior, self.positive(choice))
            x = problem.followed(x, gamma, BARRIER)
            if choice.tilt:
                tilt = tilt + x[-2:]
            new = self.mean_squares(sums, choice, tilt, x)
            done = np.all(np.abs(np.log(new / variance)) < 1e-3) and (not choice.tilt or np.abs(x[-2:]).max() < 1e-5)
            variance = new
            if done:
                break
        own = x[len(self.start) : len(self.start) + len(choice.unknowns)]
        return Fit(x, tilt, gamma, variance, self.K(choice) @ x, dict(zip(choice.unknowns, own.tolist(), strict=True)))

    def evidence(self, sums: tuple[np.ndarray, ...], choice: Choice, fit: Fit, variance: np.ndarray) -> float:
        """The log evidence of γ, weights being those of `variance`."""
        x = fit.x.copy()
        if choice.tilt:
            x[-2:] = 0.0
        A, b = self.weighted(sums, choice, fit.tilt, x[: self.s.rank], variance)
        return ConsistentFit(A, b, self.K(choice), self.prior, self.positive(choice)).log_evidence(x, fit.gamma, BARRIER)

    # --- the choice of terms, with a Gaussian in the place of the entropic prior

    def gaussian(self, choice: Choice, gamma: float) -> tuple[np.ndarray, np.ndarray]:
        """(H, H x₀) of γ D to second order at the prior."""
        n = self.size(choice)
        problem = ConsistentFit(np.zeros((n, n)), np.zeros(n), self.K(choice), self.prior)
        _, H = problem.derivatives(self.first(choice), gamma, 0.0)
        x0 = np.zeros(n)
        x0[: len(self.start)] = self.start
        return H, H @ x0

    def held_back(
        self, eq: Equations, choice: Choice, tilt: np.ndarray, beta: np.ndarray, variance: np.ndarray, gamma: float
    ) -> np.ndarray:
        """(nv,): log-likelihoods of blocks by models fitted to the others."""
        H, h = self.gaussian(choice, gamma)
        squares, rows = np.zeros(len(variance)), np.zeros(len(variance))
        for fold in range(len(eq.G)):
            A, b = self.weighted(eq.total(without=fold), choice, tilt, beta, variance)
            x = _ridge(A + H, b + h)
            own = (eq.G[fold], eq.c[fold], eq.yy[fold], eq.count[fold])
            squares += self.residual_squares(own, choice, tilt, x)
            rows += eq.count[fold]
        size = eq.yy.sum(0) / rows.clip(1)
        mean = np.maximum(squares / rows.clip(1), EXACT**2 * np.maximum(size, 1e-6 * size.max()))
        return np.asarray(-0.5 * rows / self.correlation * np.log(mean))

    def signs(
        self, eq: Equations, choice: Choice, tilt: np.ndarray, beta: np.ndarray, variance: np.ndarray, gamma: float
    ) -> np.ndarray:
        """(nv,): whether all coefficients that must be positive are so without being forced."""
        H, h = self.gaussian(choice, gamma)
        A, b = self.weighted(eq.total(), choice, tilt, beta, variance)
        x = _ridge(A + H, b + h)[len(self.start) :]
        good = np.ones(len(variance), dtype=bool)
        for (j, number), value in zip(choice.unknowns, x, strict=False):
            if LOCAL[number][0] in POSITIVE and value <= 0:
                good[j] = False
        return good


def _ridge(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    scale = 1.0 / np.sqrt(np.diag(A).clip(1e-300))
    S = A * scale[:, None] * scale + 1e-10 * np.eye(len(A))
    return np.asarray(scale * np.linalg.solve(S, scale * b))


def choose_terms(
    fitter: Fitter, eq: Equations, start: Choice, fit: Fit, allowed: tuple[str, ...], table: list[dict[str, object]]
) -> Choice:
    """The terms of friction of each joint: forward, the term that gains most held-back likelihood, as long as one gains enough."""
    gamma, choice = 3.0, start
    beta = fit.x[: fitter.s.rank]

    def judge(c: Choice) -> np.ndarray:
        return fitter.held_back(eq, c, fit.tilt, beta, fit.variance, gamma)

    best = judge(choice)
    names = fitter.s.robot.v_names
    for _ in range(6):
        found: list[tuple[float, int] | None] = [None] * len(best)
        for number, (name, _) in enumerate(LOCAL):
            if name not in allowed:
                continue
            able = [_able(own, number) for own in choice.local]
            if not any(able):
                continue
            trial = replace(choice, local=tuple((*own, number) if ok else own for own, ok in zip(choice.local, able, strict=True)))
            gain = judge(trial) - best
            good = (
                fitter.signs(eq, trial, fit.tilt, beta, fit.variance, gamma) if name in POSITIVE else np.ones(len(gain), dtype=bool)
            )
            for j in range(len(gain)):
                if able[j] and good[j] and gain[j] > GAIN and (found[j] is None or gain[j] > found[j][0]):  # type: ignore[index]
                    found[j] = (float(gain[j]), number)
        if not any(found):
            break
        choice = replace(choice, local=tuple((*own, f[1]) if f else own for own, f in zip(choice.local, found, strict=True)))
        new = judge(choice)
        for j, f in enumerate(found):
            if f:
                name, width = LOCAL[f[1]]
                table.append({"joint": names[j], "term": name, "width": float(fitter.s.widths[width, j]), "gain": f[0]})
        best = new
    return choice


def _able(own: tuple[int, ...], number: int) -> bool:
    """Whether a joint can take a term: not twice, and with the width that its other terms have."""
    name, width = LOCAL[number]
    has = {LOCAL[k][0] for k in own}
    if name in has or (name in ("load", "stribeck", "asymmetry") and "coulomb" not in has):
        return False
    if {name} | has >= {"root", "stribeck"}:  # they would cancel each other, and not at other speeds
        return False
    widths = {LOCAL[k][1] for k in own if LOCAL[k][0] not in SMOOTH}
    return name in SMOOTH or not widths or width in widths


def offsets(count: int) -> Choice:
    """Offsets alone."""
    return Choice(tuple((LOCAL.index(("offset", 0)),) for _ in range(count)))
