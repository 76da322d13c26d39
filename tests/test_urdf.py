"""Reading and writing URDF."""

import os
import re
from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import coadjoint as cj
from coadjoint.errors import CoadjointError, ModelError, ModelWarning, ReadError
from coadjoint.robot import xml
from coadjoint.robot.urdf import origin, read_urdf
from coadjoint.robot.urdf_write import roll_pitch_yaw, to_urdf, unsaid
from random_robots import random_robot

BODY = '<inertial><mass value="2"/><inertia ixx="3" ixy="0" ixz="0" iyy="4" iyz="0" izz="5"/></inertial>'


def robot_text(*joints: str, links: Iterable[str] = "abcdef", extra: str = "") -> str:
    """A robot with links named by letters, each with a body, one element a line: the links from line 2 on, then the joints."""
    lines = ['<robot name="r">', *(f'<link name="{x}">{BODY}</link>' for x in links), *joints, extra, "</robot>"]
    return "\n".join(lines)


def joint(kind: str = "continuous", parent: str = "a", child: str = "b", inside: str = "", name: str | None = None) -> str:
    name = f"{parent}{child}" if name is None else name
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>'


# --- what is read


def test_every_joint_type() -> None:
    types = ["revolute", "continuous", "prismatic", "fixed", "floating", "planar", "spherical", "ball"]
    links = "abcdefghi"
    robot = cj.load(robot_text(*(joint(t, x, y) for t, (x, y) in zip(types, pairwise(links))), links=links), fixed_joints="keep")
    kinds = [link.joint.kind for link in robot.links]
    assert kinds == ["revolute", "continuous", "prismatic", "fixed", "free", "planar", "spherical", "spherical"]


def test_the_axis() -> None:
    text = robot_text(
        joint(),
        joint("prismatic", "b", "c", '<axis xyz="0 3 -4"/>'),
        joint("planar", "c", "d", '<axis xyz="0 0 2"/>'),
        links="abcd",
    )
    robot = cj.load(text)
    assert robot.screws[0].tolist() == [1, 0, 0, 0, 0, 0]  # by default along x
    assert robot.screws[1].tolist() == pytest.approx([0, 0, 0, 0, 0.6, -0.8])
    assert robot.screws[2:].tolist() == [[0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0]]


@given(st.tuples(*[st.floats(-10, 10)] * 3), st.tuples(*[st.floats(-10, 10)] * 3))
def test_origins(xyz: tuple, rpy: tuple) -> None:
    text = f'<origin xyz="{" ".join(map(repr, xyz))}" rpy="{" ".join(map(repr, rpy))}"/>'
    T = origin(xml.parse(text, "the text"))
    assert np.allclose(T[:3, :3], Rotation.from_euler("xyz", rpy).as_matrix(), rtol=0, atol=1e-15)
    assert T[:3, 3].tolist() == list(xyz)


def test_inertial_origins() -> None:
    R = Rotation.from_euler("xyz", [0.3, -0.7, 1.9]).as_matrix()
    c = np.array([0.1, -0.2, 0.3])
    inside = BODY.replace("<mass", '<origin xyz="0.1 -0.2 0.3" rpy="0.3 -0.7 1.9"/><mass')
    robot = cj.load(f'<robot name="r"><link name="a"/><link name="b">{inside}</link>{joint()}</robot>')
    I = R @ np.diag([3.0, 4.0, 5.0]) @ R.T + 2.0 * (c @ c * np.eye(3) - np.outer(c, c))
    assert robot.inertias[0] == pytest.approx([2.0, *(2.0 * c), *I[np.triu_indices(3)]], rel=1e-14)


