"""Fits of a model to normal matrices: maximum posterior with weights per joint.

Unknown are x = (β, η, f, δ): base parameters β, the other inertial parameters η, which no force shows, coefficients f of friction (gains
among them), and changes δ of the direction of gravity. The inertial parameters are φ = K x. Forces are bilinear in β and in gains and δ:
Gauss–Newton steps, in which x has the changes of gains and of gravity.

Residuals of real robots are correlated over many rows, so N rows say less than N independent ones: the likelihood is raised to the
power 1 / c, c being the mean over joints of the sum of the autocorrelations. Priors are then as strong beside the data as they should be.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .consistency import ConsistentFit
from .equations import GAIN, LOCAL, Structure
from .friction import POSITIVE, TERMS

TILT = np.radians(1.0)
"""The standard deviation of a mounting's tilt that is expected."""
SPRING = 0.05
"""The standard deviation of a joint's spring that is expected, in root-mean-square forces of the joint per radian or metre."""
SCALE = 0.1
"""The standard deviation of a force sensor's gain that is expected."""
COMMON = 0.005
"""The standard deviation of the mean of all gains that is expected."""
COUPLING = 0.01
"""The standard deviation of a neighbouring joint's part in a force that is expected."""
SPRINGS = TERMS.index("spring")
COUPLINGS = [TERMS.index("previous_load"), TERMS.index("next_load")]
GAMMAS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Weights of the entropic prior among which the evidence chooses …"""
WEAK = (0.03, 0.01, 0.003, 0.001)
"""… and those that it may ask for if it chooses the least: bodies are then far from the description's."""
BARRIER = 1e-3
"""The weight of -log x for coefficients that are positive."""
EXACT = 1e-8
"""The least standard deviation of a residual, relative to the force."""
NOTHING = 1e-3
"""Residuals so small, relative to the force, are all but nothing: those of simulated forces."""
ROUNDING = 1e-7
"""Residuals so small, relative to the force, are rounding."""

