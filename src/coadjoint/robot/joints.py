"""Joints as screws.

A joint carries a link relative to its parent: the link's frame stands at `placement @ pose(screws, q)` in the parent's.
Every joint is given by the screws of its degrees of freedom, rows (ω, v) in the frame of the link it carries, at home:

    one screw       revolute, continuous, prismatic, helical    exp(S q)                      Park, Bobrow & Ploen (1995), (23)
    two screws      universal                                   exp(S₁ q₁) exp(S₂ q₂)
    a subgroup      spherical, planar, free                     K g(q) K⁻¹, K the frame in which the screws are the axes

The velocity v of a subgroup joint is the body velocity of g, so that its screws stay constant; q of a spherical joint is a
quaternion (x, y, z, w), of a planar joint (x, y, θ), of a free joint (position, quaternion).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array, concat, cross, dot, matrix, mv, namespace, stack, transpose
from ..lie import quaternion, se3, so3


class JointKind:
    """What joints of one kind share: their coordinates, and how these move a link."""

    nq: int
    nv: int
    q_parts: tuple[str, ...] = ()
    v_parts: tuple[str, ...] = ()
    """What each coordinate is called after the joint's name, where there are several: `base.qx`."""

    def pose(self, screws: Array, q: Array) -> Array:
        """The motion (..., 4, 4) of the link from its home, for screws (nv, 6) and q (..., nq)."""
        raise NotImplementedError

    def subspace(self, screws: Array, q: Array) -> Array:
        """The screws S(q) (..., nv, 6) with which the velocity of the link relative to its parent is v @ S(q)."""
        return screws

    def bias(self, screws: Array, q: Array, v: Array) -> Array | None:
        """dS/dt v (..., 6), or None where S is constant."""
        return None

    def neutral(self) -> np.ndarray:
        """The coordinates of home."""
        return np.zeros(self.nq)

    def integrate(self, q: Array, dv: Array) -> Array:
        """q moved by the tangent vector dv: g(q) exp(dv)."""
        return q + dv

    def difference(self, q0: Array, q1: Array) -> Array:
        """The tangent vector that moves q0 to q1: log(g(q0)⁻¹ g(q1))."""
        return q1 - q0

    def rate(self, q: Array, v: Array) -> Array:
        """dq/dt (..., nq) at velocity v (..., nv)."""
        return v

    def normalize(self, q: Array) -> Array:
        """q with its quaternion, where it has one, of length one."""
        return q

    def random(self, rng: np.random.Generator, shape: tuple[int, ...], lower: Array, upper: Array) -> np.ndarray:
        """Coordinates drawn at random, within the limits where there are any and else within ±π."""
        return _uniform(rng, *_bounds(lower, upper, np.pi), (*shape, self.nq))


class Fixed(JointKind):
    """No motion."""

    nq, nv = 0, 0

    def pose(self, screws: Array, q: Array) -> Array:
        return np.eye(4)


class OneScrew(JointKind):
    """Revolute, continuous, prismatic and helical joints: exp(S q) with |ω| = 1, or ω = 0 and |v| = 1."""

    nq, nv = 1, 1

    def pose(self, screws: Array, q: Array) -> Array:
        return se3.exp_screw(screws[..., 0, :], q[..., 0])


class Universal(JointKind):
    """Two revolute joints in a row: exp(S₁ q₁) exp(S₂ q₂)."""

    nq, nv = 2, 2
    q_parts, v_parts = ("1", "2"), ("1", "2")

    def pose(self, screws: Array, q: Array) -> Array:
        return se3.exp_screw(screws[..., 0, :], q[..., 0]) @ se3.exp_screw(screws[..., 1, :], q[..., 1])

    def subspace(self, screws: Array, q: Array) -> Array:
        second = se3.exp_screw(screws[..., 1, :], q[..., 1])
        return stack([se3.Ad_inv_act(second, screws[..., 0, :]), screws[..., 1, :]], axis=-2)

    def bias(self, screws: Array, q: Array, v: Array) -> Array:
        S = self.subspace(screws, q)
        return se3.ad_act(S[..., 0, :], S[..., 1, :]) * (v[..., :1] * v[..., 1:])


