"""SDF: the same mechanism as in other descriptions, and one clear sentence for what is not read."""

import re
import warnings

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import CoadjointError, ModelWarning, ReadError
from coadjoint.robot import xml
from coadjoint.robot.sdf import read_sdf
from hostile_documents import HOSTILE
from models import urdf_files
from sdf_from_urdf import sdf_of

BODY = """<inertial><pose>{pose}</pose><mass>{mass}</mass>
<inertia><ixx>{x}</ixx><iyy>{y}</iyy><izz>{z}</izz><ixy>{xy}</ixy></inertia></inertial>"""


def body(mass=1.5, pose="0.1 -0.2 0.3 0.2 0.4 -0.3", x=0.3, y=0.4, z=0.5, xy=0.02):
    return BODY.replace("\n", "").format(pose=pose, mass=mass, x=x, y=y, z=z, xy=xy)


def sdf(inside, version="1.11", attributes=""):
    return f'<sdf version="{version}"><model name="m"{attributes}>{inside}</model></sdf>'


ARM = """<robot name="arm"><link name="base"/>
<link name="upper"><inertial><origin xyz="0.1 0.2 0.3" rpy="0.3 -0.2 0.5"/><mass value="2"/>
  <inertia ixx="0.2" ixy="0.01" ixz="-0.02" iyy="0.25" iyz="0.03" izz="0.3"/></inertial></link>
<link name="slide"><inertial><origin xyz="0 0.2 -0.1"/><mass value="1.2"/>
  <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/></inertial></link>
<link name="hand"><inertial><mass value="0.7"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>
<link name="wheel"><inertial><origin xyz="0.05 0 0"/><mass value="0.4"/>
  <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.02"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0.1 -0.3 0.4" rpy="0.7 0.2 -1.1"/>
  <axis xyz="1 2 -1"/><limit lower="-1.5" upper="2" velocity="3" effort="40"/></joint>
<joint name="rail" type="prismatic"><parent link="upper"/><child link="slide"/><origin xyz="0 0.5 0.1" rpy="-0.4 1 0.3"/>
  <axis xyz="0 1 1"/><limit lower="-0.2" upper="0.3" velocity="1" effort="9"/></joint>
<joint name="weld" type="fixed"><parent link="slide"/><child link="hand"/><origin xyz="0.2 0 0.1" rpy="0 0.6 0"/></joint>
<joint name="spin" type="continuous"><parent link="upper"/><child link="wheel"/><origin xyz="-0.2 0.1 0" rpy="1 0 0.5"/>
  <axis xyz="0 0 2"/></joint>
</robot>"""


