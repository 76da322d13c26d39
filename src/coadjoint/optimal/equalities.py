"""Equations that a motion must satisfy: via points, conditions on its end, and periodicity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import mv, stack, transpose
from ..compiling import compile as compiled
from ..differentiating import derivative, differential
from ..kinematics import pose
from ..kinematics.targets import Target
from ..lie import so3
from ..robot.robot import Robot
from .drives import Closure


class TargetGap:
    """The remaining errors to targets, (g,): for each, the rows of log(Rᵀ R*) and R*ᵀ (p* - p), in the target's axes."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self.targets = tuple(targets)
        self.size = sum(one.size for one in self.targets)

    def __call__(self, robot: Robot, q: Any, target: Any) -> Any:
        rows, offset = [], 0
        for one in self.targets:
            X, to = pose(robot, q, one.frame), target[..., offset : offset + one.size]
            offset += one.size
            if one.size == 12:
                to = to.reshape((*to.shape[:-1], 3, 4))
                w, d = so3.log(transpose(X[..., :3, :3]) @ to[..., :3]), mv(transpose(to[..., :3]), to[..., 3] - X[..., :3, 3])
            else:
                w, d = 0.0 * to, to - X[..., :3, 3]
            rows += [(w[..., row] if row < 3 else d[..., row - 3]) for row in one.rows or ()]
        return stack(rows)

    def numbers(self, batch: tuple[int, ...]) -> np.ndarray:
        """The numbers (B, size) of the targets."""
        return np.concatenate([one.flat(batch) for one in self.targets], axis=-1)


class Goal:
    """g(q(T), target) = 0 (g,) for the last configuration, with derivatives by it."""

    def __init__(self, robot: Robot, fn: TargetGap) -> None:
        self.robot, self.fn, self.shape = robot, fn, (fn.size,)
        shapes = {"target": self.shape}
        self.value = compiled(fn, robot, shapes=shapes)
        self.jacobian = derivative(fn, robot, "q", shapes=shapes)
        self.second = derivative(differential(fn, "q"), robot, "q", shapes=shapes)

    def __reduce__(self) -> tuple[Any, ...]:
        return Goal, (self.robot, self.fn)


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
    closure: Closure | None = None
    points: np.ndarray | None = None
    """(J, size): the combinations of control points that give the configurations at which the constraint is met."""

    def part(self, chosen: slice) -> Equality:
        """The equations of some of the motions."""
        return replace(self, right=self.right[chosen], targets=None if self.targets is None else self.targets[chosen])

    @property
    def linear(self) -> int:
        """The number of linear equations."""
        return int(self.right.shape[1] * self.right.shape[2])

    def value(self, control: np.ndarray, which: np.ndarray) -> np.ndarray:
        """(b, equations)"""
        b = len(control)
        found = [(self.rows @ control - self.right[which]).reshape(b, -1)]
        if self.goal is not None and self.targets is not None:
            found.append(self.goal.value(control[:, -1], self.targets[which]))
        if self.closure is not None and self.points is not None:
            found.append(np.asarray(self.closure.value(self.points @ control)).reshape(b, -1))
        return np.concatenate(found, axis=1)

    def jacobian(self, control: np.ndarray, which: np.ndarray) -> np.ndarray:
        """(b, equations, size, n)"""
        b, size, n = control.shape
        linear = np.einsum("ks,ij->kisj", self.rows, np.eye(n)).reshape(-1, size, n)
        found = [np.broadcast_to(linear, (b, *linear.shape))]
        if self.goal is not None and self.targets is not None:
            J = np.asarray(self.goal.jacobian(control[:, -1], self.targets[which]))
            last = np.zeros((b, J.shape[1], size, n))
            last[:, :, -1] = J
            found.append(last)
        if self.closure is not None and self.points is not None:
            J = np.asarray(self.closure.jacobian(self.points @ control))
            found.append(np.einsum("js,bjmi->bjmsi", self.points, J).reshape(b, -1, size, n))
        return np.concatenate(found, axis=1)

    def curve(self, control: np.ndarray, which: np.ndarray, y: np.ndarray, H: np.ndarray, free: slice) -> None:
        """Subtract Σ y ∂²e from the Hessian H (b, variables, variables), whose control points are `free`."""
        b, _, n = control.shape
        count = len(range(*free.indices(control.shape[1]))) * n
        at = self.linear
        if self.goal is not None and self.targets is not None:
            second = np.asarray(self.goal.second(control[:, -1], self.targets[which]))
            H[:, count - n : count, count - n : count] -= np.einsum("bg,bgij->bij", y[:, at : at + second.shape[1]], second)
            at += second.shape[1]
        if self.closure is not None and self.points is not None:
            second = np.asarray(self.closure.second(self.points @ control, y[:, at:].reshape(b, -1, self.closure.size)))
            near = self.points[:, free]
            H[:, :count, :count] -= np.einsum("jx,bjmi,jy->bxmyi", near, second, near, optimize=True).reshape(b, count, count)
