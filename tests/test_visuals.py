"""The shapes of a robot: read, kept where links are changed, written and read again, and of no account for dynamics."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import CoadjointError, ReadError
from coadjoint.interop.mujoco import from_mjmodel
from coadjoint.lie import se3
from coadjoint.robot.mjcf_write import to_mjcf
from coadjoint.robot.urdf import read_urdf
from coadjoint.robot.urdf_write import to_urdf
from models import FEW, urdf_files

TEXT = """<robot name="arm">
  <material name="blue"><color rgba="0 0 1 0.5"/></material>
  <link name="base">
    <visual name="foot"><geometry><box size="0.4 0.3 0.2"/></geometry><material name="blue"/></visual>
  </link>
  <joint name="turn" type="continuous"><parent link="base"/><child link="arm"/><origin xyz="0 0 0.2"/><axis xyz="0 0 1"/></joint>
  <link name="arm">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><origin xyz="0 0 0.5" rpy="0 0.3 1"/><geometry><cylinder radius="0.1" length="1"/></geometry></visual>
    <collision><geometry><sphere radius="0.2"/></geometry></collision>
    <collision><geometry><capsule radius="0.2" length="0.4"/></geometry></collision>
  </link>
  <joint name="weld" type="fixed"><parent link="arm"/><child link="tool"/><origin xyz="0.1 0 1" rpy="0.5 0 0"/></joint>
  <link name="tool">
    <visual><geometry><mesh filename="package://tools/meshes/tool.obj" scale="2 1 -1"/></geometry>
      <material name="red"><color rgba="1 0 0 1"/></material></visual>
  </link>
