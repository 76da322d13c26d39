"""Native code agrees with the source as written on every robot of `example-robot-data` and on some of MuJoCo's."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from laws import fresh, relative
from models import mjcf_files, slow_but_few, urdf_files

FILES, SUITE = urdf_files(), mjcf_files()
EMPTY = "ur_description/urdf/ur3.urdf"
"""A <robot> without a single link."""
RIGID = ("hector_description/robots/quadrotor_base.urdf", "iris_description/robots/iris_simple.urdf")
"""Only fixed joints: nothing moves on a fixed base."""
SINGULAR = ("romeo_description/urdf/romeo.urdf", "romeo_description/urdf/romeo_laas_small.urdf")
"""Their last joints carry no mass."""

pytestmark = [pytest.mark.native, pytest.mark.filterwarnings("ignore::coadjoint.errors.ModelWarning")]


def states(robot, seed=0):
    rng = np.random.default_rng(seed)
    return robot.random(rng, 5), *rng.normal(size=(2, 5, robot.nv))


@pytest.mark.parametrize("name", slow_but_few(FILES))
def test_inverse_dynamics_of_every_urdf(monkeypatch, name):
    """With fixed and free bases in turn."""
    index = list(FILES).index(name)
    robot = cj.load(FILES[name], base=("fixed", "free")[index % 2])
    x = states(robot, index)
    native = cj.inverse_dynamics(robot, *x)
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    written = cj.inverse_dynamics(fresh(robot), *x)
    assert native.shape == written.shape
    assert (native.size == 0) == (name == EMPTY or (name in RIGID and index % 2 == 0))
    assert not native.size or relative(native, written) < 1e-13


REGULAR = [name for name in FILES if name not in (EMPTY, *SINGULAR)]
MODELS = {**FILES, **SUITE}


@pytest.mark.parametrize("name", [*slow_but_few(REGULAR), *(name for name in ("cheetah", "fish") if name in SUITE)])
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
