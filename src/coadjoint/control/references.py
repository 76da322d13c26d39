"""References for controllers: functions of time that give a configuration, its velocity and its acceleration.

A reference that is written with array operations can be traced: it then runs inside compiled steps, rollouts and exported C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arguments import a_function_of, a_robot, finite, floats, numbers, positive, takes
from ..arrays import Array, concat, like, namespace
from ..errors import CoadjointError, ShapeError
from ..robot.robot import Robot
from ..traced import traced
from ..words import short
from .evaluation import UntracedReference, desired_at
from .motion_references import Motion, as_motion, is_motion
from .of_time import OfTime, plain

Reference = Callable[[Any], tuple[Array, ...]]
"""reference(t): the configuration (nq,), velocity (nv,) and acceleration (nv,) at the time t."""

LIMITS = frozenset({"position", "velocity"})
"""The limits of joints that a reference must keep."""


def as_reference(robot: Robot, given: Any) -> Reference:
    """A function reference(t) -> q, v, a of what a user gives: such a function, a motion, or a configuration to hold."""
    if is_motion(given):
        return _Checked(robot, as_motion(robot, given))
    if callable(given):
        return _Checked(robot, a_function_of("t")(given, "reference"))
    try:
        q = floats(given, "reference")
    except CoadjointError:
        q = np.zeros((0, 0))
    if q.ndim != 1:
        raise CoadjointError(
            f"reference is {short(given)}; expected a function reference(t) -> q, v, a, a motion, or a configuration ({robot.nq},) to hold."
        )
    return hold(robot, q)


class _Checked:
    """A user's reference, its results checked."""

    def __init__(self, robot: Robot, given: Callable[[Any], Any], kept: frozenset[str] = LIMITS) -> None:
        self.robot = robot
        self.kept = kept & _limits_of(robot)
        """The limits that the reference must keep."""
        own = isinstance(given, OfTime | _Hold | _PointToPoint | _Sinusoid)
        self.given = given if own else OfTime(_Shaped(robot, given))

    def __call__(self, t: Any) -> tuple[Array, ...]:
        arrays = self.given(t)
        if self.kept and type(t) is float:
            _check_within(self.robot, self.kept, np.asarray(arrays[0]), np.asarray(arrays[1]), np.asarray(t))
        return tuple(arrays)


@dataclass(frozen=True)
class _Shaped:
    """A user's function, whose results must be q, v and a of a robot."""

    robot: Robot
    given: Callable[[Any], Any]

    def __call__(self, t: Any) -> tuple[Array, ...]:
        found = self.given(t)
        if not isinstance(found, tuple | list) or len(found) != 3:
            raise CoadjointError(f"reference(t) gave {short(found)}; expected three arrays: q, v and a.")
        sizes = (self.robot.nq, self.robot.nv, self.robot.nv)
        arrays = tuple(plain(x, f"reference(t) gave {name} that") for name, x in zip("qva", found, strict=True))
        for name, x, n in zip("qva", arrays, sizes, strict=True):
            if not x.shape or x.shape[-1] != n:
                raise ShapeError(
                    f"reference(t) gave {name} of shape {tuple(x.shape)}; expected ({n},) for robot {self.robot.name!r}."
                )
        return arrays


def check_limits(reference: Any, times: Any) -> None:
    """An error for a reference that leaves the limits of the joints (position, velocity) at some of the times (N,), before anything runs.

    One that cannot be traced is checked whenever it is evaluated.
    """
    reference = getattr(reference, "motion", reference)
    if isinstance(reference, _Hold):
        reference = _Checked(reference.robot, reference)
    if not isinstance(reference, _Checked) or not reference.kept:
        return
    robot = reference.robot
    try:
        state = traced(lambda t: concat(desired_at(reference, t[..., 0])[:2]), {"t": (1,)}, "reference")
    except UntracedReference:
        shaped = getattr(reference.given, "given", None)
        if isinstance(shaped, _Shaped) and isinstance(shaped.given, Motion):
            for t in np.ravel(times):
                reference(float(t))
        return
    found = state(np.asarray(times, dtype=float)[:, None])
    _check_within(robot, reference.kept, found[..., : robot.nq], found[..., robot.nq :], times)


def beyond_limits(reference: Any, *limits: str) -> Any:
    """The reference without a check of these limits of the robot's joints: "position", "velocity"."""
    if isinstance(reference, _Checked | _Hold):
        kept = getattr(reference, "kept", LIMITS) - set(limits)
        return _Checked(reference.robot, getattr(reference, "given", reference), kept)
    return replace(reference, motion=beyond_limits(reference.motion, *limits)) if hasattr(reference, "motion") else reference


def _limits_of(robot: Robot) -> frozenset[str]:
    """The limits that the robot has."""
    places = np.isfinite(robot.lower).any() or np.isfinite(robot.upper).any()
    return frozenset({"position"} if places else ()) | ({"velocity"} if np.isfinite(robot.velocity_limit).any() else set())


