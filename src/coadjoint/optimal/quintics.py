"""Motions as polynomials of degree 5 between states: an integrated motion, step by step.

Control points c (3 (pieces + 1), n) are q, q' and q'' at the ends of every piece, ' = d/ds, 0 ≤ s ≤ 1; s is t/T.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from .splines import ALL, LEFT, ORDERS, powers

DATA = 3
"""Position and two derivatives at the ends of a piece."""
DEGREE = 2 * DATA - 1
PLACES = 8
"""Places in a piece, at least, at which limits are checked."""


class Places(NamedTuple):
    """Places s (S,), the pieces they are in (S,), and how what is at both ends of them acts there (S, orders, 2 DATA)."""

    s: np.ndarray
    piece: np.ndarray
    basis: np.ndarray

    def __len__(self) -> int:
        return len(self.s)


class Quintics:
    """The basis of such motions with a number of pieces of equal length on [0, 1]."""

    per_span = DATA

    def __init__(self, pieces: int) -> None:
        self.spans = pieces
        self._shapes = np.linalg.inv(_monomials(np.array([0.0, 1.0]), DATA).reshape(2 * DATA, 2 * DATA))
        """(power, datum): the polynomials on [0, 1] whose derivatives at the ends are 0 but for one."""

    def at(self, s: np.ndarray) -> Places:
        s = np.asarray(s, dtype=float)
        piece = np.clip((s * self.spans).astype(int), 0, self.spans - 1)
        monomials = _monomials(s * self.spans - piece, ORDERS)
        length = float(self.spans) ** (np.arange(ORDERS)[:, None] - np.tile(np.arange(DATA), 2))
        return Places(s, piece, (monomials @ self._shapes) * length)

    @cached_property
    def dense(self) -> tuple[np.ndarray, Places]:
        """Places s (S,), as many at equal distances in every piece, both of its ends among them; see `Spline.dense`."""
        inside = np.linspace(0.0, 1.0 - LEFT, max(PLACES, -(-ALL // self.spans)) + 1)
        s = ((np.arange(self.spans)[:, None] + inside) / self.spans).reshape(-1)
        s[-1] = 1.0
        return s, self.at(s)

    def stage(self, places: Places, c: np.ndarray, T: np.ndarray) -> np.ndarray:
        """(..., S, orders, n) of control points (..., 3 (pieces + 1), n) and durations (...)."""
        near = c[..., DATA * places.piece[:, None] + np.arange(2 * DATA), :]
        return np.asarray((places.basis @ near) * powers(T)[..., None, :, None])

    def curve(self, c: np.ndarray, T: np.ndarray | float, s: np.ndarray) -> list[np.ndarray]:
        """q, v, a and jerk (..., S, n) at s (S,)."""
        stage = self.stage(self.at(s), c, np.asarray(T, dtype=float))
        return [np.ascontiguousarray(stage[..., order, :]) for order in range(ORDERS)]

    def largest(self, c: np.ndarray, order: int) -> np.ndarray:
        """Bounds (pieces, n) of |dq/ds| of an order in every piece: the control points of Bézier's polygon, (3 (pieces + 1), n)."""
        h, at = 1.0 / self.spans, c.reshape(self.spans + 1, DATA, -1)
        q, v, a = at[:, 0], at[:, 1] * h / DEGREE, at[:, 2] * h**2 / (DEGREE * (DEGREE - 1))
        first, last = [x[:-1] for x in (q, v, a)], [x[1:] for x in (q, v, a)]
        polygon = np.stack(
            [
                first[0],
                first[0] + first[1],
                first[0] + 2 * first[1] + first[2],
                last[0] - 2 * last[1] + last[2],
                last[0] - last[1],
                last[0],
            ]
        )
        for k in range(order):
            polygon = (DEGREE - k) / h * np.diff(polygon, axis=0)
        return np.asarray(np.abs(polygon).max(0))


def _monomials(u: np.ndarray, orders: int) -> np.ndarray:
    """(S, orders, powers): 1, u, … u⁵ at u (S,), and their derivatives."""
    k, factor, found = np.arange(DEGREE + 1), np.ones(DEGREE + 1), []
    for d in range(orders):
        found.append(factor * u[:, None] ** np.maximum(k - d, 0))
        factor = factor * np.maximum(k - d, 0)
    return np.stack(found, axis=1)
