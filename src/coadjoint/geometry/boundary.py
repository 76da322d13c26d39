"""Geodesics between two configurations: a search for them, the logarithm, the distance.

The search starts from the straight path in joint coordinates, from the longer way round for joints with rotations, and from
randomly bent paths. All of them are relaxed (`relaxation.py`) to paths that are locally shortest; then multiple shooting finds the
geodesic: the path is cut into pieces, each a geodesic of its own, and Newton's method makes the pieces join.

Guaranteed: every reported geodesic is one, to 1e-10, and so its length is an upper bound of the distance. Not guaranteed: that it
is the shortest of all; no search of this kind can prove it. Relaxed paths along which no geodesic was found are reported too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_generator, a_robot, count_up_to, states, takes
from ..arrays import ArrayLike
from ..dynamics.composite import mass_matrix
from ..errors import CoadjointError
from ..robot.robot import Robot
from . import flow
from .flow import GeodesicError
from .geodesics import geodesic
from .metric import inner_product
from .relaxation import STEPS as NODES
from .relaxation import energy, relaxed

PIECES = 6
ITERATIONS = 25
STEPS = 12
"""Integration steps per piece in the coarse phase of the search."""
FAST = 1e6
"""A velocity beyond this has passed a singularity of the metric."""
ROUGHLY, JOINED = 1e-5, 1e-10
"""Pieces join if q and v agree to this, relative to 1 + |v|: in the coarse phase, and at the end."""
STEP = 1e-5
"""The step of the central differences for the Jacobian: it affects the rate of convergence of Newton's method, not its limit."""
ATTEMPTS = 12
ALIKE = 5e-3
"""Paths that stay this close to each other count as one, in radians and metres."""
SHORTER = 1e-4
"""A path counts as shorter than another only by more than this fraction: less may be the error of piecewise straight paths."""


@dataclass(frozen=True)
class GeodesicsBetween:
    """The result of a search for geodesics from `start` to `goal`; each takes a unit of time."""

    robot: Robot
    start: np.ndarray
    goal: np.ndarray
    velocities: np.ndarray
    """(found, nv): the velocity at the start of each, the shortest first."""
    lengths: np.ndarray
    """(found,)"""
    stable: np.ndarray
    """(found,): whether it is locally the shortest. If not, there is a conjugate point on it."""
    tried: int
    """The number of paths from which the search started."""
    failures: tuple[str, ...]
    """The reasons why the other paths led to no geodesic."""
    unresolved: tuple[float, ...]
    """Lengths of relaxed paths along which no geodesic was found."""

    @property
    def found(self) -> int:
        return len(self.lengths)

    def __repr__(self) -> str:
        shortest = f", the shortest of length {self.lengths[0]:.6g}" if self.found else ""
        return f"<GeodesicsBetween of {self.robot.name!r}: {self.found} found in {self.tried} attempts{shortest}>"

    def __str__(self) -> str:
        if not self.found:
            why = "; ".join(sorted(set(self.failures)))
            return f"no geodesic found from {self.start} to {self.goal} in {self.tried} attempts: {why}"
        lengths = ", ".join(f"{x:.6g}" for x in self.lengths)
        count = "one geodesic" if self.found == 1 else f"{self.found} geodesics"
        return f"{count} found from {self.start} to {self.goal} in {self.tried} attempts, of length {lengths}"


