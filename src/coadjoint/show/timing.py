"""The figure of a timing: the phase plane with its limit curve, speeds and efforts against their limits."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..optimal.timing import Timing
from .plots import check_figure, save, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAMPLES = 1500


def draw_timing(path: str | Path, timing: Timing) -> None:
    """Draw a timing to a file, which appears whole or not at all: .png, .svg, .pdf or .html."""
    check_figure(path)
    name = f"{timing.robot.name}: timing"
    below = "".join(f"<div>{escape(str(x))}</div>" for x in timing.switches)
    save(path, timing_figure(timing), name, escape(f"{timing.duration:.9g} s"), below)


def timing_figure(timing: Timing) -> Figure:
    """ds/dt over s with the maximum-velocity curve; then the use of every limit over time."""
    from matplotlib.figure import Figure

    t = np.linspace(0.0, timing.duration, SAMPLES)
    s, rate, _ = timing.along(t)
    use = {name: x for name, x in timing.use(t).items() if x.size and np.any(x > 0)}
    with style():
        figure = Figure(figsize=(11, 3.2 + 2.2 * len(use)), layout="constrained")
        axes = [figure.add_subplot(1 + len(use), 1, k + 1) for k in range(1 + len(use))]
        places = np.linspace(0.0, 1.0, SAMPLES)
        limit = timing.speed_limit(places)
        axes[0].plot(places, np.where(limit < 3 * rate.max(), limit, np.nan), color="#c0392b", label="maximum-velocity curve")
        axes[0].plot(s, rate, color="#1f4e79", label="ds/dt")
        for switch in timing.switches[1:]:
            axes[0].axvline(switch.s, color="0.8", linewidth=0.7, zorder=0)
        axes[0].set_title("phase plane: ds/dt over s  [1/s]")
        axes[0].set_ylim(0.0, 1.6 * rate.max())
        axes[0].legend(fontsize=7, frameon=False, loc="upper right")
        for below, (name, x) in zip(axes[1:], use.items(), strict=True):
            labels = timing.robot.v_names if x.shape[-1] == timing.robot.nv else [str(k + 1) for k in range(x.shape[-1])]
            for k, label in enumerate(labels):
                if np.any(x[:, k] > 0):
                    below.plot(t, x[:, k], label=label, linewidth=1.0)
            below.axhline(1.0, color="#c0392b", linewidth=0.8)
            below.set_title(f"{name}, part of its limit")
            below.set_ylim(0.0, 1.1)
            below.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        axes[-1].set_xlabel("time [s]")
        figure.suptitle(
            f"{timing.robot.name}: fastest motion along the path, {timing.duration:.6g} s", x=0.01, ha="left", fontsize=12
        )
    return figure
