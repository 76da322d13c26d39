"""First derivatives of inverse and forward dynamics against complex steps, 60-digit differences, laws, and Pinocchio."""

import numpy as np
import pytest

import coadjoint as cj
from derivative_helpers import ROBOTS, complex_step, traced
from kernel_helpers import difference_quotient
from laws import relative, state
from random_robots import ONE_SCREW, random_robot


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ROBOTS)
def test_inverse_dynamics_by_complex_step(kind, seed):
    rng = np.random.default_rng(seed)
    robot = ROBOTS[kind](rng)
    q, v, a = state(robot, rng)
    wrenches = rng.normal(size=(robot.n_links, 6))
    graph = traced(robot, cj.inverse_dynamics, wrenches=wrenches.shape)
    inputs = (q, np.zeros(robot.nv), v, a, wrenches)
    for k, found in enumerate(cj.inverse_dynamics_derivatives(robot, q, v, a, wrenches)):
        assert relative(found, complex_step(graph, k + 1, *inputs)[0]) < 1e-12


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", ROBOTS)
def test_forward_dynamics_by_complex_step(kind, seed):
    rng = np.random.default_rng(seed)
    robot = ROBOTS[kind](rng)
    q, v, tau = state(robot, rng)
    wrenches = rng.normal(size=(robot.n_links, 6))
    # The mass matrix in closed form: the recursion for a would need more branches than a complex step allows.
    graph = traced(robot, lambda r, q, v, x, wrenches: _acceleration(r, q, v, x, wrenches), wrenches=wrenches.shape)
    inputs = (q, np.zeros(robot.nv), v, tau, wrenches)
    # Rounding grows with the condition of the mass matrix.
    tolerance = max(1e-12, 1e-15 * np.linalg.cond(cj.mass_matrix(robot, q)))
    for k, found in enumerate(cj.forward_dynamics_derivatives(robot, q, v, tau, wrenches)):
        assert relative(found, complex_step(graph, k + 1, *inputs)[0]) < tolerance


def _acceleration(robot, q, v, tau, wrenches):
    force = tau - cj.bias_force(robot, q, v, wrenches)
    return cj.arrays.solve_spd(cj.mass_matrix(robot, q), force[:, None])[:, 0]


@pytest.mark.parametrize("kind", ["chain", "floating", "groups"])
def test_inverse_dynamics_in_sixty_digits(kind):
    rng = np.random.default_rng(7)
    robot = ROBOTS[kind](rng)
    q, v, a = state(robot, rng)
    graph = traced(robot, cj.inverse_dynamics)
    for k, found in enumerate(cj.inverse_dynamics_derivatives(robot, q, v, a)):
        expected = difference_quotient(graph, 0, k + 1, q, np.zeros(robot.nv), v, a)
        assert relative(found, expected.astype(float)) < 1e-13


