"""Controllers within limits: the quadratic program behind them, and what it promises."""

import numpy as np
import pytest
from scipy.optimize import nnls

import coadjoint as cj
from coadjoint import control
from coadjoint.control.projection import project

pytestmark = pytest.mark.native


def by_active_set(H, x0, B, lower, upper):
    """The projection by the least-distance program of Lawson & Hanson (1974), solved by non-negative least squares."""
    L = np.linalg.cholesky(H)
    G = np.vstack([B, -B]) @ np.linalg.inv(L).T
    h = np.concatenate([upper - B @ x0, B @ x0 - lower])
    length = np.linalg.norm(G, axis=1)
    E = np.vstack([-(G / length[:, None]).T, -(h / length)[None]])
    r = E @ nnls(E, np.eye(len(x0) + 1)[-1], maxiter=1000)[0] - np.eye(len(x0) + 1)[-1]
    return x0 + np.linalg.solve(L.T, -r[:-1] / r[-1])


def test_projections_are_those_of_an_active_set_method():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(1, 8))
        m = int(rng.integers(1, 2 * n + 1))
        root = rng.normal(size=(n, n))
        H = (root @ root.T + 1e-3 * np.eye(n)) * 10 ** rng.uniform(-4, 4)
        B = rng.normal(size=(m, n)) * 10 ** rng.uniform(-3, 3, (m, 1))
        inside = rng.normal(size=n)
        width = np.abs(B @ inside) + 1e-3
        lower, upper = B @ inside - rng.uniform(0, 1, m) * width, B @ inside + rng.uniform(0, 1, m) * width
        x0 = inside + 10 * rng.normal(size=n)
        expected = by_active_set(H, x0, B, lower, upper)
        found = np.asarray(project(H, x0, B, lower, upper, np.zeros(m)))
        size = lambda x, H=H: np.sqrt(x @ H @ x)
        assert size(found - expected) <= 1e-6 * size(expected - x0)


def test_what_is_within_the_bounds_is_not_moved():
    H, B = np.diag([1.0, 4.0]), np.eye(2)
    assert (project(H, np.array([0.3, -0.2]), B, -np.ones(2), np.ones(2), np.zeros(2)) == [0.3, -0.2]).all()


def test_soft_bounds_give_way_to_hard_ones():
    """x ≤ 1 exactly and x ≥ 2 softly: x is 1. Alone, the soft one is kept but for its softness."""
    B, H = np.ones((2, 1)), np.eye(1)
    found = project(H, np.array([5.0]), B, np.array([-9.0, 2.0]), np.array([1.0, 9.0]), np.array([0.0, 1e-7]))
    assert found[0] == pytest.approx(1.0, abs=1e-8)
    alone = project(H, np.array([0.0]), B, np.array([-9.0, 2.0]), np.array([9.0, 9.0]), np.array([0.0, 1e-7]))
    assert alone[0] == pytest.approx(2.0, abs=1e-6)


def test_soft_bounds_that_can_be_kept_are_kept_whatever_the_metric():
    """Also where a frame that is kept makes one direction a thousand times cheaper than others, and multipliers as much larger."""
    rng, n, m = np.random.default_rng(5), 7, 10
    for _ in range(50):
        J = rng.normal(size=(6, n))
        H = np.eye(n) + 1e3 * J.T @ np.linalg.solve(J @ J.T, J)
        B, inside = rng.normal(size=(m, n)), rng.normal(size=n)
        lower, upper = B @ inside - rng.uniform(0, 1, m), B @ inside + rng.uniform(0, 1, m)
        x0 = inside + 10 * rng.normal(size=n)
        found = project(H, x0, B, lower, upper, np.where(np.arange(m) < 4, 0.0, 1e-7))
        assert max((B @ found - upper).max(), (lower - B @ found).max()) < 1e-6
        np.testing.assert_allclose(found, by_active_set(H, x0, B, lower, upper), atol=1e-5)


@pytest.fixture(scope="module")
def arm():
    return cj.load("planar2r")


def test_forces_stay_within_their_limits_and_are_the_nearest(arm):
    """Gauss' principle: no other admissible force gives an acceleration nearer to the wanted one, in the metric."""
    rng = np.random.default_rng(1)
    wanted = control.computed_torque(arm, [0.5, 0.3], kp=400.0, kd=40.0)
    law = control.limited(wanted, effort=[20.0, 6.0], velocity=False, position=False, metric="kinetic")
    for _ in range(20):
        q, v = arm.random(rng), 3 * rng.normal(size=2)
        tau, asked = law.force(q, v, 0.0), wanted.force(q, v, 0.0)
        assert (np.abs(tau) <= [20.0, 6.0]).all()
        W = np.asarray(cj.mass_matrix_inverse(arm, q))
        distance = lambda x, asked=asked, W=W: (x - asked) @ W @ (x - asked)
        other = rng.uniform(-1, 1, (2000, 2)) * [20.0, 6.0]
        assert distance(tau) <= min(distance(x) for x in other) * (1 + 1e-6) + 1e-9