@takes(robot=a_robot, attempts=count_up_to(10**4))
def geodesics_between(robot: Robot, start: ArrayLike, goal: ArrayLike, attempts: int = ATTEMPTS, rng: Any = 0) -> GeodesicsBetween:
    """Search for geodesics from one configuration (nq,) to another, starting from the straight path and from others, `attempts` in
    all.

    Angles are not taken modulo 2π: a joint at q + 2π is another goal. Give that goal to find geodesics with additional turns.
    """
    rng = a_generator(rng, "rng")
    if attempts < 1:
        raise CoadjointError(f"attempts is {attempts}; expected 1 or more.")
    q0, q1 = states(robot, start=(start, robot.nq), goal=(goal, robot.nq))
    if q0.ndim != 1:
        raise CoadjointError(
            f"start and goal have shapes {np.shape(start)}, {np.shape(goal)}; expected one configuration each, ({robot.nq},)."
        )
    search = _Search(robot, q0, q1)
    paths, straight = _first_paths(robot, q0, q1, attempts, rng)
    search.follow(relaxed(robot, paths), tight=True)
    first = len(search.velocities)
    search.follow(straight, tight=False)
    stable = search.stable(first, rng)
    found = np.array(search.velocities).reshape(-1, robot.nv)
    lengths = search.lengths()
    order = np.argsort(lengths)
    return GeodesicsBetween(
        robot,
        q0,
        q1,
        found[order],
        lengths[order],
        np.array(stable, dtype=bool)[order],
        attempts,
        tuple(search.failures),
        tuple(sorted(search.unresolved)),
    )


