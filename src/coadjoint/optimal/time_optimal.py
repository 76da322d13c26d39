"""`time_optimal`: the fastest motion along a given path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..arguments import a_robot, takes
from ..arrays import to_numpy
from ..errors import CoadjointError, ShapeError
from ..robot.robot import Robot
from ..words import short
from .collocation import LARGE
from .limits import Limits
from .paths import Curves, Splines, as_paths
from .profile import Failure, bounds_at, solve
from .timing import Timing, Timings

STILL = 1e-9
"""dq/ds, beside its largest value on the path, that is zero."""


@takes(robot=a_robot)
def time_optimal(
    robot: Robot,
    path: Any,
    velocity: Any = None,
    acceleration: Any = None,
    effort: Any = None,
    *,
    reaction: Mapping[str, Any] | None = None,
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
                robot's own limit of velocity and effort, and no limit of acceleration.
    reaction    limits of the wrench through joints, {joint: (6,) moments and forces in the frame of the link it carries}: the grip on a
                payload that `attach` has put there, say.
    start_speed, end_speed
                ds/dt at both ends, inf: as fast as possible.

    The result is the continuous optimum: with x = ṡ² every limit is a row in x and s̈, and the largest feasible x(s) is found with all its
    switching points, to about 1e-10 of the limits, rarely 1e-7; `excess` tells. Bobrow, Dubowsky & Gibson (1985); Pham (2014).
    """
    _check_joints(robot)
    if frame is not None:
        from .poses import joint_path

        path = joint_path(robot, path, frame, q)
    elif q is not None:
        raise CoadjointError("q is where inverse kinematics begins; it is taken with frame=, for a path of poses.")
    paths, single = as_paths(robot, path)
    limits = _limits(robot, velocity, acceleration, effort, reaction)
    start, end = (_speeds(x, name, len(paths)) for x, name in ((start_speed, "start_speed"), (end_speed, "end_speed")))
    start, end, still = _check_motion(paths, start, end)
    if still and len(still) == len(paths):
        raise CoadjointError(f"path {next(iter(still.values()))}")
    profile, failures = solve(limits, paths, start, end, report, still)
    if single:
        for failure in failures:
            raise CoadjointError(explain(limits, paths, failure))
        return Timing(limits, paths, 0, profile)
    errors = {k: f"it {why}" for k, why in still.items()} | {f.path: explain(limits, paths, f) for f in failures}
    return Timings(limits, paths, profile, dict(sorted(errors.items())))


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


def _limits(robot: Robot, velocity: Any, acceleration: Any, effort: Any, reaction: Any) -> Limits:
    none = np.full(robot.nv, np.inf)
    reactions = []
    if reaction is not None and not isinstance(reaction, Mapping):
        raise CoadjointError(f"reaction is {short(reaction)}; expected {{joint: six limits}}.")
    for joint, values in (reaction or {}).items():
        i = robot.joint_index(joint)
        six = _limit(values, f"reaction[{joint!r}]", 6, [f"component {k}" for k in range(6)], none)
        reactions += [(i, k, float(x)) for k, x in enumerate(six) if np.isfinite(x)]
    names = robot.v_names
    limits = Limits(
        robot,
        _limit(velocity, "velocity", robot.nv, names, robot.velocity_limit),
        _limit(acceleration, "acceleration", robot.nv, names, none),
        _limit(effort, "effort", robot.nv, names, robot.effort_limit),
        tuple(reactions),
    )
    if not limits.names:
        raise CoadjointError(
            f"nothing limits the acceleration: robot {robot.name!r} has no limits of effort. Give effort= or acceleration=, as in "
            f"time_optimal(robot, path, acceleration={np.ones(robot.nv).tolist()})."
        )
    return limits


def _limit(given: Any, name: str, size: int, names: Any, default: np.ndarray) -> np.ndarray:
    if given is None:
        return np.asarray(default, dtype=float)
    try:
        found = np.asarray(to_numpy(given, name), dtype=float)
    except (TypeError, ValueError):
        raise CoadjointError(f"{name} is {short(given)}; expected a number, or {size}.") from None
    if found.shape not in ((), (1,), (size,)):
        raise ShapeError(f"{name} has shape {found.shape}; expected one number, or ({size},).")
    found = np.broadcast_to(found, (size,)).astype(float)
    bad = ~(found > 0)
    if bad.any():
        j = int(np.argmax(bad))
        raise CoadjointError(f"{name} of {names[j]} is {found[j]:g}; expected a positive limit, inf where there is none.")
    return found


