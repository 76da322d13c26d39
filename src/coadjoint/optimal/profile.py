"""The largest feasible speed along paths: x(s) = ṡ², from rows on coarse cells by the program of `path_program.py`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..kernel.programs import native_program
from .cell_programs import stride
from .collocation import FROM_REST, LARGE, LINEAR, POINTS, TO_REST
from .limits import Limits
from .path_program import BELOW, BRAKE, CELLS, END, NEVER, RECORD, START, TIMED, UNFINISHED, time_paths
from .paths import Curves, Splines

GRID = 32
"""Cells of a path at the beginning, about."""
SMOOTH = 1e-11
"""The last coefficients of a row's polynomial on a coarse cell, beside its limit, beyond which the cell is halved."""
TOGETHER = 256
"""Paths that are timed between two looks at interrupts and progress."""
KINDS = {NEVER: "never", BRAKE: "brake", BELOW: "below", START: "start", END: "end", UNFINISHED: "rounds"}


@dataclass
class Failure:
    """Why a path cannot be timed."""

    path: int
    s: float
    kind: str
    value: float = 0.0


class Profile:
    """Speeds of paths on their cells: arrays over all cells, in the order of paths and of s."""

    def __init__(self, first: np.ndarray, cells: np.ndarray, duration: np.ndarray) -> None:
        self.first = first
        """(paths + 1,): where the cells of every path begin."""
        self.cells = cells
        """(C, RECORD)."""
        self.duration = duration
        """(paths,): nan where there is none."""
        self.s0, self.s1 = cells[:, 0], cells[:, 1]
        self.kind, self.state, self.row = (cells[:, k].astype(int) for k in (2, 3, 4))
        self.x = cells[:, 5]
        """x at the end from which the arc was computed."""
        self.residual = cells[:, 6]
        """The largest violation at the points of the cell."""
        self.largest = cells[:, 7:9]
        """The maximum-velocity curve at the ends of the cell."""
        self.lengths = cells[:, 9]
        """Its time."""
        self.y, self.u = cells[:, 10:20], cells[:, 20:30]
        """Increments of x to that end, and s̈, at the points."""

    def of(self, path: int) -> Profile:
        first, last = self.first[path], self.first[path + 1]
        return Profile(np.array([0, last - first]), self.cells[first:last], self.duration[path : path + 1])


def solve(
    limits: Limits,
    paths: Splines | Curves,
    start: np.ndarray,
    end: np.ndarray,
    report: Callable[[float], object] | None = None,
    without: Collection[int] = (),
) -> tuple[Profile, list[Failure]]:
    """The fastest profiles of all paths but those `without`, from x = start (paths,) to x = end, and why some have none."""
    n = len(paths)
    run = native_program(time_paths)
    work = [np.empty((CELLS + 2) * stride(limits.rows, limits.speeds)), np.empty(10 * (2 * limits.rows + limits.speeds))]
    work.append(np.empty(6 * (CELLS + 8)))
    count, duration = np.zeros(n, dtype=int), np.full(n, np.nan)
    failures: list[Failure] = []
    parts: list[np.ndarray] = []
    some = np.array([k for k in range(n) if k not in without]) if without else np.arange(n)
    room = np.empty((max(CELLS, min(TOGETHER, len(some)) * 96), RECORD))
    done = 0
    while done < len(some):
        which = some[done : done + TOGETHER]
        first, spans, kinds, coarse = _coarse(limits, paths, which, start, end)
        ends = np.stack([start[which], end[which]], axis=1)
        told = np.empty((len(which), 4))
        timed = run(len(which), first.astype(float), spans, kinds.astype(float), coarse, ends, limits.constants,
                    limits.rows, limits.speeds, int(limits.curved), *work, room, len(room), told)
        which, told = which[:timed], told[:timed]
        good = told[:, 0] == TIMED
        count[which[good]], duration[which[good]] = told[good, 1], told[good, 3]
        failures += [Failure(int(k), float(x[1]), KINDS[int(x[0])], float(x[2])) for k, x in zip(which[~good], told[~good], strict=True)]
        parts.append(room[: int(told[good, 1].sum())].copy())
        done += timed
        if report is not None:
            report(done / len(some))
    cells = parts[0] if len(parts) == 1 else np.concatenate([np.empty((0, RECORD)), *parts])
    return Profile(np.concatenate([[0], np.cumsum(count)]), cells, duration), failures


