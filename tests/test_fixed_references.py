"""What a controller was made of stays: references with variables that change, limits of velocity, entries that are masked."""

import contextlib
import gc
import pickle

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import control
from coadjoint.errors import CoadjointError

ARM = cj.load("planar2r")
Q, V, STILL = np.array([0.1, 0.2]), np.array([0.3, -0.4]), np.zeros(2)


@pytest.mark.native
def test_a_reference_keeps_the_values_that_its_variables_had():
    """Traced once, when the controller is made: `force`, `lyapunov`, `rollout`, `closed_loop`, C and pickles agree ever after."""
    size = {"x": 0.2}
    reference = lambda t: (np.array([size["x"] * np.sin(t), 0.0]), STILL, STILL)
    first = control.computed_torque(ARM, reference, kp=25.0, kd=10.0)
    source = cj.export.c(first.graph())
    size["x"] = 0.6
    second = control.computed_torque(ARM, reference, kp=25.0, kd=10.0)
    for one, x in ((first, 0.2), (second, 0.6)):
        a = 25.0 * (np.array([x * np.sin(0.7), 0.0]) - Q) - 10.0 * V
        for found in (one, pickle.loads(pickle.dumps(one))):
            np.testing.assert_allclose(found.force(Q, V, 0.7), cj.inverse_dynamics(ARM, Q, V, a), rtol=1e-12)
        e, w = np.array([x * np.sin(0.7), 0.0]) - Q, -V
        np.testing.assert_allclose(one.lyapunov(Q, V, 0.7), 0.5 * w @ w + 12.5 * e @ e, rtol=1e-12)
        np.testing.assert_allclose(one.reference(0.7)[0], [x * np.sin(0.7), 0.0], rtol=1e-15)
    assert cj.export.c(first.graph()) == source != cj.export.c(second.graph())
    rolled = [cj.rollout(ARM, Q, V, dt=1e-3, steps=200, control=one)[0] for one in (first, second)]
    loops = [control.closed_loop(ARM, one, Q, V, 0.2).q for one in (first, second)]
    assert np.abs(rolled[0] - rolled[1]).max() > 1e-3
    for a, b in zip(rolled, loops, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-3)


def test_wrenches_and_poses_keep_them_too():
    robot, q = cj.load("puma560"), np.array([0.3, -0.7, 0.4, 0.5, 0.9, -0.2])
    load, X = np.ones(6), np.asarray(cj.pose(robot, q, "tip"))
    pose = lambda t: (X @ cj.lie.se3.exp(load * np.sin(t)), load * np.cos(t), -load * np.sin(t))
    options = {"stiffness": 30.0, "damping": 9.0, "inertia": np.eye(6), "wrench": lambda t: load * np.cos(t)}
    one = control.impedance(robot, "tip", pose, **options)
    expected = one.force(q, STILL.repeat(3), 0.3)
    load[:] = 7.0
    np.testing.assert_array_equal(one.force(q, STILL.repeat(3), 0.3), expected)
    assert np.abs(control.impedance(robot, "tip", pose, **options).force(q, STILL.repeat(3), 0.3) - expected).max() > 1e-3


def test_a_reference_that_cannot_be_traced_is_read_anew():
    goal = [0.5]
    one = control.computed_torque(ARM, lambda t: (np.array([goal[0], 0.0]), STILL, STILL), kp=25.0, kd=10.0)
    for goal[0] in (0.5, 0.9):
        a = 25.0 * (np.array([goal[0], 0.0]) - Q) - 10.0 * V
        np.testing.assert_allclose(one.force(Q, V, 0.0), cj.inverse_dynamics(ARM, Q, V, a), rtol=1e-12)


def by_type(t):
    return (Q * t + (1.0 if isinstance(t, float) else 0.0), V + t, STILL)


def by_error(t):
    try:
        k = int(10 * t)
    except Exception:
        k = 0
    return (Q * t + k, V + t, STILL)