def test_numbers_of_a_joint() -> None:
    inside = '<limit lower="-1" upper="2.5e0" velocity="3" effort=".5"/><dynamics damping="0.1" friction="+0.2"/>'
    read = cj.load(robot_text(joint("revolute", inside=inside), links="ab")).links[0].joint
    numbers = [getattr(read, key)[0] for key in ("lower", "upper", "velocity", "effort", "damping", "friction", "armature")]
    assert numbers == [-1.0, 2.5, 3.0, 0.5, 0.1, 0.2, 0.0]
    partial = cj.load(robot_text(joint("prismatic", inside='<limit velocity="3" effort="inf"/>'), links="ab")).links[0].joint
    assert [partial.lower[0], partial.upper[0], partial.effort[0]] == [0.0, 0.0, np.inf]  # as the specification says
    free = cj.load(robot_text(joint("continuous", inside='<limit lower="-1" upper="1" velocity="3" effort="1"/>'), links="ab"))
    assert free.upper[0] == np.inf
    assert free.velocity_limit[0] == 3.0


def test_elements_in_any_order() -> None:
    joints = [
        joint("revolute", "a", "b", '<limit velocity="1" effort="1"/>'),
        joint("prismatic", "b", "c", '<limit velocity="1" effort="1"/>'),
    ]
    links = [f'<link name="{x}">{BODY}</link>' for x in "abc"]
    one = cj.load(f'<robot name="r">{"".join(links + joints)}</robot>')
    other = cj.load(f'<robot name="r">{"".join([joints[0], links[2], joints[1], links[0], links[1]])}</robot>')
    assert one == other
    children_first = cj.load(f'<robot name="r">{"".join([*reversed(joints), *links])}</robot>')
    assert children_first.joint_names == ("bc", "ab")  # the order of the description is kept
    q = np.array([0.3, -0.4])
    assert np.allclose(cj.mass_matrix(one, q), cj.mass_matrix(children_first, q[::-1])[::-1, ::-1], rtol=0, atol=1e-15)


def test_mimic() -> None:
    limit = '<limit velocity="1" effort="1" lower="-1" upper="1"/>'
    robot = cj.load(
        robot_text(
            joint("revolute", "a", "b", limit + '<mimic joint="bc" multiplier="-2" offset="0.5"/>'),
            joint("prismatic", "b", "c", limit + '<mimic joint="cd"/>'),
            joint("revolute", "c", "d", limit),
            links="abcd",
        )
    )
    assert robot.nq == 1
    assert robot.joint_names == ("ab", "bc", "cd")
    assert robot.tree_q(np.array([0.2])).tolist() == pytest.approx([-2 * 0.2 + 0.5, 0.2, 0.2])
    fixed = cj.load(robot_text(joint("fixed", inside='<mimic joint="gone"/>'), links="ab"))
    assert fixed.nv == 0
    assert not fixed.warnings


def test_meshes_and_what_else_there_is_are_not_looked_at() -> None:
    visual = '<visual><geometry><mesh filename="package://gone/arm.dae" scale="a b"/></geometry></visual>'
    other = '<transmission name="t"><joint name="ab"/></transmission><material name=""/><gazebo reference="a"><sensor:x/></gazebo>'
    text = robot_text(joint(), links="ab", extra=other).replace(
        "</link>", f"{visual}{visual.replace('visual', 'collision')}</link>"
    )
    assert cj.load(text) == cj.load(robot_text(joint(), links="ab"))


def test_merged_and_kept_robots_are_the_same_mechanism() -> None:
    place = '<origin xyz="0.1 0.2 0.3" rpy="1 2 3"/><axis xyz="1 2 3"/>'
    joints = [
        joint(t, x, y, place)
        for t, x, y in [
            ("fixed", "a", "b"),
            ("revolute", "b", "c"),
            ("fixed", "c", "d"),
            ("fixed", "d", "e"),
            ("prismatic", "e", "f"),
        ]
    ]
    merged, kept = (cj.load(robot_text(*joints), fixed_joints=x, base="free") for x in ("merge", "keep"))
    assert (merged.n_links, kept.n_links) == (3, 6)
    assert merged.joint_names == ("root_joint", "bc", "ef")
    q, v, a = merged.random(0), *np.random.default_rng(0).normal(size=(2, merged.nv))
    assert np.allclose(cj.inverse_dynamics(merged, q, v, a), cj.inverse_dynamics(kept, q, v, a), rtol=1e-13, atol=1e-13)
    for frame in kept.frame_names:
        assert np.allclose(cj.pose(merged, q, frame), cj.pose(kept, q, frame), rtol=0, atol=1e-14)


