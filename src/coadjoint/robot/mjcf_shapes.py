"""The shapes of a robot as geoms of MJCF.

A robot here has no contacts, and neither has its file: geoms of the classes "visual" and "collision" touch nothing until the two lines
that define these classes are changed. MuJoCo reads binary STL and OBJ from files; other meshes are written into the file itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from ..errors import CoadjointError
from .meshes import triangles
from .shape import ROLES, Shape
from .simplify import simplified

GROUPS = {"visual": "2", "collision": "3"}
"""MuJoCo's viewers show the groups 0 to 2."""
MOST = 200_000
"""The most triangles that MuJoCo reads from an STL file."""
FEW = 5_000
"""The most triangles of a mesh that is written into the file."""


class Geoms:
    """Writes geoms, and the meshes they need once for each; `lost` has a sentence for each shape that cannot be written."""

    def __init__(self, root: ElementTree.Element, shapes: Sequence[Shape], where: Callable[[np.ndarray], dict[str, str]]) -> None:
        self.where = where
        self.lost: list[str] = []
        self.shapes: dict[str, list[Shape]] = {}
        for shape in shapes:
            self.shapes.setdefault(shape.link, []).append(shape)
        names = [shape.name for shape in shapes]
        self.single = {name for name in names if name and names.count(name) == 1 and name.isprintable()}
        self.files: dict[tuple[str, tuple[float, ...]], str] = {}
        self.count = 0
        if not shapes:
            return
        classes = ElementTree.SubElement(root, "default")
        for role in ROLES:
            geom = {"group": GROUPS[role], "contype": "0", "conaffinity": "0"}
            ElementTree.SubElement(ElementTree.SubElement(classes, "default", {"class": role}), "geom", geom)
        self.assets = ElementTree.SubElement(root, "asset")

    def write(self, link: str, body: ElementTree.Element) -> None:
        """The geoms of a link, inside its body."""
        for shape in self.shapes.pop(link, ()):
            try:
                kinds = self._mesh(shape) if shape.kind == "mesh" else [_solid(shape, self.where)]
            except CoadjointError as error:
                self.lost.append(str(error).rstrip("."))
                continue
            for k, attributes in enumerate(kinds):
                named = {"name": shape.name} if shape.name in self.single and k == 0 else {}
                colour = {"rgba": text(shape.colour)} if shape.colour is not None else {}
                ElementTree.SubElement(body, "geom", {**named, "class": shape.role, **colour, **attributes})

    def _mesh(self, shape: Shape) -> list[dict[str, str]]:
        if shape.path and _is_read(Path(shape.path)):
            key = (shape.path, shape.size)
            if key not in self.files:
                self.files[key] = self._asset(file=shape.path, scale=text(shape.size))
            return [{"type": "mesh", "mesh": self.files[key], **self.where(shape.pose)}]
        found = []
        for part in triangles(shape):
            vertices, faces = simplified(part.vertices, part.faces, FEW)
            if len(faces):
                numbers = " ".join(f"{x:.7g}" for x in vertices.ravel())
                name = self._asset(vertex=numbers, face=" ".join(map(str, faces.ravel())))
                own = {"rgba": text(part.colour)} if shape.colour is None and part.colour is not None else {}
                found.append({"type": "mesh", "mesh": name, **own})
        return found

    def _asset(self, **attributes: str) -> str:
        """The name of a new mesh; "shell" lets MuJoCo take surfaces that are flat or not closed."""
        self.count += 1
        name = f"mesh_{self.count}"
        ElementTree.SubElement(self.assets, "mesh", {"name": name, "inertia": "shell", **attributes})
        return name

    def left(self) -> list[str]:
        """The shapes that could not be written: shapes without their meshes, and shapes of links that are no bodies in the file."""
        return [
            *self.lost,
            *(f"{len(x)} shape(s) of link {link!r}, which is no body of its own" for link, x in self.shapes.items()),
        ]


def _solid(shape: Shape, where: Callable[[np.ndarray], dict[str, str]]) -> dict[str, str]:
    """Type, size and place of a geom; MuJoCo has half the lengths."""
    kind, size = shape.kind, np.array(shape.size)
    if kind == "capsule" and not size[1]:
        kind, size = "sphere", size[:1]
    if kind == "box":
        size = size / 2
    elif kind in ("cylinder", "capsule"):
        size = size * [1.0, 0.5]
    return {"type": kind, "size": text(size), **where(shape.pose)}


def _is_read(path: Path) -> bool:
    """True if MuJoCo reads this file: OBJ, or STL in its binary form and not too large."""
    if not path.is_file() or path.suffix.lower() not in (".stl", ".obj"):
        return False
    if path.suffix.lower() == ".obj":
        return True
    with path.open("rb") as file:
        head = file.read(84)
    count = int.from_bytes(head[80:84], "little")
    return 0 < count <= MOST and path.stat().st_size == 84 + 50 * count


def text(numbers: Any) -> str:
    """Numbers with all their digits."""
    return " ".join(repr(float(x)) for x in np.ravel(numbers))
