"""Elastic joints: simulated drives come back exactly, also from positions alone; motor and link equations undo each other."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import CoadjointError, LogWarning
from coadjoint.identification import elastic_joints

pytestmark = pytest.mark.native

K, D, B, F = np.array([900.0, 500.0]), np.array([3.0, 2.0]), np.array([0.3, 0.2]), np.array([0.6, 0.4])


@pytest.fixture(scope="module")
def arm():
    robot = cj.load("planar2r")
    for link in robot.link_names:
        robot = robot.with_inertia(link, mass=1.0, com=(0.5, 0.0, 0.0), inertia=0.08)
    return robot


@pytest.fixture(scope="module")
def recorded(arm):
    """Two coupled equations by Runge and Kutta's method, under forces that follow a reference of the motors; every row is exact."""
    h, rows = 0.002, 2000
    w = 2 * np.pi * np.array([[0.5, 0.8], [1.3, 1.7]])

    def force(t, theta, omega):
        goal = np.sin(w[0] * t) + 0.3 * np.cos(w[1] * t)
        rate = w[0] * np.cos(w[0] * t) - 0.3 * w[1] * np.sin(w[1] * t)
        return 200.0 * (goal - theta) + 15.0 * (rate - omega)

    def slope(t, x):
        q, v, theta, omega = x
        spring, tau = K * (theta - q) + D * (omega - v), force(t, theta, omega)
        return np.stack([v, cj.forward_dynamics(arm, q, v, spring - 0.1 * v), omega, (tau - spring - F * omega - 0.5) / B])

    x, states, slopes, forces = np.zeros((4, 2)), [], [], []
    for k in range(rows):
        t = h * k
        k1 = slope(t, x)
        states.append(x)
        slopes.append(k1)
        forces.append(force(t, x[2], x[3]))
        k2 = slope(t + h / 2, x + h / 2 * k1)
        k3 = slope(t + h / 2, x + h / 2 * k2)
        k4 = slope(t + h, x + h * k3)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    states, slopes = np.array(states), np.array(slopes)
    log = {"time": h * np.arange(rows), "q": states[:, 0], "v": states[:, 1], "a": slopes[:, 1], "tau": np.array(forces)}
    return log | {"theta": states[:, 2], "omega": states[:, 3], "alpha": slopes[:, 3]}


def test_exact_data_return_exactly(arm, recorded):
    with pytest.warns(LogWarning, match="0.769 times"):  # as it should: all links are described too heavy
        fit = elastic_joints(
            arm.with_inertial_parameters(1.3 * arm.inertial_parameters),
            recorded,
            friction=("viscous", "offset"),
            cutoff=None,
        )
    for found, expected in ((fit.stiffness, K), (fit.damping, D), (fit.inertia, B), (fit.numbers["viscous"], F)):
        assert np.abs(found / expected - 1.0).max() < 1e-8
    assert np.abs(fit.numbers["offset"] - 0.5).max() < 1e-7
    assert fit.rms.max() < 1e-8
    base = cj.base_parameters(arm)
    assert np.abs(base.values(fit.link.rigid) - base.values(arm)).max() < 1e-7
    assert np.abs(fit.robot.damping - 0.1).max() < 1e-6
    assert "stiffness" in str(fit)
    # forward and inverse dynamics undo each other
    state = [recorded[name][::50] for name in ("q", "v", "theta", "omega")]
    a, alpha = fit.accelerations(*state, recorded["tau"][::50])
    assert np.abs(alpha - recorded["alpha"][::50]).max() < 1e-5
    assert np.abs(a - recorded["a"][::50]).max() < 1e-4
    assert np.allclose(fit.motor_force(*state, alpha), recorded["tau"][::50], atol=1e-9)


def test_positions_with_noise_are_enough(arm, recorded):
    rng = np.random.default_rng(0)
    log = {name: recorded[name] for name in ("time", "q", "theta", "tau")}
    log = log | {name: log[name] + 1e-6 * rng.normal(size=log[name].shape) for name in ("q", "theta")}
    fit = elastic_joints(arm, log, friction=("viscous", "offset"), cutoff=25.0)
    assert np.abs(fit.stiffness / K - 1.0).max() < 0.03
    assert np.abs(fit.inertia / B - 1.0).max() < 0.05
    assert fit.parameters[f"{arm.joint_names[0]}.stiffness"].is_visible


def test_wrong_logs_are_named(arm, recorded):
    plain = {name: recorded[name] for name in ("time", "q", "v", "a", "tau")}
    with pytest.raises(CoadjointError, match="there are no motor positions theta1"):
        elastic_joints(arm, plain)
    with pytest.raises(CoadjointError, match="no spring between them"):
        elastic_joints(arm, plain | {"theta": recorded["q"]})
    with pytest.raises(CoadjointError, match="theta has shape"):
        elastic_joints(arm, plain | {"theta": recorded["theta"][:, :1]})
    with pytest.raises(CoadjointError, match="friction has 'load'"):
        elastic_joints(arm, recorded, friction=("load",))
    with pytest.raises(CoadjointError, match="not finite"):
        elastic_joints(arm, plain | {"theta": np.where(np.arange(2000)[:, None] == 3, np.nan, recorded["theta"])})
