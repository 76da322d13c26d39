"""Inverse kinematics: configurations that bring frames to targets, for many targets at once.

Every target is tried from several starts, each the nearest of some configurations drawn at random, until one leads to it
(`levenberg.py`). Natively the steps of all targets run in one kernel; Python only sorts out those that have arrived, and starts the
others again. Those that none of the starts solves are followed to the nearest pose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_robot, positive, takes
from ..arrays import Array, ArrayLike, is_deferred, stack, to_numpy
from ..errors import CoadjointError
from ..families import Family, built, number_axes
from ..kernel.runtime.function import run_steps
from ..memo import recent
from ..robot.robot import Robot
from ..scale.deferred import lazily
from .levenberg import clamped, descend, search
from .nearest import converged_to_nearest, slope
from .poses import pose
from .starts import closest, features, table
from .targets import Target, core_of, residual

ROUNDS = (8, 4, 4)
"""Numbers of steps after which targets that are reached are removed; nearly all that are reached at all need no more."""

TOGETHER = 1024
"""The number of targets iterated together: few enough for the cache, many enough to make Python's overhead small."""

DESCENT, DESCENTS = 30, 10
"""Steps of a descent to the nearest pose, and how often, each with Newton's steps behind, it is tried."""


@dataclass(frozen=True, eq=False, repr=False)
class InverseKinematics:
    """The result for every target of the batch.

    q (..., nq): a configuration within the limits; where `success` (...) is False, the one whose poses are nearest of all that were
    tried. poses (..., targets, 4, 4) are those of the frames there; angles and distances (..., targets) are the remaining errors in
    the chosen rows, in radians and metres. starts (...): how many starts were used.
    """

    q: np.ndarray
    success: np.ndarray
    poses: np.ndarray
    angles: np.ndarray
    distances: np.ndarray
    starts: np.ndarray

    @property
    def pose(self) -> np.ndarray:
        """The pose (..., 4, 4) reached by the only frame that has a target."""
        if self.poses.shape[-3] != 1:
            raise CoadjointError(f"{self.poses.shape[-3]} frames have targets; `poses` has them all, in the order of the targets.")
        return self.poses[..., 0, :, :]

    def __repr__(self) -> str:
        return f"<InverseKinematics: {self}>"

    def __str__(self) -> str:
        if is_deferred(self.success):
            return f"targets {self.success.shape}, not computed yet"
        total, solved = self.success.size, int(self.success.sum())
        head = f"{solved} of {total} reached"
        if solved == total:
            return head
        left = ~self.success
        return f"{head}; of the others the farthest is off by {self.distances[left].max():.3g} m, {self.angles[left].max():.3g} rad"


@lazily("nq", "", "target 4 4", "target", "target", "", target=core_of, q0="nq", parameters=number_axes)
@takes(robot=a_robot, tolerance=positive)
def inverse_kinematics(
    robot: Robot,
    target: Any,
    frame: str | None = None,
    *,
    rows: Sequence[int] | None = None,
    q0: ArrayLike | None = None,
    starts: int = 50,
    tolerance: float = 1e-9,
    seed: int = 0,
    parameters: Mapping[str, Array] | None = None,
    threads: int | None = None,
) -> InverseKinematics:
    """Configurations within the joint limits that bring a frame to its target, or as near as they can.

    target: poses (..., 4, 4) or positions (..., 3) of `frame`, of which `rows` may choose some (see `Target`); or a `Target`, or a list
    of them that are to be reached together, whose batch axes broadcast. q0 (..., nq): the first start; others are drawn at random with
    `seed`. Joints that move none of the frames stay at q0 (at home if None). starts: at most so many. tolerance: of every angle (rad)
    and distance (m). parameters {name: (..., numbers)}: numbers of the robot that differ from target to target, named as for
    `coadjoint.compile`, such as {"lengths": (1000, n)}; their batch axes broadcast with those of the targets.

    A robot that cannot reach a target gets the nearest pose: one that is stationary for Σ (weight · difference)², reached from the best
    of all starts. Limits of planar and free joints are kept, but such a joint that meets one may stop short of the nearest. It computes
    with, and returns, NumPy arrays.
    """
    targets = _targets(robot, target, frame, rows)
    if robot.nv == 0:
        raise CoadjointError(f"robot {robot.name!r} has no joint that moves; there is nothing to solve for.")
    if isinstance(starts, bool) or not isinstance(starts, int | np.integer) or starts < 1:
        raise CoadjointError(f"starts is {starts!r}; expected a whole number, 1 or more.")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise CoadjointError(f"seed is {seed!r}; expected a whole number, 0 or more.")
    family = Family(robot, parameters)
    batches = {f"target of {x.frame!r}": x.to.shape[: -2 if x.size == 12 else -1] for x in targets}
    rest = clamped(robot, robot.neutral())
    if q0 is not None:
        q0 = np.asarray(robot._checked(to_numpy(q0, "q0"), "q0", robot.nq), dtype=float)
        if not np.all(np.isfinite(q0)):
            raise CoadjointError("q0 has entries that are not finite.")
        batches["q0"] = q0.shape[:-1]
    batch = family.batch(**batches)
    goal = np.concatenate([*(x.flat(batch) for x in targets), family.flat(batch)], axis=-1)
    first = (
        None
        if q0 is None
        else np.array(clamped(robot, robot.normalize(np.broadcast_to(q0, (*batch, robot.nq)).reshape(-1, robot.nq))))
    )
    solver = _Solver(
        family, targets, goal, first if first is not None else np.broadcast_to(rest, (len(goal), robot.nq)), tolerance, threads
    )
    for k in range(starts):
        if not len(solver.open):
            break
        solver.start(solver.q.__getitem__ if k == 0 and first is not None else solver.nearest(k, seed))
    solver.approach()
    return solver.result(batch)


