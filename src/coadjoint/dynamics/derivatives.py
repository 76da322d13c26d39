"""Derivatives of inverse and forward dynamics by the state, exact, in O(n · depth).

Vary the motion by one freedom k with the screw s. At fixed velocities and accelerations all that joint k carries moves as one
body, by s, and s rides on what carries the joint, which has the twist V and the acceleration A (A includes -g):

    ds  = [V, s],    dds = [A, s] + [V, [V, s]]                                            the rates of s in space.

In its own frame every body p beyond the joint has then its twist changed by ds, its acceleration by dds - [V_p, ds], and with
(26) of Park, Bobrow & Ploen (1995) its wrench by J_p dds + 2 B_p ds (`moving` has B); by v_k the same with s for ds and with
2 ds + [joint's own twist, s] for dds (the bracket vanishes but for spherical, planar and free joints). Sums over all that a joint
carries, J, B and F, are collected in the links' frames from the tips to the base, and so, for k at or before r on a path,

    ∂τ_r/∂q_k = s_rᵀ (J dds_k + 2 B ds_k)                      J, B of r
    ∂τ_k/∂q_r = s_kᵀ (J dds_r + 2 B ds_r - ad*_{s_r} F)        k before r: s_r also turns the wrench F against s_k.

Equal to ∂_l M_kj a_j + ∂_l Γ_ijk v_i v_j + ∂_l ∂_k U. Derivatives by q are along the tangent vectors of `robot.integrate`: for a
free joint τ(T exp(δ)) by δ at 0, in the frame of the link. Wrenches on the links stay as they are in the links' frames;
F is without those of springs, whose derivatives are in `springs`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..arguments import numbers, takes
from ..arrays import Array, concat, diagonal, like, mirror, mv, namespace, solve_spd, transpose
from ..errors import ShapeError
from ..kernel.dispatch import kernel
from ..kinematics.poses import relative_poses
from ..lie import inertia, se3
from ..robot.robot import Robot
from .articulated import forward_dynamics, mass_matrix_inverse
from .blocks import Blocks, rows
from .composite import composite_inertias
from .moving import Moving, composite_moving
from .newton_euler import accelerations, bias_force, carried, friction_force, own_wrenches, subspaces, velocities
from .singular import explain_singular
from .springs import spring_derivatives

WRITTEN_OUT = 12
"""Up to this many freedoms, products with M⁻¹ in straight-line code are faster than solving with M, which exploits the zeros of
M.
"""


class Rates(NamedTuple):
    """Screws of a joint's freedoms and their rates, each (..., nv, 6) in the frame of the link."""

    s: Array
    ds: Array
    """[V, s]: the rate of s in space, and the change of twists with q."""
    dds: Array
    """[A, s] + [V, [V, s]]: its second rate, and the change of accelerations with q."""
    by_v: Array
    """2 ds + [own, s]: the change of accelerations with v."""


def screw_rates(robot: Robot, i: int, s: Array, V: Array, A: Array, v: Array, a: Array) -> Rates:
    """The rates of the screws s (..., nv, 6) of joint i, which is carried with V and A (..., 6), in the frame of link i."""
    V, A, dofs = V[..., None, :], A[..., None, :], robot.tree_v_slices[i]
    if robot.kind(i).serial:  # the second axis rides on what the first one turns
        first = s[..., :1, :]
        turn = first * v[..., dofs][..., :1, None]
        V2 = V + turn
        A2 = A + se3.ad_act(V2, turn) + first * a[..., dofs][..., :1, None]
        V, A = rows(V, V2), rows(A, A2)
    ds = se3.ad_act(V, s)
    dds = se3.ad_act(A, s) + se3.ad_act(V, ds)
    by_v = 2.0 * ds
    if robot.kind(i).group is not None:
        by_v = by_v + se3.ad_act(v[..., None, dofs] @ s, s)
    return Rates(s, ds, dds, by_v)


class Variations(NamedTuple):
    """The intermediate quantities of the derivatives, for each link in its frame: pose in the parent, rates of its joint's screws,
    and wrench, inertia and motion of all that the joint carries.
    """

    f: list[Array]
    rates: list[Rates]
    F: list[Array]
    J: list[Array]
    B: list[Moving]


