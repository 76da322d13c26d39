"""Output error: exact sensitivities, and parameters that return from simulated motions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import coadjoint as cj
from coadjoint.identification.output_error import Problem, _stretches, output_error
from coadjoint.lie import inertia
from coadjoint.motion.logs import read_log
from random_robots import random_robot

pytestmark = pytest.mark.native


@pytest.fixture(scope="module")
def arm():
    robot = random_robot(5, 2, ["revolute"], tree=False)
    return robot.with_joint("j0", armature=0.2, damping=0.5).with_joint("j1", armature=0.1, damping=0.3)


def forces(robot, t):
    return np.stack([6 * np.sin(2 * np.pi * (1 + k) * t + k) + 3 * np.cos(7.0 * t * (1 + 0.3 * k)) for k in range(robot.nv)], 1)


def simulated(robot, step=2e-3, count=200):
    """The motion under forces that change linearly between samples, by an integrator of order 8; Coulomb friction smoothed by tanh."""
    t = step * np.arange(count + 1)
    tau, n = forces(robot, t), robot.nv

    def rate(s, x):
        u = np.array([np.interp(s, t, y) for y in tau.T])
        u = u - robot.damping * x[n:] - robot.friction * np.tanh(x[n:] / 0.05)
        return np.concatenate([x[n:], cj.forward_dynamics(robot, x[:n], x[n:], u)])

    x, states = np.zeros(2 * n), [np.zeros(2 * n)]
    for k in range(count):
        x = solve_ivp(rate, (t[k], t[k + 1]), x, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
        states.append(x)
    states = np.array(states)
    return {"time": t, "q": states[:, :n], "v": states[:, n:], "tau": tau}


@pytest.fixture(scope="module")
def log(arm):
    return simulated(arm)


def other(robot):
    """The robot with numbers that are some ten per cent off."""
    factor = np.repeat([1.3, 0.8, 1.2, 0.9][: robot.n_links], 10)
    return robot.with_inertial_parameters(robot.inertial_parameters * factor)


@pytest.mark.parametrize("method", ["direct", "inverse"])
def test_sensitivities_are_the_derivatives_of_the_simulated_motion(arm, log, method):
    friction = arm.with_joint("j0", friction=0.4)
    for drives in (False, True):
        base = cj.base_parameters(friction, drives=drives)
        parts = _stretches(friction, read_log(log, friction), 0.05, None, None, method)
        parts = tuple(x[:3] for x in parts)
        gains = (np.array([30.0, 20.0]), np.array([3.0, 2.0]))
        problem = Problem(friction, base, *parts, *gains, method == "inverse", True, 2, drives)
        e, start = problem.initial(), np.concatenate([parts[1][:, 0], parts[2][:, 0]], axis=-1)
        rng = np.random.default_rng(0)
        size = 10 * friction.n_links + (6 if drives else 0)
        delta, shift = rng.normal(size=size), rng.normal(size=start.shape)
        _, J = problem.residuals(e, start)
        T = e.tangent
        d_phi = T @ delta[: len(T)]
        d_phi = np.concatenate([d_phi, e.drives * delta[len(T) :]]) if drives else d_phi
        change = np.concatenate([np.broadcast_to(base.matrix @ d_phi, (3, base.rank)), shift], axis=-1)
        exact = -np.einsum("skic,sc->ski", J, change)
        h = 1e-5
        low, high = (problem.residuals(e.moved(s * h * delta), start + s * h * shift)[0] for s in (-1, 1))
        np.testing.assert_allclose((high - low) / (2 * h), exact, rtol=1e-6, atol=2e-8 * np.abs(exact).max())


@pytest.mark.slow
def test_parameters_return_from_a_simulated_motion(arm, log):
    """From numbers that are 20-30 % off, drives known; every link stays a possible body, and the prediction is exact everywhere."""
    found = output_error(other(arm), log, horizon=0.2, substeps=2)
    base = cj.base_parameters(arm)
    assert found.converged
    np.testing.assert_allclose(found.values, base.values(arm), rtol=1e-8, atol=1e-8)
    np.linalg.cholesky(inertia.pseudo(found.robot.inertial_parameters.reshape(-1, 10)))
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 50, 2))
    np.testing.assert_allclose(cj.inverse_dynamics(found.robot, q, v, a), cj.inverse_dynamics(arm, q, v, a), rtol=1e-7, atol=1e-6)


@pytest.mark.slow
def test_drives_return_as_well(arm):
    arm = arm.with_joint("j0", friction=0.4).with_joint("j1", friction=0.3)
    start = other(arm).with_parameters("drives", arm.parameters("drives") * 1.3)
    found = output_error(start, simulated(arm), horizon=0.2, substeps=2, drives=True)
    base = cj.base_parameters(arm, drives=True)
    np.testing.assert_allclose(found.values, base.values(arm), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_the_forces_of_a_controller_are_enough(arm):
    """Inverse output error: a closed loop that follows a reference, of which positions and forces are recorded."""
    t = 2e-3 * np.arange(201)
    kp, kd = np.array([60.0, 40.0]), np.array([8.0, 5.0])
    q_r = lambda t: np.stack([0.8 * (1 - np.cos(5 * t)), 0.6 * np.sin(7 * t) - 0.5 * np.sin(3 * t)], -1)
    v_r = lambda t: np.stack([4.0 * np.sin(5 * t), 4.2 * np.cos(7 * t) - 1.5 * np.cos(3 * t)], -1)

    def control(s, x):
        return kp * (q_r(s) - x[:2]) + kd * (v_r(s) - x[2:])

    def rate(s, x):
        return np.concatenate([x[2:], cj.forward_dynamics(arm, x[:2], x[2:], control(s, x) - arm.damping * x[2:])])

    x, states = np.zeros(4), [np.zeros(4)]
    for k in range(200):
        x = solve_ivp(rate, (t[k], t[k + 1]), x, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
        states.append(x)
    states = np.array(states)
    tau = np.array([control(s, x) for s, x in zip(t, states, strict=True)])
    log = {"time": t, "q": states[:, :2], "v": states[:, 2:], "tau": tau}
    found = output_error(other(arm), log, method="inverse", kp=kp, kd=kd, reference=(q_r(t), v_r(t)), horizon=0.2, substeps=4)
    np.testing.assert_allclose(found.values, cj.base_parameters(arm).values(arm), rtol=1e-7, atol=1e-7)


@pytest.mark.slow
def test_gains_hold_a_motion_that_would_run_away(arm, log):
    """One stretch of the whole log from a wrong robot, pulled to the measured motion; hidden numbers stay as they were."""
    start = other(arm)
    found = output_error(start, log, horizon=0.4, kp=100.0, kd=10.0, substeps=2)
    np.testing.assert_allclose(found.values, cj.base_parameters(arm).values(arm), rtol=1e-7, atol=1e-7)


def test_what_is_not_shown_has_no_interval(arm):
    """Without gravity and acceleration nothing shows; the numbers stay."""
    still = arm.with_gravity((0, 0, 0)).with_joint("j0", damping=0.0).with_joint("j1", damping=0.0)
    t = 0.01 * np.arange(50)
    zero = np.zeros((50, 2))
    found = output_error(still, {"time": t, "q": zero, "v": zero, "tau": zero}, horizon=0.1)
    assert np.isinf(found.deviation).all()
    np.testing.assert_allclose(found.robot.inertial_parameters, still.inertial_parameters, rtol=1e-9)


def test_bad_input(arm, log):
    for given, options, match in [
        ({k: x for k, x in log.items() if k != "tau"}, {}, "no joint forces"),
        (log, {"method": "inverse"}, "needs its gains"),
        (log, {"method": "magic"}, "direct"),
        (log, {"horizon": 0.0}, "positive"),
        (log, {"horizon": 1e-4}, "2 steps"),
        (log, {"horizon": 100.0}, "one stretch at least"),
        (log, {"reference": 3.0}, "q_r, v_r"),
        (log, {"feedforward": np.zeros((3, 2))}, "feedforward"),
        (log, {"substeps": 0}, "substeps"),
    ]:
        with pytest.raises(cj.CoadjointError, match=match):
            output_error(arm, given, **options)
    with pytest.raises(cj.CoadjointError, match="has no mass"):
        output_error(arm.with_inertia("l1", mass=0.0), log, horizon=0.2)
