"""MJCF read by MuJoCo's compiler and written by us, against `mujoco` itself."""

from __future__ import annotations

import re
import sys
import warnings

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import MissingPackageError, ModelError, ModelWarning, ReadError
from coadjoint.interop import mujoco as interop
from coadjoint.lie import inertia, se3
from coadjoint.robot.mjcf import read_mjcf
from coadjoint.robot.mjcf_write import to_mjcf
from models import mjcf_files
from mujoco_helpers import assert_agrees, assert_close
from random_robots import random_robot

mujoco = pytest.importorskip("mujoco")


def read(path, **options) -> cj.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return read_mjcf(path, **options)


SUITE = mjcf_files()

GEOMS = """
<mujoco model="defaults">
  <compiler angle="degree" eulerseq="zyx"/>
  <option gravity="0.3 -1.2 -9.5"/>
  <default>
    <joint damping="0.2" armature="0.01" frictionloss="0.05"/>
    <geom density="700"/>
    <default class="arm">
      <joint axis="0 1 0.2" range="-90 120" limited="true"/>
      <geom type="capsule" size="0.03 0.15"/>
      <default class="slider"><joint type="slide" axis="1 2 3" ref="0.4" limited="false"/></default>
    </default>
  </default>
  <asset><mesh name="wedge" vertex="0 0 0  0.2 0 0  0 0.3 0  0 0 0.1  0.1 0.1 0.3"/></asset>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="base" pos="0.1 0.2 0.3" euler="20 30 40" childclass="arm">
      <joint name="turn" pos="0.1 0 -0.1"/>
      <geom fromto="0 0 0 0.1 0.2 0.3"/>
      <geom type="box" size="0.1 0.05 0.02" pos="0.1 0 0" euler="10 0 0"/>
      <site name="tool" pos="0.1 0.2 0.3" euler="5 6 7"/>
      <body name="carriage" pos="0 0.1 0.3">
        <joint class="slider" name="slide"/>
        <geom type="mesh" mesh="wedge"/>
        <body name="welded" pos="0.2 0 0" euler="0 90 0">
          <geom type="sphere" size="0.05" mass="0.7"/>
          <site name="eye" pos="0 0 1"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>"""

JOINTS = """
<mujoco model="joints">
  <compiler angle="radian"/>
  <worldbody>
    <body name="floating" pos="1 2 3" quat="1 2 3 4">
      <freejoint name="free"/>
      <inertial pos="0.1 0.2 0.3" mass="2" fullinertia="0.3 0.4 0.5 0.02 0.03 0.04"/>
      <body name="shoulder" pos="0 0 0.5" quat="1 0.1 0.2 0.3">
        <joint name="lift" type="slide" axis="0 1 1" ref="0.3"/>
        <joint name="hinge" axis="1 1 0" pos="0 0.2 0.1" ref="-0.7" range="-1 2" limited="true"/>
        <joint name="ball" type="ball" pos="0.1 -0.2 0.3" armature="0.02"/>
        <inertial pos="0 0.2 0.1" quat="1 2 0 1" mass="1.5" diaginertia="0.1 0.2 0.25"/>
        <body pos="0.3 0 0">
          <joint axis="0 0 1"/>
          <joint axis="1 0 0" ref="1.1" pos="0 0 0.2"/>
          <geom size="0.1" pos="0 0.2 0"/>
        </body>
      </body>
      <body name="ball body" pos="-0.4 0 0"><joint type="ball" name="b2"/><geom type="ellipsoid" size="0.1 0.2 0.3"/></body>
    </body>
    <body name="pendulum" pos="0 2 0">
      <joint name="p" pos="0 0 0.4" axis="0 1 0" ref="0.5"/>
      <geom type="box" size="0.1 0.2 0.3"/>
    </body>
    <body name="post" pos="3 0 0"><geom type="box" size="0.1 0.1 0.5"/><site name="top" pos="0 0 0.5"/></body>
    <body name="target" mocap="true" pos="0 0 2" quat="0 1 0 0"><site name="goal"/></body>
  </worldbody>
</mujoco>"""

