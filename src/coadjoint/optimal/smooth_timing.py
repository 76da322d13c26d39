"""The timing of a path within limits of jerk: from time to place, speed, acceleration and jerk."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import unmasked
from ..errors import CoadjointError
from .jerk_profile import SmoothProfile, uses
from .jerk_rows import Rows
from .limits import Limits
from .paths import Curves, Splines
from .profile import Profile
from .timing import Switch, Timing, Timings

_GAUSS, _WEIGHTS = np.polynomial.legendre.leggauss(10)
_GAUSS, _WEIGHTS = (_GAUSS + 1) / 2, _WEIGHTS / 2
NEWTON = 8


class SmoothClock:
    """s and its derivatives at times, from X = σ̇² on cells."""

    def __init__(self, profile: SmoothProfile) -> None:
        self.spline, self.z, self.map = profile.spline, profile.z, profile.rows.map
        self.lengths = self._until(np.arange(self.spline.count), np.ones(self.spline.count))
        self.times = np.concatenate([[0.0], np.cumsum(self.lengths)])

    def _at(self, cell: np.ndarray, t: np.ndarray) -> np.ndarray:
        """X, X', X'' (n, P, 3) at t (n, P) of cells (n,)."""
        from .jerk_solver import shapes_at

        found = shapes_at(self.spline.lengths[cell], t)
        found[self.spline.straight[cell], :, :, 2] = 0.0
        return np.asarray(np.einsum("cpkd,cd->cpk", found, self.z[self.spline.index[cell]]))

    def _until(self, cell: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Time from the start of cells to t (n,)."""
        X = self._at(cell, t[:, None] * _GAUSS)[..., 0]
        return np.asarray(self.spline.lengths[cell] * t * (X**-0.5 @ _WEIGHTS))

    def derivatives(self, time: np.ndarray) -> tuple[np.ndarray, ...]:
        """s and its three derivatives by time, and the middle of the cell."""
        spline = self.spline
        k = np.clip(np.searchsorted(self.times, time, side="right") - 1, 0, spline.count - 1)
        target = np.clip(time - self.times[k], 0.0, self.lengths[k])
        t = target / self.lengths[k]
        for _ in range(NEWTON):
            rate = spline.lengths[k] * self._at(k, t[:, None])[:, 0, 0] ** -0.5
            t = np.clip(t - (self._until(k, t) - target) / rate, 0.0, 1.0)
        X, X1, X2 = self._at(k, t[:, None])[:, 0].T
        s, s1, s2, s3 = self.map(spline.nodes[k] + spline.lengths[k] * t)
        root = np.sqrt(X)
        middle = self.map((spline.nodes[k] + spline.nodes[k + 1]) / 2)[0]
        return s, s1 * root, 0.5 * s1 * X1 + s2 * X, root * (0.5 * s1 * X2 + 1.5 * s2 * X1 + s3 * X), middle

    def __call__(self, time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """s, ṡ, s̈ at times, and the middle of the cell."""
        s, rate, u, _, middle = self.derivatives(time)
        return s, rate, u, middle

    def speed(self, s: np.ndarray) -> np.ndarray:
        """ṡ at places."""
        sigma = self.map.inverse(s)
        k = np.clip(np.searchsorted(self.spline.nodes, sigma, side="right") - 1, 0, self.spline.count - 1)
        X = self._at(k, ((sigma - self.spline.nodes[k]) / self.spline.lengths[k])[:, None])[:, 0, 0]
        return np.asarray(self.map(sigma)[1] * np.sqrt(X))


class SmoothTiming(Timing):
    """A Timing within limits of jerk; `timing.jerk(t)` is the jerk of the joints."""

    def __init__(self, limits: Limits, paths: Splines | Curves, number: int, smooth: SmoothProfile) -> None:
        super().__init__(limits, paths, number, Profile([np.empty((0, 32))], np.array([smooth.duration])))
        self._smooth = smooth
        self.duration = float(self._clock.times[-1])

    @cached_property
    def _clock(self) -> Any:
        return SmoothClock(self._smooth)

    def jerk(self, t: Any) -> np.ndarray:
        """d³q/dt³ (*t.shape, nv)."""
        self._along(t)  # checks t
        time = np.clip(np.asarray(unmasked(t), dtype=float), 0.0, self.duration)
        s, rate, u, third, middle = self._clock.derivatives(time.ravel())
        q1, q2, q3 = self._smooth.rows.third(middle, s)
        found = q1 * third[:, None] + 3.0 * q2 * (rate * u)[:, None] + q3 * (rate**3)[:, None]
        return np.asarray(found.reshape(*time.shape, -1))

    def use(self, t: Any) -> dict[str, np.ndarray]:
        """The use of each limit, as for any Timing, with jerk."""
        return super().use(t) | {"jerk": np.abs(self.jerk(t)) / self._smooth.rows.jerk}

    @property
    def switches(self) -> tuple[Switch, ...]:
        """The places where another limit begins to be used most; of a limit of jerk `accelerating` says whether the acceleration along
        the path grows."""
        rows, spline = self._smooth.rows, self._smooth.spline
        middle = np.full((spline.count, 1), 0.5)
        most = uses(rows, spline, self._smooth.z, middle)[:, 0].argmax(axis=-1)
        times = (self._clock.times[:-1] + self._clock.times[1:]) / 2
        _, _, u, third, _ = self._clock.derivatives(times)
        found: list[Switch] = []
        for k in range(spline.count):
            quantity, joint = rows.names[int(most[k])]
            way = None if quantity == "speed" else bool((third[k] if quantity == "jerk" else u[k]) > 0)
            if quantity == "speed":
                quantity, joint = self._quickest(float(times[k]))
            if not found or (found[-1].quantity, found[-1].joint, found[-1].accelerating) != (quantity, joint, way):
                found.append(
                    Switch(float(self._clock.times[k]), float(rows.map(spline.nodes[k : k + 1])[0][0]), quantity, joint, way)
                )
        return tuple(found)

    def _quickest(self, t: float) -> tuple[str, str]:
        """The limit of speed that is used most at a time."""
        use = super().use(np.array([t]))
        parts = [use["velocity"][0, self.limits.fast]]
        if self.limits.frame_speeds:
            parts.append(use["frame"][0, [self.limits.frames.index(x) for x in self.limits.frame_speeds]])
        return self.limits.speed_names[int(np.argmax(np.concatenate(parts)))]


class SmoothTimings(Timings):
    """Timings within limits of jerk."""

    def __init__(self, limits: Limits, paths: Splines | Curves, found: dict[int, SmoothProfile], errors: dict[int, str]) -> None:
        duration = np.array([found[k].duration if k in found else np.nan for k in range(len(paths))])
        super().__init__(limits, paths, Profile([], duration), errors)
        self._found = found

    def __getitem__(self, k: int) -> Timing:
        k = range(len(self))[k]
        if k in self.errors:
            raise CoadjointError(f"path {k}: {self.errors[k]}")
        return SmoothTiming(self.limits, self._paths, k, self._found[k])


def check_smooth(rows: Rows) -> None:
    """An error where d²q/ds² jumps: no limit of jerk holds there."""
    breaks = rows.paths.breaks(rows.path)
    if len(breaks) > 2:
        middle = (breaks[:-1] + breaks[1:]) / 2
        ends = rows.third(middle[:-1], breaks[1:-1])[1], rows.third(middle[1:], breaks[1:-1])[1]
        size = max(float(np.abs(x).max()) for x in ends) + float(np.abs(rows.third(middle, middle)[0]).max())
        bad = np.abs(ends[0] - ends[1]) > 1e-7 * size
        if bad.any():
            i, j = np.argwhere(bad)[0]
            raise CoadjointError(
                f"d²q/ds² of joint {rows.limits.robot.v_names[j]!r} jumps from {ends[0][i, j]:.6g} to {ends[1][i, j]:.6g} at "
                f"s = {breaks[i + 1]:.6g}: no limit of jerk holds there. Take a path with a continuous second derivative."
            )
