"""The tree of a robot's links, the numbering of its coordinates and its arrays of numbers, computed when a robot is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ModelError, arrows, unknown
from ..words import short
from .joints import KINDS
from .link import Frame, Link, Loop
from .spring import Spring

LONGEST_NAME = 1000
"""The most characters of a name, so that messages and tables that repeat it stay readable."""


def layout(robot: str, base: str, links: Sequence[Link], frames: Sequence[Frame]) -> dict[str, Any]:
    """The attributes of a `Robot` that follow from its parts; an error names a part that is impossible."""
    for what, parts, kind in (("links", links, Link), ("frames", frames, Frame)):
        for i, part in enumerate(parts):
            if not isinstance(part, kind):
                raise ModelError(f"{what}[{i}] of robot {short(robot)} is {short(part)}; expected a {kind.__name__}.")
    _check_names(robot, base, links, frames)
    index = {link.name: i for i, link in enumerate(links)} | {base: -1}
    for link in links:
        if link.parent not in index:
            raise unknown(f"link for the parent of {short(link.name)}", link.parent, index)
    for frame in frames:
        if frame.link not in index:
            raise unknown(f"link for the frame {short(frame.name)}", frame.link, index)
    parents = tuple(index[link.parent] for link in links)
    tree = {"_link_index": index, "parents": parents, "order": _parents_first(robot, links, parents)}
    return tree | _coordinates(links)


def gathered_numbers(
    links: Sequence[Link], frames: Sequence[Frame], springs: Sequence[Spring], gravity: Any
) -> dict[str, np.ndarray]:
    """The arrays of a robot's numbers by their names (`tree.NUMBERS`), which cannot be written to."""
    try:
        fall = np.array(gravity, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        fall = np.zeros(0)
    if fall.shape != (3,) or not np.all(np.isfinite(fall)):
        raise ModelError(f"gravity is {short(gravity)}; expected three numbers, the acceleration of free fall in the space frame.")

    def rows(parts: list[np.ndarray], *shape: int) -> np.ndarray:
        return np.concatenate([np.zeros((0, *shape)), *parts])

    joints = [link.joint for link in links]
    numbers = {
        "placements": rows([x.placement[None] for x in links], 4, 4),
        "screws": rows([x.screws for x in joints], 6),
        "inertias": rows([x.parameters[None] for x in links], 10),
        "gravity": fall,
        "armature": rows([x.armature for x in joints]),
        "damping": rows([x.damping for x in joints]),
        "friction": rows([x.friction for x in joints]),
        "frame_poses": rows([x.pose[None] for x in frames], 4, 4),
        "spring_numbers": rows([x.numbers[None] for x in springs], 8),
    }
    for array in numbers.values():
        array.flags.writeable = False
    return numbers


def check_loops(loops: Sequence[Any], frames: Sequence[str]) -> None:
    """Raise an error for a loop that is none, or whose frames are not the robot's."""
    for i, loop in enumerate(loops):
        if not isinstance(loop, Loop):
            raise ModelError(f"loops[{i}] is {short(loop)}; expected a Loop.")
        for frame in (loop.frame_a, loop.frame_b):
            if frame not in frames:
                raise unknown(f"frame for the loop {short(loop.name)}", frame, frames)


def _check_names(robot: str, base: str, links: Sequence[Link], frames: Sequence[Frame]) -> None:
    _check_name("the name of a robot", robot)
    for what, names in (
        ("links or frames", [base, *(x.name for x in links), *(x.name for x in frames)]),
        ("joints", [x.joint.name for x in links]),
    ):
        seen: set[str] = set()
        for name in names:
            _check_name(f"the name of one of the {what} of robot {short(robot)}", name)
            if not name:
                raise ModelError(f"one of the {what} of robot {short(robot)} is named ''; a name is text and not empty.")
            if name in seen:
                raise ModelError(f"robot {short(robot)} has two {what} named {short(name)}; names must differ.")
            seen.add(name)


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str):
        raise ModelError(f"{what} is {short(name)}; expected text.")
    if len(name) > LONGEST_NAME:
        raise ModelError(f"{what} has {len(name)} characters: {short(name)}; at most {LONGEST_NAME} are allowed.")
    if any("\ud800" <= c <= "\udfff" for c in name):
        raise ModelError(f"{what} is {short(name)}, which has half a character (a lone surrogate); no file can hold it.")


