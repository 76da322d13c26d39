"""Integrability of the horizontal velocities of a task, tangent to surfaces or not: brackets of the lifts, and O'Neill's tensor.

The columns L_a of an inverse L of J are vector fields on the configurations. As L_a does e_a to the task, their brackets do what the
brackets of the task's own directions do: for all of a frame's body twist J [L_a, L_b] = [e_a, e_b]. What a bracket has besides is vertical,

    [L_a, L_b]ᵛ = (1 - L J) [L_a, L_b],

and times its area it is what a small closed path of the task leaves behind: the motion L X repeats itself exactly where it vanishes
for all a, b (Shamir & Yomdin 1988). That is a tensor: it does not depend on how the fields go on elsewhere. For a weight W (the mass
matrix for the lift) the derivative of L = W⁻¹ Jᵀ Λ along x is

    ∂_x L = (1 - L J) W⁻¹ (∂_x Jᵀ Λ - ∂_x W L) - L ∂_x J L.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arguments import a_function_of, a_robot, floats, takes
from ..arrays import Array, ArrayLike, concat, like, mv, namespace, solve_spd, stack, transpose
from ..dynamics.christoffel import check_metric
from ..dynamics.coriolis import coriolis_matrix
from ..errors import ShapeError
from ..kernel.dispatch import frozen, kernel
from ..memo import recent
from ..robot.robot import Robot
from ..scale.deferred import lazily
from .lift import Split, explain_task, nan_where_none, split_of
from .task import AnyTask, OfRobot, task_of


def frame_bracket(robot: Robot, x: Array, y: Array) -> Array:
    """[X, Y] (..., nv) of the fields with constant components x and y: zero but for joints whose velocities are those of a group."""
    return robot.velocitywise(lambda kind, a, b: kind.bracket(a, b), x, y)


def _lift_derivatives(robot: Robot, q: Array, task: AnyTask, weight: Array | None) -> tuple[Split, Array, Array]:
    """The split; ∂_a L (..., a, nv, b) along its columns L_a; and M⁻¹ C(L_a) L_b for the mass matrix, 0 for another weight."""
    parts = split_of(robot, q, task, weight)
    along, at = transpose(parts.L), q[..., None, :]
    dJ = task.jacobian_rate(robot, at, along)
    L, inertia, W = (x[..., None, :, :] for x in (parts.L, parts.inertia, parts.weight))
    pushed = transpose(dJ) @ inertia
    turning = 0.0 * pushed
    if weight is None:
        C = coriolis_matrix(robot, at, along)  # ∂_a M = C + Cᵀ
        turning = C @ L
        pushed = pushed - turning - transpose(C) @ L
    solved = solve_spd(W, concat([pushed, turning]))
    free, turned = solved[..., : task.size], solved[..., task.size :]
    J = parts.J[..., None, :, :]
    return parts, free - L @ (J @ free) - L @ (dJ @ L), turned


def _antisymmetric(robot: Robot, L: Array, D: Array) -> Array:
    """[L_a, L_b] (..., nv, a, b) from D (..., a, nv, b) = ∂_a L_b."""
    D = namespace(D).moveaxis(D, -3, -2)
    m = L.shape[-1]
    columns = transpose(L)
    constant = frame_bracket(robot, columns[..., :, None, :], columns[..., None, :, :] + 0.0 * columns[..., :, None, :])
    constant = namespace(D).moveaxis(constant.reshape((*columns.shape[:-2], m, m, robot.nv)), -1, -3)
    return D - transpose(D) + constant


@kernel("nv task task", q="nq", weight="nv nv", no_result=explain_task, double=True, largest=10)
def _brackets(robot: Robot, q: Array, task: AnyTask, weight: Array | None = None) -> Array:
    parts, D, _ = _lift_derivatives(robot, q, task, weight)
    return nan_where_none(parts.inertia, _antisymmetric(robot, parts.L, D), 3)


@lazily("nv task task", q="nq", weight="nv nv")
def lift_brackets(
    robot: Robot, q: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None, weight: Array | None = None
) -> Array:
    """[L_a, L_b] (..., nv, a, b) of the columns of the horizontal lift, or of the inverse of another constant weight (nv, nv)."""
    return _brackets(robot, q, task=task_of(frame, rows), **({} if weight is None else {"weight": weight}))


@kernel("nv task task", q="nq", weight="nv nv", no_result=explain_task, double=True, largest=10)
def vertical_brackets_kernel(robot: Robot, q: Array, task: AnyTask, weight: Array | None = None) -> Array:
    parts, D, _ = _lift_derivatives(robot, q, task, weight)
    found = _antisymmetric(robot, parts.L, D)
    flat = found.reshape((*found.shape[:-2], task.size**2))
    return nan_where_none(parts.inertia, parts.vertical(flat).reshape(found.shape), 3)


@lazily("nv task task", q="nq", weight="nv nv")
def vertical_brackets(
    robot: Robot, q: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None, weight: Array | None = None
) -> Array:
    """(1 - L J) [L_a, L_b] (..., nv, a, b): zero everywhere exactly if motion by L repeats itself. See `lift_brackets`.

    For the lift it is twice the skew part of `oneill_tensor`, the curvature of the horizontal distribution.
    """
    return vertical_brackets_kernel(robot, q, task=task_of(frame, rows), **({} if weight is None else {"weight": weight}))


@kernel("nv task task", q="nq", no_result=explain_task, double=True, largest=10)
def oneill_kernel(robot: Robot, q: Array, task: AnyTask) -> Array:
    check_metric(robot)
    parts, D, turned = _lift_derivatives(robot, q, task, None)
    found = namespace(D).moveaxis(D + turned, -3, -2)
    vertical = parts.vertical(found.reshape((*found.shape[:-2], task.size**2))).reshape(found.shape)
    return nan_where_none(parts.inertia, vertical, 3)


@lazily("nv task task", q="nq")
def oneill_tensor(robot: Robot, q: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None) -> Array:
    """A(L_a, L_b) = (∇_{L_a} L_b)ᵛ (..., nv, a, b): how the horizontal spaces turn into the vertical ones along horizontal paths.

    Its skew part is ½ [L_a, L_b]ᵛ, which vanishes if the horizontal distribution is integrable. Its symmetric part vanishes if Λ does not
    change along the fibre, that is if the task is a Riemannian submersion onto some metric. Then O'Neill's formula holds,
    K of the task's plane = K of its lift + ¾ |[X, Y]ᵛ|² for orthonormal X, Y; Altafini's (16) lacks this A.
    """
    return oneill_kernel(robot, q, task=task_of(frame, rows))


Inverse = Callable[[Robot, Array], Array]
"""A user's own inverse: (nv, size) from the robot and q, with array operations."""


