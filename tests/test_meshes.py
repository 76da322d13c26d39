"""The triangles of shapes: those of other readers, closed surfaces of the right volume, few enough, and no file stops anything."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import CoadjointError, MissingPackageError, ReadError
from coadjoint.robot import meshes
from coadjoint.robot.simplify import simplified, welded
from coadjoint.robot.solids import solid
from models import urdf_files


def volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6)


def is_closed(faces: np.ndarray) -> bool:
    """Whether every edge is passed once each way."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    there, back = (sorted(map(tuple, x)) for x in (edges, edges[:, ::-1]))
    return there == back and len(set(there)) == len(there)


def binary_stl(vertices: np.ndarray, faces: np.ndarray) -> bytes:
    rows = [struct.pack("<12fH", 0, 0, 0, *vertices[face].ravel(), 0) for face in faces]
    return b" " * 80 + struct.pack("<I", len(faces)) + b"".join(rows)


SOLIDS = {
    "box": ((0.4, 0.5, 0.6), 0.12),
    "sphere": ((0.5,), 4 / 3 * np.pi * 0.125),
    "cylinder": ((0.5, 2.0), np.pi * 0.5),
    "capsule": ((0.5, 2.0), np.pi * 0.5 + 4 / 3 * np.pi * 0.125),
    "ellipsoid": ((0.5, 1.0, 2.0), 4 / 3 * np.pi),
}


@pytest.mark.parametrize("kind", SOLIDS)
def test_solids_are_closed_and_have_their_volume_and_extent(kind) -> None:
    size, exact = SOLIDS[kind]
    vertices, faces = solid(kind, size)
    assert is_closed(faces)
    assert 0.95 * exact < volume(vertices, faces) <= exact * (1 + 1e-12)
    half = {"box": np.array(size) / 2, "sphere": [0.5] * 3, "cylinder": [0.5, 0.5, 1], "capsule": [0.5, 0.5, 1.5]}.get(kind, size)
    np.testing.assert_allclose(vertices.max(axis=0), half, atol=1e-12)
    np.testing.assert_allclose(vertices.min(axis=0), -np.array(half), atol=1e-12)


def test_pose_scale_and_mirror_are_applied() -> None:
    """A mirrored body is still seen from outside: its volume is positive."""
    vertices, faces = solid("box", (1, 1, 1))
    pose = np.eye(4)
    pose[:3, 3] = 1, 2, 3
    shape = cj.Shape("a", "mesh", pose, (2, 1, -3), vertices=vertices, faces=faces, colour=(1, 0, 0))
    (part,) = meshes.triangles(shape)
    assert volume(part.vertices - [1, 2, 3], part.faces) == pytest.approx(6.0)
    np.testing.assert_allclose(part.vertices.mean(axis=0), [1, 2, 3])
    assert part.colour == (1, 0, 0, 1)


FILES = {
    "panda_description/meshes/visual/link3.dae": 1,
    "go1_description/meshes/trunk.dae": 1,
    "romeo_description/meshes/V1/visual/HeadRoll.dae": 1,
    "solo_description/meshes/obj/with_foot/solo_body.obj": 1,
    "talos_data/meshes/torso/torso_2.STL": 1,
    "xarm_description/meshes/xarm7/visual/link1.stl": 1,
    "hector_description/meshes/quadrotor/quadrotor_base.dae": 1,
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if "trunk" in name else ()) for name in FILES])
def test_files_have_the_extent_that_another_reader_finds(name) -> None:
    """Units and nodes of scenes included; coal, which comes with Pinocchio, reads by Assimp."""
    coal = pytest.importorskip("coal")
    root = next(iter(urdf_files().values())).parents[2]
    path = root / name
    (ours,) = np.array([[np.min(v, axis=0), np.max(v, axis=0)] for v in [_all_vertices(path)]])
    theirs = coal.MeshLoader().load(str(path), np.ones(3)).vertices()
    np.testing.assert_allclose(ours, [theirs.min(axis=0), theirs.max(axis=0)], atol=1e-5 * np.ptp(theirs))


