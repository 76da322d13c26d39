"""Energy shaping and balancing with fewer motors than freedoms."""

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import control
from coadjoint.errors import CoadjointError
from laws import rate

TOP = {"cartpole": ([0.0, 0.0], "slide"), "furuta": ([0.0, np.pi], "arm_joint"), "planar2r": ([np.pi / 2, 0.0], "joint2")}


@pytest.mark.parametrize("name", TOP)
def test_the_shaped_energy_falls_by_the_speed_of_the_motor(name):
    robot, (goal, motor) = cj.load(name), TOP[name]
    rng = np.random.default_rng(1)
    k = robot.v_slice(motor).start
    scale = abs(cj.potential_energy(robot, goal)) + 1e-3
    one = control.swing_up(robot, goal, actuated=[motor], kE=1.0, kd=50 * scale, kp=3.0, kv=2.0)
    for _ in range(3):
        q, v = rng.normal(size=2), rng.normal(size=2)
        tau = one.force(q, v, 0.0)
        assert not np.delete(tau, k).any()
        a = cj.forward_dynamics(robot, q, v, tau)
        found = rate(lambda h, q=q, v=v, a=a: one.lyapunov(q + h * v, v + h * a, 0.0))
        np.testing.assert_allclose(found, -2.0 * v[k] ** 2, rtol=1e-6, atol=1e-8 * scale)


@pytest.mark.parametrize("name", TOP)
def test_balancing_is_stable_by_the_eigenvalues_of_the_closed_loop(name):
    robot, (goal, motor) = cj.load(name), TOP[name]
    one = control.balance(robot, goal, actuated=[motor])
    A, B = cj.linearize(robot, np.array(goal), np.zeros(2), one.gains["tau"])
    k = [robot.v_slice(motor).start]
    assert np.linalg.eigvals(A - B[:, k] @ one.gains["K"]).real.max() < 0
    assert np.linalg.eigvals(A).real.max() > 0  # without it the robot falls
    x = np.array([1e-4, -2e-4, 1e-4, 3e-4])
    expected = one.gains["tau"][k] - one.gains["K"] @ x
    np.testing.assert_allclose(one.force(np.array(goal) + x[:2], x[2:], 0.0)[k], expected, rtol=1e-9)


def test_a_turn_more_is_the_same_place():
    robot, (goal, motor) = cj.load("cartpole"), TOP["cartpole"]
    one = control.balance(robot, goal, actuated=[motor])
    q, v = np.array([0.1, 0.05]), np.array([0.2, -0.1])
    np.testing.assert_allclose(one.force(q + np.array([0.0, 4 * np.pi]), v, 0.0), one.force(q, v, 0.0), rtol=1e-9)


SWINGS = {
    "furuta": ([0.0, 0.3], {"kd": 1.5e-5, "kp": 1.25e-3, "kv": 1.25e-4}, 1e3, 2.0),
    "cartpole": ([0.0, np.pi - 0.1], {"kd": 2.0, "kp": 14.0, "kv": 0.27}, 1.0, 2.0),
    "planar2r": ([0.1 - np.pi / 2, 0.05], {"kd": 19.0, "kp": 26.0, "kv": 22.0}, 1.0, 15.0),
}
"""Where each starts, close to hanging; the gains; the cost of force of the regulator that catches it, and where it takes over."""


@pytest.mark.native
@pytest.mark.parametrize("name", ["cartpole", *(pytest.param(x, marks=pytest.mark.slow) for x in ("furuta", "planar2r"))])
def test_it_swings_up_and_stays(name):
    """The Furuta pendulum, the cart with a pole and the acrobot, from almost hanging to rest at the top."""
    robot, (top, motor) = cj.load(name), TOP[name]
    start, gains, cost, capture = SWINGS[name]
    catch = control.balance(robot, top, actuated=[motor], force_cost=cost)
    up = control.swing_up(robot, top, actuated=[motor], catch=catch, capture=capture, kE=1.0, **gains)
    q, v = cj.rollout(robot, [start], [[0.0, 0.0]], dt=1e-3, steps=20000, control=up, method="rk4")
    assert catch.lyapunov(q[0, 0], v[0, 0], 0.0) > 10 * capture
    assert catch.lyapunov(q[0, -1], v[0, -1], 0.0) < 1e-4
    assert cj.potential_energy(robot, q[0, -1]) == pytest.approx(cj.potential_energy(robot, np.array(top)), rel=1e-4)


def test_goals_without_rest_and_joints_without_motor_are_refused():
    robot = cj.load("planar2r")
    with pytest.raises(CoadjointError, match="does not rest at the goal: joint1 needs"):
        control.balance(robot, [0.3, 0.2], actuated=["joint2"])
    with pytest.raises(CoadjointError, match="expected a list of joints that have motors"):
        control.balance(robot, [np.pi / 2, 0.0], actuated=[])
    with pytest.raises(CoadjointError, match="expected a list of joints that have motors"):
        control.balance(robot, [np.pi / 2, 0.0], actuated="joint2")
    swing = {"actuated": ["joint2"], "kE": 1.0, "kd": 1.0, "kv": 1.0}
    with pytest.raises(CoadjointError, match="kp is -1"):
        control.swing_up(robot, [np.pi / 2, 0.0], kp=-1.0, **swing)
    with pytest.raises(CoadjointError, match="catch is 'x'; expected a controller with a Lyapunov function"):
        control.swing_up(robot, [np.pi / 2, 0.0], kp=1.0, catch="x", **swing)
    with pytest.raises(CoadjointError, match="does not rest at the goal: joint1 needs"):
        control.swing_up(robot, [0.3, 0.2], kp=1.0, **swing)
    elsewhere = control.balance(robot, [-np.pi / 2, 0.0], actuated=["joint2"])
    with pytest.raises(CoadjointError, match="catch aims at"):
        control.swing_up(robot, [np.pi / 2, 0.0], kp=1.0, catch=elsewhere, **swing)