def test_names_of_the_free_base_do_not_clash() -> None:
    robot = cj.load(robot_text(joint(name="root_joint", parent="world"), links=["world", "b"]), base="free")
    assert robot.base == "world_2"
    assert robot.joint_names == ("root_joint_2", "root_joint")


def test_floating_and_planar_joints_as_pinocchio_has_them() -> None:
    pin = pytest.importorskip("pinocchio")
    place = '<origin xyz="0.1 -0.2 0.3" rpy="0.5 1 -2"/><axis xyz="0 0 1"/>'
    body = BODY.replace("<mass", '<origin xyz="0.1 0.2 0.3" rpy="1 2 3"/><mass')
    # Described breadth-first; Pinocchio walks depth-first.
    joints = [
        joint("floating", "a", "b", place),
        joint("planar", "a", "c", place),
        joint("planar", "b", "d", place),
        joint("floating", "c", "e", place),
    ]
    text = robot_text(*joints, links="abcde").replace(BODY, body)
    robot, model = cj.load(text), pin.buildModelFromXML(text)
    data, rng = model.createData(), np.random.default_rng(5)
    P, theirs = np.zeros((model.nv, robot.nv)), np.empty((20, model.nq))
    q, v, a = robot.random(rng, 20), *rng.normal(size=(2, 20, robot.nv))
    for name in robot.joint_names:
        k, mine = model.getJointId(name), q[:, robot.q_slice(name)]
        if model.nvs[k] == 3:
            mine = np.stack([mine[:, 0], mine[:, 1], np.cos(mine[:, 2]), np.sin(mine[:, 2])], axis=-1)
        theirs[:, model.idx_qs[k] : model.idx_qs[k] + model.nqs[k]] = mine
        order = [1, 2, 0] if model.nvs[k] == 3 else [3, 4, 5, 0, 1, 2]
        P[model.idx_vs[k] : model.idx_vs[k] + model.nvs[k], robot.v_slice(name)] = np.eye(len(order))[order]
    tau = np.stack([P.T @ pin.rnea(model, data, x, P @ y, P @ z) for x, y, z in zip(theirs, v, a)])
    assert np.allclose(cj.inverse_dynamics(robot, q, v, a), tau, rtol=0, atol=1e-12 * np.abs(tau).max())
    assert np.allclose(cj.forward_dynamics(robot, q, v, tau), a, rtol=0, atol=1e-10)


# --- what is odd, but no obstacle


def warned(text: str) -> str:
    (warning,) = cj.load(text).warnings
    return warning


def test_warnings() -> None:
    text = robot_text(joint(), links="ab")
    assert cj.load(text).warnings == ()
    thin = text.replace('izz="5"', 'izz="9"', 1)
    assert re.search(r"line 2: link 'a': .*triangle inequality: the largest exceeds the sum of the others by 2", warned(thin))
    assert "moment -3 about the centre of mass is negative" in warned(text.replace('ixx="3"', 'ixx="-3"', 1))
    rounded = text.replace('ixx="3" ixy="0" ixz="0" iyy="4"', 'ixx="3" ixy="0" ixz="0" iyy="1.999999"', 1)
    assert cj.load(rounded).warnings == ()
    point = text.replace(
        'ixx="3" ixy="0" ixz="0" iyy="4" iyz="0" izz="5"', 'ixx="1e-20" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"', 1
    )
    assert cj.load(point).warnings == ()
    assert "line 4: joint 'ab' is revolute and has no <limit>" in warned(robot_text(joint("revolute"), links="ab"))
    assert "the effort limit -1 is negative" in warned(robot_text(joint(inside='<limit effort="-1"/>'), links="ab"))
    empty = cj.load(text.replace(BODY, ""))
    assert "joint 'ab' moves no mass" in empty.warnings[0]
    for repaired in (empty.lock({"ab": 0.3}), empty.with_joint("ab", armature=0.1), empty.with_inertia("b", mass=1.0, inertia=1.0)):
        assert repaired.warnings == ()
    assert "has no name and is called 'robot'" in warned(text.replace('<robot name="r">', "<robot>"))
    follower = robot_text(joint(), joint("continuous", "b", "c", '<mimic joint="a_b"/>'), links="abc")
    message = "line 6: joint 'bc' mimics 'a_b', which does not exist (is it 'ab'?); it is read as moving by itself."
    with pytest.warns(ModelWarning) as record:
        assert warned(follower) == message
    assert str(record[0].message) == f"the text: {message}"
    with pytest.warns(ModelWarning):
        assert cj.load(follower).nv == 2


