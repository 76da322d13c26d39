"""Linear models against motions integrated from neighbouring states, and regulators that regulate."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import coadjoint as cj
from derivative_helpers import ROBOTS
from laws import relative, state
from random_robots import ONE_SCREW, random_robot


def flow(robot, q, v, tau, time):
    """Where forces (k, nv) held for a time bring k states."""

    def rate(_, x):
        q, v = np.split(x.reshape(len(tau), -1), [robot.nq], axis=1)
        return np.concatenate([robot.rate(q, v), cj.forward_dynamics(robot, q, v, tau)], axis=1).ravel()

    x = solve_ivp(rate, (0, time), np.concatenate([q, v], axis=1).ravel(), rtol=1e-12, atol=1e-12, method="DOP853").y[:, -1]
    return np.split(x.reshape(len(tau), -1), [robot.nq], axis=1)


@pytest.mark.parametrize("kind", ["chain", "floating", "groups"])
def test_neighbouring_motions(kind):
    """Their difference changes as A and B say: the rate at the start, by differences of short motions."""
    rng = np.random.default_rng(1)
    robot = ROBOTS[kind](rng)
    q, v, tau = state(robot, rng)
    x, u = rng.normal(size=2 * robot.nv), rng.normal(size=robot.nv)
    A, B = cj.linearize(robot, q, v, tau)

    def change(time, h=1e-4):
        """The difference of neighbours after a time, by their first distance."""
        sign = np.array([[0.0], [h], [-h]])
        ends = flow(robot, robot.integrate(q, sign * x[: robot.nv]), v + sign * x[robot.nv :], tau + sign * u, time)
        differences = np.concatenate([robot.difference(ends[0][0], ends[0]), ends[1] - ends[1][0]], axis=1)
        return (differences[1] - differences[2]) / (2 * h)

    t = 1e-3
    rate = (8 * change(t) - change(2 * t) - 8 * change(-t) + change(-2 * t)) / (12 * t)
    assert relative(rate, A @ x + B @ u) < 1e-6


def test_blocks():
    rng = np.random.default_rng(2)
    robot = random_robot(rng, 5, ONE_SCREW, damping=True)
    q, v, tau = state(robot, rng, (4,))
    n = robot.nv
    A, B = cj.linearize(robot, q, v, tau, friction=True)
    by_q, by_v, by_tau = cj.forward_dynamics_derivatives(robot, q, v, tau, friction=True)
    assert np.array_equal(A[:, :n], np.broadcast_to(np.block([np.zeros((n, n)), np.eye(n)]), (4, n, 2 * n)))
    assert relative(A[:, n:], np.concatenate([by_q, by_v], -1)) < 1e-13
    assert not B[:, :n].any()
    assert relative(B[:, n:], by_tau) < 1e-13


def test_discrete_steps():
    """Two half steps are one, and a step is the solution of the differential equation."""
    rng = np.random.default_rng(3)
    A, B = rng.normal(size=(2, 4, 4)), rng.normal(size=(2, 4, 2))
    A1, B1 = cj.discretize(A, B, 0.1)
    A2, B2 = cj.discretize(A, B, 0.2)
    assert relative(A2, A1 @ A1) < 1e-13
    assert relative(B2, A1 @ B1 + B1) < 1e-13
    x, u = rng.normal(size=4), rng.normal(size=2)
    end = solve_ivp(lambda _, x: A[0] @ x + B[0] @ u, (0, 0.2), x, rtol=1e-12, atol=1e-12).y[:, -1]
    assert relative(A2[0] @ x + B2[0] @ u, end) < 1e-10


@pytest.mark.parametrize("seed", range(3))
def test_equilibrium(seed):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 5, ONE_SCREW)
    q, wrenches = robot.random(rng, 3), rng.normal(size=(3, robot.n_links, 6))
    still = np.zeros((3, robot.nv))
    tau = cj.equilibrium_force(robot, q, wrenches)
    assert np.abs(cj.forward_dynamics(robot, q, still, tau, wrenches)).max() < 1e-8 * np.abs(tau).max()
    assert relative(cj.equilibrium_force(robot, q), cj.gravity_force(robot, q)) < 1e-13


@pytest.mark.parametrize("discrete", [False, True])
def test_regulator(discrete):
    """The closed loop is stable, P satisfies its equation, and x₀ᵀ P x₀ is the cost of the motion."""
    robot = cj.load("planar2r")
    q = np.array([[0.3, 0.5], [1.0, -0.7]])
    A, B = cj.linearize(robot, q, 0 * q, cj.equilibrium_force(robot, q))
    Q, R = np.array([10.0, 10.0, 1.0, 1.0]), np.array([0.1, 0.2])
    if discrete:
        A, B = cj.discretize(A, B, 0.01)
    K, P = cj.lqr(A, B, Q, R, discrete=discrete)
    closed = A - B @ K
    values = np.linalg.eigvals(closed)
    assert np.all(np.abs(values) < 1) if discrete else np.all(values.real < 0)
    cost = np.diag(Q) + K.swapaxes(-1, -2) @ np.diag(R) @ K
    rest = closed.swapaxes(-1, -2) @ P @ closed - P if discrete else closed.swapaxes(-1, -2) @ P + P @ closed
    assert np.abs(rest + cost).max() < 1e-8 * np.abs(cost).max()


def test_controllability():
    """A robot whose every joint is driven can be brought anywhere; without the drive of one at rest in balance, it may not."""
    robot = cj.load("planar2r")
    q = np.array([0.3, 0.5])
    A, B = cj.linearize(robot, q, 0 * q, cj.equilibrium_force(robot, q))
    assert np.linalg.matrix_rank(cj.controllability(A, B)) == 4
    assert cj.controllability(A, B).shape == (4, 8)
    still = np.zeros((2, 2))
    with pytest.raises(cj.CoadjointError, match="no stabilising regulator"):
        cj.lqr(np.diag([1.0, 1.0]), still, np.ones(2), np.ones(2))


@pytest.mark.native
def test_native_equals_as_written(monkeypatch):
    rng = np.random.default_rng(6)
    robot = random_robot(rng, 3, ("planar", "spherical", "revolute"), tree=False)
    q, v, tau = state(robot, rng, (5,))
    native = cj.linearize(robot, q, v, tau)
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    robot = cj.Robot(robot.name, robot.links, robot.frames, robot.gravity)
    condition = np.linalg.cond(cj.mass_matrix(robot, q)).max()
    for x, y in zip(native, cj.linearize(robot, q, v, tau), strict=True):
        assert relative(x, y) < max(1e-12, 1e-14 * condition)


def test_errors():
    with pytest.raises(cj.errors.ShapeError, match=r"A has shape \(2, 3\)"):
        cj.discretize(np.zeros((2, 3)), np.zeros((2, 1)), 0.1)
    with pytest.raises(cj.errors.ShapeError, match=r"R has shape \(1,\); expected \(2, 2\)"):
        cj.lqr(np.eye(2), np.eye(2), np.ones(2), np.ones(1))
