"""Controllers in joint space, with the Lyapunov functions that prove them.

e and w are the errors of `tracking_error`, v_d and a_d the reference's motion as seen from the present configuration, and C the
Christoffel matrix, for which dM/dt - 2C is skew: Park, Bobrow & Ploen (1995), section 4.

    PD with gravity          τ = g + Kp e - Kd v                          ½ vᵀMv + ½ eᵀKp e falls by vᵀKd v
    computed torque          τ = M (a_d + Kd w + Kp e) + C v + g          ½ wᵀw + ½ eᵀKp e falls by wᵀKd w
    PD+                      τ = M a_d + C v_d + g + Kd w + Kp e          ½ wᵀMw + ½ eᵀKp e falls by wᵀKd w
    passivity-based          τ = M a_r + C v_r + g + K s                  ½ sᵀMs falls by sᵀK s

with v_r = v_d + Λ e, a_r = dv_r/dt, s = v_r - v. Takegaki & Arimoto (1981); Paden & Panja (1988); Slotine & Li (1987). On joints that
move in groups, dexp⁻¹(e)ᵀ Kp e takes the place of Kp e: the gradient of ½ eᵀKp e.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arguments import a_flag, a_robot, takes
from ..arrays import Array, dot, mv
from ..dynamics import coriolis_matrix, gravity_force, inverse_dynamics, kinetic_energy, mass_matrix
from ..robot.robot import Robot
from .controller import Controller, gain, times
from .references import as_reference
from .tracking_error import TrackingError, error_rate, pulled_back, tracking_error

Gains = Mapping[str, Any]


@takes(robot=a_robot)
def pd(robot: Robot, reference: Any, *, kp: Any, kd: Any) -> Controller:
    """PD control with gravity compensation: τ = g(q) + Kp e - Kd v, for a reference at rest.

    kp, kd: numbers, diagonals (nv,) or matrices (nv, nv), positive definite. reference: a configuration (nq,), or a function
    reference(t) -> q, v, a; while it moves, Kd w takes the place of -Kd v and the Lyapunov function may increase.
    """
    return Controller(robot, "pd", _pd, as_reference(robot, reference), _pd_gains(robot, kp, kd), _energy_of_pd)


@takes(robot=a_robot, friction=a_flag)
def computed_torque(robot: Robot, reference: Any, *, kp: Any, kd: Any, friction: bool = False) -> Controller:
    """Computed-torque control: the closed loop obeys dw/dt + Kd w + Kp e = 0, which is linear for joints with one screw.

    kp [1/s²] and kd [1/s]: numbers, diagonals (nv,) or matrices (nv, nv), positive definite; kd = 2√kp damps critically. With
    `friction` the friction of the robot's joints is compensated too. reference(t) -> q, v, a.
    """
    gains = _pd_gains(robot, kp, kd) | {"friction": friction}
    return Controller(robot, "computed_torque", _computed_torque, as_reference(robot, reference), gains, _energy_of_error)


@takes(robot=a_robot)
def pd_plus(robot: Robot, reference: Any, *, kp: Any, kd: Any) -> Controller:
    """PD+ control (Paden & Panja 1988): τ = M a_d + C v_d + g + Kd w + Kp e. kp and kd as for `pd`, reference(t) -> q, v, a."""
    return Controller(robot, "pd_plus", _pd_plus, as_reference(robot, reference), _pd_gains(robot, kp, kd), _energy_of_pd_plus)


@takes(robot=a_robot)
def passivity_based(robot: Robot, reference: Any, *, rate: Any, damping: Any) -> Controller:
    """Passivity-based tracking (Slotine & Li 1987): τ = M a_r + C v_r + g + K s with s = w + Λ e.

    rate: Λ [1/s], at which errors decay once s is zero; damping: K [N m s]. Both are numbers, diagonals (nv,) or matrices (nv, nv),
    positive definite. reference(t) -> q, v, a. With C the Christoffel matrix, ½ sᵀMs falls by sᵀK s.
    """
    gains = {name: gain(x, name, robot.nv, of=robot.v_names) for name, x in (("rate", rate), ("damping", damping))}
    return Controller(robot, "passivity_based", _passivity_based, as_reference(robot, reference), gains, _energy_of_sliding)


def _pd_gains(robot: Robot, kp: Any, kd: Any) -> dict[str, Any]:
    return {name: gain(x, name, robot.nv, of=robot.v_names) for name, x in (("kp", kp), ("kd", kd))}


def _spring(gains: Gains, robot: Robot, error: TrackingError) -> Array:
    """The gradient of ½ eᵀKp e (..., nv)."""
    return pulled_back(robot, error.position, times(gains["kp"], error.position))


def _pd(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    error = tracking_error(robot, q, v, *desired)
    return gravity_force(robot, q) + _spring(gains, robot, error) + times(gains["kd"], error.velocity)


def _computed_torque(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    error = tracking_error(robot, q, v, *desired)
    a = error.reference_acceleration + times(gains["kd"], error.velocity) + _spring(gains, robot, error)
    return inverse_dynamics(robot, q, v, a, friction=gains["friction"])


def _pd_plus(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    error = tracking_error(robot, q, v, *desired)
    ahead = _feedforward(robot, q, v, error.reference_velocity, error.reference_acceleration)
    return ahead + _spring(gains, robot, error) + times(gains["kd"], error.velocity)


def _passivity_based(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    v_r, a_r, s = sliding(gains["rate"], robot, q, v, *desired)
    return _feedforward(robot, q, v, v_r, a_r) + times(gains["damping"], s)


def _feedforward(robot: Robot, q: Array, v: Array, v_r: Array, a_r: Array) -> Array:
    """M a_r + C(q, v) v_r + g (..., nv)."""
    return mv(mass_matrix(robot, q), a_r) + mv(coriolis_matrix(robot, q, v), v_r) + gravity_force(robot, q)


def sliding(rate: np.ndarray, robot: Robot, q: Array, v: Array, *desired: Array) -> tuple[Array, Array, Array]:
    """v_r = v_d + Λ e, its derivative a_r along the motion, and s = v_r - v, each (..., nv)."""
    error = tracking_error(robot, q, v, *desired)
    v_r = error.reference_velocity + times(rate, error.position)
    a_r = error.reference_acceleration + times(rate, error_rate(robot, error.position, error.velocity))
    return v_r, a_r, v_r - v


def _potential(gains: Gains, e: Array) -> Array:
    return 0.5 * dot(e, times(gains["kp"], e))


def _energy_of_pd(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    return kinetic_energy(robot, q, v) + _potential(gains, robot.difference(q, desired[0]))


def _energy_of_error(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    error = tracking_error(robot, q, v, *desired)
    return 0.5 * dot(error.velocity, error.velocity) + _potential(gains, error.position)


def _energy_of_pd_plus(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    error = tracking_error(robot, q, v, *desired)
    return kinetic_energy(robot, q, error.velocity) + _potential(gains, error.position)


def _energy_of_sliding(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    return kinetic_energy(robot, q, sliding(gains["rate"], robot, q, v, *desired)[2])
