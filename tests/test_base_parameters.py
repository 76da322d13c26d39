"""Base parameters: their rows span all regressors, and nothing more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coadjoint as cj
from coadjoint.constraints import manifold, pseudo
from constraint_robots import bennett, four_bar, slider_crank
from random_robots import ONE_SCREW, random_robot

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


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_mechanisms_with_mimic_joints_and_drives(seed):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, int(rng.integers(3, 6)), [*ONE_SCREW, "free"], mimic=True, armature=True, damping=True)
    # a joint that hardly follows hides parameters behind rounding: 1e-8 of the others is the documented limit
    assume(all(abs(link.joint.mimic.ratio) > 0.2 for link in robot.links if link.joint.mimic))
    check(robot, seed)
    base = cj.base_parameters(robot, drives=True)
    count = 2 * base.rank // robot.nv + 20
    q, v, a = robot.random(rng, (count,)), rng.normal(size=(count, robot.nv)), rng.normal(size=(count, robot.nv))
    Y = np.concatenate([cj.regressor(robot, q, v, a), cj.drive_regressor(robot, v, a)], axis=-1).reshape(-1, len(base.names))
    same_span(base, Y)
    tau = cj.inverse_dynamics(robot, q, v, a, friction=True).ravel()
    np.testing.assert_allclose(Y @ np.linalg.pinv(base.matrix) @ base.values(robot), tau, atol=1e-7 * np.abs(tau).max())


def same_span(base, Y):
    """The rows of Y are combinations of the base's rows, and as many of them are independent."""
    X = Y @ np.linalg.pinv(base.matrix)
    np.testing.assert_allclose(X @ base.matrix, Y, atol=1e-8 * np.abs(Y).max())
    size = np.linalg.norm(Y, axis=0)
    seen = size > 1e-10 * size.max()
    assert np.linalg.matrix_rank(Y[:, seen] / size[seen], tol=1e-8) == base.rank


def test_armature_of_a_hinge_hides_behind_its_inertia():
    pendulum = cj.load("planar2r").lock({"joint2": 0.3})
    base = cj.base_parameters(pendulum, drives=True)
    assert base.rank == cj.base_parameters(pendulum).rank + 2
    assert "link1.Izz + joint1.armature" in base.combinations


def prismatic_chain(rng):
    """Four joints of which one slides, closed by a ball: one freedom is left in space."""
    robot = random_robot(rng, 4, ["revolute", "revolute", "revolute", "prismatic"], tree=False)
    T = cj.pose(robot, robot.random(rng), "tip")
    robot = robot.with_frame("anchor", "base", T)
    return robot, cj.Constraint.loop(robot, "anchor", "tip", "spherical")


CLOSED = {
    "four-bar": lambda: (r := four_bar(), cj.Constraint.loop(r, "pin", "tip", axes="x y")),
    "slider-crank": lambda: (r := slider_crank(), cj.Constraint.loop(r, "piston", "pin", axes="x y")),
    "bennett": bennett,
    "RRRP closed by a ball": lambda: prismatic_chain(np.random.default_rng(3)),
    "sphere on a plane": lambda: (
        r := random_robot(np.random.default_rng(1), 1, ["free"]),
        cj.Constraint.rolling(r, "tip", 0.3),
    ),
}


@pytest.mark.parametrize("name", CLOSED)
def test_closed_loops_show_what_their_projected_regressors_span(name):
    robot, constraint = CLOSED[name]()
    base = cj.base_parameters(robot, constraint)
    rng, found = np.random.default_rng(5), []
    while len(found) < base.rank + 5:
        try:
            found.append(manifold.project(robot, constraint, robot.random(rng), steps=30))
        except cj.CoadjointError:  # this start does not close
            continue
    q = np.array(found)
    N = pseudo.null_space(robot, constraint, q)
    v = (N @ rng.normal(size=(len(q), N.shape[-1], 1)))[..., 0]
    # an acceleration that the constraint allows
    a, _ = cj.constrained_dynamics(robot, constraint, q, v, rng.normal(size=v.shape) * 10)
    same_span(base, (np.swapaxes(N, -1, -2) @ cj.regressor(robot, q, v, a)).reshape(-1, len(base.names)))
    assert base.rank <= cj.base_parameters(robot).rank


def test_a_constraint_that_leaves_no_freedom():
    robot = cj.load("planar2r")
    held = cj.Constraint.gear(robot, {"joint1": 1.0}) & cj.Constraint.gear(robot, {"joint2": 1.0})
    with pytest.raises(cj.CoadjointError, match="no freedom"):
        cj.base_parameters(robot, held)


def test_the_rows_are_named_and_reduced():
    base = cj.base_parameters(cj.load("planar2r"))
    np.testing.assert_array_equal(base.matrix[:, list(base.pivots)], np.eye(base.rank))
    assert "link1.hx + link2.m" in base.combinations
    assert "6 base parameters of 20" in str(base)


def test_what_is_not_a_robot():
    with pytest.raises(cj.CoadjointError, match="expected a Robot"):
        cj.base_parameters("panda")
