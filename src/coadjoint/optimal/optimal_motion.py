"""Optimal motion between two states: `optimal_motion`.

The motion is a B-spline, its cost an integral, its limits hold at the nodes of the quadrature and are checked between them. Gradient and
Hessian are exact, from the dynamics' own first and second derivatives, as Park, Bobrow & Ploen (1995), section 5, propose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arguments import a_robot, positive, takes, whole
from ..errors import CoadjointError, ShapeError
from ..motion.states import States
from ..motion.trajectory import Trajectory
from ..robot.link import as_pose
from ..robot.robot import Robot
from ..words import short
from . import interior_point
from .splines import Spline
from .stages import Coordinates, Cost, Effort, Energy, MotorPower, Of, Power, Rows, Torques, action
from .transcription import Equality, Here, Transcription

COSTS = ("effort", "action", "energy", "time", "velocity", "acceleration", "jerk")
DENSE = 40
"""Points between two knots at which the limits are checked."""
DRAWN = 8
"""How often limits are drawn in at most."""
EXCEEDED = 1e-6
"""The part by which a limit may be exceeded between the nodes."""
INEXACT = 1e-4
"""The part by which the cost may differ from that of a finer quadrature."""


@dataclass(frozen=True, eq=False, repr=False)
class OptimalMotion(Trajectory):
    """The motion that was found, a `Trajectory` with its accelerations, cost and the conditions that it meets."""

    a: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    """(N, nv)"""
    cost: float = np.nan
    converged: bool = False
    """Whether the conditions of first order hold to the tolerance (to 100 times that where rounding allows no further step) and the
    Hessian has no negative eigenvalue: the motion is a local optimum among splines of its kind. Limits that would be exceeded between
    the nodes are drawn in there, by some thousandths of themselves, less with more spans."""
    message: str = ""
    error: float = np.nan
    """The largest violation of the conditions of first order."""
    violation: float = 0.0
    """How far limits are exceeded between the nodes, as a part of each limit; at most 1e-6 in a converged motion."""
    multipliers: Mapping[str, np.ndarray] = field(default_factory=dict)
    """By limit, such as "effort": (nodes, joints), positive where the upper limit holds the motion back, negative for the lower."""
    table: Sequence[Mapping[str, float]] = ()
    """The iterations."""
    control_points: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def duration(self) -> float:
        """Seconds."""
        return float(self.time[-1] - self.time[0])

    @property
    def states(self) -> States:
        """The states as a table, with the accelerations."""
        return States(self.q, self.v, self.a, self.tau, self.time)

    def __str__(self) -> str:
        verdict = "optimal" if self.converged else "NOT optimal"
        what = f"{self.duration:.6g} s, cost {self.cost:.9g}, {verdict} after {len(self.table)} iterations ({self.message})"
        return f"Motion of {self.robot.name!r}: {what}"

    def __repr__(self) -> str:
        return f"<{self}>"


@takes(robot=a_robot)
def optimal_motion(
    robot: Robot,
    start: Any,
    goal: Any,
    duration: float | str | None = None,
    cost: str | Mapping[Any, float] | Callable[..., Any] = "effort",
    *,
    frame: str | None = None,
    start_velocity: Any = "default",
    goal_velocity: Any = "default",
    via: Mapping[float, Any] | None = None,
    position: Any = None,
    velocity: Any = None,
    acceleration: Any = None,
    effort: Any = None,
    power: Any = None,
    jerk: Any = None,
    limits: bool = True,
    spans: int = 16,
    guess: Any = None,
    tolerance: float = 1e-8,
    iterations: int = 200,
    report: Callable[[int, float], None] | None = None,
) -> OptimalMotion:
    """The motion of least cost from the configuration `start` (nq,) to `goal`, a configuration (nq,) or, with `frame`, its pose (4, 4).

    duration: seconds; "free" to choose it too, as the cost "time" does; None for twice the time that velocity limits ask for, or 1 s.
    cost: integrals over time of |τ|² ("effort"), ½ vᵀMv ("action"), τᵀv + |τ|² ("energy": losses, what brakes is fed back), of the
    squares of "velocity", "acceleration" or "jerk", or "time"; a function fn(robot, q, v, a) of array operations; or {cost: weight}.
    Joint forces τ have the joints' viscous friction in them; dry friction, which is not smooth, they leave out.

    The motion starts and ends at rest, but for the cost "action", whose velocities at the ends are free; start_velocity and goal_velocity
    are arrays (nv,), or None for free. via: {part of the duration: configuration}. Limits are those of the robot (none if `limits` is
    false), replaced by what is given: position (lower, upper), velocity, acceleration, effort, power, jerk, each a number or (nv,).
    spans: how many polynomials of degree 7 make up the motion. guess: another motion, or configurations (K, nq), to begin with. Ctrl-C
    returns the best so far.
    """
    _check_robot(robot)
    start = _configuration(robot, start, "start")
    pose_goal = frame is not None
    end = _reach(robot, goal, frame, start) if pose_goal else _configuration(robot, goal, "goal")
    costs, time_weight = _costs(robot, cost)
    rows = _limits(robot, position, velocity, acceleration, effort, power, jerk, limits)
    for name, q in (("start", start), ("goal", end)):
        _check_within(robot, rows, q, name)
    free_time = duration == "free" or (duration is None and bool(time_weight))
    T = _duration(robot, duration, start, end, rows)
    if time_weight and not free_time:
        raise CoadjointError("the cost has time in it and the duration is given; leave duration out, or take another cost.")
    if free_time and not costs and not any(np.isfinite(x.upper).any() for x in rows if not _is_position(x)):
        raise CoadjointError("the cost is time and nothing limits the speed; give effort, acceleration or velocity limits.")
    resting = None if isinstance(cost, str) and cost == "action" else np.zeros(robot.nv)
    v0, v1 = (
        resting if isinstance(x, str) and x == "default" else _velocity(robot, rows, x, name)
        for x, name in ((start_velocity, "start_velocity"), (goal_velocity, "goal_velocity"))
    )
    if free_time and any(v is not None and v.any() for v in (v0, v1)):
        raise CoadjointError("a free duration goes with velocities at the ends that are zero or free; give a duration.")

    if whole(spans, "spans") < 1 or whole(iterations, "iterations") < 1:
        raise CoadjointError(f"spans is {spans} and iterations {iterations}; expected at least 1 of each.")
    tolerance = float(positive(tolerance, "tolerance"))

    spline = Spline(whole(spans, "spans"))
    control, free = _boundary(spline, _guess(robot, spline, guess, start, end, T), start, None if pose_goal else end, v0, v1, T)
    problem = Transcription(
        robot,
        spline,
        costs,
        time_weight,
        rows,
        control,
        free,
        None if free_time else T,
        _equality(robot, spline, rows, via, goal, frame, v1),
    )
    x = problem.join(control, T)
    begin = problem.at(x)
    if not np.isfinite(begin.f):
        raise CoadjointError(f"the cost of the motion to begin with is {begin.f}; expected a finite number. Look at cost or guess.")
    scale = max(1e-9, float(np.abs(begin.gradient()).max()), abs(begin.f))
    found, beyond = _solved(problem, x, scale, tolerance, iterations, report)
    return _motion(problem, found, beyond)


def _solved(
    problem: Transcription, x: np.ndarray, scale: float, tolerance: float, iterations: int, report: Any
) -> tuple[interior_point.Solution, list[np.ndarray]]:
    """The solution whose limits hold between the nodes too, and by what parts they are exceeded.

    Where they do not hold, they are drawn in at the nodes nearby, and the problem is solved again.
    """
    originals = [(rows.lower.copy(), rows.upper.copy()) for rows in problem.limits]
    table: list[dict[str, float]] = []
    beyond = [x.max(0) for x in _beyond(problem, x, originals)]
    interrupted = False
    if any(one.any() for one in beyond):  # limits close in on the motion, so that all of it leaves them on the same side
        for part in (1.05, 0.8, 0.5, 0.25, 0.1):
            _move_limits(problem, beyond, originals, -part)
            found = interior_point.solve(problem.at, problem.values, x, tolerance=1e-3, iterations=30, scale=scale, report=report)
            table += found.table
            x = found.x
            interrupted = found.message.startswith("interrupted")
            if interrupted:
                beyond = _beyond(problem, x, originals)
                break
        else:
            _move_limits(problem, beyond, originals, 0.0)
    inside = [np.zeros((len(problem.spline.nodes), one.shape[-1])) for one in beyond]
    for _ in range(0 if interrupted else DRAWN):
        found = interior_point.solve(
            problem.at, problem.values, x, tolerance=tolerance, iterations=iterations, scale=scale, report=report
        )
        table += found.table
        beyond = _beyond(problem, found.x, originals)
        if not found.converged or all(x.max(initial=0.0) <= EXCEEDED for x in beyond):
            break
        inside = [x + 1.2 * y for x, y in zip(inside, beyond, strict=True)]
        _move_limits(problem, inside, originals, 1.0)
        x = found.x
    for rows, (lower, upper) in zip(problem.limits, originals, strict=True):
        rows.lower, rows.upper = lower, upper
    found.table = table
    return found, beyond


def _move_limits(
    problem: Transcription, parts: Sequence[np.ndarray], originals: Sequence[tuple[np.ndarray, np.ndarray]], factor: float
) -> None:
    """Draw every limit in by factor times a part of itself, (m,) or (K, m) for the nodes."""
    for rows, part, (lower, upper) in zip(problem.limits, parts, originals, strict=True):
        move = factor * part * _size(lower, upper)
        rows.lower, rows.upper = lower + move, upper - move


def _size(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """What a part of a limit is a part of: the larger of the two, or 1 where there is only one."""
    return np.where(np.isfinite(upper) & np.isfinite(lower), np.maximum(np.abs(upper), np.abs(lower)), 1.0)


def _beyond(problem: Transcription, x: np.ndarray, limits: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    """How far every row exceeds its limits between each node (K, m) and its neighbours, as a part of them."""
    from .stages import Forces

    c, T = problem.split(x)
    s = np.linspace(0.0, 1.0, DENSE * problem.spline.spans + 1)
    nodes, after = problem.spline.nodes, np.searchsorted(problem.spline.nodes, s)
    neighbours = [np.maximum(after - 1, 0), np.minimum(after, len(nodes) - 1)]
    forces = Forces(problem.robot, np.stack(problem.spline.curve(c, T, s), axis=1))
    found = []
    for rows, (lower, upper) in zip(problem.limits, limits, strict=True):
        value = rows.value(forces)
        size = _size(lower, upper)
        with np.errstate(invalid="ignore"):
            over = np.maximum(np.nan_to_num(lower - value, neginf=0.0), np.nan_to_num(value - upper, neginf=0.0))
        part, near = np.maximum(over, 0.0) / np.maximum(size, 1e-300), np.zeros((len(nodes), len(size)))
        for node in neighbours:
            np.maximum.at(near, node, part)
        found.append(near)
    return found


@dataclass(frozen=True, eq=False)
class _Between:
    """The motion as a function of time."""

    spline: Spline
    control: np.ndarray
    duration: float

    def __call__(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        q, v, *_ = self.spline.curve(self.control, self.duration, np.clip(t / self.duration, 0.0, 1.0))
        return q, v


def _doubts(problem: Transcription, here: Here, solved: bool, beyond: Sequence[np.ndarray]) -> list[str]:
    """What speaks against a motion: limits that do not hold, and a cost that is another between the nodes."""
    from .stages import Forces

    found, spline = [], problem.spline
    parts = [x.max(initial=0.0) for x in beyond]
    if parts and max(parts) > EXCEEDED:
        k = int(np.argmax(parts))
        rows, joint = problem.limits[k], int(beyond[k].max(0).argmax())
        remedy = "take more spans" if solved else "give more time, wider limits or another guess"
        found.append(f"the {_kind(rows)} of {rows.names[joint]} exceeds its limit by {max(parts):.1e} of it; {remedy}")
    missed = float(np.abs(here.e).max(initial=0.0))
    if missed > EXCEEDED:
        found.append(f"points on the way, or the pose at the end, are missed by {missed:.1e}; perhaps they contradict each other")
    x, w = np.polynomial.legendre.leggauss(4 * (len(spline.nodes) // spline.spans))
    s = ((np.arange(spline.spans)[:, None] + 0.5 * (x + 1.0)) / spline.spans).reshape(-1)
    forces = Forces(problem.robot, np.stack(spline.curve(here.control, here.T, s), axis=1))
    running = np.sum([weight * cost.value(forces) for weight, cost in problem.costs], axis=0) if problem.costs else np.zeros(len(s))
    exact = float(here.T * (np.tile(0.5 * w / spline.spans, spline.spans) @ running) + problem.time_weight * here.T)
    off = abs(exact - here.f) / max(abs(exact), abs(here.f), 1e-300)
    if off > INEXACT and abs(exact - here.f) > 1e-12:
        found.append(f"the cost between the nodes differs by {off:.1e} of it; take more spans")
    return found


def _motion(problem: Transcription, found: interior_point.Solution, beyond: Sequence[np.ndarray]) -> OptimalMotion:
    robot, spline = problem.robot, problem.spline
    c, T = problem.split(found.x)
    s = np.linspace(0.0, 1.0, max(201, 8 * spline.spans + 1))
    q, v, a, _ = spline.curve(c, T, s)
    here = problem.at(found.x)
    from .stages import Forces

    forces = Forces(robot, np.stack([q, v, a, a], axis=1))

    held = {_kind(rows): -x for rows, x in zip(problem.limits, here._by_row(found.z, -1.0), strict=True)}
    violation = max([0.0, *(float(x.max(initial=0.0)) for x in beyond)])
    doubts = _doubts(problem, here, found.converged, beyond)
    return OptimalMotion(
        robot,
        s * T,
        q,
        v,
        forces.tau,
        pieces=((0.0, T, _Between(spline, c, T)),),
        a=a,
        cost=here.f,
        converged=found.converged and not doubts,
        message="; ".join(doubts if found.converged and doubts else [found.message, *doubts]),
        error=found.error,
        violation=violation,
        multipliers=held,
        table=found.table,
        control_points=c,
    )


# --- what the user gives


def _check_robot(robot: Robot) -> None:
    if not robot.nv:
        raise CoadjointError(f"robot {robot.name!r} has no joint that moves.")
    for i, kind in enumerate(robot.kinds):
        if kind.group is not None:
            raise CoadjointError(
                f"joint {robot.links[i].joint.name!r} of robot {robot.name!r} moves in a group; `optimal_motion` takes joints with one "
                "coordinate each. Lock it, or describe it by revolute and prismatic joints."
            )


def _configuration(robot: Robot, x: Any, name: str) -> np.ndarray:
    try:
        q = np.asarray(x, dtype=float)
    except (TypeError, ValueError):
        raise CoadjointError(f"{name} is {short(x)}; expected a configuration ({robot.nq},).") from None
    if q.shape != (robot.nq,):
        hint = " A pose goes with frame=." if q.shape == (4, 4) else ""
        raise ShapeError(f"{name} has shape {q.shape}; expected ({robot.nq},).{hint}")
    if not np.isfinite(q).all():
        raise CoadjointError(f"{name} has entries that are not finite numbers.")
    return q


def _velocity(robot: Robot, limits: Sequence[Rows], x: Any, name: str) -> np.ndarray | None:
    if x is None:
        return None
    try:
        v = np.asarray(x, dtype=float)
    except (TypeError, ValueError):
        v = np.full(1, np.nan)
    v = np.broadcast_to(v, (robot.nv,)) if not v.ndim else v
    if v.shape != (robot.nv,) or not np.isfinite(v).all():
        raise ShapeError(f"{name} is {short(x)}; expected a velocity ({robot.nv},), or None for a free one.")
    for rows in limits:
        if isinstance(rows, Coordinates) and rows.order == 1:
            for k in np.flatnonzero(np.abs(v) > rows.upper * (1.0 + 1e-9))[:1]:
                raise CoadjointError(f"{name} has {v[k]:.4g} for {rows.names[k]}, whose limit is {rows.upper[k]:.4g}.")
    return v


def _reach(robot: Robot, goal: Any, frame: Any, start: np.ndarray) -> np.ndarray:
    """A configuration at which the frame has the goal's pose, the nearest to the start that is found."""
    from ..kinematics.inverse import inverse_kinematics

    found = inverse_kinematics(robot, as_pose(goal, "goal"), frame, q0=start)
    if not np.all(found.success):
        raise CoadjointError(
            f"the goal cannot be reached: the best configuration found leaves frame {frame!r} off by "
            f"{float(found.distances.max()):.3g} m and {float(found.angles.max()):.3g} rad. "
            "Choose a pose within reach and limits."
        )
    return np.asarray(found.q, dtype=float)


