"""`load`: names, files and texts."""

from pathlib import Path

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import CoadjointError, ReadError, UnknownNameError

URDF = """
<robot name="pendulum">
  <link name="stand"><inertial><mass value="3"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <link name="arm"><inertial><mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <link name="tool"/>
  <joint name="swing" type="continuous"><parent link="stand"/><child link="arm"/></joint>
  <joint name="weld" type="fixed"><parent link="arm"/><child link="tool"/></joint>
</robot>
"""
MJCF = '<mujoco model="m"><worldbody><body name="b"><joint name="j" type="hinge"/><geom size="1"/></body></worldbody></mujoco>'


def test_by_text_and_by_file(tmp_path: Path) -> None:
    robot = cj.load(URDF)
    assert robot.name == "pendulum"
    assert robot.base == "stand"
    assert robot.link_names == ("arm",)
    for suffix in (".urdf", ".xml", ".URDF"):
        path = tmp_path / f"pendulum{suffix}"
        path.write_text(URDF.strip())
        assert cj.load(path) == cj.load(str(path)) == robot


def test_fixed_joints() -> None:
    assert cj.load(URDF).frame_names == cj.load(URDF, fixed_joints="keep").frame_names == ("stand", "arm", "tool")
    assert cj.load(URDF).n_links == 1
    assert cj.load(URDF, fixed_joints="keep").n_links == 2


def test_a_free_base_has_its_inertia() -> None:
    robot = cj.load(URDF, base="free")
    assert robot.link_names == ("stand", "arm")
    assert robot.base == "world"
    assert robot.joint_names == ("root_joint", "swing")
    assert robot.nv == 7
    assert cj.total_mass(robot) == 5.0


def test_mjcf_by_its_root_element(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    path = tmp_path / "robot.xml"
    path.write_text(MJCF)
    assert cj.load(path).joint_names == ("j",)


def test_json_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "robot.json"
    robot = cj.load(URDF, fixed_joints="keep")
    path.write_text(robot.to_json())
    assert cj.load(path) == robot
    floating = cj.load(path, base="free")
    assert floating.nv == 7
    assert floating.link_names[0] == "stand"
    assert cj.load(URDF, base="free").nv == 7
    path.write_text(cj.load(URDF, base="free").to_json())
    assert cj.load(path, base="free") == cj.load(path)  # it floats already


def test_a_floating_bundled_robot() -> None:
    fixed, free = cj.load("panda"), cj.load("panda", base="free")
    assert free.nv == fixed.nv + 6
    q = fixed.random(1)
    home = np.concatenate([free.neutral()[:7], q])
    assert np.allclose(cj.mass_matrix(free, home)[6:, 6:], cj.mass_matrix(fixed, q), rtol=0, atol=1e-14)


def test_names_that_do_not_exist() -> None:
    with pytest.raises(
        UnknownNameError, match=r"no bundled robot is named 'pandda'. Did you mean 'panda'\? Expected one of: .*\.urdf"
    ):
        cj.load("pandda")


@pytest.mark.parametrize("name", ["no.urdf", "no.xml", "no.json", "folder/no.urdf", "no/such/file", "robot.stl"])
def test_files_that_do_not_exist(name: str) -> None:
    with pytest.raises(ReadError, match=f"{name}: there is no such file"):
        cj.load(name)


def test_files_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "folder.urdf").mkdir()
    with pytest.raises(ReadError, match="this is a directory"):
        cj.load(tmp_path / "folder.urdf")
    (tmp_path / "arm.txt").write_text(URDF)
    with pytest.raises(ReadError, match=r"arm\.txt: the name of a robot's file ends in \.urdf"):
        cj.load(tmp_path / "arm.txt")
    (tmp_path / "world.xml").write_text("<scene/>")
    with pytest.raises(ReadError, match=r"world\.xml: the root element is <scene>; expected <robot>"):
        cj.load(tmp_path / "world.xml")
    with pytest.raises(ReadError, match=r"arm\.urdf\.xacro: there is no such file"):
        cj.load("arm.urdf.xacro")
    (tmp_path / "latin.json").write_bytes(b'{"name": "\xe9"}')
    with pytest.raises(ReadError, match="Save it as UTF-8"):
        cj.load(tmp_path / "latin.json")
    with pytest.raises(ReadError, match="the root element is <mujoco>"):
        cj.load(MJCF)


def test_options_that_do_not_exist() -> None:
    with pytest.raises(CoadjointError, match="base is 'floating'; choose 'fixed' or 'free'"):
        cj.load(URDF, base="floating")
    with pytest.raises(CoadjointError, match="fixed_joints is True; choose 'merge' or 'keep'"):
        cj.load(URDF, fixed_joints=True)
