"""Changed copies of a robot: other numbers, locked joints, merged links, another robot attached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arguments import a_name
from ..arrays import asfloat
from ..errors import CoadjointError, ModelError, ShapeError
from ..lie import inertia as _inertia
from .link import Frame, Joint, Link, Mimic, as_pose
from .shape import moved_shape
from .spring import moved_springs

if TYPE_CHECKING:
    from .robot import Robot


def _with_changed_link(robot: Robot, i: int, link: Link) -> Robot:
    return robot._remade(links=(*robot.links[:i], link, *robot.links[i + 1 :]))


def _moving_link(robot: Robot, link: str) -> int:
    i = robot.link_index(link)
    if i < 0:
        raise ModelError(f"{link!r} is the base of robot {robot.name!r}, which has neither inertia nor placement; name a link.")
    return i


def with_inertia(robot: Robot, link: str, *, mass: float, com: Any, inertia: Any) -> Robot:
    i = _moving_link(robot, link)
    old = robot.links[i]
    new = Link.solid(old.name, old.parent, old.joint, old.placement, mass=mass, com=com, inertia=inertia)
    return _with_changed_link(robot, i, new)


def with_inertial_parameters(robot: Robot, parameters: Any) -> Robot:
    parameters = asfloat(parameters, "parameters")
    if tuple(parameters.shape) != (10 * robot.n_links,):
        raise ShapeError(f"parameters has shape {tuple(parameters.shape)}; expected ({10 * robot.n_links},), ten per link.")
    if type(parameters) is not np.ndarray or parameters.dtype.kind != "f":
        return robot.with_parameters("inertial", parameters)
    parameters, notes = _without_rounding(robot, parameters)
    changed = robot.with_parameters("inertial", parameters)
    return changed._remade(notes=(*robot.notes, *notes)) if notes else changed


ROUNDING = 1e-9
"""Beside the heaviest link, masses below zero by this part are a fit's rounding."""


