"""Native kernels inside PyTorch: values, gradcheck, double backward, forward mode, vmap, devices, precision."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from derivative_helpers import ROBOTS, complex_step
from laws import relative
from random_robots import ONE_SCREW, random_robot

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.native,
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),  # PyTorch's own, on its first forward derivative
]


def state(robot, seed=0, shape=()):
    rng = np.random.default_rng(seed)
    return [robot.random(rng, shape), *rng.normal(size=(2, *shape, robot.nv))]


def tensors(*arrays):
    return [torch.tensor(x, requires_grad=True) for x in arrays]


def made(fn, robot, **options):
    return cj.interop.torch.function(fn, robot, **options)


def own(robot, q, v):
    """A user's function with two results."""
    return cj.kinetic_energy(robot, q, v), cj.jacobian(robot, q, "tip") @ v


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,)])
def test_values(shape):
    robot = random_robot(1, 5, armature=True)
    q, v, a = state(robot, 1, shape)
    for fn, args, options in (
        (cj.inverse_dynamics, (q, v, a), {"friction": True}),
        (cj.pose, (q,), {"frame": "tip"}),
        (cj.forward_dynamics, (q, v, a), {}),
        (cj.kinetic_energy, (q, v), {}),
    ):
        found = made(fn, robot, **options)(*map(torch.tensor, args))
        expected = fn(robot, *args, **options)
        assert tuple(found.shape) == expected.shape
        assert not expected.size or relative(found.numpy(), expected) < 1e-13


@pytest.mark.parametrize("kind", ["chain", "floating"])
def test_first_derivatives_by_complex_step(kind):
    robot = ROBOTS[kind](np.random.default_rng(3))
    args = state(robot, 3)
    for fn in (cj.inverse_dynamics, cj.forward_dynamics) if kind == "floating" else (cj.inverse_dynamics,):
        f, graph = made(fn, robot), cj.trace(fn, robot)
        expected = [complex_step(graph, k, *args)[0] for k in range(3)]
        for mode in (torch.func.jacrev, torch.func.jacfwd):
            for x, y in zip(mode(f, (0, 1, 2))(*map(torch.tensor, args)), expected, strict=True):
                assert relative(x.numpy(), y) < 1e-11


@pytest.mark.parametrize("joints", [ONE_SCREW, ("free", "revolute")])
def test_gradcheck_and_double_backward(joints):
    robot = random_robot(4, 2 if joints is ONE_SCREW else 1, joints, tree=False)
    x = tensors(*state(robot, 4, (2,)))
    f = made(cj.inverse_dynamics, robot)
    assert torch.autograd.gradcheck(f, x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, [y.detach()[:1].requires_grad_() for y in x], check_fwd_over_rev=True)
    one = [y.detach()[:1].requires_grad_() for y in x]
    assert torch.autograd.gradgradcheck(made(cj.forward_dynamics, robot), one)
    # one of two results, broadcast arrays: what states share has the sum
    assert torch.autograd.gradcheck(lambda q, v: made(own, robot)(q, v[0])[1], [y.detach().requires_grad_() for y in x[:2]])


def test_second_derivatives():
    robot = random_robot(5, 4, ONE_SCREW)
    q, v, a = state(robot, 5)
    f = made(cj.inverse_dynamics, robot)
    args = list(map(torch.tensor, (q, v, a)))
    qq = torch.func.jacfwd(torch.func.jacrev(f, 0), 0)(*args)
    qv = torch.func.jacrev(torch.func.jacrev(f, 0), 1)(*args)
    expected = cj.inverse_dynamics_second_derivatives(robot, q, v, a)
    assert relative(qq.numpy(), expected[0]) < 1e-10
    assert relative(qv.numpy(), expected[1]) < 1e-10
    M = torch.func.hessian(made(cj.kinetic_energy, robot), 1)(*args[:2])
    assert relative(M.numpy(), cj.mass_matrix(robot, q)) < 1e-11


