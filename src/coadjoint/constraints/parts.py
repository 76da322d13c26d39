"""The parts of a constraint, and those that are holonomic: points, frames, loops, cables and gears.

A part gives rows A(q) v = 0, and for holonomic rows the value φ(q) whose vanishing they keep. A v is the rate of φ where φ vanishes;
`bias` is Ȧ v, so that A a + Ȧ v is the rate of A v everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..arrays import Array, concat, cross, dot, like, namespace, stack
from ..errors import CoadjointError
from ..kinematics.jacobian import jacobian
from ..kinematics.poses import pose
from ..lie import se3, so3
from ..robot.robot import Robot
from .relative import accelerations, frame_motion, rates, relative, relative_jacobian, relative_motion, rows

DIRECTIONS = ("rx", "ry", "rz", "x", "y", "z")
"""Rotations about and translations along the axes of a frame, in the order of twists."""

JOINTS = {
    "fixed": "rx ry rz x y z",
    "revolute": "rx ry x y z",
    "prismatic": "rx ry rz x y",
    "cylindrical": "rx ry x y",
    "universal": "rz x y z",
    "spherical": "x y z",
    "planar": "rx ry z",
}
"""The directions that loop joints hold; their axis is z, and a planar one slides in x and y."""


def directions(axes: object, known: Iterable[str] = DIRECTIONS) -> tuple[str, ...]:
    """The directions in a text such as "xy" or "rx ry z"."""
    text = axes if isinstance(axes, str) else ""
    found = tuple(re.findall(r"r?[xyz]", text))
    if not found or "".join(found) != re.sub(r"[\s,]", "", text) or len(set(found)) < len(found) or not set(found) <= {*known}:
        raise CoadjointError(
            f"axes is {axes!r}; expected some of {' '.join(known)}, each once, as in {' '.join(list(known)[-2:])!r}."
        )
    return found


@dataclass(frozen=True)
class Part:
    """Rows of a constraint of one kind; parts with equal data are equal."""

    def names(self, robot: Robot) -> tuple[str, ...]:
        """The names of the rows."""
        raise NotImplementedError

    def holonomic(self, robot: Robot) -> tuple[bool, ...]:
        """True for rows that are the rate of a value of φ."""
        return (True,) * len(self.names(robot))

    def value(self, robot: Robot, q: Array) -> Array | None:
        """φ (..., number of holonomic rows)."""
        return None

    def jacobian(self, robot: Robot, q: Array) -> Array:
        """A (..., m, nv)."""
        raise NotImplementedError

    def bias(self, robot: Robot, q: Array, v: Array) -> Array:
        """Ȧ v (..., m)."""
        raise NotImplementedError

    def held(self, robot: Robot, q: np.ndarray) -> Part:
        """This part with open values, such as the place of a point, fixed at those at q (nq,)."""
        return self

    def frozen(self, robot: Robot) -> Part:
        """This part with users' functions as traced now."""
        return self

    def identity(self, robot: Robot) -> str:
        """A text that identifies the part, for the key of compiled code."""
        return repr(self)


@dataclass(frozen=True)
class Point(Part):
    """The origin of a frame keeps some of its coordinates in space."""

    frame: str
    axes: tuple[str, ...]
    at: tuple[float, ...] | None

    def names(self, robot: Robot) -> tuple[str, ...]:
        return tuple(f"{self.frame} {x}" for x in self.axes)

    def holonomic(self, robot: Robot) -> tuple[bool, ...]:
        return (self.at is not None,) * len(self.axes)

    def value(self, robot: Robot, q: Array) -> Array | None:
        p = pose(robot, q, self.frame)[..., :3, 3]
        return None if self.at is None else stack([p[..., "xyz".index(x)] - c for x, c in zip(self.axes, self.at, strict=True)])

    def jacobian(self, robot: Robot, q: Array) -> Array:
        J = jacobian(robot, q, self.frame, "world")
        return rows([J[..., 3 + "xyz".index(x), :] for x in self.axes])

    def bias(self, robot: Robot, q: Array, v: Array) -> Array:
        T = pose(robot, q, self.frame)
        ddp = accelerations(robot, q, v, robot.base, self.frame, T, T[..., :3, :3]).ddp
        return stack([ddp[..., "xyz".index(x)] for x in self.axes])

    def held(self, robot: Robot, q: np.ndarray) -> Point:
        p = pose(robot, q, self.frame)[..., :3, 3]
        return self if self.at is not None else replace(self, at=tuple(float(p["xyz".index(x)]) for x in self.axes))


