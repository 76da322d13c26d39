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
from ..constraints.manifold import check_state, check_vanishing
from ..constraints.rank import ConstraintError, is_overconstrained, note_overconstrained
from ..dynamics import forward_dynamics, mass_matrix, mass_matrix_inverse
from ..dynamics.newton_euler import friction_force
from ..dynamics.steps import euler_step, rk4_step
from ..errors import CoadjointError, ShapeError
from ..families import Family, number_axes
from ..kernel.runtime.function import run_steps
from ..robot.robot import Robot
from ..scale.deferred import lazily
from ..traced import Traced, all_evaluated
from ..words import short
from . import variational
from .constraint_projection import constrained_acceleration, constraint_at, project_state
from .control import as_function, check_controller, is_sampled, traced_control, traced_step
from .equations_of_motion import SimulationError
from .friction import has_dry_friction
from .frictional_steps import Frictional
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
            take = _sampled_step(family, self.dt, force, self.method, self.friction, constraint)  # type: ignore[arg-type]
            roll_states(take, [self.qs, self.vs, states], [self._third(given), *self._constant()], self.threads)
        elif self.method == "variational":
            self._variational(tau if given is None else given, force, tau is not None)
        else:
            take = _step(family, self.dt, force, self.method, self.friction, constraint, tau is not None)
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


def _step(
    family: Family,
    dt: float,
    control: Traced | Staged | None,
    method: str,
    friction: bool,
    constraint: Constraint | None,
    with_tau: bool,
) -> Callable[..., Any]:
    """The compiled step of these arguments: (q, v, tau or t, *numbers) -> (q', v')."""

    def step(robot: Robot, numbers: tuple[Array, ...], q: Array, v: Array, third: Array) -> tuple[Array, Array]:
        def force(q: Array, v: Array, t: Any) -> Array:
            return third if with_tau else 0.0 * v if control is None else control(q, v, t, *numbers)

        return moved(robot, q, v, _time(control, third), force, dt, method, friction, constraint)

    robot = family.robot
    key = ("step", dt, control, method, friction, constraint, is_hard(robot, constraint), with_tau)
    name, size = ("tau", robot.nv) if with_tau else ("t", _size(control))
    return family.compiled(key, step, "step", q=(robot.nq,), v=(robot.nv,), **{name: (size,)})


def _time(control: Traced | Staged | None, third: Array) -> Any:
    """The time of a control at the beginning of a step, or what stands for it."""
    return control.at(third) if isinstance(control, Staged) else third


def _size(control: Traced | Staged | None) -> int:
    return control.size if isinstance(control, Staged) else 1


def _sampled_step(
    family: Family, dt: float, control: Traced | Staged, method: str, friction: bool, constraint: Constraint | None
) -> Callable[..., Any]:
    """The compiled step (q, v, state, t, *numbers) -> (q', v', state') under a control with a state, whose forces are held."""
    robot = family.robot

    def step(robot: Robot, numbers: tuple[Array, ...], q: Array, v: Array, state: Array, t: Array) -> tuple[Array, ...]:
        if isinstance(control, Staged):
            tau, following = control.sampled(q, v, state, control.at(t))
        else:
            tau, following = all_evaluated(control.graph, q, v, t, state)
        return (*moved(robot, q, v, t, lambda q, v, t: tau, dt, method, friction, constraint), following)

    key = ("sampled step", dt, control, method, friction, constraint, is_hard(robot, constraint))
    graph = control.law.graph if isinstance(control, Staged) else control.graph
    size = graph.input_shapes[graph.input_names.index("state")]
    return family.compiled(key, step, "sampled_step", q=(robot.nq,), v=(robot.nv,), state=size, t=(_size(control),))


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


def moved(
    robot: Robot,
    q: Array,
    v: Array,
    t: Array,
    force: Callable[[Array, Array, Array], Array],
    dt: float,
    method: str,
    friction: bool,
    constraint: Constraint | None,
) -> tuple[Array, Array]:
    """q', v' after one step "euler" or "rk4" under force(q, v, t), on the constraint."""
    one = euler_step if method == "euler" else rk4_step
    if friction and has_dry_friction(robot):
        dry = Frictional(robot, constraint, force, dt)
        return dry.euler(q, v, t) if method == "euler" else dry.rk4(q, v, t, rk4_step)

    def acceleration(q: Array, v: Array, t: Array) -> Array:
        if constraint is None:
            return forward_dynamics(robot, q, v, force(q, v, t), friction=friction)
        return constrained_acceleration(robot, constraint, q, v, force(q, v, t), friction)

    q, v = one(robot, q, v, t, acceleration, dt)
    return (q, v) if constraint is None else project_state(robot, constraint, q, v)


