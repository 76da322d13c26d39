"""Known mechanisms: their closure, freedoms and motion against results of textbooks, written out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import Constraint, constraints
from coadjoint.constraints import ConstraintError, Reduced
from coadjoint.lie import quaternion
from constraint_robots import at, bennett, four_bar, free_body, slider_crank

# --- closed chains


def fourbar_by_hand(crank: float, sign: float, lengths=(0.4, 0.9, 0.6, 1.0)) -> np.ndarray:
    """Coordinates of the chain by the law of cosines: the triangle from the end of the crank to the pin."""
    a, b, c, d = lengths
    x, y = d - a * np.cos(crank), -a * np.sin(crank)
    r2 = x * x + y * y
    inner = sign * np.arccos((b * b + r2 - c * c) / (2 * b * np.sqrt(r2)))
    coupler = np.arctan2(y, x) + inner
    end = np.arctan2(y - b * np.sin(coupler), x - b * np.cos(coupler))
    wrap = lambda angle: np.pi - np.mod(np.pi - angle, 2 * np.pi)
    return np.array([crank, wrap(coupler - crank), wrap(end - coupler)])


@pytest.mark.parametrize("crank", [-2.0, 0.9])
def test_both_modes_of_a_four_bar(crank):
    robot = four_bar()
    for constraint in (Constraint.loop(robot, "pin", "tip", "revolute"), Constraint.point(robot, "tip", "xy", at=(1.0, 0.0))):
        modes = constraints.assembly_modes(robot, constraint, {"crank": crank})
        by_hand = sorted((fourbar_by_hand(crank, s) for s in (1, -1)), key=lambda q: q[1])
        np.testing.assert_allclose(modes, by_hand, atol=1e-11)


@pytest.mark.slow
def test_a_four_bar_that_cannot_close_says_by_how_much():
    robot = four_bar(0.2, 0.3, 0.2, 1.0)
    constraint = Constraint.loop(robot, "pin", "tip", "revolute")
    with pytest.raises(ConstraintError, match=r"does not close: the smallest gap found is 0\.3 \(pin to tip x by -0\.3"):
        constraints.assemble(robot, constraint)
    with pytest.raises(ConstraintError, match=r"assembly_modes: the mechanism does not close"):
        constraints.assembly_modes(robot, constraint, {"crank": 0.0})
    with pytest.raises(ConstraintError, match=r"project: the mechanism does not close.*assemble"):
        constraints.project(robot, constraint, robot.neutral())
    whole = four_bar()
    with pytest.raises(ConstraintError, match=r"still moves, with 1 freedom"):
        constraints.assembly_modes(whole, Constraint.loop(whole, "pin", "tip", "revolute"))


def test_rows_on_velocities_have_no_modes():
    """They have no value to close, and do not make the configurations that other rows leave free isolated."""
    robot = cj.load("planar2r")
    rolling = Constraint.point(robot, "tip", "x")
    with pytest.raises(ConstraintError, match=r"\(tip x\) is on velocities only"):
        constraints.assembly_modes(robot, rolling)
    joint, other = robot.joint_names
    with pytest.raises(ConstraintError, match="still moves, with 1 freedom"):
        constraints.assembly_modes(robot, rolling, {joint: 0.3})
    assert constraints.assembly_modes(robot, rolling, {joint: 0.3, other: 0.9}) == pytest.approx(np.array([[0.3, 0.9]]))
    for fixed, starts, words in ((5, 16, "fixed is 5"), ({joint: "x"}, 16, "fixed.*is 'x'"), ({}, 0, "starts is 0")):
        with pytest.raises(cj.CoadjointError, match=words):
            constraints.assembly_modes(robot, rolling, fixed, starts=starts)


def second_derivatives(f, s: float, h: float = 1e-4) -> tuple[np.ndarray, np.ndarray]:
    """f' and f'' by differences of sixth order."""
    y = np.array([f(s + k * h) for k in range(-3, 4)])
    first = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60
    second = np.array([2, -27, 270, -490, 270, -27, 2]) / 180
    return first @ y / h, second @ y / h**2


