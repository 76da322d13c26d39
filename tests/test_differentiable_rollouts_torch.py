"""Rollouts and inverse kinematics inside PyTorch: values of `rollout`, gradients checked by PyTorch's own differences."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from random_robots import random_robot

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.native


def tensor(x):
    return torch.tensor(np.asarray(x), dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("method", ["euler", "rk4"])
def test_rollouts_and_gradients(method):
    arm, rng = cj.load("planar2r"), np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 2)), rng.normal(size=2), rng.normal(size=(3, 4, 2))
    masses = arm.parameters("masses") * rng.uniform(0.5, 2.0, (3, 2))
    run = cj.interop.torch.rollout(arm, dt=0.02, method=method, parameters=["masses"])
    given = [tensor(x) for x in (q, v, tau, masses)]
    found = run(*given)
    for x, y in zip(found, cj.rollout(arm, q, v, tau, dt=0.02, method=method, parameters={"masses": masses}), strict=True):
        assert np.allclose(x.detach(), y, atol=1e-13)
    assert torch.autograd.gradcheck(run, given, atol=1e-7)


def test_a_motion_on_a_group():
    """Gradients by the entries of q, a quaternion among them."""
    rng = np.random.default_rng(1)
    robot = random_robot(rng, 2, kinds=["spherical", "revolute"])
    run = cj.interop.torch.rollout(robot, dt=0.05)
    given = [tensor(x) for x in (robot.random(rng), rng.normal(size=robot.nv), rng.normal(size=(3, robot.nv)))]
    assert torch.autograd.gradcheck(run, given, atol=1e-6)


def test_vmap_and_single_precision():
    arm, rng = cj.load("planar2r"), np.random.default_rng(2)
    q, v, tau = (torch.tensor(x) for x in (rng.normal(size=(3, 2)), rng.normal(size=2), rng.normal(size=(4, 2))))
    run = cj.interop.torch.rollout(arm, dt=0.02)
    assert torch.allclose(torch.func.vmap(run, (0, None, None))(q, v, tau)[0], run(q, v, tau)[0])
    slope = torch.func.grad(lambda tau: run(q[0], v, tau)[0].sum())(tau)
    single = run(q.float(), v.float(), tau.float())[0]
    assert single.dtype == torch.float32
    assert torch.allclose(single.double(), run(q, v, tau)[0], atol=1e-4)
    each = torch.func.vmap(torch.func.grad(lambda q, tau: run(q, v, tau)[0].sum(), 1), (0, None))(q, tau)
    assert torch.allclose(each[0], slope)
    x = tau.clone().requires_grad_()
    (once,) = torch.autograd.grad((run(q[0], v, x)[0] ** 2).sum(), x, create_graph=True)
    with pytest.raises(cj.CoadjointError, match="first derivatives"):
        once.sum().backward()


def test_inverse_kinematics_has_the_derivative_of_its_solution():
    arm = cj.load("ur5e")
    frame = arm.frame_names[-1]
    q0 = np.array([0.1, -1.2, 1.4, -0.7, 0.9, 0.3])
    X = np.array(cj.pose(arm, q0 + 0.05, frame))
    solve = cj.interop.torch.inverse_kinematics(arm, frame, parameters=["lengths"], tolerance=1e-11)
    xi = torch.tensor(np.random.default_rng(3).normal(size=6))
    lengths = torch.tensor(arm.parameters("lengths"))
    grow = torch.tensor(np.random.default_rng(4).normal(size=tuple(lengths.shape)))

    def moved(s, r):
        return solve(torch.tensor(X) @ cj.lie.se3.exp(s * xi), torch.tensor(q0), lengths + r * grow)

    assert torch.autograd.gradcheck(moved, [tensor(0.0), tensor(0.0)], eps=1e-5, atol=1e-5)


def test_inverse_kinematics_of_many_robots():
    """One target, a robot of other lengths for each of its configurations: together, under vmap, and one by one."""
    arm, q0 = cj.load("planar3r"), np.array([0.3, 0.4, 0.5])
    solve = cj.interop.torch.inverse_kinematics(arm, "tip", parameters=["lengths"])
    X = tensor(cj.pose(arm, q0 + 0.05, "tip"))
    lengths = tensor(arm.parameters("lengths") * np.array([[1.0], [1.02]]))
    weights = torch.tensor(np.random.default_rng(5).normal(size=(2, 3)))
    one_by_one = torch.stack([solve(X, q0, x) for x in lengths])
    slopes = torch.autograd.grad((one_by_one * weights).sum(), (X, lengths))
    assert torch.allclose(torch.func.vmap(lambda x: solve(X, torch.tensor(q0), x))(lengths), one_by_one)
    together = solve(X, q0, lengths)
    assert torch.allclose(together, one_by_one)
    for x, y in zip(torch.autograd.grad((together * weights).sum(), (X, lengths)), slopes, strict=True):
        assert torch.allclose(x, y)


def test_wrong_arguments_are_told():
    arm = cj.load("planar2r")
    run = cj.interop.torch.rollout(arm, dt=0.02)
    with pytest.raises(cj.CoadjointError, match="tau has shape"):
        run(torch.zeros(2), torch.zeros(2), torch.zeros(2))
    with pytest.raises(cj.CoadjointError, match="q has shape"):
        run(torch.zeros(3), torch.zeros(2), torch.zeros((4, 2)))
    with pytest.raises(cj.CoadjointError, match="sets of numbers"):
        run(torch.zeros(2), torch.zeros(2), torch.zeros((4, 2)), torch.ones(2))
    with pytest.raises(cj.CoadjointError, match="batch axes do not broadcast"):
        run(torch.zeros((3, 2)), torch.zeros((4, 2)), torch.zeros((4, 2)))
    with pytest.raises(cj.CoadjointError, match="start is a tensor that requires a gradient"):
        cj.optimal_control(arm, cj.Stage(2, cj.costs.control()), tensor([0.1, 0.2]))
    for name, start, goal in [("start", tensor([0.1, 0.2]), np.zeros(2)), ("goal", np.zeros(2), tensor([0.1, 0.2]))]:
        with pytest.raises(cj.CoadjointError, match=f"{name} is a tensor that requires a gradient"):
            cj.optimal_motion(arm, start, goal, 1.0)
    assert run(torch.zeros((3, 2)), torch.zeros(2), torch.zeros((0, 2)))[0].shape == (3, 1, 2)
