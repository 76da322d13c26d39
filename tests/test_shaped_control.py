"""Controllers that shape the robot, regulators of its linear model, and control of motion and force."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

import coadjoint as cj
from coadjoint import control
from coadjoint.motion.linearize import linearize, lqr
from simulated_mechanisms import Walker

pytestmark = pytest.mark.native


# ---- shaping ----------------------------------------------------------------------------------------------------------------------


def test_another_gravity_is_another_robot():
    robot, rng = cj.load("panda"), np.random.default_rng(0)
    law = control.controlled_symmetry(robot, (3.0, -1.0, 4.0))
    q, v = robot.random(rng, (5,)), rng.normal(size=(5, 7))
    moved = cj.forward_dynamics(robot, q, v, law.force(q, v, 0.0))
    np.testing.assert_allclose(
        moved, cj.forward_dynamics(robot.with_gravity((3.0, -1.0, 4.0)), q, v, np.zeros(7)), rtol=1e-9, atol=1e-9
    )


def test_a_walker_walks_on_level_ground_as_it_does_down_a_slope():
    """Spong & Bullo (2005): the passive gait, turned with gravity. Impacts do not see gravity."""
    down, level = Walker(0.009, foot=1e-2), Walker(0.0, foot=1e-2)
    law = control.controlled_symmetry(level.pinned, down.pinned.gravity)
    state = np.array([0.2003, -0.1998, 0.0158])
    expected, period = down.step(state)
    strike = cj.Event(lambda q, v, t: q[1] + 2 * q[0], direction=-1, terminal=True, then=level.strike, name="heel strike")
    found = cj.simulate(
        level.pinned, [state[0], -2 * state[0]], state[1:], [0.0, 6.0], control=law, events=[strike], tolerance=1e-11
    )
    assert found.stopped == "heel strike"
    assert found.time[-1] == pytest.approx(period, abs=1e-8)
    np.testing.assert_allclose([found.q[-1, 0], *found.v[-1]], expected, atol=1e-8)
    passive = cj.simulate(level.pinned, [state[0], -2 * state[0]], state[1:], [0.0, 6.0], events=[strike], tolerance=1e-9)
    assert abs(passive.time[-1] - period) > 1e-3  # without control the level walker does not


@pytest.mark.parametrize("linear", [["joint2"], ["joint1"]])
def test_some_joints_obey_a_linear_equation(linear):
    robot = cj.load("planar2r")
    names = {"joint1": robot.joint_names[0], "joint2": robot.joint_names[1]}
    linear = [names[x] for x in linear]
    row = robot.v_slice(linear[0]).start
    reference = control.sinusoid(robot, [0.1, 0.4], [0.2, 0.3], [0.3, 0.5])
    law = control.partial_linearization(robot, reference, actuated=[robot.joint_names[1]], linear=linear, kp=9.0, kd=6.0)
    rng = np.random.default_rng(1)
    for t in (0.0, 0.7):
        q, v = np.array([0.3, 0.5]) + 0.2 * rng.normal(size=2), rng.normal(size=2)
        tau = law.force(q, v, t)
        assert tau[0] == 0.0
        q_d, v_d, a_d = (np.asarray(x)[row] for x in reference(t))
        a = np.asarray(cj.forward_dynamics(robot, q, v, tau))[row]
        assert a == pytest.approx(a_d + 6.0 * (v_d - v[row]) + 9.0 * (q_d - q[row]), rel=1e-9)


def test_partial_linearization_of_several_motors():
    robot = cj.load("planar4r")
    joints = list(robot.joint_names)
    rng = np.random.default_rng(2)
    q, v = 0.5 + rng.normal(size=4), rng.normal(size=4)
    for linear in (joints[1:3], joints[:2], [joints[3], joints[0]]):
        law = control.partial_linearization(robot, np.zeros(4), actuated=joints[1:3], linear=linear, kp=4.0, kd=2.0)
        tau = law.force(q, v, 0.0)
        rows = [joints.index(x) for x in linear]
        np.testing.assert_allclose(cj.forward_dynamics(robot, q, v, tau)[rows], (-4.0 * q - 2.0 * v)[rows], rtol=1e-7)
        assert tau[0] == tau[3] == 0.0


def test_a_controlled_lagrangian_is_that_of_its_metric():
    """M_κ a + (Christoffel symbols of M_κ) v v + dU = 0, whatever the state."""
    robot, rng = cj.load("cartpole"), np.random.default_rng(3)
    law = control.controlled_lagrangian(robot, [0.0, 0.0], actuated=robot.joint_names[0])
    metric = lambda q: control.controlled_metric(law, q)
    for _ in range(5):
        q, v = np.array([rng.normal(), rng.uniform(-0.5, 0.5)]), rng.normal(size=2)
        a = np.asarray(cj.forward_dynamics(robot, q, v, law.force(q, v, 0.0)))
        d = 1e-5
        dM = np.stack([(metric(q + d * x) - metric(q - d * x)) / (2 * d) for x in np.eye(2)], axis=-1)
        quadratic = np.einsum("kil,i,l->k", dM, v, v) - 0.5 * np.einsum("ijk,i,j->k", dM, v, v)
        equation = metric(q) @ a + quadratic + np.asarray(cj.gravity_force(robot, q))
        np.testing.assert_allclose(equation, 0.0, atol=1e-6 * np.abs(metric(q) @ a).max())


def test_a_controlled_lagrangian_balances_a_pole():
    robot = cj.load("cartpole")
    law = control.controlled_lagrangian(robot, [0.0, 0.0], actuated=robot.joint_names[0], damping=20.0)
    motion = cj.simulate(robot, [0.0, 0.4], [0.0, 0.3], 12.0, control=law)
    assert control.verify(law, motion).holds
    assert abs(motion.q[-1, 1]) < 1e-3
    assert np.abs(motion.tau[:, 1]).max() == 0.0
    kept = control.controlled_lagrangian(robot, [0.0, 0.0], actuated=robot.joint_names[0])
    motion = cj.simulate(robot, [0.0, 0.4], [0.0, 0.3], 3.0, control=kept, tolerance=1e-10)
    value = kept.lyapunov(motion.q, motion.v, motion.time)
    assert np.ptp(value) < 1e-7 * value[0]
    assert value[0] > 0.0


def test_shaping_refuses_what_it_cannot_do():
    cart = cj.load("cartpole")
    with pytest.raises(cj.CoadjointError, match="expected more than"):
        control.controlled_lagrangian(cart, [0, 0], actuated=cart.joint_names[0], shaping=0.0)
    with pytest.raises(cj.CoadjointError, match="as that of a cart"):
        control.controlled_lagrangian(cj.load("planar2r"), [0, 0], actuated=cj.load("planar2r").joint_names[1])
    with pytest.raises(cj.CoadjointError, match="two joints"):
        control.controlled_lagrangian(cj.load("panda"), np.zeros(7), actuated=cj.load("panda").joint_names[0])
    with pytest.raises(cj.CoadjointError, match="the same number"):
        control.partial_linearization(cart, [0, 0], actuated=[cart.joint_names[0]], linear=list(cart.joint_names), kp=1, kd=1)
    with pytest.raises(cj.CoadjointError, match="twice"):
        control.partial_linearization(cart, [0, 0], actuated=[cart.joint_names[0]] * 2, kp=1, kd=1)
    with pytest.raises(cj.CoadjointError, match="three finite numbers"):
        control.controlled_symmetry(cart, (0, 0, np.nan))


# ---- linear regulators --------------------------------------------------------------------------------------------------------------


def test_the_worst_disturbance_is_attenuated():
    """The H∞ norm from w to (√Q x, √R u), on a grid of frequencies, stays below γ and comes close to it."""
    robot = cj.load("furuta")
    q = np.array([0.0, np.pi])
    Q, R = np.diag([1.0, 2.0, 0.1, 0.1]), np.array([[50.0]])
    law = control.h_infinity(robot, q, actuated=[robot.joint_names[0]], state_cost=Q, force_cost=R)
    gamma, K = law.gains["attenuation"], law.gains["K"]
    A, B = linearize(robot, q, np.zeros(2), np.zeros(2))
    closed = A - B[:, :1] @ K
    output = np.vstack([np.sqrt(Q), -np.sqrt(R) @ K])
    norm = lambda w: np.linalg.norm(output @ np.linalg.solve(1j * w * np.eye(4) - closed, B), 2)
    largest = max(norm(w) for w in np.concatenate([[0.0], np.logspace(-3, 3, 600)]))
    assert 0.9 * gamma < largest <= gamma * (1 + 1e-9)
    regulator, _ = lqr(A, B[:, :1], Q, R)
    far = control.h_infinity(robot, q, actuated=[robot.joint_names[0]], state_cost=Q, force_cost=R, attenuation=1e7 * gamma)
    np.testing.assert_allclose(far.gains["K"], regulator, rtol=1e-5)  # without a limit of disturbances it is the LQR
    with pytest.raises(cj.CoadjointError, match="least that is possible"):
        control.h_infinity(robot, q, actuated=[robot.joint_names[0]], state_cost=Q, force_cost=R, attenuation=0.5 * gamma)
    with pytest.raises(cj.CoadjointError, match="least that is possible"):
        control.h_infinity(cj.load("planar2r"), [0.0, 0.0], attenuation=1e-9)


@pytest.mark.parametrize("regulator", [control.h_infinity, control.balance])
def test_what_motors_do_not_reach_is_refused(regulator):
    """Two pendulums side by side, one motor: the other swings for ever, on the border of what a Riccati solver can tell."""
    joints = [cj.Joint.revolute((0, 1, 0), name=f"joint{k}") for k in range(2)]
    links = [cj.Link.solid(f"link{k}", "base", x, mass=1.0, com=(0, 0, -0.5), inertia=0.01) for k, x in enumerate(joints)]
    robot = cj.Robot("two pendulums", links)
    with pytest.raises(cj.CoadjointError, match="no stabilising regulator"):
        regulator(robot, [0.0, 0.0], actuated=["joint0"])
    assert np.isfinite(regulator(robot, [0.0, 0.0], actuated=["joint0", "joint1"]).gains["K"]).all()


def test_the_regulator_along_a_motion():
    """P(t) against the Riccati equation integrated by itself; disturbed starts come back, and the cost to go falls."""
    robot = cj.load("planar2r")
    swing = cj.simulate(
        robot, [0.3, 0.2], [0.0, 0.0], np.linspace(0, 1.0, 401), control=lambda robot, q, v, t: np.array([3.0, 1.0])
    )
    law = control.lqr_tracking(robot, swing, state_cost=[100.0, 100.0, 1.0, 1.0], force_cost=0.1)
    Q, R = np.diag([100.0, 100.0, 1.0, 1.0]), 0.1 * np.eye(2)

    A, B = (CubicSpline(swing.time, x) for x in linearize(robot, swing.q, swing.v, swing.tau))

    def rate(s, p):
        P, a, b = p.reshape(4, 4), A(1.0 - s), B(1.0 - s)
        return (a.T @ P + P @ a + Q - P @ b @ np.linalg.solve(R, b.T @ P)).reshape(-1)

    known = solve_ivp(rate, (0, 1.0), Q.reshape(-1), "LSODA", rtol=1e-8, atol=1e-8).y[:, -1].reshape(4, 4)
    np.testing.assert_allclose(law.reference(0.0)[4], known, atol=1e-4 * np.abs(known).max())
    motion = cj.simulate(robot, [0.4, 0.1], [0.2, 0.0], 1.0, control=law, tolerance=1e-6)
    value = law.lyapunov(motion.q, motion.v, motion.time)
    assert value[-1] < 1e-2 * value[0]
    assert control.verify(law, motion).holds
    with pytest.raises(cj.CoadjointError, match="Trajectory with tau"):
        control.lqr_tracking(robot, "swing")
    twice = {name: getattr(swing, name)[[0, 1, 1]] for name in ("time", "q", "v", "tau")}
    with pytest.raises(cj.CoadjointError, match="times that increase"):
        control.lqr_tracking(robot, cj.Trajectory(robot, **twice))


# ---- motion and force ---------------------------------------------------------------------------------------------------------------


def test_motion_and_force_do_not_disturb_each_other():
    """The multipliers are the wanted ones, exactly, and the motion along the constraint obeys the linear equation."""
    robot = cj.load("panda")
    table = cj.Constraint.point(robot, "tip", axes="z")
    rng = np.random.default_rng(4)
    home = np.array([0.1, -0.5, 0.2, -2.0, 0.1, 1.6, 0.5])
    reference = control.sinusoid(robot, home, 0.1, 0.5)
    law = control.hybrid(robot, table, reference, force=lambda t: -10.0 + 0.0 * np.asarray([t]), kp=100.0, kd=20.0)
    P = np.asarray(cj.constraint_projector(robot, table, home))
    v = P @ rng.normal(size=7)
    a, multipliers = cj.constrained_dynamics(robot, table, home, v, law.force(home, v, 0.3))
    np.testing.assert_allclose(multipliers, [-10.0], rtol=1e-9)
    q_d, v_d, a_d = (np.asarray(x) for x in reference(0.3))
    np.testing.assert_allclose(P @ a, P @ (a_d + 20.0 * (v_d - v) + 100.0 * (q_d - home)), rtol=1e-8, atol=1e-8)
    with pytest.raises(cj.CoadjointError, match="expected 1 finite multipliers"):
        control.hybrid(robot, table, reference, force=[1.0, 2.0], kp=1.0, kd=1.0)
    with pytest.raises(cj.CoadjointError, match=r"expected \(1,\): 1 multipliers"):
        control.hybrid(robot, table, reference, force=lambda t: np.zeros(2), kp=1.0, kd=1.0)


@pytest.mark.slow
def test_hybrid_forces_from_lists_and_on_groups():
    """A free body with a ball joint that hangs at a point: the multipliers are those asked for, by a list as by an array."""
    links = [
        cj.Link.solid("body", "base", cj.Joint.free(), mass=1.0, com=(0.1, 0, 0.2), inertia=0.02),
        cj.Link.solid("ball", "body", cj.Joint.spherical(), mass=1.0, com=(0, 0.02, 0.2), inertia=0.02),
    ]
    robot = cj.Robot("hanging", links, [cj.Frame("tip", "ball", np.eye(4))])
    rng = np.random.default_rng(5)
    q = robot.random(rng)
    point = cj.Constraint.point(robot, "tip", axes="xyz", at=np.asarray(cj.pose(robot, q, "tip"))[:3, 3])
    law = control.hybrid(robot, point, q, force=lambda t: [1.0, 2.0, 3.0], kp=25.0, kd=10.0)
    v = np.asarray(cj.constraint_projector(robot, point, q)) @ rng.normal(size=robot.nv)
    tau = law.force(q, v, 0.0)
    np.testing.assert_allclose(cj.constrained_dynamics(robot, point, q, v, tau)[1], [1.0, 2.0, 3.0], rtol=1e-8)
    assert all(hasattr(x, "shape") for x in law.reference(0.0))
    with pytest.raises(cj.CoadjointError, match="3 multipliers"):
        control.hybrid(robot, point, q, force="much", kp=1.0, kd=1.0)
    with pytest.raises(cj.CoadjointError, match="under a constraint"):
        control.limited(law, effort=5.0, velocity=1.0)
    assert np.abs(control.limited(law, effort=2.0).force(q, v, 0.0)).max() <= 2.0


def test_a_closed_chain_moves_and_presses():
    """A four-bar linkage: three joints, one freedom; the loop is loaded as asked while the motion follows."""
    arm = cj.load("planar3r")
    held = cj.Constraint.point(arm, "tip", axes="xy", at=(1.2, 0.8))
    q = cj.constraints.assemble(arm, held, [0.3, 0.8, 0.9])
    law = control.hybrid(arm, held, q, force=[2.0, -1.0], kp=25.0, kd=10.0)
    away = cj.constraints.assemble(arm, held, q + np.array([0.1, 0.0, 0.0]))
    motion = cj.simulate(arm, away, np.zeros(3), 4.0, control=law, constraints=held)
    assert np.abs(motion.q[-1] - q).max() < 1e-4
    for k in (0, 100, -1):
        tau = law.force(motion.q[k], motion.v[k], motion.time[k])
        np.testing.assert_allclose(cj.constrained_dynamics(arm, held, motion.q[k], motion.v[k], tau)[1], [2.0, -1.0], atol=1e-7)
