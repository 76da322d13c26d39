"""The fastest speed along a path within limits of jerk: cells that are cut at switching points, points that are added where a row is
exceeded between them, and a last slowing down, after which no row is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import CoadjointError
from .jerk_rows import Rows
from .jerk_solver import Problem, Spline

CELLS = 24
"""Cells of a path at the beginning, about."""
ROUNDS = 18
SAME = 1e-6
"""Relative change of the duration that is none."""
SHORT = 2e-4
"""Cells that are not cut any more: what a switching point inside one costs is of the order of its square."""
GAP = 1e-8
"""Duality gap, beside the duration."""
WORST = 0.05
"""Cells are cut whose unused time is at least this part of the largest."""
CLOSE = 1e-6
"""By how much rows may be exceeded between points before the last slowing down."""
BASE = np.array([0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0])
"""Points of a cell where rows hold; two more are where they were exceeded most."""


def _crowded(u: np.ndarray) -> np.ndarray:
    """Places in a cell from even ones, closer together at its ends."""
    return np.asarray((1.0 - np.cos(np.pi * u)) / 2)


DENSE = _crowded(np.linspace(0.0, 1.0, 81))


@dataclass(frozen=True)
class SmoothProfile:
    """X = σ̇² on cells, and the rows that limit it."""

    rows: Rows
    spline: Spline
    z: np.ndarray
    duration: float


def fastest(rows: Rows) -> SmoothProfile:
    """The profile of least duration, to about 1e-5 of it; a local optimum, since rows of jerk are not convex."""
    breaks = rows.breaks()
    each = np.maximum(1, np.ceil(np.diff(breaks) * CELLS)).astype(int)
    nodes = np.unique(np.concatenate([np.linspace(a, b, n + 1) for a, b, n in zip(breaks[:-1], breaks[1:], each, strict=True)]))
    spline = Spline(nodes)
    extra = np.tile([0.3, 0.7], (spline.count, 1))
    rows.unit = float(_slow(rows, spline)[0])  # so that X is of the size of 1, however slow or fast limits are
    z, centre, before = _slow(rows, spline), 1.0, np.inf
    for _ in range(ROUNDS):
        problem = Problem(spline, rows, np.sort(np.concatenate([np.tile(BASE, (spline.count, 1)), extra], axis=1), axis=1))
        with np.errstate(over="ignore", invalid="ignore"):
            found = problem.solve(_inside(problem, z), centre, GAP)
            if not found.converged and centre < 1.0:
                found = problem.solve(_slow(rows, spline), 1.0, GAP)
        if not found.converged:
            raise CoadjointError(
                "the timing within limits of jerk did not converge: the path is not smooth, or its limits are reached within so small a "
                "part of it that rests at its ends are hardly seen. Look at the units of velocity, acceleration and jerk; where these are "
                "right, leave out jerk=."
            )
        z, centre = found.z, 1e-2
        use, peaks = _use(rows, spline, z)
        duration = spline.duration(z)
        exceeded = float(use.max()) - 1.0
        cut = _cuts(rows, spline, z, use)
        settled = abs(duration - before) < SAME * duration or not len(cut)
        if settled and exceeded < CLOSE:
            break
        before = duration
        if settled:
            extra = np.concatenate([extra, peaks], axis=1)
        else:
            finer = np.unique(np.concatenate([spline.nodes, cut]))
            z, spline = spline.on(z, finer), Spline(finer)
            extra = np.tile([0.3, 0.7], (spline.count, 1))
    z, rows.unit = rows.unit * _slowed(rows, spline, z), 1.0
    for end, name, z0 in ((0, "start_speed", z[0]), (1, "end_speed", z[-2])):
        asked = rows.ends[end]
        reached = float(rows.map(np.array([float(end)]))[1][0]) ** 2 * float(z0)
        if 0.0 < asked < 1e29 and reached < asked * (1.0 - 1e-4):
            raise CoadjointError(
                f"no timing within limits of jerk was found with this {name}: ds/dt is {np.sqrt(reached):.6g} there."
            )
    return SmoothProfile(rows, spline, z, spline.duration(z))


def _slow(rows: Rows, spline: Spline) -> np.ndarray:
    """A constant X that all rows allow, with some room."""
    problem = Problem(spline, rows, np.tile(BASE, (spline.count, 1)))
    x = 1e12
    while x > 1e-18:
        found = problem.slack(spline.constant(x))
        if found is not None and np.all(found[0] > 0):
            return spline.constant(0.5 * x)
        x *= 0.5
    worst = np.unravel_index(int(np.argmin(problem.gamma)), problem.gamma.shape)
    quantity, joint = rows.names[int(worst[2])]
    s = float(rows.map(spline.nodes[worst[0]] + spline.lengths[worst[0]] * BASE[worst[1]])[0])
    raise CoadjointError(
        f"with limits of jerk a path is followed only where the robot can stand still: near s = {s:.4g} {quantity} of {joint!r} needs "
        f"{1.0 - problem.gamma[worst]:.4g} times its limit. Raise it, or lead the path elsewhere."
    )


def _inside(problem: Problem, z: np.ndarray) -> np.ndarray:
    """z, slowed down until all rows hold with some room."""
    for slower in (0.999, 0.99, 0.97, 0.9, 0.8, 0.6, 0.4, 0.2, 0.1, 0.03, 0.01):
        found = problem.slack(slower * z)
        if found is not None and np.all(found[0] > 0):
            return slower * z
    return problem.spline.constant(1e-3 * float(z[::3].min()))


def uses(rows: Rows, spline: Spline, z: np.ndarray, t: np.ndarray) -> np.ndarray:
    """(N, P, rows): which part of every limit is used at t (N, P); more than 1 is too much."""
    sigma = spline.nodes[:-1, None] + spline.lengths[:, None] * t
    alpha, gamma, inverse, e = rows(spline.nodes, sigma)
    Y = spline.at(z, t)
    root = np.sqrt(np.maximum(Y[..., 0], 1e-300))[..., None]
    slack = gamma + inverse / root + e * root - np.einsum("cprk,cpk->cpr", alpha, Y)
    return np.asarray(1.0 - np.where(inverse > 0, slack * root / np.maximum(inverse, 1e-300), slack))


def _use(rows: Rows, spline: Spline, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest use (N, DENSE) of any limit, and for each cell the places t (N, 2) of its two largest maxima."""
    use = uses(rows, spline, z, np.tile(DENSE, (spline.count, 1))).max(axis=-1)
    inner = use[:, 1:-1]
    peak = np.where((inner >= use[:, :-2]) & (inner >= use[:, 2:]), inner, -np.inf)
    order = np.argsort(-peak, axis=1)[:, :2] + 1
    left, middle, right = (np.take_along_axis(use, order + k, axis=1) for k in (-1, 0, 1))
    bend = left - 2.0 * middle + right
    shift = np.where(bend < 0, 0.5 * (left - right) / np.where(bend < 0, bend, 1.0), 0.0)
    return use, _crowded((order + np.clip(shift, -1.0, 1.0)) / (len(DENSE) - 1))


