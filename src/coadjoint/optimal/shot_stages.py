"""The stages of Runge and Kutta's steps: accelerations, costs and curvatures as functions of positions, velocities and joint forces."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..dynamics import forward_dynamics, forward_dynamics_derivatives
from .stages import Curvature, Forces

if TYPE_CHECKING:
    from .multiple_shooting import Shots


class Stage:
    """One stage of all steps of one number, in all spans of all problems."""

    def __init__(self, problem: Shots, X: np.ndarray, u: np.ndarray) -> None:
        n, d = problem.robot.nv, problem.drives.damping
        self.problem, self.X, self.u = problem, X, u
        q, v = X[:, :n], X[:, n:]
        self.a = np.asarray(forward_dynamics(problem.robot, q, v, u - d * v))
        self.slope = np.concatenate([v, self.a], axis=1)
        stage = np.stack([q, v, self.a, np.zeros_like(q)], axis=1)
        self.forces = Forces(problem.drives, stage, u)

    @cached_property
    def A(self) -> np.ndarray:
        """∂a/∂(q, v, τ) (N, n, 3 n)."""
        n, d = self.problem.robot.nv, self.problem.drives.damping
        by_q, by_v, by_u = forward_dynamics_derivatives(
            self.problem.robot, self.X[:, :n], self.X[:, n:], self.u - d * self.X[:, n:]
        )
        return np.concatenate([by_q, by_v - by_u * d, by_u], axis=2)

    @cached_property
    def running(self) -> np.ndarray:
        """ℓ (N,)."""
        return np.asarray(sum((w * cost.value(self.forces) for w, cost in self.problem.costs), np.zeros(len(self.X))))

    @cached_property
    def covector(self) -> np.ndarray:
        """∂ℓ/∂(q, v, a, jerk) (N, 4, n)."""
        found = np.zeros_like(self.forces.stage)
        for w, cost in self.problem.costs:
            found = found + w * cost.gradient(self.forces)
        return found

    def pulled(self, g: np.ndarray) -> np.ndarray:
        """By (q, v, τ) (N, 3 n) for covectors (N, 3, n) by (q, v, a)."""
        N, _, n = g.shape
        found = np.concatenate([g[:, 0], g[:, 1], np.zeros((N, n))], axis=1)
        return np.asarray(found + (g[:, 2, None] @ self.A)[:, 0])

    def parts(self, curvature: Curvature, slope: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The curvature by (q, v, a), with slopeᵀ ∂²a for (N, n), and ∂(q, v, a)/∂(q, v, τ), (N, 3 n, 3 n) each."""
        N, n = self.a.shape
        if slope is not None:
            curvature.of_forces(-(slope[:, None] @ self.A[:, :, 2 * n :])[:, 0], 0.0)
        G = curvature.blocks(self.forces).reshape(N, 3, 3, n, n).swapaxes(2, 3).reshape(N, 3 * n, 3 * n)
        return G, np.concatenate([np.broadcast_to(np.eye(2 * n, 3 * n), (N, 2 * n, 3 * n)), self.A], axis=1)

    def bent(self, curvature: Curvature, slope: np.ndarray | None) -> np.ndarray:
        """(N, 3 n, 3 n) by (q, v, τ): the curvature by (q, v, a), and slopeᵀ ∂²a for (N, n)."""
        G, S = self.parts(curvature, slope)
        return np.asarray(S.swapaxes(-1, -2) @ G @ S)
