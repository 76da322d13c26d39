"""Singular mass matrices: a motion that moves no mass has no acceleration. Kernels then return NaN in every entry of the result;
NumPy users get an error that names the joint and the state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..arrays import Array, namespace
from ..errors import ModelError, SingularMassMatrixError
from ..kernel.dispatch import as_written
from ..kinematics.poses import relative_poses
from ..lie import inertia
from ..memo import per_robot
from ..robot.robot import Robot
from .composite import mass_matrix
from .newton_euler import subspaces

SINGULAR = 8 * float(np.finfo(np.float64).eps)
"""A pivot below this fraction of `inertia_scale` is zero up to rounding, which leaves at most 3 units of it on chains of 3 to 25
joints.
"""
SINGULAR_SINGLE = 8 * float(np.finfo(np.float32).eps)
"""`SINGULAR` in single precision."""
WEIGHTLESS = 1e-12
"""A link without inertia about its own joint has less than this fraction of `inertia_scale`."""
_CHUNK = 4096


def nan_where_singular(
    robot: Robot, pivots: Sequence[Array], x: Array, along: Mapping[int, Sequence[tuple[int, Array]]] | None = None
) -> Array:
    """x (..., k), or NaN where one of the nv pivots of the mass matrix is zero up to rounding.

    A pivot is the inertia zᵀ M z of a motion z with z_k = 1, and its rounding is that of all terms: Σ scale_j z_j². `along` has, for
    pivots k whose motion goes far along other freedoms j, the pairs (j, z_j). In a kernel for all robots of a structure the scale is an
    input. If a user's function makes the robot's numbers variables, their size is not known, and every positive pivot is accepted.
    """
    if not pivots:
        return x
    known = _known_scale(robot)
    scale = [0.0] * len(pivots)
    if known is not None:
        least = SINGULAR_SINGLE if "float32" in str(x.dtype) else SINGULAR
        scale = [least * known[k] if known.dtype == object else float(least * known[k]) for k in range(len(pivots))]
    regular: Array = True
    for k, pivot in enumerate(pivots):
        smallest: Array = scale[k]
        for j, z in (along or {}).get(k, ()) if known is not None else ():
            smallest = smallest + scale[j] * z * z
        regular = (pivot > smallest) & regular
    return namespace(x).where(regular[..., None], x, np.nan)


def _known_scale(robot: Robot) -> Array | None:
    """`inertia_scale`, or symbols that stand for it in a kernel of a structure; None where the robot's numbers are variables."""
    original = robot.original
    if "_pivots" not in original.__dict__:
        return inertia_scale(original) if original.has_plain_numbers else None
    scale, light = original.__dict__["_pivots"]
    if light is None:
        raise SingularMassMatrixError(f"a joint of robot {robot.name!r} moves no mass.")
    return scale


def weightless(robot: Robot) -> tuple[int, ...]:
    """The links that have no inertia of their own about their joint, nor armature: the pivots of others are never below their own.

    None where the robot's numbers are variables, but in a kernel of a structure, which the weightless links are part of.
    """
    original = robot.original
    if "_pivots" in original.__dict__:
        return original.__dict__["_pivots"][1] or ()
    return _weightless(original) if original.has_plain_numbers and not original.mimics else ()


@per_robot
def _weightless(robot: Robot) -> tuple[int, ...]:
    scale, found = inertia_scale(robot), []
    S = subspaces(robot, robot.tree_q(robot.neutral()))
    for i in range(robot.n_links):
        if (dofs := robot.tree_v_slices[i]).start == dofs.stop:
            continue
        size = np.sqrt(scale[dofs])
        own = S[i] @ inertia.spatial(robot.inertias[i]) @ S[i].T + np.diag(robot.armature[dofs])
        own = own / np.outer(size, size)
        if np.isfinite(own).all() and np.linalg.eigvalsh(own)[0] < WEIGHTLESS:
            found.append(i)
    return tuple(found)


