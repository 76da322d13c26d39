"""Optimal control: exact derivatives, Riccati's equation, limits, minima that another solver finds."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are
from scipy.optimize import minimize

import coadjoint as cj
from coadjoint.arrays import namespace
from coadjoint.optimal import posing
from coadjoint.optimal.by_control import ByControl
from coadjoint.optimal.cost_sums import traced_sum
from coadjoint.optimal.costs import terms
from models import urdf_files
from random_robots import random_robot

pytestmark = pytest.mark.native

GOAL = [0.5, 1.2, 0.0]


@pytest.fixture(scope="module")
def arm():
    return cj.load("planar2r")


def reach(arm, steps=40, **options):
    q0 = np.array([0.3, 0.4])
    costs = [cj.costs.position("tip", GOAL, 10.0), cj.costs.state(q0, weight=[0, 0, 0.1, 0.1]), cj.costs.control(1e-3)]
    start = options.pop("start", q0)
    return cj.optimal_control(arm, cj.Stage(steps, costs, 0.02), start, cj.costs.position("tip", GOAL, 100.0), **options)


def total_cost(arm, u, steps=40):
    """The cost of `reach`, computed anew from a rollout."""
    q0 = np.array([0.3, 0.4])
    q, v = cj.rollout(arm, q0, np.zeros(2), u, dt=0.02)
    away = cj.pose(arm, q, "tip")[..., :3, 3] - GOAL
    far = 5.0 * (away**2).sum(-1)
    running = far[:-1] + 0.05 * (v[:-1] ** 2).sum(-1) + 0.5e-3 * (u**2).sum(-1)
    return 0.02 * running.sum() + 10.0 * far[-1]


@pytest.fixture(scope="module")
def found(arm):
    return reach(arm)


@pytest.mark.slow
def test_the_gradient_of_the_cost_vanishes(arm, found):
    assert found.converged, found.message
    assert found.error < 1e-8
    assert found.cost == pytest.approx(total_cost(arm, found.u), rel=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(3):
        d = rng.normal(size=found.u.shape)
        d /= np.abs(d).max()
        up, down = (total_cost(arm, found.u + s * d) for s in (1e-3, -1e-3))
        assert abs(up - down) / 2e-3 < 1e-6  # third derivatives
        assert up + down > 2 * found.cost


def test_states_are_those_of_a_rollout(arm, found):
    q, v = cj.rollout(arm, found.q[0], found.v[0], found.u, dt=0.02)
    assert np.allclose(q, found.q, atol=1e-12)
    assert np.allclose(v, found.v, atol=1e-11)
    assert np.allclose(found.tau[:-1], found.u)


def test_the_costate_is_the_derivative_of_the_cost_to_go(arm, found):
    """Of later costs under the same controls, by a push at step k; and feedback keeps what the gains promise."""
    k, e = 15, 1e-6

    def to_go(dq):
        q, v = cj.rollout(arm, found.q[k] + dq, found.v[k], found.u[k:], dt=0.02)
        far = 5.0 * ((cj.pose(arm, q, "tip")[..., :3, 3] - GOAL) ** 2).sum(-1)
        return 0.02 * (far[:-1] + 0.05 * (v[:-1] ** 2).sum(-1)).sum() + 10.0 * far[-1]

    slope = [(to_go(e * d) - to_go(-e * d)) / (2 * e) for d in np.eye(2)]
    assert np.allclose(found.costate[k, :2], slope, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("method", ["euler", "rk4"])
def test_gains_are_the_derivative_of_the_optimal_control(arm, method):
    """K of the first step is ∂u₀*/∂x₀, by solving problems from nearby starts: true only with exact second derivatives."""
    e, found = 1e-4, reach(arm, method=method, tolerance=1e-12)
    for j in range(2):
        d = e * np.eye(2)[j]
        up, down = (reach(arm, start=found.q[0] + s * d, guess=found, tolerance=1e-13, method=method) for s in (1.0, -1.0))
        slope = (up.u[0] - down.u[0]) / (2 * e)
        # The state cost has no weight on q, so that the problem is the same but for its start.
        assert np.allclose(found.gains[0, :, j], slope, rtol=1e-5, atol=1e-5)


def test_a_linear_quadratic_problem_is_solved_in_one_step():
    robot, rng = cart(), np.random.default_rng(1)
    w, r, N, h = np.array([3.0, 0.5]), 0.2, 400, 0.05
    stage = cj.Stage(N, [cj.costs.state([0.3], weight=w), cj.costs.control(r)], h)
    guess = (rng.normal(size=(N + 1, 1)), rng.normal(size=(N + 1, 1)), rng.normal(size=(N, 1)))  # with gaps
    found = cj.optimal_control(robot, stage, [1.0], start_velocity=[-0.4], guess=guess, tolerance=1e-9)
    assert found.converged
    assert found.iterations == 1
    A, B = np.array([[1.0, h], [0.0, 1.0]]), np.array([[h * h / 2.0], [h / 2.0]])
    P = solve_discrete_are(A, B, h * np.diag(w), h * r * np.eye(1))
    K = -np.linalg.solve(h * r * np.eye(1) + B.T @ P @ B, B.T @ P @ A)
    assert np.allclose(found.gains[0], K, atol=1e-10)
    assert np.allclose(found.value_hessian[0], P, atol=1e-10)


@pytest.mark.parametrize("method", ["euler", "rk4"])
def test_time_varying_lqr_is_riccati_along_exact_derivatives(method):
    rng = np.random.default_rng(2)
    robot = random_robot(rng, 2, kinds=["spherical", "revolute"])
    n, N, h = robot.nv, 6, 0.02
    u = rng.normal(size=(3, N, n))
    q, v = cj.rollout(robot, robot.random(rng, (3,)), rng.normal(size=(3, n)), u, dt=h, method=method)
    Q, R = np.diag(rng.uniform(0.5, 2.0, 2 * n)), 0.1 * np.eye(n)
    g = cj.time_varying_lqr(robot, q, v, u, dt=h, Q=Q, R=R, Q_end=3.0 * Q, method=method)

    def after(z, k):
        start = robot.integrate(q[1, k], z[:n]), v[1, k] + z[n : 2 * n]
        a, b = cj.rollout(robot, *start, (u[1, k] + z[2 * n :])[None], dt=h, method=method)
        return np.concatenate([robot.difference(q[1, k + 1], a[1]), b[1] - v[1, k + 1]])

    e = 1e-6
    J = np.stack([(after(e * d, 3) - after(-e * d, 3)) / (2 * e) for d in np.eye(3 * n)], axis=-1)
    assert np.allclose(np.concatenate([g.A[1, 3], g.B[1, 3]], axis=-1), J, atol=1e-8)
    P = 3.0 * Q
    for k in reversed(range(N)):
        A, B = g.A[1, k], g.B[1, k]
        K = -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        P = Q + A.T @ P @ (A + B @ K)
        assert np.allclose(g.K[1, k], K, atol=1e-10)
        assert np.allclose(g.P[1, k], P, atol=1e-10)


@pytest.mark.parametrize("kinds", [["revolute", "prismatic"], pytest.param(["free", "revolute"], marks=pytest.mark.slow)])
def test_second_derivatives(kinds):
    """The Hessian of cost + costate · step, by central differences in exponential coordinates."""
    rng = np.random.default_rng(3)
    robot = random_robot(rng, 2, kinds=kinds)
    n, h = robot.nv, 0.05
    chosen = [cj.costs.state(robot.random(rng), rng.normal(size=n), 0.3), cj.costs.function(lambda robot, q, v, u: (u * v).sum(-1))]
    cost, numbers = traced_sum(robot, n, terms(chosen, "costs"))
    steps = ByControl(robot, cost, np.eye(n))
    row = np.concatenate([[h], *numbers])
    q, v, u, costate = robot.random(rng), rng.normal(size=n), rng.normal(size=n), rng.normal(size=2 * n)
    end = [x[1] for x in cj.rollout(robot, q, v, u[None], dt=h)]

    def lagrangian(z):
        at = robot.integrate(q, z[:n]), v + z[n : 2 * n], u + z[2 * n :]
        a, b = (x[1] for x in cj.rollout(robot, at[0], at[1], at[2][None], dt=h))
        return steps.value(*at, row)[0] + costate @ np.concatenate([robot.difference(end[0], a), b - end[1]])

    e = 1e-4
    I = e * np.eye(3 * n)
    numerical = [
        [(lagrangian(x + y) - lagrangian(x - y) - lagrangian(y - x) + lagrangian(-x - y)) / (4 * e * e) for y in I] for x in I
    ]
    assert np.allclose(steps.curvature(q, v, u, row, costate)[:, : 3 * n], numerical, atol=1e-6)


def test_limits_hold_and_push(arm, found):
    limit = np.array([25.0, 6.0])
    held = reach(arm, effort=limit)
    assert held.converged, held.message
    assert np.all(np.abs(held.u) <= limit)
    assert held.cost > found.cost
    at = np.abs(held.u) == limit
    assert at.any()
    assert not at.all()
    assert (held.multipliers[at] * held.u[at] >= 0).all()  # pressed against the limit from inside
    assert not held.multipliers[~at].any()
    assert not held.gains[at].any()
    # No feasible change lowers the cost.
    rng = np.random.default_rng(4)
    for _ in range(5):
        other = np.clip(held.u + 1e-4 * rng.normal(size=held.u.shape), -limit, limit)
        assert total_cost(arm, other) > held.cost - 1e-12


def test_wide_limits_change_nothing(arm, found):
    wide = reach(arm, effort=1e4)
    assert wide.converged
    assert np.allclose(wide.u, found.u, atol=1e-6)
    assert not wide.multipliers.any()


def cart():
    return cj.Robot("cart", [cj.Link.solid("cart", "base", cj.Joint.prismatic((1, 0, 0)), mass=2.0)])


@pytest.mark.parametrize("effort", [None, 5.0])
def test_limits_of_states_give_the_optimum_of_a_quadratic_program(effort):
    """A cart with limits of position and velocity, against SciPy's SLSQP on the same linear-quadratic problem."""
    N, h = 25, 0.1
    stage = cj.Stage(N, [cj.costs.state([0.0], weight=[3.0, 0.1]), cj.costs.control(0.05)], h)
    end = cj.costs.state([0.0], weight=[20.0, 5.0])
    limits = {"velocity": 0.6, "position": (-0.02, 2.0)}
    found = cj.optimal_control(cart(), stage, [1.0], end, effort=effort, **limits)
    assert found.converged, found.message

    def states(u):
        v = np.concatenate([[0.0], np.cumsum(h * u / 2.0)])
        return np.concatenate([[1.0], 1.0 + np.cumsum(h * v[1:])]), v

    def cost(u):
        q, v = states(u)
        return 0.5 * h * (3.0 * q[:-1] ** 2 + 0.1 * v[:-1] ** 2 + 0.05 * u**2).sum() + 10.0 * q[-1] ** 2 + 2.5 * v[-1] ** 2

    within = {"type": "ineq", "fun": lambda u: np.concatenate([0.6 - states(u)[1], 0.6 + states(u)[1], states(u)[0] + 0.02])}
    bounds = None if effort is None else [(-effort, effort)] * N
    other = minimize(
        cost, np.zeros(N), method="SLSQP", constraints=[within], bounds=bounds, options={"ftol": 1e-14, "maxiter": 500}
    )
    assert found.cost == pytest.approx(cost(found.u[:, 0]), rel=1e-12)
    assert found.cost == pytest.approx(other.fun, rel=1e-7)
    assert np.abs(found.v).max() < 0.6 + 1e-8
    assert found.q.min() > -0.02 - 1e-8
    held = found.state_multipliers[:, 1]
    assert held.min() < 0.0  # the lower limit of velocity
    assert not held[np.abs(found.v[:, 0]) < 0.6 - 1e-6].any()