def _speeds(given: Any, name: str, count: int) -> np.ndarray:
    """ṡ² at an end of every path."""
    try:
        found = np.asarray(to_numpy(given, name), dtype=float)
    except (TypeError, ValueError):
        raise CoadjointError(f"{name} is {short(given)}; expected ds/dt, a number of 0 or more.") from None
    if found.shape not in ((), (count,)) or not np.all(found >= 0):
        raise CoadjointError(f"{name} is {short(given)}; expected ds/dt, a number of 0 or more, or one for each of {count} paths.")
    return np.asarray(np.minimum(np.broadcast_to(found, (count,)) ** 2, LARGE))


def _check_motion(paths: Splines | Curves, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[int, str]]:
    """Speeds at the ends, and which paths stand still, with the place.

    At an end where dq/ds = 0 the robot rests whatever ds/dt is, which is then left free.
    """
    start, end = start.copy(), end.copy()
    still: dict[int, str] = {}
    kinds: dict[int, list[int]] = {}
    for k in range(len(paths)):
        kinds.setdefault(id(paths.breaks(k)), []).append(k)
    for some in kinds.values():  # those with the same breaks together
        s = np.unique(np.concatenate([np.linspace(0.0, 1.0, 65), paths.breaks(some[0])]))
        middle = (s[:-1] + s[1:]) / 2
        places = np.stack([s[:-1], middle, s[1:]], axis=1)
        for first in range(0, len(some), 128):
            which = np.array(some[first : first + 128])
            n, m = len(which), len(middle)
            _, dq, ddq = paths.at(np.repeat(which, m), np.tile(middle, n), np.tile(places, (n, 1)))
            speed, bend = (np.abs(x).max(axis=-1).reshape(n, m, 3) for x in (dq, ddq))
            size, most = speed.max(axis=(1, 2)), bend.max(axis=(1, 2))
            rest = STILL * size[:, None, None]
            dead = (speed <= rest) & (bend <= np.maximum(rest, STILL * most[:, None, None]))
            for i in np.flatnonzero(dead.any(axis=(1, 2))):
                if size[i] == 0:
                    still[int(which[i])] = "does not move: dq/ds = 0 everywhere."
                    continue
                at = places[tuple(np.argwhere(dead[i])[0])]
                still[int(which[i])] = (
                    f"stands still at s = {at:.6g}: dq/ds and d²q/ds² vanish there. Take another parameter, such as the length of the path."
                )
            start[which[speed[:, 0, 0] <= STILL * size]] = LARGE
            end[which[speed[:, -1, -1] <= STILL * size]] = LARGE
    return start, end, dict(sorted(still.items()))


def explain(limits: Limits, paths: Splines | Curves, failure: Failure) -> str:
    """Why a path cannot be timed, with the place and the joint."""
    where = f"at s = {failure.s:.6g}"
    if failure.kind == "start":
        most = np.sqrt(max(failure.value, 0.0))
        return f"start_speed is too high: ds/dt may be at most {most:.9g} there, or the motion cannot be braked in time."
    if failure.kind == "end":
        return f"end_speed cannot be reached: ds/dt is at most {np.sqrt(max(failure.value, 0.0)):.9g} at the end."
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
    best = _conflict(a, b, lo, hi)
    names = " and ".join(f"{limits.names[r][0]} of {limits.names[r][1]!r}" for r in best)
    return f"the path cannot be followed {where}: no speed and acceleration along it meet the limits of {names} together."


def _conflict(a: np.ndarray, b: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> tuple[int, ...]:
    """The rows that are closest to contradicting each other at x = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack([lo / a, hi / a])
    low, high = np.nanmin(ends, axis=0), np.nanmax(ends, axis=0)
    i, j = int(np.argmax(low)), int(np.argmin(high))
    return (i,) if i == j else (i, j)
