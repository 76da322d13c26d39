"""Named sets of a robot's numbers: the vector, the meaning of each number, and the robot with another vector.

    inertial        ten per link: m, m c (3), inertia about the frame's origin xx xy xz yy yz zz
    masses          one per link that has mass; its centre of mass stays and its inertia grows in proportion
    gravity         three
    armature, damping, friction    one per freedom; drives: the three one after the other
    lengths         one per link whose frame does not stand at its parent's: the distance between them, the direction kept
    homes           six per link: the placement M becomes M exp(ξ)
    springs         per spring between links its stiffness, its length at rest unless that is 0, and its points (6); per spring about
                    a joint its stiffness and rest
    frames          six per named frame: its pose T becomes T exp(ξ)
    axes            the screws of the joints, moved on the surface of those of their kind: a revolute joint has four (tilts about two
                    directions across the axis, then shifts along them), a helical one also its pitch, a prismatic one two tilts, a
                    universal one four for either axis, a spherical or free one six (a motion exp(ξ) of the whole joint), a planar
                    one five (rotations, and shifts in the plane)
    dh:frame        four per joint on the path to a frame: θ, d, a, α of the modified convention, links kept at their
                    Denavit–Hartenberg frames; revolute and prismatic joints only
    payload:frame   ten: a body that the frame's link carries, in that frame

All numbers of a set are free: they can take any values near those they have, one by one. The values of homes, frames, axes and payload
are displacements from the robot as it is, zeros; others are the numbers themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..arguments import a_name
from ..arguments import numbers as real_numbers
from ..arrays import Array, concat, like, matrix, namespace, stack
from ..errors import CoadjointError, ModelError, ShapeError, unknown
from ..lie import inertia, se3
from .joints import KINDS
from .robot import Robot

INERTIAL = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
TWIST = ("wx", "wy", "wz", "vx", "vy", "vz")


class ParameterSet(NamedTuple):
    """A set of parameters of one robot."""

    names: tuple[str, ...]
    values: Array
    numbers: Callable[[Array], dict[str, Array]]
    """The robot's arrays (of `robot.NUMBERS`) that a vector changes."""


def parameter_set(robot: Robot, name: str) -> ParameterSet:
    """The set of that name; an error lists the known ones."""
    kind, _, frame = a_name(name, "the name of a set of parameters").partition(":")
    if kind not in SETS and kind not in FRAME_SETS:
        raise unknown("set of parameters", name, [*SETS, *(f"{x}:frame" for x in FRAME_SETS)])
    if kind in SETS and frame:
        raise CoadjointError(f"the parameters {kind!r} belong to the whole robot; leave out ':{frame}'.")
    if kind in SETS:
        return SETS[kind](robot)
    if not frame:
        raise CoadjointError(f"the parameters {kind!r} belong to a frame; name it, as in '{kind}:{robot.frame_names[-1]}'.")
    return FRAME_SETS[kind](robot, frame)


LOST = {
    "inertial": ("inertias", "masses", "payload"),
    "drives": ("armature", "damping", "friction"),
    "dh": ("placements", "lengths", "homes", "dh"),
}
"""The numbers of a robot that are gone when a set is given after them, because it replaces them."""


def check_together(names: Sequence[str]) -> None:
    """Raise an error if one of these sets or arrays, applied in this order, would replace what an earlier one says."""
    for k, name in enumerate(names):
        for earlier in names[:k]:
            if earlier.partition(":")[0] in LOST.get(name.partition(":")[0], ()):
                raise CoadjointError(
                    f"the parameters {earlier!r} and {name!r} are given together; {name!r} replaces all that {earlier!r} says. Leave "
                    "one of them out, or give first what is changed further by the other, as 'inertial' before 'masses'."
                )


