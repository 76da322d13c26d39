"""The mass matrix by composite inertias.

The links beyond a joint, held still relative to each other, are one rigid body: its inertia is the sum of theirs, carried to
one frame as pseudo-inertias, Σ ↦ f Σ fᵀ. Then M_ij = ⟨S_i, J^C S_j⟩ for the joints j on the path to i.
Equal to Park, Bobrow & Ploen (1995), (40), at O(n²) cost.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, dot, like, matrix, transpose
from ..kernel.dispatch import kernel
from ..kinematics.poses import relative_poses
from ..lie import inertia, se3
from ..robot.robot import Robot
from .newton_euler import subspaces


def composite_inertias(robot: Robot, f: list[Array]) -> list[Array]:
    """Ten parameters (..., 10) of each link with all that it carries, in that link's frame."""
    J: list[Array] = [robot.inertias[i] for i in range(robot.n_links)]
    for i in reversed(robot.order):
        if robot.parents[i] >= 0:
            J[robot.parents[i]] = J[robot.parents[i]] + inertia.transform(f[i], J[i])
    return J


def tree_mass_matrix(robot: Robot, q: Array) -> Array:
    """M (..., tree_nv, tree_nv) in the coordinates of the tree, armature included."""
    f, S = relative_poses(robot, q), subspaces(robot, q)
    J = composite_inertias(robot, f)
    zero = like(np.zeros(()), q)
    M: list[list[Array]] = [[zero] * robot.tree_nv for _ in range(robot.tree_nv)]
    for i in range(robot.n_links):
        for row in range(S[i].shape[-2]):
            r = robot.tree_v_slices[i].start + row
            F = inertia.apply(J[i], S[i][..., row, :])
            for j in reversed(robot.path(i)):
                for column in range(row if j == i else 0, S[j].shape[-2]):
                    c = robot.tree_v_slices[j].start + column
                    M[r][c] = M[c][r] = dot(S[j][..., column, :], F)
                F = se3.Ad_inv_dual_act(f[j], F)
            M[r][r] = M[r][r] + robot.armature[..., r]
    if not M:
        return like(np.zeros((0, 0)), q)
    return matrix(M)


@kernel("nv nv", q="nq", joint_space=True)
def mass_matrix(robot: Robot, q: Array) -> Array:
    """M(q) (..., nv, nv): the metric of kinetic energy, T = ½ vᵀ M v. Symmetric, armature included.

    Equal to Park, Bobrow & Ploen (1995), (40), by composite inertias.
    """
    M = tree_mass_matrix(robot, robot.tree_q(q))
    if not robot.mimics:
        return M
    return robot.from_tree_columns(transpose(robot.from_tree_columns(M)))
