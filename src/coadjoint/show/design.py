"""The figure of a design: the cost over the iterations, and the numbers before and after."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..design import Design
from .plots import check_figure, save, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_design(path: str | Path, design: Design) -> None:
    """Draw a design to a file: .png, .svg, .pdf or .html."""
    check_figure(path)
    save(path, design_figure(design), f"{design.robot.name}: design", escape(str(design)))


def design_figure(design: Design) -> Figure:
    """The cost over the iterations, and every number before (hollow) and after (full)."""
    from matplotlib.figure import Figure

    names = list(design.parameters)
    with style():
        figure = Figure(figsize=(11, 3.2 + 0.24 * len(names)), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(2, 3))
        cost = design.history
        left.plot(np.arange(len(cost)), cost, color="0.2", marker=".")
        if (cost > 0).all():
            left.set_yscale("log")
        left.set_title("cost")
        left.set_xlabel("iteration")
        places = np.arange(len(names))[::-1]
        before, after = (np.array([x[name] for name in names]) for x in (design.start, design.parameters))
        right.hlines(places, before, after, color="0.7", linewidth=1.0)
        right.plot(before, places, "o", color="C0", markerfacecolor="none", label="before")
        right.plot(after, places, "o", color="C0", label="after")
        right.set_yticks(places, names)
        right.set_title("numbers of the design [SI units]")
        right.legend(loc="best", frameon=False)
        title = f"{design.robot.name}: cost {design.start_cost:.4g} to {design.cost:.4g}" + (
            "" if design.converged else ", not optimal"
        )
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    return figure
