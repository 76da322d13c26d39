"""Measurements of a frame, each kind with its own unknowns: points, poses, distances, planes.

A kind gives residuals (N, d) at poses T (N, 4, 4) of the frame, their derivatives by the frame's body twist and by its own unknowns,
and moves its unknowns along a step. `groups` (d,) says which residuals have one scale: rotations and translations of a pose have two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import Array
from ..lie import se3, so3
from .camera import Corners


@dataclass(frozen=True, eq=False)
class Points:
    """k points of unknown place on the frame, measured as (N, k, 3) in an unknown fixed frame."""

    value: Array
    place: Array
    """(k, 3) on the frame."""
    has_base = True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"point {k + 1} {axis}" for k in range(len(self.place)) for axis in "xyz")

    @property
    def groups(self) -> Array:
        return np.zeros(3 * len(self.place), dtype=int)

    def predict(self, T: Array) -> Array:
        return self.place @ np.swapaxes(T[:, :3, :3], 1, 2) + T[:, None, :3, 3]

    def residual(self, T: Array) -> Array:
        return (self.value - self.predict(T)).reshape(len(T), -1)

    def derivatives(self, T: Array) -> tuple[Array, Array]:
        """Derivatives of the prediction by the body twist (N, d, 6) and by the unknowns (N, d, 3k)."""
        R, k = T[:, None, :3, :3], len(self.place)
        twist = np.concatenate([-R @ so3.hat(self.place), np.broadcast_to(R, (len(T), k, 3, 3))], axis=3)
        own = np.zeros((len(T), k, 3, k, 3))
        for j in range(k):
            own[:, j, :, j] = T[:, :3, :3]
        return twist.reshape(len(T), 3 * k, 6), own.reshape(len(T), 3 * k, 3 * k)

    def moved(self, step: Array) -> Points:
        return replace(self, place=self.place + step.reshape(-1, 3))

    def rows(self, keep: Any) -> Points:
        return replace(self, value=self.value[keep])


@dataclass(frozen=True, eq=False)
class Poses:
    """Poses (N, 4, 4) of a tool that stands at an unknown pose on the frame, measured in an unknown fixed frame."""

    value: Array
    tool: Array
    has_base = True
    names = ("tool wx", "tool wy", "tool wz", "tool x", "tool y", "tool z")
    groups = np.array([0, 0, 0, 1, 1, 1])

    def predict(self, T: Array) -> Array:
        return T @ self.tool

    def residual(self, T: Array) -> Array:
        """The rotation vector from predicted to measured and the difference of origins, both in the predicted tool's frame."""
        there = se3.inverse(self.predict(T)) @ self.value
        return np.concatenate([so3.log(there[:, :3, :3]), there[:, :3, 3]], axis=1)

    def derivatives(self, T: Array) -> tuple[Array, Array]:
        r = self.residual(T)
        own = np.zeros((len(T), 6, 6))
        own[:, :3, :3] = so3.dexp_inverse(r[:, :3])
        own[:, 3:, 3:] = np.eye(3)
        own[:, 3:, :3] = -so3.hat(r[:, 3:])
        return own @ se3.Ad(se3.inverse(self.tool)), own

    def moved(self, step: Array) -> Poses:
        return replace(self, tool=self.tool @ se3.exp(step))

    def rows(self, keep: Any) -> Poses:
        return replace(self, value=self.value[keep])


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances (N, k) from an unknown point of the frame to k unknown points of the base's surroundings: a ball bar, wires."""

    value: Array
    place: Array
    anchors: Array
    """(k, 3) in the robot's base."""
    has_base = False

    @property
    def names(self) -> tuple[str, ...]:
        return ("point x", "point y", "point z", *(f"anchor {k + 1} {axis}" for k in range(len(self.anchors)) for axis in "xyz"))

    @property
    def groups(self) -> Array:
        return np.zeros(len(self.anchors), dtype=int)

    def _from(self, T: Array) -> Array:
        return (T[:, :3, :3] @ self.place + T[:, :3, 3])[:, None] - self.anchors

    def predict(self, T: Array) -> Array:
        return np.linalg.norm(self._from(T), axis=2)

    def residual(self, T: Array) -> Array:
        return self.value - self.predict(T)

    def derivatives(self, T: Array) -> tuple[Array, Array]:
        line = self._from(T)
        line = line / np.linalg.norm(line, axis=2, keepdims=True)
        k = len(self.anchors)
        by_place = line @ T[:, :3, :3]
        twist = np.concatenate([by_place @ -so3.hat(self.place), by_place], axis=2)
        own = np.zeros((len(T), k, 3 + 3 * k))
        own[:, :, :3] = by_place
        for j in range(k):
            own[:, j, 3 + 3 * j : 6 + 3 * j] = -line[:, j]
        return twist, own

    def moved(self, step: Array) -> Distances:
        return replace(self, place=self.place + step[:3], anchors=self.anchors + step[3:].reshape(-1, 3))

    def rows(self, keep: Any) -> Distances:
        return replace(self, value=self.value[keep])


@dataclass(frozen=True, eq=False)
class Planes:
    """An unknown point of the frame touches unknown planes nᵀx = h: value (N,) says which one each time, from 0."""

    value: Array
    place: Array
    normals: Array
    heights: Array
    has_base = False
    groups = np.zeros(1, dtype=int)

    @property
    def names(self) -> tuple[str, ...]:
        own = [f"plane {k + 1} {what}" for k in range(len(self.heights)) for what in ("tilt 1", "tilt 2", "height")]
        return ("point x", "point y", "point z", *own)

    def predict(self, T: Array) -> Array:
        """Distances (N,) of the point from its plane."""
        x = T[:, :3, :3] @ self.place + T[:, :3, 3]
        return np.sum(x * self.normals[self.value], axis=1) - self.heights[self.value]

    def residual(self, T: Array) -> Array:
        return -self.predict(T)[:, None]

    def _tangents(self) -> Array:
        """Two directions (k, 2, 3) across each normal."""
        return np.linalg.svd(self.normals[:, None])[2][:, 1:]

    def derivatives(self, T: Array) -> tuple[Array, Array]:
        x = T[:, :3, :3] @ self.place + T[:, :3, 3]
        by_place = (self.normals[self.value][:, None] @ T[:, :3, :3])[:, 0]
        twist = np.concatenate([(by_place[:, None] @ -so3.hat(self.place))[:, 0], by_place], axis=1)
        own = np.zeros((len(T), 3 + 3 * len(self.heights)))
        own[:, :3] = by_place
        tangents, at, n = self._tangents()[self.value], 3 + 3 * self.value, np.arange(len(T))
        for j in range(2):
            own[n, at + j] = np.sum(tangents[:, j] * x, axis=1)
        own[n, at + 2] = -1.0
        return twist[:, None], own[:, None]

    def moved(self, step: Array) -> Planes:
        steps = step[3:].reshape(-1, 3)
        normals = self.normals + np.einsum("kj,kja->ka", steps[:, :2], self._tangents())
        normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)
        return replace(self, place=self.place + step[:3], normals=normals, heights=self.heights + steps[:, 2])

    def rows(self, keep: Any) -> Planes:
        return replace(self, value=self.value[keep])


Measured = Points | Poses | Distances | Planes | Corners
