"""Lagrange's equations by line vectors. Kool (2004), for trees, completed.

The line vector L_i of a joint's axis is its screw in the space frame: (e, m + h e) for an axis of direction e, moment m and pitch h, (6);
(0, e) for a prismatic joint, (7). With twists and inertias in the space frame too, and sums over the links j that joint i carries,

    T_j = Σ L_i q̇_i                                (5)        L̇_i = ad_{T_i} L_i
    M_i = Σ N_j T_j,  p_i = L_iᵀ M_i                 (8)        ∂E/∂q_i = L̇_iᵀ M_i
    τ_i = L_iᵀ Ṁ_i + L̇_iᵀ M_i - ∂E/∂q_i = L_iᵀ Ṁ_i  (10)       Ṁ_i = Σ (N_j Ṫ_j - ad_{T_j}ᵀ N_j T_j)

since ∂T_j/∂q_i = ad_{L_i} (T_j - T_i) and ∂N_j/∂q_i = -ad_{L_i}ᵀ N_j - N_j ad_{L_i}. The paper's index i - 1 of an axis is our joint i.
Gravity is the acceleration -g of space. Armature adds to p and τ, and nothing to ∂E/∂q.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, concat, dot, like, stack
from ..errors import ModelError
from ..kernel.dispatch import kernel
from ..kinematics.poses import absolute_poses, relative_poses
from ..lie import inertia, se3
from ..robot.robot import Robot
from .springs import spring_force


class _Lines:
    """Line vectors, twists and momenta of a robot, in space and in the coordinates of its tree."""

    def __init__(self, robot: Robot, q: Array, v: Array | None = None) -> None:
        for i, link in enumerate(robot.links):
            if robot.kind(i).nv > 1:
                raise ModelError(f"joint {link.joint.name!r} is {link.joint.kind}; line vectors are of joints with one axis.")
        self.robot, q = robot, robot.tree_q(q)
        self.poses = absolute_poses(robot, relative_poses(robot, q))
        self.joint = [i for i in range(robot.n_links) if robot.kind(i).nv]
        self.L = {i: se3.Ad_act(like(self.poses[i], q), like(robot.joint_screws(i)[..., 0, :], q)) for i in self.joint}
        if v is not None:
            v = robot.tree_v(v)
            self.v = {i: v[..., robot.tree_v_slices[i]] for i in self.joint}
            self.T = self.summed({i: self.L[i] * self.v[i] for i in self.joint}, like(np.zeros(6), q))
            self.N = [inertia.transform(self.poses[i], robot.inertias[i]) for i in range(robot.n_links)]
            self.rate = {i: se3.ad_act(self.T[i], self.L[i]) for i in self.joint}

    def summed(self, parts: dict[int, Array], start: Array) -> list[Array]:
        """Sums along the path to every link."""
        total: list[Array] = [start] * self.robot.n_links
        for i in self.robot.order:
            parent = self.robot.parents[i]
            before = start if parent < 0 else total[parent]
            total[i] = before + parts[i] if i in parts else before
        return total

    def carried(self, parts: list[Array]) -> list[Array]:
        """Sums over each link and all that it carries."""
        total = list(parts)
        for i in reversed(self.robot.order):
            if self.robot.parents[i] >= 0:
                total[self.robot.parents[i]] = total[self.robot.parents[i]] + total[i]
        return total

    def momenta(self) -> list[Array]:
        """M_i of every link."""
        return self.carried([inertia.apply(N, T) for N, T in zip(self.N, self.T, strict=True)])

    def forces(self, a: Array) -> list[Array]:
        """Ṁ_i of every link at the accelerations a of the tree, less what gravity gives."""
        robot = self.robot
        parts = {i: self.L[i] * a[..., robot.tree_v_slices[i]] + self.rate[i] * self.v[i] for i in self.joint}
        dT = self.summed(parts, concat([like(np.zeros(3), robot.gravity), -robot.gravity]))
        own = [
            inertia.apply(N, rate) - se3.ad_dual_act(T, inertia.apply(N, T)) for N, T, rate in zip(self.N, self.T, dT, strict=True)
        ]
        return self.carried(own)

    def along(self, lines: dict[int, Array], wrenches: list[Array]) -> Array:
        """Σ of products of lines and wrenches, joint by joint (..., tree_nv)."""
        return stack([dot(lines[i], wrenches[i]) for i in self.joint])


@kernel("lines 6", q="nq")
def line_vectors(robot: Robot, q: Array) -> Array:
    """L (..., n, 6) of the n joints that move, mimic joints included: their axes as lines in space, (6), (7). For a chain Jᵀ of "space"."""
    lines = _Lines(robot, q)
    return stack([lines.L[i] for i in lines.joint], axis=-2)


@kernel("lines 6", q="nq", v="nv")
def line_vector_rates(robot: Robot, q: Array, v: Array) -> Array:
    """dL/dt (..., n, 6): each axis rides on its link, L̇ = ad_T L."""
    lines = _Lines(robot, q, v)
    return stack([lines.rate[i] for i in lines.joint], axis=-2)


@kernel("n_links 6", q="nq", v="nv")
def carried_momenta(robot: Robot, q: Array, v: Array) -> Array:
    """M_i (..., n_links, 6): the momentum, in space, of each link with all that it carries, (8)."""
    return stack(_Lines(robot, q, v).momenta(), axis=-2)


@kernel("nv", q="nq", v="nv")
def generalized_momentum(robot: Robot, q: Array, v: Array) -> Array:
    """p = ∂E/∂q̇ (..., nv), p_i = L_iᵀ M_i, (4), (8): M(q) v without the mass matrix."""
    lines = _Lines(robot, q, v)
    return robot.from_tree(lines.along(lines.L, lines.momenta()) + robot.armature * robot.tree_v(v))


@kernel("nv", q="nq", v="nv")
def kinetic_energy_gradient(robot: Robot, q: Array, v: Array) -> Array:
    """∂E/∂q (..., nv), ∂E/∂q_i = L̇_iᵀ M_i, what the paper's (10) leaves to find."""
    lines = _Lines(robot, q, v)
    return robot.from_tree(lines.along(lines.rate, lines.momenta()))


@kernel("nv", q="nq", v="nv", a="nv")
def inverse_dynamics_by_lines(robot: Robot, q: Array, v: Array, a: Array) -> Array:
    """The joint forces τ (..., nv), τ_i = L_iᵀ Ṁ_i, (10) completed: equal to `inverse_dynamics`."""
    lines = _Lines(robot, q, v)
    a = robot.tree_v(a)
    return robot.from_tree(lines.along(lines.L, lines.forces(a)) + robot.armature * a) + spring_force(robot, q)