def test_impossible_inertias_are_reported() -> None:
    """Once, as a Python warning, whether the link stays one or becomes part of another; and no longer when they are repaired."""
    thin = BODY.replace('izz="5"', 'izz="9"')
    for kind, place in (("continuous", "link 'b'"), ("fixed", "line 3: link 'b'")):
        text = robot_text(joint(kind), joint("continuous", "b", "c"), links="abc").replace(
            f'<link name="b">{BODY}', f'<link name="b">{thin}'
        )
        with pytest.warns(ModelWarning) as record:
            robot = cj.load(text)
        assert len(record) == 1
        assert str(record[0].message).startswith(
            f"the text: {place}: the principal moments about the centre of mass, 3, 4 and 9, break"
        )
        assert [f"the text: {x}" for x in robot.warnings] == [str(record[0].message)]
        if kind == "continuous":
            assert robot.with_inertia("b", mass=1.0, inertia=1.0).warnings == ()


def test_a_joint_that_moves_mass_by_what_mimics_it_is_not_warned_of() -> None:
    text = robot_text(joint(), joint("continuous", "a", "c", '<mimic joint="ab"/>'), links="abc")
    empty = text.replace(f'<link name="b">{BODY}', '<link name="b">')
    assert cj.load(empty).warnings == ()
    assert np.isfinite(cj.forward_dynamics(cj.load(empty), [0.1], [0.2], [0.3])).all()


# --- what is wrong

