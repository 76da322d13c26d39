"""What would change in the derivatives of an optimum if its limits were drawn in for the changed robot.

Where a limit would be exceeded between the nodes it is drawn in at those nearby, and derivatives hold the amounts. For another robot the
peak between the nodes has another height: drawn in so that the peaks keep theirs, the amounts D change by dD, with

    ∂peak/∂D dD = -dpeak,    d′ = d + ∂x/∂D dD,    dcost′ = dcost + λᵀ dD,

where dpeak is the change of the peaks with the amounts held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .between_nodes import SKIN, groups_of
from .clearance import Clearances
from .rows import MotorPower, Rows, Torques
from .stages import Forces

if TYPE_CHECKING:
    from .motion_result import Conditions
    from .multiple_shooting import Flight
    from .transcription import Here

Change = tuple[np.ndarray, np.ndarray]
"""How what is at places changes: the stage (N, 4, n, columns) and joint forces (N, n, columns)."""


@dataclass
class Peaks:
    """The J peaks between nodes for which limits that hold are drawn in."""

    kind: np.ndarray
    """(J,): the numbers of the limit, of its row and of the place among the dense ones."""
    row: np.ndarray
    place: np.ndarray
    drawn: np.ndarray
    """(held, J): 1 where a limit that holds is drawn in for a peak."""

    @classmethod
    def of(cls, conditions: Conditions, here: Here | Flight, held: np.ndarray) -> Peaks:
        """Those of a solution whose inequalities `held` (numbers) hold."""
        problem, K = conditions.problem, len(conditions.problem.nodes)
        groups, (s, basis) = groups_of(problem), problem.spline.dense
        values = _values(problem.limits, problem.forces_at(here, basis))  # type: ignore[arg-type]
        columns = [
            (kind, row, sign)
            for kind, sides in enumerate(problem.sides)
            for side, sign in zip(sides, (-1.0, 1.0), strict=True)
            for row in np.arange(len(problem.limits[kind].names))[side]
        ]
        found: dict[tuple[int, int, int], list[int]] = {}
        for entry, number in enumerate(held if problem.sides.kept is None else problem.sides.kept[held]):
            node, column = divmod(int(number), len(columns))
            kind, row, sign = columns[column]
            least = SKIN if isinstance(problem.limits[kind], Clearances) else 0.0
            if problem.drawn[kind][0, node, row] > least:
                first, last = groups[node], groups[node + 2] if node + 2 <= K else len(s)
                place = first + int((sign * values[kind][first:last, row]).argmax())
                found.setdefault((kind, row, place), []).append(entry)
        drawn = np.zeros((len(held), len(found)))
        for j, entries in enumerate(found.values()):
            drawn[entries, j] = 1.0
        numbers = np.array(list(found), dtype=int).reshape(-1, 3)
        return cls(numbers[:, 0], numbers[:, 1], numbers[:, 2], drawn)

    def change(self, limits: Sequence[Rows], at: Forces, moved: Change) -> np.ndarray:
        """The change (J, columns) of the peaks' heights, their places held, with what is there (J, …)."""
        found = np.zeros((len(self.kind), moved[0].shape[-1]))
        for kind in np.unique(self.kind):
            mine = np.flatnonzero(self.kind == kind)
            found[mine] = row_changes(limits[kind], at, *moved)[mine, self.row[mine]]
        return found


def row_changes(rows: Rows, at: Forces, stage: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """The changes (N, m, columns) of limits' rows with those of the stage (N, 4, n, columns) and of joint forces (N, n, columns)."""
    if isinstance(rows, Torques):
        return tau
    if isinstance(rows, MotorPower):
        return np.asarray(at.v[..., None] * tau + at.tau[..., None] * stage[:, 1])
    return np.stack([rows.push(at, stage[..., k]) for k in range(stage.shape[-1])], axis=-1)


def _values(limits: Sequence[Rows], forces: Forces) -> list[np.ndarray]:
    return [rows.value(forces) for rows in limits]