DRIVES = """
<mujoco model="drives">
  <worldbody>
    <body name="a"><joint name="ja" armature="0.1" damping="0.3"/><geom type="box" size="0.1 0.2 0.3"/>
      <body name="b" pos="0 0 0.4"><joint name="jb" type="slide" axis="1 0 0"/><geom type="box" size="0.1 0.2 0.3"/></body>
    </body>
  </worldbody>
  <actuator><motor name="ma" joint="ja" gear="30" {drive}/></actuator>
</mujoco>"""


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name == "dog" else name for name in SUITE])
def test_suite_agrees_with_mujoco(name):
    """Kinematics, Jacobians, dynamics, energies, momentum at 100 states, and q in MuJoCo's order."""
    robot, model = (
        read(SUITE[name], fixed_joints="keep"),
        interop.compiled(lambda: mujoco.MjModel.from_xml_path(str(SUITE[name])))[0],
    )
    assert robot.nv == model.nv
    assert_agrees(robot, model)
    hinges = np.isin(model.jnt_type, (2, 3))
    q = robot.random(1)
    slices = [robot.q_slice(model.joint(j).name).start for j in np.flatnonzero(hinges)]
    assert_close(q[slices], interop.q_to_mujoco(robot, model, q)[model.jnt_qposadr[hinges]], "qpos")


@pytest.mark.parametrize("text", [GEOMS, JOINTS], ids=["geoms", "joints"])
def test_small_models_agree_with_mujoco(text, tmp_path):
    path = tmp_path / "model.xml"
    path.write_text(text)
    model = mujoco.MjModel.from_xml_string(text)
    kept, merged = read(path, fixed_joints="keep"), read(path)
    assert_agrees(kept, model)
    assert len(merged.links) < len(kept.links)
    rng = np.random.default_rng(3)
    q, (v, a) = kept.random(rng, 50), rng.normal(size=(2, 50, kept.nv))
    assert_close(cj.inverse_dynamics(merged, q, v, a), cj.inverse_dynamics(kept, q, v, a), "merged", 1e-13)
    for frame in kept.frame_names:
        assert_close(cj.pose(merged, q, frame), cj.pose(kept, q, frame), frame, 1e-13)


def test_what_becomes_of_joints(tmp_path):
    """Chains of massless links named after body and joint, the last with the inertia; kinds, limits and numbers of joints."""
    (tmp_path / "m.xml").write_text(JOINTS)
    robot = read(tmp_path / "m.xml")
    assert robot.link_names == (
        *("floating", "shoulder_lift", "shoulder_hinge", "shoulder", "body3_body3_joint", "body3", "ball body", "pendulum"),
    )
    assert robot.joint_names == ("free", "lift", "hinge", "ball", "body3_joint", "body3_joint_2", "b2", "p")
    assert [link.joint.kind for link in robot.links] == [
        "free",
        "prismatic",
        "revolute",
        "spherical",
        *["continuous"] * 2,
        "spherical",
        "continuous",
    ]
    massless = [not link.parameters.any() for link in robot.links]
    assert massless == [False, True, True, False, True, False, False, False]
    hinge, ball = robot.links[2].joint, robot.links[3].joint
    assert (hinge.lower, hinge.upper) == (-1, 2)
    assert np.isinf(robot.links[1].joint.upper).all()
    assert ball.armature.tolist() == [0.02] * 3
    assert set(robot.frame_names) >= {"world", "post", "top", "target", "goal"}
    assert robot.gravity.tolist() == [0, 0, -9.81]
    assert_close(cj.pose(robot, robot.neutral(), "goal")[:3, 3], [0, 0, 2], "goal")
    (tmp_path / "g.xml").write_text(GEOMS)
    arm = read(tmp_path / "g.xml")
    turn, slide = arm.links[0].joint, arm.links[1].joint
    assert np.allclose([turn.lower[0], turn.upper[0]], np.deg2rad([-90, 120]), rtol=1e-15)
    assert (slide.kind, slide.damping[0], slide.friction[0], slide.armature[0]) == ("prismatic", 0.2, 0.05, 0.01)
    assert arm.gravity.tolist() == [0.3, -1.2, -9.5]