@pytest.mark.parametrize("seed", range(4))
def test_laws(seed):
    """∂τ/∂a = M, ∂a/∂τ = M⁻¹, ∂τ/∂v = 2C for joints of one screw, and at rest ∂τ/∂q is the symmetric Hessian of U."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 7, ONE_SCREW, mimic=seed == 3, armature=True)
    q, v, a = state(robot, rng, (4,))
    by_q, by_v, by_a = cj.inverse_dynamics_derivatives(robot, q, v, a)
    assert relative(by_a, cj.mass_matrix(robot, q)) < 1e-13
    assert relative(by_v, 2 * cj.coriolis_matrix(robot, q, v)) < 1e-12
    still = cj.inverse_dynamics_derivatives(robot, q, 0 * v, 0 * a)[0]
    assert relative(still, still.swapaxes(-1, -2)) < 1e-12
    tau = cj.inverse_dynamics(robot, q, v, a)
    a_q, a_v, a_tau = cj.forward_dynamics_derivatives(robot, q, v, tau)
    assert relative(a_tau @ by_a, np.eye(robot.nv)) < 1e-9
    for x, y in ((by_q, a_q), (by_v, a_v)):
        assert relative(-by_a @ y, x) < 1e-9


def test_friction():
    rng = np.random.default_rng(0)
    robot = random_robot(rng, 6, ONE_SCREW, mimic=True, damping=True)
    q, v, a = state(robot, rng)
    graph = traced(robot, lambda r, q, v, x: cj.inverse_dynamics(r, q, v, x, friction=True))
    expected = complex_step(graph, 2, q, 0 * v, v, a)[0]
    assert relative(cj.inverse_dynamics_derivatives(robot, q, v, a, friction=True)[1], expected) < 1e-12
    tau = cj.inverse_dynamics(robot, q, v, a, friction=True)
    _, by_v, inverse = cj.forward_dynamics_derivatives(robot, q, v, tau, friction=True)
    assert relative(by_v, -inverse @ expected) < 1e-10


def test_batches_broadcast():
    rng = np.random.default_rng(2)
    robot = random_robot(rng, 5)
    q, v, a = robot.random(rng, (3, 1)), rng.normal(size=(4, robot.nv)), rng.normal(size=robot.nv)
    for fn in (cj.inverse_dynamics_derivatives, cj.forward_dynamics_derivatives):
        found = fn(robot, q, v, a)
        for x in found:
            assert x.shape == (3, 4, robot.nv, robot.nv)
        for x, y in zip(found, fn(robot, q[1, 0], v[2], a), strict=True):
            assert relative(x[1, 2], y) < 1e-12


@pytest.mark.parametrize("robot", [cj.Robot("nothing", []), random_robot(0, 2, ("fixed",))], ids=["nothing", "fixed"])
def test_robots_that_do_not_move(robot):
    x = np.zeros(0)
    for fn in (cj.inverse_dynamics_derivatives, cj.forward_dynamics_derivatives):
        assert [y.shape for y in fn(robot, x, x, x)] == [(0, 0)] * 3


def test_a_singular_mass_matrix_is_explained():
    robot = cj.load("planar2r")
    robot = robot.with_inertia(robot.link_names[-1], mass=0.0)
    with pytest.raises(cj.errors.SingularMassMatrixError, match=robot.joint_names[-1]):
        cj.forward_dynamics_derivatives(robot, np.zeros(2), np.zeros(2), np.zeros(2))


# --- machine code


@pytest.mark.native
@pytest.mark.parametrize("seed", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_native_equals_as_written(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    kinds = ("free", "universal", "revolute", "helical", "spherical") if seed == 1 else ("planar", "revolute", "prismatic")
    robot = random_robot(rng, 5, kinds, mimic=seed == 2, armature=True, damping=True)
    assert (robot.nv > 12) == (seed == 1)  # solved with, and written out
    q, v, a = state(robot, rng, (7, 3))
    wrenches = rng.normal(size=(robot.n_links, 6))
    native = [
        fn(robot, q, v, a, wrenches, friction=True) for fn in (cj.inverse_dynamics_derivatives, cj.forward_dynamics_derivatives)
    ]
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    robot = cj.Robot(robot.name, robot.links, robot.frames, robot.gravity, robot.base)
    written = [
        fn(robot, q, v, a, wrenches, friction=True) for fn in (cj.inverse_dynamics_derivatives, cj.forward_dynamics_derivatives)
    ]
    condition = np.linalg.cond(cj.mass_matrix(robot, q)).max()
    for group, other, tolerance in zip(native, written, (1e-12, max(1e-12, 1e-14 * condition)), strict=True):
        for x, y in zip(group, other, strict=True):
            assert relative(x, y) < tolerance


@pytest.mark.native
@pytest.mark.parametrize("n", [0, 11])
def test_native_singular_mass_matrix(n):
    """A point of mass on a pan and tilt, at the end of a chain of slides, which in one of the states lies on the first axis."""
    links = [cj.Link.solid(f"l{k}", f"l{k - 1}" if k else "base", cj.Joint.prismatic(np.eye(3)[k % 3]), mass=1.0) for k in range(n)]
    pan = cj.Link("pan", f"l{n - 1}" if n else "base", cj.Joint.revolute((0, 0, 1), name="first"))
    tilt = cj.Link.solid("tilt", "pan", cj.Joint.revolute((0, 1, 0), name="second"), mass=1.0, com=(1.0, 0.0, 0.0))
    robot = cj.Robot("pan and tilt", [*links, pan, tilt])
    q, v = np.zeros((3, n + 2)), np.ones((3, n + 2))
    q[:, n:] = [[0.1, 0.2], [0.3, np.pi / 2], [0.5, 0.6]]
    for _ in range(2):  # the second time on the quick way
        with pytest.raises(cj.errors.SingularMassMatrixError, match=r"'first'.*state 1"):
            cj.forward_dynamics_derivatives(robot, q, v, v)
    assert all(np.isfinite(x).all() for x in cj.forward_dynamics_derivatives(robot, q[::2], v[::2], v[::2]))
    robot = robot.with_inertia("tilt", mass=1.0)
    with pytest.raises(cj.errors.SingularMassMatrixError, match="'first'"):
        cj.forward_dynamics_derivatives(robot, q, v, v)


@pytest.mark.native
def test_native_takes_out_and_single_precision():
    robot, rng = cj.load("panda"), np.random.default_rng(0)
    q, v, a = state(robot, rng, (9,))
    out = tuple(np.empty((9, 7, 7)) for _ in range(3))
    found = cj.inverse_dynamics_derivatives(robot, q, v, a)
    assert cj.inverse_dynamics_derivatives(robot, q, v, a, out=out, threads=2) is out
    single = cj.inverse_dynamics_derivatives(robot, *(x.astype(np.float32) for x in (q, v, a)))
    for x, y, z in zip(found, out, single, strict=True):
        assert np.array_equal(x, y)
        assert z.dtype == np.float32
        assert relative(z, x) < 1e-5


# --- other libraries


def test_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    try:
        rng = np.random.default_rng(4)
        robot = random_robot(rng, 2, ("universal", "revolute"), tree=False)
        q, v, a = state(robot, rng, (3,))
        found = jax.jit(lambda *x: cj.inverse_dynamics_derivatives(robot, *x))(*(jax.numpy.asarray(x) for x in (q, v, a)))
        for x, y in zip(found, cj.inverse_dynamics_derivatives(robot, q, v, a), strict=True):
            assert isinstance(x, jax.Array)
            assert relative(np.asarray(x), y) < 1e-12
    finally:
        jax.config.update("jax_enable_x64", False)


@pytest.mark.parametrize(
    "name",
    [
        "forward_dynamics_derivatives",
        "inverse_dynamics_second_derivatives",
        "forward_dynamics_second_derivatives",
        "regressor",
        "linearize",
    ],
)
def test_torch(name):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    robot = random_robot(rng, 6)
    q, v, a = state(robot, rng, (3,))
    expected = getattr(cj, name)(robot, q, v, a)
    found = getattr(cj, name)(robot, *(torch.tensor(x) for x in (q, v, a)))
    for x, y in zip(found, expected, strict=True) if isinstance(expected, tuple) else ((found, expected),):
        assert relative(x.numpy(), y) < 1e-9


@pytest.mark.slow
def test_pinocchio_on_its_robots():
    """Every URDF file of `example-robot-data`, with a fixed or a free base in turn; on the way, the regressor of each."""
    peers = pytest.importorskip("pinocchio_helpers")
    pin = peers.pin
    compared = 0
    for number, (name, path) in enumerate(peers.FILES.items()):
        if name == peers.EMPTY:
            continue
        peer = peers.Peer.of(path, "free" if number % 2 else "fixed")
        robot, model, P = peer.robot, peer.model, peer.P
        if not robot.nv:
            continue
        compared += 1
        rng = np.random.default_rng(number)
        q, v, a = state(robot, rng, (1,))
        wrenches = rng.normal(size=(robot.n_links, 6))
        expected = pin.computeRNEADerivatives(model, peer.data, peer.q(q)[0], P @ v[0], P @ a[0], peer.forces(wrenches))
        found = cj.inverse_dynamics_derivatives(robot, q[0], v[0], a[0], wrenches)
        M = np.triu(expected[2]) + np.triu(expected[2], 1).T
        size = max(np.abs(x).max() for x in expected)
        for x, y in zip(found, (expected[0], expected[1], M), strict=True):
            assert np.abs(x - P.T @ y @ P).max() < 1e-11 * size, name
        tau = cj.inverse_dynamics(robot, q, v, a)
        assert np.abs(cj.regressor(robot, q, v, a) @ robot.inertial_parameters - tau).max() <= 1e-12 * np.abs(tau).max(), name
    assert compared >= 60


def test_acceptance_case_13():
    """∂τ/∂q and ∂τ/∂v of a tree of five joints, from 60-digit differences and Pinocchio."""
    from acceptance import check, load

    case = load(13)
    x = case.inputs
    by_q, by_v, _ = cj.inverse_dynamics_derivatives(case.robot, x.q, x.qd, x.qdd)
    check(case, dtau_dq=by_q, dtau_dqd=by_v)
    check(case, dtau_dqd=2 * cj.coriolis_matrix(case.robot, x.q, x.qd))
