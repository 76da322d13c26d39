"""Estimates of base parameters and friction by the data alone, by one of several methods, with covariances that know correlated residuals.

ordinary                 all joints and rows count the same
weighted                 joints by the variance of their residuals in an ordinary fit
reweighted               joints and rows by their residuals, until nothing changes: Student's t with four degrees of freedom
maximum_likelihood       residuals are an autoregression of every joint, found with the rest: rows are whitened by it
instrumental_variables   Wᵀ (τ - X θ) = 0 with columns W at states of a simulated motion, which do not know the noise in the measured
                         states (IDIM-IV: Janot, Vandanjon & Gautier 2014)

Every method is a sequence of steps θ += (Σ Wᵀ w X)⁻¹ Σ Wᵀ w (τ - X θ), each a pass over blocks of rows: memory does not grow with the log,
and rounding does not stay. The covariance is A⁻¹ (Σ Ŵᵀ S Ŵ) A⁻ᵀ, S being the spectrum of the residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ..errors import CoadjointError
from ..robot.robot import Robot
from .equations import GAIN, ROWS, Equations, Rows, Structure
from .friction import Friction
from .instruments import Instruments
from .model import EXACT, Choice, Fit, Fitter
from .preparation import Prepared
from .priors import Posterior
from .statistics import returning, spectral, yule_walker

METHODS = ("ordinary", "weighted", "reweighted", "maximum_likelihood", "instrumental_variables")
FREEDOMS = 4.0
"""Degrees of freedom of Student's t, for reweighting."""
ORDER = 24
"""Most coefficients of an autoregression."""
ROUNDS = 30
"""Most steps."""
SIMULATIONS = 5
"""Most simulations of instruments, each by the last estimate."""

Chunks = Callable[[], Iterator[tuple[Prepared, Prepared | None]]]
"""Blocks of rows, as often as asked, each with its instruments' states if there are some."""


class Block(NamedTuple):
    """Rows of one joint: θ's places, columns X and instruments W (N, k), forces, numbers of stretches."""

    joint: int
    places: np.ndarray
    X: np.ndarray
    W: np.ndarray
    y: np.ndarray
    stretch: np.ndarray


@dataclass
class Model:
    """The linearised model θ = (β, f, δ): base parameters, friction, changes of the direction of gravity."""

    s: Structure
    choice: Choice
    tilt: np.ndarray
    theta: np.ndarray
    """Changes of gains and of the direction of gravity are 0 in it."""
    gains: np.ndarray
    """(nv,)."""
    expected: np.ndarray
    """The inverse covariance of coefficients of friction by what is expected of gains."""
    beta: np.ndarray
    """Base parameters, for friction that depends on the load."""

    @property
    def size(self) -> int:
        return self.s.rank + len(self.choice.unknowns) + (2 if self.choice.tilt else 0)

    def blocks(self, chunks: Chunks) -> Iterator[Block]:
        """All rows, joint by joint within each block."""
        for data, instruments in chunks():
            rows = Rows(self.s, data)
            others = None if instruments is None else Rows(self.s, replace(instruments, known=data.known))
            for k in rows:
                X = rows.columns(k, self.beta)
                W = X if others is None else others.columns(k, self.beta)
                for j in range(X.shape[1]):
                    use = data.used[k, j]
                    index, Xj = self._own(X[use, j], j)
                    Wj = Xj if instruments is None else self._own(W[use, j], j)[1]
                    y = data.tau[k][use, j] - (1.0 + self.gains[j]) * data.known[k][use, j]
                    yield Block(j, index, Xj, Wj, y, data.stretch[k][use])

    def _own(self, X: np.ndarray, j: int) -> tuple[np.ndarray, np.ndarray]:
        """The columns of the linearised model of joint j, and which of θ they are."""
        s, r, unknowns = self.s, self.s.rank, self.choice.unknowns
        turned = [X[:, (d + 1) * r : (d + 2) * r] for d in range(len(self.tilt))]
        base = X[:, :r] + sum(t * x for t, x in zip(self.tilt, turned, strict=True))
        own = [k for k, (i, _) in enumerate(unknowns) if i == j]
        force, factor = base @ self.theta[:r] + X[:, -1], 1.0 + self.gains[j]
        local = [force if unknowns[k][1] == GAIN else X[:, s.blocks * r + unknowns[k][1]] for k in own]
        parts = [factor * base, *(x[:, None] for x in local)]
        index = [*range(r), *(r + k for k in own)]
        if self.choice.tilt:
            parts += [factor * (x @ self.theta[:r])[:, None] for x in turned]
            index += [r + len(unknowns), r + len(unknowns) + 1]
        return np.array(index), np.concatenate(parts, axis=1)

    def moved(self, step: np.ndarray) -> Model:
        """θ + step; changes of gains and of the direction of gravity go into `gains` and `tilt`."""
        theta, tilt, gains = self.theta + step, self.tilt, self.gains.copy()
        for k, (j, number) in enumerate(self.choice.unknowns):
            if number == GAIN:
                gains[j] += theta[self.s.rank + k]
                theta[self.s.rank + k] = 0.0
        if self.choice.tilt:
            tilt, theta = tilt + theta[-2:], np.concatenate([theta[:-2], np.zeros(2)])
        return replace(self, theta=theta, tilt=tilt, gains=gains)

    @property
    def expected_gains(self) -> np.ndarray:
        """The part of `expected` that is of gains."""
        k = self.gained[1] - self.s.rank
        return np.asarray(self.expected[k[:, None], k])

    @property
    def gained(self) -> tuple[np.ndarray, np.ndarray]:
        """Joints with a gain, and the places of these gains in θ."""
        found = [(j, self.s.rank + k) for k, (j, number) in enumerate(self.choice.unknowns) if number == GAIN]
        joints, places = np.array(found, dtype=int).reshape(-1, 2).T
        return joints, places


