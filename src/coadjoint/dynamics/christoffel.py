"""Christoffel symbols, and the derivative of the mass matrix.

A robot is a cloud of mass points x in flat space, so the symbols of its metric are Γ_ijk = Σ m (∂_i ∂_j x)·(∂_k x). Along a path,
with s_i the screw of freedom i and i nearer the base than j, ∂_i x = ŝ_i x and ∂_i ∂_j x = ŝ_i ŝ_j x, so that

    Γ_ijk = g(i, j, k) = tr(ŝ_i ŝ_j Σ ŝ_kᵀ),

Σ the pseudo-inertia of all that the farthest of the three joints carries: the trace form of Brockett, Stokes & Park (1993) for
(55)-(57) of Park, Bobrow & Ploen (1995), the sums over the links below done at once. As (ŝ_i y)·z = (ω_i × y)·z for the
velocities y, z of a point, g(i, j, k) = -g(i, k, j), and the case of k beyond j follows from that of j beyond k. For a farthest j

    g(i, j, k) = s_kᵀ F,  F = ((S ω_i) × ω_j + h × (ω_i × v_j), ω_i × (m v_j + ω_j × h)),   Σ = [[S, h], [hᵀ, m]],

the wrench that gives the carried body the acceleration ŝ_i ŝ_j x, in that joint's own frame, where ω_j and v_j are mostly zeros.

The freedoms of a spherical, planar or free joint are left-invariant fields X_i on its group, not coordinates. Then Γ_ijk is
⟨∇_{X_i} X_j, X_k⟩ = Σ m (X_i X_j x)·(X_k x), which is g(i, j, k) again, for freedoms of one joint in either order: Hamel's form,
Γ_ijk - Γ_jik = ⟨[X_i, X_j], X_k⟩ = c_ijˡ M_lk with the structure constants of the group.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..arrays import Array, concat, cross, like, transpose
from ..errors import ModelError
from ..kernel.dispatch import kernel
from ..kinematics.poses import relative_poses
from ..lie import inertia
from ..memo import per_structure
from ..robot.robot import Robot
from .composite import composite_inertias
from .freedoms import freedoms, from_tree_axes, path_screws
from .newton_euler import subspaces


def brackets(A: Array, J: Array, j: int) -> Array:
    """g(i, j, k) (..., p, p) by i and k, for screws A (..., p, 6) and the ten parameters J of what j carries, in one frame."""
    w, wj, vj = A[..., :3], A[..., j : j + 1, :3], A[..., j : j + 1, 3:]
    m, h, S = J[..., None, :1], J[..., None, 1:4], inertia.pseudo(J)[..., :3, :3]
    moment = cross(w @ S, wj) + cross(h, cross(w, vj))
    force = cross(w, m * vj + cross(wj, h))
    return concat([moment, force]) @ transpose(A)


def _all_brackets(robot: Robot, q: Array) -> Array:
    """g(i, j, k) of all freedoms j, with i and k on the path to j's link, in one row: first a zero, then the values, then their
    negatives.
    """
    f, S = relative_poses(robot, q), subspaces(robot, q)
    A, J = path_screws(robot, f, S), composite_inertias(robot, f)
    parts = [like(np.zeros(1), q)]
    for j, i in enumerate(freedoms(robot).link):
        g = brackets(A[i], like(J[i], q), freedoms(robot).path[i].index(j))
        parts.append(g.reshape((*g.shape[:-2], math.prod(g.shape[-2:]))))
    g = concat(parts)
    return concat([g, -g[..., 1:]])


class _Where:
    """The column of `_all_brackets` that holds a Christoffel symbol; 0 if it vanishes, negative for the negated column."""

    def __init__(self, robot: Robot) -> None:
        self.freedoms, at = freedoms(robot), 1
        self.start = []
        for i in self.freedoms.link:
            self.start.append(at)
            at += len(self.freedoms.path[i]) ** 2
        self.count = at - 1

    def bracket(self, i: int, j: int, k: int) -> int:
        path = self.freedoms.path[self.freedoms.link[j]]
        return self.start[j] + path.index(i) * len(path) + path.index(k)

    def symbol(self, i: int, j: int, k: int) -> int:
        """Γ_ijk of the tree."""
        here = self.freedoms
        if not here.on_one_path(i, j, k):
            return 0
        if here.before(j, i):
            i, j = j, i
        if j == k:
            return 0
        same = here.link[j] == here.link[k]
        if k < j if same else here.link[k] in here.above[here.link[j]]:
            return self.bracket(i, j, k)
        return -self.bracket(i, k, j)

    def column(self, place: int) -> int:
        return place if place >= 0 else self.count - place


def _symbol(where: _Where, i: int, j: int, k: int) -> list[int]:
    """The index of Γ_ijk."""
    return [where.symbol(i, j, k)]


def _both(where: _Where, i: int, j: int, l: int) -> list[int]:
    """The indices of the two terms of ∂M_ij/∂q_l."""
    places = [where.symbol(l, i, j), where.symbol(l, j, i)]
    return [0, 0] if places[0] == -places[1] else places


@per_structure
def _places(robot: Robot, choose: Callable[[_Where, int, int, int], list[int]]) -> list[np.ndarray]:
    """Columns of `_all_brackets` for every triple of freedoms, as `choose` gives them."""
    where, n = _Where(robot), robot.tree_nv
    chosen = [[where.column(p) for p in choose(where, *ijk)] for ijk in np.ndindex(n, n, n)]
    return list(np.array(chosen, dtype=int).reshape(n**3, -1).T)


def tree_christoffel(robot: Robot, q: Array) -> Array:
    """Γ (..., n, n, n) in the coordinates of the tree, armature not counted."""
    n = robot.tree_nv
    if not n:
        return like(np.zeros((0, 0, 0)), q)
    (columns,) = _places(robot, _symbol)
    g = _all_brackets(robot, q)
    return g[..., columns].reshape((*g.shape[:-1], n, n, n))


def check_metric(robot: Robot) -> None:
    """An error where the equations of motion are not those of a metric: armature along the turning axes of a group joint."""
    for link, kind in zip(robot.links, robot.kinds, strict=True):
        if kind.group is not None and np.any(link.joint.armature):
            raise ModelError(
                f"joint {link.joint.name!r} is {link.joint.kind} and has armature. Along axes that turn with the link, armature is "
                "inertia without its gyroscopic part, and the equations of motion are not those of a metric. Leave it out: "
                f"robot.with_joint({link.joint.name!r}, armature=0)."
            )


@kernel("nv nv nv", q="nq", joint_space=True, largest=20)
def christoffel(robot: Robot, q: Array) -> Array:
    """Γ_ijk (..., nv, nv, nv), k the lowered index, of the metric M: τ_k = M_kj a_j + Γ_ijk v_i v_j + g_k.

    Γ_ijk = ½ (∂_i M_kj + ∂_j M_ki - ∂_k M_ij), symmetric in i and j: Park, Bobrow & Ploen (1995), (52), (55)-(57) corrected.

    Where a spherical, planar or free joint has velocities that are not rates of coordinates, these are the coefficients
    ⟨∇_{X_i} X_j, X_k⟩ of the moving frame, no longer symmetric: Γ_ijk - Γ_jik = c_ijˡ M_lk with [X_i, X_j] = c_ijˡ X_l.
    """
    check_metric(robot)
    return from_tree_axes(robot, tree_christoffel(robot, robot.tree_q(q)), 3)


@kernel("nv nv nv", q="nq", joint_space=True, largest=20)
def mass_matrix_derivative(robot: Robot, q: Array) -> Array:
    """∂M_ij/∂q_l (..., nv, nv, nv), l last: Γ_lij + Γ_lji. For joints with quaternions along the tangent vectors of `integrate`."""
    n = robot.tree_nv
    if not n:
        return like(np.zeros((0, 0, 0)), q)
    first, second = _places(robot, _both)
    g = _all_brackets(robot, robot.tree_q(q))
    return from_tree_axes(robot, (g[..., first] + g[..., second]).reshape((*g.shape[:-1], n, n, n)), 3)
