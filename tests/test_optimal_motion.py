"""Optimal motions meet closed forms, geodesics and the conditions of first order."""

import pickle

import numpy as np
import pytest
from scipy.integrate import simpson

import coadjoint as cj
from coadjoint.errors import CoadjointError
from coadjoint.motion.tables import read_states
from coadjoint.optimal.drives import OpenChain
from coadjoint.optimal.equalities import Equality
from coadjoint.optimal.motion_arguments import first_guess
from coadjoint.optimal.rows import Coordinates, MotorPower, Torques
from coadjoint.optimal.splines import Spline
from coadjoint.optimal.stages import Effort, Energy, Power, action
from coadjoint.optimal.transcription import Transcription
from laws import derivatives_of, rate
from models import urdf_files

ARM = cj.load("planar2r")
NAMES = ("joint1", "joint2")


def slider(mass=2.0, count=1):
    """Masses on slides: M is constant, and nothing pulls."""
    links = [cj.Link.solid(f"m{k}", "base", cj.Joint.prismatic(np.eye(3)[k]), mass=mass + k) for k in range(count)]
    return cj.Robot("slides", links, gravity=(0, 0, 0))


@pytest.mark.native
def test_least_action_is_the_geodesic():
    arm = ARM.with_gravity((0, 0, 0))
    motion = cj.optimal_motion(arm, [0.3, 0.5], [1.2, -0.4], 1.0, "action", limits=False, spans=32, tolerance=1e-10)
    assert motion.converged
    q, v = cj.geodesic(arm, motion.q[0], motion.v[0], motion.time)
    np.testing.assert_allclose(motion.q, q, atol=1e-9)
    np.testing.assert_allclose(motion.v, v, atol=1e-7)
    # the action of a geodesic of length L in T seconds is L²/2T
    np.testing.assert_allclose(motion.cost, 0.5 * cj.geometry.distance(arm, [0.3, 0.5], [1.2, -0.4]) ** 2, rtol=1e-9)


@pytest.mark.native
def test_a_geodesic_beyond_its_conjugate_point_is_no_minimum():
    """On the sphere of a spherical pendulum a great circle of more than half a turn is stationary; a shorter way costs less."""
    ball = cj.load("spherical_pendulum").with_gravity((0, 0, 0))
    goal = [np.pi + 0.6, 0.0]
    s = np.linspace(0, 1, 40)
    long = np.stack([goal[0] * s, 0.0 * s], axis=-1)
    here = cj.optimal_motion(ball, [0.0, 0.0], goal, 1.0, "action", limits=False, guess=long)
    action_of_the_arc = float(cj.kinetic_energy(ball, [0.3, 0.0], [goal[0], 0.0]))
    np.testing.assert_allclose(here.cost, action_of_the_arc, rtol=1e-8)  # by symmetry the search stays on the circle
    assert not here.converged
    assert here.message.startswith("a saddle")
    assert here.least_curvature < -1e-3
    short = cj.optimal_motion(
        ball, [0.0, 0.0], [np.pi - 0.6, 0.0], 1.0, "action", limits=False, guess=long * (np.pi - 0.6) / goal[0]
    )
    assert short.converged
    assert short.least_curvature > 0
    aside = cj.optimal_motion(
        ball, [0.0, 0.0], goal, 1.0, "action", limits=False, guess=long + [0.0, 1e-2] * np.sin(np.pi * s)[:, None]
    )
    assert aside.cost < 0.95 * action_of_the_arc


@pytest.mark.native
def test_least_effort_of_a_constant_mass_matrix_is_a_cubic():
    robot = slider(2.0, 2)
    start, goal, T = np.array([0.1, -0.3]), np.array([1.4, 0.8]), 1.7
    motion = cj.optimal_motion(robot, start, goal, T, "effort", spans=4, tolerance=1e-12)
    s = motion.time[:, None] / T
    np.testing.assert_allclose(motion.q, start + (goal - start) * (3 * s**2 - 2 * s**3), atol=1e-10)
    np.testing.assert_allclose(motion.cost, np.sum((np.array([2.0, 3.0]) * (goal - start)) ** 2 * 12 / T**3), rtol=1e-10)
    assert motion.converged
    assert len(motion.table) <= 3  # a linear-quadratic problem: one step


