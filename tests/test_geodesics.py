"""Geodesics, transport and Jacobi fields: conservation laws, known spaces, and motions of robots that nothing acts on."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from acceptance import load
from coadjoint import geometry
from coadjoint.geometry import Geodesic, GeodesicError, inner_product, jacobi_field, parallel_transport
from laws import derivative, rate, relative
from models import body
from random_robots import random_robot

pytestmark = pytest.mark.native


ROBOTS = {
    "chain": (3, ("revolute", "prismatic", "helical")),
    "tree": (3, ("revolute", "prismatic", "universal")),
    "groups": (3, ("spherical", "planar", "revolute")),
    "floating": (2, ("free", "revolute")),
    "mimic": (4, ("revolute", "prismatic")),
}


@pytest.fixture(scope="module", params=ROBOTS)
def moving(request):
    """A robot, two states and velocities."""
    rng = np.random.default_rng(len(request.param))
    robot = random_robot(rng, *ROBOTS[request.param], tree=request.param == "tree", mimic=request.param == "mimic")
    return robot, robot.random(rng, 2), 0.7 * rng.normal(size=(2, robot.nv))


def test_speed_is_constant(moving):
    """To 1e-10 over ten seconds, for motions of the size of a radian in a second."""
    robot, q, v = moving
    at, rate = cj.geodesic(robot, q, v, np.linspace(0, 10, 101))
    speed = np.sqrt(inner_product(robot, at, rate, rate))
    assert at.shape == (2, 101, robot.nq)
    assert np.max(np.abs(speed / speed[:, :1] - 1)) < 1e-10


def test_rates_of_configurations(moving):
    robot, q, v = moving
    expected = derivative(robot, lambda x: x, q, v)
    assert relative(geometry.configuration_rate(robot, q, v), expected) < 1e-11


def test_a_geodesic_is_motion_that_nothing_acts_on(moving):
    """q' is v, and M v' + C v = 0, here from differences along the curve."""
    robot, q, v = moving
    curve, h = Geodesic(robot, q, v, [-0.1, 1.0]), 5e-3
    at, v = curve(0.6)
    acceleration = rate(lambda t: curve(0.6 + t)[1], h)
    tau = cj.inverse_dynamics(robot.with_gravity([0, 0, 0]), at, v, acceleration)
    assert np.max(np.abs(tau)) < 1e-8 * np.max(np.abs(np.einsum("...ij,...j", cj.mass_matrix(robot, at), acceleration)))
    assert relative(rate(lambda t: robot.difference(at, curve(0.6 + t)[0]), h), v) < 1e-8


def test_times_in_any_order_and_shape(moving):
    robot, q, v = moving
    t = np.array([[0.4, -0.2], [0.0, 0.7]])
    at, rate = cj.geodesic(robot, q[0], v[0], t)
    assert at.shape == (2, 2, robot.nq)
    np.testing.assert_allclose(at[1, 0], robot.normalize(q[0]), atol=1e-15)
    there, back = cj.geodesic(robot, at[0, 1], rate[0, 1], 0.2)
    assert np.max(np.abs(robot.difference(there, at[1, 0]))) < 1e-11
    np.testing.assert_allclose(back, v[0], atol=1e-10)
    one = cj.geodesic(robot, q, v, 0.4)
    np.testing.assert_allclose(one[0][0], at[0, 0], atol=1e-10)


def test_cases_09_and_17():
    """A great circle, and a straight line in polar coordinates."""
    for number in (9, 17):
        case = load(number)
        q, _ = cj.geodesic(case.robot, case.inputs.q, case.inputs.qd, float(case.inputs.T))
        np.testing.assert_allclose(q, case.expected["geodesic_q_at_T"], rtol=0, atol=case.tolerance["geodesic_atol"])
    case = load(9)
    q, _ = cj.geodesic(case.robot, case.inputs.q, case.inputs.qd, float(case.inputs.T))
    tip = cj.pose(case.robot, q, "link2")[:3, 3] / 0.7
    np.testing.assert_allclose(tip, case.expected["tip_direction_at_T"], atol=1e-10)


def test_a_free_body_keeps_its_angular_momentum():
    robot = body(cj.Joint.spherical(), moments=(0.7, 1.1, 1.3))
    q, v = robot.random(0), np.array([1.0, 2.0, -0.5])
    at, rate = cj.geodesic(robot, q, v, np.linspace(0, 10, 21))
    h = cj.momentum(robot, at, rate)[..., :3]
    assert np.max(np.abs(h - h[0])) < 1e-11
    assert np.max(np.abs(np.linalg.norm(at, axis=-1) - 1)) < 1e-15


@pytest.mark.slow
def test_a_geodesic_ends_where_the_metric_does():
    """Straight at the pole of a massless universal joint: an error, not a number."""
    case = load(9)
    with pytest.raises(cj.CoadjointError, match="singular"):
        cj.geodesic(case.robot, [0.3, 0.5], [1e-9, 1.0], 2.0)


def test_wrong_input_is_named():
    robot = cj.load("planar2r")
    with pytest.raises(cj.CoadjointError, match=r"v has shape \(3,\); expected \(..., 2\)"):
        cj.geodesic(robot, [0.0, 0.0], [1.0, 2.0, 3.0], 1.0)
    with pytest.raises(cj.CoadjointError, match="t is"):
        cj.geodesic(robot, [0.0, 0.0], [1.0, 2.0], np.nan)
    with pytest.raises(cj.CoadjointError, match="q has entries that are not finite"):
        cj.geodesic(robot, [np.inf, 0.0], [1.0, 2.0], 1.0)


# --- between two configurations


def test_exponential_and_logarithm(moving):
    robot, q, v = moving
    goal = geometry.exponential(robot, q, 0.5 * v)
    log = geometry.logarithm(robot, q, goal, attempts=1)
    assert np.max(np.abs(robot.difference(goal, geometry.exponential(robot, q, log)))) < 1e-9
    length = np.sqrt(inner_product(robot, q, log, log))
    np.testing.assert_allclose(geometry.distance(robot, q, goal, attempts=1), length, rtol=1e-9)
    assert np.all(length <= np.sqrt(inner_product(robot, q, 0.5 * v, 0.5 * v)) * (1 + 1e-9))


def test_distance_on_a_sphere():
    """√m r times the angle between the tips."""
    case = load(9)
    start, goal = np.array([0.3, 0.5]), np.array([1.4, -0.2])
    tips = [cj.pose(case.robot, q, "link2")[:3, 3] / 0.7 for q in (start, goal)]
    expected = np.sqrt(1.3) * 0.7 * np.arccos(tips[0] @ tips[1])
    assert geometry.distance(case.robot, start, goal) == pytest.approx(expected, rel=1e-9)


def test_a_turn_has_two_ways_round():
    """From one attitude of a ball to another: the turn by θ and the one by 2π - θ the other way."""
    robot = body(cj.Joint.spherical())
    start = robot.random(3)
    turn = np.array([0.3, 1.0, -0.4])
    report = geometry.geodesics_between(robot, start, robot.integrate(start, turn))
    angle = np.linalg.norm(turn)
    assert report.found >= 2
    np.testing.assert_allclose(report.lengths[:2], [angle, 2 * np.pi - angle], rtol=1e-9)
    np.testing.assert_allclose(report.velocities[0], turn, atol=1e-8)
    assert f"{report.found} geodesics found" in str(report)


def test_where_there_is_none_the_report_says_so():
    """A ring: in the plane without a point, seen in polar coordinates, no straight line turns by half a circle or more."""
    case = load(17)
    report = geometry.geodesics_between(case.robot, [0.0, 0.0], [3.5, 0.0], attempts=3)
    assert report.found == 0
    assert len(report.failures) == 3
    assert "no geodesic found" in str(report)
    with pytest.raises(GeodesicError, match="no geodesic found"):
        geometry.logarithm(case.robot, [0.0, 0.0], [3.5, 0.0])
    with pytest.raises(cj.CoadjointError, match="attempts is 0"):
        geometry.geodesics_between(case.robot, [0.0, 0.0], [0.1, 0.0], attempts=0)
    with pytest.raises(cj.CoadjointError, match="expected one configuration each"):
        geometry.geodesics_between(case.robot, np.zeros((2, 2)), [0.1, 0.0])


# --- transport


def test_parallel_vectors_keep_lengths_and_angles(moving):
    robot, q, v = moving
    curve = Geodesic(robot, q[0], v[0], 2.0)
    t = np.linspace(0, 2, 5)
    x = np.random.default_rng(0).normal(size=(2, robot.nv))
    carried = parallel_transport(robot, curve, x, t)
    at, rate = curve(t)
    assert carried.shape == (2, 5, robot.nv)
    for a, b in ((0, 0), (0, 1), (1, 1)):
        products = inner_product(robot, at, carried[a], carried[b])
        assert np.max(np.abs(products - products[0])) < 1e-9 * np.max(np.abs(products))
    assert relative(parallel_transport(robot, curve, v[0], t), rate) < 1e-9  # a geodesic carries its own velocity


def test_transport_round_a_cap_turns_by_its_area():
    """On a sphere a vector comes back turned by the solid angle 2π (1 - sin b) of the cap north of the latitude b."""
    robot, latitude = load(9).robot, 0.5
    circle = lambda t: (np.array([t, -latitude]), np.array([1.0, 0.0]))
    start = np.array([1.0, 0.0])
    end = parallel_transport(robot, circle, start, 2 * np.pi)
    size = np.sqrt(np.diag(cj.mass_matrix(robot, [0.0, -latitude])))
    turned = np.arctan2(*(end * size)[::-1])
    area = 2 * np.pi * (1 - np.sin(latitude))
    assert np.cos(turned) == pytest.approx(np.cos(area), abs=1e-10)
    assert abs(np.sin(turned)) == pytest.approx(abs(np.sin(area)), abs=1e-10)


def test_a_curve_of_many_states_is_refused():
    robot = cj.load("planar2r")
    with pytest.raises(cj.CoadjointError, match="expected one state"):
        parallel_transport(robot, lambda t: (np.zeros((3, 2)), np.zeros((3, 2))), [1.0, 0.0], 1.0)


def test_jacobi_fields_are_the_spread_of_neighbouring_geodesics(moving):
    robot, q, v = moving
    q, v = q[0], v[0]
    j, rate = np.random.default_rng(1).normal(size=(2, robot.nv))
    # A start moved by ε j has the components of v changed by ε (∇_v J - Γ̂(j, v)) for the covariant rate ∇_v J = rate.
    bent = np.einsum("kij,i,j->k", cj.connection(robot, q), j, v)
    ends = {s: cj.geodesic(robot, robot.integrate(q, s * 1e-4 * j), v + s * 1e-4 * (rate - bent), 0.8)[0] for s in (-2, -1, 1, 2)}
    middle = cj.geodesic(robot, q, v, 0.8)[0]
    d = {s: robot.difference(middle, x) for s, x in ends.items()}
    spread = (8 * (d[1] - d[-1]) - (d[2] - d[-2])) / 12e-4
    J, _ = jacobi_field(robot, q, v, j, rate, 0.8)
    assert relative(J, spread) < 1e-6


def test_curvature_tells_the_spread():
    """|J| = |J'| sin(√K s)/√K on a sphere (K > 0), |J'| t where flat, and more than that where K < 0."""
    sphere, flat = load(9), load(17)
    for case, K in ((sphere, 1 / (1.3 * 0.49)), (flat, 0.0)):
        robot, q = case.robot, case.inputs.q
        M = cj.mass_matrix(robot, q)
        v, aside = np.array([0.4, 0.3]), np.array([-0.3 / M[0, 0], 0.4 / M[1, 1]])  # orthogonal
        t = np.linspace(0, 1, 6)
        J, _ = jacobi_field(robot, q, v, np.zeros(2), aside, t)
        at, _ = cj.geodesic(robot, q, v, t)
        size = np.sqrt(inner_product(robot, at, J, J) / (aside @ M @ aside))
        speed = np.sqrt(v @ M @ v)
        expected = np.sin(np.sqrt(K) * speed * t) / (np.sqrt(K) * speed) if K else t
        np.testing.assert_allclose(size, expected, atol=1e-9)
    robot = load(5).robot
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (200, 2))
    K = cj.sectional_curvature(robot, q, [1.0, 0.0], [0.0, 1.0])
    growth = []
    for k in (np.argmin(K), np.argmax(K)):
        M = cj.mass_matrix(robot, q[k])
        frame = np.linalg.inv(np.linalg.cholesky(M)).T
        J, _ = jacobi_field(robot, q[k], frame[:, 0], np.zeros(2), frame[:, 1], 0.05)
        at, _ = cj.geodesic(robot, q[k], frame[:, 0], 0.05)
        growth.append(np.sqrt(inner_product(robot, at, J, J)) / 0.05 - 1)
        assert growth[-1] == pytest.approx(-K[k] * 0.05**2 / 6, rel=0.1)  # |J| = t - K t³/6 + …
    assert K.min() < 0 < K.max()
    assert growth[0] > 0 > growth[1]
