"""Sampled controls in closed form, stiff loops, and controls that fail on the way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import DOP853

import coadjoint as cj
from coadjoint import Event
from coadjoint.motion.equations_of_motion import SimulationError
from coadjoint.motion.radau import ERROR, GAMMA, A, C

native = pytest.mark.native


def block(mass: float = 1.0, friction: float = 0.0) -> cj.Robot:
    joint = cj.Joint.prismatic((1, 0, 0), name="slide", friction=friction)
    return cj.Robot("block", [cj.Link.solid("block", "base", joint, mass=mass)])


def sampled(kp: float, kd: float, h: float, delay: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """States (n + 1, 2) of a block of 1 kg at the samples and the forces (n,) asked for there; 0 ≤ delay ≤ 2 h."""
    states, asked = [np.array([1.0, 0.0])], []
    move = lambda x, u, s: np.array([x[0] + x[1] * s + u * s**2 / 2, x[1] + u * s])
    late = int(delay / h + 1e-9)
    rest = delay - late * h
    for k in range(n):
        x = states[-1]
        asked.append(-kp * x[0] - kd * x[1])
        older = asked[max(k - late - 1, 0)] if k - late - 1 >= 0 else asked[0]
        newer = asked[max(k - late, 0)]
        states.append(move(move(x, older, rest), newer, h - rest))
    return np.array(states), np.array(asked)


@native
@pytest.mark.parametrize("delay", [0.0, 0.004, 0.01, 0.013, 0.02])
def test_a_sampled_control_in_closed_form(delay):
    """Held between the samples, in effect after the delay; evaluated once a sample."""
    h, n, calls = 0.01, 200, []

    def pd(robot, q, v, t):
        calls.append(t)
        return -30.0 * q - 4.0 * v

    times = np.concatenate([[0.0], h * (np.arange(n) + 0.9), [n * h]])
    found = cj.simulate(block(), [1.0], [0.0], times, pd, period=h, delay=delay)
    states, asked = sampled(30.0, 4.0, h, delay, n)
    np.testing.assert_allclose(calls, h * np.arange(n), atol=1e-14)
    q, v = found(h * np.arange(n + 1))
    np.testing.assert_allclose(np.concatenate([q, v], -1), states, atol=1e-11)
    np.testing.assert_allclose(found.tau[1:-1, 0], asked[np.maximum(np.arange(n) - int(delay / h + 1e-9), 0)], atol=1e-10)


@native
def test_samples_beside_events_and_friction():
    """A state machine that pushes for 0.1 s: the forces jump at samples, the block breaks loose and stops by friction between them."""
    push = lambda robot, q, v, t: [5.0 if t < 0.1 - 1e-9 else 0.0]
    mark = Event(lambda q, v, t: q[0] - 0.01, name="mark")
    found = cj.simulate(block(friction=2.0), [0.0], [0.0], 0.5, push, events=mark, friction=True, period=0.02)
    stop = 0.1 + 0.3 / 2.0
    assert [x.name for x in found.happenings] == ["mark", "slide"]
    assert found.happenings[0].time == pytest.approx(np.sqrt(0.02 / 3), abs=1e-12)
    assert found.happenings[1].time == pytest.approx(stop, abs=1e-12)
    assert found.q[-1, 0] == pytest.approx(0.5 * 3 * 0.01 + 0.3**2 / 4, abs=1e-12)


@native
def test_a_period_that_goes_to_zero_is_the_continuous_control():
    robot = cj.load("panda")
    goal = np.array([0, -0.8, 0, -2.0, 0, 1.6, 0.8])
    pd = lambda robot, q, v, t: cj.gravity_force(robot, q) - 30 * (q - goal) - 5 * v
    true = cj.simulate(robot, goal + 0.1, np.zeros(7), 0.05, pd)
    far = [np.abs(cj.simulate(robot, goal + 0.1, np.zeros(7), 0.05, pd, period=h).q[-1] - true.q[-1]).max() for h in (1e-3, 5e-4)]
    assert far[0] < 1e-2
    assert far[0] / far[1] == pytest.approx(2.0, abs=0.2)


def test_bad_sampling_is_refused():
    for options, message in (
        ({"period": 0.0}, "period is 0.0"),
        ({"period": "x"}, "period is 'x'"),
        ({"period": 0.1, "delay": -0.1}, "delay is -0.1"),
        ({"delay": 0.1}, "without a period"),
        ({"period": 0.1, "method": "variational"}, "takes no period"),
    ):
        with pytest.raises(cj.CoadjointError, match=message):
            cj.simulate(block(), [0.0], [0.0], 1.0, lambda robot, q, v, t: q, **options)


@native
@pytest.mark.parametrize("method", ["adaptive", "implicit"])
def test_a_stiff_loop_in_closed_form(method):
    """m = 1e-4, kp = 200, kd = 40: one part decays with 4e5/s, the other with 5/s. Few evaluations, and the tolerance is kept."""
    m, kp, kd, calls = 1e-4, 200.0, 40.0, 0

    def pd(robot, q, v, t):
        nonlocal calls
        calls += 1
        return -kp * (q - 0.3 * np.sin(3 * t)) - kd * v

    found = cj.simulate(block(m), [0.3], [0.0], 2.0, pd, method=method)
    fast, slow = np.roots([m, kd, kp])
    w = 3.0
    forced = kp * 0.3 / (kp - m * w**2 + 1j * kd * w)  # x = Im(forced e^{iwt})
    c = np.linalg.solve([[1.0, 1.0], [fast, slow]], [0.3 - forced.imag, -(1j * w * forced).imag])
    for t in (found.time, np.linspace(1e-3, 2.0, 777)):
        x = c[0] * np.exp(fast * t) + c[1] * np.exp(slow * t) + (forced * np.exp(1j * w * t)).imag
        np.testing.assert_allclose(found(t)[0][:, 0], x, atol=1e-8)
    assert calls < 10_000  # 390,000 with an explicit method


@native
def test_a_stiff_arm_agrees_with_small_explicit_steps():
    """An arm with a light wrist under stiff gains, at some times of the motion that the explicit method reaches too."""
    robot = cj.load("puma560").with_joint("joint6", armature=1e-5)
    goal = np.array([0.2, -1.0, 0.5, 0.3, -0.4, 0.1])
    pd = lambda robot, q, v, t: cj.gravity_force(robot, q) - 400 * (q - goal) - 40 * v
    found = cj.simulate(robot, goal + 0.3, np.zeros(6), 1.0, pd)

    def rate(t, y):
        return np.concatenate([y[6:], cj.forward_dynamics(robot, y[:6], y[6:], pd(robot, y[:6], y[6:], t))])

    solver = DOP853(rate, 0.0, np.concatenate([goal + 0.3, np.zeros(6)]), 0.02, rtol=1e-12, atol=1e-12)
    while solver.status == "running":
        solver.step()
    q, v = found(0.02)
    np.testing.assert_allclose(q, solver.y[:6], atol=1e-8)
    np.testing.assert_allclose(v, solver.y[6:], atol=1e-6)
    assert np.abs(found.q[-1] - goal).max() < 0.1


@native
def test_implicit_and_explicit_agree_with_events_friction_and_constraints():
    robot = cj.load("planar2r").with_joint("joint1", friction=0.5).with_joint("joint2", friction=0.2)
    tip = cj.Constraint.point(robot, "tip", "x")
    q = np.array([0.3, 0.9])
    v = cj.constraints.project_velocity(robot, tip, q, np.array([1.0, 0.0]))
    found = [cj.simulate(robot, q, v, 1.5, constraints=tip, friction=True, method=x) for x in ("adaptive", "implicit")]
    np.testing.assert_allclose(found[0].q, found[1].q, atol=1e-7)
    assert [x.kind for x in found[0].happenings] == [x.kind for x in found[1].happenings]
    assert found[1].drift()[0] < 1e-12
    free = [cj.simulate(robot, q, v, 1.0, events=Event(lambda q, v, t: q[0]), method=x) for x in ("adaptive", "implicit")]
    times = [[x.time for x in motion.happenings] for motion in free]
    assert len(times[0]) > 0
    np.testing.assert_allclose(times[0], times[1], atol=1e-8)


def test_the_implicit_method_is_of_order_nine():
    """Butcher's conditions B(9) and C(5), from which D(4) follows for these nodes; the embedded formula is of order 5."""
    for k in range(1, 10):
        assert A[-1] @ C ** (k - 1) == pytest.approx(1 / k, abs=1e-13)
    for k in range(1, 6):
        np.testing.assert_allclose(A @ C ** (k - 1), C**k / k, atol=1e-13)
    for k in range(1, 7):  # of y = tᵏ, with z = cᵏ and f(0) = 1 where k = 1
        assert (abs(GAMMA * (k == 1) + ERROR @ C**k) < 1e-12) == (k < 6)


