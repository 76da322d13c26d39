"""Dry friction at rest: a joint that stops keeps the direction of its friction, and what sets out again turns it as Dahl's law says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import coadjoint as cj
from coadjoint.errors import CoadjointError
from coadjoint.identification.friction import Shape
from coadjoint.identification.memory import last_motion, remembered
from coadjoint.identification.preparation import DEVIATIONS, prepare
from recorded_motions import smooth_motion

SPEED, ACCELERATION, SLIP = 1.0, 2.0, 2e-3


def stop_and_go(signs, rate=200.0):
    """Times, q, v, a of a joint that moves a unit smoothly in one second and stands for one, in the direction of each sign."""
    t = np.arange(0, 2 * len(signs), 1 / rate)
    k, x = np.minimum(t // 2, len(signs) - 1).astype(int), np.minimum(t % 2, 1.0)
    sign, start = np.asarray(signs, dtype=float), np.concatenate([[0.0], np.cumsum(signs)])
    q = start[k] + sign[k] * (x - np.sin(2 * np.pi * x) / (2 * np.pi))
    v = sign[k] * (1 - np.cos(2 * np.pi * x))
    return t, *(y[:, None] for y in (q, v, sign[k] * 2 * np.pi * np.sin(2 * np.pi * x)))


def direction(t, q, v, a):
    shape = Shape(np.array([1e-9]), np.array([SLIP]), np.ones(1))
    return remembered(t, q, v, a, shape, np.array([SPEED]), np.array([ACCELERATION]), np.zeros(1))[:, 0]


def test_a_joint_at_rest_keeps_the_direction_of_its_last_motion():
    signs = [1, -1, -1, 1]
    t, q, v, a = stop_and_go(signs)
    found = direction(t, q, v, a)
    for k, sign in enumerate(signs):
        np.testing.assert_allclose(found[(t > 2 * k + 1.1) & (t < 2 * k + 1.9)], sign, atol=1e-6)


def test_what_was_before_the_first_row_is_not_known():
    t, q, v, a = stop_and_go([1, -1])
    still = t > 1.1
    late = direction(t[still], q[still], v[still], a[still])
    np.testing.assert_allclose(late[t[still] < 1.9], 0.0, atol=1e-12)


def test_displacements_at_rest_turn_it_as_dahls_law_says():
    """Creeping forth and back by about the slip; against an integration of the law by Runge and Kutta's method."""
    t = np.arange(0, 4, 1e-3)
    q, v = 3 * SLIP * np.sin(t) ** 3, 9 * SLIP * np.sin(t) ** 2 * np.cos(t)  # slower than a fiftieth of the usual speed
    found = direction(t, q[:, None], v[:, None], np.gradient(v, t)[:, None])

    def law(x, s):
        rate = 9 * SLIP * np.sin(x) ** 2 * np.cos(x)
        return (rate - s * abs(rate)) / SLIP

    other = solve_ivp(law, (0, t[-1]), [0.0], t_eval=t, rtol=1e-9, atol=1e-10, max_step=1e-2).y[0]
    assert np.ptp(other) > 1.0
    np.testing.assert_allclose(found, other, atol=2e-3)


@pytest.fixture(scope="module")
def sticking():
    """An arm that stops and turns, with friction that remembers: a fit, and another motion with its forces."""
    robot = cj.load("planar2r")

    def log(first, second):
        parts = [stop_and_go(x) for x in (first, second)]
        t = parts[0][0]
        q, v, a = (np.concatenate([x[k] for x in parts], axis=1) * [1.0, 0.8] for k in (1, 2, 3))
        sigma = np.zeros_like(v)
        for i in range(1, len(t)):  # Coulomb friction, which stays where it stops
            sigma[i] = np.where(np.abs(v[i]) > 1e-9, np.sign(v[i]), sigma[i - 1])
        tau = np.asarray(cj.inverse_dynamics(robot, q, v, a)) + 0.5 * v + 2.0 * sigma
        tau = tau + 0.01 * np.random.default_rng(0).normal(size=tau.shape)
        return {"time": t, "q": q, "v": v, "a": a, "tau": tau}

    fit = cj.identify(robot, log([1, -1, -1, 1, 1, -1], [1, 1, -1, 1, -1, -1]), friction=("offset", "viscous", "coulomb"))
    return fit, log([-1, 1, 1, -1], [1, -1, 1, 1])


