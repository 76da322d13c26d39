"""Robots read from URDF.

The frame of a link is that of the joint that carries it, and the joint's axis passes through its origin. Links, joints and their
elements may stand in any order; joints keep theirs. What a Robot does not hold is passed over without a look; a shape that cannot
be read, or a mesh that is missing, stops nothing.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import warnings
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CoadjointError, ModelError, ModelWarning, ReadError, arrows, nearest, unknown
from ..files import read_bytes
from ..lie import inertia as _inertia
from ..words import cut, short
from . import xml
from .closing import Edge, closed, tree_and_loops
from .link import Joint, Link, Mimic
from .packages import Finder, Packages
from .plausibility import impossible, impossible_inertias
from .robot import Robot
from .urdf_shapes import read_shapes

TEXT = "the text"
"""The name of a description in errors if it is not a file."""

TYPES: dict[str, Callable[..., Joint]] = {
    "revolute": Joint.revolute,
    "continuous": Joint.continuous,
    "prismatic": Joint.prismatic,
    "fixed": Joint.fixed,
    "floating": Joint.free,
    "planar": Joint.planar,
    "spherical": Joint.spherical,  # these two are not of the specification, but some files have them
    "ball": Joint.spherical,
}
"""The joint types of URDF."""

GRAVITY = (0.0, 0.0, -9.81)


def read_urdf(
    source: str | os.PathLike[str], base: str = "fixed", fixed_joints: str = "merge", packages: Packages | None = None
) -> Robot:
    """The robot in a URDF file, or in a text that starts with "<".

    base="fixed": the root link is the base of the robot, does not move, and its inertia does not count. "free": it is the first
    link and moves freely. fixed_joints="merge": the link of a fixed joint becomes a part of what carries it, and a frame of it;
    "keep": it stays a link. packages: folders by the names of packages, for the meshes; see `packages.py` for where else they are
    looked for.

    A file that is wrong raises one ReadError that names file, line and element. What is odd, but no obstacle, is said in
    `robot.warnings`; of an inertia that no body can have, and of a joint that mimics none, one ModelWarning tells as well.
    """
    check_options(base, fixed_joints)
    if isinstance(source, str) and xml.is_text(source):
        root, finder = xml.parse(xml.stripped(source), TEXT), Finder(None, packages)
    else:
        finder = Finder(Path(source).parent, packages)
        root = xml.parse(read_bytes(source), cut(os.fspath(source), 300))
    if root.tag == "robot":
        _refuse_xacro(root)
    return robot_of(root, base == "free", fixed_joints == "merge", finder)


def check_options(base: str, fixed_joints: str) -> None:
    """Raise an error if an option is not one of its choices."""
    for name, value, choices in (("base", base, ("fixed", "free")), ("fixed_joints", fixed_joints, ("merge", "keep"))):
        if not isinstance(value, str) or value not in choices:
            raise CoadjointError(f"{name} is {short(value)}; choose {choices[0]!r} or {choices[1]!r}.")


def robot_of(root: xml.Element, free: bool, merge: bool, finder: Finder) -> Robot:
    """The robot that the <robot> of a URDF describes."""
    if root.tag != "robot":
        raise root.error("not a URDF; expected <robot> as the root element.")
    notes: list[str] = []
    name = root.attributes.get("name", "")
    if not name.strip():
        name = Path(root.source).stem if root.source != TEXT else "robot"
        notes.append(f"the robot has no name and is called {short(name)}.")
    links, joints = named(root, "link"), named(root, "joint")
    if not links:
        if joints:
            raise next(iter(joints.values())).error("the robot has joints but no <link>.")
        return _made(root, name, [], notes=[*notes, "the robot has no links; nothing of it moves."])
    carriers, closing = _carriers(links, joints)
    top = _root_link(links, carriers)
    serious = _check_mimics(joints)
    parameters = {key: _inertial(link) for key, link in links.items()}
    parts = []
    base = top
    if free:
        base = fresh("world", links)
        try:
            parts.append(Link(top, base, Joint.free(name=fresh("root_joint", joints)), np.eye(4), parameters[top]))
        except ModelError as error:
            raise links[top].error(str(error)) from None
    for child, joint in carriers.items():
        try:
            placement = origin(joint.optional("origin"))
            parts.append(Link(child, joint.only("parent").text("link"), _joint(joint, notes), placement, parameters[child]))
        except ModelError as error:  # numbers each of which is one, but not what is computed from them
            raise joint.error(str(error)) from None
    extra = root.optional("coadjoint")  # what `to_urdf` adds for gravity, which URDF has no word for
    gravity = GRAVITY if extra is None else extra.vector("gravity", GRAVITY)
    shapes, unread = read_shapes(root, links, finder, origin)
    notes += unread
    robot = _made(root, name, parts, merge, gravity=gravity, base=base, shapes=shapes)
    robot, said = _with_loops(robot, closing, joints)
    serious = [*root.document.notes, *serious, *said]
    return with_remarks(robot, root.source, links, parameters, notes, serious)


def with_remarks(
    robot: Robot,
    source: str,
    links: dict[str, xml.Element],
    parameters: dict[str, np.ndarray],
    notes: list[str],
    serious: list[str],
) -> Robot:
    """The robot with remarks on its description, impossible inertias among them; of the serious ones a ModelWarning tells."""
    kept = set(robot.link_names)
    for key in (key for key in links if key not in kept):  # links that were merged, and the base
        if found := impossible(parameters[key]):
            text = f"line {links[key].line}: link {short(key)}: {'; '.join(found)}."
            (notes if key == robot.base else serious).append(text)
    if told := [*serious, *impossible_inertias(robot)]:
        more = f" {len(told) - 1} more: see robot.warnings." if len(told) > 1 else ""
        warnings.warn(f"{source}: {told[0]}{more}", ModelWarning, stacklevel=5)
    return robot._remade(notes=[*notes, *serious])


def _made(root: xml.Element, name: str, links: list[Link], merge: bool = False, **options: Any) -> Robot:
    """The robot; what is wrong with it as a whole is said of the root element."""
    try:
        robot = Robot(name, links, **options)
        return robot.merge_fixed() if merge else robot
    except CoadjointError as error:
        raise root.error(str(error)) from None


def fresh(name: str, taken: Container[str]) -> str:
    """The name, with a number appended if it is taken."""
    names = itertools.chain([name], (f"{name}_{k}" for k in itertools.count(2)))
    return next(x for x in names if x not in taken)


def _refuse_xacro(root: xml.Element) -> None:
    for element in (x for child in (root, *root.children) for x in (child, *child.children)):
        if element.tag.startswith("xacro:") or any("${" in x or "$(" in x for x in element.attributes.values()):
            raise element.error("this is xacro; save it in a file that ends in .xacro, which `load` expands.")


def named(root: xml.Element, tag: str) -> dict[str, xml.Element]:
    """The elements of a kind by name, in the order of the file."""
    found: dict[str, xml.Element] = {}
    for element in root.all(tag):
        name = element.text("name")
        if name in found:
            raise element.error(f"a second {tag} of this name, the first being in line {found[name].line}; names must differ.")
        found[name] = element
    return found


def _with_loops(robot: Robot, closing: list[Edge], joints: dict[str, xml.Element]) -> tuple[Robot, list[str]]:
    """The robot with the frames and loops of the joints that close some, and a sentence for each of them."""
    said: list[str] = []
    for edge in closing:
        element = joints[edge.joint]
        try:
            frames, loop, sentence = closed(edge, _joint(element, []), origin(element.optional("origin")), np.eye(4))
            for frame in frames:
                robot = robot.with_frame(frame.name, frame.link, frame.pose)
            robot = robot._remade(loops=(*robot.loops, loop)) if loop is not None else robot
        except CoadjointError as error:
            raise error if isinstance(error, ReadError) else element.error(str(error)) from None
        said.append(f"line {element.line}: {sentence}")
    return robot, said


def _carriers(links: dict[str, xml.Element], joints: dict[str, xml.Element]) -> tuple[dict[str, xml.Element], list[Edge]]:
    """The joint that carries each link but the root, in the order of the joints, and the joints that close loops."""
    edges: list[Edge] = []
    for joint in joints.values():
        for end in ("parent", "child"):
            element = joint.only(end)
            if element.text("link") not in links:
                raise element.error(f"{joint}: {unknown('link', element.text('link'), links)}")
        parent, child = (joint.only(end).text("link") for end in ("parent", "child"))
        edges.append(Edge(joint.text("name"), parent, child, joint.attributes.get("type") == "fixed"))
    children = {edge.child for edge in edges}
    chosen, closing = tree_and_loops(edges, [name for name in links if name not in children])
    carriers = {child: joints[name] for child, name in chosen.items()}
    for edge in edges:  # of links that no root reaches: they form cycles, which `_root_link` names
        if edge.child not in carriers:
            carriers[edge.child] = joints[edge.joint]
    return carriers, closing


def _root_link(links: dict[str, xml.Element], carriers: dict[str, xml.Element]) -> str:
    """The one link that no joint carries, from which all others are reached."""
    roots = [name for name in links if name not in carriers]
    if len(roots) > 1:
        second = links[roots[1]]
        others = ", ".join(short(x) for x in roots[:5]) + (", …" if len(roots) > 5 else "")
        raise second.error(f"no joint carries this link, but a robot has one root; {len(roots)} links are roots: {others}.")
    reached: set[str] = set(roots)
    for start in carriers:
        path: list[str] = []
        link = start
        while link not in reached:
            path.append(link)
            reached.add(link)
            link = carriers[link].only("parent").text("link")
        if link in path:
            cycle = [*reversed(path[path.index(link) :]), path[-1]]
            raise carriers[link].error(f"the links form a cycle: {arrows(cycle)}; a robot is a tree that grows from one root.")
    return roots[0]


def _check_mimics(joints: dict[str, xml.Element]) -> list[str]:
    """Refuse joints that cannot mimic each other; one that mimics a joint which does not exist (some published files have such)
    moves by itself, as other readers let it, and a sentence for each says so."""
    followed: dict[str, xml.Element] = {}
    orphans: list[str] = []
    for name, joint in joints.items():
        mimic = joint.optional("mimic")
        if mimic is None or joint.attributes.get("type") == "fixed":
            continue
        target = mimic.text("joint")
        if target not in joints:
            near = nearest(target, joints) if len(orphans) < 8 else ""  # a search through all joints for each would take long
            hint = f" (is it {near!r}?)" if near else ""
            label = f"line {mimic.line}: joint {short(name)}"
            orphans.append(f"{label} mimics {short(target)}, which does not exist{hint}; it is read as moving by itself.")
            joint.children = [child for child in joint.children if child.tag != "mimic"]
            continue
        for end, what in ((joint, "follow another"), (joints[target], "be followed")):
            if (kind := end.attributes.get("type")) not in ("revolute", "continuous", "prismatic"):
                allowed = f"only revolute, continuous and prismatic joints can {what}"
                raise mimic.error(f"{joint} mimics {short(target)}, but {end} is {cut(str(kind))}; {allowed}.")
        followed[name] = mimic
    sound: set[str] = set()  # joints that follow one that moves by itself
    for name in followed:
        path: dict[str, None] = {}
        while name in followed and name not in sound and name not in path:
            path[name] = None
            name = followed[name].text("joint")
        if name in path:
            circle, place = [*path][[*path].index(name) :], {x: k for k, x in enumerate(followed)}
            last = max(range(len(circle)), key=lambda k: place[circle[k]])  # the one that closes it, in the order of the file
            circle = circle[last:] + circle[:last]
            raise followed[circle[0]].error(f"joints mimic each other in a circle: {arrows([*circle, circle[0]])}.")
        sound |= path.keys()
    return orphans


def origin(element: xml.Element | None) -> np.ndarray:
    """The pose of an <origin>: xyz and the fixed-axis angles roll, pitch, yaw."""
    T = np.eye(4)
    if element is not None:
        roll, pitch, yaw = element.vector("rpy", (0.0, 0.0, 0.0))
        cr, sr, cp, sp, cy, sy = (f(x) for x in (roll, pitch, yaw) for f in (math.cos, math.sin))
        T[:3, :3] = [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
        T[:3, 3] = element.vector("xyz", (0.0, 0.0, 0.0))
    return T


def _inertial(link: xml.Element) -> np.ndarray:
    """The ten parameters of a link in its frame."""
    element = link.optional("inertial")
    if element is None:
        return np.zeros(10)
    mass = element.one("mass").number("value")
    if mass < 0:
        raise element.one("mass").error(f"{link}: the mass is {mass:g} kg; a mass must not be negative.")
    xx, xy, xz, yy, yz, zz = (element.one("inertia").number(key) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    central = _inertia.from_body(mass, np.zeros(3), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused with the link
        return _inertia.transform(origin(element.optional("origin")), central)


def _joint(joint: xml.Element, notes: list[str]) -> Joint:
    kind, name = joint.text("type"), joint.text("name")
    if kind not in TYPES:
        raise joint.error(f"unknown joint type {short(kind)}; expected one of {', '.join(TYPES)}.")
    if kind == "fixed":
        return Joint.fixed(name=name)
    options: dict[str, Any] = _limits(joint, kind, notes)
    if (dynamics := joint.optional("dynamics")) is not None:
        for key in ("damping", "friction", "armature"):  # `armature` is not of the specification; `to_urdf` writes it
            options[key] = dynamics.number(key, 0.0)
            if options[key] < 0:
                raise dynamics.error(f"{joint}: {key} is {options[key]:g}; it must not be negative.")
    if (mimic := joint.optional("mimic")) is not None:
        options["mimic"] = Mimic(mimic.text("joint"), mimic.number("multiplier", 1.0), mimic.number("offset", 0.0))
    if kind in ("floating", "spherical", "ball"):
        return TYPES[kind](name=name, **options)
    element = joint.optional("axis")
    axis = (1.0, 0.0, 0.0) if element is None else element.vector("xyz")
    if element is not None and math.hypot(*axis) < 1e-12:
        raise element.error(f'{joint}: xyz="{cut(element.attributes["xyz"])}" has no direction; an axis must not be zero.')
    return TYPES[kind](axis, name=name, **options)


def _limits(joint: xml.Element, kind: str, notes: list[str]) -> dict[str, Any]:
    limit, label = joint.optional("limit"), f"line {joint.line}: joint {short(joint.attributes['name'])}"
    if limit is None:
        if kind in ("revolute", "prismatic"):
            notes.append(f"{label} is {kind} and has no <limit>; it is taken to be without limits.")
        return {}
    options: dict[str, Any] = {key: _bound(limit, key) for key in ("velocity", "effort")}
    for key in ("velocity", "effort"):
        if options[key] < 0:
            notes.append(f"{label}: the {key} limit {options[key]:g} is negative; it is taken as none.")
            options[key] = math.inf
    if kind in ("revolute", "prismatic"):
        options |= {key: _bound(limit, key, 0.0) for key in ("lower", "upper")}
        if options["lower"] > options["upper"]:
            raise limit.error(f"{joint}: the lower limit {options['lower']:g} is above the upper limit {options['upper']:g}.")
    return options


def _bound(limit: xml.Element, key: str, default: float = math.inf) -> float:
    """A limit; the largest floating-point number means none, as `to_urdf` writes it for readers without infinity."""
    value = limit.number(key, default, infinite=True)
    return math.copysign(math.inf, value) if abs(value) == sys.float_info.max else value
