"""The figure of an optimal motion: positions, joint forces against their limits, and the iterations."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..optimal import OptimalMotion
from .plots import check_figure, overlay, save, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_optimal(path: str | Path, motion: OptimalMotion) -> None:
    """Draw an optimal motion to a file: .png, .svg, .pdf or .html."""
    check_figure(path)
    save(path, optimal_figure(motion), f"{motion.robot.name}: optimal motion", escape(str(motion)))


def optimal_figure(motion: OptimalMotion) -> Figure:
    """Positions and joint forces over time; the cost and the violation of the conditions of first order over iterations."""
    from matplotlib.figure import Figure

    robot, time, limits = motion.robot, motion.time, motion.robot.effort_limit
    with style():
        figure = Figure(figsize=(11, 9), layout="constrained")
        upper, middle, lower = (figure.add_subplot(3, 1, k) for k in (1, 2, 3))
        overlay(upper, time, motion.q, robot.q_names, "position  [rad, m]")
        if np.isfinite(limits).all():
            overlay(middle, time, motion.tau / limits, robot.v_names, "joint force  [part of its limit]")
            for sign in (1, -1):
                middle.axhline(sign, color="C3", linestyle=(0, (5, 3)), linewidth=1.0)
        else:
            overlay(middle, time, motion.tau, robot.v_names, "joint force  [N m, N]")
        middle.set_xlabel("time [s]")
        steps = np.arange(len(motion.table))
        lower.plot(steps, [row["cost"] for row in motion.table], color="0.2")
        lower.set_title("cost (dark), violation of the conditions of first order (dashed)")
        lower.set_xlabel("iteration")
        lower.margins(x=0.01)
        errors = lower.twinx()
        errors.semilogy(steps, [max(row["error"], 1e-16) for row in motion.table], color="C1", linestyle=(0, (5, 3)))
        errors.yaxis.set_major_formatter(lambda x, _: f"{x:.0e}")
        title = f"{robot.name}: {motion.duration:.4g} s, cost {motion.cost:.6g}" + ("" if motion.converged else ", not optimal")
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    return figure