@dataclass
class Weights:
    """The weights of residuals: variance (nv,); freedoms of Student's t or ∞; autoregressions of the joints, or none."""

    variance: np.ndarray
    freedoms: float = np.inf
    filters: list[np.ndarray] | None = None

    def whitened(self, block: Block, x: np.ndarray) -> np.ndarray:
        """Columns without what the autoregression predicts of them; the first rows of a stretch are lost."""
        if self.filters is None:
            return x
        a, parts = self.filters[block.joint], []
        for number in np.unique(block.stretch):
            own = x[block.stretch == number]
            if len(own) > len(a):
                parts.append(own[len(a) :] - sum(c * own[len(a) - k - 1 : len(own) - k - 1] for k, c in enumerate(a)))
        return np.concatenate(parts) if parts else x[:0]

    def whitened_stretch(self, block: Block) -> np.ndarray:
        """The stretch of each whitened row."""
        if self.filters is None:
            return block.stretch
        lost, numbers = len(self.filters[block.joint]), np.unique(block.stretch)
        return np.concatenate([block.stretch[block.stretch == number][lost:] for number in numbers])

    def of_rows(self, j: int, e: np.ndarray) -> tuple[np.ndarray, float]:
        """The weights of residuals (N,), and the mean slope of weight times residual over the mean weight."""
        if not np.isfinite(self.freedoms):
            return np.full(len(e), 1.0 / self.variance[j]), 1.0
        nu, z = self.freedoms, e**2 / self.variance[j]
        w = (nu + 1.0) / (nu + z)
        slope = (nu + 1.0) * (nu - z) / (nu + z) ** 2
        return w / self.variance[j], float(slope.mean() / w.mean()) if len(e) else 1.0


@dataclass
class Estimate:
    """θ with its covariance, infinite in directions that the data do not determine, and the information of the data (0 there)."""

    model: Model
    covariance: np.ndarray
    information: np.ndarray
    variance: np.ndarray
    """(nv,): mean squares of residuals."""
    steps: int


def estimate(model: Model, source: Chunks, method: str) -> Estimate:
    """The estimate of a method, from a model nearby."""
    weights = Weights(np.ones(len(model.gains)))
    floor = _floor(model, source)
    steps, scale = 0, np.inf
    while steps < ROUNDS:
        steps += 1
        A, g, square = _sums(model, source, weights)
        step = _solved(A, g, square)
        model, last = model.moved(step), scale
        new = _updated(model, source, weights, method, floor, steps)
        changed = float(np.abs(np.log(new.variance / weights.variance)).max()) if method != "ordinary" else 0.0
        weights = new
        scale = float(np.sqrt(np.maximum(step @ square @ step, 0.0)))  # in standard deviations, about
        if steps >= 3 and changed < 1e-6 and (scale < 1e-7 or scale > 0.3 * last):
            break
    return _finished(model, source, weights, floor, steps)


def _floor(model: Model, chunks: Chunks) -> np.ndarray:
    """(nv,): the least variance of a residual that is taken for real."""
    squares, rows = (np.zeros(len(model.gains)) for _ in range(2))
    for b in model.blocks(chunks):
        squares[b.joint] += b.y @ b.y
        rows[b.joint] += len(b.y)
    size = squares / rows.clip(1)
    return np.asarray(EXACT**2 * np.maximum(size, 1e-6 * size.max()) + 1e-300)


