"""The parts of a robot: links, the joints that carry them, and named frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..arguments import a_number
from ..arrays import ArrayLike, unmasked
from ..errors import ModelError, unknown
from ..lie import inertia as _inertia
from ..words import cut, short
from .joints import KINDS, nearest_rotation

Vector = Sequence[float] | np.ndarray


def _frozen(x: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """x broadcast to that shape as a read-only array; an error names it."""
    try:
        array = np.array(np.broadcast_to(np.asarray(unmasked(x), dtype=np.float64), shape))
    except (ValueError, TypeError, OverflowError):
        raise ModelError(f"{what} is {short(x)}; expected numbers of shape {shape}.") from None
    array.flags.writeable = False
    return array


def _finite(x: np.ndarray, what: str) -> np.ndarray:
    if not np.all(np.isfinite(x)):
        raise ModelError(f"{what} is {x.tolist()}; every number must be finite.")
    return x


def _vector(x: Any, what: str) -> np.ndarray:
    """x as three finite numbers; a single number is refused."""
    if _axes(x) != 1 or len(x) != 3:
        raise ModelError(f"{what} is {short(x)}; expected three numbers.")
    return _finite(_frozen(x, (3,), what), what)


def _axes(x: Any) -> int:
    """The number of axes of x as an array; 2 for lists of uneven length."""
    try:
        return np.ndim(x)
    except ValueError:
        return 2


def _unit(axis: Any, what: str) -> np.ndarray:
    axis = _vector(axis, what)
    size = float(np.max(np.abs(axis)))
    if size < 1e-12:
        raise ModelError(f"{what} is {axis.tolist()}; an axis must not be zero.")
    if size > 1e150:  # whose square is too large for a number
        axis = axis / size
    result: np.ndarray = axis / np.linalg.norm(axis)
    return result


@dataclass(frozen=True, eq=False)
class Mimic:
    """A joint that follows another: q = ratio · q[joint] + offset."""

    joint: str
    ratio: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class Joint:
    """How a link may move: its kind and the screws (nv, 6) of its freedoms, in the frame of the link, at home.

    Make one by its kind: `Joint.revolute(axis=(0, 0, 1), point=(0, 0, 0))`, `.continuous`, `.prismatic`, `.helical(pitch=…)`,
    `.universal(axis, second_axis)`, `.spherical(point)`, `.planar(normal)`, `.free()`, `.fixed()`. Each also takes

        armature             inertia of the drive, reflected to the joint (kg m² or kg)
        damping, friction    viscous (N m s/rad) and Coulomb (N m) friction
        lower, upper         limits of q; ±inf where there is none
        velocity, effort     limits of |v| and |τ|
        mimic                `Mimic(joint, ratio, offset)` for a joint with one screw that follows another
    """

    kind: str
    screws: np.ndarray
    name: str = ""
    armature: Any = 0.0
    damping: Any = 0.0
    friction: Any = 0.0
    lower: Any = -np.inf
    upper: Any = np.inf
    velocity: Any = np.inf
    effort: Any = np.inf
    mimic: Mimic | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise unknown("kind of joint", self.kind, KINDS)
        if not isinstance(self.name, str):
            raise ModelError(f"the name of a joint is {short(self.name)}; expected text.")
        if self.mimic is not None and not isinstance(self.mimic, Mimic):
            raise ModelError(f"mimic is {short(self.mimic)}; expected a Mimic(joint, ratio, offset).")
        kind, label = KINDS[self.kind], f"joint {short(self.name)}" if self.name else f"the {self.kind} joint"

        def set_(key: str, value: object) -> None:
            object.__setattr__(self, key, value)

        set_("screws", _finite(_frozen(self.screws, (kind.nv, 6), f"{label}: screws"), f"{label}: screws"))
        if wrong := kind.defect(self.screws):
            raise ModelError(f"{label}: screws are {self.screws.tolist()}; of a {self.kind} joint {wrong}.")
        set_("screws", _frozen(kind.exact_screws(self.screws), (kind.nv, 6), f"{label}: screws"))
        for key in ("armature", "damping", "friction"):
            value = _finite(_frozen(getattr(self, key), (kind.nv,), f"{label}: {key}"), f"{label}: {key}")
            if np.any(value < 0):
                raise ModelError(f"{label}: {key} is {value.tolist()}; it must not be negative.")
            set_(key, value)
        for key, size in (("lower", kind.nq), ("upper", kind.nq), ("velocity", kind.nv), ("effort", kind.nv)):
            value = _frozen(getattr(self, key), (size,), f"{label}: {key}")
            if np.any(np.isnan(value)):
                raise ModelError(f"{label}: {key} is {value.tolist()}; use ±inf where there is no limit.")
            set_(key, value)
        if np.any(self.lower == np.inf) or np.any(self.upper == -np.inf):
            span = f"{self.lower.tolist()} to {self.upper.tolist()}"
            raise ModelError(
                f"{label}: limits from {span} leave no position; use lower=-inf and upper=inf where there is no limit."
            )
        if np.any(self.lower > self.upper):
            raise ModelError(f"{label}: lower limit {self.lower.tolist()} is above upper limit {self.upper.tolist()}.")
        if self.mimic is not None and kind.nv != 1:
            raise ModelError(f"{label} is {self.kind} and cannot mimic {short(self.mimic.joint)}: only a joint with one screw can.")
        if self.mimic is not None and not np.all(np.isfinite([self.mimic.ratio, self.mimic.offset])):
            follows = f"{self.mimic.ratio} · {cut(str(self.mimic.joint))} + {self.mimic.offset}"
            raise ModelError(f"{label} mimics {follows}; numbers must be finite.")

    @staticmethod
    def fixed(**options: Any) -> Joint:
        """No motion."""
        return Joint("fixed", KINDS["fixed"].home_screws(), **options)

    @staticmethod
    def revolute(axis: Vector = (0.0, 0.0, 1.0), point: Vector = (0.0, 0.0, 0.0), **options: Any) -> Joint:
        """Rotation about the axis through the point."""
        return Joint("revolute", KINDS["revolute"].home_screws(axis=_unit(axis, "axis"), point=_vector(point, "point")), **options)

    @staticmethod
    def continuous(axis: Vector = (0.0, 0.0, 1.0), point: Vector = (0.0, 0.0, 0.0), **options: Any) -> Joint:
        """Rotation without limits."""
        return Joint(
            "continuous", KINDS["continuous"].home_screws(axis=_unit(axis, "axis"), point=_vector(point, "point")), **options
        )

    @staticmethod
    def prismatic(axis: Vector = (0.0, 0.0, 1.0), **options: Any) -> Joint:
        """Translation along the axis."""
        return Joint("prismatic", KINDS["prismatic"].home_screws(axis=_unit(axis, "axis")), **options)

    @staticmethod
    def helical(axis: Vector = (0.0, 0.0, 1.0), pitch: float = 0.0, point: Vector = (0.0, 0.0, 0.0), **options: Any) -> Joint:
        """Rotation about the axis with an advance of `pitch` metres per radian."""
        geometry = {"axis": _unit(axis, "axis"), "pitch": float(a_number(pitch, "pitch")), "point": _vector(point, "point")}
        return Joint("helical", KINDS["helical"].home_screws(**geometry), **options)

    @staticmethod
    def universal(
        axis: Vector = (1.0, 0.0, 0.0), second_axis: Vector = (0.0, 1.0, 0.0), point: Vector = (0.0, 0.0, 0.0), **options: Any
    ) -> Joint:
        """Rotation about an axis fixed in the parent, then about a second one fixed in the link."""
        first, second = _unit(axis, "axis"), _unit(second_axis, "second_axis")
        screws = KINDS["universal"].home_screws(axis=first, second_axis=second, point=_vector(point, "point"))
        return Joint("universal", screws, **options)

    @staticmethod
    def spherical(point: Vector = (0.0, 0.0, 0.0), **options: Any) -> Joint:
        """All rotations about the point; q is a quaternion (x, y, z, w)."""
        return Joint("spherical", KINDS["spherical"].home_screws(point=_vector(point, "point")), **options)

    @staticmethod
    def planar(normal: Vector = (0.0, 0.0, 1.0), point: Vector = (0.0, 0.0, 0.0), **options: Any) -> Joint:
        """Translation in a plane and rotation about its normal; x and y are those of the link's frame, rotated by the shortest
        rotation from z to the normal.
        """
        n = _unit(normal, "normal")
        R = _shortest(n)
        screws = KINDS["planar"].home_screws(axis=n, point=_vector(point, "point"), plane=(R[:, 0], R[:, 1]))
        return Joint("planar", screws, **options)

    @staticmethod
    def free(**options: Any) -> Joint:
        """All rigid motions; q = (position, quaternion), v = the body twist."""
        return Joint("free", KINDS["free"].home_screws(), **options)


def _shortest(n: np.ndarray) -> np.ndarray:
    """The shortest rotation from e_z to the unit vector n; for n = -e_z the half turn about x."""
    sine2 = n[0] ** 2 + n[1] ** 2
    if sine2 == 0.0:
        return np.diag([1.0, np.sign(n[2]), np.sign(n[2])])
    w = np.array([[0.0, 0.0, n[0]], [0.0, 0.0, n[1]], [-n[0], -n[1], 0.0]])
    # 1 / (1 + cos), which for n near -e_z would lose its digits.
    scale = 1 / (1 + n[2]) if n[2] > 0 else (1 - n[2]) / sine2
    result: np.ndarray = np.eye(3) + w + scale * (w @ w)
    return result


@dataclass(frozen=True, eq=False)
class Link:
    """A rigid body, the joint that carries it, and the link (or frame of the base) that carries the joint.

    `placement` (4, 4) is the pose of the link's frame in the frame of its parent at home; `parameters` (10,) are
    m, m c (3) and the inertia about the frame's origin xx xy xz yy yz zz, all in the link's frame.
    `Link.solid` takes mass, centre of mass and inertia about it instead.
    """

    name: str
    parent: str
    joint: Joint
    placement: np.ndarray = field(default_factory=lambda: np.eye(4))
    parameters: np.ndarray = field(default_factory=lambda: np.zeros(10))

    def __post_init__(self) -> None:
        label = f"link {short(self.name)}"
        if not isinstance(self.joint, Joint):
            raise ModelError(f"{label}: joint is {short(self.joint)}; expected a Joint.")
        if not self.joint.name:
            object.__setattr__(self, "joint", replace(self.joint, name=f"{self.name}_joint"))
        object.__setattr__(self, "placement", as_pose(self.placement, f"{label}: placement"))
        parameters = _finite(_frozen(self.parameters, (10,), f"{label}: parameters"), f"{label}: inertial parameters")
        if parameters[0] < 0:
            raise ModelError(f"{label}: mass is {parameters[0]:g} kg; a mass must not be negative.")
        object.__setattr__(self, "parameters", parameters)

    @staticmethod
    def solid(
        name: str,
        parent: str,
        joint: Joint,
        placement: ArrayLike | None = None,
        *,
        mass: float = 0.0,
        com: Vector = (0.0, 0.0, 0.0),
        inertia: ArrayLike = 0.0,
    ) -> Link:
        """A link by its mass, centre of mass (3,) in its frame, and inertia (3, 3) or diagonal (3,) about the centre of mass.

        An inertia that no rigid body can have (mass or a principal moment negative) is refused.
        """
        label = f"link {short(name)}"
        if _axes(inertia) < 2:
            inertia = np.diag(_frozen(inertia, (3,), f"{label}: inertia"))
        I = _frozen(inertia, (3, 3), f"{label}: inertia")
        check_solid(label, mass, com, I)
        parameters = _inertia.from_body(mass, np.asarray(com, dtype=float), I)
        pose: Any = np.eye(4) if placement is None else placement
        return Link(name, parent, joint, pose, parameters)


def check_solid(label: str, mass: Any, com: Any, inertia: Any) -> None:
    """Raise an error if a body cannot have this mass, centre of mass and central inertia."""
    mass, inertia = float(_frozen(mass, (), f"{label}: mass")), _frozen(inertia, (3, 3), f"{label}: inertia")
    _finite(np.array(mass), f"{label}: mass")
    _vector(com, f"{label}: centre of mass")
    _finite(inertia, f"{label}: inertia")
    if mass < 0:
        raise ModelError(f"{label}: mass is {mass:g} kg; a mass must not be negative.")
    scale = float(np.max(np.abs(inertia))) or 1.0
    if np.max(np.abs(inertia - inertia.T)) > 1e-9 * scale:
        raise ModelError(f"{label}: the inertia {inertia.tolist()} is not symmetric.")
    smallest = float(np.linalg.eigvalsh(inertia)[0])
    if smallest < -1e-9 * scale:
        raise ModelError(
            f"{label}: a principal moment of inertia is {smallest:g} kg m²; no body has a negative one. "
            "Give the inertia about the centre of mass, not about another point."
        )


def as_pose(x: Any, what: str) -> np.ndarray:
    """x as a read-only pose (4, 4), its rotation exact where few digits were given, or an error that says what is wrong with it."""
    pose = _finite(_frozen(x, (4, 4), what), what)
    R = pose[:3, :3]
    with np.errstate(over="ignore", invalid="ignore"):
        off = np.max(np.abs(R @ R.T - np.eye(3)))
    if not off <= 1e-6 or np.linalg.det(R) < 0 or np.any(pose[3] != [0, 0, 0, 1]):
        raise ModelError(f"{what} is {pose.tolist()}; expected a rotation, a position and the last row 0 0 0 1.")
    if off > 1e-12:  # few digits were written
        exact = pose.copy()
        exact[:3, :3] = nearest_rotation(R)
        pose = _frozen(exact, (4, 4), what)
    return pose


@dataclass(frozen=True, eq=False)
class Loop:
    """A joint that closes a loop of a tree: frame_b is at frame_a as the joint lets it; see `coadjoint.Constraint.loop`.

    It is a description and moves nothing by itself: `coadjoint.Constraint.loops(robot)` is the constraint of all loops.
    """

    name: str
    frame_a: str
    frame_b: str
    joint: str = "fixed"


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame that stands at `pose` in the frame of a link (or of the base)."""

    name: str
    link: str
    pose: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "pose", as_pose(self.pose, f"frame {short(self.name)}: pose"))
