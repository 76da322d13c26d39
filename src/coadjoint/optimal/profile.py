"""The largest feasible speed along paths: x(s) = ṡ², from rows on coarse cells by the program of `path_program.py`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from math import prod
from threading import local

import numpy as np

from ..kernel.programs import native_program
from ..kernel.runtime.function import run_steps
from .cell_programs import stride
from .collocation import FROM_REST, LARGE, LINEAR, POINTS, TO_REST
from .limits import Limits
from .path_program import BELOW, BRAKE, END, NEVER, RECORD, ROUGH, START, TIMED, UNFINISHED, time_paths
from .paths import Curves, Splines

GRID = 32
"""Cells of a path at the beginning, about."""
AGAIN = (45, 73, 101, 150, 211)
"""The same where a path was not finished."""
SMOOTH = 1e-9
"""The last coefficient of a row's polynomial on a coarse cell, beside its largest value, beyond which the cell is halved."""
HALVINGS = 6
"""So often at most: a path that is not smooth has no end of it."""
FINEST = 1000
"""Coarse cells of a path beyond which none is halved."""
CELLS = 300
"""Most cells of a path, beside three for each coarse one."""
LASTING = 10**6
"""Numbers that a thread keeps of each kind of work, at most."""
ALONE = 200
"""Cells whose rows are not worth a second thread."""
TOGETHER = 64
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
    n, run = len(paths), native_program(time_paths)
    grids: dict[int, _Grid] = {}
    waiting = []
    for k in range(n):
        if k not in without:
            breaks = paths.breaks(k)
            if id(breaks) not in grids:  # of waypoints all are the same
                grids[id(breaks)] = _grid(breaks.tobytes(), limits.curved, GRID)
            waiting.append(_Task(k, grids[id(breaks)]))
    asked, duration = len(waiting), np.full(n, np.nan)
    failures: list[Failure] = []
    found: dict[int, np.ndarray] = {}
    while waiting:
        some = next((k for k, x in enumerate(waiting[:TOGETHER]) if x.halved != waiting[0].halved), TOGETHER)
        tasks, waiting = waiting[:some], waiting[some:]
        most = CELLS + 3 * max(len(x.grid.s) for x in tasks)
        which = np.array([x.path for x in tasks])
        first, spans, kinds, coarse = _coarse(limits, paths, which, [x.grid for x in tasks], start, end)
        ends, told = np.stack([start[which], end[which]], axis=1), np.empty((len(tasks), 4))
        work, room = _work(limits, most), _KEPT.get("found", max(most, len(tasks) * 128), RECORD)
        smooth = SMOOTH if tasks[0].halved < HALVINGS else np.inf
        sizes = limits.rows, limits.speeds, int(limits.curved)
        timed = run(
            *(len(tasks), first, spans, kinds, coarse, ends, limits.constants), *sizes, *work, room, len(room), told, smooth, most
        )
        waiting = tasks[timed:] + waiting
        used = 0
        for task, (status, value, further, time), a, b in zip(tasks[:timed], told.tolist(), first, first[1:], strict=False):
            if status == TIMED:
                found[task.path] = room[used : used + int(value)].copy()
                used += int(value)
                duration[task.path] = time
            elif status == ROUGH:
                waiting.append(task.finer(kinds[int(a) : int(b)] >= 8))
            elif status == UNFINISHED and task.tries < len(
                AGAIN
            ):  # cuts close in on a point where arcs graze: from others they do not
                grid = _grid(paths.breaks(task.path).tobytes(), limits.curved, AGAIN[task.tries])
                waiting.append(_Task(task.path, grid, 0, task.tries + 1))
            else:
                failures.append(Failure(task.path, value, KINDS[int(status)], further))
        if report is not None:
            report(1.0 - len(waiting) / asked)
    order = [found.get(k, _NOTHING) for k in range(n)]
    cells = order[0] if n == 1 else np.concatenate(order)
    return Profile(np.concatenate([[0], np.cumsum([len(x) for x in order])]), cells, duration), failures


_NOTHING = np.empty((0, RECORD))


class _Grid:
    """The ends s (C + 1,) of coarse cells."""

    def __init__(self, s: np.ndarray) -> None:
        self.s = s

    @cached_property
    def spans(self) -> np.ndarray:
        """(C, 2)"""
        return np.stack([self.s[:-1], self.s[1:]], axis=1)

    @cached_property
    def points(self) -> np.ndarray:
        """(C, 10): the points of cells, s running evenly over each."""
        s = np.asarray(self.spans[:, :1] + (self.spans[:, 1:] - self.spans[:, :1]) * POINTS)
        s[:, -1] = self.spans[:, 1]
        return s