@pytest.mark.parametrize("options", [{}, {"effort": [25.0, 8.0]}, {"method": "rk4"}, {"position": (-0.5, [1.1, 1.35])}])
def test_limits_of_states_hold_and_push(arm, found, options):
    held = reach(arm, velocity=1.5, **options)
    assert held.converged, held.message
    assert np.abs(held.v).max() < 1.5 + 1e-8
    assert held.cost > found.cost
    pressed = held.state_multipliers[:, 2:]
    assert pressed.any()
    assert (pressed * held.v >= 0).all()
    assert not pressed[np.abs(held.v) < 1.5 - 1e-6].any()
    if "position" in options:
        assert held.q[:, 1].max() < 1.35 + 1e-8
        assert held.state_multipliers[:, 1].max() > 0


def test_limits_that_no_motion_keeps(arm):
    """Motors too weak to hold the arm: it falls faster than the limit."""
    found = reach(arm, velocity=1.5, effort=[9.0, 3.0])
    assert not found.converged
    assert "no motion keeps all limits" in found.message


def test_machine_code_solves_as_written(arm, monkeypatch):
    """The programs run as plain Python, both by velocities and by limited controls."""
    for options in ({"velocity": 2.5}, {"effort": [25.0, 9.0], "velocity": 2.5}):
        monkeypatch.setenv("COADJOINT_NATIVE", "1")
        native = reach(arm, 6, iterations=3, **options)
        monkeypatch.setenv("COADJOINT_NATIVE", "0")
        plain = reach(cj.load("planar2r"), 6, iterations=3, **options)
        assert np.allclose(native.u, plain.u, rtol=1e-9, atol=1e-9)
        assert np.allclose(native.gains, plain.gains, rtol=1e-7, atol=1e-7)
        assert native.cost == pytest.approx(plain.cost, rel=1e-12)