def _targets(robot: Robot, target: Any, frame: str | None, rows: Sequence[int] | None) -> list[Target]:
    several = isinstance(target, Sequence) and len(target) > 0 and all(isinstance(x, Target) for x in target)
    if isinstance(target, Target) or several:
        if frame is not None or rows is not None:
            raise CoadjointError("a Target has its own frame and rows; leave out `frame` and `rows`.")
        return [x.checked(robot) for x in ([target] if isinstance(target, Target) else target)]
    if frame is None:
        raise CoadjointError(
            "no frame is given; name the frame that is to reach the target, as in inverse_kinematics(robot, T, 'tip')."
        )
    return [Target(frame, target, rows).checked(robot)]


class _Solver:
    """The targets of one call: what was found so far, and which of them are still open."""

    def __init__(
        self, family: Family, targets: list[Target], goal: np.ndarray, rest: np.ndarray, tolerance: float, threads: int | None
    ) -> None:
        self.family, self.robot = family, (robot := family.robot)
        self.targets, self.goal, self.tolerance, self.threads = targets, goal, tolerance, threads
        n = len(goal)
        self.q = np.array(rest)
        self.cost, self.worst = np.full(n, np.inf), np.full(n, np.inf)
        self.starts = np.zeros(n, dtype=int)
        self.open = np.arange(n)
        self.moving = _moving(robot, targets)
        self.rest = rest[..., ~self.moving]

    def nearest(self, k: int, seed: int) -> Callable[[np.ndarray], np.ndarray]:
        """A function that returns, for targets of these indices, the nearest configurations of table k."""
        configurations, there = table(self.robot, self.targets, k, seed)

        def starting(index: np.ndarray) -> np.ndarray:
            q: np.ndarray = configurations[closest(features(self.targets, self.goal[index]), there)]
            if not self.moving.all():
                q[:, ~self.moving] = self.rest[index]
            return q

        return starting

    def start(self, starting: Callable[[np.ndarray], np.ndarray]) -> None:
        """Search from a configuration for every open target; those that arrive are closed."""
        take = search_kernel(self.family, self.targets, search, ("goal",))
        self.starts[self.open] += 1
        still = []
        for k in range(0, len(self.open), TOGETHER):
            left = self.open[k : k + TOGETHER]
            q, goal = starting(left), self.goal[left]
            for steps in ROUNDS:
                qs, states = np.empty((len(left), steps + 1, self.robot.nq)), np.empty((len(left), steps, 2))
                qs[:, 0] = q
                _run(take, [qs[:, :-1], goal], [qs[:, 1:], states], self.threads)
                cost, worst = states[:, -1].T
                self._keep(left, qs[:, -2], cost, worst)
                on = ~(worst <= self.tolerance * self.tolerance)
                left, q, goal = left[on], qs[on, -1], goal[on]
                if not len(left):
                    break
            still.append(left)
        self.open = np.concatenate(still)

    def _keep(self, index: np.ndarray, q: np.ndarray, cost: np.ndarray, worst: np.ndarray) -> None:
        """Store configurations that are better than before, and close the targets that are reached; a cost of NaN is ignored."""
        better = (cost < self.cost[index]) | (worst <= self.tolerance * self.tolerance)
        index = index[better]
        self.q[index], self.cost[index], self.worst[index] = q[better], cost[better], worst[better]

    def approach(self) -> None:
        """Descend, for targets that are still open, from the best configuration to the nearest pose: first by damped steps, then by
        Newton's method.
        """
        down = search_kernel(self.family, self.targets, descend, ("trial", "state", "goal"))
        newton = search_kernel(self.family, self.targets, slope, ("goal",))
        left = self.open
        for _ in range(DESCENTS):
            if not len(left):
                break
            goal, shape = self.goal[left], (len(left), DESCENT + 1)
            qs, trials, states = (np.empty((*shape, n)) for n in (self.robot.nq, self.robot.nq, 4))
            qs[:, 0] = trials[:, 0] = self.q[left]
            states[:, 0, 0], states[:, 0, 1:] = 1.0, np.inf
            _run(down, [qs[:, :-1], trials[:, :-1], states[:, :-1], goal], [qs[:, 1:], trials[:, 1:], states[:, 1:]], self.threads)
            self.q[left], self.cost[left], self.worst[left] = qs[:, -1], states[:, -1, 1], states[:, -1, 2]
            on = self.worst[left] > self.tolerance * self.tolerance
            left, goal = left[on], goal[on]
            q, state, flat = converged_to_nearest(self.robot, self.q[left], goal, newton)
            self.q[left], self.cost[left], self.worst[left] = q, state[:, 0], state[:, 1]
            left = left[~flat & (state[:, 1] > self.tolerance * self.tolerance)]

    def result(self, batch: tuple[int, ...]) -> InverseKinematics:
        left, poses = search_kernel(self.family, self.targets, reached_pose, ("goal",))(self.q, self.goal)
        left, poses = np.sqrt(left).reshape(*batch, len(self.targets), 2), poses.reshape(*batch, len(self.targets), 4, 4)
        q = self.q.reshape(*batch, self.robot.nq)
        return InverseKinematics(
            q,
            np.asarray((left <= self.tolerance).all((-1, -2))),
            poses,
            left[..., 0],
            left[..., 1],
            self.starts.reshape(batch),
        )


