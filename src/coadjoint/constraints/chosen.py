"""The independent rows of a constraint, where others only repeat them, as rows of a loop in a plane do."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Array, concat, stack
from ..robot.robot import Robot
from .constraint import Constraint
from .parts import Part
from .rank import constraint_rank
from .relative import rows


@dataclass(frozen=True)
class Chosen(Part):
    """These rows, by number, of holonomic parts."""

    parts: tuple[Part, ...]
    kept: tuple[int, ...]

    def names(self, robot: Robot) -> tuple[str, ...]:
        names = [name for part in self.parts for name in part.names(robot)]
        return tuple(names[k] for k in self.kept)

    def value(self, robot: Robot, q: Array) -> Array | None:
        found = [x for part in self.parts if (x := part.value(robot, q)) is not None]
        return self._of(concat(found))

    def jacobian(self, robot: Robot, q: Array) -> Array:
        found = [x[..., k, :] for x in (part.jacobian(robot, q) for part in self.parts) for k in range(x.shape[-2])]
        return rows([found[k] for k in self.kept])

    def bias(self, robot: Robot, q: Array, v: Array) -> Array:
        return self._of(concat([part.bias(robot, q, v) for part in self.parts]))

    def held(self, robot: Robot, q: np.ndarray) -> Part:
        return replace(self, parts=tuple(part.held(robot, q) for part in self.parts))

    def frozen(self, robot: Robot) -> Part:
        return replace(self, parts=tuple(part.frozen(robot) for part in self.parts))

    def _of(self, x: Array) -> Array:
        return stack([x[..., k] for k in self.kept])


def independent(robot: Robot, constraint: Constraint, q: np.ndarray) -> Constraint:
    """The rows of a holonomic constraint that are independent at q (nq,), the first of those that repeat each other.

    They are the whole constraint near q if its rank does not fall there: at a singular configuration it does.
    """
    names, rank = constraint.names(robot), constraint_rank(robot, constraint, q)
    kept = tuple(k for k, name in enumerate(names) if name not in rank.redundant)
    return constraint if len(kept) == len(names) else Constraint([Chosen(constraint.parts, kept)])
