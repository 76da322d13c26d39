"""Figures of motions, drawn with matplotlib, which is imported only here and only when something is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.util import find_spec
from io import BytesIO, StringIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CoadjointError
from ..files import check_output, replacing
from ..motion.states import States, force_units
from ..robot import text
from ..robot.robot import Robot
from ..words import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf", ".html")
POINTS = 2000
"""The most points of a drawn line: more than a figure can resolve."""

_STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.titlepad": 4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "0.6",
    "axes.grid": True,
    "grid.color": "0.92",
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "xtick.color": "0.3",
    "ytick.color": "0.3",
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "lines.linewidth": 1.4,
    "figure.constrained_layout.w_pad": 0.06,
    "figure.constrained_layout.h_pad": 0.05,
    "svg.hashsalt": "coadjoint",
    "text.parse_math": False,  # names of joints are no formulas, whatever stands in them
}
_LIMIT = "#c0392b"


def check_figure(path: str | Path) -> str:
    """The extension of a figure's file name, or an error if that format cannot be written."""
    return check_drawing(path, "figures", FORMATS)


def check_drawing(path: str | Path, what: str, formats: Sequence[str]) -> str:
    """The extension of the file name, or an error if it is not one of `formats` or matplotlib is missing."""
    extension = Path(path).suffix.lower()
    if extension not in formats:
        raise CoadjointError(f"{path}: {what} end in {', '.join(formats)}, not in {extension or 'nothing'!r}.")
    if find_spec("matplotlib") is None:
        raise CoadjointError(f"{path}: drawing needs matplotlib, which is not installed: pip install matplotlib")
    return extension


def draw_states(path: str | Path, robot: Robot, states: States, forward: bool = False) -> None:
    """Draw joint forces (or accelerations), positions and velocities to a file, atomically."""
    check_figure(path)
    what = "accelerations" if forward else "joint forces"
    says = f"{what.capitalize()} of <b>{escape(robot.name)}</b> for {len(states)} states."
    save(path, states_figure(robot, states, forward), f"{robot.name}: {what}", says, text.html(robot))


def save(path: str | Path, figure: Figure, title: str, says: str, below: str = "") -> None:
    """Write a figure to a file, atomically; as HTML with a sentence above and more HTML below."""
    extension = check_figure(path)
    check_output(path)
    _make_printable(figure)
    with replacing(path) as part:
        if extension == ".html":
            part.write_text(_page(figure, title, says, below), encoding="utf-8")
        else:
            metadata = {"Date": None} if extension == ".svg" else {"CreationDate": None} if extension == ".pdf" else None
            with style():
                figure.savefig(part, format=extension[1:], dpi=160, metadata=metadata)


def _make_printable(figure: Figure) -> None:
    """Escape control characters, which names may have, in all texts of a figure: no SVG can hold them."""
    from matplotlib.text import Text

    for label in figure.findobj(Text):
        lines = label.get_text().split("\n")
        if not all(line.isprintable() for line in lines):
            label.set_text("\n".join(printable(line) for line in lines))


