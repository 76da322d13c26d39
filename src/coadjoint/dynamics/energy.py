"""Energies of a robot."""

from __future__ import annotations

from ..arrays import Array, dot
from ..kernel.dispatch import kernel
from ..kinematics.poses import absolute_poses, relative_poses
from ..lie import inertia
from ..robot.robot import Robot
from .newton_euler import subspaces, velocities
from .springs import spring_energy


@kernel("", q="nq", v="nv", joint_space=True)
def kinetic_energy(robot: Robot, q: Array, v: Array) -> Array:
    """T = ½ Σ Vᵢᵀ Jᵢ Vᵢ + ½ Σ armature v² (...), equal to ½ vᵀ M v."""
    q, v = robot.tree_q(q), robot.tree_v(v)
    f, S = relative_poses(robot, q), subspaces(robot, q)
    V, _ = velocities(robot, f, S, v)
    total = 0.5 * (robot.armature * v * v).sum(-1)
    for i in range(robot.n_links):
        total = total + 0.5 * dot(V[i], inertia.apply(robot.inertias[i], V[i]))
    return total


@kernel("", q="nq")
def potential_energy(robot: Robot, q: Array) -> Array:
    """U = -Σ mᵢ g·cᵢ (...), zero for a centre of mass at the origin of space, and the energy of the robot's springs.

    Park, Bobrow & Ploen (1995), (58) with the sign corrected.
    """
    q = robot.tree_q(q)
    f = relative_poses(robot, q)
    energy = -dot(robot.gravity, first_moment(robot, absolute_poses(robot, f)))
    return energy + spring_energy(robot, q, f) if robot.spring_ends else energy


def first_moment(robot: Robot, poses: list[Array]) -> Array:
    """Σ mᵢ cᵢ (..., 3) in the space frame."""
    total = 0.0
    for i, T in enumerate(poses):
        mass, h = robot.inertias[i, 0], robot.inertias[i, 1:4]
        total = total + (T[..., :3, :3] @ h[..., None])[..., 0] + mass * T[..., :3, 3]
    return total
