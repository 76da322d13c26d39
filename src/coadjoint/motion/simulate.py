"""Simulation of one robot: `simulate`, the common door to the adaptive and the variational integrators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..arguments import a_name, a_robot, numbers, takes
from ..arrays import ArrayLike, mv, to_numpy
from ..constraints.constraint import Constraint
from ..dynamics import mass_matrix, mass_matrix_inverse
from ..errors import CoadjointError, ShapeError
from ..families import Family
from ..kernel.runtime.function import run_steps
from ..robot.robot import Robot
from .adaptive import Flow
from .constraint_projection import check_start, project_state
from .control import Control, as_function, traced_control
from .equations_of_motion import TOUCHING, EquationsOfMotion, SimulationError
from .events import Contact, Contacts, Event, joint_stops
from .rollout import check_converged, variational_step
from .trajectory import Trajectory
from .variational import COMPOSITIONS

METHODS = {"adaptive": 8, "implicit": 9, "variational": 2, "symplectic": 4}
"""The methods and their orders."""
CHUNK = 1 << 14
"""Steps that run natively in one go: short enough for progress and interruption."""


@takes(robot=a_robot, q=numbers, v=numbers, t=numbers, method=a_name)
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
    report: Callable[[float], None] | None = None,
) -> Trajectory:
    """The motion from the state q (nq,), v (nv,) over t, a duration or the times (N,) at which states are wanted, the first the start.

    It computes with, and returns, NumPy arrays, of one robot in one state; `rollout` takes batches of states and robots.

    control: joint forces (nv,), or a function control(robot, q, v, t) or an object with force(q, v, t) that gives them, as for `rollout`.
    With a `period`, in seconds, it is evaluated at samples only, and what it gives is held between them, from `delay` seconds after the
    sample on. constraints hold throughout, at rounding. events: `Event`s, and `Contact`s with their impacts, located in time; bounces
    without end are recognised and end at rest. friction: viscous and dry friction of the joints, whose sticking and slipping are located
    likewise. stops: the restitution, 0 to 1, of stops at the joints' position limits.

    method "adaptive" (order 8) keeps the local error below `tolerance` and knows the state at every time between. Where the motion is
    stiff it goes on with the method of "implicit" (order 9), which can also be asked for. "variational" (order 2) and "symplectic" (its
    composition of order 4) take steps of about `step` seconds, natively, and keep energy without trend, for as long as you like; a
    control for them is written with array operations, and they take no events and no period. `report` is called with the part that is
    done. Interrupted (Ctrl-C), the motion so far is returned, `stopped` being "interrupted"; that before an error is its `motion`.
    """
    if not robot.nv:
        raise CoadjointError(f"robot {robot.name!r} has no joint that moves.")
    q, v = _state(robot, q, v)
    times = _times(t)
    if method not in METHODS:
        raise CoadjointError(f"method is {method!r}; choose from {', '.join(METHODS)}.")
    for name, x in (("tolerance", tolerance), ("step", step)):
        if not isinstance(x, int | float | np.number) or not (np.isfinite(x) and x > 0):
            raise CoadjointError(f"{name} is {x!r}; expected a positive number.")
    if callable(control) or callable(getattr(control, "force", None)):
        control = as_function(control)
    elif control is not None:
        control = np.asarray(robot._checked(to_numpy(control, "control"), "control", robot.nv), dtype=float)
        if control.shape != (robot.nv,) or not np.all(np.isfinite(control)):
            raise ShapeError(
                f"control has shape {control.shape}; expected {robot.nv} finite joint forces, or a function that gives them."
            )
    _check_sampling(period, delay, method)
    happening = list(events) if isinstance(events, Iterable) else [events]
    for other in happening:
        if not isinstance(other, Event | Contact):
            raise CoadjointError(f"events have {other!r}; expected Event or Contact.")
    if stops is not None:
        happening += joint_stops(robot, stops)
        _check_within(robot, q)
    constraint = check_start(robot, constraints, q, v)
    if constraint is not None:
        q, v = project_state(robot, constraint, q, v)
    contacts = Contacts(robot, [x for x in happening if isinstance(x, Contact)])
    mechanics = EquationsOfMotion(robot, control, constraint, contacts, friction)
    if period is not None and control is not None:
        mechanics.sample(float(times[0]), float(period), float(delay))
    mechanics.check_contacts(q, v, "at the start")
    say = (lambda part: None) if report is None else report
    if METHODS[method] not in COMPOSITIONS:
        watched = [x for x in happening if isinstance(x, Event)]
        return _adaptive(Flow(mechanics, float(times[0]), q, v, watched, tolerance, method == "implicit"), times, say)
    if happening:
        raise CoadjointError(f"method {method!r} takes no events or contacts; choose 'adaptive' for them.")
    return _variational(mechanics, times, q, v, COMPOSITIONS[METHODS[method]], step, say)


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
    """The motion up to the present time of the flow."""
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


def _variational(
    mechanics: EquationsOfMotion,
    times: np.ndarray,
    q: np.ndarray,
    v: np.ndarray,
    parts: tuple[float, ...],
    step: float,
    report: Callable[[float], None],
) -> Trajectory:
    """Steps in chunks of native code; only the states at the wanted times are kept."""
    robot = mechanics.robot
    control: Any = mechanics.control
    constant = control is not None and not callable(control)
    family = Family(robot, None)
    force = None if constant or control is None else traced_control(family, control)
    take = variational_step(family, force, mechanics.friction, mechanics.constraint, constant)
    counts = np.maximum(1, np.ceil(np.diff(times) / step - 1e-9)).astype(int)
    # All times and lengths of steps, made as they are needed: there may be millions.
    p, w = mass_matrix(robot, q) @ v, v
    qs, ps = [q], [p]
    stopped = ""
    try:
        for k, n in enumerate(counts):
            h = (times[k + 1] - times[k]) / n
            for first in range(0, n, CHUNK):
                some = min(CHUNK, n - first)
                lengths = np.tile(np.array(parts) * h, some)
                begin = times[k] + first * h + np.concatenate([[0.0], np.cumsum(lengths)[:-1]])
                third = np.tile(control, (len(lengths), 1)) if constant else (begin + lengths / 2)[:, None]
                q, p, w, left = _steps(take, (q, p, w), [third, lengths[:, None]])
                check_converged(left.reshape(some, -1).max(1), h, int(counts[:k].sum()) + first)
                report((times[k] + (first + some) * h - times[0]) / (times[-1] - times[0]))
            qs.append(q)
            ps.append(p)
    except KeyboardInterrupt:
        stopped = "interrupted"
    states = np.array(qs[: len(ps)])
    vs = mv(mass_matrix_inverse(robot, states), np.array(ps))
    return _whole(mechanics, times[: len(states)], states, vs, (), stopped, ())


def _steps(take: Any, state: tuple[np.ndarray, ...], given: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The last state after steps with these inputs (steps, n), and how far each was from converged."""
    steps = len(given[0])
    rows = [np.empty((1, steps + 1, x.size)) for x in state] + [np.empty((1, steps + 1, 1))]
    for row, x in zip(rows, state, strict=False):
        row[0, 0] = x
    inputs = [x[:, :-1] for x in rows[:3]] + [np.ascontiguousarray(x)[None] for x in given]
    run_steps(take, inputs, [x[:, 1:] for x in rows], threads=1)
    return (*(x[0, -1].copy() for x in rows[:3]), rows[3][0, 1:, 0])


