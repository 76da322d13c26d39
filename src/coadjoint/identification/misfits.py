"""Doubts about a log, beside the model that was fitted to it: little explained, a few rows far off, forces that stop."""

from __future__ import annotations

import numpy as np

from ..words import cut
from .preparation import Prepared

POOR = 0.3
"""A relative error that is told."""
UNEXPLAINED = 0.5
"""What is left of the forces beside their means, relative to these, that is told."""
PART, MOST = 0.1, 0.85
"""So few rows have so much of the squares of a joint's residuals: Gaussian ones have 0.44 of them in a tenth of the rows."""
FAR = 0.1
"""The residual of a joint, relative to its force beside the mean, from which on rows far off are told."""
END, ROWS = 0.15, 0.02
"""The end of the range of expected forces in which measured ones may stop, and the least part of the rows that is there."""
FLAT = 0.25
"""The slope of measured by expected forces there, below which they stop: it is 1 of a model that is right."""
STILL, SECONDS = 1e-2, 0.2
"""Steps of a force, relative to its usual ones, that are none, and for how long there are none if a sensor stood still."""


def misfits(names: tuple[str, ...], data: Prepared, predicted: np.ndarray, robust: bool = False) -> list[str]:
    """Sentences about forces (N, nv) that a model does not explain; `robust`: rows far off counted little, and need not be told."""
    used, left = data.used, data.tau - predicted
    squares = (left**2 * used).sum(0)
    mean = (data.tau * used).sum(0) / used.sum(0).clip(1)
    size = ((data.tau - mean) ** 2 * used).sum(0)
    found: dict[int, list[str]] = {}
    for j, name in enumerate(names):
        if squares[j] <= FAR**2 * size[j]:
            continue
        rows = np.flatnonzero(used[:, j])
        found[j] = (
            _capped(cut(name), data.tau[rows, j], predicted[rows, j])
            or _stopped(cut(name), data, j, predicted[:, j])
            or _far_off(cut(name), data.time[rows], left[rows, j])
        )
        if found[j] and robust and "reweighted" in found[j][0]:
            squares[j] = 0.0
    return [
        *(x for j, own in found.items() if squares[j] for x in own),
        *_poor(data, squares, size, [j for j in found if found[j]]),
    ]


def _poor(data: Prepared, squares: np.ndarray, size: np.ndarray, told: list[int]) -> list[str]:
    """A sentence about all forces together, of which `told` are joints with a sentence of their own."""
    error = np.sqrt(squares.sum() / max(float((data.tau**2 * data.used).sum()), 1e-300))
    others = np.setdiff1d(np.arange(len(squares)), told)
    changing = np.sqrt(squares[others].sum() / max(float(size[others].sum()), 1e-300))
    if error < POOR and changing < UNEXPLAINED:
        return []
    part = f"relative error {100 * error:.0f} %" + (f", {100 * changing:.0f} % of what changes in them" if error < POOR else "")
    return [
        f"the model explains little of the measured forces ({part}): are the columns of the "
        "log in the order of the robot's joints, their signs and units right?"
    ]


def _stopped(name: str, data: Prepared, j: int, predicted: np.ndarray) -> list[str]:
    """A sentence about the longest time for which a measured force stands while the expected one changes."""
    tau, goes_on = data.tau[:, j], np.diff(data.stretch) == 0
    step = np.abs(np.diff(tau))
    flat = goes_on & (step <= STILL * np.median(step[goes_on]))
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flat.astype(int), [0]])))
    runs = [(int(i), int(k)) for i, k in zip(edges[::2], edges[1::2], strict=True) if (k - i) * data.step >= SECONDS]
    runs = [(i, k) for i, k in runs if np.ptp(predicted[i : k + 1]) > FAR * tau.std()]
    if not runs:
        return []
    i, k = max(runs, key=lambda x: x[1] - x[0])
    return [
        f"{name}: the measured force stands at {tau[i]:.4g} from {data.time[i]:.5g} s to {data.time[k]:.5g} s while the model expects it "
        "to change: did its sensor stop? Leave these rows out."
    ]


def _far_off(name: str, time: np.ndarray, left: np.ndarray) -> list[str]:
    """A sentence if a few rows have nearly all of the squares."""
    order = np.argsort(-(left**2))
    few = order[: max(1, int(PART * len(left)))]
    share = float((left[few] ** 2).sum() / (left**2).sum())
    if share < MOST:
        return []
    return [
        f"{name}: a tenth of the rows has {100 * share:.0f} % of the squared residuals, the largest at {time[order[0]]:.5g} s: look at the "
        "log there (spikes, a sensor that stood still). method='reweighted' counts such rows little."
    ]


def _capped(name: str, tau: np.ndarray, predicted: np.ndarray) -> list[str]:
    """A sentence if measured forces stop where expected ones go on."""
    for sign, word in ((1.0, "above"), (-1.0, "below")):
        x, y = sign * predicted, sign * tau
        near = x > x.max() - END * np.ptp(x)
        if near.sum() < max(16, ROWS * len(x)):
            continue
        dx, dy = x[near] - x[near].mean(), y[near] - y[near].mean()
        slope = float(dx @ dy) / max(float(dx @ dx), 1e-300)
        if slope < FLAT and dx @ dx > 2 * (dy @ dy) and np.mean(y[near] < x[near]) > 0.5:
            return [
                f"{name}: where the model expects forces {word} {sign * x[near].min():.4g}, the measured ones stay at "
                f"{sign * np.median(y[near]):.4g}: are they saturated? Leave such rows out, or record a motion that needs less."
            ]
    return []
