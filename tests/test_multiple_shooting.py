"""Multiple shooting: exact derivatives, and the same motions as other transcriptions."""

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import CoadjointError
from coadjoint.optimal.held_limits import solver
from coadjoint.optimal.multiple_shooting import Shots
from coadjoint.optimal.quintics import Quintics
from coadjoint.optimal.rows import Coordinates, MotorPower, Torques
from coadjoint.optimal.stages import Effort, Energy, Power, action
from laws import derivatives_of, rate

ARM = cj.load("planar2r").with_parameters("damping", [0.4, 0.3])
NAMES = ("joint1", "joint2")


def shots(free_time):
    rng = np.random.default_rng(0)
    costs = [(0.7, Effort()), (0.3, Energy(np.array([0.5, 2.0]))), (1.5, action(ARM)), (0.2, Power(2))]
    limits = [
        Coordinates(0, np.array([-9.0, -np.inf]), np.array([9.0, 8.0]), NAMES),
        Coordinates(2, np.full(2, -500.0), np.full(2, 500.0), NAMES),
        Torques(np.array([300.0, 500.0]), NAMES),
        MotorPower(np.array([900.0, 800.0]), NAMES),
    ]
    begin, rows = rng.normal(size=(2, 3, 3, 2)), rng.normal(size=(2, 3, 3, 2))
    drawn = [np.zeros((2, 5, 2)) for _ in limits]
    T = np.array([1.3, 0.9])
    return Shots(ARM, 2, costs, 0.4, limits, begin, T, free_time, rows, np.zeros((2, 2)), drawn, steps=2), rng


@pytest.mark.native
@pytest.mark.parametrize("free_time", [True, False])
def test_gradient_and_hessian_of_the_lagrangian_are_exact(free_time):
    both, rng = shots(free_time)
    which, x = np.arange(2), both.first
    dx, here = rng.normal(size=x.shape), both.at(x, np.arange(2))
    z, sigma, y = (rng.uniform(size=like.shape) for like in (here.c, here.c, here.e))
    dots = lambda a, b: (a * b).sum(1)
    np.testing.assert_allclose(dots(here.gradient, dx), rate(lambda h: both.at(x + h * dx, which).f, 1e-4), rtol=1e-6)
    for found, values in ((here.push(dx), "c"), ((here.equality_jacobian @ dx[..., None])[..., 0], "e")):
        expected = rate(lambda h, values=values: getattr(both.at(x + h * dx, which), values), 1e-4)
        np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_allclose(dots(here.pull(z), dx), dots(z, here.push(dx)), rtol=1e-9)

    def lagrangian(h):
        at = both.at(x + h * dx, which)
        return at.gradient - at.pull(z) - (y[:, None] @ at.equality_jacobian)[:, 0]

    expected = rate(lagrangian, 1e-4) + here.pull(sigma * here.push(dx))
    H = here.hessian(z, y, sigma)
    np.testing.assert_allclose((H @ dx[..., None])[..., 0], expected, atol=1e-5 * np.abs(expected).max())
    convex = here.hessian(0.0 * z, 0.0 * y, 0.0 * z, convex=True)
    assert np.linalg.eigvalsh(convex).min() > -1e-9 * np.abs(convex).max()


@pytest.mark.native
def test_a_constant_mass_matrix_gives_the_cubic():
    """Its joint force is linear in time, which shooting has exactly."""
    robot = cj.Robot("slide", [cj.Link.solid("m", "base", cj.Joint.prismatic([1, 0, 0]), mass=2.0)], gravity=(0, 0, 0))
    motion = cj.optimal_motion(robot, [0.1], [1.4], 1.7, transcription="shooting", spans=4, tolerance=1e-11)
    assert motion.converged, motion.message
    s = motion.time[:, None] / 1.7
    np.testing.assert_allclose(motion.q, 0.1 + 1.3 * (3 * s**2 - 2 * s**3), atol=1e-10)
    np.testing.assert_allclose(motion.cost, (2.0 * 1.3) ** 2 * 12 / 1.7**3, rtol=1e-10)


