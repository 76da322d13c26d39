"""The largest feasible speed along paths: x(s) = ṡ², found as a minimum of arcs.

Any feasible profile stays below the arcs of maximal acceleration that leave an upper bound forward and below those of maximal
deceleration that reach it backward (comparison of solutions). So the optimum is the minimum of such arcs: a backward pass over the cells
gives the largest x from which the end can be reached, a forward pass the largest one that can be reached from the start (`passes.py`).
Cells are then cut where the arc changes: where another row becomes active, where x meets the limit of speed, where a bound
is exceeded between the ends, and where the polynomial is not exact enough (`arcs.py`). What is left when no cell needs a cut
is the continuous optimum, with all its switching points at ends of cells.

Bobrow, Dubowsky & Gibson (1985) have the phase plane and its arcs; Pham (2014) the points of zero inertia, where a row loses u.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from .arcs import SAME, SLIDE, Arcs, cuts, find_arcs
from .cells import Cells, divide, make_cells
from .collocation import FROM_REST, LINEAR, MONOMIALS, POINTS, TO_REST, powers
from .limits import Limits
from .passes import Failure, ends, passes
from .paths import Curves, Splines
from .roots import first_root

ROUNDS = 60
PATIENCE = 15
"""Rounds after which an arc that touches the limit of speed may miss it by ten times more."""
GRID = 32
"""Cells of a path at the beginning, about."""
ZERO = 1e-9
"""A coefficient is zero below this part of its largest value in the cell."""


@dataclass
class Profile:
    """Speeds of paths on their cells: arrays over all cells, in the order of paths and of s."""

    which: np.ndarray
    s0: np.ndarray
    s1: np.ndarray
    kind: np.ndarray
    x: np.ndarray
    """(C,): x at the end from which the arc was computed."""
    y: np.ndarray
    """(C, p): increments to that at the points of the cell."""
    u: np.ndarray
    """(C, p): s̈ at the points."""
    state: np.ndarray
    row: np.ndarray
    """The row that x follows; -1 on the limit of speed."""
    residual: np.ndarray
    """(C,): the largest violation at the points of the cell."""
    largest: np.ndarray
    """(C, 2): the maximum-velocity curve at the ends of the cell."""


def solve(
    limits: Limits,
    paths: Splines | Curves,
    start: np.ndarray,
    end: np.ndarray,
    report: Callable[[float], object] | None = None,
    without: Collection[int] = (),
) -> tuple[Profile, list[Failure]]:
    """The fastest profiles of all paths but those `without`, from x = start (paths,) to x = end, and why some have none."""
    cells = _grid(limits, paths, start, end)
    cells = _regular(limits, paths, cells.take(~np.isin(cells.which, list(without))))
    done: list[Profile] = []
    failures: list[Failure] = []
    for turn in range(ROUNDS + 1):
        cells, table, speed, failed = passes(cells, start, end)
        if failed:
            failures += failed
            cells = cells.take(~np.isin(cells.which, [f.path for f in failed]))
            if not len(cells):
                break
            cells, table, speed, _ = passes(cells, start, end)
        arcs = find_arcs(cells, *ends(table, speed), SAME * 10.0 ** (turn // PATIENCE))
        cut, residual = cuts(cells, arcs)
        busy = np.isfinite(cut)
        unfinished = np.unique(cells.which[busy])
        finished = ~np.isin(cells.which, unfinished)
        own = (cells.which, cells.s0, cells.s1, cells.kind, arcs.x, arcs.y, arcs.u, arcs.state, arcs.row, residual, cells.largest)
        done.append(Profile(*(x[finished] for x in own)))
        if report is not None:
            report(1.0 - len(unfinished) / len(paths))
        if not len(unfinished):
            break
        if turn == ROUNDS:
            failures += [Failure(int(k), float(cells.s0[busy & (cells.which == k)][0]), "rounds") for k in unfinished]
            break
        cells = _refined(limits, paths, cells, arcs, cut, ~finished)
    joined = [np.concatenate([getattr(p, f.name) for p in done]) for f in fields(Profile)] if done else []
    if not joined:
        return Profile(*(np.zeros(0) for _ in fields(Profile))), failures
    order = np.lexsort((joined[1], joined[0]))
    return _smoothed(Profile(*(x[order] for x in joined))), failures


def _smoothed(profile: Profile) -> Profile:
    """The profile with what is left of cuts, cells too short for a slope, going on like the cells before them."""
    for k in np.flatnonzero((profile.s1 - profile.s0 < 1e-8) & (profile.state == SLIDE))[::-1]:
        after = k + 1 < len(profile.s0) and profile.which[k + 1] == profile.which[k] and profile.state[k + 1] == SLIDE
        near, end = (k + 1, 0) if after or k == 0 else (k - 1, -1)
        profile.u[k] = profile.u[near, end]
    return profile


def _grid(limits: Limits, paths: Splines | Curves, start: np.ndarray, end: np.ndarray) -> Cells:
    which, left, right, kind = [], [], [], []
    for k in range(len(paths)):
        x = paths.breaks(k)
        each = max(2, -(-GRID // (len(x) - 1)))
        s = np.append(np.concatenate([np.linspace(p, q, each, endpoint=False) for p, q in pairwise(x)]), x[-1])
        if limits.curved:  # √x is not smooth at rest: short cells there, and a variable in which it is
            parts = np.array([0.125, 0.25, 0.5])
            s = np.concatenate([s[:1], s[1] * parts, s[1:-1], 1 - (1 - s[-2]) * parts[::-1], s[-1:]])
        kinds = np.zeros(len(s) - 1, dtype=int)
        if limits.curved:
            kinds[0], kinds[-1] = FROM_REST if start[k] == 0 else LINEAR, TO_REST if end[k] == 0 else LINEAR
        which.append(np.full(len(s) - 1, k))
        left.append(s[:-1])
        right.append(s[1:])
        kind.append(kinds)
    return make_cells(limits, paths, *(np.concatenate(x) for x in (which, left, right, kind)))


def _regular(limits: Limits, paths: Splines | Curves, cells: Cells) -> Cells:
    """The cells cut where a row has zero inertia, so that no coefficient of u changes its sign inside one."""
    for _ in range(12):
        y = cells.signs
        size = np.max(np.abs(y), axis=1, keepdims=True)
        sign = np.where(np.abs(y) <= ZERO * size, 0, np.sign(y))
        changes = (sign.max(axis=1) > 0) & (sign.min(axis=1) < 0)
        busy = changes.any(axis=1) & (cells.h > 1e-9)
        if not busy.any():
            break
        old = cells.take(busy)
        row = np.argmax(changes[busy], axis=1)
        sigma = first_root(old.signs[np.arange(len(old)), :, row])
        sigma = np.where((sigma > 1e-12) & (sigma < 1 - 1e-12), sigma, 0.5)
        new = make_cells(limits, paths, *divide(old, sigma)[:4])
        cells = Cells.join([cells.take(~busy), new])
    return cells.take(np.lexsort((cells.s0, cells.which)))


def _refined(limits: Limits, paths: Splines | Curves, cells: Cells, arcs: Arcs, cut: np.ndarray, keep: np.ndarray) -> Cells:
    """The cells of paths that are not finished, cut."""
    busy = np.isfinite(cut)
    old = cells.take(busy)
    which, s0, s1, kind, parent = divide(old, cut[busy])
    guess = None
    if cells.e.ndim == 3:
        part = (s0[:, None] + (s1 - s0)[:, None] * POINTS - old.s0[parent, None]) / old.h[parent, None]
        part, k = np.clip(part, 0.0, 1.0), old.kind[parent, None]
        sigma = np.where(k == LINEAR, part, np.where(k == FROM_REST, np.sqrt(part), 1 - np.sqrt(1 - part)))
        c = (arcs.values(cells)[busy] @ MONOMIALS.T)[parent]
        guess = np.maximum(np.einsum("ck,cpk->cp", c, powers(sigma)), 0.0)
    new = make_cells(limits, paths, which, s0, s1, kind, guess)
    cells = Cells.join([cells.take(keep & ~busy), new])
    return cells.take(np.lexsort((cells.s0, cells.which)))
