"""Animations of a motion: the robot as a stick figure, from joint to joint."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CoadjointError
from ..files import check_output, replacing
from ..kinematics import forward_kinematics
from ..motion.trajectory import Trajectory
from ..robot.robot import Robot
from .plots import check_drawing, style

FORMATS = (".gif", ".html", ".mp4")
FRAMES = 1500
"""The most frames of an animation: a minute at 25 per second."""


def check_animation(path: str | Path) -> str:
    """The extension of an animation's file name, or an error if that format cannot be written."""
    extension = check_drawing(path, "animations", FORMATS)
    if extension == ".mp4" and shutil.which("ffmpeg") is None:
        raise CoadjointError(f"{path}: .mp4 needs the program ffmpeg, which is not installed; .gif and .html do not.")
    return extension


def sticks(robot: Robot, q: np.ndarray) -> np.ndarray:
    """The lines of the figure (..., lines, 2, 3): from joint to joint, and to the centres of mass and the frames of last links."""
    poses = forward_kinematics(robot, q)
    points = np.empty((*poses.shape[:-2], 3))
    for i in range(robot.n_links):
        points[..., i, :] = poses[..., i, :3, :3] @ _joint_point(robot, i) + poses[..., i, :3, 3]
    base = np.zeros((*poses.shape[:-3], 3))
    lines = [(base if parent < 0 else points[..., parent, :], points[..., i, :]) for i, parent in enumerate(robot.parents)]
    for i in range(robot.n_links):
        if i in robot.parents:
            continue
        ends = [frame.pose[:3, 3] for frame in robot.frames if frame.link == robot.links[i].name]
        mass = float(robot.inertias[i, 0])
        ends += [np.asarray(robot.inertias[i, 1:4]) / mass] if mass > 0 else []
        for end in ends:
            lines.append((points[..., i, :], poses[..., i, :3, :3] @ end + poses[..., i, :3, 3]))
    return np.stack([np.stack(line, axis=-2) for line in lines], axis=-3)


def _joint_point(robot: Robot, i: int) -> np.ndarray:
    """A point of link i on the axis of its joint, nearest to the origin of its frame."""
    screws = np.asarray(robot.joint_screws(i))
    if len(screws) == 1 and np.any(screws[0, :3]):
        w, v = screws[0, :3], screws[0, 3:]
        result: np.ndarray = np.cross(w, v) / (w @ w)
        return result
    return np.zeros(3)


def animate(
    path: str | Path,
    trajectory: Trajectory,
    *,
    frames_per_second: float = 25.0,
    speed: float = 1.0,
    report: Callable[[float], None] | None = None,
) -> None:
    """Write an animation of the motion, `speed` times as fast as real time; the file is written atomically. `report` is called with
    the completed fraction.
    """
    extension = check_animation(path)
    check_output(path)
    for name, x in (("frames_per_second", frames_per_second), ("speed", speed)):
        if not (np.isfinite(x) and x > 0):
            raise CoadjointError(f"{name} is {x!r}; expected a positive number.")
    duration = (trajectory.end - trajectory.time[0]) / speed
    count = round(duration * frames_per_second) + 1
    if count > FRAMES:
        raise CoadjointError(
            f"an animation of {duration:.0f} s has {count} frames; at most {FRAMES} are written. "
            f"Take a speed of {speed * count / FRAMES:.2g} or more."
        )
    time = np.linspace(trajectory.time[0], trajectory.end, max(count, 2))
    animation = _animation(trajectory.robot, sticks(trajectory.robot, trajectory(time)[0]), time, frames_per_second, report)
    with replacing(path) as part, style():
        if extension == ".html":
            part.write_text(animation.to_jshtml(fps=frames_per_second), encoding="utf-8")
        else:
            animation.save(part, writer="pillow" if extension == ".gif" else "ffmpeg", fps=frames_per_second)


def _animation(
    robot: Robot, lines: np.ndarray, time: np.ndarray, frames_per_second: float, report: Callable[[float], None] | None
) -> Any:
    """Write the frames; in 2D if the motion of the robot is planar."""
    from matplotlib.animation import FuncAnimation
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    low, high = lines.reshape(-1, 3).min(0), lines.reshape(-1, 3).max(0)
    extent = high - low
    flat = [k for k in range(3) if extent[k] <= 1e-6 * extent.max()]
    shown = [k for k in range(3) if k != flat[0]] if flat else [0, 1, 2]
    middle, half = (low + high) / 2, 0.55 * max(float(extent.max()), 1e-3)
    with style():
        figure = Figure(figsize=(6, 6), dpi=80)
        FigureCanvasAgg(figure)
        axes: Any = figure.add_subplot(projection=None if flat else "3d")
        axes.set_aspect("equal")
        for k, axis in zip(shown, "xyz", strict=False):
            getattr(axes, f"set_{axis}lim")(middle[k] - half, middle[k] + half)
            getattr(axes, f"set_{axis}label")(f"{'xyz'[k]} [m]")
        drawn = [axes.plot(*line[:, shown].T, "-o", color="#1f4e79", linewidth=3, markersize=5)[0] for line in lines[0]]
        title = axes.set_title("")

    def draw(number: int) -> list[Any]:
        for artist, line in zip(drawn, lines[number], strict=True):
            artist.set_data(*line[:, shown[:2]].T)
            if not flat:
                artist.set_3d_properties(line[:, 2])
        title.set_text(f"{robot.name}  t = {time[number]:.2f} s")
        if report is not None:
            report((number + 1) / len(time))
        return [*drawn, title]

    return FuncAnimation(figure, draw, frames=len(time), interval=1000 / frames_per_second, blit=False)
