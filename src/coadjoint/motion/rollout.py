"""Many steps of many robots: fixed-step simulation under given forces or a control.

    euler          v' = v + h a(q, v, τ),  q' = q ⊕ h v'              semi-implicit, first order
    rk4            Runge and Kutta's fourth order on (q, v) with q̇ = rate(q, v), quaternions brought back to length one
    variational    the symplectic step of `variational.py`, second order

A step is one traced function; natively all steps of a batch run in one kernel, also for robots that differ in their numbers. Under
constraints every step of the first two ends with a return to them, and the third keeps them by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..arguments import a_flag, a_robot, one_of, positive
from ..arrays import Array, ArrayLike, mv, to_numpy
from ..constraints.constraint import Constraint
from ..constraints.rank import note_overconstrained
from ..dynamics import mass_matrix, mass_matrix_inverse
from ..errors import CoadjointError, ShapeError
from ..families import Family, number_axes
from ..kernel.runtime.function import run_steps
from ..robot.robot import Robot
from ..scale.deferred import lazily
from ..traced import Traced
from ..words import short
from .constraint_checks import check_kept, check_rows
from .constraint_projection import constraint_at
from .control import as_function, check_controller, is_sampled, traced_control, traced_step
from .fixed_steps import check_converged, sampled_step, state_step, variational_step
from .staged import Staged, staged

METHODS = ("euler", "rk4", "variational")

MOST_STEPS = 2**48
"""More than memory has room for."""
TOUCHED, PAGE = 1 << 25, 1 << 21
"""Bytes of fresh memory that are made ready in one bit, and those of a large page."""


@lazily("step nq", "step nv", q="nq", v="nv", tau="step nv", parameters=number_axes)
def rollout(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    *,
    dt: float,
    steps: int | None = None,
    control: Any = None,
    method: str = "euler",
    friction: bool = False,
    constraints: Constraint | Sequence[Constraint] | None = None,
    parameters: Mapping[str, Array] | None = None,
    threads: int | None = None,
    policy: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Trajectories q (..., steps + 1, nq) and v (..., steps + 1, nv) from the states q (..., nq), v (..., nv), NumPy arrays.

    tau (..., steps, nv): joint forces, constant during each step; or `control`, a function control(robot, q, v, t) or an object with
    force(q, v, t), as for `simulate`, with `steps`; or neither, for no force. A control is written with array operations. It is traced
    at every call of `rollout`, with the values that the variables it reads have then, and runs inside the compiled steps: "euler" asks
    it at the beginning of a step, "rk4" at its four stages and their times, "variational" in the middle. The reference of a controller
    that cannot be traced is evaluated at these times beforehand. A controller with a state, as
    from `control.adaptive` or `control.sampled`, is asked at the beginning of each step, and dt is its period. (`policy` is an older name.)

    parameters {name: (..., numbers)}: numbers of the robot that differ from state to state, named as for `coadjoint.compile`, such as
    {"masses": (1000, n)}; their batch axes broadcast with those of the states, and a control gets the robot that has them. Under
    `constraints` every state must satisfy them to begin with; what these leave open, such as where a point is held, is that of the
    first state.
    """
    one_of(*METHODS)(method, "method")
    a_robot(robot, "robot")
    positive(dt, "dt")
    friction = a_flag(friction, "friction")
    if control is not None and policy is not None:
        raise CoadjointError("both control and policy are given; policy is an older name of control. Leave it out.")
    control = policy if control is None else control
    if tau is not None and control is not None:
        raise CoadjointError("both tau and policy are given; a rollout takes its forces from one of them, tau or control.")
    q, v = (robot._checked(to_numpy(x, name), name, n) for x, name, n in ((q, "q", robot.nq), (v, "v", robot.nv)))
    if tau is not None:
        tau = robot._checked(to_numpy(tau, "tau"), "tau", robot.nv)
        if tau.ndim < 2 or (steps is not None and tau.shape[-2] != steps):
            raise ShapeError(f"tau has shape {tau.shape}; expected (..., {steps or 'steps'}, {robot.nv}).")
        steps = tau.shape[-2]
    if not isinstance(steps, int | np.integer) or not 0 <= steps < MOST_STEPS:
        raise CoadjointError(f"steps is {short(steps)}; expected how many steps to take, 0 or more.")
    try:
        check_controller(robot, control, float(dt) * np.arange(steps + 1))
    except MemoryError:
        raise CoadjointError(f"steps is {short(steps)}, for whose times memory has no room; roll out in parts.") from None
    family = Family(robot, parameters)
    batch = family.batch(q=q.shape[:-1], v=v.shape[:-1], **({} if tau is None else {"tau": tau.shape[:-2]}))
    qs, vs = np.empty((*batch, steps + 1, robot.nq)), np.empty((*batch, steps + 1, robot.nv))
    _begin(qs, q)
    _begin(vs, v)
    run = _Run(family, qs, vs, float(dt), method, friction, constraints, threads)
    if is_sampled(control):
        _check_sampled(control, float(dt), method)
    if steps and qs.size:
        run.take_steps(tau, control)
    return qs, vs