@dataclass
class _Task:
    """A path and its coarse cells."""

    path: int
    grid: _Grid
    halved: int = 0
    tries: int = 0

    def finer(self, rough: np.ndarray) -> _Task:
        old = self.grid.s
        s = np.sort(np.concatenate([old, (old[:-1] + old[1:])[rough] / 2]))
        return _Task(self.path, _Grid(s), self.halved + 1 if len(s) < FINEST else HALVINGS, self.tries)


class _Kept(local):
    """Memory of a thread, by its use, from call to call: the pages of new memory are cleared first, which takes time."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def get(self, use: str, *shape: int) -> np.ndarray:
        """An array of this shape, its numbers arbitrary."""
        size = prod(shape)
        found = self.arrays.get(use)
        if found is None or len(found) < size:
            found = np.empty(size)
            if size <= LASTING:
                self.arrays[use] = found
        return found[:size].reshape(shape)


_KEPT = _Kept()


def _work(limits: Limits, most: int) -> list[np.ndarray]:
    R, V = limits.rows, limits.speeds
    sizes = {"cells": (most + 2) * stride(R, V), "slacks": 10 * (2 * R + V), "speeds": max(6 * (most + 8), 4 * R + V)}
    return [_KEPT.get(use, n) for use, n in sizes.items()]


def _coarse(
    limits: Limits, paths: Splines | Curves, which: np.ndarray, grids: list[_Grid], start: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, ...]:
    """First cell of each path (and their number), ends (C, 2) of cells, kinds (C,), rows (C, 10, 4 R + V) at their points."""
    count = [len(x.spans) for x in grids]
    spans, points = (y[0] if len(y) == 1 else np.concatenate(y) for y in ([x.spans for x in grids], [x.points for x in grids]))
    first = np.concatenate([[0], np.cumsum(count)])
    kinds = np.zeros(len(spans))
    if limits.curved:  # √x is not smooth at rest: a variable in which it is
        kinds[first[:-1]] = np.where(start[which] == 0, FROM_REST, LINEAR)
        kinds[first[1:] - 1] = np.where(end[which] == 0, TO_REST, LINEAR)
    return first.astype(float), spans, kinds, rows_on(limits, paths, np.repeat(which, count), spans, points)


@lru_cache(maxsize=64)
def _grid(breaks_bytes: bytes, curved: bool, count: int) -> _Grid:
    breaks = np.frombuffer(breaks_bytes)
    each = -(-count // (len(breaks) - 1))
    s = np.append(np.concatenate([np.linspace(p, q, each, endpoint=False) for p, q in pairwise(breaks)]), breaks[-1])
    if curved:
        parts = np.array([0.125, 0.25, 0.5])
        s = np.concatenate([s[:1], s[1] * parts, s[1:-1], 1 - (1 - s[-2]) * parts[::-1], s[-1:]])
    return _Grid(s)


def rows_on(limits: Limits, paths: Splines | Curves, path: np.ndarray, spans: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The rows (C, 10, 4 R + V) at the points (C, 10) of cells (C, 2) of paths (C,); the next call overwrites them."""
    c, d = paths.polynomials(path, spans.mean(axis=1), points)
    found = _KEPT.get("rows", *points.shape, 4 * limits.rows + limits.speeds)
    threads = 1 if len(c) < ALONE else None
    run_steps(limits.kernel(c.shape[-2]), [c, d, limits.scale[None, None]], [found], threads)
    return found


def bounds_at(
    limits: Limits, paths: Splines | Curves, path: int, s: np.ndarray, x: np.ndarray | None = None
) -> tuple[np.ndarray, ...]:
    """At places s (n,) of a path: a, b, lower and upper bounds (n, rows) of a u + b x; caps (n,). x (n,): where bounds depend on it."""
    which, n, R = np.full(len(s), path), len(limits.names), limits.rows
    c, d = paths.polynomials(which, s, s[:, None])
    found = np.asarray(limits.kernel(c.shape[-2])(c, d, limits.scale))[:, 0]
    a, b, g, way = (found[:, k * R : k * R + n] for k in range(4))
    damping, dry = limits.constants[:, :n]
    root = np.sqrt(np.zeros(len(s)) if x is None else x)[:, None]
    rest = g + dry * np.sign(way) + damping * way * root
    return a, b, -1.0 - rest, 1.0 - rest, 1.0 / np.maximum(found[:, 4 * R :].max(axis=-1), 1.0 / LARGE)


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