def _costs(robot: Robot, cost: Any) -> tuple[list[tuple[float, Cost]], float]:
    """Running costs with their weights, and the weight of time."""
    wanted = f"expected one of {', '.join(COSTS)}, a function fn(robot, q, v, a), or a mapping of these to weights."
    if not (isinstance(cost, str | Mapping) or callable(cost)) or (isinstance(cost, Mapping) and not cost):
        raise CoadjointError(f"cost is {short(cost)}; {wanted}")
    given = dict(cost) if isinstance(cost, Mapping) else {cost: 1.0}
    made: dict[str, Callable[[], Cost]] = {
        "effort": Effort,
        "action": lambda: action(robot),
        "energy": lambda: Energy(np.ones(robot.nv)),
        "velocity": lambda: Power(1),
        "acceleration": lambda: Power(2),
        "jerk": lambda: Power(3),
    }
    found: list[tuple[float, Cost]] = []
    time = 0.0
    for one, weight in given.items():
        if not isinstance(weight, int | float | np.number) or not (np.isfinite(weight) and weight > 0):
            raise CoadjointError(f"the weight of cost {short(one)} is {short(weight)}; expected a positive number.")
        if callable(one):
            found.append((float(weight), Of(robot, one)))
        elif one == "time":
            time = float(weight)
        elif one in made:
            found.append((float(weight), made[one]()))
        else:
            raise CoadjointError(f"cost is {short(one)}; {wanted}")
    return found, time