@pytest.mark.native
def test_shooting_tends_to_the_optimum_of_the_others_and_its_forces_make_its_motion():
    arm, ends = ARM.with_gravity((0, -2.0, 0)), ([0.3, 0.5], [0.9, 0.1], 1.0)
    exact = cj.optimal_motion(arm, *ends, spans=32)
    found = [cj.optimal_motion(arm, *ends, transcription="shooting", spans=n) for n in (6, 20)]
    for motion in found:
        assert motion.converged, motion.message
        assert motion.error < 1e-8
    errors = np.array([motion.cost for motion in found]) - exact.cost
    assert (errors > 0).all()  # forces that are linear in every span cannot do better than all forces
    assert errors[1] < errors[0] / 10
    motion = found[1]
    force = lambda robot, q, v, t: np.array([np.interp(t, motion.time, x) for x in motion.tau.T])
    again = cj.simulate(arm, motion.q[0], motion.v[0], [0.0, motion.duration], control=force, friction=True)
    np.testing.assert_allclose(again.q[-1], ends[1], atol=1e-4)


@pytest.mark.native
@pytest.mark.slow
def test_limits_and_free_durations_and_obstacles():
    motion = cj.optimal_motion(
        ARM.with_gravity((0, 0, 0)), [-0.5, 0.2], [0.3, 0.4], cost="time", effort=[20.0, 8.0], transcription="shooting", spans=12
    )
    assert motion.converged, motion.message
    assert (np.abs(motion.tau) <= np.array([20.0, 8.0]) * (1 + 1e-9)).all()
    splines = cj.optimal_motion(ARM.with_gravity((0, 0, 0)), [-0.5, 0.2], [0.3, 0.4], cost="time", effort=[20.0, 8.0], spans=12)
    np.testing.assert_allclose(motion.duration, splines.duration, rtol=0.02)
    chain = cj.load("planar3r").with_gravity((0, 0, 0))
    ends, ball = ([-0.9, 0.3, 0.3], [0.9, 0.3, 0.3], 1.0), cj.Sphere((2.2, 0.3, 0.0), 0.3)
    past = cj.optimal_motion(chain, *ends, cost="acceleration", obstacles=ball, transcription="shooting", spans=16)
    assert past.converged, past.message
    assert past.clearance >= 0


@pytest.mark.native
def test_what_shooting_cannot_do_is_named():
    for options, words in [
        ({"cost": "jerk"}, "jerk is not there in shooting"),
        ({"frame": "tip", "goal": [1.2, 1.1, 0.0]}, "a task as goal is not there in shooting"),
        ({"via": {0.3: [0.2, 0.3]}}, "via has the time 0.3, which is at no node; shooting has 16 spans"),
        ({"transcription": "guesses"}, "guesses"),
    ]:
        with pytest.raises(CoadjointError, match=words):
            cj.optimal_motion(ARM, [0.3, 0.4], **{"goal": [0.5, 0.5], "duration": 1.0, "transcription": "shooting", **options})


