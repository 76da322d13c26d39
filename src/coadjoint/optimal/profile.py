"""The largest feasible speed along paths: x(s) = ṡ², from rows on coarse cells by the program of `path_program.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .collocation import LARGE
from .halving_programs import ROUGH_KIND
from .limits import Limits
from .pass_programs import BELOW, BRAKE, END, NEVER, START, TIMED
from .path_program import RECORD, ROUGH, STILL, UNFINISHED
from .path_work import FEW, TOGETHER, Grid, even_grid, work_for
from .paths import Curves, Splines

GRID, DYNAMIC = 32, 40
"""Cells of a path at the beginning, about; and where dynamics matter, whose rows are no polynomials: there some of them are halved."""
AGAIN = (45, 73, 101, 150, 211)
"""This number where a path was not finished."""
INEXACT = 1e-9
"""The excess of a row in a cell up to which no other cells are tried."""
POWERS_INEXACT = 1e-7
"""The same where powers are limited."""
PARTS = (0.43, 0.61, 0.29, 0.73, 0.52)
"""The places, tried one after the other, at which cells are cut where a path of many pieces was not finished."""
SMOOTH = 1e-10
"""The last coefficient of a row's polynomial on a coarse cell, beside its largest value, beyond which the cell is halved."""
SMOOTH_FAR, FAR = 1e-12, 3
"""The same on a path so long that its cells were halved so often: parts of a row are many times its limit there, and cancel."""
HALVINGS = 12
"""The largest number of halvings: a path that is not smooth would never end."""
FINEST, EACH_FINEST, FINEST_OF_FUNCTIONS = 20000, 20, 4000
"""Coarse cells of a path, and of each of its pieces where there are many, beyond which none is halved: four pieces of a hundred radians
take 2,000. A user's function may be rough by rounding, and is halved no further than this.
"""
LOST = (NEVER, BRAKE, BELOW)
"""Outcomes of a path on which no speed is possible somewhere."""
KINDS = {
    NEVER: "never",
    BRAKE: "brake",
    BELOW: "below",
    START: "start",
    END: "end",
    UNFINISHED: "rounds",
    STILL: "rest",
    ROUGH: "long",
}


@dataclass
class Failure:
    """The reason why a path cannot be timed."""

    path: int
    s: float
    kind: str
    value: float = 0.0


class Profile:
    """Speeds of paths on their cells: arrays over all cells, in the order of paths and of s."""

    def __init__(self, parts: list[np.ndarray], duration: np.ndarray) -> None:
        self.parts = parts
        """The cells (C, RECORD) of every path."""
        self.duration = duration
        """(paths,): nan where there is none."""

    @cached_property
    def cells(self) -> np.ndarray:
        """(C, RECORD): of all paths."""
        return self.parts[0] if len(self.parts) == 1 else np.concatenate([_NOTHING, *self.parts])

    @cached_property
    def s0(self) -> np.ndarray:
        return self.cells[:, 0]

    @cached_property
    def s1(self) -> np.ndarray:
        return self.cells[:, 1]

    @cached_property
    def kind(self) -> np.ndarray:
        return self.cells[:, 2].astype(int)

    @cached_property
    def state(self) -> np.ndarray:
        return self.cells[:, 3].astype(int)

    @cached_property
    def row(self) -> np.ndarray:
        return self.cells[:, 4].astype(int)

    @cached_property
    def x(self) -> np.ndarray:
        """x at the end from which the arc was computed."""
        return self.cells[:, 5]

    @cached_property
    def lengths(self) -> np.ndarray:
        """The time of each cell."""
        return self.cells[:, 9]

    @cached_property
    def y(self) -> np.ndarray:
        """(C, 10): increments of x to that end at the points."""
        return self.cells[:, 10:20]

    @cached_property
    def u(self) -> np.ndarray:
        """(C, 10): s̈ at the points."""
        return self.cells[:, 20:30]

    @cached_property
    def speeds(self) -> np.ndarray:
        """(C, 2): the speeds of the clock at both ends of each cell."""
        return self.cells[:, 30:32]

    def of(self, path: int) -> Profile:
        return Profile([self.parts[path]], self.duration[path : path + 1])


