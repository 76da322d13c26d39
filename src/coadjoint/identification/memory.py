"""Dry friction at rest: what is left of the motion before.

Dahl's law (1968) dσ/dx = (1 - σ sign ẋ) / s has a state, the direction σ of dry friction, which a joint that stops keeps: at rest
friction is anything between two bounds, and the motion before decided what it is. Where a joint moves, σ is all but a function of v and
a, and `friction.direction` gives it; where it stands, and where it sets out from there, the law is integrated along the displacements.

Without slip, s = 0, this is the sign of the last motion: any displacement has turned it, so that it differs from the function of v and a at
rest alone, where the speed is no larger than its noise.
"""

from __future__ import annotations

import numpy as np

from .friction import Shape
from .preparation import DWELL, ROUNDING, lasting, runs, sticking

CLEAR = 2.0
"""The residual with memory, relative to that without, above which a rest tells that there is none."""


def remembered(
    time: np.ndarray,
    q: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    shape: Shape,
    speed: np.ndarray,
    acceleration: np.ndarray,
    noise: np.ndarray,
) -> np.ndarray:
    """σ (N, nv) of dry friction along a motion: with memory where a joint stands and where it sets out, else as of each row alone.

    `speed` and `acceleration` (nv,): root mean squares of the motion that was fitted; `noise` (nv,): the speed that tells no motion in it.
    What came before the first row is not known: σ = 0.
    """
    step = np.diff(time)
    moved = np.diff(q, axis=0) if q.shape == v.shape else 0.5 * step[:, None] * (v[1:] + v[:-1])
    slips = shape.slips > 0
    kept = np.exp(-np.abs(moved) / np.where(slips, shape.slips, np.inf))
    turned = np.sign(moved) * (1.0 - kept)
    state = np.zeros_like(v)
    for k in range(len(moved)):
        state[k + 1] = kept[k] * state[k] + turned[k]
    middle = float(np.median(step)) if len(step) else 1.0
    dwell = max(1, round(DWELL / middle))
    still = np.abs(v) <= noise
    jumps = shape.widths <= ROUNDING * speed
    rests = np.where(jumps, still, lasting(still, dwell))  # what is smooth in speed keeps nothing while it turns
    rests = np.where(slips, sticking(v, a, middle, dwell, speed, acceleration), rests)
    return np.where(rests, np.where(slips, state, last_motion(v, still)), shape.direction(v, a))


def last_motion(v: np.ndarray, still: np.ndarray) -> np.ndarray:
    """(N, nv): the sign of v where a joint moves or sets out without turning again, else that of the last motion; 0 before the first."""
    sign, rows = np.sign(v), np.arange(len(v))[:, None]
    last = np.maximum.accumulate(np.where(still, -1, rows), axis=0)
    next_ = np.minimum.accumulate(np.where(still, len(v), rows)[::-1], axis=0)[::-1].clip(max=len(v) - 1)
    turns = np.cumsum(np.diff(sign, axis=0, prepend=sign[:1]) != 0, axis=0)
    sets_out = turns == np.take_along_axis(turns, next_, axis=0)
    left = np.where(last < 0, 0.0, np.take_along_axis(sign, last.clip(0), axis=0))
    return np.where(sets_out & ~np.take_along_axis(still, next_, axis=0), sign, left)


def ratios(left: np.ndarray, other: np.ndarray) -> list[list[float]]:
    """For each joint and each of its runs of rows where two residuals (N, nv) differ: the size of the other one relative to the first."""
    pairs = zip(left.T, other.T, strict=True)
    sizes = [[(np.linalg.norm(x[i:j]), np.linalg.norm(y[i:j])) for i, j in runs(x != y)] for x, y in pairs]
    return [[float(y / x) if x > 0 else np.inf for x, y in own] for own in sizes]
