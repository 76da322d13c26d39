"""Fewer triangles for the same surface, by clusters of corners.

Corners in one cell of a grid become one, at the point nearest to the planes of all triangles that meet the cell, as by the quadrics of
Garland and Heckbert (1997) and the clusters of Lindstrom (2000): edges and corners of machined parts stay sharp. Triangles whose
corners fall into fewer than three cells vanish.
"""

from __future__ import annotations

import numpy as np

FINEST = 1024
"""The finest grid along the longest side."""

STIFF = 1e-3
"""Eigenvalues of a quadric below this part of its largest are taken as flat: the point stays at the mean of the cell's corners there."""


def welded(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The triangles with equal corners merged, without those that have no area or occur twice.

    STL has every corner once for each triangle.
    """
    if not len(faces):
        return vertices[:0], faces
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    size = float((high - low).max()) or 1.0
    keys = np.rint((vertices - low) * (2**20 / size)).astype(np.int64)
    return _merged(vertices, faces, (keys[:, 0] << 42) | (keys[:, 1] << 21) | keys[:, 2])[:2]


def _merged(vertices: np.ndarray, faces: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Corners of one key made one, its mean; the faces that are left; and the new number of every corner."""
    _, number = np.unique(keys, return_inverse=True)
    number = number.ravel()
    count = int(number.max()) + 1
    weights = np.bincount(number, minlength=count)
    means = np.stack([np.bincount(number, vertices[:, k], count) for k in range(3)], axis=-1) / weights[:, None]
    corners = number[faces]
    keep = (corners[:, 0] != corners[:, 1]) & (corners[:, 1] != corners[:, 2]) & (corners[:, 2] != corners[:, 0])
    corners = corners[keep]
    # The same three corners in the same sense are the same triangle, whichever comes first.
    first = np.argmin(corners, axis=1)[:, None]
    turned = np.take_along_axis(corners, (first + np.arange(3)) % 3, axis=1)
    _, pairs = np.unique(turned[:, 0] * count + turned[:, 1], return_inverse=True)
    _, unique = np.unique(pairs * count + turned[:, 2], return_index=True)
    return means, corners[np.sort(unique)], number


def simplified(vertices: np.ndarray, faces: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """At most `most` triangles near the surface of these, or these if they are so few: those of the finest grid that leaves as few.

    The coarsest grid has two cells along the longest side, and may leave a dozen triangles even if fewer are asked for.
    """
    if len(faces) <= most:
        return vertices, faces
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    size = float((high - low).max())
    if size <= 0:
        return vertices[:0], faces[:0]

    def at(cells: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        keys = np.minimum(np.floor((vertices - low) * (cells / size)).astype(np.int64), cells - 1)
        return _merged(vertices, faces, (keys[:, 0] << 42) | (keys[:, 1] << 21) | keys[:, 2])

    coarse, fine = 2, FINEST  # the finest grid with few enough is between
    best = at(coarse)
    while fine - coarse > max(1, coarse // 16):
        middle = round((coarse * fine) ** 0.5) if fine > 2 * coarse else (coarse + fine) // 2
        middle = min(max(middle, coarse + 1), fine - 1)
        if len((tried := at(middle))[1]) <= most:
            coarse, best = middle, tried
        else:
            fine = middle
    means, left, number = best
    return _nearest_to_planes(vertices, faces, number, means, size / coarse), left


def _nearest_to_planes(vertices: np.ndarray, faces: np.ndarray, number: np.ndarray, means: np.ndarray, cell: float) -> np.ndarray:
    """The point of every cluster with the least weighted sum of squared distances from the planes of its triangles, within a cell of the
    mean."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    areas = np.linalg.norm(normals, axis=-1)
    solid = areas > 0
    normals = normals[solid] / areas[solid, None]
    corners, points, areas = number[faces[solid]], a[solid], areas[solid]
    count = len(means)
    A, rhs = np.zeros((count, 3, 3)), np.zeros((count, 3))
    for k in range(3):
        away = np.einsum("ij,ij->i", normals, points - means[corners[:, k]]) * areas
        for i in range(3):
            rhs[:, i] += np.bincount(corners[:, k], normals[:, i] * away, count)
            for j in range(3):
                A[:, i, j] += np.bincount(corners[:, k], normals[:, i] * normals[:, j] * areas, count)
    values, vectors = np.linalg.eigh(A)
    known = values > STIFF * np.maximum(values[:, -1:], 1e-300)
    inverse = np.where(known, 1 / np.where(known, values, 1.0), 0.0)
    shift = np.einsum("nij,nj,nkj,nk->ni", vectors, inverse, vectors, rhs)
    length = np.linalg.norm(shift, axis=-1, keepdims=True)
    moved: np.ndarray = means + shift * np.minimum(1.0, cell / np.maximum(length, 1e-300))
    return moved
