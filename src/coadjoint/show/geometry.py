"""The geometry of a robot drawn over two of its coordinates: curvature maps, geodesics beside straight motions, geodesic spread.

from coadjoint.show.geometry import draw_geometry, geometry
draw_geometry("puma.png", geometry(robot, ("joint2", "joint3")))
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dynamics.composite import mass_matrix
from ..robot import text
from ..robot.robot import Robot
from .plots import check_figure, save, style
from .views import (
    Comparison,
    Coordinate,
    CurvatureMap,
    Geometry,
    Spread,
    comparison,
    conjugate,
    curvature_map,
    geometry,
    pair,
    spread,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "Comparison",
    "CurvatureMap",
    "Geometry",
    "Spread",
    "comparison",
    "curvature_map",
    "draw_geometry",
    "geometry",
    "geometry_figure",
    "pair",
    "spread",
]

GEODESIC, STRAIGHT = "#0b6e4f", "#c0392b"


def draw_geometry(path: str | Path, shown: Geometry) -> None:
    """Write `geometry_figure` to a file, atomically."""
    check_figure(path)
    robot = shown.robot
    save(
        path,
        geometry_figure(shown),
        f"{robot.name}: geometry",
        f"The geometry of <b>{escape(robot.name)}</b>.",
        text.html(robot),
    )


def geometry_figure(shown: Geometry) -> Figure:
    """Curvature above, a geodesic beside the straight motion below, and how geodesics spread to the right."""
    from matplotlib.figure import Figure

    robot, (a, b), field = shown.robot, shown.pair, shown.curvature
    with style():
        figure = Figure(figsize=(12.5, 7.6), layout="constrained")
        panels = figure.subplots(2, 3)
        _map(figure, panels[0, 0], field, field.sectional, f"sectional curvature of {a.name}, {b.name}", a, b)
        if robot.nv > 2:
            _map(figure, panels[0, 1], field, field.scalar, "scalar curvature", a, b)
        else:
            _ellipses(panels[0, 1], robot, field, a, b)
        _fan(panels[0, 2], panels[1, 2], shown)
        _motions(panels[1, 0], panels[1, 1], shown)
        others = "" if robot.nv == 2 else ", the other joints in the middle of their limits"
        figure.suptitle(
            f"{robot.name}: geometry over {a.name} and {b.name}{others}", x=0.01, ha="left", fontsize=12, fontweight="bold"
        )
    return figure


def _labels(axes: Axes, a: Coordinate, b: Coordinate) -> None:
    axes.set_xlabel(f"{a.name} [{a.unit}]")
    axes.set_ylabel(f"{b.name} [{b.unit}]")
    axes.grid(False)


def _map(figure: Figure, axes: Axes, field: CurvatureMap, values: np.ndarray, title: str, a: Coordinate, b: Coordinate) -> None:
    """Values over two coordinates, red for positive, blue for negative; outliers of the scale are clipped."""
    size = np.abs(values[np.isfinite(values)])
    limit = float(np.percentile(size, 98)) if size.size else 0.0
    top = float(np.max(size, initial=0.0))
    limit = limit or top
    flat = limit <= 1e-300
    scale: Any = {"cmap": "RdBu_r", "vmin": -limit or -1.0, "vmax": limit or 1.0, "rasterized": True}
    scale["shading"] = "gouraud" if np.isfinite(values).all() else "nearest"  # the first is smooth, the second can leave points out
    image = axes.pcolormesh(field.x, field.y, values, **scale)
    extend = "both" if top > 1.001 * limit else "neither"
    bar = figure.colorbar(image, ax=axes, extend=extend, pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    bar.ax.set_title("1/(kg m²)" if {a.unit, b.unit} == {"rad"} else "1/metric", fontsize=7.5)
    if not flat and np.nanmin(values) < -1e-9 * limit and np.nanmax(values) > 1e-9 * limit:
        axes.contour(field.x, field.y, values, levels=[0.0], colors="0.25", linewidths=0.8)
    axes.set_title(title if not flat else f"{title}: none")
    _labels(axes, a, b)


def _ellipses(axes: Axes, robot: Robot, field: CurvatureMap, a: Coordinate, b: Coordinate) -> None:
    """Velocities of the same kinetic energy, as ellipses over the two coordinates."""
    from matplotlib.collections import LineCollection

    n = 9
    step = np.linspace(0, len(field.x) - 1, n + 2).astype(int)[1:-1]
    q = field.q[np.ix_(step, step)].reshape(-1, robot.nq)
    turn = np.linspace(0, 2 * np.pi, 49)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    M = mass_matrix(robot, q)[..., [[a.v], [b.v]], [a.v, b.v]]
    values, vectors = np.linalg.eigh(M)
    values = np.maximum(values, 1e-3 * np.max(values))
    shapes = (vectors / np.sqrt(values)[:, None, :]) @ circle
    widths = np.array([a.upper - a.lower, b.upper - b.lower])
    shapes *= 0.42 / n * np.min(widths[:, None, None] / np.max(np.abs(shapes), axis=(0, 2))[:, None, None])
    lines = np.swapaxes(shapes, 1, 2) + q[:, None, [a.q, b.q]]
    axes.add_collection(LineCollection(list(lines), colors="0.25", linewidths=0.9))
    axes.set_xlim(a.lower, a.upper)
    axes.set_ylim(b.lower, b.upper)
    axes.set_title("velocities of equal kinetic energy")
    _labels(axes, a, b)


def _nothing(axes: Axes, why: str) -> None:
    axes.text(0.5, 0.5, why, transform=axes.transAxes, ha="center", color="0.4")


def _motions(left: Axes, right: Axes, shown: Geometry) -> None:
    """The geodesic and the straight motion as curves, and their kinetic energies."""
    (a, b), found = shown.pair, shown.motions
    left.set_title("from one configuration to another")
    _labels(left, a, b)
    if found is None:
        right.set_title("kinetic energy [J]")
        _nothing(left, "no geodesic found")
        return
    for q, colour, label in ((found.geodesic, GEODESIC, "geodesic"), (found.straight, STRAIGHT, "straight")):
        left.plot(q[:, a.q], q[:, b.q], color=colour, label=label)
        ticks = np.linspace(0, len(q) - 1, 11).astype(int)
        left.plot(q[ticks, a.q], q[ticks, b.q], ".", color=colour, markersize=5)
    for q, label in ((shown.start, "start"), (shown.goal, "goal")):
        left.plot(q[a.q], q[b.q], "o", color="0.2", markersize=5)
        left.annotate(label, (q[a.q], q[b.q]), xytext=(6, -10), textcoords="offset points", fontsize=8, color="0.2")
    left.margins(0.12)
    left.legend(fontsize=8, frameon=False)
    mean = found.means
    for energy, colour, label, average in zip(found.energies, (GEODESIC, STRAIGHT), ("geodesic", "straight"), mean, strict=True):
        right.plot(found.time, energy, color=colour, label=f"{label}: {average:.4g} J in the mean")
    right.set_ylim(0.0, 1.25 * float(np.max(found.energies)))
    more = 100 * (mean[1] / mean[0] - 1)
    right.set_title(f"kinetic energy [J]: straight takes {more:.3g} % more" if more > 1e-9 else "kinetic energy [J]: both the same")
    right.set_xlabel("time [s]")
    right.legend(fontsize=8, frameon=False, loc="lower right")
    right.margins(x=0.01)


def _fan(upper: Axes, lower: Axes, shown: Geometry) -> None:
    """Geodesics in neighbouring directions, and how far they come apart."""
    (a, b), found, start = shown.pair, shown.spread, shown.start
    upper.set_title("geodesics from one configuration")
    _labels(upper, a, b)
    if found is None:
        lower.set_title("distance of neighbours")
        _nothing(upper, "they meet a singularity")
        return
    n = len(found.q)
    for k, q in enumerate(found.q):
        main = k == n // 2
        upper.plot(
            q[:, a.q], q[:, b.q], color=GEODESIC if main else "#7fb8a4", linewidth=1.8 if main else 0.9, zorder=3 if main else 2
        )
    for k in range(32, len(found.time), 32):  # where all are after equal times
        upper.plot(found.q[:, k, a.q], found.q[:, k, b.q], color="0.6", linewidth=0.7, zorder=1)
    upper.plot(start[a.q], start[b.q], "o", color="0.2", markersize=5)
    upper.margins(0.06)
    lower.plot(found.time, found.time, color="0.55", linestyle=(0, (5, 3)), label="if space were flat")
    lower.plot(found.time, found.distance, color=GEODESIC, label="neighbours")
    lower.fill_between(found.time, found.time, found.distance, color=GEODESIC, alpha=0.12, linewidth=0)
    end = found.distance[-1] / found.time[-1]
    lower.set_title("distance of neighbours: " + ("as if flat" if abs(end - 1) < 1e-6 else f"{end:.3g} times the flat one"))
    for k in conjugate(found):
        lower.plot(found.time[k], found.distance[k], "o", color="0.2", markersize=5)
        note = {"xytext": (0, 14), "textcoords": "offset points", "fontsize": 8, "color": "0.2", "ha": "center"}
        lower.annotate("conjugate point", (found.time[k], found.distance[k]), **note)
    lower.set_xlabel("time [s]")
    lower.legend(fontsize=8, frameon=False, loc="upper left")
    lower.margins(x=0.01)
