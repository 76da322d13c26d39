"""Simulation of one robot or of many: `simulate`, the common door to the adaptive and the variational integrators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..arguments import a_flag, a_function_of, a_moving_robot, a_name, a_number, finite, numbers, positive, takes
from ..arrays import ArrayLike, is_lazy, to_numpy
from ..constraints.constraint import Constraint
from ..errors import CoadjointError, ShapeError
from ..families import Family, number_axes
from ..robot.robot import Robot
from ..scale.deferred import lazily
from ..words import short
from .adaptive import Flow
from .constraint_checks import check_rows
from .constraint_projection import check_start, constraint_at, project_state
from .control import Control, as_function, check_controller, is_sampled
from .equations_of_motion import TOUCHING, EquationsOfMotion, SimulationError
from .events import Contact, Contacts, Event, joint_stops
from .fixed_steps import is_hard
from .staged import outside
from .symplectic import Symplectic
from .together import Run, not_reached
from .trajectories import Trajectories
from .trajectory import Trajectory
from .variational import COMPOSITIONS

METHODS = {"adaptive": 8, "implicit": 9, "variational": 2, "symplectic": 4}
"""The methods and their orders."""


def _of_states(core: str) -> Callable[[Any], str]:
    """The core axis of a lazy argument, which has batch axes."""

    def core_of(x: Any) -> str:
        if is_lazy(x) and x.ndim < 2:
            raise ShapeError(
                f"a Dask array or DataArray of shape {x.shape} is one state; give a batch (..., {core}), or NumPy arrays."
            )
        return core

    return core_of


@lazily("time nq", "time nv", "time nv", "", "parameters", q=_of_states("nq"), v=_of_states("nv"), parameters=number_axes)
@takes(robot=a_moving_robot, q=numbers, v=numbers, t=numbers, method=a_name, friction=a_flag, report=a_function_of("part"))
def simulate(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    t: ArrayLike,
    control: Control | Any = None,
    constraints: Constraint | Sequence[Constraint] | None = None,
    events: Iterable[Event | Contact] | Event | Contact = (),
    *,
    method: str = "adaptive",
    tolerance: float = 1e-10,
    step: float = 1e-3,
    friction: bool = False,
    period: float | None = None,
    delay: float = 0.0,
    stops: float | None = None,
    parameters: Mapping[str, Any] | None = None,
    report: Callable[[float], None] | None = None,
) -> Trajectory:
    """The motion from the state q (nq,), v (nv,) over t, a duration or the times (N,) at which states are wanted, the first the start.

    States (..., nq), (..., nv) with batch axes, and `parameters` {name: (..., numbers)} of robots that differ, as for `rollout`, give
    `Trajectories`: every member takes steps of its own, all in compiled code, and a control is then written with array operations.
    Members run one after the other where something has to be located in their time (events, stops, dry friction, a period), where they
    are stiff, and under "adaptive" where the reference of a controller cannot be traced. It computes with, and returns, NumPy arrays;
    Dask arrays and DataArrays of states stay what they are.

    control: joint forces (nv,), or a function control(robot, q, v, t) or an object with force(q, v, t) that gives them, as for `rollout`.
    With a `period`, in seconds, it is evaluated at samples only, and what it gives is held between them, from `delay` seconds after the
    sample on; a controller with a state, as from `control.adaptive` or `control.sampled`, has a period of its own. constraints hold
    throughout, at rounding. events: `Event`s, and `Contact`s with their impacts, located in time; bounces without end are recognised and
    end at rest. friction: viscous and dry friction of the joints, whose sticking and slipping are located likewise. stops: the
    restitution, 0 to 1, of stops at the joints' position limits.

    method "adaptive" (order 8) keeps the local error below `tolerance` and knows the state at every time between. Where the motion is
    stiff it goes on with the method of "implicit" (order 9), which can also be asked for. "variational" (order 2) and "symplectic" (its
    composition of order 4) take steps of about `step` seconds, natively, and keep energy without trend, for as long as you like; a
    control for them is written with array operations (the reference of a controller that cannot be traced is evaluated in the middle of
    every step), and they take no events and no period. `report` is called with the part that is done. Interrupted (Ctrl-C), the motion
    so far is returned, `stopped` being "interrupted"; that before an error is its `motion`.
    """
    q, v = _state(robot, q, v)
    times = _times(t)
    if method not in METHODS:
        raise CoadjointError(f"method is {method!r}; choose from {', '.join(METHODS)}.")
    for name, x in (("tolerance", tolerance), ("step", step)):
        positive(x, name)
    check_controller(robot, control, times)
    given: Any = control
    if is_sampled(given) and period is None:
        period = given.period
    control = _checked_control(robot, given.start() if is_sampled(given) else given)
    _check_sampling(period, delay, method)
    _check_period(given, period)
    if isinstance(events, np.ndarray) and not events.ndim:
        raise CoadjointError(f"events have {events!r}; expected Event or Contact.")
    happening = list(events) if isinstance(events, Iterable) else [events]
    for other in happening:
        if not isinstance(other, Event | Contact):
            raise CoadjointError(f"events have {other!r}; expected Event or Contact.")
    if METHODS[method] in COMPOSITIONS and (happening or stops is not None):
        raise CoadjointError(f"method {method!r} takes no events or contacts; choose 'adaptive' for them.")
    say = (lambda part: None) if report is None else report
    if stops is not None:
        happening += joint_stops(robot, stops)
        _check_within(robot, q)
    family = Family(robot, parameters)
    forces = {"control": control.shape[:-1]} if isinstance(control, np.ndarray) else {}
    own = given if is_sampled(given) or outside(given) else control  # a sampled one begins anew for every member
    if batch := family.batch(q=q.shape[:-1], v=v.shape[:-1], **forces):
        options = {"method": method, "tolerance": tolerance, "friction": friction, "period": period, "delay": delay}
        return _batch(family, batch, q, v, times, own, constraints, happening, step, say, **options)
    robot = family.member(family.flat(())[0])
    constraint = check_start(robot, constraints, q, v)
    if constraint is not None:
        q, v = project_state(robot, constraint, q, v)
    contacts = Contacts(robot, [x for x in happening if isinstance(x, Contact)])
    mechanics = EquationsOfMotion(robot, control, constraint, contacts, friction)
    if period is not None and control is not None:
        mechanics.sample(float(times[0]), float(period), float(delay))
    mechanics.check_contacts(q, v, "at the start")
    if METHODS[method] not in COMPOSITIONS:
        watched = [x for x in happening if isinstance(x, Event)]
        return _adaptive(Flow(mechanics, float(times[0]), q, v, watched, tolerance, method == "implicit"), times, say)
    run = Symplectic(Family(robot, None), [], times, own, constraint, friction, COMPOSITIONS[METHODS[method]], step, say)
    try:
        qs, vs, stopped = run(q[None], v[None])
    except SimulationError as error:
        (qs, vs), count = error.motion, error.motion[0].shape[1]
        while count > 1 and not _has_forces(mechanics, qs[0, count - 1], vs[0, count - 1], float(times[count - 1])):
            count -= 1
        error.motion = _whole(mechanics, times[:count], qs[0, :count], vs[0, :count], (), "error", ())
        error.args = (f"{error} The motion up to t = {times[count - 1]:g} s is kept: `motion` of this error.",)
        raise
    return _whole(mechanics, times[: qs.shape[1]], qs[0], vs[0], (), stopped, ())


def _batch(
    family: Family,
    batch: tuple[int, ...],
    q: np.ndarray,
    v: np.ndarray,
    times: np.ndarray,
    control: Control | np.ndarray | None,
    constraints: Any,
    happening: list[Event | Contact],
    step: float,
    report: Callable[[float], None],
    **options: Any,
) -> Trajectories:
    """The motions of all members of a batch."""
    robot, method, friction = family.robot, options["method"], options["friction"]
    own = [family.flat(batch)] if family else []

    def flat(x: np.ndarray) -> np.ndarray:
        return np.broadcast_to(x, (*batch, x.shape[-1])).reshape(-1, x.shape[-1])

    def member(k: int) -> Robot:
        return family.member(own[0][k]) if own else robot

    q, v = flat(q), flat(v)
    control = flat(control) if isinstance(control, np.ndarray) else control
    constraint = constraint_at(member(0), constraints, q[0]) if len(q) else None
    if constraint is not None:
        check_rows(family, constraint, [q, v], own, batch)
    qs, vs = not_reached((len(q), len(times), robot.nq)), not_reached((len(q), len(times), robot.nv))
    qs[:, 0], vs[:, 0] = q, v
    run = Run(family, own, times, qs, vs, control, constraint, friction, options["tolerance"], report)

    def alone(k: int, start: float | None = None, q: Any = None, v: Any = None) -> Trajectory:
        force = control[k] if isinstance(control, np.ndarray) else control
        if start is None:
            return simulate(member(k), run.q[k, 0], run.v[k, 0], times, force, constraint, happening, **options)
        rest = np.append(start, times[times > start])
        return simulate(member(k), q, v, rest, force, constraint, **options | {"method": "implicit"})

    dry = friction and (np.any(robot.friction) or not {"friction", "drives"}.isdisjoint(family.names))
    if METHODS[method] in COMPOSITIONS and len(q):
        steps = Symplectic(family, own, times, control, constraint, friction, COMPOSITIONS[METHODS[method]], step, report)
        failure: SimulationError | None = None
        try:
            qs, vs, stopped = steps(q, v)
        except SimulationError as error:
            (qs, vs), stopped, failure = error.motion, "error", error
        run.q[:, : qs.shape[1]], run.v[:, : qs.shape[1]], run.stopped[:] = qs, vs, stopped
        if failure is not None:
            failure.motion = run.result(batch)
            raise failure
    elif (
        happening or dry or options["period"] is not None or method == "implicit" or is_hard(robot, constraint) or outside(control)
    ):
        run.one_by_one(alone)
    else:
        run.together(alone)
    return run.result(batch)


def _adaptive(flow: Flow, times: np.ndarray, report: Callable[[float], None]) -> Trajectory:
    """The states at the times, as far as the motion goes; an error that ends it has what was before in `motion`."""
    start, end = float(times[0]), float(times[-1])
    try:
        stopped = flow.advance(end, lambda now: report((now - start) / (end - start)))
    except KeyboardInterrupt:
        stopped = "interrupted"
    except SimulationError as error:
        if flow.pieces:
            error.motion = _so_far(flow, times, "error")
            error.args = (f"{error} The motion up to there is kept: `motion` of this error.",)
        raise
    return _so_far(flow, times, stopped)


def _so_far(flow: Flow, times: np.ndarray, stopped: str) -> Trajectory:
    """The trajectory up to the present time of the flow."""
    mechanics = flow.mechanics
    times = times[times <= flow.t]
    if stopped and flow.t > times[-1]:
        times = np.append(times, flow.t)
    if not flow.pieces:
        times = times[:1]
    q, v = flow.q[None], flow.v[None]
    if flow.pieces:
        q, v = Trajectory(mechanics.robot, times, q, v, v, pieces=tuple(flow.pieces))(times)
        if stopped:  # the state after what stopped it
            q[-1], v[-1] = flow.q, flow.v
    return _whole(mechanics, times, q, v, tuple(flow.happenings), stopped, tuple(flow.pieces))


def _whole(
    mechanics: EquationsOfMotion, times: np.ndarray, q: np.ndarray, v: np.ndarray, happenings: Any, stopped: str, pieces: Any
) -> Trajectory:
    tau = mechanics.forces(q, v, times)
    return Trajectory(mechanics.robot, times, q, v, tau, happenings, mechanics.constraint, stopped, pieces)


def _has_forces(mechanics: EquationsOfMotion, q: np.ndarray, v: np.ndarray, t: float) -> bool:
    try:
        mechanics.force(q, v, t)
    except SimulationError:
        return False
    return True


def _checked_control(robot: Robot, control: Any) -> Control | np.ndarray | None:
    """A function, or finite forces (..., nv)."""
    if control is None:
        return None
    if callable(control) or callable(getattr(control, "force", None)):
        return as_function(control)
    force = np.asarray(robot._checked(to_numpy(control, "control"), "control", robot.nv), dtype=float)
    if not np.all(np.isfinite(force)):
        raise CoadjointError("control has entries that are not finite; expected joint forces, or a function that gives them.")
    return force


def _check_sampling(period: Any, delay: Any, method: str) -> None:
    """Raise an error for an invalid period or delay."""
    if period is None:
        if not isinstance(delay, int | float | np.number) or delay:
            raise CoadjointError(f"delay is {short(delay)} without a period; give the period of the samples that are delayed.")
        return
    for name, x, least in (("period", period, "positive number"), ("delay", delay, "number of 0 or more")):
        if not isinstance(x, int | float | np.number) or not (a_number(x, name) > 0 or (x == 0 and name == "delay")):
            raise CoadjointError(f"{name} is {x!r}; expected a {least} of seconds.")
    if METHODS[method] in COMPOSITIONS:
        raise CoadjointError(
            f"method {method!r} takes no period: choose 'adaptive' for a sampled control, or `rollout`, whose forces are held by steps."
        )


def _check_period(control: Any, period: float | None) -> None:
    """Raise an error for a controller with a state that is sampled otherwise than it was made for."""
    own = getattr(control, "period", None)
    if (
        own is not None
        and (is_sampled(control) or callable(getattr(control, "force", None)))
        and (period is None or abs(period - own) > 1e-9 * own)
    ):
        raise CoadjointError(f"period is {period}; the controller was made for samples every {own:g} s. Give period={own:g}.")


def _check_within(robot: Robot, q: np.ndarray) -> None:
    """Raise an error for a configuration beyond the joints' limits."""
    beyond = (q < robot.lower - TOUCHING) | (q > robot.upper + TOUCHING)
    if beyond.any():
        *_, k = index = tuple(np.argwhere(beyond)[0])
        raise CoadjointError(
            f"q of {robot.q_names[k]} is {q[index]:.6g}, beyond its limits {robot.lower[k]:.6g} and {robot.upper[k]:.6g}; start between "
            "the stops, or leave `stops` out."
        )