@pytest.mark.native
def test_a_flat_arm_in_other_coordinates_has_the_same_cubic():
    """A point mass on two massless links moves in a plane: τᵀM⁻¹τ is its squared force over m, whatever the coordinates."""
    hand = cj.Link.solid("hand", "upper", cj.Joint.revolute([0, 0, 1], [1, 0, 0]), mass=2.0, com=(0.8, 0, 0))
    arm = cj.Robot("flat", [cj.Link("upper", "base", cj.Joint.revolute([0, 0, 1])), hand], gravity=(0, 0, 0))
    arm = arm.with_frame("mass", "hand", cj.lie.se3.exp([0, 0, 0, 0.8, 0, 0]))

    def force(robot, q, v, a):
        tau = cj.inverse_dynamics(robot, q, v, a)
        return (tau * (cj.mass_matrix_inverse(robot, q) @ tau[..., None])[..., 0]).sum(-1)

    start, goal, T = np.array([0.2, 0.9]), np.array([0.9, 1.2]), 1.3
    assert np.ptp(cj.mass_matrix(arm, [start, goal]), axis=0).max() > 0.1  # M is not constant in these coordinates
    motion = cj.optimal_motion(arm, start, goal, T, force, spans=24, tolerance=1e-11)
    x = cj.pose(arm, motion.q, "mass")[:, :3, 3]
    s = motion.time[:, None] / T
    np.testing.assert_allclose(x, x[0] + (x[-1] - x[0]) * (3 * s**2 - 2 * s**3), atol=1e-9)
    np.testing.assert_allclose(motion.cost, 2.0 * np.sum((x[-1] - x[0]) ** 2) * 12 / T**3, rtol=1e-10)
    assert motion.converged


@pytest.mark.native
def test_the_fastest_motion_of_one_joint_approaches_bang_bang():
    robot, far, force = slider(2.0), 1.5, 3.0
    best = 2.0 * np.sqrt(far * 2.0 / force)
    durations = [cj.optimal_motion(robot, [0.0], [far], cost="time", effort=force, spans=n).duration for n in (6, 16)]
    assert best < durations[1] < durations[0]
    assert durations[1] < 1.02 * best


def problem(free_time):
    spline = Spline(3, degree=5, nodes=3)
    rng = np.random.default_rng(0)
    control = rng.normal(size=(2, spline.size, 2))
    limits = [
        Coordinates(0, np.array([-9.0, -np.inf]), np.array([9.0, 8.0]), NAMES),
        Coordinates(1, np.full(2, -50.0), np.full(2, 50.0), NAMES),
        Coordinates(3, np.full(2, -5e3), np.full(2, 5e3), NAMES),
        Torques(np.array([300.0, 500.0]), NAMES),
        MotorPower(np.array([900.0, 800.0]), NAMES),
    ]
    costs = [(0.7, Effort()), (0.3, Energy(np.array([0.5, 2.0]))), (2.0, Power(3)), (1.5, action(ARM))]
    nothing = Equality(np.zeros((0, spline.size)), np.zeros((2, 0, 2)))
    durations = np.array([1.3, 0.9])
    drawn = [rng.uniform(size=(2, len(spline.nodes), 2)) for _ in limits]
    free = slice(2, spline.size - 2)
    return Transcription(ARM, spline, costs, 0.4, limits, control, free, durations, free_time, nothing, OpenChain(ARM), drawn), rng


@pytest.mark.parametrize("free_time", [True, False])
def test_gradient_and_hessian_of_the_lagrangian_are_exact(free_time):
    both, rng = problem(free_time)
    which = np.arange(2)
    x = both.join(both.fixed, both.durations)
    dx = rng.normal(size=x.shape)
    here = both.at(x, which)
    z, sigma = rng.uniform(size=here.c.shape), rng.uniform(size=here.c.shape)
    dots = lambda a, b: (a * b).sum(1)
    np.testing.assert_allclose(dots(here.gradient, dx), rate(lambda h: both.at(x + h * dx, which).f, 1e-4), rtol=1e-7)
    moved = rate(lambda h: both.at(x + h * dx, which).c, 1e-4)
    np.testing.assert_allclose(here.push(dx), moved, atol=1e-7 * np.abs(moved).max())
    np.testing.assert_allclose(dots(here.pull(z), dx), dots(z, here.push(dx)), rtol=1e-9)
    lagrangian = lambda h: (at := both.at(x + h * dx, which)).gradient - at.pull(z)
    pushed = here.pull(sigma * here.push(dx))
    expected = rate(lagrangian, 1e-4) + pushed
    H = here.hessian(z, np.zeros((2, 0)), sigma)
    whole = np.triu(H) + np.triu(H, 1).swapaxes(-1, -2)
    np.testing.assert_allclose((whole @ dx[..., None])[..., 0], expected, atol=1e-6 * np.abs(expected).max())


