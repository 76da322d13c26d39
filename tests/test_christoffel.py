"""Christoffel symbols, the derivative of the mass matrix and the Coriolis matrix: their laws on random trees, and other sources."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from acceptance import check, load
from coadjoint.lie import se3
from laws import COORDINATES, derivative, frame_derivative, relative, structure_constants
from mp_geometry import Chain
from random_robots import ALL_KINDS, random_inertia, random_pose, random_robot, random_unit


@pytest.fixture(params=range(10))
def case(request):
    """A tree with joints of every kind, three states and a velocity."""
    seed, rng = request.param, np.random.default_rng(request.param)
    robot = random_robot(rng, 7, mimic=seed % 3 == 2, shuffle=seed % 2 == 0)
    return robot, robot.random(rng, 3), rng.normal(size=(3, robot.nv))


@pytest.fixture(params=range(6))
def coordinates(request):
    """A tree whose joints all have coordinates, some with armature."""
    seed, rng = request.param, np.random.default_rng(request.param)
    robot = random_robot(rng, 6, COORDINATES, mimic=seed % 3 == 2, armature=seed % 2 == 1)
    return robot, robot.random(rng, 3), rng.normal(size=(3, robot.nv))


def test_derivative_of_the_mass_matrix(case):
    robot, q, _ = case
    assert relative(cj.mass_matrix_derivative(robot, q), frame_derivative(robot, lambda x: cj.mass_matrix(robot, x), q)) < 1e-11


def test_symbols_are_those_of_the_definition(coordinates):
    """(52) of Park, Bobrow & Ploen: Γ_ijk = ½ (∂_i m_kj + ∂_j m_ki - ∂_k m_ij), symmetric in i and j; armature plays no part."""
    robot, q, _ = coordinates
    d = frame_derivative(robot, lambda x: cj.mass_matrix(robot, x), q)
    definition = 0.5 * (np.einsum("...kji->...ijk", d) + np.einsum("...kij->...ijk", d) - np.einsum("...ijk->...ijk", d))
    G = cj.christoffel(robot, q)
    assert relative(G, definition) < 1e-11
    assert np.array_equal(G, G.swapaxes(-3, -2))


def test_the_connection_keeps_the_metric(case):
    """X_i M_jk = Γ_ijk + Γ_ikj."""
    robot, q, _ = case
    G = cj.christoffel(robot, q)
    change = np.einsum("...ijk->...jki", G) + np.einsum("...ikj->...jki", G)
    assert relative(change, frame_derivative(robot, lambda x: cj.mass_matrix(robot, x), q)) < 1e-11


def test_the_connection_has_no_torsion(case):
    """Γ_ijk - Γ_jik = cˡ_ij M_lk: for coordinates 0, for groups the bracket of left-invariant fields (Hamel's form)."""
    robot, q, _ = case
    G = cj.christoffel(robot, q)
    expected = np.einsum("lij,...lk->...ijk", structure_constants(robot), cj.mass_matrix(robot, q))
    assert np.max(np.abs(G - G.swapaxes(-3, -2) - expected)) < 1e-12 * np.max(np.abs(G))


def test_coriolis_matrix_is_the_contraction_of_the_symbols(case):
    robot, q, v = case
    assert relative(cj.coriolis_matrix(robot, q, v), np.einsum("...ijk,...i->...kj", cj.christoffel(robot, q), v)) < 1e-13


def test_coriolis_matrix_gives_the_velocity_terms_and_is_skew_against_the_rate_of_M(case):
    robot, q, v = case
    C = cj.coriolis_matrix(robot, q, v)
    terms = cj.bias_force(robot, q, v) - cj.gravity_force(robot, q)
    assert relative(np.einsum("...ij,...j->...i", C, v), terms) < 1e-12
    rate = derivative(robot, lambda x: cj.mass_matrix(robot, x), q, v)
    skew = rate - 2 * C
    assert np.max(np.abs(skew + skew.swapaxes(-1, -2))) < 1e-10 * np.max(np.abs(C))


def test_lagranges_equations(coordinates):
    """(29): τ_k = m_kj a_j + Γ_ijk v_i v_j + φ_k."""
    robot, q, v = coordinates
    a = np.random.default_rng(0).normal(size=v.shape)
    motion = np.einsum("...kj,...j->...k", cj.mass_matrix(robot, q), a)
    bent = np.einsum("...ijk,...i,...j->...k", cj.christoffel(robot, q), v, v)
    assert relative(motion + bent + cj.gravity_force(robot, q), cj.inverse_dynamics(robot, q, v, a)) < 1e-12


@pytest.mark.parametrize("seed", range(8))
def test_pinocchio_has_the_same_coriolis_matrix(seed):
    """Entry by entry, on joints added depth-first: in another order Pinocchio's is wrong.

    So it is for universal joints, where its C v differs from its own velocity terms.
    """
    pin = pytest.importorskip("pinocchio")
    interop = cj.interop.pinocchio
    kinds = [k for k in ALL_KINDS if k not in ("fixed", "universal")]
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 7, kinds if seed % 2 else (*COORDINATES[:3], "free"), tree=seed < 6)
    model = interop.to_pinocchio(robot)
    data = model.createData()
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    C = pin.computeCoriolisMatrix(model, data, interop.q_to_pinocchio(robot, model, q), interop.v_to_pinocchio(robot, model, v))
    P = interop.v_to_pinocchio(robot, model, np.eye(robot.nv)).T
    assert relative(P @ cj.coriolis_matrix(robot, q, v) @ P.T, C) < 1e-12


