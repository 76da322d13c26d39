"""Many robots of one structure in one call: what `parameters` gives is what each robot by itself gives."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import Constraint
from random_robots import random_robot

NATIVE = pytest.mark.parametrize("native", [pytest.param(True, marks=pytest.mark.native), False])
SETS = ("masses", "inertial", "gravity", "drives", "armature", "lengths", "homes", "axes", "inertias", "damping")


def perturbed(robot, name, rng, n):
    """n vectors of a set of parameters, near those of the robot."""
    own = np.asarray(getattr(robot, name) if name == "inertias" else robot.parameters(name))
    noise = rng.uniform(-0.1, 0.1, size=(n, *own.shape))
    if name in ("armature", "damping", "drives"):
        return own + np.abs(noise)
    return own + noise if name in ("homes", "axes", "gravity") else own * (1 + noise)


def member(robot, parameters, k):
    for name, x in parameters.items():
        robot = robot.with_numbers(**{name: x[k]}) if name == "inertias" else robot.with_parameters(name, x[k])
    return robot


QUICK = ("masses", "lengths", "damping")
"""A set for each way that numbers go into a step; the others take as long to compile."""


@NATIVE
@pytest.mark.parametrize(
    ("name", "method"),
    [
        *((name, "euler") for name in QUICK),
        *(pytest.param(name, "euler", marks=pytest.mark.slow) for name in SETS if name not in QUICK),
        *(
            pytest.param(name, method, marks=pytest.mark.slow)
            for name in ("masses", "lengths")
            for method in ("rk4", "variational")
        ),
    ],
)
def test_rollouts_together_are_rollouts_one_by_one(native, method, name):
    rng = np.random.default_rng(3)
    robot = random_robot(rng, 2, ("revolute", "spherical"), tree=False, armature=True)
    parameters = {name: perturbed(robot, name, rng, 3)}
    if name == "masses":
        parameters["gravity"] = perturbed(robot, "gravity", rng, 3)
    q, v = robot.random(rng, 3), 0.3 * rng.normal(size=(3, robot.nv))

    def control(robot, q, v, t):
        return 0.5 * cj.gravity_force(robot, q) - 0.5 * v + np.sin(t)

    options = {"dt": 5e-3, "steps": 6, "control": control, "method": method, "friction": name in ("damping", "drives")}
    qs, vs = cj.rollout(robot, q, v, parameters=parameters, **options)
    for k in range(3):
        own = member(robot, parameters, k)
        one = cj.rollout(own, q[k], v[k], **options)
        assert np.abs(qs[k] - one[0]).max() < 1e-10
        assert np.abs(vs[k] - one[1]).max() < 1e-9
    assert np.abs(qs - cj.rollout(robot, q, v, **options)[0]).max() > 1e-9


@pytest.mark.native
def test_batch_axes_broadcast():
    """One state for all robots, or one robot for all states; forces too."""
    rng = np.random.default_rng(0)
    robot = cj.load("planar2r")
    masses = robot.parameters("masses") * rng.uniform(0.8, 1.2, size=(4, 1, 2))
    q, tau = rng.normal(size=(3, 2)), rng.normal(size=(5, 2))
    qs, _ = cj.rollout(robot, q, np.zeros(2), tau, dt=1e-2, parameters={"masses": masses})
    assert qs.shape == (4, 3, 6, 2)
    own = robot.with_parameters("masses", masses[2, 0])
    assert np.abs(qs[2] - cj.rollout(own, q, np.zeros(2), tau, dt=1e-2)[0]).max() < 1e-12


@pytest.mark.parametrize(
    ("native", "method"),
    [pytest.param(True, "euler", marks=pytest.mark.native), *((False, x) for x in ("euler", "rk4", "variational"))],
)
def test_constraints_are_those_of_each_robot(native, method):
    """The tips of arms of different lengths and masses stay on a line; a state off it is told with its number."""
    rng = np.random.default_rng(1)
    robot = cj.load("planar3r")
    parameters = {"lengths": perturbed(robot, "lengths", rng, 3), "masses": perturbed(robot, "masses", rng, 3)}
    held = Constraint.point(robot, "tip", "y", at=0.9)
    each = [member(robot, parameters, k) for k in range(3)]
    q = np.array([cj.constraints.assemble(x, held, [0.4, 0.9, -0.7]) for x in each])
    qs, _ = cj.rollout(robot, q, np.zeros(3), dt=5e-3, steps=4, constraints=held, method=method, parameters=parameters)
    for k, own in enumerate(each):
        one = cj.rollout(own, q[k], np.zeros(3), dt=5e-3, steps=4, constraints=held, method=method)
        assert np.abs(qs[k] - one[0]).max() < 1e-9
        assert np.abs(cj.pose(own, qs[k], "tip")[:, 1, 3] - 0.9).max() < 1e-9
    with pytest.raises(cj.CoadjointError, match="q is off the constraint in state 1"):
        cj.rollout(robot, q[0], np.zeros(3), dt=5e-3, steps=8, constraints=held, method=method, parameters=parameters)


@pytest.mark.parametrize("native", [pytest.param(True, marks=[pytest.mark.native, pytest.mark.slow]), False])
def test_inverse_kinematics_of_many_robots(native):
    rng = np.random.default_rng(2)
    robot = cj.load("ur5e")
    parameters = {"dh:tip": robot.parameters("dh:tip") + rng.uniform(-0.02, 0.02, size=(2, 24))}
    each = [member(robot, parameters, k) for k in range(2)]
    T = np.stack([cj.pose(x, x.random(rng), "tip") for x in each])
    found = cj.inverse_kinematics(robot, T, "tip", parameters=parameters)
    assert found.success.all()
    for k, own in enumerate(each):
        assert np.abs(cj.pose(own, found.q[k], "tip") - T[k]).max() < 1e-8
        assert np.abs(found.poses[k, 0] - T[k]).max() < 1e-8
    far = cj.inverse_kinematics(robot, [[9.0, 0.0, 0.0]], "tip", parameters={"dh:tip": parameters["dh:tip"]})
    assert not far.success.any()
    assert far.q.shape == (2, 6)


def test_errors_name_the_parameters():
    robot, zero = cj.load("planar2r"), np.zeros(2)
    run = lambda parameters, q=zero: cj.rollout(robot, q, zero, dt=0.1, steps=1, parameters=parameters)
    for parameters, message in (
        ({"masses": np.ones((5, 3))}, r"parameters\['masses'\] has shape \(5, 3\); expected \(..., 2\) for robot 'planar2r'"),
        ({"masses": [[1.0, 1.0], [1.0, -2.0]]}, r"parameters\['masses'\]\[1, 1\] is -2; .*\.m must not be negative"),
        ({"inertial": np.full((3, 20), np.nan)}, r"parameters\['inertial'\]\[0, 0\] is nan; .* is no finite number"),
        (
            {"inertias": -np.ones((3, 2, 10))},
            r"parameters\['inertias'\]\[0, 0, 0\] is -1; a number of the robot must not be negative",
        ),
        ({"mases": np.ones(2)}, "masses"),
        ({"masses": "heavy"}, r"parameters\['masses'\] is str"),
        (np.ones((5, 2)), "parameters is ndarray; expected a mapping"),
    ):
        with pytest.raises(cj.CoadjointError, match=message):
            run(parameters)
    with pytest.raises(cj.CoadjointError, match=r"do not broadcast: q \(3,\), v \(\), parameters\['masses'\] \(5,\)"):
        run({"masses": np.ones((5, 2))}, np.zeros((3, 2)))
    with pytest.raises(cj.CoadjointError, match=r"parameters\['lengths'\]"):
        cj.inverse_kinematics(robot, [1.0, 0.0, 0.0], "tip", parameters={"lengths": np.ones(7)})
