"""The sampling of a controller: what it measures of a state, and when its forces act.

At every sample the controller sees the measured state; its forces act, held, during the next period, or one period later. Encoders of a
resolution read positions in steps of it, and velocities are then differences of readings. What must be remembered between samples
stands behind the controller's own state: the forces on their way, the last readings, and whether there were any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_number, whole
from ..arrays import Array, concat, namespace
from ..errors import CoadjointError
from ..robot.robot import Robot

Ask = Callable[[Array, Array, Array], tuple[Array, Array]]
"""ask(q, v, state): the forces (..., nv) for a measured state, and the controller's next state (..., k)."""


@dataclass(frozen=True)
class Sampling:
    """Samples every `period` seconds of a robot with nv freedoms."""

    period: float
    nv: int
    delay: int
    """By how many samples forces act late, 0 or 1."""
    resolution: float
    """The step of encoders; 0 for exact readings."""

    @classmethod
    def of(cls, robot: Robot, period: float, delay: Any, resolution: Any) -> Sampling:
        """The sampling that a user asks for, checked."""
        if whole(delay, "delay") not in (0, 1):
            raise CoadjointError(f"delay is {delay}; expected 0 or 1 samples.")
        if not (a_number(resolution, "resolution") >= 0):
            raise CoadjointError(f"resolution is {resolution:g}; expected a step that is positive, or zero for exact readings.")
        if resolution and robot.nq != robot.nv:
            raise CoadjointError(
                f"robot {robot.name!r} has joints with quaternions; encoders of a resolution measure joints with one coordinate."
            )
        return cls(period, robot.nv, int(delay), float(resolution))

    def initial(self, state: np.ndarray) -> np.ndarray:
        """The state before the first sample: that of the controller (k,), no force on its way, no reading."""
        return np.concatenate([state, np.zeros(self.nv * self.delay), np.zeros(self.nv if self.resolution else 0), [0.0]])

    def sample(self, ask: Ask, q: Array, v: Array, inner: Array, noise: Array | None = None) -> tuple[Array, Array]:
        """The forces (..., nv) that act after a sample of q, v, and the state after it; noise (..., nv) is added to measured velocities."""
        n = self.nv
        k = inner.shape[-1] - n * self.delay - (n if self.resolution else 0) - 1
        begun, readings = inner[..., -1:], []
        if self.resolution:
            last = inner[..., -n - 1 : -1]  # at the first sample the encoders stand still
            q = namespace(q).floor(q / self.resolution + 0.5) * self.resolution
            v = begun * (q - last) / self.period
            readings = [q]
        asked, following = ask(q, v if noise is None else v + noise, inner[..., :k])
        tau = inner[..., k : k + n] if self.delay else asked
        parts = [following, *([asked] if self.delay else []), *readings, 0.0 * begun + 1.0]
        return tau, concat([x for x in parts if x.shape[-1]])
