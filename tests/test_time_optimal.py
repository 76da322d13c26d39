"""Timing along a path: closed forms, an independent integration of the phase plane, laws of scaling and reversal, dense checks."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline, PPoly
from scipy.optimize import brentq

import coadjoint as cj
from coadjoint.errors import CoadjointError
from coadjoint.optimal.paths import as_paths

pytestmark = pytest.mark.native

A = np.array([15, 7.5, 10, 12.5, 15, 20, 20.0])


def rotor(inertia=0.3, **joint):
    robot = cj.Robot.from_screws([[0, 0, 1, 0, 0, 0]], [np.eye(4)], [1.0], [np.eye(3) * inertia])
    return robot.with_joint(robot.joint_names[0], **joint) if joint else robot


def planar():
    """Two links of one metre in a horizontal plane."""
    frames = [np.eye(4), np.eye(4)]
    frames[0][0, 3], frames[1][0, 3] = 0.5, 1.5
    screws = [[0, 0, 1, 0, 0, 0], [0, 0, 1, 0, -1, 0]]
    return cj.Robot.from_screws(screws, frames, [2.0, 1.0], [np.eye(3) * 0.1, np.eye(3) * 0.05], gravity=(0, 0, 0))


class Circle:
    """The joint path of the planar arm whose hand goes once round a circle, with its derivatives by s from those of the angles."""

    def __init__(self, centre=(1.1, 0.2), radius=0.3):
        s = np.linspace(0, 1, 401)
        x, y = centre[0] + radius * np.cos(2 * np.pi * s), centre[1] + radius * np.sin(2 * np.pi * s)
        bend = np.arccos((x**2 + y**2 - 2) / 2)
        first = np.arctan2(y, x) - np.arctan2(np.sin(bend), 1 + np.cos(bend))
        from scipy.interpolate import make_interp_spline

        self.spline = make_interp_spline(s, np.stack([first, bend], -1), k=7)

    def __call__(self, s, order=0):
        return self.spline(s, order)


def test_one_joint_under_torque_limits_is_bang_bang():
    timing = cj.time_optimal(rotor(), [[0.0], [2.0]], effort=1.5)
    assert timing.duration == pytest.approx(2 * np.sqrt(2 * 0.3 / 1.5), abs=1e-9)
    assert [x.accelerating for x in timing.switches] == [True, False]
    assert timing.switches[1].t == pytest.approx(timing.duration / 2, abs=1e-9)
    tau = timing.effort(np.linspace(0.01, timing.duration - 0.01, 50))
    np.testing.assert_allclose(np.abs(tau), 1.5, atol=1e-9)


def test_velocity_and_acceleration_make_a_trapezoid():
    timing = cj.time_optimal(rotor(), [[0.0], [2.0]], velocity=1.1, acceleration=3.0, effort=np.inf)
    assert timing.duration == pytest.approx(2 / 1.1 + 1.1 / 3, abs=1e-9)
    assert [x.quantity for x in timing.switches] == ["acceleration", "velocity", "acceleration"]
    assert timing.excess() < 1e-9


def test_straight_line_of_many_joints():
    robot = cj.load("panda")
    way = np.array([0.5, -1.0, 0.2, 0.3, -0.8, 1.2, 0.1])
    timing = cj.time_optimal(robot, [np.zeros(7), way], acceleration=A, effort=np.inf)
    v, a = np.min(robot.velocity_limit / np.abs(way)), np.min(A / np.abs(way))
    assert timing.duration == pytest.approx(1 / v + v / a if v * v < a else 2 / np.sqrt(a), abs=1e-9)


def test_friction_in_closed_form():
    """I v̇ = ±τ - d v - μ from rest over a distance: found here by roots of the closed form."""
    inertia, d, mu, tau, length = 0.3, 0.4, 0.2, 1.5, 2.0
    timing = cj.time_optimal(rotor(damping=d, friction=mu), [[0.0], [length]], effort=tau)
    up, down, k = (tau - mu) / d, (tau + mu) / d, d / inertia
    ahead = lambda t: (up * (1 - np.exp(-k * t)), up * (t - (1 - np.exp(-k * t)) / k))

    def braking(v):
        t = np.log((v + down) / down) / k
        return t, (v + down) * (1 - np.exp(-k * t)) / k - down * t

    switch = brentq(lambda t: ahead(t)[1] + braking(ahead(t)[0])[1] - length, 0.01, 5.0, xtol=1e-14)
    assert timing.duration == pytest.approx(switch + braking(ahead(switch)[0])[0], abs=1e-8)
    assert timing.excess() < 1e-8


def test_planar_arm_round_a_circle_by_an_independent_integration():
    """x from both ends and from the points where the arc touches the limit of speed, by scipy's integrator on forces from mass matrices."""
    robot, path, effort = planar(), Circle(), np.array([3.0, 1.2])
    timing = cj.time_optimal(robot, path, effort=effort)

    def bounds(s, x):
        q, dq, ddq = path(s), path(s, 1), path(s, 2)
        M = np.asarray(cj.mass_matrix(robot, q))
        a = M @ dq
        b = M @ ddq + np.asarray(cj.coriolis_matrix(robot, q, dq)) @ dq
        ends = np.sort([(-effort - b * x) / a, (effort - b * x) / a], axis=0)
        return ends[0].max(), ends[1].min()

    # between neighbouring switching points the profile is one arc: integrate each again, from its lower end on
    t = np.array([0.0, *(x.t for x in timing.switches[1:]), timing.duration])
    total = 0.0
    for k, switch in enumerate(timing.switches):
        (s0, s1), (y0, y1) = (timing.along(t[k : k + 2])[i] for i in (0, 1))
        if switch.accelerating:
            rhs = lambda _, z: [z[1], bounds(z[0], z[1] ** 2)[1]]
            begin, goal = [s0, y0], s1
        else:
            rhs = lambda _, z: [-z[1], -bounds(z[0], z[1] ** 2)[0]]
            begin, goal = [s1, y1], s0
        reached = lambda _, z, goal=goal: z[0] - goal
        reached.terminal = True
        run = solve_ivp(rhs, (0, 5), begin, method="DOP853", rtol=1e-12, atol=1e-13, events=reached, first_step=1e-6)
        assert run.t_events[0].size
        np.testing.assert_allclose(run.y_events[0][0][1], y1 if switch.accelerating else y0, atol=1e-7)
        total += run.t_events[0][0]
    assert timing.duration == pytest.approx(total, abs=1e-8)
    assert timing.excess() < 1e-9