def _all_vertices(path) -> np.ndarray:
    parts = meshes.triangles(cj.Shape("a", "mesh", path=str(path)))
    return np.concatenate([part.vertices[np.unique(part.faces)] for part in parts])


def test_corners_of_stl_are_welded(tmp_path) -> None:
    vertices, faces = solid("sphere", (1.0,))
    (tmp_path / "s.stl").write_bytes(binary_stl(vertices, faces))
    (part,) = meshes.triangles(cj.Shape("a", "mesh", path=str(tmp_path / "s.stl")))
    corners, left = welded(part.vertices, part.faces)
    assert len(corners) == len(vertices)
    assert len(left) == len(faces)
    assert is_closed(left)


@pytest.mark.parametrize("most", [40, 200, 1000, 5000])
def test_simplified_surfaces_keep_their_volume(most) -> None:
    """A box of many triangles stays a box, since its planes are kept; a ball loses little."""
    n = 40
    grid = np.stack(np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij"), -1).reshape(-1, 2) / n
    k = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).ravel()
    square = np.concatenate([np.stack([k, k + n + 1, k + n + 2], -1), np.stack([k, k + n + 2, k + 1], -1)])
    vertices, faces = [], []
    for axis in range(3):
        for side in (0, 1):
            face = np.insert(grid, axis, side, axis=1)
            flip = (axis == 1) != (side == 0)
            faces.append((square[:, ::-1] if flip else square) + len(grid) * len(vertices))
            vertices.append(face)
    v, f = welded(np.concatenate(vertices), np.concatenate(faces))
    assert volume(v, f) == pytest.approx(1.0)
    v, f = simplified(v, f, most)
    assert 0 < len(f) <= most
    assert volume(v, f) == pytest.approx(1.0, abs=1e-9)
    v, f = _ball(120)
    exact = volume(v, f)
    v, f = simplified(v, f, most)
    assert len(f) <= most
    assert abs(volume(v, f) / exact - 1) < (0.5 if most < 100 else 0.05)
    assert np.abs(np.linalg.norm(v[np.unique(f)], axis=-1) - 1).max() < 0.25


def _ball(around: int) -> tuple[np.ndarray, np.ndarray]:
    import coadjoint.robot.solids as solids

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solids, "AROUND", around)
        return solid("sphere", (1.0,))


def test_packed_triangles_are_those_of_the_robot_to_16_bits() -> None:
    robot = cj.load(urdf_files()["panda_description/urdf/panda.urdf"])
    packed = robot.packed_meshes(8000)
    assert packed.notes == []
    assert 4000 < packed.n_faces <= 8000
    assert packed.n_bytes < 20 * packed.n_faces
    assert {part.link for part in packed.parts} <= {robot.base, *robot.link_names}
    by_link: dict[str, list[np.ndarray]] = {}
    for part in packed.parts:
        assert part.vertices.dtype == np.uint16
        assert part.faces.max() < len(part.vertices)
        by_link.setdefault(part.link, []).append(part.low + part.step * part.vertices)
    for shape in robot.visuals:
        whole = np.concatenate([part.vertices for part in meshes.triangles(shape)])
        few = np.concatenate(by_link[shape.link])
        size = np.ptp(whole, axis=0).max()
        assert np.all(few.min(axis=0) <= whole.min(axis=0) + 0.1 * size)
        assert np.all(few.max(axis=0) >= whole.max(axis=0) - 0.1 * size)


def test_small_meshes_keep_all_their_triangles() -> None:
    shapes = [cj.Shape("base", "box"), cj.Shape("base", "sphere", size=0.1)]
    robot = cj.Robot("r", [], shapes=shapes)
    assert robot.packed_meshes().n_faces == 12 + len(solid("sphere", (1.0,))[1])
    few = robot.packed_meshes(112)
    assert few.n_faces <= 112
    assert len(few.parts[0].faces) == 12
    with pytest.raises(CoadjointError, match="most is 0"):
        robot.packed_meshes(0)


