"""The closed form, term by term as it is printed. Park, Bobrow & Ploen (1995), section 4, and Brockett, Stokes & Park (1993).

With A_i the space screws at home, Ad_j^i of (37) and ⟨x, y⟩_p = xᵀ 𝒟_p y of (44), write a_i = Ad_p^{i+1}(A_i): the screw of freedom
i seen at link p. Sums are over the links p that all the freedoms named move, so that a tree needs no other formula than a chain.
These functions are for reading and for checking; `mass_matrix`, `christoffel` and `gravity_force` give the same faster.
"""

from __future__ import annotations

import math

import numpy as np

from ..arrays import Array, concat, cross, diagonal, dot, like, mv, transpose
from ..errors import ModelError
from ..kernel.dispatch import kernel
from ..kinematics.poses import absolute_poses, relative_poses
from ..lie import inertia, se3
from ..robot.robot import Robot
from .factorisation import home_poses
from .freedoms import freedoms, from_tree_axes, path_screws
from .newton_euler import subspaces, velocities
from .springs import spring_force

# --- Definition 2 and the propositions, for a chain with space screws A (n, 6) at x (..., n); joints are numbered from 0


def adjoint(A: Array, x: Array, i: int, j: int, B: Array) -> Array:
    """Ad_j^i(B) = e^{-A_j x_j} ⋯ e^{-A_i x_i} B e^{A_i x_i} ⋯ e^{A_j x_j} (..., 6); B itself for i > j. (37)"""
    for k in range(i, j + 1):
        B = se3.Ad_inv_act(se3.exp_screw(A[..., k, :], x[..., k]), B)
    return B


def adjoint_derivative(A: Array, x: Array, i: int, j: int, k: int, B: Array) -> Array:
    """∂/∂x_k Ad_j^i(B) = Ad_j^k([Ad_{k-1}^i(B), A_k]) for i ≤ k ≤ j, else 0. Proposition 1, (53)"""
    if not i <= k <= j:
        return 0.0 * adjoint(A, x, i, j, B)
    return adjoint(A, x, k, j, se3.ad_act(adjoint(A, x, i, k - 1, B), A[..., k, :]))


def adjoint_second_derivative(A: Array, x: Array, i: int, j: int, k: int, l: int, B: Array) -> Array:
    """∂/∂x_l ∂/∂x_k Ad_j^i(B), bracketing with the nearer joint first. Proposition 2, (54) with its two conditions exchanged.

    For i ≤ k ≤ l ≤ j it is Ad_j^l([Ad_{l-1}^k([Ad_{k-1}^i(B), A_k]), A_l]); printed, k and l stand the other way round.
    """
    k, l = min(k, l), max(k, l)
    if not i <= k <= l <= j:
        return 0.0 * adjoint(A, x, i, j, B)
    inner = se3.ad_act(adjoint(A, x, i, k - 1, B), A[..., k, :])
    return adjoint(A, x, l, j, se3.ad_act(adjoint(A, x, k, l - 1, inner), A[..., l, :]))


# --- for robots


def spatial_inertias(robot: Robot) -> list[Array]:
    """𝒟_p (6, 6) of every link, (44): its inertia at home about the origin of space."""
    return [inertia.spatial(inertia.transform(T, robot.inertias[i])) for i, T in enumerate(home_poses(robot))]


def seen_screws(robot: Robot, q: Array) -> list[Array]:
    """The screws a_i = Ad_p^{i+1}(A_i) (..., n, 6), for every link p, of the freedoms on the path to it, base outward; q of the tree."""
    f = relative_poses(robot, q)
    at_link = path_screws(robot, f, subspaces(robot, q))
    return [
        se3.Ad_act(like(T, q)[..., None, :, :], a) if a.shape[-2] else a for T, a in zip(home_poses(robot), at_link, strict=True)
    ]


def _symmetric_sum(robot: Robot, q: Array, terms: list[Array], axes: int) -> Array:
    """Σ_p of arrays (..., n, …, n) over the freedoms on the path to link p, placed among all freedoms."""
    n, total = robot.tree_nv, like(np.zeros((robot.tree_nv,) * axes), q)
    for path, term in zip(freedoms(robot).path, terms, strict=True):
        if not path:
            continue
        flat = concat(
            [term.reshape((*term.shape[: term.ndim - axes], math.prod(term.shape[term.ndim - axes :]))), like(np.zeros(1), q)]
        )
        place = np.full((n,) * axes, len(path) ** axes)
        place[np.ix_(*[path] * axes)] = np.arange(len(path) ** axes).reshape((len(path),) * axes)
        total = total + flat[..., place.reshape(-1)].reshape((*flat.shape[:-1], *place.shape))
    return total


