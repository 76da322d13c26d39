"""From and to Pinocchio's `Model`, and states both ways.

    robot = from_pinocchio(model)                        model = to_pinocchio(robot)
    q_pin = q_to_pinocchio(robot, model, q)              q = q_from_pinocchio(robot, model, q_pin)
    v_pin = v_to_pinocchio(robot, model, v)              v = v_from_pinocchio(robot, model, v_pin)

Joints are matched by name; their order may differ, and with it the index of every coordinate. Beyond that:

    free                   q alike; v_pin = (v, ω) of the body for our (ω, v)
    planar                 q_pin = (x, y, cos θ, sin θ) for our (x, y, θ); v_pin = (vx, vy, ω) for our (ω, vx, vy)
    unbounded revolute     q_pin = (cos θ, sin θ) for our θ
    composite              a chain of links, massless but for the last, whose joints are `name_1`, `name_2`, …; so are Pinocchio's
                           three angles ("SphericalZYX") and its translation joint

So velocities are the same numbers in another order, v_pin = P v with a permutation P; hence accelerations and forces are too, and
the functions of velocities serve for all of them. A twist or wrench is (v, ω) or (f, m) in Pinocchio and the rows of its Jacobians
are in that order: `exchange` converts either way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import ModelError, ShapeError
from ..lie import inertia
from ..robot.link import Frame, Joint, Link, Mimic
from ..robot.robot import Robot
from ._common import Names, array, chain, check_model, listing
from ._to_pinocchio import to_pinocchio

__all__ = [
    "exchange",
    "from_pinocchio",
    "q_from_pinocchio",
    "q_to_pinocchio",
    "to_pinocchio",
    "v_from_pinocchio",
    "v_to_pinocchio",
]

NONE = 1e300
"""Pinocchio represents a missing limit by the largest floating-point number."""

VELOCITY_ORDER = {"free": (3, 4, 5, 0, 1, 2), "planar": (2, 0, 1)}
"""The indices of our velocities of a joint in Pinocchio's, for kinds whose order differs."""


def exchange(x: Any, axis: int = -1) -> np.ndarray:
    """(ω, v) ↔ (v, ω), (m, f) ↔ (f, m) along an axis of length 6; axis=-2 for a Jacobian. Its own inverse."""
    x = np.asarray(x)
    if x.ndim < -axis or x.shape[axis] != 6:
        raise ShapeError(f"x has shape {x.shape}; expected 6 along axis {axis}.")
    return np.roll(x, 3, axis=axis)


@dataclass(frozen=True)
class _Part:
    """One of our joints that make up a joint of Pinocchio: kind, screws, placement in the previous part, and size in q."""

    kind: str
    screws: np.ndarray
    nq: int
    placement: np.ndarray = field(default_factory=lambda: np.eye(4))

    @property
    def order(self) -> tuple[int, ...]:
        return VELOCITY_ORDER.get(self.kind, tuple(range(len(self.screws))))

    @property
    def positions(self) -> int:
        """The number of leading coordinates that are the same in Pinocchio: all but quaternions, cosines and sines."""
        return {"free": 3, "planar": 2, "spherical": 0}.get(self.kind, 0 if self.nq > len(self.screws) else self.nq)


_PARTS = {
    "FreeFlyer": [_Part("free", Joint.free().screws, 7)],
    "Spherical": [_Part("spherical", Joint.spherical().screws, 4)],
    "Planar": [_Part("planar", Joint.planar().screws, 4)],
    "SphericalZYX": [_Part("continuous", Joint.revolute(axis).screws, 1) for axis in np.eye(3)[::-1]],
    "Translation": [_Part("prismatic", Joint.prismatic(axis).screws, 1) for axis in np.eye(3)],
}
"""The parts of Pinocchio's joint types that have no parameters."""


def _parts(joint: Any, name: str) -> list[_Part]:
    """The parts of a joint of Pinocchio."""
    kind = joint.shortname().removeprefix("JointModel")
    if kind in _PARTS:
        return _PARTS[kind]
    own = joint.extract() if hasattr(joint, "extract") else joint
    if kind == "Composite":
        found = []
        for inner, placement in zip(own.joints, own.jointPlacements, strict=True):
            first, *rest = _parts(inner, name)
            found += [_Part(first.kind, first.screws, first.nq, placement.homogeneous @ first.placement), *rest]
        return found
    if kind == "Universal":
        return [_Part("universal", Joint.universal(own.axis1, own.axis2).screws, 2)]
    if kind.startswith(("R", "P", "H")) or kind == "Mimic":
        data = joint.createData()
        q = np.zeros(max(joint.idx_q, 0) + 2)
        q[max(joint.idx_q, 0)] = 1.0  # any valid configuration, also as cosine and sine
        joint.calc(data, q)  # before this a helical joint has no pitch
        screw = exchange(np.reshape(data.S, 6))
        if kind == "Mimic":
            if own.scaling == 0:
                raise ModelError(f"joint {name!r} follows another with ratio 0, so its axis cannot be read.")
            screw = screw / own.scaling
        turns = bool(np.any(screw[:3]))
        helical = abs(screw[:3] @ screw[3:]) > 1e-15
        unbounded = "revolute" if joint.nq < 2 else "continuous"
        return [_Part("helical" if turns and helical else unbounded if turns else "prismatic", screw[None], joint.nq)]
    raise ModelError(f"joint {name!r} is of Pinocchio's type {kind}, which a Robot does not have.")