ab, abc = partial(robot_text, links="ab"), partial(robot_text, links="abc")
MASS, INERTIA = '<mass value="2"/>', '<inertia ixx="3" ixy="0" ixz="0" iyy="4" iyz="0" izz="5"/>'
WRONG = {
    "not a robot": ("<model/>", 1, "<model>: not a URDF; expected <robot>"),
    "no name": (robot_text().replace('name="c"', ""), 4, '<link>: the attribute "name" is missing'),
    "empty name": (robot_text().replace('name="c"', 'name=" "'), 4, '"name" is empty'),
    "link twice": (robot_text(links="aba"), 4, '<link name="a">: a second link of this name, the first being in line 2'),
    "joint twice": (abc(joint(name="j"), joint(child="c", name="j")), 6, "a second joint of this name.*line 5"),
    "no links": ('<robot name="r">\n' + joint() + "</robot>", 2, "joints but no <link>"),
    "two roots": (
        robot_text(joint(), links="abcd"),
        4,
        "no joint carries this link, but a robot has one root; 3 links are roots: 'a', 'c', 'd'",
    ),
    "a cycle": (ab(joint(parent="a", child="b"), joint(parent="b", child="a")), 4, "the links form a cycle: a → b → a"),
    "an island": (
        robot_text(
            joint(), joint(parent="c", child="d"), joint(parent="d", child="e"), joint(parent="e", child="c"), links="abcde"
        ),
        8,
        "the links form a cycle: e → c → d → e",
    ),
    "its own parent": (abc(joint(), joint(parent="c", child="c")), 6, "the links form a cycle: c → c"),
    "unknown parent": (ab(joint(parent="elbow")), 4, "<parent>: <joint name=\"elbowb\">: no link is named 'elbow'"),
    "unknown child": (ab(joint(child="B")), 4, "<child>: .*no link is named 'B'.*Expected one of: a, b"),
    "no parent": (ab(joint().replace('<parent link="a"/>', "")), 4, '<joint name="ab">: <parent> is missing'),
    "no child link": (ab(joint().replace('child link="b"', "child")), 4, '<child>: the attribute "link" is missing'),
    "two children": (abc(joint(inside='<child link="c"/>')), 5, "<child>: .* has a second <child>"),
    "no type": (ab(joint().replace('type="continuous"', "")), 4, 'the attribute "type" is missing'),
    "unknown type": (ab(joint("revolut")), 4, "unknown joint type 'revolut'; expected one of revolute, continuous"),
    "comma": (
        ab(joint(inside='<origin xyz="0,5 0 0"/>')),
        4,
        '<origin>: xyz="0,5 0 0": "0,5" is not a number. Write decimals with a point',
    ),
    "two numbers": (ab(joint(inside='<origin xyz="1 2"/>')), 4, 'xyz="1 2" has 2 words; expected three numbers'),
    "nan": (ab(joint(inside='<origin rpy="0 nan 0"/>')), 4, '"nan" is not a number'),
    "inf": (ab(joint(inside='<origin rpy="0 inf 0"/>')), 4, '"inf" is not a number'),
    "too large": (ab(joint(inside='<origin xyz="0 1e999 0"/>')), 4, '"1e999" is too large'),
    "underscore": (ab(joint(inside='<origin xyz="0 1_0 0"/>')), 4, '"1_0" is not a number'),
    "other digits": (ab(joint(inside='<origin xyz="0 ١ 0"/>')), 4, "is not a number"),
    "axis zero": (ab(joint(inside='<axis xyz="0 0 0"/>')), 4, '<axis>: <joint name="ab">: xyz="0 0 0" has no direction'),
    "axis empty": (ab(joint(inside="<axis/>")), 4, '<axis>: the attribute "xyz" is missing'),
    "limits crossed": (ab(joint("revolute", inside='<limit lower="2" upper="1"/>')), 4, "lower limit 2 is above the upper limit 1"),
    "limit text": (ab(joint("revolute", inside='<limit lower="pi"/>')), 4, '<limit>: lower="pi": "pi" is not a number'),
    "negative damping": (ab(joint(inside='<dynamics damping="-1"/>')), 4, "damping is -1; it must not be negative"),
    "negative mass": (ab(joint()).replace('"2"', '"-2"', 1), 2, '<mass>: <link name="a">: the mass is -2 kg'),
    "no mass": (ab(joint()).replace(MASS, "", 1), 2, "<inertial>: <mass> is missing"),
    "no inertia": (ab(joint()).replace(INERTIA, "", 1), 2, "<inertial>: <inertia> is missing"),
    "no moment": (ab(joint()).replace('ixz="0"', "", 1), 2, '<inertia>: the attribute "ixz" is missing'),
    "nan moment": (ab(joint()).replace('ixz="0"', 'ixz="NaN"', 1), 2, '"NaN" is not a number'),
    "mimics itself": (ab(joint(inside='<mimic joint="ab"/>')), 4, "<mimic>: joints mimic each other in a circle: ab → ab"),
    "mimics nothing": (ab(joint(inside="<mimic/>")), 4, '<mimic>: the attribute "joint" is missing'),
    "mimics fixed": (
        abc(joint("fixed"), joint(parent="b", child="c", inside='<mimic joint="ab"/>')),
        6,
        '<joint name="bc"> mimics .ab., but <joint name="ab"> is fixed; only .* can be followed',
    ),
    "planar mimics": (
        abc(joint(), joint("planar", parent="b", child="c", inside='<mimic joint="ab"/>')),
        6,
        "is planar; only revolute, continuous and prismatic joints can follow another",
    ),
    "mimic circle": (
        abc(joint(inside='<mimic joint="bc"/>'), joint(parent="b", child="c", inside='<mimic joint="ab"/>')),
        6,
        "joints mimic each other in a circle: bc → ab → bc",
    ),
    "xacro element": (
        '<robot name="r">\n<xacro:arm name="x"/></robot>',
        2,
        r"this is xacro; save it in a file that ends in \.xacro, which `load` expands",
    ),
    "xacro value": ('<robot name="r">\n<link name="${prefix}a"/></robot>', 2, "this is xacro"),
}


