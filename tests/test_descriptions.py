"""Robots as people have them: packages, named poses, closed loops, and the package `robot_descriptions`."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.cli import main
from coadjoint.errors import CoadjointError, MissingPackageError, ModelWarning, ReadError
from coadjoint.robot.packages import Finder
from coadjoint.robot.storage import from_json
from models import urdf_files

# --- packages


def package(folder, name, stated=None):
    (folder / name / "meshes").mkdir(parents=True)
    (folder / name / "package.xml").write_text(f"<package><name>{stated or name}</name></package>")
    (folder / name / "meshes" / "a.stl").write_bytes(b"x")
    return folder / name


def test_files_are_found_where_ros_keeps_them(tmp_path, monkeypatch) -> None:
    for variable in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(tmp_path / "cache"))
    uri = "package://arm_description/meshes/a.stl"
    urdf = tmp_path / "elsewhere" / "urdf"
    urdf.mkdir(parents=True)
    assert Finder(urdf).path(uri) is None
    above = package(tmp_path, "renamed", "arm_description")
    (above / "urdf").mkdir()
    assert Finder(above / "urdf").path(uri) == above / "meshes" / "a.stl"
    beside = package(tmp_path, "arm_description")
    assert Finder(beside / "meshes").path(uri) == beside / "meshes" / "a.stl"
    given = package(tmp_path / "given", "any")
    assert Finder(beside, {"arm_description": given}).path(uri) == given / "meshes" / "a.stl"
    ros = package(tmp_path / "ros" / "deep", "other_description")
    other = uri.replace("arm_", "other_")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "ros"))
    assert Finder(urdf).path(other) == ros / "meshes" / "a.stl"
    ament = package(tmp_path / "install" / "share", "third_description")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "install"))
    assert Finder(urdf).path(uri.replace("arm_", "third_")) == ament / "meshes" / "a.stl"
    cached = package(tmp_path / "cache" / "repository", "fourth_description")
    assert Finder(urdf).path(uri.replace("arm_", "fourth_")) == cached / "meshes" / "a.stl"
    assert Finder(urdf).path(f"file://{given}/meshes/a.stl") == given / "meshes" / "a.stl"
    assert Finder(given).path("meshes/a.stl") == given / "meshes" / "a.stl"
    assert Finder(given).path("file://meshes/a.stl") == given / "meshes" / "a.stl"


@pytest.mark.parametrize(
    "uri", ["", "\0", "http://a/b.stl", "package://", "package://../a", "package:///etc/passwd", "x" * 9999, "a\0b"]
)
def test_odd_addresses_find_nothing(uri, tmp_path) -> None:
    assert Finder(tmp_path).path(uri) is None
    assert Finder(None).path(uri) is None


# --- named poses

SRDF = """<robot name="two"><group_state name="home" group="arm"><joint name="ja" value="0.5"/></group_state>
<group_state name="home" group="hand"><joint name="jb" value="-1"/></group_state>
<group_state name="away" group="arm"><joint name="jb" value="2"/><joint name="gone" value="1"/></group_state></robot>"""


def two() -> cj.Robot:
    solid = {"mass": 1.0, "inertia": 0.1}
    links = [
        cj.Link.solid("a", "base", cj.Joint.revolute(name="ja"), **solid),
        cj.Link.solid("b", "a", cj.Joint.revolute(name="jb"), **solid),
    ]
    return cj.Robot("two", links)


def test_named_poses_are_read_and_kept(tmp_path) -> None:
    cj.save(two(), tmp_path / "two.urdf")
    (tmp_path / "two.srdf").write_text(SRDF)
    robot = cj.load(tmp_path / "two.urdf", srdf=tmp_path / "two.srdf")
    np.testing.assert_array_equal(robot.poses["home"], [0.5, -1])
    np.testing.assert_array_equal(robot.poses["away"], [0, 2])
    assert "the named poses have joints that the robot does not, or not so: 'gone'." in robot.notes
    assert robot == cj.load(tmp_path / "two.urdf")
    for other in (robot.with_gravity((0, 0, 1)), from_json(robot.to_json()), robot.with_joint("ja", damping=1.0)):
        np.testing.assert_array_equal(other.poses["home"], [0.5, -1])
    np.testing.assert_array_equal(robot.lock({"ja": 1.0}).poses["home"], [-1])
    both = robot.attach(robot, "b", prefix="second_")
    np.testing.assert_array_equal(both.poses["second_home"], [0, 0, 0.5, -1])
    free = cj.load(tmp_path / "two.urdf", base="free", srdf=tmp_path / "two.srdf")
    np.testing.assert_array_equal(free.poses["home"], [0, 0, 0, 0, 0, 0, 1, 0.5, -1])
    named = two().with_poses({"up": [1, 2], "down": {"jb": 3}})
    np.testing.assert_array_equal(named.poses["down"], [0, 3])


@pytest.mark.parametrize(
    ("poses", "message"),
    [
        ({"a": [1, 2, 3]}, "the pose 'a' has 3 numbers; robot 'two' has nq = 2"),
        ({"a": [1, np.nan]}, "expected finite numbers"),
        ({"a": {"gone": 1}}, "no joint is named 'gone'"),
        ({"a": {"ja": [1, 2]}}, "joint 'ja' has 2 numbers; it takes 1"),
        ({3: [1, 2]}, "the name of a pose is 3"),
        ([1, 2], "expected a dictionary"),
    ],
)
def test_wrong_poses_are_refused(poses, message) -> None:
    with pytest.raises(CoadjointError, match=message):
        two().with_poses(poses)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<srdf/>", "expected <robot>"),
        ('<robot><group_state name="a"><joint name="j" value="x"/></group_state></robot>', "expected numbers with spaces"),
        ('<robot><group_state name="a"><joint name="j"/></group_state></robot>', "line 1.*value"),
        ('<robot><group_state><joint name="j" value="1"/></group_state></robot>', '"name" is missing'),
        (
            '<robot><group_state name="a"><joint name="j" value="1"/></group_state><group_state name="a"><joint name="j" value="2"/>'
            "</group_state></robot>",
            "has other values for the same joint",
        ),
    ],
)
def test_wrong_srdf_is_refused(text, message, tmp_path) -> None:
    (tmp_path / "a.srdf").write_text(text)
    with pytest.raises(ReadError, match=message):
        cj.load("panda", srdf=tmp_path / "a.srdf")


def test_json_with_wrong_poses_and_loops_is_refused() -> None:
    data = json.loads(two().to_json())
    for key, value in (("poses", {"a": 3}), ("poses", {"a": {"gone": [1]}}), ("loops", [{"name": "l"}]), ("poses", 3)):
        with pytest.raises(ReadError):
            from_json(json.dumps({**data, key: value}))


@pytest.mark.parametrize(
    "name", ["panda_description/urdf/panda.urdf", "solo_description/robots/solo12.urdf", "talos_data/robots/talos_reduced.urdf"]
)
def test_named_poses_are_those_of_pinocchio(name) -> None:
    pin = pytest.importorskip("pinocchio")
    path = urdf_files()[name]
    srdf = next(x for x in sorted(path.parents[1].glob("srdf/*.srdf")) if x.stem in path.stem or path.stem.startswith(x.stem))
    base = "fixed" if "panda" in name else "free"
    robot = cj.load(path, base=base, srdf=srdf)
    root = [pin.JointModelFreeFlyer()] if base == "free" else []
    model = pin.buildModelFromUrdf(str(path), *root, mimic=True)
    pin.loadReferenceConfigurations(model, str(srdf), False)
    compared = 0
    for pose, q in ((x.key(), x.data()) for x in model.referenceConfigurations):
        if base == "free" and not np.any(q[3:7]):
            continue
        theirs = cj.interop.pinocchio.q_from_pinocchio(robot, model, q)
        np.testing.assert_allclose(robot.poses[pose], theirs, atol=1e-12)
        compared += 1
    assert compared


# --- closed loops


def four_bar(order=("crank", "coupler", "rocker", "closing"), closing="revolute") -> str:
    def link(name):
        return (
            f'<link name="{name}"><inertial><origin xyz="0.5 0 0"/><mass value="1"/>'
            '<inertia ixx="0.01" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        )

    def joint(name, parent, child, xyz, rpy="0 0 0", kind="continuous", axis="0 1 0"):
        return (
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin xyz="{xyz}" rpy="{rpy}"/>'
            f'<axis xyz="{axis}"/></joint>'
        )

    joints = {
        "crank": joint("crank", "base", "a", "0 0 0", "0 -1.5707963267948966 0"),
        "coupler": joint("coupler", "a", "b", "1 0 0", "0 1.5707963267948966 0"),
        "rocker": joint("rocker", "base", "c", "1 0 0", "0 -1.5707963267948966 0"),
    }
    # The closing joint meets c at its end: c's frame is at its foot, so the joint is given in the frame of a small link there.
    joints["closing"] = joint("closing", "b", "d", "1 0 0", "0 -1.5707963267948966 0", closing)
    tip = joint("tip", "c", "d", "1 0 0", kind="fixed")
    links = "".join(map(link, "abc"))
    return f'<robot name="four"><link name="base"/>{links}<link name="d"/>{tip}{"".join(joints[x] for x in order)}</robot>'


def loaded(text: str) -> cj.Robot:
    with pytest.warns(ModelWarning, match="joint 'closing' closes a loop and is no joint of the tree"):
        return cj.load(text)


def test_a_link_with_two_parents_closes_a_loop() -> None:
    robot = loaded(four_bar())
    assert robot.joint_names == ("crank", "coupler", "rocker")
    (loop,) = robot.loops
    assert (loop.name, loop.frame_a, loop.frame_b, loop.joint) == ("closing", "closing parent", "closing child", "revolute")
    q = np.zeros(3)
    np.testing.assert_allclose(cj.pose(robot, q, loop.frame_a), cj.pose(robot, q, loop.frame_b), atol=1e-15)
    constraint = cj.Constraint.loops(robot)
    # Of a parallelogram, the crank and the rocker turn alike and the coupler does not: v = (1, -1, 1).
    P = cj.constraint_projector(robot, constraint, q)
    direction = np.array([1.0, -1.0, 1.0])
    np.testing.assert_allclose(P @ direction, direction, atol=1e-12)
    assert np.linalg.matrix_rank(P, tol=1e-9) == 1
    motion = cj.simulate(robot, q, np.zeros(3), 0.5, constraints=constraint)
    gap = cj.pose(robot, motion.q, loop.frame_a)[:, :3, 3] - cj.pose(robot, motion.q, loop.frame_b)[:, :3, 3]
    assert np.abs(gap).max() < 1e-9


def test_loops_do_not_depend_on_the_order_of_joints_and_are_kept() -> None:
    robot = loaded(four_bar())
    other = loaded(four_bar(("rocker", "crank", "coupler", "closing")))
    assert set(other.joint_names) == set(robot.joint_names)
    for kept in (from_json(robot.to_json()), robot.with_gravity((0, 0, 0)), robot.lock({"crank": 0.0})):
        assert [x.name for x in kept.loops] == ["closing"]
    both = robot.attach(robot, "b", prefix="second_")
    assert [x.frame_a for x in both.loops] == ["closing parent", "second_closing parent"]
    assert cj.Constraint.loops(both) is not None
    with pytest.raises(CoadjointError, match="closes no loop"):
        cj.Constraint.loops(cj.load("planar2r"))


@pytest.mark.parametrize(("kind", "rows"), [("fixed", 6), ("continuous", 5), ("prismatic", 5), ("planar", 3), ("spherical", 3)])
def test_the_closing_joint_says_what_is_held(kind, rows) -> None:
    robot = loaded(four_bar(closing=kind))
    constraint = cj.Constraint.loops(robot)
    assert constraint.jacobian(robot, np.zeros(3)).shape[-2] == rows


def test_a_link_is_carried_by_the_joint_that_fixes_it() -> None:
    """A part without mass that is fixed to a link, last in the file, does not become a link of its own."""
    text = four_bar()
    start, end = text.index('<joint name="tip"'), text.index('<joint name="crank"')
    robot = loaded(text[:start] + text[end:].replace("</robot>", text[start:end] + "</robot>"))
    assert robot.joint_names == ("crank", "coupler", "rocker")
    assert [x.name for x in robot.loops] == ["closing"]


def test_the_command_keeps_loops_closed(tmp_path, capsys) -> None:
    (tmp_path / "four.urdf").write_text(four_bar())
    assert main(["simulate", str(tmp_path / "four.urdf"), "--duration", "0.2", "--samples", "5"]) == 0
    (line,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("loops open by")]
    assert float(line.split()[-1]) < 1e-9


# --- the package robot_descriptions


def test_descriptions_of_an_installed_package(monkeypatch) -> None:
    pytest.importorskip("robot_descriptions")
    robot = cj.load("robot_descriptions:panda_description")
    assert robot == cj.load(urdf_files()["panda_description/urdf/panda.urdf"])
    assert list(robot.poses) == ["default"]
    assert all(shape.path for shape in robot.shapes if shape.kind == "mesh")
    with pytest.raises(CoadjointError, match="no description of robot_descriptions is named 'pandas_description'"):
        cj.load("robot_descriptions:pandas_description")


def test_without_the_package_or_the_network_one_sentence_says_so(monkeypatch, tmp_path) -> None:
    pytest.importorskip("robot_descriptions")
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(tmp_path))
    cache = pytest.importorskip("robot_descriptions._cache")

    def offline(*_args, **_options):
        raise OSError("no network")

    monkeypatch.setattr(cache, "clone_to_cache", offline)
    sys.modules.pop("robot_descriptions.ur5e_mj_description", None)
    with pytest.raises(
        ReadError, match=r"'ur5e_mj_description' is not in the cache .* and could not be fetched \(OSError\); fetch it"
    ):
        cj.load("robot_descriptions:ur5e_mj_description")
    monkeypatch.setitem(sys.modules, "robot_descriptions._descriptions", None)
    with pytest.raises(MissingPackageError, match="pip install robot_descriptions"):
        cj.load("robot_descriptions:panda_description")
