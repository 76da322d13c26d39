"""The figure of an optimal motion: the robot on its way, positions, joint forces against their limits, and the iterations."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..optimal import OptimalMotion
from ..optimal.clearance import Clearances
from .animation import sticks
from .plots import check_figure, in_units, overlay, overlay_forces, save, style
from .portrait import capsule_faces, fill

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_optimal(path: str | Path, motion: OptimalMotion) -> None:
    """Draw an optimal motion to a file: .png, .svg, .pdf or .html."""
    check_figure(path)
    save(path, optimal_figure(motion), f"{motion.robot.name}: optimal motion", escape(str(motion)))


def optimal_figure(motion: OptimalMotion) -> Figure:
    """The robot on its way between obstacles; positions, joint forces and distances over time; cost and errors over iterations."""
    from matplotlib.figure import Figure

    robot, time = motion.robot, motion.time
    with style():
        figure = Figure(figsize=(15, 9), layout="constrained")
        left, right = figure.subfigures(1, 2, width_ratios=(2, 1))
        count = 3 + np.isfinite(motion.clearance)
        upper, middle, *nearness, lower = (left.add_subplot(count, 1, k + 1) for k in range(count))
        _way(right, motion)
        for axes in nearness:
            _distances(axes, motion)
        overlay(upper, time, motion.q, robot.q_names, in_units(robot, "position"))
        overlay_forces(middle, time, robot, motion.tau)
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


SHOWN = 9
"""Configurations that are drawn on the way."""


def _clearances(motion: OptimalMotion) -> Clearances | None:
    if motion.conditions is None:
        return None
    return next((rows for rows in motion.conditions.problem.limits if isinstance(rows, Clearances)), None)


def _way(figure: Any, motion: OptimalMotion) -> None:
    """The robot as sticks at some times, from light to dark, and what stands still as surfaces."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    axes: Any = figure.add_subplot(projection="3d")
    lines = sticks(motion.robot, motion(np.linspace(0.0, motion.duration, SHOWN))[0])
    for k, one in enumerate(lines):
        for line in one:
            axes.plot(*line.T, color="#1f4e79", alpha=0.2 + 0.8 * k / (SHOWN - 1), linewidth=2.0, solid_capstyle="round")
    points = [lines.reshape(-1, 3)]
    rows = _clearances(motion)
    bodies = None if rows is None else rows.bodies
    for link, ends, radius in () if bodies is None else zip(bodies.links, bodies.ends, bodies.radii, strict=True):
        if link >= 0:
            continue
        faces = capsule_faces(ends, float(radius))
        axes.add_collection3d(Poly3DCollection(faces, facecolors="#c0392b", edgecolors="none", alpha=0.25))
        points.append(faces.reshape(-1, 3))
    fill(axes, np.concatenate(points))
    axes.set_title("the motion, from light to dark")


def _distances(axes: Any, motion: OptimalMotion) -> None:
    """The least distance of every moving body over time."""
    rows = _clearances(motion)
    if rows is None:
        return
    value = rows.gaps(motion.q).value
    for body in dict.fromkeys(rows.bodies.pairs[:, 0].tolist()):
        axes.plot(motion.time, value[:, rows.bodies.pairs[:, 0] == body].min(1), label=rows.bodies.names[body])
    axes.axhline(float(rows.lower[0]), color="C3", linestyle=(0, (5, 3)), linewidth=1.0)
    axes.set_title("distance from what is nearest  [m]")
    axes.legend(fontsize=7, ncols=4)
    axes.margins(x=0.01)
