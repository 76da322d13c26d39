"""Nonholonomic constraints: directions in which a frame does not move, and wheels and balls that roll without slipping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Array, concat, cross, dot, like, mv, namespace, stack
from ..kinematics.jacobian import jacobian
from ..kinematics.poses import pose
from ..robot.robot import Robot
from .parts import DIRECTIONS, Part
from .relative import accelerations, frame_motion, rates, relative, rows


@dataclass(frozen=True)
class Twist(Part):
    """Components of the twist of a frame vanish, by its own axes ("body") or at its origin by those of space ("world")."""

    frame: str
    axes: tuple[str, ...]
    reference: str

    def names(self, robot: Robot) -> tuple[str, ...]:
        return tuple(f"{self.frame} {x} ({self.reference})" for x in self.axes)

    def holonomic(self, robot: Robot) -> tuple[bool, ...]:
        return (False,) * len(self.axes)

    def jacobian(self, robot: Robot, q: Array) -> Array:
        J = jacobian(robot, q, self.frame, self.reference)
        return rows([J[..., DIRECTIONS.index(x), :] for x in self.axes])

    def bias(self, robot: Robot, q: Array, v: Array) -> Array:
        if self.reference == "body":
            rate = frame_motion(robot, q, v, self.frame)[1]
        else:
            T = pose(robot, q, self.frame)
            found = accelerations(robot, q, v, robot.base, self.frame, T, T[..., :3, :3])
            rate = concat([found.dw, found.ddp])
        return stack([rate[..., DIRECTIONS.index(x)] for x in self.axes])


@dataclass(frozen=True)
class Rolling(Part):
    """A ball, or a thin wheel with an axle, rolls without slipping on the plane z = 0 of a frame `on`.

    `frame` has its origin in the centre, and the wheel its axle along `axle`. With d from the centre to the point of contact,
    d = -r n for a ball and -r (n - (n·u) u) / |n - (n·u) u| for a wheel with the axle u, the point of the body that touches has the
    velocity ṗ + ω × d; its parts along x and y are the rows of rolling, and that along z is the rate of the height of contact.
    """

    frame: str
    radius: float
    axle: tuple[float, ...] | None
    on: str

    def names(self, robot: Robot) -> tuple[str, ...]:
        return (f"{self.frame} slip x", f"{self.frame} slip y", f"{self.frame} height")

    def holonomic(self, robot: Robot) -> tuple[bool, ...]:
        return (False, False, True)

    def _lever(self, R: Array) -> tuple[Array, Array, Array]:
        """d, the axle u and g = n - (n·u) u, all (..., 3) in the axes of the ground."""
        n = like(np.array([0.0, 0.0, 1.0]), R)
        if self.axle is None:
            return -self.radius * n, n, n
        u = mv(R, like(np.array(self.axle), R))
        g = n - u[..., 2:] * u
        return -self.radius * g / namespace(g).sqrt(dot(g, g))[..., None], u, g

    def value(self, robot: Robot, q: Array) -> Array:
        T = relative(robot, q, self.on, self.frame)
        return T[..., 2:3, 3] + self._lever(T[..., :3, :3])[0][..., 2:]

    def jacobian(self, robot: Robot, q: Array) -> Array:
        T = relative(robot, q, self.on, self.frame)
        R = T[..., :3, :3]
        W, D = rates(robot, q, self.on, self.frame, T, R)
        d = self._lever(R)[0]
        arms = [cross(d, like(np.eye(3)[k], d)) for k in range(3)]
        return rows([D[..., k, :] + (arms[k][..., None] * W).sum(-2) for k in range(3)])

    def bias(self, robot: Robot, q: Array, v: Array) -> Array:
        T = relative(robot, q, self.on, self.frame)
        R = T[..., :3, :3]
        w, _, dw, ddp = accelerations(robot, q, v, self.on, self.frame, T, R)
        d, u, g = self._lever(R)
        rate = ddp + cross(dw, d)
        if self.axle is None:
            return rate
        du = cross(w, u)
        dg = -(du[..., 2:] * u + u[..., 2:] * du)
        square = dot(g, g)[..., None]
        dd = -self.radius / namespace(g).sqrt(square) * (dg - g * dot(g, dg)[..., None] / square)
        return rate + cross(w, dd)
