"""Impacts: momentum across the surface only, energy never gained, plastic impacts are projections, pushes never pull."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest

import acceptance
import coadjoint as cj
from coadjoint import Constraint
from coadjoint.constraints.complementarity import complementarity
from coadjoint.lie import se3, so3
from coadjoint.robot.zoo.textbook import planar_nr
from random_robots import random_robot


def rows(rng: np.random.Generator, m: int, nv: int) -> tuple[np.ndarray, Constraint]:
    A = rng.normal(size=(m, nv))
    return A, Constraint.from_jacobian(lambda q: A + 0.0 * q[0])


@pytest.mark.parametrize("unilateral", [False, True])
@pytest.mark.native
def test_case_22_the_bouncing_arm(unilateral):
    case = acceptance.read(22)
    given = case["inputs"]
    tip = np.eye(4)
    tip[:3, 3] = given["tip_home"]
    robot = acceptance.robot(case["model"], tip=tip)
    floor = Constraint.point(robot, "tip", "y")
    q, v = np.array(given["q"]), np.array(given["qd_minus"])
    np.testing.assert_allclose(floor.jacobian(robot, q), given["A"], rtol=1e-11, atol=1e-11)
    for e in given["e"]:
        expected = case["expected"][f"e={e}"]
        after, impulse = cj.impact(robot, floor, q, v, e, unilateral)
        np.testing.assert_allclose(after, expected["qd_plus"], rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(impulse, expected["impulse"], rtol=1e-11, atol=1e-11)
        account = cj.impact_account(robot, floor, q, v, e, unilateral)
        np.testing.assert_allclose(account.energy_change, expected["energy_change"], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("seed", range(6))
def test_laws(seed):
    """Momentum balance, work, ΔT ≤ 0, e = 0 the projection P, e = 1 keeps energy; with batch axes."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 4, ("revolute", "prismatic", "spherical", "free"), tree=True, armature=True)
    m = int(rng.integers(1, min(4, robot.nv)))
    A, constraint = rows(rng, m, robot.nv)
    q, v = robot.random(rng, (3,)), rng.normal(size=(3, robot.nv))
    M = cj.mass_matrix(robot, q)
    for e in (0.0, 0.4, 1.0):
        account = cj.impact_account(robot, constraint, q, v, e)
        np.testing.assert_allclose(account.momentum_change, account.impulse @ A, atol=1e-10)
        np.testing.assert_allclose(np.einsum("nij,nj->ni", M, account.v_after - v), account.impulse @ A, atol=1e-10)
        np.testing.assert_allclose(account.separation, -e * account.approach, atol=1e-10)
        np.testing.assert_allclose(account.energy_change, account.work.sum(-1), atol=1e-10)
        formula = 0.5 * (1 - e) * (account.impulse * account.approach).sum(-1)
        np.testing.assert_allclose(account.energy_change, formula, atol=1e-10)
        assert np.all(account.energy_change <= 1e-12)
    plastic, _ = cj.impact(robot, constraint, q, v)
    P = cj.constraint_projector(robot, constraint, q)
    np.testing.assert_allclose(plastic, np.einsum("nij,nj->ni", P, v), atol=1e-10)
    assert np.abs(cj.impact_account(robot, constraint, q, v, 1.0).energy_change).max() < 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_unilateral_rows_push_only(seed):
    """0 ≤ Λ ⊥ A v⁺ - e max(0, -A v⁻) ≥ 0, bilateral rows beside them kept."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 5, ("revolute", "prismatic"), tree=False)
    A, constraint = rows(rng, 4, robot.nv)
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    W = cj.mass_matrix_inverse(robot, q)
    v = v - W @ A[:1].T @ np.linalg.solve(A[:1] @ W @ A[:1].T, A[:1] @ v)  # the bilateral row holds before
    mask, e = np.array([False, True, True, True]), np.array([0.0, 0.3, 0.8, 0.0])
    after, impulse = cj.impact(robot, constraint, q, v, e, mask)
    slack = A @ after - e * np.maximum(0.0, -A @ v)
    assert np.abs((A @ after)[0]) < 1e-10
    assert impulse[1:].min() >= 0
    assert (A @ after)[1:].min() >= -1e-10
    assert slack[1:].min() >= -1e-10
    assert np.abs(impulse * slack)[1:].max() < 1e-9
    plastic, _ = cj.impact(robot, constraint, q, v, 0.0, mask)
    assert cj.kinetic_energy(robot, q, plastic) <= cj.kinetic_energy(robot, q, v) + 1e-10
    one, _ = cj.impact(robot, constraint, q, v, 0.5, mask)  # one number is that of unilateral rows
    several, _ = cj.impact(robot, constraint, q, v, [0.0, 0.5, 0.5, 0.5], mask)
    np.testing.assert_array_equal(one, several)


@pytest.mark.parametrize("seed", range(10))
def test_energy_is_not_gained_by_rows_that_approach(seed):
    """ΔT = ½ Σ (1 - e) Λ A v⁻ ≤ 0 for A v⁻ ≤ 0, each row with its own restitution."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 5, ("revolute", "prismatic"), tree=False)
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    A = rng.normal(size=(4, robot.nv))
    A = -A * np.sign(A @ v)[:, None]
    e = rng.random(4)
    account = cj.impact_account(robot, Constraint.from_jacobian(lambda q: A + 0.0 * q[0]), q, v, e, True)
    assert account.approach.max() < 0
    assert account.energy_change == pytest.approx(0.5 * ((1 - e) * account.impulse * account.approach).sum(), abs=1e-9)
    assert account.energy_change <= 1e-12


