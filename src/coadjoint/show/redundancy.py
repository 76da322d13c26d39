"""The figure of a robot's redundancy: a task follows a closed path, by the horizontal lift and by the pseudoinverse.

from coadjoint.show.redundancy import draw_redundancy, redundancy
draw_redundancy("panda.png", redundancy(robot, "tip"))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dynamics.composite import mass_matrix
from ..errors import CoadjointError
from ..kinematics.paths import Path, circle_path
from ..kinematics.poses import pose
from ..redundancy import (
    SingularTaskError,
    Submersion,
    Track,
    ellipsoid,
    follow,
    split_velocity,
    submersion,
)
from ..redundancy.lift import dexterity
from ..redundancy.task import ALL, Task, has_fibres
from ..robot import text
from ..robot.robot import Robot
from .plots import check_figure, colours, save, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LIFT, PSEUDO = "#0b6e4f", "#c0392b"
ROWS = (ALL, (3, 4, 5), (2, 3, 4), (3, 4), (3, 5), (4, 5))
"""Tasks to choose from, the largest first: the pose, the position, the planar pose, the position in a plane."""
DURATION = 10.0


def suggest(robot: Robot, frame: str | None = None, rows: Sequence[int] | None = None) -> Task:
    """The task of a frame ("tip", or the last one) with the most rows that the robot can do and has freedoms to spare for."""
    names = robot.frame_names
    frame = frame if frame is not None else "tip" if "tip" in names else names[-1]
    robot.frame(frame)
    if rows is not None:
        task = Task(frame, tuple(rows))
        if robot.nv <= task.size:
            raise CoadjointError(
                f"robot {robot.name!r} has {robot.nv} freedoms and task {task} {task.size} rows: it is not redundant."
            )
        return task
    q = robot.random(0, 64)
    for choice in ROWS:
        task = Task(frame, choice)
        if task.size < robot.nv and np.median(dexterity(robot, q, task)) > 1e-3 and has_fibres(robot, task):
            return task
    raise CoadjointError(
        f"robot {robot.name!r} with {robot.nv} freedoms is not redundant for frame {frame!r}; choose --rows or --frame."
    )


@dataclass(frozen=True)
class Redundancy:
    """The data of the figure."""

    robot: Robot
    task: Task
    start: np.ndarray
    path: Path
    tracks: tuple[list[Track], list[Track]]
    """Loop after loop, by the lift and by the pseudoinverse."""
    split: np.ndarray
    """(2, nv): the share of kinetic energy that is horizontal and vertical, of each joint moving alone, at the start."""
    report: Submersion

    @property
    def drifts(self) -> np.ndarray:
        """(2, loops + 1): how far from the start, in √⟨dq, dq⟩ of kinetic energy, after each loop."""
        M = mass_matrix(self.robot, self.start)
        ends = [[track.q[-1] for track in tracks] for tracks in self.tracks]
        away = [[np.zeros(self.robot.nv), *(self.robot.difference(self.start, q) for q in own)] for own in ends]
        result: np.ndarray = np.sqrt(np.einsum("kli,ij,klj->kl", away, M, away))
        return result


def redundancy(
    robot: Robot,
    frame: str | None = None,
    rows: Sequence[int] | None = None,
    start: Any = None,
    loops: int = 3,
    radius: float | None = None,
) -> Redundancy:
    """Follow a circle `loops` times from the configuration `start` (nq,), a dexterous one if None, and collect the data of the
    figure.
    """
    if loops < 1:
        raise CoadjointError(f"loops is {loops}; expected 1 or more.")
    task = suggest(robot, frame, rows)
    random = robot.random(0, 256)
    q = random[int(np.argmax(dexterity(robot, random, task)))] if start is None else np.asarray(start, dtype=float)
    T = pose(robot, q, task.frame)
    size = radius if radius is not None else 0.1 * float(np.max(np.linalg.norm(pose(robot, random, task.frame)[:, :3, 3], axis=-1)))
    for attempt in range(5):
        path = _circle(task, T, size)
        try:
            tracks = [_loops(robot, q, path, task, inverse, loops) for inverse in ("lift", "moore-penrose")]
            break
        except SingularTaskError:
            if radius is not None or attempt == 4:
                raise
            size *= 0.5
    M, unit = mass_matrix(robot, q), np.eye(robot.nv)
    parts = split_velocity(robot, np.broadcast_to(q, (robot.nv, robot.nq)), unit, task)
    split = np.array([np.einsum("ki,ij,kj->k", x, M, x) for x in parts]) / np.diag(M)
    return Redundancy(robot, task, q, path, (tracks[0], tracks[1]), split, submersion(robot, task))


def _circle(task: Task, T: np.ndarray, radius: float) -> Path:
    """A circle through the frame's origin in a plane that the task can move in."""
    moving = [k - 3 for k in task.rows if k > 2]
    if len(moving) < 2:
        raise CoadjointError(f"task {task} does not move the frame's origin in a plane; choose two or three of the rows 3, 4, 5.")
    first, second = T[:3, moving[0]], T[:3, moving[1]]
    return circle_path(T, T[:3, 3] + radius * first, np.cross(first, second), duration=DURATION)


def _loops(robot: Robot, q: np.ndarray, path: Path, task: Task, inverse: str, loops: int) -> list[Track]:
    tracks: list[Track] = []
    for _ in range(loops):
        tracks.append(follow(robot, q, path, task, inverse=inverse, points=201))
        q = tracks[-1].q[-1]
    return tracks


