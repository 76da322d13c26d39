"""The triangles of shapes, few enough for a page.

    triangles(shape)            all triangles of one shape, in the frame of its link, by colour
    packed(robot, most=60_000)  those of a whole robot, simplified to at most so many and quantised to 16 bits

Boxes, spheres, cylinders, capsules and ellipsoids always have triangles. Meshes in STL, OBJ, DAE, glTF, GLB and PLY need the package
`trimesh` (and `pycollada` for DAE): the extra `mesh`. COLLADA's unit is applied and its up axis is not, as other readers of URDF do.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import CoadjointError, MissingPackageError, ReadError
from ..files import read_bytes
from ..words import cut, short
from .robot import Robot
from .shape import Shape
from .simplify import simplified, welded
from .solids import solid

LARGEST = 256 * 2**20
"""The largest file of a mesh that is read, in bytes."""

FORMATS = ("stl", "obj", "dae", "gltf", "glb", "ply")


class Part(NamedTuple):
    """Triangles of one colour: corners (n, 3), their numbers (m, 3), and red, green, blue, opacity, or None."""

    vertices: np.ndarray
    faces: np.ndarray
    colour: tuple[float, float, float, float] | None


def triangles(shape: Shape) -> list[Part]:
    """The triangles of a shape in the frame of its link, pose and scale applied, one part for each colour.

    The colour of the shape counts before those of its file. A mesh that is missing or cannot be read raises a ReadError,
    and a MissingPackageError where the package that reads it is not installed.
    """
    scale: Any = np.ones(3)
    if shape.kind != "mesh":
        parts = [Part(*solid(shape.kind, shape.size), shape.colour)]
    elif shape.vertices is not None and shape.faces is not None:
        parts, scale = [Part(np.asarray(shape.vertices, dtype=float), shape.faces, None)], np.array(shape.size)
    elif not shape.path:
        raise ReadError(f"the mesh {short(shape.uri)} of link {short(shape.link)} was not found.")
    else:
        parts, scale = _read(shape.path, _stamp(shape.path)), np.array(shape.size)
    R, p = shape.pose[:3, :3], shape.pose[:3, 3]
    turned = np.prod(scale) < 0
    return [Part((x.vertices * scale) @ R.T + p, x.faces[:, ::-1] if turned else x.faces, shape.colour or x.colour) for x in parts]


class PackedPart(NamedTuple):
    """Triangles of one colour on one link, quantised: corner k stands at low + step · vertices[k], in the link's frame."""

    link: str
    colour: tuple[float, float, float, float] | None
    low: np.ndarray
    step: np.ndarray
    vertices: np.ndarray
    """(n, 3), unsigned 16-bit."""
    faces: np.ndarray
    """(m, 3), unsigned: 16-bit where there are at most 65536 corners, else 32-bit."""
    role: str


class Packed(NamedTuple):
    """The triangles of a robot for a page, and a sentence for every shape that has none."""

    parts: list[PackedPart]
    notes: list[str]

    @property
    def n_faces(self) -> int:
        return sum(len(part.faces) for part in self.parts)

    @property
    def n_bytes(self) -> int:
        """The size of all arrays in bytes, before any further compression."""
        return sum(part.vertices.nbytes + part.faces.nbytes for part in self.parts)


def packed(robot: Robot, most: int = 60_000, role: str = "visual") -> Packed:
    """The triangles of all shapes of a role, at most about `most`, each part quantised over its bounding box.

    No shape raises an error: what is missing or unreadable is a note. Meshes with fewer triangles than their share keep them all; the
    others are simplified, to numbers in proportion to their widths. The error of quantisation is 1/131070 of the box's side.
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise CoadjointError(f"most is {short(most)}; expected a number of triangles above zero.")
    found: list[tuple[str, Part]] = []
    notes: dict[str, None] = {}
    for shape in robot.shapes:
        if shape.role != role:
            continue
        try:
            found += [(shape.link, part) for part in triangles(shape)]
        except CoadjointError as error:
            notes[str(error)] = None
    whole = [(link, Part(*welded(part.vertices, part.faces), part.colour)) for link, part in found]
    shares = _shares([len(part.faces) for _, part in whole], [_width(part.vertices) for _, part in whole], most)
    parts = []
    for (link, part), share in zip(whole, shares, strict=True):
        vertices, faces = simplified(part.vertices, part.faces, share)
        if len(faces):
            parts.append(_quantised(link, Part(vertices, faces, part.colour), role))
    return Packed(parts, list(notes))


def _shares(sizes: Sequence[int], widths: Sequence[float], most: int) -> list[int]:
    """The number min(size, c width) for each mesh, with the largest c whose sum is at most `most`; at least 12, which is a box."""
    left, c = float(most), np.inf
    order = sorted(zip(sizes, widths, strict=True), key=lambda x: x[0] / x[1])
    remaining = np.cumsum([width for _, width in reversed(order)])[::-1]  # not by subtraction, which leaves 0 of small ones
    for (size, width), wide in zip(order, remaining.tolist(), strict=True):
        if size > left * width / wide:
            c = left / wide
            break
        left -= size
    return [size if size <= c * width else max(int(c * width), 12) for size, width in zip(sizes, widths, strict=True)]


def _width(vertices: np.ndarray) -> float:
    """The diagonal of a mesh's box, above zero."""
    return min(max(float(np.linalg.norm(np.ptp(vertices, axis=0))), 1e-12), 1e300) if len(vertices) else 1e-12


