"""The limits of an exciting motion: limits of position, velocity, acceleration and torque, distances between spheres and from planes.

All become rows g ≤ 0 without unit, each beside what a message calls it. Distances d(q) are those of the spheres' surfaces:

    |pᵢ - pⱼ| - rᵢ - rⱼ ≥ clearance        n·pᵢ - offset - rᵢ ≥ clearance
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..arguments import a_moving_robot, sequence
from ..arrays import Array, dot, mv, namespace, stack, unmasked
from ..compiling import compile
from ..differentiating import vjp
from ..dynamics import inverse_dynamics
from ..errors import CoadjointError, ShapeError, unknown
from ..kinematics import pose
from ..robot.robot import Robot
from ..words import short

SLOW = 0.05
"""Speed (rad/s, m/s) above which Coulomb friction is taken whole: near standstill it is smoothed by tanh."""


@dataclass(frozen=True)
class Sphere:
    """A sphere on a link, or on a frame, or on the base, where it is an obstacle."""

    frame: str
    center: tuple[float, float, float]
    radius: float


def check_joints(robot: Robot) -> None:
    """An error where a joint is not of one freedom: its curve would not be a function of one number."""
    a_moving_robot(robot, "robot")
    for i, (link, kind) in enumerate(zip(robot.links, robot.kinds, strict=True)):
        if kind.nv > 1 and i not in robot.mimics:
            remedy = "load the robot with base='fixed'" if kind.nv == 6 else "lock it with `robot.lock`"
            raise CoadjointError(
                f"joint {link.joint.name!r} is {link.joint.kind}; exciting motions are designed for joints of one freedom: {remedy}."
            )


def bounds(robot: Robot, position: Any) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper limits (nv,): the robot's, replaced by {joint: (lower, upper)} or a pair (lower, upper) of numbers or arrays."""
    lower, upper = robot.lower.copy(), robot.upper.copy()
    if isinstance(position, Mapping):
        for joint, pair in position.items():
            place = robot.q_slice(joint)
            lower[place], upper[place] = _pair(pair, f"position[{joint!r}]", 1)
    elif position is not None:
        lower, upper = _pair(position, "position", robot.nv)
    for k, name in enumerate(robot.q_names):
        if not (np.isfinite(lower[k]) and np.isfinite(upper[k])):
            raise CoadjointError(f"joint {name!r} has no limits of position; give them, as in position={{{name!r}: (-1.5, 1.5)}}.")
        if not lower[k] < upper[k]:
            raise CoadjointError(f"joint {name!r} may move from {lower[k]:g} to {upper[k]:g}; the lower limit must be the smaller.")
    return lower, upper


def _pair(x: Any, name: str, size: int) -> tuple[np.ndarray, np.ndarray]:
    try:
        lower, upper = (np.array(np.broadcast_to(np.asarray(unmasked(y), dtype=float), (size,))) for y in x)
    except (TypeError, ValueError, OverflowError):
        numbers = "two numbers" if size == 1 else f"two numbers or two arrays ({size},)"
        raise ShapeError(f"{name} is {short(x)}; expected (lower, upper), {numbers}.") from None
    return lower, upper


def sizes(robot: Robot, name: str, given: Any, own: np.ndarray, needed: bool) -> np.ndarray:
    """Limits (nv,) of |v|, |a| or |τ|: the robot's own, replaced by a number, an array (nv,) or {joint: number}."""
    found = np.array(own, dtype=float)
    if isinstance(given, Mapping):
        for joint, x in given.items():
            place = robot.v_slice(joint)
            try:
                found[place] = np.asarray(unmasked(x), dtype=float)
            except (TypeError, ValueError, OverflowError):
                raise ShapeError(f"{name}[{joint!r}] is {short(x)}; expected a number.") from None
    elif given is not None:
        try:
            found = np.array(np.broadcast_to(np.asarray(unmasked(given), dtype=float), (robot.nv,)))
        except (TypeError, ValueError, OverflowError):
            raise ShapeError(f"{name} is {short(given)}; expected a number, ({robot.nv},) numbers or {{joint: number}}.") from None
    for k, joint in enumerate(robot.v_names):
        if not found[k] > 0:
            raise CoadjointError(
                f"the {name} limit of joint {joint!r} is {found[k]:g}; expected a positive number, as {name}={{{joint!r}: 2.0}}."
            )
        if needed and not np.isfinite(found[k]):
            raise CoadjointError(f"joint {joint!r} has no limit of {name}; give one, as in {name}={{{joint!r}: 2.0}}.")
    return found


