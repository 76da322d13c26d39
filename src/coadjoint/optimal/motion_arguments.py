"""The arguments of `optimal_motion`: states, costs, limits and a first guess, checked, with the motions as their first axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..arguments import a_function_of, check_labels, floats, positive
from ..arrays import to_numpy
from ..constraints.chosen import independent
from ..constraints.constraint import Constraint, checked
from ..errors import CoadjointError, ShapeError
from ..memo import recent
from ..robot.robot import Robot
from ..words import short
from .capsules import bodies_of
from .clearance import Clearances
from .drives import ClosedChain, Closure, Drives, OpenChain
from .open_chains import check_open
from .rows import Coordinates, MotorPower, Rows, Torques
from .splines import Spline
from .stages import Cost, Effort, Energy, Forces, Of, Power, action

SHORTEST = 1e-12
"""Seconds that a motion takes, at least: accelerations and their squares are then numbers."""
OPEN = 1e-6
"""The largest gap of constraints at the ends of a motion."""
COSTS = ("effort", "action", "energy", "time", "velocity", "acceleration", "jerk")


def check_joints(robot: Robot) -> None:
    """An error for a robot whose configurations are no vectors."""
    if not robot.nv:
        raise CoadjointError(f"robot {robot.name!r} has no joint that moves.")
    for i, kind in enumerate(robot.kinds):
        if kind.group is not None:
            raise CoadjointError(
                f"joint {robot.links[i].joint.name!r} of robot {robot.name!r} moves in a group; `optimal_motion` takes joints with one "
                "coordinate each. Lock it, or describe it by revolute and prismatic joints."
            )


def configurations(robot: Robot, x: Any, name: str) -> np.ndarray:
    """(..., nq)"""
    check_labels(name, x, robot)
    given = to_numpy(x, name)
    try:
        q = np.asarray(given if x is not None else "None", dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise CoadjointError(f"{name} is {short(x)}; expected a configuration ({robot.nq},).") from None
    if not q.ndim or q.shape[-1] != robot.nq:
        hint = " A pose goes with frame=." if q.shape[-2:] == (4, 4) else ""
        raise ShapeError(f"{name} has shape {q.shape}; expected ({robot.nq},), or (..., {robot.nq}) for many motions.{hint}")
    if not np.isfinite(q).all():
        raise CoadjointError(f"{name} has entries that are not finite numbers.")
    return q


def flat(x: np.ndarray, batch: tuple[int, ...], core: int, name: str) -> np.ndarray:
    """x (..., *core) as (B, *core), for motions of these batch axes."""
    try:
        whole = np.broadcast_to(x, (*batch, *x.shape[x.ndim - core :]))
    except ValueError:
        axes = x.shape[: x.ndim - core]
        raise ShapeError(f"{name} has batch axes {axes}; those of the motions are {batch}. They must be equal or 1.") from None
    return np.array(whole.reshape(int(np.prod(batch)), *x.shape[x.ndim - core :]))


def velocities(robot: Robot, limits: Sequence[Rows], x: Any, name: str) -> np.ndarray | None:
    """(..., nv), or None for free ones."""
    if x is None:
        return None
    given = to_numpy(x, name)
    try:
        v = np.asarray(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        v = np.full(1, np.nan)
    v = np.broadcast_to(v, (robot.nv,)) if not v.ndim else v
    if v.shape[-1] != robot.nv or not np.isfinite(v).all():
        raise ShapeError(f"{name} is {short(x)}; expected a velocity ({robot.nv},), or None for a free one.")
    for rows in limits:
        if isinstance(rows, Coordinates) and rows.order == 1:
            for index in np.argwhere(np.abs(v) > rows.upper * (1.0 + 1e-9))[:1]:
                k = index[-1]
                raise CoadjointError(f"{name} has {v[tuple(index)]:.4g} for {rows.names[k]}, whose limit is {rows.upper[k]:.4g}.")
    return v


def costs_of(robot: Robot, cost: Any, losses: Any = None) -> tuple[list[tuple[float, Cost]], float]:
    """Running costs with their weights, and the weight of time; losses: those of the cost "energy"."""
    wanted = f"expected one of {', '.join(COSTS)}, a function fn(robot, q, v, a), or a mapping of these to weights."
    if not (isinstance(cost, str | Mapping) or callable(cost)) or (isinstance(cost, Mapping) and not cost):
        raise CoadjointError(f"cost is {short(cost)}; {wanted}")
    given = dict(cost) if isinstance(cost, Mapping) else {cost: 1.0}
    if losses is not None and "energy" not in given:
        raise CoadjointError(f'losses is {short(losses)}; it goes with the cost "energy", and there is none.')
    lost = np.ones(robot.nv) if losses is None else _sizes(losses, "losses", robot.nv, "losses in W/(N m)²")
    made: dict[str, Callable[[], Cost]] = {
        "effort": Effort,
        "action": lambda: action(robot),
        "energy": lambda: Energy(lost),
        "velocity": lambda: Power(1),
        "acceleration": lambda: Power(2),
        "jerk": lambda: Power(3),
    }
    found: list[tuple[float, Cost]] = []
    time = 0.0
    for one, weight in given.items():
        if not isinstance(weight, int | float | np.number) or not 0 < weight < np.inf:
            raise CoadjointError(f"the weight of cost {short(one)} is {short(weight)}; expected a positive number.")
        if callable(one):
            found.append((float(weight), Of(robot, a_function_of("robot", "q", "v", "a")(one, "cost"))))
        elif one == "time":
            time = float(weight)
        elif one in made:
            found.append((float(weight), made[one]()))
        else:
            raise CoadjointError(f"cost is {short(one)}; {wanted}")
    return found, time


def limits_of(robot: Robot, given: Mapping[str, Any], own: bool) -> list[Rows]:
    """The limits that are in force: those given, by kind, and where None is given the robot's if `own`."""
    none, names = np.full(robot.nv, np.inf), tuple(robot.v_names)
    defaults = {"velocity": robot.velocity_limit, "effort": robot.effort_limit} if own else {}
    most = {
        name: _sizes(x, name, robot.nv) if x is not None else np.asarray(defaults.get(name, none), dtype=float)
        for name, x in given.items()
        if name != "position"
    }
    lower, upper = (np.asarray(robot.lower, dtype=float), np.asarray(robot.upper, dtype=float)) if own else (-none, none)
    if given["position"] is not None:
        lower, upper = _bounds(given["position"], robot.nv)
    bounds = [(lower, upper), *((-most[name], most[name]) for name in ("velocity", "acceleration", "jerk"))]
    found: list[Rows] = [
        Coordinates(k, low, high, names)
        for k, (low, high) in enumerate(bounds)
        if np.isfinite(low).any() or np.isfinite(high).any()
    ]
    kinds: tuple[tuple[type[Torques] | type[MotorPower], str], ...] = ((Torques, "effort"), (MotorPower, "power"))
    return found + [kind(most[name], names) for kind, name in kinds if np.isfinite(most[name]).any()]


