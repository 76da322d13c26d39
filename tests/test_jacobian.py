"""Jacobians, their rate and their derivative by q, against differences of poses along `integrate`, for every kind of joint."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import coadjoint as cj
import laws
from coadjoint.errors import CoadjointError
from coadjoint.lie import se3
from random_robots import ALL_KINDS, MOVING, random_joint, random_robot

REFERENCES = ("body", "space", "world")
derivative = partial(laws.derivative, h=2e-3)


def assert_close(found, expected, tolerance=1e-10):
    laws.close(found, expected, tolerance)


def twist(T, rate, reference):
    """The twist of a frame at T that changes by `rate`, in a reference."""
    if reference == "body":
        return se3.vee(se3.inverse(T) @ rate)
    if reference == "space":
        return se3.vee(rate @ se3.inverse(T))
    return np.concatenate([se3.vee(rate @ se3.inverse(T))[..., :3], rate[..., :3, 3]], axis=-1)


@pytest.fixture(params=range(6))
def case(request):
    """A random tree with states (2,); joints of every kind appear over the seeds."""
    seed = request.param
    kinds = ALL_KINDS if seed % 2 else np.random.default_rng(seed).permutation(MOVING)[:4]
    robot = random_robot(seed, 5 + seed % 3, kinds, tree=seed % 3 > 0, shuffle=seed > 3, mimic=seed % 3 == 2)
    rng = np.random.default_rng(seed)
    return robot, robot.random(rng, 2), rng.normal(size=(2, robot.nv))


@pytest.mark.parametrize("kind", MOVING)
@pytest.mark.parametrize("reference", REFERENCES)
def test_every_kind_of_joint(kind, reference):
    """The frame of a link moves with J v: for two joints of one kind in a row, neither at its frame's origin."""
    rng = np.random.default_rng(3)
    first = cj.Link("a", "base", random_joint(rng, kind), se3.exp(rng.normal(size=6)))
    second = cj.Link("b", "a", random_joint(rng, kind), se3.exp(rng.normal(size=6)))
    robot = cj.Robot("pair", [first, second]).with_frame("tip", "b", se3.exp(rng.normal(size=6)))
    q, v = robot.random(rng, 3), rng.normal(size=(3, robot.nv))
    rate = derivative(robot, lambda x: cj.pose(robot, x, "tip"), q, v)
    J = cj.jacobian(robot, q, "tip", reference)
    assert J.shape == (3, 6, robot.nv)
    assert_close((J @ v[..., None])[..., 0], twist(cj.pose(robot, q, "tip"), rate, reference))


@pytest.mark.parametrize("reference", REFERENCES)
def test_jacobian_is_the_derivative_of_the_pose(case, reference):
    robot, q, v = case
    for frame in ("tip", robot.link_names[-1], "mount"):
        T = cj.pose(robot, q, frame)
        rate = derivative(robot, lambda x, frame=frame: cj.pose(robot, x, frame), q, v)
        assert_close((cj.jacobian(robot, q, frame, reference) @ v[..., None])[..., 0], twist(T, rate, reference))


def test_jacobians_belong_to_link_velocities(case):
    """Body Jacobians of the links take v to their twists."""
    robot, q, v = case
    V = cj.link_velocities(robot, q, v)
    for i, name in enumerate(robot.link_names):
        assert_close((cj.jacobian(robot, q, name) @ v[..., None])[..., 0], V[..., i, :], 1e-12)


def test_references_belong_together(case):
    robot, q, _ = case
    T = cj.pose(robot, q, "tip")
    body, space, world = (cj.jacobian(robot, q, "tip", reference) for reference in REFERENCES)
    assert_close(space, se3.Ad(T) @ body, 1e-13)
    turned = T.copy()
    turned[..., :3, 3] = 0
    assert_close(world, se3.Ad(turned) @ body, 1e-13)


@pytest.mark.parametrize("reference", REFERENCES)
def test_rate_is_the_derivative_in_time(case, reference):
    robot, q, v = case
    expected = derivative(robot, lambda x: cj.jacobian(robot, x, "tip", reference), q, v)
    assert_close(cj.jacobian_rate(robot, q, v, "tip", reference), expected)


@pytest.mark.parametrize("reference", REFERENCES)
def test_derivative_by_every_coordinate(case, reference):
    robot, q, _ = case
    D = cj.jacobian_derivative(robot, q, "tip", reference)
    assert D.shape == (2, 6, robot.nv, robot.nv)
    along_each = derivative(robot, lambda x: cj.jacobian(robot, x, "tip", reference), q[:, None], np.eye(robot.nv))
    assert_close(D, np.moveaxis(along_each, 1, -1))


@pytest.mark.parametrize("reference", REFERENCES)
def test_rate_is_the_derivative_along_the_velocity(case, reference):
    """J̇ = Σ_l ∂J/∂q_l v_l, exact but for rounding."""
    robot, q, v = case
    D = cj.jacobian_derivative(robot, q, "tip", reference)
    assert_close(cj.jacobian_rate(robot, q, v, "tip", reference), (D @ v[..., None, :, None])[..., 0], 1e-12)


def test_virtual_work(case):
    """A wrench on a link does the same work at the joints: Jᵀ w is its generalised force."""
    robot, q, _ = case
    rng = np.random.default_rng(0)
    wrenches = rng.normal(size=(2, robot.n_links, 6))
    expected = sum(
        (np.swapaxes(cj.jacobian(robot, q, name), -1, -2) @ wrenches[:, i, :, None])[..., 0]
        for i, name in enumerate(robot.link_names)
    )
    assert_close(cj.generalized_force(robot, q, wrenches), expected, 1e-12)


def test_base_does_not_move():
    robot = cj.load("panda")
    assert not cj.jacobian(robot, robot.random(0), "base").any()
    assert not cj.jacobian_derivative(robot, robot.random(0), "base", "world").any()


def test_batch_axes_broadcast():
    robot = cj.load("ur5e")
    q, v = robot.random(0, (3, 1)), np.random.default_rng(0).normal(size=(4, 6))
    rate = cj.jacobian_rate(robot, q, v, "tip", "world")
    assert rate.shape == (3, 4, 6, 6)
    np.testing.assert_allclose(rate[1, 2], cj.jacobian_rate(robot, q[1, 0], v[2], "tip", "world"), atol=1e-15)


@pytest.mark.parametrize("fn", [cj.jacobian, cj.jacobian_derivative])
def test_unknown_reference(fn):
    with pytest.raises(CoadjointError, match=r"reference is 'local'; choose 'body', 'space', or 'world'"):
        fn(cj.load("panda"), np.zeros(7), "tip", "local")
