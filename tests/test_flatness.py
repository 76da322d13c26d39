"""Flat robots, and coordinates in which nothing bends."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from acceptance import load
from coadjoint.geometry import flat_coordinates, flatness
from coadjoint.geometry.flatness import bending
from laws import derivative
from models import body
from random_robots import random_robot


def test_cases_14_and_17_are_flat():
    """A balanced planar 3R, whose mass matrix is constant, and a point mass in polar coordinates, whose is not."""
    balanced, polar = load(14), load(17)
    for case, constant in ((balanced, True), (polar, False)):
        assert cj.is_flat(case.robot)
        report = flatness(case.robot)
        assert report.constant is constant
        assert report.largest < 1e-12
        assert str(report).startswith("flat:")
    assert np.max(np.abs(cj.christoffel(polar.robot, polar.inputs.q))) > 0.5
    np.testing.assert_allclose(np.max(np.abs(cj.curvature(polar.robot, polar.inputs.q))), 0.0, atol=1e-14)


@pytest.mark.parametrize("number", [5, 9, 11])
def test_others_are_not(number):
    robot = load(number).robot
    assert not cj.is_flat(robot)
    report = flatness(robot)
    assert report.largest > 0.1
    i, j, k, l = report.freedoms
    assert abs(cj.curvature(robot, report.where)[i, j, k, l]) > 0
    assert str(report).startswith("not flat")


def test_prismatic_joints_and_planar_bodies_are_flat():
    assert cj.is_flat(random_robot(0, 4, ("prismatic",)))
    assert cj.is_flat(body(cj.Joint.planar(), mass=2.0, moments=(1.0, 1.0, 0.3)))
    assert not cj.is_flat(body(cj.Joint.spherical()))
    assert cj.is_flat(cj.Robot("one", [cj.Link.solid("l", "base", cj.Joint.revolute(), mass=1.0, com=(0.2, 0, 0))]))
    assert cj.is_flat(cj.Robot("none", []))


def test_a_robot_that_is_nearly_flat_is_not():
    """Case 14 with one centre of mass moved by a part in 10⁵: the bound is far below any curvature worth the name."""
    robot = load(14).robot
    mass, com, inertia = cj.lie.inertia.to_body(robot.inertias[2])
    moved = robot.with_inertia("link3", mass=mass, com=com + np.array([1e-5, 0, 0]), inertia=inertia)
    assert not cj.is_flat(moved)


@pytest.mark.parametrize("seed", range(4))
def test_curvature_is_a_part_of_the_bending(seed):
    """|R_ijkl| ≤ |∂_i ∂_k x| |∂_j ∂_l x| + |∂_i ∂_l x| |∂_j ∂_k x| by the equation of Gauss, at joints of every kind."""
    robot = random_robot(seed, 5, mimic=seed % 2 == 1)
    report = flatness(robot, 8)
    assert 0 < report.largest <= 1


def test_bending_is_the_size_of_second_derivatives():
    """For point masses on the links: √(Σ m |∂_i ∂_j x|²) from differences of their positions."""
    rng = np.random.default_rng(2)
    robot = random_robot(rng, 4, ("revolute", "helical", "prismatic"), tree=False)
    points, weights = rng.normal(size=(4, 5, 3)), rng.uniform(0.5, 1.5, (4, 5))
    for i, name in enumerate(robot.link_names):
        mass, com = weights[i].sum(), weights[i] @ points[i] / weights[i].sum()
        x = points[i] - com
        inertia = sum(w * (y @ y * np.eye(3) - np.outer(y, y)) for w, y in zip(weights[i], x, strict=True))
        robot = robot.with_inertia(name, mass=mass, com=com, inertia=inertia)

    def positions(q):
        poses = cj.forward_kinematics(robot, q)
        return np.einsum("...lij,lpj->...lpi", poses[..., :3, :3], points) + poses[..., None, :3, 3]

    q = robot.random(rng)
    first = lambda i: lambda p: derivative(robot, positions, p, np.eye(4)[i])
    second = np.array([[derivative(robot, first(i), q, np.eye(4)[j]) for j in range(4)] for i in range(4)])
    expected = np.sqrt(np.einsum("lp,ijlpx->ij", weights, second**2))
    np.testing.assert_allclose(bending(robot, q), expected, atol=1e-7)


def test_case_17_isometry():
    """q̃ = √m r (cos θ, sin θ) and its Jacobian N, with the frame that these have at home."""
    case = load(17)
    start = np.sqrt(1.3) * np.array([[0.0, 1.0], [0.5, 0.0]])
    flat, N = flat_coordinates(case.robot, case.inputs.q, frame=start)
    np.testing.assert_allclose(N, case.expected["isometry_jacobian_N"], rtol=1e-11, atol=1e-12)
    home = np.sqrt(1.3) * np.array([0.5, 0.0])
    np.testing.assert_allclose(flat + home, np.sqrt(1.3) * 0.9 * np.array([np.cos(0.3), np.sin(0.3)]), atol=1e-12)


@pytest.mark.native
@pytest.mark.parametrize("robot", ["polar", "balanced", "planar body", "prismatic"])
def test_flat_coordinates(robot):
    """Nᵀ N = M, N = ∂q̃/∂q, geodesics are straight and uniform, and q̃'' = N⁻ᵀ τ under forces."""
    robot = {
        "polar": lambda: load(17).robot,
        "balanced": lambda: load(14).robot,
        "planar body": lambda: body(cj.Joint.planar(), mass=2.0, moments=(1.0, 1.0, 0.3)),
        "prismatic": lambda: random_robot(0, 3, ("prismatic",)),
    }[robot]()
    rng = np.random.default_rng(0)
    q, v = 0.3 * rng.normal(size=(2, 3, robot.nv))
    flat, N = flat_coordinates(robot, q)
    np.testing.assert_allclose(N.swapaxes(-1, -2) @ N, cj.mass_matrix(robot, q), atol=1e-11)
    slope = derivative(robot, lambda x: flat_coordinates(robot, x)[0], q, v, h=1e-2)
    np.testing.assert_allclose(np.einsum("...ij,...j->...i", N, v), slope, atol=1e-9)
    t = np.array([0.0, 0.2, 0.5])
    at, _ = cj.geodesic(robot, q, v, t)
    straight = flat_coordinates(robot, at)[0]
    expected = flat[:, None] + t[:, None] * np.einsum("...ij,...j->...i", N, v)[:, None]
    np.testing.assert_allclose(straight, expected, atol=1e-10)
    # Under forces: q̃' = N v, so q̃'' = N (a + M⁻¹ C v) = N M⁻¹ τ = N⁻ᵀ τ.
    tau, weightless = rng.normal(size=(3, robot.nv)), robot.with_gravity([0, 0, 0])
    a = cj.forward_dynamics(weightless, q, v, tau)
    change = derivative(robot, lambda x: flat_coordinates(robot, x)[1], q, v, h=1e-2)
    twice = np.einsum("...ij,...j->...i", N, a) + np.einsum("...ij,...j->...i", change, v)
    np.testing.assert_allclose(twice, np.linalg.solve(N.swapaxes(-1, -2), tau[..., None])[..., 0], atol=1e-8)


def test_what_is_not_flat_has_no_such_coordinates():
    with pytest.raises(cj.errors.ModelError, match="not flat"):
        flat_coordinates(load(5).robot, [0.1, 0.2])
    with pytest.raises(cj.CoadjointError, match="square root of the mass matrix"):
        flat_coordinates(load(17).robot, [0.1, 0.2], frame=np.eye(2))
    with pytest.raises(cj.CoadjointError, match="configurations is 0"):
        flatness(load(5).robot, 0)
