"""Singular mass matrices are told, in every frame and precision, and regular ones of extreme scales are not called singular."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import Joint, Link, Robot
from coadjoint.dynamics.singular import inertia_scale
from coadjoint.errors import SingularMassMatrixError
from coadjoint.lie import so3
from random_robots import random_inertia, random_pose, random_robot, random_unit


def arm(rng, n: int, size: float) -> list[Link]:
    """Ordinary links that carry what follows."""
    links = []
    for i in range(n):
        mass, com, about = random_inertia(rng)
        joint = Joint.revolute(random_unit(rng), rng.uniform(-size, size, 3))
        parent = f"arm{i - 1}" if i else "base"
        links.append(Link.solid(f"arm{i}", parent, joint, random_pose(rng, size), mass=mass, com=com, inertia=about))
    return links


def point_on_a_ball(rng, parent: str, size: float) -> list[Link]:
    """It turns about the line from the joint to the point without moving mass."""
    return [
        Link.solid(
            "x", parent, Joint.spherical(rng.normal(size=3)), random_pose(rng, size), mass=1.3, com=rng.normal(size=3) * size
        )
    ]


def two_points_on_balls(rng, parent: str, size: float) -> list[Link]:
    second = Link.solid("y", "x", Joint.spherical(), random_pose(rng, size), mass=0.4, com=rng.normal(size=3) * size)
    return [*point_on_a_ball(rng, parent, size), second]


def coaxial(rng, parent: str, size: float) -> list[Link]:
    """Two revolute joints about one axis, no mass between them."""
    axis, point, T = random_unit(rng), rng.uniform(-size, size, 3), random_pose(rng, size)
    mass, com, about = random_inertia(rng)
    back = T[:3, :3].T
    second = Joint.revolute(back @ axis, back @ (point - T[:3, 3]))
    first = Link("x", parent, Joint.revolute(axis, point), random_pose(rng, size))
    return [first, Link.solid("y", "x", second, T, mass=mass, com=com, inertia=about)]


def axis_through_a_point(rng, parent: str, size: float) -> list[Link]:
    axis, point = random_unit(rng), rng.uniform(-size, size, 3)
    return [Link.solid("x", parent, Joint.revolute(axis, point), random_pose(rng, size), mass=1.0, com=point + 0.37 * axis)]


def slides(rng, parent: str, size: float, axes) -> list[Link]:
    """Prismatic joints one after the other, and mass on the last link only."""
    links, turned = [], np.eye(3)
    for k, axis in enumerate(axes):
        T = random_pose(rng, size)
        turned = turned @ T[:3, :3]
        joint = Joint.prismatic(turned.T @ axis, name=f"slide{k}")
        links.append(Link(f"slide{k}", parent if k == 0 else f"slide{k - 1}", joint, T))
    mass, com, about = random_inertia(rng)
    last = links[-1]
    return [*links[:-1], Link.solid(last.name, last.parent, last.joint, last.placement, mass=mass, com=com, inertia=about)]


def dependent_slides(rng, parent: str, size: float) -> list[Link]:
    """Three in one plane, or four."""
    a, b = random_unit(rng), random_unit(rng)
    plane = [a, b, rng.normal() * a + rng.normal() * b]
    axes = plane if rng.random() < 0.5 else [random_unit(rng) for _ in range(4)]
    return slides(rng, parent, size, [x / np.linalg.norm(x) for x in rng.permutation(axes)])


PARTS = [point_on_a_ball, two_points_on_balls, coaxial, axis_through_a_point, dependent_slides]


def told(function, robot, *state) -> None:
    for k in range(len(state[0])):
        with pytest.raises(SingularMassMatrixError, match="is singular"):
            function(robot, *(x[k] for x in state))
    with pytest.raises(SingularMassMatrixError, match="in state 0"):
        function(robot, *state)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [0.5, 20.0])
@pytest.mark.parametrize("part", PARTS)
def test_singular_mass_matrices_are_reported_at_every_state(part, size, dtype):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n = seed % 3
        robot = Robot("singular", [*arm(rng, n, size), *part(rng, f"arm{n - 1}" if n else "base", size)])
        q = robot.random(rng, 4).astype(dtype)
        v, tau = rng.normal(size=(2, 4, robot.nv)).astype(dtype)
        told(cj.forward_dynamics, robot, q, v, tau)
        told(cj.mass_matrix_inverse, robot, q)
        told(cj.forward_dynamics_derivatives, robot, q, v, tau)


def test_dependent_slides_are_reported_for_every_robot():
    """Rounding grows as two of the axes become parallel: no pivot by itself tells, and one robot in fifteen was silent."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        robot = Robot("slides", dependent_slides(rng, "base", 0.5))
        q = robot.random(rng)
        with pytest.raises(SingularMassMatrixError, match="is singular"):
            cj.forward_dynamics(robot, q, q, q)


