"""Singular mass matrices: a motion that moves no mass has no acceleration, and the library says so.

In the kernels a result without meaning is nan, all of it; NumPy users then get an error that names the joint and the state.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Array, namespace
from ..errors import SingularMassMatrixError
from ..kernel.dispatch import as_written
from ..robot.robot import Robot
from .composite import mass_matrix

SINGULAR = 1e-14
"""An inertia below this part of what the joint carries is zero but for rounding."""
SINGULAR_SINGLE = 5e-6
"""The same in single precision."""
_CHUNK = 4096


def nan_where_singular(robot: Robot, pivots: Sequence[Array], x: Array) -> Array:
    """x (..., k), or nan where one of the pivots (nv of them) of the mass matrix has vanished but for rounding.

    Where the robot's own numbers are variables their size is not known, and any positive pivot will do.
    """
    original = robot._cache.get("original", robot)
    if not pivots:
        return x
    smallest = np.zeros(len(pivots))
    if original.has_plain_numbers:
        smallest = (SINGULAR_SINGLE if "float32" in str(x.dtype) else SINGULAR) * inertia_scale(original)
    regular = pivots[0] > float(smallest[0])
    for k in range(1, len(pivots)):
        regular = regular & (pivots[k] > float(smallest[k]))
    return namespace(x).where(regular[..., None], x, np.nan)


def inertia_scale(robot: Robot) -> np.ndarray:
    """The size (nv,) of the diagonal of M over a few configurations; an error names a joint that moves no mass at all."""
    if "inertia_scale" not in robot._cache:
        M = as_written(mass_matrix)(robot, robot.random(np.random.default_rng(0), 8))
        diagonal = np.atleast_2d(np.einsum("...ii->...i", M)).max(0) if robot.nv else np.zeros(0)
        for name in robot.joint_names:
            if np.any(diagonal[robot.v_slice(name)] <= 0):
                raise SingularMassMatrixError(_message(robot, name, "moves no mass"))
        robot._cache["inertia_scale"] = diagonal
    return robot._cache["inertia_scale"]


def explain_singular(robot: Robot, q: np.ndarray, **_: object) -> None:
    """Raise an error that names the first state whose mass matrix is singular, and the joint; do nothing if there is none."""
    scale, states = inertia_scale(robot), q.reshape(-1, robot.nq)
    for start in range(0, len(states), _CHUNK):
        chunk = states[start : start + _CHUNK]
        with np.errstate(invalid="ignore", divide="ignore"):
            M = np.broadcast_to(as_written(mass_matrix)(robot, chunk), (len(chunk), robot.nv, robot.nv))
        finite = np.isfinite(M).all((-2, -1))  # not for a state that is not a number, or whose quaternion is zero
        M = np.where(finite[:, None, None], M, np.eye(robot.nv))
        values, vectors = np.linalg.eigh(M / np.sqrt(np.outer(scale, scale)))
        for k in np.flatnonzero((values[:, 0] <= 4 * SINGULAR) & finite)[:1]:
            weakest = int(np.argmax(np.abs(vectors[k, :, 0])))
            joint = next(name for name in robot.joint_names if robot.v_slice(name).start <= weakest < robot.v_slice(name).stop)
            alone = np.linalg.norm(vectors[k, robot.v_slice(joint), 0]) > 1 - 1e-6
            what = "moves no mass" if alone else "and others, moving together, move no mass"
            where = "" if q.ndim == 1 else f" in state {start + k}"
            raise SingularMassMatrixError(_message(robot, joint, f"{what}{where}, q = {chunk[k].tolist()}"))


def _message(robot: Robot, joint: str, what: str) -> str:
    link = robot.links[robot.joint_index(joint)].name
    return (
        f"the mass matrix of robot {robot.name!r} is singular: joint {joint!r} {what}. "
        f"Give link {link!r} (or what it carries) mass and inertia, the joint an armature, or lock the joint."
    )