def _sums(model: Model, chunks: Chunks, weights: Weights) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Σ Wᵀ w X, Σ Wᵀ w e, Σ Xᵀ w X."""
    n = model.size
    A, S, g = np.zeros((n, n)), np.zeros((n, n)), np.zeros(n)
    for b in model.blocks(chunks):
        e = weights.whitened(b, b.y - b.X @ model.theta[b.places])
        X = weights.whitened(b, b.X)
        w, slope = weights.of_rows(b.joint, e)
        own = np.ix_(b.places, b.places)
        square = slope * (X.T * w) @ X
        S[own] += square
        A[own] += square if b.W is b.X else (b.W.T * w) @ X
        g[b.places] += (X if b.W is b.X else b.W).T @ (w * e)
    joints, k = model.gained
    Q = model.expected_gains
    A[k[:, None], k] += Q
    S[k[:, None], k] += Q
    g[k] -= Q @ model.gains[joints]
    return A, g, S


def _solved(A: np.ndarray, g: np.ndarray, S: np.ndarray) -> np.ndarray:
    """The step, along what S shows."""
    V = visible(S)
    return np.asarray(V @ np.linalg.lstsq(V.T @ A @ V, V.T @ g, rcond=None)[0])


def visible(S: np.ndarray) -> np.ndarray:
    """V (n, k) with Vᵀ S V = 1, spanning what S shows."""
    scale = 1.0 / np.sqrt(np.diag(S).clip(1e-300))
    scale[np.diag(S) <= 0] = 0.0
    values, vectors = np.linalg.eigh(S * scale[:, None] * scale)
    seen = values > 1e-10 * max(values[-1], 1e-300)
    return np.asarray(scale[:, None] * vectors[:, seen] / np.sqrt(values[seen]))


def _updated(model: Model, chunks: Chunks, weights: Weights, method: str, floor: np.ndarray, steps: int) -> Weights:
    """Weights for the next step."""
    if method == "ordinary" or (method == "weighted" and steps > 1):
        return weights
    products, rows = _lagged(model, chunks, 0 if method != "maximum_likelihood" else ORDER)
    variance = products[:, 0] / rows.clip(1)
    if method == "reweighted":
        return Weights(np.maximum(_student(model, chunks, weights, variance), floor), FREEDOMS)
    if method == "maximum_likelihood":
        order = int(np.clip(rows.min() // 50, 1, ORDER))
        found = [yule_walker(p[: order + 1]) for p in products]
        innovations = np.array([v for _, v in found]) / rows.clip(1)
        return Weights(np.maximum(innovations, floor), filters=[a for a, _ in found])
    return Weights(np.maximum(variance, floor))


def _student(model: Model, chunks: Chunks, weights: Weights, variance: np.ndarray) -> np.ndarray:
    """(nv,): the scale of Student's t, one step of its own iteration from the weights' one."""
    s = variance if not np.isfinite(weights.freedoms) else weights.variance
    for _ in range(3):
        total, rows = np.zeros(len(s)), np.zeros(len(s))
        for b in model.blocks(chunks):
            e = b.y - b.X @ model.theta[b.places]
            total[b.joint] += float(((FREEDOMS + 1.0) * e**2 / (FREEDOMS + e**2 / max(s[b.joint], 1e-300))).sum())
            rows[b.joint] += len(e)
        s = total / rows.clip(1)
    return s


def _lagged(model: Model, chunks: Chunks, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Σ e_t e_{t+k} (nv, order + 1) of residuals within stretches, and the number of rows (nv,)."""
    products, rows = np.zeros((len(model.gains), order + 1)), np.zeros(len(model.gains))
    for b in model.blocks(chunks):
        e = b.y - b.X @ model.theta[b.places]
        rows[b.joint] += len(e)
        for number in np.unique(b.stretch):
            own = e[b.stretch == number]
            for k in range(min(order + 1, len(own))):
                products[b.joint, k] += own[k:] @ own[: len(own) - k]
    return products, rows