@native
@pytest.mark.parametrize("period", [None, 0.01])
@pytest.mark.parametrize("wrong", [np.nan, [1.0, 2.0, 3.0], None])
def test_a_control_that_fails_leaves_the_motion_before(wrong, period):
    robot = cj.load("planar2r")
    control = lambda robot, q, v, t: np.zeros(2) if t < 0.5 else wrong
    with pytest.raises(SimulationError, match=r"control gave .* The motion up to there is kept") as caught:
        cj.simulate(robot, [0.3, 0.2], [0.0, 0.0], 1.0, control, period=period)
    motion = caught.value.motion
    assert 0.2 < motion.time[-1] <= 0.5
    whole = cj.simulate(robot, [0.3, 0.2], [0.0, 0.0], 1.0)
    np.testing.assert_allclose(motion.q, whole(motion.time)[0], atol=1e-8)
    assert motion.stopped == "error"


@native
@pytest.mark.parametrize(
    ("method", "least"), [("adaptive", 0.4999), ("implicit", 0.4999), ("variational", 0.495), ("symplectic", 0.495)]
)
def test_a_motion_is_kept_up_to_where_its_control_fails(method, least):
    robot = cj.load("planar2r")
    control = lambda robot, q, v, t: cj.where(t < 0.5, 1.0, np.nan) + 0.0 * v
    for q in ([0.3, 0.2], [[0.3, 0.2], [0.1, 0.0]]):
        with pytest.raises(SimulationError, match=r"not finite|expected 2 finite joint forces") as caught:
            cj.simulate(robot, q, [0.0, 0.0], 1.0, control, method=method)
        motion = caught.value.motion
        known = motion.time[np.isfinite(motion.q).all((0, -1) if motion.q.ndim == 3 else -1)]
        assert (least if motion.q.ndim == 2 else 0.49) <= known[-1] <= 0.5


def test_motions_too_fast_to_begin_are_an_error():
    robot = cj.load("planar2r")
    for v in (1e160, 1e300):
        with pytest.raises(cj.CoadjointError, match="the acceleration is not finite"):
            cj.simulate(robot, np.zeros(2), np.full(2, v), 0.1)
        with pytest.raises(cj.CoadjointError, match="its rate is not finite"):
            cj.geodesic(robot, np.zeros(2), np.full(2, v), 1.0)
    with pytest.raises(cj.CoadjointError, match="forces are too large"):
        cj.simulate(robot, np.zeros(2), np.zeros(2), 0.1, [1e308, 1e308])
