"""Sampled closed loops in fixed steps: many robots under one controller, with delays, encoders and noise, as one native kernel.

At every sample t = k h the controller sees the measured state, and its forces act, held, during the next period; the robot moves by
`substeps` steps of Runge and Kutta's fourth order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_flag, a_robot, count_up_to, floats, numbers, positive, takes
from ..arrays import Array, namespace, to_numpy
from ..dynamics import forward_dynamics, mass_matrix
from ..dynamics.steps import rk4_step
from ..errors import CoadjointError
from ..families import Family
from ..motion.control import check_controller
from ..motion.equations_of_motion import SimulationError
from ..motion.rollout import roll_states
from ..robot.robot import Robot
from .controller import Controller
from .evaluation import desired_at, desired_during, is_traced
from .sampled import SampledController, asked
from .sampling import Sampling

MOST_SAMPLES = 1e9


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


@takes(robot=a_robot, q=numbers, v=numbers, duration=positive, period=positive, friction=a_flag, substeps=count_up_to(10**6))
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
    differ from motion to motion, as for `rollout`. A reference that cannot be traced is evaluated at the samples beforehand, in their
    order. One motion whose forces are not finite at some time is a `SimulationError`, whose `motion` is the loop up to there; in a batch
    its numbers are NaN from there on.
    """
    if not isinstance(controller, Controller | SampledController):
        raise CoadjointError(f"controller is {type(controller).__name__}; expected one of `coadjoint.control`.")
    if substeps < 1:
        raise CoadjointError(f"substeps is {substeps}; expected at least 1.")
    own = getattr(controller, "period", None)
    if own is not None and period not in (None, own):
        raise CoadjointError(f"period is {period:g}; the controller was made for {own:g} s. Leave period out.")
    h = float(own or period or 1e-3)
    sampling = Sampling.of(robot, h, delay, resolution)
    if not duration / h < MOST_SAMPLES:
        raise CoadjointError(f"{duration:g} s with a period of {h:g} s are too many samples; expected fewer than {MOST_SAMPLES:g}.")
    steps = max(1, round(duration / h))
    family = Family(robot, parameters)
    q, v = (
        np.asarray(robot._checked(to_numpy(x, n), n, size), dtype=float) for x, n, size in ((q, "q", robot.nq), (v, "v", robot.nv))
    )
    shapes = {"q": q.shape[:-1], "v": v.shape[:-1]}
    if noise is not None:
        noise = floats(noise, "noise")
        if noise.shape[-2:] != (steps, robot.nv):
            raise CoadjointError(f"noise has shape {noise.shape}; expected (..., {steps}, {robot.nv}): one row for every sample.")
        shapes["noise"] = noise.shape[:-2]
    batch = family.batch(**shapes)
    initial = getattr(controller, "initial", np.zeros(0))
    time = h * np.arange(steps + 1)
    check_controller(robot, controller, time)
    desired = [] if is_traced(controller.reference) else desired_during(controller.reference, time[:-1])
    cores = tuple(x.shape[1:] for x in desired)
    loop = _Loop(controller, sampling, noise is not None, _limits(limits, robot), friction, int(substeps), cores)
    inner = sampling.initial(initial)
    arrays = [np.empty((*batch, steps + 1, n)) for n in (robot.nq, robot.nv, inner.shape[-1])]
    for array, first in zip(arrays, (q, v, inner), strict=True):
        array[..., 0, :] = first
    tau = np.empty((*batch, steps + 1, robot.nv))
    n = int(np.prod(batch))
    further = [np.broadcast_to(time[:-1, None], (n, steps, 1))]
    if noise is not None:
        further.append(np.ascontiguousarray(np.broadcast_to(noise, (*batch, steps, robot.nv))).reshape(n, steps, robot.nv))
    further += [np.broadcast_to(x.reshape(steps, -1), (n, steps, x[0].size)) for x in desired]
    if family:
        further.append(np.broadcast_to(family.flat(batch)[:, None], (n, steps, family.size)))
    sizes = {"q": (robot.nq,), "v": (robot.nv,), "inner": (inner.shape[-1],), "t": (1,)}
    sizes |= {"noise": (robot.nv,)} if noise is not None else {}
    sizes |= {f"desired{k}": (x[0].size,) for k, x in enumerate(desired)}
    take = family.compiled(loop.key, loop.step, "closed_loop", **sizes)
    roll_states(take, [*arrays, tau], further, threads, inputs=3)
    found = ClosedLoop(time, arrays[0], arrays[1], tau[..., 1:, :], arrays[2][..., : initial.size])
    if not batch:
        _check_finite(found, controller, h, delay)
    return found