def _limits(
    robot: Robot, position: Any, velocity: Any, acceleration: Any, effort: Any, power: Any, jerk: Any, own: bool
) -> list[Rows]:
    """The limits that are in force."""
    none, names, n = np.full(robot.nv, np.inf), tuple(robot.v_names), robot.nv

    def size(x: Any, name: str, default: np.ndarray) -> np.ndarray:
        if x is None:
            return np.asarray(default, dtype=float) if own else none
        found = np.asarray(x, dtype=float)
        if found.shape not in ((), (n,)) or not (found > 0).all():
            raise CoadjointError(f"{name} is {short(x)}; expected positive limits, a number or ({n},).")
        return np.array(np.broadcast_to(found, (n,)))

    lower, upper = (np.asarray(robot.lower, dtype=float), np.asarray(robot.upper, dtype=float)) if own else (-none, none)
    if position is not None:
        if not isinstance(position, tuple | list) or len(position) != 2:
            raise CoadjointError(f"position is {short(position)}; expected (lower, upper).")
        ends = [np.asarray(x, dtype=float) for x in position]
        if any(x.shape not in ((), (n,)) or np.isnan(x).any() for x in ends):
            raise CoadjointError(f"position is {short(position)}; expected (lower, upper), each a number or ({n},).")
        lower, upper = (np.array(np.broadcast_to(x, (n,))) for x in ends)
    found: list[Rows] = []
    bounds = [(0, lower, upper)]
    for order, name, given, default in (
        (1, "velocity", velocity, robot.velocity_limit),
        (2, "acceleration", acceleration, none),
        (3, "jerk", jerk, none),
    ):
        most = size(given, name, default)
        bounds.append((order, -most, most))
    found += [Coordinates(k, low, high, names) for k, low, high in bounds if np.isfinite(low).any() or np.isfinite(high).any()]
    for kind, name, given, default in ((Torques, "effort", effort, robot.effort_limit), (MotorPower, "power", power, none)):
        most = size(given, name, default)
        if np.isfinite(most).any():
            found.append(kind(most, names))
    return found