def test_home_is_qpos0(tmp_path):
    """With `ref` the model's own pose is at q = ref, not at zero."""
    text = GEOMS
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    (tmp_path / "m.xml").write_text(text)
    robot = read(tmp_path / "m.xml")
    q = interop.q_from_mujoco(robot, model, model.qpos0)
    assert q[robot.q_slice("slide")] == 0.4
    assert_close(cj.pose(robot, q, "carriage")[:3, 3], data.body("carriage").xpos, "carriage", 1e-15)


def test_includes(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "arm.xml").write_text(
        '<mujoco><worldbody><body name="arm"><joint name="j" axis="0 1 0"/>'
        '<geom type="capsule" fromto="0 0 0 1 0 0" size="0.1"/></body></worldbody></mujoco>'
    )
    (tmp_path / "scene.xml").write_text('<mujoco model="scene"><option gravity="0 0 -1"/><include file="parts/arm.xml"/></mujoco>')
    robot = read(tmp_path / "scene.xml")
    assert (robot.name, robot.joint_names, robot.gravity[2]) == ("scene", ("j",), -1)
    mass = 1000 * np.pi * 0.01 * (1 + 4 / 3 * 0.1)
    assert_close(cj.gravity_force(robot, [0.0]), [-0.5 * mass], "torque of the capsule's weight", 1e-14)
    (tmp_path / "parts" / "arm.xml").unlink()
    with pytest.raises(ReadError, match=r"scene.xml: MuJoCo: .*parts/arm.xml.*line 1"):
        read_mjcf(tmp_path / "scene.xml")


@pytest.mark.skipif(not hasattr(mujoco.MjModel, "actuator_armature"), reason="this MuJoCo has no armature of actuators")
def test_inertia_of_drives_is_reflected_by_the_gear():
    model = mujoco.MjModel.from_xml_string(DRIVES.format(drive='armature="0.002" damping="0.001"'))
    with pytest.warns(ModelWarning, match="actuators"):
        robot = interop.from_mjmodel(model, fixed_joints="keep")
    assert_close(robot.armature, [0.1 + 900 * 0.002, 0], "armature", 1e-15)
    assert_close(robot.damping, [0.3 + 900 * 0.001, 0], "damping", 1e-15)
    assert_agrees(robot, model)


def test_base_free(tmp_path):
    """A welded root is set free; a model with its own free joint stays; anything else is refused by name."""
    text = GEOMS.replace('<joint name="turn" pos="0.1 0 -0.1"/>', "")
    (tmp_path / "m.xml").write_text(text)
    robot, fixed = read(tmp_path / "m.xml", base="free"), read(tmp_path / "m.xml")
    assert robot.nv == fixed.nv + 6
    assert robot.links[0].joint.kind == "free"
    q = fixed.random(0, 5)
    home = np.broadcast_to(robot.neutral()[:7], (5, 7))
    assert_close(cj.pose(robot, np.concatenate([home, q], -1), "eye"), cj.pose(fixed, q, "eye"), "eye", 1e-14)
    assert cj.total_mass(robot) > cj.total_mass(fixed)
    floating = '<body name="h"><freejoint name="f"/><geom size="1"/></body><body name="t" mocap="true"/>'
    (tmp_path / "h.xml").write_text(f"<mujoco><worldbody>{floating}</worldbody></mujoco>")
    assert read(tmp_path / "h.xml", base="free") == read(tmp_path / "h.xml")
    (tmp_path / "g.xml").write_text(GEOMS)
    with pytest.raises(ReadError, match=r"g.xml: base='free' .* joints carry 'base'"):
        read_mjcf(tmp_path / "g.xml", base="free")
    (tmp_path / "j.xml").write_text(JOINTS)
    with pytest.raises(ReadError, match=r"there are 3: 'floating', 'pendulum', 'post'"):
        read_mjcf(tmp_path / "j.xml", base="free")
    with pytest.raises(cj.CoadjointError, match="base is 'loose'"):
        read_mjcf(tmp_path / "j.xml", base="loose")


