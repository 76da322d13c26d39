"""Named poses: SRDF's `group_state` elements, which name coordinates of joints.

States of one name that different groups have are one pose of the robot; joints that a pose does not name are at their neutral coordinates.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CoadjointError, ModelError
from ..files import read_bytes
from ..words import cut, short
from . import xml

if TYPE_CHECKING:
    from .robot import Robot

NamedPoses = dict[str, dict[str, tuple[float, ...]]]
"""By the name of a pose and of a joint, the coordinates of that joint."""


def read_srdf(path: str | os.PathLike[str]) -> NamedPoses:
    """The named poses in an SRDF file."""
    root = xml.parse(read_bytes(path), cut(os.fspath(path), 300))
    if root.tag != "robot":
        raise root.error("not an SRDF; expected <robot> as the root element.")
    poses: NamedPoses = {}
    for state in root.all("group_state"):
        pose = poses.setdefault(state.text("name"), {})
        for joint in state.all("joint"):
            name, given = joint.text("name"), joint.text("value")
            try:
                values = tuple(xml.plain_numbers(given, len(given.split())))
            except ValueError:
                raise joint.error(f'value="{cut(given)}"; expected numbers with spaces between.') from None
            if pose.setdefault(name, values) != values:
                raise joint.error(f"{state} has other values for the same joint, {pose[name]}, in another group.")
    return poses


def checked_poses(robot: Robot, poses: Any) -> NamedPoses:
    """Poses given as q (nq,), or as dictionaries of joints and coordinates, by joints; an error names what is wrong."""
    if not isinstance(poses, Mapping):
        raise CoadjointError(f"poses is {short(poses)}; expected a dictionary of names and coordinates.")
    result: NamedPoses = {}
    for name, given in poses.items():
        if not isinstance(name, str):
            raise CoadjointError(f"the name of a pose is {short(name)}; expected text.")
        result[name] = _by_joint(robot, name, given)
    return result


def _by_joint(robot: Robot, name: str, given: Any) -> dict[str, tuple[float, ...]]:
    if not isinstance(given, Mapping):
        q = _numbers(given, f"the pose {short(name)}")
        if len(q) != robot.nq:
            raise ModelError(f"the pose {short(name)} has {len(q)} numbers; robot {short(robot.name)} has nq = {robot.nq}.")
        moving = (i for i in range(robot.n_links) if i not in robot.mimics and robot.kind(i).nq)
        return {robot.links[i].joint.name: q[robot._q_slices[i]] for i in moving}
    found = {}
    for joint, values in given.items():
        i = robot.joint_index(joint)
        numbers = _numbers(values, f"the pose {short(name)}: joint {short(joint)}")
        if len(numbers) != robot.kind(i).nq:
            raise ModelError(
                f"the pose {short(name)}: joint {short(joint)} has {len(numbers)} numbers; it takes {robot.kind(i).nq}."
            )
        found[joint] = numbers
    return found


def _numbers(x: Any, what: str) -> tuple[float, ...]:
    try:
        numbers = np.atleast_1d(np.asarray(x, dtype=float))
    except (ValueError, TypeError, OverflowError):
        numbers = np.array([np.nan])
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ModelError(f"{what} is {short(x)}; expected finite numbers.")
    return tuple(numbers.tolist())


def fitting(robot: Robot, poses: NamedPoses) -> tuple[NamedPoses, list[str]]:
    """The parts of poses that are of this robot, and a sentence if some are not; the joint of a free base may be missing."""
    known = {link.joint.name: robot.kind(i).nq for i, link in enumerate(robot.links)}
    odd: dict[str, None] = {}
    result: NamedPoses = {}
    for name, pose in poses.items():
        result[name] = {joint: values for joint, values in pose.items() if known.get(joint) == len(values)}
        odd |= dict.fromkeys(joint for joint in pose if joint not in result[name] and joint != "root_joint")
    listed = ", ".join(short(x) for x in list(odd)[:5]) + (", …" if len(odd) > 5 else "")
    return result, [f"the named poses have joints that the robot does not, or not so: {listed}."] if odd else []


def coordinates(robot: Robot, pose: Mapping[str, Iterable[float]]) -> np.ndarray:
    """q (nq,) of a pose: the neutral one with the joints that it names."""
    q = np.array(robot.neutral())
    for joint, values in pose.items():
        i = robot._joint_index.get(joint)
        numbers = np.array(tuple(values))
        if i is None or i in robot.mimics or len(numbers) != robot.kind(i).nq:
            continue
        place = robot.kind(i).quaternion
        if place is not None:
            size = np.linalg.norm(numbers[place])
            numbers[place] = numbers[place] / size if size > 0 else [0.0, 0.0, 0.0, 1.0]
        q[robot._q_slices[i]] = numbers
    return q
