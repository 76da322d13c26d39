"""Roots of smooth functions on cells, given by their values (C, p) at the points: where to cut."""

from __future__ import annotations

import numpy as np

from .collocation import COUNT, END, MONOMIALS, START, powers

DENSE = np.linspace(0.0, 1.0, 67)[1:-1]
"""Places inside a cell where polynomials are looked at."""
TIE = 1e-10
"""Relative difference of speeds that are the same."""
_INSIDE = powers(DENSE)
_GRID = np.concatenate([[0.0], DENSE, [1.0]])
_WHOLE = powers(_GRID)


def first_root(values: np.ndarray) -> np.ndarray:
    """The first σ (C,) where each function changes its sign; 0.5 where it does not."""
    f = values @ MONOMIALS.T @ _WHOLE.T
    f[:, 0], f[:, -1] = values[:, START], values[:, END]
    change = (f[:, :-1] * f[:, 1:] <= 0) & (f[:, :-1] != 0)
    k = np.argmax(change, axis=1)
    return np.where(change.any(axis=1), root_between(values, _GRID[k], _GRID[k + 1]), 0.5)


def last_root(values: np.ndarray) -> np.ndarray:
    """The last one."""
    return 1.0 - first_root(values[:, ::-1])  # the points are symmetric


def root_between(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The root (C,) of each function between σ = low and high, where its signs differ: Newton's method, halving where it leaves."""
    c = values @ MONOMIALS.T
    slopes = 2.0 * c[:, 1:] * np.arange(1, COUNT)
    sign = np.sign(np.einsum("cp,cp->c", c, powers(low)))
    x = (low + high) / 2
    for _ in range(12):
        t = powers(x)
        value, slope = np.einsum("cp,cp->c", c, t), np.einsum("cp,cp->c", slopes, t[:, :-1])
        same = value * sign > 0
        low, high = np.where(same, x, low), np.where(same, high, x)
        with np.errstate(all="ignore"):
            step = x - value / slope
        x = np.where((step > low) & (step < high), step, np.where(value == 0, x, (low + high) / 2))
    return x


def violated(slack: np.ndarray) -> np.ndarray:
    """Where (C,) to cut cells some of whose slacks (C, p, rows) are negative: the end of the violation, or where it is deepest."""
    n = np.arange(len(slack))
    worst = slack.min(axis=1).argmin(axis=1)
    values = slack[n, :, worst]
    dense = values @ MONOMIALS.T @ _INSIDE.T
    first, last = values[:, START] < -1e-13, values[:, END] < -1e-13
    everywhere = (dense < 0).all(axis=1)
    low = np.clip(dense.argmin(axis=1), 1, len(DENSE) - 2)
    y0, y1, y2 = dense[n, low - 1], dense[n, low], dense[n, low + 1]
    with np.errstate(all="ignore"):
        shift = 0.5 * (y0 - y2) / (y0 - 2 * y1 + y2)
    deepest = DENSE[low] + np.where(np.isfinite(shift), np.clip(shift, -1, 1), 0.0) * (DENSE[1] - DENSE[0])
    end = np.where(first, first_root(values), last_root(values))
    return np.where(everywhere, 0.5, np.where(first != last, end, deepest))


def crossing(ahead: np.ndarray, behind: np.ndarray, cap: np.ndarray) -> np.ndarray:
    """σ (C,) where the least of three functions becomes another one for the first time; at 0 it is the first, at 1 the second or third."""
    curves = np.stack([ahead, behind, cap], axis=1)
    dense = curves @ MONOMIALS.T @ _WHOLE.T
    dense[:, :, 0], dense[:, :, -1] = curves[:, :, START], curves[:, :, END]
    label = dense.argmin(axis=1)
    for end, inside in ((0, 1), (-1, -2)):  # where two of them begin or end together, the next place decides
        two = np.sort(dense[:, :, end], axis=1)
        label[:, end] = np.where(two[:, 1] - two[:, 0] <= TIE * np.abs(two[:, 0]), label[:, inside], label[:, end])
    change = label[:, :-1] != label[:, 1:]
    n, k = np.arange(len(label)), np.argmax(change, axis=1)
    difference = curves[n, label[n, k]] - curves[n, label[n, k + 1]]
    return np.where(change.any(axis=1), root_between(difference, _GRID[k], _GRID[k + 1]), 0.5)
