"""Models that are open in Pinocchio and MuJoCo: the same motion, and states there and back."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import CoadjointError, MissingPackageError, ModelError, ShapeError, UnknownNameError
from coadjoint.interop import mujoco as to_mj
from coadjoint.interop import pinocchio as to_pin
from coadjoint.lie import se3
from mujoco_helpers import assert_agrees, assert_close
from random_robots import ALL_KINDS, random_pose, random_robot

STATES = 100


def test_nothing_is_imported_early():
    import subprocess

    code = (
        "import sys, coadjoint as cj; cj.interop.mujoco, cj.interop.pinocchio; assert not {'mujoco', 'pinocchio'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'bullet'"):
        cj.interop.bullet  # noqa: B018


@pytest.mark.parametrize(("module", "call"), [("mujoco", to_mj.to_mjmodel), ("pinocchio", to_pin.to_pinocchio)])
def test_missing_packages(module, call, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingPackageError, match=f"pip install {module[:3]}"):
        call(random_robot(0, 2, ("revolute",)))


# --- Pinocchio


@pytest.fixture(scope="module")
def pin():
    return pytest.importorskip("pinocchio")


def symmetric(M):
    return np.triu(M) + np.triu(M, 1).T


def mass_by_columns(pin, model, data, x):
    """M by inverse dynamics, column after column: crba misses entries between branches where a joint follows another."""
    zero = np.zeros(model.nv)
    rest = pin.rnea(model, data, x, zero, zero).copy()
    return np.stack([pin.rnea(model, data, x, zero, e).copy() - rest for e in np.eye(model.nv)], axis=-1)


def assert_agrees_with_pinocchio(pin, robot: cj.Robot, model, states: int = STATES, frames: int = 8) -> None:
    """Kinematics, Jacobians, dynamics, energies and centroidal momentum, in Pinocchio's coordinates and back."""
    rng, data, mimic = np.random.default_rng(0), model.createData(), bool(robot.mimics)
    q, (v, a, tau) = robot.random(rng, states), rng.normal(size=(3, states, robot.nv))
    x = to_pin.q_to_pinocchio(robot, model, q)
    vx, ax, tx = (to_pin.v_to_pinocchio(robot, model, y) for y in (v, a, tau))
    P = to_pin.v_to_pinocchio(robot, model, np.eye(robot.nv)).T
    rows: dict[str, list] = {
        key: [] for key in ("inverse", "bias", "mass", "forward", "potential", "centroidal", "poses", "jacobians")
    }
    named = {f.name: k for k, f in enumerate(model.frames) if str(f.type) != "JOINT" and f.name in robot.frame_names}
    chosen = {name: named[name] for name in rng.permutation(sorted(named))[:frames]}
    for k in range(states):
        rows["inverse"].append(pin.rnea(model, data, x[k], vx[k], ax[k]).copy())
        rows["bias"].append(pin.nonLinearEffects(model, data, x[k], vx[k]).copy())
        rows["mass"].append(mass_by_columns(pin, model, data, x[k]) if mimic else symmetric(pin.crba(model, data, x[k]).copy()))
        if not mimic:  # Pinocchio has these for no robot with such joints
            rows["potential"].append(pin.computePotentialEnergy(model, data, x[k]))
            rows["forward"].append(pin.aba(model, data, x[k], vx[k], tx[k]).copy())
            pin.computeCentroidalMomentum(model, data, x[k], vx[k])
            rows["centroidal"].append(data.hg.vector.copy())
        pin.computeJointJacobians(model, data, x[k])
        pin.updateFramePlacements(model, data)
        rows["poses"].append([data.oMf[f].homogeneous for f in named.values()])
        rows["jacobians"].append([pin.getFrameJacobian(model, data, f, pin.LOCAL).copy() for f in chosen.values()])
    theirs = {key: np.array(value) for key, value in rows.items()}
    back = lambda y: to_pin.v_from_pinocchio(robot, model, y)
    M = P.T @ theirs["mass"] @ P
    assert_close(cj.inverse_dynamics(robot, q, v, a), back(theirs["inverse"]), "inverse dynamics")
    assert_close(cj.bias_force(robot, q, v), back(theirs["bias"]), "bias force")
    assert_close(cj.mass_matrix(robot, q), M, "mass matrix")
    assert_close(cj.kinetic_energy(robot, q, v), 0.5 * np.einsum("ni,nij,nj->n", v, M, v), "kinetic energy")
    if not mimic:
        assert_close(cj.potential_energy(robot, q), theirs["potential"], "potential energy")
        assert_close(cj.forward_dynamics(robot, q, v, tau), back(theirs["forward"]), "forward dynamics")
        assert_close(cj.centroidal_momentum(robot, q, v), to_pin.exchange(theirs["centroidal"]), "centroidal momentum")
    for k, name in enumerate(named):
        assert_close(cj.pose(robot, q, name), theirs["poses"][:, k], f"pose of {name}")
    for k, name in enumerate(chosen):
        assert_close(cj.jacobian(robot, q, name), to_pin.exchange(theirs["jacobians"][:, k], -2) @ P, f"Jacobian of {name}")


