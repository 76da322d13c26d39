"""Misprints of the papers in the closed form, its Christoffel symbols and inner products: printed they fail, corrected they hold."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import geometry
from coadjoint.dynamics.lagrangian import adjoint, adjoint_derivative, adjoint_second_derivative
from coadjoint.lie import inertia, se3
from laws import rate, relative
from random_robots import ONE_SCREW, random_robot

HOLDS, FAILS = 1e-9, 1e-2
N = 4


class Chain:
    """A chain of joints with one screw each, at a state, with space screws A and inner products ⟨x, y⟩_p; joints are numbered from 0."""

    def __init__(self, n: int, kinds: tuple[str, ...]) -> None:
        rng = np.random.default_rng(7)
        self.robot = random_robot(rng, n, kinds, tree=False)
        self.q, self.v, self.a, self.B = *rng.normal(size=(3, n)), rng.normal(size=6)
        self.A, _ = cj.space_screws(self.robot, self.robot.link_names[-1])
        homes = cj.forward_kinematics.source(self.robot, np.zeros(n))
        self.D = [inertia.spatial(inertia.transform(T, x)) for T, x in zip(homes, self.robot.inertias, strict=True)]

    def Ad(self, i: int, j: int, x: np.ndarray) -> np.ndarray:
        """Ad_j^i(x)."""
        return adjoint(self.A, self.q, i, j, x)

    def term(self, x: int, y: int, z: int, p: int) -> float:
        """⟨Ad_p^y([Ad_{y-1}^{x+1}(A_x), A_y]), Ad_p^{z+1}(A_z)⟩_p."""
        bracket = self.Ad(y, p, se3.ad_act(self.Ad(x + 1, y - 1, self.A[x]), self.A[y]))
        return bracket @ self.D[p] @ self.Ad(z + 1, p, self.A[z])


@pytest.fixture(scope="module")
def chain():
    return Chain(N, ONE_SCREW)


@pytest.fixture(scope="module")
def two():
    return Chain(2, ("revolute",))


# --- derivatives of Ad


def test_second_derivative_54(chain):
    """The inner bracket is with the joint nearer the base; (54) and the review's (42) print the two conditions exchanged."""
    A, q, B, i, j = chain.A, chain.q, chain.B, 0, 3
    for k, l in ((1, 2), (2, 1)):
        e = np.eye(N)[l]
        true = rate(lambda t, e=e, k=k: adjoint_derivative(A, q + t * e, i, j, k, B))
        inner = lambda x, y: chain.Ad(x, y - 1, se3.ad_act(chain.Ad(i, x - 1, B), A[x]))
        written = lambda x, y, inner=inner: chain.Ad(y, j, se3.ad_act(inner(x, y), A[y]))
        assert relative(written(min(k, l), max(k, l)), true) < HOLDS
        assert relative(written(max(k, l), min(k, l)), true) > FAILS
        assert relative(adjoint_second_derivative(A, q, i, j, k, l, B), true) < HOLDS


def test_first_derivative_of_the_review_41(chain):
    """(53) of the paper; the review's (41) brackets Ad_k^{i-1}(A_k) with B and applies Ad_j^i."""
    A, q, B, i, j, k = chain.A, chain.q, chain.B, 1, 3, 2
    true = rate(lambda t: adjoint(A, q + t * np.eye(N)[k], i, j, B))
    assert relative(chain.Ad(k, j, se3.ad_act(chain.Ad(i, k - 1, B), A[k])), true) < HOLDS
    assert relative(chain.Ad(i, j, se3.ad_act(chain.Ad(i - 1, k, A[k]), B)), true) > FAILS


def test_identity_of_brockett_stokes_and_park_holds_at_the_last_joint(chain):
    """d/dq_k Ad_pj A_j = [Ad_pj A_j, Ad_pk A_k] for j < k ≤ p; printed is k < p, and 0 otherwise."""
    A, q, j, p = chain.A, chain.q, 0, 2
    for k in (1, 2):
        change = rate(lambda t, k=k: adjoint(A, q + t * np.eye(N)[k], j + 1, p, A[j]))
        bracket = se3.ad_act(chain.Ad(j + 1, p, A[j]), chain.Ad(k + 1, p, A[k]))
        assert relative(bracket, change) < HOLDS
    assert np.abs(change).max() > FAILS  # at k = p, where 0 is printed


# --- Christoffel symbols


def symbols(chain, rest):
    """Γ_ijk of the cases (55)-(57), with ½ before the first term and `rest` before the other two, all summed over the links."""
    t, G = chain.term, np.zeros((N, N, N))
    for i, j, k in np.ndindex(N, N, N):
        x, y = min(i, j), max(i, j)
        for p in range(max(i, j, k), N):
            if k <= x:  # (55)
                terms = t(k, x, y, p), t(k, y, x, p), t(x, y, k, p)
            elif k <= y:  # (56)
                terms = t(k, y, x, p), t(x, y, k, p), -t(x, k, y, p)
            else:  # (57)
                terms = t(x, y, k, p), -t(x, k, y, p), -t(y, k, x, p)
            G[i, j, k] += 0.5 * terms[0] + rest * (terms[1] + terms[2])
    return G