def states_figure(robot: Robot, states: States, forward: bool = False) -> Figure:
    """A panel of the joint force (or acceleration) for every coordinate, with its limit, above positions and velocities."""
    names, units = robot.v_names, force_units(robot)
    values = states.a if forward else states.tau
    if values is None or states.v is None:
        raise CoadjointError("the states have nothing to draw: compute tau (or a) first.")
    x = np.arange(1, len(states) + 1) if states.time is None else states.time
    across = robot.nv if robot.nv <= 4 else 6 if robot.nv > 16 else min((4, 3), key=lambda n: -robot.nv % n)
    rows = -(-robot.nv // across)
    with style():
        figure = picture(figsize=(max(11, 2.6 * across), 1.0 + 1.55 * rows + 2.6), layout="constrained")
        grid = figure.add_gridspec(rows + 1, 1, height_ratios=[1.0] * rows + [1.7])
        upper = grid[:rows].subgridspec(rows, across)
        hues = colours(robot.nv)
        first: Axes | None = None
        for k, name in enumerate(names):
            axes = figure.add_subplot(upper[k // across, k % across], sharex=first)
            first = first or axes
            unit = units[k] if not forward else "rad/s²" if units[k] == "N m" else "m/s²"
            _panel(axes, x, values[:, k], hues[k], np.inf if forward else float(robot.effort_limit[k]))
            axes.set_title(f"{_short(name, 30 if across <= 4 else 22)}  [{unit}]")
            axes.tick_params(labelbottom=k + across >= robot.nv)
        lower = grid[rows].subgridspec(1, 2)
        overlay(figure.add_subplot(lower[0]), x, states.q, robot.q_names, in_units(robot, "position"))
        overlay(figure.add_subplot(lower[1]), x, states.v, names, in_units(robot, "velocity"))
        for axes in figure.axes[-2:]:
            axes.set_xlabel("time [s]" if states.time is not None else "row")
        what = "joint accelerations" if forward else "joint forces"
        figure.suptitle(f"{robot.name}: {what}", x=0.01, ha="left", fontsize=12, fontweight="bold")
    return figure


def picture(**options: Any) -> Figure:
    """A figure that notebooks show, whether or not pyplot has been imported."""
    from matplotlib.figure import Figure

    figure = Figure(**options)

    def shown() -> bytes:
        buffer = BytesIO()
        with style():
            _make_printable(figure)
            figure.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()

    figure._repr_png_ = shown
    return figure


def style() -> Any:
    """The context in which figures are made and written."""
    import matplotlib

    return matplotlib.rc_context(_STYLE)


def colours(n: int) -> list[Any]:
    """A colour for each of n lines."""
    import matplotlib

    if n <= 10:
        return [matplotlib.colormaps["tab10"](k) for k in range(n)]
    return [matplotlib.colormaps["turbo"](0.05 + 0.9 * k / (n - 1)) for k in range(n)]


def _short(name: str, most: int = 30) -> str:
    """A name of moderate length; matplotlib would leave one that begins with _ out of a legend."""
    name = name if len(name) <= most else f"{name[: most // 2 - 1]}…{name[1 - most // 2 :]}"
    return f"\u2009{name}" if name.startswith("_") else name


def _panel(axes: Axes, x: np.ndarray, y: np.ndarray, colour: Any, limit: float) -> None:
    """One force over time; its limit as lines if they are close, otherwise as text."""
    axes.axhline(0, color="0.75", linewidth=0.8)
    axes.plot(*thin(x, y), color=colour)
    axes.margins(x=0.01)
    largest = float(np.max(np.abs(y)))
    if not np.isfinite(limit):
        return
    if largest > 0.5 * limit:
        for sign in (1, -1):
            if np.max(sign * y) > 0.5 * limit:
                axes.axhline(sign * limit, color=_LIMIT, linestyle=(0, (5, 3)), linewidth=1.0)
    over = largest > limit
    # Inside the panel: beside the name of the joint there is no room for it.
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.8}
    text = f"{'exceeds' if over else 'limit'} {limit:g}"
    axes.text(
        0.99, 0.96, text, transform=axes.transAxes, ha="right", va="top", fontsize=7, color=_LIMIT if over else "0.45", bbox=box
    )


UNITS = {"position": ("rad", "m"), "velocity": ("rad/s", "m/s"), "joint force": ("N m", "N")}
"""Units of coordinates that turn, and of those that slide."""


def in_units(robot: Robot, quantity: str) -> str:
    """The quantity with the units that this robot's coordinates have: "position  [rad]" where all of them turn."""
    used = [unit for unit, force in zip(UNITS[quantity], UNITS["joint force"], strict=True) if force in force_units(robot)]
    return f"{quantity}  [{', '.join(used)}]"


def overlay(axes: Axes, x: np.ndarray, values: np.ndarray, names: Sequence[str], title: str) -> None:
    """Draw all coordinates in one panel."""
    hues = colours(len(names))
    for k, name in enumerate(names):
        axes.plot(*thin(x, values[:, k]), color=hues[k], label=_short(name), linewidth=1.2)
    axes.set_title(title)
    axes.margins(x=0.01)
    if 1 < len(names) <= 14:
        axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.2, labelspacing=0.3)


def overlay_forces(axes: Axes, x: np.ndarray, robot: Robot, tau: np.ndarray) -> None:
    """Joint forces over x, as parts of their limits where all joints have one."""
    limits = robot.effort_limit
    if not np.isfinite(limits).all():
        overlay(axes, x, tau, robot.v_names, in_units(robot, "joint force"))
        return
    overlay(axes, x, tau / limits, robot.v_names, "joint force  [part of its limit]")
    for sign in (1, -1):
        axes.axhline(sign, color="C3", linestyle=(0, (5, 3)), linewidth=1.0)


def thin(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fewer points that draw the same line: the smallest and the largest value of every interval, in their order."""
    if len(x) <= POINTS:
        return x, y
    edges = np.linspace(0, len(x), POINTS // 2 + 1).astype(int)
    keep = {0, len(x) - 1}
    for start, stop in pairwise(edges):
        keep |= {start + int(np.argmin(y[start:stop])), start + int(np.argmax(y[start:stop]))}
    index = np.array(sorted(keep))
    return x[index], y[index]


def _page(figure: Figure, title: str, says: str, below: str) -> str:
    """A self-contained HTML page with the figure as inline SVG."""
    buffer = StringIO()
    with style():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
body {{ font: 14px/1.45 system-ui, sans-serif; color: #222; max-width: 1150px; margin: 2rem auto; padding: 0 1rem; }}
.wide {{ overflow-x: auto; }}
svg {{ width: 100%; min-width: 700px; height: auto; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
@media (max-width: 700px) {{ pre {{ white-space: pre; overflow-wrap: normal; overflow-x: auto; }} }}
table {{ border-collapse: collapse; margin: .5rem 0; font-size: 13px; }}
th, td {{ text-align: left; padding: .15rem .8rem .15rem 0; border-bottom: 1px solid #e5e5e5; }}
</style>
</head>
<body>
<p>{says}</p>
<div class="wide">{svg}</div>
{below}
</body>
</html>
"""
