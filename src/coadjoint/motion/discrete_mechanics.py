"""Discrete mechanics for variational integrators: momenta, forces and group maps of the joints.

Velocities are left-trivialised: q moves by `robot.integrate(q, h v)`, for a free base T exp(h v). Momenta p = ∂T/∂v and forces are
the covectors that pair with them.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, concat, like
from ..dynamics.newton_euler import joint_forces, subspaces, velocities
from ..dynamics.springs import joint_spring_force, spring_wrenches
from ..kernel.dispatch import kernel
from ..kinematics.poses import relative_poses
from ..lie import inertia, se3
from ..robot.robot import Robot


@kernel("nv", "nv", q="nq", v="nv", joint_space=True)
def momentum_and_force(robot: Robot, q: Array, v: Array) -> tuple[Array, Array]:
    """p = ∂T/∂v = M(q) v and f = ∂(T - U)/∂q along the tangent vectors of `integrate`, both (..., nv), in O(n).

    With Pᵢ the momentum and Wᵢ the weight, with the pull of springs, of link i and all that it carries, in that link's frame:
    pᵢ = Sᵢᵀ Pᵢ, and as a small motion η of joint i changes every twist beyond it by the bracket of what carries the joint with Sᵢ η,

        fᵢ = Sᵢᵀ (ad*_{Vᵢ - Sᵢ vᵢ} Pᵢ + Wᵢ);

    Kool (2004) has the same in space coordinates. Lagrange's equations are ṗ - ad*_v p = f + τ.
    """
    x, w = robot.tree_q(q), robot.tree_v(v)
    poses, S = relative_poses(robot, x), subspaces(robot, x)
    V, own = velocities(robot, poses, S, w)
    fall = concat([like(np.zeros(3), x), robot.gravity])
    P: list[Array] = [None] * robot.n_links
    W: list[Array] = [None] * robot.n_links
    A: list[Array] = [None] * robot.n_links
    for i in robot.order:
        A[i] = se3.Ad_inv_act(poses[i], fall if robot.parents[i] < 0 else A[robot.parents[i]])
        P[i], W[i] = inertia.apply(robot.inertias[i], V[i]), inertia.apply(robot.inertias[i], A[i])
    for i, pull in spring_wrenches(robot, x, poses).items():
        W[i] = W[i] + pull
    for i in reversed(robot.order):
        if (parent := robot.parents[i]) >= 0:
            P[parent] = P[parent] + se3.Ad_inv_dual_act(poses[i], P[i])
            W[parent] = W[parent] + se3.Ad_inv_dual_act(poses[i], W[i])
    F = []
    for i, share in enumerate(own):
        n = S[i].shape[-2]
        carrier = V[i] if n < 2 else V[i] - share  # the bracket of one screw with itself is zero
        F.append(se3.ad_dual_act(carrier, P[i]) + W[i])
    p, f = joint_forces(robot, S, P) + robot.armature * w, joint_forces(robot, S, F) - joint_spring_force(robot, x)
    for i, kind in enumerate(robot.kinds):
        if kind.serial:  # the second angle turns the first screw
            at = robot.tree_v_slices[i].start
            turned = se3.ad_act(S[i][..., 0, :], S[i][..., 1, :]) * w[..., at : at + 1]
            f = f + (turned * P[i]).sum(-1)[..., None] * like(np.eye(robot.tree_nv)[at + 1], f)
    return robot.from_tree(p), robot.from_tree(f)


def armature_force(robot: Robot, v: Array) -> Array | None:
    """-ad*_v (armature · v) (..., nv) of spherical, planar and free joints; None without any that has armature.

    As a force it takes the gyroscopic part of armature away, which the momentum armature · v along axes that turn would have: the
    equations of motion of this library have armature · a alone, as `docs/joints.md` says.
    """
    groups = [robot._v_slices[i] for i, kind in enumerate(robot.kinds) if kind.group is not None]
    own = [k for i in range(robot.n_links) if i not in robot.mimics for k in range(robot.tree_nv)[robot.tree_v_slices[i]]]
    armature = robot.armature[..., own]
    if not groups or (robot.has_plain_numbers and not any(np.any(armature[place]) for place in groups)):
        return None
    return -robot.velocitywise(lambda kind, x, p: kind.ad_dual(x, p), v, armature * v)


def coadjoint(robot: Robot, x: Array, p: Array) -> Array:
    """Ad*_{exp x} p (..., nv): a momentum of the configuration q, seen from q exp(x)."""
    return robot.velocitywise(lambda kind, x, p: kind.coadjoint(x, p), x, p)


def dexp_dual(robot: Robot, x: Array, p: Array) -> Array:
    """dexp(x)ᵀ p (..., nv)."""
    return robot.velocitywise(lambda kind, x, p: kind.dexp_dual(x, p), x, p)
