"""Control by shaping: the robot under control is again a mechanical system, with another potential or another metric.

    controlled symmetry       τ = g(q) - g'(q): the robot moves as under another gravity g'         Spong & Bullo (2005)
    partial linearisation     (M⁻¹)_LA τ_A = a_L + (M⁻¹ h)_L: some joints obey a linear equation      Spong (1994)
    controlled Lagrangian     below                                                                 Bloch, Leonard & Marsden (2000)

Controlled Lagrangians, for two joints: s with a motor, on whose coordinate nothing depends, and θ without one. With the entries γ =
M_ss constant, b = M_sθ, α = M_θθ, the force u = -κ d/dt(b dθ/dt) makes the robot a system with the same potential and the metric

    M_κ = [[γ, (1 + κ) b], [(1 + κ) b, α + (κ + κ²) b²/γ]],

because both have the equation (α - (1 + κ) b²/γ) θ'' + (½ α' - (1 + κ) b b'/γ) θ'² + U' = 0. Where U is greatest, θ is stable if
κ > α γ/b² - 1: the mass in this equation is then negative, as is the curvature of U. A force -d b θ' more makes it attract.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arguments import a_number, a_robot, floats, numbers, takes
from ..arrays import Array, concat, like, matrix, mv, solve_spd, transpose
from ..dynamics import bias_force, gravity_force, kinetic_energy, mass_matrix, mass_matrix_derivative, potential_energy
from ..errors import CoadjointError, ShapeError
from ..robot.robot import Robot
from .controller import Controller, gain, times
from .references import as_reference, hold
from .tracking_error import tracking_error
from .underactuated import motors_of

Gains = Mapping[str, Any]


@takes(robot=a_robot, gravity=numbers)
def controlled_symmetry(robot: Robot, gravity: Array, *, damping: Any = 0.0) -> Controller:
    """Forces under which the robot moves as if gravity were `gravity` (3,), less `damping` times its velocities.

    A walker that walks down a slope by itself so walks on level ground: its gait is turned with the direction of gravity. damping: a
    number, a diagonal (nv,) or a matrix. The Lyapunov function is the energy under the new gravity.
    """
    given = floats(gravity, "gravity")
    if given.shape != (3,) or not np.isfinite(given).all():
        raise CoadjointError(f"gravity is {gravity!r}; expected three finite numbers, the acceleration of free fall.")
    gains = {"shaped": robot.with_gravity(given), "damping": gain(damping, "damping", robot.nv, True, robot.v_names)}
    return Controller(robot, "controlled_symmetry", _symmetry, hold(robot, robot.neutral()), gains, _shaped_energy)


def _symmetry(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    return gravity_force(robot, q) - gravity_force(gains["shaped"], q) - times(gains["damping"], v)


def _shaped_energy(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    return kinetic_energy(robot, q, v) + potential_energy(gains["shaped"], q)


@takes(robot=a_robot)
def partial_linearization(
    robot: Robot, reference: Any, *, actuated: Sequence[str], linear: Sequence[str] | None = None, kp: Any, kd: Any
) -> Controller:
    """Partial feedback linearisation: the joints `linear` obey dw/dt + Kd w + Kp e = 0, with the motors of the joints `actuated` only.

    linear: as many freedoms as there are motors, the actuated joints by default. Other joints couple to the motors by inertia alone: the
    forces grow without bound where that coupling vanishes. kp and kd as for `computed_torque`; of
    reference(t) -> q, v, a only these joints count.
    """
    motors = motors_of(robot, actuated)
    rows = motors if linear is None else motors_of(robot, linear)
    if len(rows) != len(motors):
        raise CoadjointError(f"linear has {len(rows)} freedoms and actuated {len(motors)}; expected the same number.")
    gains = {"motors": motors, "rows": rows, "kp": gain(kp, "kp", len(rows)), "kd": gain(kd, "kd", len(rows))}
    return Controller(robot, "partial_linearization", _partial, as_reference(robot, reference), gains)


def _partial(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    motors, rows, n = gains["motors"], gains["rows"], robot.nv
    error = tracking_error(robot, q, v, *desired)
    e, w, ahead = (x[..., rows] for x in (error.position, error.velocity, error.reference_acceleration))
    wanted = ahead + times(gains["kd"], w) + times(gains["kp"], e)
    select = like(np.eye(n)[:, motors], q)
    h = bias_force(robot, q, v)[..., None]
    found = solve_spd(mass_matrix(robot, q), concat([select + 0.0 * h, h]))[..., rows, :]
    W, right = found[..., :-1], wanted + found[..., -1]
    if len(motors) == 1:
        forces = right / W[..., 0]
    elif rows == motors:
        forces = solve_spd(W, right[..., None])[..., 0]
    else:
        forces = mv(transpose(W), solve_spd(W @ transpose(W), right[..., None])[..., 0])
    return mv(select, forces)


@takes(robot=a_robot)
def controlled_lagrangian(
    robot: Robot, goal: Any, *, actuated: str, shaping: float | None = None, damping: float = 0.0
) -> Controller:
    """The controlled Lagrangian that makes the joint without motor stable at the top of its potential, as a pole on a cart.

    robot: of two joints, as in the head of this module. goal (nq,): where the potential is greatest. shaping: κ, by default twice the least
    that works at the goal; damping: d. The coordinate of the motor's joint stays free: it drifts at the end with constant velocity. The
    Lyapunov function is ½ ((1 + κ) b²/γ - α) θ'² + U(goal) - U, positive about the goal.
    """
    motor, other = _two_joints(robot, actuated)
    reference = hold(robot, goal)
    q = np.asarray(reference(0.0)[0])
    if q.ndim != 1:
        raise ShapeError(f"goal has shape {q.shape}; expected one configuration, ({robot.nq},).")
    M = np.asarray(mass_matrix(robot, q))
    least = M[other, other] * M[motor, motor] / M[motor, other] ** 2 - 1.0 if M[motor, other] else np.inf
    if not np.isfinite(least):
        raise CoadjointError(
            f"joint {robot.v_names[motor]!r} does not move {robot.v_names[other]!r} at the goal: choose another goal."
        )
    kappa = 2.0 * least if shaping is None else float(a_number(shaping, "shaping"))
    if kappa <= least:
        raise CoadjointError(f"shaping is {kappa:g}; expected more than {least:.4g}, below which the goal is not stable.")
    if not a_number(damping, "damping") >= 0:
        raise CoadjointError(f"damping is {damping:g}; expected a number that is zero or positive.")
    gains = {"motor": motor, "other": other, "shaping": kappa, "damping": float(damping)}
    gains["height"] = float(potential_energy(robot, q))
    return Controller(robot, "controlled_lagrangian", _controlled_lagrangian, reference, gains, _controlled_energy)


def controlled_metric(controller: Controller, q: Any) -> np.ndarray:
    """M_κ (..., 2, 2): the metric of the robot under a `controlled_lagrangian` without damping."""
    if not isinstance(controller, Controller) or "shaping" not in controller.gains:
        raise CoadjointError(f"controller is {controller!r}; expected one from controlled_lagrangian(…).")
    gains, robot = controller.gains, controller.robot
    gamma, b, alpha = _entries(gains, np.asarray(mass_matrix(robot, q)))
    k, mixed = gains["shaping"], (1.0 + gains["shaping"]) * b
    own = alpha + (k + k * k) * b * b / gamma
    rows = [[gamma, mixed], [mixed, own]] if gains["motor"] == 0 else [[own, mixed], [mixed, gamma]]
    return np.asarray(matrix(rows))


def _two_joints(robot: Robot, actuated: str) -> tuple[int, int]:
    """The freedom of the motor and the other one, if nothing depends on the first and its own inertia is constant."""
    if robot.nv != 2 or robot.nq != 2:
        raise CoadjointError(f"robot {robot.name!r} has {robot.nv} freedoms; a controlled Lagrangian is known here for two joints.")
    motor = motors_of(robot, [actuated])[0]
    q = robot.random(np.random.default_rng(0), (16,))
    q = np.where(np.isfinite(q), q, 0.0)
    dM = np.asarray(mass_matrix_derivative(robot, q))
    scale = np.abs(np.asarray(mass_matrix(robot, q))).max()
    moved = max(np.abs(dM[..., motor]).max(), np.abs(dM[:, motor, motor]).max())
    if moved > 1e-9 * scale or np.abs(np.asarray(gravity_force(robot, q))[:, motor]).max() > 1e-9:
        raise CoadjointError(
            f"the energy of robot {robot.name!r} depends on {robot.v_names[motor]!r}, or its inertia is not constant; the motor's joint "
            "must be one as that of a cart on level ground."
        )
    return motor, 1 - motor


def _entries(gains: Gains, M: Array) -> tuple[Array, Array, Array]:
    s, t = gains["motor"], gains["other"]
    return M[..., s, s], M[..., s, t], M[..., t, t]


def _controlled_lagrangian(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    s, t, k = gains["motor"], gains["other"], gains["shaping"]
    gamma, b, alpha = _entries(gains, mass_matrix(robot, q))
    dM = mass_matrix_derivative(robot, q)
    b_rate, alpha_rate, w = dM[..., s, t, t], dM[..., t, t, t], v[..., t]
    friction = -gains["damping"] * b * w
    mass = alpha - (1.0 + k) * b * b / gamma
    force = (0.5 * alpha_rate - (1.0 + k) * b * b_rate / gamma) * w * w + gravity_force(robot, q)[..., t] + b / gamma * friction
    u = k * (b * force / mass - b_rate * w * w) + friction
    return u[..., None] * like(np.eye(2)[s], q)


def _controlled_energy(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    gamma, b, alpha = _entries(gains, mass_matrix(robot, q))
    w = v[..., gains["other"]]
    return 0.5 * ((1.0 + gains["shaping"]) * b * b / gamma - alpha) * w * w + gains["height"] - potential_energy(robot, q)
