"""Motions as references: what `simulate`, `optimal_motion`, `optimal_control` and `time_optimal` give can be tracked as it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import CoadjointError
from ..motion.trajectory import Trajectory
from ..robot.robot import Robot

WIDTH = 1e-5
"""The part of a motion's duration over which velocities are compared for their derivative."""


@dataclass(frozen=True)
class Motion:
    """A motion as a function of time that gives q, v and a: at rest where it begins before it does, and where it ends afterwards."""

    given: Any
    first: float
    last: float

    def __call__(self, t: Any) -> tuple[Array, ...]:
        t = float(t)
        at = min(max(t, self.first), self.last)
        found = self.given(at)
        q, v, a = found if len(found) == 3 else (*found, self._acceleration(at))
        return (q, v, a) if self.first <= t <= self.last else (q, 0.0 * v, 0.0 * a)

    def _acceleration(self, t: float) -> np.ndarray:
        """dv/dt of the parabola through three velocities about t."""
        h = WIDTH * (self.last - self.first)
        c = min(max(t, self.first + h), self.last - h)
        before, here, after = self.given(np.array([c - h, c, c + h]))[1]
        slope: np.ndarray = (after - before) / (2 * h) + (t - c) * (after - 2 * here + before) / h**2
        return slope


def is_motion(given: Any) -> bool:
    """True if the object is a motion, or several."""
    return isinstance(given, Trajectory) or all(hasattr(given, x) for x in ("robot", "duration"))


def as_motion(robot: Robot, given: Any) -> Motion:
    """The motion that a user gives, if it is one of this robot."""
    if given.robot.nq != robot.nq or given.robot.nv != robot.nv:
        raise CoadjointError(
            f"the reference is a motion of {given.robot.name!r} with {given.robot.nq} coordinates; robot {robot.name!r} has {robot.nq}."
        )
    if not isinstance(given, Trajectory):
        return Motion(given, 0.0, float(given.duration))
    if given.q.ndim != 2:
        raise CoadjointError("the reference is a batch of motions; give one of them, as motions[0].")
    first, last = float(given.time[0]), given.end
    if not last > first:
        raise CoadjointError("the reference is a motion of one state; give its configuration to hold, as motion.q[0].")
    own = {name: getattr(given, name).copy() for name in ("time", "q", "v")}  # what is there now, whatever becomes of the arrays
    return Motion(replace(given, **own), first, last)
