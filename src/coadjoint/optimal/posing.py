"""The arguments of an optimal control problem, checked, as arrays of P problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import to_numpy
from ..dynamics import gravity_force
from ..errors import CoadjointError, ShapeError, unknown
from ..robot.robot import Robot
from .by_control import ByControl
from .by_velocity import goes_by_velocity
from .cost_sums import traced_sum
from .costs import Term
from .open_chains import check_open
from .shooting import Costs
from .workspace import Path, Problem, Span, configuration_places

if TYPE_CHECKING:
    from .optimal_control import Stage

NAMES = ("q", "v", "u")
INSIDE = 1e-9
"""The largest violation of the limits at a start."""
FITS = 1e-6
"""The largest gap of a guess whose states fit its controls."""


def numbers(x: Any, name: str, expected: str) -> np.ndarray:
    """Finite real numbers."""
    given = to_numpy(x, name)
    try:
        found = np.asarray(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ShapeError(f"{name} is {type(x).__name__}; expected {expected}.") from None
    if not np.isfinite(found).all():
        raise CoadjointError(f"{name} has entries that are not finite numbers.")
    return found


def actuation_matrix(robot: Robot, actuation: Any) -> np.ndarray:
    """B (nv, m)."""
    if not robot.nv:
        raise CoadjointError(f"robot {robot.name!r} has no joint that moves.")
    check_open(robot, "optimal_control", "`optimal_motion(…, constraints=coadjoint.Constraint.loops(robot))` moves closed chains.")
    if actuation is None:
        return np.eye(robot.nv)
    if isinstance(actuation, str):
        actuation = [actuation]
    if isinstance(actuation, Sequence) and all(isinstance(x, str) for x in actuation):
        places: list[int] = []
        for joint in actuation:
            if joint not in robot.joint_names:
                raise unknown("joint", joint, list(robot.joint_names))
            places += range(robot.nv)[robot.v_slice(joint)]
        B = np.eye(robot.nv)[:, places]
    else:
        B = numbers(actuation, "actuation", f"a matrix ({robot.nv}, m) or names of joints")
    if B.ndim != 2 or B.shape[0] != robot.nv or not B.shape[1]:
        raise ShapeError(f"actuation has shape {B.shape}; expected ({robot.nv}, m) with m of 1 or more, or names of joints.")
    return np.ascontiguousarray(B)


def start_states(robot: Robot, start: Any, velocity: Any) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """q (P, nq), v (P, nv) and the batch axes of the problems."""
    if isinstance(start, tuple) and len(start) == 2 and velocity is None and np.ndim(start[0]):
        start, velocity = start
    q = numbers(start, "start", f"a configuration (..., {robot.nq})")
    v = np.zeros(robot.nv) if velocity is None else numbers(velocity, "start_velocity", f"(..., {robot.nv})")
    for x, size, name in ((q, robot.nq, "start"), (v, robot.nv, "start_velocity")):
        if x.ndim < 1 or x.shape[-1] != size:
            raise ShapeError(f"{name} has shape {x.shape}; expected (..., {size}) for robot {robot.name!r}.")
    try:
        batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    except ValueError:
        raise ShapeError(
            f"start {q.shape} and start_velocity {v.shape} do not go together: leading axes must be equal or 1."
        ) from None
    if 0 in batch:
        raise ShapeError(f"start has shape {q.shape}: there is no problem to solve.")
    q = np.asarray(robot.normalize(q))
    return *(np.broadcast_to(x, (*batch, x.shape[-1])).reshape(-1, x.shape[-1]) for x in (q, v)), batch  # type: ignore[return-value]


def control_limits(robot: Robot, B: np.ndarray, effort: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """lower and upper (m,), or None."""
    m = B.shape[1]
    if effort is None:
        return None
    if isinstance(effort, str):
        if effort != "robot":
            raise CoadjointError(f"effort is {effort!r}; expected 'robot', numbers, a pair (lower, upper) or None.")
        if not (((B == 0) | (B == 1)).all() and (B.sum(0) == 1).all()):
            raise CoadjointError("effort='robot' goes with motors at joints; for this actuation matrix give the limits of u, (m,).")
        upper = np.asarray(robot.effort_limit, dtype=float)[B.argmax(0)]
        if not np.isfinite(upper).any():
            names = [robot.v_names[k] for k in B.argmax(0)]
            raise CoadjointError(f"robot {robot.name!r} has no effort limits for {', '.join(names)}; give effort as numbers.")
        lower = -upper
    elif isinstance(effort, tuple) and len(effort) == 2:
        lower, upper = (_bounds(x, name, m) for x, name in zip(effort, ("lower", "upper"), strict=True))
    else:
        upper = _bounds(effort, "effort", m)
        lower = -upper
    if not (lower < upper).all():
        k = int(np.argmin(lower < upper))
        raise CoadjointError(f"limits of control {k} leave nothing between: lower {lower[k]:g}, upper {upper[k]:g}.")
    return lower, upper


def state_limits(robot: Robot, position: Any, velocity: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """lower and upper (2 nv,) of (q, v), infinite where there are none; None where there are none at all."""
    if position is None and velocity is None:
        return None
    own = {"position": (robot.lower, robot.upper), "velocity": (-np.asarray(robot.velocity_limit), robot.velocity_limit)}
    found = [np.full(2 * robot.nv, -np.inf), np.full(2 * robot.nv, np.inf)]
    places = configuration_places(robot)
    for given, name, first in ((position, "position", 0), (velocity, "velocity", robot.nv)):
        if given is None:
            continue
        if isinstance(given, str):
            if given != "robot":
                raise CoadjointError(f"{name} is {given!r}; expected 'robot', numbers, a pair (lower, upper) or None.")
            pair = [np.asarray(x, dtype=float) for x in own[name]]
            if not any(np.isfinite(x).any() for x in pair):
                raise CoadjointError(f"robot {robot.name!r} has no {name} limits; give {name} as numbers.")
        elif isinstance(given, tuple) and len(given) == 2:
            pair = [_bounds(x, f"{side} {name}", robot.nv, "freedoms") for x, side in zip(given, ("lower", "upper"), strict=True)]
        else:
            upper = _bounds(given, name, robot.nv, "freedoms")
            pair = [-upper, upper]
        for k, (lower, upper) in enumerate(zip(*pair, strict=True)):
            if first == 0 and places[k] < 0:
                if not isinstance(given, str) and (np.isfinite(lower) or np.isfinite(upper)):
                    raise CoadjointError(
                        f"{robot.v_names[k]} moves in a group, which has no limits of position; give infinite ones there."
                    )
                continue
            if not lower < upper:
                raise CoadjointError(
                    f"{name} limits of {robot.v_names[k]} leave nothing between: lower {lower:g}, upper {upper:g}."
                )
            found[0][first + k], found[1][first + k] = lower, upper
    return found[0], found[1]


def check_start(problem: Problem) -> None:
    """Raise an error if a start is outside the limits of states."""
    if problem.low_x is None or problem.high_x is None:
        return
    robot, low, high = problem.robot, problem.low_x, problem.high_x
    x = np.concatenate([problem.q0[:, configuration_places(robot)], problem.v0], axis=-1)
    out = (x < low - INSIDE) | (x > high + INSIDE)
    if out.any():
        k, i = (int(j) for j in np.argwhere(out)[0])
        what = "position" if i < robot.nv else "velocity"
        raise CoadjointError(
            f"the start{f' of problem {k}' if len(x) > 1 else ''} has {what} {x[k, i]:.6g} at {robot.v_names[i % robot.nv]}, outside its "
            f"limits {low[i]:.6g} … {high[i]:.6g}; start inside them, or widen them."
        )


def _bounds(x: Any, name: str, m: int, what: str = "controls") -> np.ndarray:
    given = to_numpy(x, name)
    try:
        found = np.asarray(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ShapeError(f"{name} of the {what} is {type(x).__name__}; expected a number or ({m},).") from None
    if found.shape not in ((), (m,)) or np.isnan(found).any():
        raise ShapeError(f"{name} of the {what} has shape {found.shape}; expected a number or ({m},), not NaN.")
    return np.array(np.broadcast_to(found, m))


def posed(
    robot: Robot,
    stages: Sequence[Stage],
    terminal: Sequence[Term],
    start: Any,
    start_velocity: Any,
    *,
    actuation: Any,
    effort: Any,
    position: Any,
    velocity: Any,
    method: str,
    guess: Any,
    threads: int | None,
) -> tuple[Problem, Path, tuple[int, ...]]:
    """The problem of these arguments of `optimal_control`, its first trajectory, and its batch axes."""
    B = actuation_matrix(robot, actuation)
    q0, v0, batch = start_states(robot, start, start_velocity)
    box = control_limits(robot, B, effort)
    states = state_limits(robot, position, velocity)
    problem = _shooting_problem(robot, stages, terminal, B, method, q0, v0, batch, box, states, threads)
    path = first_path(problem, guess, batch)
    sums = (*(s.costs for s in stages), terminal)
    check_finite(problem, path, [", ".join(x.name for x in costs) for costs in sums])
    return chosen_form(problem, path, guess), path, batch


def _shooting_problem(
    robot: Robot,
    stages: Sequence[Stage],
    terminal: Sequence[Term],
    B: np.ndarray,
    method: str,
    q0: np.ndarray,
    v0: np.ndarray,
    batch: tuple[int, ...],
    box: tuple[np.ndarray, np.ndarray] | None,
    states: tuple[np.ndarray, np.ndarray] | None,
    threads: int | None,
) -> Problem:
    m, spans, start = B.shape[1], [], 0
    for stage in stages:
        total, reads = traced_sum(robot, m, stage.costs)
        rows = _rows([stage.dt[:, None], *reads], batch, stage.steps, stage.costs)
        spans.append(Span(ByControl(robot, total, B, method, box is not None), start, start + stage.steps, rows))
        start += stage.steps
    total, reads = traced_sum(robot, m, terminal)
    last = _rows([np.zeros((1, 1)), *reads], batch, 1, terminal)[:, 0]
    low, high = (None, None) if box is None else box
    low_x, high_x = (None, None) if states is None else states
    return Problem(robot, spans, Costs(robot, total, B), last, q0, v0, low, high, low_x, high_x, threads)


def _rows(parts: Sequence[np.ndarray], batch: tuple[int, ...], steps: int, costs: Sequence[Term]) -> np.ndarray:
    """The numbers (P or 1, steps, n) of all steps of all problems."""
    for x in parts:
        lead = x.shape[:-1]
        whole = (*batch, steps)
        fits = len(lead) <= len(whole) and all(a in (1, b) for a, b in zip(lead[::-1], whole[::-1], strict=False))
        if not fits:
            names = ", ".join(term.name for term in costs)
            raise ShapeError(
                f"a reference or weight among the costs ({names}) has leading axes {lead}; they must broadcast with "
                f"(*problems, steps) = {whole}: references that differ from problem to problem are (..., 1, numbers)."
            )
    same = all(not x.ndim > 2 or int(np.prod(x.shape[:-2])) == 1 for x in parts)
    shape = (1, steps) if same else (*batch, steps)
    whole_parts = [np.broadcast_to(x.reshape(x.shape[-2:]) if same and x.ndim > 2 else x, (*shape, x.shape[-1])) for x in parts]
    found = np.concatenate(whole_parts, axis=-1)
    return np.ascontiguousarray(found.reshape(-1, steps, found.shape[-1]))


def first_path(problem: Problem, guess: Any, batch: tuple[int, ...]) -> Path:
    """States and controls to begin with."""
    robot, N, m = problem.robot, problem.horizon, problem.m
    if guess is None:
        B = problem.spans[0].steps.B
        u = np.asarray(gravity_force(robot, problem.q0)) @ np.linalg.pinv(B).T
        rest = Path(
            np.repeat(problem.q0[:, None], N + 1, axis=1),
            np.repeat(problem.v0[:, None], N + 1, axis=1),
            _within(problem, np.repeat(u[:, None], N, axis=1)),
        )
        # A robot that moves, or that its motors cannot hold, is taken where these controls lead.
        held = np.abs(problem.v0).max(initial=0.0) == 0.0 and np.allclose(rest.u[:, 0] @ B.T, gravity_force(robot, problem.q0))
        return rest if held else rolled(problem, rest.u)
    if isinstance(guess, tuple) and len(guess) == 3:
        found = [numbers(x, f"{name} of the guess", "an array") for x, name in zip(guess, NAMES, strict=True)]
    elif all(hasattr(guess, name) for name in NAMES):
        found = [numbers(getattr(guess, name), f"{name} of the guess", "an array") for name in NAMES]
    else:
        u = _spread(numbers(guess, "guess", f"controls (..., {N}, {m}) or a triple q, v, u"), batch, (N, m), "guess")
        return rolled(problem, _within(problem, u))
    cores = ((N + 1, robot.nq), (N + 1, robot.nv), (N, m))
    q, v, u = (_spread(x, batch, core, f"{name} of the guess") for x, core, name in zip(found, cores, NAMES, strict=True))
    q = np.array(robot.normalize(q), order="C")
    q[:, 0], v[:, 0] = problem.q0, problem.v0
    return Path(q, v, _within(problem, u))


def check_finite(problem: Problem, path: Path, names: Sequence[str]) -> None:
    """Raise an error if a cost is no number along the first trajectory; names: of the sum of each stage, and of the terminal costs."""
    for s, name in zip(problem.spans, names[:-1], strict=True):
        at = slice(s.start, s.stop)
        bad = ~np.isfinite(s.steps.value(path.q[:, at], path.v[:, at], path.u[:, at], s.numbers)[..., 0])
        if bad.any():
            where, k = (int(i) for i in np.argwhere(bad)[0])
            raise CoadjointError(
                f"the cost ({name}) of step {s.start + k} is not a number, or infinite, at the first guess of problem {where}: "
                "the motion of the guess runs away, or the costs are not defined there; give another guess, or keep logarithms and roots "
                "away from their ends."
            )
    none = np.zeros((1, problem.m))
    if not np.isfinite(problem.final.value(path.q[:, -1], path.v[:, -1], none, problem.final_numbers)).all():
        raise CoadjointError(f"the terminal cost ({names[-1]}) is not a number, or infinite, at the end of the first guess.")


def _spread(x: np.ndarray, batch: tuple[int, ...], core: tuple[int, int], name: str) -> np.ndarray:
    if x.shape[-2:] != core or len(x.shape) - 2 > len(batch):
        raise ShapeError(f"{name} has shape {x.shape}; expected (..., {core[0]}, {core[1]}).")
    try:
        return np.broadcast_to(x, (*batch, *core)).reshape(-1, *core).copy()
    except ValueError:
        raise ShapeError(f"{name} has shape {x.shape}; its leading axes do not go with those of the problems, {batch}.") from None


def _within(problem: Problem, u: np.ndarray) -> np.ndarray:
    return u if problem.low is None or problem.high is None else np.clip(u, problem.low, problem.high)


def rolled(problem: Problem, u: np.ndarray) -> Path:
    """The trajectory of given controls (P, N, m)."""
    P, N, robot = problem.count, problem.horizon, problem.robot
    q, v = np.empty((P, N + 1, robot.nq)), np.empty((P, N + 1, robot.nv))
    q[:, 0], v[:, 0] = problem.q0, problem.v0
    with np.errstate(all="ignore"):  # what runs away is told by `check_finite`
        for s in problem.spans:
            for t in range(s.start, s.stop):
                h = np.broadcast_to(s.numbers[:, t - s.start, :1], (P, 1))
                q[:, t + 1], v[:, t + 1] = s.steps.step(q[:, t], v[:, t], u[:, t], h)
    return Path(q, v, u)


def chosen_form(problem: Problem, path: Path, guess: Any) -> Problem:
    """The problem by velocities where that goes, and the states of the guess fit its controls: the velocities say it all."""
    s = problem.spans[0].steps
    if s.method != "euler" or s.limited or not goes_by_velocity(problem.robot, s.B):
        return problem
    if isinstance(guess, tuple) and len(guess) == 3:
        for span in problem.spans:
            for t in range(max(span.start, 1), span.stop):
                h = np.broadcast_to(span.numbers[:, t - span.start, :1], (problem.count, 1))
                q, v = s.step(path.q[:, t], path.v[:, t], path.u[:, t], h)
                if not (np.allclose(q, path.q[:, t + 1], atol=FITS) and np.allclose(v, path.v[:, t + 1], atol=FITS)):
                    return problem
    return problem.by_velocity()