def _cuts(rows: Rows, spline: Spline, z: np.ndarray, use: np.ndarray) -> np.ndarray:
    """Places where cells with much unused time are cut: where X'' would jump between the values of their neighbours, or in the middle."""
    Y = spline.at(z, np.tile(DENSE, (spline.count, 1)))
    unused = spline.lengths * np.mean(np.maximum(1.0 - use, 0.0) / np.sqrt(Y[..., 0]), axis=1)
    left = np.append(Y[:1, 0, 2], Y[:-1, -1, 2])
    right = np.append(Y[1:, 0, 2], Y[-1:, -1, 2])
    mean = (Y[:, -1, 1] - Y[:, 0, 1]) / spline.lengths
    jump = left - right
    part = np.where(jump != 0, (mean - right) / np.where(jump != 0, jump, 1.0), 0.5)
    part = np.where((part > 0.02) & (part < 0.98), part, 0.5)
    some = (unused > WORST * unused.max()) & (spline.lengths > SHORT)
    return np.asarray((spline.nodes[:-1] + part * spline.lengths)[some])


def _slowed(rows: Rows, spline: Spline, z: np.ndarray) -> np.ndarray:
    """z so much slower that no row is exceeded at many places of every cell, by parts of what was exceeded."""
    fine = np.tile(_crowded(np.linspace(0.0, 1.0, 241)), (spline.count, 1))
    for _ in range(20):
        exceeded = float(uses(rows, spline, z, fine).max()) - 1.0
        if exceeded <= 1e-11:
            break
        z = z / (1.0 + 1.1 * exceeded)
    return z
