"""The geoms of a compiled `MjModel` as shapes.

MuJoCo shows geoms of the groups 0, 1 and 2 unless it is told otherwise, and geoms collide that have a contact type or affinity, or are
of group 3, where models keep what collides and is not seen. A geom may be both; it is then two shapes. Planes and height fields,
which belong to scenes, are left out.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..lie import quaternion, se3
from ..robot.shape import Shape
from ._mujoco_states import decoded, names_of

SEEN = 2
"""The last group that MuJoCo's viewers show."""

SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(2, 8)
"""MuJoCo's numbers of the types of geoms that are shapes here."""


def shapes_of(model: Any, bodies: list[str]) -> list[Shape]:
    """The shapes of all geoms, on the links that have the names of their bodies."""
    shapes: list[Shape] = []
    names = names_of(model, "geom")
    meshes: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for k in range(model.ngeom):
        kind, size = int(model.geom_type[k]), np.array(model.geom_size[k])
        if kind not in range(SPHERE, MESH + 1):
            continue
        group, collides = int(model.geom_group[k]), bool(model.geom_contype[k] or model.geom_conaffinity[k])
        roles = ["visual"] * (group <= SEEN) + ["collision"] * (collides or group == SEEN + 1)
        colour = tuple(model.geom_rgba[k].tolist())
        if (material := int(model.geom_matid[k])) >= 0:
            colour = tuple(model.mat_rgba[material].tolist())
        options: dict[str, Any] = {"name": names[k] or "", "colour": colour}
        pose = body_pose(model.geom_pos[k], model.geom_quat[k])
        if kind == MESH:
            mesh = int(model.geom_dataid[k])
            pose = pose @ se3.inverse(body_pose(model.mesh_pos[mesh], model.mesh_quat[mesh]))
            size = np.array(model.mesh_scale[mesh])
            if mesh not in meshes:
                meshes[mesh] = _triangles(model, mesh)
            vertices, faces = meshes[mesh]
            options |= {"vertices": vertices, "faces": faces, "uri": (uri := _file(model, mesh)), "path": _found(uri)}
        name, size = _of_kind(kind, size)
        shapes += [Shape(bodies[model.geom_bodyid[k]], name, pose, size, role, **options) for role in roles]
    return shapes


def _of_kind(kind: int, size: np.ndarray) -> tuple[str, Any]:
    """Our kind and size of a geom, whose lengths MuJoCo has by half."""
    return {
        SPHERE: ("sphere", size[:1]),
        CAPSULE: ("capsule", (size[0], 2 * size[1])),
        ELLIPSOID: ("ellipsoid", size),
        CYLINDER: ("cylinder", (size[0], 2 * size[1])),
        BOX: ("box", 2 * size),
        MESH: ("mesh", size),
    }[kind]


def body_pose(pos: Any, quat: Any) -> np.ndarray:
    """The pose (4, 4) of a position and of a quaternion as MuJoCo writes it, w first."""
    w, x, y, z = quat
    return se3.pose(quaternion.to_matrix(quaternion.normalize(np.array([x, y, z, w]))), np.array(pos))


def _triangles(model: Any, mesh: int) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and faces as in the file, which MuJoCo has scaled and moved to the centre of mass and the principal axes."""
    first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
    T = body_pose(model.mesh_pos[mesh], model.mesh_quat[mesh])
    vertices = np.asarray(model.mesh_vert[first : first + count], dtype=float) @ T[:3, :3].T + T[:3, 3]
    start, number = model.mesh_faceadr[mesh], model.mesh_facenum[mesh]
    faces = np.array(model.mesh_face[start : start + number])
    mirrored = np.prod(model.mesh_scale[mesh]) < 0  # then MuJoCo has turned the faces round
    return vertices / model.mesh_scale[mesh], faces[:, [0, 2, 1]] if mirrored else faces


def _file(model: Any, mesh: int) -> str:
    address = int(model.mesh_pathadr[mesh]) if hasattr(model, "mesh_pathadr") else -1
    return decoded(bytes(model.paths[address:]).split(b"\0", 1)[0]) if address >= 0 else ""


def _found(file: str) -> str:
    return file if os.path.isabs(file) and os.path.isfile(file) else ""