def test_positions_and_velocities_are_never_exceeded(arm):
    """The reference leads out of the limits; the motion stays within them, and the forces within theirs."""
    out = control.computed_torque(arm, [2.5, -2.0], kp=100.0, kd=20.0)
    law = control.limited(out, effort=[200.0, 80.0], velocity=[1.5, 1.0], position=([-1.0, -1.0], [1.0, 1.0]), rate=15.0)
    motion = cj.simulate(arm, [0.0, 0.0], [0.0, 0.0], np.linspace(0, 3, 1501), control=law)
    assert motion.q.max() <= 1.0 + 1e-7
    assert motion.q.min() >= -1.0 - 1e-7
    assert (np.abs(motion.v) <= np.array([1.5, 1.0]) + 1e-6).all()
    assert np.abs(motion.v[:, 0]).max() > 1.45
    np.testing.assert_allclose(motion.q[-1], [1.0, -1.0], atol=1e-2)
    assert (np.abs(motion.tau) <= [200.0, 80.0]).all()


@pytest.mark.slow
def test_without_limits_touched_nothing_changes(arm):
    law = control.computed_torque(arm, [0.1, 0.1], kp=10.0, kd=5.0)
    within = control.limited(law, effort=1e4, velocity=1e3, position=(-100.0, 100.0))
    q, v = np.array([0.2, 0.3]), np.array([0.1, -0.2])
    np.testing.assert_allclose(within.force(q, v, 0.0), law.force(q, v, 0.0), rtol=1e-12)


def test_joints_that_follow_others_keep_their_own_limits():
    """b = 0.1 - 2 a stays within ±0.5 and its speed below 1, though a alone could go on to 1 at speed 2."""
    first = cj.Joint.revolute((0, 1, 0), name="a", lower=-1.0, upper=1.0, velocity=2.0)
    second = cj.Joint.revolute((0, 1, 0), name="b", mimic=cj.Mimic("a", -2.0, 0.1), lower=-0.5, upper=0.5, velocity=1.0)
    body = {"mass": 1.0, "com": (0.1, 0.0, 0.2), "inertia": 0.02}
    robot = cj.Robot("pair", [cj.Link.solid("one", "base", first, **body), cj.Link.solid("two", "one", second, **body)])
    law = control.limited(control.computed_torque(robot, [2.0], kp=100.0, kd=20.0))
    motion = cj.simulate(robot, [0.0], [0.0], np.linspace(0, 3, 301), control=law)
    assert motion.q.max() == pytest.approx(0.3, abs=1e-6)
    assert motion.v.max() <= 0.5 + 1e-6


@pytest.mark.parametrize("metric", [pytest.param("joints", marks=pytest.mark.slow), "kinetic"])
def test_a_joint_without_motor_gets_no_force(metric):
    """The pole of a Furuta pendulum under a balance that asks for too much: with one motor the nearest force is the clipped one."""
    robot = cj.load("furuta")
    wanted = control.balance(robot, [0.0, np.pi], actuated=["arm_joint"], force_cost=1e3)
    q, v = np.array([[0.1, np.pi + 0.2], [0.0, np.pi - 1e-5]]), np.array([[0.1, 0.5], [0.0, 0.0]])
    asked = wanted.force(q, v, 0.0)
    law = control.limited(wanted, effort=1e-2, velocity=False, position=False, metric=metric)
    np.testing.assert_allclose(law.force(q, v, 0.0)[:, 0], np.clip(asked[:, 0], -1e-2, 1e-2), rtol=1e-9)
    np.testing.assert_array_equal(law.force(q, v, 0.0)[:, 1], asked[:, 1])
    slow = control.limited(law, effort=False, velocity=[0.05, np.inf], position=False, rate=20.0)
    tau = slow.force(q[0], v[0], 0.0)
    assert tau[1] == asked[0, 1]
    assert cj.forward_dynamics(robot, q[0], v[0], tau)[0] <= 20.0 * (0.05 - 0.1) * (1 - 1e-6)