def _check_within(robot: Robot, kept: frozenset[str], q: np.ndarray, v: np.ndarray, times: Any) -> None:
    """An error for the first q (..., nq), v (..., nv) at times (...) beyond a limit that is to be kept."""
    ends = {"position": (q, robot.lower, robot.upper), "velocity": (v, -robot.velocity_limit, robot.velocity_limit)}
    for name in sorted(kept):
        x, lower, upper = ends[name]
        low, high = (y + s * (1e-9 + 1e-9 * np.abs(y)) for y, s in ((lower, -1.0), (upper, 1.0)))
        out = (x < low) | (x > high)
        if not out.any():
            continue
        at = tuple(np.argwhere(out)[0])
        k, when = at[-1], np.broadcast_to(times, x.shape[:-1])[at[:-1]]
        if name == "position":
            raise CoadjointError(
                f"the reference has {x[at]:.6g} for {robot.q_names[k]} at t = {when:g} s, whose limits are {lower[k]:g} and {upper[k]:g}; "
                "choose a reference within them, or keep them by `control.limited`."
            )
        raise CoadjointError(
            f"the reference moves {robot.v_names[k]} with the velocity {x[at]:.6g} at t = {when:g} s, whose limit is {upper[k]:g}; choose "
            "a slower reference, or keep the limit by `control.limited`."
        )


@dataclass(frozen=True)
class _Hold:
    robot: Robot
    q: np.ndarray

    def __call__(self, t: Any) -> tuple[Array, ...]:
        still = np.zeros(self.robot.nv)
        return (like(self.q, t), like(still, t), like(still, t)) if hasattr(t, "shape") else (self.q, still, still)


@takes(robot=a_robot, q=numbers)
def hold(robot: Robot, q: Array) -> Reference:
    """The reference that rests at q (nq,)."""
    return _Hold(robot, robot.normalize(finite(np.asarray(robot._checked(q, "q", robot.nq), dtype=float), "q")))


@dataclass(frozen=True)
class _PointToPoint:
    robot: Robot
    start: np.ndarray
    way: np.ndarray
    duration: float

    def __call__(self, t: Any) -> tuple[Array, ...]:
        p, rate, second = least_jerk(t, self.duration)
        return self.robot.integrate(self.start, each(p, self.way)), each(rate, self.way), each(second, self.way)


@takes(robot=a_robot, start=numbers, goal=numbers, duration=positive)
def point_to_point(robot: Robot, start: Array, goal: Array, duration: float) -> Reference:
    """The reference from rest at `start` to rest at `goal` (nq,) along the geodesics of the joints' groups, and rest there.

    q(t) = start ⊕ p(t/T) d with d = `robot.difference(start, goal)` and the polynomial of least jerk p(s) = 10 s³ - 15 s⁴ + 6 s⁵.
    """
    start, goal = (
        finite(np.array(robot._checked(x, name, robot.nq), dtype=float), name) for x, name in ((start, "start"), (goal, "goal"))
    )
    return _PointToPoint(robot, start, robot.difference(start, goal), float(duration))


@dataclass(frozen=True)
class _Sinusoid:
    center: np.ndarray
    amplitude: np.ndarray
    pulsation: np.ndarray

    def __call__(self, t: Any) -> tuple[Array, ...]:
        phase = each(t, self.pulsation)
        xp = namespace(phase)
        sine, cosine = xp.sin(phase), xp.cos(phase)
        rate = self.amplitude * self.pulsation
        return self.center + self.amplitude * sine, rate * cosine, -self.pulsation * rate * sine


@takes(robot=a_robot, center=numbers, amplitude=numbers, frequency=numbers)
def sinusoid(robot: Robot, center: Array, amplitude: Array, frequency: Array) -> Reference:
    """The reference center + amplitude sin(2π frequency t) of joints with one coordinate each: arrays (nv,), or a number for all."""
    if robot.nq != robot.nv:
        raise CoadjointError(f"robot {robot.name!r} has joints with quaternions; `sinusoid` takes joints with one coordinate each.")
    parts = []
    for name, x in (("center", center), ("amplitude", amplitude), ("frequency", frequency)):
        if np.shape(x) not in ((), (robot.nv,)):
            raise ShapeError(f"{name} has shape {np.shape(x)}; expected a number or ({robot.nv},).")
        parts.append(np.broadcast_to(finite(np.array(x, dtype=float), name), (robot.nv,)))
    return _Sinusoid(parts[0], parts[1], 2.0 * np.pi * parts[2])


def least_jerk(t: Any, duration: float) -> tuple[Any, Any, Any]:
    """p(t/T) = 10 s³ - 15 s⁴ + 6 s⁵, from 0 before t = 0 to 1 after t = T, with its first and second derivative by t."""
    xp = namespace(t) if hasattr(t, "shape") else np
    s = xp.minimum(xp.maximum(t / duration, 0.0 * t), 0.0 * t + 1.0)
    p = s * s * s * (10.0 - 15.0 * s + 6.0 * s * s)
    rate = 30.0 * s * s * (1.0 - s) * (1.0 - s) / duration
    return p, rate, 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / duration**2


def each(x: Any, vector: np.ndarray) -> Array:
    """x (...) times a vector (n,): (..., n)."""
    return (x[..., None] if getattr(x, "ndim", 0) else x) * vector
