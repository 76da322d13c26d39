"""Spheres and capsules that must keep apart: obstacles in space, and bodies of a robot.

A capsule is all that is within `radius` of a segment; a sphere one whose segment is a point. The bodies of a robot are its shapes in
capsules around them; where it has none, segments between its joints, as thick as rods of water with the mass of the links.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import positive
from ..arrays import unmasked
from ..errors import CoadjointError, ShapeError
from ..kinematics import forward_kinematics
from ..robot.robot import Robot
from ..robot.shape import Shape
from ..words import short

DENSITY = 1000.0
"""kg/m³, of links that have no shapes."""
SAMPLES = 100
"""Random configurations by which bodies that always touch are told from those that may collide."""


@dataclass(frozen=True)
class Capsule:
    """The points within `radius` of the segment from `start` to `end` (3,), in the axes of a frame or link, or of space if it is None."""

    start: Any
    end: Any
    radius: float
    frame: str | None = None
    name: str = ""

    def __post_init__(self) -> None:
        for key in ("start", "end"):
            try:
                point = np.asarray(unmasked(getattr(self, key)), dtype=float)
            except (TypeError, ValueError, OverflowError):
                point = np.zeros(0)
            if point.shape != (3,) or not np.isfinite(point).all():
                raise ShapeError(f"{key} of a capsule is {short(getattr(self, key))}; expected a point (3,).")
            object.__setattr__(self, key, tuple(point.tolist()))
        object.__setattr__(self, "radius", float(positive(self.radius, "the radius of a sphere or capsule")))
        for key in ("frame", "name"):
            value = getattr(self, key)
            if not isinstance(value, str) and not (key == "frame" and value is None):
                raise CoadjointError(f"the {key} of a capsule is {short(value)}; expected text.")

    @property
    def ends(self) -> np.ndarray:
        """(2, 3)"""
        return np.array([self.start, self.end])


class Sphere(Capsule):
    """The points within `radius` of the point `center` (3,), in the axes of a frame or link, or of space if it is None."""

    def __init__(self, center: Any, radius: float, frame: str | None = None, name: str = "") -> None:
        super().__init__(center, center, radius, frame, name)

    def __repr__(self) -> str:
        return f"Sphere({self.start}, {self.radius}, frame={self.frame!r}, name={self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Sphere, (self.start, self.radius, self.frame, self.name)


@dataclass(frozen=True, eq=False)
class Bodies:
    """Capsules on links, -1 the base, which stands still, and the pairs of them that must keep apart."""

    links: tuple[int, ...]
    ends: np.ndarray
    """(C, 2, 3), in the axes of the links."""
    radii: np.ndarray
    """(C,)"""
    names: tuple[str, ...]
    pairs: np.ndarray
    """(P, 2); the first of each pair moves."""

    @property
    def thickness(self) -> np.ndarray:
        """(P,): the distance of the segments of each pair where their surfaces touch."""
        return np.asarray(self.radii[self.pairs].sum(1))

    @property
    def pair_names(self) -> tuple[str, ...]:
        return tuple(f"{self.names[i]} and {self.names[j]}" for i, j in self.pairs)


def bodies_of(robot: Robot, obstacles: Any, bodies: Any, self_collision: bool) -> Bodies | None:
    """The pairs that are asked for; None if there are none."""
    still = [_placed(robot, one, f"obstacles[{k}]") for k, one in enumerate(_listed(obstacles, "obstacles"))]
    for k, (link, *_) in enumerate(still):
        if link >= 0:
            raise CoadjointError(
                f"obstacles[{k}] is on {robot.link_names[link]!r}, which moves; what belongs to the robot is given as bodies=."
            )
    if bodies is not None and not still and not self_collision:
        raise CoadjointError("bodies goes with obstacles= or self_collision=True; nothing is there that they could touch.")
    if not still and not self_collision:
        return None
    if bodies is None:
        own = link_capsules(robot)
    else:
        own = [_placed(robot, one, f"bodies[{k}]") for k, one in enumerate(_listed(bodies, "bodies"))]
    moving = [one for one in own if one[0] >= 0]
    if not moving:
        raise CoadjointError("bodies has nothing that moves; give spheres or capsules with frame= a link or a frame of the robot.")
    if not self_collision:
        own = moving
    everything = [*own, *still]
    links = tuple(one[0] for one in everything)
    first = range(len(own))
    pairs = [(i, len(own) + j) for i in first if links[i] >= 0 for j in range(len(still))]
    ends, radii = np.array([one[1] for one in everything]), np.array([one[2] for one in everything])
    if self_collision:
        pairs += _own_pairs(robot, links[: len(own)], ends, radii)
    names = _numbered([one[3] for one in everything])
    return Bodies(links, ends, radii, names, np.array(pairs, dtype=int).reshape(-1, 2))


def _listed(x: Any, name: str) -> list[Any]:
    if isinstance(x, Capsule | Shape):
        return [x]
    if not isinstance(x, Sequence) or isinstance(x, str):
        raise CoadjointError(f"{name} is {short(x)}; expected a list of coadjoint.Sphere and coadjoint.Capsule.")
    return list(x)


Placed = tuple[int, np.ndarray, float, str]
"""Link, ends (2, 3) in its axes, radius, name."""


def _placed(robot: Robot, one: Any, name: str) -> Placed:
    if isinstance(one, Shape):
        return _enclosed(robot, one)
    if not isinstance(one, Capsule):
        raise CoadjointError(f"{name} is {short(one)}; expected coadjoint.Sphere(center, radius) or Capsule(start, end, radius).")
    link, X = (-1, np.eye(4)) if one.frame is None else robot.frame(one.frame)
    X = np.asarray(X, dtype=float)
    label = one.name or (name if one.frame is None else str(one.frame))
    return link, one.ends @ X[:3, :3].T + X[:3, 3], one.radius, label


def link_capsules(robot: Robot) -> list[Placed]:
    """Capsules around the shapes that may collide, or else those that are seen; of links without shapes, between joints."""
    shapes = robot.collisions or robot.visuals
    found = [_enclosed(robot, shape) for shape in shapes]
    covered = {one[0] for one in found}
    return found + [_rod(robot, i) for i in range(robot.n_links) if i not in covered and not shapes]


def _enclosed(robot: Robot, shape: Shape) -> Placed:
    """The capsule around a shape."""
    link, size, axis = robot.link_index(shape.link), shape.size, np.array([0.0, 0.0, 1.0])
    if shape.kind == "sphere":
        radius, half = size[0], 0.0
    elif shape.kind in ("capsule", "cylinder"):
        radius, half = size[0], 0.5 * size[1]
    elif shape.kind == "ellipsoid":
        longest = int(np.argmax(size))
        radius, axis = float(np.max(np.delete(size, longest))), np.eye(3)[longest]
        half = size[longest] - radius
    else:
        try:
            points = np.concatenate([np.asarray(part.vertices, dtype=float) for part in shape.triangles()])
        except CoadjointError as error:
            raise CoadjointError(f"{error} Give the robot's capsules as bodies=[coadjoint.Capsule(…, frame=link)].") from None
        ends, radius = around(points)
        return link, ends, radius, shape.link
    ends = np.array([-half, half])[:, None] * axis
    return link, ends @ shape.pose[:3, :3].T + shape.pose[:3, 3], float(radius), shape.link


def around(points: np.ndarray) -> tuple[np.ndarray, float]:
    """The ends (2, 3) and the radius of a capsule around points (n, 3), along the direction in which they spread most."""
    center = 0.5 * (points.min(0) + points.max(0))
    axis = np.linalg.svd(points - points.mean(0), full_matrices=False)[2][0]
    along = (points - center) @ axis
    across = np.linalg.norm(points - center - along[:, None] * axis, axis=1)
    radius = float(across.max()) * (1.0 + 1e-9)
    cap = np.sqrt(np.maximum(float(across.max()) ** 2 - across**2, 0.0))
    low, high = (along + cap).min(), (along - cap).max()
    middle = 0.5 * (low + high)
    low, high = (low, high) if low < high else (middle, middle)
    return center + np.array([low, high])[:, None] * axis, radius


def _rod(robot: Robot, i: int) -> Placed:
    """A rod from the link's joint to the farthest of what is on it: other joints, frames, the centre of mass."""
    origin, X = np.zeros(3), np.asarray(forward_kinematics(robot, robot.neutral()))
    inverse = np.linalg.inv(X[i])
    points = [origin] + [(inverse @ X[k])[:3, 3] for k, link in enumerate(robot.links) if link.parent == robot.links[i].name]
    points += [np.asarray(robot.frame(x.name)[1])[:3, 3] for x in robot.frames if x.link == robot.links[i].name]
    mass = float(robot.inertias[i, 0])
    if mass > 0:
        points.append(np.asarray(robot.inertias[i, 1:4], dtype=float) / mass)
    far = max(points, key=lambda x: float(np.linalg.norm(x)))
    length = float(np.linalg.norm(far))
    ball = (3.0 * mass / (4.0 * np.pi * DENSITY)) ** (1 / 3)
    rod = np.sqrt(mass / (np.pi * DENSITY * length)) if length > 1e-9 else np.inf
    radius = max(min(ball, float(rod)), 0.02 * length, 1e-3)
    return i, np.array([origin, far]), radius, robot.link_names[i]


