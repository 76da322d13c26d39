"""Paths in SE(3): poses over time with their body twists, for a robot to follow.

A path goes from s = 0 to s = 1 in `duration` seconds: evenly, or with `rest` from rest to rest by s = τ³ (10 - 15 τ + 6 τ²), where
τ = t / duration.

    geodesic    T₀ exp(s log(T₀⁻¹ T₁)), a screw motion; or, `kind="double"`, the rotation and the straight line each by itself: the
                geodesic of the double-geodesic metric of Altafini (2004)
    circle      about an axis in space, the orientation kept or turning along
    spline      through poses at equal times, with continuous twists and accelerations: a product of exponentials of cumulative cubic
                B-splines, whose control poses are found so that it meets the given ones
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..arguments import a_flag, a_number, numbers, one_of, positive, takes
from ..arrays import ArrayLike, unmasked
from ..errors import CoadjointError
from ..lie import se3, so3
from ..robot.link import as_pose

Curve = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Poses (..., 4, 4) and dT/ds as body twists (..., 6) at s (...)."""

MET = 1e-14
ROUNDS = 500


@dataclass(frozen=True)
class Path:
    """A pose over time: `path(t)` is T (..., 4, 4) and its body twist (..., 6), T⁻¹ dT/dt, at times t (...) from 0 to `duration`."""

    curve: Curve
    duration: float = 1.0
    rest: bool = False
    name: str = "path"

    def __post_init__(self) -> None:
        positive(self.duration, "duration")

    def __call__(self, t: Any) -> tuple[np.ndarray, np.ndarray]:
        t = np.asarray(unmasked(t), dtype=float)
        slack = 1e-9 * self.duration
        if not np.all((t >= -slack) & (t <= self.duration + slack)):
            raise CoadjointError(f"t is {t}; the path goes from 0 to {self.duration:g} s.")
        part = np.clip(t / self.duration, 0.0, 1.0)
        s, rate = part, np.ones_like(part)
        if self.rest:
            s = part**3 * (10 - 15 * part + 6 * part**2)
            rate = 30 * part**2 * (1 - part) ** 2
        T, X = self.curve(s)
        return T, X * (rate / self.duration)[..., None]

    @property
    def closed(self) -> bool:
        """True if the path ends where it starts, to 1e-9."""
        ends = self.curve(np.array([0.0, 1.0]))[0]
        return bool(np.max(np.abs(ends[1] - ends[0])) < 1e-9)


class _Screws:
    """exp(s ξ) of constant twists ξ (..., 6), quickly: 1 + s Ξ + (1 - cos θ)/w² Ξ² + (θ - sin θ)/w³ Ξ³ with w = |ω|, θ = s w."""

    def __init__(self, xi: np.ndarray) -> None:
        self.w = np.linalg.norm(xi[..., :3], axis=-1)
        self.slow = self.w < 1e-8  # then the first terms of the series
        self.safe = np.where(self.slow, 1.0, self.w)
        first = se3.hat(xi)
        self.powers = (first, first @ first, first @ first @ first)

    def __call__(self, s: np.ndarray, k: Any = ...) -> np.ndarray:
        """(..., 4, 4) for s (...), of the twists number k."""
        w, angle = self.safe[k], s * self.w[k]
        second = np.where(self.slow[k], s * s / 2, 2 * (np.sin(angle / 2) / w) ** 2)
        third = np.where(self.slow[k], s**3 / 6, (angle - np.sin(angle)) / w**3)
        found = np.eye(4)
        for factor, power in zip((s, second, third), self.powers, strict=True):
            found = found + factor[..., None, None] * power[k]
        return found


@takes(duration=positive, rest=a_flag, kind=one_of("screw", "double"))
def geodesic_path(start: ArrayLike, goal: ArrayLike, duration: float = 1.0, rest: bool = False, kind: str = "screw") -> Path:
    """From one pose (4, 4) to another by one screw motion, or by `kind="double"`: rotation and straight line apart."""
    T0, T1 = as_pose(start, "start"), as_pose(goal, "goal")
    if kind == "screw":
        return Path(_screw(T0, se3.log(se3.inverse(T0) @ T1)), duration, rest, "geodesic")
    turn, way = so3.log(T0[:3, :3].T @ T1[:3, :3]), T1[:3, 3] - T0[:3, 3]
    return Path(partial(_apart, T0, _Screws(np.concatenate([turn, np.zeros(3)])), turn, way), duration, rest, "geodesic")


# The curves are functions of the module with their numbers bound, so that paths pickle.