def test_christoffel_symbols_55_57(chain):
    """½ Σ is before all three terms; printed it stands before the first."""
    true = cj.christoffel(chain.robot, chain.q)
    assert relative(symbols(chain, 0.5), true) < HOLDS
    assert relative(symbols(chain, 1.0), true) > FAILS


@pytest.mark.parametrize(("printed", "holds"), [(False, True), (True, False)])
def test_christoffel_symbols_of_brockett_stokes_and_park(chain, printed, holds):
    """The third term is ⟨[a_n, a_m], a_k⟩, n = min(i, j), m = max(i, j), as in section 5; section 3.2 prints ⟨[a_k, a_m], a_k⟩."""
    G = np.zeros((N, N, N))
    for p in range(N):
        a = [chain.Ad(x + 1, p, chain.A[x]) for x in range(p + 1)]
        t = lambda x, y, z, a=a, p=p: se3.ad_act(a[x], a[y]) @ chain.D[p] @ a[z]
        for i, j, k in np.ndindex(p + 1, p + 1, p + 1):
            n, m = min(i, j), max(i, j)
            G[i, j, k] += 0.5 * (t(k, j, i) + t(k, i, j) + t(k if printed else n, m, k))
    error = relative(G, cj.christoffel(chain.robot, chain.q))
    assert error < HOLDS if holds else error > FAILS


def test_motion_of_brockett_stokes_and_park(chain):
    """g q̈ + Γ q̇ q̇ = 0 for free motion; printed is g q̈ = Γ q q."""
    robot = chain.robot.with_gravity((0, 0, 0))
    a = cj.forward_dynamics(robot, chain.q, chain.v, np.zeros(N))
    G, inertial = cj.christoffel(robot, chain.q), cj.mass_matrix(robot, chain.q) @ a
    assert relative(-np.einsum("ijk,i,j->k", G, chain.v, chain.v), inertial) < HOLDS
    assert relative(np.einsum("ijk,i,j->k", G, chain.v, chain.v), inertial) > FAILS
    assert relative(np.einsum("ijk,i,j->k", G, chain.q, chain.q), inertial) > FAILS


# --- Coriolis matrices


def test_coriolis_matrix_61_64(two):
    """c₁₁ = h ẋ₂, c₁₂ = h ẋ₁ + e ẋ₂, c₂₁ = -h ẋ₁; printed each has one rate too many, and c₂₁ the wrong sign."""
    A, (x1, x2) = two.A, two.v
    a1, bracket = two.Ad(1, 1, A[0]), two.Ad(1, 1, se3.ad_act(A[0], A[1]))
    h, e = bracket @ two.D[1] @ a1, bracket @ two.D[1] @ A[1]
    true = cj.coriolis_matrix(two.robot, two.q, two.v)
    assert relative([[h * x2, h * x1 + e * x2], [-h * x1, 0]], true) < HOLDS
    printed = np.array([[h * x1 * x2, h * x1 * x2 + e * x2**2], [h * x1**2, 0]])
    assert relative(printed @ two.v, true @ two.v) > FAILS
    assert relative(printed.sum(1), true @ two.v) > FAILS  # nor are they the terms of C ẋ
    # The review's (47)-(51) have [A₁, A₁] = 0 in the place of the bracket of c₁₁ and c₂₁.
    assert not se3.ad_act(A[0], A[0]).any()
    assert np.abs(true[:, 0]).min() > FAILS


def test_coriolis_matrix_of_altafini_5(chain):
    """C_ij = M_ik Γᵏ_jl q̇ˡ, without the printed factor ½."""
    M, up = cj.mass_matrix(chain.robot, chain.q), cj.connection(chain.robot, chain.q)
    C = np.einsum("ik,kjl,l->ij", M, up, chain.v)
    bias = cj.bias_force(chain.robot.with_gravity((0, 0, 0)), chain.q, chain.v)
    assert relative(C @ chain.v, bias) < HOLDS
    assert relative(0.5 * C @ chain.v, bias) > FAILS


def test_index_of_zefran_and_bullo_13(chain):
    """(13) lowers the first index and C_ij = Γ_ijk q̇ᵏ; PBP's (52), `christoffel`, lowers the last. Mixing them breaks C q̇."""
    G, v = cj.christoffel(chain.robot, chain.q), chain.v
    bias = cj.bias_force(chain.robot.with_gravity((0, 0, 0)), chain.q, v)
    first = np.einsum("jki->ijk", G)
    D = cj.mass_matrix_derivative(chain.robot, chain.q)
    assert relative(first, 0.5 * (D + np.einsum("ikj->ijk", D) - np.einsum("jki->ijk", D))) < HOLDS
    assert relative(np.einsum("ijk,k,j->i", first, v, v), bias) < HOLDS
    assert relative(np.einsum("ijk,k,j->i", G, v, v), bias) > FAILS


def test_inner_product_of_zefran_and_bullo(chain):
    """⟨⟨F, X⟩⟩ = ⟨Y; X⟩ for F = M⁻¹ Y, as before (17), needs Fᵀ M X; section 2.4 prints ½ Fᵀ M X."""
    Y, X = chain.v, chain.a
    F = geometry.gradient(chain.robot, chain.q, Y)
    assert abs(geometry.inner_product(chain.robot, chain.q, F, X) / (Y @ X) - 1) < HOLDS
    assert abs(0.5 * F @ cj.mass_matrix(chain.robot, chain.q) @ X / (Y @ X) - 1) > FAILS