@takes(robot=a_robot, inverse=a_function_of("robot", "q"))
def inverse_brackets(
    robot: Robot, q: ArrayLike, inverse: Inverse, frame: str | AnyTask, rows: Sequence[int] | None = None
) -> np.ndarray:
    """(1 - L J) [L_a, L_b] (..., nv, a, b) of the columns of a user's inverse L(q), differentiated by tracing it."""
    from ..compiling import compile
    from ..differentiating import differential

    task = task_of(frame, rows)
    task, now = frozen(task, robot), OfRobot.now(inverse, robot)

    def found(robot: Robot, q: Array) -> Array:
        L, D = now(robot, q), differential(now)(robot, q)  # D (nv, b, nv)
        if L.shape[-2:] != (robot.nv, task.size):
            raise ShapeError(
                f"inverse gives shape {tuple(L.shape[-2:])}; expected {(robot.nv, task.size)}, a column for each row of the task."
            )
        along = stack([mv(D, L[..., None, :, a]) for a in range(task.size)], axis=-3)
        B = _antisymmetric(robot, L, along)
        flat = B.reshape((*B.shape[:-2], task.size**2))
        return (flat - L @ (task.jacobian(robot, q) @ flat)).reshape(B.shape)

    result: np.ndarray = recent(robot, ("inverse brackets", now, task.key), lambda: compile(found, robot))(floats(q, "q"))
    return result


def constant_weight(robot: Robot, weight: Any) -> np.ndarray:
    """A weight as (nv, nv): "moore-penrose" is 1, (nv,) is a diagonal."""
    from ..errors import CoadjointError

    if isinstance(weight, str) and weight == "moore-penrose":
        return np.eye(robot.nv)
    try:
        W = np.asarray(weight, dtype=float)
    except (TypeError, ValueError, OverflowError):
        W = np.zeros(0)
    W = np.diag(W) if W.shape == (robot.nv,) else W
    if W.shape != (robot.nv, robot.nv) or not np.allclose(W, W.T) or np.linalg.eigvalsh(W)[0] <= 0:
        raise CoadjointError(
            f"inverse is {weight!r}; expected 'lift', 'moore-penrose', a symmetric positive definite weight ({robot.nv}, {robot.nv}) or "
            f"its diagonal ({robot.nv},), or a function inverse(robot, q)."
        )
    return like(W, np.zeros(1))
