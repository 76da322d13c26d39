"""The interface of joint kinds to algorithms; the kinds are in `one_screw.py`, `universal.py` and `groups.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import Array, like, mv, transpose
from ...lie import se3


class JointKind:
    """A kind of joint: its coordinates, and how they move a link."""

    nq: int
    nv: int
    q_parts: tuple[str, ...] = ()
    v_parts: tuple[str, ...] = ()
    """The suffixes of the coordinates' names, where there are several: `base.qx`."""
    turns: tuple[bool, ...] = ()
    """True for each velocity that is angular (rad/s), false for linear ones (m/s)."""
    angles: tuple[tuple[int, int], ...] = ()
    """The coordinates of q that are angles, each with the screw that it turns about."""
    revolute: bool = False
    """True if the joint is a rotation about one axis, without translation along it."""
    serial: bool = False
    """True if each freedom carries those after it, as joints in a row do, so that S depends on q."""
    group: tuple[int, ...] | None = None
    """The places of the velocities, of a joint that moves as a subgroup of SE(3), among those (ω, v) of a free body."""
    quaternion: slice | None = None
    """The slice of q that is a quaternion (x, y, z, w), if there is one."""

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
        """Random coordinates, within the limits where there are any, otherwise within ±π."""
        return uniform(rng, *bounds(lower, upper, np.pi), (*shape, self.nq))

    # --- the Lie algebra of the joint's group; of angles and lengths it is commutative

    def twist(self, x: Array) -> Array:
        """Velocities (..., nv) of a group joint as those (..., 6) of a free body."""
        return mv(like(self._embedding, x), x)

    def from_twist(self, x: Array) -> Array:
        """The entries (..., nv) of (..., 6) that belong to the group."""
        return mv(like(self._embedding.T, x), x)

    @property
    def _embedding(self) -> np.ndarray:
        return np.eye(6)[:, list(self.group or ())]

    def ad(self, x: Array) -> Array:
        """The matrix (..., nv, nv) of the bracket with x (..., nv)."""
        if self.group is None:
            return x[..., None] * like(np.zeros(self.nv), x)
        embedding = like(self._embedding, x)
        return transpose(embedding) @ se3.ad(self.twist(x)) @ embedding

    def bracket(self, x: Array, y: Array) -> Array:
        """[x, y] (..., nv)."""
        return 0.0 * (x + y) if self.group is None else self.from_twist(se3.ad_act(self.twist(x), self.twist(y)))

    def ad_dual(self, x: Array, p: Array) -> Array:
        """ad*_x p (..., nv) for a covector p."""
        return 0.0 * (x + p) if self.group is None else self.from_twist(se3.ad_dual_act(self.twist(x), self.twist(p)))

    def coadjoint(self, x: Array, p: Array) -> Array:
        """Ad*_{exp x} p (..., nv): a momentum p at q, seen from q exp(x)."""
        return p if self.group is None else self.from_twist(mv(transpose(se3.Ad(se3.exp(self.twist(x)))), self.twist(p)))

    def dexp_dual(self, x: Array, p: Array) -> Array:
        """dexp(x)ᵀ p (..., nv)."""
        return p if self.group is None else self.from_twist(mv(transpose(se3.dexp(self.twist(x))), self.twist(p)))

    # --- the screws at home

    def home_screws(self, **geometry: Any) -> np.ndarray:
        """The screws (nv, 6) of a joint with that geometry; see `Joint` for what each kind takes."""
        raise NotImplementedError

    def defect(self, screws: np.ndarray, tolerance: float = 1e-6) -> str:
        """The reason why screws (nv, 6) cannot be those of such a joint, as text; empty if they can."""
        raise NotImplementedError

    def exact_screws(self, screws: np.ndarray) -> np.ndarray:
        """The screws (nv, 6) without the rounding of few digits: axes of unit length, zero pitch, orthogonal. Screws that are exact
        to 1e-12 are returned unchanged, so that a robot written and read again is the same to the last bit.
        """
        exact = self._corrected(screws)
        close = np.abs(exact - screws) <= 1e-12 * np.maximum(1.0, np.linalg.norm(screws[:, 3:], axis=1, keepdims=True))
        return screws if close.all() else exact

    def _corrected(self, screws: np.ndarray) -> np.ndarray:
        return screws

    def centre(self, screws: np.ndarray) -> np.ndarray:
        """A point (3,) of the first axis; where the axes of a spherical or free joint meet; the origin for one that does not turn."""
        return np.zeros(3)

    def pitch(self, screws: np.ndarray) -> float | None:
        """The advance, in metres per radian, of a joint that turns and advances."""
        return None


def differ(x: Any, y: Any, tolerance: float) -> bool:
    """True if an entry of x and y differs by more than the tolerance."""
    return bool(np.max(np.abs(x - y), initial=0.0) > tolerance)


def line(axis: Any, point: Any = (0.0, 0.0, 0.0)) -> np.ndarray:
    """The screw (6,) of a rotation about a line."""
    return np.concatenate([axis, np.cross(np.asarray(point, dtype=float), axis)])


def slide(axis: Any) -> np.ndarray:
    """The screw (6,) of a translation."""
    return np.concatenate([np.zeros(3), axis])


def nearest_rotation(R: np.ndarray) -> np.ndarray:
    """The rotation nearest to a matrix (3, 3) that is almost one: U Vᵀ of its singular value decomposition."""
    U, _, V = np.linalg.svd(R)
    result: np.ndarray = U @ V
    return result


def bounds(lower: Array, upper: Array, usual: float) -> tuple[np.ndarray, np.ndarray]:
    """The limits, with ±usual for a missing one, or that far from the other limit if it lies outside."""
    least = np.where(np.isfinite(lower), lower, np.where(upper > -usual, -usual, upper - 2 * usual))
    most = np.where(np.isfinite(upper), upper, np.where(lower < usual, usual, lower + 2 * usual))
    return least, most


def uniform(rng: np.random.Generator, lower: Array, upper: Array, shape: tuple[int, ...]) -> np.ndarray:
    """Random numbers between the limits; by halves, because their difference may overflow."""
    return 2.0 * rng.uniform(0.5 * lower, 0.5 * upper, shape)
