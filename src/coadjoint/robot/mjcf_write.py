"""Robots written as MJCF, without MuJoCo.

A link is a body with the link's frame, a frame a site, and q = qpos for every hinge and slide. Where the two differ:

    universal    two hinges `name_1`, `name_2`
    planar       two slides and a hinge `name_x`, `name_y`, `name_theta`
    free         a free joint on a body of the world; else three slides and a ball, `name_x`, `name_y`, `name_z`, `name_ball`
    mimic        a joint with its own coordinate, bound by an equality constraint, which MuJoCo keeps only softly
    massless     MuJoCo refuses bodies that move without mass and inertia. A massless link that carries just one other has its
                 joint on the body of that one; any other is an error, because no number is changed silently.
                 Of such a link between only the joint is written; read again, its frame may stand elsewhere.
    shapes       geoms that touch nothing (`mjcf_shapes.py`)
    fixed        a body of its own, unless MuJoCo would refuse its inertia or that of what carries it: then all that is rigidly
                 joined there is one body, and the names of its parts are sites; of such a link on the world only the site is left
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from xml.etree import ElementTree

import numpy as np

from ..errors import ModelError, ModelWarning
from ..lie import inertia, quaternion, se3
from . import xml
from .edit import merge_links
from .joints import axes_and_centre
from .link import Joint, Link, as_pose
from .mjcf_shapes import Geoms, text
from .robot import Robot
from .spring import Spring
from .urdf import fresh

SUFFIXES = {"universal": ("_1", "_2"), "planar": ("_x", "_y", "_theta"), "free": ("_x", "_y", "_z", "_ball")}
"""The suffixes of the names of MuJoCo's joints, where several represent one of ours."""

SMALLEST = 1e-15
"""MuJoCo's mjMINVAL: a body that moves has more mass and inertia."""


def to_mjcf(robot: Robot) -> str:
    """The robot as MJCF, every number with all its digits.

    Helical joints, and links that move without mass or inertia, or with one that no body can have, are refused by name. Limits
    that MuJoCo does not know (of velocities; of positions and forces for spherical and free joints; a lower one that is the
    upper) are left out, with a ModelWarning.
    """
    robot, ends = _with_sites_of_springs(_joined(robot.consolidated()))
    xml.check_names(robot.name, (robot.name or "-", *robot.frame_names, *robot.joint_names), "MJCF")
    _check(robot)
    root = ElementTree.Element("mujoco", model=robot.name)
    ElementTree.SubElement(root, "compiler", angle="radian", autolimits="false", inertiafromgeom="false")
    ElementTree.SubElement(root, "option", gravity=text(robot.gravity))
    geoms = Geoms(root, robot.shapes, _where)
    _write_tree(robot, ElementTree.SubElement(root, "worldbody"), _of_joints(robot.springs), geoms)
    if robot.mimics:
        equality = ElementTree.SubElement(root, "equality")
        for i, (source, ratio, offset) in robot.mimics.items():
            follower, leader = robot.links[i].joint.name, robot.links[source].joint.name
            ElementTree.SubElement(equality, "joint", joint1=follower, joint2=leader, polycoef=text([offset, ratio, 0, 0, 0]))
    if ends:
        tendons = ElementTree.SubElement(root, "tendon")
        for spring, sites in ends.items():
            one = ElementTree.SubElement(
                tendons, "spatial", name=spring.name, stiffness=text(spring.stiffness), springlength=text(spring.rest)
            )
            for site in sites:
                ElementTree.SubElement(one, "site", site=site)
    _warn(robot, geoms.left())
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _with_sites_of_springs(robot: Robot) -> tuple[Robot, dict[Spring, list[str]]]:
    """The robot with a frame at every end of its springs between links, and the names of these frames by spring."""
    ends: dict[Spring, list[str]] = {}
    for spring in robot.springs:
        for link, point in zip(spring.links, np.asarray(spring.points), strict=True) if not spring.joint else ():
            name = fresh(f"{spring.name} on {link}", robot.frame_names)
            robot = robot.with_frame(name, link, se3.pose(np.eye(3), point))
            ends.setdefault(spring, []).append(name)
    return robot, ends


