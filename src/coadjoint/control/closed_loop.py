"""Sampled closed loops in fixed steps: many robots under one controller, with delays, encoders and noise, as one native kernel.

At every sample t = k h the controller sees the measured state, and its forces act, held, during the next period; the robot moves by
`substeps` steps of Runge and Kutta's fourth order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_number, a_robot, numbers, positive, takes, whole
from ..arrays import Array, concat, namespace, to_numpy
from ..dynamics import forward_dynamics
from ..dynamics.steps import rk4_step
from ..errors import CoadjointError
from ..families import Family
from ..motion.rollout import roll_states
from ..robot.robot import Robot
from .controller import Controller
from .sampled import SampledController


@dataclass(frozen=True)
class ClosedLoop:
    """Motions under a sampled controller, at the samples."""

    time: np.ndarray
    """(steps + 1,)"""
    q: np.ndarray
    """(..., steps + 1, nq)"""
    v: np.ndarray
    """(..., steps + 1, nv)"""
    tau: np.ndarray
    """(..., steps, nv): the forces in effect after each sample."""
    state: np.ndarray
    """(..., steps + 1, k): the controller's state; k is 0 for controllers without one."""


@takes(robot=a_robot, q=numbers, v=numbers, duration=positive, period=positive)
def closed_loop(
    robot: Robot,
    controller: Controller | SampledController,
    q: Array,
    v: Array,
    duration: float,
    *,
    period: float | None = None,
    delay: int = 0,
    resolution: float = 0.0,
    noise: Any = None,
    limits: Any = None,
    friction: bool = False,
    parameters: Mapping[str, Array] | None = None,
    substeps: int = 1,
    threads: int | None = None,
) -> ClosedLoop:
    """Motions of a robot from the states q (..., nq), v (..., nv) under a controller that is sampled every `period` seconds.

    `robot` moves; the controller keeps the model that it was made with. period: that of a `SampledController`, else 1 ms. delay: 0, or
    1 for forces that act one sample late. resolution: the step of encoders [rad or m]; velocities are then differences of their readings.
    noise (..., steps, nv): added to the measured velocities. limits (nv,): forces are cut to ± these. parameters: numbers of the robot that
    differ from motion to motion, as for `rollout`.
    """
    if not isinstance(controller, Controller | SampledController):
        raise CoadjointError(f"controller is {type(controller).__name__}; expected one of `coadjoint.control`.")
    if whole(delay, "delay") not in (0, 1):
        raise CoadjointError(f"delay is {delay}; expected 0 or 1 samples.")
    if resolution and robot.nq != robot.nv:
        raise CoadjointError(
            f"robot {robot.name!r} has joints with quaternions; encoders of a resolution measure joints with one coordinate."
        )
    if not (a_number(resolution, "resolution") >= 0):
        raise CoadjointError(f"resolution is {resolution:g}; expected a step that is positive, or zero for exact readings.")
    if whole(substeps, "substeps") < 1:
        raise CoadjointError(f"substeps is {substeps}; expected at least 1.")
    own = getattr(controller, "period", None)
    if own is not None and period not in (None, own):
        raise CoadjointError(f"period is {period:g}; the controller was made for {own:g} s. Leave period out.")
    h = float(own or period or 1e-3)
    steps = max(1, round(duration / h))
    family = Family(robot, parameters)
    q, v = (
        np.asarray(robot._checked(to_numpy(x, n), n, size), dtype=float) for x, n, size in ((q, "q", robot.nq), (v, "v", robot.nv))
    )
    shapes = {"q": q.shape[:-1], "v": v.shape[:-1]}
    if noise is not None:
        noise = np.asarray(noise, dtype=float)
        if noise.shape[-2:] != (steps, robot.nv):
            raise CoadjointError(f"noise has shape {noise.shape}; expected (..., {steps}, {robot.nv}): one row for every sample.")
        shapes["noise"] = noise.shape[:-2]
    batch = family.batch(**shapes)
    initial = getattr(controller, "initial", np.zeros(0))
    loop = _Loop(controller, h, delay, float(resolution), noise is not None, _limits(limits, robot), friction, int(substeps))
    inner = loop.start(robot, np.broadcast_to(q, (*batch, robot.nq)), initial)
    arrays = [np.empty((*batch, steps + 1, n)) for n in (robot.nq, robot.nv, inner.shape[-1])]
    for array, first in zip(arrays, (q, v, inner), strict=True):
        array[..., 0, :] = first
    tau = np.empty((*batch, steps + 1, robot.nv))
    n = int(np.prod(batch))
    time = h * np.arange(steps + 1)
    further = [np.broadcast_to(time[:-1, None], (n, steps, 1))]
    if noise is not None:
        further.append(np.ascontiguousarray(np.broadcast_to(noise, (*batch, steps, robot.nv))).reshape(n, steps, robot.nv))
    if family:
        further.append(np.broadcast_to(family.flat(batch)[:, None], (n, steps, family.size)))
    sizes = {"q": (robot.nq,), "v": (robot.nv,), "inner": (inner.shape[-1],), "t": (1,)}
    take = family.compiled(loop.key, loop.step, "closed_loop", **sizes, **({"noise": (robot.nv,)} if noise is not None else {}))
    roll_states(take, [*arrays, tau], further, threads, inputs=3)
    return ClosedLoop(time, arrays[0], arrays[1], tau[..., 1:, :], arrays[2][..., : initial.size])


