"""The three forms of the product of exponentials: the same pose, and the laws that bind their screws."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import CoadjointError, ModelError, ShapeError, UnknownNameError
from coadjoint.lie import se3
from random_robots import ONE_SCREW, random_pose, random_robot

SCREWS = {"space": cj.space_screws, "body": cj.body_screws, "relative": cj.relative_screws}


@pytest.mark.parametrize("form", SCREWS)
@pytest.mark.parametrize("seed", range(6))
def test_every_form_gives_the_pose(form, seed):
    robot = random_robot(seed, 8, (*ONE_SCREW, "fixed"), tree=seed % 2 == 1, shuffle=seed > 2, mimic=seed % 3 == 0)
    q = robot.random(seed, (2, 3))
    for frame in robot.frame_names:
        path = cj.path_coordinates(robot, q, frame)
        if path.shape[-1] == 0 and form == "relative":
            with pytest.raises(ModelError, match="does not move"):
                cj.relative_screws(robot, frame)
            continue
        screws, home = SCREWS[form](robot, frame)
        f = cj.product_of_exponentials(screws, home, path, form)
        assert f.shape == (2, 3, 4, 4)
        np.testing.assert_allclose(f, cj.pose(robot, q, frame), rtol=0, atol=1e-13 * max(1, np.abs(q).max()))


def test_screws_of_one_form_are_those_of_the_others_moved():
    robot = random_robot(3, 6, ONE_SCREW, tree=False)
    A, M = cj.space_screws(robot, "tip")
    B, same = cj.body_screws(robot, "tip")
    P, homes = cj.relative_screws(robot, "tip")
    np.testing.assert_array_equal(M, same)
    np.testing.assert_allclose(se3.Ad_act(M, B), A, atol=1e-13)
    before = np.eye(4)
    for i in range(6):
        np.testing.assert_allclose(se3.Ad_act(before, P[i]), A[i], atol=1e-13)
        before = before @ homes[i]
    np.testing.assert_allclose(before, M, atol=1e-13)


def test_home_is_home():
    robot = random_robot(4, 5, ONE_SCREW, tree=False)
    A, M = cj.space_screws(robot, "tip")
    np.testing.assert_array_equal(cj.product_of_exponentials(A, M, np.zeros(5)), M)
    np.testing.assert_allclose(cj.pose(robot, np.zeros(5), "tip"), M, atol=1e-15)
    np.testing.assert_allclose(cj.jacobian(robot, np.zeros(5), "tip", "space").T, A, atol=1e-14)
    np.testing.assert_allclose(cj.jacobian(robot, np.zeros(5), "tip").T, cj.body_screws(robot, "tip")[0], atol=1e-14)


def test_from_screws_and_back():
    rng = np.random.default_rng(5)
    robot = random_robot(rng, 4, ONE_SCREW, tree=False)
    A, tip = cj.space_screws(robot, "tip")
    frames = np.stack([random_pose(rng) for _ in range(4)])
    made = cj.Robot.from_screws(A, frames, np.ones(4), np.stack([np.eye(3)] * 4), tip=tip)
    back, home = cj.space_screws(made, "tip")
    np.testing.assert_allclose(back, A, atol=1e-14)
    np.testing.assert_allclose(home, tip, atol=1e-14)


def test_screws_of_a_batch_of_chains():
    rng = np.random.default_rng(6)
    robots = [random_robot(rng, 3, ONE_SCREW, tree=False) for _ in range(4)]
    A, M = (np.stack(x) for x in zip(*(cj.space_screws(robot, "tip") for robot in robots), strict=True))
    q = rng.normal(size=(5, 1, 3))
    f = cj.product_of_exponentials(A, M, q)
    assert f.shape == (5, 4, 4, 4)
    for k, robot in enumerate(robots):
        np.testing.assert_allclose(f[:, k], cj.pose(robot, q[:, 0], "tip"), atol=1e-13)


@pytest.mark.parametrize("form", SCREWS)
def test_jax_and_pytorch(form):
    robot = cj.load("panda")
    screws, home = SCREWS[form](robot, "tip")
    q = robot.random(7, 3)
    expected = cj.pose(robot, q, "tip")
    torch = pytest.importorskip("torch")
    f = cj.product_of_exponentials(screws, home, torch.tensor(q), form)
    np.testing.assert_allclose(f.numpy(), expected, atol=1e-13)
    jax = pytest.importorskip("jax")
    f = jax.jit(lambda x: cj.product_of_exponentials(screws, home, x, form))(jax.numpy.asarray(q))
    np.testing.assert_allclose(np.asarray(f), expected, atol=1e-13 if f.dtype == np.float64 else 1e-5)


def test_errors_name_what_is_wrong():
    robot = random_robot(8, 3, ("spherical", "revolute", "prismatic"), tree=False)
    ball = next(link.joint.name for link in robot.links if link.joint.kind == "spherical")
    with pytest.raises(
        ModelError, match=rf"joint '{ball}' on the path to 'tip' is spherical; a product of exponentials has one screw"
    ):
        cj.space_screws(robot, "tip")
    with pytest.raises(UnknownNameError, match="no frame is named 'tap'"):
        cj.body_screws(robot, "tap")
    with pytest.raises(ModelError, match=r"frame 'mount' of robot 'random' does not move"):
        cj.relative_screws(robot, "mount")
    with pytest.raises(CoadjointError, match="form is 'spatial'; choose 'space'"):
        cj.product_of_exponentials(np.zeros((1, 6)), np.eye(4), [0.0], "spatial")
    with pytest.raises(ShapeError, match=r"screws has shape \(2, 6\); expected \(\.\.\., 3, 6\)"):
        cj.product_of_exponentials(np.zeros((2, 6)), np.eye(4), np.zeros(3))
    with pytest.raises(ShapeError, match=r"home has shape \(4, 4\); expected \(\.\.\., 3, 4, 4\)"):
        cj.product_of_exponentials(np.zeros((3, 6)), np.eye(4), np.zeros(3), "relative")
    with pytest.raises(ShapeError, match=r"q has shape \(2,\); expected \(\.\.\., 7\)"):
        cj.path_coordinates(cj.load("panda"), np.zeros(2), "tip")