def clearances_of(robot: Robot, obstacles: Any, bodies: Any, clearance: Any, self_collision: Any) -> Clearances | None:
    """The pairs that must keep apart; None if there are none."""
    try:
        least = float(clearance)
    except (TypeError, ValueError, OverflowError):
        least = np.nan
    if not (np.isfinite(least) and least >= 0):
        raise CoadjointError(f"clearance is {short(clearance)}; expected metres, 0 or more.")
    found = bodies_of(robot, obstacles, bodies, bool(self_collision))
    if found is None or not len(found.pairs):
        return None
    key = ("clearances", found.links, found.ends.tobytes(), found.radii.tobytes(), found.pairs.tobytes(), found.names, least)
    made: Clearances = recent(robot, key, lambda: Clearances(robot, found, least))
    return made


def _sizes(x: Any, name: str, n: int, what: str = "limits") -> np.ndarray:
    given = to_numpy(x, name)
    try:
        found = np.asarray(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        found = np.full(0, np.nan)
    if found.shape not in ((), (n,)) or not (found > 0).all():
        raise CoadjointError(f"{name} is {short(x)}; expected positive {what}, a number or ({n},).")
    return np.array(np.broadcast_to(found, (n,)))


def _bounds(position: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(position, tuple | list) or len(position) != 2:
        raise CoadjointError(f"position is {short(position)}; expected (lower, upper).")
    given = [to_numpy(x, "position") for x in position]
    try:
        lower, upper = (np.asarray(x, dtype=float) for x in given)
    except (TypeError, ValueError, OverflowError):
        lower, upper = np.zeros((2, 0))
    if any(x.shape not in ((), (n,)) or np.isnan(x).any() for x in (lower, upper)):
        raise CoadjointError(f"position is {short(position)}; expected (lower, upper), each a number or ({n},).")
    lower, upper = (np.array(np.broadcast_to(x, (n,))) for x in (lower, upper))
    for k in np.flatnonzero(lower >= upper)[:1]:
        raise CoadjointError(f"position has lower {lower[k]:g} and upper {upper[k]:g} for joint {k + 1}; nothing is between them.")
    return lower, upper


def drives_of(robot: Robot, constraints: Any, motors: Any, start: np.ndarray) -> tuple[Drives, Closure | None]:
    """The drives of the robot, and the constraint of its motions; values that the constraint leaves open are those of the first start."""
    if constraints is None:
        check_open(robot, "optimal_motion", "Give constraints=coadjoint.Constraint.loops(robot).")
        if motors is not None:
            raise CoadjointError("motors goes with constraints=; without them every joint has a motor.")
        return OpenChain(robot), None
    constraint = checked(constraints).at(robot, start[0])
    rows, n = constraint.size(robot), robot.nv
    if len(constraint.holonomic_rows(robot)) < rows:
        raise CoadjointError("constraints has rows on velocities alone, such as rolling; `optimal_motion` takes holonomic ones.")
    rank = int(np.linalg.matrix_rank(np.asarray(constraint.jacobian(robot, start[0])), tol=1e-9))
    if rank < rows and robot.loops and constraint == Constraint.loops(robot):  # a loop in a plane has rows that repeat others
        constraint, rows = independent(robot, constraint, start[0]), rank
    if rank < rows:
        raise CoadjointError(
            f"constraints has {rows} rows and only {rank} of them are independent at the start; leave out the others, as by axes=."
        )
    names = list(robot.joint_names) if motors is None else [motors] if isinstance(motors, str) else list(motors)
    own = {k for name in names for k in range(*robot.v_slice(name).indices(n))}
    passive = tuple(k for k in range(n) if k not in own)
    if len(passive) > rows:
        raise CoadjointError(
            f"motors has {n - len(passive)} joints and the mechanism {n - rows} freedoms; name at least as many joints as freedoms."
        )
    return recent(robot, ("closed chain", constraint.identity(robot), passive), lambda: _closed(robot, constraint, passive))


def _closed(robot: Robot, constraint: Constraint, passive: tuple[int, ...]) -> tuple[Drives, Closure | None]:
    return ClosedChain(robot, constraint, passive), Closure(robot, constraint)


def check_closed(closure: Closure | None, q: np.ndarray, name: str) -> None:
    """An error for ends q (B, nq) at which the constraint is open."""
    if closure is None:
        return
    gap = np.abs(np.asarray(closure.value(q))).max()
    if not gap < OPEN:
        raise CoadjointError(
            f"the {name} does not meet the constraints: they are open by {gap:.2g}. Take coadjoint.constraints.assemble(robot, "
            f"constraints, {name})."
        )


def is_position(rows: Rows) -> bool:
    return isinstance(rows, Coordinates) and rows.order == 0


def check_within(drives: Drives, limits: Sequence[Rows], q: np.ndarray, name: str) -> None:
    """An error for ends q (B, nq) of motions that limits forbid."""
    still = np.zeros((len(q), 4, q.shape[1]))
    still[:, 0] = q
    forces = Forces(drives, still)
    for rows in limits:
        if isinstance(rows, Coordinates) and rows.order:
            continue
        value = rows.value(forces)
        for index in np.argwhere((value < rows.lower - 1e-9) | (value > rows.upper + 1e-9))[:1]:
            k, which = index[-1], f" of motion {index[0]}" if len(q) > 1 else ""
            what = f"{rows.names[k]} at {value[tuple(index)]:.4g}"
            if isinstance(rows, Clearances):
                raise CoadjointError(
                    f"the {name}{which} is not clear: the distance of {rows.names[k]} is {value[tuple(index)]:.4g} m and must be at least "
                    f"{rows.lower[k]:.4g}. Give another configuration, other obstacles, thinner bodies= or less clearance=."
                )
            if isinstance(rows, Torques):
                raise CoadjointError(
                    f"the robot cannot rest at the {name}{which}: gravity needs {what}, whose limit is {rows.upper[k]:.4g}. Give "
                    "another effort=, or another configuration."
                )
            raise CoadjointError(
                f"the {name}{which} is outside of the limits: {what}, allowed {rows.lower[k]:.4g} to {rows.upper[k]:.4g}. Give "
                "another configuration, or position=(lower, upper)."
            )


def durations_of(duration: Any, start: np.ndarray, end: np.ndarray, limits: Sequence[Rows], batch: tuple[int, ...]) -> np.ndarray:
    """The durations (B,) given, or those of motions of least jerk at half the speed limits."""
    if duration is None or isinstance(duration, str):
        if duration not in (None, "free"):
            raise CoadjointError(f"duration is {duration!r}; expected a number of seconds, 'free' or None.")
        need = np.full(len(start), 1e-3)
        for rows in limits:
            if isinstance(rows, Coordinates) and rows.order in (1, 2):
                peak = {1: 1.875, 2: 5.7735}[rows.order]
                need = np.maximum(need, (2.0 * peak * np.abs(end - start) / rows.upper).max(1) ** (1.0 / rows.order))
        return np.where(need > 1e-2, need, 1.0)
    seconds = floats(duration, "duration")
    for brief in np.ravel(seconds)[np.ravel((seconds > 0) & (seconds < SHORTEST))][:1]:
        raise CoadjointError(f"duration is {brief:g} s, in which no robot moves; expected at least {SHORTEST:g} s.")
    if seconds.ndim:
        for wrong in seconds[~((seconds > 0) & np.isfinite(seconds))][:1]:
            raise CoadjointError(f"duration has {wrong:g}; expected positive numbers of seconds.")
        return flat(seconds, batch, 0, "duration")
    return np.full(len(start), float(positive(duration, "duration")))


def first_guess(robot: Robot, spline: Spline, guess: Any, start: np.ndarray, end: np.ndarray, batch: tuple[int, ...]) -> np.ndarray:
    """Control points (B, size, n) to begin with: of straight motions of least jerk, or near other motions."""
    s = np.linspace(0.0, 1.0, 4 * spline.size)
    if guess is None:
        points = start[:, None] + (s**3 * (10 - 15 * s + 6 * s**2))[:, None] * (end - start)[:, None]
        return spline.fit(s, points)
    along = to_numpy(guess.q if hasattr(guess, "q") else guess, "guess")
    try:
        given = np.asarray(along, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise CoadjointError(f"guess is {short(guess)}; expected a motion, or configurations (K, {robot.nq}).") from None
    if given.ndim < 2 or given.shape[-1] != robot.nq or given.shape[-2] < 2:
        raise ShapeError(f"guess has shape {given.shape}; expected configurations (K, {robot.nq}) along a motion.")
    if not np.isfinite(given).all():
        raise CoadjointError("guess has entries that are not finite numbers.")
    times = np.asarray(getattr(guess, "time", np.arange(given.shape[-2])), dtype=float)
    at = (times - times[..., :1]) / (times[..., -1:] - times[..., :1])
    given, at = flat(given, batch, 2, "guess"), flat(at, batch, 1, "guess")
    points = [[np.interp(s, t, one[:, k]) for k in range(robot.nq)] for t, one in zip(at, given, strict=True)]
    return spline.fit(s, np.moveaxis(np.array(points), 1, 2))
