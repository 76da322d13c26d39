"""Places where paths stand still: dq/ds and d²q/ds² at many places of each, by a sequential program."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from ..kernel.program_trial import Example
from ..kernel.programs import Floats, native_program
from .paths import Curves, Splines

STILL = 1e-9
"""dq/ds, beside its largest value on the path, that is zero."""
TOLD = 4


def speeds_along(paths: Splines | Curves) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The numbers (n,) of paths that have their breaks in common, places (P,) along them, and (n, 4): see `find_standstill`."""
    kinds: dict[int, list[int]] = {}
    for k in range(len(paths)):
        kinds.setdefault(id(paths.breaks(k)) if isinstance(paths, Splines) else k, []).append(k)
    run = native_program(find_standstill, _examples)
    for some in kinds.values():
        which, (places, middle, piece, d) = np.array(some), _places(paths.breaks(some[0]).tobytes())
        if isinstance(paths, Splines):
            c, first = paths.c, paths.first[which].astype(float)
        else:  # a polynomial for each place
            c, far = paths.polynomials(np.repeat(which, len(middle)), middle, places.reshape(-1, 3))
            c, d, first = c.reshape(len(places), *c.shape[2:]), far.reshape(-1), np.zeros(1)
            piece = np.arange(float(len(places)))
        told, work = np.empty((len(which), TOLD)), np.empty(2 * len(places))
        run(len(which), len(places), first, piece, d, np.ascontiguousarray(c), c.shape[-2], c.shape[-1], STILL, work, told)
        yield which, places, told


@lru_cache(maxsize=64)
def _places(breaks: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Places (3 m,), both ends and the middle of m cells; their middles (m,); of each place its piece and the distance to its begin."""
    x = np.frombuffer(breaks)
    s = np.unique(np.concatenate([np.linspace(0.0, 1.0, 65), x]))
    middle = (s[:-1] + s[1:]) / 2
    piece = np.repeat(np.searchsorted(x[:-1], middle, side="right") - 1, 3)
    places = np.stack([s[:-1], middle, s[1:]], axis=1).reshape(-1)
    return places, middle, piece.astype(float), places - x[piece]


def find_standstill(
    paths: int,
    places: int,
    first: Floats,
    piece: Floats,
    d: Floats,
    c: Floats,
    order: int,
    nv: int,
    still: float,
    work: Floats,
    told: Floats,
) -> int:
    """Tells for every path the largest |dq/ds|, the number of the first place where it stands still or -1, |dq/ds| at both ends.

    first (paths)               the first piece of every path
    piece, d (places)           the piece of a place, after the first, and where on it
    c (pieces, order, nv)       polynomials, highest power first
    work (2, places)            |dq/ds| and |d²q/ds²|, the largest of all joints
    told (paths, 4)
    """
    for k in range(paths):
        size = 0.0
        most = 0.0
        for p in range(places):
            at = (int(first[k]) + int(piece[p])) * order * nv
            far = d[p]
            speed = 0.0
            bend = 0.0
            for j in range(nv):
                value = c[at + j]
                rate = 0.0
                curve = 0.0
                for i in range(1, order):
                    curve = curve * far + 2.0 * rate
                    rate = rate * far + value
                    value = value * far + c[at + i * nv + j]
                speed = max(speed, abs(rate))
                bend = max(bend, abs(curve))
            work[p] = speed
            work[places + p] = bend
            size = max(size, speed)
            most = max(most, bend)
        dead = -1
        for p in range(places - 1, -1, -1):
            if work[p] <= still * size and work[places + p] <= max(still * size, still * most):
                dead = p
        told[4 * k] = size
        told[4 * k + 1] = float(dead)
        told[4 * k + 2] = work[0]
        told[4 * k + 3] = work[places - 1]
    return paths


def _examples() -> list[Example]:
    """Two paths of one piece each; the second stands still at its fourth place."""
    moving = [[0.3, -0.7], [1.1, 0.9], [0.2, 0.4], [0.0, 1.0]]
    resting = [[1.0, -2.0], [-1.125, 2.25], [0.421875, -0.84375], [0.3, 0.7]]  # its slope is 3 (d - 3/8)², and -2 times that
    c = np.array([moving, resting])
    told = np.zeros((2, TOLD))
    d = np.linspace(0.0, 1.0, 9)
    return [Example((2, 9, np.array([0.0, 1.0]), np.zeros(9), d, c, 4, 2, STILL, np.zeros(18), told), (told,))]