def test_a_batch_is_its_problems(arm):
    starts = np.array([[0.3, 0.4], [0.1, 0.9], [0.5, 0.2]])
    goals = np.array([GOAL, [0.9, 0.9, 0.0], [1.2, -0.2, 0.0]])
    costs = [cj.costs.position("tip", goals[:, None], 10.0), cj.costs.control(1e-3)]
    many = cj.optimal_control(arm, cj.Stage(30, costs, 0.02), starts, cj.costs.position("tip", goals[:, None], 100.0))
    assert many.converged.all(), many.message
    assert many.u.shape == (3, 30, 2)
    for k in range(3):
        costs = [cj.costs.position("tip", goals[k], 10.0), cj.costs.control(1e-3)]
        one = cj.optimal_control(arm, cj.Stage(30, costs, 0.02), starts[k], cj.costs.position("tip", goals[k], 100.0))
        assert one.cost == pytest.approx(many.cost[k], rel=1e-9)
        assert np.allclose(one.u, many.u[k], atol=1e-5)


def test_stages_follow_each_other(arm):
    """Two stages with the same costs are one."""
    costs = [cj.costs.position("tip", GOAL, 10.0), cj.costs.control(1e-3)]
    end = cj.costs.position("tip", GOAL, 100.0)
    one = cj.optimal_control(arm, cj.Stage(30, costs, 0.02), [0.3, 0.4], end)
    two = cj.optimal_control(arm, [cj.Stage(12, costs, 0.02), cj.Stage(18, costs, np.full(18, 0.02))], [0.3, 0.4], end)
    assert one.cost == pytest.approx(two.cost, rel=1e-12)
    assert np.allclose(one.time, two.time)