def with_parameters(robot: Robot, name: str, values: Array) -> Robot:
    chosen, values = parameter_set(robot, name), real_numbers(values, f"parameters {name!r}")
    if tuple(values.shape) != (len(chosen.names),):
        raise ShapeError(
            f"parameters {name!r} of robot {robot.name!r} has shape {tuple(values.shape)}; expected ({len(chosen.names)},)."
        )
    numbers = chosen.numbers(values)
    if namespace(values) is not np or not robot.has_plain_numbers:
        return robot.like(values).with_numbers(**numbers)
    return consolidate(robot, {key: np.asarray(x, dtype=np.float64) for key, x in numbers.items()})


def consolidate(robot: Robot, numbers: dict[str, np.ndarray]) -> Robot:
    """The robot with other numbers in its links, joints and frames, checked like those of any robot."""

    def get(key: str) -> Any:
        return numbers.get(key, getattr(robot, key))

    links = []
    for i, link in enumerate(robot.links):
        dofs = robot.tree_v_slices[i]
        joint = replace(link.joint, **{key: get(key)[dofs] for key in ("screws", "armature", "damping", "friction")})
        links.append(replace(link, joint=joint, placement=get("placements")[i], parameters=get("inertias")[i]))
    frames = [replace(frame, pose=pose) for frame, pose in zip(robot.frames, get("frame_poses"), strict=True)]
    springs = [spring.with_numbers(x) for spring, x in zip(robot.springs, get("spring_numbers"), strict=True)]
    return robot._remade(links=links, frames=frames, gravity=get("gravity"), springs=springs)


# --- the sets


def _array(key: str, of: Callable[[Robot], Sequence[str]], what: Sequence[str]) -> Callable[[Robot], ParameterSet]:
    """A whole array of the robot, row by row."""

    def make(robot: Robot) -> ParameterSet:
        x = getattr(robot, key)
        names = tuple(f"{row}.{number}" for row in of(robot) for number in what)
        return ParameterSet(names, x.reshape(-1), lambda values: {key: values.reshape(x.shape)})

    return make


def _freedoms(robot: Robot) -> tuple[str, ...]:
    """The joint of every freedom of the tree, numbered where it has several."""
    names: list[str] = []
    for link, kind in zip(robot.links, robot.kinds, strict=True):
        names += [link.joint.name if kind.nv == 1 else f"{link.joint.name}[{k}]" for k in range(kind.nv)]
    return tuple(names)


def _drives(robot: Robot) -> ParameterSet:
    keys, n = ("armature", "damping", "friction"), robot.tree_nv
    names = tuple(f"{joint}.{key}" for key in keys for joint in _freedoms(robot))
    values = concat([getattr(robot, key) for key in keys])
    return ParameterSet(names, values, lambda x: {key: x[k * n : k * n + n] for k, key in enumerate(keys)})


def _some_rows(array: Array, rows: dict[int, Array]) -> Array:
    """The array with some of its entries along the first axis replaced."""
    return stack([rows.get(i, array[i]) for i in range(len(array))], axis=0)


def _masses(robot: Robot) -> ParameterSet:
    heavy = [i for i in range(robot.n_links) if robot.links[i].parameters[0] > 0]

    def numbers(x: Array) -> dict[str, Array]:
        J = robot.inertias
        return {"inertias": _some_rows(J, {i: J[i] * (x[k] / J[i, 0]) for k, i in enumerate(heavy)})}

    return ParameterSet(tuple(f"{robot.links[i].name}.m" for i in heavy), robot.inertias[heavy, 0], numbers)


def _lengths(robot: Robot) -> ParameterSet:
    apart = [i for i, link in enumerate(robot.links) if np.any(link.placement[:3, 3])]
    p = robot.placements[apart, :3, 3]
    lengths = namespace(p).sqrt((p * p).sum(-1))

    def numbers(x: Array) -> dict[str, Array]:
        M = robot.placements
        rows = {i: se3.pose(like(M[i, :3, :3], x), like(M[i, :3, 3], x) * (x[k] / lengths[k])) for k, i in enumerate(apart)}
        return {"placements": _some_rows(M, rows)}

    return ParameterSet(tuple(f"{robot.links[i].name}.length" for i in apart), lengths, numbers)


