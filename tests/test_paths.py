"""Paths in SE(3): twists are the derivatives of poses, splines meet their poses smoothly, circles close."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import CoadjointError
from coadjoint.kinematics.paths import Path
from coadjoint.lie import se3, so3
from random_robots import random_pose

RNG = np.random.default_rng(7)
START = random_pose(RNG)
POSES = [START @ se3.exp(0.4 * RNG.normal(size=6)) for _ in range(6)]
PATHS = {
    "screw": cj.geodesic_path(POSES[0], POSES[1], 3.0),
    "screw, rest": cj.geodesic_path(POSES[0], POSES[1], 3.0, rest=True),
    "double": cj.geodesic_path(POSES[0], POSES[1], 2.0, kind="double"),
    "circle": cj.circle_path(START, [0.1, 0.2, 0.3], [0, 1, 1], duration=2.0),
    "circle, turning": cj.circle_path(START, [0.1, 0.2, 0.3], [0, 1, 1], duration=2.0, turn=True, rest=True),
    "spline": cj.spline_path(POSES, 5.0),
    "closed spline": cj.spline_path(POSES, 6.0, closed=True),
}


def slope(f, t, h=1e-3):
    return (45 * (f(t + h) - f(t - h)) - 9 * (f(t + 2 * h) - f(t - 2 * h)) + (f(t + 3 * h) - f(t - 3 * h))) / (60 * h)


END = random_pose(np.random.default_rng(3))


@pytest.mark.parametrize("name", PATHS)
def test_twists_are_derivatives(name):
    path = PATHS[name]
    t = np.linspace(0.004, path.duration - 0.004, 23).reshape(23, 1)
    T, X = path(t)
    assert T.shape == (23, 1, 4, 4)
    assert X.shape == (23, 1, 6)
    np.testing.assert_allclose(se3.inverse(T) @ slope(lambda s: path(s)[0], t), se3.hat(X), atol=1e-7)
    np.testing.assert_allclose(
        np.swapaxes(T[..., :3, :3], -1, -2) @ T[..., :3, :3], np.broadcast_to(np.eye(3), (23, 1, 3, 3)), atol=1e-14
    )


def test_ends():
    for name in ("screw", "screw, rest", "double"):
        T, X = PATHS[name](np.array([0.0, PATHS[name].duration]))
        np.testing.assert_allclose(T, POSES[:2], atol=1e-14)
        assert ("rest" in name) == bool(np.max(np.abs(X)) < 1e-14)
        assert not PATHS[name].closed
    for name in ("circle", "circle, turning", "closed spline"):
        assert PATHS[name].closed
    T = PATHS["circle"](np.linspace(0, 2, 9))[0]
    np.testing.assert_allclose(T[:, :3, :3], np.broadcast_to(START[:3, :3], (9, 3, 3)), atol=1e-15)
    arm = START[:3, 3] - [0.1, 0.2, 0.3]
    np.testing.assert_allclose(np.linalg.norm(T[:, :3, 3] - [0.1, 0.2, 0.3], axis=-1), np.linalg.norm(arm), rtol=1e-14)
    half = PATHS["circle"](1.0)[0][:3, 3] - [0.1, 0.2, 0.3]
    axis = np.array([0, 1, 1]) / np.sqrt(2)
    np.testing.assert_allclose(half, 2 * (arm @ axis) * axis - arm, atol=1e-14)


def test_a_double_geodesic_is_straight_and_even():
    T, X = PATHS["double"](np.linspace(0, 2, 5))
    np.testing.assert_allclose(np.diff(T[:, :3, 3], 2, axis=0), 0, atol=1e-14)
    turns = so3.log(np.swapaxes(T[:-1, :3, :3], -1, -2) @ T[1:, :3, :3])
    np.testing.assert_allclose(turns, np.broadcast_to(turns[0], turns.shape), atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(X[:, 3:], axis=-1), np.linalg.norm(T[-1, :3, 3] - T[0, :3, 3]) / 2, rtol=1e-13)


@pytest.mark.parametrize("closed", [False, True])
def test_splines_meet_their_poses_with_continuous_accelerations(closed):
    path = cj.spline_path(POSES, 6.0 if closed else 5.0, closed=closed)
    np.testing.assert_allclose(path(np.arange(6.0))[0], POSES, atol=1e-12)
    knots = np.arange(1.0, 5.0)
    before, after = (slope(lambda t: path(t)[1], knots + side, 1e-4) for side in (-4e-4, 4e-4))
    jump = np.max(np.abs(after - before))
    assert jump < 0.1  # of 8e-4 s at the rate of change of the acceleration, which jumps itself
    np.testing.assert_allclose(path(knots - 1e-9)[1], path(knots + 1e-9)[1], atol=1e-6)
    if closed:
        np.testing.assert_allclose(path(0.0)[1], path(6.0)[1], atol=1e-12)


def test_a_spline_through_a_screw_motion_is_that_motion():
    xi = np.array([0.3, -0.2, 0.5, 0.1, 0.4, -0.3])
    path = cj.spline_path([START @ se3.exp(k * xi) for k in range(5)], 4.0)
    t = np.linspace(0, 4, 13)
    np.testing.assert_allclose(path(t)[0], START @ se3.exp(t[:, None] * xi), atol=1e-12)
    np.testing.assert_allclose(path(t)[1], np.broadcast_to(xi, (13, 6)), atol=1e-12)


def test_wrong_input_is_named():
    with pytest.raises(CoadjointError, match="kind is 'line'"):
        cj.geodesic_path(START, START, kind="line")
    with pytest.raises(CoadjointError, match="goes from 0 to 3 s"):
        PATHS["screw"](3.5)
    with pytest.raises(CoadjointError, match="duration is -1"):
        cj.geodesic_path(START, START, duration=-1)
    with pytest.raises(CoadjointError, match=r"poses has shape \(1, 4, 4\)"):
        cj.spline_path(POSES[:1])
    with pytest.raises(CoadjointError, match=r"poses\[1\]"):
        cj.spline_path([START, np.ones((4, 4))])
    with pytest.raises(CoadjointError, match="axis"):
        cj.circle_path(START, [0, 0, 0], [0, 0, 0])
    with pytest.raises(CoadjointError, match="start"):
        cj.circle_path(np.ones((4, 4)), [0, 0, 0], [0, 0, 1])
    assert isinstance(PATHS["spline"], Path)


@pytest.mark.parametrize(
    "path",
    [
        cj.geodesic_path(np.eye(4), END),
        cj.geodesic_path(np.eye(4), END, kind="double"),
        cj.circle_path(END, [0, 0, 0], [0, 0, 1.0]),
        cj.circle_path(END, [0, 0, 0], [0, 0, 1.0], turn=True),
        cj.spline_path([np.eye(4), END, np.eye(4)], rest=True),
    ],
)
def test_paths_pickle(path):
    t = np.linspace(0, 1, 7)
    for x, y in zip(pickle.loads(pickle.dumps(path))(t), path(t), strict=True):
        np.testing.assert_array_equal(x, y)