@pytest.mark.slow
def test_a_motion_on_a_group():
    """A free body with all forces, to a pose: the result is a minimum, quaternions stay of length one."""
    robot = cj.Robot("body", [cj.Link.solid("body", "base", cj.Joint.free(), mass=1.0, inertia=np.diag([0.1, 0.2, 0.3]))])
    X = cj.lie.se3.exp(np.array([0.6, -0.4, 0.9, 0.2, 0.5, 0.1]))
    stage = cj.Stage(20, [cj.costs.pose("body", X, 0.1), cj.costs.control(1e-3)], 0.05)
    found = cj.optimal_control(robot, stage, robot.neutral(), cj.costs.pose("body", X, 100.0))
    assert found.converged, found.message
    assert np.allclose(np.linalg.norm(found.q[:, 3:], axis=-1), 1.0)
    assert np.abs(cj.lie.se3.log(cj.lie.se3.inverse(X) @ cj.pose(robot, found.q[-1], "body"))).max() < 0.05


def test_a_receding_horizon_follows_the_optimum(arm, found):
    """From the optimum, a controller that runs on the model stays on it; disturbed, it returns; its controls keep their limits."""
    costs = [cj.costs.position("tip", GOAL, 10.0), cj.costs.state([0.3, 0.4], weight=[0, 0, 0.1, 0.1]), cj.costs.control(1e-3)]
    end = cj.costs.position("tip", GOAL, 100.0)
    controller = cj.receding_horizon(arm, cj.Stage(40, costs, 0.02), [0.3, 0.4], end, guess=found)
    u = controller.step(found.q[0], found.v[0])
    assert np.allclose(u, found.u[0], atol=1e-6)
    assert controller.cost == pytest.approx(found.cost, abs=1e-8)
    assert controller.gains.shape == (2, 4)
    careful = cj.receding_horizon(arm, cj.Stage(40, costs, 0.02), [0.3, 0.4], end, effort=[25.0, 6.0], iterations=2)
    q, v = np.array([0.3, 0.4]), np.zeros(2)
    for k in range(120):
        u = careful.step(q, v)
        assert np.all(np.abs(u) <= [25.0, 6.0])
        qs, vs = cj.rollout(arm, q, v, u[None], dt=0.02)
        q, v = qs[1], vs[1] + (0.2 if k == 60 else 0.0)
    assert np.abs(cj.pose(arm, q, "tip")[:3, 3] - GOAL).max() < 0.05
    assert len(careful.times) == 120
    assert careful.worst_time == max(careful.times)
    slow = cj.receding_horizon(arm, cj.Stage(40, costs, 0.02), [0.3, 0.4], end, velocity=1.5, effort=[40.0, 20.0])
    q, v, fastest = np.array([0.3, 0.4]), np.zeros(2), 0.0
    for _ in range(80):
        qs, vs = cj.rollout(arm, q, v, slow.step(q, v)[None], dt=0.02)
        q, v, fastest = qs[1], vs[1], max(fastest, np.abs(vs[1]).max())
    assert 1.45 < fastest < 1.515
    with pytest.raises(cj.CoadjointError, match="q has shape"):
        careful.step(np.zeros(3), v)
    with pytest.raises(cj.CoadjointError, match="not finite"):
        careful.step(np.array([np.nan, 0.0]), v)


