"""Reversal of dry friction: the width and the slip of each joint by which held-back stretches are predicted best."""

from __future__ import annotations

import numpy as np

from .friction import Shape, direction
from .preparation import SLIPPED, Prepared

WIDTHS = (1e-9, 0.003, 0.01, 0.02, 0.04, 0.08, 0.15)
"""Speeds w that are tried, relative to the root-mean-square speed of the joint; the first is a jump."""
SLIPS = (0.0, 2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3, 8e-3, SLIPPED)
"""Displacements s that are tried, relative to that in which the joint reverses: its mean square speed over its acceleration."""
PAIRS = tuple((w, s) for w in WIDTHS for s in SLIPS)
USUAL = 0.03
"""The width of a joint that shows none, relative to its speed."""
STRIBECK = 0.3
"""The speed of Stribeck's term, relative to that of the joint."""
ROWS = 20000
"""Rows that suffice for this choice."""
RIDGE = 0.1
"""The weight of the prior's inertias, in rows."""
CORRELATED = 8.0
"""Rows that count as one independent one."""
ENOUGH = 2.0
"""The gain of log-likelihood for which friction does not jump, as the first pair does, and for which a joint reverses unlike the others."""


def usual(v: np.ndarray) -> Shape:
    """Widths and speeds in proportion to the speeds v (N, nv); no slip."""
    speed = np.sqrt(np.mean(v * v, axis=0))
    speed = np.where(speed > 0, speed, 1.0)
    return Shape(USUAL * speed, np.zeros_like(speed), STRIBECK * speed)


def reversals(data: Prepared, Y: np.ndarray, load: np.ndarray, folds: np.ndarray) -> Shape:
    """Widths and slips for regressors Y (N, nv, r) of the base parameters and the forces (N, nv) that the prior expects.

    Every joint alone: base parameters, offset, viscous friction, rotor and spring beside dry friction and its part in proportion to the
    load. All joints have the width and the slip, relative to their motions, that suit them together, a jump unless another pair is clearly
    better, but for those which clearly ask for another.
    """
    shape = usual(data.v)
    speed = shape.widths / USUAL
    length = speed**2 / np.sqrt(np.mean(data.a**2, axis=0)).clip(1e-12)
    thin = max(1, len(data) // ROWS)
    springs = data.q if data.q.shape == data.v.shape else data.v[:, :0]
    scores = {}
    for j in range(data.tau.shape[1]):
        rows = np.flatnonzero(data.used[:, j])[::thin]
        v, a = data.v[rows, j], data.a[rows, j]
        if len(rows) < 64 or not np.any(v):
            continue
        Z = np.column_stack([Y[rows, j], np.ones(len(rows)), v, a, *springs[rows, j : j + 1].T])
        Z = Z / np.sqrt((Z * Z).mean(0)).clip(1e-12)
        score = _scores(Z, data.tau[rows, j] - load[rows, j], v, a, np.abs(load[rows, j]), folds[rows], speed[j], length[j])
        if score is not None:
            scores[j] = score
    if scores:
        total = np.sum(list(scores.values()), axis=0)
        common = int(np.argmax(total)) if total.max() > total[0] + ENOUGH else 0
        for j, score in scores.items():
            best = int(np.argmax(score))
            width, slip = PAIRS[best if score[best] > score[common] + ENOUGH else common]
            shape.widths[j], shape.slips[j] = width * speed[j], slip * length[j]
    return shape


def _scores(
    Z: np.ndarray, y: np.ndarray, v: np.ndarray, a: np.ndarray, load: np.ndarray, folds: np.ndarray, speed: float, length: float
) -> np.ndarray | None:
    """The held-back log-likelihood of each pair of a width and a slip; None for a joint that shows no dry friction."""
    S = np.stack([np.zeros(len(v)), *(direction(v, a, w * speed, s * length) for w, s in PAIRS)], axis=1)
    squares = held_back_squares(Z, y, S, load[:, None] * S, folds)
    if squares[1:].min() > 0.99 * squares[0]:
        return None
    floor = 1e-16 * float(y @ y) + 1e-300
    return np.asarray(-0.5 * len(y) / CORRELATED * np.log(np.maximum(squares[1:], floor)))


def held_back_squares(Z: np.ndarray, y: np.ndarray, S: np.ndarray, L: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """(C,): Σ of squares of held-back residuals of y by columns Z and a pair (S, L)[:, c] of each candidate c, all (N, …)."""
    out = np.zeros(S.shape[1])
    blocks = np.unique(folds)
    parts = [(Z[k], y[k], S[k], L[k]) for k in (folds == f for f in blocks)]
    whole = np.concatenate([Z.T @ Z, Z.T @ S, Z.T @ L, (Z.T @ y)[:, None]], axis=1)
    inner = _inner(S, L, y)
    for z, t, s, m in parts:
        own = np.concatenate([z.T @ z, z.T @ s, z.T @ m, (z.T @ t)[:, None]], axis=1)
        rest = whole - own
        p, c = Z.shape[1], S.shape[1]
        B = rest[:, p:]
        X = np.linalg.solve(rest[:, :p] + RIDGE * np.eye(p), B)
        XS, XL, xy = X[:, :c], X[:, c:-1], X[:, -1]
        BS, BL = B[:, :c], B[:, c:-1]
        ss, sl, ll, sy, ly = (x - o for x, o in zip(inner, _inner(s, m, t), strict=True))
        ss, sl, ll = ss - (BS * XS).sum(0), sl - (BS * XL).sum(0), ll - (BL * XL).sum(0)
        sy, ly = sy - BS.T @ xy, ly - BL.T @ xy
        ss, ll = ss * (1 + 1e-6) + 1e-12, ll * (1 + 1e-6) + 1e-12
        det = ss * ll - sl * sl
        f, g = (ll * sy - sl * ly) / det, (ss * ly - sl * sy) / det
        e = (t - z @ xy)[:, None] - (s - z @ XS) * f - (m - z @ XL) * g
        out += (e * e).sum(0)
    return out


def _inner(S: np.ndarray, L: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    return (S * S).sum(0), (S * L).sum(0), (L * L).sum(0), S.T @ y, L.T @ y