def test_profiles_on_grids_tend_to_it():
    """A first-order scheme on a fine grid, from passes over both ends with its own rows, approaches the optimum."""
    robot = cj.load("panda")
    path = CubicSpline(np.linspace(0, 1, 5), np.random.default_rng(0).uniform(-1, 1, (5, 7)))
    timing = cj.time_optimal(robot, path, acceleration=A, effort=np.inf)
    durations = [grid_duration(path, robot.velocity_limit, A, n) for n in (400, 800)]
    assert abs(durations[1] - timing.duration) < abs(durations[0] - timing.duration)
    assert timing.duration == pytest.approx(durations[1], rel=5e-4)
    assert timing.duration == pytest.approx(3.1763552833, abs=1e-6)  # toppra 0.6.10 tends to it: 3.1783 s at 1001 points
    assert timing.excess() < 1e-9


def test_a_path_of_many_pieces():
    """It has the timing of the same curve in few pieces, backwards too; straight pieces in a row are one."""
    robot, options = planar(), {"velocity": 2.0, "acceleration": 20.0, "effort": np.inf}
    several = cj.time_optimal(robot, np.random.default_rng(50).uniform(-1, 1, (3, 50, 2)), **options)
    assert np.isfinite(several.duration).all(), several.errors
    assert max(x.excess() for x in several) < 1e-8
    path = CubicSpline(np.linspace(0, 1, 6), np.random.default_rng(1).uniform(-1, 1, (6, 2)))
    breaks = np.union1d(np.linspace(0, 1, 6), np.linspace(0, 1, 37))
    third = path((breaks[:-1] + breaks[1:]) / 2, 3)
    taylor = lambda at, sign, third: np.stack([sign * third / 6, path(at, 2) / 2, sign * path(at, 1), path(at)])
    pieces = PPoly(taylor(breaks[:-1], 1, third), breaks)
    back = PPoly(taylor(breaks[:0:-1], -1, third[::-1]), 1 - breaks[::-1])
    whole = cj.time_optimal(robot, path, **options).duration
    assert cj.time_optimal(robot, pieces, **options).duration == pytest.approx(whole, rel=1e-9)
    assert cj.time_optimal(robot, back, **options).duration == pytest.approx(whole, rel=1e-9)
    line = np.linspace([0.0, 0.0], [3.0, -1.5], 61)
    straight = cj.time_optimal(robot, line, **options)
    assert straight.duration == pytest.approx(3.0 / 2.0 + 2.0 / 20.0, rel=1e-9)
    faster = cj.time_optimal(robot, line, **options, start_speed=0.2, end_speed=np.inf)
    assert faster.duration == pytest.approx(3.0 / 2.0 + (2.0 - 0.6) ** 2 / (2 * 20.0 * 2.0), rel=1e-9)


def grid_duration(path, v, a, n):
    """Largest x at grid points with u constant between them and rows at both ends, by bisection of each step's linear programme."""
    s = np.linspace(0, 1, n + 1)
    dq, ddq, h = path(s, 1), path(s, 2), 1 / n
    cap = np.min((v / np.maximum(np.abs(dq), 1e-12)) ** 2, axis=1)

    def bounds(k, x):  # of u at node k
        with np.errstate(divide="ignore"):
            ends = np.sort([(-a - ddq[k] * x) / dq[k], (a - ddq[k] * x) / dq[k]], axis=0)
        return ends[0].max(), ends[1].min()

    def step(k, j, x1):  # the largest x at k from which x1 or less is reached at j
        low, high = 0.0, cap[k]
        for _ in range(45):
            x = (low + high) / 2
            slow, fast = bounds(k, x)
            u = (x1 - x) / (2 * (s[j] - s[k]))
            good = (slow <= fast) and (slow <= u if j > k else u <= fast)
            low, high = (x, high) if good else (low, x)
        return low

    back = np.zeros(n + 1)
    for k in range(n - 1, -1, -1):
        back[k] = step(k, k + 1, back[k + 1])
    x = np.zeros(n + 1)
    for k in range(n):
        _, fast = bounds(k, x[k])
        x[k + 1] = min(back[k + 1], x[k] + 2 * h * fast)
    return np.sum(2 * h / (np.sqrt(x[:-1]) + np.sqrt(x[1:])))