def one_freedom(robot: cj.Robot, path, s: float, rate: float, tau: np.ndarray) -> float:
    """s̈ of a mechanism whose coordinates are path(s): m s̈ + ½ m' ṡ² + U' = path' τ, m = path'ᵀ M path', by hand."""
    inertia = lambda x: (lambda d: d @ cj.mass_matrix(robot, path(x)) @ d)(second_derivatives(path, x)[0])
    energy = lambda x: float(cj.potential_energy(robot, path(x)))
    slope = second_derivatives(inertia, s, 1e-3)[0]
    return (second_derivatives(path, s)[0] @ tau - 0.5 * slope * rate**2 - second_derivatives(energy, s, 1e-3)[0]) / inertia(s)


def test_four_bar_moves_as_its_equation_with_one_freedom():
    robot = four_bar()
    constraint = Constraint.loop(robot, "pin", "tip", "revolute")
    path = lambda s: np.unwrap(fourbar_by_hand(s, -1.0))
    s, rate, tau = 0.9, 1.7, np.array([0.3, 0.1, -0.2])
    q = path(s)
    reduced = Reduced(robot, constraint, q, ["crank"])
    v = reduced.velocity(q, [rate])
    np.testing.assert_allclose(v, second_derivatives(path, s)[0] * rate, rtol=1e-9)
    wanted = one_freedom(robot, path, s, rate, tau)
    np.testing.assert_allclose(reduced.dynamics(q, [rate], tau), wanted, rtol=1e-8)
    np.testing.assert_allclose(cj.constrained_dynamics(robot, constraint, q, v, tau)[0][0], wanted, rtol=1e-8)
    moved = reduced.configuration([1.0], q)
    np.testing.assert_allclose(moved, path(1.0), atol=1e-11)


def test_slider_crank_moves_as_its_equation_with_one_freedom():
    """The rod's end slides with the piston; x = r cos s + √(l² - r² sin² s)."""
    robot, r, l = slider_crank(), 0.3, 1.0
    constraint = Constraint.loop(robot, "piston", "pin", "revolute")

    def path(s):
        rod = -np.arcsin(r * np.sin(s) / l)
        return np.array([s, rod - s, r * np.cos(s) + np.sqrt(l**2 - (r * np.sin(s)) ** 2)])

    s, rate, tau = 0.8, 5.0, np.array([0.5, 0.0, -3.0])
    q = path(s)
    np.testing.assert_allclose(constraint.residual(robot, q), 0, atol=1e-15)
    rank = constraints.constraint_rank(robot, constraint, q)
    assert (rank.rank, rank.freedoms) == (2, 1)
    assert set(rank.redundant) == {f"piston to pin {x}" for x in ("rx", "ry", "z")}
    reduced = Reduced(robot, constraint, q, ["crank"])
    wanted = one_freedom(robot, path, s, rate, tau)
    np.testing.assert_allclose(reduced.dynamics(q, [rate], tau), wanted, rtol=1e-8)
    v = reduced.velocity(q, [rate])
    a, multipliers = cj.constrained_dynamics(robot, constraint, q, v, tau)
    np.testing.assert_allclose(a[0], wanted, rtol=1e-8)
    # The force along x at the pin is what the piston needs beside its own: m ẍ = -3 - λ.
    np.testing.assert_allclose(0.5 * a[2], tau[2] - multipliers[2], rtol=1e-9)


def test_dead_centres_and_coordinates_that_cannot_lead():
    """A piston at its end leads nothing; a folded parallelogram changes its mode."""
    robot = slider_crank()
    constraint = Constraint.loop(robot, "piston", "pin", "revolute")
    q = np.array([0.0, 0.0, 1.3])
    with pytest.raises(ConstraintError, match=r"piston cannot lead: .*\(crank, rod\) move without them, a dead centre"):
        Reduced(robot, constraint, q, ["piston"])
    leading = Reduced(robot, constraint, q, ["crank"])
    assert not leading.is_singular(q)
    assert not constraints.is_singular(robot, constraint, q)
    assert Reduced(robot, constraint, q).independent != ("piston",)
    rhombus = four_bar(1.0, 1.0, 1.0, 1.0)
    closed = Constraint.loop(rhombus, "pin", "tip", "revolute")
    assert constraints.is_singular(rhombus, closed, [0.0, 0.0, np.pi])
    assert not constraints.is_singular(rhombus, closed, [0.9, -0.9, 0.9 - np.pi])


