"""Altafini (2004), section IV: "the horizontal lift assures that the error dynamics of the pulled back joint space feedback controller is
identical to that of the original workspace feedback". Where that is true, and where it is not."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import coadjoint as cj
from coadjoint import control
from coadjoint import redundancy as rd
from coadjoint.control.workspace import frame_error
from coadjoint.lie import se3
from redundant_robots import with_wheels

pytestmark = pytest.mark.native

HOME = np.array([0.1, -0.6, 0.2, -2.0, 0.1, 1.6, 0.5])
KP, KD = 60.0, 14.0


@pytest.fixture(scope="module")
def panda():
    return cj.load("panda")


def workspace_motion(X, V, goal, times):
    """The motion (N, 4, 4) of a frame by itself under dV/dt = -Kd V + Kp dexp⁻¹(η)ᵀ η, without any robot."""

    def rate(t, y):
        T = se3.exp(y[:6])
        error = frame_error("log", X @ T, y[6:], goal, np.zeros(6), np.zeros(6))
        return np.concatenate(
            [se3.dexp_inverse(-y[:6]) @ y[6:], error.acceleration + KD * error.velocity + error.spring(KP * error.position)]
        )

    found = solve_ivp(rate, (0.0, times[-1]), np.concatenate([np.zeros(6), V]), t_eval=times, rtol=1e-11, atol=1e-11)
    return X @ se3.exp(found.y[:6].T)


@pytest.mark.slow
def test_it_is_true_of_the_hand_under_inverse_dynamics(panda):
    """Whatever the metric, the posture and the self-motion: the hand moves as the workspace feedback alone says. The joints do not: they
    have a dimension more, and the workspace feedback does not know of it.
    """
    X, rng = np.asarray(cj.pose(panda, HOME, "tip")), np.random.default_rng(0)
    goal = X @ se3.exp([0.3, -0.2, 0.3, 0.1, 0.1, -0.1])
    times = np.linspace(0.0, 0.3, 4)
    vertical = rd.vertical_basis(panda, HOME, "tip")[:, 0]
    v = np.asarray(cj.horizontal_lift(panda, HOME, "tip") @ (0.3 * rng.normal(size=6)))
    alone = workspace_motion(X, np.asarray(cj.jacobian(panda, HOME, "tip")) @ v, goal, times)
    ends = []
    for posture, spin in ((None, 0.0), (HOME + 0.3, 0.8)):
        law = control.se3_tracking(panda, "tip", goal, kp=KP, kd=KD, posture=posture)
        motion = cj.simulate(panda, HOME, v + spin * vertical / np.linalg.norm(vertical), times, control=law, tolerance=1e-9)
        np.testing.assert_allclose(cj.pose(panda, motion.q, "tip"), alone, atol=1e-7)
        ends.append(motion.q[-1])
    assert np.abs(ends[0] - ends[1]).max() > 0.02


def test_it_is_not_true_without_the_derivative_of_the_jacobian(panda):
    """The lift of the acceleration alone, a = L A: the hand's error equation is off by J̇ v, exactly."""
    rng = np.random.default_rng(1)
    v = 0.5 * rng.normal(size=7)
    J, J_rate = (np.asarray(x) for x in (cj.jacobian(panda, HOME, "tip"), cj.jacobian_rate(panda, HOME, v, "tip")))
    A = rng.normal(size=6)
    tau = cj.inverse_dynamics(panda, HOME, v, cj.horizontal_lift(panda, HOME, "tip") @ A)
    found = J @ np.asarray(cj.forward_dynamics(panda, HOME, v, tau)) + J_rate @ v
    np.testing.assert_allclose(found - A, J_rate @ v, atol=1e-9)
    assert np.linalg.norm(J_rate @ v) > 0.1 * np.linalg.norm(A)


def hand_accelerations(robot, q, v, wrench, frame="tip"):
    """dV/dt of the hand under the workspace force pulled back, τ = Jᵀ F + g."""
    J = np.asarray(cj.jacobian(robot, q, frame))
    tau = J.T @ wrench + np.asarray(cj.gravity_force(robot, q))
    return J @ np.asarray(cj.forward_dynamics(robot, q, v, tau)) + np.asarray(cj.jacobian_rate(robot, q, v, frame)) @ v


