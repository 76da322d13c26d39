"""The sliding variable of a frame on SE(3): reference velocities of the joints whose frame follows a pose, for adaptive tracking.

With the errors η, w of `frame_error` the frame shall move with V_r = V + w + Λ η, so that w + Λ η = 0 and η decays. The joints'
reference velocity is its lift, with u for what the frame leaves free, in a constant metric W, as the robot's own is not known:

    v_r = L V_r + N u,     L = W⁻¹Jᵀ (J W⁻¹ Jᵀ)⁻¹,     N = 1 - L J.

Its derivative along the motion follows from dL/dt = -L J̇ L + N W⁻¹J̇ᵀ (J W⁻¹ Jᵀ)⁻¹:

    a_r = L (dV_r/dt - J̇ v_r) + N (du/dt + W⁻¹J̇ᵀ (J W⁻¹ Jᵀ)⁻¹ (V_r - J u)).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..arrays import Array, like, mv, solve_spd, transpose
from ..kinematics import jacobian, pose
from ..lie import se3
from ..redundancy.task import Task
from ..robot.robot import Robot
from .controller import times
from .tracking_error import error_rate
from .workspace import frame_error


def frame_sliding(gains: Mapping[str, Any], robot: Robot, q: Array, v: Array, *desired: Array) -> tuple[Array, Array, Array]:
    """v_r, its derivative a_r along the motion, and s = v_r - v, each (..., nv), for the pose, twist and its derivative that are desired.

    gains: "frame", "rate" Λ (6, 6), "flat" W⁻¹ (nv, nv), "posture" (nq,) or None and "posture_rate" [1/s]: u leads to the posture.
    """
    frame, rate = gains["frame"], gains["rate"]
    J, J_rate, W_inverse = jacobian(robot, q, frame), Task(frame).jacobian_rate(robot, q, v), like(gains["flat"], q)
    V = mv(J, v)
    error = frame_error("log", pose(robot, q, frame), V, *desired)
    V_r = V + error.velocity + times(rate, error.position)
    A_r = error.acceleration + times(rate, mv(se3.dexp_inverse(error.position), error.velocity))
    solved: Callable[[Array], Array] = lambda x: solve_spd(J @ W_inverse @ transpose(J), x[..., None])[..., 0]
    lift: Callable[[Array], Array] = lambda x: mv(W_inverse, mv(transpose(J), solved(x)))
    null: Callable[[Array], Array] = lambda x: x - lift(mv(J, x))
    u = u_rate = 0.0 * v
    if gains["posture"] is not None:
        e = robot.difference(q, like(gains["posture"], q))
        u, u_rate = gains["posture_rate"] * e, gains["posture_rate"] * error_rate(robot, e, -v)
    v_r = lift(V_r) + null(u)
    turned = mv(W_inverse, mv(transpose(J_rate), solved(V_r - mv(J, u))))
    a_r = lift(A_r - mv(J_rate, v_r)) + null(u_rate + turned)
    return v_r, a_r, v_r - v
