"""The curvature of kinetic energy: its laws on random trees, and spaces whose curvature is known."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import coadjoint as cj
from acceptance import check, load
from coadjoint.geometry import curvature_operator, divergence, gradient, inner_product
from laws import COORDINATES, frame_derivative, rate, relative, structure_constants
from models import body
from random_robots import random_robot

MIXED = ("revolute", "prismatic", "helical", "universal", "spherical", "planar", "free", "fixed")


@pytest.fixture(params=range(8))
def case(request):
    """A robot with joints of every kind (or of coordinates alone), two states."""
    seed, rng = request.param, np.random.default_rng(request.param)
    options = {"armature": True} if seed % 2 else {}  # which groups do not have
    kinds = COORDINATES if seed % 2 else MIXED
    robot = random_robot(rng, 4, kinds, tree=seed < 5, mimic=seed % 3 == 2, shuffle=seed % 2 == 0, **options)
    return robot, robot.random(rng, 2), rng


def by_definition(robot, q):
    """⟨R(X_k, X_l) X_j, X_i⟩ from the connection and its derivative, (66) with the structure constants of moving frames."""
    G, c = cj.christoffel(robot, q), structure_constants(robot)
    up = cj.connection(robot, q)  # [k, i, j]
    d = frame_derivative(robot, lambda x: cj.christoffel(robot, x), q)  # [i, j, k, l]
    R = np.einsum("...ljik->...ijkl", d) - np.einsum("...kjil->...ijkl", d)
    R = R + np.einsum("...lir,...rkj->...ijkl", G, up) - np.einsum("...kir,...rlj->...ijkl", G, up)
    return R - np.einsum("rkl,...rji->...ijkl", c, G)


def test_the_tensor_is_that_of_its_definition(case):
    robot, q, _ = case
    assert relative(cj.curvature(robot, q), by_definition(robot, q)) < 1e-9


def test_symmetries(case):
    """R_ijkl = -R_jikl = -R_ijlk = R_klij, exactly; and the first identity of Bianchi."""
    robot, q, _ = case
    R = cj.curvature(robot, q)
    assert np.array_equal(R, -np.einsum("...jikl->...ijkl", R))
    assert np.array_equal(R, -np.einsum("...ijlk->...ijkl", R))
    assert np.array_equal(R, np.einsum("...klij->...ijkl", R))
    cyclic = R + np.einsum("...iklj->...ijkl", R) + np.einsum("...iljk->...ijkl", R)
    assert np.max(np.abs(cyclic)) < 1e-11 * np.max(np.abs(R))


@pytest.mark.parametrize("seed", range(3))
def test_second_identity_of_bianchi(seed):
    """∇_m R_ijkl + ∇_k R_ijlm + ∇_l R_ijmk = 0."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 4, ("revolute", "prismatic", "universal") if seed else ("revolute", "spherical"), tree=seed == 2)
    q = robot.random(rng)
    R, up = cj.curvature(robot, q), cj.connection(robot, q)
    change = frame_derivative(robot, lambda x: cj.curvature(robot, x), q)  # [i, j, k, l, m]
    for axis in "ijkl":
        moved = "ijkl".replace(axis, "r")
        change = change - np.einsum(f"rm{axis},{moved}->ijklm", up, R)
    cyclic = change + np.einsum("ijlmk->ijklm", change) + np.einsum("ijmkl->ijklm", change)
    assert np.max(np.abs(cyclic)) < 1e-8 * np.max(np.abs(change))


def test_contractions(case):
    """Ric_jl = m^{ik} R_ijkl is symmetric, and m^{jl} Ric_jl is the sum of sectional curvatures over an orthonormal frame."""
    robot, q, _ = case
    R, inverse = cj.curvature(robot, q), cj.mass_matrix_inverse(robot, q)
    ricci = np.einsum("...ik,...ijkl->...jl", inverse, R)
    size = np.max(np.abs(ricci))
    assert np.max(np.abs(cj.ricci_curvature(robot, q) - ricci)) < 1e-12 * max(1, size)
    frame = np.linalg.cholesky(inverse)  # columns with frameᵀ M frame = 1
    total, n = 0.0, robot.nv
    for i in range(n):
        for j in range(i + 1, n):
            total = total + 2 * cj.sectional_curvature(robot, q, frame[..., i], frame[..., j])
    assert np.max(np.abs(cj.scalar_curvature(robot, q) - total)) < 1e-9 * max(1, size)