def test_the_convex_model_has_no_negative_eigenvalue_and_the_same_barrier():
    both, rng = problem(False)
    here = both.at(both.join(both.fixed, both.durations), np.arange(2))
    sigma = rng.uniform(size=here.c.shape)
    nothing = np.zeros((2, 0))
    H = here.hessian(rng.uniform(size=here.c.shape), nothing, 0.0 * sigma, convex=True)
    assert np.linalg.eigvalsh(H, UPLO="U").min() > -1e-9 * np.abs(H).max()
    barrier = here.hessian(0.0 * sigma, nothing, sigma, convex=True) - here.hessian(0.0 * sigma, nothing, 0.0 * sigma, convex=True)
    exact = here.hessian(0.0 * sigma, nothing, sigma) - here.hessian(0.0 * sigma, nothing, 0.0 * sigma)
    np.testing.assert_allclose(barrier, exact, atol=1e-9 * np.abs(exact).max())


@pytest.mark.native
def test_limits_hold_between_the_nodes_and_conditions_hold():
    motion = cj.optimal_motion(ARM, [-1.5, 0.2], [0.3, 0.4], 1.5, "effort", effort=[30.0, 10.0])
    assert motion.converged
    assert motion.error < 1e-8
    t = np.linspace(0, 1.5, 5001)
    q, v = motion(t)
    a = np.gradient(v, t, axis=0)
    tau = cj.inverse_dynamics(ARM, q, v, a)
    assert np.abs(tau[5:-5, 1]).max() < 10.0 * (1 + 1e-4)
    free = cj.optimal_motion(ARM, [-1.5, 0.2], [0.3, 0.4], 1.5, "effort")
    assert free.cost < motion.cost
    assert np.abs(free.tau[:, 1]).max() > 10.0
    held = motion.multipliers["effort"]
    assert np.abs(held[:, 1]).max() > 1e3 * np.abs(held[:, 0]).max()


@pytest.mark.native
def test_a_free_duration_is_the_best_of_all_durations():
    cost = {"effort": 0.02, "time": 3.0}
    best = cj.optimal_motion(ARM, [-1.2, 0.2], [-0.3, 0.4], cost=cost)
    assert best.converged
    for T in (0.97 * best.duration, 1.03 * best.duration):
        other = cj.optimal_motion(ARM, [-1.2, 0.2], [-0.3, 0.4], T, {"effort": 0.02})
        assert other.cost + 3.0 * T > best.cost
    exact = cj.optimal_motion(ARM, [-1.2, 0.2], [-0.3, 0.4], best.duration, {"effort": 0.02}, guess=best)
    np.testing.assert_allclose(exact.cost + 3.0 * best.duration, best.cost, rtol=1e-7)


@pytest.mark.native
def test_a_users_cost_is_as_good_as_ours():
    def effort(robot, q, v, a):
        tau = cj.inverse_dynamics(robot, q, v, a)
        return (tau * tau).sum(-1)

    ours = cj.optimal_motion(ARM, [-1.2, 0.2], [-0.3, 0.4], 1.0, spans=8)
    theirs = cj.optimal_motion(ARM, [-1.2, 0.2], [-0.3, 0.4], 1.0, effort, spans=8)
    np.testing.assert_allclose(theirs.cost, ours.cost, rtol=1e-9)
    np.testing.assert_allclose(theirs.q, ours.q, atol=1e-6)


@pytest.mark.native
def test_a_point_on_the_way_is_met():
    arm = cj.load("planar3r")
    through = [0.5, 0.9, 0.2]
    motion = cj.optimal_motion(arm, [0.2, 0.4, 0.3], [1.0, 0.3, -0.5], 2.0, via={0.4: through}, spans=10)
    assert motion.converged
    np.testing.assert_allclose(motion(0.8)[0], through, atol=1e-8)


@pytest.mark.native
@pytest.mark.slow
def test_a_pose_as_goal_is_met_and_is_better_than_a_given_configuration():
    robot = cj.load("ur5e")
    start, near = np.array([0.0, -1.2, 1.0, -0.5, 0.8, 0.1]), np.array([0.7, -0.9, 1.3, -0.8, 1.1, 0.4])
    robot = robot.with_frame("point", robot.link_names[-1], np.eye(4))
    X = cj.pose(robot, near, "tip")
    motion = cj.optimal_motion(robot, start, X, 1.5, "jerk", frame="tip", spans=6)
    assert motion.converged
    np.testing.assert_allclose(cj.pose(robot, motion.q[-1], "tip"), X, atol=1e-7)