def read(text, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return cj.load(text, **options)


def assert_same_motion(a, b, frames, seed=1):
    """Mass matrix, gravity and poses of two robots at random q, whatever their link frames are."""
    rng = np.random.default_rng(seed)
    assert a.joint_names == b.joint_names
    for q in (a.neutral(), a.random(rng), a.random(rng)):
        M, g = cj.mass_matrix(a, q), cj.gravity_force(a, q)
        np.testing.assert_allclose(cj.mass_matrix(b, q), M, rtol=0, atol=1e-11 * np.abs(M).max())
        np.testing.assert_allclose(cj.gravity_force(b, q), g, rtol=0, atol=1e-11 * max(1, np.abs(g).max()))
        for frame in frames:
            np.testing.assert_allclose(cj.pose(b, q, frame), cj.pose(a, q, frame), rtol=0, atol=1e-11)


@pytest.mark.parametrize("fixed_joints", ["merge", "keep"])
def test_the_same_mechanism_as_a_urdf(fixed_joints):
    urdf, ours = cj.load(ARM, fixed_joints=fixed_joints), cj.load(sdf_of(ARM), fixed_joints=fixed_joints)
    if fixed_joints == "keep":  # in SDF the root is a link on the world, not the base itself
        ours = ours.merge_fixed()
        urdf = urdf.merge_fixed()
    assert_same_motion(urdf, ours, ["upper", "slide", "hand", "wheel", "base"])
    for key in ("lower", "upper", "velocity", "effort"):
        for a, b in zip(urdf.links, ours.links, strict=True):
            np.testing.assert_array_equal(getattr(a.joint, key), getattr(b.joint, key))


@pytest.mark.parametrize("version", ["1.4", "1.5", "1.6", "1.8", "1.11"])
def test_other_link_frames_and_axes_in_the_model(version):
    """Poses all in the model's frame, axes too: by rule in 1.4, by `use_parent_model_frame`, by `expressed_in`; in 1.8 in the joint's."""
    ours = cj.load(sdf_of(ARM, version, np.random.default_rng(3)))
    assert_same_motion(cj.load(ARM), ours, ["base"])


@pytest.mark.parametrize("name", ["panda.urdf", "solo12.urdf"])
def test_robots_we_did_not_make(name):
    path = next((path for path in urdf_files().values() if path.name == name), None)
    if path is None:
        pytest.skip("example-robot-data is not installed")
    text = re.sub(r"<mimic[^>]*>", "", path.read_text())
    urdf, ours = read(text), read(sdf_of(text))
    assert_same_motion(urdf, ours, urdf.frame_names[1:])


HAND = """
  <pose>1 2 3 0 0 90</pose>
  <frame name="mount" attached_to="base"><pose>0 0 0.5 0 0 1.5707963267948966</pose></frame>
  <frame name="tip" attached_to="arm"><pose relative_to="hinge">0 0 -1 0 0 0</pose></frame>
  <joint name="floor" type="fixed"><parent>world</parent><child>base</child></joint>
  <joint name="hinge" type="revolute"><parent>mount</parent><child>arm</child>
    <axis><xyz expressed_in="base">0 1 0</xyz><dynamics><damping>0.3</damping><friction>0.2</friction></dynamics></axis></joint>
  <link name="base"/>
  <link name="arm"><pose relative_to="mount">0.1 0 0 0 0 0</pose>
   <inertial><pose>0 0 -1 0 0 0</pose><mass>2</mass><inertia><ixx>0</ixx><iyy>0</iyy><izz>0</izz></inertia></inertial></link>"""


def test_frames_by_hand():
    """A pendulum of 2 kg and 1 m: base at (1, 2, 3) turned by a quarter about z, mount above it turned once more."""
    robot = read(sdf(HAND.replace("<pose>1 2 3 0 0 90", '<pose degrees="true">1 2 3 0 0 90', 1)))
    assert robot.base == "world"
    assert robot.joint_names == ("hinge",)
    # mount: (1, 2, 3.5), turned by 180°; arm 0.1 along its x, that is along -x of the world; base's y is -x of the world
    home = np.diag([-1.0, -1, 1, 1])
    home[:3, 3] = (0.9, 2, 3.5)
    np.testing.assert_allclose(cj.pose(robot, [0.0], "arm"), home, atol=1e-15)
    np.testing.assert_allclose(cj.pose(robot, [0.0], "tip")[:3, 3], [0.9, 2, 2.5], atol=1e-15)
    q = 0.7  # about -x the tip swings from -z towards -y
    tip = np.array([0.9, 2 - np.sin(q), 3.5 - np.cos(q)])
    np.testing.assert_allclose(cj.pose(robot, [q], "tip")[:3, 3], tip, atol=1e-15)
    np.testing.assert_allclose(cj.mass_matrix(robot, [q]), [[2.0]])
    np.testing.assert_allclose(cj.gravity_force(robot, [q]), [2 * 9.81 * np.sin(q)])
    assert robot.damping == 0.3
    assert robot.friction == 0.2
    quaternion = HAND.replace(
        "<pose>1 2 3 0 0 90", '<pose rotation_format="quat_xyzw">1 2 3 0 0 0.7071067811865476 0.7071067811865476', 1
    )
    np.testing.assert_allclose(cj.pose(read(sdf(quaternion)), [q], "tip")[:3, 3], tip, atol=1e-15)
    placed = read(sdf(HAND.replace("<pose>1 2 3 0 0 90", "<pose>0 0 0 0 0 0", 1), attributes=' placement_frame="mount"'))
    np.testing.assert_allclose(cj.pose(placed, [q], "mount"), np.eye(4), atol=1e-15)


MIXED = """<pose>0.3 0.1 -0.2 0.4 0.5 0.6</pose>
<frame name="f1" attached_to="b"><pose relative_to="f2">0.1 0.2 0.3 0.1 0.2 0.3</pose></frame>
<frame name="f2"><pose rotation_format="quat_xyzw">1 2 3 0.5 0.5 0.5 0.5</pose></frame>
<frame name="f3" attached_to="f1"><pose degrees="true">1 0 0 30 40 50</pose></frame>
<link name="a"><pose relative_to="f2">0.5 0 0 0.3 0 0</pose>{}</link>
<link name="b"><pose relative_to="j1">0.5 0 0.1 0.3 0 1</pose>{}</link>
<link name="c"><pose relative_to="f3">0 0.4 0.1 0.3 0.2 1</pose>{}</link>
<joint name="j0" type="prismatic"><pose relative_to="f3">0.1 0.1 0.1 0.1 0.7 0.1</pose><parent>world</parent><child>a</child>
  <axis><xyz>1 1 0</xyz></axis></joint>
<joint name="j1" type="revolute"><pose relative_to="f2">0.1 0.1 0.1 0.9 0.7 0.1</pose><parent>f2</parent><child>b</child>
  <axis><xyz expressed_in="c">1 1 2</xyz></axis></joint>
<joint name="j2" type="revolute"><pose>0.3 0.2 0.1 0.9 0.7 0.1</pose><parent>f3</parent><child>c</child>
  <axis><xyz expressed_in="__model__">1 -1 2</xyz></axis></joint>"""


def test_frames_in_frames_as_drake_reads_them():
    """Numbers of Drake 1.51.1, which reads SDF by the reference library. A frame on a joint is left where the file puts it."""
    text = sdf(MIXED.format(body(), body(2.5), body(0.5)))
    q = [0.4, -0.7, 1.1]
    M = [
        [4.5, 0.45394469207865595, 0.11597266765814716],
        [0.45394469207865595, 2.766722012407941, 0.3259214862537552],
        [0.11597266765814716, 0.3259214862537552, 0.4683986694464445],
    ]
    f3 = [
        [-0.46578007895101875, 0.7431412922453209, 0.480406013505594, 2.374083143079367],
        [0.3145544884641762, -0.3683891088557792, 0.8748399500842913, 2.9629278735578537],
        [0.8271060342177554, 0.5585968888531327, -0.06217012083129392, 2.808627095401175],
    ]
    for robot in (cj.load(text), cj.load(text.replace('attached_to="b"', 'attached_to="j1"'))):
        assert robot.joint_names == ("j0", "j1", "j2")
        np.testing.assert_allclose(cj.mass_matrix(robot, q), M, rtol=0, atol=1e-13)
        np.testing.assert_allclose(
            cj.gravity_force(robot, q), [18.709650408301766, 20.60136579148431, -0.6174005540642468], rtol=0, atol=1e-12
        )
        np.testing.assert_allclose(cj.pose(robot, q, "f3")[:3], f3, rtol=0, atol=1e-13)


def one_joint(inside, kind, child=""):
    return sdf(
        f'<link name="a">{body()}</link><link name="b">{child}<pose>0.3 0.1 0.2 0.4 0.1 0.9</pose>{body()}</link>'
        f'<joint name="j" type="{kind}"><pose>0.2 -0.1 0.4 0.5 0 0.3</pose><parent>a</parent><child>b</child>{inside}</joint>'
    )


def test_a_screw_advances_by_its_pitch_in_one_turn():
    axis = "<axis><xyz>0 3 4</xyz></axis>"
    ours = cj.load(one_joint(f"<screw_thread_pitch>0.05</screw_thread_pitch>{axis}", "screw"))
    home, turned = cj.pose(ours, [0.0], "b"), cj.pose(ours, [2 * np.pi], "b")
    np.testing.assert_allclose(turned[:3, :3], home[:3, :3], atol=1e-14)
    joint = cj.load(one_joint(axis, "revolute")).links[0].joint.screws[0, :3]
    np.testing.assert_allclose(turned[:3, 3] - home[:3, 3], 0.05 * home[:3, :3] @ joint, atol=1e-14)
    old = cj.load(one_joint(f"<thread_pitch>{-2 * np.pi / 0.05!r}</thread_pitch>{axis}", "screw", ""))
    np.testing.assert_allclose(cj.pose(old, [1.3], "b"), cj.pose(ours, [1.3], "b"), atol=1e-14)


def test_ball_and_universal_joints_stay_at_their_point():
    axes = "<axis><xyz>1 0 0</xyz><limit><lower>-1</lower><upper>2</upper></limit></axis><axis2><xyz>0 1 0</xyz></axis2>"
    universal, ball, weld = (cj.load(one_joint(x, k)) for x, k in ((axes, "universal"), ("", "ball"), ("", "fixed")))
    assert [x.links[0].joint.kind for x in (universal, ball)] == ["universal", "spherical"]
    np.testing.assert_array_equal(universal.links[0].joint.lower, [-1, -np.inf])
    point = np.array([0.2, -0.1, 0.4, 1.0])
    for robot in (universal, ball):
        q = robot.random(np.random.default_rng(0))
        np.testing.assert_allclose(cj.pose(robot, q, "b") @ point, cj.pose(weld, [], "b") @ point, atol=1e-14)
    # the first axis is fixed in a: turning about it alone is what a revolute joint with that axis does
    hinge = cj.load(one_joint("<axis><xyz>1 0 0</xyz></axis>", "revolute"))
    np.testing.assert_allclose(cj.pose(universal, [0.8, 0.0], "b"), cj.pose(hinge, [0.8], "b"), atol=1e-14)


def test_mimic_has_a_reference():
    text = sdf(
        f'<link name="a">{body()}</link><link name="b">{body()}</link><link name="c">{body()}</link>'
        '<joint name="j" type="revolute"><parent>a</parent><child>b</child><axis/></joint>'
        '<joint name="k" type="revolute"><parent>b</parent>'
        '<child>c</child><axis><mimic joint="j"><multiplier>2</multiplier>'
        "<offset>0.5</offset><reference>0.1</reference></mimic></axis></joint>"
    )
    robot = cj.load(text)
    mimic = next(link.joint.mimic for link in robot.links if link.name == "c")
    assert robot.nv == 1
    assert (mimic.joint, mimic.ratio, mimic.offset) == ("j", 2.0, 0.5 - 0.2)


def test_free_and_fixed_bases():
    text = sdf(f'<pose>0 0 1 0.3 0 0</pose><link name="a">{body()}</link>')
    free, fixed = cj.load(text, base="free"), cj.load(text)
    assert (free.nv, fixed.nv, free.base) == (6, 0, "world")
    np.testing.assert_allclose(cj.pose(free, free.neutral(), "a"), np.eye(4))
    assert cj.pose(fixed, [], "a")[2, 3] == 1.0
    assert "no joint holds link 'a' to the world" in "".join(fixed.warnings)
    held = text.replace("</model>", '<joint name="w" type="fixed"><parent>world</parent><child>a</child></joint></model>')
    assert cj.load(held).nv == 0
    assert cj.load(held, base="free").nv == 6
    with pytest.raises(ReadError, match="joined to the world and cannot fly"):
        cj.load(held.replace('"fixed"', '"ball"'), base="free")
    static = text.replace("<pose>0 0 1", f'<static>true</static><link name="s">{body()}</link><pose>0 0 1', 1)
    assert cj.load(static).nv == 0
    assert "static" in "".join(cj.load(static).warnings)
    with pytest.raises(ReadError, match="static and does not move"):
        cj.load(static, base="free")


def test_gravity_of_a_world(tmp_path):
    model = sdf(f'<link name="a">{body()}</link>').partition(">")[2].removesuffix("</sdf>")
    text = f'<sdf version="1.9"><world name="w"><gravity>0 1 -3</gravity>{model}</world></sdf>'
    (tmp_path / "moon.world").write_text(text)
    np.testing.assert_array_equal(cj.load(tmp_path / "moon.world").gravity, [0, 1, -3])
    np.testing.assert_array_equal(cj.load(text.replace("<gravity>0 1 -3</gravity>", "")).gravity, [0, 0, -9.8])
    with pytest.raises(ReadError, match=r"line 1: <model name=\"m2\">: 2 models: 'm', 'm2'; .* file of its own"):
        cj.load(text.replace("</world>", '<model name="m2"/></world>'))


def bars(last):
    hinge = (
        '<joint name="{}" type="revolute"><pose>{}</pose><parent>{}</parent><child>{}</child><axis><xyz>0 1 0</xyz></axis></joint>'
    )
    links = "".join(
        f'<link name="{n}"><pose>{p} 0 0 0</pose>{body()}</link>' for n, p in (("a", "0 0 0"), ("b", "0 0 1"), ("c", "1 0 0"))
    )
    joints = [("j1", "0 0 0 0 0 0", "world", "a"), ("j2", "0 0 0 0 0 0", "a", "b"), ("j3", "0 0 0 0 0 0", "world", "c"), last]
    return sdf(links + "".join(hinge.format(*x) for x in joints))


def test_a_closed_loop():
    """A square of four bars: the loop's frames coincide at home, and one freedom is left."""
    with pytest.warns(ModelWarning, match="closes a loop"):
        robot = cj.load(bars(("j4", "0 0 1 0 0 0", "b", "c")))
    assert robot.joint_names == ("j1", "j2", "j3")
    assert [x.name for x in robot.loops] == ["j4"]
    (loop,) = robot.loops
    np.testing.assert_allclose(cj.pose(robot, np.zeros(3), loop.frame_a), cj.pose(robot, np.zeros(3), loop.frame_b), atol=1e-15)
    held = cj.pose(robot, [0.2, -0.2, 0.2], loop.frame_a) - cj.pose(robot, [0.2, -0.2, 0.2], loop.frame_b)
    np.testing.assert_allclose(held[:3, 3], 0, atol=1e-15)  # a parallelogram
    assert np.linalg.matrix_rank(cj.Constraint.loops(robot).jacobian(robot, np.array([0.2, -0.2, 0.2]))) == 2


def test_shapes(tmp_path):
    (tmp_path / "part.stl").write_text("solid\nendsolid\n")
    shapes = (
        '<visual name="v"><pose>1 0 0 0 0 0</pose><geometry><box><size>1 2 3</size></box></geometry>'
        "<material><diffuse>1 0 0</diffuse></material></visual>"
        '<collision name="c"><geometry><cylinder><radius>0.1</radius><length>2</length></cylinder></geometry></collision>'
        '<collision name="d"><geometry><capsule><radius>0.1</radius><length>2</length></capsule></geometry></collision>'
        '<visual name="e"><geometry><ellipsoid><radii>1 2 3</radii></ellipsoid></geometry></visual>'
        '<visual name="s"><geometry><sphere><radius>4</radius></sphere></geometry></visual>'
        '<visual name="m"><geometry><mesh><uri>part.stl</uri><scale>1 1 2</scale></mesh></geometry></visual>'
        '<visual name="p"><geometry><plane><normal>0 0 1</normal></plane></geometry></visual>'
    )
    (tmp_path / "model.sdf").write_text(one_joint("<axis/>", "revolute", shapes))
    robot = cj.load(tmp_path / "model.sdf")
    kinds = {x.name: (x.kind, tuple(x.size), x.role) for x in robot.shapes}
    assert kinds["v"] == ("box", (1, 2, 3), "visual")
    assert kinds["c"] == ("cylinder", (0.1, 2), "collision")
    assert kinds["d"][0] == "capsule"
    assert kinds["e"] == ("ellipsoid", (1, 2, 3), "visual")
    assert kinds["s"] == ("sphere", (4,), "visual")
    mesh, box = robot.shapes[5], robot.shapes[0]
    assert mesh.path == str(tmp_path / "part.stl")
    assert tuple(mesh.size) == (1, 1, 2)
    assert tuple(box.colour) == (1, 0, 0, 1)
    assert box.pose[0, 3] == 1
    assert box.link == "b"
    assert len(robot.shapes) == 6
    assert "<plane>: this shape is not read" in "".join(robot.warnings)


def test_what_is_left_out_is_said():
    bare = sdf('<link name="a"><gravity>false</gravity></link>')
    with pytest.warns(ModelWarning, match="free of gravity"):
        robot = cj.load(bare, base="free")
    np.testing.assert_array_equal(robot.inertias[0], [1, 0, 0, 0, 1, 0, 0, 1, 0, 1])  # what SDF means by nothing
    assert "no <inertial>; SDF means 1 kg" in "".join(robot.warnings)
    spring = "<axis><dynamics><spring_stiffness>3</spring_stiffness></dynamics></axis>"
    with pytest.warns(ModelWarning, match="joint 'j' has a spring of stiffness 3, which is left out"):
        cj.load(one_joint(spring, "revolute"))


AXIS = "<axis><xyz>0 0 1</xyz>{}</axis>"
LINK = f'<link name="a">{body()}</link>'
WRONG = {
    "version": (sdf(LINK, "2.0"), 'version="2.0" is not read; expected 1.4'),
    "no version": (f'<sdf><model name="m">{LINK}</model></sdf>', '"version" is missing'),
    "no model": ('<sdf version="1.6"/>', "no <model>"),
    "no link": (sdf(""), "no <link>"),
    "include": (sdf("<include><uri>model://x</uri></include>"), "files that include others are not read"),
    "nested": (sdf(f'{LINK}<model name="n"/>'), '<model name="m"> has a nested model'),
    "two links": (sdf(LINK * 2), "a second link of this name"),
    "two roots": (sdf(LINK + LINK.replace('"a"', '"b"')), "no joint carries this link, but a robot has one root"),
    "world": (sdf('<link name="world"/>'), "kept for another frame"),
    "gearbox": (one_joint("", "gearbox"), "type 'gearbox' are not read. It couples"),
    "revolute2": (one_joint("", "revolute2"), "Write two revolute joints"),
    "type": (one_joint("", "hinge"), "type 'hinge' are not read. Expected one of fixed"),
    "no axis": (one_joint("", "revolute"), "<axis> is missing"),
    "zero axis": (one_joint("<axis><xyz>0 0 0</xyz></axis>", "revolute"), "'0 0 0' has no direction"),
    "expressed in": (
        one_joint('<axis><xyz expressed_in="x">0 0 1</xyz></axis>', "revolute"),
        "no link or frame or joint is named 'x'",
    ),
    "no number": (one_joint(AXIS.format("<limit><lower>1,5</lower></limit>"), "revolute"), '"1,5" is not a number. Write decimals'),
    "limits": (one_joint(AXIS.format("<limit><lower>2</lower><upper>1</upper></limit>"), "revolute"), "the lower limit 2 is above"),
    "damping": (one_joint(AXIS.format("<dynamics><damping>-1</damping></dynamics>"), "revolute"), "damping is -1; it must not be"),
    "no pitch": (one_joint(AXIS, "screw"), "needs <screw_thread_pitch>"),
    "zero pitch": (one_joint(f"<thread_pitch>0</thread_pitch>{AXIS}", "screw"), "must not be zero"),
    "parallel": (one_joint("<axis/><axis2><xyz>0 0 -2</xyz></axis2>", "universal"), "axis and axis2 are parallel"),
    "parent": (one_joint("", "fixed").replace("<parent>a", "<parent>x"), "no link or frame is named 'x'"),
    "child": (one_joint("", "fixed").replace("<child>b", "<child>world"), "the world cannot be carried"),
    "itself": (one_joint("", "fixed").replace("<child>b", "<child>a"), "both on link 'a'"),
    "relative": (sdf('<link name="a"><pose relative_to="x"/></link>'), "no link or frame or joint is named 'x'"),
    "circle": (sdf('<link name="a"><pose relative_to="a"/></link>'), "in a circle: a → a"),
    "words": (sdf('<link name="a"><pose>1 2 3</pose></link>'), "has 3 words; expected 6 numbers"),
    "rotation": (sdf('<link name="a"><pose rotation_format="quat_xyzw">0 0 0 0 0 0 2</pose></link>'), "has not the length one"),
    "huge": (sdf('<link name="a"><pose>1e999 0 0 0 0 0</pose></link>'), "too large"),
    "far": (sdf(f'<pose>1e308 0 0 0 0 0</pose><link name="a"><pose>1e308 0 0 0 0 0</pose>{body()}</link>'), "must be finite"),
    "mass": (sdf(f'<link name="a">{body(-1)}</link>'), "the mass is -1 kg"),
    "auto": (sdf('<link name="a"><inertial auto="true"/></link>'), "computed from shapes"),
    "canonical": (sdf(LINK, attributes=' canonical_link="x"'), "no link is named 'x'"),
    "static": (sdf(f"{LINK}<static>maybe</static>"), "'maybe' is neither true nor false"),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_one_sentence_for_what_is_wrong(text, message):
    with pytest.raises(ReadError, match=r"the text: line 1: <.*" + re.escape(message)):
        read(text)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_document_types_are_refused(text, tmp_path):
    path = tmp_path / "model.sdf"
    path.write_text(text.replace("robot", "sdf"))
    for reader in (cj.load, read_sdf):
        with pytest.raises(ReadError, match=r"model\.sdf: line 1: .*DOCTYPE.*Remove it"):
            reader(path)


def test_a_file_cut_anywhere_or_with_a_word_changed_is_refused_or_read():
    text = sdf(HAND)
    for end in range(1, len(text), 29):
        with pytest.raises(ReadError):
            read(text[:end])
    for word in sorted(set(re.findall(r"[\w.]+", text))):
        for other in ("", "x", "nan", "-1", "1e308"):
            try:
                read(text.replace(word, other, 1))
            except CoadjointError as error:
                assert isinstance(error, ReadError), (word, other)  # noqa: PT017


def test_long_chains_of_frames_and_the_limit_of_elements(monkeypatch):
    chain = "".join(f'<frame name="f{k}" attached_to="f{k + 1}"><pose>1 0 0 0 0 0</pose></frame>' for k in range(3000))
    robot = cj.load(sdf(f'{chain}<frame name="f3000"/><link name="a">{body()}</link>'))
    assert cj.pose(robot, [], "f0")[0, 3] == 3000
    monkeypatch.setattr(xml, "MOST_ELEMENTS", 1000)
    with pytest.raises(ReadError, match="more than 1000 elements"):
        cj.load(sdf(chain))
