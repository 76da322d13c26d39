"""Differential equations on the configurations of a robot: the common part of geodesics, parallel transport and Jacobi fields.

Quaternions are integrated as coordinates, dq/dt = E(q) v: results of algorithms do not depend on the length of a quaternion, and
the final configurations are normalised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import Array
from ..dynamics.articulated import forward_dynamics
from ..dynamics.christoffel import check_metric
from ..dynamics.singular import explain_singular
from ..errors import CoadjointError
from ..kernel.dispatch import kernel
from ..robot.robot import Robot


class GeodesicError(CoadjointError):
    """A motion cannot be continued, or none was found; the message says where and why."""


@kernel("nq", q="nq", v="nv")
def configuration_rate(robot: Robot, q: Array, v: Array) -> Array:
    """dq/dt (..., nq) of a robot that moves with the velocity v."""
    return robot.rate(q, v)


@kernel("nq", "nv", q="nq", v="nv", no_result=explain_singular)
def geodesic_rate(robot: Robot, q: Array, v: Array) -> tuple[Array, Array]:
    """dq/dt and dv/dt of free motion without gravity and springs: dv/dt = -M⁻¹ C v, the equation of geodesics."""
    check_metric(robot)
    weightless = robot.with_numbers(gravity=0.0 * robot.gravity, spring_numbers=robot.spring_numbers[:0], spring_ends=())
    return configuration_rate(robot, q, v), forward_dynamics(weightless, q, v, 0.0 * v)


TOLERANCE = 1e-13
"""The tolerance, relative and absolute, of the local error of one state. DOP853 controls only the mean error over a batch: its
tolerance is smaller, the larger the batch.
"""
SMALLEST = 2.3e-14
MOST = 10_000_000
"""The most evaluations of a rate in one direction of time: some minutes, and a gigabyte of dense output."""
LOOK = 5_000
"""After so many evaluations, and again after each as many, it is estimated how many there will be."""


class Solution:
    """The solution of a differential equation for a batch of states, which can be evaluated at any time of its span."""

    def __init__(self, rate: Callable[[float, list[np.ndarray]], list[np.ndarray]], start: list[np.ndarray], times: Any, what: str):
        from scipy.integrate import solve_ivp

        self.shapes = [x.shape for x in start]
        self.ends = np.cumsum([x.size for x in start])
        flat = np.concatenate([x.ravel() for x in start])
        states = max(1, start[0][..., 0].size)
        tolerance = max(TOLERANCE / np.sqrt(states), SMALLEST)
        self.parts: dict[bool, Any] = {}
        for forward, end in ((True, np.max(times, initial=0.0)), (False, np.min(times, initial=0.0))):
            if end != 0.0:
                self._check_start(rate, start, what)
                derivative = self._bounded(rate, end, what)
                with np.errstate(over="ignore", invalid="ignore"):
                    found = solve_ivp(derivative, (0.0, end), flat, "DOP853", dense_output=True, rtol=tolerance, atol=tolerance)
                if not found.success:
                    raise GeodesicError(
                        f"{what} cannot be continued beyond t = {found.t[-1]:.6g} of {end:.6g}: steps become too small, as they do "
                        "where the mass matrix is singular. Ask for earlier times, or start elsewhere."
                    )
                self.parts[forward] = found.sol
        self.start = flat

    def _bounded(
        self, rate: Callable[[float, list[np.ndarray]], list[np.ndarray]], end: float, what: str
    ) -> Callable[[float, np.ndarray], np.ndarray]:
        """The rate of the flat state; an error as soon as it is plain that the end would not be reached within MOST evaluations."""
        count = 0

        def derivative(t: float, y: np.ndarray) -> np.ndarray:
            nonlocal count
            count += 1
            # Steps may become longer, but not ten times as long in the mean.
            if count % LOOK == 0 and (count >= MOST or count * (end / t) > 10 * MOST):
                raise GeodesicError(
                    f"{what} until t = {end:.6g} takes too many steps: {count} evaluations led to t = {t:.6g}. Ask for earlier times, "
                    "or a smaller velocity."
                )
            return np.concatenate([x.ravel() for x in rate(t, self._split(y))])

        return derivative

    @staticmethod
    def _check_start(rate: Callable[[float, list[np.ndarray]], list[np.ndarray]], start: list[np.ndarray], what: str) -> None:
        """Raise an error if the rate is not finite at the start: no step would be short enough."""
        with np.errstate(over="ignore", invalid="ignore"):
            finite = all(np.isfinite(x).all() for x in rate(0.0, start))
        if not finite:
            largest = max(float(np.abs(x).max(initial=0.0)) for x in start)
            raise GeodesicError(
                f"{what} cannot be started: its rate is not finite. The mass matrix is singular there, or the state, with entries up to "
                f"{largest:.3g}, is too large."
            )

    def _split(self, y: np.ndarray) -> list[np.ndarray]:
        return [x.reshape(shape) for x, shape in zip(np.split(y, self.ends[:-1]), self.shapes, strict=True)]

    def __call__(self, t: Any) -> list[np.ndarray]:
        """Each part of the state at times t: (..., *t.shape, size)."""
        t = np.asarray(t, dtype=float)
        y = np.repeat(self.start[:, None], t.size, 1)
        for forward, sol in self.parts.items():
            chosen = t.ravel() > 0 if forward else t.ravel() < 0
            if chosen.any():
                y[:, chosen] = sol(t.ravel()[chosen])
        columns = [
            np.moveaxis(x.reshape(*shape, t.size), -1, -2)
            for x, shape in zip(np.split(y, self.ends[:-1]), self.shapes, strict=True)
        ]
        return [x.reshape(*shape[:-1], *t.shape, shape[-1]) for x, shape in zip(columns, self.shapes, strict=True)]
