"""A model that is linear at a fit: its columns, joint by joint; estimates and their covariance by the data alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .equations import GAIN, Equations, Rows
from .model import Choice, Fit, Fitter
from .statistics import meat


class Linear(NamedTuple):
    """The equations of one joint: τ = known + Z x[places]."""

    joint: int
    use: np.ndarray
    """(N,): the rows."""
    places: np.ndarray
    """Places of the columns in x, without what no force shows: base parameters, coefficients of friction, changes of tilt."""
    Z: np.ndarray
    known: np.ndarray
    tau: np.ndarray


def linear(rows: Rows, choice: Choice, fit: Fit) -> Iterator[Linear]:
    """The equations of every joint that are linear at the fit, whose changes of gains and tilt are 0."""
    s, r, data, unknowns = rows.structure, rows.structure.rank, rows.data, len(choice.unknowns)
    beta = fit.x[:r]
    X = np.concatenate([rows.columns(k, beta) for k in rows])
    base = X[..., :r] + sum(t * X[..., (d + 1) * r : (d + 2) * r] for d, t in enumerate(fit.tilt))
    count = 0
    for j, own in enumerate(choice.local):
        use = data.used[:, j]
        if not use.any():
            count += len(own)
            continue
        factor, known, b = 1.0 + fit.gains[j], X[use, j, -1], base[use, j]
        local = [b @ beta + known if k == GAIN else X[use, j, s.blocks * r + k] for k in own]
        turned = [factor * (X[use, j, (d + 1) * r : (d + 2) * r] @ beta) for d in range(2)] if choice.tilt else []
        places = np.array([*range(r), *(r + count + k for k in range(len(own))), *(r + unknowns + d for d in range(len(turned)))])
        Z = np.concatenate([factor * b, np.stack([*local, *turned], axis=1)], axis=1) if local or turned else factor * b
        yield Linear(j, use, places, Z, factor * known, data.tau[use, j])
        count += len(own)


def data_alone(rows: Rows, eq: Equations, fitter: Fitter, choice: Choice, fit: Fit) -> tuple[np.ndarray, np.ndarray]:
    """Estimate and covariance of base parameters and friction (and of the tilt, last) by the data without any prior but the gains'.

    Weighted least squares; the covariance knows the autocorrelation of the residuals. What the motion does not show has infinite variance.
    """
    r, hidden = fitter.s.rank, fitter.hidden
    made = fitter.assemble(fitter.collapse(eq.total(), fit.tilt, fit.x[:r], choice.tilt), choice, fit.gains)
    n = fitter.size(choice)
    A, b = np.zeros((n, n)), np.zeros(n)
    for j, (index, G, c, _) in enumerate(made):
        A[np.ix_(index, index)] += G / fit.variance[j]
        b[index] += c / fit.variance[j]
    joints, places = fitter.gained(choice)
    k = places - len(fitter.start)
    weights = fitter.expected(choice)[k[:, None], k]
    A[places[:, None], places] += weights
    b[places] -= weights @ fit.gains[joints]
    keep = np.r_[0:r, r + hidden : n]
    A, b = A[np.ix_(keep, keep)], b[keep]
    scale = 1.0 / np.sqrt(np.diag(A).clip(1e-300))
    scale[np.diag(A) <= 0] = 0.0
    values, vectors = np.linalg.eigh(A * scale[:, None] * scale)
    seen = values > 1e-10 * max(values[-1], 1e-300)
    V = scale[:, None] * vectors[:, seen] / np.sqrt(values[seen])
    start = fit.x[keep]
    estimate = start + V @ (V.T @ (b - A @ start))
    middle = _meat(rows, choice, fit, estimate, V)
    k = places - hidden
    middle[k[:, None], k] += weights
    covariance = V @ (V.T @ middle @ V) @ V.T
    unseen = vectors[:, ~seen]
    lost = (unseen**2).sum(1) > 1e-8
    covariance[lost, lost] = np.inf
    covariance[scale == 0, scale == 0] = np.inf
    estimate[places - hidden] += fit.gains[joints]
    if choice.tilt:
        estimate[-2:] += fit.tilt
    return estimate, covariance


def order(rows: int) -> int:
    """The order of the autoregression for this number of residuals."""
    return int(np.clip(rows // 50, 1, 24))


def _meat(rows: Rows, choice: Choice, fit: Fit, estimate: np.ndarray, V: np.ndarray) -> np.ndarray:
    """The covariance of Xᵀ W e, X being the columns of the model that is linear at the fit, and V Vᵀ = (Xᵀ W X)⁻¹."""
    out = np.zeros((len(estimate), len(estimate)))
    for j, use, places, Z, known, tau in linear(rows, choice, fit):
        residual = tau - known - Z @ estimate[places]
        fitted = Z @ V[places] / np.sqrt(fit.variance[j])
        found = meat(Z, residual, rows.data.stretch[use], order(len(residual)), fitted)
        out[np.ix_(places, places)] += found / fit.variance[j] ** 2
    return out