def _apart(T0: np.ndarray, motion: _Screws, turn: np.ndarray, way: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and straight line apart."""
    T = T0 @ motion(s)
    T[..., :3, 3] = T0[:3, 3] + s[..., None] * way
    v = way @ T[..., :3, :3]
    return T, np.concatenate([np.broadcast_to(turn, v.shape), v], -1)


def _screw(T0: np.ndarray, xi: np.ndarray) -> Curve:
    """T₀ exp(s ξ)."""
    return partial(_screwed, T0, _Screws(xi), xi)


def _screwed(T0: np.ndarray, motion: _Screws, xi: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return T0 @ motion(s), np.broadcast_to(xi, (*s.shape, 6))


@takes(angle=a_number, rest=a_flag, turn=a_flag)
def circle_path(
    start: ArrayLike,
    center: ArrayLike,
    axis: ArrayLike,
    angle: float = 2 * np.pi,
    duration: float = 1.0,
    rest: bool = False,
    turn: bool = False,
) -> Path:
    """From a pose (4, 4) round the axis (3,) through the point `center` (3,), in space; with `turn` the orientation goes along."""
    T0 = as_pose(start, "start")
    try:
        c, w = np.asarray(unmasked(center), dtype=float), np.asarray(unmasked(axis), dtype=float)
    except (TypeError, ValueError, OverflowError):
        c = w = np.zeros(0)
    if c.shape != (3,) or w.shape != (3,) or not np.linalg.norm(w) > 0 or not np.all(np.isfinite([c, w])):
        raise CoadjointError(
            f"center is {center!r} and axis {axis!r}; expected a point and a direction in space, three numbers each."
        )
    w = w / np.linalg.norm(w)
    if turn:
        return Path(_screw(T0, se3.Ad_inv_act(T0, angle * np.concatenate([w, np.cross(c, w)]))), duration, rest, "circle")
    arm = T0[:3, 3] - c
    side = np.cross(w, arm)
    along = (arm @ w) * w
    return Path(partial(_circled, T0, angle, c + along, arm - along, side), duration, rest, "circle")


def _circled(
    T0: np.ndarray, angle: float, center: np.ndarray, across: np.ndarray, side: np.ndarray, s: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The place goes round, the orientation stays."""
    sin, cos = np.sin(angle * s)[..., None], np.cos(angle * s)[..., None]
    T, X = np.empty((*s.shape, 4, 4)), np.zeros((*s.shape, 6))
    T[...] = T0
    T[..., :3, 3] = center + cos * across + sin * side
    X[..., 3:] = angle * (cos * side - sin * across) @ T0[:3, :3]
    return T, X


@takes(poses=numbers, duration=positive, rest=a_flag, closed=a_flag)
def spline_path(poses: ArrayLike, duration: float = 1.0, rest: bool = False, closed: bool = False) -> Path:
    """Through poses (n, 4, 4) at equal intervals of s, twists and accelerations continuous; `closed` goes on from the last to the first.

    Neighbouring poses should be less than half a turn apart. At open ends the acceleration vanishes.
    """
    poses = np.asarray(unmasked(poses), dtype=float)
    if poses.ndim != 3 or poses.shape[1:] != (4, 4) or len(poses) < (3 if closed else 2):
        raise CoadjointError(f"poses has shape {poses.shape}; expected (n, 4, 4) with n of at least {3 if closed else 2}.")
    for k, T in enumerate(poses):
        as_pose(T, f"poses[{k}]")
    pieces = len(poses) if closed else len(poses) - 1
    control = _controls(poses, closed)
    steps = se3.log(se3.inverse(control[:-1]) @ control[1:])  # Ω_k from control k to k + 1
    return Path(partial(_splined, control, steps, _Screws(steps), pieces), duration, rest, "spline")


def _splined(control: np.ndarray, steps: np.ndarray, motions: _Screws, pieces: int, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cumulative cubic spline of controls and of the steps between them."""
    k = np.minimum((s * pieces).astype(int), pieces - 1)
    u = s * pieces - k
    T, X = control[k], np.zeros((*s.shape, 6))
    for j, (weight, rate) in enumerate(_cumulative(u)):
        step = steps[k + j]
        factor = motions(weight, k + j)
        T, X = T @ factor, se3.Ad_inv_act(factor, X) + (pieces * rate)[..., None] * step
    return T, X


def _cumulative(u: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The three cumulative cubic B-splines and their derivatives, u from 0 to 1."""
    return [
        ((5 + 3 * u - 3 * u**2 + u**3) / 6, (3 - 6 * u + 3 * u**2) / 6),
        ((1 + 3 * u + 3 * u**2 - 2 * u**3) / 6, (3 + 6 * u - 6 * u**2) / 6),
        (u**3 / 6, u**2 / 2),
    ]


def _controls(poses: np.ndarray, closed: bool) -> np.ndarray:
    """Control poses such that the spline meets the given ones: the linear system (1, 4, 1)/6 of ordinary splines, by correction."""

    def extended(C: np.ndarray) -> np.ndarray:
        if closed:
            return np.concatenate([C[-1:], C, C[:2]])
        return np.concatenate([C[:1] @ se3.inverse(C[1:2]) @ C[:1], C, C[-1:] @ se3.inverse(C[-2:-1]) @ C[-1:]])

    C = poses.copy()
    for _ in range(ROUNDS):
        full = extended(C)
        steps = se3.log(se3.inverse(full[:-1]) @ full[1:])
        at = full[: len(C)] @ se3.exp(5 / 6 * steps[: len(C)]) @ se3.exp(1 / 6 * steps[1 : len(C) + 1])
        gap = se3.log(se3.inverse(at) @ poses)
        if np.max(np.abs(gap)) < MET * (1 + np.max(np.abs(poses))):
            break
        C = C @ se3.exp(gap)
    else:
        if np.max(np.abs(gap)) > 1e-10:
            raise CoadjointError("no spline was found through the poses: neighbours are too far apart; give poses between them.")
    return extended(C)
