"""The shortest geodesic is found: against shortest paths through fine grids of configurations, which are upper bounds of the distance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

import coadjoint as cj
from coadjoint import Joint, Link, Robot, geometry
from coadjoint.geometry import GeodesicError, jacobi_field, relaxation
from coadjoint.show.geometry import geometry as shown_geometry
from random_robots import random_robot

pytestmark = pytest.mark.native
PLANAR = cj.load("planar2r")
START = np.full(2, -0.4 * np.pi)


def grid(robot, lower, upper, counts, radius):
    """Configurations (N, nv) on a grid, and the lengths of straight edges between neighbours up to `radius` steps apart."""
    axes = [np.linspace(*ends) for ends in zip(lower, upper, counts, strict=True)]
    q = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
    number = np.arange(q[..., 0].size).reshape(q.shape[:-1])
    q = q.reshape(-1, len(counts))
    rows, columns, lengths = [], [], []
    for index in np.ndindex(*[2 * radius + 1] * len(counts)):
        step = tuple(k - radius for k in index)
        if step <= (0,) * len(counts) or np.gcd.reduce(step) != 1:
            continue
        i = number[tuple(slice(max(0, -k), n - max(0, k)) for k, n in zip(step, number.shape, strict=True))].ravel()
        j = number[tuple(slice(max(0, k), n + min(0, k)) for k, n in zip(step, number.shape, strict=True))].ravel()
        d, length = q[j] - q[i], 0.0
        for x, weight in zip(*np.polynomial.legendre.leggauss(3), strict=True):
            M = cj.mass_matrix(robot, q[i] + 0.5 * (x + 1) * d)
            length = length + 0.5 * weight * np.sqrt(np.einsum("ni,nij,nj->n", d, M, d))
        rows, columns, lengths = [*rows, i], [*columns, j], [*lengths, length]
    edges = (np.concatenate(lengths), (np.concatenate(rows), np.concatenate(columns)))
    return q, csr_matrix(edges, (len(q), len(q)))


def body(name, parent, joint, *, at=(0.0, 0.0, 0.0), com=(0.5, 0.1, 0.0), mass=1.0):
    T = np.eye(4)
    T[:3, 3] = at
    return Link.solid(name, parent, joint, T, mass=mass, com=com, inertia=0.05)


ROBOTS = {
    "2R": (PLANAR, [-2 * np.pi] * 2, [2 * np.pi] * 2, [81, 81], 5),
    "RP": (
        Robot("RP", [body("a", "base", Joint.revolute((0, 0, 1))), body("b", "a", Joint.prismatic((1, 0, 0)), com=(0.7, 0, 0))]),
        [-3.0, -1.0],
        [3.0, 1.0],
        [61, 61],
        5,
    ),
    "spherical": (
        Robot(
            "arm",
            [body("a", "base", Joint.revolute((0, 0, 1)), mass=0.3), body("b", "a", Joint.revolute((0, 1, 0)), com=(0.8, 0, 0))],
        ),
        [-3.5, -3.5],
        [3.5, 3.5],
        [71, 71],
        5,
    ),
    "3R": (cj.load("planar_nr"), [-3.2] * 3, [3.2] * 3, [17] * 3, 2),
}


@pytest.mark.parametrize("name", [pytest.param(x, marks=pytest.mark.slow) if x in ("2R", "3R") else x for x in ROBOTS])
def test_no_path_through_a_grid_is_shorter(name):
    """Single pairs come from the middle of the grid, so that shortest paths have room; none is missed, none found fails."""
    robot, lower, upper, counts, radius = ROBOTS[name]
    q, edges = grid(robot, lower, upper, counts, radius)
    half = 0.5 * (np.array(upper) - lower)
    inside = np.flatnonzero(np.all(np.abs(q - 0.5 * (np.array(upper) + lower)) < 0.55 * half, axis=1))
    rng = np.random.default_rng(0)
    for start in rng.choice(inside, 3, replace=False):
        lengths = dijkstra(edges, directed=False, indices=start)
        for goal in rng.choice(inside, 8, replace=False):
            report = geometry.geodesics_between(robot, q[start], q[goal])
            assert report.found, report
            assert report.stable[0]
            assert report.lengths[0] <= lengths[goal] * (1 + 1e-5)
            assert report.lengths[0] >= lengths[goal] / 1.25  # a grid of few directions makes paths longer, but not by so much


@pytest.mark.slow
def test_the_default_picture_shows_the_shortest():
    """From (-0.4π, -0.4π) to (0.4π, 0.4π): two mirror images of 4.4462; the symmetric geodesic of 4.8269 has a conjugate point."""
    report = geometry.geodesics_between(PLANAR, START, -START)
    np.testing.assert_allclose(report.lengths[:2], 4.44620, atol=1e-5)
    assert geometry.distance(PLANAR, START, -START) == pytest.approx(report.lengths[0], rel=1e-10)
    assert report.stable[:2].all()
    symmetric = np.flatnonzero(np.abs(report.lengths - 4.82686) < 1e-4)
    assert not report.stable[symmetric].any()
    motions = shown_geometry(PLANAR).motions
    assert 2 * motions.means[0] == pytest.approx(4.44620**2, rel=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_stable_geodesics_have_no_conjugate_points(seed):
    """A Jacobi field that vanishes at the start vanishes again on the way exactly if a shorter way is nearby."""
    rng = np.random.default_rng(seed)
    report = geometry.geodesics_between(PLANAR, *rng.uniform(-np.pi, np.pi, (2, 2)))
    t = np.linspace(0, 1, 201)[1:]
    for v, stable in zip(report.velocities, report.stable, strict=True):
        M = cj.mass_matrix(PLANAR, report.start)
        across = np.array([-(M @ v)[1], (M @ v)[0]])
        J, _ = jacobi_field(PLANAR, report.start, v, np.zeros(2), across, t)
        _, along = cj.geodesic(PLANAR, report.start, v, t)
        area = J[:, 0] * along[:, 1] - J[:, 1] * along[:, 0]  # J and v are parallel where J is 0
        assert stable == np.all(area[:-1] * area[-2] > 0)


@pytest.mark.parametrize(
    "kinds",
    [
        ("revolute", "prismatic"),
        pytest.param(("spherical", "revolute"), marks=pytest.mark.slow),
        ("planar", "universal"),
        ("free",),
    ],
)
def test_drawing_tight_lowers_the_energy_to_that_of_a_geodesic(kinds):
    """The gradient of the energy of ways is that of differences, and tight ways are as long as the geodesic along them."""
    rng = np.random.default_rng(1)
    robot = random_robot(rng, len(kinds), kinds, tree=False)
    q = robot.random(rng)
    s = np.linspace(0, 1, relaxation.STEPS + 1)[:, None]
    chord = 0.8 * rng.normal(size=robot.nv)
    ways = robot.integrate(q, s * chord + np.sin(np.pi * s) * 0.2 * rng.normal(size=(3, 1, robot.nv)))
    step, slope = relaxation._descent(robot, ways)
    moved = lambda h: np.concatenate([ways[:, :1], robot.integrate(ways[:, 1:-1], h * step), ways[:, -1:]], 1)
    change = (relaxation.energy(robot, moved(1e-5)) - relaxation.energy(robot, moved(-1e-5))) / 2e-5
    np.testing.assert_allclose(change, -slope, rtol=2e-2)  # brackets of rotations that the gradient has to first order
    tight = relaxation.relaxed(robot, ways)
    assert np.all(relaxation.energy(robot, tight) <= relaxation.energy(robot, ways))
    length = geometry.distance(robot, q, ways[0, -1])
    assert np.min(np.sqrt(2 * relaxation.energy(robot, tight))) == pytest.approx(length, rel=5e-3)


def test_a_shorter_path_without_a_geodesic_is_reported():
    """In a plane without a point, in polar coordinates: the way round the point can be drawn ever tighter."""
    far = Robot("polar", [Link("a", "base", Joint.revolute((0, 0, 1))), Link.solid("b", "a", Joint.prismatic((1, 0, 0)), mass=1.0)])
    report = geometry.geodesics_between(far, [0.0, 1.0], [3.3, 1.0])
    assert report.unresolved
    with pytest.raises(GeodesicError, match="no geodesic"):
        geometry.distance(far, [0.0, 1.0], [3.3, 1.0])