def _own_pairs(robot: Robot, links: Sequence[int], ends: np.ndarray, radii: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of bodies on links that are not neighbours and do not touch at all of some random configurations."""
    from .segments import closest

    parents = {-1: -2} | {i: robot.link_index(link.parent) for i, link in enumerate(robot.links)}
    pairs = [
        (i, j) if links[i] >= 0 else (j, i)
        for i in range(len(links))
        for j in range(i + 1, len(links))
        if links[i] != links[j] and parents[links[i]] != links[j] and parents[links[j]] != links[i]
    ]
    if not pairs:
        return []
    q = np.asarray(robot.random(np.random.default_rng(0), (SAMPLES,)))
    X = np.concatenate([np.asarray(forward_kinematics(robot, q)), np.broadcast_to(np.eye(4), (SAMPLES, 1, 4, 4))], axis=1)
    own = X[:, list(links)]
    points = ends[: len(links)] @ own[..., :3, :3].swapaxes(-1, -2) + own[..., None, :3, 3]
    chosen = np.array(pairs)
    distance = closest(points[:, chosen[:, 0]], points[:, chosen[:, 1]]).distance - radii[chosen].sum(1)
    return [pair for pair, apart in zip(pairs, (distance > 0).any(0), strict=True) if apart]


def _numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Names, with a number where one stands several times."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if names.count(name) == 1 else f"{name} ({seen[name]})")
    return tuple(found)
