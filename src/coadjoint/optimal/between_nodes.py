"""Solutions whose limits hold between the nodes too: where they do not, they are drawn in at the nodes nearby, and the search goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from . import interior_point
from .clearance import Clearances
from .multiple_shooting import Shots
from .rows import Rows
from .transcription import Transcription

DRAWN = 12
"""The largest number of times that limits are drawn in."""
MARGIN = 1.2
"""Limits are drawn in by this times what they are exceeded by, each time by a quarter more: then it ends also where the motion yields."""
EXCEEDED = 1e-6
"""The part by which a limit may be exceeded between the nodes."""
SKIN = 1e-6
"""Metres that capsules keep apart beyond what is asked for, so that it can be proved."""
INEXACT = 1e-4
"""The part by which the cost may differ from that of a finer quadrature."""
ROUGH = 1e-4
"""The error at which limits are drawn in for the first time."""
CLOSING = (1.05, 0.8, 0.5, 0.25, 0.1, 0.0)
"""Parts of what a first motion exceeds its limits by, by which they are widened one after the other where they cannot be met at once."""


@dataclass
class Search:
    """The way in which the problems `which` are solved, and the tolerance."""

    problem: Transcription | Shots
    which: np.ndarray
    tolerance: float
    iterations: int
    report: Callable[[int, float], None] | None

    def run(self, x: np.ndarray, earlier: interior_point.Solution | None = None) -> interior_point.Solution:
        """The solutions that start from x (b, variables), or from those of problems that are nearly the same; after Ctrl-C, those
        found so far.
        """
        found = interior_point.start(self.problem, self.which, x.copy()) if earlier is None else earlier
        everyone = np.arange(len(x))
        try:
            if earlier is None:
                moved = self._first(everyone, x, found)
            else:
                moved = EXCEEDED + np.maximum(-self.problem.values(found.x, self.which)[1], 0.0)
            self._run(everyone, found, moved)
        except KeyboardInterrupt:
            found.interrupted = True
        if found.interrupted:
            for row in np.flatnonzero(~found.converged | (found.error >= self.tolerance)):
                found.converged[row], found.message[row] = False, interior_point.INTERRUPTED
        return found

    def _first(self, everyone: np.ndarray, x: np.ndarray, found: interior_point.Solution) -> np.ndarray:
        """A first solution, in place; by how much (b, inequalities) limits are drawn in after it."""
        self._solve(everyone, found, max(ROUGH, self.tolerance), min(60, self.iterations))
        failed = everyone[~found.converged]
        if failed.size and not found.interrupted:
            self._close_in(failed, x[failed], found)
        moved = np.zeros(found.s.shape)  # what a guess drew in is enough until its own solution says otherwise
        known = np.zeros(len(x), dtype=bool)
        for drawn in self.problem.drawn:
            known |= np.any(drawn[self.which] > SKIN, axis=(1, 2))
        new = everyone[~known]
        moved[new] = self._draw_in(new, found)
        return moved

    def _run(self, everyone: np.ndarray, found: interior_point.Solution, moved: np.ndarray) -> None:
        for turn in range(0 if found.interrupted else DRAWN):
            begin = interior_point.again(self.problem, self.which[everyone], found, everyone, moved)
            found.put(everyone, self._solve(everyone, begin, self.tolerance, self.iterations))
            everyone = everyone[found.converged[everyone]]
            moved = self._draw_in(everyone, found, MARGIN + 0.25 * turn)
            chosen = moved.any(1)
            everyone, moved = everyone[chosen], moved[chosen]
            if not everyone.size or found.interrupted:
                break

    def untried(self, x: np.ndarray) -> interior_point.Solution:
        """x unchanged, after an interrupt."""
        found = interior_point.start(self.problem, self.which, x)
        found.message, found.interrupted = ["interrupted before the search began"] * len(x), True
        return found

    def _solve(
        self, rows: np.ndarray, begin: interior_point.Solution, tolerance: float, iterations: int
    ) -> interior_point.Solution:
        return interior_point.solve(
            self.problem,
            self.which[rows],
            begin,
            tolerance=tolerance,
            iterations=iterations,
            report=self.report,
        )

    def _close_in(self, rows: np.ndarray, x: np.ndarray, found: interior_point.Solution) -> None:
        """Limits are tightened around motions that exceed them, so that the whole motion leaves them on the same side."""
        over = [part.max(1, keepdims=True) for part in beyond(self.problem, x, self.which[rows])]
        for part in CLOSING if any(one.any() for one in over) else ():
            for drawn, one, limit in zip(self.problem.drawn, over, self.problem.limits, strict=True):
                drawn[self.which[rows]] = -part * one * size(limit.lower, limit.upper)
            begin = interior_point.start(self.problem, self.which[rows], x)
            found.put(rows, self._solve(rows, begin, 1e-3, 30))
            x = found.x[rows]
            if found.interrupted:
                return

    def _draw_in(self, rows: np.ndarray, found: interior_point.Solution, margin: float = MARGIN) -> np.ndarray:
        """The amounts (b, inequalities) by which limits are tightened: the excess of these solutions, and a little more."""
        if not rows.size:
            return np.zeros((0, found.s.shape[1]))
        parts = beyond(self.problem, found.x[rows], self.which[rows])
        moves = []
        for drawn, one, limit in zip(self.problem.drawn, parts, self.problem.limits, strict=True):
            over = (one > allowed(limit)).any((1, 2), keepdims=True)
            move = np.where(over, _within(limit, drawn[self.which[rows]], margin * one * size(limit.lower, limit.upper)), 0.0)
            drawn[self.which[rows]] += move
            moves.append(move)
        sides = zip(moves, self.problem.sides, strict=True)
        flat = [part for move, (below, above) in sides for part in (move[..., below], move[..., above])]
        K = len(self.problem.nodes)
        return self.problem.sides.those(np.concatenate([np.zeros((len(rows), K, 0)), *flat], axis=-1).reshape(len(rows), -1))


def _within(limit: Rows, drawn: np.ndarray, move: np.ndarray) -> np.ndarray:
    """The amounts `move` by which limits are drawn in further, of which so little is taken that room is left between two bounds."""
    width = limit.upper - limit.lower
    room = np.where(np.isfinite(width), 0.5 * width - drawn, np.inf)
    return np.asarray(move / (1.0 + move / np.maximum(room, 1e-300)))


def allowed(rows: Rows) -> float:
    """The fraction by which limits may be exceeded between the nodes; 0 for distances."""
    return 0.0 if isinstance(rows, Clearances) else EXCEEDED


def drawn_of(limits: Sequence[Rows], count: int, nodes: int) -> list[np.ndarray]:
    """The initial margins by which limits are tightened (count, nodes, m)."""
    return [np.full((count, nodes, len(x.names)), SKIN if isinstance(x, Clearances) else 0.0) for x in limits]


def size(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """The scale of a limit: the larger magnitude of its two bounds, or 1 where there is only one bound."""
    both = np.isfinite(upper) & np.isfinite(lower)
    largest = np.maximum(np.abs(np.where(both, upper, 1.0)), np.abs(np.where(both, lower, 1.0)))
    return np.maximum(largest, 1e-300)


def beyond(problem: Transcription | Shots, x: np.ndarray, which: np.ndarray) -> list[np.ndarray]:
    """The amount by which every row exceeds its limits between each node (b, K, m) and its neighbours, as a part of them."""
    (s, basis), groups = problem.spline.dense, groups_of(problem)
    forces = problem.forces_at(problem.at(x, which), basis)  # type: ignore[arg-type]
    found = []
    for rows in problem.limits:
        value = rows.value(forces).reshape(len(x), problem.spline.spans, -1, len(rows.names))
        over = np.maximum(np.maximum(rows.lower + _peaks(-value), _peaks(value) - rows.upper), 0.0) / size(rows.lower, rows.upper)
        over = over.reshape(len(x), len(s), -1)
        between = np.maximum.reduceat(over, groups, axis=1)
        found.append(np.maximum(between[:, :-1], between[:, 1:]))
    return found


def groups_of(problem: Transcription | Shots) -> np.ndarray:
    """The numbers (K + 1,) of the dense places from where on the places before each node, and those after the last one, stand."""
    s = problem.spline.dense[0]
    return np.minimum(np.searchsorted(s, np.concatenate([[0.0], problem.nodes])), len(s) - 1)


def _peaks(value: np.ndarray) -> np.ndarray:
    """Values (b, spans, S, m) at equal distances; where the parabola through three of them has its top between them, its height."""
    before, here, after = value[:, :, :-2], value[:, :, 1:-1], value[:, :, 2:]
    bend, rise = 2.0 * here - before - after, after - before
    peak = (bend > 0) & (np.abs(rise) <= 2.0 * bend)
    found = value.copy()
    found[:, :, 1:-1] += np.where(peak, rise**2 / (8.0 * np.where(peak, bend, 1.0)), 0.0)
    return found
