"""The report of a calibration: errors before and after, configurations far off, parameters with intervals, what is not seen."""

from __future__ import annotations

from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CoadjointError
from .plots import save, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BEFORE, AFTER, BACK = "#bbbbbb", "#4477aa", "#cc6677"


def write_report(path: str | Path, cal: Any) -> None:
    """Write the page, which needs nothing else, to a file; it appears whole or not at all."""
    if Path(path).suffix.lower() != ".html":
        raise CoadjointError(f"{path}: reports end in .html.")
    nominal = cal.nominal_fit()
    before, back = (1e3 * np.mean(x.errors(x.held_back)) for x in (nominal, cal))
    name = escape(cal.nominal.name)
    unit = "px/1000" if cal.camera is not None else "mm (mrad)"
    says = f"<b>{name}</b> calibrated to {escape(cal.frame)!r}: mean error of configurations held back {before:.3g} → {back:.3g} {unit}."
    save(path, calibration_figure(cal, nominal), f"{cal.nominal.name}: calibration", says, _tables(cal))


def calibration_figure(cal: Any, nominal: Any) -> Figure:
    """Histograms of errors before and after, errors in the order of configurations, and of each against the joints."""
    from matplotlib.figure import Figure

    kinds = ["angle [mrad]", "origin [mm]"] if cal.tool is not None else ["error [mm]"]
    kinds = ["error [px/1000]"] if cal.camera is not None else kinds
    with style():
        figure = Figure(figsize=(12, 3.2 * (len(kinds) + 1)), layout="constrained")
        grid = figure.add_gridspec(len(kinds) + 1, 2)
        for k, kind in enumerate(kinds):
            pick = partial(_picked, k, len(kinds))
            before, after, back = pick(nominal, nominal.residuals), pick(cal, cal.residuals), pick(cal, cal.held_back)
            left, right = figure.add_subplot(grid[k, 0]), figure.add_subplot(grid[k, 1])
            edges = np.linspace(0, np.percentile(before, 99.5), 40)
            for x, colour, label in ((before, BEFORE, "as described"), (after, AFTER, "calibrated"), (back, BACK, "held back")):
                left.hist(
                    x, bins=edges, histtype="step", color=colour, label=f"{label}: mean {x.mean():.3g}, median {np.median(x):.3g}"
                )
            left.legend(fontsize=7, frameon=False)
            left.set_title(kind)
            right.plot(np.arange(1, len(before) + 1), before, ".", color=BEFORE, markersize=3)
            right.plot(np.arange(1, len(back) + 1), back, ".", color=BACK, markersize=3)
            right.set_title(f"{kind} of each configuration, in their order")
        _joints(figure.add_subplot(grid[len(kinds), :]), cal, back)
        figure.suptitle(f"{cal.nominal.name}: calibration", x=0.01, ha="left", fontsize=12, fontweight="bold")
    return figure


def _picked(k: int, kinds: int, cal: Any, residuals: np.ndarray) -> np.ndarray:
    """Errors (N,) in thousandths: of a pose its angle or origin, of points their mean."""
    errors = 1e3 * cal.errors(residuals)
    return np.asarray(errors[:, k] if kinds == 2 else errors.mean(axis=1))


def _joints(axes: Any, cal: Any, error: np.ndarray) -> None:
    """Mean error in quarters of every joint's range: what to record next."""
    q = cal.fit.problem.own
    for i in range(q.shape[1]):
        edges = np.quantile(q[:, i], np.linspace(0, 1, 6))
        index = np.clip(np.searchsorted(edges, q[:, i], side="right") - 1, 0, 4)
        means = [error[index == k].mean() if np.any(index == k) else np.nan for k in range(5)]
        axes.plot(i + np.linspace(-0.3, 0.3, 5), means, ".-", color=AFTER)
    axes.set_xticks(range(q.shape[1]), cal.chain.names)
    axes.set_title("error held back over each joint's range, from its lowest to its highest fifth")


def _tables(cal: Any) -> str:
    rows = []
    for name, (value, spread) in cal.parameters.items():
        if "deflection" in name:
            continue
        shown = "not seen" if not np.isfinite(spread) else f"± {1.96e3 * spread:.3g}"
        rows.append(f"<tr><td>{escape(name)}</td><td>{1e3 * value:.4f}</td><td>{shown}</td></tr>")
    head = "<tr><th>displacement</th><th>mrad or mm</th><th>95 %</th></tr>"
    return f"<pre>{escape(str(cal))}</pre>\n<table>{head}{''.join(rows)}</table>"