WARNED = """
<mujoco model="much">
  <option density="1.2" viscosity="1e-5"><flag {flag}/></option>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="a" gravcomp="1">
      <joint name="ja"/>
      <geom type="box" size="0.1 0.2 0.3"/>
      <site name="a" pos="0 0 1"/>
      <site name="s"/>
    </body>
    <body name="b"><joint name="jb" type="ball" range="0 30" limited="true" stiffness="3"/><geom type="box" size="0.1 0.2 0.3"/></body>
    <body name="c"><joint name="jc" actuatorfrcrange="-3 5" actuatorfrclimited="true"/><geom type="box" size="0.1 0.2 0.3"/></body>
    <body name="m" mocap="true"/>
  </worldbody>
  <tendon><spatial name="rope"><site site="a"/><site site="s"/></spatial></tendon>
  <equality><joint name="gear" joint1="ja" joint2="jc"/></equality>
  <actuator><motor name="push" joint="ja"/></actuator>
  <sensor><jointpos name="angle" joint="ja"/></sensor>
</mujoco>"""


def test_what_a_robot_does_not_hold_is_named():
    """Everything in `robot.warnings`; what changes the motion in one Python warning."""
    model = mujoco.MjModel.from_xml_string(WARNED.format(flag='limit="disable"'))
    with pytest.warns(ModelWarning) as record:
        robot = interop.from_mjmodel(model)
    assert len(record) == 1
    changing = (
        "springs .*'jb'",
        "tendons .*'rope'",
        "equality .*'gear'",
        "actuators .*'push'",
        "gravity compensation .*'a'",
        "fluid .*1.2",
    )
    listed = (
        "mocap .*'m'",
        "contacts of 4 geoms",
        "limits of ball joints .*'jb'",
        "differ by direction.*'jc'",
        "sensors .*'angle'",
        "disables limit",
        "sites .*'a'",
    )
    for pattern in changing:
        assert re.search(pattern, str(record[0].message)), pattern
    for pattern in listed:
        assert not re.search(pattern, str(record[0].message)), pattern
    for pattern in (*changing, *listed):
        assert any(re.search(pattern, text) for text in robot.warnings), pattern
    assert robot.links[2].joint.effort[0] == 5
    assert "a_site" in robot.frame_names
    off = interop.from_mjmodel(mujoco.MjModel.from_xml_string('<mujoco><option><flag gravity="disable"/></option></mujoco>'))
    assert off.gravity.tolist() == [0, 0, 0]
    assert off.n_links == 0
    assert not off.warnings


def test_free_joints_whose_armature_is_along_other_axes():
    """MuJoCo's is along the axes of the world: the same mass matrix, but our axes turn. Different along x, y, z: refused."""
    body = '<body name="a"><joint name="f" type="free" armature="0.2"/><geom type="box" size="1 2 3"/></body>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    with pytest.warns(ModelWarning, match=r"axes of armature .* of free joints .*'f'"):
        robot = interop.from_mjmodel(model)
    assert robot.armature.tolist() == [0.2] * 6
    model.dof_armature[0] = 0.3
    with pytest.raises(ModelError, match=r"joint 'f': armature is \[0.3, 0.2, 0.2\] along x, y, z"):
        interop.from_mjmodel(model)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mujoco>\n<worldbody>\n<body>\n<joint/></body></worldbody></mujoco>", r"mass and inertia of moving bodies .*line 3"),
        ("<mujoco>\n<worldbody>\n<bdoy/></worldbody></mujoco>", r"unrecognized element .*bdoy.*line 3"),
        ("<mujoco>\n<worldbody>", r"line 2: not XML: no element found inside <worldbody> of line 2"),
        ("<mujoco>\n<worldbody><body><geom size='nan'/></body></worldbody></mujoco>", r"MuJoCo: "),
        ("<mujoco><asset><mesh file='gone.stl'/></asset></mujoco>", r"gone.stl"),
        ("<mujoco><worldbody><body name='a'/><body name='a'/></worldbody></mujoco>", r"repeated name 'a'"),
        ("<robot name='x'/>", r"root element is <robot>; expected <mujoco>"),
        ("<!DOCTYPE x [<!ENTITY a 'aaa'>]>\n<mujoco model='&a;'/>", r"document type"),
        ("", r"empty"),
        ("not xml", r"not XML"),
    ],
)
def test_wrong_files(text, message, tmp_path):
    (tmp_path / "wrong.xml").write_text(text)
    with pytest.raises(ReadError, match=message) as error:
        read_mjcf(tmp_path / "wrong.xml")
    assert str(error.value).startswith(str(tmp_path / "wrong.xml"))
    assert "\n" not in str(error.value)