@kernel("nv nv", q="nq")
def mass_matrix_sum(robot: Robot, q: Array) -> Array:
    """M (..., nv, nv) by (40): m_ij = Σ_p ⟨a_i, a_j⟩_p over the links p that both move, and the armature."""
    tree_q = robot.tree_q(q)
    products = [a @ like(D, q) @ transpose(a) for a, D in zip(seen_screws(robot, tree_q), spatial_inertias(robot), strict=True)]
    armature = diagonal(robot.armature)
    return from_tree_axes(robot, _symmetric_sum(robot, tree_q, products, 2) + armature, 2)


@kernel("nv nv nv", q="nq")
def christoffel_sum(robot: Robot, q: Array) -> Array:
    """Γ_ijk (..., nv, nv, nv) by (55)-(57), in one formula for the three cases:

    Γ_ijk = ½ Σ_p (t(k, j, i) + t(k, i, j) + t(min(i, j), max(i, j), k)), t(x, y, z) = ⟨[a_x, a_y], a_z⟩_p,

    where printed the factor ½ and the sum stand before the first term alone. Joints must have coordinates for velocities.
    """
    for link, kind in zip(robot.links, robot.kinds, strict=True):
        if kind.group is not None:
            raise ModelError(
                f"joint {link.joint.name!r} is {link.joint.kind}: its velocities are not rates of coordinates, and (52) does not "
                "hold for it. `christoffel` has its connection coefficients."
            )
    tree_q = robot.tree_q(q)
    terms = []
    for a, D in zip(seen_screws(robot, tree_q), spatial_inertias(robot), strict=True):
        bracket = se3.ad_act(a[..., :, None, :], a[..., None, :, :])  # [a_x, a_y]
        n = a.shape[-2]
        t = bracket @ (like(D, q) @ transpose(a))[..., None, :, :]  # t(x, y, z)
        i, j, k = np.indices((n, n, n))
        terms.append(0.5 * (t[..., k, j, i] + t[..., k, i, j] + t[..., np.minimum(i, j), np.maximum(i, j), k]))
    return from_tree_axes(robot, _symmetric_sum(robot, tree_q, terms, 3), 3)


@kernel("nv", q="nq")
def gravity_force_sum(robot: Robot, q: Array) -> Array:
    """φ_k (..., nv) by (59) with its sign corrected: φ_k = -Σ_p m_p g·(E_p â_k M_p r_p), E_p = f_p M_p⁻¹, r_p the centre of mass.

    E_p turns and shifts what is fixed to link p from home to where it is; â_k moves the centre of mass M_p r_p at home.
    """
    tree_q = robot.tree_q(q)
    poses, homes, terms = absolute_poses(robot, relative_poses(robot, tree_q)), home_poses(robot), []
    for p, a in enumerate(seen_screws(robot, tree_q)):
        home = inertia.transform(homes[p], robot.inertias[p])
        moved = cross(a[..., :3], like(home, q)[..., 1:4]) + home[..., :1] * a[..., 3:]  # m â (M r)
        turn = poses[p][..., :3, :3] @ transpose(homes[p][..., :3, :3])
        terms.append(-mv(moved @ transpose(turn), robot.gravity))
    return robot.from_tree(_symmetric_sum(robot, tree_q, terms, 1)) + spring_force(robot, q)


@kernel("", q="nq", v="nv")
def trace_energy(robot: Robot, q: Array, v: Array) -> Array:
    """T = ½ Σ tr(V_i Σ_i V_iᵀ) (...), and the armature's share: Brockett, Stokes & Park (1993), (7), with the pseudo-inertia Σ."""
    q, v = robot.tree_q(q), robot.tree_v(v)
    f, S = relative_poses(robot, q), subspaces(robot, q)
    V, _ = velocities(robot, f, S, v)
    total = 0.5 * dot(robot.armature * v, v)
    for i in range(robot.n_links):
        total = total + inertia.kinetic_energy(robot.inertias[i], V[i])
    return total
