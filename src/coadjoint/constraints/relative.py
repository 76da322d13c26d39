"""The motion of one frame relative to another, in the axes of the other: the basis of constraints on frames.

For frames a and b: R and p are the rotation and the position of b in a, ω and ṗ = dp/dt its velocity there, linear in v,

    ω = W v,  ṗ = D v,        dω/dt = W a + Ẇ v,  d²p/dt² = D a + Ḋ v.

From the body twists V of both frames: (w, u) = V_b - Ad_{T⁻¹} V_a, T the pose of b in a, is the twist of b relative to a in b,
whose rate is that of the same sum and ad_(w, u) Ad_{T⁻¹} V_a; and ω = R w, ṗ = R u.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array, cross, like, mv, stack
from ..dynamics.newton_euler import along
from ..kinematics.jacobian import jacobian
from ..kinematics.poses import pose, relative_pose
from ..lie import se3
from ..robot.robot import Robot


class Accelerations(NamedTuple):
    """Velocities of a frame in another, and their rates while a = 0; each (..., 3)."""

    w: Array
    dp: Array
    dw: Array
    ddp: Array


def relative(robot: Robot, q: Array, a: str, b: str) -> Array:
    """T (..., 4, 4): the frame b in the frame a."""
    link, T = robot.frame(a)
    first = like(T, q) if link < 0 else pose(robot, q, a)
    return se3.inverse(first) @ like(pose(robot, q, b), q)


def relative_jacobian(robot: Robot, q: Array, a: str, b: str, T: Array) -> Array:
    """J (..., 6, nv) with J v the twist of b relative to a, in b, for the pose T of b in a."""
    J = like(jacobian(robot, q, b), q)
    return J if robot.frame(a)[0] < 0 else J - se3.Ad(se3.inverse(T)) @ jacobian(robot, q, a)


def rates(robot: Robot, q: Array, a: str, b: str, T: Array, R: Array) -> tuple[Array, Array]:
    """W and D (..., 3, nv) for the pose T of b in a, in the axes in which those of b are R (a's own, or fixed to them)."""
    J = relative_jacobian(robot, q, a, b, T)
    return R @ J[..., :3, :], R @ J[..., 3:, :]


def frame_motion(robot: Robot, q: Array, v: Array, frame: str) -> tuple[Array, Array]:
    """The body twist V = J v (..., 6) of a frame, and J̇ v, its rate while the joints do not accelerate."""
    q, v = robot.tree_q(q), robot.tree_v(v)
    link, T = robot.frame(frame)
    V, A = like(np.zeros(6), q), like(np.zeros(6), q)
    for i in robot.path(link):
        f, dofs = relative_pose(robot, q, i), robot.tree_v_slices[i]
        V, A = se3.Ad_inv_act(f, V), se3.Ad_inv_act(f, A)
        if dofs.stop > dofs.start:
            kind, screws = robot.kind(i), robot.joint_screws(i)
            own = along(like(kind.subspace(screws, q[..., robot.tree_q_slices[i]]), q), v[..., dofs])
            V = V + own
            A = A + se3.ad_act(V, own)
            bias = kind.bias(screws, q[..., robot.tree_q_slices[i]], v[..., dofs])
            A = A if bias is None else A + bias
    return se3.Ad_inv_act(like(T, q), V), se3.Ad_inv_act(like(T, q), A)


def relative_motion(robot: Robot, q: Array, v: Array, a: str, b: str, T: Array) -> tuple[Array, Array]:
    """The twist J v (..., 6) of b relative to a, in b, and J̇ v, its rate while the joints do not accelerate."""
    V, A = frame_motion(robot, q, v, b)
    if robot.frame(a)[0] >= 0:
        carrier, its_rate = (se3.Ad_inv_act(T, x) for x in frame_motion(robot, q, v, a))
        V = V - carrier
        A = A - its_rate + se3.ad_act(V, carrier)
    return V, A


def accelerations(robot: Robot, q: Array, v: Array, a: str, b: str, T: Array, R: Array) -> Accelerations:
    """ω, ṗ, Ẇ v and Ḋ v for the pose T of b in a, in the axes in which those of b are R."""
    V, A = relative_motion(robot, q, v, a, b, T)
    w, u, dw, du = V[..., :3], V[..., 3:], A[..., :3], A[..., 3:]
    return Accelerations(mv(R, w), mv(R, u), mv(R, dw), mv(R, du + cross(w, u)))


def rows(parts: list[Array]) -> Array:
    """Rows (..., n) as a matrix (..., m, n)."""
    return stack(parts, axis=-2)
