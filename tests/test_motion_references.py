"""Motions as references: they are tracked as functions of time that give the same q, v and a."""

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import control
from coadjoint.errors import CoadjointError
from random_robots import random_robot

ARM = cj.load("planar2r")


@pytest.mark.native
@pytest.mark.parametrize("dense", [True, False])
def test_the_forces_along_a_motion_are_those_that_made_it(dense):
    """At zero error computed torque is inverse dynamics of the motion's own accelerations."""
    robot = random_robot(2, 2, ["free", "revolute"], tree=False)
    push, times = np.linspace(-1, 1, robot.nv), np.linspace(0.5, 1.0, 201)
    motion = cj.simulate(robot, robot.neutral(), np.linspace(1, 0, robot.nv), times, control=push)
    if not dense:
        motion = cj.Trajectory(robot, motion.time, motion.q, motion.v, motion.tau)
    one = control.computed_torque(robot, motion, kp=30.0, kd=9.0)
    for t in (0.5, 0.61234, 1.0):
        np.testing.assert_allclose(one.force(*motion(t), t), push, atol=1e-6 if dense else 0.1)
    for t, k in ((0.0, 0), (2.0, -1)):
        q, v, a = one.reference(t)
        np.testing.assert_allclose(q, motion.q[k], atol=1e-12)
        assert not v.any()
        assert not a.any()


@pytest.mark.slow
@pytest.mark.native
def test_motions_that_were_planned_are_tracked_and_held_at_the_end():
    slow = cj.optimal_motion(ARM, [0.0, 0.0], [0.5, -0.5], 0.5)
    fast = cj.time_optimal(ARM, np.array([[0.0, 0.0], [0.3, -0.6], [0.5, -0.5]]), velocity=2.0, effort=100.0)
    for planned in (slow, fast):
        one = control.computed_torque(ARM, planned, kp=400.0, kd=40.0)
        motion = cj.simulate(ARM, [0.0, 0.0], [0.0, 0.0], [0.0, 0.5 * planned.duration, planned.duration + 0.1], control=one)
        np.testing.assert_allclose(motion.q[1], planned(0.5 * planned.duration)[0], atol=1e-6)
        np.testing.assert_allclose(motion.q[2], [0.5, -0.5], atol=1e-5)
        loop = control.closed_loop(ARM, one, [0.0, 0.0], [0.0, 0.0], planned.duration + 0.5)
        np.testing.assert_allclose(loop.q[-1], [0.5, -0.5], atol=1e-4)


def test_motions_that_do_not_fit_are_refused():
    motion = cj.simulate(ARM, [0.0, 0.0], [0.0, 0.0], np.linspace(0, 0.1, 3))
    many = cj.simulate(ARM, np.zeros((2, 2)), np.zeros(2), np.linspace(0, 0.1, 3))
    narrow = ARM.with_joint("joint1", lower=-1e-3, upper=1e-3)
    track = lambda robot, x: control.computed_torque(robot, x, kp=9.0, kd=6.0)
    for call, words in [
        (lambda: track(cj.load("planar3r"), motion), "a motion of 'planar2r' with 2 coordinates; robot 'planar3r' has 3"),
        (lambda: track(ARM, many), "a batch of motions; give one of them"),
        (lambda: cj.simulate(narrow, np.zeros(2), np.zeros(2), 0.1, control=track(narrow, motion)), "for joint1 at t = "),
    ]:  # fmt: skip
        with pytest.raises(CoadjointError, match=words):
            call()


def test_motions_are_tracked_as_they_were():
    """Their arrays may change later."""
    time = np.linspace(0.0, 1.0, 21)
    q, v = np.outer(np.sin(time), [1.0, 0.5]), np.outer(np.cos(time), [1.0, 0.5])
    motion = cj.Trajectory(ARM, time, q, v, np.ones((21, 2)))
    laws = [control.computed_torque(ARM, motion, kp=25.0, kd=10.0), control.lqr_tracking(ARM, motion)]
    state = q[3].copy(), v[5].copy(), 0.33
    expected = [one.force(*state) for one in laws]
    for array in (motion.time, motion.q, motion.v, motion.tau):
        array *= 2.0
    for one, tau in zip(laws, expected, strict=True):
        np.testing.assert_array_equal(one.force(*state), tau)