def test_scaling_and_reversal():
    robot = planar()
    points = np.array([[0.0, 0.5], [0.8, -0.3], [1.0, 0.9], [-0.2, 0.4]])
    base = cj.time_optimal(robot, points, velocity=2.0, effort=[3.0, 1.2])
    twice = cj.time_optimal(robot, points, velocity=4.0, effort=[12.0, 4.8])
    assert twice.duration == pytest.approx(base.duration / 2, abs=1e-8)
    back = cj.time_optimal(robot, points[::-1], velocity=2.0, effort=[3.0, 1.2])
    assert back.duration == pytest.approx(base.duration, abs=1e-8)
    t = np.linspace(0, base.duration, 40)
    np.testing.assert_allclose(back(back.duration - t)[0], base(t)[0], atol=1e-7)
    for timing in (base, twice, back):
        assert timing.excess() < 1e-8


def test_motion_is_consistent():
    robot = planar()
    timing = cj.time_optimal(robot, [[0.0, 0.5], [0.8, -0.3], [1.0, 0.9]], velocity=2.0, effort=[3.0, 1.2])
    t, e = np.linspace(0.02, timing.duration - 0.02, 60), 1e-5
    t = t[np.min(np.abs(t[:, None] - [x.t for x in timing.switches]), axis=1) > 3 * e]
    _, v, a = timing(t)
    ahead, behind = timing(t + e), timing(t - e)
    np.testing.assert_allclose((ahead[0] - behind[0]) / (2 * e), v, atol=1e-6)
    np.testing.assert_allclose((ahead[1] - behind[1]) / (2 * e), a, atol=1e-5)
    first, last = timing(0.0), timing(timing.duration)
    np.testing.assert_allclose(first[0], [0.0, 0.5], atol=1e-12)
    np.testing.assert_allclose(last[0], [1.0, 0.9], atol=1e-9)
    np.testing.assert_allclose(first[1], 0.0, atol=1e-9)
    np.testing.assert_allclose(last[1], 0.0, atol=1e-6)


def test_places_are_the_integral_of_speeds():
    """Over a long cell that begins just after rest, too, as on the second path."""
    points = np.random.default_rng(1).uniform(-1, 1, (132, 5, 7))
    timings = cj.time_optimal(cj.load("panda"), points[[0, 131]], acceleration=A, effort=np.inf)
    nodes, weights = np.polynomial.legendre.leggauss(10)
    for timing in timings:
        arcs = [x.t for x in timing.switches] + [timing.duration]
        t = np.unique(np.concatenate([np.linspace(a, b, 41) for a, b in pairwise(arcs)]))
        half = np.diff(t)[:, None] / 2
        _, rate, _ = timing.along((t[:-1] + t[1:])[:, None] / 2 + half * nodes)
        np.testing.assert_allclose((half * rate * weights).sum(), 1.0, rtol=2e-10)
        ahead = np.cumsum((half * rate * weights).sum(axis=1))
        np.testing.assert_allclose(timing.along(t[1:])[0], ahead, atol=2e-10)


def test_a_follower_is_no_faster_than_its_own_limit():
    """The second joint turns twice as fast as the first, backwards; its friction and weight are felt there."""
    lead = cj.Joint.revolute((0, 0, 1), name="lead", velocity=1.0, effort=20.0)
    follow = cj.Joint.revolute((0, 1, 0), name="follow", velocity=0.3, damping=0.2, friction=0.1, mimic=cj.Mimic("lead", -2.0, 0.1))
    links = [cj.Link.solid("a", "base", lead, np.eye(4), mass=2.0, inertia=0.1)]
    links.append(cj.Link.solid("b", "a", follow, np.eye(4), mass=1.0, com=[0.3, 0.0, 0.0], inertia=0.05))
    robot = cj.Robot("pair", links)
    line = cj.time_optimal(robot, [[0.0], [2.0]], acceleration=0.5, effort=np.inf)
    assert line.duration == pytest.approx(2.0 / 0.15 + 0.15 / 0.5, rel=1e-9)
    timing = cj.time_optimal(robot, [[0.0], [1.0]], effort=9.0)
    t = np.linspace(1e-6, timing.duration - 1e-6, 2001)
    q, v, a = timing(t)
    tau = np.asarray(cj.inverse_dynamics(robot, q, v, a)) + 4.0 * 0.2 * v + 2.0 * 0.1 * np.sign(v)
    assert np.abs(2.0 * v).max() == pytest.approx(0.3, rel=1e-9)
    assert np.abs(tau).max() == pytest.approx(9.0, rel=1e-9)


@pytest.mark.parametrize("which", [0, 10])
def test_a_path_of_many_turns(which):
    """A hundred radians between waypoints: cells were too long for rows as polynomials; one was exceeded by 1e-8, one path refused."""
    rng = np.random.default_rng(5)
    for nv in (4, 6):
        rng.uniform(-1, 1, (16, 5, nv))
    path = rng.uniform(-1, 1, (16, 5, 7))[which] * 100.0
    timing = cj.time_optimal(cj.load("panda"), path, velocity=2.0)
    assert timing.excess() < 1e-10
    back = cj.time_optimal(cj.load("panda"), path[::-1], velocity=2.0)
    assert back.duration == pytest.approx(timing.duration, rel=1e-9)


def test_a_path_too_long_is_told_so():
    path = np.random.default_rng(0).uniform(-1, 1, (5, 7)) * 1e4
    with pytest.raises(CoadjointError, match=r"path is too long to be timed at once: .*Time parts of it"):
        cj.time_optimal(cj.load("panda"), path, velocity=2.0)


