"""The structure of a robot, and its numbers.

Robots of one structure have the same links, joint kinds, tree, couplings and frames; masses, lengths, axes, gravity, friction and limits
are theirs. A function traced for a structure takes the numbers as inputs and serves all of them: see `kernel/structures.py`.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import SingularMassMatrixError
from ..lie import se3
from .robot import Robot
from .tree import NUMBERS

POSES = ("placements", "frame_poses", "moved")
"""Arrays of poses (n, 4, 4), whose last rows are no numbers."""


def skeleton(robot: Robot) -> str:
    """Everything that a traced function can read of a robot beside its numbers; limits, notes and its name are not among it.

    Which links are weightless is part of it: tests for singular mass matrices follow from that.
    """
    joints = [(link.name, link.parent, link.joint.name, link.joint.kind) for link in robot.links]
    follows = [(i, source, float(ratio)) for i, (source, ratio, _) in robot.mimics.items()]
    frames, springs = [(frame.name, frame.link) for frame in robot.frames], [tuple(ends) for ends in robot.spring_ends]
    return repr((robot.base, joints, follows, frames, springs, _pivots(robot)[1]))


def _pivots(robot: Robot) -> tuple[np.ndarray, tuple[int, ...] | None]:
    """The data of tests for a singular mass matrix: the sizes (nv,) of its pivots' terms, and the links that are weightless.

    Zeros and None where a joint moves no mass at all.
    """
    from ..dynamics.singular import inertia_scale, weightless  # a property of the mass matrix

    try:
        return inertia_scale(robot), weightless(robot)
    except SingularMassMatrixError:
        return np.zeros(robot.nv), None


def _arrays(robot: Robot, joint_space: bool) -> dict[str, np.ndarray]:
    """The numbers by name: those of the canonical form if `joint_space`, with the poses of its frames in those of the links."""
    form = robot.canonical.robot if joint_space else robot
    found = {key: getattr(form, key) for key in NUMBERS}
    found["shift"] = np.zeros(robot.tree_nq) if form._q_map is None else form._q_map[2]
    found["scale"] = _pivots(robot)[0]
    if joint_space:
        found["moved"] = robot.canonical.frames
    return {key: x[:, :3] if key in POSES else x for key, x in found.items()}


def numbers(robot: Robot, joint_space: bool) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of a robot in one vector, and those of them that change so often, and cost so little, that they are always inputs.

    For functions that do not depend on the links' frames they are those of the canonical form. Always inputs are gravity, friction and
    damping, and armature but for joints whose velocities move together: there it decides whether there is a metric. A mass or a length
    that happens to be 1 is an input as well.
    """
    alone = np.zeros(robot.tree_nv, dtype=bool)
    for dofs in robot.tree_v_slices:
        alone[dofs] = dofs.stop - dofs.start == 1
    arrays = _arrays(robot, joint_space)
    inputs = {
        "scale": True,
        "gravity": True,
        "friction": True,
        "damping": True,
        "armature": alone,
        "inertias": arrays["inertias"] != 0,
        "spring_numbers": arrays["spring_numbers"] != 0,
    }
    inputs |= {key: (np.arange(4) == 3) & (x != 0) for key, x in arrays.items() if key in POSES}
    free = [np.broadcast_to(inputs.get(key, False), x.shape) for key, x in arrays.items()]
    return np.concatenate([x.ravel() for x in arrays.values()]), np.concatenate([x.ravel() for x in free])


def member(robot: Robot, joint_space: bool, values: np.ndarray, arrays: dict[str, Array]) -> tuple[Robot, dict[str, Array]]:
    """The robot of this structure with these numbers, symbols among them, and arguments of a function as seen in its frames.

    It has nothing else of `robot` that could be read as a number: its links are names and kinds of joints.
    """
    from ..kernel.trace.symbols import symbols  # here: nothing is traced for a robot whose structure is known

    chosen: dict[str, Any] = {}
    start = 0
    for key, x in _arrays(robot, joint_space).items():
        part = values[start : (start := start + x.size)].reshape(x.shape)
        if key in POSES:
            last = np.broadcast_to(np.array([0.0, 0.0, 0.0, 1.0], dtype=object), (len(x), 1, 4))
            part = np.concatenate([part, last], axis=1)
        chosen[key] = symbols(part)
    moved, shift, scale = chosen.pop("moved", None), chosen.pop("shift"), chosen.pop("scale")
    index, ratio, _ = robot._q_map or (np.arange(robot.nq), np.ones(robot.nq), None)
    other = robot.with_numbers(**chosen)
    armatures = [chosen["armature"][dofs] for dofs in robot.tree_v_slices]
    other.__dict__.update(
        _q_map=(index, ratio, shift), links=tuple(map(_bare_link, robot.links, armatures)), notes=(), springs=(), _structure_memo={}
    )
    other.__dict__.update(frames=tuple(SimpleNamespace(name=frame.name, link=frame.link) for frame in robot.frames))
    other.__dict__["_pivots"] = (scale, _pivots(robot)[1])
    other.__dict__["mimics"] = {i: (source, ratio, np.nan) for i, (source, ratio, _) in robot.mimics.items()}
    if moved is not None and "wrenches" in arrays:
        arrays = arrays | {"wrenches": se3.Ad_dual_act(moved, arrays["wrenches"])}
    return other, arrays


def _bare_link(link: Any, armature: Any) -> Any:
    """A link without numbers; the armature of its joint, which functions ask for, is a number only if all robots have the same."""
    joint = SimpleNamespace(name=link.joint.name, kind=link.joint.kind, armature=armature)
    return SimpleNamespace(name=link.name, parent=link.parent, joint=joint)