@pytest.mark.slow
@pytest.mark.native
def test_tasks_as_goals_are_met_and_leave_the_rest_free():
    arm = cj.load("planar3r")
    start, near = [0.2, 0.4, 0.3], [0.9, 0.5, -0.4]
    X = cj.pose(arm, near, "tip")
    given = cj.optimal_motion(arm, start, near, 1.0, spans=10)
    whole = cj.optimal_motion(arm, start, cj.Target("tip", X), 1.0, spans=10)
    place = cj.optimal_motion(arm, start, X[:3, 3], 1.0, frame="tip", spans=10)
    turn = cj.optimal_motion(arm, start, cj.Target("tip", X, rows=(2,)), 1.0, spans=10)
    for motion in (whole, place, turn):
        assert motion.converged, motion.message
    assert given.cost >= whole.cost * (1 - 1e-9) >= place.cost
    assert whole.cost > turn.cost
    np.testing.assert_allclose(cj.pose(arm, whole.q[-1], "tip"), X, atol=1e-8)
    np.testing.assert_allclose(cj.pose(arm, place.q[-1], "tip")[:3, 3], X[:3, 3], atol=1e-8)
    np.testing.assert_allclose(cj.pose(arm, turn.q[-1], "tip")[:3, :3], X[:3, :3], atol=1e-8)
    # what is left free is chosen well: moving the end costs more
    again = cj.optimal_motion(arm, start, place.q[-1], 1.0, spans=10)
    np.testing.assert_allclose(again.cost, place.cost, rtol=1e-8)


@pytest.mark.native
def test_a_periodic_motion_goes_on_as_it_began():
    motion = cj.optimal_motion(ARM, [-1.2, 0.3], duration=2.0, via={0.5: [0.2, 0.6]}, periodic=True)
    assert motion.converged, motion.message
    np.testing.assert_allclose(motion.q[-1], motion.q[0], atol=1e-9)
    np.testing.assert_allclose(motion.v[-1], motion.v[0], atol=1e-7)
    np.testing.assert_allclose(motion.a[-1], motion.a[0], atol=1e-5)
    resting = cj.optimal_motion(ARM, [-1.2, 0.3], [-1.2, 0.3], 2.0, via={0.5: [0.2, 0.6]})
    assert motion.cost < resting.cost


@pytest.mark.native
@pytest.mark.parametrize("spans", [1, 3, 8])
def test_the_cost_is_that_of_the_motion_however_few_spans_it_has(spans):
    """No motion is cheap at the nodes and dear between them; and what fewer spans can do, more of them can."""
    motion = cj.optimal_motion(ARM, [-1.5, 0.2], [0.3, 0.4], 1.0, spans=spans)
    t = np.linspace(0.0, 1.0, 4001)
    q, v, a, _ = Spline(spans).curve(motion.control_points, 1.0, t)
    effort = (cj.inverse_dynamics(ARM, q, v, a) ** 2).sum(-1)
    assert motion.converged
    np.testing.assert_allclose(simpson(effort, x=t), motion.cost, rtol=1e-6)
    assert motion.cost > cj.optimal_motion(ARM, [-1.5, 0.2], [0.3, 0.4], 1.0, spans=16).cost


@pytest.mark.native
def test_a_pose_of_an_arm_with_fewer_than_six_joints_is_met():
    X = cj.pose(ARM, [0.5, 0.6], "tip")
    motion = cj.optimal_motion(ARM, [0.3, 0.4], X, 1.0, frame="tip", spans=4)
    given = cj.optimal_motion(ARM, [0.3, 0.4], motion.q[-1], 1.0, spans=4)
    assert motion.converged
    np.testing.assert_allclose(cj.pose(ARM, motion.q[-1], "tip"), X, atol=1e-8)
    np.testing.assert_allclose(motion.cost, given.cost, rtol=1e-8)


@pytest.mark.native
def test_points_on_the_way_that_depend_on_each_other():
    robot = slider(count=2)
    once = cj.optimal_motion(robot, [0.0, 0.0], [1.0, 1.0], 1.0, via={0.5: [0.1, 0.7]}, spans=6)
    twice = cj.optimal_motion(robot, [0.0, 0.0], [1.0, 1.0], 1.0, via={0.5: [0.1, 0.7], 0.5 + 1e-13: [0.1, 0.7]}, spans=6)
    np.testing.assert_allclose(twice.cost, once.cost, rtol=1e-8)
    never = cj.optimal_motion(
        robot, [0.0, 0.0], [1.0, 1.0], 1.0, via={0.5: [0.1, 0.7], 0.5 + 1e-13: [0.1, 0.9]}, spans=6, iterations=20
    )
    assert not never.converged
    assert "perhaps they contradict each other" in never.message


