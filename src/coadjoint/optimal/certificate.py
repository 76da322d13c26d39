"""A proof that capsules keep apart all along a motion, not only at places that are looked at.

At the middle of an interval of time the normal n of the nearest points separates a pair: a plane stands between them. Over the interval

    d(t) ≥ min n·a(t) - max n·b(t) - thickness ≥ d - (slope of n·a, and of n·b) h - A h²/2,

h half its length, the minimum and maximum over the ends of both segments, and A a bound of the accelerations of these ends. Intervals
for which this is not enough are divided. With ρ_j a bound of |∂p/∂q_j| wherever the robot is, |∂²p/∂q_i∂q_j| ≤ |ω_i| ρ_j for i nearer
to the base, so that

    |p̈| ≤ Σ_j ρ_j |a_j| + Σ_ij |ω_i| |v_i| ρ_j |v_j|,

and v and a are within the control points of their splines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..robot.robot import Robot
from .clearance import Clearances
from .multiple_shooting import Shots
from .quintics import Quintics
from .splines import Spline
from .transcription import Transcription

SURE = 1e-9
"""Metres by which the proof may fail."""
MOST = 400_000
"""Intervals that are looked at, at most."""


@dataclass(frozen=True)
class Proof:
    """Bounds of the least distance of pairs along a motion."""

    least: float
    """The smallest distance, beyond what was asked for, at any place that was looked at."""
    pair: int
    time: float
    """The time of the least distance."""
    holds: bool
    """True if the distances are proved to be what was asked for, to 1e-9 m, at all times."""
    distance: float
    """The smallest distance at any of these places."""
    interrupted: bool = False


def proof_of(problem: Transcription | Shots, control: np.ndarray, T: float) -> Proof | None:
    """The proof for one motion of control points (size, n) in T seconds; None where nothing has to keep apart.

    Ctrl-C ends it: then only the nodes have been looked at.
    """
    for rows in problem.limits:
        if isinstance(rows, Clearances):
            try:
                return proved(rows, problem.spline, control, T)
            except KeyboardInterrupt:
                value = rows.gaps(problem.spline.curve(control, T, problem.nodes)[0]).value
                k, pair = np.unravel_index(int((value - rows.lower).argmin()), value.shape)
                least, time = float((value - rows.lower)[k, pair]), float(T * problem.nodes[k])
                return Proof(least, int(pair), time, False, float(value.min()), interrupted=True)
    return None


def proved(rows: Clearances, spline: Spline | Quintics, control: np.ndarray, T: float) -> Proof:
    """The proof that pairs keep their distance along the motion of control points (size, n) in T seconds."""
    bound = _accelerations(rows, spline, control, T)
    per = 4 * spline.per_span
    edges = np.linspace(0.0, 1.0, per * spline.spans + 1)
    low, high = edges[:-1], edges[1:]
    least, pair, time, nearest, seen = np.inf, 0, 0.0, np.inf, 0
    while len(low):
        seen += len(low)
        middle, half = 0.5 * (low + high), 0.5 * T * (high - low)
        value, lower = _bounds(rows, spline, control, T, middle, half, bound)
        beside, nearest = value - rows.lower, min(nearest, float(value.min()))
        k, p = np.unravel_index(int(beside.argmin()), beside.shape)
        if beside[k, p] < least:
            least, pair, time = float(beside[k, p]), int(p), float(T * middle[k])
        open_ = (lower - rows.lower).min(1) < -SURE
        if least < -SURE or seen > MOST:
            return Proof(least, pair, time, False, nearest)
        low, high, middle = low[open_], high[open_], middle[open_]
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    near = np.clip(time / T + np.linspace(-1.0, 1.0, 101) / len(edges), 0.0, 1.0)
    return Proof(least, pair, time, True, min(nearest, float(rows.gaps(spline.curve(control, T, near)[0]).value.min())))


def _bounds(
    rows: Clearances,
    spline: Spline | Quintics,
    control: np.ndarray,
    T: float,
    middle: np.ndarray,
    half: np.ndarray,
    bound: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The distances (N, P) at the middles of intervals (N,) of so many seconds' half, and lower bounds of them in the whole."""
    q, v, *_ = spline.curve(control, T, middle)
    gaps = rows.gaps(q)
    bodies, normal = rows.bodies, gaps.nearest.normal[:, :, None]
    speeds = (gaps.end_jacobians @ v[:, None, None, :, None])[..., 0]
    span = np.minimum((middle * spline.spans).astype(int), spline.spans - 1)
    lost = 0.5 * bound[span] * half[:, None] ** 2  # (N, C)
    places = []
    for side, sign in ((0, 1.0), (1, -1.0)):
        which = bodies.pairs[:, side]
        at, slope = ((x[:, which] * normal).sum(-1) for x in (gaps.ends, speeds))
        places.append((sign * at - np.abs(slope) * half[:, None, None]).min(-1) - lost[:, which])
    return gaps.value, places[0] + places[1] - bodies.thickness


