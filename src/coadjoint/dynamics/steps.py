"""Steps of fixed length: a semi-implicit one, and Runge and Kutta's of fourth order, for any law of acceleration."""

from __future__ import annotations

from collections.abc import Callable

from ..arrays import Array
from ..robot.robot import Robot

Acceleration = Callable[[Array, Array, Array], Array]
"""a (nv,) from q, v and t (1,)."""


def euler_step(robot: Robot, q: Array, v: Array, t: Array, acceleration: Acceleration, h: float) -> tuple[Array, Array]:
    """One semi-implicit step of length h."""
    v = v + h * acceleration(q, v, t)
    return robot.integrate(q, h * v), v


def rk4_step(robot: Robot, q: Array, v: Array, t: Array, acceleration: Acceleration, h: Array | float) -> tuple[Array, Array]:
    """One step of Runge and Kutta's method of fourth order: its stages stand at the times t, t + h/2, t + h/2 and t + h."""

    def slope(q: Array, v: Array, t: Array) -> tuple[Array, Array]:
        return robot.rate(q, v), acceleration(q, v, t)

    q1, v1 = slope(q, v, t)
    q2, v2 = slope(q + h / 2 * q1, v + h / 2 * v1, t + h / 2)
    q3, v3 = slope(q + h / 2 * q2, v + h / 2 * v2, t + h / 2)
    q4, v4 = slope(q + h * q3, v + h * v3, t + h)
    q = q + h / 6 * (q1 + 2 * q2 + 2 * q3 + q4)
    return robot.normalize(q), v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
