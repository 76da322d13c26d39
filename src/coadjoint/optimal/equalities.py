"""Equations that a motion meets: points on the way, what is asked of its end, and periodicity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..compiling import compile as compiled
from ..differentiating import derivative, differential
from ..kinematics import pose
from ..lie import se3
from ..robot.robot import Robot


@dataclass(frozen=True)
class PoseGap:
    """What is missing to a pose, (6,): the body twist log(T(q)⁻¹ X)."""

    frame: str

    def __call__(self, robot: Robot, q: Any, target: Any) -> Any:
        return se3.log(se3.inverse(pose(robot, q, self.frame)) @ target)


class Goal:
    """g(q(T), target) = 0 (g,) for the last configuration, with derivatives by it."""

    def __init__(self, robot: Robot, fn: Callable[..., Any], shape: tuple[int, ...]) -> None:
        self.robot, self.fn, self.shape = robot, fn, shape
        shapes = {"target": shape}
        self.value = compiled(fn, robot, shapes=shapes)
        self.jacobian = derivative(fn, robot, "q", shapes=shapes)
        self.second = derivative(differential(fn, "q"), robot, "q", shapes=shapes)

    def __reduce__(self) -> tuple[Any, ...]:
        return Goal, (self.robot, self.fn, self.shape)


@dataclass(frozen=True)
class Equality:
    """rows @ c = right for every joint, and goal(q(T)) = 0."""

    rows: np.ndarray
    """(k, size): the same combination of control points for every joint."""
    right: np.ndarray
    """(B, k, n)"""
    goal: Goal | None = None
    targets: np.ndarray | None = None
    """(B, …): what the goal is of every motion."""

    def part(self, chosen: slice) -> Equality:
        """Those of some of the motions."""
        return replace(self, right=self.right[chosen], targets=None if self.targets is None else self.targets[chosen])

    @property
    def linear(self) -> int:
        """How many of the equations are linear."""
        return int(self.right.shape[1] * self.right.shape[2])

    def value(self, control: np.ndarray, which: np.ndarray) -> np.ndarray:
        """(b, equations)"""
        found = (self.rows @ control - self.right[which]).reshape(len(control), -1)
        if self.goal is None or self.targets is None:
            return np.asarray(found)
        return np.concatenate([found, self.goal.value(control[:, -1], self.targets[which])], axis=1)

    def jacobian(self, control: np.ndarray, which: np.ndarray) -> np.ndarray:
        """(b, equations, size, n)"""
        b, size, n = control.shape
        linear = np.einsum("ks,ij->kisj", self.rows, np.eye(n)).reshape(-1, size, n)
        found = np.broadcast_to(linear, (b, *linear.shape))
        if self.goal is None or self.targets is None:
            return found
        J = np.asarray(self.goal.jacobian(control[:, -1], self.targets[which]))
        last = np.zeros((b, J.shape[1], size, n))
        last[:, :, -1] = J
        return np.concatenate([found, last], axis=1)

    def curve(self, control: np.ndarray, which: np.ndarray, y: np.ndarray, H: np.ndarray, free: slice) -> None:
        """Subtract Σ y ∂²e from the Hessian H (b, variables, variables), whose control points are `free`."""
        if self.goal is None or self.targets is None:
            return
        n = control.shape[2]
        at = len(range(*free.indices(control.shape[1]))) * n
        second = self.goal.second(control[:, -1], self.targets[which])
        H[:, at - n : at, at - n : at] -= np.einsum("bg,bgij->bij", y[:, self.linear :], second)