def _kind(rows: Rows) -> str:
    if isinstance(rows, Coordinates):
        return ("position", "velocity", "acceleration", "jerk")[rows.order]
    return "effort" if isinstance(rows, Torques) else "power"


def _is_position(rows: Rows) -> bool:
    return isinstance(rows, Coordinates) and rows.order == 0


def _check_within(robot: Robot, limits: Sequence[Rows], q: np.ndarray, name: str) -> None:
    """An error for an end of the motion that limits forbid."""
    from .stages import Forces

    still = np.zeros((1, 4, robot.nv))
    still[0, 0] = q
    forces = Forces(robot, still)
    for rows in limits:
        if isinstance(rows, Coordinates) and rows.order:
            continue
        value = rows.value(forces)[0]
        for k in np.flatnonzero((value < rows.lower - 1e-9) | (value > rows.upper + 1e-9))[:1]:
            what = f"{rows.names[k]} at {value[k]:.4g}"
            if isinstance(rows, Torques):
                raise CoadjointError(
                    f"the robot cannot rest at the {name}: gravity needs {what} of {rows.names[k]}, whose limit is {rows.upper[k]:.4g}."
                )
            raise CoadjointError(
                f"the {name} is outside of the limits: {what}, allowed {rows.lower[k]:.4g} to {rows.upper[k]:.4g}."
            )


