"""The closed form as the papers print it equals what is computed otherwise, on random chains and trees."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from acceptance import check, load
from coadjoint.dynamics import lagrangian
from coadjoint.dynamics.factorisation import body_factors, link_transformation, space_factors
from laws import COORDINATES, central, relative
from random_robots import ONE_SCREW, random_robot


@pytest.fixture(params=range(9))
def case(request):
    """A tree with joints of every kind; every third has mimic joints, every second armature."""
    seed, rng = request.param, np.random.default_rng(request.param)
    robot = random_robot(rng, 6, tree=seed < 6, mimic=seed % 3 == 2, armature=seed % 2 == 1, shuffle=seed % 2 == 0)
    return robot, robot.random(rng, (2, 2)), rng.normal(size=(2, 2, robot.nv))


def armature(robot):
    """The share of armature in M."""
    share = np.eye(robot.nv) if robot._v_map is None else robot._v_map
    return share.T @ np.diag(robot.armature) @ share


def test_all_forms_of_the_mass_matrix_are_equal(case):
    """By composite inertias, by (40), by the factors (46) and by the factors (51)."""
    robot, q, _ = case
    M = cj.mass_matrix(robot, q)
    assert relative(lagrangian.mass_matrix_sum(robot, q), M) < 1e-13
    for factors in (space_factors(robot, q), body_factors(robot, q)):
        assert relative(factors.mass_matrix + armature(robot), M) < 1e-13


def test_a_single_link_has_factors():
    robot = random_robot(np.random.default_rng(0), 1, ("universal",))
    q = robot.random(0, 3)
    for factors in (space_factors(robot, q), body_factors(robot, q)):
        assert relative(factors.mass_matrix, cj.mass_matrix(robot, q)) < 1e-13


def test_the_factors_are_those_of_one_another(case):
    """𝒜 = 𝒬 𝒮, ℒ = 𝒬 𝒢 𝒬⁻¹, 𝒟 = 𝒬⁻ᵀ 𝒥 𝒬⁻¹, and which of them depend on what."""
    robot, q, _ = case
    A, L, D = space_factors(robot, q)
    S, G, J = body_factors(robot, q)
    Q = link_transformation(robot)
    back = np.linalg.inv(Q)
    assert relative(Q @ S, A) < 1e-13
    assert relative(Q @ G @ back, L) < 1e-12
    assert relative(back.T @ J @ back, D) < 1e-13
    n = robot.n_links
    blocks = np.abs(D).reshape(n, 6, n, 6).max((1, 3))
    assert np.array_equal(blocks, np.diag(np.diag(blocks)))
    if not any(link.joint.kind == "universal" for link in robot.links):
        assert np.array_equal(S[0, 0], S[1, 1])


def test_the_paths_factor_is_a_product_of_exponentials():
    """(42), (43) for a chain: block (j, i) of ℒ is Ad of e^{-A_j x_j} ⋯ e^{-A_{i+1} x_{i+1}}."""
    rng = np.random.default_rng(3)
    robot = random_robot(rng, 5, ONE_SCREW, tree=False)
    q = robot.random(rng)
    A, _ = cj.space_screws(robot, robot.link_names[-1])
    L = space_factors(robot, q).paths.reshape(5, 6, 5, 6)
    for j in range(5):
        for i in range(5):
            expected = np.stack([lagrangian.adjoint(A, q, i + 1, j, e) for e in np.eye(6)], -1) if i <= j else np.zeros((6, 6))
            np.testing.assert_allclose(L[j, :, i], expected, atol=1e-12)
    np.testing.assert_allclose(space_factors(robot, q).screws.T.reshape(5, 5, 6)[range(5), range(5)], A, atol=1e-13)


def test_the_mass_matrix_is_a_pullback(case):
    """Section 4.4: the Jacobian of the map to the poses of all links holds their body twists; M = Jᵀ G J."""
    robot, q, v = case
    twists = np.einsum("...ij,...j->...i", body_factors(robot, q).jacobian, v).reshape(*v.shape[:-1], robot.n_links, 6)
    assert relative(twists, cj.link_velocities(robot, q, v)) < 1e-13


def test_gravity_and_energy(case):
    """(59) corrected, and the trace form of the kinetic energy."""
    robot, q, v = case
    assert relative(lagrangian.gravity_force_sum(robot, q), cj.gravity_force(robot, q)) < 1e-12
    assert relative(lagrangian.trace_energy(robot, q, v), cj.kinetic_energy(robot, q, v)) < 1e-13


@pytest.mark.parametrize("seed", range(6))
def test_christoffel_symbols_by_55_to_57(seed):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 6, COORDINATES, tree=seed < 3, mimic=seed % 3 == 2)
    q = robot.random(rng, 2)
    assert relative(lagrangian.christoffel_sum(robot, q), cj.christoffel(robot, q)) < 1e-13


def test_joints_without_coordinates_are_refused_by_name():
    robot = random_robot(0, 2, ("planar",))
    with pytest.raises(cj.errors.ModelError, match="joint 'j0' is planar"):
        lagrangian.christoffel_sum(robot, robot.neutral())


@pytest.fixture
def chain():
    rng = np.random.default_rng(11)
    robot = random_robot(rng, 6, ONE_SCREW, tree=False)
    A, _ = cj.space_screws(robot, robot.link_names[-1])
    return A, robot.random(rng), rng.normal(size=6)


def test_proposition_1(chain):
    A, x, B = chain
    for i, j, k in [(1, 4, 2), (1, 4, 1), (1, 4, 4), (0, 5, 3), (2, 4, 1), (2, 4, 5), (4, 2, 3)]:
        found = lagrangian.adjoint_derivative(A, x, i, j, k, B)
        np.testing.assert_allclose(found, central(lambda y: lagrangian.adjoint(A, y, i, j, B), x, k), atol=1e-10)  # noqa: B023


def test_proposition_2(chain):
    A, x, B = chain
    for i, j, k, l in [(1, 4, 2, 3), (1, 4, 3, 2), (0, 5, 4, 1), (1, 4, 2, 2), (2, 4, 1, 3), (1, 3, 2, 4), (1, 4, 1, 4)]:
        found = lagrangian.adjoint_second_derivative(A, x, i, j, k, l, B)
        first = lambda y: lagrangian.adjoint_derivative(A, y, i, j, k, B)  # noqa: B023
        np.testing.assert_allclose(found, central(first, x, l), atol=1e-10)


def test_case_14_has_a_constant_mass_matrix():
    case = load(14)
    for q in case.inputs.qs:
        check(case, M=cj.mass_matrix(case.robot, q))
        for form in (lagrangian.mass_matrix_sum(case.robot, q), space_factors(case.robot, q).mass_matrix):
            check(case, M=form)
        check(case, Gamma_max=np.max(np.abs(cj.christoffel(case.robot, q))), R_max=np.max(np.abs(cj.curvature(case.robot, q))))


@pytest.mark.native
def test_native_code_gives_the_same():
    rng = np.random.default_rng(2)
    robot = random_robot(rng, 4, COORDINATES)
    q, v = robot.random(rng, 5), rng.normal(size=(5, robot.nv))
    assert relative(lagrangian.mass_matrix_sum(robot, q), cj.mass_matrix(robot, q)) < 1e-13
    assert relative(lagrangian.christoffel_sum(robot, q), cj.christoffel(robot, q)) < 1e-13
    assert relative(lagrangian.gravity_force_sum(robot, q), cj.gravity_force(robot, q)) < 1e-12
    assert relative(lagrangian.trace_energy(robot, q, v), cj.kinetic_energy(robot, q, v)) < 1e-13
