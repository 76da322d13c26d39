"""Cells of paths: intervals of s with the rows of all limits at their points, and the maps of these rows from end to end."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from .collocation import (
    AT_START,
    BACKWARD,
    COUNT,
    END,
    FORWARD,
    FROM_REST,
    INTEGRAL,
    LARGE,
    LINEAR,
    POINTS,
    STAGES,
    START,
    TO_REST,
    WEIGHTS,
    arc,
    place,
    speed_range,
    step_map,
)
from .limits import Limits, Rows, rows_of
from .paths import Curves, Splines

FLAT = 1e-12
"""A row whose coefficient of u is smaller than this, beside that of x, in a whole cell bounds x by itself."""


@dataclass
class Cells:
    """Arrays over cells, the first axis of each."""

    which: np.ndarray
    s0: np.ndarray
    s1: np.ndarray
    kind: np.ndarray
    a: np.ndarray
    b: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    e: np.ndarray
    cap: np.ndarray
    """(C, p): the largest x by velocities and by rows that do not depend on u, the least of 1 / inverse."""
    inverse: np.ndarray
    """(C, p, m): what each of these allows, as 1 / x."""
    signs: np.ndarray
    guess: np.ndarray
    """(C, p): x about which √x is linear; empty where no row depends on it."""
    P: np.ndarray
    Q: np.ndarray
    """(C, 2, rows, stages): increments P x + Q of a forward step from s0 and of a backward step from s1."""
    least: np.ndarray
    largest: np.ndarray
    """(C, 2): the range of x at both ends."""

    def __len__(self) -> int:
        return len(self.which)

    @property
    def h(self) -> np.ndarray:
        return np.asarray(self.s1 - self.s0)

    def take(self, index: np.ndarray) -> Cells:
        return replace(self, **{f.name: getattr(self, f.name)[index] for f in fields(self)})

    @staticmethod
    def join(parts: list[Cells]) -> Cells:
        return Cells(*(np.concatenate([getattr(x, f.name) for x in parts]) for f in fields(Cells)))


def make_cells(
    limits: Limits,
    paths: Splines | Curves,
    which: np.ndarray,
    s0: np.ndarray,
    s1: np.ndarray,
    kind: np.ndarray,
    guess: np.ndarray | None = None,
) -> Cells:
    """The cells [s0, s1] of paths `which`. guess (C, p): x about which rows are linear; None: rows without their parts in √x."""
    s = s0[:, None] + (s1 - s0)[:, None] * place(kind[:, None], POINTS)
    s[:, END] = s1
    rows = rows_of(limits, *paths.at(which, (s0 + s1) / 2, s))
    inverse = _inverse(rows)
    cap = 1.0 / np.maximum(inverse.max(axis=-1, initial=0.0), 1.0 / LARGE)
    n, empty = len(which), np.zeros((len(which), 0))
    cells = Cells(
        which,
        s0,
        s1,
        kind,
        rows.a,
        rows.b,
        rows.lo,
        rows.hi,
        empty if rows.e is None else rows.e,
        cap,
        inverse,
        rows.signs,
        np.full((n, COUNT), np.nan) if guess is None else guess,
        empty,
        empty,
        empty,
        empty,
    )
    return with_maps(cells)


def _inverse(rows: Rows) -> np.ndarray:
    """1 / x of the limits of speed: velocities, and one more from rows that do not depend on u in the whole cell."""
    flat = np.all(np.abs(rows.a) <= FLAT * np.max(np.abs(rows.b) + np.abs(rows.a), axis=1, keepdims=True), axis=1)
    if not flat.any():
        own = np.zeros(rows.a.shape[:2])
    else:
        bound = np.where(rows.b > 0, rows.hi, -rows.lo)
        own = np.where(flat[:, None, :], np.abs(rows.b) / np.maximum(bound, 1.0 / LARGE), 0.0).max(axis=-1, initial=0.0)
    return np.concatenate([rows.inverse, own[..., None]], axis=-1)


def bounds(cells: Cells) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """b and both bounds (C, p, rows), rows in √x being linear about the guess."""
    if cells.e.ndim < 3:
        return cells.b, cells.lo, cells.hi
    known = np.isfinite(cells.guess)[..., None]
    root = np.sqrt(np.maximum(np.where(known, cells.guess[..., None], 1.0), 1e-24))
    e = np.where(known, cells.e, 0.0)
    return cells.b + e / (2 * root), cells.lo - e * root / 2, cells.hi - e * root / 2


def with_maps(cells: Cells) -> Cells:
    """The cells with P, Q and the range of x at their ends."""
    rows = cells.a.shape[-1]
    b, lo, hi = bounds(cells)
    up = cells.a.sum(axis=1, keepdims=True) >= 0
    alpha = np.maximum(np.where(up, cells.a, -cells.a), 0.0)
    alpha = np.where(np.max(alpha, axis=1, keepdims=True) <= FLAT * np.max(np.abs(cells.b), axis=1, keepdims=True), 0.0, alpha)
    sides = []
    for order, beta, gamma in (
        (FORWARD, np.where(up, b, -b), np.where(up, hi, -lo)),
        (BACKWARD, np.where(up, -b, b), np.where(up, -lo, hi)),
    ):
        at: Any = lambda x, order=order: np.ascontiguousarray(np.swapaxes(x[:, list(order)], 1, 2))
        weight = np.broadcast_to(WEIGHTS[cells.kind][:, None, list(order)], (len(cells), rows, STAGES))
        h = np.broadcast_to(cells.h[:, None, None], (len(cells), rows, 1))
        with np.errstate(all="ignore"):
            sides.append(step_map()(at(alpha), at(beta), at(gamma), weight, h))
    P, Q = (np.stack([side[k] for side in sides], axis=1) for k in (0, 1))
    bad = ~(np.isfinite(P) & np.isfinite(Q)).all(axis=-1)
    P[bad], Q[bad] = -1.0, LARGE
    ends = [START, END]
    with np.errstate(all="ignore"):
        found = speed_range(rows)(*(np.ascontiguousarray(x[:, ends]) for x in (cells.a, b, lo, hi)))
    largest = np.minimum(found[..., 1], cells.cap[:, ends])
    return replace(cells, P=P, Q=Q, least=found[..., 0], largest=largest)


def follow(cells: Cells, row: np.ndarray, backward: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Increments of x, and u (C, p) at the points where x follows a row, forward from s0 or backward from s1."""
    n = np.arange(len(cells))
    pick: Any = lambda y: y[n, :, row]
    b, lo, hi = (pick(y) for y in bounds(cells))
    a = pick(cells.a)
    up = a.sum(axis=1, keepdims=True) >= 0
    alpha = np.maximum(np.where(up, a, -a), 0.0)
    turned = backward[:, None]
    high = up != turned
    beta, gamma = np.where(high, b, -b), np.where(high, hi, -lo)
    flip: Any = lambda y: np.ascontiguousarray(np.where(turned, y[:, ::-1], y))
    with np.errstate(all="ignore"):
        w = arc()(*map(flip, (alpha, beta, gamma, WEIGHTS[cells.kind])), cells.h[:, None], x[:, None])
    y = flip(w[:, 1:] @ INTEGRAL.T)
    with np.errstate(all="ignore"):
        u = flip(w) / (2.0 * WEIGHTS[cells.kind] * cells.h[:, None])
    u = np.where(turned, -u, u)
    rest = cells.kind == FROM_REST
    u[rest, START] = u[rest, 1:] @ AT_START  # 0 / 0 there
    rest = cells.kind == TO_REST
    u[rest, END] = u[rest, :-1] @ AT_START[::-1]
    return y, u


def divide(cells: Cells, sigma: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """which, s0, s1, kind, and number of the old cell, of the halves of cells cut at σ, left ones first."""
    cut = cells.s0 + cells.h * place(cells.kind, sigma)
    left = np.where(cells.kind == TO_REST, LINEAR, cells.kind)
    right = np.where(cells.kind == FROM_REST, LINEAR, cells.kind)
    twice = np.arange(len(cells))
    return (
        np.concatenate([cells.which, cells.which]),
        np.concatenate([cells.s0, cut]),
        np.concatenate([cut, cells.s1]),
        np.concatenate([left, right]),
        np.concatenate([twice, twice]),
    )
