"""The <visual> and <collision> elements of an SDF model. As in a URDF, one that cannot be read is left out with a note."""

from __future__ import annotations

from typing import Any

from ..errors import CoadjointError, ReadError
from . import xml
from .packages import Finder
from .sdf_frames import Frames
from .sdf_values import content, number, vector
from .shape import ROLES, Shape

_SIZES = {"box": "size", "ellipsoid": "radii", "mesh": "scale"}
_NUMBERS = {"sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length")}


def read_shapes(links: dict[str, xml.Element], frames: Frames, finder: Finder) -> tuple[list[Shape], list[str]]:
    """The shapes of the links, and a sentence for each that cannot be read."""
    shapes, notes = [], []
    for name, link in links.items():
        for element in (x for x in link.children if x.tag in ROLES):
            try:
                shapes.append(_shape(name, element, frames, finder))
            except CoadjointError as error:
                notes.append(f"a shape is left out: {str(error).removeprefix(f'{link.source}: ')}")
    return shapes, notes


def _shape(link: str, element: xml.Element, frames: Frames, finder: Finder) -> Shape:
    geometry = element.one("geometry")
    if not geometry.children:
        raise geometry.error("no shape stands inside.")
    inner = geometry.children[0]
    options: dict[str, Any] = {"role": element.tag, "name": element.attributes.get("name", ""), "colour": _colour(element)}
    if inner.tag == "mesh":
        if inner.optional("submesh") is not None:
            raise inner.error("one part of a mesh is not read; save it in a file of its own.")
        options["uri"] = uri = content(inner, "uri")
        options["path"] = str(finder.path(uri) or "")
    elif inner.tag not in (*_SIZES, *_NUMBERS):
        raise inner.error(f"this shape is not read; expected {', '.join((*_NUMBERS, *_SIZES))}.")
    try:
        return Shape(link, inner.tag, frames.within(element, ("link", link)), _size(inner), **options)
    except ReadError:
        raise
    except CoadjointError as error:
        raise inner.error(str(error)) from None


def _size(shape: xml.Element) -> tuple[float, ...]:
    if shape.tag in _NUMBERS:
        return tuple(number(shape, key) for key in _NUMBERS[shape.tag])
    if shape.tag == "mesh" and shape.optional("scale") is None:
        return (1.0, 1.0, 1.0)
    return vector(shape.one(_SIZES[shape.tag]))


def _colour(element: xml.Element) -> tuple[float, ...] | None:
    """The diffuse colour of a shape's material; None where it has none, or none that can be read."""
    material = element.optional("material")
    diffuse = None if material is None else material.optional("diffuse")
    if diffuse is None:
        return None
    words = diffuse.content.split()
    try:
        return tuple(xml.plain_numbers(" ".join([*words, "1"][:4]), 4))
    except ValueError:
        return None
