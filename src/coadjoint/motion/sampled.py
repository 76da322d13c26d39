"""A control that is sampled: evaluated at every period, its forces held between, and in effect after a delay."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

NEAR = 1e-9
"""The fraction of a period by which equal times may differ by rounding."""


class Sampled:
    """The forces that a control has in effect: those of the sample at t₀ + k period hold from t₀ + k period + delay on.

    The forces of the first sample act from the start.
    """

    def __init__(
        self, control: Callable[[np.ndarray, np.ndarray, float], np.ndarray], start: float, period: float, delay: float
    ) -> None:
        self.control, self.start, self.period, self.delay = control, start, period, delay
        self.taken = 0
        """Samples so far."""
        self.arriving: list[tuple[float, np.ndarray]] = []
        """Delayed forces, with the times from which they act."""
        self.acted: list[tuple[float, np.ndarray]] = []
        """Forces that have acted so far, with the times from which they did."""

    @property
    def force(self) -> np.ndarray:
        """The forces in effect."""
        return self.acted[-1][1]

    def update(self, q: np.ndarray, v: np.ndarray, t: float) -> float:
        """Take the sample that is due at t and apply forces whose delay has passed; returns the time of the next change."""
        near = NEAR * self.period
        if t >= self._due() - near:
            tau = self.control(q, v, t)
            self.arriving.append((self._due() + self.delay, tau))
            self.taken += 1
            if not self.acted:
                self.acted.append((t, tau))
        while self.arriving and self.arriving[0][0] <= t + near:
            self.acted.append((t, self.arriving.pop(0)[1]))
        coming = self._due()
        return min(coming, self.arriving[0][0]) if self.arriving and self.arriving[0][0] < coming - near else coming

    def _due(self) -> float:
        """The time of the next sample, without the rounding of a sum."""
        return self.start + self.taken * self.period

    def at(self, times: np.ndarray) -> np.ndarray:
        """The forces (N, nv) that acted at times (N,)."""
        index = np.searchsorted([t for t, _ in self.acted], times, side="right") - 1
        return np.array([tau for _, tau in self.acted])[np.maximum(index, 0)]
