"""Rods of the studio: their length is a number of the robot, an input of compiled code, as the place of a pin is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...arrays import Array
from ...constraints import Constraint
from ...constraints.parts import Cable, Part
from ...robot.robot import Robot


@dataclass(frozen=True)
class Rod(Cable):
    """A cable whose length is the x coordinate of a frame of the base, its ruler."""

    ruler: str

    def holonomic(self, robot: Robot) -> tuple[bool, ...]:
        return (True,)

    def value(self, robot: Robot, q: Array) -> Array:
        return sum(self._spans(robot, q)[2]) - robot.frame(self.ruler)[1][0, 3]

    def held(self, robot: Robot, q: np.ndarray) -> Rod:
        return self


def fixed_rods(robot: Robot, constraint: Constraint, q: np.ndarray) -> tuple[Robot, Constraint]:
    """The robot with a ruler for each cable of any length, and the constraint with rods as long as these cables are at q (nq,)."""
    parts: list[Part] = []
    for part in constraint.parts:
        held = part.held(robot, q) if isinstance(part, Cable) else part
        if isinstance(held, Cable) and held is not part:
            ruler, mark = new_frame(robot, "rod"), np.eye(4)
            mark[0, 3] = held.length
            robot, held = robot.with_frame(ruler, robot.base, mark), Rod(held.frames, None, ruler)
        parts.append(held)
    return robot, Constraint(parts)


def new_frame(robot: Robot, stem: str) -> str:
    """The first of stem0, stem1, … that is no frame of the robot."""
    return next(name for k in range(len(robot.frame_names) + 1) if (name := f"{stem}{k}") not in robot.frame_names)
