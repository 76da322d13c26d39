"""The least ∫ dσ / √X within rows in X, X' and X'': splines, and an interior-point method on their banded equations.

X is a polynomial of degree four on each cell, with X and X' continuous: the jerk may jump from cell to cell. Rows

    h = γ + c / √X + e √X - α · (X, X', X'') ≥ 0

hold at points of each cell. c / √X is convex, so the rows are not a convex set: in Newton's matrix they are replaced by their tangents,
which are inside (Debrouwere et al. 2013).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.polynomial import Polynomial
from scipy.linalg import LinAlgError, cho_solve_banded, cholesky_banded

DEGREE = 4
STEP = DEGREE - 1
"""Unknowns of a cell, beside two that it has in common with the next one."""
ITERATIONS = 200
STRAIGHT = 2e-3
"""Cells that are shorter have X'' linear."""
NEAR = 10.0
"""The largest factor between the product of slack and multiplier of a row and its target."""
BACK = 0.01
"""The part of a slack that a step leaves at least."""


RowsAt = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]


def _smaller(step: float, dual: float) -> float:
    """The factor by which the product of slack and multiplier shrinks after steps of these lengths: only after long ones."""
    least = min(step, dual)
    return 0.1 if least > 0.9 else 0.3 if least > 0.6 else 0.7 if least > 0.3 else 1.0


def _shapes() -> list[Polynomial]:
    """On 0 ≤ t ≤ 1: of X and h X' at the left end, of the middle, of X and h X' at the right end."""
    bubble = Polynomial([0, 0, 16, -32, 16])
    inner = [bubble * Polynomial([-1, 2]) ** k for k in range(DEGREE - 3)]
    return [Polynomial([1, 0, -3, 2]), Polynomial([0, 1, -2, 1]), *inner, Polynomial([0, 0, 3, -2]), Polynomial([0, 0, -1, 1])]


SHAPES = [[p.deriv(k) if k else p for p in _shapes()] for k in range(3)]
_GAUSS, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_GAUSS, _WEIGHTS = (_GAUSS + 1) / 2, _WEIGHTS / 2


def shapes_at(lengths: np.ndarray, t: np.ndarray) -> np.ndarray:
    """(N, P, 3, DEGREE + 1): X, X', X'' at t (N, P) of cells of these lengths (N,), of each unknown of the cell."""
    h = lengths[:, None]
    found = np.stack([np.stack([p(t) for p in some], axis=-1) / h[..., None] ** k for k, some in enumerate(SHAPES)], axis=-2)
    found[..., 1] *= h[..., None]
    found[..., -1] *= h[..., None]
    return found