def test_it_is_not_true_of_forces_pulled_back_where_the_task_is_no_riemannian_submersion(panda):
    """τ = Jᵀ F, the workspace force pulled back. On one fibre, with the same hand at the same velocity and the same force, the hand's
    acceleration depends on where the elbow is: no equation of the hand alone describes it. `submersion` says so beforehand.
    """
    assert not rd.submersion(panda, "tip").riemannian
    wrench = np.array([0.0, 0.0, 0.0, 10.0, 5.0, -8.0])
    other = np.asarray(rd.self_motion(panda, HOME, np.ones(7), 1.5, "tip"))
    np.testing.assert_allclose(cj.pose(panda, other, "tip"), cj.pose(panda, HOME, "tip"), atol=1e-9)
    found = [hand_accelerations(panda, q, np.zeros(7), wrench) for q in (HOME, other)]
    assert np.linalg.norm(found[0] - found[1]) > 1e-3 * np.linalg.norm(found[0])


def test_it_is_true_of_forces_pulled_back_where_the_task_is_a_riemannian_submersion_and_the_motion_horizontal():
    """A free body with two balanced wheels: the metric of SE(3) under it is that of one body. Horizontal motions, in which the wheels
    have no momentum of their own, are its motions under the same feedback. With wheels that spin they are not: the vertical velocity
    turns the body by O'Neill's tensor, as every gyroscope does.
    """
    robot, rng = with_wheels("free"), np.random.default_rng(2)
    found = rd.submersion(robot, "body")
    assert found.riemannian
    G = found.metric
    q = robot.random(rng)
    V, wrench = rng.normal(size=6), rng.normal(size=6)
    J, lift = (np.asarray(x) for x in (cj.jacobian(robot, q, "body"), cj.horizontal_lift(robot, q, "body")))
    alone = np.linalg.solve(G, wrench + se3.ad_dual(V) @ G @ V)  # Euler and Poincaré's equation of one body
    np.testing.assert_allclose(hand_accelerations(robot, q, lift @ V, wrench, "body"), alone, atol=1e-9)
    spin = rd.vertical_basis(robot, q, "body") @ np.array([3.0, -2.0])
    np.testing.assert_allclose(J @ spin, 0.0, atol=1e-12)
    assert np.linalg.norm(hand_accelerations(robot, q, lift @ V + spin, wrench, "body") - alone) > 0.1

    one = cj.Robot(
        "one", [cj.Link.solid("body", "base", cj.Joint.free(), mass=G[3, 3], com=(0, 0, 0), inertia=G[:3, :3])], gravity=(0, 0, 0)
    )
    goal, stiffness, damping = se3.exp(0.5 * rng.normal(size=6)), 4.0, 3.0
    feedback = control.pd(one, np.r_[goal[:3, 3], 0, 0, 0, 1], kp=stiffness, kd=damping)
    pulled = lambda robot, q, v, t: (
        np.asarray(cj.jacobian(robot, q, "body")).T
        @ np.asarray(feedback.force(q[:7], np.asarray(cj.jacobian(robot, q, "body")) @ v, t))
    )
    times, start = np.linspace(0.0, 1.0, 5), np.asarray(robot.integrate(robot.neutral(), 0.3 * rng.normal(size=8)))
    L = np.asarray(cj.horizontal_lift(robot, start, "body"))
    free = cj.simulate(one, start[:7], V, times, control=feedback, tolerance=1e-10)
    for extra, same in ((0.0, True), (1.0, False)):
        v = L @ V + extra * rd.vertical_basis(robot, start, "body") @ np.array([3.0, -2.0])
        motion = cj.simulate(robot, start, v, times, control=pulled, tolerance=1e-10)
        off = np.abs(motion.q[:, :7] - free.q).max()
        assert off < 1e-7 if same else off > 1e-2


def test_it_ends_where_the_hand_has_no_lift():
    """A straight arm: the lift does not exist, forces grow without bound on the way there, and are not numbers at it."""
    arm = cj.load("planar3r")
    law = control.se3_tracking(arm, "tip", np.eye(4), kp=KP, kd=KD, rows=(3, 4))
    size = lambda bend: np.abs(law.force(np.array([0.2, bend, 0.0]), np.array([0.3, 0.0, 0.0]), 0.0)).max()
    assert size(1e-2) > 3 * size(1e-1)
    assert size(1e-4) > 30 * size(1e-2)