class _Search:
    """The geodesics found so far from q0 to q1."""

    def __init__(self, robot: Robot, q0: np.ndarray, q1: np.ndarray) -> None:
        self.robot, self.q0, self.q1 = robot, q0, q1
        self.velocities: list[np.ndarray] = []
        self.failures: list[str] = []
        self.unresolved: list[float] = []
        self.paths: list[tuple[np.ndarray, str]] = []
        """The paths that were followed, and why each led to no geodesic ("" if it did)."""

    def follow(self, paths: np.ndarray, tight: bool) -> None:
        """Search for geodesics along paths (N, K + 1, nq), each distinct path once. A relaxed path that fails counts as
        unresolved.
        """
        for path in paths:
            known = [why for other, why in self.paths if np.max(np.abs(self.robot.difference(other, path)[1:-1])) < ALIKE]
            why = known[0] if known else self._geodesic(path)
            if not known:
                self.paths.append((path, why))
                if why and tight:
                    self.unresolved.append(float(np.sqrt(2 * energy(self.robot, path))))
            if why and tight:
                self.failures.append(why)

    def _geodesic(self, path: np.ndarray) -> str:
        """Store the geodesic along a path; the result is the reason of a failure, else empty."""
        rates = NODES * self.robot.difference(path[:-1], path[1:])
        rates[1:] = 0.5 * (rates[:-1] + rates[1:])
        starts = slice(0, NODES, NODES // PIECES)
        try:
            velocity = _join(self.robot, path[:-1][starts], rates[starts], self.q1)
        except CoadjointError as error:
            return str(error)
        if all(np.max(np.abs(velocity - known)) > 1e-6 * (1 + np.max(np.abs(known))) for known in self.velocities):
            self.velocities.append(velocity)
        return ""

    def lengths(self) -> np.ndarray:
        found = np.array(self.velocities).reshape(-1, self.robot.nv)
        return np.sqrt(inner_product(self.robot, np.broadcast_to(self.q0, (len(found), self.robot.nq)), found, found))

    def stable(self, first: int, rng: np.random.Generator) -> list[bool]:
        """True for geodesics that are locally the shortest. Those before `first` are: they came from relaxed paths. For the others,
        neighbouring paths are relaxed; those that become shorter are followed.
        """
        known = len(self.velocities)
        if known == first:
            return [True] * known
        t = np.linspace(0.0, 1.0, NODES + 1)
        v = np.array(self.velocities[first:])
        q, _ = geodesic(self.robot, np.broadcast_to(self.q0, (len(v), self.robot.nq)), v, t)
        aside = 0.05 * self.lengths()[first:, None, None] * rng.normal(size=(2, self.robot.nv))
        aside = aside @ np.linalg.inv(np.linalg.cholesky(mass_matrix(self.robot, q[:, NODES // 2])))  # of that length in the metric
        bent = np.sin(np.pi * t)[:, None] * aside[:, :1] + np.sin(2 * np.pi * t)[:, None] * aside[:, 1:]
        tight = relaxed(self.robot, np.concatenate([self.robot.integrate(q, x) for x in (bent, -bent)]))
        limit = (1 - 2 * SHORTER) * energy(self.robot, q)
        shorter = np.asarray(energy(self.robot, tight).reshape(2, len(v)) < limit)
        self.follow(tight[shorter.reshape(-1)], tight=True)
        return [True] * first + [not any(pair) for pair in shorter.T.tolist()] + [True] * (len(self.velocities) - known)


def _first_paths(robot: Robot, q0: np.ndarray, q1: np.ndarray, attempts: int, rng: Any) -> tuple[np.ndarray, np.ndarray]:
    """Initial paths (attempts, K + 1, nq) to relax, and those without random bends (at most attempts, K + 1, nq). The former are
    slightly bent: a symmetric path would stay symmetric under relaxation, and may end on a geodesic that is not the shortest.
    """
    direct = robot.difference(q0, q1)
    round_about = [direct]
    for i, kind in enumerate(robot.kinds):
        if kind.quaternion is not None and i not in robot.mimics:
            turn = slice(robot._v_slices[i].start, robot._v_slices[i].start + 3)
            angle = np.linalg.norm(direct[turn])
            axis = direct[turn] / angle if angle > 0 else np.array([0.0, 0.0, 1.0])
            other = direct.copy()
            other[turn] = axis * (angle - 2 * np.pi)
            round_about.append(other)
    s = np.linspace(0.0, 1.0, NODES + 1)[:, None]
    size = max(1.0, float(np.max(np.abs(direct), initial=0.0))) / np.sqrt(max(1, robot.nv))
    paths, aside = [], np.zeros((2, robot.nv))
    for n in range(attempts):
        later = n - len(round_about)
        if later < 0:
            aside = 0.02 * size * rng.normal(size=(2, robot.nv))
        else:  # to one side and then to the other, by more and less
            by = size * 2.0 ** rng.uniform(-1, 1) * np.array([[1.0], [0.3]])
            aside = -aside if later % 2 else by * rng.normal(size=(2, robot.nv))
        chord = round_about[n % len(round_about)]
        paths.append(s * chord + np.sin(np.pi * s) * aside[0] + np.sin(2 * np.pi * s) * aside[1])
    straight = [s * chord for chord in round_about[:attempts]]
    return robot.integrate(q0, np.array(paths)), robot.integrate(q0, np.array(straight))


def _coarse(robot: Robot, q: np.ndarray, v: np.ndarray, duration: float) -> tuple[np.ndarray, np.ndarray]:
    """The end states of geodesics, by Runge–Kutta steps of fixed length: cheap, and never refused."""
    h = duration / STEPS
    for _ in range(STEPS):
        rates = [flow.geodesic_rate(robot, q, v)]
        for part in (0.5, 0.5, 1.0):
            dq, dv = rates[-1]
            rates.append(flow.geodesic_rate(robot, q + part * h * dq, v + part * h * dv))
        (q1, v1), (q2, v2), (q3, v3), (q4, v4) = rates
        q, v = q + h / 6 * (q1 + 2 * q2 + 2 * q3 + q4), v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
        if not (np.max(np.abs(v), initial=0.0) < FAST and np.all(np.isfinite(q))):
            raise GeodesicError("the path passes where the mass matrix is nearly singular")
    return robot.normalize(q), v


def _join(robot: Robot, q: np.ndarray, v: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """The initial velocity (nv,) of the geodesic into which the pieces, starting at q (pieces, nq) with v (pieces, nv), are
    joined.
    """
    n, pieces = robot.nv, len(q)

    def gaps(q: np.ndarray, v: np.ndarray, ends: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """The differences (..., pieces, 2 nv) between the end of each piece and the start of the next."""
        targets = np.concatenate([q[1:], goal[None]])
        after = np.concatenate([v[1:], np.zeros((1, n))])
        gap = np.concatenate([robot.difference(targets, ends[0]), ends[1] - after], -1)
        gap[..., -1, n:] = 0.0  # the velocity at the goal is free
        return gap

    def size(x: np.ndarray) -> float:
        return float(np.max(np.abs(x)))

    for lead, joined in ((_coarse, ROUGHLY), (geodesic, JOINED)):
        gap = gaps(q, v, lead(robot, q, v, 1 / pieces))
        for _ in range(ITERATIONS):
            if size(gap) < joined * (1 + size(v)):
                break
            step = STEP * np.concatenate([np.eye(2 * n), -np.eye(2 * n)])[:, None, :]
            moved = robot.integrate(q, step[..., :n] + 0.0 * v), v + step[..., n:]
            around = gaps(q, v, _coarse(robot, *moved, 1 / pieces))
            change = _newton((around[: 2 * n] - around[2 * n :]) / (2 * STEP), gap)
            for factor in (1.0, 0.5, 0.25, 0.1, 0.03):
                new = robot.integrate(q, factor * change[:, :n]), v + factor * change[:, n:]
                try:
                    new_gap = gaps(*new, lead(robot, *new, 1 / pieces))
                except CoadjointError:
                    continue
                if size(new_gap) < (1 - 0.1 * factor) * size(gap):
                    break
            else:
                raise GeodesicError(f"the pieces of the path do not join: they stay {size(gap):.2g} apart")
            (q, v), gap = new, new_gap
        else:
            raise GeodesicError(f"after {ITERATIONS} iterations the pieces of the path are still {size(gap):.2g} apart")
    result: np.ndarray = v[0]
    return result


def _newton(columns: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """The change (pieces, 2n) of the starts of all pieces that closes the gaps to first order; the first configuration stays."""
    width, pieces, _ = columns.shape
    n = width // 2
    A = np.zeros((pieces * width, pieces * width))
    for k in range(pieces):
        A[k * width : (k + 1) * width, k * width : (k + 1) * width] = columns[:, k].T
        if k + 1 < pieces:
            A[k * width : (k + 1) * width, (k + 1) * width : (k + 2) * width] = -np.eye(width)
    kept = slice(0, pieces * width - n)  # gaps: all but the velocity at the goal
    change = np.zeros(pieces * width)
    change[n:] = np.linalg.lstsq(A[kept, n:], -gap.ravel()[kept], rcond=None)[0]
    return change.reshape(pieces, width)


def _shortest(robot: Robot, start: Any, goal: Any, attempts: int) -> tuple[np.ndarray, np.ndarray]:
    """Velocity (..., nv) and length (...) of the shortest geodesic found between configurations (..., nq)."""
    q0, q1 = states(robot, start=(start, robot.nq), goal=(goal, robot.nq))
    batch = q0.shape[:-1]
    velocities, lengths = np.empty((*batch, robot.nv)), np.empty(batch)
    for k in np.ndindex(*batch):
        report = geodesics_between(robot, q0[k], q1[k], attempts)
        if not report.found:
            raise GeodesicError(f"{report}. `geodesics_between` takes more attempts; a goal nearer by may help.")
        if report.unresolved and report.unresolved[0] < (1 - SHORTER) * report.lengths[0]:
            raise GeodesicError(
                f"{report}; but a path of length {report.unresolved[0]:.6g} is shorter, and no geodesic was found along it: it may pass "
                "where the mass matrix is singular. `geodesics_between` gives what was found."
            )
        velocities[k], lengths[k] = report.velocities[0], report.lengths[0]
    return velocities, lengths


@takes(robot=a_robot, attempts=count_up_to(10**4))
def logarithm(robot: Robot, start: ArrayLike, goal: ArrayLike, attempts: int = ATTEMPTS) -> np.ndarray:
    """log_start(goal) (..., nv): the velocity at the start of the shortest geodesic found, exp_start(log) = goal.

    An error where none is found. That it is the shortest of all is likely, not proven: see `distance`.
    """
    return _shortest(robot, start, goal, attempts)[0]


@takes(robot=a_robot, attempts=count_up_to(10**4))
def distance(robot: Robot, start: ArrayLike, goal: ArrayLike, attempts: int = ATTEMPTS) -> np.ndarray:
    """The length (...) of the shortest geodesic found between two configurations (..., nq), in the metric of kinetic energy.

    An upper bound of the distance, and likely the distance itself: paths from `attempts` starts were relaxed, and none was shorter.
    An error where no geodesic is found, or where a shorter path is known along which none was found. Angles are not taken modulo
    2π.
    """
    return _shortest(robot, start, goal, attempts)[1]