@dataclass(frozen=True)
class _Part:
    """A joint of MuJoCo, in the frame of a body: the direction of its axis, a point of it, and its attributes."""

    name: str
    type: str
    axis: np.ndarray
    point: np.ndarray
    attributes: dict[str, str]

    def seen_from(self, placement: np.ndarray) -> _Part:
        """This joint in the frame of a link whose pose in this frame is `placement`."""
        T = se3.inverse(placement)
        return replace(self, axis=T[:3, :3] @ self.axis, point=T[:3, :3] @ self.point + T[:3, 3])

    def write(self, body: ElementTree.Element, springs: dict[str, str]) -> None:
        element = ElementTree.SubElement(body, "joint", name=self.name, type=self.type)
        if self.type in ("hinge", "ball"):
            element.set("pos", text(self.point))
        if self.type in ("hinge", "slide"):
            element.set("axis", text(self.axis))
        for key, value in (self.attributes | springs).items():
            element.set(key, value)


def _parts(link: Link, in_world: bool) -> list[_Part]:
    """The MuJoCo joints that represent the joint of a link, in the link's frame."""
    joint = link.joint
    S = joint.screws
    if joint.kind == "fixed":
        return []
    if joint.kind in ("revolute", "continuous", "prismatic", "universal"):
        parts = []
        for k, suffix in enumerate(SUFFIXES.get(joint.kind, ("",))):
            w, v = S[k, :3], S[k, 3:]
            kind, axis = ("slide", v) if joint.kind == "prismatic" else ("hinge", w)
            parts.append(_Part(joint.name + suffix, kind, axis, np.cross(w, v), _options(joint, [k], k)))
        return parts
    if joint.kind == "planar":
        n, x, y = S[0, :3], S[1, 3:], S[2, 3:]
        geometry = (("slide", x, [1, 2]), ("slide", y, [1, 2]), ("hinge", n, [0]))
        return [
            _Part(joint.name + suffix, kind, axis, np.cross(n, S[0, 3:]), _options(joint, dofs, k, kind == "slide"))
            for k, (suffix, (kind, axis, dofs)) in enumerate(zip(SUFFIXES["planar"], geometry, strict=True))
        ]
    _, c = axes_and_centre(S)
    if joint.kind == "spherical":
        return [_Part(joint.name, "ball", np.zeros(3), c, _options(joint, range(3)))]
    if np.any(c) and np.any(joint.damping):
        raise ModelError(f"joint {joint.name!r} has damping about {c.tolist()}; MuJoCo has it about the link's origin only.")
    if in_world:
        return [_Part(joint.name, "free", np.zeros(3), np.zeros(3), _options(joint, range(6), turning=True))]
    options = _options(joint, range(3, 6), turning=True)
    slides = [_Part(joint.name + s, "slide", e, np.zeros(3), options) for s, e in zip(SUFFIXES["free"], np.eye(3), strict=False)]
    return [*slides, _Part(joint.name + "_ball", "ball", np.zeros(3), np.zeros(3), _options(joint, range(3)))]


def _options(joint: Joint, dofs: Any, coordinate: int | None = None, turning: bool = False) -> dict[str, str]:
    """The attributes of a MuJoCo joint for some freedoms, which must agree, and the limits of a coordinate that has any.

    turning: our axes rotate with the link, MuJoCo's do not; this makes no difference for damping that is equal along all of them.
    """
    options = {}
    for key, name in (("armature", "armature"), ("damping", "damping"), ("friction", "frictionloss")):
        values = getattr(joint, key)[list(dofs)]
        if np.ptp(values):
            raise ModelError(f"joint {joint.name!r}: {key} is {values.tolist()}; MuJoCo has one number for these freedoms.")
        if turning and values[0] and key != "damping":
            raise ModelError(
                f"joint {joint.name!r} has {key} along the axes of its link; MuJoCo has it along those of what carries it."
            )
        if values[0]:
            options[name] = text(values[0])
    if coordinate is not None:
        lower, upper = joint.lower[coordinate], joint.upper[coordinate]
        if (np.isfinite(lower) or np.isfinite(upper)) and lower < upper:
            options |= {"limited": "true", "range": text([lower, upper])}
        effort = joint.effort[dofs[0] if joint.kind != "planar" else (1, 2, 0)[coordinate]]
        if np.isfinite(effort) and effort > 0:
            options |= {"actuatorfrclimited": "true", "actuatorfrcrange": text([-effort, effort])}
    return options


