"""The surfaces of boxes, spheres, cylinders, capsules and ellipsoids as triangles, outward normals by the right hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

AROUND = 24
"""Corners of a circle."""


def solid(kind: str, size: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Corners (n, 3) and faces (m, 3) of a shape of that kind and size, centred, its axis along z: see `shape.Shape`."""
    if kind == "box":
        return _box(np.asarray(size, dtype=float))
    if kind == "cylinder":
        radius, length = size
        return _turned(np.array([0.0, radius, radius, 0.0]), np.array([-0.5, -0.5, 0.5, 0.5]) * length)
    radii = {"sphere": (size[0],) * 3, "capsule": (size[0],) * 3}.get(kind, tuple(size))
    angle = np.linspace(-np.pi / 2, np.pi / 2, AROUND // 2 + 1)
    r, z = np.cos(angle), np.sin(angle)
    r[[0, -1]] = 0.0
    if kind == "capsule":
        middle, half = len(z) // 2, size[1] / 2 / size[0]
        r, z = np.insert(r, middle, 1.0), np.insert(z, middle, 0.0)
        z = z + np.where(np.arange(len(z)) <= middle, -half, half)
    vertices, faces = _turned(r, z)
    return vertices * radii, faces


def _box(sides: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    squares = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return corners * sides, np.array([(a, *x) for a, b, c, d in squares for x in ((b, c), (c, d))])


def _turned(r: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The surface that a line of points (r, z) makes about z; its first and last point are on the axis."""
    angle = np.arange(AROUND) * (2 * np.pi / AROUND)
    rings = np.stack([np.outer(r[1:-1], np.cos(angle)), np.outer(r[1:-1], np.sin(angle))], axis=-1)
    heights = np.broadcast_to(z[1:-1, None, None], (*rings.shape[:2], 1))
    vertices = np.concatenate([np.concatenate([rings, heights], axis=-1).reshape(-1, 3), [[0, 0, z[0]], [0, 0, z[-1]]]])
    here = np.arange(AROUND)
    there = (here + 1) % AROUND
    bottom, top, count = len(vertices) - 2, len(vertices) - 1, len(r) - 2
    faces = [np.stack([np.full(AROUND, bottom), there, here], axis=-1)]
    for k in range(count - 1):
        a, b = k * AROUND, (k + 1) * AROUND
        faces += [np.stack([a + here, a + there, b + there], axis=-1), np.stack([a + here, b + there, b + here], axis=-1)]
    last = (count - 1) * AROUND
    faces.append(np.stack([last + here, last + there, np.full(AROUND, top)], axis=-1))
    return vertices, np.concatenate(faces)
