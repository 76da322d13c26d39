"""Constraints: rows A(q) v = 0 on the velocities of a robot, some of them the rates of values φ(q) that must vanish.

Žefran & Bullo (2004), (18). Several are taken together with `&`. What a constraint computes runs natively, as written and as
symbols like everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..arguments import a_robot, takes
from ..arrays import Array, ArrayLike, concat, transpose
from ..errors import CoadjointError, ShapeError, unknown
from ..kernel.dispatch import kernel
from ..memo import per_robot
from ..robot.link import as_pose
from ..robot.robot import Robot
from .functions import Written
from .parts import JOINTS, Cable, Fixed, Gear, Loop, Part, Point, directions, hashable
from .rolling import Rolling, Twist


class Constraint:
    """Rows A(q) v = 0 on the velocities of a robot, by name; equal constraints have equal parts."""

    __slots__ = ("parts",)
    parts: tuple[Part, ...]

    def __init__(self, parts: Iterable[Part]) -> None:
        self.parts = tuple(parts)
        if not self.parts:
            raise CoadjointError("no constraint is given; expected one or more.")

    # --- making one

    @staticmethod
    def from_jacobian(fn: Callable[[Array], Array]) -> Constraint:
        """A(q) v = 0 for fn(q) -> A (m, nv), written with array operations for q (nq,).

        fn is run on symbols each time the constraint is used, once for a whole simulation or rollout, and sees the present values of the
        variables that it reads; `frozen` keeps those of one moment.
        """
        return Constraint([Written(fn, True)])

    @staticmethod
    def holonomic(fn: Callable[[Array], Array]) -> Constraint:
        """φ(q) = 0 for fn(q) -> φ (m,), written with array operations for q (nq,); A = ∂φ/∂q comes from the function itself.

        fn is run on symbols each time the constraint is used, as for `from_jacobian`.
        """
        return Constraint([Written(fn, False)])

    @staticmethod
    @takes(robot=a_robot)
    def point(robot: Robot, frame: str, axes: str = "xyz", at: ArrayLike | None = None) -> Constraint:
        """The origin of a frame keeps these coordinates in space at the values `at`, one number each; without `at`, at any values.

        The multipliers are the force on the frame's origin, by the axes of space.
        """
        robot.frame(frame)
        chosen = directions(axes, "xyz")
        return Constraint([Point(frame, chosen, None if at is None else _numbers("at", at, len(chosen)))])

    @staticmethod
    @takes(robot=a_robot)
    def frame(robot: Robot, frame: str, axes: str = "rx ry rz x y z", at: ArrayLike | None = None) -> Constraint:
        """A frame stays at the pose `at` (4, 4) in space, entirely or in some directions of that pose; without `at`, at any pose.

        Without `at` it is a constraint on velocities: those components of the frame's body twist vanish, as for `twist`. `at(robot, q)`
        has the same rows at q, and elsewhere those along the axes that the frame has at q. The multipliers of all six are the wrench
        (m, f) on the frame, in the frame.
        """
        robot.frame(frame)
        chosen, place = directions(axes), None if at is None else hashable(as_pose(at, "at"))
        whole = chosen == directions(JOINTS["fixed"])
        return Constraint([Fixed(frame, place) if whole else Loop(robot.base, frame, chosen, place)])

    @staticmethod
    @takes(robot=a_robot)
    def loop(robot: Robot, frame_a: str, frame_b: str, joint: str = "fixed", *, axes: str | None = None) -> Constraint:
        """Two frames coincide as a joint between them lets them, or in the directions `axes` of frame_a, as in "rx ry x y z".

        joint: "fixed", "revolute" about z, "prismatic" along z, "cylindrical", "universal" (frame_a turns about its y, frame_b about
        its x), "spherical", or "planar" (z stays 0). With two directions of turning the axes that are left are kept parallel; with one,
        rz, x of frame_b stays at right angles to y of frame_a.
        """
        if robot.frame(frame_a)[0] == robot.frame(frame_b)[0]:
            raise CoadjointError(f"frames {frame_a!r} and {frame_b!r} are on one link: that is no loop. Take frames on two links.")
        if joint not in JOINTS:
            raise unknown("loop joint", joint, JOINTS)
        return Constraint([Loop(frame_a, frame_b, directions(JOINTS[joint] if axes is None else axes), hashable(np.eye(4)))])

    @staticmethod
    @takes(robot=a_robot)
    def loops(robot: Robot) -> Constraint:
        """All loops that the robot's description closes, `robot.loops`: links that two joints of a URDF or an SDF carry."""
        if not robot.loops:
            raise CoadjointError(
                f"the description of robot {robot.name!r} closes no loop; Constraint.loop makes one between two frames."
            )
        return Constraint.all([Constraint.loop(robot, x.frame_a, x.frame_b, x.joint) for x in robot.loops])

    @staticmethod
    @takes(robot=a_robot)
    def cable(robot: Robot, frames: Sequence[str], length: float | None = None) -> Constraint:
        """The path through the origins of these frames has a constant length, any if None. The multiplier is minus the tension."""
        if isinstance(frames, str) or len(frames) < 2:
            raise CoadjointError(f"frames is {frames!r}; expected two or more names of frames.")
        for frame in frames:
            robot.frame(frame)
        if length is not None and not (np.isfinite(length) and length > 0):
            raise CoadjointError(f"length is {length!r}; expected a positive number of metres.")
        return Constraint([Cable(tuple(frames), None if length is None else float(length))])

    @staticmethod
    @takes(robot=a_robot)
    def gear(robot: Robot, coefficients: Mapping[str, float], offset: float | None = 0.0) -> Constraint:
        """Σ coefficient · coordinate = offset over joints of one freedom: {"wheel": 1, "pinion": 3}; any offset if None."""
        for joint, c in coefficients.items():
            place = robot.q_slice(joint)
            if robot.joint_index(joint) in robot.mimics or place.stop - place.start != 1:
                raise CoadjointError(f"joint {joint!r} has no single coordinate of its own; gears take joints that have.")
            if not np.isfinite(c):
                raise CoadjointError(f"the coefficient of joint {joint!r} is {c!r}; expected a number.")
        if not any(coefficients.values()):
            raise CoadjointError(f"coefficients are {dict(coefficients)!r}; expected some that are not zero.")
        terms = tuple((joint, float(c)) for joint, c in coefficients.items())
        return Constraint([Gear(terms, None if offset is None else float(offset))])

    @staticmethod
    @takes(robot=a_robot)
    def twist(robot: Robot, frame: str, axes: str = "y", reference: str = "body") -> Constraint:
        """Components of a frame's twist vanish: axes="y" is a knife edge, or a wheel without mass, along x of the frame.

        reference "body": by the frame's own axes; "world": at its origin, by the axes of space.
        """
        robot.frame(frame)
        if reference not in ("body", "world"):
            raise CoadjointError(f"reference is {reference!r}; choose 'body' or 'world'.")
        return Constraint([Twist(frame, directions(axes), reference)])

    @staticmethod
    @takes(robot=a_robot)
    def rolling(robot: Robot, frame: str, radius: float, axle: ArrayLike | None = None, on: str | None = None) -> Constraint:
        """A ball, or with an `axle` (3,) in the frame a thin wheel, centred at a frame, rolls without slipping on a plane.

        The plane is z = 0 of the frame `on`, which may move; of space without. Two rows for slipping, and one for staying on the plane.
        """
        robot.frame(frame)
        ground = robot.base if on is None else on
        if robot.frame(ground)[0] == robot.frame(frame)[0]:
            raise CoadjointError(f"frame {frame!r} rolls on {ground!r}, which is on the same link.")
        if not (np.isfinite(radius) and radius > 0):
            raise CoadjointError(f"radius is {radius!r}; expected a positive number of metres.")
        if axle is not None:
            axle = np.array(_numbers("axle", axle, 3))
            if not np.linalg.norm(axle) > 0:
                raise CoadjointError("axle is zero; expected a direction.")
            axle = tuple((axle / np.linalg.norm(axle)).tolist())
        return Constraint([Rolling(frame, float(radius), axle, ground)])

    @staticmethod
    def all(constraints: Iterable[Constraint]) -> Constraint:
        """The conjunction of constraints, in their order; `a & b` for two."""
        return Constraint([part for x in constraints for part in checked(x).parts])

    def __and__(self, other: Constraint) -> Constraint:
        return Constraint([*self.parts, *checked(other).parts])

    # --- what it is

    def names(self, robot: Robot) -> tuple[str, ...]:
        """A name for every row."""
        return tuple(name for part in self.parts for name in part.names(robot))

    def size(self, robot: Robot) -> int:
        """The number of rows m."""
        return len(self.names(robot))

    def holonomic_rows(self, robot: Robot) -> np.ndarray:
        """The indices of the rows that are the rate of a value; the other rows constrain velocities only, or leave their value
        open.
        """
        return np.flatnonzero([x for part in self.parts for x in part.holonomic(robot)])

    def at(self, robot: Robot, q: ArrayLike) -> Constraint:
        """This constraint with values that were left open (the place of a point, the length of a cable) fixed at those at q (nq,);
        and `frozen`.
        """
        q = np.asarray(robot._checked(q, "q", robot.nq), dtype=float)
        if q.ndim != 1:
            raise ShapeError(f"q has shape {q.shape}; expected one configuration ({robot.nq},).")
        return Constraint([part.held(robot, q) for part in self.parts])

    def frozen(self, robot: Robot) -> Constraint:
        """This constraint with users' functions as traced now, for robots with as many coordinates: later changes of the variables
        that they read have no effect. It is faster, as nothing is traced again, and can always be pickled.
        """
        parts = [part.frozen(robot) for part in self.parts]
        return self if all(x is y for x, y in zip(parts, self.parts, strict=True)) else Constraint(parts)

    def identity(self, robot: Robot) -> str:
        """A text that identifies the constraint, for the key of compiled code."""
        return " & ".join(part.identity(robot) for part in self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constraint) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)

    def __repr__(self) -> str:
        return f"Constraint({' & '.join(map(repr, self.parts))})"

    # --- what it computes

    def residual(self, robot: Robot, q: ArrayLike) -> Any:
        """φ(q) (..., number of `holonomic_rows`), which must vanish; None if all rows constrain velocities only."""
        return constraint_residual(robot, self, q) if len(self.holonomic_rows(robot)) else None

    def jacobian(self, robot: Robot, q: ArrayLike) -> Array:
        """A(q) (..., m, nv)."""
        return constraint_jacobian(robot, self, q)

    def bias(self, robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
        """Ȧ v (..., m): while the constraint holds, A a = -Ȧ v."""
        return constraint_bias(robot, self, q, v)


def checked(constraint: Any, robot: Robot | None = None) -> Constraint:
    """The argument, if it is a constraint; with a robot, `frozen`."""
    if not isinstance(constraint, Constraint):
        raise CoadjointError(
            f"the constraint is {type(constraint).__name__}; expected a Constraint, as from coadjoint.Constraint.point(robot, 'tip', 'xy')."
        )
    return constraint if robot is None else constraint.frozen(robot)


def _numbers(name: str, x: Any, size: int) -> tuple[float, ...]:
    try:
        array = np.asarray(x, dtype=float).reshape(-1)
    except (ValueError, TypeError):
        array = np.zeros(0)
    if array.shape != (size,) or not np.all(np.isfinite(array)):
        raise ShapeError(f"{name} is {x!r}; expected {size} number{'s' * (size > 1)}.")
    return tuple(array.tolist())


@kernel("m", q="nq")
def constraint_residual(robot: Robot, constraint: Constraint, q: Array) -> Array:
    """φ(q) (..., number of holonomic rows)."""
    parts = [part.value(robot, q) for part in checked(constraint).parts]
    return concat([x for x in parts if x is not None])


@kernel("m nv", q="nq")
def constraint_jacobian(robot: Robot, constraint: Constraint, q: Array) -> Array:
    """A(q) (..., m, nv), Žefran & Bullo (2004), (18)."""
    return transpose(concat([transpose(part.jacobian(robot, q)) for part in checked(constraint).parts]))


@kernel("m", q="nq", v="nv")
def constraint_bias(robot: Robot, constraint: Constraint, q: Array, v: Array) -> Array:
    """Ȧ v (..., m)."""
    return concat([part.bias(robot, q, v) for part in checked(constraint).parts])


def robot_size(robot: Robot) -> float:
    """The largest distance between neighbouring frames of a robot, as a unit of length. 1 if numbers are variables."""
    return _size(robot.original) if robot.original.has_plain_numbers else 1.0


@per_robot
def _size(robot: Robot) -> float:
    return max(float(np.abs(x[..., :3, 3]).max(initial=0.0)) for x in (robot.placements, robot.frame_poses))
