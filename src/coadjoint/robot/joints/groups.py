"""Joints that move as a subgroup of SE(3): spherical, planar, free.

Their velocities are those of the body, left-invariant fields on the group and not rates of coordinates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import Array, concat, cross, dot, matrix, mv, namespace, stack, transpose
from ...lie import quaternion, se3, so3
from .kind import JointKind, bounds, differ, line, nearest_rotation, slide, uniform


class Group(JointKind):
    """The common part of the three: screws along the axes of one frame."""

    name: str

    def axes(self, screws: np.ndarray, exact: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The axes (3, 3), orthogonal if `exact`, and the screws (nv, 6) that belong to them."""
        w, v = screws[:3, :3], screws[:3, 3:]
        axes, c = w, 0.5 * np.cross(w, v).sum(0)
        axes = nearest_rotation(axes) if exact else axes
        return axes, np.concatenate([np.block([axes, np.cross(c, axes)]), np.block([np.zeros((3, 3)), axes])])[: self.nv]

    def defect(self, screws: np.ndarray, tolerance: float = 1e-6) -> str:
        axes, expected = self.axes(screws)
        if differ(axes @ axes.T, np.eye(3), tolerance) or np.linalg.det(axes) < 0:
            return f"the axes must be three orthogonal unit vectors, right-handed: make it with `Joint.{self.name}`"
        if differ(screws, expected, tolerance):
            return f"the axes must meet in one point, slides go along them: make it with `Joint.{self.name}`"
        return ""

    def _corrected(self, screws: np.ndarray) -> np.ndarray:
        return self.axes(screws, exact=True)[1]

    def centre(self, screws: np.ndarray) -> np.ndarray:
        return axes_and_centre(screws)[1]


class Spherical(Group):
    """The rotations about a point; v is the angular velocity in the axes of the link."""

    name, nq, nv = "spherical", 4, 3
    q_parts, v_parts = ("qx", "qy", "qz", "qw"), ("wx", "wy", "wz")
    group, turns, quaternion = (0, 1, 2), (True,) * 3, slice(0, 4)

    def pose(self, screws: Array, q: Array) -> Array:
        K, c = axes_and_centre(screws)
        R = K @ _rotation(q) @ transpose(K)
        return se3.pose(R, c - mv(R, c))

    def neutral(self) -> np.ndarray:
        return np.array([0.0, 0.0, 0.0, 1.0])

    def integrate(self, q: Array, dv: Array) -> Array:
        return quaternion.normalize(quaternion.multiply(q, quaternion.exp(dv)))

    def difference(self, q0: Array, q1: Array) -> Array:
        return quaternion.log(quaternion.multiply(quaternion.conjugate(q0), q1))

    def rate(self, q: Array, v: Array) -> Array:
        return quaternion.rate(q, v)

    def normalize(self, q: Array) -> Array:
        return quaternion.normalize(q)

    def random(self, rng: np.random.Generator, shape: tuple[int, ...], lower: Array, upper: Array) -> np.ndarray:
        q = rng.normal(size=(*shape, 4))
        result: np.ndarray = q / np.linalg.norm(q, axis=-1, keepdims=True)
        return result

    def home_screws(self, **geometry: Any) -> np.ndarray:
        return np.stack([line(e, geometry["point"]) for e in np.eye(3)])


