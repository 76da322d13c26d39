"""The Riemann curvature of a robot's kinetic energy: all of the tensor, and its contractions.

The mass points x of a robot move in flat space, so the equation of Gauss gives the curvature from second derivatives alone,

    R_ijkl = b(ik, jl) - b(il, jk) - g(ik, jl) + g(il, jk),
    b(ik, jl) = Σ m (∂_i ∂_k x)·(∂_j ∂_l x),   g(ik, jl) = Γ_ikr m^{rs} Γ_jls,

which is Park, Bobrow & Ploen (1995), (66), without derivatives of Γ. With ∂_i ∂_k x = ŝ_i ŝ_k x for i nearer the base than k, and
ŝ y = ω × y for a velocity y, the differences of b need no second derivatives either. For a ≤ b ≤ c ≤ d in the order of a path,

    b_abcd = b(ac, bd) - b(ad, bc) = (ω_a × ω_b)·Q_cd,    Q_cd = Σ m (ŝ_c x) × (ŝ_d x)
    b_bcad = b(ab, cd) - b(bd, ca) = ω_a·E_bc,            E_bc = 2 N (ω_b × ω_c) - (v_b·ω_c - v_c·ω_b) p + ω_c M_bd - ω_b M_cd
    b_acbd = b_abcd + b_bcad                              (the first identity of Bianchi)

with N = Σ m (ŝ_d x) xᵀ and p = Σ m ŝ_d x over what freedom d carries, in its own frame.

R is a tensor: at a configuration, the freedoms of a spherical, planar or free joint are the derivatives by coordinates of the
second kind about it, g exp(S₁ x₁) exp(S₂ x₂) ⋯, and count as joints in a row. R is then in the frame of the velocities v.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations

import numpy as np

from ..arrays import Array, concat, cross, dot, like, mv, namespace, transpose
from ..dynamics.articulated import mass_matrix_inverse
from ..dynamics.christoffel import christoffel
from ..dynamics.composite import composite_inertias
from ..dynamics.freedoms import freedoms, from_tree_axes, path_screws
from ..dynamics.newton_euler import subspaces
from ..dynamics.singular import explain_singular
from ..kernel.dispatch import kernel
from ..kinematics.poses import relative_poses
from ..lie import inertia, so3
from ..memo import per_structure
from ..robot.robot import Robot


def _flat_products(A: Array, J: Array) -> list[Array]:
    """(ω_a × ω_b)·Q_cd and ω_a·E_bc, each (..., pairs, p), for screws A (..., p, 6) of which the last is d, which carries J."""
    w, v, d = A[..., :3], A[..., 3:], A[..., -1, :]
    first, second = (np.array(x, dtype=int) for x in zip(*combinations(range(A.shape[-2]), 2), strict=True))
    h, momentum = J[..., 1:4], inertia.apply(J, d)
    p = momentum[..., 3:]
    N = so3.hat(d[..., :3]) @ inertia.pseudo(J)[..., :3, :3] + d[..., 3:, None] * h[..., None, :]
    M = mv(A, momentum)
    Q = w @ N - dot(d[..., 3:], h)[..., None, None] * w + cross(v, p[..., None, :])
    wb, wc, vb, vc = w[..., first, :], w[..., second, :], v[..., first, :], v[..., second, :]
    turned = cross(wb, wc)
    E = 2.0 * (turned @ transpose(N)) - (dot(vb, wc) - dot(vc, wb))[..., None] * p[..., None, :]
    E = E + wc * M[..., first, None] - wb * M[..., second, None]
    return [turned @ transpose(Q), E @ transpose(w)]


class _Places:
    """The columns of `_all_products` that hold the two terms of b_ijkl; 0 for a zero term, negative for the negated column."""

    def __init__(self, robot: Robot) -> None:
        self.freedoms, at = freedoms(robot), 1
        self.start = []
        for d in range(robot.tree_nv):
            self.start.append(at)
            rank = self.rank(d) + 1
            at += rank * (rank - 1) * rank  # two tables of pairs by p
        self.count = at - 1

    def rank(self, d: int) -> int:
        return self.freedoms.path[self.freedoms.link[d]].index(d)

    def _at(self, kind: int, b: int, c: int, a: int, d: int) -> int:
        """The column of (ω_b × ω_c)·Q_ad (kind 0) or ω_a·E_bc (kind 1), b < c by rank."""
        p = self.rank(d) + 1
        b, c, a = self.rank(b), self.rank(c), self.rank(a)
        pair = b * p - b * (b + 1) // 2 + c - b - 1
        return self.start[d] + (kind * (p * (p - 1) // 2) + pair) * p + a

    def of(self, i: int, j: int, k: int, l: int) -> tuple[int, int]:
        """b_ijkl = b(ik, jl) - b(il, jk)."""
        if i == j or k == l or not self.freedoms.on_one_path(i, j, k, l):
            return 0, 0
        rank, sign = self.rank, 1
        if max(rank(i), rank(j)) > max(rank(k), rank(l)):
            i, j, k, l = k, l, i, j
        if rank(k) > rank(l):
            k, l, sign = l, k, -sign
        if rank(i) > rank(j):
            i, j, sign = j, i, -sign
        if j == l and rank(i) < rank(k):
            i, k = k, i
        # Now i < j and all are ≤ l.
        if rank(k) >= rank(j):
            return sign * self._at(0, i, j, k, l), 0
        if rank(k) <= rank(i):
            return sign * self._at(1, i, j, k, l), 0
        return sign * self._at(0, i, k, j, l), sign * self._at(1, k, j, i, l)


def _all_products(robot: Robot, q: Array) -> Array:
    """`_flat_products` of all freedoms in one row: first a zero, then the values, then their negatives."""
    f, S = relative_poses(robot, q), subspaces(robot, q)
    A, J = path_screws(robot, f, S), composite_inertias(robot, f)
    parts = [like(np.zeros(1), q)]
    here = freedoms(robot)
    for d, i in enumerate(here.link):
        p = here.path[i].index(d) + 1
        if p > 1:
            parts.extend(
                x.reshape((*x.shape[:-2], math.prod(x.shape[-2:]))) for x in _flat_products(A[i][..., :p, :], like(J[i], q))
            )
    products = concat(parts)
    return concat([products, -products[..., 1:]])


@lru_cache(maxsize=16)
def _independent(n: int) -> np.ndarray:
    """i < j, k < l, (i, j) ≤ (k, l): all components of a curvature tensor up to its symmetries."""
    pairs = list(combinations(range(n), 2))
    quads = [(*pairs[x], *pairs[y]) for x in range(len(pairs)) for y in range(x, len(pairs))]
    return np.array(quads, dtype=int).reshape(-1, 4)


@lru_cache(maxsize=16)
def _spread(n: int) -> np.ndarray:
    """The column of every component (n⁴,) in [0, the independent components, their negatives]."""
    pairs = {pair: x for x, pair in enumerate(combinations(range(n), 2))}
    m = len(pairs)
    count = m * (m + 1) // 2
    columns = np.zeros((n, n, n, n), dtype=int)
    for (i, j), x in pairs.items():
        for (k, l), y in pairs.items():
            lo, hi = min(x, y), max(x, y)
            at = 1 + lo * m - lo * (lo - 1) // 2 + hi - lo
            columns[i, j, k, l] = columns[j, i, l, k] = at
            columns[j, i, k, l] = columns[i, j, l, k] = at + count
    return columns.reshape(-1)


@per_structure
def _flat_columns(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """The two columns of `_all_products` whose sum each independent component is; 0 where there is none."""
    places = _Places(robot)
    pairs = np.array([places.of(*quad) for quad in _independent(robot.tree_nv)], dtype=int).reshape(-1, 2)
    first, second = np.where(pairs >= 0, pairs, places.count - pairs).T
    return first, second


def _flat_part(robot: Robot, q: Array) -> Array:
    """b_ijkl (..., independent components) in the robot's coordinates."""
    products = _all_products(robot, q)
    first, second = _flat_columns(robot)
    both = np.flatnonzero(second)
    b = products[..., first]
    # Where two products are added; the rest is as it stands.
    order = np.arange(len(first))
    order[both] = len(first) + np.arange(len(both))
    b = concat([b, products[..., first[both]] + products[..., second[both]]])[..., order]
    if not robot.mimics:
        return b
    tree = _full(b, robot.tree_nv, _spread(robot.tree_nv), like(np.zeros(1), q))
    quads = _independent(robot.nv)
    return from_tree_axes(robot, tree, 4)[..., quads[:, 0], quads[:, 1], quads[:, 2], quads[:, 3]]