@pytest.mark.parametrize("wrong", [0.7, 1e3, 1e9])
def test_a_receding_horizon_forgets_a_wrong_measurement(arm, found, wrong):
    """One state that is far off changes the controls of that sample; after it the plan from before goes on. It was lost for many."""
    costs = [cj.costs.position("tip", GOAL, 10.0), cj.costs.state([0.3, 0.4], weight=[0, 0, 0.1, 0.1]), cj.costs.control(1e-3)]
    end = cj.costs.position("tip", GOAL, 100.0)
    true, fooled = (cj.receding_horizon(arm, cj.Stage(40, costs, 0.02), [0.3, 0.4], end) for _ in range(2))
    q, v = np.array([0.3, 0.4]), np.zeros(2)
    for k in range(20):
        u = true.step(q, v)
        other = fooled.step(q + (wrong if k == 10 else 0.0), v)
        assert np.abs(other - u).max() < (0.02 if k != 10 else np.inf) * np.abs(u).max()
        qs, vs = cj.rollout(arm, q, v, u[None], dt=0.02)
        q, v = qs[1], vs[1]
    thrown = fooled.step(q + 0.7, v)  # a robot that is pushed stays where it is: the new plan goes on
    assert np.abs(fooled.step(q + 0.7, v) - true.step(q, v)).max() > 0.2 * np.abs(thrown - u).max()
    back = pickle.loads(pickle.dumps(fooled))
    assert np.array_equal(back.step(q, v), fooled.step(q, v))


