"""References that cannot be traced or are beyond limits, loops that fail, and impedances with a measured wrench."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import coadjoint as cj
from coadjoint import control
from coadjoint.control.workspace import frame_error
from coadjoint.errors import CoadjointError
from coadjoint.lie import se3

ARM = cj.load("planar2r")


def stream(rows):
    """A function of time that gives one row after the other, whatever the time is."""
    given = iter(rows)
    return lambda t: (next(given), np.zeros(2), np.zeros(2))


@pytest.mark.native
@pytest.mark.parametrize("kind", ["spline", "table", "branch", "stream"])
@pytest.mark.parametrize("sampled", [False, True])
def test_sampled_loops_take_references_that_cannot_be_traced(kind, sampled):
    """Evaluated at every sample, in order: the loop is that of the same reference written with array operations."""
    arm, h, steps = ARM, 1e-3, 20
    rows = np.sin(3 * h * np.arange(steps + 2))[:, None] * [0.3, -0.2]
    still = np.zeros(2)
    spline = CubicSpline(h * np.arange(steps + 2), rows)
    by = {
        "spline": lambda: lambda t: (spline(t), still, still),
        "table": lambda: lambda t: (rows[round(t / h)], still, still),
        "branch": lambda: lambda t: (np.sin(3 * t) * np.array([0.3, -0.2]) if t < 1.0 else still, still, still),
        "stream": lambda: stream([rows[0], *rows]),  # one is read to see whether it can be traced
    }[kind]()
    traced = lambda t: (np.array([0.3 * np.sin(3 * t), -0.2 * np.sin(3 * t)]), still, still)
    make = (
        (lambda x: control.adaptive(arm, x, rate=5.0, damping=4.0, adaptation=1.0, metric="base"))
        if sampled
        else (lambda x: control.computed_torque(arm, x, kp=100.0, kd=20.0))
    )
    expected = control.closed_loop(arm, make(traced), [0.1, 0.2], [0.0, 0.0], steps * h)
    found = control.closed_loop(arm, make(by), [0.1, 0.2], [0.0, 0.0], steps * h)
    np.testing.assert_allclose(found.tau, expected.tau, rtol=1e-9, atol=1e-9)
    if sampled and kind != "stream":
        running = make(by).start()
        motion = cj.simulate(arm, [0.1, 0.2], [0.0, 0.0], [0.0, steps * h], control=running, period=h)
        np.testing.assert_allclose(motion.q[-1], expected.q[-1], atol=1e-7)


@pytest.mark.native
@pytest.mark.parametrize("method", ["euler", "rk4", "variational"])
def test_rollouts_evaluate_what_cannot_be_traced_at_their_stages(method):
    """A spline moves a batch of robots as the same function does that can be traced, and so does a controller with a state."""
    goal = np.array([0.3, -0.2])
    traced = lambda t: (goal * np.sin(3 * t), 3 * goal * np.cos(3 * t), -9 * goal * np.sin(3 * t))
    outside = lambda t: tuple(np.asarray(x) for x in traced(float(t)))
    q, v = np.array([[0.1, 0.2], [-0.3, 0.5]]), np.zeros((2, 2))
    given = {"dt": 4e-3, "steps": 40, "method": method, "parameters": {"masses": np.array([[1.0, 1.0], [1.5, 0.7]])}}
    expected, found = (cj.rollout(ARM, q, v, control=control.pd_plus(ARM, x, kp=30.0, kd=5.0), **given) for x in (traced, outside))
    np.testing.assert_allclose(found[0], expected[0], atol=1e-11)
    if method != "variational":
        learning = (
            control.adaptive(ARM, x, rate=5.0, damping=4.0, adaptation=1.0, period=4e-3, metric="base") for x in (traced, outside)
        )
        expected, found = (cj.rollout(ARM, q, v, control=one, **given) for one in learning)
        np.testing.assert_allclose(found[0], expected[0], atol=1e-11)


@pytest.mark.native
@pytest.mark.parametrize("method", ["variational", "symplectic"])
def test_symplectic_steps_evaluate_what_cannot_be_traced_in_their_middles(method):
    """Of one robot and of a batch; the forces, too, are those of the same function that can be traced."""
    goal = np.array([0.3, -0.2])
    traced = lambda t: (goal * np.sin(3 * t), 3 * goal * np.cos(3 * t), -9 * goal * np.sin(3 * t))
    outside = lambda t: tuple(np.asarray(x) for x in traced(float(t)))
    q, times = np.array([[0.1, 0.2], [-0.3, 0.5]]), np.array([0.5, 0.51, 0.54])
    for start in (q, q[0]):
        both = (control.pd_plus(ARM, x, kp=30.0, kd=5.0) for x in (traced, outside))
        expected, found = (cj.simulate(ARM, start, np.zeros(2), times, control=one, method=method) for one in both)
        np.testing.assert_allclose(found.q, expected.q, atol=1e-12)
        np.testing.assert_allclose(found.tau, expected.tau, atol=1e-9)


@pytest.mark.native
def test_batches_of_simulate_take_what_cannot_be_traced():
    motion = cj.simulate(ARM, [0.2, 0.3], [0.0, 0.0], np.linspace(0, 0.1, 3), control=np.array([1.0, -0.5]))
    one = control.lqr_tracking(ARM, motion)
    q = motion.q[0] + np.array([[0.05, 0.0], [0.0, -0.1]])
    many = cj.simulate(ARM, q, np.zeros((2, 2)), 0.1, control=one)
    for k in range(2):
        alone = cj.simulate(ARM, q[k], np.zeros(2), 0.1, control=one)
        np.testing.assert_allclose(many.q[k, -1], alone.q[-1], atol=1e-12)
    rolled = cj.rollout(ARM, q, np.zeros((2, 2)), dt=1e-3, steps=100, control=one, method="rk4")[0]
    np.testing.assert_allclose(rolled[:, -1], many.q[:, -1], atol=1e-8)


def test_references_beyond_limits_are_refused_before_any_work():
    arm = ARM.with_joint("joint2", lower=-1.0, upper=1.0)
    far = control.computed_torque(arm, control.sinusoid(arm, 0.0, 1.5, 1.0), kp=100.0, kd=20.0)
    words = r"the reference has 1\.\d+ for joint2 at t = .* whose limits are -1 and 1; choose a reference within"
    for call in (
        lambda: cj.simulate(arm, np.zeros(2), np.zeros(2), 0.3, control=far),
        lambda: cj.rollout(arm, np.zeros(2), np.zeros(2), dt=1e-2, steps=30, control=far),
        lambda: control.closed_loop(arm, far, np.zeros(2), np.zeros(2), 0.3),
        lambda: control.pd(arm, lambda t: ([0.0, 1.2 if t < 9 else 0.0], np.zeros(2), np.zeros(2)), kp=1.0, kd=1.0).force(
            np.zeros(2), np.zeros(2), 0.0
        ),
    ):
        with pytest.raises(CoadjointError, match=words):
            call()
    control.limited(far, effort=False, velocity=False).check_reference([0.2])  # keeps the limits itself


@pytest.mark.native
def test_a_closed_loop_that_fails_is_kept_up_to_there():
    arm = ARM
    wrong = lambda t: (np.full(2, np.nan if t > 0.0095 else 0.1), np.zeros(2), np.zeros(2))
    with pytest.raises(cj.SimulationError, match=r"at the sample t = 0.01 s the forces are not finite") as caught:
        control.closed_loop(arm, control.computed_torque(arm, wrong, kp=25.0, kd=10.0), np.zeros(2), np.zeros(2), 0.02)
    assert caught.value.motion.time[-1] == pytest.approx(0.01)
    assert np.isfinite(caught.value.motion.q).all()


def test_an_impedance_with_a_measured_wrench_is_a_body_of_the_chosen_inertia():
    robot, rng = cj.load("puma560"), np.random.default_rng(12)
    q, v = np.array([0.3, -0.7, 0.4, 0.5, 0.9, -0.2]), 0.5 * rng.normal(size=6)
    X, F = cj.pose(robot, q, "tip"), rng.normal(size=6)
    goal, D, K = X @ se3.exp(0.1 * rng.normal(size=6)), 9.0, 30.0
    inertia = np.diag([0.2, 0.3, 0.4, 2, 3, 4.0])
    one = control.impedance(robot, "tip", goal, stiffness=K, damping=D, inertia=inertia, wrench=lambda t: F + 0.0 * t)
    J = cj.jacobian(robot, q, "tip")
    a = cj.forward_dynamics(robot, q, v, one.force(q, v, 0.0) + J.T @ F)
    error = frame_error("log", X, J @ v, goal, np.zeros(6), np.zeros(6))
    found = J @ a + cj.jacobian_rate(robot, q, v, "tip") @ v
    np.testing.assert_allclose(inertia @ found, D * error.velocity + error.spring(K * error.position) + F, atol=1e-8)
    with pytest.raises(CoadjointError, match="wrench is given without inertia"):
        control.impedance(robot, "tip", goal, stiffness=K, damping=D, wrench=F)


def test_the_energy_of_a_frame_is_claimed_only_where_it_falls():
    robot = cj.load("panda")
    for kp, known in ((30.0, True), ([30, 20, 25, 50, 50, 50], True), ([30, 30, 30, 40, 50, 60], False)):
        one = control.se3_tracking(robot, "tip", np.eye(4), kp=kp, kd=8.0, error="double-geodesic")
        assert (one._lyapunov is not None) == known


def test_what_a_controller_was_made_of_may_change_later():
    arm, q = cj.load("planar2r"), np.zeros(2)
    numbers, stiffness = np.array([0.5, 0.4]), np.diag([100.0, 90.0])
    moved, way = control.sinusoid(arm, numbers, numbers, numbers), control.point_to_point(arm, numbers, q, 1.0)
    one = control.computed_torque(arm, q, kp=stiffness, kd=20.0)
    kept = control.limited(one, effort=numbers, velocity=False, position=False)
    numbers[:], stiffness[:] = 7.0, 7.0
    np.testing.assert_array_equal(moved(0.0)[0], [0.5, 0.4])
    np.testing.assert_array_equal(way(0.0)[0], [0.5, 0.4])
    np.testing.assert_array_equal(one.gains["kp"], np.diag([100.0, 90.0]))
    np.testing.assert_array_equal(kept.gains["effort"], [0.5, 0.4])


@pytest.mark.native
def test_a_running_controller_is_for_one_motion():
    arm, q, v = cj.load("planar2r"), np.array([0.1, 0.2]), np.zeros(2)
    learning = control.adaptive(arm, q, rate=5.0, damping=4.0, adaptation=1.0, metric="euclidean")
    for period in (None, 5e-3):
        with pytest.raises(cj.CoadjointError, match=r"made for samples every 0\.001 s"):
            cj.simulate(arm, q, v, 0.01, control=learning.start(), period=period)
    running = learning.start()
    cj.simulate(arm, q, v, 0.01, control=running, period=1e-3)
    with pytest.raises(cj.CoadjointError, match=r"start\(\) anew"):
        cj.simulate(arm, q, v, 0.01, control=running, period=1e-3)
    with pytest.raises(cj.CoadjointError, match="for a batch"):
        cj.simulate(arm, np.stack([q, q]), v, 0.01, control=learning.start(), period=1e-3)


@pytest.mark.native
@pytest.mark.parametrize(("delay", "most"), [(0, 2.0), (1, 1.0)])
def test_a_loop_damped_too_fast_says_how_much_is_stable(delay, most):
    """A block of 2 kg: damping/mass times the period must be below 2, one sample late below 1."""
    joint = cj.Joint.prismatic((1, 0, 0), name="slide")
    block = cj.Robot("block", [cj.Link.solid("block", "base", joint, mass=2.0)])
    loop = lambda damping: control.closed_loop(block, control.pd(block, [0.0], kp=1.0, kd=damping), [0.1], [1.0], 5.0, delay=delay)
    assert np.abs(loop(0.95 * most * 2.0 / 1e-3).v[-1]).max() < 1e-2
    with pytest.raises(CoadjointError, match="times as large"):
        loop(1.5 * most * 2.0 / 1e-3)