class Spline:
    """X on cells between nodes (N + 1,)."""

    def __init__(self, nodes: np.ndarray) -> None:
        self.nodes, self.lengths = nodes, np.diff(nodes)
        self.count = len(self.lengths)
        self.unknowns = STEP * self.count + 2
        self.index = STEP * np.arange(self.count)[:, None] + np.arange(DEGREE + 1)
        self.straight = self.lengths < STRAIGHT
        even = np.broadcast_to(_GAUSS, (self.count, len(_GAUSS)))
        self.gauss = self.shapes(even)[:, :, 0]
        self.weights = self.lengths[:, None] * _WEIGHTS

    def shapes(self, t: np.ndarray) -> np.ndarray:
        """`shapes_at` without the middle of short cells, where X'' is linear and so exceeds no row between the ends."""
        found = shapes_at(self.lengths, t)
        found[self.straight, :, :, 2] = 0.0
        return found

    def constant(self, x: float) -> np.ndarray:
        z = np.zeros(self.unknowns)
        z[::STEP] = x
        return z

    def at(self, z: np.ndarray, t: np.ndarray) -> np.ndarray:
        """(N, P, 3): X, X', X''."""
        return np.asarray(np.einsum("cpkd,cd->cpk", self.shapes(t), z[self.index]))

    def duration(self, z: np.ndarray) -> float:
        X = np.einsum("cpd,cd->cp", self.gauss, z[self.index])
        return float(np.sum(self.weights / np.sqrt(X))) if X.min() > 0 else np.inf

    def on(self, z: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """The function X on cells that are parts of these."""
        finer = Spline(nodes)
        cell = np.clip(np.searchsorted(self.nodes, (nodes[:-1] + nodes[1:]) / 2, side="right") - 1, 0, self.count - 1)
        ends = np.stack([nodes[:-1], (nodes[:-1] + nodes[1:]) / 2, nodes[1:]], axis=1)
        t = (ends - self.nodes[cell][:, None]) / self.lengths[cell][:, None]
        Y = np.einsum("cpkd,cd->cpk", shapes_at(self.lengths[cell], t), z[self.index[cell]])
        found, h = np.empty(finer.unknowns), finer.lengths
        found[0:-1:STEP] = np.append(Y[:, 0, 0], Y[-1, 2, 0])
        found[1::STEP] = np.append(Y[:, 0, 1], Y[-1, 2, 1])
        found[2:-1:STEP] = Y[:, 1, 0] - (Y[:, 0, 0] + Y[:, 2, 0]) / 2 - h * (Y[:, 0, 1] - Y[:, 2, 1]) / 8
        found[2:-1:STEP][finer.straight] = 0.0
        return found


@dataclass
class Solution:
    """X, the multipliers of rows (N, P, rows), and whether the conditions of first order hold."""

    z: np.ndarray
    multipliers: np.ndarray
    converged: bool


class Problem:
    """Rows at points t (N, P) of the cells of a spline."""

    def __init__(self, spline: Spline, rows: RowsAt, t: np.ndarray) -> None:
        self.spline, self.t = spline, t
        self.shapes = spline.shapes(t)
        sigma = spline.nodes[:-1, None] + spline.lengths[:, None] * t
        sigma[t == 1.0] = np.broadcast_to(spline.nodes[1:, None], t.shape)[t == 1.0]
        self.alpha, self.gamma, self.inverse, self.root = rows(spline.nodes, sigma)

    def slack(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """h (N, P, rows) and √X (N, P, 1); None where X is not positive."""
        Y = np.einsum("cpkd,cd->cpk", self.shapes, z[self.spline.index])
        if Y[..., 0].min() <= 0:
            return None
        root = np.sqrt(Y[..., 0])[..., None]
        return self.gamma + self.inverse / root + self.root * root - np.einsum("cprk,cpk->cpr", self.alpha, Y), root

    def solve(self, z: np.ndarray, centre: float, tolerance: float) -> Solution:
        """The least duration from z, within all rows; `centre` is the first product of slack and multiplier, of the duration's size."""
        spline = self.spline
        first = self.slack(z)
        assert first is not None
        slack, root = first
        count = slack.size
        mu = centre * spline.duration(z) / count
        lam, step, dual = mu / slack, 0.0, 0.0
        for _ in range(ITERATIONS):
            slope = 0.5 * (self.root - self.inverse / root**2) / root
            bend = (0.75 * self.inverse / root**2 - 0.25 * self.root) / root**3
            J = -self.alpha
            J[..., 0] += slope
            X = np.einsum("cpd,cd->cp", spline.gauss, z[spline.index])
            pull = np.einsum("cp,cpd->cd", -0.5 * spline.weights * X**-1.5, spline.gauss)
            stiff = np.einsum("cp,cpd,cpe->cde", 0.75 * spline.weights * X**-2.5, spline.gauss, spline.gauss, optimize=True)
            stiff[spline.straight, 2, 2] = 1.0
            back = partial(self._back, J)
            gap, size = float(np.sum(slack * lam)), spline.duration(z)
            residual = np.abs(self._gather(pull - back(lam))).max() / np.abs(pull).max()
            if gap < tolerance * size and residual < 1e-6:
                return Solution(z, lam, True)
            mu *= _smaller(step, dual)
            W = np.einsum("cpr,cprk,cprl->cpkl", lam / slack, J, J, optimize=True)
            right = self._gather(mu * back(1.0 / slack) - pull)
            if not (np.isfinite(W).all() and np.isfinite(bend).all() and np.isfinite(right).all()):
                break
            move = self._newton(stiff, W, -lam * bend, right)
            if move is None:
                break
            dh = np.einsum("cprk,cpk->cpr", J, np.einsum("cpkd,cd->cpk", self.shapes, move[spline.index]))
            dl = mu / slack - lam - lam / slack * dh
            falling = dl < 0
            dual = min(1.0, 0.99 * float(np.min(-lam[falling] / dl[falling]))) if falling.any() else 1.0
            shrinking = dh < 0
            step = min(1.0, 1.5 * float(np.min(-slack[shrinking] / dh[shrinking]))) if shrinking.any() else 1.0
            while step > 1e-10:
                found = self.slack(z + step * move)
                if found is not None and np.all(found[0] > BACK * slack) and np.isfinite(spline.duration(z + step * move)):
                    break
                step *= 0.7
            else:
                break
            z, (slack, root) = z + step * move, found
            lam = np.clip(lam + dual * dl, mu / (NEAR * slack), NEAR * mu / slack)
        return Solution(z, lam, False)

    def _back(self, J: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Weights (N, P, rows) of the rows, whose derivatives are J, as forces (N, DEGREE + 1) on the cells' unknowns."""
        found: np.ndarray = np.einsum("cpk,cpkd->cd", np.einsum("cpr,cprk->cpk", weights, J), self.shapes)
        return found

    def _gather(self, local: np.ndarray) -> np.ndarray:
        """Numbers (N, DEGREE + 1) of cells added up by unknowns."""
        found = np.zeros(self.spline.unknowns)
        for d in range(DEGREE + 1):  # the cells' unknowns with one place are all different
            found[self.spline.index[:, d]] += local[:, d]
        return found

    def _newton(self, stiff: np.ndarray, W: np.ndarray, curvature: np.ndarray, right: np.ndarray) -> np.ndarray | None:
        """Newton's step, with the positive part of the curvature of rows (N, P, rows); None where the matrix is not positive."""
        n = self.spline.unknowns
        W[..., 0, 0] += np.maximum(curvature, 0.0).sum(axis=-1)
        H = stiff + np.einsum("cpkd,cpkl,cple->cde", self.shapes, W, self.shapes, optimize=True)
        band = np.zeros((DEGREE + 1, n))
        for i in range(DEGREE + 1):
            for j in range(i + 1):
                band[i - j, self.spline.index[:, j]] += H[:, i, j]
        scale = 1.0 / np.sqrt(np.maximum(band[0], 1e-300))
        for k in range(DEGREE + 1):
            band[k, : n - k] *= scale[: n - k] * scale[k:]
        for shift in (0.0, 1e-13, 1e-10):
            band[0] = 1.0 + shift
            try:
                return np.asarray(scale * cho_solve_banded((cholesky_banded(band, lower=True), True), scale * right))
            except LinAlgError:
                continue
        return None
