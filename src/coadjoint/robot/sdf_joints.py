"""The joints of an SDF model: their axes, limits and friction."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..words import cut, short
from . import xml
from .link import Joint, Mimic
from .sdf_frames import MODEL, Frames, Key
from .sdf_values import content, flag, number, vector

AXES = {"fixed": 0, "ball": 0, "revolute": 1, "continuous": 1, "prismatic": 1, "screw": 1, "universal": 2}
"""The types of joints that are read, and how many axes they have."""

ENDLESS = 1e16
"""A limit of this size means none in SDF."""

REFUSED = {
    "gearbox": "It couples two other joints: remove it, and hold the ratio by a <mimic> of an <axis>.",
    "revolute2": "Write two revolute joints with a link between them.",
}


def read_joint(element: xml.Element, frames: Frames, X: np.ndarray, version: tuple[int, int], remarks: list[str]) -> Joint:
    """The joint, its screws in a frame where that of the joint stands at X."""
    kind, name = element.text("type"), element.text("name")
    if kind not in AXES:
        why = REFUSED.get(kind, f"Expected one of {', '.join(AXES)}.")
        raise element.error(f"joints of type {short(kind)} are not read. {why}")
    if kind == "fixed":
        return Joint.fixed(name=name)
    point = X[:3, 3]
    if kind == "ball":
        return Joint.spherical(point, name=name)
    tags = ("axis", "axis2")[: AXES[kind]]
    directions = [X[:3, :3] @ _direction(element, element.one(tag), frames, version) for tag in tags]
    each = [_numbers(element, element.one(tag), remarks) for tag in tags]
    options: dict[str, Any] = {key: [x[key] for x in each] for key in each[0]}
    if kind == "universal":
        if np.linalg.norm(np.cross(*directions)) < 1e-9:
            raise element.error("axis and axis2 are parallel, so the joint has one freedom only; write a revolute one.")
        return Joint.universal(directions[0], directions[1], point, name=name, **options)
    options["mimic"] = _mimic(element.one("axis"))
    if kind == "prismatic":
        return Joint.prismatic(directions[0], name=name, **options)
    if kind == "screw":
        return Joint.helical(directions[0], _pitch(element), point, name=name, **options)
    if kind == "continuous":
        options |= {"lower": -math.inf, "upper": math.inf}
        return Joint.continuous(directions[0], point, name=name, **options)
    return Joint.revolute(directions[0], point, name=name, **options)


def _direction(joint: xml.Element, axis: xml.Element, frames: Frames, version: tuple[int, int]) -> np.ndarray:
    """An axis in the frame of its joint. Up to SDF 1.4 it is written in the model's, in 1.5 and 1.6 where it says so."""
    own: Key = ("joint", joint.text("name"))
    element = axis.optional("xyz")
    xyz = (0.0, 0.0, 1.0) if element is None else vector(element)
    if math.hypot(*xyz) < 1e-12:
        raise axis.one("xyz").error(
            f"{joint}: {short(axis.one('xyz').content.strip())} has no direction; an axis must not be zero."
        )
    frame = own
    if element is not None and (name := element.attributes.get("expressed_in")):
        frame = frames.find(name, element)
    elif version < (1, 5) or (version < (1, 7) and flag(axis, "use_parent_model_frame")):
        frame = MODEL
    result: np.ndarray = frames.between(own, frame)[:3, :3] @ (np.array(xyz) / max(map(abs, xyz)))
    return result


def _numbers(joint: xml.Element, axis: xml.Element, remarks: list[str]) -> dict[str, float]:
    """Limits and friction of one axis."""
    numbers = {"lower": -math.inf, "upper": math.inf, "velocity": math.inf, "effort": math.inf}
    if (limit := axis.optional("limit")) is not None:
        for key, default in [*numbers.items()]:
            value = number(limit, key, default, infinite=True)
            numbers[key] = value if abs(value) < ENDLESS else math.copysign(math.inf, value)
        for key in ("velocity", "effort"):  # -1 means none
            numbers[key] = numbers[key] if numbers[key] >= 0 else math.inf
        if numbers["lower"] > numbers["upper"]:
            raise limit.error(f"{joint}: the lower limit {numbers['lower']:g} is above the upper limit {numbers['upper']:g}.")
    numbers |= {"damping": 0.0, "friction": 0.0}
    if (dynamics := axis.optional("dynamics")) is not None:
        for key in ("damping", "friction"):
            numbers[key] = number(dynamics, key, 0.0)
            if numbers[key] < 0:
                raise dynamics.error(f"{joint}: {key} is {numbers[key]:g}; it must not be negative.")
        if stiffness := number(dynamics, "spring_stiffness", 0.0):
            label = f"line {dynamics.line}: joint {short(joint.attributes['name'])}"
            remarks.append(f"{label} has a spring of stiffness {stiffness:g}, which is left out; robot.with_spring adds one.")
    return numbers


def _pitch(joint: xml.Element) -> float:
    """The advance of a screw in metres per radian. `screw_thread_pitch` is metres per turn; the older `thread_pitch`, radians
    per metre, is positive for a left-handed thread."""
    if joint.optional("screw_thread_pitch") is not None:
        return number(joint, "screw_thread_pitch") / (2 * math.pi)
    if joint.optional("thread_pitch") is None:
        raise joint.error("a screw joint needs <screw_thread_pitch>, in metres per turn, or <thread_pitch>, in radians per metre.")
    if abs(value := number(joint, "thread_pitch")) < 1e-12:
        raise joint.one("thread_pitch").error(f"{joint}: the thread pitch {value:g} is in radians per metre and must not be zero.")
    return -1 / value


def _mimic(axis: xml.Element) -> Mimic | None:
    """q = multiplier · (q of the leader − reference) + offset."""
    mimic = axis.optional("mimic")
    if mimic is None:
        return None
    if (of := mimic.attributes.get("axis", "axis")) != "axis":
        raise mimic.error(f'axis="{cut(of)}": only the first axis of a joint with one can be followed.')
    ratio = number(mimic, "multiplier", 1.0)
    return Mimic(mimic.text("joint"), ratio, number(mimic, "offset", 0.0) - ratio * number(mimic, "reference", 0.0))


def ends(joint: xml.Element) -> tuple[str, str]:
    """The names of what carries the joint and of what it carries."""
    for tag in ("parent", "child"):
        joint.only(tag)
    return content(joint, "parent").strip(), content(joint, "child").strip()