def test_an_interrupt_returns_the_best_so_far(arm):
    def report(count, error):
        if count == 2:
            raise KeyboardInterrupt

    found = reach(arm, report=report)
    assert not found.converged
    assert found.message.startswith("interrupted")
    assert np.isfinite(found.cost)


def pendulum(**options):
    (path,) = [path for name, path in urdf_files().items() if name.endswith("/double_pendulum.urdf")]
    robot = cj.load(str(path))

    def upright(robot, q, v, u):
        xp = namespace(q)
        return xp.concat([xp.sin(q), 1.0 - xp.cos(q), v], axis=-1)

    w = np.array([1.0, 1.0, 1.0, 1.0, 0.1, 0.1])
    stage = cj.Stage(100, [cj.costs.control(1e-4 / 0.01), cj.costs.residual(upright, 1e-5 / 0.01 * w)], 0.01)
    end = cj.costs.residual(upright, 100.0 * w)
    return cj.optimal_control(robot, stage, [3.14, 0.0], end, actuation=[robot.joint_names[0]], **options)


def test_swing_up_with_one_motor():
    """Crocoddyl 3.2.1 (examples/double_pendulum_fwddyn.py) ends at 2.0587508e-2 after 53 iterations."""
    found = pendulum()
    assert found.converged, found.message
    assert found.cost < 2.059e-2
    assert next(k for k, row in enumerate(found.table) if row["cost"] <= 2.059e-2) <= 40
    assert np.abs(np.sin(found.q[-1])).max() < 1e-2


@pytest.mark.slow
def test_kinova_reach():
    """Crocoddyl 3.2.1 (examples/arm_manipulation_fwddyn.py) ends at 3.698422749 from a quasi-static start, after 22 iterations."""
    (path,) = [path for name, path in urdf_files().items() if name.endswith("/kinova.urdf")]
    robot = cj.load(str(path))
    q0 = np.array([1.5707, 2.618, -1.5707, 3.1415, 2.618, 0.0])  # arm_up
    X = np.eye(4)
    X[:3, 3] = 0.6, 0.2, 0.5
    hand = "j2s6s200_end_effector"
    stage = cj.Stage(100, [cj.costs.pose(hand, X), cj.costs.state(q0, weight=0.1), cj.costs.control(0.1)], 0.01)
    found = cj.optimal_control(robot, stage, q0, cj.costs.pose(hand, X, 1000.0))
    assert found.converged
    assert found.iterations <= 22
    assert found.cost == pytest.approx(3.698422749, abs=2e-8)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"start": [0.3]}, "start has shape"),
        ({"start": [0.3, np.nan]}, "not finite"),
        ({"effort": [1.0, 2.0, 3.0]}, "effort of the controls has shape"),
        ({"effort": (2.0, 1.0)}, "leave nothing between"),
        ({"effort": "motor"}, "expected 'robot'"),
        ({"velocity": "motor"}, "velocity is 'motor'"),
        ({"velocity": "robot"}, "no velocity limits"),
        ({"velocity": [1.0, 2.0, 3.0]}, "velocity of the freedoms has shape"),
        ({"velocity": -1.0}, "leave nothing between"),
        ({"position": (1.0, 2.0)}, "outside its limits"),
        ({"actuation": ["elbow"]}, "elbow"),
        ({"actuation": np.eye(3)}, "actuation has shape"),
        ({"guess": np.zeros((5, 2))}, "guess has shape"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"iterations": 0}, "iterations"),
        ({"method": "midpoint"}, "midpoint"),
    ],
)
def test_wrong_arguments_are_told(arm, change, words):
    with pytest.raises(cj.CoadjointError, match=words):
        reach(arm, **change)


