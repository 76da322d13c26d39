"""Native code agrees with the source as written on every robot of `example-robot-data` and on some of MuJoCo's."""

from __future__ import annotations

import os

import numpy as np
import pytest

import coadjoint as cj
from laws import fresh, relative
from models import mjcf_files, urdf_files

FILES, SUITE = urdf_files(), mjcf_files()
EMPTY = "ur_description/urdf/ur3.urdf"
"""A <robot> without a single link."""
SINGULAR = ("romeo_description/urdf/romeo.urdf", "romeo_description/urdf/romeo_laas_small.urdf")
"""Their last joints carry no mass."""

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
    assert (native.size == 0) == (name == EMPTY and index % 2 == 0)
    assert not native.size or relative(native, written) < 1e-13


# The rest takes minutes to compile: run with COADJOINT_EVERY=1 when kernels change.
CHOSEN = ("panda.urdf", "hyq_no_sensors.urdf", "ur5_robot.urdf", "solo12.urdf", "talos_reduced.urdf")
SOME = [name for name in FILES if "COADJOINT_EVERY" in os.environ or name.rpartition("/")[2] in CHOSEN]
MODELS = {**{name: FILES[name] for name in SOME}, **{name: SUITE[name] for name in ("cheetah", "fish") if name in SUITE}}


@pytest.mark.parametrize("name", [name for name in MODELS if name not in (EMPTY, *SINGULAR)])
def test_mass_matrix_and_forward_dynamics(monkeypatch, name):
    """Accelerations differ by rounding times the condition of the mass matrix."""
    robot = cj.load(MODELS[name])
    if not robot.nv:
        robot = cj.load(MODELS[name], base="free")
    q, v, a = states(robot)
    M = cj.mass_matrix(robot, q)
    native = cj.forward_dynamics(robot, q, v, a)
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    robot = fresh(robot)
    assert relative(M, cj.mass_matrix(robot, q)) < 1e-13
    assert relative(native, cj.forward_dynamics(robot, q, v, a)) < max(1e-13, 1e-15 * np.linalg.cond(M).max())


@pytest.mark.parametrize("name", [name for name in SINGULAR if name in FILES])
def test_singular_mass_matrices_are_refused(monkeypatch, name):
    """Natively and as written."""
    robot = cj.load(FILES[name])
    q, v, a = states(robot)
    with pytest.raises(cj.errors.SingularMassMatrixError):
        cj.forward_dynamics(robot, q, v, a)
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    with pytest.raises(cj.errors.SingularMassMatrixError):
        cj.forward_dynamics(fresh(robot), q, v, a)
