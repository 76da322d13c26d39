"""Native code agrees with the source as written on every robot of `example-robot-data` and on some of MuJoCo's."""

from __future__ import annotations

import os

import numpy as np
import pytest

import coadjoint as cj
from test_dynamics import relative
from test_mjcf import SUITE
from test_native_agrees import fresh
from test_urdf_peers import FILES

pytestmark = [pytest.mark.native, pytest.mark.filterwarnings("ignore::coadjoint.errors.ModelWarning")]


def states(robot, seed=0):
    rng = np.random.default_rng(seed)
    return robot.random(rng, 5), *rng.normal(size=(2, 5, robot.nv))


@pytest.mark.parametrize("name", FILES)
def test_inverse_dynamics_of_every_urdf(monkeypatch, name):
    """With fixed and free bases in turn."""
    index = list(FILES).index(name)
    robot = cj.load(FILES[name], base=("fixed", "free")[index % 2])
    x = states(robot, index)
    native = cj.inverse_dynamics(robot, *x)
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    written = cj.inverse_dynamics(fresh(robot), *x)
    assert native.shape == written.shape
    assert not native.size or relative(native, written) < 1e-13


# The rest takes minutes to compile: run with COADJOINT_EVERY=1 when kernels change.
CHOSEN = ("panda.urdf", "hyq_no_sensors.urdf", "ur5_robot.urdf", "solo12.urdf", "talos_reduced.urdf")
SOME = [name for name in FILES if "COADJOINT_EVERY" in os.environ or name.rpartition("/")[2] in CHOSEN]


@pytest.mark.parametrize(
    "path", [FILES[n] for n in SOME] + [SUITE[n] for n in ("cheetah", "fish") if n in SUITE], ids=lambda p: p.stem
)
def test_mass_matrix_and_forward_dynamics(monkeypatch, path):
    """Accelerations differ by rounding times the condition of the mass matrix."""
    robot = cj.load(path)
    if not robot.nv:
        robot = cj.load(path, base="free")
    if not robot.nv:
        pytest.skip("no links")
    q, v, a = states(robot)
    M = cj.mass_matrix(robot, q)
    try:
        native = cj.forward_dynamics(robot, q, v, a)
    except cj.errors.SingularMassMatrixError:
        pytest.skip("joints that carry no mass")
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    robot = fresh(robot)
    assert relative(M, cj.mass_matrix(robot, q)) < 1e-13
    assert relative(native, cj.forward_dynamics(robot, q, v, a)) < max(1e-13, 1e-15 * np.linalg.cond(M).max())