def later(t):
    try:
        k = int(t // 5)
    except Exception:
        k = 0
    return (Q * t + k, V + t, STILL)


def in_place(t):
    q = np.zeros(2)
    with contextlib.suppress(Exception):
        q[0] = t
    return (q, V + t, STILL)


@pytest.mark.parametrize("reference", [by_type, by_error, later, in_place])
def test_a_function_that_is_another_one_for_symbols_is_not_traced(reference):
    """What it gives for a number holds."""
    one = control.computed_torque(ARM, reference, kp=25.0, kd=10.0)
    q, v, a = reference(5.7)
    expected = cj.inverse_dynamics(ARM, Q, V, a + 10.0 * (v - V) + 25.0 * (q - Q))
    np.testing.assert_allclose(one.force(Q, V, 5.7), expected, rtol=1e-12)
    with pytest.raises(CoadjointError, match="another one for a number"):
        cj.rollout(ARM, Q, V, dt=1e-3, steps=1, control=lambda robot, q, v, t: one.force(q, v, t))


@pytest.mark.native
def test_closed_loops_of_controllers_that_come_and_go_are_their_own():
    """No loop is taken for one of a controller that was at the same place in memory before."""
    for x in (0.1, 0.4, 0.7):
        one = control.pd(ARM, lambda t, x=x: (np.array([x, 0.0]) + 0.0 * t, STILL, STILL), kp=25.0, kd=10.0)
        loop = control.closed_loop(ARM, one, STILL, STILL, 1e-3)
        np.testing.assert_allclose(loop.tau[0], cj.gravity_force(ARM, STILL) + np.array([25.0 * x, 0.0]), rtol=1e-12)
        del one, loop
        gc.collect()


def test_references_faster_than_the_joints_are_refused_before_any_work():
    arm = ARM.with_joint("joint2", velocity=2.0)
    fast = control.computed_torque(arm, control.sinusoid(arm, 0.0, [0.1, 0.5], 1.0), kp=100.0, kd=20.0)
    sudden = control.pd(arm, lambda t: (STILL, np.array([0.0, 3.0 if t < 9 else 0.0]), STILL), kp=1.0, kd=1.0)
    words = r"the reference moves joint2 with the velocity 3(\.\d+)? at t = 0 s, whose limit is 2; choose a slower reference"
    for call in (
        lambda: cj.simulate(arm, STILL, STILL, 0.3, control=fast),
        lambda: cj.rollout(arm, STILL, STILL, dt=1e-2, steps=30, control=fast),
        lambda: control.closed_loop(arm, fast, STILL, STILL, 0.3),
        lambda: sudden.force(STILL, STILL, 0.0),
        lambda: control.limited(fast, effort=9.0, velocity=False, position=False).check_reference([0.0]),
    ):
        with pytest.raises(CoadjointError, match=words):
            call()
    control.limited(fast, effort=False, position=False).check_reference([0.0])  # keeps the limit itself
    slow = control.computed_torque(arm, control.sinusoid(arm, 0.0, [9.0, 0.3], 1.0), kp=100.0, kd=20.0)
    slow.check_reference(np.linspace(0, 1, 50))  # 1.9 of 2; the other joint has no limit


def test_masked_entries_and_gains_are_refused_by_name():
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    whole = np.ma.masked_array([1.0, 2.0], False)
    made = lambda **other: control.pd(ARM, **{"reference": Q, "kp": 1.0, "kd": 1.0} | other)
    np.testing.assert_array_equal(made(kp=whole).gains["kp"], np.diag([1.0, 2.0]))
    for call, words in [
        (lambda: made(kp=masked), r"kp\[1\] is nan; gains must be positive and finite. This one is for joint2"),
        (lambda: made(kd=[1.0, -3.0]), r"kd\[1\] is -3; gains must be positive and finite. This one is for joint2"),
        (lambda: made(reference=masked), "q has entries that are not finite"),
        (lambda: made(reference=lambda t: (masked, STILL, STILL)).force(Q, V, 0.0), r"gave q that has a masked entry at \[1\]"),
        (lambda: control.hybrid(ARM, cj.Constraint.point(ARM, "tip", axes="x"), Q, force=np.ma.masked_all(1), kp=1.0, kd=1.0), "force is"),
        (lambda: control.limited(made(), effort=masked, velocity=False, position=False), "effort of joint2 is nan"),
        (lambda: control.limited(made(), effort=9.0, velocity=False, position=(masked, 3.0)), "position"),
        (lambda: control.FrameTask("tip", np.eye(4), kp=[1, 1, 1, 1, 0, 1.0], kd=1.0), r"kp\[4\] is 0.*This one is for v along y"),
    ]:  # fmt: skip
        with pytest.raises(CoadjointError, match=words):
            call()
    with pytest.raises(ValueError, match="read-only"):
        made().gains["kp"][0, 0] = 3.0


@pytest.mark.native
@pytest.mark.parametrize("sampled", [False, True])
def test_times_that_are_no_numbers_are_refused(sampled):
    one = control.pd(ARM, control.sinusoid(ARM, 0.1, 0.1, 1.0), kp=1.0, kd=1.0)
    learning = control.adaptive(ARM, Q, rate=5.0, damping=4.0, adaptation=1.0, metric="euclidean")
    ask = (lambda t: learning.step(Q, V, t, learning.initial)) if sampled else (lambda t: one.force(Q, V, t))
    ask(-0.5)  # a time before the start is one
    for t in (np.nan, np.inf, np.array([0.1, np.nan]), "now", None):
        with pytest.raises(CoadjointError, match=r"t is .*; expected finite times|t is .*; expected real"):
            ask(t)


def test_a_controller_of_another_robot_is_refused():
    robot, q = cj.load("planar3r"), np.zeros(3)
    one = control.pd(ARM, Q, kp=1.0, kd=1.0)
    for call in (
        lambda: cj.simulate(robot, q, q, 0.1, control=one),
        lambda: cj.simulate(robot, q, q, 0.1, control=control.sampled(one)),
        lambda: cj.rollout(robot, q, q, dt=1e-3, steps=2, control=one),
        lambda: control.closed_loop(robot, one, q, q, 0.1),
    ):
        with pytest.raises(CoadjointError, match="made for robot 'planar2r' with 2 coordinates; robot 'planar3r' has 3"):
            call()
