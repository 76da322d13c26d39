"""The joint forces that make a robot move, with first and second derivatives: of open chains, and of mechanisms with constraints.

Under constraints with rows A(q), τ = u + Aᵀλ: of all forces u of the joints that have motors, those of least |u| are taken. Joints
without motors have none. With A_p the columns of A at those,

    λ = G⁻¹ (A τ + A_p ν),    (A_pᵀ G⁻¹ A_p) ν = τ_p - A_pᵀ G⁻¹ A τ,    G = A Aᵀ.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..arrays import Array, mv, solve_spd, transpose
from ..compiling import compile as compiled
from ..constraints.constraint import Constraint
from ..differentiating import derivative, differential
from ..dynamics import inverse_dynamics, inverse_dynamics_derivatives
from ..motion.friction import friction_coefficients
from ..robot.robot import Robot
from .force_curvature import force_curvature


class Drives(Protocol):
    """Joint forces τ (N, n) of states q, v, a (N, n)."""

    robot: Robot

    def tau(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """(N, n), with the joints' viscous friction."""

    def jacobian(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """∂τ/∂(q, v, a) (N, n, 3 n)."""

    def curvature(self, q: np.ndarray, v: np.ndarray, a: np.ndarray, w: np.ndarray, d: np.ndarray, c: np.ndarray) -> np.ndarray:
        """(N, 9, n, n), see `force_curvature`."""


class OpenChain:
    """Every joint has a motor."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.damping = np.asarray(friction_coefficients(robot)[0], dtype=float)

    def tau(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.asarray(inverse_dynamics(self.robot, q, v, a) + self.damping * v)

    def jacobian(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        by_q, by_v, by_a = inverse_dynamics_derivatives(self.robot, q, v, a)
        return np.concatenate([by_q, by_v + np.diag(self.damping), by_a], axis=-1)

    def curvature(self, q: np.ndarray, v: np.ndarray, a: np.ndarray, w: np.ndarray, d: np.ndarray, c: np.ndarray) -> np.ndarray:
        return np.asarray(force_curvature(self.robot, q, v, a, w, d, c, self.damping))


class ClosedChain:
    """A mechanism with constraints, whose joints without motors are `passive` (indices)."""

    def __init__(self, robot: Robot, constraint: Constraint, passive: tuple[int, ...]) -> None:
        self.robot, self.constraint, self.passive = robot, constraint, passive
        n, shapes = robot.nv, {"x": (3, robot.nv)}
        self._tau = compiled(self.forces, robot, shapes=shapes)
        self._jacobian = derivative(self.forces, robot, "x", shapes=shapes)
        self._second = derivative(differential(self.weighted, "x"), robot, "x", shapes={**shapes, "w": (n,)})

    def __reduce__(self) -> tuple[Any, ...]:
        return ClosedChain, (self.robot, self.constraint, self.passive)

    def forces(self, robot: Robot, x: Array) -> Array:
        """u (n,) of the state x = (q, v, a)."""
        q, v, a = (x[..., k, :] for k in range(3))
        tau = inverse_dynamics(robot, q, v, a) + friction_coefficients(robot)[0] * v
        A = self.constraint.jacobian(robot, q)
        solved = solve_spd(A @ transpose(A), A)  # G⁻¹ A
        multipliers = mv(solved, tau)
        if self.passive:
            own = list(self.passive)
            columns, some = A[..., own], solved[..., own]
            lacking = tau[..., own] - mv(transpose(columns), multipliers)
            multipliers = multipliers + mv(some, solve_spd(transpose(columns) @ some, lacking[..., None])[..., 0])
        return tau - mv(transpose(A), multipliers)

    def weighted(self, robot: Robot, x: Array, w: Array) -> Array:
        return (w * self.forces(robot, x)).sum(-1)

    def tau(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.asarray(self._tau(np.stack([q, v, a], axis=1)))

    def jacobian(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        found = np.asarray(self._jacobian(np.stack([q, v, a], axis=1)))
        return found.reshape(*found.shape[:2], -1)

    def curvature(self, q: np.ndarray, v: np.ndarray, a: np.ndarray, w: np.ndarray, d: np.ndarray, c: np.ndarray) -> np.ndarray:
        N, n = q.shape
        J = self.jacobian(q, v, a)
        H = np.asarray(self._second(np.stack([q, v, a], axis=1), w)).reshape(N, 3 * n, 3 * n)
        H = H + J.swapaxes(-1, -2) @ (d[..., None] * J)
        H[:, n : 2 * n] += c[..., None] * J
        H[:, :, n : 2 * n] += (c[..., None] * J).swapaxes(-1, -2)
        return np.ascontiguousarray(H.reshape(N, 3, n, 3, n).swapaxes(2, 3)).reshape(N, 9, n, n)


class Closure:
    """φ(q) = 0 at points along a motion, with derivatives."""

    def __init__(self, robot: Robot, constraint: Constraint) -> None:
        self.robot, self.constraint = robot, constraint
        self.size = constraint.size(robot)
        self.value = compiled(self.gap, robot)
        self.jacobian = derivative(self.gap, robot, "q")
        self.second = derivative(differential(self.weighted, "q"), robot, "q", shapes={"y": (self.size,)})

    def __reduce__(self) -> tuple[Any, ...]:
        return Closure, (self.robot, self.constraint)

    def gap(self, robot: Robot, q: Array) -> Array:
        return self.constraint.residual(robot, q)

    def weighted(self, robot: Robot, q: Array, y: Array) -> Array:
        return (y * self.gap(robot, q)).sum(-1)