def assert_states_go_there_and_back(robot: cj.Robot, model) -> None:
    rng = np.random.default_rng(1)
    q, (v, tau) = robot.random(rng, (3, 2)), rng.normal(size=(2, 3, 2, robot.nv))
    x = to_pin.q_to_pinocchio(robot, model, q)
    assert x.shape == (3, 2, model.nq)
    assert_close(to_pin.q_from_pinocchio(robot, model, x), q, "q", 1e-15)
    vx, tx = to_pin.v_to_pinocchio(robot, model, v), to_pin.v_to_pinocchio(robot, model, tau)
    assert np.array_equal(to_pin.v_from_pinocchio(robot, model, vx), v)
    assert_close((tx * vx).sum(-1), (tau * v).sum(-1), "power", 1e-14)


def test_exchange():
    x = np.arange(6.0)
    assert to_pin.exchange(x).tolist() == [3, 4, 5, 0, 1, 2]
    J = np.random.default_rng(0).normal(size=(4, 6, 3))
    assert np.array_equal(to_pin.exchange(to_pin.exchange(J, -2), -2), J)
    with pytest.raises(ShapeError, match=r"\(4, 6, 3\); expected 6 along axis -1"):
        to_pin.exchange(J)


@pytest.mark.parametrize("name", ["Manipulator", "Humanoid", "HumanoidRandom"])
def test_pinocchio_samples(pin, name):
    model = getattr(pin, f"buildSampleModel{name}")()
    rng = np.random.default_rng(0)
    model.armature, model.damping = rng.uniform(0.01, 0.1, (2, model.nv))
    robot = to_pin.from_pinocchio(model)
    assert set(robot.joint_names) == set(model.names) - {"universe"}
    assert_agrees_with_pinocchio(pin, robot, model)
    again = to_pin.to_pinocchio(robot)
    assert_agrees_with_pinocchio(pin, robot, again, states=20)
    assert_states_go_there_and_back(robot, model)
    assert list(again.names) == list(model.names)
    assert [j.shortname() for j in again.joints] == [j.shortname() for j in model.joints]
    for key in ("armature", "damping", "lowerPositionLimit", "upperPositionLimit"):
        limited = np.abs(getattr(model, key)) < 1e300  # beyond is Pinocchio's way to say that there is none
        if key.endswith("Limit") and model.nq > model.nv:
            limited[3:7] = False  # a quaternion, which needs no limit
        assert np.array_equal(getattr(again, key)[limited], getattr(model, key)[limited]), key


AXIS = np.array([0.36, 0.48, 0.8])


