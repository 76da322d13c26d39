"""Balanced mechanisms: Brockett, Stokes & Park's conditions, those of any robot, and counterweights that fulfil them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import acceptance
import coadjoint as cj
from coadjoint import Joint, Link, Robot
from coadjoint.design import balance, conditions, counterweights, first_moments
from coadjoint.errors import CoadjointError, ModelError
from coadjoint.lie import inertia, se3
from random_robots import random_inertia, random_robot


def parallel_tree(rng, n, tree=True) -> Robot:
    """Links that turn about parallel axes, each joint apart from the one before; axes along a random direction of the frames."""
    turn = se3.exp(np.concatenate([rng.normal(size=3), np.zeros(3)]))
    links = []
    for i in range(n):
        mass, com, I = random_inertia(rng)
        frame = se3.exp(np.concatenate([[0, 0, rng.uniform(-2, 2)], np.zeros(3)]))
        frame[:3, 3] = rng.uniform(0.2, 0.6, 3) * rng.choice([-1, 1], 3)
        point = rng.uniform(-0.2, 0.2, 3)
        parent = int(rng.integers(0, i)) if tree and i else i - 1
        placement = turn.T @ frame @ turn if i else frame
        joint = Joint.revolute(turn[:3, :3].T @ [0, 0, 1], point)
        links.append(Link.solid(f"l{i}", f"l{parent}" if i else "base", joint, _pose(placement), mass=mass, com=com, inertia=I))
    return Robot("parallel", links, gravity=rng.normal(size=3) * 5)


def _pose(T):
    T = np.array(T)
    T[3] = [0, 0, 0, 1]
    return T


def balanced_by_hand(robot: Robot) -> Robot:
    """First moments moved, from the tips to the base, until b_k = 0; with enough inertia added to remain a body."""
    for i in reversed(robot.order):
        parameters = np.array(robot.inertias)
        parameters[i, 1:4] -= first_moments(robot)[i]
        parameters[i, [4, 7, 9]] += 10.0
        robot = robot.with_inertial_parameters(parameters.reshape(-1))
    return robot


def constant(robot: Robot, seed=1) -> float:
    """How much M changes, relative to its largest entry."""
    M = cj.mass_matrix(robot, robot.random(seed, 20))
    return float(np.max(np.abs(M - M[0])) / np.max(np.abs(M)))


# --- is it balanced


def test_case_14():
    case = acceptance.read(14)
    robot = acceptance.robot(case["model"])
    assert cj.is_balanced(robot)
    np.testing.assert_allclose(cj.mass_matrix(robot, case["inputs"]["qs"]), [case["expected"]["M"]] * 5, **case["tolerance"])
    np.testing.assert_allclose(first_moments(robot)[1:], 0.0, atol=1e-15)
    np.testing.assert_allclose(conditions(robot).violated, 0.0, atol=1e-14)
    q = np.array(case["inputs"]["qs"])
    assert np.max(np.abs(cj.christoffel(robot, q))) < 1e-12
    assert np.max(np.abs(cj.curvature(robot, q))) < 1e-12
    assert cj.is_flat(robot)


@pytest.mark.parametrize("name", ["planar2r", "spherical_pendulum", "furuta", "scara", "puma560", "cartpole"])
def test_ordinary_robots_are_not_balanced(name):
    robot = cj.load(name)
    found = balance(robot)
    assert not cj.is_balanced(robot)
    assert found.variation > 0.01
    i, j, l = found.freedoms
    M = cj.mass_matrix(robot, robot.random(0, 64))
    step = 1e-6 * np.eye(robot.nv)[l]
    change = cj.mass_matrix(robot, found.where + step) - cj.mass_matrix(robot, found.where - step)
    assert abs(change[i, j]) / 2e-6 == pytest.approx(found.slope * np.sqrt(M[:, i, i].max() * M[:, j, j].max()), rel=1e-6)


def test_flat_is_not_balanced():
    """A point mass on a revolute and a prismatic joint: flat, though M = diag(m q₂², m) is not constant."""
    links = [
        Link("a", "base", Joint.revolute()),
        Link.solid("b", "a", Joint.prismatic((1, 0, 0), lower=0.5, upper=2.0), mass=2.0),
    ]
    robot = Robot("polar", links)
    assert cj.is_flat(robot)
    assert not cj.is_balanced(robot)


def test_a_free_body_and_slides_are_balanced():
    assert cj.is_balanced(cj.load("floating_body"))
    slides = [Link.solid(x, y, Joint.prismatic(a), mass=1.0) for x, y, a in (("a", "base", (1, 0, 0)), ("b", "a", (0, 1, 0)))]
    assert cj.is_balanced(Robot("gantry", slides))
    assert cj.is_balanced(Robot("still", []))


def test_the_measure_does_not_depend_on_units():
    """In grams and centimetres the cart and pole vary as they do in kilograms and metres, though one coordinate is a length."""
    robot = cj.load("cartpole")
    in_other_units = []
    for link in robot.links:
        placement = np.array(link.placement)
        placement[:3, 3] *= 100
        units = 1000 * np.array([1, *[1e2] * 3, *[1e4] * 6])
        joint = (
            replace(link.joint, lower=link.joint.lower * 100, upper=link.joint.upper * 100) if link.name == "cart" else link.joint
        )
        in_other_units.append(replace(link, joint=joint, placement=placement, parameters=link.parameters * units))
    same = balance(robot).variation
    assert balance(Robot("cgs", in_other_units)).variation == pytest.approx(same, rel=1e-9)
    assert balance(robot, 200, 5).variation == pytest.approx(same, rel=0.2)


# --- conditions


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.booleans())
def test_parallel_axes_are_balanced_if_and_only_if_first_moments_vanish(seed, n, tree):
    rng = np.random.default_rng(seed)
    robot = parallel_tree(rng, n, tree)
    assert not cj.is_balanced(robot)
    robot = balanced_by_hand(robot)
    np.testing.assert_allclose(first_moments(robot), 0.0, atol=1e-12)
    assert cj.is_balanced(robot)
    assert constant(robot) < 1e-12
    assert balance(robot).weightless
    np.testing.assert_allclose(cj.gravity_force(robot, robot.random(0, 5)), 0.0, atol=1e-11)
    off = np.array(robot.inertias)
    tip = max(range(n), key=robot.order.index)
    axis = robot.joint_screws(tip)[0, :3]
    off[tip, 1:4] += 1e-3 * np.cross(axis, rng.normal(size=3))
    assert robot.parents[tip] >= 0
    assert not cj.is_balanced(robot.with_inertial_parameters(off.reshape(-1)))


def test_conditions_of_a_planar_chain_are_those_of_brockett_stokes_and_park():
    """h_k = -(Σ_{j>k} m_j) l_k for k = 2 … n, in frames at the joints: m_k p_kk = -(Σ m_j) p_{k,k+1}."""
    robot = cj.Robot("chain", cj.load("planar4r").links)
    lengths = (0.7, 0.4, 0.9, 1.0)
    for k in range(1, 4):
        at = np.eye(4)
        at[0, 3] = lengths[k - 1]
        robot = robot.with_placement(f"link{k + 1}", at)
    found = conditions(robot)
    assert str(found).splitlines() == [
        "h_2x = -0.4 m_3 - 0.4 m_4",
        "h_2y = 0",
        "h_3x = -0.9 m_4",
        "h_3y = 0",
        "h_4x = 0",
        "h_4y = 0",
    ]
    moments = first_moments(robot)
    np.testing.assert_allclose(found.violated, moments[1:, :2].reshape(-1), atol=1e-12)


def test_conditions_of_known_mechanisms():
    pendulum = str(conditions(cj.load("spherical_pendulum"))).splitlines()
    assert pendulum == ["I_1xy = 0", "I_1xz = 0", "I_1yz = 0", "I_1xx = I_1zz"]
    assert str(conditions(cj.load("planar2r"), ("mass_matrix", "gravity"))).splitlines() == [
        "h_1x = -m_2",
        "h_1y = 0",
        "h_2x = 0",
        "h_2y = 0",
    ]
    assert str(conditions(cj.load("floating_body"))) == "no conditions: always balanced"
    assert "m_1 = 0" in str(conditions(cj.load("floating_body"), "gravity"))
    assert "I_6zz = 0" in str(conditions(cj.load("puma560"))), "M_46 = I_6zz cos q_5: no PUMA is balanced"


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from(["mass_matrix", "gravity"]))
def test_parameters_are_balanced_if_and_only_if_they_fulfil_the_conditions(seed, n, goal):
    """Every combination of `designs` gives a constant mass matrix (or potential), and no vector of parameters outside does."""
    robot = random_robot(seed, n, ("revolute", "prismatic", "helical", "universal"), tree=True)
    found = conditions(robot, goal)
    rng = np.random.default_rng(seed)
    inside = found.designs @ rng.normal(size=found.designs.shape[1])
    q, v = robot.random(rng, 10), rng.normal(size=robot.nv)

    def energies(parameters):
        other = robot.with_numbers(inertias=parameters.reshape(-1, 10))
        T, U = (x.kernel.source for x in (cj.kinetic_energy, cj.potential_energy))
        return T(other, q, np.broadcast_to(v, (10, robot.nv))) if goal == "mass_matrix" else U(other, q)

    scale = np.max(np.abs(energies(rng.normal(size=10 * n))))
    assert np.ptp(energies(inside)) < 1e-8 * scale
    assume(len(found.matrix))  # else every robot of these joints is balanced
    outside = found.matrix.T @ rng.normal(size=len(found.matrix))
    outside *= np.linalg.norm(inside) / np.linalg.norm(outside) if inside.size and np.linalg.norm(inside) else 1.0
    assert np.ptp(energies(outside)) > 1e-6 * scale


# --- counterweights


@pytest.mark.parametrize("name", ["planar2r", "planar3r", "planar5r", "spherical_pendulum", "furuta", "scara"])
def test_counterweights_make_the_mass_matrix_constant(name):
    robot = cj.load(name)
    result = counterweights(robot)
    assert result.exact
    assert constant(result.robot) < 1e-12
    assert cj.is_balanced(result.robot)
    assert result.balance[0].variation > 0.1
    added = result.robot.inertias - robot.inertias
    assert result.weights
    for weight in result.weights:
        ten = inertia.from_body(weight.mass, weight.center, weight.inertia)
        np.testing.assert_allclose(added[robot.link_index(weight.link)], ten, atol=1e-12)
        assert inertia.violations(ten) == []
        assert np.all(weight.masses > 0)
    assert result.mass == pytest.approx(cj.total_mass(result.robot) - cj.total_mass(robot))


def test_least_mass_is_at_the_end_of_the_box():
    """A unit rod at the elbow needs m x = -½ kg m: the least mass is 1 kg at x = -0.5, or ½ kg where the box reaches to -1."""
    robot = cj.load("planar2r")
    (weight,) = counterweights(robot, ["link2"], box=[[-1, 0, 0], [0, 0, 0]]).weights
    assert weight.mass == pytest.approx(0.5)
    np.testing.assert_allclose(weight.center, [-1, 0, 0], atol=1e-12)
    both = counterweights(robot, goals=("mass_matrix", "gravity"), box=[[-1, 0, 0], [0, 0, 0]])
    assert [w.mass for w in both.weights] == pytest.approx([2.0, 0.5])  # 0.5 + (1 + 0.5) · 1 at the elbow
    assert both.balance[1].constant
    assert both.balance[1].weightless
    np.testing.assert_allclose(cj.gravity_force(both.robot, robot.random(3, 10)), 0.0, atol=1e-13)


@pytest.mark.parametrize("name", ["puma560", "ur5e", "panda"])
def test_gravity_of_arms_is_balanced(name):
    robot = cj.load(name)
    result = counterweights(robot, goals="gravity")
    assert result.exact
    q = robot.random(0, 20)
    before = np.max(np.abs(cj.gravity_force(robot, q)))
    assert np.max(np.abs(cj.gravity_force(result.robot, q))) < 1e-12 * before
    assert np.ptp(cj.potential_energy(result.robot, q)) < 1e-12 * np.ptp(cj.potential_energy(robot, q))


def test_as_good_as_bounds_allow():
    """With at most 0.3 kg at x ≥ -1 the moment of the elbow falls from 0.5 to 0.2 kg m, and no further."""
    robot = cj.load("planar2r")
    result = counterweights(robot, ["link2"], box=[[-1, 0, 0], [0, 0, 0]], max_mass=0.3)
    assert not result.exact
    assert not cj.is_balanced(result.robot)
    (weight,) = result.weights
    assert weight.mass == pytest.approx(0.3, rel=1e-6)
    assert weight.mass <= 0.3
    np.testing.assert_allclose(first_moments(result.robot)[1], [0.2, 0, 0], atol=1e-6)
    assert result.residual[1] / result.residual[0] == pytest.approx(0.4, rel=1e-5)
    larger = counterweights(robot, ["link2"], box=[[-1, 0, 0], [0, 0, 0]], max_mass={"link2": 0.4})
    assert larger.residual[1] < result.residual[1]
    assert counterweights(robot, ["link2"], box=[[-1, 0, 0], [0, 0, 0]], max_mass=0.0).mass == 0.0


def test_least_squares_are_least():
    """Of the PUMA, which cannot be balanced: no small change of the masses within bounds gives less."""
    robot = cj.load("puma560")
    result = counterweights(robot, ["link2", "link3"], max_mass=30.0, grid=3)
    assert not result.exact
    assert result.residual[1] < 0.6 * result.residual[0]
    assert result.weights
    assert all(w.mass <= 30.0 for w in result.weights)

    def residual(parameters):
        from coadjoint.design.conditions import energy_differences

        rows = energy_differences(robot, ("mass_matrix",))
        return np.linalg.norm(rows @ parameters.reshape(-1)) / np.sqrt(len(rows))

    best = residual(result.robot.inertias)
    assert best == pytest.approx(result.residual[1])
    for weight in result.weights:
        i = robot.link_index(weight.link)
        for point, mass in zip(weight.points, weight.masses, strict=True):
            for change in (-min(0.05, mass), 0.05):
                if change < 0 or weight.mass + change < 30.0:
                    other = np.array(result.robot.inertias)
                    other[i] += inertia.from_body(change, point, np.zeros((3, 3)))
                    assert residual(other) > best - 1e-7


def test_wrong_use_is_named():
    robot = cj.load("planar2r")
    for call, message in (
        (lambda: counterweights(robot, ["link3"]), "link3"),
        (lambda: counterweights(robot, ["base"]), "not the base"),
        (lambda: counterweights(robot, goals="speed"), "no goal is named 'speed'"),
        (lambda: counterweights(robot, max_mass=-1.0), "0 or more"),
        (lambda: counterweights(robot, ["link2"], max_mass={"link1": 1.0}), "carries no counterweight"),
        (lambda: counterweights(robot, box=[[1, 0, 0], [0, 0, 0]]), "the lower first"),
        (lambda: counterweights(robot, ["link2"], box={"link1": [[0, 0, 0], [1, 1, 1]]}), "carries no counterweight"),
        (lambda: counterweights(robot, grid=1), "2 or more"),
        (lambda: balance(robot, 1), "2 or more"),
    ):
        with pytest.raises(CoadjointError, match=message):
            call()
    with pytest.raises(ModelError, match="'slide' is prismatic"):
        first_moments(cj.load("cartpole"))
    with pytest.raises(ModelError, match="not parallel"):
        first_moments(cj.load("furuta"))
