"""References for controllers: functions of time that give a configuration, its velocity and its acceleration.

A reference that is written with array operations can be traced: it then runs inside compiled steps, rollouts and exported C.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arguments import a_robot, finite, numbers, positive, takes
from ..arrays import Array, like, namespace, to_numpy
from ..errors import CoadjointError, ShapeError, TraceError
from ..robot.robot import Robot
from ..traced import traced
from ..words import short
from .evaluation import UntracedReference, desired_at

Reference = Callable[[Any], tuple[Array, ...]]
"""reference(t): the configuration (nq,), velocity (nv,) and acceleration (nv,) at the time t."""


def as_reference(robot: Robot, given: Any) -> Reference:
    """A function reference(t) -> q, v, a of what a user gives: such a function, a configuration to hold, or a motion."""
    if callable(given):
        return _Checked(robot, given)
    try:
        q = np.asarray(to_numpy(given, "reference"), dtype=float)
    except (TypeError, ValueError):
        q = np.zeros((0, 0))
    if q.ndim != 1:
        raise CoadjointError(
            f"reference is {short(given)}; expected a function reference(t) -> q, v, a, or a configuration ({robot.nq},) to hold."
        )
    return hold(robot, q)


class _Checked:
    """A user's reference whose results are checked at every call."""

    def __init__(self, robot: Robot, given: Callable[[Any], Any], within: bool = True) -> None:
        self.robot, self.given, self.within = robot, given, within and _has_limits(robot)

    def __call__(self, t: Any) -> tuple[Array, ...]:
        found = self.given(t)
        if not isinstance(found, tuple | list) or len(found) != 3:
            raise CoadjointError(f"reference(t) gave {short(found)}; expected three arrays: q, v and a.")
        sizes = (self.robot.nq, self.robot.nv, self.robot.nv)
        arrays = [x if hasattr(x, "shape") else np.asarray(x) for x in found]
        for name, x, n in zip("qva", arrays, sizes, strict=True):
            if not x.shape or x.shape[-1] != n:
                raise ShapeError(
                    f"reference(t) gave {name} of shape {tuple(x.shape)}; expected ({n},) for robot {self.robot.name!r}."
                )
        check_depends(self.given, t, arrays)
        if self.within and type(t) is float and arrays[0].dtype != object:
            _check_within(self.robot, arrays[0], np.asarray(t))
        return tuple(arrays)


def check_limits(reference: Any, times: Any) -> None:
    """An error for a reference that leaves the limits of the robot's joints at some of the times (N,), before anything runs.

    One that cannot be traced is checked whenever it is evaluated.
    """
    reference = getattr(reference, "motion", reference)
    if isinstance(reference, _Hold):
        reference = _Checked(reference.robot, reference)
    if not isinstance(reference, _Checked) or not reference.within:
        return
    robot = reference.robot
    try:
        q = traced(lambda t: desired_at(reference, t[..., 0])[0], {"t": (1,)}, "reference")(np.asarray(times, dtype=float)[:, None])
    except UntracedReference:
        return
    _check_within(robot, q, times)


def beyond_limits(reference: Any) -> Any:
    """The same reference, which may leave the limits of the robot's joints."""
    if isinstance(reference, _Checked | _Hold):
        return _Checked(reference.robot, getattr(reference, "given", reference), within=False)
    return replace(reference, motion=beyond_limits(reference.motion)) if hasattr(reference, "motion") else reference


def _has_limits(robot: Robot) -> bool:
    return bool(np.isfinite(robot.lower).any() or np.isfinite(robot.upper).any())


def _check_within(robot: Robot, q: np.ndarray, times: np.ndarray) -> None:
    """An error for the first q (..., nq) at times (...) beyond a limit."""
    low, high = (x + s * (1e-9 + 1e-9 * np.abs(x)) for x, s in ((robot.lower, -1.0), (robot.upper, 1.0)))
    out = (q < low) | (q > high)
    if out.any():
        at = tuple(np.argwhere(out)[0])
        k = at[-1]
        raise CoadjointError(
            f"the reference has {q[at]:.6g} for {robot.q_names[k]} at t = {np.asarray(times)[at[:-1]]:g} s, whose limits are "
            f"{robot.lower[k]:g} and {robot.upper[k]:g}; choose a reference within them, or keep them by `control.limited`."
        )


def check_depends(given: Any, t: Any, found: Sequence[Any]) -> None:
    """An error for a user's function that gives the same whatever the symbol t is: it may read a stream, or what changes later."""
    own = isinstance(given, _Hold | _PointToPoint | _Sinusoid)
    if hasattr(t, "__coadjoint_symbol__") and not own and not any(x.dtype == object for x in found):
        raise TraceError("it does not depend on t; give what is constant itself")


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
        parts.append(np.broadcast_to(np.array(x, dtype=float), (robot.nv,)))
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