def _displaced(key: str, of: Callable[[Robot], Sequence[str]]) -> Callable[[Robot], ParameterSet]:
    """The set of displacements of poses, in their own frames."""

    def make(robot: Robot) -> ParameterSet:
        poses = getattr(robot, key)
        names = tuple(f"{name}.{number}" for name in of(robot) for number in TWIST)
        return ParameterSet(names, np.zeros(len(names)), lambda x: {key: poses @ se3.exp(x.reshape((-1, 6)))})

    return make


def _springs(robot: Robot) -> ParameterSet:
    what = ("stiffness", "rest", "ax", "ay", "az", "bx", "by", "bz")
    free = [(k, j) for k, x in enumerate(robot.spring_ends) for j in (range(2) if x.joint >= 0 else range(8)) if x.long or j != 1]
    place = np.arange(8 * len(robot.spring_ends)).reshape(-1, 8)
    for number, (k, j) in enumerate(free):
        place[k, j] = place.size + number
    rows, columns = ([x[i] for x in free] for i in range(2))

    def numbers(x: Array) -> dict[str, Array]:
        every = concat([like(robot.spring_numbers, x).reshape(-1), x])
        return {"spring_numbers": every[place.reshape(-1)].reshape(place.shape)}

    names = tuple(f"{robot.springs[k].name}.{what[j]}" for k, j in free)
    return ParameterSet(names, robot.spring_numbers[rows, columns], numbers)


def _axes(robot: Robot) -> ParameterSet:
    names: list[str] = []
    moves: list[tuple[slice, np.ndarray, slice]] = []  # screws, twists (n, 6) that move them, and where their sizes stand
    pitches: dict[int, int] = {}
    for i, link in enumerate(robot.links):
        joint, dofs = link.joint, robot.tree_v_slices[i]
        parts = [(joint.name, dofs)] if len(joint.screws) < 2 or not KINDS[joint.kind].serial else []
        parts = parts or [(f"{joint.name}[{k}]", slice(dofs.start + k, dofs.start + k + 1)) for k in range(len(joint.screws))]
        for name, part in parts if len(joint.screws) else ():
            twists, labels = _moves(joint.kind, robot.screws[part])
            moves.append((part, twists, slice(len(names), len(names) + len(twists))))
            names += [f"{name}.{label}" for label in labels]
            if joint.kind == "helical":
                pitches[part.start] = len(names)
                names.append(f"{name}.pitch")

    def numbers(x: Array) -> dict[str, Array]:
        S = like(robot.screws, x)
        rows: dict[int, Array] = {}
        for part, twists, where in moves:
            moved = se3.Ad_act(se3.exp((x[where][..., None] * like(twists, x)).sum(-2))[..., None, :, :], S[part])
            for k in range(part.start, part.stop):
                rows[k] = moved[k - part.start]
                if k in pitches:
                    w = rows[k][..., :3]
                    rows[k] = concat([w, rows[k][..., 3:] + w * x[pitches[k]]])
        return {"screws": _some_rows(S, rows) if rows else S}

    return ParameterSet(tuple(names), np.zeros(len(names)), numbers)


def _moves(kind: str, screws: Array) -> tuple[np.ndarray, Sequence[str]]:
    """The twists that change screws within their kind, without those that leave them invariant, and their names."""
    if kind == "planar":  # a shift along the normal changes nothing
        return np.concatenate([np.eye(6)[:3], np.asarray(screws[1:], dtype=float)]), (*TWIST[:3], "x", "y")
    if KINDS[kind].group is not None:
        return np.eye(6), TWIST
    w, v = np.asarray(screws[0, :3], dtype=float), np.asarray(screws[0, 3:], dtype=float)
    axis = v if kind == "prismatic" else w
    x = np.eye(3)[np.argmin(np.abs(axis))]
    x = x - axis * (axis @ x) / (axis @ axis)
    across = np.stack([x / np.linalg.norm(x), np.cross(axis, x) / np.linalg.norm(np.cross(axis, x))])
    if kind == "prismatic":
        return np.concatenate([across, np.zeros((2, 3))], axis=1), ("tilt1", "tilt2")
    point = np.cross(w, v)
    tilts, shifts = np.concatenate([across, np.cross(point, across)], 1), np.concatenate([np.zeros((2, 3)), across], 1)
    return np.concatenate([tilts, shifts]), ("tilt1", "tilt2", "shift1", "shift2")


