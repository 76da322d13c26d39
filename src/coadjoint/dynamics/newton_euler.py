"""Inverse dynamics by the recursion of Newton and Euler. Park, Bobrow & Ploen (1995), section 3.

With the misprints of (24)-(26) corrected (the adjoint of the inverse, as in the paper's own (70) and (80)), for a tree whose
joints may have several freedoms, λ(i) the parent of link i and fᵢ its frame in its parent's:

    Vᵢ = Ad_{fᵢ⁻¹} V_λ(i) + Sᵢ vᵢ                                            (24)
    V̇ᵢ = Ad_{fᵢ⁻¹} V̇_λ(i) + ad_{Vᵢ} Sᵢ vᵢ + Sᵢ aᵢ + Ṡᵢ vᵢ                    (25)
    Fᵢ = Σ_children Ad*_{f⁻¹} F + Jᵢ V̇ᵢ - ad*_{Vᵢ} Jᵢ Vᵢ - wrenchᵢ            (26)
    τᵢ = Sᵢᵀ Fᵢ                                                            (27)

Gravity enters as the acceleration -g of the base, (22).
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, concat, dot, like, namespace, stack
from ..kernel.dispatch import kernel
from ..kinematics.poses import relative_poses
from ..lie import inertia, se3
from ..robot.robot import Robot
from .springs import against_springs, joint_spring_force


def subspaces(robot: Robot, q: Array) -> list[Array]:
    """Sᵢ (..., nv, 6) of every joint, for q of the tree."""
    return [like(robot.kind(i).subspace(robot.joint_screws(i), q[..., robot.tree_q_slices[i]]), q) for i in range(robot.n_links)]


def along(S: Array, x: Array) -> Array:
    """Σ_k S_k x_k: the twist (..., 6) of a joint whose screws S (..., nv, 6) move at rates x (..., nv)."""
    total = S[..., 0, :] * x[..., 0:1]
    for k in range(1, S.shape[-2]):
        total = total + S[..., k, :] * x[..., k : k + 1]
    return total


def velocities(robot: Robot, f: list[Array], S: list[Array], v: Array) -> tuple[list[Array], list[Array | None]]:
    """Body twists Vᵢ of all links, (24), and the relative twist Sᵢ vᵢ of each joint (None for a fixed joint)."""
    V: list[Array] = [None] * robot.n_links
    own: list[Array | None] = [None] * robot.n_links
    for i in robot.order:
        parent = robot.parents[i]
        if S[i].shape[-2]:
            own[i] = along(S[i], v[..., robot.tree_v_slices[i]])
        carried = se3.Ad_inv_act(f[i], V[parent]) if parent >= 0 else like(np.zeros(6), v)
        V[i] = carried if own[i] is None else carried + own[i]
    return V, own


def accelerations(
    robot: Robot, f: list[Array], S: list[Array], V: list[Array], own: list[Array | None], q: Array, v: Array, a: Array | None
) -> list[Array]:
    """V̇ᵢ of all links less free fall, (25) from V̇₀ = (0, -g), (22)."""
    fall = concat([like(np.zeros(3), q), -robot.gravity])
    A: list[Array] = [None] * robot.n_links
    for i in robot.order:
        parent, dofs = robot.parents[i], robot.tree_v_slices[i]
        A[i] = se3.Ad_inv_act(f[i], fall if parent < 0 else A[parent])
        if own[i] is not None:
            A[i] = A[i] + se3.ad_act(V[i], own[i])
            if a is not None:
                A[i] = A[i] + along(S[i], a[..., dofs])
            bias = robot.kind(i).bias(robot.joint_screws(i), q[..., robot.tree_q_slices[i]], v[..., dofs])
            A[i] = A[i] if bias is None else A[i] + bias
    return A


def own_wrenches(robot: Robot, V: list[Array], A: list[Array], wrenches: Array | None) -> list[Array]:
    """The wrench that every link itself needs for its motion beside those on it, in its frame: the last terms of (26)."""
    F: list[Array] = [None] * robot.n_links
    for i in robot.order:
        J = robot.inertias[i]
        F[i] = inertia.apply(J, A[i]) - se3.ad_dual_act(V[i], inertia.apply(J, V[i]))
        if wrenches is not None:
            F[i] = F[i] - wrenches[..., i, :]
    return F


def carried(robot: Robot, f: list[Array], F: list[Array]) -> list[Array]:
    """Fᵢ, the wrench through joint i on link i in that link's frame, (26), from those that the links themselves need."""
    F = list(F)
    for i in reversed(robot.order):
        parent = robot.parents[i]
        if parent >= 0:
            F[parent] = F[parent] + se3.Ad_inv_dual_act(f[i], F[i])
    return F


def link_forces(robot: Robot, q: Array, v: Array, a: Array | None, wrenches: Array | None) -> tuple[list[Array], list[Array]]:
    """Fᵢ and Sᵢ of all links; all in the coordinates of the tree."""
    f, S = relative_poses(robot, q), subspaces(robot, q)
    V, own = velocities(robot, f, S, v)
    A = accelerations(robot, f, S, V, own, q, v, a)
    F = own_wrenches(robot, V, A, wrenches)
    return carried(robot, f, against_springs(robot, q, f, F) if robot.spring_ends else F), S