@pytest.mark.parametrize(("text", "line", "message"), WRONG.values(), ids=WRONG)
def test_one_error_names_file_line_and_element(text: str, line: int, message: str, tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ReadError) as error:
        read_urdf(path)
    assert re.search(rf"^.*arm\.urdf: line {line}: .*({message})", str(error.value)), error.value
    assert (error.value.__cause__ is None and error.value.__suppress_context__) or error.value.__context__ is None


# --- writing

WRITABLE = ("revolute", "continuous", "prismatic", "fixed", "planar", "free")


def assert_same_mechanism(robot: cj.Robot, other: cj.Robot, seed: int = 0) -> None:
    assert other.nv == robot.nv
    rng = np.random.default_rng(seed)
    q, v, a = robot.random(rng, 4), *rng.normal(size=(2, 4, robot.nv))
    for frame in robot.frame_names:
        assert np.allclose(cj.pose(robot, q, frame), cj.pose(other, q, frame), rtol=0, atol=1e-12), frame
    tau = cj.inverse_dynamics(robot, q, v, a, friction=True)
    assert np.allclose(cj.inverse_dynamics(other, q, v, a, friction=True), tau, rtol=0, atol=1e-12 * np.abs(tau).max(initial=0.0))


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_what_is_written_reads_back_as_the_same_mechanism(seed: int, n: int) -> None:
    """Any screws, also those that do not pass through the origin; the tree described in any order."""
    robot = random_robot(seed, n, WRITABLE, shuffle=True, mimic=True, massless=True, armature=False, damping=False)
    other = cj.load(to_urdf(robot))
    moving = [link.joint for link in robot.links if link.joint.kind != "fixed"]
    assert other.joint_names == tuple(j.name for j in moving)
    assert [link.joint.kind for link in other.links] == [j.kind for j in moving]
    assert set(robot.frame_names) <= set(other.frame_names)
    assert_same_mechanism(robot, other, seed)


