"""Regressors times parameters are what they are regressors of."""

import numpy as np
import pytest

import coadjoint as cj
from laws import relative, state
from random_robots import random_robot


@pytest.mark.parametrize("shape", [(), (1,), (3, 1, 2)])
@pytest.mark.parametrize("seed", range(4))
def test_products_with_the_parameters(seed, shape):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 9, mimic=seed % 2 == 1, damping=True, massless=seed == 2)
    q, v, a = state(robot, rng, shape)
    p = robot.inertial_parameters
    assert cj.regressor(robot, q, v, a).shape == (*shape, robot.nv, 10 * robot.n_links)
    for x, y in (
        (cj.regressor(robot, q, v, a) @ p, cj.inverse_dynamics(robot, q, v, a)),
        (cj.kinetic_energy_regressor(robot, q, v) @ p, cj.kinetic_energy(robot, q, v)),
        (cj.potential_energy_regressor(robot, q) @ p, cj.potential_energy(robot, q)),
        (cj.momentum_regressor(robot, q, v) @ p, cj.momentum(robot, q, v)),
    ):
        assert x.shape == y.shape
        assert relative(x, y) < 1e-13


@pytest.mark.parametrize("seed", range(3))
def test_linear_in_the_parameters(seed):
    """Other parameters, which need not be those of bodies, with the same regressor."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 7)
    q, v, a = state(robot, rng)
    p = rng.normal(size=10 * robot.n_links)
    other = robot.with_numbers(inertias=p.reshape(-1, 10))
    assert relative(cj.regressor(robot, q, v, a) @ p, cj.inverse_dynamics(other, q, v, a)) < 1e-13
    assert relative(cj.momentum_regressor(robot, q, v) @ p, cj.momentum(other, q, v)) < 1e-13


@pytest.mark.parametrize("mimic", [False, True])
def test_drives(mimic):
    rng = np.random.default_rng(4)
    robot = random_robot(rng, 8, mimic=mimic, armature=True, damping=True)
    q, v, a = state(robot, rng, (5,))
    drives = cj.drive_regressor(robot, v, a) @ robot.parameters("drives")
    whole = cj.inverse_dynamics(robot, q, v, a, friction=True)
    assert relative(cj.regressor(robot, q, v, a) @ robot.inertial_parameters + drives, whole) < 1e-13


def test_the_law_of_lagrange():
    """d/dt ∂L/∂v - ∂L/∂q of the energies' regressors is that of the torque, parameter by parameter."""
    rng = np.random.default_rng(5)
    robot = random_robot(rng, 4, ("revolute", "prismatic", "helical"), tree=False)
    q, v, a = state(robot, rng)
    energy = lambda robot, q, v: cj.kinetic_energy_regressor(robot, q, v) - cj.potential_energy_regressor(robot, q)
    by_v = cj.differential(energy, "v")
    rate = np.einsum("pij,j->pi", cj.derivative(by_v, robot, "q")(q, v), v) + np.einsum(
        "pij,j->pi", cj.derivative(by_v, robot, "v")(q, v), a
    )
    assert relative(rate - cj.derivative(energy, robot, "q")(q, v), cj.regressor(robot, q, v, a).T) < 1e-12


def test_robots_that_do_not_move():
    nothing, x = cj.Robot("nothing", []), np.zeros(0)
    assert cj.regressor(nothing, x, x, x).shape == (0, 0)
    assert cj.kinetic_energy_regressor(nothing, x, x).shape == (0,)
    assert cj.momentum_regressor(nothing, x, x).shape == (6, 0)
    assert cj.drive_regressor(nothing, x, x).shape == (0, 0)
    still = random_robot(0, 2, ("fixed",))
    assert cj.regressor(still, x, x, x).shape == (0, 20)
    assert relative(cj.potential_energy_regressor(still, x) @ still.inertial_parameters, cj.potential_energy(still, x)) < 1e-13


@pytest.mark.native
def test_native_equals_as_written(monkeypatch):
    rng = np.random.default_rng(6)
    robot = random_robot(rng, 6, mimic=True)
    q, v, a = state(robot, rng, (7,))
    calls = {
        "regressor": (q, v, a),
        "kinetic_energy_regressor": (q, v),
        "potential_energy_regressor": (q,),
        "momentum_regressor": (q, v),
        "drive_regressor": (v, a),
    }
    native = {name: getattr(cj, name)(robot, *args) for name, args in calls.items()}
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    robot = cj.Robot(robot.name, robot.links, robot.frames, robot.gravity)
    for name, args in calls.items():
        assert relative(native[name], getattr(cj, name)(robot, *args)) < 1e-13, name


def test_pinocchios_regressor():
    peers = pytest.importorskip("pinocchio_helpers")
    order = np.array([0, 1, 2, 3, 4, 5, 7, 6, 8, 9])  # Ixx Ixy Iyy Ixz Iyz Izz there
    chosen = [name for name in peers.FILES if any(part in name for part in ("panda.urdf", "ur5_robot", "talos_left", "romeo.urdf"))]
    assert chosen
    for name in chosen:
        peer = peers.Peer.of(peers.FILES[name], "fixed")
        robot = peer.robot.merge_fixed()
        q, v, a = state(robot, np.random.default_rng(1), (1,))
        theirs = peers.pin.computeJointTorqueRegressor(peer.model, peer.data, peer.q(q)[0], peer.P @ v[0], peer.P @ a[0])
        ours = cj.regressor(robot, q[0], v[0], a[0])
        for i, joint in enumerate(robot.joint_names):
            columns = 10 * (peer.model.getJointId(joint) - 1) + order
            assert np.abs(ours[:, 10 * i : 10 * i + 10] - peer.P.T @ theirs[:, columns]).max() < 1e-11 * np.abs(theirs).max(), (
                name,
                joint,
            )
