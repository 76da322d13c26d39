"""A robot as JSON, without loss: every float is written with the digits that give it back."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CoadjointError, ReadError, unknown
from ..files import read_text
from ..words import cut, short
from .joints import KINDS
from .link import Frame, Joint, Link, Loop, Mimic
from .shape import SIZES, Shape
from .spring import Spring

if TYPE_CHECKING:
    from .robot import Robot

FORMAT = "coadjoint robot"
VERSION = 1
LOOP = ("name", "frame_a", "frame_b", "joint")
MOST_VALUES = 5_000_000
"""The most values of a text; a robot of ten thousand links has a fifth of that."""
_JOINT_NUMBERS = {
    "armature": "nv",
    "damping": "nv",
    "friction": "nv",
    "lower": "nq",
    "upper": "nq",
    "velocity": "nv",
    "effort": "nv",
}
"""The properties of a joint beside its screws, with the number of values of each."""


def _plain(x: Any) -> Any:
    """An array as nested lists; JSON has no infinity, so it is written as text."""
    if isinstance(x, np.ndarray):
        return [_plain(y) for y in x]
    x = float(x)
    return x if math.isfinite(x) else str(x)


def to_dict(robot: Robot) -> dict[str, Any]:
    """The robot as a dictionary of JSON values."""
    links = []
    for link in robot.links:
        joint: dict[str, Any] = {"name": link.joint.name, "kind": link.joint.kind, "screws": _plain(link.joint.screws)}
        joint |= {key: _plain(getattr(link.joint, key)) for key in _JOINT_NUMBERS}
        if (mimic := link.joint.mimic) is not None:
            joint["mimic"] = {"joint": mimic.joint, "ratio": float(mimic.ratio), "offset": float(mimic.offset)}
        links.append(
            {
                "name": link.name,
                "parent": link.parent,
                "joint": joint,
                "placement": _plain(link.placement),
                "parameters": _plain(link.parameters),
            }
        )
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": robot.name,
        "base": robot.base,
        "gravity": _plain(robot.gravity),
        "links": links,
        "frames": [{"name": f.name, "link": f.link, "pose": _plain(f.pose)} for f in robot.frames],
        "notes": list(robot.notes),
    } | _extras(robot)


def _extras(robot: Robot) -> dict[str, Any]:
    """Shapes, loops, named poses and springs, where there are any."""
    loops = [{"name": x.name, "frame_a": x.frame_a, "frame_b": x.frame_b, "joint": x.joint} for x in robot.loops]
    poses = {name: {joint: list(x) for joint, x in pose.items()} for name, pose in robot._poses.items()}
    extras = {"shapes": [_shape_to_dict(x) for x in robot.shapes], "loops": loops, "poses": poses}
    extras["springs"] = [_spring_to_dict(x) for x in robot.springs]
    return {key: value for key, value in extras.items() if value}


def _spring_to_dict(spring: Spring) -> dict[str, Any]:
    where = {"joint": spring.joint} if spring.joint else {"links": list(spring.links), "points": _plain(np.asarray(spring.points))}
    return {"name": spring.name, "stiffness": spring.stiffness, "rest": spring.rest, **where}


def _shape_to_dict(shape: Shape) -> dict[str, Any]:
    """A shape; triangles are written only where no file has them."""
    data: dict[str, Any] = {"link": shape.link, "kind": shape.kind, "role": shape.role, "size": list(shape.size)}
    data |= {"pose": _plain(shape.pose)}
    data |= {key: value for key in ("name", "uri", "path") if (value := getattr(shape, key))}
    if shape.colour is not None:
        data["colour"] = list(shape.colour)
    if shape.vertices is not None and shape.faces is not None and not shape.path:
        data |= {"vertices": _plain(shape.vertices), "faces": shape.faces.tolist()}
    return data


class _Part:
    """A JSON object and its path in the document, so that an error names the place, the key and the value."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise ReadError(f"{where} is {_written(value)}; expected an object in braces.")
        self.value, self.where = value, where

    def get(self, key: str, kind: type, called: str) -> Any:
        if key not in self.value:
            raise ReadError(f"{self.where}: the key {key!r} is missing.")
        if not isinstance(found := self.value[key], kind):
            raise ReadError(f"{self.where}: {key!r} is {_written(found)}; expected {called}.")
        return found

    def text(self, key: str) -> str:
        result: str = self.get(key, str, "text")
        return result

    def part(self, key: str) -> _Part:
        return _Part(self.get(key, dict, "an object in braces"), f"{self.where}: {key}")

    def parts(self, key: str) -> list[_Part]:
        source = self.where.removesuffix(": robot")
        return [_Part(x, f"{source}: {key}[{k}]") for k, x in enumerate(self.get(key, list, "a list"))]

    def numbers(self, key: str, *shape: int) -> np.ndarray:
        """Numbers of exactly that shape, without broadcasting."""
        found = self.get(key, object, "")
        try:
            array = np.array(_floats(found), dtype=np.float64)
        except (TypeError, ValueError, OverflowError, RecursionError):
            array = None
        array = np.zeros(shape) if not math.prod(shape) and found == [] else array
        if array is None or array.shape != shape:
            raise ReadError(f"{self.where}: {key!r} is {_written(found)}; expected numbers of shape {shape}.")
        return array


def _floats(x: Any) -> Any:
    """Nested lists of numbers; the inverse of `_plain`."""
    if isinstance(x, list):
        return [_floats(y) for y in x]
    if isinstance(x, bool) or not isinstance(x, float | int | str):
        raise TypeError
    return float(x)


