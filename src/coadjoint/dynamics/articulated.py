"""Forward dynamics by articulated bodies, and the inverse of the mass matrix.

From the tips to the base, every link accumulates the links that it carries, their joints free to move: the articulated inertia J^A
and bias B with F = J^A V̇ + B for the wrench through the link's joint,

    U = J^A S,  D = Sᵀ U + armature,  u = τ - Sᵀ B,
    J^A_parent += f (J^A - U D⁻¹ Uᵀ) f*,  B_parent += f (B + (J^A - U D⁻¹ Uᵀ) c + U D⁻¹ u),

then from the base outward V̇' = f* V̇_parent + c, a = D⁻¹ (u - Uᵀ V̇'), V̇ = V̇' + S a, in O(n). c is the acceleration that
velocities alone give.

A singular D is a motion of the joint that moves no mass: the mass matrix is singular (`singular.py`).
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, block, concat, cross, diagonal, like, mirror, mv, solve_spd, transpose
from ..kernel.dispatch import kernel
from ..kinematics.poses import relative_poses
from ..lie import inertia, se3
from ..robot.robot import Robot
from .composite import mass_matrix
from .newton_euler import along, bias_force, friction_force, subspaces, velocities
from .singular import explain_singular, nan_where_singular, weightless
from .springs import against_springs, joint_spring_force


def transform_articulated(f: Array, J: Array) -> Array:
    """Ad_{f⁻¹}ᵀ J Ad_{f⁻¹} (..., 6, 6) for a symmetric J = [[A, B], [Bᵀ, C]], by 3×3 blocks: turn by R, then move by p.

    C' = R C Rᵀ, B' = R B Rᵀ + [p] C', A' = R A Rᵀ - R B Rᵀ [p] + [p] B'ᵀ; one triangle of A' and C' is enough.
    """
    R, p = f[..., :3, :3], f[..., None, :3, 3]
    Rt = transpose(R)
    A, B, C = (R @ X @ Rt for X in (J[..., :3, :3], J[..., :3, 3:], J[..., 3:, 3:]))
    C = mirror(C)
    moved = B + transpose(cross(p, C))
    A = mirror(A + cross(p, B) + transpose(cross(p, moved)))
    return block([[A, moved], [transpose(moved), C]])


@kernel("nv", q="nq", v="nv", tau="nv", wrenches="n_links 6", no_result=explain_singular, joint_space=True)
def forward_dynamics(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Array | None = None, friction: bool = False) -> Array:
    """The acceleration a (..., nv) for joint forces τ and wrenches wᵢ on the links: M a = τ - C v - g + Σ Jᵢᵀ wᵢ.

    The inverse of `inverse_dynamics`, with the same arguments, by articulated bodies in O(n); with mimic joints by solving with M.
    `friction=True` lets the joints' viscous and Coulomb friction oppose the motion.
    A singular mass matrix is an error for NumPy arrays, and NaN for traced ones.
    """
    if robot.mimics:
        force = tau - bias_force(robot, q, v, wrenches)
        if friction:
            force = force - robot.from_tree(friction_force(robot, robot.tree_v(v)))
        return mv(mass_matrix_inverse(robot, q), force)
    q = robot.tree_q(q)
    f, S = relative_poses(robot, q), subspaces(robot, q)
    V, own = velocities(robot, f, S, v)
    if friction:
        tau = tau - friction_force(robot, v)
    if robot.spring_ends:
        tau = tau - joint_spring_force(robot, q)
    n = robot.n_links
    J: list[Array] = [inertia.spatial(robot.inertias[i]) for i in range(n)]
    B: list[Array] = []
    c: list[Array | None] = []
    for i in range(n):
        B.append(-se3.ad_dual_act(V[i], inertia.apply(robot.inertias[i], V[i])))
        if wrenches is not None:
            B[i] = B[i] - wrenches[..., i, :]
        c.append(None)
        if own[i] is not None:
            bias = robot.kind(i).bias(robot.joint_screws(i), q[..., robot.tree_q_slices[i]], v[..., robot.tree_v_slices[i]])
            c[i] = se3.ad_act(V[i], own[i]) if bias is None else se3.ad_act(V[i], own[i]) + bias
    if robot.spring_ends:
        B = against_springs(robot, q, f, B)
    U: list[Array] = [None] * n
    D: list[Array] = [None] * n
    u: list[Array] = [None] * n
    for i in reversed(robot.order):
        parent, dofs = robot.parents[i], robot.tree_v_slices[i]
        passed, force = J[i], B[i]
        if own[i] is not None:
            U[i] = J[i] @ transpose(S[i])  # (..., 6, nv)
            D[i] = S[i] @ U[i] + diagonal(robot.armature[..., dofs])
            u[i] = tau[..., dofs] - mv(S[i], B[i])
            if parent >= 0:
                gain = transpose(solve_spd(D[i], transpose(U[i]), assume_definite=D[i].shape[-1] == 1))  # U D⁻¹
                passed = mirror(J[i] - gain @ transpose(U[i]))
                force = B[i] + mv(passed, c[i]) + mv(gain, u[i])
        if parent >= 0:
            J[parent] = J[parent] + transform_articulated(f[i], passed)
            B[parent] = B[parent] + se3.Ad_inv_dual_act(f[i], force)
    fall = concat([like(np.zeros(3), q), -robot.gravity])
    A: list[Array] = [None] * n
    a: list[Array] = [None] * n
    for i in robot.order:
        A[i] = se3.Ad_inv_act(f[i], fall if robot.parents[i] < 0 else A[robot.parents[i]])
        if own[i] is not None:
            A[i] = A[i] + c[i]
            rest = u[i] - mv(transpose(U[i]), A[i])
            a[i] = solve_spd(D[i], rest[..., None], assume_definite=D[i].shape[-1] == 1)[..., 0]
            A[i] = A[i] + along(S[i], a[i])
    moving = [i for i in range(n) if own[i] is not None]
    if not moving:
        return tau
    companions = {k: x for i in weightless(robot) for k, x in _companions(robot, i, f, S, U, D).items()}
    return nan_where_singular(robot, [x for i in moving for x in _pivots(D[i])], concat([a[i] for i in moving]), companions)


def _companions(
    robot: Robot, i: int, f: list[Array], S: list[Array], U: list[Array], D: list[Array]
) -> dict[int, list[tuple[int, Array]]]:
    """The freedoms j that follow each freedom k of link i where that moves by 1 and they are free, and the factors with which they follow.

    Those of the link's own joint, and of all that it carries: the motions whose inertias the pivots of i are.
    """
    dofs = robot.tree_v_slices[i]
    one = like(np.eye(D[i].shape[-1]), D[i])
    inverse = one if D[i].shape[-1] == 1 else solve_spd(D[i], one)
    found: dict[int, list[tuple[int, Array]]] = {}
    for k in range(dofs.start, dofs.stop):
        own = inverse[..., k - dofs.start] / inverse[..., k - dofs.start, k - dofs.start, None]
        moved = {i: along(S[i], own)}
        found[k] = [(j, own[..., j - dofs.start]) for j in range(dofs.start, dofs.stop) if j != k]
        for m in robot.order:
            if robot.parents[m] not in moved:
                continue
            moved[m] = se3.Ad_inv_act(f[m], moved[robot.parents[m]])
            if D[m] is not None:
                free = -solve_spd(D[m], mv(transpose(U[m]), moved[m])[..., None], assume_definite=D[m].shape[-1] == 1)[..., 0]
                moved[m] = moved[m] + along(S[m], free)
                start = robot.tree_v_slices[m].start
                found[k] += [(start + j, free[..., j]) for j in range(free.shape[-1])]
    return found


def _pivots(D: Array) -> list[Array]:
    """1/(D⁻¹)_kk (...) for every k: the inertia of freedom k where all others are free to move. One of them vanishes if D is singular.

    Taken from the inverse and not from an elimination, whose last pivot can be lost to rounding when the motion without mass is
    mostly along other freedoms.
    """
    if D.shape[-1] == 1:
        return [D[..., 0, 0]]
    inverse = solve_spd(D, like(np.eye(D.shape[-1]), D))
    return [1.0 / inverse[..., k, k] for k in range(D.shape[-1])]


@kernel("nv nv", q="nq", no_result=explain_singular, joint_space=True)
def mass_matrix_inverse(robot: Robot, q: Array) -> Array:
    """M(q)⁻¹ (..., nv, nv): the metric on forces.

    A singular mass matrix is an error for NumPy arrays, and NaN for traced ones.
    """
    inverse = mirror(solve_spd(mass_matrix(robot, q), like(np.eye(robot.nv), q)))
    pivots = [1.0 / inverse[..., k, k] for k in range(robot.nv)]  # as in `_pivots`
    return nan_where_singular(robot, pivots, inverse.reshape((*inverse.shape[:-2], robot.nv**2))).reshape(inverse.shape)
