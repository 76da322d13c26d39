"""Coarse cells of paths, and the arrays on which their program works, kept from call to call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from threading import local
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..kernel.program_trial import Called
from ..kernel.programs import prepared_program
from ..kernel.runtime.bound import Bound, Kernels
from ..kernel.runtime.function import CompiledFunction
from .cell_programs import stride
from .collocation import FROM_REST, LARGE, LINEAR, POINTS, TO_REST
from .halving_programs import EXTRA, LEVELS, SPAN
from .limits import Limits
from .pass_programs import TIMED
from .path_program import RECORD, time_paths
from .paths import Curves, Splines
from .timing_examples import timing_examples

CELLS, EACH, EACH_COARSE = 300, 60, 6
"""Most cells of a path, or of each of its pieces or coarse cells where there are many, beside three for each coarse one."""
ROOM = 128
"""Cells of a path in the result, on average."""
FEW = 8
"""Pieces of a path up to which s is what the program has."""
TOGETHER = 32
"""Paths that are timed between two looks at interrupts and progress."""
LASTING = 10**6
"""Numbers of work that is kept, at most."""
KEPT = 6
"""The number of kinds of work that a thread keeps for limits."""


class Grid:
    """The ends s (C + 1,) of coarse cells of a path with these breaks."""

    def __init__(self, s: np.ndarray, breaks: np.ndarray, lasting: bool = False) -> None:
        self.s, self.breaks, self.lasting = s, breaks, lasting

    @cached_property
    def scale(self) -> float:
        """The factor of s in the program, a power of two: its smallest lengths are meant for paths of few pieces."""
        pieces = len(self.breaks) - 1
        return 1.0 if pieces <= FEW else float(2 ** int(np.log2(pieces / (FEW / 2))))

    @cached_property
    def spans(self) -> np.ndarray:
        """(C, 2)"""
        return np.stack([self.s[:-1], self.s[1:]], axis=1)

    @cached_property
    def middle(self) -> np.ndarray:
        return np.asarray(self.spans.mean(axis=1))

    @cached_property
    def points(self) -> np.ndarray:
        """(C, 10): the points of cells, s running evenly over each."""
        s = np.asarray(self.spans[:, :1] + (self.spans[:, 1:] - self.spans[:, :1]) * POINTS)
        s[:, -1] = self.spans[:, 1]
        return s

    @cached_property
    def piece(self) -> np.ndarray:
        """(C,): the piece of the path where each lies."""
        return np.searchsorted(self.breaks[:-1], self.middle, side="right") - 1

    @cached_property
    def far(self) -> np.ndarray:
        """(C, 10, 1): the points from the begin of their piece."""
        return np.asarray((self.points - self.breaks[self.piece][:, None])[..., None])

    def cut_near(self, s: float, part: float) -> Grid:
        """The grid with the cell at s, and those beside it, cut at a part of themselves."""
        k = int(np.searchsorted(self.s, s, side="right")) - 1
        some = slice(max(k - 1, 0), min(k + 2, len(self.spans)))
        cuts = self.spans[some, 0] + part * (self.spans[some, 1] - self.spans[some, 0])
        return Grid(np.unique(np.concatenate([self.s, cuts])), self.breaks)

    def halved(self, rough: np.ndarray) -> Grid:
        """The grid with some cells (C,) halved."""
        return Grid(np.sort(np.concatenate([self.s, (self.s[:-1] + self.s[1:])[rough] / 2])), self.breaks)


@lru_cache(maxsize=64)
def even_grid(breaks_bytes: bytes, curved: bool, count: int) -> Grid:
    """About the given number of cells, equal on every piece."""
    breaks = np.frombuffer(breaks_bytes)
    each = -(-count // (len(breaks) - 1))
    s = np.append(np.concatenate([np.linspace(p, q, each, endpoint=False) for p, q in pairwise(breaks)]), breaks[-1])
    if curved:
        parts = np.array([0.125, 0.25, 0.5])
        s = np.concatenate([s[:1], s[1] * parts, s[1:-1], 1 - (1 - s[-2]) * parts[::-1], s[-1:]])
    return Grid(s, breaks, True)


class Work:
    """The program of paths, at most so many, on one grid, with all its arrays: filled, run and read again and again by one thread."""

    def __init__(self, limits: Limits, grid: Grid, paths: int, order: int, spread: bool) -> None:
        """order: of the polynomials; spread: whether each point has its own."""
        R, V, C, L = limits.rows, limits.speeds, len(grid.spans), grid.scale
        self.limits, self.grid, self.paths, self.cells = limits, grid, paths, C
        most = max(CELLS, EACH * (len(grid.breaks) - 1), EACH_COARSE * len(grid.s)) + 3 * len(grid.s)
        halves = 0 if spread else LEVELS * EXTRA
        self.c = np.zeros((paths * C + halves, 10 if spread else 1, order, limits.robot.nv))
        self.d = np.zeros((paths * C + halves, 10, 1))
        if not spread:
            self.d[: paths * C] = np.tile(L * grid.far, (paths, 1, 1))
        self.shrink = (L ** -np.arange(order - 1.0, -1.0, -1.0))[:, None]
        """(order, 1): what coefficients are multiplied by."""
        self.rows = _aligned((C + halves) * 10 * (4 * R + V)).reshape(-1, 10, 4 * R + V)
        self.spans = np.zeros((C + halves, SPAN))
        self.spans[:C, :2] = L * grid.spans
        self.kinds = np.zeros(paths * C)
        self.ends = np.empty((paths, 2))
        self.told = np.empty((paths, 4))
        self.room = np.empty((max(most, paths * ROOM), RECORD))
        self.how = np.empty(2)
        kernel, scale = limits.kernel(order), limits.scale[None, None]
        native = isinstance(getattr(kernel, "__self__", kernel), CompiledFunction)
        kind = Bound if native else Called
        of_path = [(k * C, C, 0) for k in range(paths)]
        of_halves = [(paths * C + k, EXTRA, C + k) for k in range(0, halves, EXTRA)]
        self.bound = Kernels(
            [
                kind(kernel, [self.c[at : at + n], self.d[at : at + n], scale], [self.rows[to : to + n]], stepped=True)
                for at, n, to in of_path + of_halves
            ]
        )
        cells, slacks, speeds = (
            _aligned((most + 2) * stride(R, V)),
            _aligned(10 * (2 * R + V)),
            _aligned(max(6 * (most + 8), 2 * (4 * R + V))),
        )
        given: Sequence[Any] = (
            self.bound,
            paths,
            C,
            self.spans,
            self.kinds,
            self.c,
            self.d,
            0 if spread else self.c[0].size,
            order,
            limits.robot.nv,
            self.rows,
        )
        given = (*given, self.ends, limits.constants, R, V, int(limits.curved), cells, slacks, speeds)
        self.program = prepared_program(time_paths, timing_examples, *given, self.room, len(self.room), self.told, self.how, most)
        self.size = self.c.size + self.rows.size + self.room.size + cells.size

    def run(self, paths: Splines | Curves, which: Sequence[int], ends: np.ndarray, smooth: float) -> int:
        """Time paths `which`, with x at both ends (paths, 2); how many were timed before there was no more room."""
        self.fill(paths, which)
        L, n = self.grid.scale, len(which)
        self.ends[:n] = ends if L == 1.0 else np.where(ends < LARGE, L**2 * ends, LARGE)
        self.how[0], self.how[1] = n, smooth
        self.kinds[...] = LINEAR
        if self.limits.curved:  # √x is not smooth at rest: a variable in which it is
            kinds = self.kinds.reshape(-1, self.cells)[:n]
            kinds[:, 0] = np.where(ends[:, 0] == 0, FROM_REST, LINEAR)
            kinds[:, -1] = np.where(ends[:, 1] == 0, TO_REST, LINEAR)
        timed = int(self.program())
        if timed < 0:
            raise MemoryError("no memory for the rows of paths")
        if L != 1.0:
            told = self.told[:timed]
            failed = told[:, 0] != TIMED
            told[:, 1:3] /= np.where(failed[:, None], [L, L**2], 1.0)
            used = self.room[: int(told[~failed, 1].sum())]
            used[:, :2] /= L
            used[:, [5, 7, 8, *range(10, 20)]] /= L**2
            used[:, 20:] /= L
        return timed

    def fill(self, paths: Splines | Curves, which: Sequence[int]) -> None:
        grid, n = self.grid, len(which)
        used = slice(n * self.cells)
        if isinstance(paths, Splines):
            pieces = grid.piece if len(paths) == 1 else (paths.first[np.asarray(which)][:, None] + grid.piece).ravel()
            paths.c.take(pieces, axis=0, out=self.c[used, 0], mode="clip")
        else:
            each = np.repeat(np.asarray(which), self.cells)
            self.c[used], self.d[used] = paths.polynomials(each, np.tile(grid.middle, n), np.tile(grid.points, (n, 1)))
            self.d[used] *= grid.scale
        if grid.scale != 1.0:
            self.c[used] *= self.shrink


def _aligned(size: int) -> np.ndarray:
    """(size,): an array whose vectors of eight numbers lie in one line of the cache each."""
    found = np.empty(size + 8)
    return found[-found.ctypes.data % 64 // 8 :][:size]


class _Kept(local):
    """Work of a thread, by limits: the pages of new memory are cleared first, and binding takes time."""

    def __init__(self) -> None:
        self.work: WeakKeyDictionary[Limits, dict[Any, Work]] = WeakKeyDictionary()


_KEPT = _Kept()


def work_for(limits: Limits, grid: Grid, paths: int, given: Splines | Curves) -> Work:
    """Work for this number of paths or more."""
    order, spread = (given.c.shape[-2], False) if isinstance(given, Splines) else (3, True)
    if not grid.lasting:
        return Work(limits, grid, paths, order, spread)
    paths = TOGETHER if paths > 1 else 1
    mine = _KEPT.work.setdefault(limits, {})
    key = (id(grid), paths, order, spread)  # the work holds its grid
    found = mine.get(key)
    if found is None:
        found = Work(limits, grid, paths, order, spread)
        if found.size <= LASTING:
            if len(mine) >= KEPT:
                mine.pop(next(iter(mine)))
            mine[key] = found
    return found
