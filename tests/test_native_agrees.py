"""Native code and the source as written give the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from functions import FUNCTIONS
from laws import fresh, relative
from random_robots import random_robot

pytestmark = pytest.mark.native


def both(monkeypatch, fn):
    """fn() natively and as written."""
    native = fn()
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    return native, fn()


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("integrate", "difference")])
@pytest.mark.parametrize("seed", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_every_function_on_every_kind_of_joint(monkeypatch, name, seed):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 9, mimic=seed == 2, armature=True, damping=True)
    q = robot.random(rng, (7, 3))
    v, a = rng.normal(size=(2, 7, 3, robot.nv))
    native = FUNCTIONS[name](robot, q, v, a)
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    written = FUNCTIONS[name](fresh(robot), q, v, a)
    assert native.shape == written.shape
    # Where a system of equations is solved, rounding grows with its condition.
    solved = name in ("forward_dynamics", "mass_matrix_inverse")
    tolerance = 1e-15 * np.linalg.cond(cj.mass_matrix(fresh(robot), q)).max() if solved else 1e-13
    assert relative(native, written) < max(1e-13, tolerance)


def test_a_state_alone_equals_the_same_state_in_a_batch():
    rng = np.random.default_rng(0)
    robot = cj.load("panda")
    q, v, a = robot.random(rng, 9), *rng.normal(size=(2, 9, 7))
    batch = cj.inverse_dynamics(robot, q, v, a)
    for k in range(9):
        assert relative(cj.inverse_dynamics(robot, q[k], v[k], a[k]), batch[k]) < 1e-15


def test_wrenches_are_in_the_frames_of_the_links(monkeypatch):
    rng = np.random.default_rng(5)
    robot = random_robot(rng, 6)
    q, v, a = robot.random(rng, 5), *rng.normal(size=(2, 5, robot.nv))
    wrenches = rng.normal(size=(5, robot.n_links, 6))
    native = cj.inverse_dynamics(robot, q, v, a, wrenches), cj.generalized_force(robot, q, wrenches)
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    robot = fresh(robot)
    assert relative(native[0], cj.inverse_dynamics(robot, q, v, a, wrenches)) < 1e-13
    assert relative(native[1], cj.generalized_force(robot, q, wrenches)) < 1e-13


def test_single_precision_kernels(monkeypatch):
    rng = np.random.default_rng(0)
    robot = cj.load("panda")
    q, v, a = (x.astype(np.float32) for x in (robot.random(rng, 9), *rng.normal(size=(2, 9, 7))))
    tau = cj.inverse_dynamics(robot, q, v, a)
    assert tau.dtype == np.float32
    assert relative(tau, cj.inverse_dynamics(robot, *(x.astype(float) for x in (q, v, a)))) < 1e-5


@pytest.mark.parametrize(
    "arguments",
    [
        lambda q: (q[:, :3], q, q),
        lambda q: (q, q[:2], q),
        lambda q: (q, q, "three"),
        lambda q: (q, q, [[1.0, 2.0], [3.0]]),
        lambda q: (q, q, None),
        lambda q: (q, q, q * 1j),
        lambda q: (0.5, q, q),
    ],
)
def test_wrong_input_raises_the_same_error_either_way(monkeypatch, arguments):
    robot = cj.load("panda")
    q = np.zeros((5, 7))
    cj.inverse_dynamics(robot, q, q, q)  # compiled before the wrong call
    errors = []
    for native in ("1", "0"):
        monkeypatch.setenv("COADJOINT_NATIVE", native)
        with pytest.raises(Exception) as caught:
            cj.inverse_dynamics(robot if native == "1" else fresh(robot), *arguments(q))
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]
    assert issubclass(errors[0][0], cj.CoadjointError)


def test_out_is_written_and_checked(monkeypatch):
    robot = cj.load("panda")
    q = robot.random(np.random.default_rng(0), 5)
    for native in ("1", "0"):
        monkeypatch.setenv("COADJOINT_NATIVE", native)
        r = fresh(robot)
        out = np.empty((5, 7))
        assert cj.gravity_force(r, q, out=out) is out
        assert relative(out, cj.gravity_force(r, q)) == 0
        with pytest.raises(cj.CoadjointError, match=r"out has shape \(4, 7\)"):
            cj.gravity_force(r, q, out=np.empty((4, 7)))
        with pytest.raises(cj.CoadjointError, match="threads"):
            cj.gravity_force(r, q, threads=0)
        assert relative(cj.gravity_force(r, np.tile(q, (5000, 1)), threads=2)[:5], out) < 1e-15


def test_singular_mass_matrices_raise_natively():
    arm = cj.Link.solid("bob", "base", cj.Joint.universal((0, 0, 1), (0, 1, 0)), mass=1.3, com=(0.7, 0, 0))
    robot = cj.Robot("pendulum", [arm])
    regular, pole, zero = np.array([0.3, 0.5]), np.array([0.3, np.pi / 2]), np.zeros(2)
    for _ in range(2):  # the first call compiles
        assert np.all(np.isfinite(cj.forward_dynamics(robot, regular, zero, zero)))
        with pytest.raises(cj.errors.SingularMassMatrixError, match="bob_joint"):
            cj.forward_dynamics(robot, pole, zero, zero)
        with pytest.raises(cj.errors.SingularMassMatrixError, match="state 1"):
            cj.forward_dynamics(robot, np.stack([regular, pole]), zero, zero)
        with pytest.raises(cj.errors.SingularMassMatrixError, match="state 1"):
            cj.mass_matrix_inverse(robot, np.stack([regular, pole]))
    assert np.all(np.isnan(cj.forward_dynamics(robot, np.full(2, np.nan), zero, zero)))
