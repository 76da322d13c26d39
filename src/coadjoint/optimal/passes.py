"""Passes over the cells of all paths: the largest speed from which the end can be reached, and that can be reached from the start."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .arcs import find_arcs
from .cells import Cells, with_maps
from .collocation import LARGE, passing


@dataclass
class Failure:
    """Why a path cannot be timed."""

    path: int
    s: float
    kind: str
    value: float = 0.0


def passes(cells: Cells, start: np.ndarray, end: np.ndarray) -> tuple[Cells, np.ndarray, np.ndarray, list[Failure]]:
    """Cells (linear about their own profiles where they depend on √x), their table (paths, longest), x at all nodes, failures."""
    table = _table(cells)
    if cells.e.ndim < 3:
        return cells, table, *_speeds(cells, table, start, end)
    for _ in range(40):
        speed, failures = _speeds(cells, table, start, end)
        arcs = find_arcs(cells, *ends(table, speed))
        x = np.maximum(arcs.values(cells), 0.0)
        before = cells.guess
        bad = np.isin(cells.which, [f.path for f in failures])
        fresh = np.where(bad[:, None], before, x)
        cells = with_maps(replace(cells, guess=fresh))
        known = np.isfinite(before)
        if known.all() and np.all(np.abs(fresh - before) <= 1e-12 * np.maximum(fresh, 1e-9 * fresh.max())):
            break
    return cells, table, *_speeds(cells, table, start, end)


def _table(cells: Cells) -> np.ndarray:
    """Numbers of the cells of every path in a row; -1 behind the last."""
    _, first, count = np.unique(cells.which, return_index=True, return_counts=True)
    k = np.arange(count.max())
    return np.where(k < count[:, None], first[:, None] + k, -1)


def _speeds(cells: Cells, table: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, list[Failure]]:
    """x (paths, longest + 1) at all nodes of the fastest profile, and what makes paths infeasible."""
    n, m = table.shape
    rows = cells.a.shape[-1]
    pad = table < 0
    index = np.where(pad, 0, table)
    own = cells.which[table[:, 0]]
    cap = np.full((n, m + 1), LARGE)
    cap[:, :-1] = np.where(pad, LARGE, cells.largest[index, 0])
    cap[:, 1:] = np.minimum(cap[:, 1:], np.where(pad, LARGE, cells.largest[index, 1]))
    P = np.where(pad[..., None, None], 0.0, cells.P[index, :, :, -1])  # (n, m, 2, rows)
    Q = np.where(pad[..., None, None], 0.0, cells.Q[index, :, :, -1])
    from_end = np.empty((n, m + 1, 1))
    from_end[:, 0, 0] = np.minimum(cap[:, -1], end[own])
    _run(rows, from_end, _reversed(P[:, :, 1]), _reversed(Q[:, :, 1]), _reversed(cap[:, :-1])[..., None])
    bound = _reversed(from_end[..., 0])
    speed = np.empty((n, m + 1, 1))
    first = np.where(start[own] >= LARGE, bound[:, 0], start[own])
    speed[:, 0, 0] = first
    _run(rows, speed, np.ascontiguousarray(P[:, :, 0]), np.ascontiguousarray(Q[:, :, 0]), np.ascontiguousarray(bound[:, 1:, None]))
    found = speed[..., 0]
    return found, _failures(cells, table, pad, own, cap, bound, found, end)


def _reversed(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x[:, ::-1])


def _run(rows: int, states: np.ndarray, P: np.ndarray, Q: np.ndarray, cap: np.ndarray) -> None:
    """All cells one after the other: states (n, m + 1, 1) from the first on."""
    take, m = passing(rows), P.shape[1]
    repeat = getattr(getattr(take, "__self__", None), "repeat", None)
    if repeat is not None:
        repeat([states[:, :-1], P, Q, cap], [states[:, 1:]], m)
        return
    for k in range(m):
        x = states[:, k]
        states[:, k + 1] = np.minimum(np.min(x + (P[:, k] * x + Q[:, k]), axis=-1, initial=LARGE)[:, None], cap[:, k])


def _failures(
    cells: Cells,
    table: np.ndarray,
    pad: np.ndarray,
    own: np.ndarray,
    cap: np.ndarray,
    bound: np.ndarray,
    speed: np.ndarray,
    end: np.ndarray,
) -> list[Failure]:
    """Paths with a node where no speed is possible, where the motion cannot be braked, or with a start or an end too fast."""
    found: dict[int, Failure] = {}
    index = np.where(pad, 0, table)
    least = np.zeros_like(cap)
    least[:, :-1] = np.where(pad, 0.0, cells.least[index, 0])
    least[:, 1:] = np.maximum(least[:, 1:], np.where(pad, 0.0, cells.least[index, 1]))
    s = np.ones_like(cap)
    s[:, :-1] = np.where(pad, 1.0, cells.s0[index])
    size = np.minimum(np.abs(cap), np.abs(speed).max(axis=1, keepdims=True))  # cap is LARGE where nothing limits the speed
    slack = 1e-9 * np.maximum(size, 1e-9)
    for kind, wrong in (
        ("never", (cap < -slack) | (least > cap + slack)),
        ("brake", bound < np.minimum(least, 1e-12) - slack),
        ("below", speed < least - slack),
    ):
        for k in np.flatnonzero(wrong.any(axis=1)):
            where = np.flatnonzero(wrong[k])
            at = int(where[-1] if kind == "brake" else where[0])  # a pass backward spreads it to all places before
            found.setdefault(int(own[k]), Failure(int(own[k]), float(s[k, at]), kind, float(bound[k, at])))
    for k in np.flatnonzero(speed[:, 0] > bound[:, 0] * (1 + 1e-9) + 1e-15):
        found.setdefault(int(own[k]), Failure(int(own[k]), 0.0, "start", float(bound[k, 0])))
    last = np.where(end[own] >= LARGE, -1.0, end[own])
    for k in np.flatnonzero(speed[:, -1] < last * (1 - 1e-9) - 1e-15):
        found.setdefault(int(own[k]), Failure(int(own[k]), 1.0, "end", float(speed[k, -1])))
    return list(found.values())


def ends(table: np.ndarray, speed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x at the start and at the end of every cell."""
    inside = table >= 0
    x0, x1 = np.empty(inside.sum()), np.empty(inside.sum())
    x0[table[inside]], x1[table[inside]] = speed[:, :-1][inside], speed[:, 1:][inside]
    return x0, x1
