"""Control of motion and force at once, for robots under constraints A(q) v = 0: Žefran & Bullo (2004), (19), (20).

With the metric's projection P = 1 - A♯ A, A♯ = M⁻¹ Aᵀ (A M⁻¹ Aᵀ)⁻¹, the law

    τ = M a + h - Aᵀ λ_d,      a = P (a_d + Kd w + Kp e) - A♯ Ȧ v

gives the motion along the constraint the linear error equation P (dw/dt + Kd w + Kp e) = 0, and the constraint the multipliers λ_d: the
two do not disturb each other, because M-orthogonal parts do no work on each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..arguments import a_robot, takes
from ..arrays import Array, mv, transpose
from ..constraints.constraint import Constraint, checked, constraint_jacobian
from ..constraints.dynamics import constrained_dynamics
from ..dynamics import inverse_dynamics
from ..robot.robot import Robot
from .controller import Controller, gain, times
from .force_references import MotionAndForce, as_force
from .references import as_reference
from .tracking_error import pulled_back, tracking_error

Gains = Mapping[str, Any]


@takes(robot=a_robot)
def hybrid(robot: Robot, constraint: Constraint, reference: Any, *, force: Any, kp: Any, kd: Any) -> Controller:
    """Tracking along a constraint while the constraint is pressed with given multipliers.

    reference(t) -> q, v, a, which should satisfy the constraint; force: the multipliers λ_d (m,) of M a + h = τ + Aᵀ λ, or a function of
    time that gives them, as `constrained_dynamics` reports them; kp [1/s²] and kd [1/s] as for `computed_torque`. Rows of
    the constraint must be independent.
    """
    constraint = checked(constraint, robot).frozen(robot)  # as the functions of time: what it reads is that of now
    desired = MotionAndForce(as_reference(robot, reference), as_force(force, "force", constraint.size(robot), "multipliers"))
    gains = {"constraint": constraint, "kp": gain(kp, "kp", robot.nv, of=robot.v_names)}
    gains |= {"kd": gain(kd, "kd", robot.nv, of=robot.v_names)}
    return Controller(robot, "hybrid", _hybrid, desired, gains)


def _hybrid(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    error, constraint = tracking_error(robot, q, v, *desired[:3]), gains["constraint"]
    spring = pulled_back(robot, error.position, times(gains["kp"], error.position))
    wanted = error.reference_acceleration + times(gains["kd"], error.velocity) + spring
    # The motion that the constraint leaves of the wanted acceleration is that of the forces that would give it.
    a, _ = constrained_dynamics(robot, constraint, q, v, inverse_dynamics(robot, q, v, wanted))
    press = mv(transpose(constraint_jacobian(robot, constraint, q)), desired[3])
    return inverse_dynamics(robot, q, v, a) - press