</robot>"""
TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 2 0\nv 0 0 3\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def said(robot: cj.Robot) -> list[tuple]:
    """All that is known of the shapes, but not the order of shapes of different links, poses to rounding."""
    return sorted(
        (s.link, s.kind, s.role, s.name, tuple(np.round(s.size, 12)), s.colour, tuple(np.round(s.pose, 12).ravel() + 0.0))
        for s in robot.shapes
    )


def test_urdf_shapes_are_read() -> None:
    robot = cj.load(TEXT, fixed_joints="keep")
    foot, cylinder, sphere, capsule, mesh = robot.shapes
    assert (foot.link, foot.kind, foot.size, foot.name, foot.colour) == ("base", "box", (0.4, 0.3, 0.2), "foot", (0, 0, 1, 0.5))
    assert (cylinder.link, cylinder.size, cylinder.role, cylinder.colour) == ("arm", (0.1, 1.0), "visual", None)
    np.testing.assert_allclose(cylinder.pose[:3, 3], [0, 0, 0.5])
    assert (sphere.size, sphere.role, capsule.size) == ((0.2,), "collision", (0.2, 0.4))
    assert (mesh.uri, mesh.size, mesh.path, mesh.colour) == ("package://tools/meshes/tool.obj", (2, 1, -1), "", (1, 0, 0, 1))
    assert robot.visuals == (foot, cylinder, mesh)
    assert robot.collisions == (sphere, capsule)
    assert "1 mesh(es) were not found: 'package://tools/meshes/tool.obj'" in robot.warnings[-1]


def test_shapes_change_neither_fingerprint_nor_notes() -> None:
    robot = cj.load(TEXT)
    bare = robot.with_shapes(())
    assert bare.shapes == ()
    assert bare == robot
    assert bare.fingerprint == robot.fingerprint
    assert bare.notes == robot.notes


def test_shapes_stay_where_links_are_changed() -> None:
    """The pose of every shape in space is the same, whatever has become of its link."""
    kept = cj.load(TEXT, fixed_joints="keep")
    q = np.array([0.7])

    def poses(robot: cj.Robot, q: np.ndarray) -> np.ndarray:
        return np.stack([cj.pose(robot, q, s.link) @ s.pose for s in robot.shapes])

    want = poses(kept, q)
    merged = cj.load(TEXT)
    assert merged.link_names == ("arm",)
    np.testing.assert_allclose(poses(merged, q), want, atol=1e-15)
    locked = merged.lock({"turn": q})
    assert {s.link for s in locked.shapes} == {"base"}
    np.testing.assert_allclose(poses(locked, np.zeros(0)), want, atol=1e-15)
    X = se3.exp(np.array([0.1, 0.2, 0.3, 1, 2, 3]))
    twice = merged.attach(merged, "tool", X, prefix="second_")
    T = cj.pose(merged, q, "tool") @ X
    np.testing.assert_allclose(poses(twice, np.concatenate([q, q])), [*want, *(T @ want)], atol=1e-14)
    free = cj.load(TEXT, base="free")
    at = free.neutral()
    at[free.q_slice("turn")] = q
    np.testing.assert_allclose(poses(free, at), want, atol=1e-15)
    for other in (
        merged.with_gravity((0, 0, 0)),
        merged.with_inertia("arm", mass=2.0),
        merged.with_frame("f", "arm", np.eye(4)),
        merged.with_parameters("masses", np.array([3.0])),
        merged.with_joint("turn", damping=1.0),
        pickle.loads(pickle.dumps(merged)),
    ):
        assert said(other) == said(merged)


@pytest.mark.parametrize("suffix", ["json", "urdf"])
def test_saved_shapes_come_back(tmp_path, suffix) -> None:
    meshes = tmp_path / "tools" / "meshes"
    meshes.mkdir(parents=True)
    (meshes / "tool.obj").write_text(TETRAHEDRON)
    (tmp_path / "arm.urdf").write_text(TEXT)
    robot = cj.load(tmp_path / "arm.urdf")
    cj.save(robot, tmp_path / f"again.{suffix}")
    again = cj.load(tmp_path / f"again.{suffix}")
    assert said(again) == said(robot)
    assert [s.path for s in again.shapes] == [s.path for s in robot.shapes] == [""] * 4 + [str(meshes / "tool.obj")]


def extents(robot: cj.Robot, q: np.ndarray, role: str) -> np.ndarray:
    """(shapes, 2, 3): the boxes about the triangles of every shape in space, in order."""
    found = []
    for s in robot.shapes:
        T = cj.pose(robot, q, s.link)
        points = np.concatenate([part.vertices for part in s.triangles()]) @ T[:3, :3].T + T[:3, 3]
        found += [np.stack([points.min(axis=0), points.max(axis=0)])] if s.role == role else []
    return np.array(sorted(found, key=lambda box: box.round(4).ravel().tolist()))


@pytest.mark.parametrize("kept", ["merge", "keep"])
def test_mjcf_keeps_shapes_and_dynamics(tmp_path, kept) -> None:
    mujoco = pytest.importorskip("mujoco")
    meshes = tmp_path / "tools" / "meshes"
    meshes.mkdir(parents=True)
    (meshes / "tool.obj").write_text(TETRAHEDRON)
    (tmp_path / "arm.urdf").write_text(TEXT)
    robot = cj.load(tmp_path / "arm.urdf", fixed_joints=kept)
    more = [
        cj.Shape("arm", "ellipsoid", size=(0.1, 0.2, 0.3), name="<egg & 'co'>"),
        cj.Shape("arm", "capsule", size=(0.1, 0.0), role="collision"),
        cj.Shape(
            "base",
            "mesh",
            se3.exp(np.array([0.3, 0, 0.2, 1, 2, 3])),
            (1, -2, 1),
            vertices=np.eye(4, 3),
            faces=[[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]],
        ),
    ]
    robot = robot.with_shapes([*robot.shapes, *more])
    cj.save(robot, tmp_path / "arm.xml")
    again = cj.load(tmp_path / "arm.xml")
    q = np.array([0.7])
    for role in ("visual", "collision"):
        np.testing.assert_allclose(extents(again, q, role), extents(robot, q, role), atol=2e-6)
    colours = {s.name: s.colour for s in again.shapes}
    np.testing.assert_allclose(colours["foot"], (0, 0, 1, 0.5))
    assert "<egg & 'co'>" in colours
    assert sorted(s.kind for s in again.shapes if s.kind != "sphere") == sorted(
        s.kind for s in robot.shapes if s.kind != "sphere" and s.size != (0.1, 0.0)
    )
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.qacc[:] = 0.7, 0.3, 0.2
    mujoco.mj_inverse(model, data)
    assert data.ncon == 0  # the robot has no contacts: its shapes touch nothing
    np.testing.assert_allclose(data.qfrc_inverse, cj.inverse_dynamics(robot, q, [0.3], [0.2]), atol=1e-12)


@pytest.mark.slow
def test_meshes_that_mujoco_does_not_read_are_written_into_mjcf(tmp_path) -> None:
    pytest.importorskip("mujoco")
    pytest.importorskip("trimesh")
    pytest.importorskip("collada")
    files = [path for name, path in urdf_files().items() if name.endswith("panda.urdf")]
    if not files:
        pytest.skip("no example-robot-data")
    robot = cj.load(files[0])
    with pytest.warns(cj.errors.ModelWarning, match="velocity limits"):
        cj.save(robot, tmp_path / "panda.xml")
    with pytest.warns(cj.errors.ModelWarning, match="equality"):  # the mimic of the fingers
        again = cj.load(tmp_path / "panda.xml")
    for role in ("visual", "collision"):
        for k, best in ((0, np.min), (1, np.max)):  # simplified to 5,000 triangles each
            mine, other = (best(extents(x, x.neutral(), role)[:, k], axis=0) for x in (again, robot))
            np.testing.assert_allclose(mine, other, atol=3e-3)


def test_shapes_that_no_body_carries_in_mjcf_are_told() -> None:
    links = [
        cj.Link("between", "base", cj.Joint.revolute(name="a", axis=(0, 0, 1))),
        cj.Link.solid("arm", "between", cj.Joint.revolute(name="b", axis=(0, 1, 0)), mass=1.0, inertia=0.1),
    ]
    robot = cj.Robot("r", links, shapes=[cj.Shape("between", "box"), cj.Shape("arm", "mesh", uri="package://gone/x.dae")])
    with pytest.warns(cj.errors.ModelWarning, match=r"x.dae' of link 'arm' was not found, 1 shape\(s\) of link 'between'"):
        to_mjcf(robot)


def test_a_mesh_of_json_is_found_where_it_is_now(tmp_path) -> None:
    shape = cj.Shape("base", "mesh", uri="package://tools/tool.obj", path="/gone/tool.obj")
    cj.save(cj.Robot("r", [], shapes=[shape]), tmp_path / "r.json")
    assert cj.load(tmp_path / "r.json").shapes[0].path == ""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "tool.obj").write_text(TETRAHEDRON)
    assert cj.load(tmp_path / "r.json").shapes[0].path == str(tmp_path / "tools" / "tool.obj")


def test_triangles_without_a_file_are_saved(tmp_path) -> None:
    vertices, faces = np.eye(3), np.array([[0, 1, 2]])
    robot = cj.Robot("r", [], shapes=[cj.Shape("base", "mesh", vertices=vertices, faces=faces)])
    cj.save(robot, tmp_path / "r.json")
    shape = cj.load(tmp_path / "r.json").shapes[0]
    assert np.array_equal(shape.vertices, vertices)
    assert np.array_equal(shape.faces, faces)
    assert robot.warnings == ()
    with pytest.warns(cj.errors.ModelWarning, match="link 'base': a mesh without a file"):
        cj.save(robot, tmp_path / "r.urdf")


def test_what_is_wrong_with_a_shape_is_a_note() -> None:
    """A wrong shape stops no reader; what is right beside it is read."""
    wrong = {
        '<box size="1 2"/>': "has 2 words",
        '<box size="1 2 -1"/>': "above zero",
        '<sphere radius="x"/>': "not a number",
        '<torus radius="1"/>': "an unknown shape",
        "": "no shape stands inside",
        '<mesh filename=""/>': "is empty",
        '<mesh filename="a.stl" scale="1 0 1"/>': "no number may be zero",
        '<cylinder radius="1e999" length="1"/>': "too large",
    }
    visuals = "".join(f"<visual><geometry>{x}</geometry></visual>" for x in wrong)
    good = (
        '<visual><geometry><sphere radius="1"/></geometry><material name="m"><color rgba="a b c d"/></material></visual><visual/>'
    )
    robot = cj.load(f'<robot name="r"><link name="a">{visuals}{good}</link></robot>')
    assert [s.kind for s in robot.shapes] == ["sphere"]
    assert robot.shapes[0].colour is None
    notes = [x for x in robot.notes if x.startswith("a shape is left out: line 1: ")]
    assert len(notes) == len(wrong) + 1
    for message, note in zip([*wrong.values(), "<geometry> is missing"], notes):
        assert message in note


@pytest.mark.parametrize(("every", "least"), [(False, 300), pytest.param(True, 3000, marks=pytest.mark.slow)])
def test_every_mesh_of_the_example_robots_is_found(every, least) -> None:
    """All but those of one URDF, which names files of another company's installation."""
    shapes = 0
    for name, path in urdf_files().items():
        if not every and path.name not in FEW:
            continue
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *_, **__: None)
            robot = read_urdf(path)
        shapes += len(robot.shapes)
        lost = [s.uri for s in robot.shapes if s.kind == "mesh" and not s.path]
        assert not lost or (name.endswith("romeo_laas_small.urdf") and all("naoqi-sdk" in x for x in lost))
        assert not any("a shape is left out" in x for x in robot.notes)
    assert shapes > least