def every_joint(pin):
    """A chain of every joint that Pinocchio has and a Robot can be, each with a body and a frame."""
    pin.seed(0)
    composite = pin.JointModelComposite()
    inner = pin.JointModelComposite()
    inner.addJoint(pin.JointModelRY(), pin.SE3.Random())
    inner.addJoint(pin.JointModelTranslation(), pin.SE3.Random())
    for shape in (pin.JointModelRX(), pin.JointModelSpherical(), inner, pin.JointModelRUBX()):
        composite.addJoint(shape, pin.SE3.Random())
    joints = {
        **{kind: getattr(pin, f"JointModel{kind}")() for kind in ("RX", "RY", "RZ", "PX", "PY", "PZ", "RUBX", "RUBY", "RUBZ")},
        "unaligned": pin.JointModelRevoluteUnaligned(AXIS),
        "unbounded": pin.JointModelRevoluteUnboundedUnaligned(),
        "prismatic": pin.JointModelPrismaticUnaligned(AXIS),
        "HX": pin.JointModelHX(0.1),
        "HY": pin.JointModelHY(-0.2),
        "HZ": pin.JointModelHZ(0.3),
        "helical": pin.JointModelHelicalUnaligned(AXIS, 0.15),
        "universal": pin.JointModelUniversal(np.array([0.0, 0.6, 0.8]), np.array([1.0, 0.0, 0.0])),
        "spherical": pin.JointModelSpherical(),
        "angles": pin.JointModelSphericalZYX(),
        "planar": pin.JointModelPlanar(),
        "translation": pin.JointModelTranslation(),
        "composite": composite,
        "free": pin.JointModelFreeFlyer(),
    }
    model = pin.Model()
    model.name = "every"
    model.gravity.linear = np.array([1.0, -2.0, -9.0])
    parent = 0
    for name, shape in joints.items():
        parent = model.addJoint(parent, shape, pin.SE3.Random(), name)
        model.appendBodyToJoint(parent, pin.Inertia.Random(), pin.SE3.Random())
        placement = pin.SE3.Identity() if len(name) % 2 else pin.SE3.Random()
        model.addFrame(pin.Frame(f"{name} body", parent, placement, pin.FrameType.BODY))
    model.addFrame(pin.Frame("tool", parent, pin.SE3.Random(), pin.FrameType.OP_FRAME))
    model.addFrame(pin.Frame("mount", 0, pin.SE3.Random(), pin.FrameType.FIXED_JOINT))
    model.armature = np.random.default_rng(0).uniform(0.01, 0.3, model.nv)
    return model


def test_every_joint_of_pinocchio(pin):
    model = every_joint(pin)
    robot = to_pin.from_pinocchio(model)
    assert robot.name == "every"
    assert robot.gravity.tolist() == [1, -2, -9]
    kinds = {link.joint.name: link.joint.kind for link in robot.links}
    assert [kinds[f"composite_{k + 1}"] for k in range(7)] == [
        "revolute",
        "spherical",
        "revolute",
        *["prismatic"] * 3,
        "continuous",
    ]
    assert [kinds[name] for name in ("HX", "helical", "RUBX", "unbounded", "universal")] == [
        *["helical"] * 2,
        *["continuous"] * 2,
        "universal",
    ]
    massless = [link.name for link in robot.links if not link.parameters.any()]
    assert massless[:2] == ["angles_angles_1", "angles_angles_2"]
    assert len(massless) == 2 + 2 + 6
    assert_agrees_with_pinocchio(pin, robot, model, frames=12)
    assert_states_go_there_and_back(robot, model)
    again = to_pin.to_pinocchio(robot)
    assert_agrees_with_pinocchio(pin, robot, again, states=20)
    assert_states_go_there_and_back(robot, again)


@pytest.mark.parametrize("seed", range(6))
def test_robots_in_pinocchio(pin, seed):
    """All kinds of joints of ours, in any order, with armature and friction of their own for every freedom."""
    robot = random_robot(seed, 12, ALL_KINDS, shuffle=bool(seed % 2), armature=True, damping=True, massless=seed > 3)
    model = to_pin.to_pinocchio(robot)
    merged = robot.merge_fixed()
    assert_agrees_with_pinocchio(pin, merged, model, states=30)
    assert_states_go_there_and_back(merged, model)
    assert_close(to_pin.v_from_pinocchio(merged, model, model.damping), merged.damping, "damping", 1e-15)
    again = to_pin.from_pinocchio(model)
    assert set(again.frame_names) >= {"tip", "mount"}
    rng = np.random.default_rng(0)
    q, (v, a) = merged.random(rng, 10), rng.normal(size=(2, 10, merged.nv))
    x = to_pin.q_from_pinocchio(again, model, to_pin.q_to_pinocchio(merged, model, q))
    y, z = (to_pin.v_from_pinocchio(again, model, to_pin.v_to_pinocchio(merged, model, u)) for u in (v, a))
    theirs = to_pin.v_to_pinocchio(again, model, cj.inverse_dynamics(again, x, y, z, friction=True))
    ours = to_pin.v_to_pinocchio(merged, model, cj.inverse_dynamics(merged, q, v, a, friction=True))
    assert_close(theirs, ours, "there and back", 1e-12)
    assert_close(cj.pose(again, x, "tip"), cj.pose(merged, q, "tip"), "tip", 1e-12)