def solve(
    limits: Limits,
    paths: Splines | Curves,
    ends: np.ndarray,
    report: Callable[[float], object] | None = None,
) -> tuple[Profile, list[Failure], np.ndarray]:
    """The fastest profiles of all paths, from x = ends[:, 0] to x = ends[:, 1], why some have none, and excesses.

    The excess (paths,) of a row of limits is its largest, as a part of the limit: that of rounding, but where no cells were good enough.

    ends (paths, 2): LARGE where x is free; it becomes so where the path itself rests.
    """
    n, cells = len(paths), DYNAMIC if limits.dynamic else GRID
    grids: dict[int, Grid] = {}
    waiting = []
    for k in range(n):
        breaks = paths.breaks(k)
        if id(breaks) not in grids:  # of waypoints all are the same
            grids[id(breaks)] = even_grid(breaks.tobytes(), limits.curved, cells)
        waiting.append(_Task(k, grids[id(breaks)]))
    duration, excess = np.full(n, np.nan), np.zeros(n)
    failures: list[Failure] = []
    found: dict[int, np.ndarray] = {}
    kept: dict[int, tuple[float, np.ndarray, float]] = {}
    exceeded = POWERS_INEXACT if len(limits.powered) else INEXACT
    while waiting:
        grid = waiting[0].grid
        some = next((k for k, x in enumerate(waiting[:TOGETHER]) if x.grid is not grid), min(TOGETHER, len(waiting)))
        tasks, waiting = waiting[:some], waiting[some:]
        which = [x.path for x in tasks]
        work = work_for(limits, grid, len(tasks), paths)
        timed = work.run(paths, which, ends[which], tasks[0].smooth)
        waiting = tasks[timed:] + waiting
        rests = work.ends[:timed] >= LARGE
        if rests.any():
            ends[which[:timed]] = np.where(rests, LARGE, ends[which[:timed]])
        used = 0
        for j, (task, (status, value, further, time)) in enumerate(zip(tasks[:timed], work.told.tolist(), strict=False)):
            again = task.grids < len(AGAIN)
            if status == TIMED and further > exceeded and task.grid.scale == 1.0 and again:
                if further < kept.get(task.path, (np.inf,))[0]:
                    kept[task.path] = further, work.room[used : used + int(value)].copy(), time
                used += int(value)
                status = UNFINISHED
            if status == TIMED:
                mine = work.room[used : used + int(value)].copy()
                used += int(value)
                worst = -1 if task.grid.scale == 1.0 and time < np.inf else _worst(mine)
                if time < np.inf and (worst < 0 or mine[worst, 6] < INEXACT or task.tries >= task.most(UNFINISHED)):
                    found[task.path], duration[task.path], excess[task.path] = mine, time, further
                    continue
                status, value = UNFINISHED, float(mine[worst, 0])
            if status == ROUGH:
                rough = work.kinds[j * work.cells : (j + 1) * work.cells] >= ROUGH_KIND
                finest = task.is_finest(isinstance(paths, Curves))
                if finest and isinstance(paths, Splines):  # smooth, but too long
                    failures.append(Failure(task.path, float(grid.middle[np.argmax(rough)]), KINDS[ROUGH], len(grid.spans)))
                else:
                    waiting.append(task.finer(rough, finest))
            elif task.grid.scale != 1.0 and task.tries < task.most(status):
                waiting.append(task.other(value))
            elif again and (status == UNFINISHED or (status in LOST and _bent(limits, paths, task.path, value))):
                # cuts close in on a point where arcs graze, or rows about a wrong guess leave no speed: on other cells they do not
                other = even_grid(paths.breaks(task.path).tobytes(), limits.curved, AGAIN[task.grids])
                waiting.append(_Task(task.path, other, grids=task.grids + 1))
            elif task.path in kept:  # the best there is
                excess[task.path], found[task.path], duration[task.path] = kept[task.path]
            else:
                failures.append(Failure(task.path, value, KINDS[int(status)], further))
        if report is not None:
            report(1.0 - len(waiting) / n)
    return Profile([found.get(k, _NOTHING) for k in range(n)], duration), failures, excess