def test_geoms_are_shapes(tmp_path) -> None:
    mujoco = pytest.importorskip("mujoco")
    (tmp_path / "t.obj").write_text(TETRAHEDRON)
    (
        tmp_path / "m.xml"
    ).write_text("""<mujoco><asset><mesh name="t" file="t.obj" scale="2 1 -1"/><material name="m" rgba="1 0 0 1"/></asset><worldbody>
      <geom type="plane" size="1 1 1"/>
      <body name="b" pos="0 0 1"><joint/>
        <geom name="s" size="0.3" group="3" rgba="0 1 0 1"/> <geom type="box" size="1 2 3" contype="0" conaffinity="0" material="m"/>
        <geom type="capsule" fromto="0 0 0 0 0 2" size="0.1"/> <geom type="mesh" mesh="t" pos="1 2 3" euler="10 20 30"/>
        <geom type="cylinder" size="0.1 0.5"/> <geom type="ellipsoid" size="1 2 3"/>
      </body></worldbody></mujoco>""")
    robot = cj.load(tmp_path / "m.xml")
    seen = {s.kind: s for s in robot.visuals}
    assert {s.kind for s in robot.collisions} == {"sphere", "capsule", "mesh", "cylinder", "ellipsoid"}
    assert "sphere" not in seen
    assert seen["box"].size == (2, 4, 6)
    assert seen["box"].colour == (1, 0, 0, 1)
    assert seen["capsule"].size == (0.1, 2.0)
    assert seen["cylinder"].size == (0.1, 1.0)
    assert seen["ellipsoid"].size == (1, 2, 3)
    assert robot.collisions[0].colour == (0, 1, 0, 1)
    assert robot.collisions[0].name == "s"
    mesh, model = seen["mesh"], mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
    np.testing.assert_allclose(mesh.vertices, [[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]], atol=1e-6)
    assert mesh.faces.tolist() == [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
    assert mesh.path == str(tmp_path / "t.obj")
    g = int(np.flatnonzero(model.geom_type == 7)[0])
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    theirs = model.mesh_vert @ data.geom_xmat[g].reshape(3, 3).T + data.geom_xpos[g]
    T = cj.pose(robot, robot.neutral(), "b") @ mesh.pose
    np.testing.assert_allclose((mesh.vertices * mesh.size) @ T[:3, :3].T + T[:3, 3], theirs, atol=1e-6)
    assert from_mjmodel(model) == robot


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "torus"}, "no kind of shape is named 'torus'"),
        ({"kind": "box", "size": (1, 2)}, r"box of link 'a': size is \(1, 2\); expected 3"),
        ({"kind": "box", "size": (1, 2, np.nan)}, "finite"),
        ({"kind": "box", "size": "wide"}, "finite numbers"),
        ({"kind": "box", "colour": (1, 2)}, "red, green, blue"),
        ({"kind": "box", "role": "shadow"}, "no role of a shape"),
        ({"kind": "box", "pose": np.zeros((4, 4))}, "expected a rotation"),
        ({"kind": "box", "vertices": np.eye(3), "faces": [[0, 1, 2]]}, "other shapes have neither"),
        ({"kind": "mesh", "vertices": np.eye(3), "faces": [[0, 1, 3]]}, "there are 3 vertices"),
        ({"kind": "mesh", "vertices": np.eye(3)}, "both or none"),
        ({"kind": "mesh", "uri": 3}, "uri is 3; expected text"),
        ({"kind": "capsule", "size": (0, 1)}, "radius must be above zero"),
    ],
)
def test_impossible_shapes_are_refused_by_name(options, message) -> None:
    with pytest.raises(CoadjointError, match=message):
        cj.Shape("a", **options)


