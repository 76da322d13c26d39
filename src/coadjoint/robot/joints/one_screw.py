"""Joints with one screw, and those with none."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import Array, dot
from ...lie import se3
from .kind import JointKind, differ, line, slide


class Fixed(JointKind):
    """No motion."""

    nq, nv = 0, 0

    def pose(self, screws: Array, q: Array) -> Array:
        return np.eye(4)

    def home_screws(self, **geometry: Any) -> np.ndarray:
        return np.zeros((0, 6))

    def defect(self, screws: np.ndarray, tolerance: float = 1e-6) -> str:
        return ""


class OneScrew(JointKind):
    """exp(S q) with |ω| = 1, or ω = 0 and |v| = 1."""

    nq, nv = 1, 1

    def pose(self, screws: Array, q: Array) -> Array:
        return se3.exp_screw(screws[..., 0, :], q[..., 0])


class Helical(OneScrew):
    """Rotation about an axis with an advance along it."""

    turns: tuple[bool, ...] = (True,)
    angles: tuple[tuple[int, int], ...] = ((0, 0),)

    def home_screws(self, **geometry: Any) -> np.ndarray:
        axis = geometry["axis"]
        result: np.ndarray = (line(axis, geometry["point"]) + slide(geometry["pitch"] * np.asarray(axis)))[None]
        return result

    def defect(self, screws: np.ndarray, tolerance: float = 1e-6) -> str:
        return "|ω| must be 1" if differ(np.linalg.norm(screws[:, :3], axis=-1), 1.0, tolerance) else ""

    def _corrected(self, screws: np.ndarray) -> np.ndarray:
        result: np.ndarray = screws / np.linalg.norm(screws[:, :3], axis=1, keepdims=True)
        return result

    def centre(self, screws: np.ndarray) -> np.ndarray:
        return np.cross(screws[0, :3], screws[0, 3:])

    def pitch(self, screws: np.ndarray) -> float | None:
        return float(screws[0, :3] @ screws[0, 3:])


def without_advance(screws: np.ndarray, tolerance: float) -> str:
    """The reason why screws are not rotations about lines, as text; empty if they are."""
    w, v = screws[:, :3], screws[:, 3:]
    advance = dot(w, v) / np.maximum(1.0, np.linalg.norm(v, axis=-1))
    return "ω·v must be 0: it turns without advance" if differ(advance, 0.0, tolerance) else ""


def advance_removed(screws: np.ndarray) -> np.ndarray:
    """The nearest screws that are rotations about lines."""
    exact: np.ndarray = screws / np.linalg.norm(screws[:, :3], axis=1, keepdims=True)
    exact[:, 3:] -= dot(exact[:, :3], exact[:, 3:])[:, None] * exact[:, :3]
    return exact


class Revolute(Helical):
    """Rotation about an axis, with limits or without (continuous)."""

    revolute = True

    def home_screws(self, **geometry: Any) -> np.ndarray:
        return line(geometry["axis"], geometry["point"])[None]

    def pitch(self, screws: np.ndarray) -> float | None:
        return None

    def defect(self, screws: np.ndarray, tolerance: float = 1e-6) -> str:
        return super().defect(screws, tolerance) or without_advance(screws, tolerance)

    def _corrected(self, screws: np.ndarray) -> np.ndarray:
        return advance_removed(screws)


class Prismatic(OneScrew):
    """Translation along an axis."""

    turns = (False,)

    def home_screws(self, **geometry: Any) -> np.ndarray:
        return slide(geometry["axis"])[None]

    def defect(self, screws: np.ndarray, tolerance: float = 1e-6) -> str:
        wrong = differ(screws[:, :3], 0.0, tolerance) or differ(np.linalg.norm(screws[:, 3:]), 1.0, tolerance)
        return "ω must be 0 and |v| 1" if wrong else ""

    def _corrected(self, screws: np.ndarray) -> np.ndarray:
        return np.concatenate([0.0 * screws[:, :3], screws[:, 3:] / np.linalg.norm(screws[:, 3:])], axis=1)