@dataclass(frozen=True)
class Fixed(Part):
    """A frame stays where it is in space: its body twist vanishes."""

    frame: str
    at: tuple[tuple[float, ...], ...] | None

    def names(self, robot: Robot) -> tuple[str, ...]:
        return tuple(f"{self.frame} {x}" for x in DIRECTIONS)

    def holonomic(self, robot: Robot) -> tuple[bool, ...]:
        return (self.at is not None,) * 6

    def value(self, robot: Robot, q: Array) -> Array | None:
        if self.at is None:
            return None
        T = like(se3.inverse(np.array(self.at)), q) @ pose(robot, q, self.frame)
        return concat([so3.log(T[..., :3, :3]), T[..., :3, 3]])

    def jacobian(self, robot: Robot, q: Array) -> Array:
        return jacobian(robot, q, self.frame)

    def bias(self, robot: Robot, q: Array, v: Array) -> Array:
        return frame_motion(robot, q, v, self.frame)[1]

    def held(self, robot: Robot, q: np.ndarray) -> Fixed:
        return self if self.at is not None else replace(self, at=hashable(pose(robot, q, self.frame)))


@dataclass(frozen=True)
class Loop(Part):
    """A frame b agrees with a frame a, or with what stands at `at` in a, in some directions of the latter.

    Three directions of turning hold the whole orientation. Two leave the turn about the third, a common axis of both frames. One,
    rz, holds the x axis of b at right angles to the y axis of a, as the cross of a universal joint does, and so on round. As long as
    `at` is open the rows are those of the twist of b relative to a in b: at every q what `held` makes of them there.
    """

    a: str
    b: str
    axes: tuple[str, ...]
    at: tuple[tuple[float, ...], ...] | None

    def names(self, robot: Robot) -> tuple[str, ...]:
        return tuple(f"{self.a} to {self.b} {x}" for x in self.axes)

    def holonomic(self, robot: Robot) -> tuple[bool, ...]:
        return (self.at is not None,) * len(self.axes)

    def _poses(self, robot: Robot, q: Array) -> tuple[Array, Array]:
        """b in a, and in what it is to agree with."""
        T = relative(robot, q, self.a, self.b)
        return T, like(se3.inverse(np.array(self.at)), q) @ T

    @property
    def _turns(self) -> list[int]:
        return ["xyz".index(x[1]) for x in self.axes if len(x) == 2]

    def value(self, robot: Robot, q: Array) -> Array | None:
        if self.at is None:
            return None
        _, T = self._poses(robot, q)
        R, turns = T[..., :3, :3], self._turns
        if len(turns) == 3:
            turned = so3.log(R)
        elif len(turns) == 2:
            turned = _tilt(R, ({0, 1, 2} - {*turns}).pop())
        elif turns:
            i, j = (turns[0] + 1) % 3, (turns[0] + 2) % 3
            turned = stack([R[..., j, i]] * 3)
        return stack([turned[..., "xyz".index(x[1])] if len(x) == 2 else T[..., "xyz".index(x), 3] for x in self.axes])

    def jacobian(self, robot: Robot, q: Array) -> Array:
        if self.at is None:
            J = relative_jacobian(robot, q, self.a, self.b, relative(robot, q, self.a, self.b))
            return rows([J[..., DIRECTIONS.index(x), :] for x in self.axes])
        T, agreed = self._poses(robot, q)
        R = agreed[..., :3, :3]
        W, D = rates(robot, q, self.a, self.b, T, R)
        if len(self._turns) == 1:
            W = stack([(_crossed(R, self._turns[0])[..., None] * W).sum(-2)] * 3, axis=-2)
        return rows([W[..., "xyz".index(x[1]), :] if len(x) == 2 else D[..., "xyz".index(x), :] for x in self.axes])

    def bias(self, robot: Robot, q: Array, v: Array) -> Array:
        if self.at is None:
            _, rate = relative_motion(robot, q, v, self.a, self.b, relative(robot, q, self.a, self.b))
            return stack([rate[..., DIRECTIONS.index(x)] for x in self.axes])
        T, agreed = self._poses(robot, q)
        R = agreed[..., :3, :3]
        w, _, dw, ddp = accelerations(robot, q, v, self.a, self.b, T, R)
        if len(self._turns) == 1:
            k = self._turns[0]
            moving = cross(cross(w, R[..., :, (k + 1) % 3]), like(np.eye(3)[(k + 2) % 3], w))
            dw = stack([dot(dw, _crossed(R, k)) + dot(w, moving)] * 3)
        return stack([dw[..., "xyz".index(x[1])] if len(x) == 2 else ddp[..., "xyz".index(x)] for x in self.axes])

    def held(self, robot: Robot, q: np.ndarray) -> Loop:
        return self if self.at is not None else replace(self, at=hashable(relative(robot, q, self.a, self.b)))


