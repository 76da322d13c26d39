"""Momentum of the whole robot, its centre of mass, and momentum about it."""

from __future__ import annotations

import numpy as np

from ..arguments import a_robot, takes
from ..arrays import Array, concat, cross, like, stack
from ..errors import ModelError
from ..kernel.dispatch import kernel
from ..kinematics.poses import absolute_poses, relative_poses
from ..lie import inertia, se3
from ..robot.robot import Robot
from .composite import composite_inertias
from .energy import first_moment
from .newton_euler import subspaces, velocities


@takes(robot=a_robot)
def total_mass(robot: Robot) -> Array:
    """The mass of all links together; the base is not counted."""
    return robot.inertias[:, 0].sum()


def _carried_mass(robot: Robot) -> Array:
    mass = total_mass(robot)
    if isinstance(mass, float) and mass <= 0:
        raise ModelError(f"robot {robot.name!r} has no mass and so no centre of mass.")
    return mass


@kernel("3", q="nq")
def center_of_mass(robot: Robot, q: Array) -> Array:
    """The centre of mass (..., 3) of all links in the space frame."""
    mass = _carried_mass(robot)
    return first_moment(robot, absolute_poses(robot, relative_poses(robot, robot.tree_q(q)))) / mass


@kernel("6", q="nq", v="nv")
def momentum(robot: Robot, q: Array, v: Array) -> Array:
    """(..., 6): angular momentum about the origin of space and linear momentum, in space axes: Σ Ad*_{fᵢ⁻¹} Jᵢ Vᵢ."""
    q = robot.tree_q(q)
    f, S = relative_poses(robot, q), subspaces(robot, q)
    V, _ = velocities(robot, f, S, robot.tree_v(v))
    h = [inertia.apply(robot.inertias[i], V[i]) for i in range(robot.n_links)]
    total = like(np.zeros(6), q)
    for i in reversed(robot.order):
        carried = se3.Ad_inv_dual_act(f[i], h[i])
        if robot.parents[i] >= 0:
            h[robot.parents[i]] = h[robot.parents[i]] + carried
        else:
            total = total + carried
    return total


@kernel("6", q="nq", v="nv")
def centroidal_momentum(robot: Robot, q: Array, v: Array) -> Array:
    """(..., 6): angular momentum about the centre of mass and linear momentum, in space axes."""
    h = momentum(robot, q, v)
    return concat([h[..., :3] - cross(center_of_mass(robot, q), h[..., 3:]), h[..., 3:]])


@kernel("6 nv", q="nq")
def centroidal_momentum_matrix(robot: Robot, q: Array) -> Array:
    """A (..., 6, nv) with A v the centroidal momentum: every column the composite inertia on the joint's screw."""
    c = center_of_mass(robot, q)
    tree_q = robot.tree_q(q)
    f, S = relative_poses(robot, tree_q), subspaces(robot, tree_q)
    poses, J = absolute_poses(robot, f), composite_inertias(robot, f)
    columns = []
    for i in range(robot.n_links):
        for k in range(S[i].shape[-2]):
            h = se3.Ad_inv_dual_act(poses[i], inertia.apply(J[i], S[i][..., k, :]))
            columns.append(concat([h[..., :3] - cross(c, h[..., 3:]), h[..., 3:]]))
    return robot.from_tree_columns(stack(columns, axis=-1)) if columns else like(np.zeros((6, 0)), q)
