"""Problems of multiple shooting from what a user gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import CoadjointError
from .between_nodes import EXCEEDED, drawn_of
from .drives import Drives, OpenChain
from .interior_point import Solution
from .motion_result import Conditions, OptimalMotion, OptimalMotions
from .multiple_shooting import Flight, Shots
from .rows import Coordinates, Rows
from .stages import DYNAMIC, Cost, Power
from .transcription import Transcription

FITTED = 8
"""The number of times that joint forces are fitted to the motion at the beginning."""
FINER = 3
"""The largest number of halvings of the integrator's steps where states are off by more than limits may be exceeded."""
GOING = 1e-6
"""The error of motions that the search goes on from in shorter steps."""
HINT = 'take transcription="splines" or "collocation"'


def check_shots(
    drives: Drives,
    costs: Sequence[tuple[float, Cost]],
    limits: Sequence[Rows],
    spans: int,
    points: Sequence[tuple[float, np.ndarray]],
    task: bool,
) -> None:
    """An error for what shooting cannot do."""
    if not isinstance(drives, OpenChain):
        raise CoadjointError(f"shooting goes without constraints=; {HINT}.")
    if task:
        raise CoadjointError(f"a task as goal is not there in shooting; give a configuration, or {HINT}.")
    jerks = any(isinstance(x, Power) and x.order == 3 for _, x in costs)
    if jerks or any(isinstance(x, Coordinates) and x.order == 3 for x in limits):
        raise CoadjointError(f"jerk is not there in shooting, whose joint forces are linear in every span; {HINT}.")
    for s, _ in points:
        if abs(s * spans - round(s * spans)) > 1e-9:
            raise CoadjointError(
                f"via has the time {s:g}, which is at no node; shooting has {spans} spans: take a multiple of 1/{spans}, or other spans."
            )


def shots_of(problem: Transcription, motions: Sequence[OptimalMotion]) -> Shots:
    """Problems without ends that begin with motions of splines."""
    T, control = np.array([one.duration for one in motions]), np.array([one.control_points for one in motions])
    spline, n, s = problem.spline, problem.robot.nv, np.linspace(0.0, 1.0, problem.spline.spans + 1)
    stage = spline.stage(spline.at(s), control, T)[:, :, :DYNAMIC]
    tau = problem.drives.tau(*(np.ascontiguousarray(stage[:, :, k]).reshape(-1, n) for k in range(DYNAMIC)))
    begin = np.concatenate([stage[:, :, :2], tau.reshape(len(T), len(s), 1, n)], axis=2)
    nothing = np.zeros((0, *begin.shape[1:])), np.zeros((len(T), 0))
    costs, free = problem.costs, problem.free_time
    shots = Shots(problem.robot, spline.spans, costs, problem.time_weight, problem.limits, begin, T, free, *nothing, [])
    return replace(shots, begin=_fitted(shots), drawn=drawn_of(problem.limits, len(T), len(shots.nodes)))


def _fitted(shots: Shots) -> np.ndarray:
    """`begin` with joint forces for which states arrive nearest to the next node, by Levenberg and Marquardt's method.

    The smooth motion's forces at the nodes lead elsewhere where a light link follows every force that is linear instead of curved.
    """
    (B, K, _, n), everyone = shots.begin.shape, np.arange(len(shots.begin))
    rate = np.stack([(K - 1) / shots.durations, np.ones(B)], axis=1)[:, None, :, None]  # a distance is a velocity for a span

    def gaps(begin: np.ndarray) -> tuple[Flight, np.ndarray]:
        here = shots.at(shots.join(begin, shots.durations), everyone)
        return here, (rate * here.e.reshape(B, K - 1, 2, n)).reshape(B, -1)

    begin, damping = shots.begin.copy(), np.full(B, 1e-3)
    here, gap = gaps(begin)
    for _ in range(FITTED):
        E = here.equality_jacobian[:, :, : K * 3 * n].reshape(B, K - 1, 2, n, K, 3, n)[..., 2, :]
        E = (rate[..., None, None] * E).reshape(B, -1, K * n)
        H = E.swapaxes(1, 2) @ E
        H += (damping[:, None] * np.einsum("bii->bi", H) + 1e-12)[:, None] * np.eye(K * n)
        new = begin.copy()
        new[:, :, 2] -= np.linalg.solve(H, E.swapaxes(1, 2) @ gap[..., None]).reshape(B, K, n)
        there, after = gaps(new)
        with np.errstate(over="ignore", invalid="ignore"):
            better = (after**2).sum(1) < (gap**2).sum(1)
        damping = np.where(better, 0.1, 10.0) * damping
        begin[better] = new[better]
        here, gap = (there, after) if better.all() else gaps(begin)
    return begin


