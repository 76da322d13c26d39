"""Roots of smooth functions on cells, given by their values (C, p) at the points: where to cut."""

from __future__ import annotations

import numpy as np

from .collocation import COUNT, END, MONOMIALS, START, powers

DENSE = np.linspace(0.0, 1.0, 67)[1:-1]
"""Places inside a cell where polynomials are looked at."""
TIE = 1e-10
"""Relative difference of speeds that are the same."""
_INSIDE = powers(DENSE)
PLACES = np.concatenate([[0.0], DENSE, [1.0]])
_WHOLE = powers(PLACES)


def first_root(values: np.ndarray) -> np.ndarray:
    """The first σ (C,) where each function changes its sign; 0.5 where it does not."""
    f = values @ MONOMIALS.T @ _WHOLE.T
    f[:, 0], f[:, -1] = values[:, START], values[:, END]
    change = (f[:, :-1] * f[:, 1:] <= 0) & (f[:, :-1] != 0)
    k = np.argmax(change, axis=1)
    return np.where(change.any(axis=1), root_between(values, PLACES[k], PLACES[k + 1]), 0.5)


def last_root(values: np.ndarray) -> np.ndarray:
    """The last one."""
    return 1.0 - first_root(values[:, ::-1])  # the points are symmetric


def root_between(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The root (C,) of each function between σ = low and high, where its signs differ: Newton's method, halving where it leaves."""
    c = values @ MONOMIALS.T
    slopes = 2.0 * c[:, 1:] * np.arange(1, COUNT)
    sign = np.sign(np.einsum("cp,cp->c", c, powers(low)))
    x = (low + high) / 2
    for turn in range(36):
        t = powers(x)
        value, slope = np.einsum("cp,cp->c", c, t), np.einsum("cp,cp->c", slopes, t[:, :-1])
        same = value * sign > 0
        low, high = np.where(same, x, low), np.where(same, high, x)
        with np.errstate(all="ignore"):
            step = x - value / slope
        newton = (step > low) & (step < high) & (turn % 3 != 2)  # which is slow where two roots nearly meet
        x = np.where(value == 0, x, np.where(newton, step, (low + high) / 2))
        if turn % 3 == 1 and np.all(np.abs(value / np.where(slope == 0, 1.0, slope)) < 1e-13):
            break
    return np.asarray(x)


def violated(slack: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where (C,) to cut cells some of whose slacks (C, p, rows) are negative, and the row that is worst.

    Where it is violated at one end only, the end of the violation; else where it is deepest.
    """
    n = np.arange(len(slack))
    all_rows = dense(np.swapaxes(slack, 1, 2))
    worst = all_rows.min(axis=2).argmin(axis=1)
    values, found = slack[n, :, worst], all_rows[n, worst]
    first, last = found[:, 0] < -1e-13, found[:, -1] < -1e-13
    low = np.clip(found.argmin(axis=1), 1, len(PLACES) - 2)
    y0, y1, y2 = found[n, low - 1], found[n, low], found[n, low + 1]
    with np.errstate(all="ignore"):
        shift = 0.5 * (y0 - y2) / (y0 - 2 * y1 + y2)
    bottom = PLACES[low] + np.where(np.isfinite(shift), np.clip(shift, -1, 1), 0.0) * (PLACES[1] - PLACES[0])
    end = np.where(first, first_root(values), last_root(values))
    return np.where((found < 0).all(axis=1), 0.5, np.where(first != last, end, bottom)), worst


def deepest(slack: np.ndarray, near: float) -> np.ndarray:
    """The least value (C,) of slacks (C, p, rows) inside cells, of those that come nearer to zero than this at the points."""
    found = slack.min(axis=(1, 2))
    cell, row = np.nonzero(slack.min(axis=1) < near)
    if len(cell):
        inside = (slack[cell, :, row] @ MONOMIALS.T @ _INSIDE.T).min(axis=1)
        np.minimum.at(found, cell, inside)
    return np.asarray(found)


def dense(values: np.ndarray) -> np.ndarray:
    """Values (..., places) of functions (..., p) at both ends and at places inside."""
    found = values @ MONOMIALS.T @ _WHOLE.T
    found[..., 0], found[..., -1] = values[..., START], values[..., END]
    return np.asarray(found)


def first_change(curves: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the least of curves (C, n, places) becomes another one for the first time: the place before it, and both numbers.

    Where curves begin or end together, the next place decides; where none changes both numbers are the same.
    """
    label = curves.argmin(axis=1)
    for end, inside in ((0, 1), (-1, -2)):
        n, least = np.arange(len(label)), curves[:, :, end].min(axis=1)
        tied = curves[n, label[:, inside], end] - least <= TIE * np.abs(least)
        label[:, end] = np.where(tied, label[:, inside], label[:, end])
    change = label[:, :-1] != label[:, 1:]
    k = np.argmax(change, axis=1)
    return k, label[n, k], label[n, k + 1]
