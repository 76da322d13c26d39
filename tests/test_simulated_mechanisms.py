"""Motions that are known from elsewhere: reduced equations and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.optimize import fsolve

import acceptance
import coadjoint as cj
from coadjoint import Constraint, Contact
from coadjoint.lie import quaternion
from simulated_mechanisms import (
    FOUR_BAR,
    SLIDER_CRANK,
    G,
    Walker,
    at,
    cradle,
    disk,
    four_bar,
    four_bar_positions,
    four_bar_state,
    sleigh,
    slider_crank,
)

pytestmark = pytest.mark.native


@pytest.mark.parametrize("method", ["adaptive", "variational", "symplectic"])
def test_chaplygins_sleigh(method):
    """u̇ = a ω², ω̇ = -m a u ω / (I + m a²) for the speed u along the edge and the turn ω; energy is kept, and it ends straight ahead."""
    m, inertia, a = 1.8, 0.35, 0.4
    robot, edge = sleigh(m, inertia, a)
    u, w = 0.8, -1.1
    end = 4.0
    found = cj.simulate(robot, [0.2, -0.4, 0.9], [w, u, 0.0], [0.0, 2.0, end], constraints=edge, method=method)

    def reduced(t, y):
        return [a * y[1] ** 2, -m * a * y[0] * y[1] / (inertia + m * a * a), y[0] * np.cos(y[4]), y[0] * np.sin(y[4]), y[1]]

    true = solve_ivp(reduced, (0, end), [u, w, 0.2, -0.4, 0.9], "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    bound = {"adaptive": 1e-9, "variational": 1e-5, "symplectic": 1e-9}[method]
    np.testing.assert_allclose([found.v[-1, 1], found.v[-1, 0], *found.q[-1]], true, atol=bound)
    assert found.drift()[1] < 1e-13
    assert np.ptp(found.energy) < bound
    far = cj.simulate(robot, [0.2, -0.4, 0.9], [w, u, 0.0], [0.0, 40.0], constraints=edge)
    assert far.v[-1, 0] == pytest.approx(0.0, abs=1e-6)
    assert far.v[-1, 1] == pytest.approx(np.sqrt(2 * found.energy[0] / m), rel=1e-6)


def test_case_19_over_time():
    case = acceptance.read(19)
    robot = acceptance.robot(case["model"])
    edge = Constraint.from_jacobian(lambda q: np.stack([-np.sin(q[2]), np.cos(q[2]), 0.0 * q[2]])[None])
    found = cj.simulate(robot, case["inputs"]["q"], case["inputs"]["qd"], [0.0, case["inputs"]["T"]], constraints=edge)
    np.testing.assert_allclose(found.q[-1], case["expected"]["q_at_T_force_free"], atol=case["tolerance"]["trajectory_atol"])


def steady_disk(tilt: float, precession: float) -> tuple[cj.Robot, Constraint, np.ndarray, np.ndarray]:
    """The disk in steady precession Ω, its axle at θ from the vertical.

    Balance of moments about the tangent: (C + m r²) ω₃ Ω sin θ - A Ω² sin θ cos θ + m g r cos θ = 0.
    """
    m, r = 1.3, 0.4
    robot, rolling = disk(m, r)
    s, c = np.sin(tilt), np.cos(tilt)
    spin = (m * r * r / 4 * precession**2 * s * c - m * G * r * c) / (1.5 * m * r * r * precession * s)
    up, axle = np.array([-c, 0.0, s]), np.array([s, 0.0, c])
    R = np.stack([up, np.cross(axle, up), axle], axis=1)  # up along the disk, the tangent, the axle
    q = np.concatenate([[0.0, 0.0, r * s], quaternion.from_matrix(R)])
    return robot, rolling, q, np.array([precession * s, 0.0, spin, 0.0, r * spin, 0.0])


@pytest.mark.parametrize("method", ["adaptive", pytest.param("variational", marks=pytest.mark.slow)])
def test_a_rolling_disk_precesses_steadily(method):
    tilt, precession, end = 1.1, 1.7, 3.0
    robot, rolling, q, v = steady_disk(tilt, precession)
    found = cj.simulate(robot, q, v, np.linspace(0, end, 31), constraints=rolling, method=method, step=2e-3)
    axle = cj.forward_kinematics(robot, found.q)[:, 0, :3, 2]
    bound = 1e-8 if method == "adaptive" else 1e-4
    np.testing.assert_allclose(axle[:, 2], np.cos(tilt), atol=bound)
    turned = np.unwrap(np.arctan2(axle[:, 1], axle[:, 0]))
    np.testing.assert_allclose(turned - turned[0], precession * found.time, atol=10 * bound)
    assert found.drift()[0] < 1e-13
    assert found.drift()[1] < 1e-12
    assert np.ptp(found.energy) < bound


def swept(mass, potential, start: float, stop: float, energy: float) -> float:
    """The time of a motion with one freedom from energy alone: ∫ √(m(θ) / 2 (E - V(θ))) dθ."""
    return quad(lambda x: np.sqrt(mass(x) / (2 * (energy - potential(x)))), start, stop, epsabs=1e-12, epsrel=1e-12)[0]


def rod_mass(a: np.ndarray, b: np.ndarray, va: np.ndarray, vb: np.ndarray, mass: float) -> float:
    """Twice the kinetic energy of a uniform rod from the velocities of its ends."""
    return mass / 3 * (va @ va + va @ vb + vb @ vb)


@pytest.mark.parametrize(("method", "bound"), [("adaptive", 1e-8), ("variational", 1e-4), ("symplectic", 1e-8)])
def test_four_bar_against_its_equation_with_one_freedom(method, bound):
    """The time of a whole turn of the crank, and closure throughout."""
    robot, loop = four_bar()

    def mass(x):
        h = 1e-20
        p = complex_positions(x + 1j * h)
        d = p.imag / h
        p = p.real
        return sum(rod_mass(p[k], p[k + 1], d[k], d[k + 1], 1.0) for k in range(3))

    def potential(x):
        p = four_bar_positions(x)
        return G * sum((p[k, 1] + p[k + 1, 1]) / 2 for k in range(3))

    theta, speed = 0.3, 9.0
    q = four_bar_state(theta)
    rate = speed * np.array([np.imag(x) for x in complex_turns(theta)])
    v = np.array([rate[0], rate[1] - rate[0], rate[2] - rate[1]])
    total = 0.5 * mass(theta) * speed**2 + potential(theta)
    period = swept(mass, potential, theta, theta + 2 * np.pi, total)
    found = cj.simulate(robot, q, v, np.linspace(0, period, 51), constraints=loop, method=method, step=5e-4)
    assert found.energy[0] == pytest.approx(total, rel=1e-12)
    assert found.q[-1, 0] == pytest.approx(theta + 2 * np.pi, abs=bound)
    np.testing.assert_allclose(found.v[-1], v, atol=20 * bound)
    assert found.drift()[0] < 1e-12
    assert found.drift()[1] < 1e-11
    assert np.abs(found.energy - total).max() < 100 * bound


def complex_positions(theta: complex) -> np.ndarray:
    """`four_bar_positions` for a complex step: its formulas without norms of complex vectors."""
    crank, coupler, rocker, ground = FOUR_BAR
    a, d = crank * np.array([np.cos(theta), np.sin(theta)]), np.array([ground, 0.0])
    line = d - a
    far = np.sqrt((line * line).sum())
    along = (coupler**2 - rocker**2 + far**2) / (2 * far)
    up = np.sqrt(coupler**2 - along**2)
    return np.array([[0.0, 0.0], a, a + along * line / far + up * np.array([-line[1], line[0]]) / far, d])


def complex_turns(theta: float) -> list[complex]:
    """The angles of the rods, with their rates by θ as imaginary parts."""
    h = 1e-20
    p = complex_positions(theta + 1j * h)
    rods = np.diff(p, axis=0)
    return [
        complex(np.angle(r[0].real + 1j * r[1].real), (r[0].real * r[1].imag - r[1].real * r[0].imag) / h / (r.real @ r.real))
        for r in rods
    ]


def test_slider_crank_against_its_equation_with_one_freedom():
    robot, loop = slider_crank()
    r, length = SLIDER_CRANK

    def points(x):
        a = np.array([r * np.cos(x), r * np.sin(x)])
        return a, np.array([a[0] + np.sqrt(length**2 - a[1] ** 2), 0.0 * x])

    def mass(x):
        h = 1e-20
        a, b = points(x + 1j * h)
        va, vb = a.imag / h, b.imag / h
        return rod_mass(np.zeros(2), a.real, np.zeros(2), va, 1.0) + rod_mass(a.real, b.real, va, vb, 0.5) + 2.0 * vb @ vb

    def potential(x):
        a, b = points(x)
        return G * (a[1] / 2 + 0.5 * (a[1] + b[1]) / 2)

    theta, speed = 0.4, 11.0
    a, b = points(theta)
    rod = np.arctan2(b[1] - a[1], b[0] - a[0])
    q = cj.constraints.project(robot, loop, np.array([theta, rod - theta, b[0]]))
    v = cj.constraints.project_velocity(robot, loop, q, np.zeros(3))
    slope = np.linalg.svd(loop.jacobian(robot, q))[2][-1]
    v = slope * speed / slope[0]
    total = 0.5 * mass(theta) * speed**2 + potential(theta)
    period = swept(mass, potential, theta, theta + 2 * np.pi, total)
    found = cj.simulate(robot, q, v, np.linspace(0, period, 51), constraints=loop)
    assert found.energy[0] == pytest.approx(total, rel=1e-12)
    assert found.q[-1, 0] == pytest.approx(theta + 2 * np.pi, abs=1e-8)
    np.testing.assert_allclose(found.v[-1], v, atol=1e-6)
    assert found.drift()[0] < 1e-13


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
def test_a_bouncing_arm(e):
    """An arm of three joints whose tip bounces on a table: energy changes only at impacts, by what their accounts say."""
    from coadjoint.robot.zoo.textbook import planar_nr

    robot = planar_nr(3, [0.5, 0.4, 0.3], [2.0, 1.5, 1.0])
    table = Constraint.point(robot, "tip", "y", at=[-0.2])
    found = cj.simulate(robot, [0.7, -1.0, -0.4], np.zeros(3), np.linspace(0, 1.5, 301), events=[Contact(table, e)])
    assert len(found.impacts) >= (1 if e == 0 else 2)
    assert table.residual(robot, found.q).min() > -1e-9
    assert found.energy[-1] - found.energy[0] == pytest.approx(sum(x.impact.energy_change for x in found.impacts), abs=1e-6)
    for x in found.impacts:
        account = x.impact
        assert account.separation[0] == pytest.approx(-e * account.approach[0], abs=1e-10)
        assert account.energy_change <= 1e-12
        np.testing.assert_allclose(account.momentum_change, account.impulse @ table.jacobian(robot, x.q), atol=1e-10)
    if e == 1:
        assert np.ptp(found.energy) < 1e-6


def test_newtons_cradle():
    """One ball in, one ball out; two in, two out: elastic impacts one after another through small gaps."""
    for n_in in (1, 2):
        robot, gaps = cradle()
        q = np.zeros(5)
        q[:n_in] = -0.3
        half = np.pi * np.sqrt(1 / G) * 1.006
        found = cj.simulate(robot, q, np.zeros(5), np.linspace(0, half, 101), events=[Contact(gaps, 1.0)])
        assert sum((x.impact.impulse > 0).sum() for x in found.impacts) == n_in * (5 - n_in)
        assert np.ptp(found.energy) < 1e-9
        np.testing.assert_allclose(np.abs(found.q[-1, 5 - n_in :]), 0.3, atol=1e-3)
        assert np.abs(found.q[-1, : 5 - n_in]).max() < 1e-3


def test_the_limit_cycle_of_the_compass_walker():
    """The long steps at a slope of 0.009, with feet of 10⁻⁸ of the hip, against the limit of feet without mass.

    That limit, the model of Garcia et al. (1998), has equations of its own, integrated here: θ̈ = sin(θ - γ),
    φ̈ = θ̈ + θ̇² sin φ - cos(θ - γ) sin φ, with the jump at the heel strike. They give the cycle, its period, and the eigenvalues of
    the map from step to step, -0.19010 ± 0.55760 i: it is stable.
    """
    slope = 0.009

    def limit(state):
        def rate(t, y):
            turn = np.sin(y[0] - slope)
            return [y[2], y[3], turn, turn + y[2] ** 2 * np.sin(y[1]) - np.cos(y[0] - slope) * np.sin(y[1])]

        strike = lambda t, y: y[1] - 2 * y[0] if y[0] < -0.05 else -1.0
        strike.terminal, strike.direction = True, 1
        c = np.cos(2 * state[0])
        y = [state[0], 2 * state[0], state[1], (1 - c) * state[1]]
        end = solve_ivp(rate, (0, 6), y, "DOP853", events=strike, rtol=1e-12, atol=1e-12)
        theta, speed = end.y[0, -1], end.y[2, -1]
        return np.array([-theta, np.cos(2 * theta) * speed]), end.t[-1]

    known = fsolve(lambda x: limit(x)[0] - x, [0.2, -0.2], xtol=1e-12)
    np.testing.assert_allclose(known, [0.2003109, -0.1998325], atol=1e-7)
    d = 1e-5
    map_of_limit = np.stack([(limit(known + d * x)[0] - limit(known - d * x)[0]) / (2 * d) for x in np.eye(2)], axis=1)

    walker = Walker(slope, foot=1e-8)
    guess = np.array([*known, (1 - np.cos(0.4)) * 0.2])
    cycle = fsolve(lambda x: walker.step(x)[0] - x, guess, xtol=1e-8)  # the light feet leave nine digits
    np.testing.assert_allclose(cycle[:2], known, atol=1e-6)
    _, period = walker.step(cycle)
    assert period == pytest.approx(limit(known)[1], abs=1e-6)

    d = 1e-4
    J = np.stack([(walker.step(cycle + d * x)[0] - walker.step(cycle - d * x)[0]) / (2 * d) for x in np.eye(3)], axis=1)
    values = np.linalg.eigvals(J)
    values = values[np.argsort(-np.abs(values))]
    expected = np.sort_complex(np.linalg.eigvals(map_of_limit))
    np.testing.assert_allclose(expected, [-0.1900996 - 0.5575993j, -0.1900996 + 0.5575993j], atol=1e-5)
    np.testing.assert_allclose(np.sort_complex(values[:2]), expected, atol=1e-4)
    assert abs(values[2]) < 1e-4


def test_a_box_comes_to_rest_on_two_feet():
    """Plastic contacts that set in one after the other; at rest both carry half the weight."""
    body = cj.Link.solid("box", "base", cj.Joint.planar((0, -1, 0)), mass=3.0, inertia=(0, 0.1, 0))
    robot = cj.Robot("box", [body], [cj.Frame("left", "box", at(-0.3, 0, -0.2)), cj.Frame("right", "box", at(0.3, 0, -0.2))])
    feet = Constraint.point(robot, "left", "z", at=[0.0]) & Constraint.point(robot, "right", "z", at=[0.0])
    poses = cj.forward_kinematics(robot, robot.neutral())
    up = int(np.argmax(np.abs(cj.jacobian(robot, robot.neutral(), "left", "world")[5])[1:]))  # which of the two slides is upright
    q = robot.neutral()
    q[up] = (1.0 if np.allclose(poses[0, :3, 3], 0) else 0.0) * np.sign(cj.jacobian(robot, q, "left", "world")[5, 1 + up])
    q[2] = 0.2
    found = cj.simulate(robot, q, np.zeros(3), np.linspace(0, 2.0, 51), events=[Contact(feet, 0.0)])
    gaps = feet.residual(robot, found.q)
    assert gaps.min() > -1e-8
    np.testing.assert_allclose(gaps[-1], 0.0, atol=1e-10)
    np.testing.assert_allclose(found.v[-1], 0.0, atol=1e-10)
    assert [x.kind for x in found.happenings].count("contact") >= 2
    a, force = cj.constrained_dynamics(robot, feet, found.q[-1], found.v[-1], np.zeros(3))
    np.testing.assert_allclose(force, 3.0 * G / 2, rtol=1e-9)
    np.testing.assert_allclose(a, 0.0, atol=1e-9)


def test_a_table_with_a_moving_load_stays_where_it_is():
    """Four feet, of which three suffice: which of them carry changes with the load, and nothing moves."""
    corners = [at(x, y, -0.1) for x in (0.3, -0.3) for y in (0.2, -0.2)]
    body = cj.Link.solid("table", "base", cj.Joint.free(), mass=3.0, inertia=(0.1, 0.1, 0.2))
    robot = cj.Robot("table", [body], [cj.Frame(f"foot{k}", "table", T) for k, T in enumerate(corners)])
    feet = Constraint.all(Constraint.point(robot, f"foot{k}", "z", at=0.0) for k in range(4))
    q = robot.neutral()
    q[2] = 0.1
    load = lambda robot, q, v, t: np.array([2 * np.sin(3 * t), 3 * np.cos(2 * t), 0, 0, 0, 0])
    for e in (0.0, 0.5):
        found = cj.simulate(robot, q, np.zeros(6), np.linspace(0, 1.0, 21), load, events=Contact(feet, e))
        assert np.abs(found.v).max() < 1e-9
        assert np.abs(found.q - q).max() < 1e-11
        assert feet.residual(robot, found.q).min() > -1e-12


def test_a_motor_drives_a_slider_crank_from_rest():
    """What a constant torque puts in is what the mechanism has: T + U grows by τ times the angle. Times begin at 1."""
    robot, loop = slider_crank()
    q = cj.constraints.assemble(robot, loop, [0.4, -0.5, 1.0], fixed="a")
    for method, bound in (("adaptive", 1e-9), ("symplectic", 1e-9), ("variational", 1e-6)):
        found = cj.simulate(robot, q, np.zeros(3), np.linspace(1, 2, 11), np.array([2.0, 0, 0]), loop, method=method)
        np.testing.assert_allclose(found.energy - found.energy[0], 2.0 * (found.q[:, 0] - q[0]), atol=bound)
        assert found.drift()[0] < 1e-14