def test_what_separates_is_left_alone():
    robot = cj.load("planar2r")
    floor = Constraint.point(robot, "tip", "y")
    q, v = np.array([0.3, 0.4]), np.array([1.0, 0.5])
    after, impulse = cj.impact(robot, floor, q, v, 1.0, unilateral=True)
    np.testing.assert_array_equal(after, v)
    assert impulse == 0


@pytest.mark.parametrize("seed", range(20))
def test_complementarity_against_every_choice_of_rows(seed):
    """The solution is the only one that some choice of active rows gives; redundant rows included."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 6))
    B = rng.normal(size=(m, int(rng.integers(1, 7))))
    G, unilateral = B @ B.T, rng.random(m) < 0.8
    b = B @ rng.normal(size=B.shape[1])  # in the range of G, as for velocities of rows
    found = complementarity(G, b, unilateral)
    w = G @ found + b
    size = np.abs(b).max() + 1.0
    assert np.abs(w[~unilateral]).max(initial=0.0) < 1e-8 * size
    assert found[unilateral].min(initial=0.0) >= 0
    assert w[unilateral].min(initial=0.0) >= -1e-8 * size
    assert np.abs(found * w)[unilateral].max(initial=0.0) < 1e-7 * size
    answers = []
    for choice in product([False, True], repeat=m):
        active = np.array(choice) | ~unilateral
        lam = np.zeros(m)
        if active.any():
            lam[active] = np.linalg.lstsq(G[np.ix_(active, active)], -b[active], rcond=1e-11)[0]
        after = G @ lam + b
        good = np.abs(after[active]).max(initial=0.0) < 1e-8 * size and lam[unilateral].min(initial=0.0) >= -1e-8 * size
        if good and after[unilateral].min(initial=0.0) >= -1e-8 * size:
            answers.append(after)
    for after in answers:  # λ need not be unique, what it does is
        np.testing.assert_allclose(w, after, atol=1e-6 * size)
    assert answers


def cradle(n: int) -> tuple[cj.Robot, Constraint]:
    """n equal balls on a line, each against the next."""
    links = [cj.Link.solid(f"ball{k}", "base", cj.Joint.prismatic((1, 0, 0), name=f"slide{k}"), mass=1.0) for k in range(n)]
    robot = cj.Robot("cradle", links)
    D = np.diff(np.eye(n), axis=0)
    return robot, Constraint.from_jacobian(lambda q: D + 0.0 * q[0])


def test_balls_that_touch_at_once():
    """The simultaneous elastic impact of three balls: 1, 0, 0 -> -1/3, 2/3, 2/3, energy and momentum kept."""
    robot, between = cradle(3)
    after, _ = cj.impact(robot, between, np.zeros(3), [1.0, 0.0, 0.0], 1.0, unilateral=True)
    np.testing.assert_allclose(after, [-1 / 3, 2 / 3, 2 / 3], atol=1e-12)


def test_redundant_rows_share_the_impulse():
    robot = cj.load("planar2r")
    floor = Constraint.point(robot, "tip", "y")
    q, v = np.array([0.3, -0.9]), np.array([-1.0, -0.5])
    once, impulse = cj.impact(robot, floor, q, v, 0.5, True)
    twice, shared = cj.impact(robot, floor & floor, q, v, 0.5, True)
    np.testing.assert_allclose(twice, once, atol=1e-12)
    assert shared.sum() == pytest.approx(impulse[0], rel=1e-12)


@pytest.mark.slow
@pytest.mark.native
def test_a_planar_loop_in_a_tilted_plane():
    """Rows across the plane are rounding there, and count for nothing: all is as in a plane of coordinates."""
    found = []
    for R in (np.eye(3), so3.exp(np.array([0.7, -1.1, 0.4]))):
        robot = planar_nr(3, [0.4, 0.9, 0.6])
        first = dataclasses.replace(robot.links[0], placement=se3.pose(R, np.zeros(3)) @ robot.links[0].placement)
        robot = cj.Robot("bars", [first, *robot.links[1:]], robot.frames, gravity=R @ [0.0, -9.81, 0.0])
        robot = robot.with_frame("pin", "base", se3.pose(R, R @ [1.0, 0.0, 0.0]))
        loop, stop = Constraint.loop(robot, "pin", "tip", "revolute"), Constraint.holonomic(lambda q: q[0] - 0.5)
        q = cj.constraints.assemble(robot, loop, [0.9, -0.5, -2.0], fixed="joint1")
        v = cj.constraints.project_velocity(robot, loop, q, np.array([-1.0, 0.0, 0.0]))
        off = np.array([0.1, 0.2, 0.0])
        bounced, _ = cj.impact(robot, loop & stop, q, v, 0.5, np.arange(6) == 5)
        caught, _ = cj.impact(robot, loop, q, v + off)
        np.testing.assert_allclose(bounced, -0.5 * v, atol=1e-12)
        np.testing.assert_allclose(caught, cj.constraints.project_velocity(robot, loop, q, v + off), atol=1e-12)
        motion = cj.simulate(robot, q, v, [0.0, 0.2], constraints=loop, events=cj.Contact(stop, 0.5))
        assert len(motion.impacts) == 1
        found.append((q, motion.q[-1]))
    np.testing.assert_allclose(found[1], found[0], atol=1e-9)


def test_batches_of_bilateral_rows_are_their_members():
    """All at once where no row is unilateral; redundant rows share, and several batch axes broadcast."""
    rng = np.random.default_rng(3)
    robot = random_robot(rng, 5, ("revolute", "prismatic"), tree=False)
    held = Constraint.point(robot, "tip", "xyz")
    held = held & Constraint.point(robot, "tip", "x")
    q, v = robot.random(rng, 3), rng.normal(size=(2, 1, robot.nv))
    after, impulse = cj.impact(robot, held, q, v, 0.3)
    assert after.shape == (2, 3, robot.nv)
    A = held.jacobian(robot, q)
    for i, j in product(range(2), range(3)):
        u = A[j] @ v[i, 0]
        Gm = A[j] @ np.linalg.solve(cj.mass_matrix(robot, q[j]), A[j].T)
        np.testing.assert_allclose(impulse[i, j], complementarity(Gm, 1.3 * u, np.zeros(4, dtype=bool)), atol=1e-8)
        np.testing.assert_allclose(A[j] @ after[i, j], -0.3 * u, atol=1e-9)
    assert cj.impact(robot, held, q[:0], np.zeros(robot.nv))[0].shape == (0, robot.nv)


def test_errors():
    robot = cj.load("planar2r")
    floor = Constraint.point(robot, "tip", "y")
    zero = np.zeros(2)
    for options, message in (
        ({"restitution": -0.1}, "restitution is -0.1"),
        ({"restitution": 1.5}, "makes energy"),
        ({"restitution": np.nan}, "is no number"),
        ({"restitution": [0.1, 0.2]}, r"restitution has shape \(2,\)"),
        ({"unilateral": 1}, "unilateral is 1"),
        ({"unilateral": [True, False]}, r"unilateral has shape \(2,\)"),
        ({"v": [np.inf, 0.0]}, "v has entries"),
    ):
        with pytest.raises(cj.CoadjointError, match=message):
            cj.impact(robot, floor, zero, **({"v": zero} | options))
    with pytest.raises(cj.CoadjointError, match="restitution of row 1 is -1"):
        cj.impact(robot, floor & floor, zero, zero, [0.0, -1.0])
    with pytest.raises(cj.CoadjointError, match="contradict each other"):
        cj.impact(robot, floor & floor, [0.3, 0.4], [1.0, 1.0], [0.0, 1.0])
    with pytest.raises(cj.CoadjointError, match="expected a Constraint"):
        cj.impact(robot, "floor", zero, zero)
    with pytest.raises(cj.CoadjointError, match="tip"):
        cj.impact(cj.Robot("other", robot.links), floor, zero, zero)


def test_accounts_are_reported():
    robot = cj.load("planar2r")
    floor = Constraint.point(robot, "tip", "y")
    text = str(cj.impact_account(robot, floor, [0.3, -0.9], [-1.0, -0.5], 0.5, True))
    assert "impulse" in text
    assert "J" in text
    assert "2 impacts" in str(cj.impact_account(robot, floor, [[0.3, -0.9]] * 2, [-1.0, -0.5], 0.5, True))


@pytest.mark.parametrize("e", [0.0, 0.6, 1.0])
def test_jump_is_a_sum_of_gradients(e):
    """Žefran & Bullo (29)-(31): (p⁻ - p⁺) δq = 0 along the surface, p⁻ - p⁺ ∈ span dφ, v⁻ - v⁺ = Σ λ grad φ with λ = -Λ."""
    rng = np.random.default_rng(7)
    robot = random_robot(rng, 4, ("revolute", "prismatic"), tree=False)
    surface = Constraint.point(robot, "tip", "xz")
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    after, impulse = cj.impact(robot, surface, q, v, e)
    M, A = cj.mass_matrix(robot, q), surface.jacobian(robot, q)
    along = np.linalg.svd(A)[2][2:]
    assert np.abs(along @ (M @ (v - after))).max() < 1e-10
    gradients = np.array([cj.geometry.gradient(robot, q, row) for row in A])
    np.testing.assert_allclose(v - after, -impulse @ gradients, atol=1e-10)
    assert np.abs(v - after).max() > 1e-3