ENTITIES = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><COLLADA>&b;</COLLADA>'
BAD = {
    "gone.stl": None,
    "empty.stl": b"",
    "short.stl": b" " * 80 + struct.pack("<I", 2**31) + b"\0" * 50,
    "noise.stl": bytes(range(256)) * 4,
    "nan.stl": binary_stl(np.full((3, 3), np.nan), np.array([[0, 1, 2]])),
    "entities.dae": ENTITIES,
    "broken.dae": b"<COLLADA>",
    "text.obj": b"hello",
    "corners.obj": b"v 0 0 0\nf 1 2 9\n",
    "outside.gltf": b'{"asset":{"version":"2.0"},"buffers":[{"uri":"../../../../etc/passwd","byteLength":64}]}',
    "mesh.blend": b"BLENDER",
    "points.ply": b"ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\nend_header\n0 0 0\n",
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_mesh_is_an_error_alone_and_a_note_of_a_robot(tmp_path, name) -> None:
    if BAD[name] is not None:
        (tmp_path / name).write_bytes(BAD[name])
    shape = cj.Shape("base", "mesh", path=str(tmp_path / name))
    with pytest.raises(ReadError, match=name):
        meshes.triangles(shape)
    packed = meshes.packed(cj.Robot("r", [], shapes=[shape, cj.Shape("base", "box")]))
    assert packed.n_faces == 12
    assert len(packed.notes) == 1


def test_materials_of_obj_are_read_from_its_own_folder_only(tmp_path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    for folder, colour in ((tmp_path, "0 1 0"), (inner, "1 0 0")):
        (folder / "m.mtl").write_text(f"newmtl red\nKd {colour}\n")
    text = "mtllib {}\nv 0 0 0\nv 1 0 0\nv 0 2 0\nusemtl red\nf 1 3 2\n"
    for k, (library, colour) in enumerate((("m.mtl", (1.0, 0.0, 0.0, 1.0)), ("../m.mtl", None))):
        path = inner / f"{k}.obj"
        path.write_text(text.format(library))
        (part,) = meshes.triangles(cj.Shape("a", "mesh", path=str(path)))
        assert part.colour == colour or (colour is None and part.colour != (0.0, 1.0, 0.0, 1.0))


def test_a_changed_file_is_read_again(tmp_path) -> None:
    import os

    path = tmp_path / "a.stl"
    for k, kind in enumerate(("box", "sphere")):
        vertices, faces = solid(kind, (1, 1, 1))
        path.write_bytes(binary_stl(vertices, faces))
        os.utime(path, ns=(k, k))
        assert len(meshes.triangles(cj.Shape("a", "mesh", path=str(path)))[0].faces) == len(faces)


def test_without_the_reader_the_command_is_named(tmp_path, monkeypatch) -> None:
    path = tmp_path / "b.stl"
    path.write_bytes(binary_stl(*solid("box", (1, 1, 1))))
    monkeypatch.setitem(__import__("sys").modules, "trimesh", None)
    shape = cj.Shape("base", "mesh", path=str(path))
    with pytest.raises(MissingPackageError, match=r"pip install 'coadjoint\[mesh\]'"):
        meshes.triangles(shape)
    packed = meshes.packed(cj.Robot("r", [], shapes=[shape, shape, cj.Shape("base", "box")]))
    assert (packed.n_faces, len(packed.notes)) == (12, 1)


def test_shapes_of_very_different_sizes_share_triangles() -> None:
    """The widths of what is left were found by subtraction, and were 0 beside a shape of 1e20 m."""
    link = cj.Link("a", "base", cj.Joint.revolute())
    shapes = [cj.Shape("a", "box", size=(x, x, x)) for x in (1e20, 1e-3, 1e-3)]
    packed = cj.Robot("r", [link], shapes=shapes).packed_meshes(12)
    assert packed.n_faces == 36