def test_a_shape_stands_on_a_link_of_the_robot() -> None:
    with pytest.raises(CoadjointError, match=r"no link for shapes\[0\], a box, is named 'a'"):
        cj.Robot("r", [], shapes=[cj.Shape("a", "box")])
    with pytest.raises(CoadjointError, match=r"shapes\[0\] is 3; expected a Shape"):
        cj.load("planar2r").with_shapes([3])


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("kind", "torus", "no kind of shape"),
        ("size", [1], "shapes.0.: 'size'"),
        ("vertices", [[1, 2]], "shapes.0.: 'vertices'"),
        ("faces", [[0, 1, 0.5]], "whole numbers"),
        ("link", "gone", "no link for shapes"),
    ],
)
def test_json_with_wrong_shapes_is_refused(key, value, message) -> None:
    import json

    robot = cj.Robot("r", [], shapes=[cj.Shape("base", "mesh", vertices=np.eye(3), faces=[[0, 1, 2]])])
    data = json.loads(robot.to_json())
    data["shapes"][0][key] = value
    from coadjoint.robot.storage import from_json

    with pytest.raises(ReadError, match=message):
        from_json(json.dumps(data))


def test_names_of_shapes_are_escaped() -> None:
    nasty = '</visual><img src=x onerror="alert(1)">'
    robot = cj.Robot("r", [], shapes=[cj.Shape("base", "box", name=nasty), cj.Shape("base", "mesh", uri=nasty)])
    again = cj.load(to_urdf(robot))
    assert again.shapes[0].name == nasty
    assert again.shapes[1].uri == nasty


