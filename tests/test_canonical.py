"""The canonical form of a robot leaves every joint-space result unchanged."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.lie import se3
from coadjoint.robot.canonical import canonical
from laws import relative
from random_robots import random_robot


@pytest.mark.parametrize("seed", range(20))
def test_joint_space_results_are_unchanged(seed):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 8, mimic=seed % 3 == 0, armature=seed % 2 == 0, shuffle=seed % 4 == 1)
    form = canonical(robot)
    q = robot.random(rng, 5)
    v, a = rng.normal(size=(2, 5, robot.nv))
    wrenches = rng.normal(size=(5, robot.n_links, 6))
    moved = se3.Ad_dual_act(form.frames, wrenches)
    for fn, tolerance in (
        (lambda r, w: cj.inverse_dynamics(r, q, v, a, w), 1e-13),
        (lambda r, w: cj.mass_matrix(r, q), 1e-13),
        (lambda r, w: cj.forward_dynamics(r, q, v, a, w), 1e-10),
        (lambda r, w: cj.gravity_force(r, q), 1e-13),
        (lambda r, w: cj.kinetic_energy(r, q, v), 1e-13),
        (lambda r, w: cj.generalized_force(r, q, w), 1e-13),
    ):
        assert relative(fn(form.robot, moved), fn(robot, wrenches)) < tolerance


def test_poses_are_those_of_the_moved_frames():
    rng = np.random.default_rng(3)
    robot = random_robot(rng, 9)
    form = canonical(robot)
    q = robot.random(rng, 4)
    assert relative(cj.forward_kinematics(form.robot, q), cj.forward_kinematics(robot, q) @ form.frames) < 1e-13


def test_constants_vanish():
    """An arm whose neighbouring axes are at right angles or parallel has placements of 0 and ±1 but for its lengths."""
    link = lambda k, axis, at: cj.Link.solid(
        f"l{k}",
        "base" if k == 0 else f"l{k - 1}",
        cj.Joint.revolute(axis),
        se3.pose(np.eye(3), at),
        mass=1,
        com=(0.1, 0.2, 0.3),
        inertia=0.1,
    )
    robot = cj.Robot(
        "arm",
        [
            link(0, (0, 0, 1), (0, 0, 0.3)),
            link(1, (0, 1, 0), (0, 0.1, 0)),
            link(2, (0, 1, 0), (0.4, 0, 0)),
            link(3, (1, 0, 0), (0.1, 0, 0.2)),
        ],
    )
    form = canonical(robot).robot
    assert set(np.unique(np.abs(form.placements[:, :3, :3]))) <= {0.0, 1.0}
    assert np.array_equal(form.screws, np.tile([0, 0, 1.0, 0, 0, 0], (4, 1)))
    assert np.all(form.inertias[:, [0, 3, 7]] == 0)  # m, h_z and I_yy have gone to the base


def test_long_chains():
    """Longer than Python's stack is deep; the branch with most links is the one whose axis counts."""
    chain = cj.load("planar999r")
    form = canonical(chain)
    np.testing.assert_allclose(np.linalg.norm(form.robot.placements[1:, :3, 3], axis=-1), 1.0, rtol=1e-12)
    assert form.frames.shape == (999, 4, 4)


@pytest.mark.parametrize("angle", [1e-9, 3.2e-8, 1e-6, 1e-4, 3.1415926, 3.1415])
def test_nearly_parallel_axes(angle):
    """As files write them: π is 3.1415926, and the common normal of such axes is a thousand kilometres away."""
    rng = np.random.default_rng(3)
    links = []
    for i, parent in enumerate(("base", "l0", "l1")):
        T = se3.pose(se3.exp(np.array([angle * (i > 0), 0.0, 0.0, 0.0, 0.0, 0.0]))[:3, :3], rng.uniform(-0.5, 0.5, 3))
        links.append(
            cj.Link.solid(
                f"l{i}",
                parent,
                cj.Joint.revolute(np.eye(3)[2 if i else 0]),
                T,
                mass=1.0,
                com=rng.uniform(-0.3, 0.3, 3),
                inertia=0.1,
            )
        )
    robot = cj.Robot("nearly parallel", links)
    q, v, a = (rng.normal(size=(5, 3)) for _ in range(3))
    expected = cj.inverse_dynamics.source(robot, q, v, a)
    np.testing.assert_allclose(cj.inverse_dynamics.source(canonical(robot).robot, q, v, a), expected, rtol=1e-11, atol=1e-11)