class Spherical(JointKind):
    """The rotations about a point; v is the angular velocity in the axes of the link."""

    nq, nv = 4, 3
    q_parts, v_parts = ("qx", "qy", "qz", "qw"), ("wx", "wy", "wz")

    def pose(self, screws: Array, q: Array) -> Array:
        K, c = _axes_and_centre(screws)
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


class Planar(JointKind):
    """SE(2): q = (x, y, θ), v = (ω, vx, vy) in the axes of the link; screws are the normal, x and y."""

    nq, nv = 3, 3
    q_parts, v_parts = ("x", "y", "angle"), ("w", "vx", "vy")

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


class Free(JointKind):
    """SE(3): q = (position, quaternion), v = the body twist (ω, v)."""

    nq, nv = 7, 6
    q_parts, v_parts = ("x", "y", "z", "qx", "qy", "qz", "qw"), ("wx", "wy", "wz", "vx", "vy", "vz")

    def pose(self, screws: Array, q: Array) -> Array:
        K, c = _axes_and_centre(screws)
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
        p = _uniform(rng, *_bounds(lower[:3], upper[:3], 1.0), (*shape, 3))
        return np.concatenate([p, Spherical().random(rng, shape, lower, upper)], axis=-1)


def _bounds(lower: Array, upper: Array, usual: float) -> tuple[np.ndarray, np.ndarray]:
    """Limits with ±usual where there is none; as far beyond the other limit where that lies outside."""
    least = np.where(np.isfinite(lower), lower, np.where(upper > -usual, -usual, upper - 2 * usual))
    most = np.where(np.isfinite(upper), upper, np.where(lower < usual, usual, lower + 2 * usual))
    return least, most