@per_robot
def inertia_scale(robot: Robot) -> np.ndarray:
    """The size (nv,) of the terms that the diagonal of M is summed from; an error names a joint that moves no mass at all.

    What is left of these terms when they cancel is rounding. They are bounded by lengths alone, as if all that a joint carries lay
    stretched out: a body of mass m, first moment h and second moment I, carried by a distance d, has h + m d and I + 2 h d + m d²
    there, and about a screw (ω, v) the inertia |ω|² I + 2 |ω||v| h + |v|² m.
    """
    q = robot.tree_q(robot.random(np.random.default_rng(0), 8))
    f, S = relative_poses(robot, q), subspaces(robot, q)
    m, h = robot.inertias[:, 0].copy(), np.linalg.norm(robot.inertias[:, 1:4], axis=-1)
    second = np.linalg.norm(inertia.rotational(robot.inertias), axis=(-2, -1))
    scale = robot.armature.copy()
    for i in reversed(robot.order):
        w, v = (np.linalg.norm(x, axis=-1) for x in (S[i][..., :3], S[i][..., 3:]))
        w, v = (x.max(0) if x.ndim > 1 else x for x in (w, v))  # only screws of universal joints depend on q
        scale[robot.tree_v_slices[i]] += w**2 * second[i] + 2 * w * v * h[i] + v**2 * m[i]
        if (parent := robot.parents[i]) >= 0:
            d = float(np.linalg.norm(f[i][..., :3, 3], axis=-1).max())
            m[parent] += m[i]
            second[parent] += second[i] + 2 * h[i] * d + m[i] * d**2
            h[parent] += h[i] + m[i] * d
    if robot.mimics:  # freedoms that move together
        scale = (np.sqrt(scale) @ np.abs(robot.tree_v(np.eye(robot.nv))).T) ** 2
    for name in robot.joint_names:
        if np.any(scale[robot.v_slice(name)] <= 0):
            raise SingularMassMatrixError(_message(robot, name, "moves no mass"))
    return scale


def explain_singular(robot: Robot, q: np.ndarray, **_: object) -> None:
    """Raise an error that names the first state whose mass matrix is singular, and the joint, or a joint that carries more than numbers
    hold; do nothing if there is none.
    """
    root, states = np.sqrt(inertia_scale(robot)), q.reshape(-1, robot.nq)
    for name in robot.joint_names:
        if not np.isfinite(root[robot.v_slice(name)]).all():
            raise ModelError(f"what joint {name!r} of robot {robot.name!r} carries has an inertia that is too large for a number.")
    single = q.dtype == np.float32
    for start in range(0, len(states), _CHUNK):
        chunk = states[start : start + _CHUNK].astype(float)
        with np.errstate(invalid="ignore", divide="ignore"):
            M = np.broadcast_to(as_written(mass_matrix)(robot, chunk), (len(chunk), robot.nv, robot.nv))
        finite = np.isfinite(M).all((-2, -1))  # not for a state that is not a number, or whose quaternion is zero
        M = np.where(finite[:, None, None], M, np.eye(robot.nv))
        values, vectors = np.linalg.eigh(M / np.outer(root, root))
        for k in np.flatnonzero((values[:, 0] <= 4 * (SINGULAR_SINGLE if single else SINGULAR)) & finite)[:1]:
            weakest = int(np.argmax(np.abs(vectors[k, :, 0])))
            joint = next(name for name in robot.joint_names if robot.v_slice(name).start <= weakest < robot.v_slice(name).stop)
            alone = np.linalg.norm(vectors[k, robot.v_slice(joint), 0]) > 1 - 1e-6
            what = "moves no mass" if alone else "and others, moving together, move no mass"
            if values[k, 0] > 4 * SINGULAR:
                what += " that single precision can tell from rounding"
            where = "" if q.ndim == 1 else f" in state {start + k}"
            raise SingularMassMatrixError(_message(robot, joint, f"{what}{where}, q = {chunk[k].tolist()}"))


def _message(robot: Robot, joint: str, what: str) -> str:
    link = robot.links[robot.joint_index(joint)].name
    return (
        f"the mass matrix of robot {robot.name!r} is singular: joint {joint!r} {what}. "
        f"Give link {link!r} (or what it carries) mass and inertia, the joint an armature, or lock the joint."
    )