def _written(x: Any) -> str:
    """A value as shortened JSON text."""
    try:
        return cut(json.dumps(x, ensure_ascii=False))
    except (ValueError, RecursionError):  # an integer of thousands of digits; lists in lists in lists
        return short(x)


def from_dict(data: Any, source: str = "the robot") -> Robot:
    """The robot that `to_dict` wrote; an error names what is missing or wrong."""
    from .robot import Robot

    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ReadError(f'{source}: not a robot; expected a JSON object with "format": "{FORMAT}".')
    if isinstance(data.get("version"), bool) or data.get("version") != VERSION:
        raise ReadError(f"{source}: version {_written(data.get('version'))} of the format; this library reads version {VERSION}.")
    whole = _Part(data, f"{source}: robot")
    at = whole.where
    try:
        links, frames = [], []
        for part in whole.parts("links"):
            at = part.where
            joint = _joint(part.part("joint"))
            placement, parameters = part.numbers("placement", 4, 4), part.numbers("parameters", 10)
            links.append(Link(part.text("name"), part.text("parent"), joint, placement, parameters))
        for part in whole.parts("frames"):
            at = part.where
            frames.append(Frame(part.text("name"), part.text("link"), part.numbers("pose", 4, 4)))
        shapes = []
        for part in whole.parts("shapes") if "shapes" in data else ():
            at = part.where
            shapes.append(_shape(part))
        loops = [Loop(*(part.text(key) for key in LOOP)) for part in (whole.parts("loops") if "loops" in data else ())]
        springs = []
        for part in whole.parts("springs") if "springs" in data else ():
            at = part.where
            springs.append(_spring(part))
        at = whole.where
        poses = whole.get("poses", dict, "an object in braces") if "poses" in data else {}
        if not all(isinstance(pose, dict) for pose in poses.values()):
            raise ReadError(f"{at}: one of the 'poses' is no object of joints and coordinates.")
        notes = whole.get("notes", list, "a list of text")
        if odd := [x for x in notes if not isinstance(x, str)]:
            raise ReadError(f"{at}: one of the 'notes' is {_written(odd[0])}; expected text.")
        gravity, base = whole.numbers("gravity", 3), whole.text("base")
        return Robot(whole.text("name"), links, frames, gravity, base, notes, shapes, loops, poses, springs)
    except ReadError:
        raise
    except CoadjointError as error:
        raise ReadError(f"{at}: {error}") from None


def _spring(part: _Part) -> Spring:
    stiffness, rest = (float(part.numbers(key)) for key in ("stiffness", "rest"))
    if "joint" in part.value:
        return Spring(part.text("name"), stiffness, rest, joint=part.text("joint"))
    links = part.get("links", list, "two links")
    if len(links) != 2 or not all(isinstance(x, str) for x in links):
        raise ReadError(f"{part.where}: 'links' is {_written(links)}; expected two links.")
    return Spring(part.text("name"), stiffness, rest, links=(links[0], links[1]), points=part.numbers("points", 2, 3))


def _shape(part: _Part) -> Shape:
    if (kind := part.text("kind")) not in SIZES:
        raise unknown("kind of shape", kind, SIZES)
    options: dict[str, Any] = {key: part.text(key) for key in ("role", "name", "uri", "path") if key in part.value}
    if "colour" in part.value:
        options["colour"] = part.numbers("colour", 4)
    if "vertices" in part.value:
        vertices, faces = (part.get(key, list, "a list of triples") for key in ("vertices", "faces"))
        options["vertices"] = part.numbers("vertices", len(vertices), 3).reshape(-1, 3)
        corners = part.numbers("faces", len(faces), 3).reshape(-1, 3)
        if not np.isfinite(corners).all() or np.any(np.abs(corners) > 2**31) or np.any(corners != np.floor(corners)):
            raise ReadError(f"{part.where}: 'faces' is {_written(faces)}; expected whole numbers.")
        options["faces"] = corners.astype(np.int64)
    return Shape(part.text("link"), kind, part.numbers("pose", 4, 4), part.numbers("size", SIZES[kind]), **options)


def _joint(part: _Part) -> Joint:
    if (name := part.text("kind")) not in KINDS:
        raise unknown("kind of joint", name, KINDS)
    kind = KINDS[name]
    mimic = None
    if "mimic" in part.value:
        given = part.part("mimic")
        mimic = Mimic(given.text("joint"), float(given.numbers("ratio")), float(given.numbers("offset")))
    numbers = {key: part.numbers(key, getattr(kind, size)) for key, size in _JOINT_NUMBERS.items()}
    return Joint(name, part.numbers("screws", kind.nv, 6), name=part.text("name"), mimic=mimic, **numbers)


def from_json(text: str, source: str = "the text") -> Robot:
    """The robot in a JSON text."""
    if text.count(",") + text.count("[") + text.count("{") > MOST_VALUES:
        raise ReadError(f"{source}: not a robot; it has more than {MOST_VALUES} values.")
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ReadError(f"{source}: line {error.lineno}: not JSON: {error.msg}.") from None
    except ValueError:  # Python reads no integer of more than 4300 digits
        raise ReadError(f"{source}: not a robot; it has an integer of thousands of digits.") from None
    except RecursionError:
        raise ReadError(f"{source}: not a robot; its lists are nested without end.") from None
    return from_dict(data, source)


def read_json(path: str | Path) -> Robot:
    """The robot in a JSON file."""
    return from_json(read_text(path), cut(str(path), 300))
