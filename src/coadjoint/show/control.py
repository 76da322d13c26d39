"""The figure of a controlled motion: errors, joint forces against their limits, and the Lyapunov function."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..control import Controller, verify
from ..motion.trajectory import Trajectory
from .plots import check_figure, in_units, overlay, overlay_forces, save, style, thin

if TYPE_CHECKING:
    from matplotlib.figure import Figure


UNITS = {"pd": "  [J]", "pd_plus": "  [J]", "passivity_based": "  [J]", "computed_torque": "  [1/s²]"}
"""Units of the Lyapunov functions; angles have none."""


def draw_control(path: str | Path, controller: Controller, motion: Trajectory, errors: np.ndarray) -> None:
    """Draw a controlled motion with its errors (N, nv) to a file: .png, .svg, .pdf or .html."""
    check_figure(path)
    says = escape(f"{controller.name} of {motion.robot.name}. {verify(controller, motion)}")
    save(path, control_figure(controller, motion, errors), f"{motion.robot.name}: {controller.name}", says)


def control_figure(controller: Controller, motion: Trajectory, errors: np.ndarray) -> Figure:
    """Three panels over time."""
    from matplotlib.figure import Figure

    robot, time = motion.robot, motion.time
    with style():
        figure = Figure(figsize=(11, 8), layout="constrained")
        upper, middle, lower = (figure.add_subplot(3, 1, k) for k in (1, 2, 3))
        overlay(upper, time, errors, robot.v_names, in_units(robot, "position").replace("position", "error"))
        overlay_forces(middle, time, robot, motion.tau)
        V = verify(controller, motion).lyapunov
        lower.semilogy(*thin(time, np.where(V > 0, V, np.nan)), color="0.2")
        lower.yaxis.set_major_formatter(lambda x, _: f"{x:.0e}")
        lower.set_title(f"Lyapunov function{UNITS.get(controller.name, '')}")
        lower.margins(x=0.01)
        lower.set_xlabel("time [s]")
        title = f"{robot.name}: {controller.name.replace('_', ' ')}"
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    return figure
