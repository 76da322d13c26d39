"""`load`: a robot by its name or from its file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import CoadjointError, ReadError, UnknownNameError, unknown
from ..files import as_path, read_bytes
from ..words import cut, short
from . import storage, xml
from .link import Joint, Link
from .packages import Finder, Packages, check_packages
from .robot import Robot
from .sdf import read_sdf
from .shape import found_again
from .srdf import fitting, read_srdf
from .urdf import check_options, fresh, read_urdf, robot_of

DESCRIPTIONS = "robot_descriptions:"
SUFFIXES = (".urdf", ".xacro", ".sdf", ".world", ".xml", ".mjcf", ".json")
READERS = {"robot": read_urdf, "sdf": read_sdf}
"""The readers of XML by its root element."""


def load(
    source: str | os.PathLike[str],
    base: str = "fixed",
    fixed_joints: str = "merge",
    *,
    packages: Packages | None = None,
    arguments: Mapping[str, Any] | None = None,
    srdf: str | os.PathLike[str] | None = None,
) -> Robot:
    """A robot: a bundled one by name, as `load("panda")`, from a file .urdf, .xacro, .sdf, .xml (MJCF or URDF) or .json, from the text
    of a URDF or SDF, or "robot_descriptions:NAME" from the package of that name.

    base="fixed" takes the robot as it is described, the root of a URDF being its base, which does not move. "free" lets the base
    move as well: it becomes the first link, carried by a free joint. fixed_joints="merge" makes the link of a fixed joint part of
    what carries it, and a frame of it; "keep" leaves it a link. A robot that was saved as JSON comes back as it was.

    packages: the folders of packages by name, {"panda_description": folder}, for meshes at `package://…`; without it they are looked
    for above the file, in the environment variables of ROS, and in the cache of `robot_descriptions`. arguments: those of a xacro file,
    {"prefix": "left_"}. srdf: a file with named poses, which become `robot.poses`.
    """
    check_options(base, fixed_joints)
    check_packages(packages)
    if not isinstance(source, str | os.PathLike) or not os.fspath(source):
        raise CoadjointError(
            f"{short(source)} is not a robot; expected the name of a bundled one, the path of a file, or the text of a URDF."
        )
    if isinstance(source, str) and source.startswith(DESCRIPTIONS):
        from .descriptions import described

        source, packages, found = described(source.removeprefix(DESCRIPTIONS), packages)
        srdf = found if srdf is None else srdf
    _check_arguments(source, arguments)
    poses = {} if srdf is None else read_srdf(srdf)
    robot = _loaded(source, base, fixed_joints, packages, arguments or {})
    if not poses:
        return robot
    known, notes = fitting(robot, poses)
    return robot._remade(poses=known, notes=(*robot.notes, *notes))


def _loaded(
    source: str | os.PathLike[str], base: str, fixed_joints: str, packages: Packages | None, arguments: Mapping[str, Any]
) -> Robot:
    if isinstance(source, str) and xml.is_text(source):
        tag = xml.root_tag(xml.stripped(source), "the text")
        if tag not in READERS:
            raise ReadError(
                f"the text: the root element is <{cut(tag)}>; expected the <robot> of a URDF, the <sdf> of SDF, or a file's path for MJCF."
            )
        return READERS[tag](source, base, fixed_joints, packages)
    path = as_path(source)
    name = cut(str(path), 300)
    suffix = path.suffix.lower()
    if suffix == ".json":
        robot = _with_meshes(storage.read_json(path), Finder(path.parent, packages))
    elif suffix == ".xacro":
        return _expanded(path, base, fixed_joints, packages, arguments)
    elif suffix in SUFFIXES:
        tag = xml.root_tag(read_bytes(path), name)
        if tag in READERS:
            return READERS[tag](path, base, fixed_joints, packages)
        if tag != "mujoco":
            raise ReadError(f"{name}: the root element is <{cut(tag)}>; expected <robot> (URDF), <sdf> (SDF) or <mujoco> (MJCF).")
        from .mjcf import read_mjcf

        return read_mjcf(path, base=base, fixed_joints=fixed_joints)
    else:
        robot = _bundled(os.fspath(source), path)
    return _floating(robot) if base == "free" else robot


def _check_arguments(source: Any, arguments: Any) -> None:
    if arguments is None:
        return
    if not isinstance(arguments, Mapping) or not all(isinstance(key, str) for key in arguments):
        raise CoadjointError(f"arguments is {short(arguments)}; expected a dictionary, as {{'prefix': 'left_'}}.")
    if not isinstance(source, str | os.PathLike) or not os.fspath(source).lower().endswith(".xacro"):
        raise CoadjointError(f"arguments are those of a .xacro file; {short(source)} is none.")


def _expanded(path: Path, base: str, fixed_joints: str, packages: Packages | None, arguments: Mapping[str, Any]) -> Robot:
    """The robot in a xacro file."""
    from .xacro import expand

    finder = Finder(path.parent, packages)
    return robot_of(expand(path, arguments, finder), base == "free", fixed_joints == "merge", finder)


def _with_meshes(robot: Robot, finder: Finder) -> Robot:
    """The robot with the files of its meshes where they are now."""
    shapes = tuple(found_again(shape, finder.path) for shape in robot.shapes)
    return robot if shapes == robot.shapes else robot.with_shapes(shapes)


def _bundled(name: str, path: Path) -> Robot:
    from . import zoo

    if zoo.has(name):
        return zoo.make(name)
    given, name = name, cut(name, 300)
    if os.path.isdir(path):
        raise ReadError(f"{name}: this is a directory; expected a file.")
    if os.path.exists(path):
        raise ReadError(f"{name}: the name of a robot's file ends in {', '.join(SUFFIXES)}; rename it so.")
    if path.name != given or path.suffix:
        raise ReadError(f"{name}: there is no such file, and the name of a robot's file ends in {', '.join(SUFFIXES)}.")
    error = unknown("bundled robot", name, zoo.names())
    raise UnknownNameError(f"{error} Or give the path of a file that ends in {', '.join(SUFFIXES)}.")


def _floating(robot: Robot) -> Robot:
    """The robot with its base carried by a free joint, unless it floats already; such a base has no mass of its own."""
    at_base = [link for link in robot.links if link.parent == robot.base]
    if len(at_base) == 1 and at_base[0].joint.kind == "free":
        return robot
    base = fresh("world", robot.frame_names)
    root = Link(robot.base, base, Joint.free(name=fresh("root_joint", robot.joint_names)))
    return robot._remade(base=base, links=(root, *robot.links))
