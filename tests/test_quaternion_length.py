"""A quaternion of any length is the rotation of its direction: for poses, forces and derivatives, in both executions."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from random_robots import random_robot


@pytest.fixture(params=["as written", pytest.param("native", marks=pytest.mark.native)])
def way(request):
    """Both executions."""


@pytest.mark.parametrize("length", [1e-100, 1e-8, 1e-6, 1e-3, 0.5, 3.0, 1e6, 1e100])
def test_the_length_of_a_quaternion_does_not_matter(way, length):
    rng = np.random.default_rng(0)
    robot = random_robot(rng, 2, ("spherical", "free"), tree=False)
    q = robot.random(rng, 20)
    scaled = q.copy()
    for name in robot.joint_names:
        scaled[:, robot.q_slice(name)][:, -4:] *= length
    frame = robot.link_names[-1]
    T = cj.pose(robot, scaled, frame)
    np.testing.assert_allclose(T, cj.pose(robot, q, frame), rtol=0, atol=1e-14)
    R = T[..., :3, :3]
    np.testing.assert_allclose(R @ R.swapaxes(-1, -2), np.broadcast_to(np.eye(3), R.shape), rtol=0, atol=1e-14)
    M = cj.mass_matrix(robot, q)
    np.testing.assert_allclose(cj.mass_matrix(robot, scaled), M, rtol=0, atol=1e-13 * np.max(M))
    dv = rng.normal(size=(20, robot.nv))
    there, here = robot.integrate(scaled, dv), robot.integrate(q, dv)
    np.testing.assert_allclose(cj.pose(robot, there, frame), cj.pose(robot, here, frame), rtol=0, atol=1e-13)
