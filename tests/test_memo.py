"""What a robot keeps: each result once, for the robot or for its structure, bounded, and no function of a user."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.dynamics.freedoms import freedoms
from coadjoint.memo import Recent, per_robot, per_structure
from random_robots import random_robot


def test_a_result_is_computed_once_for_a_robot_and_arguments():
    calls = []

    @per_robot
    def fn(robot, name):
        calls.append((robot.name, name))
        if name == "wrong":
            raise ValueError(name)

    a, b = cj.load("planar2r"), cj.load("planar2r")
    assert [fn(a, "x"), fn(a, "x"), fn(a, "y"), fn(b, "x")] == [None] * 4  # None is a result as well
    assert len(calls) == 3
    for _ in range(2):  # an error is not kept
        with pytest.raises(ValueError, match="wrong"):
            fn(a, "wrong")
    assert len(calls) == 5


def test_results_that_do_not_depend_on_numbers_are_shared_by_robots_that_differ_in_them():
    robot = cj.load("planar2r")
    heavier = robot.with_numbers(inertias=2.0 * robot.inertias)
    assert freedoms(heavier) is freedoms(robot)
    assert heavier.fingerprint != robot.fingerprint
    counted = []
    fn = per_structure(lambda robot: counted.append(robot.name))
    fn(robot), fn(robot.with_numbers(gravity=np.zeros(3)))
    assert counted == ["planar2r"]


def test_stores_are_bounded_and_drop_the_longest_unused():
    made = Recent(3)
    for key in "abcacdab":
        made.get(key, lambda key=key: key)
    assert len(made) == 3
    assert [key in made for key in "abcd"] == [True, True, False, True]


def test_functions_of_users_are_not_kept():
    robot = cj.load("planar2r")

    dead = []
    for gain in ({3.0}, {4.0}):  # a set can be referred to weakly
        control = lambda robot, q, v, t, gain=gain: -next(iter(gain)) * q
        rows = lambda q, gain=gain: q[0] - next(iter(gain))
        cj.rollout(robot, [0.1, 0.0], [0.0, 0.0], dt=1e-3, steps=2, control=control)
        cj.Constraint.holonomic(rows).jacobian(robot, [0.0, 0.0])
        dead += [weakref.ref(x) for x in (gain, control, rows)]
    del gain, control, rows
    gc.collect()
    assert [x() for x in dead] == [None] * 6


def test_a_robot_in_other_numbers_knows_its_original():
    robot = cj.load("panda")
    single = robot.like(np.zeros(1, dtype=np.float32))
    assert single.placements.dtype == np.float32
    assert single is robot.like(np.ones(2, dtype=np.float32))
    form = robot.canonical.robot
    for other in (single, form, form.like(np.zeros(1, dtype=np.float32)), form.canonical.robot):
        assert other.original is robot
    assert form.canonical.robot is form
    assert robot.original is robot
    assert (other := robot.with_numbers(gravity=np.zeros(3))).original is other


@pytest.mark.parametrize("seed", range(4))
def test_the_path_to_a_link_leads_from_the_base_outward(seed):
    robot = random_robot(seed, 9)
    assert robot.path(-1) == ()
    for i in range(robot.n_links):
        path = robot.path(i)
        assert path[-1] == i
        assert [robot.parents[k] for k in path] == [-1, *path[:-1]]
