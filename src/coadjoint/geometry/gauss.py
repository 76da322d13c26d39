"""Curvature along given directions, in O(n) and without the tensor.

The mass points of a robot move in flat space, and the equation of Gauss says what curvature the robot has from how its motions
are bent there. Two directions u and w bend the poses of the links, T_p⁻¹ ∂²T_p(u, w) = H_p, which is collected along the path,

    H_p = f⁻¹ H_λ(p) f + X̂(u) ŝ(w) + X̂(w) ŝ(u) + ŝ(u) ŝ(w),    X = Ad_{f⁻¹} V_λ(p),  s = S_p u_p or S_p w_p.

The force that this acceleration takes is the Christoffel form Γ(u, w); an acceleration c = M⁻¹ Γ(u, w) of the joints undoes the
part of it that the joints can do, and what is left is the second fundamental form, II_p(u, w) = H_p - V̂_p(c). Then

    ⟨R(x, y) z, w⟩ = ⟨II(x, w), II(y, z)⟩ - ⟨II(y, w), II(x, z)⟩,

and with all of II(x, w) in the first factor replaced by H(x, w), against which II has no other share, the vector R(x, y) z comes
from a pullback of wrenches. A joint of several freedoms counts as several joints in a row, as in `curvature`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array, concat, cross, dot, like, mv, namespace, stack, transpose
from ..dynamics.articulated import mass_matrix_inverse
from ..dynamics.christoffel import check_metric
from ..dynamics.composite import mass_matrix
from ..dynamics.newton_euler import pull_back, subspaces, velocities
from ..dynamics.singular import explain_singular
from ..errors import CoadjointError
from ..kernel.dispatch import kernel
from ..kinematics.poses import relative_poses
from ..lie import inertia, se3
from ..robot.robot import Robot

PARALLEL = 1e-14
"""Two directions whose area is below this fraction of |x| |y| are parallel up to rounding."""


def _product(A: Array, B: Array) -> Array:
    """The upper three rows (..., 3, 4) of the product of two twists as matrices."""
    a, b = A[..., :3], B[..., :3]
    turning = b[..., :, None] * a[..., None, :] - dot(a, b)[..., None, None] * like(np.eye(3), A)
    return concat([turning, cross(a, B[..., 3:])[..., None]])


def _axial(K: Array) -> Array:
    """Σ m x × a (..., 3) for K = Σ m a xᵀ (..., 3, 3)."""
    return stack([K[..., 2, 1] - K[..., 1, 2], K[..., 0, 2] - K[..., 2, 0], K[..., 1, 0] - K[..., 0, 1]])


def _wrench(K: Array) -> Array:
    """The wrench (..., 6) of the forces m a for K = Σ m a (x, 1)ᵀ (..., 3, 4)."""
    return concat([_axial(K), K[..., 3]])


class _Bent:
    """The second derivatives of a robot's motion at one configuration, along pairs of directions, in the coordinates of the
    tree.
    """

    def __init__(self, robot: Robot, q: Array) -> None:
        self.robot, tree_q = robot, robot.tree_q(q)
        self.f, self.S = relative_poses(robot, tree_q), subspaces(robot, tree_q)
        self.inverse = mass_matrix_inverse(robot, q)

    def along(self, x: Array) -> tuple[Array, list[Array]]:
        """A direction in the coordinates of the tree, and the twists of the links along it."""
        x = self.robot.tree_v(x)
        return x, velocities(self.robot, self.f, self.S, x)[0]

    def passed(self, i: int, V: list[Array]) -> Array:
        """The twist of the link that carries link i, in the frame of link i."""
        parent = self.robot.parents[i]
        return se3.Ad_inv_act(self.f[i], V[parent]) if parent >= 0 else like(np.zeros(6), V[i])

    def second_fundamental_form(self, first: tuple[Array, list[Array]], second: tuple[Array, list[Array]]) -> list[Array]:
        """K_p = II_p Σ_p (..., 3, 4) = Σ m a (x, 1)ᵀ of every link: the accelerations orthogonal to all motions of the joints."""
        robot, (u, U), (w, W) = self.robot, first, second
        H: list[Array] = [None] * robot.n_links
        for i in robot.order:
            parent, k = robot.parents[i], robot.tree_v_slices[i].start
            H[i] = like(np.zeros((3, 4)), u)
            if parent >= 0:
                R, p = self.f[i][..., :3, :3], self.f[i][..., :3, 3]
                turning = H[parent][..., :3]
                shifted = mv(turning, p) + H[parent][..., 3]
                H[i] = transpose(R) @ concat([turning @ R, shifted[..., None]])
            X, Y = self.passed(i, U), self.passed(i, W)
            for s in (self.S[i][..., row, :] for row in range(self.S[i].shape[-2])):
                su, sw = s * u[..., k : k + 1], s * w[..., k : k + 1]
                H[i] = H[i] + _product(X, sw) + _product(Y + sw, su)
                X, Y, k = X + su, Y + sw, k + 1
        force = pull_back(robot, self.f, self.S, [_wrench(H[i] @ self._pseudo(i)) for i in range(robot.n_links)])
        _, V = self.along(mv(self.inverse, robot.from_tree(force)))
        tangent = [se3.hat(V[i])[..., :3, :] for i in range(robot.n_links)]
        return [(H[i] - tangent[i]) @ self._pseudo(i) for i in range(robot.n_links)]

    def _pseudo(self, i: int) -> Array:
        return like(inertia.pseudo(self.robot.inertias[i]), self.f[i])

    def against(self, K: list[Array], direction: tuple[Array, list[Array]]) -> Array:
        """⟨II, H(x, X_r)⟩ for every freedom r (..., nv): H(x, X_r) = [V̂_r, ŝ_r] + ŝ_r V̂_p on a link p that r moves."""
        robot, (x, V) = self.robot, direction
        wrench = [_wrench(K[i]) for i in range(robot.n_links)]
        turning = [_axial(K[i] @ transpose(se3.hat(V[i])[..., :3, :])) for i in range(robot.n_links)]
        tau = [like(np.zeros(()), self.inverse)] * robot.tree_nv
        for i in reversed(robot.order):
            X = self.passed(i, V)
            for row, k in enumerate(range(robot.tree_v_slices[i].start, robot.tree_v_slices[i].stop)):
                s = self.S[i][..., row, :]
                tau[k] = dot(wrench[i], se3.ad_act(X, s)) + dot(turning[i], s[..., :3])
                X = X + s * x[..., k : k + 1]
            parent = robot.parents[i]
            if parent >= 0:
                wrench[parent] = wrench[parent] + se3.Ad_inv_dual_act(self.f[i], wrench[i])
                turning[parent] = turning[parent] + mv(self.f[i][..., :3, :3], turning[i])
        return robot.from_tree(stack(tau))


def _lowered(robot: Robot, q: Array, x: Array, y: Array, z: Array) -> Array:
    """⟨R(x, y) z, X_r⟩ (..., nv)."""
    check_metric(robot)
    bent = _Bent(robot, q)
    X, Y, Z = (bent.along(a) for a in (x, y, z))
    return bent.against(bent.second_fundamental_form(Y, Z), X) - bent.against(bent.second_fundamental_form(X, Z), Y)


@kernel("nv", q="nq", x="nv", y="nv", z="nv", no_result=explain_singular, joint_space=True)
def curvature_operator(robot: Robot, q: Array, x: Array, y: Array, z: Array) -> Array:
    """R(x, y) z = ∇_x ∇_y z - ∇_y ∇_x z - ∇_[x,y] z (..., nv): Rⁱ_jkl zʲ xᵏ yˡ of the tensor `curvature`, in O(n)."""
    return mv(mass_matrix_inverse(robot, q), _lowered(robot, q, x, y, z))


def explain_plane(robot: Robot, q: np.ndarray, x: np.ndarray, y: np.ndarray, **_: object) -> None:
    """Raise an error for directions that span no plane, or for a singular mass matrix."""
    explain_singular(robot, q)
    if all(np.all(np.isfinite(a)) for a in (q, x, y)):
        raise CoadjointError("x and y span no plane in some state; expected two directions that are not parallel.")


@kernel("", q="nq", x="nv", y="nv", no_result=explain_plane, joint_space=True)
def sectional_curvature(robot: Robot, q: Array, x: Array, y: Array) -> Array:
    """K = R(x, y, x, y) / (|x|² |y|² - ⟨x, y⟩²) (...), of the plane that the velocities x and y span; in O(n).

    It depends on the plane alone. Motions along x that start a little aside along y draw together for K > 0 and spread for K < 0.
    """
    M: Any = mass_matrix(robot, q)
    Mx, My = mv(M, x), mv(M, y)
    xx, yy, xy = dot(x, Mx), dot(y, My), dot(x, My)
    area = xx * yy - xy * xy
    xp = namespace(area)
    plane = area > PARALLEL * (xx * yy)
    return xp.where(plane, dot(_lowered(robot, q, x, y, y), x) / xp.where(plane, area, 1.0 + 0.0 * area), np.nan)