@pytest.mark.native
def test_an_interrupt_gives_the_best_so_far():
    """At once, and when limits hold already."""
    for last in (0, 3):
        seen = []

        def report(k, error, last=last, seen=seen):
            seen.append(k)
            if len(seen) > last:
                raise KeyboardInterrupt

        motion = cj.optimal_motion(slider(), [0.0], [1.0], 1.0, effort=20.0, velocity=1.2, spans=6, report=report)
        assert len(seen) == last + 1
        assert not motion.converged
        assert motion.message.startswith("interrupted")
        assert last or "of m0_joint exceeds its limit" in motion.message
        np.testing.assert_allclose([motion.q[0, 0], motion.q[-1, 0]], [0.0, 1.0], atol=1e-12)


def resolved(arm, motion, parameters, k, h, *args, **options):
    """Cost, duration and control points of the problem solved again for a robot with one other parameter, by central differences."""
    found = []
    for sign in (1, -1):
        p = arm.parameters(parameters).copy()
        p[k] += sign * h
        other = cj.optimal_motion(arm.with_parameters(parameters, p), *args, guess=motion, **options)
        assert other.converged, other.message
        drawn = zip(other.conditions.problem.drawn, motion.conditions.problem.drawn, strict=True)
        assert all(np.array_equal(*pair) for pair in drawn)  # the same limits hold
        found.append(np.concatenate([[other.cost, other.duration], other.control_points.reshape(-1), other.q[77], other.v[77]]))
    return (found[0] - found[1]) / (2 * h)


@pytest.mark.native
@pytest.mark.parametrize(
    ("parameters", "k", "args", "options"),
    [
        ("masses", 1, ([-1.5, 0.2], [0.3, 0.4], 1.5, "effort"), {"effort": [30.0, 10.0]}),
        ("lengths", 0, ([-1.5, 0.2], [0.3, 0.4], 1.2, "energy"), {"power": 22.0}),
        ("damping", 1, ([-1.2, 0.2], [-0.3, 0.4], "free", {"effort": 0.02, "time": 3.0}), {}),
        ("inertial", 19, ([0.3, 0.5], [1.2, -0.4], 1.0, "action"), {"limits": False}),
        ("lengths", 0, ([0.3, 0.4], cj.pose(ARM, [0.5, 0.6], "tip")[:3, 3], 1.0), {"frame": "tip"}),
    ],
)
def test_derivatives_of_the_optimum_are_those_of_problems_solved_again(parameters, k, args, options):
    arm = ARM.with_parameters("damping", [0.4, 0.3])
    options = options | {"spans": 6, "tolerance": 1e-11}
    motion = cj.optimal_motion(arm, *args, **options)
    found = derivatives_of(motion, parameters)
    expected = resolved(arm, motion, parameters, k, 1e-4, *args, **options)
    exact = [[found.cost[k], found.duration[k]], found.control_points[..., k].reshape(-1), found.q[77, :, k], found.v[77, :, k]]
    scale = np.abs(expected).max()
    assert scale > 1e-3
    np.testing.assert_allclose(np.concatenate(exact), expected, atol=1e-6 * scale)
    np.testing.assert_allclose(found.cost[k], expected[0], rtol=1e-6)


@pytest.mark.native
def test_derivatives_belong_to_an_optimum():
    motion = cj.optimal_motion(slider(), [0.0], [1.0], 0.1, velocity=2.0, spans=4, iterations=10)
    with pytest.raises(CoadjointError, match="this motion is none"):
        motion.sensitivity("masses")


@pytest.mark.native
def test_an_interrupt_of_many_motions_leaves_the_others_as_they_begin():
    seen = []

    def report(k, error):
        seen.append(k)
        if len(seen) == 2:
            raise KeyboardInterrupt

    motions = cj.optimal_motion(slider(), np.zeros((40, 1)), [1.0], 1.0, effort=20.0, spans=6, report=report)
    assert len(motions) == 40
    assert not motions.converged.any()
    assert {one.message for one in motions[32:]} == {"interrupted before the search began"}
    np.testing.assert_allclose(motions.q[:, -1], 1.0, atol=1e-12)


@pytest.mark.native
def test_many_motions_at_once_are_those_one_by_one():
    rng = np.random.default_rng(5)
    start, goal = rng.uniform(-1.5, -0.5, (2, 2, 2)), rng.uniform(0.0, 0.8, (2))
    T = rng.uniform(1.0, 2.0, (2, 2))
    options = {"effort": [32.0, 12.0], "velocity": 4.0, "spans": 6}
    many = cj.optimal_motion(ARM, start, goal, T, **options)
    assert many.shape == many.cost.shape == (2, 2)
    assert many.converged.all()
    for k, one in enumerate(many):
        index = np.unravel_index(k, (2, 2))
        alone = cj.optimal_motion(ARM, start[index], goal, T[index], **options)
        np.testing.assert_allclose(one.cost, alone.cost, rtol=1e-8)
        np.testing.assert_allclose(many.q[index], alone.q, atol=1e-5)
    slower = cj.optimal_motion(ARM, start[0, 0], goal, [T[0, 0], 1.5 * T[0, 0]], **options)
    np.testing.assert_allclose(slower.cost[0], many.cost[0, 0], rtol=1e-8)


