"""Base parameters: their rows span all regressors, and nothing more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coadjoint as cj
from random_robots import random_robot

KINDS = ["revolute", "prismatic", "helical", "universal", "spherical", "planar", "free", "fixed"]


def regressors(robot, seed, count):
    rng = np.random.default_rng(seed)
    q, v, a = robot.random(rng, (count,)), rng.normal(size=(count, robot.nv)), rng.normal(size=(count, robot.nv))
    return cj.regressor(robot, q, v, a).reshape(-1, 10 * robot.n_links)


def check(robot, seed=0):
    """The rows of regressors are combinations of the base's rows, and as many of them are independent."""
    base = cj.base_parameters(robot)
    Y = regressors(robot, seed, 2 * base.rank // max(robot.nv, 1) + 20)
    X = Y @ np.linalg.pinv(base.matrix)
    np.testing.assert_allclose(X @ base.matrix, Y, atol=1e-8 * np.abs(Y).max(initial=1.0))
    assert np.linalg.matrix_rank(X / np.linalg.norm(X, axis=0), tol=1e-9 * np.sqrt(len(X))) == base.rank
    np.testing.assert_allclose(X @ base.values(robot), Y @ robot.inertial_parameters, atol=1e-7 * np.abs(Y).max(initial=1.0))
    return base


@pytest.mark.parametrize(
    ("name", "rank"),
    [("panda", 43), ("puma560", 36), ("ur5e", 36), ("planar2r", 6), ("planar3r", 9), ("scara", 8), ("furuta", 8)],
)
def test_known_robots(name, rank):
    """43 of the Panda: Gaz et al. (2019). 36 of a 6R arm on a vertical axis, two parallel axes: Gautier & Khalil (1990)."""
    assert check(cj.load(name)).rank == rank


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_trees(seed):
    check(random_robot(np.random.default_rng(seed), int(np.random.default_rng(seed).integers(1, 6)), KINDS), seed)


def test_a_free_body_shows_all_ten():
    robot = cj.Robot("body", [cj.Link.solid("body", "base", cj.Joint.free(), mass=2.0, com=(0.1, 0.2, 0.3), inertia=0.5)])
    base = check(robot)
    assert base.rank == 10
    assert base.invisible == ()


def test_one_hinge_without_gravity_shows_one():
    robot = cj.load("planar2r").lock({"joint2": 0.3}).with_gravity((0.0, 0.0, 0.0))
    assert check(robot).combinations == ("link1.Izz",)


def test_joints_that_mimic_show_less():
    free = cj.load("planar2r")
    coupled = free.with_joint("joint2", mimic=cj.Mimic("joint1", 2.0, 0.1))
    assert check(coupled).rank < check(free).rank


def test_the_rows_are_named_and_reduced():
    base = cj.base_parameters(cj.load("planar2r"))
    np.testing.assert_array_equal(base.matrix[:, list(base.pivots)], np.eye(base.rank))
    assert "link1.hx + link2.m" in base.combinations
    assert "6 base parameters of 20" in str(base)


def test_what_is_not_a_robot():
    with pytest.raises(cj.CoadjointError, match="expected a Robot"):
        cj.base_parameters("panda")
