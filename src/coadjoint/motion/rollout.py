"""Many steps of many robots: fixed-step simulation under given controls or a policy.

    euler    v' = v + h a(q, v, τ),  q' = q ⊕ h v'                  semi-implicit, first order
    rk4      Runge and Kutta's fourth order on (q, v) with q̇ = rate(q, v), quaternions brought back to length one

A step is one traced function; natively all steps of a batch run in one kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import Array
from ..compiling import compile
from ..dynamics import forward_dynamics
from ..errors import CoadjointError, ShapeError
from ..robot.robot import Robot

METHODS = ("euler", "rk4")

Policy = Callable[[Robot, Array, Array, Array], Array]
"""The joint forces τ (nv,) from the robot, q, v and the time t; written with array operations."""


def euler_step(
    robot: Robot, q: Array, v: Array, tau: Callable[[Array, Array], Array], h: float, friction: bool
) -> tuple[Array, Array]:
    """One semi-implicit step of length h under forces τ(q, v)."""
    v = v + h * forward_dynamics(robot, q, v, tau(q, v), friction=friction)
    return robot.integrate(q, h * v), v


def rk4_step(
    robot: Robot, q: Array, v: Array, tau: Callable[[Array, Array], Array], h: float, friction: bool
) -> tuple[Array, Array]:
    """One step of Runge and Kutta's method of fourth order."""

    def slope(q: Array, v: Array) -> tuple[Array, Array]:
        return robot.rate(q, v), forward_dynamics(robot, q, v, tau(q, v), friction=friction)

    q1, v1 = slope(q, v)
    q2, v2 = slope(q + h / 2 * q1, v + h / 2 * v1)
    q3, v3 = slope(q + h / 2 * q2, v + h / 2 * v2)
    q4, v4 = slope(q + h * q3, v + h * v3)
    q = q + h / 6 * (q1 + 2 * q2 + 2 * q3 + q4)
    return robot.normalize(q), v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)


def rollout(
    robot: Robot,
    q: Array,
    v: Array,
    tau: Array | None = None,
    *,
    dt: float,
    steps: int | None = None,
    policy: Policy | None = None,
    method: str = "euler",
    friction: bool = False,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Trajectories q (..., steps + 1, nq) and v (..., steps + 1, nv) from the states q (..., nq), v (..., nv).

    tau (..., steps, nv): joint forces, constant during each step; or `policy(robot, q, v, t)`, traced into the kernel, with `steps`;
    or neither, for no force. A policy is evaluated anew at every stage of "rk4", at the time of the step's beginning.
    """
    if method not in METHODS:
        raise CoadjointError(f"method is {method!r}; choose from {', '.join(METHODS)}.")
    if not (np.isfinite(dt) and dt > 0):
        raise CoadjointError(f"dt is {dt!r}; expected a positive number of seconds.")
    if tau is not None and policy is not None:
        raise CoadjointError("both tau and policy are given; a rollout takes its forces from one of them.")
    q, v = robot._checked(q, "q", robot.nq), robot._checked(v, "v", robot.nv)
    if tau is not None:
        tau = robot._checked(tau, "tau", robot.nv)
        if tau.ndim < 2 or (steps is not None and tau.shape[-2] != steps):
            raise ShapeError(f"tau has shape {tau.shape}; expected (..., {steps or 'steps'}, {robot.nv}).")
        steps = tau.shape[-2]
    if steps is None or steps < 0:
        raise CoadjointError(f"steps is {steps!r}; expected how many steps to take, 0 or more.")
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], () if tau is None else tau.shape[:-2])
    qs, vs = np.empty((*batch, steps + 1, robot.nq)), np.empty((*batch, steps + 1, robot.nv))
    qs[..., 0, :], vs[..., 0, :] = q, v
    if steps:
        take = _step(robot, dt, policy, method, friction, with_tau=tau is not None)
        _run(take, qs, vs, tau, dt, threads)
    return qs, vs


def _step(robot: Robot, dt: float, policy: Policy | None, method: str, friction: bool, with_tau: bool) -> Callable[..., Any]:
    """The compiled step of these arguments: (q, v, tau) or (q, v, t) -> (q', v')."""
    key = ("step", float(dt), policy, method, friction, with_tau)
    if key not in robot._cache:
        one = euler_step if method == "euler" else rk4_step

        def forced(robot: Robot, q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
            return one(robot, q, v, lambda q, v: tau, dt, friction)

        def free(robot: Robot, q: Array, v: Array, t: Array) -> tuple[Array, Array]:
            force = (lambda q, v: 0.0 * v) if policy is None else (lambda q, v: policy(robot, q, v, t[..., 0]))
            return one(robot, q, v, force, dt, friction)

        robot._cache[key] = compile(forced, robot) if with_tau else compile(free, robot, shapes={"t": (1,)})
    return robot._cache[key]


def _run(take: Callable[..., Any], qs: np.ndarray, vs: np.ndarray, tau: Array | None, dt: float, threads: int | None) -> None:
    """All steps from qs[..., 0, :], vs[..., 0, :] on, written behind them."""
    steps, nq, nv = qs.shape[-2] - 1, qs.shape[-1], vs.shape[-1]
    q, v = qs.reshape(-1, steps + 1, nq), vs.reshape(-1, steps + 1, nv)
    if tau is None:
        third = np.broadcast_to(float(dt) * np.arange(steps)[:, None], (len(q), steps, 1))
    else:
        third = np.ascontiguousarray(np.broadcast_to(tau, (*qs.shape[:-2], steps, nv)), dtype=float).reshape(-1, steps, nv)
    repeat = getattr(getattr(take, "__self__", None), "repeat", None)  # of a compiled step
    if repeat is not None:
        repeat([q[:, :-1], v[:, :-1], third], [q[:, 1:], v[:, 1:]], steps, threads)
        return
    for k in range(steps):
        take(q[:, k], v[:, k], third[:, k], out=(q[:, k + 1], v[:, k + 1]))