def reached_pose(robot: Robot, q: Array, goal: Array, targets: Sequence[Target]) -> tuple[Array, Array]:
    """The remaining errors (2 targets) and the poses (targets, 4, 4) of the frames."""
    return residual(robot, q, goal, targets)[2], stack([pose(robot, q, x.frame) for x in targets], axis=0)


def search_kernel(family: Family, targets: list[Target], fn: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    """The compiled function of these targets: (q, *names) -> …; targets that differ only in their numbers have the same.

    The numbers that differ from robot to robot stand behind those of the goal.
    """
    robot, n = family.robot, sum(x.size for x in targets)

    def run(q: Array, *given: Array) -> Any:
        *others, goal = given
        return fn(family.member(goal[n:]), q, *others, goal[:n], targets)

    sizes = {"q": robot.nq, "trial": robot.nq, "state": 4, "goal": n + family.size}
    shapes = {name: (sizes[name],) for name in ("q", *names)}
    key = (fn, family.names, *(x.key for x in targets))
    return recent(robot, key, lambda: built(robot, run, shapes, fn.__name__.strip("_")))


def _run(take: Callable[..., Any], inputs: list[np.ndarray], outputs: list[np.ndarray], threads: int | None) -> None:
    """All steps: inputs (N, steps, …) but the last, the targets (N, …), whose results (N, steps, …) are inputs of the next step."""
    *moving, goal = inputs
    targets = np.broadcast_to(goal[:, None], (len(goal), outputs[0].shape[1], goal.shape[-1]))
    run_steps(take, [*moving, targets], outputs, threads)


def _moving(robot: Robot, targets: list[Target]) -> np.ndarray:
    """True for coordinates of q (nq,) that move one of the frames."""
    moving = np.zeros(robot.nq, dtype=bool)
    for target in targets:
        for link in robot.path(robot.frame(target.frame)[0]):
            moving[robot._q_slices[link]] = True
    return moving
