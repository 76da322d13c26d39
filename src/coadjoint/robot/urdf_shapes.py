"""The <visual> and <collision> elements of a URDF, read and written.

Nothing that is wrong with them stops a reader: a shape that cannot be read is left out, and a note says which and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ..errors import CoadjointError, ReadError
from . import xml
from .packages import Finder
from .shape import ROLES, Shape


def read_shapes(
    root: xml.Element, links: dict[str, xml.Element], finder: Finder, pose: Callable[[xml.Element | None], np.ndarray]
) -> tuple[list[Shape], list[str]]:
    """The shapes of the links, and a sentence for each that cannot be read; `pose` reads an <origin>."""
    colours = _colours(root, links.values())
    shapes, notes = [], []
    for name, link in links.items():
        for element in (x for x in link.children if x.tag in ROLES):
            try:
                shapes.append(_shape(name, element, colours, finder, pose))
            except CoadjointError as error:
                notes.append(f"a shape is left out: {str(error).removeprefix(f'{root.source}: ')}")
    return shapes, notes


def _shape(
    link: str,
    element: xml.Element,
    colours: dict[str, tuple[float, ...]],
    finder: Finder,
    pose: Callable[[xml.Element | None], np.ndarray],
) -> Shape:
    geometry = element.one("geometry")
    if not geometry.children:
        raise geometry.error("no shape stands inside.")
    inner = geometry.children[0]
    material = element.optional("material")
    options: dict[str, Any] = {"role": element.tag, "name": element.attributes.get("name", "")}
    if material is not None:
        options["colour"] = _colour(material) or colours.get(material.attributes.get("name", ""))
    if inner.tag == "mesh":
        options["uri"] = uri = inner.text("filename").strip()
        options["path"] = str(finder.path(uri) or "")
    elif inner.tag not in ("box", "sphere", "cylinder", "capsule", "ellipsoid"):
        raise inner.error("an unknown shape; expected box, sphere, cylinder, capsule, ellipsoid or mesh.")
    try:
        return Shape(link, inner.tag, pose(element.optional("origin")), _size(inner), **options)
    except ReadError:
        raise
    except CoadjointError as error:
        raise inner.error(str(error)) from None


def _size(shape: xml.Element) -> tuple[float, ...]:
    if shape.tag == "mesh":
        if len(shape.attributes.get("scale", "").split()) == 1:
            return (shape.number("scale"),) * 3
        return shape.vector("scale", (1.0, 1.0, 1.0))
    if shape.tag == "box":
        return shape.vector("size")
    if shape.tag == "ellipsoid":
        return shape.vector("radii")
    keys = ("radius",) if shape.tag == "sphere" else ("radius", "length")
    return tuple(shape.number(key) for key in keys)


def _colours(root: xml.Element, links: Iterable[xml.Element]) -> dict[str, tuple[float, ...]]:
    """The colours of the materials that have names, wherever they are given; the first counts."""
    visuals = (visual for link in links for visual in link.all("visual"))
    found: dict[str, tuple[float, ...]] = {}
    for material in (x for parent in (root, *visuals) for x in parent.all("material")):
        if colour := _colour(material):
            found.setdefault(material.attributes.get("name", ""), colour)
    return found


def _colour(material: xml.Element) -> tuple[float, ...] | None:
    """The colour of a material; None where it has none, or none that can be read."""
    for element in material.all("color"):
        try:
            return tuple(xml.plain_numbers(element.attributes.get("rgba", ""), 4))
        except ValueError:
            return None
    return None


def written_shapes(shapes: Iterable[Shape], tag: Callable[..., str], pose: Callable[[np.ndarray], dict[str, Any]]) -> Iterator[str]:
    """The lines of shapes inside a <link>; those that URDF does not have (`unwritten`) are left out."""
    for shape in shapes:
        if unwritten(shape):
            continue
        yield "    " + tag(shape.role, ">", **({"name": shape.name} if shape.name else {}))
        yield "      " + tag("origin", **pose(shape.pose))
        yield f"      <geometry>{tag(shape.kind, **_attributes(shape))}</geometry>"
        if shape.colour is not None:
            yield f"      {tag('material', '>', name='colour ' + ' '.join(f'{x:.4g}' for x in shape.colour))}"
            yield "        " + tag("color", rgba=np.array(shape.colour))
            yield "      </material>"
        yield f"    </{shape.role}>"


def unwritten(shape: Shape) -> str:
    """The reason why URDF cannot hold a shape; "" where it can."""
    if shape.kind == "ellipsoid":
        return "an ellipsoid"
    return "a mesh without a file" if shape.kind == "mesh" and not (shape.path or shape.uri) else ""


def _attributes(shape: Shape) -> dict[str, Any]:
    size = np.array(shape.size)
    if shape.kind == "mesh":
        return {"filename": shape.uri if "://" in shape.uri or not shape.path else f"file://{shape.path}", "scale": size}
    if shape.kind == "box":
        return {"size": size}
    return {"radius": size[0]} | ({"length": size[1]} if len(size) > 1 else {})
