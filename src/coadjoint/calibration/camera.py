"""A camera that sees a board: corners in pixels, the camera on the hand and the board fixed, or the other way round.

A point x in the camera's frame (z forward) is seen at fx a s + cx, fy b s + cy with (a, b) = (x, y)/z, s = 1 + k₁ r² + k₂ r⁴, r² = a² + b².
Residuals are pixels over a focal length, so angles. Unknown are the hand-eye pose, the base, and, unless the camera's matrix is given, fx,
fy, cx, cy, k₁ and k₂. Where a fit starts, these and the camera's poses are from homographies (Zhang 2000).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import Array, unmasked
from ..errors import CoadjointError, ShapeError
from ..lie import se3, so3
from ..words import short
from .start import base_from_poses, nearest_rotation


@dataclass(frozen=True, eq=False)
class Corners:
    """Pixels (N, k, 2) of k known points of a board, seen by a camera on the frame (`on_hand`), or the board is on the frame."""

    value: Array
    board: Array
    """(k, 3)."""
    tool: Array
    """(4, 4): the camera's or the board's pose on the frame."""
    intrinsics: Array
    """(6,): fx, fy, cx, cy, k₁, k₂."""
    on_hand: bool
    known: bool
    """True if the intrinsics are known."""
    unit: float
    """Pixels of one radian, about."""
    has_base = True

    @property
    def names(self) -> tuple[str, ...]:
        own = ("tool wx", "tool wy", "tool wz", "tool x", "tool y", "tool z")
        return own if self.known else (*own, "camera fx", "camera fy", "camera cx", "camera cy", "camera k1", "camera k2")

    @property
    def groups(self) -> Array:
        return np.zeros(2 * len(self.board), dtype=int)

    @property
    def matrix(self) -> Array:
        """The camera's matrix (3, 3)."""
        fx, fy, cx, cy = self.intrinsics[:4]
        return np.array([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]])

    def seen(self, T: Array) -> Array:
        """The board's points (N, k, 3) in the camera's frame."""
        C = T @ self.tool
        C = se3.inverse(C) if self.on_hand else C
        return np.asarray(self.board @ np.swapaxes(C[:, :3, :3], 1, 2) + C[:, None, :3, 3])

    def predict(self, T: Array) -> Array:
        return project(self.seen(T), self.intrinsics)

    def residual(self, T: Array) -> Array:
        return np.asarray((self.value - self.predict(T)).reshape(len(T), -1) / self.unit)

    def derivatives(self, T: Array) -> tuple[Array, Array]:
        """Derivatives of the prediction by the body twist (N, d, 6) and by the unknowns (N, d, 6 or 12)."""
        x = self.seen(T)
        by_point, by_camera = projected(x, self.intrinsics)
        n, k = x.shape[:2]
        if self.on_hand:  # x = C⁻¹ p: a twist (ω, v) of the camera moves it by -(ω × x + v)
            moved = np.concatenate([so3.hat(x), np.broadcast_to(-np.eye(3), (n, k, 3, 3))], axis=3)
        else:  # x = C p: by R (ω × p + v)
            R = (T @ self.tool)[:, None, :3, :3]
            moved = np.concatenate([-R @ so3.hat(self.board), np.broadcast_to(R, (n, k, 3, 3))], axis=3)
        tool = (by_point @ moved).reshape(n, 2 * k, 6)
        own = tool if self.known else np.concatenate([tool, by_camera.reshape(n, 2 * k, 6)], axis=2)
        return tool @ se3.Ad(se3.inverse(self.tool)) / self.unit, own / self.unit

    def moved(self, step: Array) -> Corners:
        new = replace(self, tool=self.tool @ se3.exp(step[:6]))
        if self.known:
            return new
        f = self.intrinsics[:2]
        parts = [f * np.exp(step[6:8]), self.intrinsics[2:4] + f * step[8:10], self.intrinsics[4:] + step[10:12]]
        return replace(new, intrinsics=np.concatenate(parts))

    def rows(self, keep: Any) -> Corners:
        return replace(self, value=self.value[keep])


def project(x: Array, intrinsics: Array) -> Array:
    """Pixels (..., 2) of points (..., 3) in the camera's frame."""
    plane = x[..., :2] / x[..., 2:]
    r2 = np.sum(plane**2, axis=-1, keepdims=True)
    return np.asarray(intrinsics[:2] * plane * (1.0 + intrinsics[4] * r2 + intrinsics[5] * r2**2) + intrinsics[2:4])


def projected(x: Array, intrinsics: Array) -> tuple[Array, Array]:
    """Derivatives of pixels by the point (..., 2, 3), and by log f, centre over f, and distortion (..., 2, 6)."""
    z = x[..., 2]
    plane = x[..., :2] / z[..., None]
    r2 = np.sum(plane**2, axis=-1)
    k1, k2 = intrinsics[4:]
    s, slope = 1.0 + k1 * r2 + k2 * r2**2, 2.0 * (k1 + 2.0 * k2 * r2)
    by_plane = s[..., None, None] * np.eye(2) + slope[..., None, None] * plane[..., :, None] * plane[..., None, :]
    inner = np.zeros((*x.shape[:-1], 2, 3))
    inner[..., 0, 0] = inner[..., 1, 1] = 1.0 / z
    inner[..., 2] = -plane / z[..., None]
    f = intrinsics[:2]
    by_camera = np.zeros((*x.shape[:-1], 2, 6))
    for i in range(2):
        by_camera[..., i, i] = f[i] * plane[..., i] * s
        by_camera[..., i, 2 + i] = f[i]
        by_camera[..., i, 4] = f[i] * plane[..., i] * r2
        by_camera[..., i, 5] = f[i] * plane[..., i] * r2**2
    return f[:, None] * (by_plane @ inner), by_camera