def test_curvature_without_the_tensor(case):
    """R(x, y) z and K(x, y) in O(n) are the contractions of R."""
    robot, q, rng = case
    x, y, z = rng.normal(size=(3, 2, robot.nv))
    R, M = cj.curvature(robot, q), cj.mass_matrix(robot, q)
    lowered = np.einsum("...ijkl,...j,...k,...l->...i", R, z, x, y)
    vector = curvature_operator(robot, q, x, y, z)
    assert np.max(np.abs(np.einsum("...ij,...j->...i", M, vector) - lowered)) < 1e-9 * np.max(np.abs(R))
    above = np.einsum("...ijkl,...i,...j,...k,...l->...", R, x, y, x, y)
    inner = lambda a, b: inner_product(robot, q, a, b)
    assert relative(cj.sectional_curvature(robot, q, x, y), above / (inner(x, x) * inner(y, y) - inner(x, y) ** 2)) < 1e-9


def test_sectional_curvature_is_that_of_the_plane(case):
    robot, q, rng = case
    x, y = rng.normal(size=(2, 2, robot.nv))
    a = rng.normal(size=(2, 2)) + 2 * np.eye(2)
    K = cj.sectional_curvature(robot, q, x, y)
    other = cj.sectional_curvature(robot, q, a[0, 0] * x + a[0, 1] * y, a[1, 0] * x + a[1, 1] * y)
    assert np.max(np.abs(K - other)) < 1e-8 * np.max(np.abs(K))


def test_covariant_derivative(case):
    """∇ is linear, obeys the product rule with the metric, and has no torsion."""
    robot, q, rng = case
    n = robot.nv
    x, y, z = rng.normal(size=(3, n))
    dy, dz = rng.normal(size=(2, n, n))
    fields = lambda p: (y + dy @ p, z + dz @ p)
    D = lambda a, b, db: cj.covariant_derivative(robot, q, a, b, db)
    # along X the fields have components y + dy·(t x) to first order, and that is all a derivative sees
    change = rate(lambda t: inner_product(robot, robot.integrate(q, t * x), *fields(t * x)), 1e-3)
    inner = lambda a, b: inner_product(robot, q, a, b)
    assert relative(inner(D(x, y, dy), z) + inner(y, D(x, z, dz)), change) < 1e-8
    bracket = dz @ y - dy @ z + np.einsum("kij,i,j->k", structure_constants(robot), y, z)
    torsion = D(y, z, dz) - D(z, y, dy) - bracket
    assert np.max(np.abs(torsion)) < 1e-9 * np.max(np.abs(D(y, z, dz)))
    df = rng.normal(size=n)
    assert relative(inner(gradient(robot, q, df), x), np.broadcast_to(df @ x, 2)) < 1e-9


