"""Derivatives of joint forces, costs and their gradients by a set of the robot's parameters, the motion held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays import Array, mv, stack, transpose
from ..differentiating import derivative, differential
from ..dynamics import inverse_dynamics, inverse_dynamics_derivatives
from ..motion.friction import friction_coefficients
from ..robot.robot import Robot
from .drives import ClosedChain, Drives
from .stages import DYNAMIC, Cost, Curvature, Forces, Of


def forces(robot: Robot, q: Array, v: Array, a: Array) -> Array:
    """τ with the joints' viscous friction (nv,)."""
    return inverse_dynamics(robot, q, v, a) + friction_coefficients(robot)[0] * v


def pulled_dynamics(robot: Robot, q: Array, v: Array, a: Array, w: Array) -> Array:
    """Σ_r w_r ∂τ_r/∂(q, v, a) (3, nv), τ without friction."""
    return stack([mv(transpose(x), w) for x in inverse_dynamics_derivatives(robot, q, v, a)], axis=-2)


def weighted_forces(robot: Robot, q: Array, v: Array, a: Array, w: Array) -> Array:
    """Σ_r w_r ∂τ_r/∂(q, v, a) (3, nv)."""
    none = 0.0 * w
    return pulled_dynamics(robot, q, v, a, w) + stack([none, friction_coefficients(robot)[0] * w, none], axis=-2)


class ByParameters:
    """Derivatives by P parameters, on the last axis, of functions at N nodes."""

    def __init__(self, drives: Drives, parameters: str, count: int) -> None:
        self.drives, self.robot, self.parameters, self.count = drives, drives.robot, parameters, count

    def __call__(self, fn: Any, *arrays: np.ndarray, **shapes: tuple[int, ...]) -> np.ndarray:
        """∂fn/∂p (..., P) of fn(robot, *arrays), arrays other than q, v and a by their shapes."""
        found = np.asarray(derivative(fn, self.robot, self.parameters, shapes=shapes or None)(*arrays))
        return found.reshape(*found.shape[: found.ndim - 1], self.count)

    def tau(self, at: Forces, curvature: Curvature) -> np.ndarray:
        """∂τ/∂p (N, n, P), zeros where the problem does without joint forces."""
        if not curvature.forces:
            return np.zeros((*at.q.shape, self.count))
        if isinstance(self.drives, ClosedChain):
            return self(self.drives.forces, np.stack([at.q, at.v, at.a], axis=1), x=(DYNAMIC, self.robot.nv))
        return self(forces, at.q, at.v, at.a)

    def explicit(self, at: Forces, costs: Sequence[tuple[float, Cost]]) -> np.ndarray:
        """∂ℓ/∂p (N, P) of users' functions: what does not come from joint forces."""
        found = np.zeros((len(at.q), self.count))
        for weight, cost in costs:
            if isinstance(cost, Of):
                found += weight * self(cost.stacked, cost.stage(at), x=(len(cost.places), self.robot.nv))
        return found

    def mixed(
        self, at: Forces, curvature: Curvature, tau: np.ndarray, costs: Sequence[tuple[float, Cost]], scale: np.ndarray
    ) -> np.ndarray:
        """The derivative by p of the gradient by (q, v, a), and what limits that hold add, (N, 3, n, P): costs times scale (N,)."""
        C, n = curvature, self.robot.nv
        found = np.zeros((len(scale), DYNAMIC, n, self.count))
        if C.forces:
            if isinstance(self.drives, ClosedChain):
                x = np.stack([at.q, at.v, at.a], axis=1)
                found += self(differential(self.drives.weighted, "x"), x, C.w, x=x.shape[1:], w=(n,))
            else:
                found += self(weighted_forces, at.q, at.v, at.a, C.w, w=(n,))
            found += np.einsum("kri,krp->kip", at.jacobian, C.d[..., None] * tau).reshape(found.shape)
            found[:, 1] += C.c[..., None] * tau
        for weight, cost in costs:
            if isinstance(cost, Of):
                x = cost.stage(at)
                part = self(differential(cost.stacked, "x"), x, x=x.shape[1:])
                found[:, cost.places] += weight * scale[:, None, None, None] * part
        return found