def _duration(robot: Robot, duration: Any, start: np.ndarray, end: np.ndarray, limits: Sequence[Rows]) -> float:
    """The duration given, or that of a motion of least jerk at half the speed limits."""
    if duration is None or duration == "free":
        need = [1e-3]
        for rows in limits:
            if isinstance(rows, Coordinates) and rows.order in (1, 2):
                peak = {1: 1.875, 2: 5.7735}[rows.order]
                need += list((2.0 * peak * np.abs(end - start) / rows.upper) ** (1.0 / rows.order))
        return max(need) if max(need) > 1e-2 else 1.0
    if isinstance(duration, str):
        raise CoadjointError(f"duration is {duration!r}; expected a number of seconds, 'free' or None.")
    return float(positive(duration, "duration"))


def _guess(robot: Robot, spline: Spline, guess: Any, start: np.ndarray, end: np.ndarray, T: float) -> np.ndarray:
    """Control points (size, n) to begin with: of a straight motion of least jerk, or near another motion."""
    s = np.linspace(0.0, 1.0, 4 * spline.size)
    if guess is None:
        points = start + (s**3 * (10 - 15 * s + 6 * s**2))[:, None] * (end - start)
    else:
        given = np.asarray(guess.q if hasattr(guess, "q") else guess, dtype=float)
        if given.ndim != 2 or given.shape[1] != robot.nq or len(given) < 2:
            raise ShapeError(f"guess has shape {given.shape}; expected configurations (K, {robot.nq}) along a motion.")
        if not np.isfinite(given).all():
            raise CoadjointError("guess has entries that are not finite numbers.")
        times = np.asarray(getattr(guess, "time", np.arange(len(given))), dtype=float)
        at = (times - times[0]) / (times[-1] - times[0])
        points = np.stack([np.interp(s, at, given[:, k]) for k in range(robot.nq)], axis=-1)
    return spline.fit(s, points)


