"""Robots written as URDF.

URDF puts the axis of a joint through the origin of the frame of the link it carries. Where a screw does not pass there, the joint
carries a massless link at X, a frame in which it does, and the link is fixed to that one: names and poses of all frames stay, and
so do the joint forces. For K g(q) K⁻¹ of a planar or free joint X is K; for a line it stands at the point nearest the origin.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import numpy as np

from ..errors import ModelError
from ..lie import inertia as _inertia
from ..lie import se3
from ..words import short
from . import xml
from .joints import axes_and_centre
from .link import Joint
from .robot import Robot
from .shape import Shape
from .urdf import GRAVITY, fresh
from .urdf_shapes import unwritten, written_shapes

TYPES = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "free": "floating",
    "planar": "planar",
}
"""URDF's name of each kind of joint that it supports."""

ROUNDING = 1e-15
"""An axis that passes the origin closer than this, in metres, passes through it."""


def unsaid(robot: Robot) -> list[str]:
    """The properties of the robot that URDF cannot represent. Gravity and armature are written so that this library reads them;
    limits of q are not written
    for continuous, planar and free joints."""
    notes = []
    if not np.array_equal(robot.gravity, GRAVITY):
        notes.append(f"gravity {robot.gravity.tolist()}: other readers take their own.")
    for link in robot.links:
        joint = link.joint
        if np.any(joint.armature):
            notes.append(f"joint {joint.name!r}: the armature {joint.armature.tolist()} is unknown to other readers.")
        if joint.kind in ("continuous", "planar", "free") and np.isfinite([*joint.lower, *joint.upper]).any():
            notes.append(f"joint {joint.name!r}: the limits of a {joint.kind} joint are not written.")
    notes += dict.fromkeys(f"link {shape.link!r}: {why}." for shape in robot.shapes if (why := unwritten(shape)))
    return notes


def to_urdf(robot: Robot) -> str:
    """The robot as the text of a URDF, which reads back as the same joints, frames and dynamics.

    A joint that URDF does not have (helical, universal, spherical) is an error that names it.
    """
    robot = robot.consolidated()
    if robot.springs:
        raise ModelError(
            f"robot {short(robot.name)} has the spring {short(robot.springs[0].name)}, which URDF does not hold; write JSON or "
            "MJCF, or leave its springs out with robot.with_springs([])."
        )
    xml.check_names(robot.name, (robot.name or "-", *robot.frame_names, *robot.joint_names), "URDF")
    for name in (robot.name, *robot.frame_names, *robot.joint_names):
        if "${" in name or "$(" in name:
            raise ModelError(
                f"robot {short(robot.name)}: readers of URDF take the name {short(name)} for a macro of xacro; write JSON."
            )
    links, joints = set(robot.frame_names), set(robot.joint_names)
    lines = ['<?xml version="1.0" encoding="utf-8"?>', _tag("robot", ">", name=robot.name)]
    if not np.array_equal(robot.gravity, GRAVITY):
        lines.append("  " + _tag("coadjoint", gravity=robot.gravity))
    shapes: dict[str, list[Shape]] = {}
    for shape in robot.shapes:
        shapes.setdefault(shape.link, []).append(shape)
    lines += _link(robot.base, np.zeros(10), shapes.get(robot.base, ()))
    for link in robot.links:
        X = _axis_frame(link.joint)
        if X is None:
            lines += _joint(link.joint, link.parent, link.name, link.placement)
        else:
            links.add(carrier := fresh(f"{link.name}_axis", links))
            joints.add(weld := fresh(f"{link.name}_fixed", joints))
            lines += _joint(link.joint, link.parent, carrier, link.placement @ X, X)
            lines += _link(carrier, np.zeros(10))
            lines += _joint(Joint.fixed(name=weld), carrier, link.name, se3.inverse(X))
        lines += _link(link.name, link.parameters, shapes.get(link.name, ()))
    for frame in robot.frames:
        joints.add(weld := fresh(f"{frame.name}_fixed", joints))
        lines += [*_joint(Joint.fixed(name=weld), frame.link, frame.name, frame.pose), *_link(frame.name, np.zeros(10))]
    return "\n".join([*lines, "</robot>", ""])


def _axis_frame(joint: Joint) -> np.ndarray | None:
    """The pose X in the link's frame of a frame through whose origin the joint's axis passes; None if that is the link's own
    frame.
    """
    if joint.kind not in TYPES:
        raise ModelError(f"joint {joint.name!r} is {joint.kind}, which URDF does not have; write the robot as JSON instead.")
    X = np.eye(4)
    if joint.kind in ("revolute", "continuous"):
        X[:3, 3] = np.cross(joint.screws[0, :3], joint.screws[0, 3:])
    elif joint.kind == "free":
        X[:3, :3], X[:3, 3] = axes_and_centre(joint.screws)
    elif joint.kind == "planar" and not np.allclose(joint.screws, Joint.planar(joint.screws[0, :3]).screws, 0.0, ROUNDING):
        X[:3, :3] = np.stack([joint.screws[1, 3:], joint.screws[2, 3:], joint.screws[0, :3]], axis=-1)
        X[:3, 3] = np.cross(joint.screws[0, :3], joint.screws[0, 3:])
    return None if np.allclose(X, np.eye(4), 0.0, ROUNDING) else X