def _parents_first(robot: str, links: Sequence[Link], parents: Sequence[int]) -> tuple[int, ...]:
    """The indices of the links in topological order: parents before children, otherwise in the order of description."""
    # Passes through the list, each of which places what stands behind its parent: a link that stands before it waits for the next.
    children: dict[int, list[int]] = {}
    for i, parent in enumerate(parents):
        children.setdefault(parent, []).append(i)
    turn = {-1: 0}
    stack = [-1]
    while stack:
        parent = stack.pop()
        for i in children.get(parent, ()):
            turn[i] = turn[parent] + (i < parent)
            stack.append(i)
    if len(turn) <= len(parents):
        path = {next(i for i in range(len(parents)) if i not in turn): None}
        while (parent := parents[next(reversed(path))]) not in path:
            path[parent] = None
        cycle = [*path][[*path].index(parent) :]
        names = arrows([links[i].name for i in reversed([*cycle, cycle[0]])])
        raise ModelError(f"the links of robot {short(robot)} form a cycle: {names}. A robot is a tree that grows from its base.")
    return tuple(sorted(range(len(parents)), key=lambda i: (turn[i], i)))


def _coordinates(links: Sequence[Link]) -> dict[str, Any]:
    """Slices of every joint in the coordinates of the tree and of the robot, and the maps of mimic joints."""
    kinds = tuple(KINDS[link.joint.kind] for link in links)
    names = {link.joint.name: i for i, link in enumerate(links)}
    sources = _mimic_sources(links, names)
    tree_q, tree_v, own_q, own_v = [], [], [], []
    nq = nv = tree_nq = tree_nv = 0
    for i, kind in enumerate(kinds):
        tree_q.append(slice(tree_nq, tree_nq := tree_nq + kind.nq))
        tree_v.append(slice(tree_nv, tree_nv := tree_nv + kind.nv))
        step = i not in sources
        own_q.append(slice(nq, nq := nq + kind.nq * step))
        own_v.append(slice(nv, nv := nv + kind.nv * step))
    for i, (source, _, _) in sources.items():
        own_q[i], own_v[i] = own_q[source], own_v[source]
    q_map = v_map = None
    if sources:
        ratios, offsets, v_map = np.ones(tree_nq), np.zeros(tree_nq), np.zeros((tree_nv, nv))
        for i, kind in enumerate(kinds):
            _, ratio, offset = sources.get(i, (i, 1.0, 0.0))
            ratios[tree_q[i]], offsets[tree_q[i]] = ratio, offset
            v_map[tree_v[i], own_v[i]] = ratio * np.eye(kind.nv)
        q_map = (np.concatenate([np.arange(s.start, s.stop) for s in own_q]), ratios, offsets)
    return {
        "kinds": kinds,
        "mimics": sources,
        "nq": nq,
        "nv": nv,
        "tree_nq": tree_nq,
        "tree_nv": tree_nv,
        "tree_q_slices": tuple(tree_q),
        "tree_v_slices": tuple(tree_v),
        "_q_slices": tuple(own_q),
        "_v_slices": tuple(own_v),
        "_joint_index": names,
        "_q_map": q_map,
        "_v_map": v_map,
    }


def _mimic_sources(links: Sequence[Link], names: dict[str, int]) -> dict[int, tuple[int, float, float]]:
    """The independent joint that every mimic joint follows in the end, with the whole ratio and offset."""
    found: dict[int, tuple[int, float, float]] = {}
    for first in range(len(links)):
        path: list[int] = []  # joints that follow each other, none of which is in `found` yet
        here, on_path = first, set()
        while (mimic := links[here].joint.mimic) is not None and here not in found:
            if here in on_path:
                circle = [links[i].joint.name for i in (*path[path.index(here) :], here)]
                raise ModelError(f"joints {arrows(circle)} mimic each other in a circle.")
            if mimic.joint not in names:
                raise unknown(f"joint for {short(links[here].joint.name)} to mimic", mimic.joint, names)
            path.append(here)
            on_path.add(here)
            here = names[mimic.joint]
        if path and here not in found and len((source := links[here].joint).screws) != 1:
            what = f"joint {short(links[path[-1]].joint.name)} mimics {short(source.name)}, a {source.kind} joint"
            raise ModelError(f"{what}; only a joint with one screw can be followed.")
        for i in reversed(path):
            mimic = links[i].joint.mimic
            assert mimic is not None
            source_index, ratio, offset = found.get(here, (here, 1.0, 0.0))
            found[i] = (source_index, mimic.ratio * ratio, mimic.offset + mimic.ratio * offset)
            here = i
    return {i: found[i] for i in range(len(links)) if i in found}
