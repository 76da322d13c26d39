"""Films of a motion: the robot as a stick figure, from joint to joint."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..errors import CoadjointError
from ..files import check_output, replacing
from ..kinematics import forward_kinematics
from ..motion.trajectory import Trajectory
from ..robot.robot import Robot
from .film import Film
from .plots import check_drawing

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
    """The lines of the figure (..., lines, 2, 3): from joint to joint, then from last links to their ends.

    The first n_links lines end at the joints. A last link ends at the frames on it; one without frames ends at its centre of mass.
    """
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
        if not ends and mass > 0:
            ends = [np.asarray(robot.inertias[i, 1:4]) / mass]
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
    path: str | Path | None,
    trajectory: Trajectory,
    *,
    frames_per_second: float = 25.0,
    speed: float = 1.0,
    report: Callable[[float], None] | None = None,
) -> Film:
    """The film of a motion, `speed` times as fast as real time; notebooks show it. It is written to `path`, atomically, if that is given;
    `report` is called with the completed fraction.
    """
    extension = ".html" if path is None else check_animation(path)
    if path is not None:
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
    robot = trajectory.robot
    film = Film(robot.name, robot.n_links, sticks(robot, trajectory(time)[0]), time, frames_per_second)
    if path is not None:
        with replacing(path) as part:
            film.write(part, extension, report)
    return film