def _payload(robot: Robot, frame: str) -> ParameterSet:
    link, pose = robot.frame(frame)
    if link < 0:
        raise ModelError(f"frame {frame!r} stands on the base of robot {robot.name!r}, which bears any load; name one that moves.")

    def numbers(x: Array) -> dict[str, Array]:
        J = robot.inertias
        return {"inertias": _some_rows(J, {link: J[link] + inertia.transform(like(pose, x), x)})}

    return ParameterSet(tuple(f"{frame}.{x}" for x in INERTIAL), np.zeros(10), numbers)


def _dh(robot: Robot, frame: str) -> ParameterSet:
    from ..kinematics.dh import to_dh  # which are made of robots
    from ..kinematics.exponentials import space_screws

    chain = to_dh(*space_screws(robot, frame), "modified")
    before: dict[int, np.ndarray] = {}  # what stands before a joint's row, and after it, in its link's placement
    after: dict[int, np.ndarray] = {}
    home, between, row_frame = np.eye(4), np.eye(4), chain.base
    start = chain.base
    for i in robot.path(robot.frame(frame)[0]):
        home = home @ robot.placements[i]
        if not robot.kind(i).nv:
            between = between @ robot.placements[i]
            continue
        row_frame = row_frame @ _row_pose(chain.rows[len(before)])
        before[i], after[i] = se3.inverse(between) @ start, se3.inverse(row_frame) @ home
        start, between = se3.inverse(after[i]), np.eye(4)
    names = tuple(f"{robot.links[i].joint.name}.{x}" for i in before for x in ("theta", "d", "a", "alpha"))

    def numbers(x: Array) -> dict[str, Array]:
        poses = {i: like(before[i], x) @ _row_pose(x[4 * k : 4 * k + 4]) @ like(after[i], x) for k, i in enumerate(before)}
        return {"placements": _some_rows(like(robot.placements, x), poses)}

    return ParameterSet(names, chain.rows.reshape(-1), numbers)


def _row_pose(row: Array) -> Array:
    """Rot_x(α) Trans_x(a) Rot_z(θ) Trans_z(d)."""
    xp = namespace(row)
    theta, d, a, alpha = (row[k] for k in range(4))
    c, s, ca, sa = xp.cos(theta), xp.sin(theta), xp.cos(alpha), xp.sin(alpha)
    return matrix([[c, -s, 0.0, a], [ca * s, ca * c, -sa, -sa * d], [sa * s, sa * c, ca, ca * d], [0.0, 0.0, 0.0, 1.0]])


SETS: dict[str, Callable[[Robot], ParameterSet]] = {
    "inertial": _array("inertias", lambda robot: robot.link_names, INERTIAL),
    "masses": _masses,
    "gravity": _array("gravity", lambda robot: ("gravity",), "xyz"),
    "armature": _array("armature", _freedoms, ("armature",)),
    "damping": _array("damping", _freedoms, ("damping",)),
    "friction": _array("friction", _freedoms, ("friction",)),
    "drives": _drives,
    "lengths": _lengths,
    "springs": _springs,
    "homes": _displaced("placements", lambda robot: robot.link_names),
    "frames": _displaced("frame_poses", lambda robot: [frame.name for frame in robot.frames]),
    "axes": _axes,
}
FRAME_SETS: dict[str, Callable[[Robot, str], ParameterSet]] = {"dh": _dh, "payload": _payload}
