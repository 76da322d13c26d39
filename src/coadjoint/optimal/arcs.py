"""What x follows inside each cell, and where a cell must be cut because that is not one exact arc."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from .cells import Cells, follow
from .collocation import AT_START, COUNT, END, FROM_REST, MONOMIALS, POINTS, SPREAD, START, TO_REST, WEIGHTS, powers
from .roots import PLACES, deepest, dense, first_change, first_root, root_between, violated

TOLERANCE = 1e-10
"""Largest violation of a row, relative to its limit."""
EXACT = 1e-11
"""Largest relative difference of x at the end of a cell between both rules, and of speeds that are the same."""
SAME = 1e-9
"""Relative difference of x from the limit of speed that is none."""
NEAR = 0.2
"""Slacks below this at the points of a cell are looked at between them."""
SHORTEST = 1e-11
"""No piece of a cell becomes shorter."""
MIXED, FORWARD, BACKWARD, SLIDE = 0, 1, -1, 2
"""Several arcs; a row followed forward; a row followed backward; the limit of speed."""

_SLOPE = 2.0 * (powers(POINTS)[:, :-1] * np.arange(1, COUNT)) @ MONOMIALS[1:]
"""d/dσ at the points of the polynomial through values there."""


@dataclass
class Arcs:
    """For every cell what it follows: state, row (-1: none), x at the end where the arc begins, increments and u at the points."""

    state: np.ndarray
    row: np.ndarray
    x: np.ndarray
    y: np.ndarray
    u: np.ndarray
    inexact: np.ndarray
    """Relative difference at the end between both rules."""
    x0: np.ndarray
    x1: np.ndarray
    ahead: np.ndarray
    behind: np.ndarray
    """x on the arcs from both ends."""

    row_ahead: np.ndarray
    row_behind: np.ndarray
    """The rows of these arcs."""

    def take(self, index: np.ndarray) -> Arcs:
        return Arcs(*(getattr(self, f.name)[index] for f in fields(self)))

    def values(self, cells: Cells) -> np.ndarray:
        """x (C, p) at the points; where cells are mixed, the least of the arcs."""
        mixed = np.minimum(np.minimum(self.ahead, self.behind), cells.cap)
        return np.asarray(np.where((self.state == MIXED)[:, None], mixed, self.x[:, None] + self.y))


def find_arcs(cells: Cells, x0: np.ndarray, x1: np.ndarray, near: float = SAME) -> Arcs:
    """The arcs of cells from x at both their ends; `near`: relative difference of x from the limit of speed that is none."""
    n = np.arange(len(cells))
    sides = []
    for side, x, direction in ((0, x0, 1), (1, x1, -1)):
        ends = x[:, None] + (cells.P[:, side, :, -1] * x[:, None] + cells.Q[:, side, :, -1])
        row = np.argmin(ends, axis=1)
        y = cells.P[n, side, row] * x[:, None] + cells.Q[n, side, row]
        sides.append((ends[n, row], row, x[:, None] + y @ SPREAD[direction].T))
    (f, row_ahead, ahead), (g, row_behind, behind) = sides
    same: Any = lambda x, y, part=EXACT: x >= y - part * np.maximum(np.abs(y), 1e-30)
    at_0, at_1 = same(x0, cells.cap[:, START], near), same(x1, cells.cap[:, END], near)
    forward = same(x1, f) | (at_1 & ~at_0 & same(x1, f, near))  # an arc may touch the limit of speed
    backward = same(x0, g) | (at_0 & ~at_1 & same(x0, g, near))
    state = np.where(forward, FORWARD, np.where(backward, BACKWARD, np.where(at_0 & at_1, SLIDE, MIXED)))
    state = np.where((state == MIXED) & (cells.h < 4 * SHORTEST), FORWARD, state)
    x, row = np.where(state == BACKWARD, x1, x0), np.full(len(cells), -1)
    y, u, inexact = np.zeros_like(cells.cap), np.zeros_like(cells.cap), np.zeros(len(cells))
    some = (state == FORWARD) | (state == BACKWARD)
    back = state[some] == BACKWARD
    row[some] = np.where(back, row_behind[some], row_ahead[some])
    y[some], u[some] = follow(cells.take(some), row[some], back, x[some])
    far = np.where(back, y[some, START], y[some, END]) + x[some]
    with np.errstate(invalid="ignore"):
        inexact[some] = np.abs(far - np.where(back, g[some], f[some])) / np.maximum(np.maximum(x0, x1)[some], 1e-30)
    slides = state == SLIDE
    y[slides] = _smooth_caps(cells.take(slides))
    u[slides] = _rates(cells.take(slides), y[slides])
    gap = np.abs(cells.cap[slides, START] + y[slides, END] - x1[slides]) / np.maximum(x1[slides], 1e-30)
    inexact[slides] = np.where(gap < 2 * near, 0.0, gap)
    return Arcs(state, row, x, y, u, inexact, x0, x1, ahead, behind, row_ahead, row_behind)


def _smooth_caps(cells: Cells) -> np.ndarray:
    """Increments from the start of the limit of speed that is the least on average."""
    n = np.arange(len(cells))
    x = 1.0 / np.maximum(cells.inverse[n, :, cells.inverse.sum(axis=1).argmax(axis=1)], 1e-30)
    return np.asarray(x - x[:, :1])


def _rates(cells: Cells, y: np.ndarray) -> np.ndarray:
    """u from increments of x."""
    with np.errstate(all="ignore"):
        u = y @ _SLOPE.T / (2.0 * cells.h[:, None] * WEIGHTS[cells.kind])
    rest = cells.kind == FROM_REST
    u[rest, START] = u[rest, 1:] @ AT_START
    rest = cells.kind == TO_REST
    u[rest, END] = u[rest, :-1] @ AT_START[::-1]
    return np.asarray(u)


def slacks(cells: Cells, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """(C, p, 2 rows + m): how far every row is from its upper and its lower bound, and x from its limits, relative."""
    value = cells.a * u[..., None] + cells.b * x[..., None]
    lo, hi = cells.lo, cells.hi
    if cells.e.ndim == 3:
        root = np.sqrt(np.maximum(x, 1e-24))[..., None]
        value = value + cells.e * root
    return np.concatenate([hi - value, value - lo, 1.0 - x[..., None] * cells.inverse], axis=-1)


def cuts(cells: Cells, arcs: Arcs) -> tuple[np.ndarray, np.ndarray]:
    """σ (C,) where to cut each cell, nan where it need not be; and the largest violation of a limit in each."""
    cut, residual = np.full(len(cells), np.nan), np.zeros(len(cells))
    mixed = arcs.state == MIXED
    if mixed.any():
        cut[mixed] = _crossings(cells.take(mixed), arcs.take(mixed))
    pure = np.flatnonzero(~mixed)
    slack = slacks(cells.take(pure), arcs.x[pure, None] + arcs.y[pure], arcs.u[pure])
    n, rows, row = np.arange(len(pure)), cells.a.shape[-1], arcs.row[pure]
    slide = n[row < 0]  # on the limit of speed itself
    fastest = cells.inverse[pure[slide]].sum(axis=1).argmax(axis=1)
    slack[slide, :, 2 * rows + fastest] = 0.0
    up = cells.a[pure, :, np.maximum(row, 0)].sum(axis=1) >= 0
    own = np.maximum(row, 0) + np.where(up == (arcs.state[pure] == FORWARD), 0, rows)
    inexact = np.where(row >= 0, np.abs(slack[n, :, own]).max(axis=1), 0.0)  # the row that is followed
    slack[n[row >= 0], :, own[row >= 0]] = 0.0
    worst = -deepest(slack, NEAR)
    residual[pure] = np.maximum(worst, inexact)
    tail = np.abs(arcs.u[pure] @ MONOMIALS[-2]) / 128 * np.abs(cells.a[pure]).max(axis=(1, 2))  # the last term of a polynomial
    inexact = np.maximum(inexact, 0.3 * tail)
    rough = ((arcs.inexact[pure] > EXACT) | (inexact > TOLERANCE)) & (cells.h[pure] > 1e-6)
    bad = np.flatnonzero((worst > TOLERANCE) | rough | ~np.isfinite(worst))
    if len(bad):
        at, which = violated(slack[bad])
        halve = ~np.isfinite(worst[bad]) | (rough[bad] & (worst[bad] < np.where(row[bad] < 0, TOLERANCE, 1e-6)))
        cut[pure[bad]] = np.where(halve, 0.5, at)
        _take_over(cells, arcs, pure[bad], slack[bad], which, cut)
    long = cells.h > 2 * SHORTEST
    edge = np.minimum(0.5, SHORTEST / np.maximum(cells.h, 1e-300))
    close = (cut < edge) | (cut > 1 - edge)  # as good as at the end
    return np.where(long & ~(close & (residual < 1e-9) & ~mixed), np.clip(cut, edge, 1 - edge), np.nan), residual


def _crossings(cells: Cells, arcs: Arcs) -> np.ndarray:
    """σ (C,) where x first changes, in mixed cells, from the arc ahead or the limit of speed to another of these or to the arc behind."""
    n, none = np.arange(len(cells)), np.zeros(len(cells), dtype=bool)
    y, u = follow(cells, arcs.row_ahead, none, arcs.x0)
    ahead = arcs.x0[:, None] + y
    behind = arcs.x1[:, None] + follow(cells, arcs.row_behind, ~none, arcs.x1)[0]
    inverse = dense(np.swapaxes(cells.inverse, 1, 2))
    curves = np.stack([dense(ahead), dense(behind), 1.0 / np.maximum(inverse.max(axis=1), 1e-30)], axis=1)
    k, one, other = first_change(curves)
    first, second = (cells.inverse[n, :, inverse.argmax(axis=1)[n, place]] for place in (k, k + 1))
    both = np.stack([ahead, behind], axis=1)
    x = [both[n, np.minimum(label, 1)] for label in (one, other)]
    gap = np.where((other == 2)[:, None], x[0] * second - 1.0, np.where((one == 2)[:, None], 1.0 - x[1] * first, x[0] - x[1]))
    found = root_between(np.where(np.isfinite(gap), gap, 0.0), PLACES[k], PLACES[k + 1])
    ends = [
        np.abs(ahead[:, END] - arcs.ahead[:, END]) / np.maximum(np.abs(ahead[:, END]), 1e-30),
        np.abs(behind[:, START] - arcs.behind[:, START]) / np.maximum(np.abs(behind[:, START]), 1e-30),
    ]
    rough = (np.maximum(*ends) > EXACT) & (np.abs(found - 0.5) > 0.4999) & (cells.h > 1e-7)
    found = np.where((one != other) & ~rough, found, 0.5)
    forward = replace(arcs, state=np.full(len(cells), FORWARD), row=arcs.row_ahead, x=arcs.x0, y=y, u=u)
    slack = slacks(cells, ahead, u)
    _take_over(cells, forward, n, slack, slack[:, START].argmin(axis=1), found)
    return found


def _take_over(cells: Cells, arcs: Arcs, bad: np.ndarray, slack: np.ndarray, worst: np.ndarray, cut: np.ndarray) -> None:
    """Where a limit is violated from the beginning of an arc on, cut where the arc of that limit meets the row that was followed.

    Behind a point of zero inertia an arc that starts below its row is steep: what it violates there says little of where it should begin.
    """
    rows = cells.a.shape[-1]
    n = np.arange(len(bad))
    back = arcs.state[bad] == BACKWARD
    first = np.where(back, END, START)
    capped = arcs.x[bad] >= cells.cap[bad, first] * (1 - EXACT)
    some = (arcs.row[bad] >= 0) & (slack[n, first, worst] < -TOLERANCE)
    some &= capped | ((worst < 2 * rows) & (worst % rows != arcs.row[bad]))
    if not some.any():
        return
    at, other, back, first, capped = bad[some], (worst % rows)[some], back[some], first[some], capped[some]
    part, n = cells.take(at), np.arange(len(at))
    y, u = follow(part, other, back, arcs.x[at])
    along = _smooth_caps(part)
    along = along - along[n, first][:, None]
    y, u = np.where(capped[:, None], along, y), np.where(capped[:, None], _rates(part, along), u)
    own = arcs.row[at]
    up = part.a[n, :, own].sum(axis=1) >= 0
    ahead = slacks(part, arcs.x[at, None] + y, u)[n, :, own + np.where(up != back, 0, rows)]
    towards = np.where(back[:, None], ahead[:, ::-1], ahead)
    fits = (towards[:, START] > 0) & (towards.min(axis=1) < 0) & np.isfinite(towards).all(axis=1)
    root = first_root(np.where(fits[:, None], towards, 1.0))
    cut[at[fits]] = np.where(back, 1 - root, root)[fits]
