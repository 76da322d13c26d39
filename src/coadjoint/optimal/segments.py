"""The nearest points of two segments, and how their distance changes.

For segments a₀ + s (a₁ - a₀) and b₀ + t (b₁ - b₀) with 0 ≤ s, t ≤ 1, ½d² is the least of ½|a(s) - b(t)|². Ericson (2005), Real-Time
Collision Detection, section 5.1.9. All arrays have leading axes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

PARALLEL = 1e-12
"""Part of |a|²|b|² below which a determinant counts as zero: the segments are parallel, or one is a point."""
NEAREST = 1e-9
"""Distances below count as this, along some normal of both: segments that cross have no direction in which they part."""


class Nearest(NamedTuple):
    """Nearest points of pairs of segments."""

    s: np.ndarray
    t: np.ndarray
    distance: np.ndarray
    normal: np.ndarray
    """(..., 3): from the second to the first, of length 1."""
    along: np.ndarray
    beside: np.ndarray
    """The segments a₁ - a₀ and b₁ - b₀ (..., 3)."""


def closest(a: np.ndarray, b: np.ndarray) -> Nearest:
    """The nearest points of segments a and b (..., 2, 3)."""
    along, beside, between = a[..., 1, :] - a[..., 0, :], b[..., 1, :] - b[..., 0, :], a[..., 0, :] - b[..., 0, :]
    aa, bb, ab = _dot(along, along), _dot(beside, beside), _dot(along, beside)
    ad, bd = _dot(along, between), _dot(beside, between)
    det = aa * bb - ab**2
    skew = det > PARALLEL * aa * bb
    s = np.where(skew, np.clip((ab * bd - ad * bb) / np.where(skew, det, 1.0), 0.0, 1.0), 0.0)
    t = _ratio(ab * s + bd, bb)
    s = np.where((t < 0) | (bb <= 0), np.clip(_ratio(-ad, aa), 0.0, 1.0), s)
    s = np.where((t > 1) & (bb > 0), np.clip(_ratio(ab - ad, aa), 0.0, 1.0), s)
    t = np.clip(t, 0.0, 1.0)
    gap = between + s[..., None] * along - t[..., None] * beside
    distance = np.sqrt(_dot(gap, gap))
    normal = gap / np.maximum(distance, NEAREST)[..., None]
    crossing = distance < NEAREST
    if crossing.any():
        normal[crossing] = _perpendicular(along[crossing], beside[crossing])
    return Nearest(s, t, distance, normal, along, beside)


def _dot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("...i,...i->...", x, y))


def _ratio(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(y > 0, x / np.where(y > 0, y, 1.0), 0.0)


def _perpendicular(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Unit vectors (n, 3) perpendicular to x and, unless they are parallel, to y."""
    found = np.cross(x, y)
    rows = np.einsum("ni,ni->n", found, found) < 1e-20
    found[rows] = np.cross(x[rows], np.eye(3)[np.argmin(np.abs(x[rows]), axis=1)])
    size = np.linalg.norm(found, axis=1, keepdims=True)
    return np.where(size > 0, found / np.where(size > 0, size, 1.0), [1.0, 0.0, 0.0])