URDF = """
<robot name="both">
  <link name="root"><inertial><mass value="2"/><inertia ixx="1" ixy="0.1" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <joint name="slide" type="prismatic">
    <parent link="wheel"/><child link="slider"/><origin xyz="0 0.1 0.2" rpy="0.1 0.2 0.3"/><axis xyz="0 1 1"/>
    <limit lower="-1" upper="2" effort="3" velocity="4"/><dynamics damping="0.1" friction="0.2"/>
  </joint>
  <joint name="spin" type="continuous">
    <parent link="root"/><child link="wheel"/><origin xyz="1 0 0"/><axis xyz="1 2 3"/>
  </joint>
  <joint name="mount" type="fixed"><parent link="wheel"/><child link="camera"/><origin xyz="0 0 1"/></joint>
  <link name="wheel"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0.2" iyy="1" iyz="0" izz="1"/></inertial></link>
  <link name="slider"><inertial>
    <origin xyz="1 0 0"/><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <link name="camera"><inertial><mass value="0.5"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
</robot>"""


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_one_file_read_by_both(pin, base):
    """A robot that we read and a model that Pinocchio reads need no conversion but that of states."""
    model = pin.buildModelFromXML(URDF, *([pin.JointModelFreeFlyer()] if base == "free" else []))
    robot = cj.load(URDF, base=base)
    assert_agrees_with_pinocchio(pin, robot, model)
    assert_states_go_there_and_back(robot, model)
    theirs = to_pin.from_pinocchio(model)
    for key in ("lower", "upper", "velocity", "effort", "damping", "friction"):
        for link in robot.links:  # the order of the joints differs
            joint = theirs.links[theirs.joint_index(link.joint.name)].joint
            assert np.array_equal(getattr(joint, key), getattr(link.joint, key)), (key, joint.name)


def test_joints_with_axes_of_their_own(pin):
    """Spherical, planar and free joints whose screws are not the axes of the link, and a universal joint whose axes do not meet."""
    robot = turned_robot(("spherical", "planar", "free", "spherical"))
    crooked = np.stack(
        [cj.Joint.revolute((1, 2, 3), (0.1, 0.2, 0.3)).screws[0], cj.Joint.revolute((0, 1, 1), (0.5, 0, 0)).screws[0]]
    )
    link = cj.Link.solid(
        "crooked", robot.links[-1].name, cj.Joint("universal", crooked, name="u"), mass=1.0, inertia=[0.2, 0.3, 0.4]
    )
    robot = robot.with_link(link)
    model = to_pin.to_pinocchio(robot)
    assert model.joints[model.getJointId("u")].shortname() == "JointModelComposite"
    assert_agrees_with_pinocchio(pin, robot, model, states=30)
    assert_states_go_there_and_back(robot, model)


def turned_robot(kinds) -> cj.Robot:
    """A chain whose spherical, planar and free joints have the screws of a frame that stands at random on the link."""
    rng = np.random.default_rng(7)
    links = []
    for k, kind in enumerate(kinds):
        plain = getattr(cj.Joint, kind)().screws
        screws = plain @ se3.Ad(random_pose(rng)).T
        joint = cj.Joint(kind, screws, name=f"j{k}")
        parent = f"l{k - 1}" if k else "base"
        links.append(
            cj.Link.solid(f"l{k}", parent, joint, random_pose(rng), mass=1 + k, com=(0.1, 0.2, k / 10), inertia=[0.2, 0.3, 0.4])
        )
    return cj.Robot("turned", links)


