"""The values of SDF, which stand in the text of elements: numbers, vectors, truths, poses."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..lie import quaternion
from ..words import short
from . import xml
from .urdf import origin

_KEY = "content"
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


def content(parent: xml.Element, tag: str, default: str | None = None) -> str:
    """The text of the child with that tag; it must be there, and not be empty, if there is no default."""
    child = parent.optional(tag)
    if child is None and default is not None:
        return default
    return _held(parent.one(tag)).text(_KEY)


def number(parent: xml.Element, tag: str, default: float | None = None, infinite: bool = False) -> float:
    """The number in the child with that tag."""
    if default is not None and parent.optional(tag) is None:
        return default
    return _held(parent.one(tag)).number(_KEY, infinite=infinite)


def vector(element: xml.Element) -> tuple[float, float, float]:
    """The three numbers in an element."""
    return _held(element).vector(_KEY)


def flag(parent: xml.Element, tag: str, default: bool = False) -> bool:
    """True if the child with that tag says true."""
    child = parent.optional(tag)
    return default if child is None else _truth(child, child.content)


def local_pose(element: xml.Element) -> np.ndarray:
    """The numbers of a <pose> as (4, 4): x y z and roll, pitch, yaw, in degrees if it says so, or a quaternion x y z w."""
    words = element.content.split()
    form = element.attributes.get("rotation_format", "euler_rpy")
    counts = {"euler_rpy": 6, "quat_xyzw": 7}
    if form not in counts:
        raise element.error(f"rotation_format is {short(form)}; expected euler_rpy or quat_xyzw.")
    words = words or ["0"] * 6 + ["1"] * (counts[form] - 6)  # an empty one is the identity
    if len(words) != counts[form]:
        raise element.error(f"{short(element.content.strip())} has {len(words)} words; expected {counts[form]} numbers.")
    xyz, angles = " ".join(words[:3]), " ".join(words[3:6])
    read = replace(element, attributes={"xyz": xyz, "rpy": angles})
    if form == "euler_rpy":
        if _truth(element, element.attributes.get("degrees", "false")):
            read.attributes["rpy"] = " ".join(repr(math.radians(x)) for x in read.vector("rpy"))
        return origin(read)
    unit = np.array([*read.vector("rpy"), replace(element, attributes={"w": words[6]}).number("w")])
    if not abs(float(np.linalg.norm(unit)) - 1) < 1e-3:
        raise element.error(f"the quaternion {' '.join(words[3:])} has not the length one; write x y z w of a rotation.")
    T = np.eye(4)
    T[:3, :3] = quaternion.to_matrix(unit / np.linalg.norm(unit))
    T[:3, 3] = read.vector("xyz")
    return T


def _truth(element: xml.Element, text: str) -> bool:
    if (word := text.strip().lower()) not in _TRUTHS:
        raise element.error(f"{short(text)} is neither true nor false.")
    return _TRUTHS[word]


def _held(element: xml.Element) -> xml.Element:
    """The element with its text as an attribute, whose readers have the errors."""
    return replace(element, attributes={_KEY: element.content.strip()})