@pytest.mark.native
def test_forces_at_rest_are_those_that_the_motion_left(sticking):
    fit, other = sticking
    q, v, a, tau, t = (other[k] for k in ("q", "v", "a", "tau", "time"))
    rest = (np.abs(v).max(1) == 0) & (t > 1)
    alone, motion = fit.torque(q, v, a), fit.torque(q, v, a, time=t)
    assert np.abs(motion - tau)[rest].max() < 0.1
    assert np.abs(alone - tau)[rest].min() > 1.5
    fast = np.abs(v).min(1) > 0.5
    np.testing.assert_array_equal(motion[fast], alone[fast])
    np.testing.assert_allclose(fit.torque(q, v, a, time=t + 7.0), motion, rtol=0, atol=1e-12)


# --- without slip


@pytest.mark.native
@pytest.mark.parametrize("power", [1, 3, 5])
def test_slow_reversals_without_slip_are_as_of_each_row(power):
    """Joints that never rest, some of them slow for seconds: exact forces with Coulomb friction return exactly, in every row."""
    robot, t = cj.load("planar2r"), np.arange(0, 20, 0.01)

    def log(phase):
        x = np.stack([0.7 * t + phase, 1.1 * t + 1.0 + phase], axis=1)
        q, v, a = np.zeros_like(x), np.sin(x) ** power, power * np.array([0.7, 1.1]) * np.sin(x) ** (power - 1) * np.cos(x)
        q[1:] = np.cumsum(0.005 * (v[1:] + v[:-1]), axis=0)
        return q, v, a, np.asarray(cj.inverse_dynamics(robot, q, v, a)) + 0.3 * v + np.sign(v)

    fit = cj.identify(robot, dict(zip(("time", "q", "v", "a", "tau"), (t, *log(0.3)), strict=True)))
    assert not fit.friction.shape.slips.any()
    for phase in (0.3, 1.3, 2.0):
        q, v, a, tau = log(phase)
        motion = fit.torque(q, v, a, time=t)
        np.testing.assert_allclose(motion, tau, atol=1e-9)
        moves = np.abs(v) > fit.data.noise
        assert moves.mean() > 0.98
        np.testing.assert_array_equal(motion[moves], fit.torque(q, v, a)[moves])
        for rows in (slice(0, 40), slice(700, 703), slice(1100, None)):  # and of any part, since it never rests
            np.testing.assert_allclose(fit.torque(q[rows], v[rows], a[rows], time=t[rows]), tau[rows], atol=1e-9)


@pytest.mark.native
def test_friction_jumps_unless_the_log_tells_otherwise():
    """Hardly a row lies where a small width or slip would count, so that all of them explain the log alike: Coulomb's law is taken."""
    robot, t = cj.load("planar2r"), np.arange(0, 20, 0.01)
    power, rate, size = np.array([3, 5]), np.array([1.5, 0.7]), np.array([1.25, 1.94])
    x, q = rate * t[:, None] + [2.99, 2.96], np.zeros((len(t), 2))
    v, a = size * np.sin(x) ** power, size * power * rate * np.sin(x) ** (power - 1) * np.cos(x)
    q[1:] = np.cumsum(0.005 * (v[1:] + v[:-1]), axis=0)
    tau = np.asarray(cj.inverse_dynamics(robot, q, v, a)) + 0.3 * v + np.sign(v)
    shape = cj.identify(robot, {"time": t, "q": q, "v": v, "a": a, "tau": tau}).friction.shape
    assert not shape.slips.any()
    assert shape.widths.max() < 1e-8


@pytest.mark.native
def test_friction_that_a_simulation_made_smooth_has_nothing_to_remember():
    """c tanh(v / w) is zero at rest, as the rows at rest of the log say: the motion's forces are those of each row."""
    robot, (t, q, v, a) = cj.load("planar2r"), stop_and_go([1, -1, -1, 1, 1, -1])
    q, v, a = (np.concatenate([x, 0.8 * x[::-1] * sign], axis=1) for x, sign in ((q, 1), (v, -1), (a, 1)))
    tau = np.asarray(cj.inverse_dynamics(robot, q, v, a)) + 0.5 * v + 2.0 * np.tanh(v / 0.15)
    fit = cj.identify(robot, {"time": t, "q": q, "v": v, "a": a, "tau": tau}, friction=("offset", "viscous", "coulomb"))
    assert np.abs(fit.torque(q, v, a, time=t) - tau)[v == 0].max() < 0.05
    np.testing.assert_array_equal(fit.torque(q, v, a, time=t), fit.torque(q, v, a))


