"""Wrenches at frames, and bodies that a robot carries."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.lie import se3, so3
from random_robots import MOVING, random_robot


def random_pose(rng):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = so3.exp(rng.normal(size=3)), rng.normal(size=3)
    return T


@pytest.mark.parametrize("reference", ["body", "world", "space"])
def test_a_wrench_at_a_frame_acts_by_its_jacobian(reference):
    """τ = Jᵀ F in every reference, and inverse dynamics need so much less."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        robot = random_robot(rng, 5, MOVING)
        robot = robot.with_frame("B", robot.link_names[int(rng.integers(5))], random_pose(rng))
        q, v, a = robot.random(rng, 3), *rng.normal(size=(2, 3, robot.nv))
        F = rng.normal(size=(3, 6))
        wrenches = cj.wrench_at(robot, "B", F, q, reference)
        assert wrenches.shape == (3, robot.n_links, 6)
        wanted = np.einsum("nij,ni->nj", cj.jacobian(robot, q, "B", reference), F)
        np.testing.assert_allclose(cj.generalized_force(robot, q, wrenches), wanted, atol=1e-12)
        less = cj.inverse_dynamics(robot, q, v, a) - cj.inverse_dynamics(robot, q, v, a, wrenches)
        np.testing.assert_allclose(less, wanted, atol=1e-10)
    assert cj.wrench_at(robot, "B", F[0]).shape == (robot.n_links, 6)


def test_a_payload_is_a_body_that_is_attached():
    """The same motion as with a link of its own on a fixed joint; and by the regressor, which is linear in it."""
    rng = np.random.default_rng(1)
    for _ in range(5):
        robot = random_robot(rng, 4, MOVING)
        robot = robot.with_frame("B", robot.link_names[int(rng.integers(4))], random_pose(rng))
        body = {"mass": 2.5, "com": rng.normal(size=3), "inertia": np.diag([0.3, 0.2, 0.4])}
        loaded = robot.with_payload("B", **body)
        tool = cj.Robot("tool", [cj.Link.solid("load", "base", cj.Joint.fixed(), **body)])
        held = robot.attach(tool, "B", prefix="tool ")
        q, v, a = robot.random(rng), *rng.normal(size=(2, robot.nv))
        tau = cj.inverse_dynamics(loaded, q, v, a)
        np.testing.assert_allclose(tau, cj.inverse_dynamics(held, q, v, a), rtol=1e-10, atol=1e-10)
        change = loaded.inertial_parameters - robot.inertial_parameters
        np.testing.assert_allclose(tau - cj.inverse_dynamics(robot, q, v, a), cj.regressor(robot, q, v, a) @ change, atol=1e-9)
        assert cj.total_mass(loaded) == pytest.approx(cj.total_mass(robot) + 2.5)


def test_a_point_mass_weighs_as_its_wrench():
    robot = cj.load("panda")
    q = robot.random(3)
    weight = cj.wrench_at(robot, "tip", [0, 0, 0, *(3.0 * robot.gravity)], q, "world")
    loaded = robot.with_payload("tip", mass=3.0)
    np.testing.assert_allclose(cj.gravity_force(loaded, q), cj.equilibrium_force(robot, q, weight), rtol=1e-12, atol=1e-12)


def test_inertial_parameters_of_other_array_libraries():
    """with_inertial_parameters takes what with_parameters takes: gradients go through it."""
    torch = pytest.importorskip("torch")
    robot = cj.load("planar2r")
    q, v, a = np.array([0.3, 0.4]), np.array([1.0, -1.0]), np.array([0.5, 0.2])
    parameters = torch.tensor(robot.inertial_parameters, requires_grad=True)
    tau = cj.inverse_dynamics(robot.with_inertial_parameters(parameters), *(torch.tensor(x) for x in (q, v, a)))
    (gradient,) = torch.autograd.grad(tau.sum(), parameters)
    np.testing.assert_allclose(gradient.numpy(), cj.regressor(robot, q, v, a).sum(0), atol=1e-12)


def test_frameworks_take_wrenches_too():
    jax = pytest.importorskip("jax")
    robot, q = cj.load("planar2r"), np.array([0.3, 0.4])
    F = np.arange(6.0)
    found = jax.jit(lambda F, q: cj.wrench_at(robot, "tip", F, q, "world"))(F, q)
    np.testing.assert_allclose(found, cj.wrench_at(robot, "tip", F, q, "world"), rtol=1e-5, atol=1e-5)
    assert np.allclose(se3.Ad_inv_dual_act(robot.frame("tip")[1], F), cj.wrench_at(robot, "tip", F)[-1])


def test_errors():
    robot = cj.load("planar2r")
    for call, message in (
        (lambda: cj.wrench_at(robot, "tip", np.zeros(6), reference="world"), "needs the configuration"),
        (lambda: cj.wrench_at(robot, "base", np.zeros(6)), "stands on the base"),
        (lambda: cj.wrench_at(robot, "tp", np.zeros(6)), "tip"),
        (lambda: cj.wrench_at(robot, "tip", np.zeros(3)), r"wrench has shape \(3,\)"),
        (lambda: cj.wrench_at(robot, "tip", np.zeros(6), reference="tool"), "reference is 'tool'"),
        (lambda: robot.with_payload("tip", mass=-1.0), "mass"),
        (lambda: robot.with_payload("base", mass=1.0), "stands on the base"),
        (lambda: robot.with_payload("hand", mass=1.0), "hand"),
    ):
        with pytest.raises(cj.CoadjointError, match=message):
            call()
