"""Denavit–Hartenberg parameters to screws and back.

Rows are (θ, d, a, α) as in `robot.dh`. Two neighbouring axes have a common normal; the rows say how far one goes along and about
each axis from one normal to the next, and along and about each normal from one axis to the next. Where geometry leaves a choice:

    the sense of a normal        θ at home lies in (-90°, 90°], so that a may be negative
    parallel axes                the normal passes where the one before met the axis: d = 0
    one line                     no step at all: θ = d = a = 0
    axis of a prismatic joint    through the next turning axis where that is nearest the origin of space; else the tool's origin
    first frame, standard        on the first axis where it is nearest the origin of space, x as near as can be to that of space
    first frame, modified        z along the z axis of space
    last frame, standard         z along the z axis of the tool; the tool itself if that is the last joint's axis
    last frame, modified         x along the normal from the last axis to the z axis of the tool

What a row cannot hold is in `base`, from space to the first frame, and `tool`, from the last frame to the tool.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arguments import numbers, takes
from ..arrays import ArrayLike
from ..errors import ModelError, ShapeError
from ..lie import screw as _screw
from ..lie import se3
from ..robot.dh import check_rows, row_pose
from ..robot.link import as_pose

PARALLEL = 1e-8
"""The sine of the angle below which two axes count as parallel: the error made by that equals the rounding error of the feet of
their common normal.
"""
SAME = 1e-11
"""The distance in metres below which parallel axes are one line."""


class DH(NamedTuple):
    """A chain in Denavit–Hartenberg parameters: base · rows · tool."""

    rows: np.ndarray
    """(n, 4): θ, d, a, α at home."""
    kinds: str
    """R or P for each row."""
    base: np.ndarray
    """(4, 4): the first frame in space."""
    tool: np.ndarray
    """(4, 4): the tool in the last frame."""
    convention: str


def from_dh(
    rows: ArrayLike, convention: str = "standard", kinds: str | None = None, base: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The screws (n, 6) of the joints in the space frame and the links' frames (n, 4, 4), both at home, from rows (n, 4).

    kinds: a letter for each row, R or P; all revolute if None. base (4, 4): the frame that the first row starts from.
    The last frame times the tool is M of the product of exponentials (13). Inverse to `to_dh`.
    """
    rows, kinds = check_rows(rows, kinds, convention)
    T = np.eye(4) if base is None else as_pose(base, "base")
    screws, frames = [], []
    for row, kind in zip(rows, kinds, strict=True):
        axis = np.eye(6)[2 if kind == "R" else 5]
        after = T @ row_pose(row, convention)
        screws.append(se3.Ad_act(T if convention == "standard" else after, axis))
        frames.append(T := after)
    return np.reshape(screws, (-1, 6)), np.reshape(frames, (-1, 4, 4))


@takes(screws=numbers)
def to_dh(screws: ArrayLike, home: ArrayLike, convention: str = "standard") -> DH:
    """Denavit–Hartenberg parameters of a chain of revolute and prismatic joints.

    screws (n, 6) in the space frame and home (4, 4), the pose of the tool, both at home, as in the product of exponentials (13).
    For a robot: `to_dh(*space_screws(robot, "tip"))`. The module says how the choices left by geometry are made.
    """
    screws, home = np.asarray(screws, dtype=float), as_pose(home, "home")
    if screws.ndim != 2 or screws.shape[1] != 6:
        raise ShapeError(f"screws has shape {screws.shape}; expected (n, 6), a row for each joint.")
    check_rows(np.zeros((len(screws), 4)), None, convention)
    kinds, axes = _axes(screws, home)
    n, standard = len(kinds), convention == "standard"
    end = (home[:3, 3], home[:3, 2])
    if standard:
        point, z = axes[0] if n else end
        first = _frame(point, _across(z, np.eye(3)), z)
    else:
        first = np.eye(4)
        axes = [(first[:3, 3], first[:3, 2]), *axes]
    # From here on frames stand where a normal meets an axis, x along the normal, z along the axis.
    normal = first
    rows = np.zeros((n, 4))
    base = first
    for k, axis in enumerate(axes):
        last = k + 1 == len(axes)
        start, stop, a, alpha = _normal(normal, axis[1], end if last else axes[k + 1], home if last and standard else None)
        theta = np.arctan2(start[:3, 0] @ normal[:3, 1], start[:3, 0] @ normal[:3, 0])
        d = (start[:3, 3] - normal[:3, 3]) @ axis[1]
        if standard:
            rows[k] = theta, d, a, alpha
        elif k == 0:
            base = start
        else:
            rows[k - 1, :2] = theta, d
        if not standard and not last:
            rows[k, 2:] = a, alpha
        normal = stop if standard or not last else start
    tool = se3.inverse(normal) @ home
    return DH(rows + 0.0, kinds, base, tool, convention)