@pytest.mark.parametrize("way", ["as written", pytest.param("native", marks=pytest.mark.native)])
def test_bennett_moves_though_overconstrained(way):
    """Five equations hold three angles, and still one freedom is left; opposite angles agree and tan θ/2 tan φ/2 is constant."""
    robot, constraint = bennett()
    products, start = [], np.array([1.0, 2.0, 1.0])
    for first in (0.6, 1.0, 1.7):
        start[0] = first
        q = constraints.assemble(robot, constraint, start, fixed="bar 1")
        rank = constraints.constraint_rank(robot, constraint, q)
        assert (rank.rank, rank.freedoms, len(rank.redundant)) == (2, 1, 3)
        assert rank.singular_values[2] < 1e-10
        assert not constraints.is_singular(robot, constraint, q)
        products.append(np.tan(q[0] / 2) * np.tan(q[1] / 2))
        np.testing.assert_allclose(np.cos(q[0]), np.cos(q[2]), atol=1e-10)
        S = constraints.null_space(robot, constraint, q)
        v = 2.0 * S[:, 0]
        a, multipliers = cj.constrained_dynamics(robot, constraint, q, v, np.zeros(3))
        assert np.abs(multipliers).max() < 1e3
        # The motion goes on: φ(q ⊕ h v + ½ h² a) vanishes to third order.
        gaps = [np.abs(constraint.residual(robot, q + h * v + h * h / 2 * a)).max() for h in (1e-2, 5e-3)]
        assert 6 < gaps[0] / gaps[1] < 10
        np.testing.assert_allclose(constraint.jacobian(robot, q).T @ multipliers @ v, 0, atol=1e-9)
        reduced = Reduced(robot, constraint, q, ["bar 1"])
        np.testing.assert_allclose(reduced.dynamics(q, v[:1], np.zeros(3)), a[:1], rtol=1e-8)
    np.testing.assert_allclose(products, products[0], rtol=1e-9)
    off, _ = bennett(b=1.4)  # not Bennett's condition: the loop of the other lengths locks
    assert constraints.constraint_rank(off, constraint, [1.0, 2.0, 1.0]).freedoms == 0


def test_a_cable_and_a_gear():
    """Two weights on a cable over a pulley (Atwood), and the same with a gear: (m - M) g / (m + M)."""
    weights = [
        cj.Link.solid(name, "base", cj.Joint.prismatic((0, 0, 1), name=name), at(x), mass=m, inertia=0.1 * np.ones(3))
        for name, x, m in (("left", -1e-9, 3.0), ("right", 1e-9, 2.0))
    ]
    robot = cj.Robot("atwood", weights).with_frame("pulley", "base", at())
    q = np.array([-1.0, -2.0])
    for constraint in (
        Constraint.cable(robot, ["left", "pulley", "right"], 3.0),
        Constraint.gear(robot, {"left": 1, "right": 1}, -3.0),
    ):
        a, pull = cj.constrained_dynamics(robot, constraint, q, [0.4, -0.4], np.zeros(2))
        np.testing.assert_allclose(a, [-9.81 / 5, 9.81 / 5], rtol=1e-12)
        np.testing.assert_allclose(np.abs(pull), 2 * 3 * 2 * 9.81 / 5, rtol=1e-12)


@pytest.mark.parametrize("joint", ["prismatic", "cylindrical", "universal", "spherical", "planar"])
def test_two_arms_that_hold_each_other(joint):
    """Six joints on either side: the loop takes away as many freedoms as its joint has rows."""
    links = []
    for side, x in (("left", -0.4), ("right", 0.4)):
        parent, place = "base", at(x)
        for k in range(6):
            axis = np.eye(3)[k % 3]
            solid = {"mass": 1.0, "com": (0.1, 0.05, 0.1), "inertia": (0.02, 0.03, 0.025)}
            links.append(cj.Link.solid(f"{side} {k}", parent, cj.Joint.revolute(axis, name=f"{side} {k}"), place, **solid))
            parent, place = f"{side} {k}", at(0.1, 0.1, 0.25)
    robot = cj.Robot("arms", links)
    constraint = Constraint.loop(robot, "left 5", "right 5", joint)
    q = constraints.assemble(robot, constraint, np.tile([0.3, 0.5, -0.4], 4))
    rows = constraint.size(robot)
    assert constraints.constraint_rank(robot, constraint, q).freedoms == 12 - rows
    S = constraints.null_space(robot, constraint, q)
    a, multipliers = cj.constrained_dynamics(robot, constraint, q, S[:, 0], np.zeros(12))
    gaps = [np.abs(constraint.residual(robot, q + h * S[:, 0] + h * h / 2 * a)).max() for h in (1e-2, 5e-3)]
    assert gaps[0] < 1e-4
    assert 6 < gaps[0] / gaps[1] < 10  # third order: the constraint goes on holding
    assert multipliers.shape == (rows,)