def _quantised(link: str, part: Part, role: str) -> PackedPart:
    # Corners in the order of their first use: what is near in space is then near in the file, which compresses better.
    used, first, inverse = np.unique(part.faces.ravel(), return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    vertices, faces = part.vertices[used[order]], rank[inverse].reshape(-1, 3)
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    step = np.where(high > low, (high - low) / 65535, 1.0)
    grid = np.rint((vertices - low) / step).astype(np.uint16)
    return PackedPart(link, part.colour, low, step, grid, faces.astype(np.uint16 if len(used) <= 65536 else np.uint32), role)


# --- files


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = Path(path).stat()
    except OSError as error:
        raise ReadError(f"{cut(path, 300)}: the mesh cannot be read: {error.strerror}.") from None
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=64)
def _read(path: str, stamp: tuple[int, int]) -> list[Part]:
    """The parts of a file, in metres; `stamp` makes a changed file another one."""
    kind = path.rpartition(".")[2].lower()
    if kind not in FORMATS:
        raise ReadError(f"{cut(path, 300)}: meshes are read from {', '.join(FORMATS)}, not from {short(kind)}.")
    trimesh = _package("trimesh")
    if kind == "dae":
        _package("collada")
    data = read_bytes(path, LARGEST)
    if kind == "dae" and (b"<!ENTITY" in data or b"<!DOCTYPE" in data):
        raise ReadError(f"{cut(path, 300)}: the mesh has a document type, which may hide entities and other files; remove it.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scene = trimesh.load_scene(io.BytesIO(data), file_type=kind, resolver=_beside(trimesh, Path(path).parent))
            return _parts(scene)
    except Exception as error:  # readers of meshes raise anything
        raise ReadError(f"{cut(path, 300)}: the mesh cannot be read: {cut(' '.join(str(error).split()), 200)}.") from None


def _package(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise MissingPackageError(
            "meshes are read by the packages trimesh and pycollada, which are not installed: pip install 'coadjoint[mesh]'."
        ) from None


def _beside(trimesh: Any, folder: Path) -> Any:
    """Gives materials and buffers that stand in the folder of a mesh, or below it, and no other file."""

    class Beside(trimesh.resolvers.Resolver):  # type: ignore[misc]
        def __init__(self) -> None: ...

        def get(self, name: str) -> bytes:
            path = (folder / str(name)).resolve()
            if path.suffix.lower() not in (".mtl", ".bin") or folder.resolve() not in path.parents:
                raise ValueError(f"{name} is not read")
            return read_bytes(path, LARGEST)

        def namespaced(self, namespace: str) -> Any:
            raise ValueError("archives are not read")

        def keys(self) -> list[str]:
            return []

        def write(self, name: str, data: Any) -> None:
            raise ValueError("nothing is written")

    return Beside()


def _parts(scene: Any) -> list[Part]:
    """The triangles of a scene by colour, its nodes placed and its unit applied."""
    by_colour: dict[Any, list[tuple[np.ndarray, np.ndarray]]] = {}
    for node in scene.graph.nodes_geometry:
        T, name = scene.graph[node]
        mesh = scene.geometry[name]
        if not hasattr(mesh, "faces"):
            continue  # points and lines
        vertices = np.asarray(mesh.vertices, dtype=float) @ T[:3, :3].T + T[:3, 3]
        faces = np.asarray(mesh.faces, dtype=np.int64).reshape(-1, 3)
        faces = faces[:, ::-1] if np.linalg.det(T[:3, :3]) < 0 else faces
        by_colour.setdefault(_colour(mesh), []).append((vertices * _unit(mesh), faces))
    parts = []
    for colour, pieces in by_colour.items():
        starts = np.cumsum([0, *(len(v) for v, _ in pieces)])
        vertices = np.concatenate([v for v, _ in pieces])
        faces = np.concatenate([f + s for (_, f), s in zip(pieces, starts, strict=False)])
        if not np.isfinite(vertices).all():
            raise ValueError("it has corners that are not finite")
        parts.append(Part(vertices, faces, colour))
    if not sum(len(part.faces) for part in parts):
        raise ValueError("it has no triangles")
    return parts


def _unit(mesh: Any) -> float:
    """Metres per unit, which COLLADA states and trimesh leaves to the caller."""
    words = str(mesh.metadata.get("units", "")).split(" * ")
    try:
        return float(words[0]) if len(words) == 2 and words[1] == "meters" else 1.0
    except ValueError:
        return 1.0


def _colour(mesh: Any) -> tuple[float, float, float, float] | None:
    """The one colour of a mesh; None where it has none, or many."""
    visual = mesh.visual
    material = getattr(visual, "material", None)
    rgba = getattr(material, "main_color", None) if material is not None else None
    if rgba is None and getattr(visual, "kind", None) in ("face", "vertex"):
        rgba = visual.main_color
    if rgba is None or len(rgba) != 4:
        return None
    r, g, b, a = (round(float(x) / 255, 4) for x in rgba)
    return r, g, b, a
