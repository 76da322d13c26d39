"""A robot as Pinocchio's `Model`.

A joint of Pinocchio moves its own frame: C of each kind below is that frame in the frame of our link, so that
placement · exp(S q) = (placement C) · exp(Ad_C⁻¹ S q) · C⁻¹, with the screw Ad_C⁻¹ S in the form that Pinocchio has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import ModelError
from ..lie import inertia, se3
from ..robot.joints import axes_and_centre
from ..robot.link import Joint, as_pose
from ..robot.robot import Robot
from ._common import engine


def to_pinocchio(robot: Robot) -> Any:
    """The robot as a `pinocchio.Model`.

    Fixed links become part of what carries them, and frames. Joints are added depth-first, parents before children, because
    some of Pinocchio's algorithms rely on that: where the robot is described in another order, coordinates move, and
    `q_to_pinocchio` and `v_to_pinocchio` take them there. The armature and damping of a mimic joint are added to the joint it
    mimics. Links and frames are Pinocchio's frames of the same names.
    """
    pin = engine("pinocchio")
    if robot.springs:
        raise ModelError(
            f"robot {robot.name!r} has the spring {robot.springs[0].name!r}, which Pinocchio does not know; convert "
            "robot.with_springs([]) and take `spring_force` from τ."
        )
    robot = robot.merge_fixed()
    model = pin.Model()
    model.name = robot.name
    model.gravity.linear = np.array(robot.gravity)
    joints, frames = {-1: 0}, {-1: np.eye(4)}  # of a link: the joint, and C
    for i in _depth_first(robot):
        link, parent = robot.links[i], robot.parents[i]
        placement = se3.inverse(frames[parent]) @ link.placement
        joint = link.joint
        if i in robot.mimics:
            shape, C = _follower(pin, robot, model, joints, i)
            number = model.addJoint(joints[parent], shape, _SE3(pin, placement @ C), joint.name)
        else:
            shape, C = _joint_model(pin, joint)
            number = model.addJoint(joints[parent], shape, _SE3(pin, placement @ C), joint.name, *_limits(joint))
        joints[i], frames[i] = number, C
        model.addJointFrame(number)
        back = _SE3(pin, se3.inverse(C))
        if link.parameters.any():
            mass, com, central = inertia.to_body(link.parameters)
            model.appendBodyToJoint(number, pin.Inertia(float(mass), com, central), back)
        model.addFrame(pin.Frame(link.name, number, back, pin.FrameType.BODY))
    for frame in robot.frames:
        i = robot.link_index(frame.link)
        placement = _SE3(pin, se3.inverse(frames[i]) @ frame.pose)
        model.addFrame(pin.Frame(frame.name, joints[i], placement, pin.FrameType.OP_FRAME))
    _set_numbers(robot, model, joints)
    return model


def _SE3(pin: Any, T: np.ndarray) -> Any:
    return pin.SE3(np.array(T[:3, :3]), np.array(T[:3, 3]))


def _depth_first(robot: Robot) -> Iterator[int]:
    """The links depth-first, in the robot's order, except that a mimic joint comes after the joint it mimics."""
    children: dict[int, list[int]] = {}
    below: dict[int, set[int]] = {i: {i} for i in range(-1, robot.n_links)}
    for i in reversed(robot.order):
        children.setdefault(robot.parents[i], []).append(i)
        below[robot.parents[i]] |= below[i]
    placed: set[int] = set()

    def visit(parent: int) -> Iterator[int]:
        waiting = sorted(children.get(parent, []))
        while waiting:
            for i in waiting:
                followed = {robot.mimics[k][0] for k in below[i] if k in robot.mimics and k != i}
                if followed <= placed | below[i] and (i not in robot.mimics or robot.mimics[i][0] in placed):
                    break
            else:
                names = ", ".join(robot.links[i].joint.name for i in waiting)
                raise ModelError(
                    f"Pinocchio needs a joint before those that follow it, and depth-first no order of {names} has that."
                )
            waiting.remove(i)
            placed.add(i)
            yield i
            yield from visit(i)

    return visit(-1)


def _joint_model(pin: Any, joint: Joint) -> tuple[Any, np.ndarray]:
    """Pinocchio's joint, and C."""
    S = joint.screws
    if joint.kind in ("spherical", "free"):
        shape = pin.JointModelSpherical() if joint.kind == "spherical" else pin.JointModelFreeFlyer()
        K, c = axes_and_centre(S)
        return shape, as_pose(se3.pose(K, c), f"joint {joint.name!r}: axes")
    if joint.kind == "planar":
        n = S[0, :3]
        K = np.stack([S[1, 3:], S[2, 3:], n], axis=-1)
        return pin.JointModelPlanar(), as_pose(se3.pose(K, np.cross(n, S[0, 3:])), f"joint {joint.name!r}: axes")
    if joint.kind == "universal":
        return _universal(pin, S)
    return _one_screw(pin, joint, S[0])


