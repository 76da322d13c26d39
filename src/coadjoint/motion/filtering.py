"""Preparation of a log: resampled to equal steps, filtered forward and backward (no delay), with derivatives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import CoadjointError
from ..robot.robot import Robot
from .logs import Log

ORDER = 4
"""The order of the Butterworth filter in each direction."""
LOWEST = 1e-6
"""Cut-off frequency beside the rate, below which the filter's coefficients cannot be computed."""

ENDS = 1.0
"""Periods of the cut-off frequency that are dropped at each end, where the filter has data on one side only."""


def resample(log: Log, rate: float | None = None) -> Log:
    """The log at even times, `rate` a second (default: that of its median step), by straight lines between rows."""
    step = np.diff(log.time)
    rate = log.rate if rate is None else rate
    if step.size and np.ptp(step) < 1e-6 * step.mean() and abs(rate * step.mean() - 1) < 1e-6:
        return log
    time = log.time[0] + np.arange(int(np.floor(log.duration * rate + 1e-9)) + 1) / rate

    def even(x: np.ndarray) -> np.ndarray:
        return np.interp(time, log.time, x) if x.ndim == 1 else np.stack([np.interp(time, log.time, y) for y in x.T], axis=1)

    own: dict[str, Any] = {what: None if (x := getattr(log, what)) is None else even(x) for what in ("q", "v", "a", "tau")}
    return replace(log, time=time, **own, extra={name: even(x) for name, x in log.extra.items()})


def zero_phase(x: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """The columns of x (N, n), sampled `rate` a second, through a Butterworth low-pass forward and backward.

    |H|² instead of H: at `cutoff` the amplitude is halved, and nothing is delayed.
    """
    from scipy.signal import butter, sosfiltfilt

    if not LOWEST * rate < cutoff < 0.5 * rate:
        raise CoadjointError(
            f"the cut-off frequency is {cutoff:g} Hz; expected one between {LOWEST * rate:.4g} Hz and half the rate, {0.5 * rate:.4g} Hz."
        )
    sections = butter(ORDER, cutoff, fs=rate, output="sos")
    pad = min(len(x) - 1, int(3 * rate / cutoff))
    return np.asarray(sosfiltfilt(sections, x, axis=0, padlen=pad))


def prepared(robot: Robot, log: Log, cutoff: float | None) -> tuple[Log, list[str]]:
    """The log with q, v, a and tau at even times, filtered at `cutoff` Hz (None: not), without its ends, and what was done.

    Velocities and accelerations that the log has are filtered as they are; those it has not are derivatives of what is filtered.
    """
    if robot.nq != robot.nv:
        raise CoadjointError(
            f"robot {robot.name!r} has joints of several coordinates (spherical, free), whose logs are not filtered."
        )
    if len(log) < 16:
        raise CoadjointError(f"the log has {len(log)} rows; expected at least 16.")
    even, notes = resample(log), []
    if even is not log:
        notes.append(f"resampled to {even.rate:.5g} a second")
    rate = even.rate
    smooth = (lambda x: x) if cutoff is None else (lambda x: zero_phase(x, rate, cutoff))
    if cutoff is not None:
        notes.append(f"zero-phase low-pass at {cutoff:g} Hz (Butterworth of order {ORDER}, forward and backward)")

    def slope(x: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.gradient(x, 1.0 / rate, axis=0, edge_order=2)
        return found

    q = smooth(even.q)
    v = slope(q) if even.v is None else smooth(even.v)
    a = slope(v) if even.a is None else smooth(even.a)
    notes += [f"{name}: derivative of the filtered {of}" for name, of, x in (("v", "q", even.v), ("a", "v", even.a)) if x is None]
    tau = None if even.tau is None else smooth(even.tau)
    end = 0 if cutoff is None else int(ENDS * rate / cutoff)
    keep = slice(end, len(even) - end) if len(even) > 4 * end else slice(None)
    return replace(even, q=q, v=v, a=a, tau=tau)[keep], notes
