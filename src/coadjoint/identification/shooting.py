"""Multiple shooting: a log simulated in stretches side by side from free initial states, with the sensitivities of the motion.

The equations are those of `output_error.py`. A point among the possible robots is an `Estimate`, on which every link is a possible body.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import expm

from ..arrays import Array
from ..compiling import compile
from ..dynamics import forward_dynamics, forward_dynamics_derivatives
from ..lie import inertia
from ..memo import recent
from ..robot.robot import Robot
from .base_parameters import BaseParameters
from .excitation import base_regressor
from .excitation_limits import smooth_friction, smooth_friction_rate

_LOWER = np.tril_indices(4)


@dataclass
class Estimate:
    """A point among the possible robots."""

    factors: np.ndarray
    """F (n_links, 4, 4) with Σ = F Fᵀ."""
    drives: np.ndarray
    """Armature, damping and friction of all freedoms (3 n,)."""

    @property
    def inertial(self) -> np.ndarray:
        return np.asarray(inertia.from_pseudo(self.factors @ np.swapaxes(self.factors, -1, -2))).reshape(-1)

    @property
    def tangent(self) -> np.ndarray:
        """∂φ/∂δ (10 n, 10 n): each link's ten parameters by its Λ, (n, 10) entries of lower triangles."""
        T = np.zeros((10 * len(self.factors),) * 2)
        for k, F in enumerate(self.factors):
            for j, (row, column) in enumerate(zip(*_LOWER, strict=True)):
                d = np.outer(F[:, row], F[:, column])
                T[10 * k : 10 * k + 10, 10 * k + j] = np.asarray(inertia.from_pseudo(d + d.T))
        return T

    def moved(self, delta: np.ndarray) -> Estimate:
        """Along δ (10 n + 3 m or 10 n,): F exp(Λ), and drives times exp."""
        L = np.zeros_like(self.factors)
        n = 10 * len(L)
        L[:, _LOWER[0], _LOWER[1]] = delta[:n].reshape(-1, 10)
        drives = self.drives * np.exp(delta[n:]) if len(delta) > n else self.drives
        return Estimate(self.factors @ np.array([expm(x) for x in L]), drives)


@dataclass
class Shooting:
    """A log in S stretches of K steps: time (S, K + 1), motions, forces and references (S, K + 1, nv), gains (nv,)."""

    robot: Robot
    base: BaseParameters
    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    feedforward: np.ndarray
    q_r: np.ndarray
    v_r: np.ndarray
    kp: np.ndarray
    kd: np.ndarray
    inverse: bool
    linear: bool
    substeps: int
    with_drives: bool

    @cached_property
    def native(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """a, ∂a/∂q, ∂a/∂v, M⁻¹ of q, v, τ, inertial parameters, armature; and X of q, v, a."""

        def accelerations(robot: Robot, q: Array, v: Array, tau: Array) -> tuple[Array, ...]:
            return (forward_dynamics(robot, q, v, tau), *forward_dynamics_derivatives(robot, q, v, tau))

        def make() -> tuple[Callable[..., Any], Callable[..., Any]]:
            moving = compile(accelerations, self.robot, parameters=("inertial", "armature"))
            return moving, compile(base_regressor(self.robot, self.base), self.robot)

        return recent(self.robot, ("output error", self.base.pivots), make)

    def slope(
        self, x: tuple[np.ndarray, ...], e: Estimate, f: np.ndarray, q_r: np.ndarray, v_r: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Rates of (q, v, S_q, S_v)."""
        q, v, Sq, Sv = x
        n, r = self.robot.tree_nv, self.base.rank
        armature, damping, friction = e.drives[:n], e.drives[n : 2 * n], e.drives[2 * n :]
        u = f + self.kp * (q_r - q) + self.kd * (v_r - v) - smooth_friction(self.robot, v, damping, friction)
        moving, regressor = self.native
        a, by_q, by_v, inverse = moving(q, v, u, e.inertial, armature)
        by_q = by_q - inverse * self.kp
        by_v = by_v - inverse @ (np.diag(self.kd) + smooth_friction_rate(self.robot, v, damping, friction))
        Sa = by_q @ Sq + by_v @ Sv
        Sa[..., :r] -= inverse @ regressor(q, v, a)
        return v, a, Sv, Sa

    def simulate(self, e: Estimate, start: np.ndarray) -> tuple[np.ndarray, ...]:
        """q, v (S, K + 1, nv) from initial states (S, 2 nv), and their sensitivities S_q, S_v (S, K + 1, nv, r + 2 nv)."""
        S, K, n = self.q.shape[0], self.q.shape[1] - 1, self.robot.nv
        r = self.base.rank
        Sq, Sv = (np.zeros((S, n, r + 2 * n)) for _ in range(2))
        Sq[..., r : r + n], Sv[..., r + n :] = np.eye(n), np.eye(n)
        x: tuple[np.ndarray, ...] = (start[:, :n], start[:, n:], Sq, Sv)
        found = [x]
        for k in range(K):
            h = ((self.time[:, k + 1] - self.time[:, k]) / self.substeps)[:, None]
            for s in range(self.substeps):
                x = self._step(x, e, k, s / self.substeps, h)
            found.append(x)
        return tuple(np.stack(parts, axis=1) for parts in zip(*found, strict=True))

    def _step(self, x: tuple[np.ndarray, ...], e: Estimate, k: int, part: float, h: np.ndarray) -> tuple[np.ndarray, ...]:
        """One step of Runge and Kutta's method of fourth order, from the given part of step k on."""

        def slope(x: tuple[np.ndarray, ...], c: float) -> tuple[np.ndarray, ...]:
            w = part + c / self.substeps
            f = self.feedforward[:, k]
            f = f + w * (self.feedforward[:, k + 1] - f) if self.linear else f
            return self.slope(x, e, f, *self.reference(k, w))

        def moved(d: tuple[np.ndarray, ...], c: float) -> tuple[np.ndarray, ...]:
            return tuple(y + c * (h if y.ndim == 2 else h[..., None]) * z for y, z in zip(x, d, strict=True))

        d1 = slope(x, 0.0)
        d2 = slope(moved(d1, 0.5), 0.5)
        d3 = slope(moved(d2, 0.5), 0.5)
        d4 = slope(moved(d3, 1.0), 1.0)
        return moved(tuple((s + 2 * t + 2 * w + z) / 6 for s, t, w, z in zip(d1, d2, d3, d4, strict=True)), 1.0)

    def reference(self, k: int, w: float) -> tuple[np.ndarray, np.ndarray]:
        """q_r and v_r at part w of step k, by the cubic curve through positions and velocities at both ends."""
        h = (self.time[:, k + 1] - self.time[:, k])[:, None]
        d, v0, v1 = self.q_r[:, k + 1] - self.q_r[:, k], self.v_r[:, k], self.v_r[:, k + 1]
        q = self.q_r[:, k] + (3 * w**2 - 2 * w**3) * d + h * ((w**3 - 2 * w**2 + w) * v0 + (w**3 - w**2) * v1)
        return q, (6 * w - 6 * w**2) * d / h + (3 * w**2 - 4 * w + 1) * v0 + (3 * w**2 - 2 * w) * v1

    def residuals(self, e: Estimate, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residuals (S, K + 1, nv), and the outputs' sensitivities (S, K + 1, nv, r + 2 nv)."""
        q, v, Sq, Sv = self.simulate(e, start)
        if not self.inverse:
            return self.q - q, Sq
        u = self.feedforward + self.kp * (self.q_r - q) + self.kd * (self.v_r - v)
        return self.tau - u, -self.kp[:, None] * Sq - self.kd[:, None] * Sv