class Planar(Group):
    """SE(2): q = (x, y, θ), v = (ω, vx, vy) in the axes of the link; screws are the normal, x and y."""

    name, nq, nv = "planar", 3, 3
    q_parts, v_parts = ("x", "y", "angle"), ("w", "vx", "vy")
    group, turns, angles = (2, 3, 4), (True, False, False), ((2, 0),)

    def pose(self, screws: Array, q: Array) -> Array:
        normal, x, y = screws[..., 0, :3], screws[..., 1, 3:], screws[..., 2, 3:]
        K, c = stack([x, y, normal], axis=-1), cross(normal, screws[..., 0, 3:])
        xp = namespace(q)
        cos, sin = xp.cos(q[..., 2]), xp.sin(q[..., 2])
        R = K @ matrix([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]]) @ transpose(K)
        return se3.pose(R, c + mv(K, stack([q[..., 0], q[..., 1], 0.0])) - mv(R, c))

    def integrate(self, q: Array, dv: Array) -> Array:
        xp = namespace(q, dv)
        zero = dv[..., 0] * 0.0
        T = se3.exp(stack([zero, zero, dv[..., 0], dv[..., 1], dv[..., 2], zero]))
        c, s = xp.cos(q[..., 2]), xp.sin(q[..., 2])
        x, y = T[..., 0, 3], T[..., 1, 3]
        return stack([q[..., 0] + c * x - s * y, q[..., 1] + s * x + c * y, q[..., 2] + dv[..., 0]])

    def difference(self, q0: Array, q1: Array) -> Array:
        xp = namespace(q0, q1)
        c, s = xp.cos(q0[..., 2]), xp.sin(q0[..., 2])
        x, y, angle = q1[..., 0] - q0[..., 0], q1[..., 1] - q0[..., 1], q1[..., 2] - q0[..., 2]
        zero = angle * 0.0
        w = stack([zero, zero, angle])
        p = mv(so3.dexp_inverse(w), stack([c * x + s * y, c * y - s * x, zero]))
        return stack([angle, p[..., 0], p[..., 1]])

    def rate(self, q: Array, v: Array) -> Array:
        xp = namespace(q, v)
        c, s = xp.cos(q[..., 2]), xp.sin(q[..., 2])
        return stack([c * v[..., 1] - s * v[..., 2], s * v[..., 1] + c * v[..., 2], v[..., 0]])

    def home_screws(self, **geometry: Any) -> np.ndarray:
        return np.stack([line(geometry["axis"], geometry["point"]), *map(slide, geometry["plane"])])

    def axes(self, screws: np.ndarray, exact: bool = False) -> tuple[np.ndarray, np.ndarray]:
        w, v = screws[:, :3], screws[:, 3:]
        axes, c = np.stack([v[1], v[2], w[0]]), np.cross(w[0], v[0])
        axes = nearest_rotation(axes) if exact else axes
        return axes, np.stack([line(axes[2], c), slide(axes[0]), slide(axes[1])])

    def centre(self, screws: np.ndarray) -> np.ndarray:
        return np.cross(screws[0, :3], screws[0, 3:])


class Free(Group):
    """SE(3): q = (position, quaternion), v = the body twist (ω, v)."""

    name, nq, nv = "free", 7, 6
    q_parts, v_parts = ("x", "y", "z", "qx", "qy", "qz", "qw"), ("wx", "wy", "wz", "vx", "vy", "vz")
    group, turns, quaternion = (0, 1, 2, 3, 4, 5), (True,) * 3 + (False,) * 3, slice(3, 7)

    def pose(self, screws: Array, q: Array) -> Array:
        K, c = axes_and_centre(screws)
        R = K @ _rotation(q[..., 3:]) @ transpose(K)
        return se3.pose(R, c + mv(K, q[..., :3]) - mv(R, c))

    def neutral(self) -> np.ndarray:
        return np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])

    def integrate(self, q: Array, dv: Array) -> Array:
        step = se3.exp(dv)
        p = q[..., :3] + mv(_rotation(q[..., 3:]), step[..., :3, 3])
        return concat([p, quaternion.normalize(quaternion.multiply(q[..., 3:], quaternion.exp(dv[..., :3])))])

    def difference(self, q0: Array, q1: Array) -> Array:
        R = _rotation(q0[..., 3:])
        w = quaternion.log(quaternion.multiply(quaternion.conjugate(q0[..., 3:]), q1[..., 3:]))
        p = mv(transpose(R), q1[..., :3] - q0[..., :3])
        return concat([w, mv(so3.dexp_inverse(w), p)])

    def rate(self, q: Array, v: Array) -> Array:
        return concat([mv(_rotation(q[..., 3:]), v[..., 3:]), quaternion.rate(q[..., 3:], v[..., :3])])

    def normalize(self, q: Array) -> Array:
        return concat([q[..., :3], quaternion.normalize(q[..., 3:])])

    def random(self, rng: np.random.Generator, shape: tuple[int, ...], lower: Array, upper: Array) -> np.ndarray:
        p = uniform(rng, *bounds(lower[:3], upper[:3], 1.0), (*shape, 3))
        return np.concatenate([p, Spherical().random(rng, shape, lower, upper)], axis=-1)

    def home_screws(self, **geometry: Any) -> np.ndarray:
        return np.stack([line(e) for e in np.eye(3)] + [slide(e) for e in np.eye(3)])


def _rotation(q: Array) -> Array:
    """The rotation 1 + 2 (w [u] + [u]²)/|q|² of a quaternion q = (u, w) of any length but zero: only its direction matters."""
    u = q[..., :3]
    scaled = (u + u) / dot(q, q)[..., None]
    return quaternion.rotation(u, scaled * q[..., 3:], scaled)


def axes_and_centre(screws: Array) -> tuple[Array, Array]:
    """The frame K whose axes are the first three screws, rotations ωᵢ about one point c: vᵢ = c × ωᵢ, so Σ ωᵢ × vᵢ = 2c."""
    w, v = screws[..., :3, :3], screws[..., :3, 3:]
    return transpose(w), 0.5 * cross(w, v).sum(-2)
