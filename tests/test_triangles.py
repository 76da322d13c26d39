"""Symmetric results as triangles, and products with a vector, of robots with many joints."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from random_robots import random_robot


def torques_by_state(robot, q, v, a):
    """∂τ/∂q, ∂τ/∂v, and half of ∂τ/∂a."""
    by_q, by_v, by_a = cj.inverse_dynamics_derivatives(robot, q, v, a)
    return by_q, by_v, cj.triangle(by_a)


@pytest.mark.parametrize("n", [0, 1, 2, 7])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_there_and_back(n, shape):
    a = np.random.default_rng(n).normal(size=(*shape, n, n))
    a = a + np.swapaxes(a, -1, -2)
    x = cj.triangle(a)
    assert x.shape == (*shape, n * (n + 1) // 2)
    np.testing.assert_array_equal(cj.from_triangle(x), a)
    if n == 2:
        np.testing.assert_array_equal(np.moveaxis(x, -1, 0), [a[..., 0, 0], a[..., 0, 1], a[..., 1, 1]])


def test_no_triangle_has_such_a_size():
    with pytest.raises(cj.errors.ShapeError, match=r"the triangle has shape \(2, 5\); expected"):
        cj.from_triangle(np.zeros((2, 5)))


@pytest.mark.native
def test_compiled():
    robot = random_robot(3, 3, ("free", "revolute", "prismatic"), shuffle=True)
    rng = np.random.default_rng(3)
    q, (v, a) = robot.random(rng, 9), rng.normal(size=(2, 9, robot.nv))
    by_q, by_v, half = cj.compile(torques_by_state, robot)(q, v, a)
    expected = cj.inverse_dynamics_derivatives(robot, q, v, a)
    for x, y in zip((by_q, by_v, cj.from_triangle(half)), expected, strict=True):
        assert np.abs(x - y).max() <= 1e-13 * np.abs(y).max()
    # and without any matrix
    d, w = rng.normal(size=(3, 9, robot.nv)), rng.normal(size=(9, robot.nv))
    along = cj.jvp(cj.inverse_dynamics, robot, ["q", "v", "a"])(q, v, a, *d)
    product = sum(np.einsum("nij,nj->ni", J, x) for J, x in zip(expected, d, strict=True))
    assert np.abs(along - product).max() <= 1e-12 * np.abs(product).max()
    back = cj.vjp(cj.inverse_dynamics, robot, ["q", "v", "a"])(q, v, a, w)
    for x, J in zip(back, expected, strict=True):
        y = np.einsum("nij,ni->nj", J, w)
        assert np.abs(x - y).max() <= 1e-12 * np.abs(y).max()


@pytest.mark.slow
def test_forward_dynamics_derivatives_of_pinocchio_on_its_robots():
    """Every URDF file of `example-robot-data` whose mass matrix is regular, with a fixed or a free base in turn."""
    peers = pytest.importorskip("pinocchio_helpers")
    compared = 0
    for number, (name, path) in enumerate(peers.FILES.items()):
        if name == peers.EMPTY:
            continue
        peer = peers.Peer.of(path, "fixed" if number % 2 else "free")
        robot, P = peer.robot, peer.P
        if not robot.nv or robot.nv > 50:
            continue
        rng = np.random.default_rng(number)
        q, (v, tau) = robot.random(rng, 1), rng.normal(size=(2, robot.nv))
        M = cj.mass_matrix(robot, q[0])
        condition = np.linalg.cond(M)
        if P.shape[0] != P.shape[1] or not condition < 1e6:
            continue
        theirs = peers.pin.computeABADerivatives(peer.model, peer.data, peer.q(q)[0], P @ v, P @ tau)
        inverse = np.triu(theirs[2]) + np.triu(theirs[2], 1).T
        found = cj.forward_dynamics_derivatives(robot, q[0], v, tau)
        for x, y in zip(found, (theirs[0], theirs[1], inverse), strict=True):
            y = P.T @ y @ P
            assert np.abs(x - y).max() <= 1e-14 * condition * max(1.0, np.abs(y).max()), name
        compared += 1
    assert compared > 40