def test_mimic_joints_in_pinocchio(pin):
    """Followers of other kinds and axes than their leaders, described before and after them."""
    written = 0
    for seed in range(6):
        robot = random_robot(seed, 8, ("revolute", "prismatic", "continuous"), mimic=True, shuffle=bool(seed % 2), armature=True)
        above = {i: ancestors(robot, source) for i, (source, _, _) in robot.mimics.items()}
        if any(i in path for i, path in above.items()):
            with pytest.raises(ModelError, match="Pinocchio needs a joint before those that follow it"):
                to_pin.to_pinocchio(robot)
            continue
        written += 1
        model = to_pin.to_pinocchio(robot)
        assert model.nv == robot.nv
        assert_agrees_with_pinocchio(pin, robot, model, states=20)
        assert_states_go_there_and_back(robot, model)
        again = to_pin.from_pinocchio(model)
        assert {again.links[i].joint.name for i in again.mimics} == {robot.links[i].joint.name for i in robot.mimics}
        assert_agrees_with_pinocchio(pin, again, model, states=20)
    assert 3 <= written < 6  # both happen


def ancestors(robot: cj.Robot, i: int) -> list[int]:
    path = []
    while i >= 0:
        path.append(i)
        i = robot.parents[i]
    return path


def test_helical_followers_are_not_given_to_pinocchio(pin):
    """Pinocchio's mass matrix of one is not that of its own velocities; when this fails, it may be given."""
    leader = cj.Link.solid("a", "base", cj.Joint.revolute((0, 1, 0), name="leader"), mass=1, com=(0.1, 0.2, 0.3), inertia=0.1)
    joint = cj.Joint.helical((0, 0, 1), 0.3, name="follower", mimic=cj.Mimic("leader", 2.0, 0.5))
    robot = cj.Robot("screw", [leader, cj.Link.solid("b", "a", joint, mass=2, com=(0.1, 0.2, 0.3), inertia=0.1)])
    with pytest.raises(ModelError, match="'follower' is helical and follows another"):
        to_pin.to_pinocchio(robot)


def test_order_is_depth_first(pin):
    """Pinocchio's mass matrix is wrong for other orders, so joints go there depth-first, and coordinates move."""
    hinge = lambda name: cj.Joint.revolute((0, 1, 0), name=name)
    parts = [("a", "base"), ("b", "base"), ("aa", "a"), ("bb", "b"), ("aaa", "aa")]
    links = [
        cj.Link.solid(n, p, hinge(f"j{n}"), random_pose(np.random.default_rng(k)), mass=1, inertia=0.1)
        for k, (n, p) in enumerate(parts)
    ]
    robot = cj.Robot("tree", links)
    model = to_pin.to_pinocchio(robot)
    assert list(model.names) == ["universe", "ja", "jaa", "jaaa", "jb", "jbb"]
    assert to_pin.v_to_pinocchio(robot, model, [1.0, 2.0, 3.0, 4.0, 5.0]).tolist() == [1, 3, 5, 2, 4]
    assert_agrees_with_pinocchio(pin, robot, model)


