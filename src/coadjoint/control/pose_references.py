"""References on SE(3): functions of time that give a pose, its body twist and the derivative of the twist."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_function_of, floats, positive, takes
from ..arrays import Array, like
from ..errors import CoadjointError, ShapeError
from ..lie import se3
from ..robot.link import as_pose
from ..words import short
from .of_time import OfTime, plain
from .references import each, least_jerk

PoseReference = Callable[[Any], tuple[Array, ...]]
"""reference(t): the pose X (4, 4), its body twist V (6,) and dV/dt (6,)."""


def as_pose_reference(given: Any) -> PoseReference:
    """A function reference(t) -> X, V, A of what a user gives: such a function, or a pose to hold."""
    if isinstance(given, _HoldPose | _ScrewMotion | OfTime):
        return given
    if callable(given):
        return OfTime(_Shaped(a_function_of("t")(given, "reference")))
    return _HoldPose(as_pose(floats(given, "reference"), "reference"))


@dataclass(frozen=True)
class _Shaped:
    """A user's function, whose results must be a pose, its twist and the derivative of that."""

    given: Callable[[Any], Any]

    def __call__(self, t: Any) -> tuple[Array, ...]:
        found = self.given(t)
        if not isinstance(found, tuple | list) or len(found) != 3:
            raise CoadjointError(
                f"reference(t) gave {short(found)}; expected three arrays: the pose X (4, 4), its body twist V (6,) and dV/dt (6,)."
            )
        names = ("X", "V", "dV/dt")
        arrays = tuple(plain(x, f"reference(t) gave {name} that") for name, x in zip(names, found, strict=True))
        for name, x, core in zip(names, arrays, ((4, 4), (6,), (6,)), strict=True):
            if tuple(x.shape[-len(core) :]) != core:
                raise ShapeError(f"reference(t) gave {name} of shape {tuple(x.shape)}; expected {core}.")
        return arrays


@dataclass(frozen=True)
class _HoldPose:
    X: np.ndarray

    def __call__(self, t: Any) -> tuple[Array, ...]:
        still = np.zeros(6)
        return (like(self.X, t), like(still, t), like(still, t)) if hasattr(t, "shape") else (self.X, still, still)


@dataclass(frozen=True)
class _ScrewMotion:
    start: np.ndarray
    xi: np.ndarray
    duration: float

    def __call__(self, t: Any) -> tuple[Array, ...]:
        p, rate, second = least_jerk(t, self.duration)
        return self.start @ se3.exp(each(p, self.xi)), each(rate, self.xi), each(second, self.xi)


@takes(duration=positive)
def screw_motion(start: Any, goal: Any, duration: float) -> PoseReference:
    """The reference from rest at the pose `start` to rest at `goal` (4, 4) along one screw, and rest there.

    X(t) = X₀ exp(p(t/T) ξ) with ξ = log(X₀⁻¹ X₁) and the polynomial of least jerk p; its twist is ξ dp/dt.
    """
    X0, X1 = as_pose(start, "start"), as_pose(goal, "goal")
    return _ScrewMotion(X0, se3.log(se3.inverse(X0) @ X1), float(duration))