def test_a_free_body_has_the_equations_of_euler_and_poincare():
    """M V̇ + C V = J V̇ - ad*_V J V, for a body on a free joint."""
    rng = np.random.default_rng(4)
    mass, com, inertia = random_inertia(rng)
    link = cj.Link.solid("body", "base", cj.Joint.free(), mass=mass, com=com, inertia=inertia)
    robot = cj.Robot("body", [link], gravity=np.zeros(3))
    q, V = robot.random(rng), rng.normal(size=6)
    J = cj.lie.inertia.spatial(robot.inertias[0])
    assert relative(cj.mass_matrix(robot, q), J) < 1e-13
    assert relative(cj.coriolis_matrix(robot, q, V) @ V, -se3.ad_dual(V) @ J @ V) < 1e-13


def test_armature_on_a_group_joint_is_refused_by_name():
    robot = random_robot(1, 3, ("spherical",), armature=True)
    q = robot.neutral()
    for call in (cj.christoffel, cj.connection, cj.curvature):
        with pytest.raises(cj.errors.ModelError, match=r"joint 'j0' is spherical and has armature.*with_joint\('j0', armature=0\)"):
            call(robot, q)
    v = np.ones(robot.nv)  # C is that of the equations of motion all the same
    assert relative(cj.coriolis_matrix(robot, q, v) @ v, cj.bias_force(robot, q, v) - cj.gravity_force(robot, q)) < 1e-12


def six_joint_arm(seed=0):
    """Six revolute joints in general position, as `Robot.from_screws` takes them."""
    rng = np.random.default_rng(seed)
    axes, points = np.array([random_unit(rng) for _ in range(6)]), rng.uniform(-0.5, 0.5, (6, 3))
    screws = np.concatenate([axes, np.cross(points, axes)], -1)
    frames = np.array([random_pose(rng) for _ in range(6)])
    bodies = [random_inertia(rng) for _ in range(6)]
    return screws, frames, np.array([b[0] for b in bodies]), np.array([b[2] for b in bodies]), rng.uniform(-2, 2, 6)


@pytest.fixture(scope="module")
def sixty_digits():
    """A six-joint arm, a configuration, and M, Γ and R from 60 digits."""
    pytest.importorskip("mpmath")
    *arm, q = six_joint_arm()
    return arm, q, *Chain(*arm).tensors(q)


def test_sixty_digits(sixty_digits):
    """Γ and R of a six-joint arm to 1e-12."""
    arm, q, M, G, R = sixty_digits
    robot = cj.Robot.from_screws(*arm)
    assert relative(cj.mass_matrix(robot, q), M) < 1e-13
    assert relative(cj.christoffel(robot, q), G) < 1e-12
    assert relative(cj.curvature(robot, q), R) < 1e-12


@pytest.mark.slow
@pytest.mark.native
def test_sixty_digits_natively(sixty_digits):
    arm, q, _, G, R = sixty_digits
    robot = cj.Robot.from_screws(*arm)
    assert relative(cj.christoffel(robot, q), G) < 1e-12
    assert relative(cj.curvature(robot, q), R) < 1e-12


def test_case_05():
    case = load(5)
    q, v = case.inputs.q, case.inputs.qd
    check(case, M=cj.mass_matrix(case.robot, q), C=cj.coriolis_matrix(case.robot, q, v), Gamma=cj.christoffel(case.robot, q))
    check(case, R_0101=cj.curvature(case.robot, q)[0, 1, 0, 1], gravity=cj.gravity_force(case.robot, q))


def test_robots_that_cannot_move():
    robot = cj.Robot("stand", [cj.Link.solid("post", "base", cj.Joint.fixed(), mass=1.0)])
    assert cj.christoffel(robot, np.zeros((4, 0))).shape == (4, 0, 0, 0)
    assert cj.coriolis_matrix(robot, np.zeros(0), np.zeros(0)).shape == (0, 0)
    assert cj.mass_matrix_derivative(robot, np.zeros(0)).shape == (0, 0, 0)
    assert cj.curvature(robot, np.zeros(0)).shape == (0, 0, 0, 0)


def test_branches_do_not_meet():
    """Γ_ijk vanishes unless one path holds all three joints."""
    robot = random_robot(3, 8, ("revolute",))
    G, above = cj.christoffel(robot, robot.random(0)), []
    for parent in robot.parents:
        above.append(above[parent] | {parent} if parent >= 0 else set())
    apart = [
        (i, j, k)
        for i, j, k in np.ndindex(*G.shape)
        if not all(a == b or a in above[b] or b in above[a] for a, b in ((i, j), (j, k), (k, i)))
    ]
    assert len(apart) > 100
    assert all(G[place] == 0.0 for place in apart)