def _check_finite(loop: ClosedLoop, controller: Controller | SampledController, h: float, delay: int) -> None:
    """An error that keeps the loop up to the first sample whose forces, or the state after it, are not finite."""
    good = np.isfinite(loop.tau).all(-1) & np.isfinite(loop.q[1:]).all(-1) & np.isfinite(loop.v[1:]).all(-1)
    if good.all():
        return
    k = int(np.argmin(good))
    what = "the forces are" if not np.isfinite(loop.tau[k]).all() else "the motion after it is"
    error = SimulationError(
        f"at the sample t = {loop.time[k]:g} s {what} not finite: look at the reference and the gains there. `motion` of this error is the "
        "loop up to there." + _hint(controller, loop.q[0], h, delay)
    )
    kept = {name: getattr(loop, name)[: k + 1] for name in ("time", "q", "v", "state")}
    error.motion = ClosedLoop(**kept, tau=loop.tau[:k])
    raise error


TOO_FAST = " The estimates may follow too fast for the samples: choose a smaller adaptation, or more damping."


def _hint(controller: Controller | SampledController, q: np.ndarray, h: float, delay: int) -> str:
    """A hint if the damping alone makes the sampled loop unstable; empty if it does not, or if that is unknown.

    A speed that is damped with the rate λ, an eigenvalue of M⁻¹ D, obeys v' = v - h λ v, or one sample late v'' = v' - h λ v: it dies out
    if h λ is below 2, or below 1.
    """
    gains = controller.gains
    if not np.isfinite(q).all() or controller.name not in ("pd", "pd_plus", "passivity_based", "adaptive", "computed_torque"):
        return ""
    rates: np.ndarray = gains["kd"] if "kd" in gains else gains["damping"]
    if controller.name != "computed_torque":
        rates = np.linalg.solve(np.asarray(mass_matrix(controller.robot, q)), rates)
    fastest, most = float(np.abs(np.linalg.eigvals(rates)).max()), (1.0 if delay else 2.0) / h
    if not fastest > most:
        return TOO_FAST if controller.name == "adaptive" else ""
    late = " and one sample late" if delay else ""
    return (
        f" The damping takes speeds away at {fastest:.3g}/s; sampled every {h:g} s{late} a loop is stable below {most:.3g}/s only: "
        f"choose a damping at most {most / fastest:.2g} times as large, or a shorter period."
    )


def _limits(limits: Any, robot: Robot) -> np.ndarray | None:
    if limits is None:
        return None
    limits = floats(limits, "limits")
    if limits.shape not in ((), (robot.nv,)) or not (limits > 0).all():
        raise CoadjointError(f"limits is {limits!r}; expected positive forces, a number or ({robot.nv},).")
    return np.broadcast_to(limits, (robot.nv,))


class _Loop:
    """One sample of a closed loop. Its inner state: that of the controller, and what `Sampling` remembers."""

    def __init__(
        self,
        controller: Controller | SampledController,
        sampling: Sampling,
        noisy: bool,
        limits: np.ndarray | None,
        friction: bool,
        substeps: int,
        cores: tuple[tuple[int, ...], ...],
    ) -> None:
        self.controller, self.sampling, self.noisy = controller, sampling, noisy
        self.limits, self.friction, self.substeps = limits, friction, substeps
        self.cores = cores
        """The shapes of what a reference gives that is evaluated beforehand."""

    @property
    def key(self) -> Any:
        """The key of a compiled step. It holds the controller itself, which never changes and lives as long as the key."""
        cut = None if self.limits is None else tuple(self.limits)
        return ("closed loop", self.controller, self.sampling, self.noisy, cut, self.friction, self.substeps, self.cores)

    def step(
        self, robot: Robot, numbers: tuple[Array, ...], q: Array, v: Array, inner: Array, t: Array, *further: Array
    ) -> tuple[Array, ...]:
        """q', v', the inner state and the forces after one period."""
        noise = further[0] if self.noisy else None
        given = further[1:] if self.noisy else further
        desired = [x.reshape((*x.shape[:-1], *core)) for x, core in zip(given, self.cores, strict=True)]

        def ask(q: Array, v: Array, state: Array) -> tuple[Array, Array]:
            tau, state = asked(self.controller, q, v, state, *(desired or desired_at(self.controller.reference, t[..., 0])))
            if self.limits is not None:
                xp = namespace(tau)
                tau = xp.minimum(xp.maximum(tau, -self.limits), 0.0 * tau + self.limits)
            return tau, state

        tau, following = self.sampling.sample(ask, q, v, inner, noise)
        rate: Callable[..., Array] = lambda q, v, t: forward_dynamics(robot, q, v, tau, friction=self.friction)
        for _ in range(self.substeps):
            q, v = rk4_step(robot, q, v, t, rate, self.sampling.period / self.substeps)
        return q, v, following, tau
