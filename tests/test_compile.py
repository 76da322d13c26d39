"""Users' functions, compiled."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from laws import relative
from random_robots import random_robot

pytestmark = pytest.mark.native


def spring(robot, q, v, gain):
    """A user's function: forward dynamics under a spring that pulls the tip to the origin."""
    T = cj.pose(robot, q, "tip")
    J = cj.jacobian(robot, q, "tip", "world")[..., 3:, :]
    tau = -gain[..., None] * (J.swapaxes(-1, -2) @ T[..., :3, 3:])[..., 0]
    return cj.forward_dynamics(robot, q, v, tau), np.sin(q) * gain[..., None]


def test_a_users_function(monkeypatch):
    rng = np.random.default_rng(0)
    robot = random_robot(rng, 5, ("revolute", "prismatic", "helical"))
    q, v, gain = robot.random(rng, (3, 4)), rng.normal(size=(4, robot.nv)), rng.uniform(1, 2, (3, 1))
    f = cj.compile(spring, robot, shapes={"gain": ()})
    a, s = f(q, v, gain)
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    b, t = spring(robot.with_gravity(robot.gravity), q, v, np.broadcast_to(gain, (3, 4)))
    assert a.shape == (3, 4, robot.nv)
    assert relative(a, b) < 1e-11
    assert relative(s, t) < 1e-15
    g = cj.compile(spring, robot, shapes={"gain": ()})  # as written
    assert relative(g(q, v, np.broadcast_to(gain, (3, 4)))[0], a) < 1e-11


@pytest.mark.parametrize("names", [("inertias",), ("gravity", "armature"), ("placements", "screws"), cj.compiling.PARAMETERS])
def test_parameters_as_inputs(names):
    rng = np.random.default_rng(1)
    robot = random_robot(rng, 6, armature=True, damping=True)
    q, v, a = robot.random(rng, 3), *rng.normal(size=(2, 3, robot.nv))
    f = cj.compile(cj.inverse_dynamics, robot, parameters=names, friction=True)
    values = [getattr(robot, name) for name in names]
    assert relative(f(q, v, a, *values), cj.inverse_dynamics(robot, q, v, a, friction=True)) < 1e-13
    changed = {name: 1.1 * getattr(robot, name) if name not in ("placements", "screws") else getattr(robot, name) for name in names}
    if "placements" in names:
        changed["placements"] = robot.placements @ cj.lie.se3.exp(0.1 * rng.normal(size=(robot.n_links, 6)))
    expected = cj.inverse_dynamics(robot.with_numbers(**changed), q, v, a, friction=True)
    assert relative(f(q, v, a, *changed.values()), expected) < 1e-13


def test_static_arguments_and_optional_arrays():
    rng = np.random.default_rng(2)
    robot = cj.load("panda")
    q, v, a = robot.random(rng), *rng.normal(size=(2, 7))
    f = cj.compile(cj.jacobian, robot, frame="flange", reference="space")
    assert relative(f(q), cj.jacobian(robot, q, "flange", "space")) < 1e-14
    w = rng.normal(size=(robot.n_links, 6))
    g = cj.compile(cj.inverse_dynamics, robot, shapes={"wrenches": w.shape})
    assert relative(g(q, v, a, w), cj.inverse_dynamics(robot, q, v, a, w)) < 1e-13


def test_errors_of_compile():
    robot = cj.load("planar2r")
    with pytest.raises(cj.CoadjointError, match="shape of argument 'x' is not known"):
        cj.compile(lambda robot, q, x: q, robot)
    with pytest.raises(cj.CoadjointError, match="no number of a robot is named 'mass'"):
        cj.compile(cj.mass_matrix, robot, parameters=["mass"])
    with pytest.raises(cj.CoadjointError, match="no argument of the function is named 'y'"):
        cj.compile(lambda robot, q: q, robot, shapes={"y": (2,)})
    with pytest.raises(cj.errors.TraceError, match="where"):
        cj.compile(lambda robot, q: q if q[0] > 0 else -q, robot)
    with pytest.raises(cj.errors.UnknownNameError, match="no frame is named 'tp'"):
        cj.compile(cj.pose, robot, frame="tp")
    f = cj.compile(cj.mass_matrix, robot)
    with pytest.raises(cj.errors.ShapeError, match=r"q has shape \(3,\); expected \(..., 2\)"):
        f(np.zeros(3))


@pytest.mark.parametrize(
    ("args", "options"),
    [((), {}), ((1,), {"q": 2}), ((1, 2), {}), ((1,), {"nope": 2})],
    ids=["none", "twice", "too many", "unknown"],
)
def test_a_differential_refuses_arguments_that_its_function_does_not_take(args, options):
    robot, q = cj.load("planar2r"), np.ones(2)
    with pytest.raises(TypeError, match="differential of gravity_force by q"):
        cj.differential(cj.gravity_force)(robot, *(q for _ in args), **dict.fromkeys(options, q))


def test_a_differential_at_numbers_takes_arrays_as_functions_do():
    robot, q = cj.load("planar2r").with_gravity((0, -9.81, 0)), np.array([[0.3, 0.9], [0.1, -0.2], [1.0, 2.0]])
    slope = cj.differential(cj.gravity_force)
    wanted, out = slope(robot, q), np.zeros((3, 2, 2))
    assert slope(robot, q, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    assert np.isnan(slope(robot, np.ma.masked_array(q, np.arange(6).reshape(3, 2) == 1))[0]).any()
    assert not hasattr(slope, "source")
    for odd, words in ((q + 1j, "expected real numbers"), (pytest.importorskip("dask.array").from_array(q), "is a Dask array")):
        with pytest.raises(cj.CoadjointError, match=words):
            slope(robot, odd)
