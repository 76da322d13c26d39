"""A robot in one configuration: its visuals where they are found, its joints as joints, its frames as small axes."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kinematics import forward_kinematics
from ..robot.robot import Robot
from ..robot.solids import solid
from ..words import printable
from .animation import sticks
from .plots import check_figure, picture, save, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRIANGLES = 12_000
"""The number of triangles of visuals that a figure shows."""

GREY = (0.72, 0.75, 0.79, 1.0)
LIGHT = np.array([0.35, -0.5, 0.79])


def draw_robot(robot: Robot, q: Any = None, path: str | Path | None = None) -> Figure:
    """The figure of the robot at q (nq,), its neutral configuration if None; written to `path` as well if that is given."""
    if path is not None:
        check_figure(path)
    q = robot.neutral() if q is None else np.asarray(q, dtype=float)
    poses = np.concatenate([forward_kinematics(robot, q), np.eye(4)[None]])  # the last one is the base's
    lines = sticks(robot, q) if robot.n_links else np.zeros((0, 2, 3))
    faces, colours = _surface(robot, poses)
    with style():
        figure = picture(figsize=(6, 6))
        axes: Any = figure.add_axes((0.0, 0.0, 1.0, 1.0), projection="3d", computed_zorder=False)
        if len(faces):
            from mpl_toolkits.mplot3d.art3d import Poly3DCollection

            axes.add_collection3d(Poly3DCollection(faces, facecolors=colours, edgecolors=colours, linewidths=0.1))
        _draw_sticks(axes, lines, robot.n_links, bool(len(faces)))
        fill(axes, np.concatenate([faces.reshape(-1, 3), lines.reshape(-1, 3), np.zeros((1, 3))]))
        figure.suptitle(printable(robot.name), x=0.02, y=0.98, ha="left", va="top", fontsize=12, fontweight="bold")
    if path is not None:
        save(path, figure, robot.name, escape(f"{printable(robot.name)} at one configuration."))
    return figure


def _surface(robot: Robot, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Triangles (n, 3, 3) of the visuals in space, and their colours (n, 4), lighter where they face the light."""
    faces, colours = [np.zeros((0, 3, 3))], [np.zeros((0, 4))]
    for part in robot.packed_meshes(TRIANGLES).parts:
        T = poses[robot.link_index(part.link)]
        corners = (part.low + part.step * part.vertices) @ T[:3, :3].T + T[:3, 3]
        triangles = corners[part.faces]
        normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
        normals /= np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), 1e-300)
        shade = 0.55 + 0.45 * np.abs(normals @ LIGHT)
        colour = np.tile(np.array(part.colour or GREY), (len(triangles), 1))
        colour[:, :3] *= shade[:, None]
        faces.append(triangles)
        colours.append(colour)
    return np.concatenate(faces), np.concatenate(colours)


def _draw_sticks(axes: Any, lines: np.ndarray, joints: int, thin: bool) -> None:
    for line in lines:
        axes.plot(*line.T, color="#1f4e79", linewidth=1.2 if thin else 3.5, solid_capstyle="round", zorder=10)
    if joints:
        face = {"markerfacecolor": "white", "markeredgecolor": "#c0392b", "markeredgewidth": 1.5}
        axes.plot(*lines[:joints, 1].T, "o", markersize=5 if thin else 8, zorder=20, **face)


def capsule_faces(ends: np.ndarray, radius: float) -> np.ndarray:
    """Triangles (n, 3, 3) of the capsule around the segment between ends (2, 3)."""
    length = float(np.linalg.norm(ends[1] - ends[0]))
    vertices, faces = solid("capsule", (radius, length))
    z = (ends[1] - ends[0]) / length if length > 0 else np.array([0.0, 0.0, 1.0])
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    return np.asarray((vertices @ np.array([x, np.cross(z, x), z]) + ends.mean(0))[faces])


def fill(axes: Any, points: np.ndarray) -> None:
    """The limits and the proportions with which the points fill the figure."""
    low, high = points.min(axis=0), points.max(axis=0)
    half = np.maximum((high - low) / 2, 0.05 * max(float((high - low).max()), 1e-3))
    middle = (low + high) / 2
    for k, axis in enumerate("xyz"):
        getattr(axes, f"set_{axis}lim")(middle[k] - half[k], middle[k] + half[k])
        if half[k] < 0.25 * half.max():  # no room for numbers
            getattr(axes, f"set_{axis}ticks")([])
            continue
        getattr(axes, f"set_{axis}label")(f"{axis} [m]", fontsize=8, labelpad=8)
        getattr(axes, f"{axis}axis").get_major_locator().set_params(nbins=round(7 * half[k] / half.max()))
    axes.set_box_aspect(half, zoom=0.88)
    axes.view_init(elev=22, azim=-60)
