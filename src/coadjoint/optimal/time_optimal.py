"""`time_optimal`: the fastest motion along a given path."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..arguments import a_function_of, a_robot, takes
from ..arrays import to_numpy
from ..errors import CoadjointError, ShapeError
from ..kernel.programs import runs
from ..memo import per_robot
from ..robot.robot import Robot
from ..words import short
from .collocation import LARGE
from .frame_limits import FrameLimit, frame_limits
from .limits import Limits
from .open_chains import check_open
from .path_program import time_paths
from .paths import Curves, Splines, as_paths
from .profile import Failure, Profile, bounds_at, solve
from .standstill import STILL
from .timing import Timing, Timings

EXCEEDED = 1e-7
"""The excess of a limit, as a part of it, of which a warning tells."""


@runs(time_paths)
@takes(robot=a_robot, report=a_function_of("part"))
def time_optimal(
    robot: Robot,
    path: Any,
    velocity: Any = None,
    acceleration: Any = None,
    effort: Any = None,
    *,
    power: Any = None,
    jerk: Any = None,
    reaction: Mapping[str, Any] | None = None,
    frame_speed: Mapping[str, Any] | None = None,
    frame_acceleration: Mapping[str, Any] | None = None,
    grip: Mapping[str, Any] | None = None,
    start_speed: Any = 0.0,
    end_speed: Any = 0.0,
    frame: str | None = None,
    q: Any = None,
    report: Callable[[float], object] | None = None,
) -> Any:
    """The Timing of a path: the fastest motion q(s(t)) within all limits; for several paths their Timings.

    path        waypoints (N, nv), joined by a cubic spline at equal steps of s; or q(s) on 0 ≤ s ≤ 1 as a function with derivatives,
                path(s), path(s, 1), path(s, 2), such as scipy's CubicSpline. Several: waypoints (paths, N, nv) or a list of functions.
                With `frame` a path of poses, as from `coadjoint.spline_path`, that this frame follows; `q` is where its inverse
                kinematics begins.
    velocity, acceleration, effort
                limits of |v|, |a| and |τ| (friction included): one number, or one for each velocity (nv,); inf: no limit. None is the
                robot's own limit of velocity (of joints that mimic others, too) and effort, and no limit of acceleration.
    power       limits of |τ v| (friction included), in the same form; None is no limit.
    jerk        limits of |d³q/dt³|, in the same form; None is no limit. The robot then begins and ends at rest without acceleration, where
                start_speed and end_speed are 0.
    reaction    limits of the wrench through joints, {joint: (6,) moments and forces in the frame of the link it carries}: the grip on a
                payload that `attach` has put there, say.
    frame_speed limits of a frame's motion, {frame: (2,) of the angular and the linear speed}; one number is for both.
    frame_acceleration
                {frame: (6,) of the angular and the linear acceleration along the frame's axes}.
    grip        limits of the wrench that holds a body at a frame, {frame: (inertia, (6,) of moments and forces along the frame's axes)}:
                a mass at the frame, or a matrix (6, 6), rotation first. What the joints carry is said by `robot.with_payload`.
    start_speed, end_speed
                ds/dt at both ends, inf: as fast as possible.

    The result is the continuous optimum: with x = ṡ² every limit is a row in x and s̈, and the largest feasible x(s) is found with all its
    switching points, to about 1e-10 of the limits; `excess` tells, and a warning where no more than 1e-7 was reached. With jerk it
    is a local optimum on splines, to about 1e-5 of the duration, that exceeds no limit. Bobrow, Dubowsky & Gibson (1985); Pham (2014).
    """
    _check_joints(robot)
    if frame is not None:
        from .poses import joint_path

        path = joint_path(robot, path, frame, q)
    elif q is not None:
        raise CoadjointError("q is where inverse kinematics begins; it is taken with frame=, for a path of poses.")
    paths, single = as_paths(robot, path)
    frames = frame_limits(robot, frame_speed, frame_acceleration, grip)
    limits = _limits(robot, velocity, acceleration, effort, power, reaction, frames)
    ends = np.empty((len(paths), 2))
    ends[:, 0] = _speeds(start_speed, "start_speed", len(paths))
    ends[:, 1] = _speeds(end_speed, "end_speed", len(paths))
    profile, failures, excess = solve(limits, paths, ends, None if jerk is not None else report)
    if failures and len(failures) == len(paths) and (single or all(x.kind == "rest" for x in failures)):
        why = explain(limits, paths, failures[0])
        raise CoadjointError(f"path{why[2:]}" if why.startswith("it ") else why)
    errors = {f.path: explain(limits, paths, f) for f in failures}
    if jerk is not None:
        most = _limit(jerk, "jerk", robot.nv, robot.v_names, _own_limits(robot)[2]).copy()
        return _within_jerk(limits, most, paths, ends, errors, single, report)
    if np.max(excess) > EXCEEDED:
        _tell(profile, excess, single)
    if single:
        return Timing(limits, paths, 0, profile)
    return Timings(limits, paths, profile, dict(sorted(errors.items())))


def _tell(profile: Profile, excess: np.ndarray, single: bool) -> None:
    """Warn of the path whose limits are exceeded most."""
    k = int(np.argmax(excess))
    cells = profile.parts[k]
    s = float(cells[np.argmax(cells[:, 6]), 0])
    more = int(np.sum(excess > EXCEEDED)) - 1
    of, others = "" if single else f"path {k}: ", f"; so are those of {more} other paths" if more else ""
    warnings.warn(
        f"{of}limits are exceeded by {excess[k]:.1e} of them near s = {s:.6g}, and no other cells were found to mend it{others}. "
        "Divide limits by 1 + that, or time the path in two parts.",
        stacklevel=4,
    )


def _within_jerk(
    limits: Limits,
    jerk: np.ndarray,
    paths: Splines | Curves,
    ends: np.ndarray,
    errors: dict[int, str],
    single: bool,
    report: Callable[[float], object] | None,
) -> Any:
    """The timing, or timings, with limits of jerk (nv,), of paths that have one without."""
    from .jerk_profile import fastest
    from .jerk_rows import Rows
    from .smooth_timing import SmoothTiming, SmoothTimings, check_smooth

    found = {}
    for k in range(len(paths)):
        if k in errors:
            continue
        try:
            rows = Rows(limits, jerk, paths, k, (float(ends[k, 0]), float(ends[k, 1])))
            check_smooth(rows)
            found[k] = fastest(rows)
        except CoadjointError as error:
            if single:
                raise
            errors[k] = str(error)
        if report is not None:
            report((k + 1) / len(paths))
    if single:
        return SmoothTiming(limits, paths, 0, found[0])
    return SmoothTimings(limits, paths, found, dict(sorted(errors.items())))


@per_robot
def _check_joints(robot: Robot) -> None:
    for link, kind in zip(robot.links, robot.kinds, strict=True):
        joint = link.joint
        if kind.group is not None:
            raise CoadjointError(
                f"joint {joint.name!r} is {joint.kind}: its velocity is not the derivative of its coordinates. Lock it, as in "
                f"robot.lock({{{joint.name!r}: …}}), or describe it by single joints."
            )
    if not robot.nv:
        raise CoadjointError(f"robot {robot.name!r} has no joint that moves.")
    check_open(robot, "time_optimal", "`optimal_motion(…, constraints=coadjoint.Constraint.loops(robot))` moves closed chains.")


def _limits(
    robot: Robot, velocity: Any, acceleration: Any, effort: Any, power: Any, reaction: Any, frames: tuple[FrameLimit, ...]
) -> Limits:
    own_velocity, own_effort, none, names = _own_limits(robot)
    reactions = []
    if reaction is not None and not isinstance(reaction, Mapping):
        raise CoadjointError(f"reaction is {short(reaction)}; expected {{joint: six limits}}.")
    for joint, values in (reaction or {}).items():
        i = robot.joint_index(joint)
        six = _limit(values, f"reaction[{joint!r}]", 6, [f"component {k}" for k in range(6)], none)
        reactions += [(i, k, float(x)) for k, x in enumerate(six) if np.isfinite(x)]
    limits = _of_numbers(
        robot,
        _limit(velocity, "velocity", robot.nv, names, own_velocity).tobytes(),
        _limit(acceleration, "acceleration", robot.nv, names, none).tobytes(),
        _limit(effort, "effort", robot.nv, names, own_effort).tobytes(),
        _limit(power, "power", robot.nv, names, none).tobytes(),
        tuple(reactions),
        frames,
    )
    if len(limits.names) == len(limits.powered):  # powers alone do not: at rest any force has none
        raise CoadjointError(
            f"nothing limits the acceleration: robot {robot.name!r} has no limits of effort. Give effort= or acceleration=, as in "
            f"time_optimal(robot, path, acceleration={np.ones(robot.nv).tolist()})."
        )
    return limits


@per_robot
def _own_limits(robot: Robot) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[str, ...]]:
    """The robot's own limits of velocity and effort, infinite limits of acceleration, and names of velocities.

    A joint that mimics another one is no faster than its own limit either. No force of its own moves it.
    """
    velocity, effort = np.array(robot.velocity_limit, dtype=float), np.array(robot.effort_limit, dtype=float)
    for i, (_, ratio, _) in robot.mimics.items():
        if ratio != 0.0:
            joint = robot.links[i].joint
            of_leader = robot.v_slice(joint.name)
            velocity[of_leader] = np.minimum(velocity[of_leader], joint.velocity / abs(ratio))
    return velocity, effort, np.full(robot.nv, np.inf), robot.v_names


@per_robot
def _of_numbers(
    robot: Robot,
    velocity: bytes,
    acceleration: bytes,
    effort: bytes,
    power: bytes,
    reactions: tuple[tuple[int, int, float], ...],
    frames: tuple[FrameLimit, ...],
) -> Limits:
    v, a, tau, most = (np.frombuffer(x) for x in (velocity, acceleration, effort, power))
    return Limits(robot, v, a, tau, most, reactions, frames)


def _limit(given: Any, name: str, size: int, names: Any, default: np.ndarray) -> np.ndarray:
    if given is None:
        return default
    try:
        found = np.asarray(to_numpy(given, name), dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise CoadjointError(f"{name} is {short(given)}; expected a number, or {size}.") from None
    if found.shape not in ((), (1,), (size,)):
        raise ShapeError(f"{name} has shape {found.shape}; expected one number, or ({size},).")
    if found.shape != (size,):
        found = np.full(size, found)
    good = found > 0
    if not good.all():
        j = int(np.argmin(good))
        raise CoadjointError(f"{name} of {names[j]} is {found[j]:g}; expected a positive limit, inf where there is none.")
    return found


def _speeds(given: Any, name: str, count: int) -> np.ndarray | float:
    """ṡ² at an end of every path, (count,) or one number."""
    if isinstance(given, float) and given >= 0.0:
        return min(given * given, LARGE)
    try:
        found = np.asarray(to_numpy(given, name), dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise CoadjointError(f"{name} is {short(given)}; expected ds/dt, a number of 0 or more.") from None
    if found.shape not in ((), (count,)) or not np.all(found >= 0):
        raise CoadjointError(f"{name} is {short(given)}; expected ds/dt, a number of 0 or more, or one for each of {count} paths.")
    return np.asarray(np.minimum(np.broadcast_to(found, (count,)) ** 2, LARGE))


def explain(limits: Limits, paths: Splines | Curves, failure: Failure) -> str:
    """The reason why a path cannot be timed, with the place and the joint."""
    where = f"at s = {failure.s:.6g}"
    if failure.kind == "rest" and failure.value == 0.0:
        return "it does not move: dq/ds = 0 everywhere."
    still = failure.s if failure.kind == "rest" else _standstill(paths, failure.path)
    if still is not None:
        place = f"s = {still:.6g}"
        return (
            f"it stands still at {place}: dq/ds and d²q/ds² vanish there. Take another parameter, such as the length of the path."
        )
    if failure.kind == "start":
        most = np.sqrt(max(failure.value, 0.0))
        return f"start_speed is too high: ds/dt may be at most {most:.9g} there, or the motion cannot be braked in time."
    if failure.kind == "end":
        return f"end_speed cannot be reached: ds/dt is at most {np.sqrt(max(failure.value, 0.0)):.9g} at the end."
    if failure.kind == "long":
        return (
            f"it is too long to be timed at once: with {failure.value:.0f} cells its limits are not exact near s = {failure.s:.6g}. "
            "Time parts of it, from end_speed= of one to start_speed= of the next."
        )
    if failure.kind == "rounds":
        return f"the timing did not converge near s = {failure.s:.9g}; is the path smooth there?"
    at = np.array([min(failure.s, 1.0 - 1e-9)])
    a, b, lo, hi = (y[0] for y in bounds_at(limits, paths, failure.path, at)[:4])
    need = np.maximum(lo, -hi)  # what is missing with x = u = 0
    row = int(np.argmax(need))
    quantity, joint = limits.names[row]
    if need[row] > 0:
        return (
            f"the path cannot be followed {where}: to stand still there, {quantity} of {joint!r} needs "
            f"{1 + need[row]:.4g} times its limit. Raise it, or lead the path elsewhere."
        )
    if len(limits.powered):
        return (
            f"no timing was found near s = {failure.s:.6g} within the limits of power. Raise them, or leave them out to see what else "
            "limits the motion."
        )
    best = _conflict(a, b, lo, hi)
    names = " and ".join(f"{limits.names[r][0]} of {limits.names[r][1]!r}" for r in best)
    return f"the path cannot be followed {where}: no speed and acceleration along it meet the limits of {names} together."


def _standstill(paths: Splines | Curves, path: int) -> float | None:
    """Where a path that could not be timed stands still, between the points at which its program looks; None if nowhere."""
    a, b, size, most = 0.0, 1.0, 0.0, 0.0
    for _ in range(8):  # closer and closer to the slowest place
        s = np.linspace(a, b, 401)
        _, dq, ddq = (np.abs(x[:, 0]).max(axis=-1) for x in paths.at(np.full(len(s), path), s, s[:, None]))
        size, most = max(size, float(dq.max())), max(most, float(ddq.max()))
        k = int(np.argmin(dq))
        a, b = float(s[max(k - 1, 0)]), float(s[min(k + 1, 400)])
    rests = dq[k] <= STILL * size and ddq[k] <= 1e-6 * most and 0.0 < s[k] < 1.0
    return float(s[k]) if rests else None


def _conflict(a: np.ndarray, b: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> tuple[int, ...]:
    """The rows that are closest to contradicting each other at x = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack([lo / a, hi / a])
    low, high = np.nanmin(ends, axis=0), np.nanmax(ends, axis=0)
    i, j = int(np.argmax(low)), int(np.argmin(high))
    return (i,) if i == j else (i, j)