def _coarse(limits: Limits, paths: Splines | Curves, which: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, ...]:
    """First cell of each path (and their number), ends (C, 2) of cells, kinds (C,), rows (C, 10, 4 R + V) at their points."""
    grids = [_grid(limits, paths.breaks(k)) for k in which]
    count = np.array([len(s) - 1 for s in grids])
    spans = np.concatenate([np.stack([s[:-1], s[1:]], axis=1) for s in grids])
    path = np.repeat(which, count)
    first = np.concatenate([[0], np.cumsum(count)])
    kinds = np.zeros(len(spans), dtype=int)
    if limits.curved:  # √x is not smooth at rest: a variable in which it is
        kinds[first[:-1]] = np.where(start[which] == 0, FROM_REST, LINEAR)
        kinds[first[1:] - 1] = np.where(end[which] == 0, TO_REST, LINEAR)
    return first, spans, kinds, rows_on(limits, paths, path, spans)


def _grid(limits: Limits, breaks: np.ndarray) -> np.ndarray:
    each = max(2, -(-GRID // (len(breaks) - 1)))
    s = np.append(np.concatenate([np.linspace(p, q, each, endpoint=False) for p, q in pairwise(breaks)]), breaks[-1])
    if limits.curved:
        parts = np.array([0.125, 0.25, 0.5])
        s = np.concatenate([s[:1], s[1] * parts, s[1:-1], 1 - (1 - s[-2]) * parts[::-1], s[-1:]])
    return s


def rows_on(limits: Limits, paths: Splines | Curves, path: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """The rows (C, 10, 4 R + V) at the points of cells of paths (C,), s running evenly over each."""
    s = spans[:, :1] + (spans[:, 1:] - spans[:, :1]) * POINTS
    s[:, -1] = spans[:, 1]
    c, d = paths.polynomials(path, spans.mean(axis=1), s)
    return np.asarray(limits.kernel(c.shape[-2])(c, d, limits.scale))


def bounds_at(limits: Limits, paths: Splines | Curves, path: int, s: np.ndarray, x: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """At places s (n,) of a path: a, b, lower and upper bounds (n, rows) of a u + b x, at speeds x (n,) where they depend on it; caps (n,)."""
    which, n, R = np.full(len(s), path), len(limits.names), limits.rows
    c, d = paths.polynomials(which, s, s[:, None])
    found = np.asarray(limits.kernel(c.shape[-2])(c, d, limits.scale))[:, 0]
    a, b, g, way = (found[:, k * R : k * R + n] for k in range(4))
    damping, dry, power = limits.constants[:, :n]
    root = np.sqrt(np.zeros(len(s)) if x is None else x)[:, None]
    rest = g + dry * np.sign(way) + damping * way * root
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.where(power > 0, np.minimum(power / (np.abs(way) * root), LARGE), 1.0)
    bound = np.where(np.isnan(bound), LARGE, bound)
    return a, b, -bound - rest, bound - rest, 1.0 / np.maximum(found[:, 4 * R :].max(axis=-1), 1.0 / LARGE)


def largest_square(a: np.ndarray, b: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """The largest x (n,) for which some u meets all rows: an upper bound of u of one against a lower one of another."""
    up = a > 0
    alpha = np.abs(a)
    over, under = np.where(up, b, -b), np.where(up, -b, b)
    high, low = np.where(up, hi, -lo), np.where(up, -lo, hi)
    i, j = (slice(None), slice(None), None), (slice(None), None)
    slope, free = alpha[j] * over[i] + alpha[i] * under[j], alpha[j] * high[i] + alpha[i] * low[j]
    some = slope > 1e-13 * (alpha[i] + alpha[j])
    found = np.where(some, free / np.where(some, slope, 1.0), LARGE)
    return np.asarray(found.min(axis=(1, 2)))