@pytest.mark.parametrize("place", [0.5, 0.37, 0.6180339887])
def test_a_joint_that_begins_to_move_smoothly(place):
    """Its row has a zero of inertia of fourth order, q₂ = 3 (s - place)⁵ from there on, of which five points in a cell say nothing."""
    limits = {"velocity": np.inf, "acceleration": [1.0, 2.0], "effort": np.inf}
    rest, c = np.zeros(6), 1.0 - place
    moves = np.array([3.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    line = lambda start, way: np.array([0.0, 0.0, 0.0, 0.0, way, start])
    ahead = PPoly(np.array([[line(0.0, 1.0), line(place, 1.0)], [rest, moves]]).T, [0.0, place, 1.0])
    back = PPoly(np.array([[line(1.0, -1.0), line(place, -1.0)], [-3.0 * np.poly([c] * 5), rest]]).T, [0.0, c, 1.0])
    timing, other = (cj.time_optimal(planar(), path, **limits) for path in (ahead, back))
    assert timing.excess() < 1e-9
    assert other.excess() < 1e-9
    assert other.duration == pytest.approx(timing.duration, rel=1e-9)


def test_joints_that_rest_but_for_rounding():
    """A wrist that turns a hand which its arm holds still: inverse kinematics leaves 1e-15 of noise. That path was refused."""
    robot = cj.load("puma560")
    q = np.array([0.1, -0.8, 2.6, 0.0, 0.4, 0.0])
    start, goal = (np.asarray(cj.pose(robot, x, "tip")) for x in (q, q * [1, 1, 1, 1, -1, 1]))
    path = cj.geodesic_path(start, goal)
    limits = np.array([15, 7.5, 10, 12.5, 15, 20.0])
    free = np.where(np.arange(6) < 3, np.inf, limits)
    timing, alone = (cj.time_optimal(robot, path, None, x, np.inf, frame="tip", q=q) for x in (limits, free))
    assert timing.duration == pytest.approx(alone.duration, rel=1e-9)
    assert timing.excess() < 1e-9


@pytest.mark.parametrize(
    ("move", "message"), [(2.0, "cannot follow its path near s = .*singular there, or out of reach"), (0.0, "does not move")]
)
def test_paths_of_poses_that_cannot_be_followed(move, message):
    robot, q = cj.load("puma560"), np.array([0, -0.8, 2.6, 0, 0.5, 0.0])
    start = np.asarray(cj.pose(robot, q, "tip"))
    goal = start.copy()
    goal[0, 3] += move
    with pytest.raises(CoadjointError, match=message):
        cj.time_optimal(robot, cj.geodesic_path(start, goal), frame="tip", q=q)


def test_gravity_payload_and_speeds_at_the_ends():
    robot = cj.load("panda")
    robot = robot.lock(dict.fromkeys(robot.joint_names[2:], 0.3))
    points = np.array([[0.0, 0.2], [0.7, 0.6], [1.0, -0.4]])
    empty = cj.time_optimal(robot, points, effort=60.0)
    loaded = cj.time_optimal(robot.with_payload("tip", mass=3.0), points, effort=60.0)
    moving = cj.time_optimal(robot, points, effort=60.0, start_speed=0.5, end_speed=np.inf)
    assert loaded.duration > empty.duration > moving.duration
    assert moving.along(0.0)[1] == pytest.approx(0.5, abs=1e-9)
    for timing in (empty, loaded, moving):
        assert timing.excess() < 1e-8


def test_what_exceeds_its_limits_is_told(monkeypatch):
    """The excess that the search itself knows is no less than that of dense times."""
    monkeypatch.setattr(sys.modules["coadjoint.optimal.time_optimal"], "EXCEEDED", -1.0)
    arm, points = planar(), np.array([[0.2, 0.3], [0.9, -0.4], [0.1, 0.5]])
    with pytest.warns(UserWarning, match=r"^limits are exceeded by \S+ of them near s = ") as told:
        timing = cj.time_optimal(arm, points, velocity=2.0, effort=[30.0, 10.0])
    assert timing.excess() < 1.1 * float(str(told[0].message).split()[4]) + 1e-12
    with pytest.warns(UserWarning, match=r"^path \d: .*; so are those of 1 other paths\."):
        cj.time_optimal(arm, [points, -points], velocity=2.0, effort=[30.0, 10.0])


def test_many_paths_in_one_call():
    robot, rng = cj.load("panda"), np.random.default_rng(1)
    points = rng.uniform(-1, 1, (12, 5, 7))
    timings = cj.time_optimal(robot, points, acceleration=A, effort=np.inf)
    assert not timings.errors
    assert timings.duration.shape == (12,)
    for k in (0, 7):
        alone = cj.time_optimal(robot, points[k], acceleration=A, effort=np.inf)
        assert timings.duration[k] == pytest.approx(alone.duration, abs=1e-9)
        assert timings[k].duration == pytest.approx(timings.duration[k], abs=1e-12)
    assert max(x.excess(500) for x in timings) < 1e-8


def test_a_path_of_poses():
    robot = planar()
    robot = robot.with_frame("hand", robot.link_names[-1], np.array([[1, 0, 0, 0.5], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]]))
    start, goal = (np.asarray(cj.pose(robot, q, "hand")) for q in ([0.2, 0.9], [0.8, 1.3]))
    with pytest.raises(CoadjointError, match=r"cannot follow its path|cannot reach"):  # two joints follow no arbitrary pose
        cj.time_optimal(robot, cj.geodesic_path(start, goal), effort=3.0, frame="hand", q=[0.2, 0.9])


def test_a_path_of_poses_of_an_arm():
    robot = cj.load("panda")
    q = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
    start = np.asarray(cj.pose(robot, q, "tip"))
    goal = start.copy()
    goal[:3, 3] += [0.1, 0.15, -0.1]
    path = cj.geodesic_path(start, goal)
    timing = cj.time_optimal(robot, path, acceleration=A, frame="tip", q=q)
    s = timing.along(t := np.linspace(0, timing.duration, 30))[0]
    np.testing.assert_allclose(cj.pose(robot, timing(t)[0], "tip"), path.curve(s)[0], atol=1e-6)
    assert timing.excess() < 1e-8


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: cj.time_optimal(r, [[0.0, 0.0]]), "at least two"),
        (lambda r: cj.time_optimal(r, [[0.0], [1.0]]), "expected waypoints"),
        (lambda r: cj.time_optimal(r, "circle"), "expected waypoints"),
        (lambda r: cj.time_optimal(r, [[0.0, 0.0], [np.nan, 1.0]]), "not finite"),
        (lambda r: cj.time_optimal(r, [[0.0, 0.0], [1.0, 1.0]]), "nothing limits the acceleration"),
        (lambda r: cj.time_optimal(r, [[0.0, 0.0], [1.0, 1.0]], effort=0.0), "effort of joint1 is 0"),
        (lambda r: cj.time_optimal(r, [[0.0, 0.0], [1.0, 1.0]], effort=[1.0, 2.0, 3.0]), r"has shape \(3,\)"),
        (lambda r: cj.time_optimal(r, [[0.3, 0.2], [0.3, 0.2]], effort=1.0), "does not move"),
        (lambda r: cj.time_optimal(r, [[0.0, 0.0], [1.0, 1.0]], effort=1.0, start_speed=50.0), "start_speed is too high"),
        (lambda r: cj.time_optimal(r, [[0.0, 0.0], [1.0, 1.0]], effort=1.0, end_speed=50.0), "end_speed cannot be reached"),
        (lambda r: cj.time_optimal(r, [[0.0, 0.0], [1.0, 1.0]], effort=1.0, start_speed=-1.0), "0 or more"),
        (lambda r: cj.time_optimal(r, CubicSpline([0, 2.0], [[0.0, 0], [1, 1]]), effort=1.0), "from 0 to 2; expected 0 to 1"),
        (lambda r: cj.time_optimal(r, lambda s: np.stack([s, s], -1), effort=1.0), "order of the derivative"),
        (lambda r: cj.time_optimal(r, [[0.0, 0.0], [1.0, 1.0]], effort=1.0, reaction={"elbow": 1.0}), "no joint is named 'elbow'"),
        (lambda r: cj.time_optimal(r, [[0.0, 0.0], [1.0, 1.0]], effort=1.0)(9.0), "the motion from 0 to"),
        (lambda r: cj.time_optimal(None, [[0.0, 0.0], [1.0, 1.0]]), "expected a Robot"),
    ],
)
def test_what_is_wrong_is_named(call, message):
    with pytest.raises(CoadjointError, match=message):
        call(planar())


