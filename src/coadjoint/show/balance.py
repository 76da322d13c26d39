"""The figure of a robot before and after counterweights are added."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..design.counterweights import Counterweights, joint_point
from ..dynamics.composite import mass_matrix
from ..dynamics.newton_euler import inverse_dynamics
from ..kinematics.poses import forward_kinematics
from ..motion.example_motion import smooth_motion
from ..motion.states import coordinate_names, force_units
from ..robot import text
from ..robot.robot import Robot
from .plots import check_figure, colours, save, style, thin

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WEIGHT = "#b35900"


def draw_balance(path: str | Path, result: Counterweights) -> None:
    """Write `balance_figure` to a file, atomically."""
    check_figure(path)
    name = result.before.name
    listing = "".join(f"<li>{escape(str(w))}</li>" for w in result.weights)
    says = f"<b>{escape(name)}</b> before and after counterweights of {result.mass:.4g} kg."
    save(path, balance_figure(result), f"{name}: balance", says, f"<ul>{listing}</ul>{text.html(result.robot)}")


def balance_figure(result: Counterweights) -> Figure:
    """The robot with its counterweights; entries of its mass matrix and its joint forces along one motion, before and after."""
    from matplotlib.figure import Figure

    before, after = result.before, result.robot
    motion = smooth_motion(before)
    assert motion.time is not None
    assert motion.v is not None
    assert motion.a is not None
    with style():
        figure = Figure(figsize=(12.5, 6.8), layout="constrained")
        grid = figure.add_gridspec(2, 3, width_ratios=(1.15, 1, 1))
        _robot(figure.add_subplot(grid[:, 0]), result, motion.q[len(motion) // 4])
        limits: list[list[np.ndarray]] = [[], []]
        panels: list[list[Axes]] = [[], []]
        for column, (robot, label, found) in enumerate(zip((before, after), ("before", "after"), result.balance, strict=True)):
            entries, forces = (figure.add_subplot(grid[row, column + 1]) for row in (0, 1))
            curves = _entries(robot, motion.q)
            varies = "constant" if found.constant else f"varies by {100 * found.variation:.3g} % (rms)"
            for i, j, y in zip(*np.triu_indices(robot.nv), curves.T, strict=True):
                look = (
                    {"color": colours(robot.nv)[i], "linewidth": 1.4} if i == j else {"color": "0.6", "linewidth": 0.8, "zorder": 1}
                )
                entries.plot(*thin(motion.time, y), **look)
            entries.set_title(f"mass matrix {label}: {varies}")
            tau = inverse_dynamics(robot, motion.q, motion.v, motion.a)
            for k, name in enumerate(coordinate_names(robot, "v")):
                forces.plot(*thin(motion.time, tau[:, k]), label=name, linewidth=1.2, color=colours(robot.nv)[k])
            forces.set_title(f"joint forces {label} [{', '.join(dict.fromkeys(force_units(robot)))}]")
            forces.set_xlabel("time [s]")
            for row, axes, values in ((0, entries, curves), (1, forces, tau)):
                axes.margins(x=0.01)
                limits[row].append(values)
                panels[row].append(axes)
        for row in (0, 1):
            low, high = min(x.min() for x in limits[row]), max(x.max() for x in limits[row])
            for axes in panels[row]:  # one scale, so that before and after compare
                axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
        if before.nv <= 8:
            panels[1][0].legend(fontsize=7, frameon=False)
        panels[0][0].set_ylabel("M_ij / √(mean M_ii · mean M_jj)")
        title = f"{before.name}: {result.mass:.4g} kg of counterweights"
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    return figure


def _entries(robot: Robot, q: np.ndarray) -> np.ndarray:
    """The entries of the upper triangle (N, n(n+1)/2), each relative to the size that its joints give it."""
    M = mass_matrix(robot, q)
    size = np.sqrt(np.maximum(np.diagonal(M.mean(0)), 1e-300))
    i, j = np.triu_indices(robot.nv)
    answer: np.ndarray = (M / (size[:, None] * size))[:, i, j]
    return answer


def _robot(axes: Axes, result: Counterweights, q: np.ndarray) -> None:
    """The links as lines from joint to joint, in the projection of largest extent; counterweights as discs, sized by their mass."""
    robot = result.before
    T = forward_kinematics(robot, q)

    def place(i: int, x: np.ndarray) -> np.ndarray:
        answer: np.ndarray = T[i][:3, :3] @ x + T[i][:3, 3]
        return answer

    joints = [place(i, joint_point(robot, i)) for i in range(robot.n_links)]
    points = [np.zeros(3), *joints]
    tips = [(robot.link_index(f.link), f.pose[:3, 3]) for f in robot.frames if f.link != robot.base]
    segments = [(joints[robot.parents[i]] if robot.parents[i] >= 0 else np.zeros(3), joints[i]) for i in range(robot.n_links)]
    segments += [(joints[i], place(i, x)) for i, x in tips]
    masses = [(place(robot.link_index(w.link), x), m) for w in result.weights for x, m in zip(w.points, w.masses, strict=True)]
    everything = np.array(points + [x for pair in segments for x in pair] + [x for x, _ in masses])
    a, b = sorted(np.argsort(np.ptp(everything, axis=0))[-2:])
    for start, end in segments:
        axes.plot([start[a], end[a]], [start[b], end[b]], color="0.35", linewidth=3.0, solid_capstyle="round", zorder=2)
    numbers: dict[tuple[float, float], list[str]] = {}
    for i, x in enumerate(joints):
        numbers.setdefault((round(float(x[a]), 6), round(float(x[b]), 6)), []).append(str(i + 1))
    for where, at in numbers.items():
        axes.plot(*where, "o", color="white", markeredgecolor="0.2", markersize=7, zorder=4)
        axes.annotate(", ".join(at), where, xytext=(0, 8), textcoords="offset points", fontsize=7.5, ha="center", color="0.3")
    largest = max((m for _, m in masses), default=1.0)
    for weight in result.weights:
        i = robot.link_index(weight.link)
        for x, m in zip(weight.points, weight.masses, strict=True):
            p = place(i, x)
            axes.plot([joints[i][a], p[a]], [joints[i][b], p[b]], color=WEIGHT, linewidth=0.8, zorder=1)
            axes.scatter(p[a], p[b], s=20 + 380 * m / largest, color=WEIGHT, alpha=0.75, linewidths=0, zorder=3)
        center = place(i, weight.center)
        note = {"xytext": (0, -16), "textcoords": "offset points", "fontsize": 8, "color": WEIGHT, "ha": "center"}
        axes.annotate(f"{weight.link}: {weight.mass:.3g} kg", (center[a], center[b]), **note)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.15)
    axes.set_xlabel(f"{'xyz'[a]} [m]")
    axes.set_ylabel(f"{'xyz'[b]} [m]")
    axes.set_title("joints by number, and counterweights")