@pytest.mark.slow
@pytest.mark.native
def test_many_fastest_motions_take_less_time_than_was_given():
    start, goal, T = np.array([[-1.2, -0.6], [-0.7, -1.4]]), [0.4, 0.6], [1.0, 2.0]
    options = {"effort": [32.0, 12.0], "velocity": 4.0, "spans": 6}
    assert cj.optimal_motion(ARM, start, goal, T, **options).converged.all()
    fast = cj.optimal_motion(ARM, start, goal, cost="time", **options)
    assert fast.converged.all()
    assert (fast.duration < T).all()


@pytest.mark.native
def test_limits_that_no_motion_keeps_are_named():
    motion = cj.optimal_motion(slider(), [0.0], [1.0], 0.1, velocity=2.0, spans=4, iterations=40)
    assert not motion.converged
    assert "the velocity of m0" in motion.message
    assert "give more time" in motion.message
    assert "no motion takes 0.1 s: m0_joint alone needs 0.5 s" in motion.message
    least = 1.0 / 2.0 + 2.0 / 8.0  # a trapezoid of velocity
    for part, told in ((0.99, True), (1.01, False)):
        options = {"velocity": 2.0, "acceleration": 8.0, "spans": 4, "iterations": 3}
        quick = cj.optimal_motion(slider(), [0.0], [1.0], part * least, **options)
        assert ("alone needs 0.75 s" in quick.message) == told


def test_a_free_duration_from_a_place_to_itself_is_refused():
    with pytest.raises(CoadjointError, match="start and goal are the same"):
        cj.optimal_motion(ARM, [0.1, 0.4], [0.1, 0.4], cost="time", effort=50.0)


def test_a_guess_is_taken_by_its_times():
    uneven = np.linspace(0.0, 1.0, 30) ** 3
    q = np.stack([np.sin(2 * uneven), uneven], axis=-1)
    motion = cj.Trajectory(ARM, 2.0 + 3.0 * uneven, q, 0 * q, 0 * q)
    s = np.linspace(0.1, 0.9, 9)
    spline = Spline(16)
    fit = spline.curve(first_guess(ARM, spline, motion, q[:1], q[-1:], ()), 3.0, s)[0][0]
    np.testing.assert_allclose(fit, np.stack([np.sin(2 * s), s], axis=-1), atol=0.02)


@pytest.mark.native
def test_a_motion_pickles_and_is_written_with_its_accelerations(tmp_path):
    motion = cj.optimal_motion(ARM, [-1.5, 0.2], [0.3, 0.4], 1.0, spans=4)
    again = pickle.loads(pickle.dumps(motion))
    np.testing.assert_array_equal(again(0.31)[0], motion(0.31)[0])
    assert again.message == motion.message
    motion.save(tmp_path / "motion.npz")
    np.testing.assert_array_equal(read_states(tmp_path / "motion.npz", ARM).a, motion.a)


def test_a_joint_that_follows_another_adds_its_damping():
    """The forces of a motion are those of the robot whose second joint turns half as fast, with viscous friction of both."""
    links = [
        cj.Link.solid("upper", "base", cj.Joint.revolute([0, 1, 0], name="one", damping=0.3), mass=1.0),
        cj.Link.solid(
            "lower", "upper", cj.Joint.revolute([0, 1, 0], name="two", damping=0.8, mimic=cj.Mimic("one", 0.5, 0.1)), mass=1.0
        ),
    ]
    robot = cj.Robot("pair", links)
    motion = cj.optimal_motion(robot, [-0.5], [0.7], 1.0, spans=4)
    assert motion.converged
    np.testing.assert_allclose(motion.tau, cj.inverse_dynamics(robot, motion.q, motion.v, motion.a, friction=True), atol=1e-9)


@pytest.mark.native
@pytest.mark.slow
def test_the_fastest_motions_of_the_panda_are_found():
    robot, rng = cj.load("panda"), np.random.default_rng(0)
    for _ in range(4):
        start, goal = (robot.lower + (robot.upper - robot.lower) * rng.uniform(0.2, 0.8, 7) for _ in range(2))
        motion = cj.optimal_motion(robot, start, goal, cost="time", spans=8)
        assert motion.converged, motion.message
        assert (np.abs(motion.tau) <= robot.effort_limit * (1 + 1e-6)).all()
        assert (np.abs(motion.v) <= robot.velocity_limit * (1 + 1e-6)).all()


