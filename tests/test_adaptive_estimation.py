"""Estimates sample by sample: least squares that equal the batch, natural gradients that keep bodies possible."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.identification.adaptive import covariance, estimated, natural_gradient, recursive_least_squares
from coadjoint.lie import inertia
from random_robots import random_robot

pytestmark = pytest.mark.native


def samples(robot, count, seed=0, **options):
    rng = np.random.default_rng(seed)
    q, v, a = robot.random(rng, (count,)), rng.normal(size=(count, robot.nv)), rng.normal(size=(count, robot.nv))
    return q, v, a, cj.inverse_dynamics(robot, q, v, a, **options)


@pytest.mark.parametrize("forgetting", [1.0, 0.95])
def test_recursive_least_squares_equals_the_batch(forgetting):
    robot = cj.load("planar2r").with_joint("joint1", damping=0.3)
    noise = np.array([0.5, 2.0])
    q, v, a, tau = samples(robot, 40, friction=True)
    tau = tau + np.random.default_rng(1).normal(size=tau.shape) * noise
    estimator = recursive_least_squares(robot, drives=True, forgetting=forgetting, noise=noise, prior=3.0)
    state = estimator.run(q, v, a, tau)[-1]
    base = cj.base_parameters(robot, drives=True)
    Y = np.concatenate([cj.regressor(robot, q, v, a), cj.drive_regressor(robot, v, a)], axis=-1)
    X = Y[..., list(base.pivots)]
    weights = forgetting ** np.arange(39, -1, -1.0)[:, None] / noise**2
    A = np.einsum("nik,ni,nij->kj", X, weights, X) + forgetting**40 / 9.0 * np.eye(base.rank)
    b = np.einsum("nik,ni,ni->k", X, weights, tau) + forgetting**40 / 9.0 * base.values(robot)
    np.testing.assert_allclose(estimator.read(state), np.linalg.solve(A, b), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(covariance(estimator, state), np.linalg.inv(A), rtol=1e-8, atol=1e-12)


def test_least_squares_intervals_cover():
    """The covariance of the estimates is that of 300 runs with noise of the given size."""
    robot, noise = cj.load("planar2r"), np.array([0.5, 2.0])
    q, v, a, tau = samples(robot, 60)
    estimator, rng = recursive_least_squares(robot, noise=noise), np.random.default_rng(2)
    inside = []
    for _ in range(300):
        state = estimator.run(q, v, a, tau + rng.normal(size=tau.shape) * noise)[-1]
        deviation = np.sqrt(np.diag(covariance(estimator, state)))
        inside.append(np.abs(estimator.read(state) - estimator.read(estimator.initial)) < 1.96 * deviation)
    assert 0.93 < np.mean(inside) < 0.97


def test_a_payload_is_found():
    robot = random_robot(3, 3, ["revolute"], tree=False)
    loaded = robot.with_payload("tip", mass=1.5, com=(0.1, 0.0, 0.2), inertia=0.02)
    q, v, a, tau = samples(loaded, 60)
    estimator = recursive_least_squares(robot, payload="tip", prior=1e4)
    found = estimator.read(estimator.run(q, v, a, tau)[-1])
    np.testing.assert_allclose(found[:4], [1.5, 0.15, 0.0, 0.3], atol=1e-5)
    np.testing.assert_allclose(cj.inverse_dynamics(robot.with_parameters("payload:tip", found), q, v, a), tau, atol=1e-5)


def divergence(P, Q):
    """log det P/Q + tr(P⁻¹ Q) - 4 of pseudo-inertias."""
    return np.linalg.slogdet(P)[1] - np.linalg.slogdet(Q)[1] + np.trace(np.linalg.solve(P, Q)) - 4


def test_the_divergence_falls_at_the_rate_of_the_squared_error():
    """dV/dt = -γ eᵀ R⁻¹ e on exact data, in the limit of a small gain, and V falls at every sample."""
    true = random_robot(5, 3, ["revolute", "prismatic"], tree=False)
    start = true.with_inertial_parameters(
        np.concatenate([1.5 * true.inertial_parameters[:10], true.inertial_parameters[10:] * 0.7])
    )
    q, v, a, tau = samples(true, 30, 1)
    noise, gain = np.array([1.0, 0.5, 2.0]), 1e-6
    estimator = natural_gradient(start, gain=gain, noise=noise)
    states = estimator.run(q, v, a, tau)
    wanted = inertia.pseudo(true.inertial_parameters.reshape(-1, 10))
    V = [sum(map(divergence, inertia.pseudo(x.reshape(-1, 10)), wanted)) for x in estimator.read(states)]
    e = tau - np.array([cj.inverse_dynamics(estimated(estimator, s), *x) for s, *x in zip(states[:-1], q, v, a, strict=True)])
    np.testing.assert_allclose(np.diff(V), -gain * ((e / noise) ** 2).sum(-1), rtol=1e-2, atol=1e-12)
    assert (np.diff(V) < 0).all()


@pytest.mark.parametrize("gain", [1e-4, 1.0, 1e8])
def test_estimates_stay_possible_for_any_gain_and_data(gain):
    robot = cj.load("planar2r").with_inertia("link1", mass=1.0, com=(0.5, 0, 0), inertia=0.1)
    robot = robot.with_inertia("link2", mass=1.0, com=(0.5, 0, 0), inertia=0.1)
    for joint in robot.joint_names:
        robot = robot.with_joint(joint, armature=0.1, damping=0.1, friction=0.1)
    rng = np.random.default_rng(0)
    q, v, a = robot.random(rng, (200,)), 30 * rng.normal(size=(200, 2)), 100 * rng.normal(size=(200, 2))
    estimator = natural_gradient(robot, gain=gain, drives=True)
    states = estimator.run(q, v, a, 1e4 * rng.normal(size=(200, 2)))
    assert np.isfinite(states).all()
    factors = states[:, :32].reshape(-1, 2, 4, 4)
    assert (np.abs(np.linalg.det(factors)) > 0).all()
    assert (states[:, 32:] > 0).all()
    few = estimator.read(states[:12])[:, :20].reshape(-1, 10)  # while conditions are moderate also Σ itself, rounded, is definite
    np.linalg.cholesky(inertia.pseudo(few))
    assert estimated(estimator, states[5]).n_links == 2


def test_the_prediction_converges():
    true = random_robot(5, 2, ["revolute"], tree=False)
    start = true.with_inertial_parameters(1.6 * true.inertial_parameters)
    q, v, a, tau = samples(true, 4000, 1)
    estimator = natural_gradient(start, gain=0.02)
    found = estimated(estimator, estimator.run(q, v, a, tau)[-1])
    error = np.abs(cj.inverse_dynamics(found, q, v, a) - tau).max()
    assert error < 1e-2 * np.abs(cj.inverse_dynamics(start, q, v, a) - tau).max()


def test_one_step_is_pure_and_takes_batches():
    robot = random_robot(5, 2, ["revolute"], tree=False)
    q, v, a, tau = samples(robot, 6)
    estimator = natural_gradient(robot, gain=0.1)
    whole = estimator(np.broadcast_to(estimator.initial, (6, 32)), q, v, a, tau + 1.0)
    for k in range(6):
        np.testing.assert_allclose(estimator(estimator.initial, q[k], v[k], a[k], tau[k] + 1.0), whole[k], rtol=1e-12)


def test_bad_input():
    robot = cj.load("planar2r")
    for call, match in [
        (lambda: recursive_least_squares(robot, forgetting=1.5), "0 to 1"),
        (lambda: recursive_least_squares(robot, payload="hand"), "hand"),
        (lambda: recursive_least_squares(robot, noise=0.0), "positive"),
        (lambda: natural_gradient(robot, gain=-1.0), "positive"),
        (lambda: natural_gradient(robot, gain=1.0, links=[]), "empty"),
        (lambda: natural_gradient(robot.with_inertia("link1", mass=0.0), gain=1.0), "link1"),
        (
            lambda: recursive_least_squares(robot).run(np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((2, 2)), np.zeros((3, 2))),
            "a has shape",
        ),
    ]:
        with pytest.raises(cj.CoadjointError, match=match):
            call()