def joint_forces(robot: Robot, S: list[Array], F: list[Array]) -> Array:
    """τ (..., tree_nv) with τᵢ = Sᵢᵀ Fᵢ, (27)."""
    tau = [dot(S[i][..., k, :], F[i]) for i in range(robot.n_links) for k in range(S[i].shape[-2])]
    return stack(tau) if tau else like(np.zeros(0), robot.gravity)


def friction_force(robot: Robot, v: Array) -> Array:
    """Viscous and Coulomb friction d v + c sign(v) (..., tree_nv), which the drives must overcome."""
    xp = namespace(v)
    sign = xp.where(v > 0, 1.0 + 0.0 * v, xp.where(v < 0, -1.0 + 0.0 * v, 0.0 * v))
    return robot.damping * v + robot.friction * sign


@kernel("nv", q="nq", v="nv", a="nv", wrenches="n_links 6", joint_space=True)
def inverse_dynamics(robot: Robot, q: Array, v: Array, a: Array, wrenches: Array | None = None, friction: bool = False) -> Array:
    """The joint forces τ (..., nv) of the motion q (..., nq), v (..., nv), a (..., nv): τ = M(q) a + C(q, v) v + g(q) - Σ Jᵢᵀ wᵢ.

    Park, Bobrow & Ploen (1995), (22)-(27). `wrenches` (..., n_links, 6): the wrench wᵢ = (moment, force) that the environment
    exerts on each link, in that link's frame, 0 if None.
    Armature is part of M. `friction=True` adds the joints' viscous and Coulomb friction.
    """
    q, v, a = robot.tree_q(q), robot.tree_v(v), robot.tree_v(a)
    F, S = link_forces(robot, q, v, a, wrenches)
    tau = joint_forces(robot, S, F) + robot.armature * a
    if robot.spring_ends:
        tau = tau + joint_spring_force(robot, q)
    if friction:
        tau = tau + friction_force(robot, v)
    return robot.from_tree(tau)


@kernel("nv", q="nq", v="nv", wrenches="n_links 6", joint_space=True)
def bias_force(robot: Robot, q: Array, v: Array, wrenches: Array | None = None) -> Array:
    """C(q, v) v + g(q) (..., nv): the joint forces at zero acceleration; minus Σ Jᵢᵀ wᵢ if wrenches are given."""
    q, v = robot.tree_q(q), robot.tree_v(v)
    F, S = link_forces(robot, q, v, None, wrenches)
    tau = joint_forces(robot, S, F)
    return robot.from_tree(tau + joint_spring_force(robot, q) if robot.spring_ends else tau)


@kernel("nv", q="nq", joint_space=True)
def gravity_force(robot: Robot, q: Array) -> Array:
    """g(q) = ∂U/∂q (..., nv): the joint forces that hold the robot still against gravity and its springs.

    Park, Bobrow & Ploen (1995), (59) corrected.
    """
    q = robot.tree_q(q)
    f, S = relative_poses(robot, q), subspaces(robot, q)
    fall = concat([like(np.zeros(3), q), -robot.gravity])
    A: list[Array] = [None] * robot.n_links
    for i in robot.order:
        A[i] = se3.Ad_inv_act(f[i], fall if robot.parents[i] < 0 else A[robot.parents[i]])
    F = [inertia.apply(robot.inertias[i], A[i]) for i in range(robot.n_links)]
    if robot.spring_ends:
        return robot.from_tree(pull_back(robot, f, S, against_springs(robot, q, f, F)) + joint_spring_force(robot, q))
    return robot.from_tree(pull_back(robot, f, S, F))


def pull_back(robot: Robot, f: list[Array], S: list[Array], F: list[Array]) -> Array:
    """The generalised force of wrenches F on the links."""
    return joint_forces(robot, S, carried(robot, f, F))


@kernel("nv", q="nq", wrenches="n_links 6", joint_space=True)
def generalized_force(robot: Robot, q: Array, wrenches: Array) -> Array:
    """Σᵢ Jᵢᵀ wᵢ (..., nv): the pullback of wrenches on the links, each in its link's frame, to joint forces."""
    q = robot.tree_q(q)
    f, S = relative_poses(robot, q), subspaces(robot, q)
    return robot.from_tree(pull_back(robot, f, S, [wrenches[..., i, :] for i in range(robot.n_links)]))


@kernel("n_links 6", q="nq", v="nv", a="nv", wrenches="n_links 6")
def joint_reactions(robot: Robot, q: Array, v: Array, a: Array, wrenches: Array | None = None) -> Array:
    """The wrench (..., n_links, 6) that each joint passes to the link it carries, in that link's frame: Fᵢ of (26).

    Its part along the joint's screws is the joint force (27) without armature; the rest is borne by the bearing.
    """
    F, _ = link_forces(robot, robot.tree_q(q), robot.tree_v(v), robot.tree_v(a), wrenches)
    return stack(F, axis=-2) if F else like(np.zeros((0, 6)), q)


@kernel("n_links 6", q="nq", v="nv")
def link_velocities(robot: Robot, q: Array, v: Array) -> Array:
    """The body twist Vᵢ (..., n_links, 6) of every link, (24)."""
    q = robot.tree_q(q)
    f, S = relative_poses(robot, q), subspaces(robot, q)
    V, _ = velocities(robot, f, S, robot.tree_v(v))
    return stack(V, axis=-2) if V else like(np.zeros((0, 6)), q)