@pytest.mark.parametrize("seed", [1, 3, 5])
def test_divergence_is_the_rate_of_volume(seed):
    """div y = ∂ⱼ(√det M yʲ) / √det M for coordinates."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 4, COORDINATES)
    q = robot.random(rng)
    y, dy = rng.normal(size=robot.nv), rng.normal(size=(robot.nv, robot.nv))
    log_volume = lambda p: 0.5 * np.linalg.slogdet(cj.mass_matrix(robot, p))[1]
    expected = np.trace(dy) + frame_derivative(robot, log_volume, q) @ y
    assert divergence(robot, q, y, dy) == pytest.approx(expected, rel=1e-9)


# --- spaces whose curvature is known


def test_spherical_pendulum_is_a_sphere():
    """Case 09: K = 1/(m r²) wherever the mass matrix is regular; at the pole an error says so."""
    case = load(9)
    q = case.inputs.q
    check(case, M=cj.mass_matrix(case.robot, q), R_0101=cj.curvature(case.robot, q)[0, 1, 0, 1])
    check(case, sectional_curvature=cj.sectional_curvature(case.robot, q, [1.0, 0.2], [0.3, 1.0]))
    anywhere = np.random.default_rng(0).uniform(-1.4, 1.4, (50, 2))
    K = cj.sectional_curvature(case.robot, anywhere, [1.0, 0.0], [0.0, 1.0])
    np.testing.assert_allclose(K, 1 / (1.3 * 0.49), rtol=1e-11)
    np.testing.assert_allclose(cj.scalar_curvature(case.robot, anywhere), 2 / (1.3 * 0.49), rtol=1e-11)
    pole = [[0.3, 0.5], [0.3, np.pi / 2]]
    for call in (cj.curvature, cj.connection, cj.ricci_curvature, cj.scalar_curvature):
        with pytest.raises(cj.errors.SingularMassMatrixError, match="state 1"):
            call(case.robot, pole)
    with pytest.raises(cj.errors.SingularMassMatrixError, match="state 1"):
        cj.sectional_curvature(case.robot, pole, [1.0, 0.0], [0.0, 1.0])


def test_case_11_all_of_both_tensors():
    case = load(11)
    q = case.inputs.q
    check(case, M=cj.mass_matrix(case.robot, q), Gamma=cj.christoffel(case.robot, q), R=cj.curvature(case.robot, q))


def test_rotations_with_a_round_metric():
    """SO(3) with the metric of a ball has K = ¼ everywhere, for unit inertia; Ric = ½ M."""
    robot, rng = body(cj.Joint.spherical()), np.random.default_rng(1)
    q = robot.random(rng, 5)
    x, y = rng.normal(size=(2, 5, 3))
    np.testing.assert_allclose(cj.sectional_curvature(robot, q, x, y), 0.25, rtol=1e-12)
    np.testing.assert_allclose(cj.ricci_curvature(robot, q), np.broadcast_to(0.5 * np.eye(3), (5, 3, 3)), atol=1e-14)


def test_rotations_with_any_metric():
    """Milnor (1976): for principal moments I, λ_i = I_i and μ_i = ½(λ_1 + λ_2 + λ_3) - λ_i, Ric(e_1) = 2 μ_2 μ_3 of unit axes e_i."""
    moments = np.array([0.7, 1.1, 1.3])
    robot = body(cj.Joint.spherical(), moments=moments)
    # In an orthonormal frame e_i = X_i / √I_i the structure constants are [e_2, e_3] = λ_1 e_1 with λ_i = I_i / √(I_1 I_2 I_3).
    scaled = moments / np.sqrt(np.prod(moments))
    mu = scaled.sum() / 2 - scaled
    ricci = np.array([2 * mu[1] * mu[2], 2 * mu[2] * mu[0], 2 * mu[0] * mu[1]])
    found = cj.ricci_curvature(robot, robot.random(0))
    np.testing.assert_allclose(found, np.diag(ricci * moments), atol=1e-13)


def test_rigid_motions():
    """A free body of unit mass and inertia: SE(3) as rotations times displacements, K = ¼ on rotations, 0 on other planes of axes."""
    robot = body(cj.Joint.free())
    q = robot.random(2)
    for i in range(6):
        for j in range(i):
            expected = 0.25 if i < 3 and j < 3 else 0.0
            assert cj.sectional_curvature(robot, q, np.eye(6)[i], np.eye(6)[j]) == pytest.approx(expected, abs=1e-14)


def test_a_body_in_the_plane_is_flat():
    robot = body(cj.Joint.planar(), mass=2.0, moments=(1.0, 1.0, 0.3))
    assert np.max(np.abs(cj.curvature(robot, robot.random(0, 4)))) < 1e-15
    assert np.max(np.abs(cj.christoffel(robot, robot.neutral()))) > 0.1


def test_mimic_joints_are_a_surface_in_the_space_of_the_tree():
    """A planar 2R whose second joint repeats the first is a curve, without curvature; with a third joint it is a surface with some."""
    link = lambda n, parent, **o: cj.Link.solid(
        f"l{n}", parent, cj.Joint.revolute(name=f"j{n}", **o), np.eye(4) + 0.5 * np.eye(4, k=3), mass=1.0, com=(0.3, 0, 0)
    )
    curve = cj.Robot("curve", [link(1, "base"), link(2, "l1", mimic=cj.Mimic("j1", 1.0))])
    assert np.array_equal(cj.curvature(curve, [0.3]), np.zeros((1, 1, 1, 1)))
    assert cj.christoffel(curve, [0.3])[0, 0, 0] == pytest.approx(0.5 * cj.mass_matrix_derivative(curve, [0.3])[0, 0, 0], rel=1e-13)


def test_parallel_directions_span_no_plane():
    robot = cj.load("planar2r")
    with pytest.raises(cj.CoadjointError, match="span no plane"):
        cj.sectional_curvature(robot, [0.3, 0.5], [1.0, 2.0], [-2.0, -4.0])


def test_large_robots_run_as_written():
    robot = random_robot(0, 12, ("revolute",), tree=False)
    q, (x, y) = robot.random(0), np.random.default_rng(0).normal(size=(2, 12))
    R = cj.curvature(robot, q)
    M = cj.mass_matrix(robot, q)
    K = np.einsum("ijkl,i,j,k,l", R, x, y, x, y) / (x @ M @ x * (y @ M @ y) - (x @ M @ y) ** 2)
    assert cj.sectional_curvature(robot, q, x, y) == pytest.approx(K, rel=1e-9)


# --- the other executions

FUNCTIONS = {
    "christoffel": lambda r, q, v, w: cj.christoffel(r, q),
    "mass_matrix_derivative": lambda r, q, v, w: cj.mass_matrix_derivative(r, q),
    "coriolis_matrix": lambda r, q, v, w: cj.coriolis_matrix(r, q, v),
    "connection": lambda r, q, v, w: cj.connection(r, q),
    "curvature": lambda r, q, v, w: cj.curvature(r, q),
    "ricci_curvature": lambda r, q, v, w: cj.ricci_curvature(r, q),
    "scalar_curvature": lambda r, q, v, w: cj.scalar_curvature(r, q),
    "sectional_curvature": lambda r, q, v, w: cj.sectional_curvature(r, q, v, w),
    "curvature_operator": lambda r, q, v, w: curvature_operator(r, q, v, w, v),
}


def state(seed):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 4, ("revolute", "spherical", "prismatic", "universal"), mimic=False)
    return robot, robot.random(rng, (2, 3)), *rng.normal(size=(2, 2, 3, robot.nv))


@pytest.mark.native
@pytest.mark.parametrize("name", FUNCTIONS)
def test_native_code_agrees(monkeypatch, name):
    robot, q, v, w = state(4)
    native = FUNCTIONS[name](robot, q, v, w)
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    written = FUNCTIONS[name](cj.Robot(robot.name, robot.links, robot.frames, robot.gravity), q, v, w)
    assert native.shape == written.shape
    assert relative(native, written) < 1e-10


@pytest.mark.native
def test_native_code_of_a_robot_with_mimic_joints(monkeypatch):
    rng = np.random.default_rng(8)
    robot = random_robot(rng, 5, ("revolute", "prismatic"), mimic=True)
    q = robot.random(rng, 4)
    native = cj.curvature(robot, q), cj.christoffel(robot, q)
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    robot = cj.Robot(robot.name, robot.links, robot.frames, robot.gravity)
    assert relative(native[0], cj.curvature(robot, q)) < 1e-10
    assert relative(native[1], cj.christoffel(robot, q)) < 1e-12


@pytest.mark.slow
@pytest.mark.native
def test_what_the_plain_call_runs_as_written_compiles_when_asked_for():
    robot = cj.load("planar11r")
    assert robot.nv > cj.curvature.kernel.largest
    q = robot.random(np.random.default_rng(9), 3)
    call = cj.compile(cj.curvature, robot)
    assert inspect.isbuiltin(call)
    assert relative(call(q), cj.curvature(robot, q)) < 1e-10


@pytest.mark.parametrize("name", ["coriolis_matrix", "curvature"])
def test_jax_agrees_jitted_and_mapped(name):
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(0)
    robot = random_robot(rng, 2, ("revolute", "universal"), tree=False)
    q, v, w = robot.random(rng, 5), *rng.normal(size=(2, 5, robot.nv))
    fn = FUNCTIONS[name]
    jax.config.update("jax_enable_x64", True)
    try:
        found = jax.jit(jax.vmap(lambda q, v, w: fn(robot, q, v, w)))(q, v, w)
    finally:
        jax.config.update("jax_enable_x64", False)
    assert relative(np.asarray(found), fn(robot, q, v, w)) < 1e-9


@pytest.mark.parametrize("name", FUNCTIONS)
def test_torch_agrees(name):
    torch = pytest.importorskip("torch")
    robot, q, v, w = state(4)
    found = FUNCTIONS[name](robot, *(torch.tensor(x) for x in (q, v, w)))
    assert isinstance(found, torch.Tensor)
    assert relative(found.numpy(), FUNCTIONS[name](robot, q, v, w)) < 1e-9