def _bent(limits: Limits, paths: Splines | Curves, path: int, s: float) -> bool:
    """True if rows are not linear and the robot can stand at this place: no speed was lost there but about a wrong guess."""
    if not limits.curved:
        return False
    _, _, lo, hi, _ = bounds_at(limits, paths, path, np.array([min(s, 1.0 - 1e-9)]))
    return bool(len(limits.powered) or (np.all(lo <= 0.0) and np.all(hi >= 0.0)))


_NOTHING = np.empty((0, RECORD))


def _worst(cells: np.ndarray) -> int:
    """The cell (C, RECORD) without a time, or else the one in which a row is exceeded most."""
    return int(np.argmax(np.where(np.isfinite(cells[:, 9]), cells[:, 6], np.inf)))


@dataclass
class _Task:
    """A path and its coarse cells."""

    path: int
    grid: Grid
    halved: int = 0
    tries: int = 0
    """How often cells of this grid were cut near a place."""
    grids: int = 0
    """How many other grids were tried before."""

    @property
    def pieces(self) -> int:
        return len(self.grid.breaks) - 1

    @property
    def smooth(self) -> float:
        """The last coefficient of a row, beside its largest value, beyond which a cell is halved."""
        if self.halved >= HALVINGS:
            return np.inf
        return SMOOTH_FAR if self.halved >= FAR and len(self.grid.spans) < FINEST // 4 else SMOOTH

    def is_finest(self, of_functions: bool) -> bool:
        return len(self.grid.spans) >= (FINEST_OF_FUNCTIONS if of_functions else max(FINEST, EACH_FINEST * self.pieces))

    def most(self, status: float) -> int:
        """The number of attempts with other cells for a path of many pieces."""
        return len(PARTS) + self.pieces // FEW if status == UNFINISHED else len(PARTS) * (status in LOST)

    def other(self, s: float) -> _Task:
        """The task with other cells near s only: with others everywhere, many pieces would be finished at some places and not at others."""
        return _Task(self.path, self.grid.cut_near(s, PARTS[self.tries % len(PARTS)]), self.halved, self.tries + 1, self.grids)

    def finer(self, rough: np.ndarray, last: bool) -> _Task:
        grid = self.grid.halved(rough)
        return _Task(self.path, grid, HALVINGS if last else self.halved + 1, self.tries, self.grids)


def bounds_at(
    limits: Limits, paths: Splines | Curves, path: int, s: np.ndarray, x: np.ndarray | None = None
) -> tuple[np.ndarray, ...]:
    """At places s (n,) of a path: a, b, lower and upper bounds (n, rows) of a u + b x; caps (n,). x (n,): where bounds depend on it."""
    which, n, R = np.full(len(s), path), len(limits.names), limits.rows
    c, d = paths.polynomials(which, s, s[:, None])
    found = np.asarray(limits.kernel(c.shape[-2])(c, d, limits.scale))[:, 0]
    a, b, g, way = (found[:, k * R : k * R + n] for k in range(4))
    damping, dry, slow = limits.constants[:, :n]
    root = np.sqrt(np.zeros(len(s)) if x is None else x)[:, None]
    rest = g + dry * np.sign(way) + damping * way * root
    most = np.where(slow > 0, 1.0 / np.maximum(np.maximum(np.abs(way) * root, slow), 1e-30), 1.0)
    return a, b, -most - rest, most - rest, 1.0 / np.maximum(found[:, 4 * R :].max(axis=-1), 1.0 / LARGE)


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