def variational_step(
    family: Family, control: Traced | Staged | None, friction: bool, constraint: Constraint | None, with_tau: bool
) -> Callable[..., Any]:
    """The compiled step (q, p, w, tau or t, h, *numbers) -> (q', p', w', how far from converged); see `variational.step`."""

    def step(robot: Robot, numbers: tuple[Array, ...], q: Array, p: Array, w: Array, third: Array, h: Array) -> tuple[Array, ...]:
        force = None if control is None else (lambda q, v: control(q, v, _time(control, third), *numbers))
        force = (lambda q, v: third) if with_tau else force
        if friction and has_dry_friction(robot):
            asked = lambda q, v, t: 0.0 * v if force is None else force(q, v)
            return Frictional(robot, constraint, asked, h).variational(q, p, w, third)
        return variational.step(robot, q, p, w, h, _with_friction(robot, friction, force), constraint)

    robot = family.robot
    key = ("variational step", control, friction, constraint, is_hard(robot, constraint), with_tau)
    name, size = ("tau", robot.nv) if with_tau else ("t", _size(control))
    shapes = {"q": (robot.nq,), "p": (robot.nv,), "w": (robot.nv,), name: (size,), "h": (1,)}
    return family.compiled(key, step, "variational_step", **shapes)


def is_hard(robot: Robot, constraint: Constraint | None) -> bool:
    return constraint is not None and is_overconstrained(robot, constraint)


def _with_friction(
    robot: Robot, friction: bool, force: Callable[[Array, Array], Array] | None
) -> Callable[[Array, Array], Array] | None:
    if not friction:
        return force

    def loss(v: Array) -> Array:
        return robot.from_tree(friction_force(robot, robot.tree_v(v)))

    return (lambda q, v: -loss(v)) if force is None else (lambda q, v: force(q, v) - loss(v))


def check_converged(left: np.ndarray, dt: float, first: int = 0) -> None:
    """Raise an error if the implicit equation of a variational step was not solved; `left` (..., steps), the first step of number
    `first`.
    """
    bad = ~(left < CONVERGED)
    if np.any(bad):
        k = int(np.argmax(bad.reshape(-1, bad.shape[-1]).any(0)))
        if np.isnan(left[..., k]).any():
            raise SimulationError(
                f"the motion is not finite after step {first + k} of {dt:g} s: the control gives no finite forces there, or the state is "
                "singular."
            )
        raise SimulationError(
            f"the variational step of {dt:g} s did not converge at step {first + k} (relative change {left[..., k].max():.2g}): the motion "
            f"is too fast for it, or the state is singular. Take shorter steps, such as {dt / 4:g} s."
        )


def check_rows(
    family: Family, constraint: Constraint, states: list[np.ndarray], numbers: list[np.ndarray], batch: tuple[int, ...]
) -> None:
    """`check_state` for states q (N, nq), v (N, nv) of robots that may differ in their numbers (N, size)."""
    robot = family.robot
    if not family:
        q, v = (x.reshape(*batch, x.shape[-1]) for x in states)
        check_state(robot, constraint, q, v)
        return
    names, holonomic = np.array(constraint.names(robot)), constraint.holonomic_rows(robot)

    def values(robot: Robot, _: tuple[Array, ...], q: Array, v: Array) -> tuple[Array, Array]:
        slip = mv(constraint.jacobian(robot, q), v)
        return (constraint.residual(robot, q) if len(holonomic) else 0.0 * slip), slip

    found = family.compiled(("rows", constraint), values, "rows", q=(robot.nq,), v=(robot.nv,))(*states, *numbers)
    phi, slip = (x.reshape(*batch, x.shape[-1]) for x in found)
    if len(holonomic):
        remedy = "`constraints.project(robot, constraint, q)`"
        check_vanishing(phi, names[holonomic], TOLERANCE, "q is off the constraint", remedy)
    speed = np.abs(states[1]).max(-1, initial=0.0).reshape(*batch, 1)
    remedy = "`constraints.project_velocity(robot, constraint, q, v)`"
    check_vanishing(slip, names, TOLERANCE * (1.0 + speed), "v violates the constraint", remedy)


TOLERANCE = 1e-6
"""The largest violation of a constraint, in metres, radians and their rates."""


def check_kept(
    family: Family, constraint: Constraint, states: list[np.ndarray], numbers: list[np.ndarray], batch: tuple[int, ...]
) -> None:
    """Raise an error if a motion has left the constraint, as steps beyond a singular state do; NaN states are ignored."""
    finite = np.isfinite(states[0]).all(-1) & np.isfinite(states[1]).all(-1)
    try:
        check_rows(family, constraint, [x[finite] for x in states], [x[finite] for x in numbers], (int(finite.sum()),))
    except ConstraintError as error:
        raise ConstraintError(
            f"the motion left the constraint, at the end {str(error).split(' Bring')[0]} Steps are too long for it, or a state on the "
            "way is singular: take shorter steps, or `simulate`."
        ) from None


CONVERGED = 1e-8
"""Largest relative change in the last turn of a step that passes: what is left is smaller by another factor O(h)."""


def roll_states(
    take: Callable[..., Any], states: list[np.ndarray], further: list[np.ndarray], threads: int | None, inputs: int | None = None
) -> None:
    """All steps from states[...][..., 0, :] on, written behind them; the first `inputs` of the states go into a step."""
    steps = states[0].shape[-2] - 1
    flat = [x.reshape(-1, steps + 1, x.shape[-1]) for x in states]
    given = [x[:, :-1] for x in flat[:inputs]] + further
    run_steps(take, given, [x[:, 1:] for x in flat], threads)
