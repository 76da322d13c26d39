"""Dormand and Prince's method of order 8 for many systems of one size, each with steps of its own.

The systems advance together: in every iteration each attempts one step, of the length that its own error allows, so that
the right-hand side is evaluated for all at once. Those that have arrived, failed, or become stiff leave. Error estimate, control of
the step and interpolant are those of one system (Hairer, Nørsett and Wanner, II.5 and II.10), so each takes the steps it would take alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Rate = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""dy/dt (M, n) of the systems with the indices rows (M,), at times (M,) and states (M, n)."""
Settle = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""States (M, n) of the systems with the indices rows (M,), projected onto their manifold."""
At = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""The states (R, n) of the k-th (R,) of some systems at times (R,) of the step that they have taken."""

SAFETY, LEAST, MOST = 0.9, 0.2, 10.0
"""The part of the step that the error allows, and bounds of its change."""
STABLE, OFTEN = 6.1, 15
"""The step times the Lipschitz constant from which on stability limits it, and how many steps in a row count."""
LONG = 200
"""The least number of remaining steps for which a change of the method pays."""
BLOCK = 1 << 16
"""The number of states interpolated in one call."""


def _norm(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.norm(x, axis=-1) / x.shape[-1] ** 0.5)


class DormandPrince:
    """The integration of systems in progress: times t (N,) and states y (N, n). `live` has the indices of those that continue."""

    def __init__(self, rate: Rate, settle: Settle | None, t: float, y: np.ndarray, end: float, tolerance: float) -> None:
        from scipy.integrate import DOP853

        self.table: Any = DOP853
        self.rate, self.settle, self.end, self.tolerance = rate, settle, end, tolerance
        self.t, self.y, self.live = np.full(len(y), t), y.copy(), np.arange(len(y))
        self.f = rate(self.live, self.t, self.y)
        self.h = self._first_steps()
        self.retried = np.zeros(len(y), dtype=bool)
        self.slow = np.zeros(len(y), dtype=int)
        """The number of steps in a row that stability has limited."""
        self.failed: list[int] = []
        self.stiff: list[int] = []
        self._drop(np.asarray(~np.isfinite(self.f).all(-1)), self.failed)

    def _first_steps(self) -> np.ndarray:
        """Steps (N,) to begin with, from the sizes of y, f and of the change of f over a short step."""
        span, y, f = self.end - self.t, self.y, self.f
        scale = self.tolerance * (1.0 + np.abs(y))
        with np.errstate(all="ignore"):
            d0, d1 = _norm(y / scale), _norm(f / scale)
            h0 = np.minimum(np.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1), span)
            f1 = self.rate(self.live, self.t + h0, y + h0[:, None] * f)
            d2 = _norm((f1 - f) / scale) / h0
            flat = (d1 <= 1e-15) & (d2 <= 1e-15)
            h1 = np.where(flat, np.fmax(1e-6, 1e-3 * h0), (0.01 / np.fmax(d1, d2)) ** 0.125)
        return np.asarray(np.fmin(np.fmin(100 * h0, h1), span))

    def _drop(self, out: np.ndarray, where: list[int] | None = None) -> None:
        """Remove some of the live systems (M,)."""
        if out.any():
            if where is not None:
                where.extend(map(int, self.live[out]))
            self.live = self.live[~out]

    def advance(self, write: Callable[[np.ndarray, np.ndarray, np.ndarray, At], None]) -> None:
        """Every live system attempts one step. write(rows, before, after, at) is called for those that took it, with the times before
        and after it and its interpolant."""
        rows = self.live
        t, y = self.t[rows], self.y[rows]
        h = np.fmax(self.h[rows], 10 * (np.nextafter(t, np.inf) - t))
        after = np.fmin(t + h, self.end)
        h = after - t
        K, last, y_new = self._stages(rows, t, y, h)
        with np.errstate(all="ignore"):
            error = self._error(K, y, y_new, h)
            taken = error < 1.0
            factor = np.minimum(np.where(self.retried[rows] & taken, 1.0, MOST), SAFETY * error**-0.125)
        self.h[rows] = h * np.where(factor > LEAST, factor, LEAST)  # also where the error is not a number
        self.retried[rows] = ~taken
        tiny = ~taken & (self.h[rows] < 10 * (np.nextafter(t, np.inf) - t))
        if taken.any():
            k = np.flatnonzero(taken)
            kept = K[:, k]
            self._count_slow(rows[k], h[k], kept, last[k], y_new[k])
            write(rows[k], t[k], after[k], lambda i, when: self._between(kept, rows[k], t[k], y[k], y_new[k], h[k], i, when))
            self._accept(rows[k], after[k], y_new[k], kept[12])
        lost = tiny | (taken & ~(np.isfinite(self.y[rows]).all(-1) & np.isfinite(self.f[rows]).all(-1)))
        arrived = taken & (after >= self.end) & ~lost
        stiff = taken & (self.slow[rows] >= OFTEN) & (self.end - self.t[rows] > LONG * self.h[rows]) & ~lost
        self.failed.extend(map(int, rows[lost]))
        self.stiff.extend(map(int, rows[stiff]))
        self._drop(lost | arrived | stiff)

    def _stages(self, rows: np.ndarray, t: np.ndarray, y: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Slopes K (16, M, n) with the last three still to come, the state of the last stage, and the state after the step."""
        K = np.empty((16, *y.shape))
        K[0] = self.f[rows]
        length, stage = h[:, None], y
        with np.errstate(over="ignore", invalid="ignore"):
            for s in range(1, 12):
                stage = y + length * np.tensordot(self.table.A[s, :s], K[:s], 1)
                K[s] = self.rate(rows, t + self.table.C[s] * h, stage)
            y_new = y + length * np.tensordot(self.table.B, K[:12], 1)
            K[12] = self.rate(rows, t + h, y_new)
        return K, stage, y_new

    def _error(self, K: np.ndarray, y: np.ndarray, y_new: np.ndarray, h: np.ndarray) -> np.ndarray:
        """The local error (M,) relative to the tolerance."""
        scale = self.tolerance * (1.0 + np.maximum(np.abs(y), np.abs(y_new)))
        fifth, third = ((np.tensordot(e, K[:13], 1) / scale) ** 2 for e in (self.table.E5, self.table.E3))
        a, b = fifth.sum(-1), third.sum(-1)
        return np.where((a == 0) & (b == 0), 0.0, h * a / np.sqrt((a + 0.01 * b) * y.shape[-1]))

    def _count_slow(self, rows: np.ndarray, h: np.ndarray, K: np.ndarray, last: np.ndarray, y_new: np.ndarray) -> None:
        with np.errstate(all="ignore"):
            lipschitz = np.linalg.norm(K[12] - K[11], axis=-1) / np.linalg.norm(y_new - last, axis=-1)
            self.slow[rows] = np.where(h * lipschitz > STABLE, self.slow[rows] + 1, 0)

    def _accept(self, rows: np.ndarray, t: np.ndarray, y: np.ndarray, f: np.ndarray) -> None:
        if self.settle is not None:
            y = self.settle(rows, y)
            f = self.rate(rows, t, y)
        self.t[rows], self.y[rows], self.f[rows] = t, y, f

    def _between(
        self,
        K: np.ndarray,
        rows: np.ndarray,
        t: np.ndarray,
        y: np.ndarray,
        y_new: np.ndarray,
        h: np.ndarray,
        index: np.ndarray,
        when: np.ndarray,
    ) -> np.ndarray:
        """The interpolant of order 7 of the systems index (R,) at times (R,)."""
        own, at = np.unique(index, return_inverse=True)
        K, rows, t, y, h = K[:, own], rows[own], t[own], y[own], h[own]
        length = h[:, None]
        for s, (a, c) in enumerate(zip(self.table.A_EXTRA, self.table.C_EXTRA, strict=True), start=13):
            K[s] = self.rate(rows, t + c * h, y + length * np.tensordot(a[:s], K[:s], 1))
        change = y_new[own] - y
        F = [change, length * K[0] - change, 2 * change - length * (K[12] + K[0])]
        F += list(length * np.tensordot(self.table.D, K, 1))
        found = np.empty((len(when), y.shape[-1]))
        for first in range(0, len(when), BLOCK):
            part = slice(first, first + BLOCK)
            k = at[part]
            x = ((when[part] - t[k]) / h[k])[:, None]
            value = np.zeros((len(k), y.shape[-1]))
            for i, term in enumerate(reversed(F)):
                value = (value + term[k]) * (x if i % 2 == 0 else 1 - x)
            found[part] = value + y[k]
        return found
