"""Many steps of many robots: fixed-step simulation under given controls or a policy.

    euler          v' = v + h a(q, v, τ),  q' = q ⊕ h v'              semi-implicit, first order
    rk4            Runge and Kutta's fourth order on (q, v) with q̇ = rate(q, v), quaternions brought back to length one
    variational    the symplectic step of `variational.py`, second order

A step is one traced function; natively all steps of a batch run in one kernel. Under constraints every step of the first two ends with a
return to them, and the third keeps them by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays import Array, mv
from ..compiling import compile
from ..constraints.constraint import Constraint
from ..constraints.manifold import check_state
from ..constraints.rank import ConstraintError
from ..dynamics import forward_dynamics, mass_matrix, mass_matrix_inverse
from ..dynamics.newton_euler import friction_force
from ..errors import CoadjointError, ShapeError
from ..robot.robot import Robot
from ..scale.deferred import lazily
from . import variational
from .holding import check_start, held_acceleration, settled

METHODS = ("euler", "rk4", "variational")

Policy = Callable[[Robot, Array, Array, Array], Array]
"""The joint forces τ (nv,) from the robot, q, v and the time t; written with array operations."""


def asked(robot: Robot, policy: Policy, q: Array, v: Array, t: Array) -> Array:
    """The joint forces of a policy; an error for another shape, which would be broadcast."""
    tau = policy(robot, q, v, t)
    if np.shape(tau)[-1:] != (robot.nv,):
        raise ShapeError(f"the policy gave an array of shape {np.shape(tau)}; expected {robot.nv} joint forces, (..., {robot.nv}).")
    return tau


Acceleration = Callable[[Array, Array], Array]
"""a (nv,) from q and v."""


def euler_step(robot: Robot, q: Array, v: Array, acceleration: Acceleration, h: float) -> tuple[Array, Array]:
    """One semi-implicit step of length h."""
    v = v + h * acceleration(q, v)
    return robot.integrate(q, h * v), v


def rk4_step(robot: Robot, q: Array, v: Array, acceleration: Acceleration, h: float) -> tuple[Array, Array]:
    """One step of Runge and Kutta's method of fourth order."""

    def slope(q: Array, v: Array) -> tuple[Array, Array]:
        return robot.rate(q, v), acceleration(q, v)

    q1, v1 = slope(q, v)
    q2, v2 = slope(q + h / 2 * q1, v + h / 2 * v1)
    q3, v3 = slope(q + h / 2 * q2, v + h / 2 * v2)
    q4, v4 = slope(q + h * q3, v + h * v3)
    q = q + h / 6 * (q1 + 2 * q2 + 2 * q3 + q4)
    return robot.normalize(q), v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)