def _whole(
    mechanics: EquationsOfMotion, times: np.ndarray, q: np.ndarray, v: np.ndarray, happenings: Any, stopped: str, pieces: Any
) -> Trajectory:
    tau = mechanics.forces(q, v, times)
    return Trajectory(mechanics.robot, times, q, v, tau, happenings, mechanics.constraint, stopped, pieces)


def _check_sampling(period: Any, delay: Any, method: str) -> None:
    """An error for a period or a delay that none can be."""
    if period is None:
        if delay:
            raise CoadjointError(f"delay is {delay!r} without a period; give the period of the samples that are delayed.")
        return
    for name, x, least in (("period", period, "positive number"), ("delay", delay, "number of 0 or more")):
        if not isinstance(x, int | float | np.number) or not (np.isfinite(x) and (x > 0 or (x == 0 and name == "delay"))):
            raise CoadjointError(f"{name} is {x!r}; expected a {least} of seconds.")
    if METHODS[method] in COMPOSITIONS:
        raise CoadjointError(
            f"method {method!r} takes no period: choose 'adaptive' for a sampled control, or `rollout`, whose forces are held by steps."
        )


def _check_within(robot: Robot, q: np.ndarray) -> None:
    """An error for a configuration beyond the joints' limits."""
    beyond = (q < robot.lower - TOUCHING) | (q > robot.upper + TOUCHING)
    if beyond.any():
        k = int(np.argmax(beyond))
        raise CoadjointError(
            f"q of {robot.q_names[k]} is {q[k]:.6g}, beyond its limits {robot.lower[k]:.6g} and {robot.upper[k]:.6g}; start between the "
            "stops, or leave `stops` out."
        )


def _state(robot: Robot, q: Any, v: Any) -> tuple[np.ndarray, np.ndarray]:
    """One state of finite numbers, its quaternions of length one."""
    q, v = (
        np.asarray(robot._checked(to_numpy(x, name), name, n), dtype=float)
        for x, name, n in ((q, "q", robot.nq), (v, "v", robot.nv))
    )
    for name, x, n in (("q", q, robot.nq), ("v", v, robot.nv)):
        if x.ndim != 1:
            raise ShapeError(
                f"{name} has shape {x.shape}; `simulate` takes one state, ({n},). For a batch there is `coadjoint.rollout`."
            )
        if not np.all(np.isfinite(x)):
            raise CoadjointError(f"{name} has entries that are not finite numbers.")
    return robot.normalize(q), v


def _times(t: Any) -> np.ndarray:
    """The times at which states are wanted; 201 of a duration."""
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
        raise CoadjointError(f"t is {t!r}; expected a positive duration in seconds, or growing times.")
    if times.ndim and len(times) < 2:
        raise CoadjointError(f"t has {len(times)} times; expected two or more, the first the start.")
    return times if times.ndim else np.linspace(0.0, float(times), 201)
