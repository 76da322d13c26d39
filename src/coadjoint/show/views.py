"""The geometry of a robot seen over two of its coordinates: curvature, geodesics, and how geodesics spread."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ..dynamics.christoffel import mass_matrix_derivative
from ..dynamics.composite import mass_matrix
from ..dynamics.energy import kinetic_energy
from ..errors import CoadjointError, SingularMassMatrixError, unknown
from ..geometry.boundary import geodesics_between
from ..geometry.curvature import scalar_curvature
from ..geometry.flow import GeodesicError
from ..geometry.gauss import sectional_curvature
from ..geometry.geodesics import geodesic
from ..geometry.metric import inner_product
from ..geometry.transport import jacobi_field
from ..motion.states import coordinate_names
from ..robot.robot import Robot

CHUNK = 1024
"""Configurations per call: curvature tensors are large."""


# --- two coordinates of a robot


@dataclass(frozen=True)
class Coordinate:
    """A coordinate whose rate is a velocity: of a joint with one screw, or one of the two of a universal joint."""

    name: str
    q: int
    v: int
    lower: float
    upper: float
    unit: str

    @property
    def middle(self) -> float:
        return 0.5 * (self.lower + self.upper)


def coordinates(robot: Robot) -> list[Coordinate]:
    """The coordinates of joints that move by single screws, with their limits; without limits, half a turn or one metre to either side."""
    names, found = coordinate_names(robot, "v"), []
    for i, link in enumerate(robot.links):
        kind = robot.kind(i)
        if i in robot.mimics or kind.group is not None:
            continue
        q, v = robot.q_slice(link.joint.name).start, robot.v_slice(link.joint.name).start
        for k in range(kind.nv):
            low, high, slides = link.joint.lower[k], link.joint.upper[k], not kind.turns[k]
            width = 1.0 if slides else np.pi
            if not (np.isfinite(low) and np.isfinite(high)) or high - low > 2 * np.pi + 1e-9:
                low, high = -width, width
            found.append(Coordinate(names[v + k], q + k, v + k, float(low), float(high), "m" if slides else "rad"))
    return found


def pair(robot: Robot, joints: Sequence[str | int] | None = None) -> tuple[Coordinate, Coordinate]:
    """The two coordinates by name, or by their number among the velocities, counted from 1; the most curved pair if None is given."""
    known = coordinates(robot)
    if joints is None:
        if len(known) < 2:
            raise CoadjointError(f"robot {robot.name!r} has {len(known)} coordinate(s) that can be drawn; two are needed.")
        return _most_curved(robot, known)
    if len(joints) != 2:
        raise CoadjointError(f"joints is {list(joints)!r}; expected two, by name or by number.")
    chosen = []
    for joint in joints:
        number = int(joint) if str(joint).lstrip("+-").isdigit() else None
        match = [x for x in known if x.name == joint or (number is not None and x.v == number - 1)]
        if not match:
            raise unknown("joint with one coordinate", joint, [f"{x.v + 1} {x.name}" for x in known])
        chosen.append(match[0])
    if chosen[0] == chosen[1]:
        raise CoadjointError(f"both joints are {chosen[0].name!r}; a map needs two different ones.")
    return chosen[0], chosen[1]


def _most_curved(robot: Robot, known: list[Coordinate]) -> tuple[Coordinate, Coordinate]:
    """The pair with the largest sectional curvature, among coordinates that M depends on (it does not depend on that of a vertical
    first axis).
    """
    q, one = robot.random(0, 16), np.eye(robot.nv)
    slopes = np.max(np.abs(mass_matrix_derivative(robot, q)), axis=(0, 1, 2))
    matter = [x for x in known if slopes[x.v] > 1e-12 * np.max(slopes)]
    known = matter if len(matter) > 1 else known
    best, largest = (known[0], known[1]), -1.0
    for a, b in combinations(known, 2):
        size = float(np.nanmedian(np.abs(_finite(sectional_curvature, robot, q, one[a.v], one[b.v]))))
        if size > largest * (1 + 1e-6):
            best, largest = (a, b), size
    return best


def middle(robot: Robot) -> np.ndarray:
    """The configuration at the middle of all limits; home for coordinates without limits."""
    q = robot.neutral()
    for x in coordinates(robot):
        q[x.q] = x.middle
    return q


def _finite(function: Any, robot: Robot, q: np.ndarray, *vectors: np.ndarray) -> np.ndarray:
    """The function at q (N, nq), NaN where the mass matrix is singular."""
    values = np.linalg.eigvalsh(mass_matrix(robot, q))
    regular = values[:, 0] > 1e-10 * values[:, -1]
    result = np.full(len(q), np.nan)
    if regular.any():
        result[regular] = function(robot, q[regular], *vectors)
    return result


# --- what is drawn


@dataclass(frozen=True)
class CurvatureMap:
    """Curvature over two coordinates, the others held."""

    x: np.ndarray
    y: np.ndarray
    q: np.ndarray
    """(len(y), len(x), nq)"""
    sectional: np.ndarray
    """(len(y), len(x)): of the plane that the two coordinates span."""
    scalar: np.ndarray
    """(len(y), len(x)): the sum over all planes, each counted twice."""


def sectional_map(robot: Robot, a: Coordinate, b: Coordinate, at: np.ndarray, points: int) -> np.ndarray:
    """Sectional curvature (points, points) of the plane of two coordinates over both of them, b along the first axis; NaN where M is
    singular."""
    q = np.broadcast_to(at, (points, points, robot.nq)).copy()
    q[..., a.q], q[..., b.q] = np.linspace(a.lower, a.upper, points)[None, :], np.linspace(b.lower, b.upper, points)[:, None]
    flat, one = q.reshape(-1, robot.nq), np.eye(robot.nv)
    parts = [flat[k : k + CHUNK] for k in range(0, len(flat), CHUNK)]
    found = np.concatenate([_finite(sectional_curvature, robot, part, one[a.v], one[b.v]) for part in parts])
    return found.reshape(points, points)


def curvature_map(robot: Robot, joints: Sequence[str | int] | None = None, at: Any = None, points: int = 101) -> CurvatureMap:
    """Sectional and scalar curvature over a grid of two coordinates; the others as in `at` (nq,), in the middle of their limits if None."""
    a, b = pair(robot, joints)
    x, y = (np.linspace(c.lower, c.upper, points) for c in (a, b))
    q = np.broadcast_to(middle(robot) if at is None else np.asarray(at, dtype=float), (points, points, robot.nq)).copy()
    q[..., a.q], q[..., b.q] = x[None, :], y[:, None]
    flat = q.reshape(-1, robot.nq)
    parts = [flat[k : k + CHUNK] for k in range(0, len(flat), CHUNK)]
    sectional = sectional_map(robot, a, b, q[0, 0], points)
    scalar = 2 * sectional if robot.nv == 2 else np.concatenate([_finite(scalar_curvature, robot, part) for part in parts])
    M = mass_matrix(robot, flat[:: points // 2])
    rounding = 1e-12 / float(np.median(np.sqrt(M[:, a.v, a.v] * M[:, b.v, b.v])))  # 1/metric is the unit of curvature
    whole = [np.where(np.abs(K) < rounding, 0.0, K).reshape(points, points) for K in (sectional, scalar)]
    return CurvatureMap(x, y, q, *whole)


@dataclass(frozen=True)
class Comparison:
    """Two motions from one configuration to another in a second: the geodesic, and straight with constant joint velocities."""

    time: np.ndarray
    geodesic: np.ndarray
    """q (len(time), nq)"""
    straight: np.ndarray
    """q (len(time), nq)"""
    energies: np.ndarray
    """Kinetic energy (2, len(time)) of both."""
    found: int
    """The number of geodesics that were found."""

    @property
    def means(self) -> tuple[float, float]:
        """The mean kinetic energy of both; the geodesic has the least of all motions near it."""
        weights = np.full(len(self.time), 1.0 / (len(self.time) - 1))
        weights[[0, -1]] *= 0.5
        return float(self.energies[0] @ weights), float(self.energies[1] @ weights)


def comparison(robot: Robot, start: Any, goal: Any, points: int = 201) -> Comparison:
    """The shortest geodesic that is found between two configurations (nq,), beside the straight joint motion."""
    start, goal = np.asarray(start, dtype=float), np.asarray(goal, dtype=float)
    between = geodesics_between(robot, start, goal)
    if not between.found:
        raise GeodesicError(str(between))
    t = np.linspace(0.0, 1.0, points)
    q, v = geodesic(robot, start, between.velocities[0], t)
    way = robot.difference(start, goal)
    straight = robot.integrate(start, t[:, None] * way)
    energies = np.stack([kinetic_energy(robot, q, v), kinetic_energy(robot, straight, np.broadcast_to(way, v.shape))])
    return Comparison(t, q, straight, energies, between.found)


@dataclass(frozen=True)
class Spread:
    """Geodesics that start from one configuration in neighbouring directions."""

    time: np.ndarray
    q: np.ndarray
    """(rays, len(time), nq)"""
    distance: np.ndarray
    """|J| (len(time),): how far neighbours are apart, per radian between their directions and unit of speed; in flat space the time."""


def spread(robot: Robot, q: Any, v: Any, across: Any, duration: float = 1.0, rays: int = 11, width: float = 0.5) -> Spread:
    """Geodesics from q in directions up to `width` radians to either side of v, in the plane of v and `across`; all of the speed of v."""
    q, v, across = (np.asarray(x, dtype=float) for x in (q, v, across))

    def product(x: np.ndarray, y: np.ndarray) -> float:
        return float(inner_product(robot, q, x, y))

    normal = across - v * (product(v, across) / product(v, v))
    normal = normal * np.sqrt(product(v, v) / product(normal, normal))
    angles = np.linspace(-width, width, rays)[:, None]
    t = np.linspace(0.0, duration, 161)
    paths, _ = geodesic(robot, np.broadcast_to(q, (rays, robot.nq)), np.cos(angles) * v + np.sin(angles) * normal, t)
    J, _ = jacobi_field(robot, q, v, np.zeros(robot.nv), normal, t)
    along, _ = geodesic(robot, q, v, t)
    return Spread(t, paths, np.sqrt(inner_product(robot, along, J, J) / product(v, v)))


def conjugate(found: Spread) -> list[int]:
    """The time index at which neighbours meet again: beyond it, the geodesic is no longer the shortest path."""
    d = found.distance
    return [k for k in range(1, len(d) - 1) if d[k] <= d[k - 1] and d[k] < d[k + 1] and d[k] < 0.03 * np.max(d)]


def ends(robot: Robot, a: Coordinate, b: Coordinate) -> tuple[np.ndarray, np.ndarray]:
    """Start and goal of the motions of the figure: two fifths of the range of both coordinates, about the middle."""
    start, goal = middle(robot), middle(robot)
    for c in (a, b):
        reach = (c.upper - c.lower) / 5
        start[c.q], goal[c.q] = c.middle - reach, c.middle + reach
    return start, goal


@dataclass(frozen=True)
class Geometry:
    """The data of the figure."""

    robot: Robot
    pair: tuple[Coordinate, Coordinate]
    curvature: CurvatureMap
    start: np.ndarray
    goal: np.ndarray
    motions: Comparison | None
    """None where no geodesic was found from start to goal."""
    spread: Spread | None
    """Spread of geodesics from the start, about the straight direction to the goal; None where they meet a singularity."""


def geometry(robot: Robot, joints: Sequence[str | int] | None = None) -> Geometry:
    """Curvature over two coordinates, a geodesic beside the straight motion, and how geodesics spread."""
    a, b = pair(robot, joints)
    start, goal = ends(robot, a, b)
    motions: Comparison | None = None
    fan: Spread | None = None
    with contextlib.suppress(GeodesicError, SingularMassMatrixError):
        motions = comparison(robot, start, goal)
    way, across = robot.difference(start, goal), np.zeros(robot.nv)
    across[a.v], across[b.v] = -way[b.v], way[a.v]
    with contextlib.suppress(GeodesicError, SingularMassMatrixError):
        fan = spread(robot, start, way, across)
    return Geometry(robot, (a, b), curvature_map(robot, (a.v + 1, b.v + 1)), start, goal, motions, fan)