@pytest.mark.native
@pytest.mark.slow
@pytest.mark.parametrize("name", [x for x in urdf_files() if x.endswith("ur5_robot.urdf")])
def test_reaches_of_robots_from_elsewhere_keep_their_limits(name):
    robot, rng = cj.load(urdf_files()[name]), np.random.default_rng(2)
    start, goal = rng.uniform(-0.8, 0.8, (2, 6, robot.nv))
    motions = cj.optimal_motion(robot, start, goal, spans=12)
    assert motions.converged.all(), [one.message for one in motions]
    assert max(one.error for one in motions) < 1e-8
    for one in motions:
        t = np.linspace(0.0, one.duration, 3001)
        assert (np.abs(one(t)[1]) <= robot.velocity_limit * (1 + 2e-6)).all()
        assert (np.abs(one.tau) <= robot.effort_limit * (1 + 2e-6)).all()


@pytest.mark.native
def test_wrong_arguments_are_named():
    for call, words in [
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], start_velocity="free"), "start_velocity is 'free'"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], start_velocity=2.0, velocity=1.0), "start_velocity has 2 for joint1"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], cost=["effort"]), "cost is ..effort"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], cost={}), "cost is {}"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], position=(np.nan, 9.0)), "position is .nan"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], guess=[[np.nan, 0.0], [0.0, 0.0]]), "guess has entries"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], via=[[0.0, 0.0]]), "via is"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], via={0.5: [9.0, 0.0]}, position=(-2.0, 2.0)), "the point via.0.5. is"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], spans=0), "spans is 0"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], tolerance=-1.0), "tolerance is -1"),
        (lambda: cj.optimal_motion(ARM, [0.0], [0.0, 1.0]), "start has shape"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [5.0, 0.0, 0.0], frame="tip"), "the goal cannot be reached"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0]), "goal is None"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], cj.Target("tip", [1.0, 1.0, 0.0]), frame="tip"), "leave out frame="),
        (lambda: cj.optimal_motion(ARM, np.zeros((0, 2)), [1.0, 1.0]), "there is no motion to be found"),
        (lambda: cj.optimal_motion(ARM, np.zeros((3, 2)), np.zeros((2, 2))), "do not broadcast"),
        (lambda: cj.optimal_motion(ARM, np.zeros((3, 2)), [1.0, 1.0], [1.0, 2.0, -1.0]), "duration has -1"),
        (lambda: cj.optimal_motion(ARM, np.zeros((3, 2)), [1.0, 1.0], [1.0, 2.0]), "do not broadcast"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], position=("a", "b")), "position is"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], guess="near"), "guess is 'near'"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], position=(1.0, -1.0)), "nothing is between them"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], np.eye(4)), "A pose goes with frame="),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], -1.0), "duration is -1"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], 0.0), "duration is 0"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], cost="fuel"), "cost is 'fuel'; expected one of effort"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], cost="time", limits=False), "nothing limits the speed"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], 1.0, effort=1.0), "cannot rest at the start: gravity needs joint1"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], 1.0, position=(-0.5, 0.5)), "the goal is outside of the limits: joint1"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], 1.0, {"effort": -1.0}), "the weight of cost 'effort' is -1"),
        (lambda: cj.optimal_motion(cj.load("floating_body"), np.zeros(7), np.zeros(7)), "moves in a group"),
        (lambda: cj.optimal_motion(ARM, [0.0, 0.0], [1.0, 1.0], 1.0, via={1.5: [0.0, 0.0]}), "via has the time 1.5"),
    ]:  # fmt: skip
        with pytest.raises(CoadjointError, match=words):
            call()


@pytest.mark.native
def test_collocation_meets_the_cubic_and_converges_with_the_sixth_power():
    robot, T = slider(2.0, 2), 1.7
    start, goal = np.array([0.1, -0.3]), np.array([1.4, 0.8])
    motion = cj.optimal_motion(robot, start, goal, T, "effort", spans=4, tolerance=1e-12, transcription="collocation")
    s = motion.time[:, None] / T
    np.testing.assert_allclose(motion.q, start + (goal - start) * (3 * s**2 - 2 * s**3), atol=1e-10)
    arm = ARM.with_gravity((0, -2.0, 0))
    options = {"tolerance": 1e-11, "limits": False}
    exact = cj.optimal_motion(arm, [0.3, 0.5], [0.9, 0.1], 1.0, spans=32, **options)
    found = [
        cj.optimal_motion(arm, [0.3, 0.5], [0.9, 0.1], 1.0, spans=n, transcription="collocation", **options).cost
        for n in (4, 8, 16)
    ]
    errors = np.abs(np.array(found) - exact.cost)
    orders = np.log2(errors[:-1] / errors[1:])
    assert (orders > 5.0).all(), (errors, orders)


