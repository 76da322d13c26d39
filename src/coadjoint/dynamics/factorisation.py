"""The mass matrix as a product of a kinematic, a configuration-dependent and an inertial factor, in two forms.

    M = 𝒜ᵀ ℒᵀ 𝒟 ℒ 𝒜     all in the space frame at home          Park, Bobrow & Ploen (1995), (41)-(46)
    M = 𝒮ᵀ 𝒢ᵀ 𝒥 𝒢 𝒮     all in the frames of the links          (47)-(51)

with 𝒜 = 𝒬 𝒮, ℒ = 𝒬 𝒢 𝒬⁻¹, 𝒟 = 𝒬⁻ᵀ 𝒥 𝒬⁻¹ and 𝒬 = Diag[Ad_{M_i}], M_i the pose of link i at home in the space frame (not the
relative one of section 3, as (50) can be read). Read as geometry (section 4.4): ℒ 𝒜 (or 𝒢 𝒮) is the Jacobian of the map from the
joints to the poses of all links, 𝒟 (or 𝒥) the product of the links' metrics, and M the pullback.

For a tree, blocks of ℒ and 𝒢 vanish where link i is not on the path to link p. Fixed joints have no columns; joints of several
freedoms have several, those of a universal joint at the configuration. Armature is not in the factors: it adds its diagonal to M.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array, concat, like, stack, transpose
from ..errors import ModelError
from ..kernel.dispatch import kernel
from ..kinematics.poses import absolute_poses, relative_poses
from ..lie import inertia, se3
from ..robot.robot import Robot
from .blocks import rows
from .newton_euler import subspaces


class Factors(NamedTuple):
    """M = screwsᵀ pathsᵀ inertias paths screws; n links."""

    screws: Array
    """𝒜 or 𝒮 (..., 6n, nv): the screws of the joints."""
    paths: Array
    """ℒ or 𝒢 (..., 6n, 6n): how a screw at link i moves link p; the only factor that depends on q, but for universal joints."""
    inertias: Array
    """𝒟 or 𝒥 (6n, 6n), block diagonal."""

    @property
    def jacobian(self) -> Array:
        """ℒ 𝒜 or 𝒢 𝒮 (..., 6n, nv): the twists of all links, of which M is the pullback."""
        return self.paths @ self.screws

    @property
    def mass_matrix(self) -> Array:
        """The product (..., nv, nv)."""
        J = self.jacobian
        return transpose(J) @ self.inertias @ J


def home_poses(robot: Robot) -> list[Array]:
    """M_i: each link's frame in the space frame, all joints at home."""
    return absolute_poses(robot, [robot.placements[i] for i in range(robot.n_links)])


def _diagonal(blocks: list[Array]) -> Array:
    """A block-diagonal matrix of blocks (..., m, n) of one size."""
    zero = like(np.zeros(blocks[0].shape[-2:]), blocks[0])
    lines = [concat([x if i == k else zero for k in range(len(blocks))]) for i, x in enumerate(blocks)]
    return rows(*lines)


def link_transformation(robot: Robot) -> Array:
    """𝒬 = Diag[Ad_{M_i}] (6n, 6n), (50): from the frames of the links at home to the space frame."""
    return _diagonal([se3.Ad(T) for T in home_poses(robot)])


@kernel("n_links n_links 6 6", "tree_nv 6", q="nq")
def _link_blocks(robot: Robot, q: Array) -> tuple[Array, Array]:
    """Ad_{f_p⁻¹ f_i} for link i on the path to p, else 0; and the screws of all freedoms in the frames of their links."""
    q = robot.tree_q(q)
    f, zero = relative_poses(robot, q), like(np.zeros((6, 6)), q)
    blocks: list[list[Array]] = [[zero] * robot.n_links for _ in range(robot.n_links)]
    for p in robot.order:
        back = se3.Ad(se3.inverse(f[p]))
        for i in range(robot.n_links):
            if robot.parents[p] >= 0 and blocks[robot.parents[p]][i] is not zero:
                blocks[p][i] = back @ blocks[robot.parents[p]][i]
        blocks[p][p] = like(np.eye(6), q)
    return stack([stack(line, axis=-3) for line in blocks], axis=-4), rows(*subspaces(robot, q))


def body_factors(robot: Robot, q: Array) -> Factors:
    """𝒮, 𝒢, 𝒥 of (47)-(49), (51) for q (..., nq)."""
    if not robot.n_links:
        raise ModelError(f"robot {robot.name!r} has no links, and its mass matrix no factors.")
    blocks, screws = _link_blocks(robot, q)
    n = robot.n_links
    G = rows(*[concat([blocks[..., p, i, :, :] for i in range(n)]) for p in range(n)])
    zero = like(np.zeros(6), screws)
    columns = [
        concat([screws[..., k, :] if p == i else zero for p in range(n)])
        for i in range(n)
        for k in range(robot.tree_v_slices[i].start, robot.tree_v_slices[i].stop)
    ]
    S = stack(columns, axis=-1) if columns else like(np.zeros((6 * n, 0)), screws)
    J = _diagonal([inertia.spatial(robot.inertias[i]) for i in range(n)])
    return Factors(robot.from_tree_columns(S), G, like(J, screws))


def space_factors(robot: Robot, q: Array) -> Factors:
    """𝒜, ℒ, 𝒟 of (41)-(45), (46) for q (..., nq)."""
    S, G, J = body_factors(robot, q)
    homes = home_poses(robot)
    Q = like(_diagonal([se3.Ad(T) for T in homes]), S)
    back = like(_diagonal([se3.Ad(se3.inverse(T)) for T in homes]), S)
    return Factors(Q @ S, Q @ G @ back, transpose(back) @ J @ back)
