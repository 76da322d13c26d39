"""Forward kinematics: the product of exponentials, link after link."""

from __future__ import annotations

import numpy as np

from ..arrays import Array, like, stack
from ..kernel.dispatch import check_robot, kernel
from ..robot.robot import Robot


def relative_pose(robot: Robot, q: Array, i: int) -> Array:
    """f_{λ(i), i} = Mᵢ exp(Sᵢ qᵢ): link i's frame in its parent's. Park, Bobrow & Ploen (1995), (23); q of the tree."""
    return robot.placements[i] @ like(robot.kind(i).pose(robot.joint_screws(i), q[..., robot.tree_q_slices[i]]), q)


def relative_poses(robot: Robot, q: Array) -> list[Array]:
    """f_{λ(i), i} of every link."""
    return [relative_pose(robot, q, i) for i in range(robot.n_links)]


def absolute_poses(robot: Robot, relative: list[Array]) -> list[Array]:
    """fᵢ = f_{λ(i)} f_{λ(i), i}: each link's frame in the space frame, (67)."""
    poses: list[Array] = [None] * robot.n_links
    for i in robot.order:
        parent = robot.parents[i]
        poses[i] = relative[i] if parent < 0 else poses[parent] @ relative[i]
    return poses


@kernel("n_links 4 4", q="nq")
def forward_kinematics(robot: Robot, q: Array) -> Array:
    """The pose (..., n_links, 4, 4) of every link's frame in the space frame, for q (..., nq).

    fᵢ(q) = M₁ exp(S₁ q₁) ⋯ Mᵢ exp(Sᵢ qᵢ) along the path to link i. Park, Bobrow & Ploen (1995), eqs. (23), (67).
    """
    poses = absolute_poses(robot, relative_poses(robot, robot.tree_q(q)))
    return stack(poses, axis=-3) if poses else like(np.zeros((0, 4, 4)), q)


def check_frame(robot: Robot, frame: str) -> None:
    """Raise an error if the robot has no frame of that name."""
    check_robot(robot)
    robot.frame(frame)


@kernel("4 4", q="nq", check=check_frame)
def pose(robot: Robot, q: Array, frame: str) -> Array:
    """The pose (..., 4, 4) of a frame, a link or the base in the space frame, for q (..., nq)."""
    link, T = robot.frame(frame)
    q = robot.tree_q(q)
    for i in reversed(robot.path(link)):
        T = relative_pose(robot, q, i) @ like(T, q)
    return T