def _finished(model: Model, chunks: Chunks, weights: Weights, floor: np.ndarray, steps: int) -> Estimate:
    """The estimate with its covariance."""
    A, _, S = _sums(model, chunks, weights)
    V = visible(S)
    products, rows = _lagged(model, chunks, 0)
    found = _spectra(model, chunks, weights, V, rows, int(np.clip(rows.min() // 50, 1, ORDER)))
    middle = np.zeros_like(S)
    for b in model.blocks(chunks):
        a, innovations = found[b.joint]
        least = floor[b.joint] / weights.variance[b.joint] ** 2 * (1.0 - float(np.sum(a))) ** 2
        X = weights.whitened(b, b.X) if b.W is b.X else b.W
        middle[np.ix_(b.places, b.places)] += spectral(X, weights.whitened_stretch(b), a, max(innovations, least))
    _, k = model.gained
    middle[k[:, None], k] += model.expected_gains
    core = np.linalg.lstsq(V.T @ A @ V, V.T @ middle @ V, rcond=None)[0]
    core = np.linalg.lstsq(V.T @ A @ V, core.T, rcond=None)[0]
    core = 0.5 * (core + core.T)
    covariance = V @ core @ V.T
    hidden = np.eye(len(S)) - V @ np.linalg.pinv(V)
    lost = (hidden**2).sum(1) > 1e-8
    covariance[lost, lost] = np.inf
    variance = np.maximum(products[:, 0] / rows.clip(1), floor)
    back = np.linalg.pinv(V)
    return Estimate(model, covariance, back.T @ np.linalg.pinv(core, hermitian=True) @ back, variance, steps)


def _spectra(
    model: Model, chunks: Chunks, weights: Weights, V: np.ndarray, rows: np.ndarray, order: int
) -> list[tuple[np.ndarray, float]]:
    """The autoregression of each joint's residuals times their weights, with what the fit took. Blocks share a grid: memory is bounded."""
    size = 2 * ROWS
    power, taken = np.zeros((2, len(rows), ROWS + 1))
    for b in model.blocks(chunks):
        e, stretch = weights.whitened(b, b.y - b.X @ model.theta[b.places]), weights.whitened_stretch(b)
        w, _ = weights.of_rows(b.joint, e)
        U = (weights.whitened(b, b.X) * np.sqrt(w)[:, None]) @ V[b.places]
        for number in np.unique(stretch):
            power[b.joint] += np.abs(np.fft.rfft((w * e)[stretch == number], size)) ** 2
            taken[b.joint] += (np.abs(np.fft.rfft(U[stretch == number], size, axis=0)) ** 2).sum(1)
    return [returning([p], [t], max(int(n), 1), order) for p, t, n in zip(power, taken, rows, strict=True)]


def _whole(data: Prepared, instruments: Prepared | None) -> Iterator[tuple[Prepared, Prepared | None]]:
    yield data, instruments


def physical(found: Estimate, fitter: Fitter, posterior: Posterior, fit: Fit, gamma: float) -> Fit:
    """The possible robot nearest to an estimate, in the metric of its information, with a prior of weight γ where the data say nothing."""
    choice, r, hidden = found.model.choice, fitter.s.rank, fitter.hidden
    n = fitter.size(choice)
    keep = np.r_[0:r, r + hidden : n]
    A, b = np.zeros((n, n)), np.zeros(n)
    A[np.ix_(keep, keep)] = found.information
    b[keep] = found.information @ found.model.theta
    fixed = np.r_[fitter.gained(choice)[1], [n - 2, n - 1] if choice.tilt else []].astype(int)
    A[fixed], A[:, fixed], b[fixed] = 0.0, 0.0, 0.0  # gains and the direction of gravity are the estimate's
    A[fixed, fixed] = 1.0
    x = posterior.minimum(A, b, fit.x.copy(), gamma)
    x[fixed] = 0.0
    return fitter.fit(choice, x, found.model.tilt, found.model.gains, gamma, found.variance)


def refined(
    posterior: Posterior,
    eq: Equations,
    data: Prepared,
    fit: Fit,
    method: str,
    gamma: float | None,
    moving: Instruments | None,
    robot: Callable[[Fit], tuple[Robot, Friction]],
    blocks: Chunks | None = None,
) -> tuple[Fit, tuple[np.ndarray, np.ndarray]]:
    """The possible robot nearest to a method's estimate, that estimate and its covariance. `robot` makes one of a fit, to be simulated.

    `blocks` are all rows, where `data` is only a sample of them.
    """
    if gamma is None:
        gamma = fit.gamma if posterior.kind == "entropic" else posterior.by_held_back(eq, fit)
    fitter, choice, r = posterior.fitter, posterior.choice, posterior.fitter.s.rank
    theta = np.concatenate([fit.x[:r], fit.x[r + fitter.hidden :]])
    model = Model(fitter.s, choice, fit.tilt, theta, fit.gains, fitter.expected(choice), fit.x[:r])
    for _ in range(1 if moving is None else SIMULATIONS):
        states = None if moving is None else moving.states(*robot(fit))
        if states is not None and len(states) != len(data):
            raise CoadjointError(
                f"the reference has {len(states)} rows after preparation, the log {len(data)}: state cutoff=, so that both are "
                "filtered alike."
            )
        found = estimate(model, blocks or partial(_whole, data, states), method)
        fit = physical(found, fitter, posterior, fit, gamma)
        moved = np.abs(found.model.theta - model.theta).max(initial=0.0)
        model = found.model
        if moved < 1e-9 * np.abs(model.theta).max(initial=1.0) or moving is None or not moving.is_closed:
            break
    theta, (joints, places) = found.model.theta.copy(), found.model.gained
    theta[places] = found.model.gains[joints]
    return fit, (theta, found.covariance)
