"""The delay between channels: by how many seconds forces are recorded later than positions.

A force that is recorded δ seconds late is τ(t - δ) ≈ τ - δ τ̇. So residuals of a fit that have a part along -τ̇ show δ; only the forces of
the rigid bodies count in τ̇, since dry friction may turn late by itself. All joints have one delay: channels are late, not joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from ..errors import CoadjointError
from ..motion.logs import Log
from .consistency import ConsistentFit
from .equations import Equations, Rows
from .linearised import linear
from .model import BARRIER, Choice, Fit, Fitter

CLEAR = 4.0
"""Standard deviations by which a delay must differ from 0 to be taken."""
LEAST = 0.2
"""The least delay that is taken, in rows of the log."""
MOST = 0.1
"""Seconds: a longer one is another mistake."""
ROUNDS = 4
"""Most steps towards it."""


def checked_delay(delay: Any) -> float | None:
    """Seconds, or None if the delay is to be found."""
    if isinstance(delay, str) and delay == "auto":
        return None
    if isinstance(delay, bool) or not isinstance(delay, int | float) or not abs(delay) <= 1.0:
        raise CoadjointError(f"delay is {delay!r}; expected the seconds by which forces are recorded late, 0 for none, or 'auto'.")
    return float(delay)


def advanced(log: Log | Sequence[Log], delay: float) -> Log | list[Log]:
    """Logs whose forces are those recorded `delay` seconds later; rows for which there are none are left out."""
    if not isinstance(log, Log):
        return [_advanced(x, delay) for x in log]
    return _advanced(log, delay)


def _advanced(log: Log, delay: float) -> Log:
    if log.tau is None:
        return log
    at = log.time + delay
    keep = (at >= log.time[0]) & (at <= log.time[-1])
    if keep.sum() < 4:
        raise CoadjointError(f"{log.source or 'the log'}: delay is {delay:g} s; the log has only {log.duration:.3g} s.")
    tau = CubicSpline(log.time, log.tau, axis=0)(at)
    return replace(log, tau=tau)[slice(int(np.argmax(keep)), len(keep) - int(np.argmax(keep[::-1])))]


def is_clear(log: Log | Sequence[Log], delay: float, more: float, spread: float) -> bool:
    """True if a delay, beside one that was already taken, is to be taken, `spread` being its standard deviation."""
    row = 1.0 / min(x.rate for x in ([log] if isinstance(log, Log) else log))
    deviations, part = (0.3, 0.02) if delay else (CLEAR, LEAST)
    return abs(more) > deviations * spread and abs(more) > part * row and abs(delay + more) < MOST


def told(delay: float) -> str:
    """The note of a delay that was found."""
    return f"forces are recorded {1e3 * delay:.3g} ms later than positions: those of so much later are used (delay=0: as recorded)"


def late(rows: Rows, eq: Equations, fitter: Fitter, choice: Choice, fit: Fit) -> tuple[float, float]:
    """The delay that a fit shows, and its standard deviation: one Newton step of the posterior, of which all else is the maximum."""
    r, hidden = rows.structure.rank, fitter.hidden
    made = fitter.collapse(eq.total(), fit.tilt, fit.x[:r], choice.tilt)
    A, b = fitter.weighted(made, choice, fit.tilt, fit.gains, fit.variance)
    _, H = ConsistentFit(A, b, fitter.K(choice), fitter.prior, fitter.positive(choice)).derivatives(fit.x, fit.gamma, BARRIER)
    cross, slope, curvature = np.zeros(len(H)), 0.0, 0.0
    for j, use, places, Z, known, tau in linear(rows, choice, fit):
        index = np.where(places < r, places, places + hidden)
        weight = 1.0 / (fit.variance[j] * fitter.correlation[j])
        rate = _rates(Z[:, :r] @ fit.x[:r] + known, rows.data.time[use], rows.data.stretch[use])
        cross[index] += weight * (Z.T @ rate)
        slope -= weight * float((tau - known - Z @ fit.x[index]) @ rate)
        curvature += weight * float(rate @ rate)
    scale = 1.0 / np.sqrt(np.where(np.diag(H) > 0, np.diag(H), 1.0))
    cross = scale * cross
    curvature -= float(cross @ np.linalg.solve(H * scale[:, None] * scale + 1e-12 * np.eye(len(H)), cross))
    return (slope / curvature, curvature**-0.5) if curvature > 0 else (0.0, np.inf)


def _rates(x: np.ndarray, time: np.ndarray, stretch: np.ndarray) -> np.ndarray:
    """dx/dt within each stretch."""
    out = np.zeros_like(x)
    for number in np.unique(stretch):
        k = stretch == number
        if k.sum() > 2:
            out[k] = np.gradient(x[k], time[k])
    return out