def test_a_kink_is_named():
    from scipy.interpolate import PPoly

    corner = PPoly(np.array([[[1.0, 1.0], [1.0, -1.0]], [[0.0, 0.0], [0.5, 0.5]]]), [0.0, 0.5, 1.0])
    with pytest.raises(CoadjointError, match=r"kink at s = 0.5: dq/ds of joint 'joint2' jumps from 1 to -1"):
        cj.time_optimal(planar(), corner, effort=1.0)


def test_a_path_that_cannot_be_held_is_told_with_place_and_joint():
    robot = cj.load("panda")
    robot = robot.lock(dict.fromkeys(robot.joint_names[2:], 0.0))
    with pytest.raises(CoadjointError, match=r"cannot be followed at s = .*effort of 'joint2' needs .* times its limit"):
        cj.time_optimal(robot, [[0.0, 0.0], [0.0, 1.5]], effort=[20.0, 10.0])
    timings = cj.time_optimal(robot, [[[0.0, 0.0], [0.0, 1.5]], [[0.0, 0.0], [1.0, 0.0]]], effort=[20.0, 10.0])
    assert list(timings.errors) == [0]
    assert np.isnan(timings.duration[0])
    assert timings.duration[1] > 0
    with pytest.raises(CoadjointError, match="path 0: the path cannot be followed"):
        timings[0]


def test_a_path_that_stands_still_does_not_stop_the_others():
    robot, moves = planar(), np.array([[0.0, 0.0], [0.3, 0.5], [1.0, 0.2]])
    timings = cj.time_optimal(robot, np.stack([moves, 0 * moves, 2 * moves]), acceleration=3.0)
    assert list(timings.errors) == [1]
    assert "does not move" in timings.errors[1]
    alone = [cj.time_optimal(robot, x, acceleration=3.0).duration for x in (moves, 2 * moves)]
    np.testing.assert_allclose(timings.duration, [alone[0], np.nan, alone[1]], rtol=1e-12)
    with pytest.raises(CoadjointError, match="path does not move"):
        cj.time_optimal(robot, 0 * moves, acceleration=3.0)


@pytest.mark.parametrize("place", [0.375, 25 / 64, 0.37])
def test_the_place_where_a_path_stands_still_is_told(place):
    """dq/ds = 3 (s - place)²."""
    cubic = PPoly(np.array([[[1.0, -2.0]], [[-3 * place, 6 * place]], [[3 * place**2, -6 * place**2]], [[0.0, 0.0]]]), [0.0, 1.0])
    with pytest.raises(CoadjointError, match=f"path stands still at s = {place:.6g}: "):
        cj.time_optimal(planar(), cubic, acceleration=5.0)


