"""Proof by running: the Lyapunov function of a controller along a motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import CoadjointError
from ..motion.trajectory import Trajectory
from ..words import short
from .closed_loop import ClosedLoop
from .controller import Controller
from .sampled import SampledController


@dataclass(frozen=True)
class Verification:
    """The test of a controller's energy law along a motion."""

    time: np.ndarray
    lyapunov: np.ndarray
    """V (..., N) along the motion, or along each of a batch of motions."""
    largest_increase: float
    """max over i < j of V(t_j) - V(t_i): how far the function ever rises above a value that it had before."""
    tolerance: float
    """The increase that rounding and integration errors explain: 1e-8 of the largest value."""

    @property
    def holds(self) -> bool:
        """True if V never increased beyond the tolerance."""
        return self.largest_increase <= self.tolerance

    def __str__(self) -> str:
        verdict = "does not increase" if self.holds else f"increases by {self.largest_increase:.3g}"
        ends = f"from {np.max(self.lyapunov[..., 0]):.6g} to {np.max(self.lyapunov[..., -1]):.3g}"
        ends += f" at most in {self.lyapunov[..., 0].size} motions" if self.lyapunov.ndim > 1 else ""
        return f"The Lyapunov function goes {ends} and {verdict} (tolerance {self.tolerance:.1g})."


def verify(controller: Controller, motion: Trajectory | ClosedLoop | Any) -> Verification:
    """The Lyapunov function of a controller along a motion that it drove, or a batch of them, and whether it ever increased.

    motion: what `simulate` or `closed_loop` gives, with time (N,), q (..., N, nq) and v (..., N, nv).
    """
    if isinstance(controller, SampledController):
        raise CoadjointError(
            f"controller is {controller!r}, which is sampled: no function is known that falls from sample to sample, and that of an "
            "adaptive controller has the inertias that nobody knows. Verify the law without samples, along a motion of `simulate`."
        )
    if not isinstance(controller, Controller):
        raise CoadjointError(f"controller is {type(controller).__name__}; expected a Controller, as from control.computed_torque.")
    if not all(hasattr(motion, x) for x in ("time", "q", "v")):
        raise CoadjointError(f"motion is {short(motion)}; expected a motion with time, q and v, as `simulate` gives.")
    V = np.asarray(controller.lyapunov(np.asarray(motion.q), np.asarray(motion.v), np.asarray(motion.time)))
    rise = float(np.max(V - np.minimum.accumulate(V, axis=-1)))
    return Verification(np.asarray(motion.time), V, rise, 1e-8 * float(np.max(np.abs(V))))
