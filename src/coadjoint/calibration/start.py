"""The start of a fit: base, tool, points, anchors and planes for the robot as it is described."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..lie import se3


def rotation_between(x: Array, y: Array) -> Array:
    """The rotation R that takes directions x (N, 3) nearest to y (N, 3)."""
    return nearest_rotation(y.T @ x)


def nearest_rotation(M: Array) -> Array:
    """The rotation R with the largest trace of RᵀM."""
    U, _, V = np.linalg.svd(M)
    return U @ np.diag([1.0, 1.0, np.linalg.det(U @ V)]) @ V


def base_from_points(T: Array, points: Array) -> tuple[Array, Array]:
    """Base (4, 4) and places (k, 3) from nominal poses T (N, 4, 4) of the frame and measured points (N, k, 3).

    In turn the base that takes the robot's points to the measured ones, and the places that these have on the frame, first from differences
    of configurations (the base's translation drops out), from several starts; the fit itself goes on from the best.
    """
    R, o = T[:, :3, :3], T[:, :3, 3]
    k = points.shape[1]
    best: tuple[float, Array, Array] | None = None
    rng = np.random.default_rng(0)
    size = 0.2 * float(np.linalg.norm(np.std(o, axis=0))) + 1e-9
    for turn in range(6):
        place = np.zeros((k, 3)) if turn == 0 else size * rng.normal(size=(k, 3))
        last = np.inf
        for _ in range(60):
            x = (place @ np.swapaxes(R, 1, 2) + o[:, None]).reshape(-1, 3)
            y = points.reshape(-1, 3)
            Rb = rotation_between(x - x.mean(0), y - y.mean(0))
            tb = y.mean(0) - Rb @ x.mean(0)
            local = ((points - tb) @ Rb - o[:, None]) @ R
            place = local.mean(axis=0)
            error = float(np.mean((local - place) ** 2))
            if error > 0.98 * last:
                break
            last = error
        if best is None or error < best[0]:
            best = error, np.array(se3.pose(Rb, tb)), place
        if error < 1e-3 * size**2:
            break
    assert best is not None
    return best[1], best[2]


def base_from_poses(T: Array, poses: Array) -> tuple[Array, Array]:
    """Base B and tool X with poses = B T X: in closed form, or, where axes are parallel and rotations alone do not tell B, from points."""
    size = 0.2 * float(np.linalg.norm(np.std(T[:, :3, 3], axis=0))) + 1e-9
    marks = np.concatenate([np.zeros((1, 3)), size * np.eye(3)])  # the tool's origin, and points on its axes

    def seen(x: Array) -> Array:
        return np.asarray(marks @ np.swapaxes(x[..., :3, :3], -1, -2) + x[..., None, :3, 3])

    def error(B: Array, X: Array) -> float:
        return float(np.mean((seen(B @ T @ X) - seen(poses)) ** 2))

    closed = _from_rotations(T, poses)
    if error(*closed) < (0.1 * size) ** 2:
        return closed
    base, places = base_from_points(T, seen(poses))
    R = nearest_rotation((places[1:] - places[0]).T)
    other = base, np.array(se3.pose(R, places[0]))
    return min(closed, other, key=lambda found: error(*found))


def _from_rotations(T: Array, poses: Array) -> tuple[Array, Array]:
    """Base B and tool X: rotations from R_m Y = Z R_T (Y = Xᵀ, Z = B), then translations."""
    A, F = poses[:, :3, :3], T[:, :3, :3]
    eye = np.eye(3)
    rows = [np.hstack([np.kron(a, eye), -np.kron(eye, f.T)]) for a, f in zip(A, F, strict=True)]
    null = np.linalg.svd(np.concatenate(rows))[2][-1]
    Y, Z = null[:9].reshape(3, 3), null[9:].reshape(3, 3)
    if np.linalg.det(Z) < 0:
        Y, Z = -Y, -Z
    Rb, Rx = nearest_rotation(Z), nearest_rotation(Y).T
    left = np.concatenate([np.hstack([eye, Rb @ f]) for f in F])
    right = np.concatenate([m[:3, 3] - Rb @ t[:3, 3] for m, t in zip(poses, T, strict=True)])
    x = np.linalg.lstsq(left, right, rcond=None)[0]
    return np.array(se3.pose(Rb, x[:3])), np.array(se3.pose(Rx, x[3:]))


def anchors_from_distances(T: Array, distances: Array) -> Array:
    """Anchors (k, 3) from distances (N, k) of the frame's origin: |o|² - d² = 2 oᵀc - |c|², linear in c and |c|²."""
    o = T[:, :3, 3]
    left = np.hstack([2 * o, -np.ones((len(o), 1))])
    return np.linalg.lstsq(left, np.sum(o * o, axis=1)[:, None] - distances**2, rcond=None)[0][:3].T


def planes_through(T: Array, which: Array) -> tuple[Array, Array]:
    """Normals (k, 3) and heights (k,) of the planes nearest to the frame's origins."""
    normals, heights = [], []
    for k in range(int(which.max()) + 1):
        o = T[which == k, :3, 3]
        normals.append(np.linalg.svd(o - o.mean(0))[2][-1])
        heights.append(normals[-1] @ o.mean(0))
    return np.array(normals), np.array(heights)
