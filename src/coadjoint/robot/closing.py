"""Descriptions with closed loops: which joints carry the tree, and frames where the others close it.

A link that several joints carry is carried by the one that fixes it, if there is one, else by the first of them in the order of the
description, or by another where these form a cycle; each other joint closes a loop. It becomes a `Loop` between two frames,
`JOINT parent` and `JOINT child`, whose z is the joint's axis. Its coordinate is none of the robot's: limits, friction and drives of
such a joint are left out.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..words import short
from .link import Frame, Joint, Loop

JOINTS = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "spherical": "spherical",
    "planar": "planar",
    "universal": "universal",
}
"""The joint of `Constraint.loop` for each kind; a free joint closes nothing, and a helical one cannot."""


class Edge(NamedTuple):
    """A joint between two links, by their names."""

    joint: str
    parent: str
    child: str
    fixed: bool = False


def tree_and_loops(edges: Sequence[Edge], roots: Sequence[str]) -> tuple[dict[str, str], list[Edge]]:
    """The joint that carries each link that is reached from the roots, in the order of the joints, and the joints that close loops."""
    first: dict[str, int] = {}
    for k in sorted(range(len(edges)), key=lambda k: not edges[k].fixed):
        first.setdefault(edges[k].child, k)
    chosen = _reached(edges, roots, set(first.values()))
    if len(chosen) < len(first):  # then some of these joints form a cycle, and others of their links may still be reached
        chosen = _reached(edges, roots, set(range(len(edges))))
    reached = {edges[k].child for k in chosen}.union(roots)
    carriers = {edges[k].child: edges[k].joint for k in sorted(chosen)}
    return carriers, [edge for k, edge in enumerate(edges) if k not in chosen and {edge.parent, edge.child} <= reached]


def _reached(edges: Sequence[Edge], roots: Sequence[str], allowed: set[int]) -> set[int]:
    """Joints of a tree from the roots, of those that are allowed, earlier ones first."""
    leaving: dict[str, list[int]] = {}
    for k in allowed:
        leaving.setdefault(edges[k].parent, []).append(k)
    reached, chosen = set(roots), set()
    waiting = [k for root in roots for k in leaving.get(root, ())]
    heapq.heapify(waiting)
    while waiting:
        k = heapq.heappop(waiting)
        if (child := edges[k].child) not in reached:
            reached.add(child)
            chosen.add(k)
            for next_ in leaving.get(child, ()):
                heapq.heappush(waiting, next_)
    return chosen


def closed(edge: Edge, joint: Joint, in_parent: np.ndarray, in_child: np.ndarray) -> tuple[list[Frame], Loop | None, str]:
    """The frames and the loop of a joint that stands at these poses in its two links, its screws in the child's; and a sentence."""
    if joint.kind not in JOINTS:
        return [], None, f"joint {short(edge.joint)} closes a loop, but a {joint.kind} joint holds nothing there; it is left out."
    turn = _turn(joint)
    frames = [
        Frame(f"{edge.joint} parent", edge.parent, in_parent @ turn),
        Frame(f"{edge.joint} child", edge.child, in_child @ turn),
    ]
    loop = Loop(edge.joint, frames[0].name, frames[1].name, JOINTS[joint.kind])
    return (
        frames,
        loop,
        (
            f"joint {short(edge.joint)} closes a loop and is no joint of the tree; Constraint.loops(robot) holds it, and without "
            "this constraint the robot moves as if it were open."
        ),
    )


def _turn(joint: Joint) -> np.ndarray:
    """The rotation (4, 4) that takes z to the joint's axis; for a universal joint, x and y to its axes as the loop joint has them."""
    T = np.eye(4)
    if joint.kind in ("fixed", "spherical"):
        return T
    if joint.kind == "universal":  # frame_a turns about its y, frame_b about its x
        y, x = joint.screws[0, :3], joint.screws[1, :3]
        T[:3, :3] = np.stack([x, y, np.cross(x, y)], axis=-1)
        return T
    axis = joint.screws[0, 3:] if joint.kind == "prismatic" else joint.screws[0, :3]
    T[:3, :3] = _frame_with_z(axis)
    return T


def _frame_with_z(z: np.ndarray) -> np.ndarray:
    x = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = x - z * (z @ x)
    x = x / np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=-1)
