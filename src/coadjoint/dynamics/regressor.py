"""Regressors: the equations of motion as linear functions of the inertial parameters.

Per link m, h = m c and the inertia about the frame's origin, xx xy xz yy yz zz, as `robot.inertial_parameters`. A body whose twist is
(ω, v) and whose acceleration is (α, v̇), its origin so accelerated by b = v̇ + ω × v, takes by (26) of Park, Bobrow & Ploen (1995)

    force  m b + α × h + ω × (ω × h),      moment  I α + ω × I ω + h × b,

and a freedom whose screw, in that link's frame, is (u, s) feels of it

    m  s·b        h  s × α + ω × (ω × s) + b × u        I  the symmetric products of u with α and of u × ω with ω.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, concat, cross, dot, like, matrix, mv, namespace, stack, transpose
from ..kernel.dispatch import kernel
from ..kinematics.poses import absolute_poses, relative_poses
from ..lie import se3
from ..robot.robot import Robot
from .blocks import Blocks, rows
from .freedoms import freedoms, path_screws
from .newton_euler import accelerations, subspaces, velocities


def _symmetric_product(x: Array, y: Array) -> Array:
    """The factors (..., 6) of Ixx Ixy Ixz Iyy Iyz Izz in x·I y."""
    parts = [
        x[..., i] * y[..., i] if i == j else x[..., i] * y[..., j] + x[..., j] * y[..., i] for i in range(3) for j in range(i, 3)
    ]
    return stack(parts)


@kernel("nv parameters", q="nq", v="nv", a="nv", largest=64)
def regressor(robot: Robot, q: Array, v: Array, a: Array) -> Array:
    """Y (..., nv, 10 n_links) with Y @ robot.inertial_parameters = τ, the inverse dynamics without armature, friction, wrenches
    and springs.
    """
    q, v, a = robot.tree_q(q), robot.tree_v(v), robot.tree_v(a)
    f, S = relative_poses(robot, q), subspaces(robot, q)
    V, own = velocities(robot, f, S, v)
    A, screws = accelerations(robot, f, S, V, own, q, v, a), path_screws(robot, f, S)
    Y = Blocks((robot.tree_nv, 10 * robot.n_links), like(np.zeros(1), q))
    for i in range(robot.n_links):
        if path := freedoms(robot).path[i]:
            w, alpha = V[i][..., None, :3], A[i][..., None, :3]
            b = A[i][..., None, 3:] + cross(w, V[i][..., None, 3:])
            u, s = screws[i][..., :3], screws[i][..., 3:]
            first = cross(s, alpha) + cross(w, cross(w, s)) + cross(b, u)
            second = _symmetric_product(u, alpha) + _symmetric_product(cross(u, w), w)
            Y.put((path, range(10 * i, 10 * i + 10)), concat([dot(s, b)[..., None], first, second]))
    return transpose(robot.from_tree_columns(transpose(Y.array())))


@kernel("parameters", q="nq", v="nv")
def kinetic_energy_regressor(robot: Robot, q: Array, v: Array) -> Array:
    """(..., 10 n_links) whose product with the inertial parameters is the kinetic energy without that of the armature."""
    q = robot.tree_q(q)
    V, _ = velocities(robot, relative_poses(robot, q), subspaces(robot, q), robot.tree_v(v))
    parts = []
    for twist in V:
        w, v = twist[..., :3], twist[..., 3:]
        parts.append(concat([0.5 * dot(v, v)[..., None], cross(v, w), 0.5 * _symmetric_product(w, w)]))
    return concat(parts) if parts else like(np.zeros(0), q)


@kernel("parameters", q="nq")
def potential_energy_regressor(robot: Robot, q: Array) -> Array:
    """(..., 10 n_links) whose product with the inertial parameters is the potential energy: -g·p and -Rᵀ g of each link."""
    parts = []
    for T in absolute_poses(robot, relative_poses(robot, robot.tree_q(q))):
        along = -dot(robot.gravity, T[..., :3, 3])
        parts.append(concat([along[..., None], -mv(transpose(T[..., :3, :3]), robot.gravity), like(np.zeros(6), q)]))
    return concat(parts) if parts else like(np.zeros(0), q)


@kernel("6 parameters", q="nq", v="nv")
def momentum_regressor(robot: Robot, q: Array, v: Array) -> Array:
    """(..., 6, 10 n_links) whose product with the inertial parameters is `momentum`, about the origin of space, in space axes."""
    q = robot.tree_q(q)
    f = relative_poses(robot, q)
    V, _ = velocities(robot, f, subspaces(robot, q), robot.tree_v(v))
    one, parts = like(np.eye(3), q), []
    for T, twist in zip(absolute_poses(robot, f), V, strict=True):
        # J V = (I ω + h × v, m v - h × ω)
        w, v = twist[..., None, :3], twist[..., None, 3:]
        x, y, z = (twist[..., k] for k in range(3))
        by_mass, by_h = concat([0.0 * v, v]), concat([cross(one, v), cross(w, one)])
        moments = matrix([[x, 0.0, 0.0], [y, x, 0.0], [z, 0.0, x], [0.0, y, 0.0], [0.0, z, y], [0.0, 0.0, z]])
        columns = rows(by_mass, by_h, concat([moments, 0.0 * moments]))
        parts.append(transpose(se3.Ad_inv_dual_act(T[..., None, :, :], columns)))
    return concat(parts) if parts else like(np.zeros((6, 0)), q)


@kernel("nv drives", v="nv", a="nv")
def drive_regressor(robot: Robot, v: Array, a: Array) -> Array:
    """(..., nv, 3 n) whose product with armature, damping and Coulomb friction of all n freedoms is their share in τ.

    Freedoms are those of the tree, where a joint that mimics another counts by itself: `robot.parameters("drives")`.
    """
    v, a = robot.tree_v(v), robot.tree_v(a)
    one = like(np.eye(robot.tree_nv), v)
    columns = concat([x[..., None, :] * one for x in (a, v, namespace(v).sign(v))])
    return transpose(robot.from_tree_columns(transpose(columns)))
