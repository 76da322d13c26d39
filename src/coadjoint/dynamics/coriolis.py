"""The Coriolis matrix that belongs to the Christoffel symbols, in O(n²) and without them.

C_kj = Σ_i v_i Γ_ijk is what the mass points x of a robot give: Σ m (d/dt ∂_j x)·(∂_k x) along the velocity v. For a point of link p
beyond joint j, ∂_j x = ŝ_j x moves by d/dt (ŝ_j x) = (dŝ_j/dt + ŝ_j V̂_p) x, where the screw s_j rides on its link:
ds_j/dt = [V_j, s_j]. With the sums over all that the farther of j and k carries,

    J = Σ J_p   and   Π = Σ V̂_p Σ_p = [Π₃ π] = Σ m ẋ (x, 1)ᵀ,

a force against s_k that is bilinear in the screws,

    C_kj = s_kᵀ (J ds_j/dt + B s_j),   B s = (Ψ ω, ω × π),   Ψ = tr(Π₃) 1 - Π₃.

All in the frames of the links: J and Π are collected from the tips to the base, then for every joint the wrench on itself (for
its column) and the momentum (for its row) are carried down its path.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, dot, like, matrix, mv, transpose
from ..kernel.dispatch import kernel
from ..kinematics.poses import relative_poses
from ..lie import inertia, se3
from ..robot.robot import Robot
from .composite import composite_inertias
from .moving import composite_moving
from .newton_euler import subspaces, velocities


def screw_rates(robot: Robot, S: list[Array], V: list[Array], v: Array) -> list[list[Array]]:
    """ds/dt of every freedom of every joint, in the link's frame: it rides on the link, or on what it carries itself."""
    rates: list[list[Array]] = []
    for i in range(robot.n_links):
        twist, own = V[i], []
        for k in reversed(range(S[i].shape[-2])):
            own.append(se3.ad_act(twist, S[i][..., k, :]))
            if k and robot.kind(i).serial:
                twist = twist - S[i][..., k, :] * v[..., robot.tree_v_slices[i]][..., k : k + 1]
        rates.append(own[::-1])
    return rates


@kernel("nv nv", q="nq", v="nv", joint_space=True)
def coriolis_matrix(robot: Robot, q: Array, v: Array) -> Array:
    """C (..., nv, nv) with C_kj = Γ_ijk v_i: C v + g is the bias force, and dM/dt - 2C is skew.

    For joints with several freedoms in Hamel's form: the index i of Γ_ijk = ⟨∇_{X_i} X_j, X_k⟩ is the one that moves.
    """
    q, v = robot.tree_q(q), robot.tree_v(v)
    f, S = relative_poses(robot, q), subspaces(robot, q)
    V, _ = velocities(robot, f, S, v)
    J, rates = composite_inertias(robot, f), screw_rates(robot, S, V, v)
    moving = composite_moving(robot, f, V)
    n, zero = robot.tree_nv, like(np.zeros(()), q)
    C: list[list[Array]] = [[zero] * n for _ in range(n)]
    for i in range(robot.n_links):
        for own in range(S[i].shape[-2]):
            j, s = robot.tree_v_slices[i].start + own, S[i][..., own : own + 1, :]
            wrench = inertia.apply(J[i], rates[i][own]) + moving[i].wrench(s[..., :3])[..., 0, :]
            momentum, turning = inertia.apply(J[i], s[..., 0, :]), moving[i].turning(s)[..., 0, :]
            for link in reversed(robot.path(i)):
                for row in range(S[link].shape[-2]):
                    k, screw = robot.tree_v_slices[link].start + row, S[link][..., row, :]
                    C[k][j] = dot(screw, wrench)
                    if link != i:
                        C[j][k] = dot(rates[link][row], momentum) + dot(screw[..., :3], turning)
                wrench, momentum = se3.Ad_inv_dual_act(f[link], wrench), se3.Ad_inv_dual_act(f[link], momentum)
                turning = mv(f[link][..., :3, :3], turning)
    if not n:
        return like(np.zeros((0, 0)), q)
    half = robot.from_tree_columns(matrix(C))
    return transpose(robot.from_tree_columns(transpose(half)))
