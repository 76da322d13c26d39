"""Second derivatives of inverse and forward dynamics against 60-digit differences, complex steps of the first, and laws."""

import numpy as np
import pytest

import coadjoint as cj
from derivative_helpers import ROBOTS, complex_step, second_differences, traced
from laws import relative, state
from random_robots import ONE_SCREW, random_robot

SMALL = {
    "chain": lambda rng: random_robot(rng, 4, ONE_SCREW, tree=False, armature=True),
    "tree": lambda rng: random_robot(rng, 5, ONE_SCREW, shuffle=True),
    "floating": lambda rng: random_robot(rng, 2, ("free", "revolute"), tree=False),
    "groups": lambda rng: random_robot(rng, 2, ("spherical", "universal"), tree=False),
    "planar": lambda rng: random_robot(rng, 2, ("planar", "revolute"), tree=False),
    "mimic": lambda rng: random_robot(rng, 4, ("universal", "revolute", "prismatic"), mimic=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SMALL)
def test_inverse_dynamics_in_sixty_digits(kind):
    rng = np.random.default_rng(3)
    robot = SMALL[kind](rng)
    q, v, a = state(robot, rng)
    graph = traced(robot, cj.inverse_dynamics)
    found = cj.inverse_dynamics_second_derivatives(robot, q, v, a)
    for x, (j, k) in zip(found, ((1, 1), (1, 2), (2, 2), (1, 3)), strict=True):
        assert relative(x, second_differences(graph, j, k, q, 0 * v, v, a)) < 1e-12


def first_differentiated(fn, robot, q, v, x):
    """∂ of the first derivatives by complex step: by (q, q), symmetric, (q, v), (v, v) and (q, x), as ours are arranged."""
    graph = traced(robot, fn)
    by_q, by_v = (complex_step(graph, k, q, 0 * v, v, x) for k in (1, 2))
    qq = 0.5 * (by_q[0] + by_q[0].swapaxes(-1, -2))
    return qq, by_q[1].swapaxes(-1, -2), by_v[1], by_q[2].swapaxes(-1, -2)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", ROBOTS)
def test_inverse_dynamics_by_complex_step(kind, seed):
    rng = np.random.default_rng(seed)
    robot = ROBOTS[kind](rng)
    q, v, a = state(robot, rng)
    expected = first_differentiated(cj.inverse_dynamics_derivatives, robot, q, v, a)
    for x, y in zip(cj.inverse_dynamics_second_derivatives(robot, q, v, a), expected, strict=True):
        assert relative(x, y) < 1e-12


@pytest.mark.parametrize("kind", ["chain", "floating", "groups", "mimic"])
def test_forward_dynamics_by_complex_step(kind):
    rng = np.random.default_rng(5)
    robot = SMALL[kind](rng)
    q, v, tau = state(robot, rng)
    expected = first_differentiated(cj.forward_dynamics_derivatives, robot, q, v, tau)
    tolerance = max(1e-12, 1e-15 * np.linalg.cond(cj.mass_matrix(robot, q)) ** 1.5)
    for x, y in zip(cj.forward_dynamics_second_derivatives(robot, q, v, tau), expected, strict=True):
        assert relative(x, y) < tolerance


@pytest.mark.parametrize("seed", range(3))
def test_laws(seed):
    """Symmetric by (q, q) and (v, v), which is twice the Christoffel symbols for joints of one screw; ∂M/∂q by (q, a)."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 7, ONE_SCREW if seed else ("free", "universal", "revolute"), mimic=seed == 2)
    q, v, a = state(robot, rng, (3,))
    qq, qv, vv, qa = cj.inverse_dynamics_second_derivatives(robot, q, v, a)
    assert relative(qq, qq.swapaxes(-1, -2)) < 1e-13
    assert relative(vv, vv.swapaxes(-1, -2)) < 1e-13
    assert relative(qa.swapaxes(-1, -2), cj.mass_matrix_derivative(robot, q)) < 1e-13
    # τ is quadratic in v and linear in a: Euler's relations
    by_q, by_v, _ = cj.inverse_dynamics_derivatives(robot, q, v, a)
    assert relative(by_v, (vv @ v[..., None, :, None])[..., 0]) < 1e-12
    rest = cj.inverse_dynamics_derivatives(robot, q, 0 * v, 0 * a)[0]
    assert relative(by_q - rest, (0.5 * qv @ v[..., None, :, None] + qa @ a[..., None, :, None])[..., 0]) < 1e-12
    if seed:
        gamma = cj.christoffel(robot, q)  # i, j, k with k the row
        assert relative(vv, 2 * np.moveaxis(gamma, -1, -3)) < 1e-12


@pytest.mark.slow
@pytest.mark.native
@pytest.mark.parametrize("name", ["inverse_dynamics_second_derivatives", "forward_dynamics_second_derivatives"])
def test_native_equals_as_written(monkeypatch, name):
    rng = np.random.default_rng(8)
    robot = random_robot(rng, 3, ("revolute", "universal", "helical"), tree=False, armature=True)
    q, v, a = state(robot, rng, (5,))
    native = getattr(cj, name)(robot, q, v, a)
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    robot = cj.Robot(robot.name, robot.links, robot.frames, robot.gravity)
    condition = np.linalg.cond(cj.mass_matrix(robot, q)).max()
    for x, y in zip(native, getattr(cj, name)(robot, q, v, a), strict=True):
        assert relative(x, y) < max(1e-12, 1e-14 * condition)


def test_singular_mass_matrix():
    robot = cj.load("planar2r")
    robot = robot.with_inertia(robot.link_names[-1], mass=1.0)
    with pytest.raises(cj.errors.SingularMassMatrixError, match=robot.joint_names[-1]):
        cj.forward_dynamics_second_derivatives(robot, np.zeros(2), np.ones(2), np.zeros(2))


def test_robots_that_do_not_move():
    x = np.zeros(0)
    for fn in (cj.inverse_dynamics_second_derivatives, cj.forward_dynamics_second_derivatives):
        assert [y.shape for y in fn(cj.Robot("nothing", []), x, x, x)] == [(0, 0, 0)] * 4