@pytest.mark.parametrize("angle", [1e-1, 1e-3, 1e-5])
def test_nearly_dependent_slides_are_not_called_singular(angle):
    """The third axis leaves the plane of two others, which enclose an angle of 0.3, by a small one."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        turn = so3.exp(rng.normal(size=3))
        inside = np.array([np.cos(0.8), np.sin(0.8), 0.0])
        axes = [[1.0, 0, 0], [np.cos(0.3), np.sin(0.3), 0], np.cos(angle) * inside + [0, 0, np.sin(angle)]]
        robot = Robot("slides", slides(rng, "base", 0.5, [turn @ x for x in rng.permutation(axes)]), gravity=(0, 0, 0))
        q = robot.random(rng)
        a = cj.forward_dynamics(robot, q, q, q)
        assert np.abs(cj.mass_matrix(robot, q) @ a - q).max() < 1e-13 * np.abs(a).max()


@pytest.mark.native
@pytest.mark.parametrize("com", [(0.1, 1.0, 0.0), (0.3, -0.2, 0.7), (1e-3, 1.0, 1e-4), (0.0, 0.0, -0.5)])
@pytest.mark.parametrize("carried", [False, True])
def test_a_point_mass_on_a_ball_joint_natively(com, carried):
    links = [Link.solid("arm", "base", Joint.revolute((0, 0, 1)), mass=1.0, com=(0.5, 0, 0), inertia=0.1)] if carried else []
    robot = Robot("bob", [*links, Link.solid("bob", "arm" if carried else "base", Joint.spherical(), mass=1.0, com=com)])
    rng = np.random.default_rng(0)
    q = robot.random(rng, 10)
    v, tau = rng.normal(size=(2, 10, robot.nv))
    told(cj.forward_dynamics, robot, q, v, tau)
    told(cj.forward_dynamics, robot, *(x.astype(np.float32) for x in (q, v, tau)))
    with pytest.raises(SingularMassMatrixError, match="'bob_joint'"):
        cj.simulate(robot, q[0], v[0], 0.1)


@pytest.mark.parametrize("seed", range(12))
def test_extreme_scales_are_not_called_singular(seed):
    """Masses from 1e-12 to 1e9 kg and lengths from 1e-6 to 1e6 m: M a + h = τ holds for the acceleration that is given."""
    rng = np.random.default_rng(seed)
    base = random_robot(rng, 5, ("revolute", "prismatic", "universal", "spherical", "free"), tree=bool(seed % 2))
    length, masses = 10.0 ** rng.uniform(-6, 6), np.sort(10.0 ** rng.uniform(-12, 9, 5))[::-1]
    inertias = base.inertias / base.inertias[:, :1] * masses[:, None] * np.array([1.0] + [length] * 3 + [length**2] * 6)
    placements, screws = base.placements.copy(), base.screws.copy()
    placements[:, :3, 3] *= length
    screws[:, 3:] = np.where(np.any(screws[:, :3] != 0, axis=-1, keepdims=True), screws[:, 3:] * length, screws[:, 3:])
    robot = base.with_numbers(inertias=inertias, placements=placements, screws=screws)
    q = robot.random(rng, 5)
    v, tau = rng.normal(size=(2, 5, robot.nv))
    a = cj.forward_dynamics(robot, q, v, tau)
    M = cj.mass_matrix(robot, q)
    size = np.sqrt(inertia_scale(robot))
    scaled = np.linalg.eigvalsh(M / np.outer(size, size))[:, 0].min()
    assert scaled > 1e-12  # these robots are regular
    force = tau - cj.bias_force(robot, q, v)
    error = np.abs(np.einsum("...ij,...j->...i", M, a) - force) / size
    assert np.max(error) < 1e-14 / scaled * np.max(np.abs(a) * size + np.abs(force) / size)


def test_single_precision_says_that_it_is_the_reason():
    """A link whose inertia about its axis is 1e-8 of what its arm carries about the same axis."""
    heavy = Link.solid("heavy", "light", Joint.revolute((0, 0, 1)), mass=1.0, com=(1, 0, 0), inertia=0.1)
    robot = Robot("r", [Link.solid("light", "base", Joint.revolute((0, 0, 1)), mass=1e-3, inertia=1e-8), heavy])
    q, v = np.array([0.3, 0.4]), np.zeros(2)
    assert np.all(np.isfinite(cj.forward_dynamics(robot, q, v, v)))
    single = [x.astype(np.float32) for x in (q, v, v)]
    with pytest.raises(SingularMassMatrixError, match="no mass that single precision can tell from rounding"):
        cj.forward_dynamics(robot, *single)


def test_the_message_says_whether_one_joint_is_enough():
    rng = np.random.default_rng(0)
    robot = Robot("spinning", [*arm(rng, 1, 0.5), *axis_through_a_point(rng, "arm0", 0.5)])
    with pytest.raises(SingularMassMatrixError, match="joint 'x_joint' moves no mass, q ="):
        cj.forward_dynamics(robot, *np.zeros((3, 2)))
    robot = Robot("coaxial", coaxial(rng, "base", 0.5))
    with pytest.raises(SingularMassMatrixError, match=r"joint '[xy]_joint' and others, moving together, move no mass, q ="):
        cj.forward_dynamics(robot, *np.zeros((3, 2)))