def _full(independent: Array, n: int, columns: np.ndarray, zero: Array) -> Array:
    table = concat([zero, independent, -independent])
    return table[..., columns].reshape((*table.shape[:-1], n, n, n, n))


@kernel("nv nv nv nv", q="nq", no_result=explain_singular, joint_space=True, largest=10)
def curvature(robot: Robot, q: Array) -> Array:
    """R_ijkl (..., nv, nv, nv, nv), the Riemann tensor of the metric M: Park, Bobrow & Ploen (1995), (66).

    R_ijkl = ⟨R(X_k, X_l) X_j, X_i⟩ = ∂_k Γ_jli - ∂_l Γ_jki + Γ_ilr Γʳ_jk - Γ_ikr Γʳ_jl; R_ijij is positive on a sphere. For a
    spherical, planar or free joint in the frame of its velocities.
    """
    n = robot.nv
    if n < 2:
        return like(np.zeros((n, n, n, n)), q)
    inverse = mass_matrix_inverse(robot, q)
    symbols = christoffel(robot, q)
    first, second = np.triu_indices(n)
    pair = np.zeros((n, n), dtype=int)
    pair[first, second] = pair[second, first] = np.arange(len(first))
    lowered = symbols[..., first, second, :]  # ordered as the path is, for freedoms of a group too
    gram = lowered @ inverse @ transpose(lowered)
    i, j, k, l = _independent(n).T

    def ordered(x: Array, y: Array) -> Array:
        return gram[..., np.minimum(x, y), np.maximum(x, y)]

    R = _flat_part(robot, robot.tree_q(q)) - ordered(pair[i, k], pair[j, l]) + ordered(pair[i, l], pair[j, k])
    # Where M is singular its inverse is NaN, and so is R; what vanishes by symmetry has to be told.
    zero = namespace(inverse).where(inverse[..., :1, 0] > 0.0, like(np.zeros(1), R), np.nan)
    return _full(R, n, _spread(n), zero)


@kernel("nv nv", q="nq", no_result=explain_singular, joint_space=True, largest=10)
def ricci_curvature(robot: Robot, q: Array) -> Array:
    """Ric_jl = m^{ik} R_ijkl (..., nv, nv), symmetric."""
    inverse, R = mass_matrix_inverse(robot, q), curvature(robot, q)
    return namespace(R).einsum("...ik,...ijkl->...jl", inverse, R)


@kernel("", q="nq", no_result=explain_singular, joint_space=True, largest=10)
def scalar_curvature(robot: Robot, q: Array) -> Array:
    """m^{jl} Ric_jl (...): the sum of the sectional curvatures of all ordered pairs of an orthonormal frame."""
    return (mass_matrix_inverse(robot, q) * ricci_curvature(robot, q)).sum((-2, -1))
