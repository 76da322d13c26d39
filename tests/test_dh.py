"""Denavit–Hartenberg parameters to screws and back, for chains in every special position."""

from __future__ import annotations

import numpy as np
import pytest
from numpy import cos, sin

import coadjoint as cj
from coadjoint.errors import CoadjointError, ModelError, ShapeError
from coadjoint.lie import se3, so3
from random_robots import random_inertia, random_pose, random_robot, random_unit

CONVENTIONS = ("standard", "modified")


def textbook_pose(theta, d, a, alpha, convention):
    """The matrix of a row as textbooks print it."""
    ct, st, ca, sa = cos(theta), sin(theta), cos(alpha), sin(alpha)
    if convention == "standard":
        return np.array([[ct, -st * ca, st * sa, a * ct], [st, ct * ca, -ct * sa, a * st], [0, sa, ca, d], [0, 0, 0, 1]])
    return np.array([[ct, -st, 0, a], [st * ca, ct * ca, -sa, -sa * d], [st * sa, ct * sa, ca, ca * d], [0, 0, 0, 1]])


def textbook_poses(rows, kinds, q, convention, base):
    T, poses = base, []
    for (theta, d, a, alpha), kind, x in zip(rows, kinds, q, strict=True):
        T = T @ textbook_pose(theta + x * (kind == "R"), d + x * (kind == "P"), a, alpha, convention)
        poses.append(T)
    return np.stack(poses)


def random_rows(rng, n):
    """Rows at random, with right angles, parallel and meeting axes among them."""
    rows = rng.uniform(-1, 1, (n, 4)) * [np.pi, 0.5, 0.5, np.pi]
    rows[rng.random((n, 4)) < 0.4] = 0
    quarter = rng.random(n) < 0.4
    rows[quarter, 3] = rng.choice([-1, 1, 2], quarter.sum()) * np.pi / 2
    return rows, "".join(rng.choice(list("RP"), n, p=[0.7, 0.3]))


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("seed", range(5))
def test_a_robot_from_rows_moves_as_the_textbook_says(convention, seed):
    rng = np.random.default_rng(seed)
    rows, kinds = random_rows(rng, 6)
    base, tool = random_pose(rng), random_pose(rng)
    q = rng.uniform(-2, 2, 6)
    expected = textbook_poses(rows, kinds, q, convention, base)
    robot = cj.robot_from_dh(rows, convention, kinds, base=base, tool=tool)
    np.testing.assert_allclose(cj.forward_kinematics(robot, q), expected, atol=1e-14)
    np.testing.assert_allclose(cj.pose(robot, q, "tip"), expected[-1] @ tool, atol=1e-14)
    screws, frames = cj.from_dh(rows, convention, kinds, base)
    np.testing.assert_allclose(frames, textbook_poses(rows, kinds, np.zeros(6), convention, base), atol=1e-14)
    for i in range(6):
        np.testing.assert_allclose(cj.product_of_exponentials(screws[: i + 1], frames[i], q[: i + 1]), expected[i], atol=1e-14)


def test_inertias_stand_in_the_links_frames():
    """A robot made link by link from the same screws, frames and bodies has the same torques."""
    rng = np.random.default_rng(9)
    rows, kinds = random_rows(rng, 4)
    mass, com, inertia = zip(*(random_inertia(rng) for _ in range(4)), strict=True)
    for convention in CONVENTIONS:
        robot = cj.robot_from_dh(rows, convention, kinds, masses=mass, coms=com, inertias=inertia)
        screws, frames = cj.from_dh(rows, convention, kinds)
        com_frames = np.stack([T @ se3.pose(np.eye(3), c) for T, c in zip(frames, com, strict=True)])
        same = cj.Robot.from_screws(screws, com_frames, mass, inertia)
        q, v, a = rng.normal(size=(3, 4))
        np.testing.assert_allclose(cj.inverse_dynamics(robot, q, v, a), cj.inverse_dynamics(same, q, v, a), atol=1e-12)


def assert_same_motion(dh, screws, home, atol):
    """base · rows · tool is the product of exponentials of the screws, for any q."""
    assert dh.kinds == "".join("R" if s[:3].any() else "P" for s in screws)
    back, frames = cj.from_dh(dh.rows, dh.convention, dh.kinds, dh.base)
    end = frames[-1] if len(frames) else dh.base
    np.testing.assert_allclose(back, screws, rtol=0, atol=atol)
    np.testing.assert_allclose(end @ dh.tool, home, rtol=0, atol=atol)
    q = np.random.default_rng(0).uniform(-3, 3, (10, len(screws)))
    expected = cj.product_of_exponentials(screws, home, q)
    np.testing.assert_allclose(cj.product_of_exponentials(back, end @ dh.tool, q), expected, rtol=0, atol=10 * atol)
    limits = np.array([np.pi / 2, np.inf, np.inf, np.pi]) + 1e-9
    free = slice(None, -1) if dh.convention == "standard" else slice(None)  # the last standard row may aim at the tool
    assert np.all(np.abs(dh.rows[free]) <= limits)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("seed", range(20))
def test_round_trip_of_random_chains(convention, seed):
    robot = random_robot(seed, 1 + seed % 7, ("revolute", "prismatic", "fixed"), tree=False)
    screws, home = cj.space_screws(robot, "tip")
    assert_same_motion(cj.to_dh(screws, home, convention), screws, home, 1e-11)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("seed", range(20))