def _uniform(rng: np.random.Generator, lower: Array, upper: Array, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers between the limits; by halves, because the whole distance between limits may be too large for a number."""
    return 2.0 * rng.uniform(0.5 * lower, 0.5 * upper, shape)


def _rotation(q: Array) -> Array:
    """The rotation 1 + 2 (w [u] + [u]²)/|q|² of a quaternion q = (u, w) of any length but zero: only its direction matters."""
    u = q[..., :3]
    scaled = (u + u) / dot(q, q)[..., None]
    return quaternion.rotation(u, scaled * q[..., 3:], scaled)


def _axes_and_centre(screws: Array) -> tuple[Array, Array]:
    """The frame K whose axes are the first three screws, rotations ωᵢ about one point c: vᵢ = c × ωᵢ, so Σ ωᵢ × vᵢ = 2c."""
    w, v = screws[..., :3, :3], screws[..., :3, 3:]
    return transpose(w), 0.5 * cross(w, v).sum(-2)


KINDS: dict[str, JointKind] = {
    "fixed": Fixed(),
    "revolute": OneScrew(),
    "continuous": OneScrew(),
    "prismatic": OneScrew(),
    "helical": OneScrew(),
    "universal": Universal(),
    "spherical": Spherical(),
    "planar": Planar(),
    "free": Free(),
}
"""The kinds of joints by name."""

SUBGROUPS = ("spherical", "planar", "free")
"""Kinds whose coordinates move together as one group element."""


def wrong_screws(kind: str, screws: np.ndarray, tolerance: float = 1e-6) -> str:
    """What keeps screws (nv, 6) from being those of a joint of that kind, in words; empty for screws that are."""
    w, v = screws[:, :3], screws[:, 3:]

    def differ(x: Any, y: Any) -> bool:
        return bool(np.max(np.abs(x - y), initial=0.0) > tolerance)

    if kind == "fixed":
        return ""
    if kind == "prismatic":
        return "ω must be 0 and |v| 1" if differ(w, 0.0) or differ(np.linalg.norm(v), 1.0) else ""
    if kind not in SUBGROUPS:
        if differ(np.linalg.norm(w, axis=-1), 1.0):
            return "|ω| must be 1"
        advance = dot(w, v) / np.maximum(1.0, np.linalg.norm(v, axis=-1))
        return "ω·v must be 0: it turns without advance" if kind != "helical" and differ(advance, 0.0) else ""
    axes, expected = _subgroup(kind, screws)
    if differ(axes @ axes.T, np.eye(3)) or np.linalg.det(axes) < 0:
        return f"the axes must be three unit vectors across each other, right-handed: make it with `Joint.{kind}`"
    return f"the axes must meet in one point, slides go along them: make it with `Joint.{kind}`" if differ(screws, expected) else ""


def _subgroup(kind: str, screws: np.ndarray, exact: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The axes (3, 3) of a joint that moves in a subgroup, orthogonal if `exact`, and the screws (nv, 6) that belong to them."""
    w, v = screws[:, :3], screws[:, 3:]
    still = np.zeros((3, 3))
    if kind == "planar":
        axes, c = np.stack([v[1], v[2], w[0]]), np.cross(w[0], v[0])
        axes = nearest_rotation(axes) if exact else axes
        return axes, np.concatenate([np.block([axes, np.cross(c, axes)])[2:], np.block([still, axes])[:2]])
    axes, c = w[:3], 0.5 * np.cross(w[:3], v[:3]).sum(0)
    axes = nearest_rotation(axes) if exact else axes
    return axes, np.concatenate([np.block([axes, np.cross(c, axes)]), np.block([still, axes])])[: len(screws)]


def nearest_rotation(R: np.ndarray) -> np.ndarray:
    """The rotation nearest to a matrix (3, 3) that is almost one: U Vᵀ of its singular value decomposition."""
    U, _, V = np.linalg.svd(R)
    result: np.ndarray = U @ V
    return result


def exact_screws(kind: str, screws: np.ndarray) -> np.ndarray:
    """The screws (nv, 6) with what few digits did to them removed: unit axes, without advance, at right angles.

    Screws that are exact to 1e-12 are returned as they are, so that a robot written and read again stays the same to the last bit.
    """
    w, v = screws[:, :3], screws[:, 3:]
    if kind == "fixed":
        return screws
    if kind == "prismatic":
        exact = np.concatenate([0.0 * w, v / np.linalg.norm(v)], axis=1)
    elif kind in SUBGROUPS:
        exact = _subgroup(kind, screws, exact=True)[1]
    else:
        exact = screws / np.linalg.norm(w, axis=1, keepdims=True)
        if kind != "helical":
            exact[:, 3:] -= dot(exact[:, :3], exact[:, 3:])[:, None] * exact[:, :3]
    close = np.abs(exact - screws) <= 1e-12 * np.maximum(1.0, np.linalg.norm(v, axis=1, keepdims=True))
    return screws if close.all() else exact


def home_screws(kind: str, **geometry: Any) -> np.ndarray:
    """The screws (nv, 6) of a joint of that kind; see `Joint` for the geometry each takes."""
    axis = geometry.get("axis")
    point = np.asarray(geometry.get("point", (0.0, 0.0, 0.0)), dtype=float)

    def line(w: Any) -> np.ndarray:
        return np.concatenate([w, np.cross(point, w)])

    if kind == "fixed":
        return np.zeros((0, 6))
    if kind in ("revolute", "continuous"):
        return line(axis)[None]
    if kind == "prismatic":
        return np.concatenate([np.zeros(3), axis])[None]
    if kind == "helical":
        result: np.ndarray = (line(axis) + np.concatenate([np.zeros(3), geometry["pitch"] * np.asarray(axis)]))[None]
        return result
    if kind == "universal":
        return np.stack([line(axis), line(geometry["second_axis"])])
    if kind == "spherical":
        return np.stack([line(e) for e in np.eye(3)])
    if kind == "planar":
        x, y = geometry["plane"]
        return np.stack([line(axis), np.concatenate([np.zeros(3), x]), np.concatenate([np.zeros(3), y])])
    return np.stack([line(e) for e in np.eye(3)] + [np.concatenate([np.zeros(3), e]) for e in np.eye(3)])