def from_pinocchio(model: Any) -> Robot:
    """The robot in a `pinocchio.Model`: the same joints, frames, inertias, gravity, armature, friction and limits.

    A link has the frame of its joint, and the name of the body there or else of the joint. Frames of other bodies, sensors,
    fixed joints and operational frames are frames.
    """
    check_model(model, "jointPlacements", "pinocchio.Model")
    base = model.names[0]
    bodies: dict[int, str] = {}
    for f in model.frames:
        if _kind_of(f) == "BODY" and np.array_equal(f.placement.homogeneous, np.eye(4)):
            bodies.setdefault(f.parentJoint, f.name)
    names = Names(base)
    link_names = [base, *(names.take(bodies.get(j) or model.names[j]) for j in range(1, model.njoints))]
    leaders = dict(zip(getattr(model, "mimicking_joints", ()), getattr(model, "mimicked_joints", ()), strict=True))
    links: list[Link] = []
    warnings: list[str] = []
    for j in range(1, model.njoints):
        joint, name = model.joints[j], model.names[j]
        parts = _parts(joint, name)
        placements = [part.placement for part in parts]
        placements[0] = model.jointPlacements[j].homogeneous @ placements[0]
        body = model.inertias[j]
        parameters = inertia.from_body(body.mass, body.lever, body.inertia)
        if j in leaders:
            own = joint.extract()
            mimic = Mimic(model.names[leaders[j]], own.scaling, own.offset)
            joints = [Joint(parts[0].kind, parts[0].screws, name=name, mimic=mimic)]
        else:
            joints = _joints(model, joint, name, parts)
        links += chain(link_names[j], link_names[model.parents[j]], joints, placements, parameters, names)
    if model.inertias[0].mass > 0:
        warnings.append(f"{model.inertias[0].mass:g} kg are fixed to {base!r}; a base has no share in the dynamics.")
    if uneven := _uneven_limits(model):
        warnings.append(f"limits that differ by direction, of which the upper are kept: {listing(uneven)}.")
    frames = []
    for f in model.frames:
        if _kind_of(f) != "JOINT" and f.name not in (base, link_names[f.parentJoint]):
            unique = names.take(f.name)
            if unique != f.name:
                warnings.append(f"frame {f.name!r} has the name of another and is called {unique!r}.")
            frames.append(Frame(unique, link_names[f.parentJoint], f.placement.homogeneous))
    return Robot(model.name or "robot", links, frames, np.array(model.gravity.linear), base, warnings)


def _kind_of(frame: Any) -> str:
    return str(frame.type).rsplit(".", 1)[-1]


def _limit(model: Any, key: str) -> np.ndarray:
    """A vector of limits, by its name since Pinocchio 4 or by the older one."""
    older = {"upperEffortLimit": "effortLimit", "upperVelocityLimit": "velocityLimit", "upperDryFrictionLimit": "friction"}
    values = np.array(getattr(model, key) if hasattr(model, key) else getattr(model, older[key]))
    return np.where(np.abs(values) > NONE, np.copysign(np.inf, values), values)


def _uneven_limits(model: Any) -> list[str]:
    """The kinds of limits that are not symmetric; absolute values are compared, because Pinocchio 4's lowest velocity is +max by
    default.
    """
    found = []
    for kind in ("Effort", "Velocity", "DryFriction"):
        upper = np.abs(_limit(model, f"upper{kind}Limit"))
        if hasattr(model, f"lower{kind}Limit") and not np.array_equal(np.abs(_limit(model, f"lower{kind}Limit")), upper):
            found.append(kind)
    return found