def read_spheres(robot: Robot, spheres: Sequence[Any]) -> tuple[Sphere, ...]:
    """Spheres from triples (frame, center, radius); an error names the one that is wrong."""
    found = []
    for k, x in enumerate(sequence(spheres, "spheres")):
        if isinstance(x, Sphere):
            frame, center, radius = x.frame, x.center, x.radius
        elif isinstance(x, Sequence) and len(x) == 3:
            frame, center, radius = x
        else:
            raise CoadjointError(f"spheres[{k}] is {short(x)}; expected (link or frame, center, radius).")
        if frame != robot.base and frame not in robot.frame_names and frame not in robot.link_names:
            raise unknown("link or frame", frame, [robot.base, *robot.link_names, *robot.frame_names])
        try:
            c, r = np.asarray(unmasked(center), dtype=float), float(radius)
        except (TypeError, ValueError, OverflowError):
            c, r = np.zeros(0), 0.0
        if c.shape != (3,) or not np.isfinite(c).all() or not (np.isfinite(r) and r > 0):
            raise CoadjointError(
                f"spheres[{k}] on {frame!r} has center {short(center)} and radius {short(radius)}; expected 3 numbers and a positive one."
            )
        found.append(Sphere(frame, tuple(c.tolist()), r))
    return tuple(found)


def read_planes(planes: Sequence[Any]) -> tuple[tuple[tuple[float, ...], float], ...]:
    """Planes n·x = offset, spheres being where n·x is larger: pairs (n, offset), n of any length."""
    found = []
    for k, x in enumerate(sequence(planes, "planes")):
        try:
            normal, offset = np.asarray(unmasked(x[0]), dtype=float), float(x[1])
        except (TypeError, ValueError, IndexError):
            normal, offset = np.zeros(0), 0.0
        length = float(np.linalg.norm(normal))
        if normal.shape != (3,) or not (np.isfinite(length) and length > 0 and np.isfinite(offset)):
            raise CoadjointError(f"planes[{k}] is {short(x)}; expected (normal, offset), as ((0, 0, 1), 0.0) for the floor.")
        found.append((tuple((normal / length).tolist()), offset / length))
    return tuple(found)