def test_numbers_are_kept() -> None:
    limits = {"lower": -1.1, "upper": 2.2, "velocity": 3.3, "effort": 4.4}
    friction = {"damping": 0.1, "friction": 0.2, "armature": 0.3}
    body = {"mass": 1.5, "com": (0.1, 0.2, 0.3), "inertia": (0.4, 0.5, 0.6)}
    place = cj.lie.se3.exp([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    robot = cj.Robot(
        "all <numbers> & 'quotes' \"\n",
        [
            cj.Link.solid("a", "base", cj.Joint.revolute((1, 2, 3), name="one", **limits, **friction), place, **body),
            cj.Link.solid("b & c", "a", cj.Joint.prismatic(name='"two"'), place, **body),
            cj.Link.solid("d", "a", cj.Joint.continuous(name="three", mimic=cj.Mimic("one", -0.5, 0.25)), place, **body),
            cj.Link.solid("e", "d", cj.Joint.planar((1, 1, 1), velocity=2.0), place, **body),
            cj.Link.solid("f", "e", cj.Joint.free(), place, **body),
        ],
        [cj.Frame("tip", "f", place)],
        gravity=(0.1, 0.2, -1.62),
    )
    other = cj.load(to_urdf(robot))
    assert (other.name, other.base, other.joint_names, other.link_names) == (
        robot.name,
        robot.base,
        robot.joint_names,
        robot.link_names,
    )
    for key in ("gravity", "lower", "upper", "velocity_limit", "effort_limit", "damping", "friction", "armature"):
        assert np.array_equal(getattr(robot, key), getattr(other, key)), key
    for key in ("placements", "screws", "inertias", "frame_poses"):
        assert np.allclose(getattr(robot, key), getattr(other, key), rtol=0, atol=1e-15), key
    assert other.links[2].joint.mimic.ratio == -0.5
    assert [note.split(":")[0] for note in unsaid(robot)] == ["gravity [0.1, 0.2, -1.62]", "joint 'one'"]


def test_pinocchio_reads_what_is_written() -> None:
    pin = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(3)
    robot = random_robot(rng, 6, ("revolute", "prismatic"), tree=True)
    model = pin.buildModelFromXML(to_urdf(robot))
    data = model.createData()
    columns = [model.idx_vs[model.getJointId(name)] for name in robot.joint_names]
    for q in robot.random(rng, 5):
        x = np.empty(model.nq)
        x[columns] = q
        M = np.triu(pin.crba(model, data, x))
        M = (M + np.triu(M, 1).T)[np.ix_(columns, columns)]
        assert np.allclose(cj.mass_matrix(robot, q), M, rtol=0, atol=1e-12)


@given(st.tuples(*[st.floats(-4, 4)] * 3))
def test_roll_pitch_yaw(rpy: tuple) -> None:
    R = Rotation.from_euler("xyz", rpy).as_matrix()
    assert np.allclose(Rotation.from_euler("xyz", roll_pitch_yaw(R)).as_matrix(), R, rtol=0, atol=2e-15)


@pytest.mark.parametrize("pitch", [np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9, -np.pi / 2 + 1e-15, np.pi / 2 + 1e-12])
@pytest.mark.parametrize("roll", [0.0, 1.0, -3.0])
def test_roll_pitch_yaw_where_pitch_is_a_right_angle(roll: float, pitch: float) -> None:
    R = Rotation.from_euler("xyz", [roll, pitch, 0.4]).as_matrix()
    assert np.allclose(Rotation.from_euler("xyz", roll_pitch_yaw(R)).as_matrix(), R, rtol=0, atol=2e-15)


@pytest.mark.parametrize("kind", ["helical", "universal", "spherical"])
def test_joints_that_urdf_does_not_have(kind: str, tmp_path: Path) -> None:
    robot = cj.Robot("r", [cj.Link.solid("a", "base", getattr(cj.Joint, kind)(name="wrist"), mass=1.0, inertia=1.0)])
    path = tmp_path / "arm.urdf"
    path.write_text("precious")
    with pytest.raises(ModelError, match=f"joint 'wrist' is {kind}, which URDF does not have"):
        cj.save(robot, path)
    assert path.read_text() == "precious"


def test_what_urdf_cannot_say_is_refused() -> None:
    link = cj.Link.solid("a", "base", cj.Joint.planar(name="slide", damping=[1.0, 2.0, 2.0]), mass=1.0, inertia=1.0)
    with pytest.raises(ModelError, match=r"joint 'slide': damping is \[1.0, 2.0, 2.0\]; URDF has one number"):
        to_urdf(cj.Robot("r", [link]))
    link = cj.Link("a", "base", cj.Joint.free(), parameters=[0, 1, 0, 0, 1, 0, 0, 1, 0, 1])
    with pytest.raises(ModelError, match=r"link 'a' has no mass but m c = \[1.0, 0.0, 0.0\]"):
        to_urdf(cj.Robot("r", [link]))
    with pytest.raises(ModelError, match="which XML and so URDF cannot hold"):
        to_urdf(cj.Robot("\x01", []))
    bounded = cj.Robot("r", [cj.Link("a", "base", cj.Joint.free(name="base", lower=[0, 0, 0, -1, -1, -1, -1]))])
    assert unsaid(bounded) == ["joint 'base': the limits of a free joint are not written."]


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robot, path = cj.load(robot_text(joint(), links="ab")), tmp_path / "arm.urdf"
    cj.save(robot, path)
    assert cj.load(path) == robot
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="disk full"):
            cj.save(robot.with_joint("ab", damping=1.0), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["arm.urdf"]
    with pytest.raises(CoadjointError, match="does not exist"):
        cj.save(robot, tmp_path / "none" / "arm.urdf")