def test_vmap():
    robot = random_robot(6, 3, ONE_SCREW)
    q, v, a = (torch.tensor(x) for x in state(robot, 6, (4, 5)))
    f, vmap = made(cj.inverse_dynamics, robot), torch.func.vmap
    expected = cj.inverse_dynamics(robot, *(x.numpy() for x in (q, v, a)))
    assert relative(vmap(vmap(f))(q, v, a).numpy(), expected) < 1e-13
    assert relative(vmap(f, (1, 1, 1), 1)(q, v, a).numpy(), expected) < 1e-13
    shared = vmap(vmap(f, (None, 0, 0)), (0, None, 0))(q[:, 0], v[0], a)
    assert relative(shared.numpy(), cj.inverse_dynamics(robot, q[:, :1].numpy(), v[:1].numpy(), a.numpy())) < 1e-13
    M = vmap(torch.func.jacrev(f, 2))(q[0], v[0], a[0])
    assert relative(M.numpy(), cj.mass_matrix(robot, q[0].numpy())) < 1e-12


def test_parameters_as_inputs():
    robot = random_robot(7, 3, ONE_SCREW)
    q, v, a = state(robot, 7, (2,))
    f = made(cj.inverse_dynamics, robot, parameters=["inertial"])
    p = torch.tensor(robot.parameters("inertial"))
    found = torch.func.jacrev(f, 3)(*map(torch.tensor, (q, v, a)), p)
    assert relative(found.numpy(), cj.regressor(robot, q, v, a)) < 1e-12


def test_memory_is_shared_and_precision_kept():
    robot = random_robot(8, 3, ONE_SCREW)
    q, v, a = (torch.tensor(x) for x in state(robot, 8, (6,)))
    f = made(cj.inverse_dynamics, robot)
    expected = f(q, v, a)
    strided = torch.stack([q, q], dim=-1)[..., 0]
    assert torch.equal(f(strided, v, a), expected)
    single = f(q.float(), v.float(), a.float())
    assert single.dtype == torch.float32
    assert relative(single.numpy(), expected.numpy()) < 1e-4
    assert f(q.float(), v, a).dtype == torch.float64
    assert torch.equal(f(q, v.numpy(), a.numpy()), expected)
    with pytest.raises(cj.CoadjointError, match=r"q has dtype torch.float16; kernels are of float64 or float32"):
        f(q.half(), v, a)
    with pytest.raises(cj.CoadjointError, match="expected real numbers"):
        f(q + 1j, v, a)
    with pytest.raises(cj.errors.ShapeError, match=r"v has shape \(6, 2\); expected \(\.\.\., 3\)"):
        f(q, v[:, :2], a)


def test_other_devices_run_the_function_as_written():
    """The device "meta" has shapes but no numbers: nothing native could have run there."""
    robot = random_robot(9, 2, ONE_SCREW)
    q = torch.zeros(5, robot.nq, dtype=torch.float64, device="meta")
    found = made(cj.gravity_force, robot)(q)
    assert found.device.type == "meta"
    assert found.shape == (5, robot.nv)


def test_a_step_of_learning_recovers_parameters():
    """Masses are found from torques by gradient descent through native kernels."""
    robot = random_robot(10, 2, ONE_SCREW)
    args = [torch.tensor(x) for x in state(robot, 10, (64,))]
    f = made(cj.inverse_dynamics, robot, parameters=["masses"])
    true = torch.tensor(robot.parameters("masses"))
    target, guess = f(*args, true), (1.3 * true).requires_grad_()
    optimizer = torch.optim.LBFGS([guess], max_iter=50, tolerance_grad=1e-14, tolerance_change=1e-16, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        value = ((f(*args, guess) - target) ** 2).mean()
        value.backward()
        return value

    optimizer.step(loss)
    assert relative(guess.detach().numpy(), true.numpy()) < 1e-6


def test_without_native_code(monkeypatch):
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    robot = random_robot(11, 2, ONE_SCREW)
    x = tensors(*state(robot, 11, (3,)))
    f = made(cj.inverse_dynamics, robot)
    assert relative(f(*x).detach().numpy(), cj.inverse_dynamics(robot, *(y.detach().numpy() for y in x))) < 1e-12
    assert torch.autograd.gradcheck(f, x)
