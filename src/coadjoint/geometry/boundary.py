"""Geodesics between two configurations: which there are, the logarithm, the distance.

Multiple shooting: the way is cut into pieces, each a geodesic of its own, and Newton's method makes the pieces join. It starts from
the straight way in joint coordinates, from ways bent aside at random, and for joints with rotations from the longer way round.
Nothing guarantees that every geodesic is found, or the shortest one: the report says what was tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import CoadjointError
from ..robot.robot import Robot
from . import flow
from .flow import GeodesicError
from .geodesics import geodesic
from .metric import inner_product

PIECES = 6
ITERATIONS = 25
STEPS = 12
"""Steps in each piece while the search is coarse."""
FAST = 1e6
"""A velocity beyond this has passed a singularity of the metric."""
ROUGHLY, JOINED = 1e-5, 1e-10
"""Pieces join if q and v agree to this, relative to 1 + |v|: while the search is coarse, and in the end."""
STEP = 1e-5
"""Step of the central differences for the Jacobian: it decides how fast Newton's method converges, not to what."""


@dataclass(frozen=True)
class GeodesicsBetween:
    """What a search for geodesics from `start` to `goal` found; they take a unit of time."""

    robot: Robot
    start: np.ndarray
    goal: np.ndarray
    velocities: np.ndarray
    """(found, nv): the velocity at the start of each, the shortest first."""
    lengths: np.ndarray
    """(found,)"""
    tried: int
    """How many ways the search started from."""
    failures: tuple[str, ...]
    """Why the others led nowhere."""

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


def geodesics_between(robot: Robot, start: Any, goal: Any, attempts: int = 8, rng: Any = 0) -> GeodesicsBetween:
    """Search for geodesics from one configuration (nq,) to another, from the straight way and from others up to `attempts`.

    Angles count as they are written: a joint that goes on to q + 2π ends elsewhere. Ask for that goal to find the ways that wind.
    """
    if attempts < 1:
        raise CoadjointError(f"attempts is {attempts}; expected 1 or more.")
    q0, q1 = flow.states(robot, start=(start, robot.nq), goal=(goal, robot.nq))
    if q0.ndim != 1:
        raise CoadjointError(
            f"start and goal have shapes {np.shape(start)}, {np.shape(goal)}; expected one configuration each, ({robot.nq},)."
        )
    velocities: list[np.ndarray] = []
    failures = []
    for q, v in _first_ways(robot, q0, q1, attempts, np.random.default_rng(rng)):
        try:
            velocity = _join(robot, q, v, q1)
        except CoadjointError as error:
            failures.append(str(error))
            continue
        if all(np.max(np.abs(velocity - known)) > 1e-6 * (1 + np.max(np.abs(known))) for known in velocities):
            velocities.append(velocity)
    found = np.array(velocities).reshape(-1, robot.nv)
    lengths = np.sqrt(inner_product(robot, np.broadcast_to(q0, (len(found), robot.nq)), found, found))
    order = np.argsort(lengths)
    return GeodesicsBetween(robot, q0, q1, found[order], lengths[order], attempts, tuple(failures))


def _first_ways(robot: Robot, q0: np.ndarray, q1: np.ndarray, attempts: int, rng: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Configurations and velocities at the starts of the pieces, of one way after another."""
    direct = robot.difference(q0, q1)
    round_about = [direct]
    for i, link in enumerate(robot.links):
        if link.joint.kind in ("spherical", "free") and i not in robot.mimics:
            turn = slice(robot._v_slices[i].start, robot._v_slices[i].start + 3)
            angle = np.linalg.norm(direct[turn])
            axis = direct[turn] / angle if angle > 0 else np.array([0.0, 0.0, 1.0])
            other = direct.copy()
            other[turn] = axis * (angle - 2 * np.pi)
            round_about.append(other)
    s = np.arange(PIECES)[:, None] / PIECES
    size = max(1.0, float(np.max(np.abs(direct), initial=0.0)))
    for n in range(attempts):
        chord = round_about[n % len(round_about)]
        aside = rng.normal(size=robot.nv) * size / np.sqrt(max(1, robot.nv)) if n >= len(round_about) else np.zeros(robot.nv)
        way = s * chord + np.sin(np.pi * s) * aside
        yield robot.integrate(q0, way), chord + np.pi * np.cos(np.pi * s) * aside


def _coarse(robot: Robot, q: np.ndarray, v: np.ndarray, duration: float) -> tuple[np.ndarray, np.ndarray]:
    """Where geodesics lead, by steps of Runge and Kutta of fixed length: cheap, wherever it leads."""
    h = duration / STEPS
    for _ in range(STEPS):
        rates = [flow.geodesic_rate(robot, q, v)]
        for part in (0.5, 0.5, 1.0):
            dq, dv = rates[-1]
            rates.append(flow.geodesic_rate(robot, q + part * h * dq, v + part * h * dv))
        (q1, v1), (q2, v2), (q3, v3), (q4, v4) = rates
        q, v = q + h / 6 * (q1 + 2 * q2 + 2 * q3 + q4), v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
        if not (np.max(np.abs(v), initial=0.0) < FAST and np.all(np.isfinite(q))):
            raise GeodesicError("the way leads where the mass matrix is nearly singular")
    return flow.unit(robot, q), v


def _join(robot: Robot, q: np.ndarray, v: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """The velocity (nv,) at the start of the geodesic that the pieces, starting at q (pieces, nq) with v (pieces, nv), become."""
    n, pieces = robot.nv, len(q)

    def gaps(q: np.ndarray, v: np.ndarray, ends: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """What keeps the ends (..., pieces, ·) from being the starts of the next pieces: (..., pieces, 2 nv)."""
        targets = np.concatenate([q[1:], goal[None]])
        after = np.concatenate([v[1:], np.zeros((1, n))])
        gap = np.concatenate([robot.difference(targets, ends[0]), ends[1] - after], -1)
        gap[..., -1, n:] = 0.0  # the velocity at the goal is free
        return gap

    size = lambda x: float(np.max(np.abs(x)))  # noqa: E731
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
                raise GeodesicError(f"the pieces of the way do not join: they stay {size(gap):.2g} apart")
            (q, v), gap = new, new_gap
        else:
            raise GeodesicError(f"after {ITERATIONS} iterations the pieces of the way are still {size(gap):.2g} apart")
    return v[0]


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
    q0, q1 = flow.states(robot, start=(start, robot.nq), goal=(goal, robot.nq))
    batch = q0.shape[:-1]
    velocities, lengths = np.empty((*batch, robot.nv)), np.empty(batch)
    for k in np.ndindex(*batch):
        report = geodesics_between(robot, q0[k], q1[k], attempts)
        if not report.found:
            raise GeodesicError(f"{report}. `geodesics_between` takes more attempts; a goal nearer by may help.")
        velocities[k], lengths[k] = report.velocities[0], report.lengths[0]
    return velocities, lengths


def logarithm(robot: Robot, start: Any, goal: Any, attempts: int = 4) -> np.ndarray:
    """log_start(goal) (..., nv): the velocity at the start of the shortest geodesic found, exp_start(log) = goal."""
    return _shortest(robot, start, goal, attempts)[0]


def distance(robot: Robot, start: Any, goal: Any, attempts: int = 4) -> np.ndarray:
    """The length (...) of the shortest geodesic found between two configurations (..., nq), in the metric of kinetic energy."""
    return _shortest(robot, start, goal, attempts)[1]