def _without_rounding(robot: Robot, parameters: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Parameters whose masses are not below zero by rounding, and a note of every link that was changed.

    The pseudo-inertia of such a link is projected on the positive semidefinite ones: its nearest body, in the Frobenius norm.
    """
    each = parameters.reshape(-1, 10)
    largest = float(np.max(np.abs(each[:, 0]), initial=0.0))
    rows = np.flatnonzero((each[:, 0] < 0) & (each[:, 0] >= -ROUNDING * largest))
    if not len(rows):
        return parameters, []
    each, notes = each.copy(), []
    for i in rows:
        values, vectors = np.linalg.eigh(_inertia.pseudo(each[i]))
        notes.append(
            f"link {robot.links[i].name!r}: a mass of {each[i, 0]:.2g} kg was rounding; its inertia is the nearest of a body."
        )
        each[i] = _inertia.from_pseudo((vectors * np.maximum(values, 0.0)) @ vectors.T)
        each[i, 0] = max(each[i, 0], 0.0)
    return each.ravel(), notes


def with_payload(robot: Robot, frame: str, *, mass: float, com: Any, inertia: Any) -> Robot:
    body = Link.solid("payload", robot.base, Joint.fixed(), mass=mass, com=com, inertia=inertia)
    return robot.with_parameters(f"payload:{frame}", body.parameters)


def with_joint(robot: Robot, joint: str, **options: Any) -> Robot:
    allowed = ("armature", "damping", "friction", "lower", "upper", "velocity", "effort", "mimic")
    for key in options:
        if key not in allowed:
            raise CoadjointError(f"joint {joint!r} has no option {key!r}; choose from {', '.join(allowed)}.")
    i = robot.joint_index(joint)
    link = robot.links[i]
    return _with_changed_link(robot, i, replace(link, joint=replace(link.joint, **options)))


def with_placement(robot: Robot, link: str, placement: Any) -> Robot:
    i = _moving_link(robot, link)
    return _with_changed_link(robot, i, replace(robot.links[i], placement=placement))


def lock(robot: Robot, values: Mapping[str, Any]) -> Robot:
    """The robot with these joints fixed at M exp(S q₀); joints that mimic a locked joint are locked with it."""
    if not isinstance(values, Mapping):
        raise CoadjointError(f"lock takes a dictionary of joints and the coordinates to hold them at, not {values!r}.")
    held: dict[int, np.ndarray] = {}
    for joint, value in values.items():
        i = robot.joint_index(joint)
        if i in robot.mimics:
            followed = robot.links[robot.mimics[i][0]].joint.name
            raise ModelError(f"joint {joint!r} follows {followed!r} and cannot be locked by itself; lock {followed!r}.")
        nq = robot.kinds[i].nq
        try:
            q = np.atleast_1d(np.asarray(value, dtype=float))
        except (ValueError, TypeError):
            q = np.full(nq, np.nan)
        if q.shape != (nq,) or not np.all(np.isfinite(q)):
            raise ModelError(f"joint {joint!r} is to be locked at {value!r}; it takes {nq} finite number(s).")
        if (own := robot.kind(i).quaternion) is not None and not q[own].any():
            raise ModelError(
                f"joint {joint!r} is to be locked at {value!r}; a quaternion must not be zero (0 0 0 1 is no rotation)."
            )
        held[i] = q
    for i, (source, ratio, offset) in robot.mimics.items():
        if source in held:
            held[i] = ratio * held[source] + offset
    links = list(robot.links)
    for i, q in held.items():
        link = links[i]
        motion = robot.kinds[i].pose(link.joint.screws, q)
        links[i] = replace(link, joint=Joint.fixed(name=link.joint.name), placement=link.placement @ motion)
    springs = [spring for spring in robot.springs if not spring.joint or robot.joint_index(spring.joint) not in held]
    return merge_links(robot._remade(links=links, springs=springs), held.keys())


def merge_fixed(robot: Robot) -> Robot:
    return merge_links(robot, [i for i, link in enumerate(robot.links) if link.joint.kind == "fixed"])


def merge_links(robot: Robot, fixed: Any) -> Robot:
    """The robot with the links of these fixed joints merged into their parents (or the base)."""
    fixed = set(fixed)
    carrier: dict[int, tuple[int, np.ndarray]] = {-1: (-1, np.eye(4))}  # link -> the link it ends up in, and its pose there
    parameters = {}
    for i in robot.order:
        on, pose = carrier[robot.parents[i]]
        pose = pose @ robot.placements[i]
        carrier[i] = (on, pose) if i in fixed else (i, np.eye(4))
        parameters[i] = robot.inertias[i]
        if i in fixed and on >= 0:
            parameters[on] = parameters[on] + _inertia.transform(pose, robot.inertias[i])
    name = robot._link_name
    links = []
    for i, link in enumerate(robot.links):
        if i not in fixed:
            on, pose = carrier[robot.parents[i]]
            links.append(replace(link, parent=name(on), placement=pose @ link.placement, parameters=parameters[i]))
    frames = [Frame(robot.links[i].name, name(on), pose) for i, (on, pose) in carrier.items() if i in fixed]
    for frame in robot.frames:
        on, pose = carrier[robot.link_index(frame.link)]
        frames.append(Frame(frame.name, name(on), pose @ frame.pose))
    shapes = []
    for shape in robot.shapes:
        on, pose = carrier[i := robot.link_index(shape.link)]
        shapes.append(moved_shape(shape, name(on), pose) if i in fixed else shape)
    places = {robot.links[i].name: (name(on), pose) for i, (on, pose) in carrier.items() if i in fixed}
    return robot._remade(links=links, frames=frames, shapes=shapes, springs=moved_springs(robot.springs, places))


def attach(robot: Robot, other: Robot, frame: str, pose: Any, prefix: str) -> Robot:
    if not hasattr(other, "links"):
        raise CoadjointError(f"what is to be attached is {other!r}; expected a Robot.")
    other, prefix = other.consolidated(), a_name(prefix, "prefix")
    on, placement = robot.frame(frame)
    root = placement @ (np.eye(4) if pose is None else as_pose(pose, "pose"))
    taken = set(robot.frame_names) | set(robot.joint_names)
    clash = [x for x in (*other.link_names, *other.joint_names, *(f.name for f in other.frames)) if prefix + x in taken]
    if clash:
        raise ModelError(f"both robots have {', '.join(clash[:5])}; give a prefix, as in attach(hand, {frame!r}, prefix='hand_').")
    carrier = robot._link_name(on)
    links = list(robot.links)
    for link in other.links:
        at_base = link.parent == other.base
        mimic = link.joint.mimic
        joint = replace(
            link.joint,
            name=prefix + link.joint.name,
            mimic=None if mimic is None else Mimic(prefix + mimic.joint, mimic.ratio, mimic.offset),
        )
        parent = carrier if at_base else prefix + link.parent
        moved = root @ link.placement if at_base else link.placement
        links.append(replace(link, name=prefix + link.name, parent=parent, joint=joint, placement=moved))
    frames = list(robot.frames)
    for f in other.frames:
        at_base = f.link == other.base
        frames.append(Frame(prefix + f.name, carrier if at_base else prefix + f.link, root @ f.pose if at_base else f.pose))
    shapes = list(robot.shapes)
    for shape in other.shapes:
        at_base = shape.link == other.base
        shapes.append(moved_shape(shape, carrier, root) if at_base else moved_shape(shape, prefix + shape.link))
    other_loops = (replace(x, name=prefix + x.name, frame_a=prefix + x.frame_a, frame_b=prefix + x.frame_b) for x in other.loops)
    loops = (*robot.loops, *other_loops)
    notes = (*robot.notes, *other.notes)
    places = {
        link: (carrier, root) if link == other.base else (prefix + link, np.eye(4)) for link in (other.base, *other.link_names)
    }
    named = [replace(x, name=prefix + x.name, joint=x.joint and prefix + x.joint) for x in other.springs]
    springs = (*robot.springs, *moved_springs(named, places))
    attached = robot._remade(links=links, frames=frames, shapes=shapes, loops=loops, notes=notes, springs=springs)
    theirs = {prefix + name: {prefix + joint: x for joint, x in pose.items()} for name, pose in other._poses.items()}
    return attached.with_poses(robot._poses | theirs) if theirs else attached