# --- where a fit starts


def homography(board: Array, pixels: Array) -> Array:
    """H (3, 3) with pixels ~ H (x, y, 1), by the linear method on scaled coordinates."""
    A, B = _scaling(board), _scaling(pixels)
    x, u = (np.column_stack([p, np.ones(len(p))]) @ S.T for p, S in ((board, A), (pixels, B)))
    zero = np.zeros_like(x)
    rows = np.concatenate([np.hstack([x, zero, -u[:, :1] * x]), np.hstack([zero, x, -u[:, 1:2] * x])])
    H = np.linalg.svd(rows)[2][-1].reshape(3, 3)
    H = np.linalg.inv(B) @ H @ A
    return np.asarray(H / np.linalg.norm(H))


def _scaling(p: Array) -> Array:
    middle = p.mean(axis=0)
    s = np.sqrt(2.0) / max(float(np.mean(np.linalg.norm(p - middle, axis=1))), 1e-300)
    return np.array([[s, 0.0, -s * middle[0]], [0.0, s, -s * middle[1]], [0.0, 0.0, 1.0]])


def intrinsics_from(H: Array, size: float) -> Array:
    """The camera's matrix (3, 3) without skew from homographies (N, 3, 3): h₁ᵀ W h₂ = 0, h₁ᵀ W h₁ = h₂ᵀ W h₂; `size` of an image."""
    S = np.diag([1.0 / size, 1.0 / size, 1.0])
    G = S @ H
    G = G / np.linalg.norm(G, axis=(1, 2), keepdims=True)
    rows = []
    for h in G:
        a, b = h[:, 0], h[:, 1]
        rows += [_pair(a, b), _pair(a, a) - _pair(b, b)]
    w = np.linalg.svd(np.array(rows))[2][-1]
    xx, yy, xz, yz, zz = w  # W = [[xx, 0, xz], [0, yy, yz], [xz, yz, zz]]
    if xx < 0:
        xx, yy, xz, yz, zz = -w
    centre = np.array([-xz / xx, -yz / yy]) if xx > 0 and yy > 0 else np.zeros(2)
    scale = zz - xz**2 / xx - yz**2 / yy if xx > 0 and yy > 0 else -1.0
    if not scale > 0:
        raise CoadjointError(
            "corners: the camera's matrix cannot be found from these images; turn the board or camera about several axes, or give camera=."
        )
    f = np.sqrt(scale / np.array([xx, yy]))
    return np.asarray(np.linalg.inv(S) @ np.array([[f[0], 0, centre[0]], [0, f[1], centre[1]], [0, 0, 1.0]]))


def _pair(a: Array, b: Array) -> Array:
    return np.array([a[0] * b[0], a[1] * b[1], a[0] * b[2] + a[2] * b[0], a[1] * b[2] + a[2] * b[1], a[2] * b[2]])


def board_pose(H: Array, matrix: Array) -> Array:
    """The board's pose (4, 4) in the camera's frame."""
    M = np.linalg.inv(matrix) @ H
    M = M / (0.5 * (np.linalg.norm(M[:, 0]) + np.linalg.norm(M[:, 1])))
    M = M if M[2, 2] > 0 else -M
    R = nearest_rotation(np.column_stack([M[:, 0], M[:, 1], np.cross(M[:, 0], M[:, 1])]))
    return np.array(se3.pose(R, M[:, 2]))


def first_guess(corners: Array, T: Array, n: int, board: Any, camera: Any, mounted: str) -> tuple[Corners, Array]:
    """The corners with first guesses of hand-eye pose and camera, and the base's, for nominal poses T of the frame."""
    if corners.ndim != 3 or corners.shape[2] != 2 or corners.shape[1] < 4:
        raise ShapeError(f"corners has shape {corners.shape}; expected ({n}, k, 2), the pixels of at least four corners.")
    points = _board(board, corners.shape[1])
    H = np.array([homography(points[:, :2], u) for u in corners])
    matrix = _matrix(camera) if camera is not None else intrinsics_from(H, float(np.abs(corners).max()))
    there = np.array([board_pose(h, matrix) for h in H])
    measured = se3.inverse(there) if mounted == "hand" else there
    base, tool = base_from_poses(T, np.asarray(measured))
    intrinsics = np.array([matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2], 0.0, 0.0])
    return Corners(corners, points, tool, intrinsics, mounted == "hand", camera is not None, float(matrix[0, 0])), base


def _board(board: Any, count: int) -> Array:
    if board is None:
        raise CoadjointError("corners are given without board=: the places (k, 2) of the corners on the board, in metres.")
    points = np.asarray(unmasked(board), dtype=float)
    if points.shape not in ((count, 2), (count, 3)) or not np.isfinite(points).all():
        raise ShapeError(f"board has shape {points.shape}; expected ({count}, 2), a row for each corner.")
    if points.shape[1] == 2:
        points = np.column_stack([points, np.zeros(count)])
    if np.abs(points[:, 2]).max() > 1e-9:
        raise CoadjointError("board is not flat: expected corners in the plane z = 0.")
    if np.linalg.svd(points[:, :2] - points[:, :2].mean(axis=0), compute_uv=False)[1] < 1e-9:
        raise CoadjointError("the corners of the board lie on a line.")
    return points


def _matrix(camera: Any) -> Array:
    matrix = np.asarray(unmasked(camera), dtype=float)
    if matrix.shape != (3, 3) or not (matrix[0, 0] > 0 and matrix[1, 1] > 0) or abs(matrix[0, 1]) > 1e-6 * matrix[0, 0]:
        raise CoadjointError(f"camera is {short(camera)}; expected the matrix [[fx, 0, cx], [0, fy, cy], [0, 0, 1]] in pixels.")
    return matrix
