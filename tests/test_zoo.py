"""The bundled robots, against figures published elsewhere and against equations of motion written out here."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numpy import cos, sin

import coadjoint as cj
from coadjoint.errors import CoadjointError, ModelError, UnknownNameError
from coadjoint.lie import inertia, quaternion
from coadjoint.robot import zoo
from models import urdf_files

GRAVITY = 9.81


def states(robot, seed=0):
    """q, v, a of seven states, and their columns."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-3, 3, (7, robot.nq))
    v, a = rng.normal(size=(2, 7, robot.nv))
    return q, v, a


def assert_torques(robot, *tau, friction=0.0):
    """Inverse dynamics at `states` equals the columns given, and the mass matrix and forward dynamics belong to it."""
    q, v, a = states(robot)
    expected = np.stack(np.broadcast_arrays(*tau), axis=-1) + friction
    np.testing.assert_allclose(cj.inverse_dynamics(robot, q, v, a, friction=True), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(cj.forward_dynamics(robot, q, v, expected, friction=True), a, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", zoo.names())
def test_every_robot_can_exist_and_move(name):
    robot = zoo.make(name)
    assert robot.name == name.replace("_nr", "3r")
    assert cj.load(name) == robot
    for link in robot.links:
        assert inertia.violations(link.parameters) == []
    q = robot.random(0, 5)
    assert np.all(np.linalg.eigvalsh(cj.mass_matrix(robot, q)) > 1e-9)
    assert np.all(np.isfinite(cj.inverse_dynamics(robot, q, np.ones((5, robot.nv)), np.ones((5, robot.nv)))))
    assert robot.warnings == ()


@pytest.mark.parametrize("name", zoo.names())
def test_every_robot_says_where_it_comes_from(name):
    assert len(inspect.getdoc(zoo._MAKERS[name])) > 80


def test_panda_at_its_ready_pose():
    """Franka's own figures: flange at (0.306891, 0, 0.590282), quaternion (0.92388, -0.382683, 0, 0)."""
    robot = zoo.make("panda")
    q = np.array([0, -1, 0, -3, 0, 2, 1]) * np.pi / 4
    T = cj.pose(robot, q, "flange")
    np.testing.assert_allclose(T[:3, 3], [0.306891, 0, 0.590282], atol=5e-7)
    np.testing.assert_allclose(T[:3, :3], quaternion.to_matrix(np.array([0.92388, -0.382683, 0, 0])), atol=3e-6)
    np.testing.assert_array_equal(cj.pose(robot, q, "tip"), T)


def test_panda_against_its_urdf():
    """Kinematics, limits and names of another description of the same arm."""
    pin = pytest.importorskip("pinocchio")
    files = urdf_files()
    if not files:
        pytest.skip("example-robot-data is not installed")
    path = next(path for path in files.values() if path.name == "panda.urdf")
    robot, model = zoo.make("panda"), pin.buildModelFromUrdf(str(path))
    frame = model.getFrameId("panda_link8")
    work = model.createData()
    for q in robot.random(1, 20):
        pin.framesForwardKinematics(model, work, np.concatenate([q, np.zeros(model.nq - 7)]))
        np.testing.assert_allclose(cj.pose(robot, q, "flange"), work.oMf[frame].homogeneous, atol=1e-10)
    np.testing.assert_allclose(robot.lower, model.lowerPositionLimit[:7], atol=2e-4)
    np.testing.assert_allclose(robot.upper, model.upperPositionLimit[:7], atol=2e-4)
    np.testing.assert_allclose(robot.velocity_limit, model.velocityLimit[:7])
    np.testing.assert_allclose(robot.effort_limit, model.effortLimit[:7])


def test_panda_hangs_its_links_as_heavy_as_they_were_measured():
    """The total of the published masses, and a torque at the shoulder that the arm's drive can hold."""
    robot = zoo.make("panda")
    np.testing.assert_allclose(cj.total_mass(robot), 16.062132, atol=1e-9)
    assert np.all(np.abs(cj.gravity_force(robot, robot.random(2, 500))) < robot.effort_limit)


def test_ur5e_by_trigonometry():
    """The geometric solution of the UR arm: q2, q3, q4 turn about parallel axes, so that their sum is the wrist's angle."""
    robot = zoo.make("ur5e")
    q1, q2, q3, q4, q5, q6 = q = robot.random(3)
    d1, a2, a3, d4, d5, d6 = 0.1625, -0.425, -0.3922, 0.1333, 0.0997, 0.0996
    s234, c234 = sin(q2 + q3 + q4), cos(q2 + q3 + q4)
    reach = a2 * cos(q2) + a3 * cos(q2 + q3) + d5 * s234 - d6 * c234 * sin(q5)
    side = d4 + d6 * cos(q5)
    p = [
        cos(q1) * reach + sin(q1) * side,
        sin(q1) * reach - cos(q1) * side,
        d1 + a2 * sin(q2) + a3 * sin(q2 + q3) - d5 * c234 - d6 * s234 * sin(q5),
    ]
    T = cj.pose(robot, q, "tip")
    np.testing.assert_allclose(T[:3, 3], p, atol=1e-13)
    approach = [
        -cos(q1) * c234 * sin(q5) + sin(q1) * cos(q5),
        -sin(q1) * c234 * sin(q5) - cos(q1) * cos(q5),
        -s234 * sin(q5),
    ]
    np.testing.assert_allclose(T[:3, 2], approach, atol=1e-13)
    assert abs(T[2, 0] - (s234 * cos(q5) * cos(q6) + c234 * sin(q6))) < 1e-13


def test_ur5e_stretched_out():
    """At zero the arm lies along -x, as the maker's drawing shows."""
    T = cj.pose(zoo.make("ur5e"), np.zeros(6), "tip")
    np.testing.assert_allclose(T[:3, 3], [-0.425 - 0.3922, -0.1333 - 0.0996, 0.1625 - 0.0997], atol=1e-15)
    np.testing.assert_allclose(cj.total_mass(zoo.make("ur5e")), 17.7, atol=1e-9)


PUMA_NOMINAL = np.array([0, np.pi / 4, np.pi, 0, np.pi / 4, 0])


def test_puma_as_in_corkes_toolbox():
    """Gravity load and inertia of the PUMA 560 in its nominal pose, as Corke's toolbox and book print them."""
    robot = zoo.make("puma560")
    np.testing.assert_allclose(cj.gravity_force(robot, PUMA_NOMINAL), [0, 31.6399, 6.0351, 0, 0.0283, 0], atol=5e-5)
    M = [
        [3.6594, -0.4044, 0.1006, -0.0025, 0.0000, 0.0000],
        [-0.4044, 4.4137, 0.3509, 0.0000, 0.0024, 0.0000],
        [0.1006, 0.3509, 0.9378, 0.0000, 0.0015, 0.0000],
        [-0.0025, 0.0000, 0.0000, 0.1925, 0.0000, 0.0000],
        [0.0000, 0.0024, 0.0015, 0.0000, 0.1713, 0.0000],
        [0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.1941],
    ]
    np.testing.assert_allclose(cj.mass_matrix(robot, PUMA_NOMINAL), M, atol=5.1e-5)


def test_puma_at_another_pose():
    """The same at q = (1, 2, 3, 4, 5, 6)."""
    robot, q = zoo.make("puma560"), np.arange(1.0, 7.0)
    np.testing.assert_allclose(cj.gravity_force(robot, q), [0, -7.9683, 8.4581, -0.0197, 0.0027, 0], atol=5.1e-5)
    M = [
        [2.6152, -0.6550, -0.0363, 0.0001, 0.0010, 0.0000],
        [-0.6550, 4.3038, 0.2953, -0.0008, -0.0017, 0.0000],
        [-0.0363, 0.2953, 0.9366, -0.0009, -0.0006, 0.0000],
        [0.0001, -0.0008, -0.0009, 0.1926, 0.0000, 0.0000],
        [0.0010, -0.0017, -0.0006, 0.0000, 0.1713, 0.0000],
        [0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.1941],
    ]
    np.testing.assert_allclose(cj.mass_matrix(robot, q), M, atol=5.1e-5)


def test_puma_in_motion():
    """All joints at 1 rad/s: the toolbox's torques hold its friction, which differs from ours by the mean of both directions."""
    robot, one = zoo.make("puma560"), np.ones(6)
    G = np.array([62.6111, 107.815, 53.7063, 76.0364, 71.923, 76.686])
    B = np.array([1.48e-3, 0.817e-3, 1.38e-3, 71.2e-6, 82.6e-6, 36.7e-6])
    forth = np.array([0.395, 0.126, 0.132, 11.2e-3, 9.26e-3, 3.96e-3])
    back = np.array([0.435, 0.071, 0.105, 16.9e-3, 14.5e-3, 10.5e-3])
    tau = cj.inverse_dynamics(robot, PUMA_NOMINAL, one, 0 * one)
    np.testing.assert_allclose(tau + G**2 * B + G * forth, [29.1421, 56.5044, 16.3528, 1.2645, 1.1239, 0.5196], atol=5.1e-5)
    ours = cj.inverse_dynamics(robot, PUMA_NOMINAL, one, 0 * one, friction=True) - tau
    np.testing.assert_allclose(ours, G**2 * B + G * (forth + back) / 2, rtol=1e-12)
    both = cj.inverse_dynamics(robot, PUMA_NOMINAL, one, one) + G**2 * B + G * forth
    np.testing.assert_allclose(both, [32.4952, 60.8670, 17.7436, 1.4545, 1.2991, 0.7138], atol=1.1e-4)


def test_puma_link_3_stays_what_was_measured_at_the_joints():
    """The inertia moved across the elbow to make link 3 a possible body changes nothing at any joint."""
    robot = zoo.make("puma560")
    m2, c2, I2 = inertia.to_body(robot.inertias[1])
    m3, c3, I3 = inertia.to_body(robot.inertias[2])
    measured = robot.with_inertia("link2", mass=m2, com=c2, inertia=I2 + np.diag([0.004, 0.004, 0]))
    measured = measured.with_inertia("link3", mass=m3, com=c3, inertia=I3 - np.diag([0.004, 0, 0.004]))
    np.testing.assert_allclose(np.diag(inertia.to_body(measured.inertias[2])[2]), [0.066, 0.086, 0.0125], atol=1e-12)
    assert inertia.violations(measured.inertias[2])
    q, v, a = states(robot)
    np.testing.assert_allclose(cj.inverse_dynamics(measured, q, v, a), cj.inverse_dynamics(robot, q, v, a), rtol=1e-12, atol=1e-11)


def test_scara_written_out():
    robot = zoo.make("scara")
    (_, q2, _, _), (v1, v2, v3, v4), (a1, a2, a3, a4) = (x.T for x in states(robot))
    a, l, m1, m2, m3, I1, I2, I4 = 0.5, 0.25, 20.0, 20.0, 10.0, 4.0, 4.0, 1.0
    c = cos(q2)
    M22 = I2 + I4 + m2 * l**2 + m3 * a**2
    coupling = m2 * a * l + m3 * a * a
    M11 = I1 + m1 * l**2 + (m2 + m3) * a**2 + M22 + 2 * coupling * c
    M12 = M22 + coupling * c
    h = -coupling * sin(q2)
    tau = [
        (M11 + 0.01) * a1 + M12 * a2 - I4 * a4 + h * (2 * v1 * v2 + v2**2) + 5e-5 * v1,
        M12 * a1 + (M22 + 0.01) * a2 - I4 * a4 - h * v1**2 + 5e-5 * v2,
        (m3 + 12.5) * a3 - m3 * GRAVITY + 25 * v3,
        -I4 * (a1 + a2) + (I4 + 0.4) * a4 + 2 * v4,
    ]
    assert_torques(robot, *tau)
    T = cj.pose(robot, [0.3, 0.4, 0.2, 0.1], "tip")
    np.testing.assert_allclose(T[:3, 3], [0.5 * (cos(0.3) + cos(0.7)), 0.5 * (sin(0.3) + sin(0.7)), 0.8], atol=1e-15)


def planar_torques(robot, lengths, masses, coms, moments):
    (q1, q2), (v1, v2), (a1, a2) = (x.T for x in states(robot))
    (l1, _), (m1, m2), (c1, c2), (I1, I2) = lengths, masses, coms, moments
    M11 = I1 + I2 + m1 * c1**2 + m2 * (l1**2 + c2**2 + 2 * l1 * c2 * cos(q2))
    M12 = I2 + m2 * (c2**2 + l1 * c2 * cos(q2))
    h = -m2 * l1 * c2 * sin(q2)
    g2 = m2 * c2 * GRAVITY * cos(q1 + q2)
    return (
        M11 * a1 + M12 * a2 + h * (2 * v1 * v2 + v2**2) + (m1 * c1 + m2 * l1) * GRAVITY * cos(q1) + g2,
        M12 * a1 + (I2 + m2 * c2**2) * a2 - h * v1**2 + g2,
    )


def test_planar_2r_written_out():
    robot = zoo.make("planar2r")
    assert_torques(robot, *planar_torques(robot, (1, 1), (1, 1), (0.5, 0.5), (1 / 12, 1 / 12)))
    sizes = {"lengths": (0.7, 0.4), "masses": (2.0, 1.5), "coms": (0.3, 0.1), "inertias": (0.2, 0.05)}
    robot = zoo.make("planar2r", **sizes)
    assert_torques(robot, *planar_torques(robot, *sizes.values()))


def test_planar_nr_grows_from_planar_2r():
    q, v, a = states(zoo.make("planar2r"))
    two, plain = zoo.make("planar_nr", n=2), zoo.make("planar2r")
    np.testing.assert_array_equal(cj.inverse_dynamics(two, q, v, a), cj.inverse_dynamics(plain, q, v, a))
    five = zoo.make("planar_nr", n=5, lengths=(1, 2, 3, 4, 5), masses=0.5)
    assert five.nv == 5
    q = np.array([0.1, -0.4, 0.3, 1.0, 0.2])
    angles = np.cumsum(q)
    tip = [np.arange(1, 6) @ cos(angles), np.arange(1, 6) @ sin(angles), 0]
    np.testing.assert_allclose(cj.pose(five, q, "tip")[:3, 3], tip, atol=1e-14)
    # A chain whose outer joints are locked straight is a chain of two rods.
    locked = zoo.make("planar4r").lock({"joint2": 0, "joint4": 0})
    rods = zoo.make("planar2r", lengths=2, masses=2)
    q, v, a = states(rods)
    np.testing.assert_allclose(cj.inverse_dynamics(locked, q, v, a), cj.inverse_dynamics(rods, q, v, a), atol=1e-12)


def test_spherical_pendulum_written_out():
    robot = zoo.make("spherical_pendulum", length=0.7, mass=1.3)
    (x, y), (v1, v2), (a1, a2) = (x.T for x in states(robot))
    J, w = 1.3 * 0.7**2, 1.3 * GRAVITY * 0.7
    tau1 = J * (cos(y) ** 2 * a1 - 2 * sin(y) * cos(y) * v1 * v2) + w * cos(y) * sin(x)
    assert_torques(robot, tau1, J * (a2 + sin(y) * cos(y) * v1**2) + w * sin(y) * cos(x))
    tip = cj.pose(robot, [0.3, 0.5], "tip")[:3, 3]
    np.testing.assert_allclose(tip, [-0.7 * sin(0.5), 0.7 * cos(0.5) * sin(0.3), -0.7 * cos(0.5) * cos(0.3)], atol=1e-15)


def test_furuta_written_out():
    robot = zoo.make("furuta")
    (_, th), (v1, v2), (a1, a2) = (x.T for x in states(robot))
    m, r, l = 0.024, 0.085, 0.129 / 2
    arm, J = 0.095 * r**2 / 3, m * 0.129**2 / 3
    tau = (
        (arm + m * r**2 + J * sin(th) ** 2) * a1
        + m * r * l * cos(th) * a2
        + J * sin(2 * th) * v1 * v2
        - m * r * l * sin(th) * v2**2
        + 0.0015 * v1,
        m * r * l * cos(th) * a1 + J * a2 - J * sin(th) * cos(th) * v1**2 + m * GRAVITY * l * sin(th) + 0.0005 * v2,
    )
    assert_torques(robot, *tau)


@pytest.mark.parametrize("sizes", [{}, {"cart": 2.0, "pole": 0.3, "length": 0.8}])
def test_cartpole_written_out(sizes):
    robot = zoo.make("cartpole", **sizes)
    (_, th), (_, w), (a1, a2) = (x.T for x in states(robot))
    M, m, l = sizes.get("cart", 1.0), sizes.get("pole", 0.1), sizes.get("length", 1.0) / 2
    force = (M + m) * a1 + m * l * (cos(th) * a2 - sin(th) * w**2)
    assert_torques(robot, force, m * l * cos(th) * a1 + 4 / 3 * m * l**2 * a2 - m * GRAVITY * l * sin(th))


def test_floating_body_is_newtons_and_eulers():
    robot = zoo.make("floating_body", mass=2.0, sides=(0.1, 0.4, 0.5))
    rng = np.random.default_rng(5)
    q, v, a = robot.random(rng, 6), *rng.normal(size=(2, 6, 6))
    I = 2.0 / 12 * np.array([0.4**2 + 0.5**2, 0.1**2 + 0.5**2, 0.1**2 + 0.4**2])
    R = quaternion.to_matrix(q[:, 3:])
    w, u = v[:, :3], v[:, 3:]
    torque = I * a[:, :3] + np.cross(w, I * w)
    weight = np.einsum("nji,j->ni", R, [0, 0, -GRAVITY])
    force = 2.0 * (a[:, 3:] + np.cross(w, u) - weight)
    np.testing.assert_allclose(cj.inverse_dynamics(robot, q, v, a), np.hstack([torque, force]), rtol=1e-12, atol=1e-12)


def test_names_and_sizes_are_checked():
    with pytest.raises(UnknownNameError, match=r"no bundled robot is named 'pandas'\. Did you mean 'panda'\?"):
        zoo.make("pandas")
    with pytest.raises(CoadjointError, match=r"the bundled robot 'panda' has no size 'n'; it takes no sizes\."):
        zoo.make("panda", n=3)
    with pytest.raises(CoadjointError, match=r"'planar_nr' has no size 'length'; it takes n, lengths, masses\."):
        zoo.make("planar_nr", length=2)
    with pytest.raises(ModelError, match=r"n is 0; expected the number of links, 1 or more"):
        zoo.make("planar_nr", n=0)
    with pytest.raises(ModelError, match=r"lengths is \(1, 2\); expected one number or 3, one for each link"):
        zoo.make("planar_nr", lengths=(1, 2))
    assert not zoo.has("planar0r")
    assert zoo.has("planar12r")
    assert zoo.make("planar12r").nv == 12
