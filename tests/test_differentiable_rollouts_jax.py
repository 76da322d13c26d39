"""Rollouts and inverse kinematics inside JAX: values of `rollout`, derivatives by differences and by JAX's own."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.dynamics.steps import euler_step

jax = pytest.importorskip("jax")
jnp = jax.numpy

pytestmark = pytest.mark.native


@pytest.fixture(autouse=True)
def double():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.fixture(scope="module")
def arm():
    return cj.load("planar2r")


def states(rng, *batch):
    return rng.normal(size=(*batch, 2)), rng.normal(size=(*batch, 2)), rng.normal(size=(*batch, 4, 2))


def weighted(run, weights):
    def loss(*arrays):
        q, v = run(*arrays)
        return (weights[0] * q).sum() + (weights[1] * v**2).sum()

    return loss


def by_differences(loss, arrays, k, e=1e-6):
    found = np.zeros(np.shape(arrays[k]))
    for i in np.ndindex(found.shape):
        d = np.zeros(found.shape)
        d[i] = e
        up, down = ([*arrays[:k], arrays[k] + s * d, *arrays[k + 1 :]] for s in (1, -1))
        found[i] = (float(loss(*up)) - float(loss(*down))) / (2 * e)
    return found


def test_rollouts_and_gradients(arm):
    """Values are those of `rollout`; gradients by states, forces and masses are its differences, and JAX's own of the steps as written."""
    rng = np.random.default_rng(0)
    q, v, tau = states(rng)
    masses = arm.parameters("masses")
    weights = rng.normal(size=(2, 5, 2))
    run = cj.interop.jax.rollout(arm, dt=0.02, parameters=["masses"])
    assert np.allclose(run(q, v, tau, masses), cj.rollout(arm, q, v, tau, dt=0.02), atol=1e-13)
    loss = weighted(run, weights)
    found = jax.jit(jax.grad(loss, (0, 1, 2, 3)))(q, v, tau, masses)
    plain = weighted(lambda q, v, tau, m: cj.rollout(arm, q, v, tau, dt=0.02, parameters={"masses": m}), weights)
    for k in range(4):
        assert np.allclose(found[k], by_differences(plain, [q, v, tau, masses], k), atol=1e-7)

    def written(q, v, tau, m):
        robot, qs, vs = arm.with_parameters("masses", m), [q], [v]
        for k in range(4):
            force = lambda q, v, t, k=k: cj.forward_dynamics(robot, q, v, tau[k])
            q, v = euler_step(robot, q, v, tau[k], force, 0.02)
            qs, vs = [*qs, q], [*vs, v]
        return jnp.stack(qs), jnp.stack(vs)

    other = jax.grad(weighted(written, weights), (0, 1, 2, 3))(*map(jnp.asarray, (q, v, tau, masses)))
    for x, y in zip(found, other, strict=True):
        assert np.allclose(x, y, atol=1e-11)


def test_batches_and_second_derivatives(arm):
    rng = np.random.default_rng(1)
    q, v, tau = states(rng, 3)
    run = cj.interop.jax.rollout(arm, dt=0.05, method="rk4")
    whole = run(q, v, tau)
    assert np.allclose(whole, cj.rollout(arm, q, v, tau, dt=0.05, method="rk4"), atol=1e-12)
    assert np.allclose(jax.vmap(run)(q, v, tau), whole)
    assert np.allclose(run(q, v[0], tau[0])[0][1], run(q[1], v[0], tau[0])[0])
    loss = lambda q: (run(q, v[0], tau[0])[0][-1] ** 2).sum()
    H = np.array(jax.hessian(loss)(q[0]))
    assert np.allclose(H, H.T)
    e = 1e-5
    slope = jax.grad(loss)
    numerical = np.stack([(slope(q[0] + e * d) - slope(q[0] - e * d)) / (2 * e) for d in np.eye(2)])
    assert np.allclose(H, numerical, atol=1e-7)


