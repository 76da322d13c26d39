"""The timing of a path: from time to place, speed and acceleration, and what limits it where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import unmasked
from ..dynamics import inverse_dynamics, joint_reactions
from ..errors import CoadjointError
from ..robot.robot import Robot
from ..words import printable, short
from .collocation import FROM_REST, LINEAR, MONOMIALS, POINTS, WEIGHTS
from .frame_limits import SPEEDS, frame_values
from .limits import Limits
from .paths import Curves, Splines
from .profile import Profile, bounds_at, largest_square
from .settle_programs import BACKWARD, SLIDE

_GAUSS, _WEIGHTS = np.polynomial.legendre.leggauss(10)
_GAUSS, _WEIGHTS = (_GAUSS + 1) / 2, _WEIGHTS / 2
NEWTON = 6


@dataclass(frozen=True)
class Switch:
    """A place where another limit takes over: from time t and place s on, `quantity` of `joint` is at its limit."""

    t: float
    s: float
    quantity: str
    joint: str
    accelerating: bool | None
    """True on an arc of maximal acceleration, False on one of maximal deceleration, None on a limit of speed."""

    def __str__(self) -> str:
        way = {True: "accelerating", False: "braking", None: "at full speed"}[self.accelerating]
        return f"t = {self.t:.9g}, s = {self.s:.9g}: {self.quantity} of {self.joint}, {way}"


class Timing:
    """The fastest motion along a path: `timing(t)` is q, v, a at times t (...) from 0 to `duration`."""

    def __init__(self, limits: Limits, paths: Splines | Curves, number: int, profile: Profile) -> None:
        self.limits, self._paths, self._number, self._profile = limits, paths, number, profile
        self.duration: float = float(profile.duration[0])

    @cached_property
    def _clock(self) -> Clock:
        return Clock(self._profile)

    @property
    def robot(self) -> Robot:
        return self.limits.robot

    def __repr__(self) -> str:
        return f"<timing of a path of {short(self.robot.name)}: {self.duration:.9g} s, {len(self.switches)} arcs>"

    def __call__(self, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v and a (*t.shape, nv) each."""
        s, rate, u, middle = self._along(t)
        flat = s.reshape(-1, 1)
        which = np.full(len(flat), self._number)
        q, dq, ddq = (x[:, 0].reshape(*s.shape, -1) for x in self._paths.at(which, middle.ravel(), flat))
        return q, dq * rate[..., None], dq * u[..., None] + ddq * (rate**2)[..., None]

    def along(self, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """s, ds/dt and d²s/dt² at times t (...)."""
        return self._along(t)[:3]

    def _along(self, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        try:
            t = np.asarray(unmasked(t), dtype=float)
        except (TypeError, ValueError, OverflowError):
            raise CoadjointError(f"t is {short(t)}; expected times in seconds.") from None
        slack = 1e-9 * self.duration
        if not np.all((t >= -slack) & (t <= self.duration + slack)):
            raise CoadjointError(f"t goes from {np.min(t):g} to {np.max(t):g}; the motion from 0 to {self.duration:.9g} s.")
        found = self._clock(np.clip(t.ravel(), 0.0, self.duration))
        s, rate, u, middle = (x.reshape(t.shape) for x in found)
        return s, rate, u, middle

    def effort(self, t: Any) -> np.ndarray:
        """The joint forces (*t.shape, nv), friction included."""
        q, v, a = self(t)
        return np.asarray(inverse_dynamics(self.robot, q, v, a, friction=True))

    @property
    def switches(self) -> tuple[Switch, ...]:
        """The arcs of the motion: where each begins and which limit it follows."""
        p = self._profile
        found: list[Switch] = []
        for k in range(len(p.s0)):
            quantity, joint = self._fastest(k) if p.state[k] == SLIDE else self.limits.names[p.row[k]]
            accelerating = None if p.state[k] == SLIDE else bool(p.state[k] == 1)
            if not found or (found[-1].quantity, found[-1].joint, found[-1].accelerating) != (quantity, joint, accelerating):
                found.append(Switch(float(self._clock.times[k]), float(p.s0[k]), quantity, joint, accelerating))
        return tuple(found)

    def _fastest(self, k: int) -> tuple[str, str]:
        p = self._profile
        limits, middle = self.limits, np.array([(p.s0[k] + p.s1[k]) / 2])
        q, dq, _ = (x[0, 0] for x in self._paths.at(np.array([self._number]), middle, middle[:, None]))
        squares = [*(dq[limits.fast] ** 2), *frame_values(self.robot, limits.frame_speeds, q, dq, 0.0 * dq, False)]
        return limits.speed_names[int(np.argmax(np.array(squares) / limits.scale[len(limits.names) :] ** 2))]

    def speed_limit(self, s: Any) -> np.ndarray:
        """The maximum-velocity curve: the largest ds/dt at places s (...) for which some d²s/dt² meets all limits."""
        s = np.asarray(unmasked(s), dtype=float)
        flat = s.ravel()
        a, b, lo, hi, cap = bounds_at(self.limits, self._paths, self._number, flat, self._clock.speed(flat) ** 2)
        return np.asarray(np.sqrt(np.clip(largest_square(a, b, lo, hi), 0.0, cap)).reshape(s.shape))

    def use(self, t: Any) -> dict[str, np.ndarray]:
        """The use of each limit at times t (...): |value| / limit, arrays (*t.shape, n) by quantity; more than 1 is too much."""
        q, v, a = self(t)
        limits = self.limits
        found = {"velocity": np.abs(v) / limits.velocity, "acceleration": np.abs(a) / limits.acceleration}
        if limits.dynamic:
            s, _, _, middle = self._along(t)
            which = np.full(s.size, self._number)
            dq = self._paths.at(which, middle.ravel(), s.reshape(-1, 1))[1][:, 0].reshape(*s.shape, -1)
            from ..motion.friction import friction_coefficients

            damping, dry = friction_coefficients(self.robot)
            tau = np.asarray(inverse_dynamics(self.robot, q, v, a)) + damping * v + dry * np.sign(dq)
            found["effort"] = np.abs(tau) / limits.effort
            found["power"] = np.abs(tau * v) / limits.power
        if limits.reactions:
            F = np.asarray(joint_reactions(self.robot, q, v, a))
            found["reaction"] = np.stack([np.abs(F[..., j, k]) / limit for j, k, limit in limits.reactions], axis=-1)
        if limits.frames:
            values = frame_values(self.robot, limits.frames, q, v, a, True)
            values = [np.sqrt(x) if f.quantity in SPEEDS else np.abs(x) for f, x in zip(limits.frames, values, strict=True)]
            found["frame"] = np.stack(values, axis=-1) / np.array([f.limit for f in limits.frames])
        return found

    def excess(self, samples: int = 2001) -> float:
        """The largest relative excess over a limit, at dense times: zero or less up to rounding."""
        t = np.linspace(0.0, self.duration, samples)
        inside = (self._clock.times[:-1, None] + np.diff(self._clock.times)[:, None] * np.linspace(1e-6, 1 - 1e-6, 9)).ravel()
        return max(float(np.max(x)) for x in self.use(np.concatenate([t, inside])).values() if x.size) - 1.0

    def report(self) -> str:
        """The arcs in words, one a line."""
        return "\n".join(printable(str(x)) for x in self.switches)


class Clock:
    """Time along a profile. In a cell with ṡ from y₀ to y₁, about, the place is s₀ + h φ(ρ), φ = ρ (2 y₀ + ρ (y₁ - y₀)) / (y₀ + y₁).

    For constant s̈ then t grows evenly with ρ; in general dt/dρ = 2 h / (y₀ + y₁) · (y₀ + ρ (y₁ - y₀)) / ṡ is smooth, also at rest.
    """

    def __init__(self, profile: Profile) -> None:
        p = self.profile = profile
        # increments vanish at one end: as a multiple of the distance to it they are exact there, and √x is at rest
        self.back = p.state == BACKWARD
        far = np.where(self.back[:, None], 1 - POINTS, POINTS)
        slope = 2 * (p.s1 - p.s0)[:, None] * p.u * WEIGHTS[p.kind] * np.where(self.back, -1.0, 1.0)[:, None]
        self.x = np.where(far > 0, p.y / np.where(far > 0, far, 1.0), slope) @ MONOMIALS.T
        self.u = p.u @ MONOMIALS.T
        self.y0, self.y1, self.h = p.speeds[:, 0], p.speeds[:, 1], p.s1 - p.s0
        self.lengths = p.lengths
        self.times = np.concatenate([[0.0], np.cumsum(self.lengths)])

    def _place(self, k: np.ndarray, rho: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(s - s₀) / h and σ."""
        y0, y1 = self.y0[k], self.y1[k]
        phi = rho * (2 * y0 + rho * (y1 - y0)) / np.maximum(y0 + y1, 1e-300)
        phi, kind = np.clip(phi, 0.0, 1.0), self.profile.kind[k]
        return phi, np.where(kind == LINEAR, phi, np.where(kind == FROM_REST, np.sqrt(phi), 1 - np.sqrt(1 - phi)))

    def _square(self, k: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        """ṡ²."""
        far = np.where(self.back[k], 1 - sigma, sigma)
        return np.asarray(self.profile.x[k] + far * _polynomial(self.x, k, sigma))

    def _ratio(self, k: np.ndarray, rho: np.ndarray) -> np.ndarray:
        """(y₀ + ρ (y₁ - y₀)) / ṡ."""
        _, sigma = self._place(k, rho)
        even = self.y0[k] + rho * (self.y1[k] - self.y0[k])
        x = self._square(k, sigma)
        return np.asarray(even / np.sqrt(np.maximum(x, 1e-4 * even**2 + 1e-300)))

    def _until(self, k: np.ndarray, rho: np.ndarray) -> np.ndarray:
        """Time from the start of cell k to ρ."""
        inside = self._ratio(k[:, None], rho[:, None] * _GAUSS)
        return np.asarray(2 * self.h[k] / np.maximum(self.y0[k] + self.y1[k], 1e-300) * rho * (inside @ _WEIGHTS))

    def __call__(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """s, ṡ, s̈ at times, and the middle of the cell."""
        p = self.profile
        k = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self.h) - 1)
        whole = self.lengths[k]
        target = np.clip(t - self.times[k], 0.0, whole)
        rho = target / np.maximum(whole, 1e-300)
        scale = 2 * self.h[k] / np.maximum(self.y0[k] + self.y1[k], 1e-300)
        for _ in range(NEWTON):
            slope = scale * self._ratio(k, np.clip(rho, 1e-9, 1 - 1e-9))
            rho = np.clip(rho - (self._until(k, rho) - target) / np.maximum(slope, 1e-300), 0.0, 1.0)
        phi, sigma = self._place(k, rho)
        x = self._square(k, sigma)
        u = _polynomial(self.u, k, sigma)
        return p.s0[k] + self.h[k] * phi, np.sqrt(np.maximum(x, 0.0)), u, (p.s0[k] + p.s1[k]) / 2

    def speed(self, s: np.ndarray) -> np.ndarray:
        """ṡ at places."""
        p = self.profile
        k = np.clip(np.searchsorted(p.s0, s, side="right") - 1, 0, len(self.h) - 1)
        phi = np.clip((s - p.s0[k]) / self.h[k], 0.0, 1.0)
        kind = p.kind[k]
        sigma = np.where(kind == LINEAR, phi, np.where(kind == FROM_REST, np.sqrt(phi), 1 - np.sqrt(1 - phi)))
        return np.asarray(np.sqrt(np.maximum(self._square(k, sigma), 0.0)))


def _polynomial(m: np.ndarray, k: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """Polynomials k of powers of 2σ - 1, lowest first, with coefficients m (cells, COUNT)."""
    t = 2 * sigma - 1
    found = m[k, -1]
    for j in range(m.shape[1] - 2, -1, -1):
        found = found * t + m[k, j]
    return np.asarray(found)


class Timings:
    """The timings of many paths: `duration` (paths,), nan where a path cannot be timed; `timings[k]` is the Timing of path k."""

    def __init__(self, limits: Limits, paths: Splines | Curves, profile: Profile, errors: dict[int, str]) -> None:
        self.limits, self._paths, self._profile, self.errors = limits, paths, profile, errors
        """errors: why, by the number of the path."""
        self.duration = profile.duration

    def __len__(self) -> int:
        return len(self._paths)

    def __iter__(self) -> Iterator[Timing]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, k: int) -> Timing:
        k = range(len(self))[k]
        if k in self.errors:
            raise CoadjointError(f"path {k}: {self.errors[k]}")
        return Timing(self.limits, self._paths, k, self._profile.of(k))

    def __repr__(self) -> str:
        failed = f", {len(self.errors)} that cannot be timed" if self.errors else ""
        return f"<timings of {len(self)} paths of {short(self.limits.robot.name)}{failed}>"