def test_wrong_costs_are_told(arm):
    with pytest.raises(cj.CoadjointError, match="a stage has 0 steps; expected 1 to"):
        cj.Stage(0, cj.costs.control())
    with pytest.raises(cj.CoadjointError, match="dt is"):
        cj.Stage(5, cj.costs.control(), dt=-1.0)
    with pytest.raises(cj.CoadjointError, match="negative"):
        cj.costs.control(-1.0)
    for wrong, words in [
        (cj.costs.position("nowhere", GOAL), "nowhere"),
        (cj.costs.position("tip", np.zeros((7, 3))), "leading axes"),
        (cj.costs.pose("tip", np.ones((4, 4))), "no pose"),
        (cj.costs.state([0.0]), "shape"),
        (cj.costs.control([1.0, 2.0, 3.0]), "weight"),
        (cj.costs.residual(lambda robot, q, v, u: q @ q), "expected \\(k,\\)"),
        (cj.costs.function(lambda robot, q, v, u: q), "expected a number"),
        (cj.costs.function(lambda robot, q, v, u: namespace(q).log(q[..., 0] - 5.0)), "not a number"),
    ]:
        with pytest.raises(cj.CoadjointError, match=words):
            cj.optimal_control(arm, cj.Stage(5, [wrong, cj.costs.control()]), [0.3, 0.4])
    with pytest.raises(cj.CoadjointError, match="empty"):
        cj.optimal_control(arm, [], [0.3, 0.4])


@pytest.mark.parametrize("options", [{}, {"effort": 50.0}, {"method": "rk4"}])
def test_a_maximum_is_left_for_a_minimum(options):
    """At the top of its cost a rod meets the conditions of first order; the Hessian of the cost by all controls says what it is."""
    bar = cj.Link.solid("bar", "base", cj.Joint.revolute((0, 0, 1)), mass=1.0, com=(0.5, 0, 0), inertia=0.1)
    rod, N, h = cj.Robot("rod", [bar]), 8, 0.1

    def far(robot, q, v, u):
        return namespace(q).concat([1.0 + namespace(q).cos(q), 0.1 * v], axis=-1)

    costs = [cj.costs.control(1e-2), cj.costs.residual(far)]
    found = cj.optimal_control(rod, cj.Stage(N, costs, h), [0.0], cj.costs.residual(far, 10.0), **options)
    assert found.converged, found.message
    assert found.message.startswith("optimal")

    def cost(u):
        q, v = cj.rollout(rod, np.zeros(1), np.zeros(1), u.reshape(N, 1), dt=h, method=options.get("method", "euler"))
        r = np.concatenate([1.0 + np.cos(q), 0.1 * v], axis=-1) ** 2
        return 0.5 * h * (r[:-1].sum() + 1e-2 * u @ u) + 5.0 * r[-1].sum()

    u, e = found.u.ravel(), 1e-3 * np.eye(N)
    assert found.cost == pytest.approx(cost(u), rel=1e-12)
    assert found.cost < 0.5 * cost(np.zeros(N))
    H = [[cost(u + x + y) - cost(u + x - y) - cost(u - x + y) + cost(u - x - y) for y in e] for x in e]
    assert np.linalg.eigvalsh(np.array(H))[0] > 0


def test_limits_of_the_robot(arm):
    with pytest.raises(cj.CoadjointError, match="effort limits"):
        posing.control_limits(arm, np.eye(2), "robot")
    panda = cj.load("panda")
    low, high = posing.control_limits(panda, np.eye(7)[:, [1, 4]], "robot")
    assert np.array_equal(high, panda.effort_limit[[1, 4]])
    assert np.array_equal(low, -high)


