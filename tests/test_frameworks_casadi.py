"""Functions of a robot as functions of CasADi, and inside an optimisation."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from laws import relative
from random_robots import ONE_SCREW, random_robot

casadi = pytest.importorskip("casadi")


def made(fn, robot, **options):
    return cj.interop.casadi.function(fn, robot, **options)


def test_values_and_exact_derivatives():
    robot = random_robot(1, 4, ONE_SCREW)
    rng = np.random.default_rng(1)
    q, (v, a) = robot.random(rng), rng.normal(size=(2, robot.nv))
    f = made(cj.inverse_dynamics, robot)
    assert relative(f(q, v, a).full().ravel(), cj.inverse_dynamics(robot, q, v, a)) < 1e-12
    J = f.factory("J", ["q", "v", "a"], ["jac:out0:q", "jac:out0:v", "jac:out0:a"])(q, v, a)
    for x, y in zip(J, cj.inverse_dynamics_derivatives(robot, q, v, a), strict=True):
        assert relative(x.full(), y) < 1e-12
    columns = f.map(3)(np.stack([q, -q, q]).T, v, a).full()
    assert relative(columns.T, cj.inverse_dynamics(robot, np.stack([q, -q, q]), v, a)) < 1e-12


def test_second_derivatives_in_the_hessian_of_the_lagrangian():
    robot = random_robot(2, 3, ONE_SCREW)
    rng = np.random.default_rng(2)
    q, (v, a, w) = robot.random(rng), rng.normal(size=(3, robot.nv))
    f = made(cj.inverse_dynamics, robot)
    x = casadi.MX.sym("x", robot.nq)
    hessian = casadi.Function("h", [x], [casadi.hessian(casadi.dot(f(x, v, a), w), x)[0]])
    expected = np.einsum("t,tij->ij", w, cj.inverse_dynamics_second_derivatives(robot, q, v, a)[0])
    assert relative(hessian(q).full(), expected) < 1e-10


def test_options_parameters_and_names():
    robot = random_robot(3, 3, ONE_SCREW)
    q = robot.random(np.random.default_rng(3))
    f = made(cj.pose, robot, frame="tip", parameters=["lengths"])
    assert f.name_in() == ["q", "lengths"]
    assert relative(f(q, robot.parameters("lengths")).full(), cj.pose(robot, q, "tip")) < 1e-12
    with pytest.raises(cj.CoadjointError, match="the shape of argument 'x' is not known"):
        made(lambda robot, x: x, robot)
