"""Measured and computed joint forces drawn, a panel for each joint."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..motion.states import force_units
from .plots import check_figure, save, style, thin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURED, COMPUTED, RESIDUAL = "#4477aa", "#cc6677", "0.6"


def draw_comparison(path: str | Path, comparison: Any) -> None:
    """Write the figure to a file, which appears whole or not at all."""
    check_figure(path)
    name = comparison.robot.name
    says = f"Measured and computed joint forces of <b>{escape(name)}</b>: relative error {100 * comparison.total:.2f} %."
    save(path, comparison_figure(comparison), f"{name}: measured and computed", says, f"<pre>{escape(str(comparison))}</pre>")


def comparison_figure(comparison: Any) -> Figure:
    """The measured and the computed force of every joint, and their difference below."""
    from matplotlib.figure import Figure

    robot, x = comparison.robot, comparison.time
    units = force_units(robot)
    across = min(robot.nv, 2)
    rows = -(-robot.nv // across)
    with style():
        figure = Figure(figsize=(12, 0.8 + 1.9 * rows), layout="constrained")
        grid = figure.add_gridspec(rows, across)
        for k, name in enumerate(robot.v_names):
            axes = figure.add_subplot(grid[k // across, k % across])
            axes.plot(*thin(x, comparison.residuals[:, k]), color=RESIDUAL, linewidth=0.8, label="difference")
            axes.plot(*thin(x, comparison.measured[:, k]), color=MEASURED, linewidth=1.0, label="measured")
            axes.plot(*thin(x, comparison.computed[:, k]), color=COMPUTED, linewidth=1.0, label="computed")
            axes.set_title(f"{name}  [{units[k]}]   rms difference {comparison.rms[k]:.3g}, {100 * comparison.relative[k]:.1f} %")
            if k == 0:
                axes.legend(loc="upper right", fontsize=7, frameon=False)
            if k + across >= robot.nv:
                axes.set_xlabel("time [s]")
        figure.suptitle(f"{robot.name}: measured and computed joint forces", x=0.01, ha="left", fontsize=12, fontweight="bold")
    return figure
