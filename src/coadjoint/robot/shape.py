"""The shapes of a robot: what of its links is seen, and what may collide.

Shapes are for pictures and for other programs. No dynamics depends on them: they are no part of a robot's fingerprint, of its
equality, or of what its compiled functions are cached by.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError, unknown
from ..words import short
from .link import as_pose

if TYPE_CHECKING:
    from .meshes import Part

SIZES = {"box": 3, "sphere": 1, "cylinder": 2, "capsule": 2, "ellipsoid": 3, "mesh": 3}
"""The kinds of shapes, and how many numbers their sizes have."""

ROLES = ("visual", "collision")


@dataclass(frozen=True, eq=False)
class Shape:
    """A shape on a link (or the base), at `pose` (4, 4) in the link's frame, centred there.

    kind         size
    box          its three sides along x, y, z
    sphere       radius
    cylinder     radius, length along z
    capsule      radius, length along z of the cylinder between its two half spheres
    ellipsoid    its three semi-axes along x, y, z
    mesh         its scale along x, y, z; a negative one mirrors

    role is "visual" or "collision"; colour (red, green, blue, opacity) from 0 to 1, or None. A mesh has the address that its
    description gives (`uri`) and the file that was found for it (`path`, empty where none was), or its own `vertices` (n, 3) and
    `faces` (m, 3), not scaled; `triangles()` gives those of any shape.
    """

    link: str
    kind: str
    pose: np.ndarray = field(default_factory=lambda: np.eye(4))
    size: Any = (1.0, 1.0, 1.0)
    role: str = "visual"
    colour: Any = None
    name: str = ""
    uri: str = ""
    path: str = ""
    vertices: np.ndarray | None = None
    faces: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in SIZES:
            raise unknown("kind of shape", self.kind, SIZES)
        if not isinstance(self.role, str) or self.role not in ROLES:
            raise unknown("role of a shape", self.role, ROLES)
        own = "" if isinstance(self.name, str) and not self.name else f" {short(self.name)}"
        label = f"{self.kind}{own} of link {short(self.link)}"
        for key in ("link", "name", "uri", "path"):
            if not isinstance(value := getattr(self, key), str):
                raise ModelError(f"{label}: {key} is {short(value)}; expected text.")
        object.__setattr__(self, "pose", as_pose(self.pose, f"{label}: pose"))
        object.__setattr__(self, "size", _size(self.kind, self.size, label))
        object.__setattr__(self, "colour", _colour(self.colour, label))
        self._check_triangles(label)

    def triangles(self) -> list[Part]:
        """The triangles in the frame of the link, pose and scale applied, one part (vertices, faces, colour) for each colour.

        Meshes of files need the extra `mesh`; one that is missing or cannot be read raises a ReadError. `robot.packed_meshes` has
        the triangles of all shapes, few enough for a page.
        """
        from .meshes import triangles

        return triangles(self)

    def _check_triangles(self, label: str) -> None:
        if (self.vertices is None) != (self.faces is None) or (self.vertices is not None and self.kind != "mesh"):
            raise ModelError(f"{label}: a mesh has vertices and faces, both or none; other shapes have neither.")
        if self.vertices is None or self.faces is None:
            return
        vertices, faces = np.array(self.vertices, dtype=np.float32), np.array(self.faces)
        if vertices.ndim != 2 or vertices.shape[1:] != (3,) or not np.isfinite(vertices).all():
            raise ModelError(f"{label}: vertices has shape {vertices.shape}; expected finite numbers (n, 3).")
        if faces.ndim != 2 or faces.shape[1:] != (3,) or (faces.size and faces.dtype.kind not in "iu"):
            raise ModelError(f"{label}: faces has shape {faces.shape} of {faces.dtype}; expected whole numbers (m, 3).")
        if faces.size and (faces.min() < 0 or faces.max() >= len(vertices)):
            raise ModelError(f"{label}: faces have corners {faces.min()} to {faces.max()}; there are {len(vertices)} vertices.")
        for key, array in (("vertices", vertices), ("faces", faces.astype(np.int32))):
            array.flags.writeable = False
            object.__setattr__(self, key, array)


def _numbers(x: Any, label: str) -> tuple[float, ...]:
    try:
        found = np.asarray(x, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        found = np.full((), np.nan)
    if found.ndim > 1 or not np.isfinite(found).all():
        raise ModelError(f"{label} is {short(x)}; expected finite numbers.")
    return tuple(np.atleast_1d(found).tolist())


def _size(kind: str, size: Any, label: str) -> tuple[float, ...]:
    numbers = _numbers(size, f"{label}: size")
    if len(numbers) != SIZES[kind]:
        raise ModelError(f"{label}: size is {short(size)}; expected {SIZES[kind]} number(s).")
    if any(x <= 0 for x in numbers) and kind not in ("mesh", "capsule"):
        raise ModelError(f"{label}: size is {short(size)}; every number must be above zero.")
    if kind == "mesh" and not all(numbers):
        raise ModelError(f"{label}: the scale is {short(size)}; no number may be zero.")
    if kind == "capsule" and (numbers[0] <= 0 or numbers[1] < 0):
        raise ModelError(f"{label}: size is {short(size)}; the radius must be above zero, and the length not below.")
    return numbers


def _colour(colour: Any, label: str) -> tuple[float, float, float, float] | None:
    if colour is None:
        return None
    numbers = _numbers(colour, f"{label}: colour")
    if len(numbers) not in (3, 4):
        raise ModelError(f"{label}: colour is {short(colour)}; expected red, green, blue and, if any, opacity.")
    r, g, b, a = (min(max(x, 0.0), 1.0) for x in (*numbers, 1.0)[:4])
    return r, g, b, a


def check_shapes(shapes: Sequence[Any], links: Mapping[str, int]) -> None:
    """Raise an error for what is no shape, or stands on no link."""
    for i, shape in enumerate(shapes):
        if not isinstance(shape, Shape):
            raise ModelError(f"shapes[{i}] is {short(shape)}; expected a Shape.")
        if shape.link not in links:
            raise unknown(f"link for shapes[{i}], a {shape.kind},", shape.link, links)


def moved_shape(shape: Shape, link: str, pose: np.ndarray | None = None) -> Shape:
    """The shape on another link, in whose frame the frame of its own one stands at `pose`."""
    return replace(shape, link=link, pose=shape.pose if pose is None else pose @ shape.pose)


def found_again(shape: Shape, find: Callable[[str], Path | None]) -> Shape:
    """The shape with the file of its mesh where it is now, or with none."""
    if shape.kind != "mesh" or (shape.path and os.path.isfile(shape.path)):
        return shape
    path = str(find(shape.uri) or "")
    return shape if path == shape.path else replace(shape, path=path)


def missing_meshes(shapes: Sequence[Shape]) -> list[str]:
    """A sentence where there are meshes without a file; pictures then show the others, or the shapes that the masses suggest."""
    missing = list(dict.fromkeys(x.uri for x in shapes if x.kind == "mesh" and x.vertices is None and not x.path))
    if not missing:
        return []
    shown = ", ".join(short(x) for x in missing[:3]) + (", …" if len(missing) > 3 else "")
    return [
        f"{len(missing)} mesh(es) were not found: {shown}; give load(…, packages={{name: folder}}) or set ROS_PACKAGE_PATH to see them."
    ]