def _tilt(R: Array, k: int) -> Array:
    """The rotation vector (..., 3), orthogonal to axis k, of the shortest rotation that takes axis k to its image under R."""
    xp, axis = namespace(R), R[..., :, k]
    e = like(np.eye(3)[k], R)
    side = cross(e, axis)
    square = dot(side, side)
    sine = xp.sqrt(xp.where(square > 1e-30, square, 1e-30 + 0.0 * square))
    angle = xp.atan2(sine, axis[..., k])
    reversed_ = (axis[..., k] < 0.0) & (square <= 1e-30)  # no shortest turn: any will do
    half_turn = like(np.pi * np.eye(3)[(k + 1) % 3], R) + 0.0 * side
    return xp.where(reversed_[..., None], half_turn, (angle / sine)[..., None] * side)


def _crossed(R: Array, k: int) -> Array:
    """x_b × y_a for k = z, and so on round: the axis about which turning changes x_b · y_a."""
    return cross(R[..., :, (k + 1) % 3], like(np.eye(3)[(k + 2) % 3], R))


@dataclass(frozen=True)
class Cable(Part):
    """The polygon through the origins of the frames has a constant length."""

    frames: tuple[str, ...]
    length: float | None

    def names(self, robot: Robot) -> tuple[str, ...]:
        return (f"cable {' '.join(self.frames)}",)

    def holonomic(self, robot: Robot) -> tuple[bool, ...]:
        return (self.length is not None,)

    def _spans(self, robot: Robot, q: Array) -> tuple[list[Array], list[Array], list[Array]]:
        """Poses of the frames, unit vectors from each to the next, and distances (..., 1)."""
        T = [like(pose(robot, q, x), q) for x in self.frames]
        spans = [b[..., :3, 3] - a[..., :3, 3] for a, b in pairwise(T)]
        lengths = [namespace(x).sqrt(dot(x, x))[..., None] for x in spans]
        return T, [x / d for x, d in zip(spans, lengths, strict=True)], lengths

    def value(self, robot: Robot, q: Array) -> Array | None:
        return None if self.length is None else sum(self._spans(robot, q)[2]) - self.length

    def jacobian(self, robot: Robot, q: Array) -> Array:
        _, along, _ = self._spans(robot, q)
        J = [jacobian(robot, q, x, "world")[..., 3:, :] for x in self.frames]
        total = sum((u[..., None] * (b - a)).sum(-2) for u, a, b in zip(along, J, J[1:], strict=False))
        return rows([total])

    def bias(self, robot: Robot, q: Array, v: Array) -> Array:
        T, along, lengths = self._spans(robot, q)
        motions = [accelerations(robot, q, v, robot.base, x, t, t[..., :3, :3]) for x, t in zip(self.frames, T, strict=True)]
        total = 0.0
        for u, d, a, b in zip(along, lengths, motions, motions[1:], strict=False):
            dp = b.dp - a.dp
            total = total + dot(u, b.ddp - a.ddp) + (dot(dp, dp) - dot(u, dp) ** 2) / d[..., 0]
        return stack([total])

    def held(self, robot: Robot, q: np.ndarray) -> Cable:
        return self if self.length is not None else replace(self, length=float(sum(x[0] for x in self._spans(robot, q)[2])))


@dataclass(frozen=True)
class Gear(Part):
    """Σ coefficient · coordinate of joints with one freedom keeps its value."""

    terms: tuple[tuple[str, float], ...]
    offset: float | None

    def names(self, robot: Robot) -> tuple[str, ...]:
        return (f"gear {' '.join(joint for joint, _ in self.terms)}",)

    def holonomic(self, robot: Robot) -> tuple[bool, ...]:
        return (self.offset is not None,)

    def value(self, robot: Robot, q: Array) -> Array | None:
        if self.offset is None:
            return None
        return sum(c * q[..., robot.q_slice(joint)] for joint, c in self.terms) - self.offset

    def jacobian(self, robot: Robot, q: Array) -> Array:
        A = np.zeros((1, robot.nv))
        for joint, c in self.terms:
            A[0, robot.v_slice(joint)] += c
        return like(A, q)

    def bias(self, robot: Robot, q: Array, v: Array) -> Array:
        return 0.0 * v[..., :1]

    def held(self, robot: Robot, q: np.ndarray) -> Gear:
        if self.offset is not None:
            return self
        return replace(self, offset=float(sum(c * q[robot.q_slice(joint)][0] for joint, c in self.terms)))


def hashable(T: Any) -> tuple[tuple[float, ...], ...]:
    """A pose as tuples of numbers."""
    return tuple(tuple(float(x) for x in row) for row in np.asarray(T))