def roll_pitch_yaw(R: np.ndarray) -> np.ndarray:
    """The angles with R = Rz(yaw) Ry(pitch) Rx(roll); roll is taken from Rz(-yaw) R, so that the product is R even where
    pitch is a right angle and yaw is a matter of choice."""
    yaw = math.atan2(R[1, 0], R[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    pitch = math.atan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = math.atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])


def _tag(tag: str, end: str = "/>", **attributes: Any) -> str:
    """An element; numbers with the digits that give them back, and the largest number for infinity, which readers do not know."""
    words = [tag]
    for key, value in attributes.items():
        if not isinstance(value, str):
            finite = np.clip(np.atleast_1d(value), -sys.float_info.max, sys.float_info.max) + 0.0  # -0 is 0
            value = " ".join(repr(float(x)) for x in finite)
        if key != "filename" and ("${" in value or "$(" in value):
            raise ModelError(f"{short(value)} would be read as an expression of xacro; rename it, or write the robot as JSON.")
        value = escape(value)
        for space in "\n\t\r":  # which a reader would take for a blank
            value = value.replace(space, f"&#{ord(space)};")
        words.append(f'{key}="{value}"')
    return f"<{' '.join(words)}{end}"


def _link(name: str, parameters: np.ndarray, shapes: Sequence[Shape] = ()) -> Iterator[str]:
    if not np.any(parameters) and not shapes:
        yield "  " + _tag("link", name=name)
        return
    yield "  " + _tag("link", ">", name=name)
    if np.any(parameters):
        yield from _inertial(name, parameters)
    yield from written_shapes(shapes, _tag, _origin)
    yield "  </link>"


def _origin(pose: np.ndarray) -> dict[str, Any]:
    return {"xyz": pose[:3, 3], "rpy": roll_pitch_yaw(pose[:3, :3])}


def _inertial(name: str, parameters: np.ndarray) -> Iterator[str]:
    mass, com, inertia = _inertia.to_body(parameters)
    if mass == 0 and np.any(parameters[1:4]):
        raise ModelError(f"link {name!r} has no mass but m c = {parameters[1:4].tolist()}, which URDF cannot say and no body has.")
    moments = dict(zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), inertia[np.triu_indices(3)], strict=True))
    yield "    <inertial>"
    yield "      " + _tag("origin", xyz=com)
    yield "      " + _tag("mass", value=mass)
    yield "      " + _tag("inertia", **moments)
    yield "    </inertial>"


def _joint(joint: Joint, parent: str, child: str, placement: np.ndarray, X: np.ndarray | None = None) -> Iterator[str]:
    yield "  " + _tag("joint", ">", name=joint.name, type=TYPES[joint.kind])
    yield "    " + _tag("origin", **_origin(placement))
    yield "    " + _tag("parent", link=parent)
    yield "    " + _tag("child", link=child)
    if joint.kind in ("revolute", "continuous", "prismatic", "planar"):
        axis = joint.screws[0, 3:] if joint.kind == "prismatic" else joint.screws[0, :3]
        yield "    " + _tag("axis", xyz=axis if X is None else X[:3, :3].T @ axis)
    if joint.kind != "fixed":
        yield from ("    " + line for line in _numbers_of_joint(joint))
    yield "  </joint>"


def _numbers_of_joint(joint: Joint) -> Iterator[str]:
    """Limits, friction, armature, mimic: one number each, for all freedoms."""
    for key in ("damping", "friction", "armature", "velocity", "effort"):
        values = getattr(joint, key)
        if np.any(values != values[0]):
            raise ModelError(f"joint {joint.name!r}: {key} is {values.tolist()}; URDF has one number for all freedoms of a joint.")
    rates = {"velocity": joint.velocity[0], "effort": joint.effort[0]}
    if joint.kind in ("revolute", "prismatic"):
        yield _tag("limit", lower=joint.lower, upper=joint.upper, **rates)
    elif np.isfinite([*rates.values()]).any():
        yield _tag("limit", **rates)
    friction = {key: getattr(joint, key)[0] for key in ("damping", "friction", "armature")}
    if not friction["armature"]:
        del friction["armature"]
    if any(friction.values()):
        yield _tag("dynamics", **friction)
    if (mimic := joint.mimic) is not None:
        yield _tag("mimic", joint=mimic.joint, multiplier=mimic.ratio, offset=mimic.offset)