@pytest.mark.parametrize("velocity", [None, 20.0])
def test_a_pendulum_too_weak_to_rise_is_told_so(velocity):
    """From hanging over the top and down again without a limit of speed: where x = ṡ² would be negative, there is no motion.

    The work of the motor over the angle φ from hanging must be more than the potential energy, τ φ > m g l (1 - cos φ) all the way.
    """
    robot = cj.load("planar1r")
    most = float(cj.gravity_force(robot, np.zeros(1))[0])
    angle = np.linspace(0.01, np.pi, 10000)
    needed = float(((1 - np.cos(angle)) / angle).max())
    path = [[-np.pi / 2], [1.5 * np.pi]]
    for part in (0.01, 0.3, 0.6, 0.999 * needed):
        with pytest.raises(CoadjointError, match=r"cannot be followed at s = .*effort of 'joint1'"):
            cj.time_optimal(robot, path, velocity, effort=part * most)
    assert cj.time_optimal(robot, path, velocity, effort=1.001 * needed * most).duration < 20
    with pytest.raises(CoadjointError, match=r"cannot be followed at s = .*effort of 'joint1'"):
        cj.time_optimal(robot, [[-1.0], [1.0]], velocity, effort=0.3 * most)


def test_joints_whose_velocity_is_no_derivative_are_refused():
    robot = cj.Robot("ball", [cj.Link.solid("l", "base", cj.Joint.spherical(name="ball"), np.eye(4), mass=1.0, inertia=0.1)])
    with pytest.raises(CoadjointError, match="joint 'ball' is spherical"):
        cj.time_optimal(robot, np.zeros((2, 3)), effort=1.0)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 17, 64, 65, 90])
def test_waypoints_are_joined_by_the_spline_of_scipy(count):
    points = np.random.default_rng(count).normal(size=(3, count, 7))
    points[1, :, 4] = 0.3  # a joint that rests
    splines, single = as_paths(cj.load("panda"), points)
    assert not single
    for k in range(3):
        theirs = CubicSpline(np.linspace(0, 1, count), points[k])
        mine = splines.c[splines.first[k] : splines.first[k + 1]]
        np.testing.assert_array_equal(splines.breaks(k), theirs.x)
        np.testing.assert_allclose(mine, np.moveaxis(theirs.c, 1, 0), rtol=0, atol=1e-13 * np.abs(theirs.c).max())
    resting = splines.c[splines.first[1] : splines.first[2], :, 4]
    assert np.all(resting[:, :3] == 0.0)


def test_what_a_call_keeps_is_not_changed_by_others():
    """Limits, memory and grids are kept from call to call: results do not depend on what was timed before, in other threads or inside."""
    panda = cj.load("panda")
    paths = np.random.default_rng(3).uniform(-1, 1, (6, 5, 7))
    limit = A.copy()
    alone = [cj.time_optimal(panda, x, acceleration=limit, effort=np.inf) for x in paths]
    t = np.linspace(0, alone[0].duration, 7)
    before = alone[0](t)
    with ThreadPoolExecutor(3) as pool:
        again = list(pool.map(lambda x: cj.time_optimal(panda, x, acceleration=limit, effort=np.inf).duration, paths))
    inner = []
    within = lambda done: inner.append(cj.time_optimal(panda, paths[5]).duration)
    together = cj.time_optimal(panda, paths, acceleration=limit, effort=np.inf, report=within)
    expected = [x.duration for x in alone]
    assert inner
    assert again == expected
    assert together.duration.tolist() == expected
    limit *= 0.5  # the caller's own array
    assert cj.time_optimal(panda, paths[0], acceleration=limit, effort=np.inf).duration > expected[0]
    with pytest.raises(ValueError, match="read-only"):
        alone[0].limits.velocity[0] = 1.0
    np.testing.assert_array_equal(alone[0](t), before)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(alone[0]))(t), before)


def test_kinks_of_one_of_several_splines():
    s = np.linspace(0, 1, 5)
    smooth = CubicSpline(s, np.random.default_rng(0).uniform(-1, 1, (5, 2)))
    other = CubicSpline(s, np.random.default_rng(1).uniform(-5, 5, (5, 2)))
    bent = PPoly(np.array([[[1.0, 1.0], [2.0, 1.0]], [[0.0, 0.0], [1.0, 0.5]]]).transpose(0, 2, 1), [0.0, 0.5, 1.0])
    assert np.all(np.isfinite(cj.time_optimal(planar(), [smooth, other, smooth], acceleration=1.0).duration))  # they need not meet
    with pytest.raises(CoadjointError, match=r"kink at s = 0\.5"):
        cj.time_optimal(planar(), [smooth, bent, other], acceleration=1.0)


def test_where_two_limits_of_speed_meet():
    """A corner of the limit of speed inside a cell is found: on these paths limits were exceeded by 1e-7, and the speed jumped by 8 %."""
    paths = np.random.default_rng(1).uniform(-1, 1, (300, 5, 7))
    for which, limits in (((145, 231, 183, 236, 123), {"acceleration": A, "effort": np.inf}), ((267, 191, 279, 143), {})):
        timings = cj.time_optimal(cj.load("panda"), paths[list(which)], **limits)
        for timing in timings:
            assert timing.excess() < 1e-9
            profile = timing._profile
            ends = profile.x[:, None] + profile.y[:, [0, -1]]
            np.testing.assert_allclose(ends[1:, 0], ends[:-1, 1], rtol=2e-9, atol=1e-12)


