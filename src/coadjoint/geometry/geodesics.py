"""Geodesics of kinetic energy: the motions of a robot without forces, and the shortest paths between configurations.

∇_v v = 0, that is M dv/dt + C v = 0. The length of a motion is ∫ √⟨v, v⟩ dt, in √(kg m²) where angles are in radians; along a
geodesic the speed √⟨v, v⟩ is constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import a_robot, numbers, states, takes, times
from ..arrays import ArrayLike
from ..robot.robot import Robot
from . import flow
from .metric import inner_product


class Geodesic:
    """The geodesic through q with velocity v, which can be evaluated at any time of a span: `curve(t)` gives q(t), v(t)."""

    def __init__(self, robot: Robot, q: Any, v: Any, span: Any) -> None:
        """q (..., nq), v (..., nv); span: times up to which it is wanted, before or after 0."""
        self.robot = robot
        self.q, self.v = states(robot, q=(q, robot.nq), v=(v, robot.nv))
        rate = lambda t, y: list(flow.geodesic_rate(robot, *y))
        self._solution = flow.Solution(rate, [self.q, self.v], times(span), "the geodesic")

    def __call__(self, t: Any) -> tuple[np.ndarray, np.ndarray]:
        """q (..., *t.shape, nq) and v (..., *t.shape, nv)."""
        q, v = self._solution(times(t))
        return self.robot.normalize(q), v

    @property
    def speed(self) -> np.ndarray:
        """√⟨v, v⟩ (...)."""
        return np.sqrt(inner_product(self.robot, self.q, self.v, self.v))


@takes(robot=a_robot, q=numbers, v=numbers, t=numbers)
def geodesic(robot: Robot, q: ArrayLike, v: ArrayLike, t: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """q(t) (..., *t.shape, nq) and v(t) (..., *t.shape, nv) of the geodesic that has q (..., nq) and v (..., nv) at t = 0.

    t is a time or an array of times, in any order, negative ones too; all are NumPy arrays. The step adapts to a local error of 1e-13.
    """
    return Geodesic(robot, q, v, t)(t)


def exponential(robot: Robot, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """exp_q(v) (..., nq): where the geodesic from q with velocity v is after a unit of time."""
    return geodesic(robot, q, v, 1.0)[0]
