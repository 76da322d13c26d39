"""A robot as JSON, without loss: every float is written with the digits that give it back."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CoadjointError, ReadError
from .files import read_text
from .link import Frame, Joint, Link, Mimic

if TYPE_CHECKING:
    from .robot import Robot

FORMAT = "coadjoint robot"
VERSION = 1
_JOINT_NUMBERS = ("armature", "damping", "friction", "lower", "upper", "velocity", "effort")


def _plain(x: Any) -> Any:
    """An array as nested lists; JSON has no infinity, so it is written as text."""
    if isinstance(x, np.ndarray):
        return [_plain(y) for y in x]
    x = float(x)
    return x if math.isfinite(x) else str(x)


def _array(x: Any) -> np.ndarray:
    return np.array(x, dtype=object).astype(float) if np.size(x) else np.asarray(x, dtype=float)


def to_dict(robot: Robot) -> dict[str, Any]:
    """Everything the robot is, as what JSON can hold."""
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
        "warnings": list(robot.warnings),
    }


def from_dict(data: Any, source: str = "the robot") -> Robot:
    """The robot that `to_dict` wrote; an error names what is missing or wrong."""
    from .robot import Robot

    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ReadError(f'{source}: not a robot; expected a JSON object with "format": "{FORMAT}".')
    if data.get("version") != VERSION:
        raise ReadError(f"{source}: version {data.get('version')!r} of the format; this library reads version {VERSION}.")
    where = "robot"
    try:
        links = []
        for k, item in enumerate(data["links"]):
            where = f"links[{k}]"
            j = item["joint"]
            mimic = Mimic(**j["mimic"]) if "mimic" in j else None
            numbers = {key: _array(j[key]) for key in _JOINT_NUMBERS}
            screws = _array(j["screws"]).reshape(-1, 6)
            joint = Joint(j["kind"], screws, name=j["name"], mimic=mimic, **numbers)
            links.append(Link(item["name"], item["parent"], joint, _array(item["placement"]), _array(item["parameters"])))
        frames = []
        for k, item in enumerate(data["frames"]):
            where = f"frames[{k}]"
            frames.append(Frame(item["name"], item["link"], _array(item["pose"])))
        where = "robot"
        return Robot(data["name"], links, frames, _array(data["gravity"]), data["base"], data["warnings"])
    except KeyError as error:
        if isinstance(error, CoadjointError):
            raise ReadError(f"{source}: {where}: {error}") from None
        raise ReadError(f"{source}: {where}: the key {error} is missing.") from None
    except (CoadjointError, ValueError, TypeError) as error:
        raise ReadError(f"{source}: {where}: {error}") from None


def from_json(text: str, source: str = "the text") -> Robot:
    """The robot in a JSON text."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ReadError(f"{source}: line {error.lineno}: not JSON: {error.msg}.") from None
    return from_dict(data, source)


def read_json(path: str | Path) -> Robot:
    """The robot in a JSON file."""
    return from_json(read_text(path), str(path))
