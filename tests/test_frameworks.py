"""The same functions on JAX and PyTorch arrays, with jit, vmap, grad and autograd."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from functions import FUNCTIONS
from laws import relative
from random_robots import random_robot


def state(seed=1, n=9, shape=(3,)):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, n, mimic=seed % 2 == 0, armature=True, damping=True)
    v, a = rng.normal(size=(2, *shape, robot.nv))
    return robot, robot.random(rng, shape), v, a


@pytest.fixture(scope="module")
def jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", False)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jax_equals_numpy(jax, name, seed):
    robot, q, v, a = state(seed)
    fn = FUNCTIONS[name]
    expected = fn(robot, q, v, a)
    arrays = [jax.numpy.asarray(x) for x in (q, v, a)]
    result = fn(robot, *arrays)
    assert isinstance(result, jax.Array)
    assert result.dtype == np.float64
    assert relative(np.asarray(result), expected) < 1e-10


def test_jax_jit_vmap_and_grad(jax):
    robot, q, v, a = state(1, n=6)
    jnp = jax.numpy
    fn = jax.jit(lambda q, v, a: cj.inverse_dynamics(robot, q, v, a))
    expected = cj.inverse_dynamics(robot, q, v, a)
    assert relative(np.asarray(fn(q, v, a)), expected) < 1e-12
    mapped = jax.jit(jax.vmap(lambda q, v, a: cj.inverse_dynamics(robot, q, v, a)))
    assert relative(np.asarray(mapped(q, v, a)), expected) < 1e-12
    # ∂τ/∂a = M, ∂U/∂q = g for a robot whose joints have one screw
    M = jax.vmap(jax.jacfwd(lambda q, v, a: cj.inverse_dynamics(robot, q, v, a), 2))(jnp.asarray(q), jnp.asarray(v), jnp.asarray(a))
    assert relative(np.asarray(M), cj.mass_matrix(robot, q)) < 1e-12
    arm = random_robot(5, 5, ("revolute", "prismatic", "helical"))
    x = arm.random(np.random.default_rng(0))
    g = jax.grad(lambda q: cj.potential_energy(arm, q))(jnp.asarray(x))
    assert relative(np.asarray(g), cj.gravity_force(arm, x)) < 1e-12
    assert np.all(np.isfinite(jax.grad(lambda v: cj.forward_dynamics(arm, jnp.asarray(x), v, v).sum())(jnp.zeros(arm.nv))))


def test_jax_static_robot(jax):
    robot, q, v, a = state(1, n=4)
    fn = jax.jit(cj.inverse_dynamics, static_argnums=0)
    assert relative(np.asarray(fn(robot, q, v, a)), cj.inverse_dynamics(robot, q, v, a)) < 1e-12


def test_jax_single_precision_stays_single():
    jax = pytest.importorskip("jax")
    robot, q, v, a = state(1, n=4)
    tau = cj.inverse_dynamics(robot, *(jax.numpy.asarray(x, dtype=np.float32) for x in (q, v, a)))
    assert tau.dtype == np.float32
    assert relative(np.asarray(tau), cj.inverse_dynamics(robot, q, v, a)) < 1e-4


def test_jax_derivative_by_parameters(jax):
    """∂τ/∂parameters by tracing the robot's own numbers; τ is linear in them."""
    robot, q, v, a = state(1, n=4)
    torque = lambda p: cj.inverse_dynamics(robot.with_numbers(inertias=p), q[0], v[0], a[0])
    inertial = jax.jacfwd(torque)(jax.numpy.asarray(robot.inertias))
    without = cj.inverse_dynamics(robot.with_inertial_parameters(np.zeros(10 * robot.n_links)), q[0], v[0], a[0])
    tau = np.einsum("tij,ij->t", np.asarray(inertial), robot.inertias) + without
    assert relative(tau, cj.inverse_dynamics(robot, q[0], v[0], a[0])) < 1e-12


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_torch_equals_numpy(name, seed):
    torch = pytest.importorskip("torch")
    robot, q, v, a = state(seed)
    fn = FUNCTIONS[name]
    result = fn(robot, *(torch.as_tensor(x) for x in (q, v, a)))
    assert isinstance(result, torch.Tensor)
    assert result.dtype == torch.float64
    assert relative(result.numpy(), fn(robot, q, v, a)) < 1e-10


def test_torch_gradcheck_and_vmap():
    torch = pytest.importorskip("torch")
    robot, q, v, a = state(1, n=5, shape=(2,))
    arrays = [torch.as_tensor(x).requires_grad_() for x in (q, v, a)]
    assert torch.autograd.gradcheck(lambda q, v, a: cj.inverse_dynamics(robot, q, v, a), arrays)
    assert torch.autograd.gradcheck(lambda q, v, a: cj.forward_dynamics(robot, q, v, a), arrays)
    assert torch.autograd.gradcheck(lambda q: cj.mass_matrix(robot, q), arrays[:1])
    mapped = torch.func.vmap(lambda q, v, a: cj.inverse_dynamics(robot, q, v, a))(*(x.detach() for x in arrays))
    assert relative(mapped.numpy(), cj.inverse_dynamics(robot, q, v, a)) < 1e-12
    single = cj.inverse_dynamics(robot, *(x.detach().float() for x in arrays))
    assert single.dtype == torch.float32


def test_a_traced_singular_mass_matrix_is_nan():
    torch = pytest.importorskip("torch")
    arm = cj.Link.solid("bob", "base", cj.Joint.universal((0, 0, 1), (0, 1, 0)), mass=1.3, com=(0.7, 0, 0))
    robot = cj.Robot("pendulum", [arm])
    q = torch.tensor([[0.3, 0.5], [0.3, np.pi / 2]], dtype=torch.float64)
    a = cj.forward_dynamics(robot, q, torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64))
    assert torch.isfinite(a[0]).all()
    assert torch.isnan(a[1]).all()


def test_torch_of_two_precisions_takes_the_higher():
    torch = pytest.importorskip("torch")
    robot, q, v, a = state(2)
    single = torch.tensor(q).float()
    for name in ("inverse_dynamics", "forward_dynamics", "integrate"):
        found = FUNCTIONS[name](robot, single, torch.tensor(v), a)
        assert found.dtype == torch.float64
        np.testing.assert_array_equal(found, FUNCTIONS[name](robot, single.double(), torch.tensor(v), torch.tensor(a)))


def test_what_is_wrong_is_said_as_for_numpy(jax):
    torch = pytest.importorskip("torch")
    panda = cj.load("panda")
    for array in (jax.numpy.asarray, torch.tensor):
        for x, message in (
            (np.zeros(6), r"q has shape \(6,\); expected \(\.\.\., 7\) for robot 'panda' \(nq = 7\)\."),
            (np.zeros(7) + 1j, r"q is .*; expected real numbers\."),
        ):
            with pytest.raises(cj.CoadjointError, match=f"^{message}$"):
                cj.gravity_force(panda, array(x))
        with pytest.raises(cj.CoadjointError, match=r"batch axes do not broadcast: q \(2,\), v \(3,\), a \(\)"):
            cj.inverse_dynamics(panda, array(np.zeros((2, 7))), array(np.zeros((3, 7))), array(np.zeros(7)))
        assert cj.gravity_force(panda, array(np.zeros((0, 7)))).shape == (0, 7)