def test_projection_is_the_nearest_state():
    """To first order the step to the constraint is orthogonal to it in the metric; velocities lose what is across."""
    robot = four_bar()
    constraint = Constraint.loop(robot, "pin", "tip", "revolute")
    q0 = fourbar_by_hand(0.9, -1.0)
    away = 1e-6 * np.array([1.0, -2.0, 0.5])
    q, v = constraints.project(robot, constraint, q0 + away, np.array([1.0, 0.2, -0.3]))
    np.testing.assert_allclose(constraint.residual(robot, q), 0, atol=1e-15)
    S, M = constraints.null_space(robot, constraint, q), cj.mass_matrix(robot, q)
    assert abs(S[:, 0] @ M @ (q - q0 - away)) < 1e-5 * np.linalg.norm(away)
    np.testing.assert_allclose(constraint.jacobian(robot, q) @ v, 0, atol=1e-14)
    np.testing.assert_allclose(S.T @ M @ (v - [1.0, 0.2, -0.3]), 0, atol=1e-13)
    batch = constraints.project(robot, constraint, q0 + away * np.arange(5)[:, None])
    assert batch.shape == (5, 3)
    np.testing.assert_allclose(constraint.residual(robot, batch), 0, atol=1e-15)


# --- rolling


def tilted(angle: float, heading: float = 0.0) -> np.ndarray:
    """Quaternion of a wheel with axle y, tilted about its line of travel x, then turned about z."""
    half = lambda w, k: np.array([*(np.sin(w / 2) * np.eye(3)[k]), np.cos(w / 2)])
    return quaternion.multiply(half(heading, 2), half(angle, 0))


def test_steady_precession_of_a_rolling_disk():
    """A disk that rolls in a circle at constant lean, by Euler's equations about its centre, written out.

    With lean θ of the axle from the horizontal, precession Ω about the vertical and spin n about the axle, angular velocity and
    momentum turn with Ω; torque about the centre is that of the force at the contact, which carries the centre on a circle.
    """
    m, r, A, C, g, lean, precession = 1.3, 0.4, 0.06, 0.11, 9.81, 0.35, 2.0
    robot = free_body(m, (A, C, A), "disk", g)
    wheel = Constraint.rolling(robot, "disk", r, axle=(0, 1, 0))
    # Frame: x along travel, u the axle, w in the disk upwards. The centre is r w above the contact.
    u, w, x = np.array([0, np.cos(lean), np.sin(lean)]), np.array([0, -np.sin(lean), np.cos(lean)]), np.array([1.0, 0, 0])
    z = np.array([0, 0, 1.0])

    def balance(n):
        omega = precession * z + n * u
        velocity = np.cross(omega, r * w)
        force = m * np.cross(precession * z, velocity) + m * g * z
        momentum = A * (omega - omega @ u * u) + C * (omega @ u) * u
        return (np.cross(precession * z, momentum) - np.cross(-r * w, force)) @ x

    n = -balance(0.0) / (balance(1.0) - balance(0.0))  # it is linear in n
    q = np.concatenate([r * w, tilted(lean)])
    omega = precession * z + n * u
    R = quaternion.to_matrix(q[3:])
    np.testing.assert_allclose(R @ [0, 1, 0], u, atol=1e-15)
    v = np.concatenate([R.T @ omega, R.T @ np.cross(omega, r * w)])
    np.testing.assert_allclose(wheel.jacobian(robot, q) @ v, 0, atol=1e-14)
    np.testing.assert_allclose(wheel.residual(robot, q), 0, atol=1e-15)
    a, force = cj.constrained_dynamics(robot, wheel, q, v, np.zeros(6))
    # Steady: in space ω̇ = Ω × ω, p̈ = Ω × ṗ; in the body the twist has the rates below.
    rate = R.T @ np.cross(precession * z, omega)
    np.testing.assert_allclose(a[:3], rate, atol=1e-12)
    velocity = np.cross(omega, r * w)
    np.testing.assert_allclose(R @ (a[3:] + np.cross(v[:3], v[3:])), np.cross(precession * z, velocity), atol=1e-12)
    np.testing.assert_allclose(force, m * np.cross(precession * z, velocity) + m * g * z, atol=1e-12)