def _one_screw(pin: Any, joint: Joint, screw: np.ndarray) -> tuple[Any, np.ndarray]:
    w, v = screw[:3], screw[3:]
    point = np.cross(w, v)
    if joint.kind == "helical":
        # Always about z: the kinetic energy of Pinocchio 4's unaligned helical joint is wrong where it has armature.
        plane = Joint.planar(w).screws
        return pin.JointModelHZ(float(w @ v)), se3.pose(np.stack([plane[1, 3:], plane[2, 3:], w], axis=-1), point)
    letter, axis, unaligned = ("P", v, "PrismaticUnaligned") if joint.kind == "prismatic" else ("R", w, "RevoluteUnaligned")
    for name, e in zip("XYZ", np.eye(3), strict=True):
        if np.array_equal(axis, e):
            return getattr(pin, f"JointModel{letter}{name}")(), se3.pose(np.eye(3), point)
    return getattr(pin, f"JointModel{unaligned}")(np.array(axis)), se3.pose(np.eye(3), point)


def _universal(pin: Any, S: np.ndarray) -> tuple[Any, np.ndarray]:
    """Pinocchio's universal joint has orthogonal axes that meet; two others are a composite joint."""
    first, second = np.cross(S[0, :3], S[0, 3:]), np.cross(S[1, :3], S[1, 3:])
    if abs(S[0, :3] @ S[1, :3]) < 1e-15:
        # Feet of the perpendiculars from the origin to the axes; the common point is the sum of what each axis adds.
        point = first + S[0, :3] * (S[0, :3] @ second)
        if np.max(np.abs(np.cross(point, S[1, :3]) - S[1, 3:])) < 1e-15 * max(1.0, float(np.abs(point).max())):
            return pin.JointModelUniversal(np.array(S[0, :3]), np.array(S[1, :3])), se3.pose(np.eye(3), point)
    shape = pin.JointModelComposite()  # begins, as it ends, on the second axis
    shape.addJoint(pin.JointModelRevoluteUnaligned(np.array(S[0, :3])), pin.SE3(np.eye(3), first - second))
    shape.addJoint(pin.JointModelRevoluteUnaligned(np.array(S[1, :3])), pin.SE3(np.eye(3), second - first))
    return shape, se3.pose(np.eye(3), second)


def _follower(pin: Any, robot: Robot, model: Any, joints: dict[int, int], i: int) -> tuple[Any, np.ndarray]:
    source, ratio, offset = robot.mimics[i]
    joint = robot.links[i].joint
    if not hasattr(pin, "JointModelMimic"):
        raise ModelError(f"joint {joint.name!r} follows another, which this version of Pinocchio does not know; update pin.")
    if joint.kind == "helical":
        # Its mass matrix is not that of its own velocities: crba differs from Σ Vᵀ J V.
        raise ModelError(f"joint {joint.name!r} is helical and follows another, for which Pinocchio's dynamics are wrong; lock it.")
    shape, C = _joint_model(pin, joint)
    leader = model.joints[joints[source]]
    shape.setIndexes(leader.id, leader.idx_q, leader.idx_v, leader.idx_vExtended)
    return pin.JointModelMimic(pin.JointModel(shape), float(ratio), float(offset)), C


def _limits(joint: Joint) -> tuple[np.ndarray, ...]:
    """Limits of effort, velocity and position in Pinocchio's order; quaternions, cosines and sines are within 1 anyway."""
    from .pinocchio import VELOCITY_ORDER

    order = np.argsort(VELOCITY_ORDER.get(joint.kind, range(len(joint.screws))))
    lower, upper = joint.lower, joint.upper
    if joint.kind in ("spherical", "free", "planar"):
        positions = {"spherical": 0, "free": 3, "planar": 2}[joint.kind]
        unit = np.full(2 if joint.kind == "planar" else 4, 1.01)
        lower, upper = np.concatenate([lower[:positions], -unit]), np.concatenate([upper[:positions], unit])
    return np.array(joint.effort[order]), np.array(joint.velocity[order]), np.array(lower), np.array(upper)


def _set_numbers(robot: Robot, model: Any, joints: dict[int, int]) -> None:
    """Armature, damping and friction, with those of followers on the joints they follow."""
    from .pinocchio import VELOCITY_ORDER

    numbers = {key: np.zeros(model.nv) for key in ("armature", "damping", "friction")}
    for i, link in enumerate(robot.links):
        source, ratio, _ = robot.mimics.get(i, (i, 1.0, 0.0))
        order = VELOCITY_ORDER.get(link.joint.kind, range(len(link.joint.screws)))
        at = model.joints[joints[source]].idx_v + np.array(order)
        for key, share in (("armature", ratio**2), ("damping", ratio**2), ("friction", abs(ratio))):
            np.add.at(numbers[key], at, share * getattr(link.joint, key))
    model.armature, model.damping = numbers["armature"], numbers["damping"]
    if hasattr(model, "upperDryFrictionLimit"):
        model.upperDryFrictionLimit, model.lowerDryFrictionLimit = numbers["friction"], -numbers["friction"]
    else:
        model.friction = numbers["friction"]