@pytest.mark.native
def test_a_first_guess_far_off_does_not_loosen_the_conditions():
    s = np.linspace(0, 1, 200)[:, None]
    wild = [-1.5, 0.2] + s * [1.8, 0.2] + np.sin(7 * np.pi * s) * [1.0, -0.5] + np.sin(22 * np.pi * s)
    motion = cj.optimal_motion(ARM, [-1.5, 0.2], [0.3, 0.4], 1.5, "effort", guess=wild)
    assert motion.converged
    assert np.abs(motion.conditions.here().gradient).max() < 1e-8 * motion.cost


def test_limits_are_looked_at_on_both_sides_of_a_knot():
    spline = Spline(4, degree=4, nodes=3, smooth=1)
    s, basis = spline.dense
    control = np.random.default_rng(0).normal(size=(spline.size, 1))
    seen = basis[:, 2] @ control
    knots = np.arange(1, 4) / 4
    for side in (knots - 1e-9, knots + 1e-9):
        a = spline.at(side)[:, 2] @ control
        assert np.abs(seen - a[:, 0]).min(0).max() < 1e-5 * np.abs(seen).max()
    assert (np.diff(s) > 0).all()
    assert len(s) > 640


def test_electrical_energy_has_the_losses_of_every_joint():
    """Between rests the power τᵀv adds up to nothing: what is left of two slides are their losses r τ², of cubics in closed form."""
    slides = [cj.Joint.prismatic([1, 0, 0], name="x"), cj.Joint.prismatic([0, 1, 0], name="y")]
    links = [cj.Link.solid("a", "base", slides[0], mass=1.5), cj.Link.solid("b", "a", slides[1], mass=0.5)]
    robot, losses, way = cj.Robot("table", links, gravity=(0, 0, 0)), np.array([0.3, 2.0]), np.array([1.3, -0.7])
    motion = cj.optimal_motion(robot, [0.0, 0.0], way, 1.7, "energy", losses=losses)
    assert motion.converged, motion.message
    np.testing.assert_allclose(motion.cost, (losses * (np.array([2.0, 0.5]) * way) ** 2).sum() * 12 / 1.7**3, rtol=1e-9)
    arm = cj.load("planar2r")
    ours = cj.optimal_motion(arm, [-1.5, 0.2], [0.3, 0.4], 1.5, "energy", losses=[0.1, 1.5])
    tau = lambda robot, q, v, a: cj.inverse_dynamics(robot, q, v, a)
    own = lambda robot, q, v, a: (tau(robot, q, v, a) * (v + np.array([0.1, 1.5]) * tau(robot, q, v, a))).sum(-1)
    np.testing.assert_allclose(cj.optimal_motion(arm, [-1.5, 0.2], [0.3, 0.4], 1.5, own).cost, ours.cost, rtol=1e-7)
    for wrong, words in (
        ({"cost": "effort"}, 'goes with the cost "energy"'),
        ({"cost": "energy", "losses": -1.0}, "expected positive losses"),
    ):
        with pytest.raises(CoadjointError, match=words):
            cj.optimal_motion(arm, [0.0, 0.0], [0.1, 0.1], 1.0, **{"losses": 1.0, **wrong})


@pytest.mark.native
@pytest.mark.slow
@pytest.mark.parametrize("options", [{"effort": [30.0, 8.0]}, {"power": 35.0}])
def test_what_limits_drawn_in_anew_would_change_has_the_size_that_is_said(options):
    """Problems solved again without a guess draw limits in anew: the margin by which they do, a fifth, is all that the size leaves out."""
    arm, args, h = ARM.with_parameters("damping", [0.4, 0.3]), ([-1.5, 0.2], [0.3, 0.4], 1.5), 1e-4
    options = options | {"spans": 16, "tolerance": 1e-10}
    found, p, solved = derivatives_of(cj.optimal_motion(arm, *args, **options), "masses"), arm.parameters("masses"), []
    for sign in (1, -1):
        other = cj.optimal_motion(arm.with_parameters("masses", p + sign * h * np.eye(2)[1]), *args, **options)
        assert other.converged, other.message
        solved.append(other.control_points)
    off = (
        np.abs((solved[0] - solved[1]) / (2 * h) - found.control_points[..., 1]).max() / np.abs(found.control_points[..., 1]).max()
    )
    assert found.drawn > 1e-3
    assert off < 2 * found.drawn
    assert off > found.drawn / 3