def _solved_again(robot, solve, parameters, k, h=2e-5):
    """Central differences of cost, q, v and u by number k of a set, beside the derivatives through the optimum."""
    found = solve(robot, None)
    exact, ends = found.sensitivity(parameters), []
    for sign in (1, -1):
        p = robot.parameters(parameters).copy()
        p[k] += sign * h
        ends.append(solve(robot.with_parameters(parameters, p), found))
        assert np.all(found.converged)
        assert np.all(ends[-1].converged)
    up, down = ends
    differences = up.cost - down.cost, robot.difference(down.q, up.q), up.v - down.v, up.u - down.u
    return found, [
        (getattr(exact, name)[..., k], x / (2 * h)) for name, x in zip(("cost", "q", "v", "u"), differences, strict=True)
    ]


@pytest.mark.parametrize(
    ("parameters", "k", "options"),
    [
        ("masses", 1, {"effort": [25.0, 8.0]}),
        pytest.param("lengths", 0, {"actuation": np.array([[1.0, 0.3], [0.2, -1.0]])}, marks=pytest.mark.slow),
        pytest.param("inertial", 11, {"velocity": 1.5}, marks=pytest.mark.slow),
        pytest.param("gravity", 1, {"actuation": ["joint1"]}, marks=pytest.mark.slow),
        pytest.param("masses", 0, {"start": np.array([[0.3, 0.4], [0.5, 0.2]])}, marks=pytest.mark.slow),
    ],
)
def test_derivatives_of_the_optimum_are_those_of_problems_solved_again(arm, parameters, k, options):
    found, pairs = _solved_again(arm, lambda robot, guess: reach(robot, guess=guess, tolerance=1e-9, **options), parameters, k)
    assert (
        not {"effort", "velocity"} & set(options)
        or max(np.abs(found.multipliers).max(), np.abs(found.state_multipliers).max()) > 1e-3
    )
    for exact, expected in pairs:
        assert np.abs(expected).max() > 1e-3
        np.testing.assert_allclose(exact, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.slow
def test_derivatives_through_groups_and_costs_of_the_robot():
    """Configurations that are no vectors, several stages, and costs that depend on the robot's numbers themselves."""
    ball = cj.Link.solid("upper", "base", cj.Joint.spherical(name="ball"), mass=1.0, com=(0, 0, -0.4), inertia=0.05)
    bar = cj.Link.solid("lower", "upper", cj.Joint.revolute((0, 1, 0), name="hinge"), mass=0.5, com=(0, 0.1, -0.3), inertia=0.02)
    robot = cj.Robot("pendulum", [ball, bar])
    start, goal = (robot.integrate(robot.neutral(), np.array(x)) for x in ([0.3, -0.2, 0.5, 0.4], [-0.3, 0.4, 0.1, -0.4]))
    moving = [cj.costs.function(lambda robot, q, v, u: cj.kinetic_energy(robot, q, v)), cj.costs.control(1e-2)]
    stages = [cj.Stage(8, moving, 0.04), cj.Stage(8, [cj.costs.control(1e-2)], 0.05)]

    def solve(robot, guess):
        return cj.optimal_control(robot, stages, start, cj.costs.state(goal, weight=20.0), guess=guess, tolerance=1e-9)

    for exact, expected in _solved_again(robot, solve, "inertial", 13)[1]:
        assert np.abs(expected).max() > 1e-3
        np.testing.assert_allclose(exact, expected, atol=1e-6 * np.abs(expected).max())


def test_derivatives_belong_to_an_optimum(arm, found):
    stopped = reach(arm, iterations=1)
    with pytest.raises(cj.CoadjointError, match="this motion is none"):
        stopped.sensitivity("masses")
    with pytest.raises(cj.CoadjointError, match="semi-implicit"):
        reach(arm, steps=5, method="rk4").sensitivity("masses")
    with pytest.raises(cj.CoadjointError, match="sizes"):
        found.sensitivity("sizes")
    alone = pickle.loads(pickle.dumps(dataclasses.replace(found, given=None)))
    with pytest.raises(cj.CoadjointError, match="no problem with it"):
        alone.sensitivity("masses")
