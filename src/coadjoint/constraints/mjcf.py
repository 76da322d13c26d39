"""Loops and couplings from MJCF: the `equality` elements of MuJoCo, held exactly where MuJoCo holds them by stiff springs.

connect    two points coincide             a spherical loop
weld       two frames coincide             a fixed loop
joint      q₁ - ref₁ = Σ cₖ (q₂ - ref₂)ᵏ    a function; without a second joint the first is held
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import ModelWarning
from ..interop import mujoco as interop
from ..interop._common import check_model, engine
from ..interop._mujoco_states import joint_names, names_of
from ..lie import quaternion, se3
from ..robot.robot import Robot
from .constraint import Constraint


def read_mjcf(path: str | os.PathLike[str], base: str = "fixed", fixed_joints: str = "merge") -> tuple[Robot, Constraint | None]:
    """The robot in an MJCF file and the constraint of its active `equality` elements, None without any. Needs the package `mujoco`.

    The robot is that of `coadjoint.load` with frames where loops close, named after the elements.
    """
    from ..robot.mjcf import compile_file

    return from_mjmodel(compile_file(path)[0], base, fixed_joints)


def from_mjmodel(model: Any, base: str = "fixed", fixed_joints: str = "merge") -> tuple[Robot, Constraint | None]:
    """The constraint of a compiled `mujoco.MjModel`. Tendons and flexible bodies that are held are left out, with a ModelWarning."""
    check_model(model, "body_parentid", "mujoco.MjModel")
    left_out = [text for text, changes in interop._left_out(model) if changes and not text.startswith("equality")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        robot = interop.from_mjmodel(model, base, fixed_joints)
    kinds, made = engine("mujoco").mjtEq, []
    for k in np.flatnonzero(model.eq_active0):
        name = names_of(model, "eq")[k] or f"equality {k}"
        kind = int(model.eq_type[k])
        if kind in (int(kinds.mjEQ_CONNECT), int(kinds.mjEQ_WELD)):
            robot, frames = _frames(robot, model, int(k), name, kind == int(kinds.mjEQ_WELD))
            made.append(Constraint.loop(robot, *frames, "fixed" if kind == int(kinds.mjEQ_WELD) else "spherical"))
        elif kind == int(kinds.mjEQ_JOINT):
            made.append(_coupling(robot, model, int(k), name))
        else:
            left_out.append(f"the equality {name!r}, which is none of connect, weld and joint")
    if left_out:
        what = f"model {robot.name!r} has what neither a Robot nor its constraint holds: {'; '.join(left_out)}."
        warnings.warn(what, ModelWarning, stacklevel=2)
    return robot, Constraint.all(made) if made else None


def _frames(robot: Robot, model: Any, k: int, name: str, weld: bool) -> tuple[Robot, tuple[str, str]]:
    """The robot with the two frames that an element brings together."""
    sites = int(model.eq_objtype[k]) == int(engine("mujoco").mjtObj.mjOBJ_SITE)
    data, bodies, names = model.eq_data[k], interop._body_names(model), (f"{name} 1", f"{name} 2")
    for i, (which, frame) in enumerate(zip((int(model.eq_obj1id[k]), int(model.eq_obj2id[k])), names, strict=True)):
        if sites:
            body, pose = bodies[model.site_bodyid[which]], _pose(model.site_pos[which], model.site_quat[which])
        elif weld:
            # The weld's point is given in both bodies, and how the second is turned in the first.
            body, pose = bodies[which], _pose(data[0:3], [1, 0, 0, 0]) if i else _pose(data[3:6], data[6:10])
        else:
            body, pose = bodies[which], _pose(data[3:6] if i else data[0:3], [1, 0, 0, 0])
        robot = robot.with_frame(frame, body, pose)
    return robot, names


def _pose(position: Any, w_first: Any) -> np.ndarray:
    w, x, y, z = w_first
    return se3.pose(quaternion.to_matrix(np.array([x, y, z, w], dtype=float)), np.array(position, dtype=float))


def _coupling(robot: Robot, model: Any, k: int, name: str) -> Constraint:
    """The first joint as a polynomial of the second."""
    joints, first, second = joint_names(model), int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
    coefficients = np.array(model.eq_data[k][:5], dtype=float)
    place = robot.q_slice(joints[first])
    held = float(model.qpos0[model.jnt_qposadr[first]])
    if second < 0:
        return Constraint.gear(robot, {joints[first]: 1.0}, held + coefficients[0])
    other, reference = robot.q_slice(joints[second]), float(model.qpos0[model.jnt_qposadr[second]])

    def coupling(q: Array) -> Array:
        x = q[other] - reference
        return q[place] - held - sum(c * x**n if n else c for n, c in enumerate(coefficients.tolist()))

    coupling.__name__ = name
    return Constraint.holonomic(coupling)