def test_inverse_kinematics_has_the_derivative_of_its_solution():
    arm = cj.load("ur5e")
    frame = arm.frame_names[-1]
    q0 = np.array([0.1, -1.2, 1.4, -0.7, 0.9, 0.3])
    X = np.array(cj.pose(arm, q0 + 0.05, frame))
    solve = cj.interop.jax.inverse_kinematics(arm, frame, parameters=["lengths"])
    lengths = arm.parameters("lengths")
    found = np.array(solve(X, q0, lengths))
    assert np.allclose(cj.pose(arm, found, frame), X, atol=1e-8)
    rng = np.random.default_rng(2)
    xi, w, grow = rng.normal(size=6), rng.normal(size=6), rng.normal(size=lengths.shape)

    def loss(s):
        return (w * solve(jnp.asarray(X) @ cj.lie.se3.exp(s[0] * jnp.asarray(xi)), q0, lengths + s[1] * grow)).sum()

    e = 1e-5

    def numerical(s):
        there = [
            cj.inverse_kinematics(
                arm,
                X @ cj.lie.se3.exp(k * s[0] * xi),
                frame,
                q0=found,
                parameters={"lengths": lengths + k * s[1] * grow},
                tolerance=1e-11,
            ).q
            for k in (1, -1)
        ]
        return w @ (there[0] - there[1]) / (2 * e)

    slope = jax.jit(jax.grad(loss))(jnp.zeros(2))
    assert np.allclose(slope, [numerical([e, 0.0]), numerical([0.0, e])], rtol=1e-5)


def test_inverse_kinematics_of_many_robots():
    """One target, a robot of other lengths for each of its configurations: together, and one by one."""
    arm, q0 = cj.load("planar3r"), np.array([0.3, 0.4, 0.5])
    solve = cj.interop.jax.inverse_kinematics(arm, "tip", parameters=["lengths"])
    X = cj.pose(arm, q0 + 0.05, "tip")
    lengths = arm.parameters("lengths") * np.array([[1.0], [1.02]])
    w = np.random.default_rng(5).normal(size=(2, 3))
    assert np.allclose(
        solve(X, q0, lengths), [cj.inverse_kinematics(arm, X, "tip", q0=q0, parameters={"lengths": x}).q for x in lengths]
    )
    e, xi, grow = 1e-5, np.array([0.0, 0.0, 0.3, 0.2, 0.1, 0.0]), np.random.default_rng(6).normal(size=(2, 2))

    def loss(s, xp):
        moved = xp.asarray(X) @ cj.lie.se3.exp(s[0] * xp.asarray(xi))
        return (w * solve(moved, q0, lengths + s[1] * grow)).sum()

    slope = jax.grad(lambda s: loss(s, jnp))(jnp.zeros(2))
    numerical = [(loss(s, np) - loss(-s, np)) / (2 * e) for s in e * np.eye(2)]
    assert np.allclose(slope, numerical, rtol=1e-5)


def test_robots_that_differ_in_placements(arm):
    run = cj.interop.jax.rollout(arm, dt=0.02, parameters=["placements"])
    placements = np.stack([arm.placements] * 3)
    placements[1, 1, 0, 3] += 0.1
    found, _ = run(np.zeros(2), np.zeros(2), np.ones((4, 2)), placements)
    expected, _ = cj.rollout(arm, np.zeros(2), np.zeros(2), np.ones((3, 4, 2)), dt=0.02, parameters={"placements": placements})
    assert np.allclose(found, expected)


def test_wrong_arguments_are_told(arm):
    run = cj.interop.jax.rollout(arm, dt=0.02)
    with pytest.raises(cj.CoadjointError, match="tau has shape"):
        run(np.zeros(2), np.zeros(2), np.zeros(2))
    with pytest.raises(cj.CoadjointError, match="q has shape"):
        run(np.zeros(3), np.zeros(2), np.zeros((4, 2)))
    with pytest.raises(cj.CoadjointError, match="dt is"):
        cj.interop.jax.rollout(arm, dt=0.0)
    with pytest.raises(cj.CoadjointError, match="variational"):
        cj.interop.jax.rollout(arm, dt=0.1, method="variational")
    with pytest.raises(cj.CoadjointError, match="target has shape"):
        cj.interop.jax.inverse_kinematics(arm, "tip")(np.zeros(3), np.zeros(2))
    with pytest.raises(cj.CoadjointError, match="batch axes do not broadcast"):
        run(np.zeros((3, 2)), np.zeros((4, 2)), np.zeros((4, 2)))
    with pytest.raises(cj.CoadjointError, match="start is an array inside jit, grad or vmap"):
        jax.grad(lambda q: cj.optimal_control(arm, cj.Stage(2, cj.costs.control()), q).cost)(jnp.zeros(2))