def test_round_trip_of_special_chains(convention, seed):
    """Axes that are parallel, meet, coincide or point against each other, in any place and turn."""
    rng = np.random.default_rng(seed)
    rows, kinds = random_rows(rng, 7)
    base = random_pose(rng)
    for made in CONVENTIONS:
        screws, frames = cj.from_dh(rows, made, kinds, base)
        assert_same_motion(cj.to_dh(screws, frames[-1], convention), screws, frames[-1], 1e-10)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_nearly_parallel_axes_lose_little(convention):
    rng = np.random.default_rng(11)
    for angle in 10.0 ** np.arange(-14, -2):
        z, turn = random_unit(rng), random_unit(rng)
        tilted = so3.exp(angle * turn) @ z
        p1, p2 = rng.uniform(-1, 1, (2, 3))
        screws = np.array([[*z, *np.cross(p1, z)], [*tilted, *np.cross(p2, tilted)]])
        dh = cj.to_dh(screws, random_pose(rng), convention)
        back, _ = cj.from_dh(dh.rows, convention, dh.kinds, dh.base)
        assert np.abs(back - screws).max() < 1e-7


TABLES = {
    ("puma560", "tip", "standard"): [
        (0, 0, 0, 90),
        (0, 0, 0.4318, 0),
        (0, 0.15005, 0.0203, -90),
        (0, 0.4318, 0, 90),
        (0, 0, 0, -90),
        (0, 0, 0, 0),
    ],
    ("ur5e", "tip", "standard"): [
        (0, 0.1625, 0, 90),
        (0, 0, -0.425, 0),
        (0, 0, -0.3922, 0),
        (0, 0.1333, 0, 90),
        (0, 0.0997, 0, -90),
        (0, 0.0996, 0, 0),
    ],
    ("panda", "link7", "modified"): [
        (0, 0.333, 0, 0),
        (0, 0, 0, -90),
        (0, 0.316, 0, 90),
        (0, 0, 0.0825, 90),
        (0, 0.384, -0.0825, -90),
        (0, 0, 0, 90),
        (0, 0, 0.088, 90),
    ],
}


@pytest.mark.parametrize("key", TABLES, ids=lambda key: key[0])
def test_published_tables_come_back(key):
    """The choices made are those of the makers' tables; nothing is left for base and tool."""
    name, frame, convention = key
    dh = cj.to_dh(*cj.space_screws(cj.load(name), frame), convention)
    expected = np.array(TABLES[key]) * [np.pi / 180, 1, 1, np.pi / 180]
    np.testing.assert_allclose(dh.rows, expected, atol=1e-14)
    np.testing.assert_allclose(dh.base, np.eye(4), atol=1e-14)
    np.testing.assert_allclose(dh.tool, np.eye(4), atol=1e-14)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("name", ["panda", "puma560", "ur5e", "scara", "planar4r", "cartpole", "furuta"])
def test_round_trip_of_bundled_robots(name, convention):
    screws, home = cj.space_screws(cj.load(name), "tip")
    assert_same_motion(cj.to_dh(screws, home, convention), screws, home, 1e-13)


def test_quarter_turns_are_exact():
    frames = cj.from_dh([(np.pi / 2, 0, 1, -np.pi / 2), (np.pi, 2, 0, np.pi)])[1]
    assert set(np.unique(frames)) <= {-2.0, -1.0, 0.0, 1.0, 2.0}


def test_errors_name_what_is_wrong():
    with pytest.raises(CoadjointError, match="convention is 'craig'; choose 'standard' or 'modified'"):
        cj.from_dh([(0, 0, 0, 0)], "craig")
    with pytest.raises(ShapeError, match=r"rows has shape \(1, 3\); expected \(n, 4\)"):
        cj.from_dh([(0, 0, 0)])
    with pytest.raises(ModelError, match=r"rows\[1\] is \[0.0, nan, 0.0, 0.0\]; every number must be finite"):
        cj.from_dh([(0, 0, 0, 0), (0, np.nan, 0, 0)])
    with pytest.raises(ModelError, match=r"kinds is 'RX'; expected 2 letters, R \(revolute\) or P \(prismatic\)"):
        cj.robot_from_dh(np.zeros((2, 4)), kinds="RX")
    with pytest.raises(ShapeError, match=r"coms has shape \(3, 3\); expected \(2, 3\) for 2 rows"):
        cj.robot_from_dh(np.zeros((2, 4)), coms=np.zeros((3, 3)))
    with pytest.raises(ModelError, match="joints has 1 entries; expected 2, one for each row"):
        cj.robot_from_dh(np.zeros((2, 4)), joints=[{}])
    helical = np.array([[0, 0, 1, 0, 0, 0.1]])
    with pytest.raises(ModelError, match=r"screws\[0\] is .* which is helical; only revolute and prismatic joints"):
        cj.to_dh(helical, np.eye(4))
    with pytest.raises(ModelError, match=r"screws\[0\] is .* which is not normalised"):
        cj.to_dh(2 * helical, np.eye(4))
    with pytest.raises(ModelError, match="home is"):
        cj.to_dh(helical, np.zeros((4, 4)))