def _check(robot: Robot) -> None:
    """Raise an error for what MuJoCo cannot represent, before anything is written, and warn of what will be left out."""
    lost = []
    for link in robot.links:
        joint = link.joint
        if joint.kind == "helical":
            raise ModelError(f"joint {joint.name!r} is helical, which MJCF does not know; lock it first with robot.lock.")
        if found := inertia.violations(link.parameters, 1e-9):
            raise ModelError(f"link {link.name!r}: {'; '.join(found)}: MuJoCo refuses such a body. Use robot.with_inertia.")
        if link.name == "world":
            lost.append(
                f"the name of link 'world', which MuJoCo has for the base, and which is {_body_name(robot, link)!r} instead"
            )
        if np.isfinite(joint.velocity).any():
            lost.append(f"velocity limits of {joint.name!r}")
        bounds = np.concatenate([joint.lower, joint.upper, joint.effort])
        if joint.kind in ("spherical", "free"):
            lost += [f"limits of {joint.name!r}"] if np.isfinite(bounds).any() else []
        elif np.any(joint.lower == joint.upper) or np.any(joint.effort <= 0):
            lost.append(f"limits of {joint.name!r} that leave it no room")
    _warn(robot, lost)


def _warn(robot: Robot, lost: list[str]) -> None:
    if lost:
        message = f"robot {robot.name!r} has what MJCF does not hold and is left out: {', '.join(lost)}."
        warnings.warn(message, ModelWarning, stacklevel=4)


def _body_name(robot: Robot, link: Link) -> str:
    return link.name if link.name != "world" else fresh("world", robot.frame_names)


def _joined(robot: Robot) -> Robot:
    """The robot with fixed links merged into their parents where MuJoCo would refuse the link or its parent alone."""
    groups: dict[int, list[int]] = {}  # by the link that moves (-1: none) all that is rigidly joined to it
    group = {-1: -1}
    for i in robot.order:
        group[i] = group[robot.parents[i]] if robot.links[i].joint.kind == "fixed" else i
        groups.setdefault(group[i], []).append(i)
    merged = []
    for first, members in groups.items():
        refused = [i for i in members if inertia.violations(robot.links[i].parameters, 1e-9)]
        heavy = any(robot.links[i].parameters.any() for i in members)
        if first < 0:
            merged += refused  # what is fixed to the world needs no inertia
        elif refused or (heavy and not _solid(robot, first)):
            merged += [i for i in members if i != first]
    return merge_links(robot, merged) if merged else robot


def _solid(robot: Robot, i: int) -> bool:
    """True if the link has mass and inertia enough to move."""
    with np.errstate(over="ignore", invalid="ignore"):
        mass, _, central = inertia.to_body(robot.links[i].parameters)
    if not np.isfinite(central).all():
        raise ModelError(f"link {robot.links[i].name!r}: the inertia about the centre of mass is too large for a number.")
    return bool(mass > SMALLEST and np.linalg.eigvalsh(central)[0] > SMALLEST)


def _of_joints(springs: Iterable[Spring]) -> dict[str, dict[str, str]]:
    """The attributes of joints with springs: those of one joint act as one, of the sum of stiffnesses and their mean rest."""
    found: dict[str, list[Spring]] = {}
    for spring in springs:
        if spring.joint:
            found.setdefault(spring.joint, []).append(spring)
    options = {}
    for joint, own in found.items():
        if stiffness := sum(x.stiffness for x in own):
            rest = sum(x.stiffness * x.rest for x in own) / stiffness
            options[joint] = {"stiffness": text(stiffness), "springref": text(rest)}
    return options