def _joints(model: Any, joint: Any, name: str, parts: list[_Part]) -> list[Joint]:
    """Our joints with their numbers."""
    q, v = joint.idx_q, joint.idx_v
    lower, upper = _limit(model, "lowerPositionLimit"), _limit(model, "upperPositionLimit")
    vectors = {
        "armature": np.array(model.armature),
        "damping": np.array(model.damping),
        "friction": _limit(model, "upperDryFrictionLimit"),
        "velocity": _limit(model, "upperVelocityLimit"),
        "effort": _limit(model, "upperEffortLimit"),
    }
    joints = []
    for k, part in enumerate(parts):
        order = v + np.array(part.order)
        options: dict[str, Any] = {key: values[order] for key, values in vectors.items()}
        if part.positions:
            rest = {"free": 4, "planar": 1}.get(part.kind, 0)
            positions = slice(q, q + part.positions)
            options["lower"] = np.concatenate([lower[positions], np.full(rest, -np.inf)])
            options["upper"] = np.concatenate([upper[positions], np.full(rest, np.inf)])
        joints.append(Joint(part.kind, part.screws, name=name if len(parts) == 1 else f"{name}_{k + 1}", **options))
        q, v = q + part.nq, v + len(part.screws)
    return joints


def q_to_pinocchio(robot: Robot, model: Any, q: Any) -> np.ndarray:
    """Pinocchio's configuration (..., model.nq) of q (..., nq)."""
    q = array(q, "q", robot.nq, f"robot {robot.name!r}")
    result = np.empty((*q.shape[:-1], model.nq))
    for i, at, nq, _, _ in _pairs(robot, model):
        ours = q[..., robot._q_slices[i]]
        if nq == ours.shape[-1] + 1:  # an angle, last of ours, as cosine and sine
            ours = np.concatenate([ours[..., :-1], np.cos(ours[..., -1:]), np.sin(ours[..., -1:])], axis=-1)
        result[..., at : at + nq] = ours
    return result


def q_from_pinocchio(robot: Robot, model: Any, q: Any) -> np.ndarray:
    """Our q (..., nq) of Pinocchio's configuration (..., model.nq); angles given by cosine and sine lie within ±π."""
    q = array(q, "q", model.nq, "the model")
    result = np.empty((*q.shape[:-1], robot.nq))
    for i, at, nq, _, _ in _pairs(robot, model):
        theirs, ours = q[..., at : at + nq], robot._q_slices[i]
        if nq == ours.stop - ours.start + 1:
            theirs = np.concatenate([theirs[..., :-2], np.arctan2(theirs[..., -1:], theirs[..., -2:-1])], axis=-1)
        result[..., ours] = theirs
    return result


def v_to_pinocchio(robot: Robot, model: Any, v: Any) -> np.ndarray:
    """Pinocchio's vector (..., model.nv) of our velocity, acceleration or generalised force (..., nv): τ·v is the same."""
    v = array(v, "v", robot.nv, f"robot {robot.name!r}")
    result = np.empty((*v.shape[:-1], model.nv))
    for i, _, _, at, order in _pairs(robot, model):
        result[..., at + np.array(order)] = v[..., robot._v_slices[i]]
    return result


def v_from_pinocchio(robot: Robot, model: Any, v: Any) -> np.ndarray:
    """Our velocity, acceleration or generalised force (..., nv) of Pinocchio's vector (..., model.nv)."""
    v = array(v, "v", model.nv, "the model")
    result = np.empty((*v.shape[:-1], robot.nv))
    for i, _, _, at, order in _pairs(robot, model):
        result[..., robot._v_slices[i]] = v[..., at + np.array(order)]
    return result


def _sizes(joint: Any) -> list[tuple[int, tuple[int, ...]]]:
    """The size in q of each part of a joint, and the order of our velocities in it."""
    kind = joint.shortname().removeprefix("JointModel")
    if kind == "Composite":
        own = joint.extract() if hasattr(joint, "extract") else joint
        return [size for inner in own.joints for size in _sizes(inner)]
    if kind in _PARTS:
        return [(part.nq, part.order) for part in _PARTS[kind]]
    return [(joint.nq, tuple(range(joint.nv)))]


def _pairs(robot: Robot, model: Any) -> Iterator[tuple[int, int, int, int, tuple[int, ...]]]:
    """Rows, for every moving joint of the robot: its index; in Pinocchio, the first index and the size in q, the first index in v, and
    the order of our velocities from there.
    """
    taken, ours = 0, set(robot.joint_names)
    for j, (joint, name) in enumerate(zip(model.joints, model.names, strict=True)):
        if j == 0 or joint.nv == 0:
            continue
        parts = _sizes(joint)
        whole = name in ours
        if whole and len(parts) > 1:  # our universal joint, where it is a composite one
            yield robot.joint_index(name), joint.idx_q, joint.nq, joint.idx_v, tuple(range(joint.nv))
            taken += joint.nv
            continue
        q, v = joint.idx_q, joint.idx_v
        for k, (nq, order) in enumerate(parts):
            yield robot.joint_index(name if whole or len(parts) == 1 else f"{name}_{k + 1}"), q, nq, v, order
            q, v, taken = q + nq, v + len(order), taken + len(order)
    if taken != robot.nv:
        raise ModelError(f"robot {robot.name!r} has {robot.nv} freedoms, but the model's joints are {taken} of them.")