def test_missing_file_and_missing_mujoco(tmp_path, monkeypatch):
    with pytest.raises(ReadError, match="no such file"):
        read_mjcf(tmp_path / "gone.xml")
    (tmp_path / "m.xml").write_text("<mujoco/>")
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingPackageError, match="pip install mujoco"):
        read_mjcf(tmp_path / "m.xml")


def test_mujoco_writes_no_log(tmp_path, monkeypatch):
    """What MuJoCo would write into a file of the working folder stands in the warnings instead."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.xml").write_text(
        "<mujoco><compiler settotalmass='2'/><worldbody><body><joint/><geom size='1'/></body></worldbody></mujoco>"
    )
    robot = read(tmp_path / "m.xml")
    assert_close(cj.total_mass(robot), 2.0, "mass", 1e-15)
    assert [path.name for path in tmp_path.iterdir()] == ["m.xml"]


WRITABLE = ("revolute", "continuous", "prismatic", "universal", "spherical", "planar", "free", "fixed")


def uniform(robot: cj.Robot, rng: np.random.Generator) -> cj.Robot:
    """The robot with numbers that MuJoCo can have: one for each joint, no armature and friction along axes that turn."""
    for link in robot.links:
        kind, x, y = link.joint.kind, rng.uniform(0.01, 0.3), rng.uniform(0.01, 0.3)
        turns = {"planar": [x, 0, 0], "free": 0.0}.get(kind, x)
        robot = robot.with_joint(link.joint.name, armature=turns, friction=turns, damping=[x, y, y] if kind == "planar" else y)
    return robot


@pytest.mark.parametrize("seed", range(8))
def test_written_robots_agree_with_mujoco(seed):
    """All kinds of joints, any order, links on a moving free joint included."""
    rng = np.random.default_rng(seed)
    robot = uniform(random_robot(rng, 9, WRITABLE, shuffle=bool(seed % 2)), rng)
    model = interop.to_mjmodel(robot)
    assert_agrees(robot, model, states=30)
    q, v = robot.random(rng, 5), rng.normal(size=(5, robot.nv))
    drag = model.dof_damping * interop.v_to_mujoco(robot, model, q, v)
    drag = interop.force_from_mujoco(robot, model, interop.q_to_mujoco(robot, model, q), drag)
    assert_close(drag, robot.damping * v, "viscous force", 1e-14)


@pytest.mark.parametrize("name", [name for name in SUITE if name not in ("dog", "humanoid_CMU")])
def test_reading_what_was_written(name, tmp_path):
    """From MJCF to a robot to MJCF to a robot: names, limits, friction, frames, and every dynamics."""
    first = read(SUITE[name])
    cj.save(first, tmp_path / "again.xml")
    again = read(tmp_path / "again.xml")
    assert (again.link_names, again.joint_names, again.name) == (first.link_names, first.joint_names, first.name)
    assert set(again.frame_names) == set(first.frame_names)
    for key in ("lower", "upper", "effort_limit", "armature", "damping", "friction", "gravity"):
        assert np.array_equal(getattr(again, key), getattr(first, key)), key
    rng = np.random.default_rng(0)
    q, (v, a) = first.random(rng, 20), rng.normal(size=(2, 20, first.nv))
    assert_close(cj.inverse_dynamics(again, q, v, a), cj.inverse_dynamics(first, q, v, a), "inverse dynamics", 1e-12)
    between = {link.name for link in first.links if not link.parameters.any()}  # of these only the joints are written
    for frame in set(first.frame_names) - between:
        assert_close(cj.pose(again, q, frame), cj.pose(first, q, frame), frame, 1e-13)


def test_limits_are_written_and_read(tmp_path):
    robot = cj.Robot("arm", [cj.Link.solid("a", "base", cj.Joint.revolute(name="j", lower=-1, effort=5), mass=1, inertia=1.0)])
    robot = robot.with_link(
        cj.Link.solid("b", "a", cj.Joint.planar(name="p", lower=[-1, -2, -3], upper=[1, 2, 3]), mass=1, inertia=1.0)
    )
    cj.save(robot, tmp_path / "arm.xml")
    again = read(tmp_path / "arm.xml")
    assert again.lower.tolist() == [-1, -1, -2, -3]
    assert again.upper.tolist() == [np.inf, 1, 2, 3]
    assert again.effort_limit.tolist() == [5, np.inf, np.inf, np.inf]
    assert again.joint_names == ("j", "p_x", "p_y", "p_theta")


def test_names_that_xml_must_escape():
    robot = cj.Robot('a "<&> b', [cj.Link.solid("l<&>'", "base", cj.Joint.revolute(name='j"'), mass=1, inertia=1.0)])
    robot = robot.with_frame("ü µ", "l<&>'", np.eye(4))
    again = interop.from_mjmodel(interop.to_mjmodel(robot))
    assert (again.name, again.link_names, again.joint_names) == (robot.name, robot.link_names, robot.joint_names)
    assert "ü µ" in again.frame_names


def test_mimic_is_an_equality():
    """MuJoCo pulls a follower onto its leader; on the constraint its state is ours, and its forces count for the leader."""
    robot = random_robot(5, 6, ("revolute", "prismatic"), mimic=True)
    assert robot.mimics
    model = interop.to_mjmodel(robot)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    q, (v, tau) = robot.random(rng, 10), rng.normal(size=(2, 10, robot.nv))
    qpos, qvel = interop.q_to_mujoco(robot, model, q), interop.v_to_mujoco(robot, model, q, v)
    for x, y in zip(qpos, qvel, strict=True):
        data.qpos[:], data.qvel[:] = x, y
        mujoco.mj_forward(model, data)
        assert data.nefc >= model.neq == len(robot.mimics)
        assert np.max(np.abs(data.efc_pos[: model.neq])) < 1e-14
        assert np.max(np.abs(data.efc_vel[: model.neq])) < 1e-14
    assert_close(interop.q_from_mujoco(robot, model, qpos), q, "q", 1e-15)
    assert_close(interop.v_from_mujoco(robot, model, qpos, qvel), v, "v", 1e-15)
    qfrc = interop.force_to_mujoco(robot, model, q, tau)
    assert_close((qfrc * qvel).sum(-1), (tau * v).sum(-1), "power", 1e-14)
    assert_close(interop.force_from_mujoco(robot, model, qpos, qfrc), tau, "forces", 1e-14)


def solid(name, parent, joint, **options) -> cj.Link:
    return cj.Link.solid(name, parent, joint, **({"mass": 1.0, "inertia": 1.0} | options))


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ([solid("a", "base", cj.Joint.helical(pitch=0.1, name="screw"))], r"joint 'screw' is helical"),
        ([solid("a", "base", cj.Joint.revolute(), mass=0.0, inertia=0.0)], r"link 'a' moves and has no mass, and carries 0 links"),
        (
            [solid("a", "base", cj.Joint.revolute(), inertia=0.0)],
            r"link 'a' moves and has 1 kg and moments of inertia 0, 0, 0 kg m²",
        ),
        ([solid("a", "base", cj.Joint.revolute(), inertia=[1, 1, 3])], r"link 'a': .*triangle inequality"),
        ([solid("a", "base", cj.Joint.spherical(name="s", armature=[1, 2, 3]))], r"joint 's': armature is \[1.0, 2.0, 3.0\]"),
        (
            [cj.Link("a", "base", cj.Joint.revolute()), solid("b", "a", cj.Joint.free())],
            r"link 'a' moves and has no mass, and on one body",
        ),
        (
            [cj.Link("a", "base", cj.Joint.spherical(name="s")), solid("b", "a", cj.Joint.revolute())],
            r"link 'a' moves .*or lock joint 's'",
        ),
        (
            [
                *(cj.Link(f"a{k}", f"a{k - 1}" if k else "base", cj.Joint.revolute()) for k in range(6)),
                solid("b", "a5", cj.Joint.revolute()),
            ],
            r"link 'b' has 7 freedoms with the massless links before it; MuJoCo allows six",
        ),
        ([solid("a", "base", cj.Joint.free(name="f", armature=1.0))], r"joint 'f' has armature along the axes of its link"),
        ([solid("a", "base", cj.Joint.planar(name="p", friction=1.0))], r"joint 'p' has friction along the axes of its link"),
    ],
)
def test_what_mujoco_cannot_hold_is_refused(links, message, tmp_path):
    robot = cj.Robot("wrong", links)
    (tmp_path / "kept.xml").write_text("precious")
    with pytest.raises(ModelError, match=message):
        cj.save(robot, tmp_path / "kept.xml")
    assert (tmp_path / "kept.xml").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 1


def test_frames_on_massless_links_are_refused():
    robot = cj.Robot("wrong", [cj.Link("a", "base", cj.Joint.revolute()), solid("b", "a", cj.Joint.revolute())])
    assert "body" in to_mjcf(robot)
    with pytest.raises(ModelError, match="link 'a' moves and has no mass, but frames stand on it"):
        to_mjcf(robot.with_frame("f", "a", np.eye(4)))


def test_limits_that_mjcf_does_not_know_are_named():
    robot = cj.Robot("arm", [solid("a", "base", cj.Joint.revolute(name="j", velocity=3))])
    with pytest.warns(ModelWarning, match="velocity limits of 'j'"):
        to_mjcf(robot)


def test_limits_without_room_are_named():
    robot = cj.Robot("arm", [solid("a", "base", cj.Joint.revolute(name="j", lower=0, upper=0, effort=0))])
    with pytest.warns(ModelWarning, match="limits of 'j' that leave it no room"):
        again = interop.from_mjmodel(interop.to_mjmodel(robot))
    assert np.isinf(again.upper).all()


def test_the_name_that_mujoco_keeps_for_itself():
    robot = cj.Robot("arm", [solid("world", "base", cj.Joint.revolute(name="j"))])
    with pytest.warns(ModelWarning, match="the name of link 'world'"):
        assert interop.from_mjmodel(interop.to_mjmodel(robot)).link_names == ("world_2",)


def test_what_only_mujoco_refuses():
    """Something that MuJoCo alone knows: joints of one name, which for a robot have different ones."""
    links = [solid("a", "base", cj.Joint.universal(name="j")), solid("b", "a", cj.Joint.revolute(name="j_1"))]
    with pytest.raises(ModelError, match=r"robot 'arm': MuJoCo refuses it: .*repeated name 'j_1'"):
        interop.to_mjmodel(cj.Robot("arm", links))


def test_fixed_links_that_mujoco_refuses_are_joined():
    """Nothing changes but that they are sites: of a body and a fixed camera whose inertia no body can have, the sum can exist."""
    pose = se3.pose(np.eye(3), np.array([0.1, 0.2, 0.3]))
    links = [
        cj.Link("mover", "base", cj.Joint.spherical(name="j")),
        solid("body", "mover", cj.Joint.fixed(), placement=pose),
        solid("camera", "body", cj.Joint.fixed(), placement=pose, mass=0.1, inertia=[1e-3, 1e-3, 5e-3]),
        solid("arm", "camera", cj.Joint.revolute(name="k")),
        solid("plate", "arm", cj.Joint.fixed()),
    ]
    robot = cj.Robot("joined", links)
    model = interop.to_mjmodel(robot)
    assert interop.names_of(model, "body") == ["world", "mover", "arm", "plate"]
    assert interop.names_of(model, "site") == ["body", "camera"]
    assert_agrees(robot, model, states=20)


def test_numbers_are_written_with_all_digits():
    rng = np.random.default_rng(0)
    robot = random_robot(rng, 1, ("revolute",))
    model = interop.to_mjmodel(robot)
    link = robot.links[0]
    assert_close(model.body_mass[1], link.parameters[0], "mass", 1e-16)
    again = interop.from_mjmodel(model)
    assert_close(again.links[0].parameters, link.parameters, "parameters", 1e-14)
    assert_close(again.links[0].joint.screws, link.joint.screws, "screws", 1e-15)
    assert_close(again.placements, robot.placements, "placements", 1e-15)
    assert inertia.violations(link.parameters) == []
    assert_close(se3.inverse(again.placements[0]) @ robot.placements[0], np.eye(4), "placement", 1e-15)
