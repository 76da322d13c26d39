"""Optimal motion between two states: `optimal_motion`.

The motion is a B-spline, its cost an integral, its limits hold at the nodes of the quadrature and are checked between them. Gradient and
Hessian are exact, from the dynamics' own first and second derivatives, as Park, Bobrow & Ploen (1995), section 5, propose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..arguments import a_flag, a_function_of, a_robot, check_core, count_up_to, floats, one_of, positive, takes, whole
from ..constraints.constraint import Constraint
from ..errors import CoadjointError, ShapeError
from ..kinematics.targets import Target
from ..robot.robot import Robot
from ..words import short
from . import motion_arguments as given
from .between_nodes import Search, drawn_of
from .detours import around, fine_enough
from .drives import Drives
from .equalities import Equality, Goal, TargetGap
from .interior_point import Solution
from .motion_result import OptimalMotion, OptimalMotions, motions_of
from .multiple_shooting import Shots
from .rows import Rows
from .shots import between_ends, check_shots, continued, flown, shots_of
from .splines import Spline
from .transcription import Transcription

TOGETHER = 32
"""Motions that are iterated at once: their arrays stay in the processor's cache, and Python's share of the time is small."""

TRANSCRIPTIONS = ("splines", "collocation", "shooting")
COLLOCATED = 3
"""Gauss points in a span."""


@takes(
    robot=a_robot,
    self_collision=a_flag,
    limits=a_flag,
    transcription=one_of(*TRANSCRIPTIONS),
    report=a_function_of("count", "error"),
)
def optimal_motion(
    robot: Robot,
    start: Any,
    goal: Any = None,
    duration: Any = None,
    cost: str | Mapping[Any, float] | Callable[..., Any] = "effort",
    *,
    losses: Any = None,
    frame: str | None = None,
    start_velocity: Any = "default",
    goal_velocity: Any = "default",
    via: Mapping[float, Any] | None = None,
    periodic: bool = False,
    position: Any = None,
    velocity: Any = None,
    acceleration: Any = None,
    effort: Any = None,
    power: Any = None,
    jerk: Any = None,
    constraints: Constraint | None = None,
    motors: Any = None,
    obstacles: Any = (),
    bodies: Any = None,
    clearance: float = 0.0,
    self_collision: bool = False,
    limits: bool = True,
    transcription: str = "splines",
    spans: int = 16,
    guess: Any = None,
    tolerance: float = 1e-8,
    iterations: int = 200,
    report: Callable[[int, float], None] | None = None,
) -> Any:
    """The motion of least cost from the configuration `start` (nq,) to `goal`, a configuration (nq,) or a task.

    A task is a pose (4, 4) or a position (3,) of `frame`, or a `Target` or a list of them, which may leave directions free; the
    configuration at the end is then chosen too. `periodic`: velocity and acceleration are the same at both ends, and not given; goal is
    the start if it is None.
    duration: seconds; "free" to choose it too, as the cost "time" does; None for twice the time that velocity limits ask for, or 1 s.
    cost: integrals over time of |τ|² ("effort"), ½ vᵀMv ("action"), τᵀv + Σ rτ² ("energy": what brakes is fed back; `losses` r in
    W/(N m)², a number or (nv,), 1 if None), of the squares of "velocity", "acceleration" or "jerk", or "time"; a function
    fn(robot, q, v, a) of array operations; or {cost: weight}.
    Joint forces τ have the joints' viscous friction in them; dry friction, which is not smooth, they leave out.

    The motion starts and ends at rest, but for the cost "action", whose velocities at the ends are free; start_velocity and goal_velocity
    are arrays (nv,), or None for free. via: {part of the duration: configuration}. Limits are those of the robot (none if `limits` is
    false), replaced by what is given: position (lower, upper), velocity, acceleration, effort, power, jerk, each a number or (nv,).
    constraints: loops and other holonomic constraints that the motion meets; motors: the names of the joints that have one, all if None.
    Joint forces are then the least that make the motion, the rest is done by the constraints.
    obstacles: spheres and capsules, `coadjoint.Sphere(center, radius)` and `Capsule(start, end, radius)`, from which the robot's bodies
    keep `clearance` metres, at all times and not only at the nodes: this is proved, or the motion says that it is not optimal. bodies:
    spheres and capsules with frame= a link or a frame of the robot; None for capsules around its shapes, or around its links where it
    has none. self_collision: bodies of links that are not neighbours keep apart too.
    transcription: "splines" of degree 7; "collocation" at three Gauss points in every span, between which velocities are continuous;
    "shooting", multiple shooting: joint forces that are linear in every span, and states that are integrated; it begins with what
    splines find, or where a guess ended that shooting found for the same problem.
    spans: how many polynomials make up the motion. guess: another motion, or configurations (K, nq), to begin with. report: a
    function of the iteration and its error, also called with 0 and infinity while a way around obstacles is sought. Ctrl-C
    returns the best so far.

    With batch axes in front of `start` or `goal` or duration, many motions are found at once:
    `OptimalMotions`, a sequence of motions.
    """
    given.check_joints(robot)
    tasks = _tasks(robot, goal, frame)
    start, end, batch = _ends(robot, start, start if goal is None and periodic else goal, tasks, duration)
    costs, time_weight = given.costs_of(robot, cost, losses)
    wanted = {
        "position": position,
        "velocity": velocity,
        "acceleration": acceleration,
        "effort": effort,
        "power": power,
        "jerk": jerk,
    }
    rows = given.limits_of(robot, wanted, limits)
    apart = given.clearances_of(robot, obstacles, bodies, clearance, self_collision)
    rows += [] if apart is None else [apart]
    drives, closure = given.drives_of(robot, constraints, motors, start)
    for name, q in (("start", start), ("goal", end)):
        given.check_closed(closure, q, name)
        given.check_within(drives, rows, q, name)
    free_time = _is_free(duration, costs, time_weight, rows)
    T = given.durations_of(duration, start, end, rows, batch)
    resting = None if isinstance(cost, str) and cost == "action" else np.zeros(robot.nv)
    v0, v1 = (
        resting if isinstance(x, str) and x == "default" else given.velocities(robot, rows, x, name)
        for x, name in ((start_velocity, "start_velocity"), (goal_velocity, "goal_velocity"))
    )
    if a_flag(periodic, "periodic"):
        v0 = v1 = None
    if free_time and any(v is not None and v.any() for v in (v0, v1)):
        raise CoadjointError("a free duration goes with velocities at the ends that are zero or free; give a duration.")
    if free_time and not tasks and not via and (start == end).all(1).any():
        raise CoadjointError("start and goal are the same, and the best duration is none; give a duration, via=, or another goal.")
    if whole(spans, "spans") < 1 or whole(iterations, "iterations") < 1:
        raise CoadjointError(f"spans is {spans} and iterations {iterations}; expected at least 1 of each.")
    tolerance = float(positive(tolerance, "tolerance"))

    spline = _basis(transcription, count_up_to(10**4)(spans, "spans"))
    interrupted = False
    if apart is not None:
        if guess is None:
            guess, longer, interrupted = around(apart, rows, spline, start, end, batch, report)
            T = T * longer if duration is None or isinstance(duration, str) else T
        if transcription != "collocation":
            spline = fine_enough(apart, spline, given.first_guess(robot, spline, guess, start, end, batch))
    control = given.first_guess(robot, spline, guess, start, end, batch)
    ends = [None if v is None else given.flat(v, batch, 1, "a velocity") for v in (v0, v1)]
    free = _boundary(spline, control, start, None if tasks else end, ends[0], ends[1], T)
    points = _points(robot, drives, rows, via, batch)
    if transcription == "shooting":
        check_shots(drives, costs, rows, spline.spans, points, bool(tasks))
    lines = [(spline.at(np.array([s]))[0, 0], point) for s, point in points]
    lines += _ends_alike(spline, robot, batch) if periodic else []
    equality = _equality(robot, spline, lines, tasks, v1, batch)
    if closure is not None:
        equality = replace(equality, closure=closure, points=spline.at(spline.greville[free])[:, 0])
    drawn = drawn_of(rows, len(T), len(spline.nodes))
    problem = Transcription(robot, spline, costs, time_weight, rows, control, free, T, free_time, equality, drives, drawn)
    _take_over(problem, guess)
    motions = _found(problem, None, tolerance, iterations, report, interrupted)
    if transcription == "shooting" and not any(one.message.startswith("interrupted") for one in motions):
        shots = between_ends(shots_of(problem, motions), start, end, ends, points, periodic)
        motions = flown(continued(shots, guess), lambda some, before: _found(some, before, tolerance, iterations, report))
    return OptimalMotions(motions, batch) if batch else motions[0]


def _basis(transcription: Any, spans: int) -> Spline:
    """Splines that are as smooth as can be; or with continuous velocities alone and as many nodes as accelerations are free in a span.

    The latter is Gauss's collocation method: of order 2 s with s points in every span.
    """
    if transcription in ("splines", "shooting"):
        return Spline(spans)
    return Spline(spans, degree=COLLOCATED + 1, nodes=COLLOCATED, smooth=1)


def _take_over(problem: Transcription, guess: Any) -> None:
    """Begin with the control points and drawn limits of a guess that solves the same problem, perhaps of another robot."""
    earlier = [
        one.conditions for one in (guess if isinstance(guess, OptimalMotions) else [guess]) if isinstance(one, OptimalMotion)
    ]
    if len(earlier) != len(problem.durations):
        return
    for k, one in enumerate(earlier):
        if one is not None and isinstance(one.problem, Transcription) and one.problem.is_like(problem.part(slice(k, k + 1))):
            problem.fixed[k], problem.durations[k] = (x[0] for x in one.problem.split(one.x, np.zeros(1, dtype=int)))
            for mine, theirs in zip(problem.drawn, one.problem.drawn, strict=True):
                mine[k] = theirs[0]


def _found(
    problem: Transcription | Shots,
    earlier: Solution | None,
    tolerance: float,
    iterations: int,
    report: Callable[[int, float], None] | None,
    interrupted: bool = False,
) -> list[OptimalMotion]:
    """The motions, some of them at once, from earlier solutions of nearly the same problems if there are; after an interrupt the
    rest as they begin.
    """
    x, count = problem.first, len(problem.durations)
    found: list[OptimalMotion] = []
    for first in range(0, count, TOGETHER):
        which = np.arange(first, min(first + TOGETHER, count))
        begin = problem.at(x[which], which)
        for f in begin.f[~np.isfinite(begin.f)][:1]:
            raise CoadjointError(f"the cost of the motion to begin with is {f}; expected a finite number. Look at cost or guess.")
        search = Search(problem, which, tolerance, iterations, report)
        known = None if earlier is None else earlier.part(which)
        solution = search.untried(x[which]) if interrupted else search.run(x[which], known)
        interrupted = solution.interrupted
        found += motions_of(problem, which, solution)
    return found


def _tasks(robot: Robot, goal: Any, frame: str | None) -> list[Target]:
    """The goal as targets of frames; none if it is a configuration."""
    if goal is None and frame is not None:
        raise CoadjointError(f"goal is None; with frame={frame!r} expected a pose (4, 4) or a position (3,).")
    if isinstance(goal, Target) or (isinstance(goal, list | tuple) and any(isinstance(x, Target) for x in goal)):
        if frame is not None:
            raise CoadjointError("goal is a Target, which has its own frame; leave out frame=.")
        given_targets = [goal] if isinstance(goal, Target) else list(goal)
    else:
        given_targets = [] if frame is None else [Target(frame, goal)]
    for one in given_targets:
        if not isinstance(one, Target):
            raise CoadjointError(f"goal has {short(one)} among its targets; expected coadjoint.Target(frame, pose or position).")
    return [one.checked(robot) for one in given_targets]


def _ends(
    robot: Robot, start: Any, goal: Any, tasks: list[Target], duration: Any
) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """The configurations (B, nq) at both ends, and the batch axes."""
    start = given.configurations(robot, start, "start")
    end = _reach(robot, tasks, start) if tasks else given.configurations(robot, goal, "goal")
    if duration is not None and not isinstance(duration, str):
        check_core("duration", duration := floats(duration, "duration"), ())
    try:
        batch = np.broadcast_shapes(start.shape[:-1], end.shape[:-1], np.shape(duration))
    except ValueError:
        raise ShapeError(
            f"start has shape {start.shape}, goal {end.shape} and duration {np.shape(duration)}; their batch axes do not broadcast."
        ) from None
    if not np.prod(batch):
        raise ShapeError(f"start has shape {start.shape} and goal {end.shape}: there is no motion to be found.")
    return given.flat(start, batch, 1, "start"), given.flat(end, batch, 1, "goal"), batch


def _reach(robot: Robot, tasks: list[Target], start: np.ndarray) -> np.ndarray:
    """Configurations at which the frames meet their targets, the nearest to the start that are found."""
    from ..kinematics.inverse import inverse_kinematics

    found = inverse_kinematics(robot, tasks, q0=start)
    if not np.all(found.success):
        raise CoadjointError(
            f"the goal cannot be reached: the best configuration found leaves frame {tasks[0].frame!r} off by "
            f"{float(found.distances.max()):.3g} m and {float(found.angles.max()):.3g} rad. "
            "Choose a target within reach and limits."
        )
    return np.asarray(found.q, dtype=float)


def _is_free(duration: Any, costs: Any, time_weight: float, rows: list[Rows]) -> bool:
    """True if the duration is a variable."""
    free = (isinstance(duration, str) and duration == "free") or (duration is None and bool(time_weight))
    if time_weight and not free:
        raise CoadjointError("the cost has time in it and the duration is given; leave duration out, or take another cost.")
    if free and not costs and not any(np.isfinite(x.upper).any() for x in rows if not given.is_position(x)):
        raise CoadjointError(
            "the cost is time and nothing limits the speed: the description has no velocity or effort limits; give effort=, "
            "acceleration= or velocity=."
        )
    return free


def _boundary(
    spline: Spline,
    control: np.ndarray,
    start: np.ndarray,
    end: np.ndarray | None,
    v0: np.ndarray | None,
    v1: np.ndarray | None,
    T: np.ndarray,
) -> slice:
    """Make control points (B, size, n) meet the ends; those that stay free. The first two give position and velocity."""
    first, last = 1, spline.size
    reach = T[:, None] / (spline.spans * spline.degree)
    control[:, 0] = start
    if v0 is not None:
        control[:, 1], first = start + reach * v0, 2
    if end is not None:
        control[:, -1], last = end, spline.size - 1
        if v1 is not None:
            control[:, -2], last = end - reach * v1, spline.size - 2
    return slice(first, last)


Line = tuple[np.ndarray, np.ndarray]
"""A combination of control points (size,), and what it is for every motion and joint (B, n)."""


def _points(robot: Robot, drives: Drives, limits: list[Rows], via: Any, batch: tuple[int, ...]) -> list[tuple[float, np.ndarray]]:
    """Points on the way: parts of the duration, and configurations (B, n)."""
    found: list[tuple[float, np.ndarray]] = []
    if not isinstance(via, Mapping | None):
        raise CoadjointError(f"via is {short(via)}; expected a mapping from parts of the duration to configurations.")
    for s, q in (via or {}).items():
        if not (isinstance(s, int | float | np.number) and 0 < s < 1):
            raise CoadjointError(f"via has the time {short(s)}; expected a part of the duration between 0 and 1.")
        point = given.flat(given.configurations(robot, q, f"via[{s:g}]"), batch, 1, f"via[{s:g}]")
        given.check_within(drives, [x for x in limits if given.is_position(x)], point, f"point via[{s:g}]")
        found.append((float(s), point))
    return found


def _ends_alike(spline: Spline, robot: Robot, batch: tuple[int, ...]) -> list[Line]:
    """Velocity and acceleration are the same at both ends."""
    first, last = spline.at(np.array([0.0, 1.0]))
    rows = [(first[order] - last[order]) / np.abs(first[order]).max() for order in (1, 2)]
    return [(row, np.zeros((int(np.prod(batch)), robot.nv))) for row in rows]


def _equality(
    robot: Robot, spline: Spline, lines: list[Line], tasks: list[Target], v1: np.ndarray | None, batch: tuple[int, ...]
) -> Equality:
    """Linear equations, and tasks at the end."""
    count = int(np.prod(batch))
    if tasks and v1 is not None:
        if v1.any():
            raise CoadjointError("a task as goal goes with rest at the end, or goal_velocity=None for a free one.")
        rest = np.zeros(spline.size)
        rest[-1], rest[-2] = 1.0, -1.0
        lines = [*lines, (rest, np.zeros((count, robot.nv)))]
    rows = np.array([row for row, _ in lines]).reshape(-1, spline.size)
    right = np.array([x for _, x in lines]).reshape(len(lines), count, robot.nv).swapaxes(0, 1)
    if not tasks:
        return Equality(rows, right)
    gap = TargetGap(tasks)
    return Equality(rows, right, Goal(robot, gap), gap.numbers(batch))
