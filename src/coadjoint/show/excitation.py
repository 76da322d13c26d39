"""The figure of an exciting motion: positions, velocities and torques as parts of their limits."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..identification.excitation import Excitation
from ..robot import text
from .plots import check_figure, overlay, save, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_excitation(path: str | Path, motion: Excitation) -> None:
    """Draw a designed motion to a file, which appears whole or not at all: .png, .svg, .pdf or .html."""
    check_figure(path)
    save(path, excitation_figure(motion), f"{motion.robot.name}: exciting motion", escape(str(motion)), text.html(motion.robot))


def excitation_figure(motion: Excitation) -> Figure:
    """Three panels over time; limits are at ±1."""
    from matplotlib.figure import Figure

    L, robot = motion.limits, motion.robot
    middle, half = 0.5 * (L.upper + L.lower), 0.5 * (L.upper - L.lower)
    effort = np.where(np.isfinite(L.effort), L.effort, np.abs(motion.tau).max(0).clip(1e-12))
    panels = [
        ((motion.q - middle) / half, robot.q_names, "position, from the lower limit (-1) to the upper (1)"),
        (motion.v / L.velocity, robot.v_names, "velocity / limit"),
        (motion.tau / effort, robot.v_names, "torque / limit (or largest)"),
    ]
    with style():
        figure = Figure(figsize=(11, 8), layout="constrained")
        for k, (values, names, title) in enumerate(panels):
            axes = figure.add_subplot(3, 1, k + 1)
            overlay(axes, motion.time, values, names, title)
            for y in (-1, 1):
                axes.axhline(y, color="0.5", linewidth=0.8, linestyle="--")
        axes.set_xlabel("time [s]")
        figure.suptitle(f"{robot.name}: exciting motion", x=0.01, ha="left", fontsize=12, fontweight="bold")
    return figure
