"""The data of a robot's page, as values for JSON: its tree, limits, masses, doubts, and shapes made from its numbers."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from ..._version import __version__
from ...constraints.constraint import Constraint
from ...kinematics import forward_kinematics
from ...lie import inertia
from ...motion.states import turning
from ...robot.plausibility import doubtful_numbers, impossible
from ...robot.robot import Robot

FEW = 1e-3
"""Joints nearer than this share of the robot's size are drawn as one."""


def describe(robot: Robot, source: str = "", constraints: Constraint | None = None, at: np.ndarray | None = None) -> dict[str, Any]:
    """The robot as JSON values: numbers where they are finite, None where there is no limit. `at`: where the constraints hold."""
    size, centre = extent(robot)
    return {
        "name": robot.name,
        "version": __version__,
        "source": source,
        "base": robot.base,
        "gravity": robot.gravity.tolist(),
        "nq": robot.nq,
        "nv": robot.nv,
        "freedoms": robot.nv if constraints is None else robot.nv - _rank(robot, constraints, at),
        "treeNv": robot.tree_nv,
        "vMap": None if robot._v_map is None else robot._v_map.tolist(),
        "qNames": list(robot.q_names),
        "vNames": list(robot.v_names),
        "turns": turning(robot).tolist(),
        "velocity": _finite(robot.velocity_limit),
        "effort": _finite(robot.effort_limit),
        "neutral": robot.neutral().tolist(),
        "start": start(robot).tolist(),
        "size": size,
        "centre": centre,
        "mass": float(np.sum(robot.inertias[:, 0])),
        "frame": shown_frame(robot),
        "links": [_link(robot, i, size) for i in range(robot.n_links)],
        "loops": [{"frame": robot.frame_names.index(x.frame_a), "kind": x.joint} for x in robot.loops],
        "springs": [_spring(robot, k) for k in range(len(robot.springs))],
        "frames": [_frame(robot, name) for name in robot.frame_names],
        "holonomic": [] if constraints is None else constraints.holonomic_rows(robot).tolist(),
        "constraints": [] if constraints is None else list(constraints.names(robot)),
        "warnings": list(dict.fromkeys([*robot.warnings, *doubtful_numbers(robot)])),
    }


def _rank(robot: Robot, constraints: Constraint, at: np.ndarray | None) -> int:
    sizes = np.linalg.svd(np.asarray(constraints.jacobian(robot, start(robot) if at is None else at)), compute_uv=False)
    return int(np.count_nonzero(sizes > 1e-9 * max(sizes.max(initial=0.0), 1e-300)))


def start(robot: Robot) -> np.ndarray:
    """Home, with coordinates for which zero lies beyond their limits, or for an arm close to one, in the middle of them: an arm that
    is stretched shows little, a robot with legs stands.
    """
    q, lower, upper = robot.neutral(), robot.lower, robot.upper
    near = 0.04 if len(set(robot.parents)) == robot.n_links else 0.0
    for k in range(robot.nq):
        ends = [x for x in (lower[k], upper[k]) if np.isfinite(x)]
        margin = near * (ends[1] - ends[0]) if len(ends) == 2 else 0.0
        if not lower[k] + margin <= q[k] <= upper[k] - margin and ends:
            q[k] = sum(ends) / len(ends)
    return robot.normalize(q)


def shown_frame(robot: Robot) -> int:
    """The number, among `frame_names`, of the frame that is shown first: "tip", or the last one on the link farthest from the base."""
    names = robot.frame_names
    if "tip" in names:
        return names.index("tip")
    return max(range(len(names)), key=lambda k: (len(robot.path(robot.frame(names[k])[0])), k))


def extent(robot: Robot) -> tuple[float, list[float]]:
    """The size of the robot at its start, at least a centimetre, and the middle of it."""
    points = [np.zeros(3)]
    poses = forward_kinematics(robot, start(robot)) if robot.n_links else np.zeros((0, 4, 4))
    for i, pose in enumerate(poses):
        points.append(pose[:3, :3] @ joint_point(robot, i) + pose[:3, 3])
        mass, com, _ = inertia.to_body(robot.inertias[i])
        points += [pose[:3, :3] @ com + pose[:3, 3]] if mass > 0 else []
    for name in robot.frame_names:
        link, pose = robot.frame(name)
        points.append(((poses[link] if link >= 0 else np.eye(4)) @ pose)[:3, 3])
    free = [i for i, parent in enumerate(robot.parents) if parent < 0 and robot.kinds[i].nv == 6]
    cloud = np.array(points if not free else points[1:])
    low, high = cloud.min(axis=0), cloud.max(axis=0)
    widest = max([float(np.max(_radii(robot, i)[0])) for i in range(robot.n_links)], default=0.0)
    return max(float(np.linalg.norm(high - low)), 2 * widest, 0.01), (0.5 * (low + high)).tolist()


def joint_point(robot: Robot, i: int) -> np.ndarray:
    """A point on the axis of joint i, in the frame of its link: nearest to the origin, or the centre of a spherical joint."""
    screws = np.asarray(robot.joint_screws(i))
    if len(screws) and np.any(screws[0, :3]):
        if len(screws) >= 3:
            centre = getattr(robot.kind(i), "centre", None)
            return np.asarray(centre(screws)) if centre is not None else np.zeros(3)
        w, v = screws[0, :3], screws[0, 3:]
        result: np.ndarray = np.cross(w, v) / (w @ w)
        return result
    return np.zeros(3)