@dataclass(frozen=True)
class Limits:
    """All limits of a design."""

    robot: Robot
    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    effort: np.ndarray
    spheres: tuple[Sphere, ...] = ()
    planes: tuple[tuple[tuple[float, ...], float], ...] = ()
    clearance: float = 0.0
    scale: float = 0.1
    """A distance (m) that counts like the whole range of a joint."""

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of spheres that could meet: those on one link, and on links that one joint connects, cannot be asked to keep apart."""
        robot, links = self.robot, [self.robot.frame(s.frame)[0] for s in self.spheres]

        def parent(i: int) -> int | None:
            return robot.parents[i] if i >= 0 else None

        def apart(i: int, j: int) -> bool:
            return i != j and parent(i) != j and parent(j) != i

        return [(i, j) for i in range(len(links)) for j in range(i + 1, len(links)) if apart(links[i], links[j])]

    @cached_property
    def names(self) -> list[str]:
        """The name of each distance."""

        def on(i: int) -> str:
            return f"sphere {i} on {self.spheres[i].frame!r}"

        moving = [i for i, s in enumerate(self.spheres) if self.robot.frame(s.frame)[0] >= 0]
        return [f"{on(i)} from {on(j)}" for i, j in self.pairs] + [
            f"{on(i)} from plane {k}" for k in range(len(self.planes)) for i in moving
        ]

    @cached_property
    def _distances(self) -> Any:
        spheres, pairs, planes = self.spheres, self.pairs, self.planes
        moving = [i for i, s in enumerate(spheres) if self.robot.frame(s.frame)[0] >= 0]

        def distances(robot: Robot, q: Array) -> Array:
            poses = {s.frame: pose(robot, q, s.frame) for s in spheres}
            p = [mv(poses[s.frame][..., :3, :3], np.array(s.center)) + poses[s.frame][..., :3, 3] for s in spheres]
            xp = namespace(q)
            rows = [xp.sqrt(dot(p[i] - p[j], p[i] - p[j])) - (spheres[i].radius + spheres[j].radius) for i, j in pairs]
            rows += [dot(np.array(n), p[i]) - (offset + spheres[i].radius) for n, offset in planes for i in moving]
            return stack(rows)

        return distances

    @cached_property
    def distances(self) -> Any:
        """d (..., rows) of q (..., nq), native; None without spheres that could meet anything."""
        return compile(self._distances, self.robot) if self.names else None

    @cached_property
    def distances_vjp(self) -> Any:
        return vjp(self._distances, self.robot, "q")

    @cached_property
    def torque_vjp(self) -> Any:
        return vjp(inverse_dynamics, self.robot, ["q", "v", "a"])

    def torque(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """τ of the robot as it is given, with the joints' friction."""
        loss = smooth_friction(self.robot, v, self.robot.damping, self.robot.friction)
        result: np.ndarray = inverse_dynamics(self.robot, q, v, a) + loss
        return result

    @property
    def torque_limited(self) -> bool:
        return bool(np.isfinite(self.effort).any())

    def violation(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """The largest row g (...,) of every state, without unit: kept where it is ≤ 0."""
        result: np.ndarray = np.max([g.max(-1) for g in self.rows(q, v, a).values()], axis=0)
        return result

    def signed(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> dict[str, np.ndarray]:
        """The limited quantities, in units of their limits: within ±1 where the limits hold."""
        found = {
            "position": (q - 0.5 * (self.upper + self.lower)) / (0.5 * (self.upper - self.lower)),
            "velocity": v / self.velocity,
        }
        if np.isfinite(self.acceleration).any():
            found["acceleration"] = a / self.acceleration
        if self.torque_limited:
            found["torque"] = self.torque(q, v, a) / self.effort
        return found

    def rows(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> dict[str, np.ndarray]:
        """Rows g (..., k) by kind."""
        found = {kind: np.abs(y) - 1.0 for kind, y in self.signed(q, v, a).items()}
        if self.distances is not None:
            found["distance"] = (self.clearance - self.distances(q)) / self.scale
        return found

    def worst(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> str:
        """The limit that is violated most, in words."""
        rows = self.rows(q, v, a)
        kind = max(rows, key=lambda k: float(rows[k].max()))
        g = rows[kind].reshape(-1, rows[kind].shape[-1])
        n, k = np.unravel_index(int(np.argmax(g)), g.shape)
        if kind == "distance":
            return f"the distance of {self.names[k]} is {float(self.distances(q).reshape(g.shape)[n, k]):.3g} m (asked: {self.clearance:g})"
        value = {"position": q, "velocity": v, "acceleration": a}.get(kind)
        value = self.torque(q, v, a) if value is None else value
        limit = {"velocity": self.velocity, "acceleration": self.acceleration, "torque": self.effort}.get(kind)
        asked = f"{self.lower[k]:.4g} … {self.upper[k]:.4g}" if limit is None else f"{limit[k]:.4g}"
        names = self.robot.q_names if kind == "position" else self.robot.v_names
        return f"the {kind} of joint {names[k]!r} is {float(value.reshape(g.shape)[n, k]):.4g} (limit {asked})"


def smooth_friction(robot: Robot, v: np.ndarray, damping: np.ndarray, friction: np.ndarray) -> np.ndarray:
    """Viscous and Coulomb friction (..., nv), the latter friction · tanh(v / SLOW)."""
    w = robot.tree_v(v)
    result: np.ndarray = robot.from_tree(damping * w + friction * np.tanh(w / SLOW))
    return result


def smooth_friction_rate(robot: Robot, v: np.ndarray, damping: np.ndarray, friction: np.ndarray) -> np.ndarray:
    """∂ smooth_friction / ∂v (..., nv, nv)."""
    w, G = robot.tree_v(v), robot.tree_v(np.eye(robot.nv)).T
    slope = damping + friction / SLOW / np.cosh(np.clip(w / SLOW, -50, 50)) ** 2
    result: np.ndarray = G.T @ (slope[..., None] * G)
    return result