def test_figures_and_films_are_returned_and_shown_in_notebooks(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    robot = cj.load(TEXT)
    figure = robot.plot([0.3])
    assert figure._repr_png_().startswith(b"\x89PNG")
    robot.plot(path=tmp_path / "robot.svg")
    assert (tmp_path / "robot.svg").stat().st_size > 1000
    motion = cj.simulate(cj.load("planar2r"), [0.1, 0.2], [0.0, 0.0], 0.2)
    assert motion.plot()._repr_png_().startswith(b"\x89PNG")
    film = motion.animate()
    assert len(film) == 6
    assert "http" not in film.page()
    assert film._repr_html_().startswith("<iframe srcdoc=")
    with pytest.raises(CoadjointError, match="expected one configuration"):
        robot.plot(np.zeros((3, 1)))
    with pytest.raises(CoadjointError, match="figures end in"):
        robot.plot(path="robot.doc")


def test_a_film_fills_its_frame_and_joints_are_its_first_points() -> None:
    from coadjoint.show.animation import sticks
    from coadjoint.show.film import Film

    robot = cj.load("panda")
    q = robot.random(np.random.default_rng(0), (7,))
    lines = sticks(robot, q)
    ends = np.stack([cj.pose(robot, q, name)[:, :3, 3] for name in robot.link_names], axis=1)
    axes = np.stack([cj.pose(robot, q, name)[:, :3, :3] @ s[:3] for name, s in zip(robot.link_names, robot.screws)], axis=1)
    away = np.cross(lines[:, : robot.n_links, 1] - ends, axes)  # the moment arm of a point about the joint's axis
    moments = np.stack([cj.pose(robot, q, name)[:, :3, :3] @ s[3:] for name, s in zip(robot.link_names, robot.screws)], axis=1)
    np.testing.assert_allclose(away, moments, atol=1e-12)
    film = Film(robot.name, robot.n_links, lines, np.arange(7) / 25, 25.0)
    low, high = film.points.reshape(-1, 2).min(axis=0), film.points.reshape(-1, 2).max(axis=0)
    assert (high - low).max() == pytest.approx(0.84)
    assert low.min() >= 0.08 - 1e-9
    assert high.max() <= 0.92 + 1e-9


def test_names_in_a_film_do_nothing() -> None:
    from coadjoint.show.film import Film

    nasty = "</script><img src=x onerror=alert(1)>"
    film = Film(nasty, 1, np.random.default_rng(0).normal(size=(2, 1, 2, 3)), np.arange(2.0), 25.0)
    assert "<img" not in film.page()
    assert "<img" not in film._repr_html_()