def test_a_limit_that_is_exceeded_between_the_places_that_are_looked_at():
    """An arc that ends on the limit of velocity was above it before, by 5e-7 of it, within a hundredth of a cell."""
    robot = cj.load("panda")
    path = np.random.default_rng(1).uniform(-1, 1, (615, 5, 7))[614]
    timing = cj.time_optimal(robot, path, acceleration=A, effort=np.inf)
    before = timing.duration - np.linspace(0.70, 0.78, 4001)
    assert np.max(np.abs(timing(before)[1]) / robot.velocity_limit) < 1 + 1e-9


def test_a_limit_of_speed_that_is_left_soon_after_a_cell_begins():
    """There the arc ahead and the limit begin together, and the limit is the lower one: cuts crept towards the place, and did not end."""
    path = np.random.default_rng(17).uniform(-1, 1, (316, 5, 7))[315]
    back = cj.time_optimal(cj.load("panda"), path[::-1])
    assert cj.time_optimal(cj.load("panda"), path).duration == pytest.approx(back.duration, rel=1e-9)


def test_power_in_closed_form():
    """Full force up to v = P / τ, then I v v̇ = P: v² grows evenly with time and v³ with the way."""
    inertia, tau, power, length = 0.3, 1.5, 2.0, 2.0
    timing = cj.time_optimal(rotor(), [[0.0], [length]], effort=tau, power=power)
    v = power / tau
    t = v * inertia / tau
    top = np.cbrt((length / 2 - v * t / 2) * 3 * power / inertia + v**3)
    assert timing.duration == pytest.approx(2 * (t + (top**2 - v**2) * inertia / 2 / power), abs=1e-9)
    assert [x.quantity for x in timing.switches] == ["effort", "power", "power", "effort"]
    assert timing.excess() < 1e-9


def test_powers_of_an_arm():
    robot, paths = cj.load("panda"), np.random.default_rng(1).uniform(-1, 1, (8, 5, 7))
    free = cj.time_optimal(robot, paths)
    timings = cj.time_optimal(robot, paths, power=60.0)
    assert not timings.errors
    assert np.all(timings.duration >= free.duration * (1 - 1e-9))
    assert "power" in {x.quantity for timing in timings for x in timing.switches}
    t = np.linspace(0, timings[0].duration, 2000)
    assert np.abs(timings[0].effort(t) * timings[0](t)[1]).max() < 60.0 * (1 + 1e-7)
    far = cj.time_optimal(robot, paths, power=1e5)
    np.testing.assert_allclose(far.duration, free.duration, rtol=1e-8)


def test_a_frame_has_limits_of_its_own():
    """Speed, acceleration and grip at the hand, from differences of its poses."""
    robot = cj.load("panda")
    path = np.random.default_rng(2).uniform(-1, 1, (5, 7))
    speed, most, mass, force = (2.0, 0.8), np.array([15, 15, 15, 5, 5, 5.0]), 1.5, np.array([np.inf] * 3 + [22, 22, 22.0])
    limits = {"frame_speed": {"tip": speed}, "frame_acceleration": {"tip": most}, "grip": {"tip": (mass, force)}}
    timing = cj.time_optimal(robot, path, **limits)
    assert timing.excess() < 1e-8
    e = 1e-4
    t = np.linspace(2 * e, timing.duration - 2 * e, 1500)
    t = t[np.min(np.abs(t[:, None] - [x.t for x in timing.switches]), axis=1) > 2 * e]
    T0, T, T1 = (np.asarray(cj.pose(robot, timing(t + d)[0], "tip")) for d in (-e, 0.0, e))
    v = (T1 - T0)[:, :3, 3] / (2 * e)
    a = np.einsum("nji,nj->ni", T[:, :3, :3], (T1 - 2 * T + T0)[:, :3, 3] / e**2)
    hold = mass * (a - np.einsum("nji,j->ni", T[:, :3, :3], robot.gravity))
    spin = np.linalg.norm((T1 - T0)[:, :3, :3] / (2 * e), axis=(1, 2)) / np.sqrt(2)
    used = np.linalg.norm(v, axis=1) / speed[1], spin / speed[0], np.abs(a) / most[3:], np.abs(hold) / force[3:]
    assert max(x.max() for x in used) < 1 + 1e-4
    assert max(x.max() for x in used) > 1 - 1e-3
    assert {"linear speed", "angular speed"} & {x.quantity for x in timing.switches}


@pytest.mark.parametrize(("kind", "limit"), [("frame_speed", 1.0), ("grip", (2.0, [np.inf] * 3 + [30.0] * 3))])
def test_a_limit_of_a_frame_scales(kind, limit):
    """Weightless, a grip that is four times as strong and joints so too halve the time; a speed alone is inverse to it."""
    robot = cj.load("panda").with_gravity((0.0, 0.0, 0.0))
    path = np.random.default_rng(4).uniform(-1, 1, (4, 7))
    twice = 2.0 if kind == "frame_speed" else (limit[0], [4 * x for x in limit[1]])
    slow = cj.time_optimal(robot, path, 1.0, 3.0, np.inf, **{kind: {"tip": limit}})
    fast = cj.time_optimal(robot, path, 2.0, 12.0, np.inf, **{kind: {"tip": twice}})
    assert fast.duration == pytest.approx(slow.duration / 2, rel=1e-8)