def _link(robot: Robot, i: int, size: float) -> dict[str, Any]:
    link, joint = robot.links[i], robot.links[i].joint
    mass, com, _ = inertia.to_body(robot.inertias[i])
    moments, _ = _principal(robot, i)
    radii, axes, possible = _radii(robot, i)
    mimic = robot.mimics.get(i)
    q, v = robot.q_slice(joint.name), robot.v_slice(joint.name)
    screws = np.asarray(robot.joint_screws(i))
    return {
        "name": link.name,
        "parent": robot.parents[i],
        "placement": robot.placements[i].ravel().tolist(),
        "mass": float(mass),
        "com": com.tolist(),
        "moments": moments.tolist(),
        "ellipsoid": {"radii": radii.tolist(), "axes": axes.tolist()} if mass > 0 else None,
        "possible": possible,
        "doubts": impossible(robot.inertias[i]),
        "rods": _rods(robot, i, size),
        "joint": {
            "name": joint.name,
            "kind": joint.kind,
            "q": [q.start, q.stop],
            "v": [v.start, v.stop],
            "tree": [robot.tree_v_slices[i].start, robot.tree_v_slices[i].stop],
            "mimic": None if mimic is None else {"joint": robot.links[mimic[0]].joint.name, "ratio": mimic[1], "offset": mimic[2]},
            "lower": _finite(joint.lower),
            "upper": _finite(joint.upper),
            "damping": joint.damping.tolist(),
            "friction": joint.friction.tolist(),
            "armature": joint.armature.tolist(),
            "point": joint_point(robot, i).tolist(),
            "axes": [_axis(s) for s in screws],
        },
    }


def _axis(screw: np.ndarray) -> list[float]:
    part = screw[:3] if np.any(screw[:3]) else screw[3:]
    return [float(x) for x in part / np.linalg.norm(part)]


def _principal(robot: Robot, i: int) -> tuple[np.ndarray, np.ndarray]:
    """The principal moments (3,) of a link about its centre of mass, infinite if too large for a number, and its axes (3, 3)."""
    with np.errstate(over="ignore", invalid="ignore"):
        _, _, central = inertia.to_body(robot.inertias[i])
    if not np.isfinite(central).all():
        return np.full(3, np.inf), np.eye(3)
    moments, axes = np.linalg.eigh(central)
    return moments, axes


def _radii(robot: Robot, i: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """Half-axes (3,) and directions (3, 3), as columns, of the homogeneous ellipsoid with the inertia of a link, and whether there is one.

    A body with principal moments I₁ ≤ I₂ ≤ I₃ has aₖ² = 5/2 (I₁ + I₂ + I₃ - 2 Iₖ)/m; what is negative is drawn as zero.
    """
    mass = robot.inertias[i, 0]
    moments, axes = _principal(robot, i)
    squares = 2.5 * (moments.sum() - 2 * moments) / mass if mass > 0 and np.isfinite(moments).all() else np.zeros(3)
    axes = axes * np.sign(np.linalg.det(axes))
    return np.sqrt(np.maximum(squares, 0.0)), axes, not impossible(robot.inertias[i])


def _rods(robot: Robot, i: int, size: float) -> list[list[list[float]]]:
    """Lines from the joint of a link to the joints and frames that it carries, or to its centre of mass if it carries none."""
    here = joint_point(robot, i)
    name = robot.links[i].name
    ends = [(robot.placements[k] @ [*joint_point(robot, k), 1.0])[:3] for k, parent in enumerate(robot.parents) if parent == i]
    ends += [frame.pose[:3, 3] for frame in robot.frames if frame.link == name and not ends]
    mass, com, _ = inertia.to_body(robot.inertias[i])
    ends += [com] if mass > 0 and not ends and robot.kinds[i].nv < 6 else []
    far = [end for end in ends if np.linalg.norm(end - here) > FEW * size]
    kept: list[np.ndarray] = []
    for end in far:
        if all(np.linalg.norm(end - other) > FEW * size for other in kept):
            kept.append(end)
    return [[here.tolist(), end.tolist()] for end in kept[:40]]


def _spring(robot: Robot, k: int) -> dict[str, Any]:
    spring, ends = robot.springs[k], robot.spring_ends[k]
    points = np.asarray(spring.points).tolist()
    return {
        "name": spring.name,
        "stiffness": spring.stiffness,
        "rest": spring.rest,
        "joint": ends.joint,
        "links": [ends.a, ends.b],
        "points": points,
    }


def _frame(robot: Robot, name: str) -> dict[str, Any]:
    link, pose = robot.frame(name)
    return {"name": name, "link": link, "pose": np.asarray(pose).ravel().tolist()}


def _finite(x: np.ndarray) -> list[float | None]:
    return [float(y) if np.isfinite(y) else None for y in x]


def packed(x: np.ndarray) -> str:
    """Numbers as base64 of little-endian doubles, or whole numbers of their own size: all their digits, shorter than text."""
    array = np.ascontiguousarray(x, dtype=x.dtype.newbyteorder("<") if x.dtype.kind == "u" else "<f8")
    return base64.b64encode(array.tobytes()).decode("ascii")


def visuals(robot: Robot, most: int) -> tuple[list[dict[str, Any]], list[str]]:
    """The shapes of the robot as at most about `most` triangles, packed, and a sentence for every shape that cannot be shown."""
    found = robot.packed_meshes(most)
    parts = [
        {
            "link": robot.link_index(part.link),
            "colour": None if part.colour is None else list(part.colour),
            "low": part.low.tolist(),
            "step": part.step.tolist(),
            "vertices": packed(part.vertices),
            "faces": packed(part.faces),
            "wide": part.faces.dtype.itemsize == 4,
        }
        for part in found.parts
    ]
    return parts, found.notes