def draw_redundancy(path: str | FilePath, shown: Redundancy) -> None:
    """Write `redundancy_figure` to a file, atomically."""
    check_figure(path)
    robot = shown.robot
    says = f"The redundancy of <b>{escape(robot.name)}</b>, task {escape(str(shown.task))}."
    save(path, redundancy_figure(shown), f"{robot.name}: redundancy", says, text.html(robot))


def redundancy_figure(shown: Redundancy) -> Figure:
    """The split of each joint's energy, the loop followed twice, the drift loop by loop, errors, and ellipsoids."""
    from matplotlib.figure import Figure

    robot, task = shown.robot, shown.task
    with style():
        figure = Figure(figsize=(12.5, 7.2), layout="constrained")
        panels = figure.subplots(2, 3)
        _split(panels[0, 0], shown)
        _joints(panels[0, 1], shown)
        _drift(panels[0, 2], shown)
        _error(panels[1, 0], shown)
        _dexterity(panels[1, 1], shown)
        _ellipsoids(panels[1, 2], shown)
        figure.suptitle(
            f"{robot.name}: {robot.nv} freedoms for {task.size} rows of {task.frame!r}",
            x=0.01,
            ha="left",
            fontsize=12,
            fontweight="bold",
        )
    return figure


def _split(axes: Axes, shown: Redundancy) -> None:
    names = list(shown.robot.v_names)
    x = np.arange(len(names))
    axes.bar(x, shown.split[0], color=LIFT, label="horizontal: does the task")
    axes.bar(x, shown.split[1], bottom=shown.split[0], color="0.8", label="vertical: self-motion")
    axes.set_xticks(x, names, rotation=60, ha="right", fontsize=7)
    axes.set_title("kinetic energy of each joint moving alone, split")
    axes.set_ylim(0, 1.25)
    axes.legend(fontsize=7.5, frameon=False, loc="upper left", ncols=2)
    axes.grid(False, axis="x")


def _joints(axes: Axes, shown: Redundancy) -> None:
    hues = colours(shown.robot.nq)
    for tracks, line in zip(shown.tracks, ("-", ":"), strict=True):
        t = np.concatenate([track.time + k * DURATION for k, track in enumerate(tracks)])
        q = np.concatenate([track.q for track in tracks]) - shown.start
        for k in range(shown.robot.nq):
            axes.plot(t, q[:, k], line, color=hues[k], linewidth=1.1)
    axes.plot([], [], "-", color="0.3", label="lift")
    axes.plot([], [], ":", color="0.3", label="pseudoinverse")
    axes.set_title(f"joints round {len(shown.tracks[0])} circles, from the start")
    axes.set_xlabel("time [s]")
    axes.legend(fontsize=7.5, frameon=False)


def _drift(axes: Axes, shown: Redundancy) -> None:
    drifts = shown.drifts
    for own, colour, label in zip(drifts, (LIFT, PSEUDO), ("lift", "pseudoinverse"), strict=True):
        axes.plot(np.arange(drifts.shape[1]), own, "o-", color=colour, label=label)
    axes.set_title("drift along the fibre, √⟨dq, dq⟩ [√(kg m²)]")
    axes.set_xlabel("circles")
    axes.set_xticks(np.arange(drifts.shape[1]))
    axes.legend(fontsize=7.5, frameon=False)


def _error(axes: Axes, shown: Redundancy) -> None:
    for tracks, colour, label in zip(shown.tracks, (LIFT, PSEUDO), ("lift", "pseudoinverse"), strict=True):
        axes.semilogy(tracks[0].time, np.maximum(tracks[0].error, 1e-17), ".", markersize=3, color=colour, label=label)
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:.0e}")
    axes.axhline(1e-9, color="0.6", linewidth=0.8, linestyle="--")
    axes.set_title("off the path, first circle")
    axes.set_xlabel("time [s]")
    axes.legend(fontsize=7.5, frameon=False)


def _dexterity(axes: Axes, shown: Redundancy) -> None:
    for tracks, colour, label in zip(shown.tracks, (LIFT, PSEUDO), ("lift", "pseudoinverse"), strict=True):
        axes.plot(tracks[0].time, tracks[0].dexterity, color=colour, label=label)
    axes.set_ylim(bottom=0)
    axes.set_title("dexterity: 0 is singular")
    axes.set_xlabel("time [s]")
    axes.legend(fontsize=7.5, frameon=False)


def _ellipsoids(axes: Axes, shown: Redundancy) -> None:
    """Velocities of unit size, and of unit kinetic energy, in the first two moving directions of the frame, as their shadows."""
    moving = [k for k in shown.task.rows if k > 2][:2]
    turn = np.linspace(0, 2 * np.pi, 181)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    labels = (("velocity", "of unit joint velocities", PSEUDO), ("mobility", "of unit kinetic energy", LIFT))
    for kind, label, colour in labels:
        A = ellipsoid(shown.robot, shown.start, shown.task.frame, moving, kind).matrix
        outline = np.linalg.cholesky(A + 1e-15 * np.trace(A) * np.eye(2)) @ circle
        outline = outline / np.max(np.abs(outline))
        axes.plot(outline[0], outline[1], color=colour, label=label)
    axes.set_aspect("equal")
    axes.set_xlim(-1.15, 1.15)
    axes.set_ylim(-1.15, 1.5)
    axes.set_title("velocities of the frame at the start")
    axes.set_xlabel(f"v{'xyz'[moving[0] - 3]} in the frame")
    axes.set_ylabel(f"v{'xyz'[moving[1] - 3]}")
    axes.legend(fontsize=7.5, frameon=False, loc="upper right")