def _boundary(
    spline: Spline,
    control: np.ndarray,
    start: np.ndarray,
    end: np.ndarray | None,
    v0: np.ndarray | None,
    v1: np.ndarray | None,
    T: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Control points that meet the ends, and which of them are free. The first two give position and velocity."""
    control, free = control.copy(), np.ones(spline.size, dtype=bool)
    reach = T / (spline.spans * spline.degree)
    control[0], free[0] = start, False
    if v0 is not None:
        control[1], free[1] = start + reach * v0, False
    if end is not None:
        control[-1], free[-1] = end, False
        if v1 is not None:
            control[-2], free[-2] = end - reach * v1, False
    return control, free


def _equality(
    robot: Robot, spline: Spline, limits: Sequence[Rows], via: Any, goal: Any, frame: str | None, v1: np.ndarray | None
) -> Equality:
    """Points on the way, and the pose at the end."""
    from scipy.interpolate import BSpline

    rows, right = [np.zeros((0, spline.size))], [np.zeros((0, robot.nv))]
    if not isinstance(via, Mapping | None):
        raise CoadjointError(f"via is {short(via)}; expected a mapping from parts of the duration to configurations.")
    for s, q in (via or {}).items():
        if not (isinstance(s, int | float | np.number) and 0 < s < 1):
            raise CoadjointError(f"via has the time {short(s)}; expected a part of the duration between 0 and 1.")
        rows.append(BSpline(spline.knots, np.eye(spline.size), spline.degree)(np.array([s])))
        right.append(_configuration(robot, q, f"via[{s:g}]")[None])
        _check_within(robot, [x for x in limits if _is_position(x)], right[-1][0], f"point via[{s:g}]")
    if frame is None:
        return Equality(np.concatenate(rows), np.concatenate(right))
    if v1 is not None:
        if v1.any():
            raise CoadjointError("a pose as goal goes with rest at the end, or goal_velocity=None for a free one.")
        last = np.zeros((1, spline.size))
        last[0, -1], last[0, -2] = 1.0, -1.0
        rows.append(last)
        right.append(np.zeros((1, robot.nv)))
    gap = _Gap(robot, frame, as_pose(goal, "goal"))
    return Equality(np.concatenate(rows), np.concatenate(right), gap.value, gap.jacobian, gap.second)


class _Gap:
    """What is missing to a pose, (6,): the body twist log(T(q)⁻¹ X), with derivatives by q."""

    def __init__(self, robot: Robot, frame: str, X: np.ndarray) -> None:
        from ..compiling import compile as compiled
        from ..differentiating import derivative, differential
        from ..kinematics import pose
        from ..lie import se3

        def gap(robot: Robot, q: Any) -> Any:
            return se3.log(se3.inverse(pose(robot, q, frame)) @ X)

        self.value = compiled(gap, robot)
        self.jacobian = derivative(gap, robot, "q")
        self.second = derivative(differential(gap, "q"), robot, "q")