def _accelerations(rows: Clearances, spline: Spline | Quintics, control: np.ndarray, T: float) -> np.ndarray:
    """Bounds (spans, C) of the accelerations of the ends of capsules in every span."""
    robot, bodies = rows.robot, rows.bodies
    leader, ratio, offset = _coordinates(robot)
    q, v, a = (spline.largest(control, order)[:, leader] * ratio / T**order for order in range(3))  # (spans, links)
    turns, reach = _reaches(robot, bodies.links, bodies.ends, q.max(0) + offset)
    speed = np.einsum("si,cij,sj->sc", v, _nested(robot, turns, reach), v)
    return np.asarray(np.einsum("cj,sj->sc", reach, a) + speed)


def _coordinates(robot: Robot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The coordinate that moves each link, |ratio| and |offset|; ratios are 0 for those that do not move."""
    leader, ratio, offset = np.zeros(robot.n_links, dtype=int), np.zeros(robot.n_links), np.zeros(robot.n_links)
    for i, link in enumerate(robot.links):
        joint, ratio[i] = link.joint, float(len(link.joint.screws) > 0)
        while joint.mimic is not None and ratio[i]:
            offset[i] += ratio[i] * abs(joint.mimic.offset)
            ratio[i] *= abs(joint.mimic.ratio)
            joint = robot.links[robot.joint_names.index(joint.mimic.joint)].joint
        leader[i] = robot.v_slice(joint.name).start if ratio[i] else 0
    return leader, ratio, offset


def _reaches(robot: Robot, links: tuple[int, ...], ends: np.ndarray, most: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """|ω_i| (links,), and bounds ρ (C, links) of |∂p/∂q_i| for the ends of capsules on links, |q_i| being within `most` (links,)."""
    screws = [np.asarray(link.joint.screws, dtype=float).reshape(-1, 6) for link in robot.links]
    turns, slides = (np.array([np.linalg.norm(x[0, part]) if len(x) else 0.0 for x in screws]) for part in (slice(3), slice(3, 6)))
    far = np.linalg.norm(np.asarray(robot.placements)[:, :3, 3], axis=1) + slides * most
    reach = np.zeros((len(links), robot.n_links))
    for k, link in enumerate(links):
        size = float(np.linalg.norm(ends[k], axis=1).max())
        for i in reversed(robot.path(link)):
            reach[k, i] = turns[i] * (size + slides[i] * most[i]) + slides[i]
            size += far[i]
    return turns, reach


def reaches(rows: Clearances, most: np.ndarray) -> np.ndarray:
    """Bounds (n,) of how far any point of a capsule moves with a coordinate, |q| being within `most` (n,)."""
    robot = rows.robot
    leader, ratio, offset = _coordinates(robot)
    reach = _reaches(robot, rows.bodies.links, rows.bodies.ends, most[leader] * ratio + offset)[1].max(0, initial=0.0)
    return np.bincount(leader, reach * ratio, minlength=robot.nv)


def _nested(robot: Robot, turns: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """Bounds of |∂²p/∂q_i∂q_j| (C, links, links): |ω| of the one that is nearer to the base times ρ of the other."""
    depth = np.array([len(robot.path(i)) for i in range(robot.n_links)])
    first = np.where(depth[:, None] <= depth, np.arange(len(depth))[:, None], np.arange(len(depth)))
    last = np.where(depth[:, None] <= depth, np.arange(len(depth)), np.arange(len(depth))[:, None])
    both = (reach > 0)[:, :, None] & (reach > 0)[:, None]
    return np.where(both, turns[first] * reach[:, last], 0.0)