def variations(robot: Robot, q: Array, v: Array, a: Array, wrenches: Array | None) -> Variations:
    """The `Variations` at a state, in the coordinates of the tree."""
    f, S = relative_poses(robot, q), subspaces(robot, q)
    V, own = velocities(robot, f, S, v)
    A = accelerations(robot, f, S, V, own, q, v, a)
    still, fall = like(np.zeros(6), q), concat([like(np.zeros(3), q), -robot.gravity])
    rates = []
    for i, parent in enumerate(robot.parents):
        twist, acceleration = (still, fall) if parent < 0 else (V[parent], A[parent])
        rates.append(screw_rates(robot, i, S[i], se3.Ad_inv_act(f[i], twist), se3.Ad_inv_act(f[i], acceleration), v, a))
    F = carried(robot, f, own_wrenches(robot, V, A, wrenches))
    return Variations(f, rates, F, composite_inertias(robot, f), composite_moving(robot, f, V))


def tree_derivatives(robot: Robot, q: Array, v: Array, a: Array, wrenches: Array | None) -> tuple[Array, Array, Array]:
    """∂τ/∂q, ∂τ/∂v, ∂τ/∂a (..., n, n) in the coordinates of the tree, without armature."""
    n, x = robot.tree_nv, variations(robot, q, v, a, wrenches)
    by_q, by_v, by_a = (Blocks((n, n), like(np.zeros(1), q)) for _ in range(3))
    below: list[list[int]] = [[] for _ in range(robot.n_links)]
    passed: list[list[list[Array]]] = [[] for _ in range(robot.n_links)]
    for i in reversed(robot.order):
        own = list(range(robot.tree_v_slices[i].start, robot.tree_v_slices[i].stop))
        outer, parts = below[i], [rows(*parts) for parts in zip(*passed[i], strict=True)]
        if own:
            s, ds, dds, dds_v = x.rates[i]
            J, B = x.J[i][..., None, :], x.B[i]
            force_q = inertia.apply(J, dds) + 2.0 * B.wrench(ds[..., :3])
            turned = force_q - se3.ad_dual_act(s, x.F[i][..., None, :])
            # What each freedom passes to those before it: forces of its own motion for their rows, and s J, s B for its row.
            mine = [inertia.apply(J, s), inertia.apply(J, dds_v) + 2.0 * B.wrench(s[..., :3]), turned, 2.0 * B.turning(s)]
            by_a.put((own, own), s @ transpose(mine[0]))
            by_v.put((own, own), s @ transpose(mine[1]))
            by_q.put((own, own), s @ transpose(force_q))
            if robot.kind(i).serial:  # its first freedom is before the second
                by_q.put((own[:1], own[1:]), s[..., :1, :] @ transpose(turned[..., 1:, :]))
            if outer:
                momentum, force_v, force_q, turning = parts
                M = s @ transpose(momentum)
                by_a.put((own, outer), M)
                by_a.put((outer, own), transpose(M))
                by_v.put((own, outer), s @ transpose(force_v))
                by_v.put((outer, own), momentum @ transpose(dds_v) + turning @ transpose(s[..., :3]))
                by_q.put((own, outer), s @ transpose(force_q))
                by_q.put((outer, own), momentum @ transpose(dds) + turning @ transpose(ds[..., :3]))
            parts = [rows(*pair) for pair in zip(parts, mine, strict=True)] if outer else mine
        if robot.parents[i] >= 0 and parts:
            wrenches_, turning = parts[:3], parts[3]
            f = x.f[i][..., None, :, :]
            onward = [*(se3.Ad_inv_dual_act(f, w) for w in wrenches_), turning @ transpose(x.f[i][..., :3, :3])]
            below[robot.parents[i]] += outer + own
            passed[robot.parents[i]].append(onward)
    tau_q = by_q.array()
    if robot.spring_ends:
        tau_q = tau_q + spring_derivatives(robot, q, x.f, [rates.s for rates in x.rates])
    return tau_q, by_v.array(), by_a.array()


@takes(a=numbers)
def triangle(a: Array) -> Array:
    """The upper triangle, row by row (..., n(n+1)/2), of a symmetric matrix (..., n, n), such as M, M⁻¹ or ∂τ/∂a.

    In a compiled function (`compile`) the other half is neither computed nor written, which for humanoids is what takes the time.
    """
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"the matrix has shape {tuple(a.shape)}; expected (..., n, n).")
    i, j = np.triu_indices(a.shape[-1])
    return a[..., i, j]


