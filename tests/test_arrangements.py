"""Orders and signs of columns: any change of a log is found again, of weak joints as of strong ones, and none where there is none."""

from __future__ import annotations

import warnings
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import nnls

import coadjoint as cj
from coadjoint.identification.arrangements import Change, changes, left_over
from coadjoint.identification.preparation import prepare
from random_robots import random_robot
from recorded_motions import perturbed, simulated

DATA = Path(__file__).parents[2] / "shared" / "data"
pytestmark = pytest.mark.native
NAMES = ("q", "v", "a", "tau")


def found(robot, log):
    told = np.ones(robot.nv, dtype=bool)
    return [x.change for x in changes(robot, *(log[k] for k in NAMES), told)]


def changed(log, what, order, sign):
    """The log whose columns come from these places, with these signs."""
    which = {"forces": NAMES[3:], "positions": NAMES[:3], "both": NAMES}[what]
    return log | {k: (log[k] * sign)[:, order] for k in which}


@pytest.fixture(scope="module")
def arm():
    robot = cj.load("puma560")
    log = simulated(perturbed(robot, size=0.1), friction=0.3, noise=0.02)
    return robot, {k: x[::5] for k, x in log.items()}


def test_a_log_in_order_is_left_alone(arm):
    robot, log = arm
    assert not found(robot, log)


@pytest.mark.parametrize("what", ["forces", "positions", "both"])
def test_signs_and_exchanges_of_joints_are_found(arm, what):
    robot, log = arm
    same, plus = np.arange(robot.nv), np.ones(robot.nv)
    for k in range(3):  # the signs of a symmetric wrist and of its drag cannot be told apart
        (one,) = found(robot, changed(log, what, same, np.where(same == k, -1.0, 1.0)))
        assert (one.what, *one.concerned) == (what, k)
        assert one.sign[k] == -1
    for i, j in ((0, 1), (1, 2), (2, 4)):
        order = same.copy()
        order[[i, j]] = j, i
        (one,) = found(robot, changed(log, what, order, plus))
        assert (one.what, *one.order) == (what, *order)


def test_several_changes_are_found_one_after_the_other(arm):
    robot, log = arm
    sign = np.array([1, -1, 1, 1, -1, 1.0])
    made = found(robot, changed(log, "forces", np.array([0, 1, 2, 3, 4, 5]), sign))
    np.testing.assert_array_equal(np.prod([x.sign for x in made], axis=0), sign)
    order = np.array([2, 0, 1, 3, 4, 5])
    (one,) = found(robot, changed(log, "forces", order, np.ones(6)))
    np.testing.assert_array_equal(order[one.order], np.arange(6))


@pytest.mark.parametrize("what", ["forces", "positions", "both"])
def test_every_order_of_the_columns_of_a_tree_is_found(what):
    """Of a tree of four joints, some of them on the base: all 23 orders that are wrong."""
    robot = random_robot(6, 4, ("revolute",))
    assert sorted(robot.parents) == [-1, -1, 0, 1]
    log = {k: x[::5] for k, x in simulated(perturbed(robot, size=0.1), friction=0.3, noise=0.02).items()}
    assert not found(robot, log)
    for order in map(np.array, list(permutations(range(4)))[1:]):
        undone = np.arange(4)
        for one in found(robot, changed(log, what, order, np.ones(4))):
            assert one.what == what
            assert one.sign.min() == 1
            undone = undone[one.order]
        np.testing.assert_array_equal(order[undone], np.arange(4))


def test_what_is_left_is_that_of_nonnegative_least_squares():
    rng = np.random.default_rng(0)
    for _ in range(20):
        v, tau, expected = rng.normal(size=(3, 50, 4))
        drag = [np.stack([v[:, k], np.sign(v[:, k])], 1) for k in range(4)]
        other = [nnls(x - x.mean(0), y - y.mean())[1] for x, y in zip(drag, (tau - expected).T, strict=True)]
        np.testing.assert_allclose(left_over(expected, v, tau), other / np.linalg.norm(tau - tau.mean(0), axis=0), rtol=1e-10)


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="no shared data here")
def test_the_panda_log_with_other_signs_and_orders():
    """Of each of its seven joints, and none of the log as it is."""
    robot = cj.load("panda")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = prepare(robot, DATA / "panda_log" / "excitation.csv")
    log = {k: getattr(data, k)[::2] for k in NAMES}
    assert not found(robot, log)
    same = np.arange(7)
    for k in range(7):
        for what in ("forces", "positions", "both") if k < 6 else ("forces", "positions"):
            (one,) = found(robot, changed(log, what, same, np.where(same == k, -1.0, 1.0)))
            assert (one.what, *one.concerned) == (what, k)
    for i in range(6):
        order = same.copy()
        order[[i, i + 1]] = i + 1, i
        (one,) = found(robot, changed(log, "forces", order, np.ones(7)))
        assert isinstance(one, Change)
        np.testing.assert_array_equal(one.order, order)
