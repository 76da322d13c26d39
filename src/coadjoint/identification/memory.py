"""Dry friction at rest: what is left of the motion before.

Dahl's law (1968) dσ/dx = (1 - σ sign ẋ) / s has a state, the direction σ of dry friction, which a joint that stops keeps: at rest
friction is anything between two bounds, and the motion before decided what it is. Where a joint moves, σ is all but a function of v and
a, and `friction.direction` gives it; where it stands, and where it sets out from there, the law is integrated along the displacements.
"""

from __future__ import annotations

import numpy as np

from .friction import Shape
from .preparation import DWELL, sticking
from .reversals import SLIPS

LEAST = SLIPS[1]
"""The least slip s, relative to the displacement in which the joint reverses: noise of positions at rest is no motion."""


def remembered(
    time: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray, shape: Shape, speed: np.ndarray, acceleration: np.ndarray
) -> np.ndarray:
    """σ (N, nv) of dry friction along a motion: with memory where a joint stands and where it sets out, else as of each row alone.

    `speed` and `acceleration` (nv,): root mean squares of the motion that was fitted. What came before the first row is not known: σ = 0.
    """
    step = np.diff(time)
    moved = np.diff(q, axis=0) if q.shape == v.shape else 0.5 * step[:, None] * (v[1:] + v[:-1])
    slip = np.maximum(shape.slips, LEAST * speed**2 / np.where(acceleration > 0, acceleration, np.inf))
    kept = np.exp(-np.abs(moved) / np.where(slip > 0, slip, np.inf))
    turned = np.sign(moved) * (1.0 - kept)
    state = np.zeros_like(v)
    for k in range(len(moved)):
        state[k + 1] = kept[k] * state[k] + turned[k]
    middle = float(np.median(step)) if len(step) else 1.0
    rests = sticking(v, a, middle, max(1, round(DWELL / middle)), speed, acceleration)
    return np.where(rests, state, shape.direction(v, a))