Sums = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Normal matrices (nv, P, P), right sides (nv, P), Σ τ² and counts (nv,)."""


@dataclass(frozen=True)
class Choice:
    """The columns that a model uses: for every joint numbers of `TERMS`; whether the direction of gravity is free."""

    local: tuple[tuple[int, ...], ...]
    tilt: bool = False

    @cached_property
    def unknowns(self) -> list[tuple[int, int]]:
        """(joint, number of the term) of each coefficient of friction."""
        return [(j, k) for j, own in enumerate(self.local) for k in own]

    def places(self, rank: int, hidden: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """For every joint its columns of a `Collapsed`, and where they stand in x."""
        p, known, unknowns = rank + hidden, rank + len(TERMS), len(self.unknowns)
        turns, base, count, out = np.arange(2 if self.tilt else 0), np.arange(rank), 0, list[tuple[np.ndarray, np.ndarray]]()
        for own in self.local:
            k = np.concatenate([base, rank + np.array(own, dtype=int), known + 1 + turns])
            out.append((k, np.concatenate([base, p + count + np.arange(len(own)), p + unknowns + turns])))
            count += len(own)
        return out


@dataclass
class Fit:
    """A solution: x, in which changes of gains and tilt are 0, and what it was made with."""

    x: np.ndarray
    tilt: np.ndarray
    gains: np.ndarray
    """(nv,)."""
    gamma: float
    variance: np.ndarray
    """(nv,): mean squares of residuals."""
    inertial: np.ndarray
    """(10 n_links,)."""
    coefficients: dict[tuple[int, int], float]
    """Coefficients of friction, by (joint, number of the term)."""


class Collapsed(NamedTuple):
    """Normal matrices (..., nv, m, m) and right sides (..., nv, m), linearised at a tilt and base parameters.

    The columns are the base parameters, all terms of friction (a gain's is the force itself), the known force, and the tilt's.
    """

    G: np.ndarray
    c: np.ndarray
    yy: np.ndarray


def spreads(forces: np.ndarray, gain: float = SCALE) -> np.ndarray:
    """(terms, nv): standard deviations of coefficients of friction that are expected, for root-mean-square forces (nv,); inf: any."""
    out = np.full((len(TERMS), len(forces)), np.inf)
    out[GAIN] = gain
    out[SPRINGS] = SPRING * forces
    out[COUPLINGS] = COUPLING
    return out


class Fitter:
    """Solves for one structure, prior, correlation c (nv,) and spreads of coefficients (terms, nv)."""

    def __init__(self, s: Structure, prior: np.ndarray, correlation: np.ndarray, spread: np.ndarray) -> None:
        self.s, self.prior, self.correlation, self.spread = s, np.asarray(prior).reshape(-1, 10), correlation, spread
        M, piv = s.base.matrix, list(s.base.pivots)
        rest = [k for k in range(M.shape[1]) if k not in set(piv)]
        self.rest, self.hidden = rest, len(rest)
        self.K0 = np.zeros((M.shape[1], M.shape[1]))
        self.K0[piv, range(len(piv))] = 1.0
        self.K0[np.ix_(piv, range(len(piv), M.shape[1]))] = -M[:, rest]
        self.K0[rest, range(len(piv), M.shape[1])] = 1.0
        self.start = np.concatenate([M @ self.prior.reshape(-1), self.prior.reshape(-1)[rest]])

    def collapse(self, sums: tuple[np.ndarray, ...], tilt: np.ndarray, beta: np.ndarray, turned: bool) -> Collapsed:
        """Sums (..., nv, P, …) in the columns of the model that is linear at a tilt and base parameters β; with the tilt's if `turned`."""
        s, r = self.s, self.s.rank
        local = s.blocks * r

        def own(X: np.ndarray) -> np.ndarray:
            blocks = [X[..., d * r : (d + 1) * r] for d in range(s.blocks)]
            base = sum((t * x for t, x in zip(tilt, blocks[1:], strict=True) if t), start=blocks[0])
            gain, known = (base @ beta)[..., None] + X[..., -1:], X[..., -1:]
            turns = [(x @ beta)[..., None] for x in blocks[1:]] if turned else []
            return np.concatenate([base, X[..., local : local + len(LOCAL)], gain, known, *turns], axis=-1)

        return Collapsed(own(np.swapaxes(own(sums[0]), -1, -2)), own(sums[1]), sums[2])

    def assemble(self, made: Collapsed, choice: Choice, gains: np.ndarray) -> list[tuple[np.ndarray, ...]]:
        """The sums (columns of x, G, c, Σ τ²), for every joint, of the linearised model, whose residual at x is τ - X x."""
        r, known = self.s.rank, self.s.rank + len(TERMS)
        out: list[tuple[np.ndarray, ...]] = []
        for j, (own, (k, index)) in enumerate(zip(choice.local, choice.places(r, self.hidden), strict=True)):
            G, c, yy = made.G[..., j, k[:, None], k], made.c[..., j, k], made.yy[..., j]
            if g := gains[j]:
                factor = np.ones(len(k))
                factor[[*range(r), *range(r + len(own), len(k))]] += g
                c = factor * (c - g * made.G[..., j, k, known])
                G = G * factor[:, None] * factor
                yy = yy - 2.0 * g * made.c[..., j, known] + g * g * made.G[..., j, known, known]
            out.append((index, G, c, yy))
        return out

    def size(self, choice: Choice) -> int:
        return len(self.start) + len(choice.unknowns) + (2 if choice.tilt else 0)

    def K(self, choice: Choice) -> np.ndarray:
        return np.pad(self.K0, ((0, 0), (0, self.size(choice) - len(self.start))))

    def first(self, choice: Choice) -> np.ndarray:
        x = np.zeros(self.size(choice))
        x[: len(self.start)] = self.start
        for k, (_, number) in enumerate(choice.unknowns):
            x[len(self.start) + k] = 1e-2 if TERMS[number] in POSITIVE else 0.0
        return x

    def continued(self, choice: Choice, fit: Fit) -> np.ndarray:
        """The start, from a fit of another model."""
        x = self.first(choice)
        x[: len(self.start)] = np.concatenate([self.s.base.matrix @ fit.inertial, fit.inertial[self.rest]])
        for k, key in enumerate(choice.unknowns):
            value = fit.coefficients.get(key, 0.0) if key[1] != GAIN else 0.0
            x[len(self.start) + k] = max(value, 1e-4) if TERMS[key[1]] in POSITIVE else value
        return x

    def positive(self, choice: Choice) -> np.ndarray:
        return np.array([len(self.start) + k for k, (_, i) in enumerate(choice.unknowns) if TERMS[i] in POSITIVE], dtype=int)

    def gained(self, choice: Choice) -> tuple[np.ndarray, np.ndarray]:
        """Joints with a gain, and the places of these gains in x."""
        found = [(j, len(self.start) + k) for k, (j, i) in enumerate(choice.unknowns) if i == GAIN]
        joints, places = np.array(found, dtype=int).reshape(-1, 2).T
        return joints, places

    def expected(self, choice: Choice) -> np.ndarray:
        """The inverse covariance of coefficients of friction by what is expected of them.

        Gains that are all alike cannot be told from heavier links: their mean, weighed by the force, is expected to be all but 0.
        """
        Q = np.diag(np.array([self.spread[number, j] ** -2.0 for j, number in choice.unknowns]).reshape(-1))
        joints, places = self.gained(choice)
        share = self.spread[SPRINGS, joints] ** 2 / (self.spread[SPRINGS] ** 2).sum()
        k = places - len(self.start)
        if len(k) and self.spread[GAIN, 0] <= SCALE:
            Q[k[:, None], k] += np.outer(share, share) / COMMON**2
        return Q

    def weighted(
        self, made: Collapsed, choice: Choice, tilt: np.ndarray, gains: np.ndarray, variance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A (..., n, n) and b (..., n) of the log-likelihood -½ xᵀAx + bᵀx, with the priors of gains and tilt."""
        n = self.size(choice)
        A, b = np.zeros((*made.G.shape[:-3], n, n)), np.zeros((*made.G.shape[:-3], n))
        weight = 1.0 / (variance * self.correlation)
        for j, (index, G, c, _) in enumerate(self.assemble(made, choice, gains)):
            A[..., index[:, None], index] += weight[j] * G
            b[..., index] += weight[j] * c
        Q = self.expected(choice)
        k = np.arange(len(Q)) + len(self.start)
        A[..., k[:, None], k] += Q
        joints, places = self.gained(choice)
        b[..., k] -= Q[:, places - len(self.start)] @ gains[joints]
        if choice.tilt:
            k = np.array([n - 2, n - 1])
            A[..., k, k] += 1.0 / TILT**2
            b[..., k] -= tilt / TILT**2
        return A, b

    def vectors(self, choice: Choice, x: np.ndarray, tilt: np.ndarray, gains: np.ndarray) -> np.ndarray:
        """(nv, P): the coefficients of all columns, by which a joint's force is predicted, beside the known force."""
        s, r = self.s, self.s.rank
        full = np.zeros((len(gains), s.size))
        full[:, : s.blocks * r] = (1.0 + gains)[:, None] * np.concatenate([t * x[:r] for t in (1.0, *tilt)])
        full[:, -1] = gains
        for value, (j, number) in zip(x[len(self.start) :], choice.unknowns, strict=False):
            if number != GAIN:
                full[j, s.blocks * r + number] = value
        return full

    def mean_squares(self, sums: Sums, choice: Choice, x: np.ndarray, tilt: np.ndarray, gains: np.ndarray) -> np.ndarray:
        """(nv,): of the residuals."""
        z = self.vectors(choice, x, tilt, gains)
        squares = sums[2] - 2.0 * (sums[1] * z).sum(1) + ((sums[0] @ z[..., None])[..., 0] * z).sum(1)
        return floored(squares / sums[3].clip(1), sums[2] / sums[3].clip(1))

    def solve(self, sums: Sums, choice: Choice, gamma: float, start: Fit | None, rounds: int = 8, tolerance: float = 1e-8) -> Fit:
        """The maximum posterior, weights, gains and the direction of gravity being iterated with it."""
        x = self.first(choice) if start is None else self.continued(choice, start)
        tilt = np.zeros(len(self.s.horizontal)) if start is None else start.tilt.copy()
        joints, places = self.gained(choice)
        gains = np.zeros(len(sums[2]))
        if start is not None:
            gains[joints] = start.gains[joints]
        size = sums[2] / sums[3].clip(1)
        size = np.maximum(size, 1e-6 * size.max())  # of joints without a force
        variance = self.unbiased(sums, choice, 1e-2 * size) if start is None else start.variance
        for _ in range(rounds):
            made = self.collapse(sums, tilt, x[: self.s.rank], choice.tilt)
            A, b = self.weighted(made, choice, tilt, gains, variance)
            x = ConsistentFit(A, b, self.K(choice), self.prior, self.positive(choice)).followed(x, gamma, BARRIER, tolerance)
            change = [*x[places], *(x[-2:] if choice.tilt else ())]
            x, tilt, gains = self.absorbed(choice, x, tilt, gains)
            new = self.mean_squares(sums, choice, x, tilt, gains)
            done = np.all(np.abs(np.log(new / variance)) < 1e-3) and max(np.abs(change), default=0.0) < 1e-5
            variance = new
            if done:
                break
        return self.fit(choice, x, tilt, gains, gamma, variance)

    def unbiased(self, sums: Sums, choice: Choice, variance: np.ndarray) -> np.ndarray:
        """Variances (nv,) from which weights start: what least squares without a prior leave, if that is all but nothing of a joint.

        With any larger ones a prior far from the truth could keep residuals, and so the variances that follow from them; with larger ones
        of some joints alone, these would take up what others leave.
        """
        tilt, none, r = np.zeros(len(self.s.horizontal)), np.zeros(len(variance)), self.s.rank
        size = sums[2] / sums[3].clip(1)
        least = floored(none, size)
        seen = np.r_[0:r, r + self.hidden : self.size(choice)]
        made = self.collapse(sums, tilt, self.start[:r], choice.tilt)
        A, b = self.weighted(made, choice, tilt, none, least)
        scale = 1.0 / np.sqrt(np.diag(A)[seen].clip(1e-300))
        S = A[np.ix_(seen, seen)] * scale[:, None] * scale
        x = np.zeros(self.size(choice))
        x[seen] = scale * np.linalg.lstsq(S, scale * b[seen], rcond=1e-15)[0]
        found = self.mean_squares(sums, choice, *self.absorbed(choice, x, tilt, none))
        left = np.where(found <= floored(none, size, ROUNDING), least, found)
        return left if np.any(found <= floored(none, size, NOTHING)) else variance

    def absorbed(
        self, choice: Choice, x: np.ndarray, tilt: np.ndarray, gains: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """x without changes of tilt and gains, and these with them."""
        joints, places = self.gained(choice)
        x, gains = x.copy(), gains.copy()
        gains[joints] += x[places]
        x[places] = 0.0
        if choice.tilt:
            tilt, x[-2:] = tilt + x[-2:], 0.0
        return x, tilt, gains

    def fit(self, choice: Choice, x: np.ndarray, tilt: np.ndarray, gains: np.ndarray, gamma: float, variance: np.ndarray) -> Fit:
        """A `Fit` of numbers."""
        joints, places = self.gained(choice)
        own = x[len(self.start) : len(self.start) + len(choice.unknowns)].copy()
        own[places - len(self.start)] = gains[joints]
        return Fit(x, tilt, gains, gamma, variance, self.K(choice) @ x, dict(zip(choice.unknowns, own.tolist(), strict=True)))

    def evidence(self, sums: Sums, choice: Choice, fit: Fit) -> float:
        """The log evidence of γ."""
        made = self.collapse(sums, fit.tilt, fit.x[: self.s.rank], choice.tilt)
        A, b = self.weighted(made, choice, fit.tilt, fit.gains, fit.variance)
        found = ConsistentFit(A, b, self.K(choice), self.prior, self.positive(choice)).log_evidence(fit.x, fit.gamma, BARRIER)
        squares = np.array([yy for *_, yy in self.assemble(made, choice, fit.gains)])
        return found - 0.5 * float((squares / fit.variance / self.correlation).sum()) + self.likelihood(sums, fit)

    def likelihood(self, sums: Sums, fit: Fit) -> float:
        """The part of the log-likelihood that is no sum of squares: -½ Σ N log σ² / c."""
        return float(-0.5 * (sums[3] / self.correlation * np.log(fit.variance)).sum())

    def gaussian(self, gamma: float) -> tuple[np.ndarray, np.ndarray]:
        """(H, H β₀): γ D to second order at the prior, least over what no force shows, as a quadratic in the base parameters."""
        n, r = len(self.start), self.s.rank
        _, H = ConsistentFit(np.zeros((n, n)), np.zeros(n), self.K0, self.prior).derivatives(self.start, gamma, 0.0)
        scale = 1.0 / np.sqrt(np.diag(H).clip(1e-300))
        S = H * scale[:, None] * scale
        inner = S[r:, r:] + 1e-12 * np.eye(n - r)
        S = (S[:r, :r] - S[:r, r:] @ np.linalg.solve(inner, S[r:, :r])) / scale[:r, None] / scale[:r]
        return S, S @ self.start[:r]


def floored(squares: np.ndarray, size: np.ndarray, least: float = EXACT) -> np.ndarray:
    """Mean squares (nv,) that are not less than rounding, relative to those of the forces."""
    return np.asarray(np.maximum(squares, least**2 * np.maximum(size, 1e-6 * size.max())))