@takes(x=numbers)
def from_triangle(x: Array) -> Array:
    """The symmetric matrix (..., n, n) whose `triangle` is x (..., n(n+1)/2)."""
    n = math.isqrt(2 * x.shape[-1]) if x.ndim else 0
    if not x.ndim or n * (n + 1) // 2 != x.shape[-1]:
        raise ShapeError(f"the triangle has shape {tuple(x.shape)}; expected (..., n(n+1)/2) for some n: 1, 3, 6, 10, …")
    place = np.zeros((n, n), dtype=int)
    place[np.triu_indices(n)] = np.arange(x.shape[-1])
    return x[..., np.maximum(place, place.T)]


def _from_tree(robot: Robot, a: Array) -> Array:
    """A matrix (..., n, n) in the tree's velocities, transformed to the robot's."""
    return transpose(robot.from_tree_columns(transpose(robot.from_tree_columns(a))))


@kernel("nv nv", "nv nv", "nv nv", q="nq", v="nv", a="nv", wrenches="n_links 6", joint_space=True, largest=64)
def inverse_dynamics_derivatives(
    robot: Robot, q: Array, v: Array, a: Array, wrenches: Array | None = None, friction: bool = False
) -> tuple[Array, Array, Array]:
    """∂τ/∂q, ∂τ/∂v and ∂τ/∂a = M (..., nv, nv) of `inverse_dynamics`, rows τ.

    By q along the tangent vectors of `robot.integrate`; wrenches stay as they are in the links' frames. For joints with one screw
    ∂τ/∂v is 2C. `friction=True` adds viscous friction; the Coulomb part has no derivative where v = 0 and none to add elsewhere.
    """
    by_q, by_v, by_a = tree_derivatives(robot, robot.tree_q(q), robot.tree_v(v), robot.tree_v(a), wrenches)
    by_a = by_a + diagonal(like(robot.armature, q))
    if friction:
        by_v = by_v + diagonal(like(robot.damping, q))
    return _from_tree(robot, by_q), _from_tree(robot, by_v), _from_tree(robot, by_a)


def acceleration(
    robot: Robot, q: Array, v: Array, tau: Array, wrenches: Array | None = None, friction: bool = False
) -> tuple[Array, Array]:
    """a of `forward_dynamics`, and M⁻¹ from which it comes here, as derivatives need that anyway; NaN where M is singular."""
    inverse, force = mass_matrix_inverse(robot, q), tau - bias_force(robot, q, v, wrenches)
    if friction:
        force = force - robot.from_tree(friction_force(robot, robot.tree_v(v)))
    return mv(inverse, force), inverse


@kernel(
    "nv nv",
    "nv nv",
    "nv nv",
    q="nq",
    v="nv",
    tau="nv",
    wrenches="n_links 6",
    no_result=explain_singular,
    joint_space=True,
    largest=64,
)
def forward_dynamics_derivatives(
    robot: Robot, q: Array, v: Array, tau: Array, wrenches: Array | None = None, friction: bool = False
) -> tuple[Array, Array, Array]:
    """∂a/∂q, ∂a/∂v and ∂a/∂τ = M⁻¹ (..., nv, nv) of `forward_dynamics`, rows a.

    As τ(q, v, a(q, v, τ)) = τ, these are -M⁻¹ ∂τ/∂q and -M⁻¹ ∂τ/∂v at the acceleration a. A singular mass matrix is an error for
    NumPy arrays, and NaN for traced ones.
    """
    n = robot.nv
    if n <= WRITTEN_OUT:
        a, inverse = acceleration(robot, q, v, tau, wrenches, friction)
        by_q, by_v, _ = inverse_dynamics_derivatives(robot, q, v, a, wrenches, friction)
        return -(inverse @ by_q), -(inverse @ by_v), inverse
    a = forward_dynamics(robot, q, v, tau, wrenches, friction)
    by_q, by_v, M = inverse_dynamics_derivatives(robot, q, v, a, wrenches, friction)
    # There is no acceleration where M is singular, and no solution for a diagonal that is not a number.
    xp, one = namespace(a), like(np.eye(n), q)
    regular = xp.where(xp.abs(a[..., :1, None]) < np.inf, 0.0, np.nan)
    X = solve_spd(M + regular * one, concat([one, -by_q, -by_v]))
    return X[..., n : 2 * n], X[..., 2 * n :], mirror(X[..., :n])
