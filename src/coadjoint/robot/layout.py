"""How a robot's links hang together and how its coordinates are numbered: found once, when a robot is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ModelError, unknown
from .joints import KINDS
from .link import Frame, Link, Mimic


def layout(robot: str, base: str, links: Sequence[Link], frames: Sequence[Frame]) -> dict[str, Any]:
    """Attributes of a `Robot` that follow from its parts; an error names what cannot be."""
    for what, parts, kind in (("links", links, Link), ("frames", frames, Frame)):
        for i, part in enumerate(parts):
            if not isinstance(part, kind):
                raise ModelError(f"{what}[{i}] of robot {robot!r} is {part!r}; expected a {kind.__name__}.")
    _check_names(robot, base, links, frames)
    index = {link.name: i for i, link in enumerate(links)} | {base: -1}
    for link in links:
        if link.parent not in index:
            raise unknown(f"link for the parent of {link.name!r}", link.parent, index)
    for frame in frames:
        if frame.link not in index:
            raise unknown(f"link for the frame {frame.name!r}", frame.link, index)
    parents = tuple(index[link.parent] for link in links)
    tree = {"_link_index": index, "parents": parents, "order": _parents_first(robot, links, parents)}
    return tree | _coordinates(links)


def _check_names(robot: str, base: str, links: Sequence[Link], frames: Sequence[Frame]) -> None:
    if not isinstance(robot, str):
        raise ModelError(f"the name of a robot is {robot!r}; expected text.")
    for what, names in (
        ("links or frames", [base, *(x.name for x in links), *(x.name for x in frames)]),
        ("joints", [x.joint.name for x in links]),
    ):
        seen: set[str] = set()
        for name in names:
            if not isinstance(name, str) or not name:
                raise ModelError(f"one of the {what} of robot {robot!r} is named {name!r}; a name is text and not empty.")
            if name in seen:
                raise ModelError(f"robot {robot!r} has two {what} named {name!r}; names must differ.")
            seen.add(name)


def _parents_first(robot: str, links: Sequence[Link], parents: Sequence[int]) -> tuple[int, ...]:
    """Link numbers, every parent before its children, otherwise in the order of description."""
    order: list[int] = []
    placed = {-1}
    waiting = list(range(len(parents)))
    while waiting:
        if not any(parents[i] in placed for i in waiting):
            cycle = [waiting[0]]
            while parents[cycle[-1]] not in cycle:
                cycle.append(parents[cycle[-1]])
            cycle = cycle[cycle.index(parents[cycle[-1]]) :]
            names = " → ".join(links[i].name for i in reversed([*cycle, cycle[0]]))
            raise ModelError(f"the links of robot {robot!r} form a cycle: {names}. A robot is a tree that grows from its base.")
        for i in waiting:  # one pass places whole chains that are described in order
            if parents[i] in placed:
                order.append(i)
                placed.add(i)
        waiting = [i for i in waiting if i not in placed]
    return tuple(order)


def _coordinates(links: Sequence[Link]) -> dict[str, Any]:
    """Slices of every joint in the coordinates of the tree and of the robot, and the maps of mimic joints."""
    kinds = tuple(KINDS[link.joint.kind] for link in links)
    names = {link.joint.name: i for i, link in enumerate(links)}
    sources = {i: _mimic_source(links, names, i, link.joint.mimic) for i, link in enumerate(links) if link.joint.mimic is not None}
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


def _mimic_source(links: Sequence[Link], names: dict[str, int], i: int, mimic: Mimic) -> tuple[int, float, float]:
    """The independent joint that joint i follows in the end, with the whole ratio and offset."""
    ratio, offset, seen = mimic.ratio, mimic.offset, [links[i].joint.name]
    while True:
        if mimic.joint not in names:
            raise unknown(f"joint for {seen[-1]!r} to mimic", mimic.joint, names)
        if mimic.joint in seen:
            raise ModelError(f"joints {' → '.join([*seen, mimic.joint])} mimic each other in a circle.")
        source = links[names[mimic.joint]].joint
        if source.mimic is None:
            if len(source.screws) != 1:
                what = f"joint {seen[-1]!r} mimics {source.name!r}, a {source.kind} joint"
                raise ModelError(f"{what}; only a joint with one screw can be followed.")
            return names[mimic.joint], ratio, offset
        seen.append(source.name)
        mimic = source.mimic
        ratio, offset = ratio * mimic.ratio, offset + ratio * mimic.offset