@lazily("step nq", "step nv", q="nq", v="nv", tau="step nv")
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
    constraints: Constraint | Sequence[Constraint] | None = None,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Trajectories q (..., steps + 1, nq) and v (..., steps + 1, nv) from the states q (..., nq), v (..., nv).

    tau (..., steps, nv): joint forces, constant during each step; or `policy(robot, q, v, t)`, traced into the kernel, with `steps`;
    or neither, for no force. A policy is evaluated anew at every stage of "rk4", at the time of the step's beginning. Under `constraints`
    every state must satisfy them to begin with; what these leave open, such as where a point is held, is that of the first state.
    """
    if method not in METHODS:
        raise CoadjointError(f"method is {method!r}; choose from {', '.join(METHODS)}.")
    if not isinstance(dt, int | float | np.number) or not (np.isfinite(dt) and dt > 0):
        raise CoadjointError(f"dt is {dt!r}; expected a positive number of seconds.")
    if tau is not None and policy is not None:
        raise CoadjointError("both tau and policy are given; a rollout takes its forces from one of them.")
    q, v = robot._checked(q, "q", robot.nq), robot._checked(v, "v", robot.nv)
    if tau is not None:
        tau = robot._checked(tau, "tau", robot.nv)
        if tau.ndim < 2 or (steps is not None and tau.shape[-2] != steps):
            raise ShapeError(f"tau has shape {tau.shape}; expected (..., {steps or 'steps'}, {robot.nv}).")
        steps = tau.shape[-2]
    if not isinstance(steps, int | np.integer) or steps < 0:
        raise CoadjointError(f"steps is {steps!r}; expected how many steps to take, 0 or more.")
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], () if tau is None else tau.shape[:-2])
    qs, vs = np.empty((*batch, steps + 1, robot.nq)), np.empty((*batch, steps + 1, robot.nv))
    qs[..., 0, :], vs[..., 0, :] = q, v
    constraint = check_start(robot, constraints, qs[..., 0, :], vs[..., 0, :])
    if steps and method == "variational":
        _run_variational(robot, qs, vs, tau, dt, policy, friction, constraint, threads)
    elif steps:
        take = _step(robot, dt, policy, method, friction, constraint, with_tau=tau is not None)
        _run(take, [qs, vs], [_third(qs, tau, dt)], threads)
    if constraint is not None:
        check_kept(robot, constraint, qs[..., -1, :], vs[..., -1, :])
    return qs, vs


def _step(
    robot: Robot, dt: float, policy: Policy | None, method: str, friction: bool, constraint: Constraint | None, with_tau: bool
) -> Callable[..., Any]:
    """The compiled step of these arguments: (q, v, tau) or (q, v, t) -> (q', v')."""
    key = ("step", float(dt), policy, method, friction, constraint, with_tau)
    if key not in robot._cache:
        one = euler_step if method == "euler" else rk4_step

        def under(robot: Robot, q: Array, v: Array, tau: Callable[[Array, Array], Array]) -> tuple[Array, Array]:
            if constraint is None:
                return one(robot, q, v, lambda q, v: forward_dynamics(robot, q, v, tau(q, v), friction=friction), dt)
            q, v = one(robot, q, v, lambda q, v: held_acceleration(robot, constraint, q, v, tau(q, v), friction), dt)
            return settled(robot, constraint, q, v)

        def forced(robot: Robot, q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
            return under(robot, q, v, lambda q, v: tau)

        def free(robot: Robot, q: Array, v: Array, t: Array) -> tuple[Array, Array]:
            return under(
                robot, q, v, (lambda q, v: 0.0 * v) if policy is None else (lambda q, v: asked(robot, policy, q, v, t[..., 0]))
            )

        robot._cache[key] = compile(forced, robot) if with_tau else compile(free, robot, shapes={"t": (1,)})
    return robot._cache[key]


def variational_step(
    robot: Robot, policy: Policy | None, friction: bool, constraint: Constraint | None, with_tau: bool
) -> Callable[..., Any]:
    """The compiled step (q, p, w, tau or t, h) -> (q', p', w', how far from converged); see `variational.step`."""
    key = ("variational step", policy, friction, constraint, with_tau)
    if key not in robot._cache:

        def forced(robot: Robot, q: Array, p: Array, w: Array, tau: Array, h: Array) -> tuple[Array, ...]:
            return variational.step(robot, q, p, w, h, _with_friction(robot, friction, lambda q, v: tau), constraint)

        def free(robot: Robot, q: Array, p: Array, w: Array, t: Array, h: Array) -> tuple[Array, ...]:
            force = None if policy is None else (lambda q, v: asked(robot, policy, q, v, t[..., 0]))
            return variational.step(robot, q, p, w, h, _with_friction(robot, friction, force), constraint)

        sizes = {"p": (robot.nv,), "w": (robot.nv,), "h": (1,)}
        robot._cache[key] = compile(forced, robot, shapes=sizes) if with_tau else compile(free, robot, shapes=sizes | {"t": (1,)})
    return robot._cache[key]


def _with_friction(robot: Robot, friction: bool, force: Any) -> Any:
    if not friction:
        return force
    loss = lambda v: robot.from_tree(friction_force(robot, robot.tree_v(v)))  # noqa: E731
    return (lambda q, v: -loss(v)) if force is None else (lambda q, v: force(q, v) - loss(v))


def _run_variational(
    robot: Robot,
    qs: np.ndarray,
    vs: np.ndarray,
    tau: Array | None,
    dt: float,
    policy: Policy | None,
    friction: bool,
    constraint: Constraint | None,
    threads: int | None,
) -> None:
    ps, ws, left = np.empty(vs.shape), np.empty(vs.shape), np.empty((*vs.shape[:-1], 1))
    ps[..., 0, :], ws[..., 0, :] = mv(mass_matrix(robot, qs[..., 0, :]), vs[..., 0, :]), vs[..., 0, :]
    left[..., 0, :] = 0.0
    third = _third(qs, tau, dt) + (0.0 if tau is not None else dt / 2)  # forces act in the middle of a step
    length = np.broadcast_to(float(dt), (*third.shape[:-1], 1))
    take = variational_step(robot, policy, friction, constraint, tau is not None)
    _run(take, [qs, ps, ws, left], [third, length], threads, inputs=3)
    check_converged(left[..., 1:, 0], dt)
    vs[..., 1:, :] = mv(mass_matrix_inverse(robot, qs[..., 1:, :]), ps[..., 1:, :])


def check_converged(left: np.ndarray, dt: float, first: int = 0) -> None:
    """An error where the implicit equation of a variational step was not solved; `left` (..., steps), the first step of number `first`."""
    bad = ~(left < CONVERGED)
    if np.any(bad):
        k = int(np.argmax(bad.reshape(-1, bad.shape[-1]).any(0)))
        raise CoadjointError(
            f"the variational step of {dt:g} s did not converge at step {first + k} (relative change {left[..., k].max():.2g}): the motion "
            f"is too fast for it, or the state is singular. Take shorter steps, such as {dt / 4:g} s."
        )


def check_kept(robot: Robot, constraint: Constraint, q: np.ndarray, v: np.ndarray) -> None:
    """An error where a motion has left the constraint, as steps beyond a singular state do; states that are not numbers are left."""
    finite = np.isfinite(q).all(-1) & np.isfinite(v).all(-1)
    try:
        check_state(robot, constraint, q[finite], v[finite])
    except ConstraintError as error:
        raise ConstraintError(
            f"the motion left the constraint, at the end {str(error).split(' Bring')[0]} Steps are too long for it, or a state on the "
            "way is singular: take shorter steps, or `simulate`."
        ) from None


CONVERGED = 1e-8
"""Largest relative change in the last turn of a step that passes: what is left is smaller by another factor O(h)."""


def _third(qs: np.ndarray, tau: Array | None, dt: float) -> np.ndarray:
    """The forces (N, steps, nv), or the times (N, steps, 1), of all steps."""
    steps, n = qs.shape[-2] - 1, int(np.prod(qs.shape[:-2]))
    if tau is None:
        return np.broadcast_to(float(dt) * np.arange(steps)[:, None], (n, steps, 1))
    spread = np.broadcast_to(tau, (*qs.shape[:-2], steps, tau.shape[-1]))
    return np.ascontiguousarray(spread, dtype=float).reshape(n, steps, tau.shape[-1])


def _run(
    take: Callable[..., Any], states: list[np.ndarray], further: list[np.ndarray], threads: int | None, inputs: int | None = None
) -> None:
    """All steps from states[...][..., 0, :] on, written behind them; the first `inputs` of the states go into a step."""
    steps = states[0].shape[-2] - 1
    flat = [x.reshape(-1, steps + 1, x.shape[-1]) for x in states]
    given = [x[:, :-1] for x in flat[:inputs]] + further
    found = [x[:, 1:] for x in flat]
    repeat = getattr(getattr(take, "__self__", None), "repeat", None)  # of a compiled step
    if repeat is not None:
        repeat(given, found, steps, threads)
        return
    for k in range(steps):
        take(*(x[:, k] for x in given), out=tuple(x[:, k] for x in found))