def test_a_ball_on_a_turntable_goes_in_circles():
    """ṗ = (I / (I + m r²)) Ω z × (p - c): for a solid ball 2/7 of the table's rate, whatever its spin."""
    m, r, rate, table_inertia = 0.7, 0.05, 3.0, 1e9
    inertia = 0.4 * m * r * r
    table = cj.Link.solid(
        "table", "base", cj.Joint.revolute((0, 0, 1), name="table"), np.eye(4), mass=1.0, inertia=table_inertia * np.ones(3)
    )
    ball = cj.Link.solid("ball", "base", cj.Joint.free(name="ball"), np.eye(4), mass=m, inertia=inertia * np.ones(3))
    robot = cj.Robot("turntable", [table, ball])
    rolling = Constraint.rolling(robot, "ball", r, on="table")
    p, velocity = np.array([0.3, -0.2, r]), np.array([0.1, 0.25, 0.0])
    # No slip decides ω but for its part about z: ṗ + ω × (-r z) = Ω z × p.
    slip = velocity - np.cross([0, 0, rate], p)
    omega = np.array([-slip[1] / r, slip[0] / r, 1.7])
    q, v = np.concatenate([[0.4], p, [0, 0, 0, 1.0]]), np.concatenate([[rate], omega, velocity])
    np.testing.assert_allclose(rolling.jacobian(robot, q) @ v, 0, atol=1e-13)
    a, force = cj.constrained_dynamics(robot, rolling, q, v, np.zeros(7))
    acceleration = a[4:] + np.cross(omega, velocity)
    np.testing.assert_allclose(acceleration, 2 / 7 * rate * np.cross([0, 0, 1], velocity), atol=1e-8)
    np.testing.assert_allclose(force[2], m * 9.81, rtol=1e-9)


def test_a_car_with_four_knife_edges_turns_about_a_point():
    """Steered front wheels and rear wheels without slip sideways: one freedom of the chassis, about the point where all axles meet."""
    wheelbase, track, turn = 2.5, 1.5, 4.0
    chassis = cj.Link.solid(
        "chassis",
        "base",
        cj.Joint.planar((0, 0, 1), name="chassis"),
        np.eye(4),
        mass=900.0,
        com=(1.2, 0, 0),
        inertia=800 * np.ones(3),
    )
    robot = cj.Robot("car", [chassis], gravity=(0, 0, -9.81))
    for name, x, y in (("rl", 0, 1), ("rr", 0, -1), ("fl", 1, 1), ("fr", 1, -1)):
        angle = x * np.arctan2(wheelbase, turn - y * track / 2)
        pose = at(x * wheelbase, y * track / 2)
        pose[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        robot = robot.with_frame(name, "chassis", pose)
    wheels = Constraint.all(Constraint.twist(robot, name, "y") for name in ("rl", "rr", "fl", "fr"))
    q = np.array([1.0, 2.0, 0.7])
    rank = constraints.constraint_rank(robot, wheels, q)
    assert (rank.rank, rank.freedoms, rank.redundant) == (2, 1, ("rr y (body)", "fr y (body)"))
    S = constraints.null_space(robot, wheels, q)[:, 0]
    np.testing.assert_allclose(S / S[0], [1.0, turn, 0.0], atol=1e-10)  # ω, v along, v across at the rear axle
    v = 0.5 * S / S[0]
    a, _ = cj.constrained_dynamics(robot, wheels, q, v, np.zeros(3))
    np.testing.assert_allclose(a, 0, atol=1e-9)  # nothing drives it: it goes on in its circle


def test_a_rolling_ball_on_the_ground_and_a_knife_edge_keep_energy():
    ball = free_body(0.5, (0.01, 0.01, 0.01))
    rolling = Constraint.rolling(ball, "body", 0.1)
    q = np.array([0.2, 0.1, 0.1, 0, 0, 0, 1.0])
    v = constraints.project_velocity(ball, rolling, q, np.array([0.3, -2.0, 0.5, 0.4, 0.2, 0.1]))
    a, force = cj.constrained_dynamics(ball, rolling, q, v, np.zeros(6))
    np.testing.assert_allclose(a[3:] + np.cross(v[:3], v[3:]), 0, atol=1e-13)  # straight on
    np.testing.assert_allclose(force, [0, 0, 0.5 * 9.81], atol=1e-12)
