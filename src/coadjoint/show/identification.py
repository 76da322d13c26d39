"""The report of an identification: one HTML page without network, its figure inside."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CoadjointError
from ..files import as_path
from ..motion.states import force_units
from ..words import printable
from .plots import save, style, thin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURED, PREDICTED, RESIDUAL = "#4477aa", "#cc6677", "0.6"


def write_report(path: str | Path, fit: Any) -> None:
    """Write the page, which appears whole or not at all."""
    check_report(path)
    name = fit.prior.name
    says = f"Identification of <b>{escape(name)}</b> from {len(fit.data)} rows: relative error {100 * fit.relative_error:.2f} %."
    save(path, report_figure(fit), f"{name}: identification", says, _below(fit))


def check_report(path: str | Path) -> None:
    """Refuse a name that is not that of an HTML page."""
    from .plots import check_figure

    if as_path(path).suffix.lower() != ".html":
        raise CoadjointError(f"{path}: a report is an HTML page; give it a name that ends in .html.")
    check_figure(path)


def report_figure(fit: Any) -> Figure:
    """A row for each joint: measured and predicted forces over time, the histogram and the spectrum of the residuals."""
    from matplotlib.figure import Figure

    robot, data, units = fit.prior, fit.data, force_units(fit.prior)
    e = fit.residuals
    x = np.arange(len(data)) * data.step
    with style():
        figure = Figure(figsize=(12, 0.8 + 1.9 * robot.nv), layout="constrained")
        grid = figure.add_gridspec(robot.nv, 3, width_ratios=(4, 1, 1))
        for k, name in enumerate(robot.v_names):
            axes = figure.add_subplot(grid[k, 0])
            axes.plot(*thin(x, e[:, k]), color=RESIDUAL, linewidth=0.8, label="residual")
            axes.plot(*thin(x, data.tau[:, k]), color=MEASURED, linewidth=1.0, label="measured")
            axes.plot(*thin(x, fit.predicted[:, k]), color=PREDICTED, linewidth=1.0, label="predicted")
            for start in np.flatnonzero(np.diff(data.stretch)) + 1:
                axes.axvline(x[start], color="0.8", linewidth=0.8)
            axes.set_title(f"{name}  [{units[k]}]   rms residual {fit.rms[k]:.3g}")
            if k == robot.nv - 1:
                axes.set_xlabel("time [s]" + (", logs and stretches one after the other" if data.stretch[-1] else ""))
            if k == 0:
                axes.legend(loc="upper right", fontsize=7, frameon=False)
            used = e[data.used[:, k], k]
            bars = figure.add_subplot(grid[k, 1])
            bars.hist(used, bins=40, color=RESIDUAL)
            bars.set_title("residuals")
            lines = figure.add_subplot(grid[k, 2])
            frequency, power = _spectrum(used, data.step)
            lines.loglog(frequency, power, color=PREDICTED, linewidth=0.8)
            for axis in (lines.xaxis, lines.yaxis):
                axis.set_major_formatter(lambda x, _: f"{x:g}")
                axis.set_minor_formatter(lambda *_: "")
            lines.set_title("their spectrum [Hz]")
        figure.suptitle(f"{robot.name}: measured and predicted joint forces", x=0.01, ha="left", fontsize=12, fontweight="bold")
    return figure


def _spectrum(x: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies and the mean power of the residuals of eight overlapping windows."""
    size = max(8, len(x) // 4)
    window = np.hanning(size)
    starts = range(0, max(1, len(x) - size + 1), max(1, size // 2))
    parts = [np.abs(np.fft.rfft((x[i : i + size] - x.mean()) * window[: len(x[i : i + size])], size)) ** 2 for i in starts]
    return np.fft.rfftfreq(size, step)[1:], np.mean(parts, axis=0)[1:] + 1e-300


def _motion(fit: Any) -> str:
    """A row for each joint: how it moved, what the model leaves of its force, and how many of its link's base parameters are known.

    Those that no motion can tell from rotors do not count.

    A parameter is known if its interval is narrower than the largest that such a number of bodies of the prior's masses and radii can be.
    """
    robot, data, base = fit.prior, fit.data, list(fit.base)
    moved = [robot.v_slice(link.joint.name) for link in robot.links]  # by the joint of each link
    link, sizes = [pivot // 10 for pivot in fit.base_matrix.pivots], np.abs(fit.base_matrix.matrix) @ _sizes(fit.start)
    hidden = fit.beside_rotors  # no motion shows them
    force = np.sqrt((data.tau**2 * data.used).sum(0) / data.used.sum(0).clip(1))
    alike = data.q.shape == data.v.shape
    rows = [f"{'joint':<20}{'range':>10}{'rms speed':>12}{'rms accel.':>12}{'rows used':>11}{'unexplained':>13}{'known':>10}"]
    for k, name in enumerate(robot.v_names):
        mine = [moved[i].start <= k < moved[i].stop for i in link]
        own = [(p, size) for p, size, is_mine in zip(base, sizes, mine, strict=True) if is_mine and p.name not in hidden]
        known = sum(p.is_visible and p.upper - p.lower < size for p, size in own)
        speed, change = (float(np.sqrt(np.mean(x[:, k] ** 2))) for x in (data.v, data.a))
        reach = f"{np.ptp(data.q[:, k]):.3g}" if alike else ""
        left = f"{100 * fit.rms[k] / force[k]:.1f} %" if force[k] > 0 else ""
        poor = "   badly excited" if 3 * known < len(own) else ""
        share = f"{100 * data.used[:, k].mean():.0f} %"
        rows.append(
            f"{printable(name)[:19]:<20}{reach:>10}{speed:>12.3g}{change:>12.3g}{share:>11}{left:>13}{known:>5} of {len(own):<2}{poor}"
        )
    return "\n".join(rows)


def _sizes(inertias: np.ndarray) -> np.ndarray:
    """(10 n,): how large the numbers of bodies (n, 10) can be in any frame there: m, √(m tr S), and tr S, S being the second moment."""
    m, trace = inertias[:, 0], 0.5 * inertias[:, [4, 7, 9]].sum(1)
    return np.column_stack([m, *[np.sqrt(m * trace)] * 3, *[trace] * 6]).reshape(-1)


def _below(fit: Any) -> str:
    parts = [f"<pre>{escape(str(fit))}</pre>"]
    parts.append(f"<h2>How well each joint was excited</h2><pre>{escape(_motion(fit))}</pre>")
    advice = "".join(f"<li>{escape(text)}</li>" for text in fit.advice)
    parts.append(f"<h2>What to record next</h2><ul>{advice}</ul>")
    if fit.choices:
        parts.append(
            f"<h2>Terms that held-back stretches asked for, and the log-likelihood each gained</h2><pre>{escape(str(fit.choices))}</pre>"
        )
    parts.append(f"<h2>Base parameters</h2><pre>{escape(str(fit.base))}</pre>")
    parts.append(f"<h2>Parameters</h2><pre>{escape(str(fit.parameters))}</pre>")
    return "\n".join(parts)