def test_viscous_friction_is_no_reason_to_stop():
    """Near rest the slope of √x has no bound: paths were refused that can be followed."""
    robot = cj.load("panda").with_joint("joint2", damping=0.5)
    timings = cj.time_optimal(robot, np.random.default_rng(1).uniform(-1, 1, (30, 5, 7))[[2, 22]])
    assert not timings.errors
    assert max(x.excess() for x in timings) < 1e-8


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"power": -1.0}, "power of joint1 is -1"),
        ({"effort": np.inf, "power": 10.0}, "nothing limits the acceleration"),
        ({"frame_speed": {"nose": 1.0}}, "nose"),
        ({"frame_speed": 1.0}, r"expected \{frame: limits\}"),
        ({"frame_acceleration": {"tip": [1.0, 2.0]}}, r"shape \(2,\).*angular acceleration x"),
        ({"grip": {"tip": 20.0}}, r"expected \(inertia, six limits\)"),
        ({"grip": {"tip": (-1.0, 20.0)}}, "not symmetric, finite and positive"),
        ({"grip": {"tip": (2.0, [1, 1, 1, 5.0, 5.0, 5.0])}}, r"grip force . of 'tip' needs .* times its limit"),
    ],
)
def test_wrong_limits_of_powers_and_frames_are_named(limits, message):
    with pytest.raises(CoadjointError, match=message):
        cj.time_optimal(cj.load("panda"), np.random.default_rng(0).uniform(-1, 1, (3, 7)), **limits)


@pytest.mark.parametrize(
    ("velocity", "acceleration", "duration"),
    [
        (10.0, 0.5, 2 * ((-0.25 + np.sqrt(0.0625 + 2)) + 0.5)),
        *(pytest.param(*x, marks=pytest.mark.slow) for x in ((10.0, 10.0, 32 ** (1 / 3)), (0.4, 5.0, 1 / 0.4 + 2 * np.sqrt(0.4)))),
    ],
)
def test_jerk_of_one_joint_in_closed_form(velocity, acceleration, duration):
    """Phases of constant jerk: the least duration of a metre under a jerk of 1, with or without phases of acceleration and speed."""
    timing = cj.time_optimal(rotor(), [[0.0], [1.0]], velocity, acceleration, np.inf, jerk=1.0)
    assert duration <= timing.duration <= duration * (1 + 6e-5)
    assert timing.excess() < 1e-9
    assert {x.quantity for x in timing.switches} >= {"jerk"}


@pytest.mark.parametrize("slower", [1e-3, pytest.param(1e4, marks=pytest.mark.slow)])
def test_jerk_scales_with_time(slower):
    """The same motion in other units of time, however slow or fast."""
    at = lambda k: cj.time_optimal(rotor(), [[0.0], [1.0]], 0.9 / k, 1.2 / k**2, np.inf, jerk=3.0 / k**3).duration
    assert at(slower) == pytest.approx(slower * at(1.0), rel=1e-6)


def test_jerk_of_an_arm():
    """The jerk is the derivative of the acceleration and within its limit at all times; the motion rests at both ends."""
    robot = planar()
    points = np.array([[0.0, 0.5], [0.8, -0.3], [1.0, 0.9]])
    free = cj.time_optimal(robot, points, velocity=2.0, effort=[3.0, 1.2])
    timing = cj.time_optimal(robot, points, velocity=2.0, effort=[3.0, 1.2], jerk=20.0)
    assert timing.duration > free.duration
    assert timing.excess() < 1e-9
    t, e = np.linspace(0.01, timing.duration - 0.01, 200), 1e-6
    change = (timing(t + e)[2] - timing(t - e)[2]) / (2 * e)
    assert np.median(np.abs(change - timing.jerk(t))) < 1e-6
    for x in timing(np.array([0.0, timing.duration]))[1:]:
        np.testing.assert_allclose(x, 0.0, atol=1e-9)


def test_jerk_where_curvature_jumps_is_refused():
    bend = PPoly(np.array([[[0.0, 0.0], [1.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]], [[0.0, 0.0], [0.5, 0.5]]]), [0.0, 0.5, 1.0])
    with pytest.raises(CoadjointError, match=r"d²q/ds² of joint 'joint1' jumps from 0 to 2 at s = 0.5"):
        cj.time_optimal(planar(), bend, effort=1.0, jerk=1.0)
    with pytest.raises(CoadjointError, match=r"jerk of joint1 is -1"):
        cj.time_optimal(planar(), [[0.0, 0.0], [1.0, 1.0]], effort=1.0, jerk=-1.0)


def test_users_functions_with_kinks_and_wrong_derivatives_are_refused():
    way = np.array([1.0, -0.5])
    corner = lambda s, k=0: (np.abs(s - 0.4), np.sign(s - 0.4), 0.0 * s)[k][:, None] * way
    wrong = lambda s, k=0: np.sin(3.0 * s)[:, None] * way
    second = lambda s, k=0: (s**2, 2 * s, 0.0 * s)[k][:, None] * way
    for path, message in (
        (corner, r"kink at s = 0.4: dq/ds of joint 'joint1' jumps from -1 to 1"),
        (wrong, r"path\(s, 1\) is not the derivative of path\(s\)"),
        (second, r"path\(s, 2\) is not the derivative of path\(s, 1\)"),
    ):
        with pytest.raises(CoadjointError, match=message):
            cj.time_optimal(planar(), path, effort=1.0)