def _state(robot: Robot, q: Any, v: Any) -> tuple[np.ndarray, np.ndarray]:
    """States (..., nq), (..., nv) of finite numbers, quaternions of length one."""
    q, v = (
        np.asarray(robot._checked(to_numpy(x, name), name, n), dtype=float)
        for x, name, n in ((q, "q", robot.nq), (v, "v", robot.nv))
    )
    finite(q, "q"), finite(v, "v")
    return robot.normalize(q), v


def _times(t: Any) -> np.ndarray:
    """The times at which states are returned; 201 for a duration."""
    t = to_numpy(t, "t")
    try:
        times = np.asarray(t, dtype=float)
    except (TypeError, ValueError):
        raise CoadjointError(f"t is {t!r}; expected a duration, or the times at which states are wanted.") from None
    if (
        not np.all(np.isfinite(times))
        or times.ndim > 1
        or (times.ndim == 0 and times <= 0)
        or (times.ndim and np.any(np.diff(times) <= 0))
    ):
        raise CoadjointError(f"t is {t!r}; expected a positive duration in seconds, or increasing times.")
    if times.ndim and len(times) < 2:
        raise CoadjointError(f"t has {len(times)} times; expected two or more, the first the start.")
    return times if times.ndim else np.linspace(0.0, float(times), 201)