@pytest.mark.slow
def test_limits_beyond_the_reach_of_the_motors_are_left():
    """Two pendulums side by side, one motor: that the other is too fast changes nothing."""
    joints = [cj.Joint.revolute((0, 1, 0), name=f"joint{k}") for k in range(2)]
    links = [cj.Link.solid(f"link{k}", "base", x, mass=1.0, com=(0, 0, -0.5), inertia=0.01) for k, x in enumerate(joints)]
    robot = cj.Robot("two pendulums", links)
    wanted = control.partial_linearization(robot, [0.3, 0.0], actuated=["joint0"], kp=100.0, kd=20.0)
    q, v = np.array([0.0, 0.4]), np.array([0.0, 3.0])
    for effort in (20.0, 1.0):
        law = control.limited(wanted, effort=effort, velocity=2.0, position=False)
        np.testing.assert_allclose(law.force(q, v, 0.0), [min(effort, wanted.force(q, v, 0.0)[0]), 0.0], rtol=1e-9)


def test_a_frame_is_kept_where_the_arm_is_singular(arm):
    """A planar arm, straight: two freedoms of six. The tip's motion gives way last, in the direction that there is."""
    wanted = control.computed_torque(arm, [0.5, 0.4], kp=100.0, kd=20.0)
    law = control.limited(wanted, effort=False, velocity=[0.1, 9.0], position=False, rate=10.0, keep="tip")
    rest = np.zeros(2)
    a, asked = (np.asarray(cj.forward_dynamics(arm, rest, rest, x.force(rest, rest, 0.0))) for x in (law, wanted))
    assert a[0] == pytest.approx(1.0, rel=1e-4)
    J = np.asarray(cj.jacobian(arm, rest, "tip"))
    assert np.linalg.norm(J @ (a - asked)) < np.linalg.norm(J @ (np.array([1.0, asked[1]]) - asked))


@pytest.mark.slow
def test_a_redundant_arm_keeps_its_hand_while_its_elbow_gives_way():
    """Panda at a position limit: with keep= the hand's error stays thirty times smaller than without."""
    robot = cj.load("panda")
    q = np.array([0.0, -0.3, 0.0, -2.0, 0.0, 1.8, 0.8])
    X = np.asarray(cj.pose(robot, q, "tip"))
    goal = X @ cj.lie.se3.exp([0, 0, 0, 0.05, 0.25, 0.0])
    hand = control.se3_tracking(robot, "tip", control.screw_motion(X, goal, 1.0), kp=100.0, kd=20.0, posture=q)
    lower, upper = robot.lower.copy(), robot.upper.copy()
    free = cj.simulate(robot, q, np.zeros(7), np.linspace(0, 1.5, 301), control=hand)
    joint = int(np.argmax(np.abs(free.q[-1] - q)))
    if free.q[-1, joint] > q[joint]:
        upper[joint] = 0.5 * (q[joint] + free.q[-1, joint])
    else:
        lower[joint] = 0.5 * (q[joint] + free.q[-1, joint])
    errors = {}
    for keep in (None, "tip"):
        law = control.limited(hand, effort=False, velocity=False, position=(lower, upper), rate=30.0, metric="kinetic", keep=keep)
        motion = cj.simulate(robot, q, np.zeros(7), np.linspace(0, 1.5, 301), control=law)
        assert (motion.q >= lower - 1e-6).all()
        assert (motion.q <= upper + 1e-6).all()
        errors[keep] = np.linalg.norm(cj.lie.se3.log(cj.lie.se3.inverse(cj.pose(robot, motion.q[-1], "tip")) @ goal))
    assert errors["tip"] < 0.03 * errors[None]


def test_large_robots_run_as_written():
    robot = cj.load("planar12r")
    law = control.limited(control.pd(robot, np.zeros(12), kp=1e4, kd=10.0), effort=5.0, velocity=False, position=False)
    q = 0.3 * np.ones((3, 12))
    tau = law.force(q, np.zeros((3, 12)), 0.0)
    assert tau.shape == (3, 12)
    assert np.abs(tau).max() == 5.0


def test_wrong_limits_are_named(arm):
    law = control.pd(arm, [0, 0], kp=1.0, kd=1.0)
    with pytest.raises(cj.CoadjointError, match="expected a positive limit"):
        control.limited(law, effort=[1.0, -1.0])
    with pytest.raises(cj.CoadjointError, match="lower < upper"):
        control.limited(law, effort=1.0, position=(1.0, -1.0))
    with pytest.raises(cj.CoadjointError, match="expected a number or"):
        control.limited(law, velocity=[1.0, 2.0, 3.0])
    with pytest.raises(cj.CoadjointError, match="computed_torque"):
        control.limited(3)
    with pytest.raises(cj.CoadjointError, match="no limits"):
        control.limited(law, effort=False, velocity=False, position=False)
    with pytest.raises(cj.CoadjointError, match="hand"):
        control.limited(law, effort=1.0, keep="hand")