def _write_tree(robot: Robot, world: ElementTree.Element, springs: dict[str, dict[str, str]], geoms: Geoms) -> None:
    children: dict[int, list[int]] = {}
    for i, parent in enumerate(robot.parents):
        children.setdefault(parent, []).append(i)
    sites: dict[str, list[Any]] = {}
    for frame in robot.frames:
        sites.setdefault(frame.link, []).append(frame)

    def write_sites(name: str, body: ElementTree.Element) -> None:
        for frame in sites.get(name, ()):
            ElementTree.SubElement(body, "site", {"name": frame.name} | _where(frame.pose))

    write_sites(robot.base, world)
    geoms.write(robot.base, world)
    # What is to be written: a link, the body around it, the pose of what carries its joint in that body, and the joints of
    # massless links between.
    stack: list[tuple[int, ElementTree.Element, np.ndarray, list[_Part]]]
    stack = [(i, world, np.eye(4), []) for i in reversed(children.get(-1, []))]
    while stack:
        i, around, before, waiting = stack.pop()
        link = robot.links[i]
        in_world = around is world
        # Where a free joint is three slides and a ball, the slides are along the axes of what carries it.
        placement = before if link.joint.kind == "free" and not in_world else before @ link.placement
        parts = [part.seen_from(link.placement) for part in waiting] + _parts(link, in_world)
        freedoms = sum({"free": 6, "ball": 3}.get(part.type, 1) for part in parts)
        if freedoms > 6:
            raise ModelError(
                f"link {link.name!r} has {freedoms} freedoms with the massless links before it; MuJoCo allows six on a body."
            )
        below = children.get(i, [])
        if parts and not _solid(robot, i):
            _check_between(robot, i, below, link.name in sites)
            stack.append((below[0], around, placement, parts))
            continue
        body = ElementTree.SubElement(around, "body", {"name": _body_name(robot, link)} | _where(placement))
        for part in parts:
            part.write(body, springs.get(part.name, {}))
        _write_inertia(link, body)
        write_sites(link.name, body)
        geoms.write(link.name, body)
        stack += [(k, body, np.eye(4), []) for k in reversed(below)]


def _check_between(robot: Robot, i: int, below: list[int], has_frames: bool) -> None:
    """Raise an error for a link with too little mass for a body, unless its joint can be added to the body of its only child."""
    link = robot.links[i]
    if link.parameters.any():
        mass, _, central = inertia.to_body(link.parameters)
        moments = ", ".join(f"{x:.3g}" for x in np.linalg.eigvalsh(central))
        reason = f"has {mass:.3g} kg and moments of inertia {moments} kg m², of which none may be zero"
    elif len(below) != 1:
        reason = f"has no mass, and carries {len(below)} links instead of one with which it could be a body"
    elif has_frames:
        reason = "has no mass, but frames stand on it"
    elif link.joint.kind in ("spherical", "free") or robot.links[below[0]].joint.kind == "free":
        reason = "has no mass, and on one body no turn follows a spherical joint, and nothing a free one"
    else:
        return
    raise ModelError(
        f"link {link.name!r} moves and {reason}: MuJoCo refuses such a body. Give it mass and inertia with robot.with_inertia, "
        f"or lock joint {link.joint.name!r}."
    )


def _where(pose: np.ndarray) -> dict[str, str]:
    x, y, z, w = quaternion.from_matrix(as_pose(pose, "pose")[:3, :3])
    return {"pos": text(pose[:3, 3]), "quat": text([w, x, y, z])}


def _write_inertia(link: Link, body: ElementTree.Element) -> None:
    """The inertia about the centre of mass; MuJoCo finds the principal axes itself where they are not those of the link."""
    if not link.parameters.any():
        return
    mass, com, central = inertia.to_body(link.parameters)
    element = ElementTree.SubElement(body, "inertial", pos=text(com), mass=text(mass))
    diagonal, products = np.diag(central), central[[0, 0, 1], [1, 2, 2]]
    if products.any():
        element.set("fullinertia", text([*diagonal, *products]))
    else:
        element.set("diaginertia", text(diagonal))