@pytest.mark.native
@pytest.mark.parametrize(
    ("parameters", "k", "args", "options"),
    [
        pytest.param("masses", 1, ([-1.5, 0.2], [0.3, 0.4], 1.5, "effort"), {"effort": [30.0, 8.0]}, marks=pytest.mark.slow),
        pytest.param(
            "lengths", 0, ([-1.5, 0.2], [0.3, 0.4], 1.2, "energy"), {"power": 30.0, "acceleration": 12.0}, marks=pytest.mark.slow
        ),
        pytest.param(
            "damping",
            1,
            ([-1.2, 0.2], [-0.3, 0.4], "free", {"effort": 0.02, "time": 3.0}),
            {"effort": [40.0, 9.0]},
            marks=pytest.mark.slow,
        ),
        ("inertial", 19, ([0.3, 0.5], [1.2, -0.4], 1.0, {"action": 1.0, "effort": 1e-3}), {"limits": False}),
    ],
)
def test_derivatives_of_the_optimum_are_those_of_problems_solved_again(parameters, k, args, options):
    """Through the states between the nodes, which follow the robot's numbers, and the limits that hold."""
    options = options | {"spans": 6, "tolerance": 1e-11, "transcription": "shooting"}
    motion = cj.optimal_motion(ARM, *args, **options)
    assert motion.converged, motion.message
    assert not set(options) & {"effort", "power"} or max(np.abs(x).max() for x in motion.multipliers.values()) > 1e-3
    found, h, solved = derivatives_of(motion, parameters), 3e-5, []
    for sign in (1, -1):
        p = ARM.parameters(parameters).copy()
        p[k] += sign * h
        other = cj.optimal_motion(ARM.with_parameters(parameters, p), *args, guess=motion, **options)
        assert other.converged, other.message
        drawn = zip(other.conditions.problem.drawn, motion.conditions.problem.drawn, strict=True)
        assert all(np.array_equal(*pair) for pair in drawn)
        parts = [other.cost, other.duration], other.control_points.ravel(), other.q[77], other.v[77], other.a[77]
        solved.append(np.concatenate(parts))
    expected = (solved[0] - solved[1]) / (2 * h)
    at = [x[77, :, k] for x in (found.q, found.v, found.a)]
    exact = np.concatenate([[found.cost[k], found.duration[k]], found.control_points[..., k].ravel(), *at])
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(exact, expected, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_allclose(found.cost[k], expected[0], rtol=1e-6)


def test_limits_that_hold_are_rows_whose_small_slacks_leave_the_rest_its_digits():
    """The equations that define the solver, and the solution, which elimination through 1/D would lose."""
    rng, (n, k, m) = np.random.default_rng(0), (30, 4, 8)
    W, E, C = rng.normal(size=(n, n)), rng.normal(size=(k, n)), rng.normal(size=(m, n))
    W, D = W + W.T, 10.0 ** rng.uniform(-17, -13, m)  # indefinite, also along E and C
    dx, dy, dz = (rng.normal(size=(size, 3)) for size in (n, k, m))
    right = W @ dx - E.T @ dy - C.T @ dz, E @ dx, C @ dx + D[:, None] * dz
    np.testing.assert_allclose(solver(np.triu(W), E, C, D)(*right), dx, atol=1e-10)
    np.testing.assert_allclose(solver(np.triu(W), E[:0], C, D)(right[0] + E.T @ dy, right[1][:0], right[2]), dx, atol=1e-10)
    E2, twice = np.vstack([E, E[:1] + E[1:2]]), np.vstack([right[1], right[1][:1] + right[1][1:2]])  # rows that depend on others
    np.testing.assert_allclose(solver(np.triu(W), E2, C, D)(right[0], twice, right[2]), dx, atol=1e-10)


@pytest.mark.native
@pytest.mark.slow
@pytest.mark.parametrize("power", [24.0, 28.0, 32.0, 35.0, 38.0, 40.0])
def test_limits_of_power_hold_within_spans_and_derivatives_have_all_their_digits(power):
    """Where τ and v are large at opposite ends of a span, its power is largest in between, and nodes say nothing of it."""
    args, options = ([-1.5, 0.2], [0.3, 0.4], 1.5), {"power": power, "transcription": "shooting", "spans": 6}
    motion = cj.optimal_motion(ARM, *args, tolerance=1e-11, **options)
    assert motion.converged, motion.message
    used = np.abs(motion.tau * motion.v).max() / power
    assert 0.99 < used < 1 + 2e-6
    found = derivatives_of(motion, "masses")
    h, p, solved = 3e-5, ARM.parameters("masses"), []
    for sign in (1, -1):
        robot = ARM.with_parameters("masses", p + sign * h * np.eye(2)[1])
        other = cj.optimal_motion(robot, *args, tolerance=1e-11, guess=motion, **options)
        assert other.converged, other.message
        solved.append(np.concatenate([[other.cost], other.control_points.ravel()]))
    expected = (solved[0] - solved[1]) / (2 * h)
    exact = np.concatenate([[found.cost[1]], found.control_points[..., 1].ravel()])
    np.testing.assert_allclose(exact[0], expected[0], rtol=1e-7)
    np.testing.assert_allclose(exact[1:], expected[1:], atol=1e-6 * np.abs(expected[1:]).max())


@pytest.mark.native
def test_joint_forces_to_begin_with_lead_from_node_to_node_as_nearly_as_they_can(monkeypatch):
    """A light last link follows what forces that are linear in time leave out; shots that do not meet are named."""
    chain = cj.load("planar3r").with_gravity((0, -9.81, 0))
    masses = chain.parameters("masses")
    light = chain.with_parameters("masses", masses * np.r_[np.ones(len(masses) - 1), 1e-3])
    seen = []
    real = Shots.at

    def at(self, x, which):
        here = real(self, x, which)
        seen.append((np.abs(here.e).max(), len(self.rows)))
        return here

    monkeypatch.setattr(Shots, "at", at)
    motion = cj.optimal_motion(light, [-1.2, 0.3, 0.3], [0.4, 0.9, -0.3], 2.0, transcription="shooting", spans=6, iterations=1)
    fitted = [gap for gap, rows in seen if not rows]
    assert min(fitted) < 0.3 * fitted[0]
    assert not motion.converged
    assert "linear in spans of 0.33 s were not found to lead from node to node" in motion.message


@pytest.mark.native
def test_limits_hold_along_the_motion_that_joint_forces_make():
    """Between the nodes too, where a light link is elsewhere than a polynomial through the nodes: flown again in shorter steps."""
    arm = cj.load("planar2r")
    velocity, effort = np.array([1.6, 1.3]), np.array([27.0, 9.0])
    motion = cj.optimal_motion(
        arm, [-1.3, 0.2], [-0.4, -0.5], 1.0, velocity=velocity, effort=effort, transcription="shooting", spans=6
    )
    assert motion.converged, motion.message
    nodes, n = np.linspace(0.0, 1.0, 7), 40
    tau = motion.conditions.here().nodes[0, :, 2]
    (q, v), h = motion(nodes[:-1]), 1.0 / (6 * n)  # all spans at once
    slope = lambda q, v, part: (v, cj.forward_dynamics(arm, q, v, (1 - part) * tau[:-1] + part * tau[1:]))
    for k in range(n):
        s1 = slope(q, v, k / n)
        s2 = slope(q + h / 2 * s1[0], v + h / 2 * s1[1], (k + 0.5) / n)
        s3 = slope(q + h / 2 * s2[0], v + h / 2 * s2[1], (k + 0.5) / n)
        s4 = slope(q + h * s3[0], v + h * s3[1], (k + 1) / n)
        q, v = (x + h / 6 * (a + 2 * b + 2 * c + d) for x, a, b, c, d in zip((q, v), s1, s2, s3, s4, strict=True))
        at = motion(nodes[:-1] + (k + 1) * h)
        np.testing.assert_allclose(at[0], q, atol=1e-6)
        np.testing.assert_allclose(at[1], v, atol=1e-5)
        assert (np.abs(v) <= velocity * (1 + 2e-6)).all()
    assert (np.abs(tau) <= effort * (1 + 1e-6)).all()


def test_quintics_are_their_polynomial_and_stay_within_their_bounds():
    rng, P = np.random.default_rng(0), np.polynomial.polynomial
    p, knots, s = rng.normal(size=(6, 2)), np.linspace(0, 1, 6), np.linspace(0, 1, 37)
    exact = lambda at, d: P.polyval(at, P.polyder(p, d) if d else p).T
    c = np.stack([exact(knots, d) for d in range(3)], axis=1).reshape(-1, 2)
    for d, found in enumerate(Quintics(5).curve(c, 2.0, s)):
        np.testing.assert_allclose(found, exact(s, d) / 2.0**d, atol=1e-11)
    for d in range(3):
        bound = Quintics(5).largest(c, d)[np.minimum((s * 5).astype(int), 4)]
        assert (np.abs(exact(s, d)) <= bound + 1e-12).all()
        assert (bound.max(0) < 1.5 * np.abs(exact(s, d)).max(0)).all()