def _axes(screws: np.ndarray, home: np.ndarray) -> tuple[str, list[tuple[np.ndarray, np.ndarray]]]:
    """R or P, a point and the direction of every joint's axis."""
    lines = _screw.from_twist(screws.reshape(-1, 6))
    kinds = ""
    for i, (pitch, size) in enumerate(zip(lines.pitch, lines.magnitude, strict=True)):
        if abs(size - 1) > 1e-9 or (np.isfinite(pitch) and abs(pitch) > 1e-9):
            what = "is helical" if abs(size - 1) <= 1e-9 else "is not normalised"
            raise ModelError(
                f"screws[{i}] is {screws[i].tolist()}, which {what}; only revolute and prismatic joints have such parameters."
            )
        kinds += "R" if np.isfinite(pitch) else "P"
    axes: list[tuple[np.ndarray, np.ndarray]] = []
    point = home[:3, 3]
    for i in reversed(range(len(kinds))):
        point = lines.point[i] if kinds[i] == "R" else point
        axes = [(point, lines.direction[i]), *axes]
    return kinds, axes


def _across(z: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """The unit vector orthogonal to z that is nearest to the x axis, or to the y axis if z is along x."""
    for e in axes.T:
        x = e - (e @ z) * z
        if np.linalg.norm(x) > 1e-6:
            result: np.ndarray = x / np.linalg.norm(x)
            return result
    raise AssertionError("three axes cannot all be along one")


def _frame(point: np.ndarray, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    return se3.pose(np.stack([x, np.cross(z, x), z], axis=1), point)


def _normal(
    before: np.ndarray, z: np.ndarray, following: tuple[np.ndarray, np.ndarray], tool: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """The frames where the common normal of an axis and the following one meets them, its length a and the angle α about it.

    The axis has the direction z and goes through the origin of `before`, the frame where the last normal met it.
    """
    point, (onward, w) = before[:3, 3], following
    step, turn = onward - point, np.cross(z, w)
    sine = np.linalg.norm(turn)
    if sine > PARALLEL:
        x = turn / sine
        start = point + (np.cross(step, w) @ x / sine) * z
        stop = onward + (np.cross(step, z) @ x / sine) * w
    else:
        # Parallel: for the tool's own axis the normal passes through the tool.
        level = point if tool is None else point + (step @ z) * z
        across = step - (step @ z) * z
        start, stop = level, level + across
        x = across / np.linalg.norm(across) if np.linalg.norm(across) > SAME else np.zeros(3)
    if not x.any():
        x = before[:3, 0] if tool is None else _across(z, tool[:3, :3])
    elif x @ before[:3, 0] < -1e-12 or (abs(x @ before[:3, 0]) <= 1e-12 and x @ before[:3, 1] < 0):
        x = -x
    # Rounding is taken out of x, which must be across both axes.
    first, second = _frame(start, _across(z, x[:, None]), z), _frame(stop, _across(w, x[:, None]), w)
    return first, second, float((stop - start) @ x), float(np.arctan2(turn @ x, z @ w))