def test_limits_in_pinocchio(pin):
    joints = [
        cj.Joint.revolute(name="r", lower=-1, upper=2, velocity=3, effort=4, friction=0.1),
        cj.Joint.planar(name="p", lower=[-1, -2, -np.inf], upper=[1, 2, np.inf], velocity=[1, 2, 3], effort=[4, 5, 6]),
        cj.Joint.free(name="f", velocity=[1, 2, 3, 4, 5, 6], friction=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
    ]
    links = [cj.Link.solid(f"l{k}", f"l{k - 1}" if k else "base", joint, mass=1, inertia=1.0) for k, joint in enumerate(joints)]
    robot = cj.Robot("limited", links)
    model = to_pin.to_pinocchio(robot)
    again = to_pin.from_pinocchio(model)
    for key in ("lower", "upper", "velocity_limit", "effort_limit", "friction"):
        assert np.array_equal(getattr(again, key), getattr(robot, key)), key
    assert again.warnings == ()
    model.lowerPositionLimit[0] = -7
    assert to_pin.from_pinocchio(model).lower[0] == -7
    if hasattr(model, "lowerEffortLimit"):
        model.lowerEffortLimit[0] = -1
        assert "Effort" in to_pin.from_pinocchio(model).warnings[0]


def test_what_goes_wrong_with_pinocchio(pin):
    with pytest.raises(CoadjointError, match=r"the model is 'arm.urdf'; expected a pinocchio.Model. Files are read by"):
        to_pin.from_pinocchio("arm.urdf")
    model = pin.buildSampleModelManipulator()
    robot = to_pin.from_pinocchio(model)
    with pytest.raises(ShapeError, match=r"q has shape \(5,\); expected \(..., 6\) for robot"):
        to_pin.q_to_pinocchio(robot, model, np.zeros(5))
    with pytest.raises(ShapeError, match=r"v has shape \(7,\); expected \(..., 6\) for the model"):
        to_pin.v_from_pinocchio(robot, model, np.zeros(7))
    with pytest.raises(UnknownNameError, match=robot.joint_names[0]):
        to_pin.v_to_pinocchio(robot.lock({robot.joint_names[0]: 0.0}), model, np.zeros(5))
    larger = robot.with_link(cj.Link("more", robot.link_names[-1], cj.Joint.revolute(name="more")))
    with pytest.raises(ModelError, match="has 7 freedoms, but the model's joints are 6"):
        to_pin.v_to_pinocchio(larger, model, np.zeros(7))
    if hasattr(pin, "JointModelEllipsoid"):
        odd = pin.Model()
        odd.addJoint(0, pin.JointModelEllipsoid(), pin.SE3.Identity(), "egg")
        with pytest.raises(ModelError, match="joint 'egg' is of Pinocchio's type Ellipsoid"):
            to_pin.from_pinocchio(odd)
    named = pin.Model()
    named.addJoint(0, pin.JointModelRX(), pin.SE3.Identity(), "j")
    for kind in (pin.FrameType.BODY, pin.FrameType.OP_FRAME):
        named.addFrame(pin.Frame("same", 1, pin.SE3.Random(), kind))
    robot = to_pin.from_pinocchio(named)
    assert robot.frame_names == ("universe", "j", "same", "same_2")
    assert "'same_2'" in robot.warnings[0]
    named.appendBodyToJoint(0, pin.Inertia.Random(), pin.SE3.Identity())
    assert "fixed to 'universe'" in to_pin.from_pinocchio(named).warnings[0]


# --- MuJoCo


@pytest.fixture(scope="module")
def mujoco():
    return pytest.importorskip("mujoco")


@pytest.mark.parametrize("kinds", [("spherical", "planar", "spherical"), ("free", "spherical"), ("planar", "free", "planar")])
def test_joints_with_axes_of_their_own_in_mujoco(mujoco, kinds):
    robot = turned_robot(kinds)
    assert_agrees(robot, to_mj.to_mjmodel(robot), states=30)


def mujoco_robot() -> cj.Robot:
    return random_robot(11, 9, ("free", "spherical", "planar", "revolute", "universal", "prismatic"), shuffle=True)


def test_states_go_to_mujoco_and_back(mujoco):
    """Inverses of each other for any batch shape, v and qvel with the same power, and a as the derivative of v."""
    robot = mujoco_robot()
    model = to_mj.to_mjmodel(robot)
    rng = np.random.default_rng(0)
    q, (v, a, tau) = robot.random(rng, (4, 3)), rng.normal(size=(3, 4, 3, robot.nv))
    qpos, qvel = to_mj.q_to_mujoco(robot, model, q), to_mj.v_to_mujoco(robot, model, q, v)
    qacc, qfrc = to_mj.a_to_mujoco(robot, model, q, v, a), to_mj.force_to_mujoco(robot, model, q, tau)
    assert qpos.shape == (4, 3, model.nq)
    assert qvel.shape == qacc.shape == qfrc.shape == (4, 3, model.nv)
    difference = robot.difference(q, to_mj.q_from_mujoco(robot, model, qpos))
    assert np.max(np.abs(difference)) < 1e-14
    assert_close(to_mj.v_from_mujoco(robot, model, qpos, qvel), v, "v", 1e-14)
    assert_close(to_mj.a_from_mujoco(robot, model, qpos, qvel, qacc), a, "a", 1e-13)
    assert_close(to_mj.force_from_mujoco(robot, model, qpos, qfrc), tau, "tau", 1e-14)
    assert_close((qfrc * qvel).sum(-1), (tau * v).sum(-1), "power", 1e-13)
    G = to_mj.velocity_map(robot, model, q)
    assert_close((G @ v[..., None])[..., 0], qvel, "velocity map", 1e-14)
    single = to_mj.a_to_mujoco(robot, model, q[0, 0], v[0, 0], a[0, 0])
    assert_close(single, qacc[0, 0], "one state", 1e-14)
    assert_close(
        to_mj.v_to_mujoco(robot, model, q[0, 0], v),
        to_mj.v_to_mujoco(robot, model, np.broadcast_to(q[0, 0], q.shape), v),
        "broadcast",
    )


def test_velocity_is_the_rate_of_mujocos_coordinates(mujoco):
    """mj_differentiatePos of two near configurations is qvel, and the change of qvel along a motion is qacc."""
    robot = mujoco_robot()
    model = to_mj.to_mjmodel(robot)
    rng = np.random.default_rng(2)
    q, (v, a) = robot.random(rng), rng.normal(size=(2, robot.nv))
    h = 1e-5
    at = lambda t: (robot.integrate(q, t * v + 0.5 * t * t * a), v + t * a)  # exact to second order in t
    ahead, behind = (to_mj.q_to_mujoco(robot, model, at(t)[0]) for t in (h, -h))
    rate = np.empty(model.nv)
    mujoco.mj_differentiatePos(model, rate, 2 * h, behind, ahead)
    assert_close(rate, to_mj.v_to_mujoco(robot, model, q, v), "qvel", 1e-8)
    ahead, behind = (to_mj.v_to_mujoco(robot, model, *at(t)) for t in (h, -h))
    assert_close((ahead - behind) / (2 * h), to_mj.a_to_mujoco(robot, model, q, v, a), "qacc", 1e-8)


def test_simulation_steps_agree(mujoco):
    """A model that MuJoCo moves by itself: after many small steps our state from its state has the same energy and momentum."""
    robot = random_robot(3, 4, ("free", "spherical", "revolute"), tree=False)
    model = to_mj.to_mjmodel(robot)
    model.opt.timestep = 1e-3
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    data.qpos[:], data.qvel[:] = to_mj.q_to_mujoco(robot, model, q), to_mj.v_to_mujoco(robot, model, q, v)
    energy = cj.kinetic_energy(robot, q, v) + cj.potential_energy(robot, q)
    for _ in range(200):
        mujoco.mj_step(model, data)
    q1, v1 = to_mj.q_from_mujoco(robot, model, data.qpos), to_mj.v_from_mujoco(robot, model, data.qpos, data.qvel)
    assert np.max(np.abs(robot.difference(q, q1))) > 0.1
    assert_close(cj.kinetic_energy(robot, q1, v1) + cj.potential_energy(robot, q1), energy, "energy", 1e-8)


def test_what_goes_wrong_with_mujoco(mujoco):
    with pytest.raises(CoadjointError, match=r"the model is 'arm.xml'; expected a mujoco.MjModel. Files are read by"):
        to_mj.from_mjmodel("arm.xml")
    robot = mujoco_robot()
    model = to_mj.to_mjmodel(robot)
    with pytest.raises(ShapeError, match=r"q has shape \(3,\)"):
        to_mj.q_to_mujoco(robot, model, np.zeros(3))
    with pytest.raises(ShapeError, match=r"qvel has shape \(3,\); expected \(..., \d+\) for the model"):
        to_mj.v_from_mujoco(robot, model, model.qpos0, np.zeros(3))
    joint = next(link.joint.name for link in robot.links if link.joint.kind == "revolute")
    with pytest.raises(ModelError, match=f"the model has joints that robot 'random' has not: {joint}"):
        to_mj.q_from_mujoco(robot.lock({joint: 0.0}), model, model.qpos0)
    with pytest.raises(UnknownNameError, match="no joint of the model is named 'more'"):
        to_mj.q_from_mujoco(robot.with_link(cj.Link("more", robot.base, cj.Joint.revolute(name="more"))), model, model.qpos0)