def between_ends(
    shots: Shots,
    start: np.ndarray,
    end: np.ndarray,
    velocities: Sequence[np.ndarray | None],
    points: Sequence[tuple[float, np.ndarray]],
    periodic: bool,
) -> Shots:
    """The problems with ends (B, n), velocities there, points on the way, and the same velocities and forces at both ends."""
    n, last = shots.robot.nv, shots.spans
    rows, right = [], []

    def ask(value: np.ndarray, *places: tuple[int, int, float]) -> None:
        for i in range(n):
            row = np.zeros(shots.begin.shape[1:])
            for node, order, factor in places:
                row[node, order, i] = factor
            rows.append(row)
            right.append(value[:, i])

    ask(start, (0, 0, 1.0))
    ask(end, (last, 0, 1.0))
    for node, v in zip((0, last), velocities, strict=True):
        if v is not None:
            ask(v, (node, 1, 1.0))
    for s, q in points:
        ask(q, (round(s * last), 0, 1.0))
    if periodic:
        for order in (1, 2):
            ask(np.zeros_like(start), (0, order, 1.0), (last, order, -1.0))
    return replace(shots, rows=np.array(rows), right=np.array(right).T)


def continued(shots: Shots, guess: Any) -> Shots:
    """The problems as a guess left them that solved the same ones by shooting, perhaps of another robot: drawn limits and steps too."""
    earlier = [
        one.conditions for one in (guess if isinstance(guess, OptimalMotions) else [guess]) if isinstance(one, OptimalMotion)
    ]
    known = [one for one in earlier if one is not None and isinstance(one.problem, Shots)]
    parts = [one.problem for one in known if isinstance(one.problem, Shots)]
    if len(parts) != len(shots.durations) or not all(one.is_like(shots.part(slice(k, k + 1))) for k, one in enumerate(parts)):
        return shots
    nodes, T = zip(*(part.split(one.x, np.zeros(1, dtype=int)) for part, one in zip(parts, known, strict=True)), strict=True)
    drawn = [np.concatenate(x) for x in zip(*(part.drawn for part in parts), strict=True)]
    steps = max(part.steps for part in parts)
    return replace(shots, begin=np.concatenate(nodes), durations=np.concatenate(T), drawn=drawn, steps=steps)


def flown(shots: Shots, solved: Callable[[Shots, Solution | None], list[OptimalMotion]]) -> list[OptimalMotion]:
    """The motions of these problems, in steps so short that twice as many lead to the same states."""
    motions = solved(shots, None)
    for _ in range(FINER):
        found = [one.conditions for one in motions if one.conditions is not None]
        at = [shots.at(one.x, np.array([k])) for k, one in enumerate(found)]
        off = np.array([float(shots.missed(here)[0]) for here in at])
        going = np.array([here.e.size == 0 or np.abs(here.e).max() < EXCEEDED for here in at])
        if not (going & (off > EXCEEDED)).any() or any(one.message.startswith("interrupted") for one in motions):
            break
        begin, T = np.concatenate([here.nodes for here in at]), np.concatenate([here.T for here in at])
        shots = replace(shots, begin=begin, durations=T, steps=2 * shots.steps)
        motions = solved(shots, _earlier(found, motions))
    return motions


def _earlier(found: Sequence[Conditions], motions: Sequence[OptimalMotion]) -> Solution | None:
    """The solutions to go on from, if all are some."""
    if not all(one.error < GOING for one in motions):
        return None
    x, s, z, y = (np.concatenate([getattr(one, name) for one in found]) for name in "xszy")
    error, b = np.array([one.error for one in motions]), len(x)
    mu = (s * z).max(1, initial=0.0)
    tables = [[dict(row) for row in one.table] for one in motions]
    return Solution(x, s, z, y, mu, error, np.ones(b, dtype=bool), [""] * b, tables)
