"""Robots read from SDF (SDFormat 1.4 to 1.12), as Gazebo has them.

The base is always the world. A model that no joint holds there is held where its pose puts it, or, with base="free", flies: then q
of its root is the pose of that link in the world. The frame of a link is its own; <frame> elements become frames of the robot. What a
Robot cannot hold is refused (included and nested models, gearboxes) or said in `robot.warnings` (springs, links without gravity).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np

from ..errors import CoadjointError, ModelError, ReadError
from ..files import read_bytes
from ..lie import inertia as _inertia
from ..lie import se3
from ..words import cut, short
from . import xml
from .closing import Edge, closed, tree_and_loops
from .link import Frame, Joint, Link
from .packages import Finder, Packages
from .robot import Robot
from .sdf_frames import LINKS, MODEL, WORLD, Frames, Key
from .sdf_joints import ends, read_joint
from .sdf_shapes import read_shapes
from .sdf_values import flag, local_pose, number, vector
from .urdf import GRAVITY, TEXT, check_options, fresh, named, with_remarks

WORLD_GRAVITY = (0.0, 0.0, -9.8)
"""The gravity of a <world> in SDF that states none."""

VERSIONS = ((1, 4), (1, 12))


def read_sdf(
    source: str | os.PathLike[str], base: str = "fixed", fixed_joints: str = "merge", packages: Packages | None = None
) -> Robot:
    """The robot in an SDF file with one model, or in a text that starts with "<".

    base="fixed": a model that no joint holds to the world is held where it stands; "free": its root link moves freely. fixed_joints
    and packages as in `read_urdf`. Gravity is that of the <world>, if there is one. Errors name file, line and element.
    """
    check_options(base, fixed_joints)
    if isinstance(source, str) and xml.is_text(source):
        root, finder = xml.parse(xml.stripped(source), TEXT, content=True), Finder(None, packages)
    else:
        finder = Finder(Path(source).parent, packages)
        root = xml.parse(read_bytes(source), cut(os.fspath(source), 300), content=True)
    if root.tag != "sdf":
        raise root.error("not an SDF; expected <sdf> as the root element.")
    version = _version(root)
    model, gravity = _model(root)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused with its link
        try:
            return _Reader(model, version, gravity, finder).robot(base == "free", fixed_joints == "merge")
        except CoadjointError as error:
            raise error if isinstance(error, ReadError) else model.error(str(error)) from None


def _version(root: xml.Element) -> tuple[int, int]:
    text = root.text("version")
    match = re.fullmatch(r"\s*([0-9]{1,3})\.([0-9]{1,3})(\.[0-9]+)*\s*", text)
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    if not VERSIONS[0] <= version <= VERSIONS[1]:
        raise root.error(f'version="{cut(text)}" is not read; expected 1.4 to 1.12. Convert it with `gz sdf -p`.')
    return version


def _model(root: xml.Element) -> tuple[xml.Element, tuple[float, float, float]]:
    """The one model of a file, and gravity."""
    worlds = root.all("world")
    if len(worlds) > 1:
        raise worlds[1].error(f"the file has {len(worlds)} worlds; keep one.")
    home = worlds[0] if worlds else root
    _refuse(home, "include", "frame", "joint")
    models = home.all("model")
    if not models:
        raise home.error("there is no <model> inside; expected one.")
    if len(models) > 1:
        names = ", ".join(short(x.attributes.get("name", "")) for x in models[:20]) + (", …" if len(models) > 20 else "")
        raise models[1].error(f"{len(models)} models: {names}; a robot is one. Save the one you want in a file of its own.")
    if not worlds:
        return models[0], GRAVITY
    gravity = home.optional("gravity")
    return models[0], WORLD_GRAVITY if gravity is None else vector(gravity)


def _refuse(parent: xml.Element, *tags: str) -> None:
    why = {
        "include": "files that include others are not read; write what it includes in its place, as `gz sdf -p` does.",
        "model": f"{parent} has a nested model, which is not read; move its links and joints into the outer one.",
        "frame": f"frames of {parent} are not read; move it into the model.",
        "joint": f"joints of {parent} are not read; move it into the model.",
    }
    for tag in tags:
        for element in parent.all(tag):
            raise element.error(why[tag])


class _Reader:
    """A model as it is read: its elements, where they stand, and remarks, serious ones apart."""

    def __init__(self, model: xml.Element, version: tuple[int, int], gravity: tuple[float, float, float], finder: Finder) -> None:
        self.model, self.version, self.gravity, self.finder = model, version, gravity, finder
        self.name = model.text("name")
        _refuse(model, "include", "model")
        self.links, self.joints, self.marks = (named(model, tag) for tag in ("link", "joint", "frame"))
        if not self.links:
            raise model.error("the model has no <link>; expected one.")
        for name, element in (*self.links.items(), *self.marks.items()):
            if name in (WORLD, MODEL[1]):
                raise element.error(f"the name {short(name)} is kept for another frame; choose another one.")
        for name in self.marks.keys() & self.links.keys():
            raise self.marks[name].error(f"a link has this name too, in line {self.links[name].line}; names must differ.")
        self.frames = Frames(model, {"link": self.links, "joint": self.joints, "frame": self.marks})
        self.notes: list[str] = []
        self.serious: list[str] = []

    def robot(self, free: bool, merge: bool) -> Robot:
        self.at = self._model_pose()
        parameters = {name: self._inertial(link) for name, link in self.links.items()}
        carriers, closing = self._static(free) if flag(self.model, "static") else self._tree(free)
        links = []
        for child, (parent, joint) in carriers.items():
            links.append(self._made(child, parent, joint, parameters[child]))
        marks = [
            Frame(name, link := self.frames.link(("frame", name)), self.frames.between(("link", link), ("frame", name)))
            for name in self.marks
        ]
        shapes, unread = read_shapes(self.links, self.frames, self.finder)
        self.notes += unread
        robot = Robot(self.name, links, marks, gravity=self.gravity, base=WORLD, shapes=shapes)
        robot = robot.merge_fixed() if merge else robot
        for edge in closing:
            robot = self._closed(robot, edge)
        serious = [*self.model.document.notes, *dict.fromkeys(self.serious)]
        return with_remarks(robot, self.model.source, self.links, parameters, self.notes, serious)

    def _model_pose(self) -> np.ndarray:
        """The pose of the model in the world; it is that of its `placement_frame`, if it has one."""
        pose = self.model.optional("pose")
        if pose is not None and (name := pose.attributes.get("relative_to", "")) not in ("", WORLD):
            raise pose.error(f"relative_to={short(name)}: the pose of a model must be given in the world.")
        at = np.eye(4) if pose is None else local_pose(pose)
        if name := self.model.attributes.get("placement_frame", ""):
            at = at @ se3.inverse(self.frames.pose(self.frames.find(name, self.model)))
        return at

    def _pose_in(self, link: str, key: Key) -> np.ndarray:
        """The pose of a frame in that of a link, or in the world."""
        result: np.ndarray = self.at @ self.frames.pose(key) if link == WORLD else self.frames.between(("link", link), key)
        return result

    def _made(self, child: str, parent: str, joint: str | Joint, parameters: np.ndarray) -> Link:
        """The link that a joint of the file carries, or another joint: fixed where the link stands, free from the origin."""
        at = self.links[child] if isinstance(joint, Joint) else self.joints[joint]
        try:
            if isinstance(joint, Joint):
                placement = np.eye(4) if joint.kind == "free" else self._pose_in(WORLD, ("link", child))
                return Link(child, WORLD, joint, placement, parameters)
            X = self.frames.between(("link", child), ("joint", joint))
            made = read_joint(at, self.frames, X, self.version, self.serious)
            return Link(child, parent, made, self._pose_in(parent, ("link", child)), parameters)
        except ModelError as error:  # numbers each of which is one, but not what is computed from them
            raise at.error(str(error)) from None

    def _static(self, free: bool) -> tuple[dict[str, tuple[str, str | Joint]], list[Edge]]:
        if free:
            raise self.model.error("the model is static and does not move; remove <static>, or load it with base='fixed'.")
        self.notes.append("the model is static: all its links are held where they stand, and its joints do not move.")
        return {name: (WORLD, Joint.fixed(name=f"{name}_fixed")) for name in self.links}, []

    def _edges(self) -> list[Edge]:
        edges = []
        for name, joint in self.joints.items():
            parent, child = ends(joint)
            if child == WORLD:
                raise joint.one("child").error(
                    f"{joint}: the world cannot be carried; exchange parent and child, and turn the axis."
                )
            below = self.frames.link(self.frames.child(joint))
            above = WORLD if parent == WORLD else self.frames.link(self.frames.find(parent, joint.one("parent"), LINKS))
            if above == below:
                raise joint.error(f"parent and child are both on link {short(above)}; a joint is between two links.")
            edges.append(Edge(name, above, below, joint.attributes.get("type") == "fixed"))
        return edges

    def _tree(self, free: bool) -> tuple[dict[str, tuple[str, str | Joint]], list[Edge]]:
        """The joint that carries each link, in the order of the joints, and the joints that close loops."""
        edges = self._edges()
        carried = {edge.child for edge in edges}
        roots = [name for name in self.links if name not in carried]
        held = [edge for edge in edges if edge.parent == WORLD]
        self._check_roots(roots, held)
        first: dict[str, tuple[str, str | Joint]] = {}
        if free and held:
            first[held[0].child] = (WORLD, self._released(held))
            edges = [edge for edge in edges if edge is not held[0]]
            roots = [held[0].child]
        elif not held:
            kind = Joint.free if free else Joint.fixed
            first[roots[0]] = (WORLD, kind(name=fresh("root_joint", self.joints)))
            if not free:
                self.notes.append(f"no joint holds link {short(roots[0])} to the world; it is held where it stands (base='fixed').")
        chosen, closing = tree_and_loops(edges, [WORLD, *roots] if held and not free else roots)
        if lost := [name for name in self.links if name not in chosen and name not in first]:
            listed = ", ".join(short(x) for x in lost[:5]) + (", …" if len(lost) > 5 else "")
            raise self.links[lost[0]].error(f"joints carry these links in a circle, which nothing holds: {listed}.")
        parents = {edge.joint: edge.parent for edge in edges}
        return first | {child: (parents[joint], joint) for child, joint in chosen.items()}, closing

    def _check_roots(self, roots: list[str], held: list[Edge]) -> None:
        alone = roots if held else roots[1:]
        if alone:
            others = ", ".join(short(x) for x in roots[:5]) + (", …" if len(roots) > 5 else "")
            why = f"joint {short(held[0].joint)} holds the model to the world" if held else "a robot has one root"
            raise self.links[alone[0]].error(f"no joint carries this link, but {why}; links that none carries: {others}.")
        if not roots and not held:
            raise self.model.error("every link is carried by another, so the joints form a circle; one link must have no parent.")

    def _released(self, held: list[Edge]) -> Joint:
        """The free joint in place of the one fixed joint that holds the model."""
        joint = self.joints[held[0].joint]
        if len(held) > 1 or joint.attributes.get("type") != "fixed":
            raise joint.error("the model is joined to the world and cannot fly; load it with base='fixed'.")
        self.notes.append(f"line {joint.line}: joint {short(held[0].joint)} to the world is left out: base='free'.")
        return Joint.free(name=fresh("root_joint", self.joints))

    def _inertial(self, link: xml.Element) -> np.ndarray:
        """The ten parameters of a link in its frame; SDF has 1 kg and 1 kg m² for what is not given."""
        label = f"line {link.line}: link {short(link.attributes['name'])}"
        if not flag(link, "gravity", True):
            self.serious.append(f"{label} is free of gravity in SDF; here it has weight.")
        element = link.optional("inertial")
        if element is None:
            self.serious.append(f"{label} has no <inertial>; SDF means 1 kg with moments of 1 kg m².")
            return _inertia.from_body(1.0, np.zeros(3), np.eye(3))
        if element.attributes.get("auto", "false").strip().lower() in ("true", "1"):
            raise element.error(f"{link}: an inertia that is computed from shapes (auto) is not read; write mass and inertia.")
        if element.optional("fluid_added_mass") is not None:
            self.serious.append(f"{label}: the added mass of a fluid is left out.")
        mass = number(element, "mass", 1.0)
        if mass < 0:
            raise element.one("mass").error(f"{link}: the mass is {mass:g} kg; a mass must not be negative.")
        inertia = element.optional("inertia")
        defaults = {"ixx": 1.0, "ixy": 0.0, "ixz": 0.0, "iyy": 1.0, "iyz": 0.0, "izz": 1.0}
        if missing := [x for x in ("mass", "inertia") if element.optional(x) is None]:
            self.serious.append(f"{label} has no {' and no '.join(f'<{x}>' for x in missing)}; SDF means 1.")
        xx, xy, xz, yy, yz, zz = (d if inertia is None else number(inertia, key, d) for key, d in defaults.items())
        central = _inertia.from_body(mass, np.zeros(3), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        result: np.ndarray = _inertia.transform(self.frames.within(element, ("link", link.attributes["name"])), central)
        return result

    def _closed(self, robot: Robot, edge: Edge) -> Robot:
        """The robot with the frames and the loop of a joint that closes one."""
        element, own = self.joints[edge.joint], ("joint", edge.joint)
        try:
            joint = read_joint(element, self.frames, np.eye(4), self.version, self.serious)
            frames, loop, sentence = closed(edge, joint, self._pose_in(edge.parent, own), self._pose_in(edge.child, own))
            for frame in frames:
                robot = robot.with_frame(frame.name, frame.link, frame.pose)
            robot = robot._remade(loops=(*robot.loops, loop)) if loop is not None else robot
        except CoadjointError as error:
            raise error if isinstance(error, ReadError) else element.error(str(error)) from None
        self.serious.append(f"line {element.line}: {sentence}")
        return robot