def _limits(limits: Any, robot: Robot) -> np.ndarray | None:
    if limits is None:
        return None
    limits = np.asarray(limits, dtype=float)
    if limits.shape not in ((), (robot.nv,)) or not (limits > 0).all():
        raise CoadjointError(f"limits is {limits!r}; expected positive forces, a number or ({robot.nv},).")
    return np.broadcast_to(limits, (robot.nv,))


class _Loop:
    """One sample of a closed loop. Its inner state: the controller's, the forces on their way, the encoders' last readings, and a zero."""

    def __init__(
        self,
        controller: Controller | SampledController,
        h: float,
        delay: int,
        resolution: float,
        noisy: bool,
        limits: np.ndarray | None,
        friction: bool,
        substeps: int,
    ) -> None:
        self.controller, self.h, self.delay, self.resolution, self.noisy = controller, h, delay, resolution, noisy
        self.limits, self.friction, self.substeps = limits, friction, substeps
        self.states = getattr(controller, "initial", np.zeros(0)).size

    @property
    def key(self) -> Any:
        cut = None if self.limits is None else tuple(self.limits)
        return ("closed loop", self.controller, self.h, self.delay, self.resolution, self.noisy, cut, self.friction, self.substeps)

    def start(self, robot: Robot, q: np.ndarray, initial: np.ndarray) -> np.ndarray:
        """The inner state (..., k) at the start: no force on its way, encoders that stand still."""
        batch = q.shape[:-1]
        parts = [np.broadcast_to(initial, (*batch, initial.size)), np.zeros((*batch, robot.nv if self.delay else 0))]
        parts += [self._read(q) if self.resolution else q[..., :0], np.zeros((*batch, 1))]
        return np.concatenate(parts, axis=-1)

    def _read(self, q: Array) -> Array:
        return namespace(q).floor(q / self.resolution + 0.5) * self.resolution

    def step(
        self, robot: Robot, numbers: tuple[Array, ...], q: Array, v: Array, inner: Array, t: Array, *noise: Array
    ) -> tuple[Array, ...]:
        """q', v', the inner state and the forces after one period."""
        k, n = self.states, robot.nv
        measured_q, measured_v, readings = q, v, []
        if self.resolution:
            measured_q = self._read(q)
            last = inner[..., k + n * self.delay : k + n * self.delay + n]
            measured_v = (measured_q - last) / self.h
            readings = [measured_q]
        if noise:
            measured_v = measured_v + noise[0]
        asked, following = self._ask(measured_q, measured_v, t[..., 0], inner[..., :k])
        if self.limits is not None:
            xp = namespace(asked)
            asked = xp.minimum(xp.maximum(asked, -self.limits), 0.0 * asked + self.limits)
        tau = inner[..., k : k + n] if self.delay else asked
        rate: Callable[..., Array] = lambda q, v, t: forward_dynamics(robot, q, v, tau, friction=self.friction)
        for _ in range(self.substeps):
            q, v = rk4_step(robot, q, v, t, rate, self.h / self.substeps)
        parts = [*following, *([asked] if self.delay else []), *readings, inner[..., -1:]]
        return q, v, concat(parts), tau

    def _ask(self, q: Array, v: Array, t: Array, state: Array) -> tuple[Array, list[Array]]:
        if isinstance(self.controller, SampledController):
            tau, state = self.controller.step(q, v, t, state)
            return tau, [state]
        return self.controller.force(q, v, t), []
