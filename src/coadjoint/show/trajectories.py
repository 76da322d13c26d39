"""The figure of a simulated motion: positions, velocities and energies over time, with the events marked."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..motion.trajectory import Trajectory
from ..robot import text
from .plots import check_drawing, check_figure, in_units, overlay, picture, save, style, thin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKS = 60
"""The most events that are marked."""


def draw_trajectory(path: str | Path | None, trajectory: Trajectory) -> Figure:
    """The figure of a motion; written to a file, atomically, if one is given: .png, .svg, .pdf or .html."""
    if path is None:
        check_drawing("figure.png", "figures", (".png",))
        return trajectory_figure(trajectory)
    check_figure(path)
    robot = trajectory.robot
    below = "".join(f"<div>{escape(str(x))}</div>" for x in trajectory.happenings[:MARKS])
    figure = trajectory_figure(trajectory)
    save(path, figure, f"{robot.name}: motion", escape(str(trajectory)), below + text.html(robot))
    return figure


def trajectory_figure(trajectory: Trajectory) -> Figure:
    """The figure: positions, velocities and energies over time."""
    robot, time = trajectory.robot, trajectory.time
    kinetic, potential = trajectory.kinetic_energy, trajectory.potential_energy
    with style():
        figure = picture(figsize=(11, 8), layout="constrained")
        upper, middle, lower = (figure.add_subplot(3, 1, k) for k in (1, 2, 3))
        overlay(upper, time, trajectory.q, robot.q_names, in_units(robot, "position"))
        overlay(middle, time, trajectory.v, robot.v_names, in_units(robot, "velocity"))
        for name, values, width in (("kinetic", kinetic, 1.0), ("potential", potential, 1.0), ("total", kinetic + potential, 1.8)):
            lower.plot(*thin(time, values), label=name, linewidth=width)
        lower.set_title("energy  [J]")
        lower.margins(x=0.01)
        lower.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        lower.set_xlabel("time [s]")
        for happening in trajectory.happenings[:MARKS]:
            for axes in (upper, middle, lower):
                axes.axvline(float(np.clip(happening.time, time[0], time[-1])), color="0.7", linewidth=0.7, zorder=0)
        figure.suptitle(f"{robot.name}: motion", x=0.01, ha="left", fontsize=12, fontweight="bold")
    return figure