def test_reversals_that_do_not_last_are_smooth_where_the_fit_is():
    """A width beyond the noise: σ is that of each row, but where the joint rests."""
    t = np.arange(0, 3, 0.01)
    v = np.where(t < 1, np.cos(np.pi * t), np.where(t < 2, -1.0 + np.minimum(2 * (t - 1), 1.0), 0.001 * np.sin(50 * t)))[:, None]
    q, a = 0.01 * np.cumsum(v, axis=0), np.gradient(v, 0.01, axis=0)
    shape = Shape(np.array([0.1]), np.zeros(1), np.ones(1))
    found = remembered(t, q, v, a, shape, np.ones(1), np.ones(1), np.array([0.05]))[:, 0]
    moves = t < 1.4
    np.testing.assert_array_equal(found[moves], shape.direction(v, a)[moves, 0])
    np.testing.assert_array_equal(found[t > 1.55], -1.0)


def test_the_last_motion_is_kept_while_speeds_are_noise():
    """Noise turns nothing; what sets out without turning again has its own sign from its first row."""
    v = np.array([[0.1, -0.1, 2.0, 0.3, -0.2, 0.0, 0.1, -0.1, -0.4, -5.0, 0.2, 0.1, 3.0, 0.0, -0.3]]).T
    signs = [0, 0, 1, 1, 1, 1, 1, -1, -1, -1, 1, 1, 1, 1, 1]
    assert last_motion(v, np.abs(v) <= 0.5)[:, 0].tolist() == signs
    assert not last_motion(v, np.abs(v) <= 9.0).any()


def test_the_noise_of_a_log_bounds_the_speeds_that_it_leaves_at_rest():
    """Of measured velocities and of differentiated positions; exact motions have none but rounding."""
    robot, rng = cj.load("planar2r"), np.random.default_rng(0)
    t, q, v, a = smooth_motion(robot)
    exact = {"time": t, "q": q, "v": v, "a": a, "tau": v}
    assert np.all(prepare(robot, exact).noise < 1e-7 * np.sqrt(np.mean(v * v, axis=0)))
    error = 1e-3 * rng.normal(size=q.shape)
    for name in ("q", "v"):
        log = {k: x for k, x in exact.items() if k not in ({"v", "a"} if name == "q" else {"a"})}
        clean, noisy = (prepare(robot, x, 5.0) for x in (log, log | {name: log[name] + error}))
        passed = np.sqrt(np.mean((noisy.v - clean.v) ** 2, axis=0))
        assert np.all(passed < noisy.noise / DEVIATIONS)
        assert np.all(noisy.noise < 10 * DEVIATIONS * passed)


@pytest.mark.native
def test_a_motion_has_times_that_grow_and_rows_of_its_robot(sticking):
    fit, other = sticking
    q, v, a, t = (other[k] for k in ("q", "v", "a", "time"))
    with pytest.raises(CoadjointError, match="row 3 has"):
        fit.torque(q[:3], v[:3], a[:3], time=[0, 1, 0.5])
    for bad in (t[:-1], t[:, None]):
        with pytest.raises(CoadjointError, match="rows of a motion"):
            fit.torque(q, v, a, time=bad)


def test_joints_that_move_in_turn_show_their_friction():
    """A joint that rests most of the time tells its friction where it moves, not where dry friction may be anything."""
    robot = cj.load("planar3r").with_gravity((0, -9.81, 0))
    dry, viscous, dt, moves, rest = np.array([1.0, 0.8, 0.5]), np.array([0.3, 0.2, 0.1]), 0.01, 60, 40
    rng = np.random.default_rng(0)
    s = np.arange(moves)[:, None] / moves
    bend = [10 * s**3 - 15 * s**4 + 6 * s**5, 30 * s**2 - 60 * s**3 + 30 * s**4, 60 * s - 180 * s**2 + 120 * s**3]
    q, v, a, sign = (np.zeros((0, 3)) for _ in range(4))
    here, last = rng.uniform(-1, 1, 3), np.zeros(3)
    for k in range(60):
        way = np.where(np.arange(3) == k % 3, rng.uniform(-1.2, 1.2, 3) - here, 0.0)
        last = np.where(way != 0, np.sign(way), last)
        parts = [x * way / (moves * dt) ** order for order, x in enumerate(bend)]
        still = np.zeros((rest, 3))
        q = np.concatenate([q, here + parts[0], here + way + still])
        v, a = np.concatenate([v, parts[1], still]), np.concatenate([a, parts[2], still])
        sign, here = np.concatenate([sign, np.tile(last, (moves + rest, 1))]), here + way
    tau = np.asarray(cj.inverse_dynamics(robot, q, v, a)) + dry * sign + viscous * v
    assert np.all((v == 0).mean(0) > 0.75)
    fit = cj.identify(robot, {"time": dt * np.arange(len(q)), "q": q, "v": v, "a": a, "tau": tau})
    fast = np.abs(v) > 0.2  # not while the friction sets in, which the low-pass of the log makes smooth
    np.testing.assert_allclose(np.asarray(fit.torque(q, v, a))[fast], tau[fast], atol=0.06)