def _begin(states: np.ndarray, first: Array) -> None:
    """Write the first states (..., n) into fresh memory (..., steps + 1, n), bit by bit: the system makes it ready in pages of up to
    2 MiB where it is touched, which takes seconds for gigabytes, and an interrupt is answered between two bits."""
    flat, rows = states.reshape(-1, *states.shape[-2:]), np.broadcast_to(first, (*states.shape[:-2], states.shape[-1]))
    rows = rows.reshape(-1, states.shape[-1])
    some = max(1, min(TOUCHED // PAGE, TOUCHED // max(1, flat[:1].nbytes)))
    for k in range(0, len(flat), some):
        flat[k : k + some, 0] = rows[k : k + some]


class _Run:
    """The steps of one rollout, written into qs (..., steps + 1, nq) and vs (..., steps + 1, nv)."""

    def __init__(
        self,
        family: Family,
        qs: np.ndarray,
        vs: np.ndarray,
        dt: float,
        method: str,
        friction: bool,
        constraints: Any,
        threads: int | None,
    ) -> None:
        self.family, self.qs, self.vs, self.dt, self.method, self.friction = family, qs, vs, dt, method, friction
        self.threads, self.steps, batch = threads, qs.shape[-2] - 1, qs.shape[:-2]
        self.numbers = [family.flat(batch)] if family else []
        self.constraint: Constraint | None = None
        if qs.size:
            first = family.member(self.numbers[0][0]) if family else family.robot
            start = qs.reshape(-1, self.steps + 1, qs.shape[-1])[0, 0]
            self.constraint = constraint_at(first, constraints, start)
        if self.constraint is not None:
            check_rows(family, self.constraint, self._states(0), self.numbers, batch)
            note_overconstrained(first, self.constraint, first.normalize(start), family.robot)

    def _states(self, k: int) -> list[np.ndarray]:
        """q (N, nq) and v (N, nv) after k steps."""
        return [x[..., k, :].reshape(-1, x.shape[-1]) for x in (self.qs, self.vs)]

    def take_steps(self, tau: Array | None, control: Any) -> None:
        """All steps, under the forces tau (..., steps, nv) or a control."""
        family, constraint = self.family, self.constraint
        force: Traced | Staged | None
        force, given = staged(family.robot, control, self.method, self.dt, self.steps) or (None, None)
        if force is None and control is not None:
            force = traced_step(family, control) if is_sampled(control) else traced_control(family, as_function(control))
        if is_sampled(control):
            states = np.empty((*self.qs.shape[:-1], np.size(control.initial)))
            _begin(states, np.asarray(control.initial))
            take = sampled_step(family, self.dt, force, self.method, self.friction, constraint)  # type: ignore[arg-type]
            roll_states(take, [self.qs, self.vs, states], [self._third(given), *self._constant()], self.threads)
        elif self.method == "variational":
            self._variational(tau if given is None else given, force, tau is not None)
        else:
            take = state_step(family, self.dt, force, self.method, self.friction, constraint, tau is not None)
            roll_states(take, [self.qs, self.vs], [self._third(tau if given is None else given), *self._constant()], self.threads)
        if constraint is not None:
            check_kept(family, constraint, self._states(-1), self.numbers, self.qs.shape[:-2])

    def _constant(self) -> list[np.ndarray]:
        """The numbers that differ (N, steps, size), the same at every step."""
        return [np.broadcast_to(x[:, None], (len(x), self.steps, x.shape[-1])) for x in self.numbers]

    def _third(self, tau: Array | None) -> np.ndarray:
        """The forces, or what a reference gives, (N, steps, size), else the times (N, steps, 1), of all steps."""
        n = int(np.prod(self.qs.shape[:-2]))
        if tau is None:
            return np.broadcast_to(self.dt * np.arange(self.steps)[:, None], (n, self.steps, 1))
        tau = np.asarray(tau, dtype=float)
        if tau.strides[-1] != tau.itemsize:
            tau = np.ascontiguousarray(tau)
        return np.broadcast_to(tau, (*self.qs.shape[:-2], *tau.shape[-2:])).reshape(n, self.steps, tau.shape[-1])

    def _variational(self, tau: Array | None, force: Traced | Staged | None, with_tau: bool) -> None:
        family, vs, nv = self.family, self.vs, self.family.robot.nv
        ps, ws, left = np.empty(vs.shape), np.empty(vs.shape), np.empty((*vs.shape[:-1], 1))
        sizes = {"q": (family.robot.nq,), "v": (nv,)}
        momentum = family.compiled("momentum", lambda robot, _, q, v: mv(mass_matrix(robot, q), v), "momentum", **sizes)
        _begin(ps, momentum(*self._states(0), *self.numbers).reshape(ps[..., 0, :].shape))
        _begin(ws, vs[..., 0, :])
        _begin(left, np.zeros(1))
        third = self._third(tau) if tau is not None else self._third(None) + self.dt / 2  # forces act in the middle of a step
        length = np.broadcast_to(self.dt, (*third.shape[:-1], 1))
        take = variational_step(family, force, self.friction, self.constraint, with_tau)
        roll_states(take, [self.qs, ps, ws, left], [third, length, *self._constant()], self.threads, inputs=3)
        check_converged(left[..., 1:, 0], self.dt)
        q, p = (x[..., 1:, :].reshape(-1, self.steps, x.shape[-1]) for x in (self.qs, ps))
        if family:
            velocity = family.compiled("velocity", lambda robot, _, q, p: mv(mass_matrix_inverse(robot, q), p), "velocity", **sizes)
            found = velocity(q, p, *(x[:, None] for x in self.numbers))
        else:  # an error says why where there is no inverse
            found = mv(mass_matrix_inverse(family.robot, q), p)
        vs[..., 1:, :] = found.reshape(vs[..., 1:, :].shape)


def _check_sampled(control: Any, dt: float, method: str) -> None:
    """Raise an error for steps of another length than the samples of a control, or that ask it between samples."""
    if abs(dt - control.period) > 1e-9 * control.period:
        raise CoadjointError(
            f"dt is {dt:g}; the controller was made for samples every {control.period:g} s. Give dt={control.period:g}; for shorter "
            "steps between samples, use `control.closed_loop(…, substeps=…)`."
        )
    if method == "variational":
        raise CoadjointError(
            "method is 'variational', whose forces act in the middle of a step; a controller with a state is sampled "
            "at its beginning. Choose 'euler' or 'rk4'."
        )


def roll_states(
    take: Callable[..., Any], states: list[np.ndarray], further: list[np.ndarray], threads: int | None, inputs: int | None = None
) -> None:
    """All steps from states[...][..., 0, :] on, written behind them; the first `inputs` of the states go into a step."""
    steps = states[0].shape[-2] - 1
    flat = [x.reshape(-1, steps + 1, x.shape[-1]) for x in states]
    given = [x[:, :-1] for x in flat[:inputs]] + further
    run_steps(take, given, [x[:, 1:] for x in flat], threads)
