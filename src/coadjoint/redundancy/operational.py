"""Operational space: the equations of motion in the coordinates of a task.

With X = J v, the horizontal lift L (the dynamically consistent inverse) and Λ = (J M⁻¹ Jᵀ)⁻¹,

    Ẋ = J M⁻¹ (τ - C v - g) + J̇ v           Altafini (2004), (18) corrected: (18) has ad*_X X for the terms in v, and no gravity
    Λ Ẋ + μ + p = F,   F = Lᵀ τ,   μ = Lᵀ C v - Λ J̇ v,   p = Lᵀ g.

Forces (1 - Jᵀ Lᵀ) τ do nothing to the task. For velocities v = L X the terms μ are 𝒞 X with 𝒞 = Lᵀ C L - Λ J̇ L, and dΛ/dt - 2𝒞 is skew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arguments import a_damping, a_robot, numbers, sequence, takes
from ..arrays import Array, ArrayLike, concat, like, mirror, mv, solve_spd, transpose
from ..dynamics.articulated import forward_dynamics
from ..dynamics.composite import mass_matrix
from ..dynamics.coriolis import coriolis_matrix
from ..dynamics.newton_euler import bias_force, gravity_force, inverse_dynamics
from ..dynamics.singular import explain_singular
from ..errors import CoadjointError
from ..kernel.dispatch import kernel
from ..robot.robot import Robot
from ..scale.deferred import lazily
from .lift import (
    SingularTaskError,
    explain_task,
    nan_where_none,
    nan_where_singular_task,
    split_of,
    task_vector,
)
from .task import AnyTask, task_of


class OperationalSpace(NamedTuple):
    """Λ Ẋ + μ + p = F: inertia, the terms of velocity and of gravity."""

    inertia: Array
    """Λ (..., m, m)"""
    coriolis: Array
    """μ (..., m)"""
    gravity: Array
    """p (..., m)"""


@kernel("task task", "task", "task", q="nq", v="nv", no_result=explain_task, double=True)
def _operational_space(robot: Robot, q: Array, v: Array, task: AnyTask) -> tuple[Array, Array, Array]:
    parts = split_of(robot, q, task)
    gravity = gravity_force(robot, q)
    velocity = bias_force(robot, q, v) - gravity
    back = transpose(parts.L)
    mu = mv(back, velocity) - mv(parts.inertia, mv(task.jacobian_rate(robot, q, v), v))
    return parts.inertia, nan_where_none(parts.inertia, mu, 1), nan_where_none(parts.inertia, mv(back, gravity), 1)


@lazily("task task", "task", "task", q="nq", v="nv")
def operational_space(
    robot: Robot, q: ArrayLike, v: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None
) -> OperationalSpace:
    """Λ, μ and p of a task at q, v: Λ Ẋ + μ + p = Lᵀ τ for every joint force τ."""
    return OperationalSpace(*_operational_space(robot, q, v, task=task_of(frame, rows)))


@kernel("task task", q="nq", v="nv", no_result=explain_task, double=True)
def _task_coriolis_matrix(robot: Robot, q: Array, v: Array, task: AnyTask) -> Array:
    parts = split_of(robot, q, task)
    C, rate = coriolis_matrix(robot, q, v), task.jacobian_rate(robot, q, v)
    return nan_where_none(parts.inertia, transpose(parts.L) @ (C @ parts.L) - parts.inertia @ (rate @ parts.L), 2)


@lazily("task task", q="nq", v="nv")
def task_coriolis_matrix(
    robot: Robot, q: ArrayLike, v: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None
) -> Array:
    """𝒞 (..., m, m) = Lᵀ C L - Λ J̇ L: dΛ/dt - 2𝒞 is skew, and μ = 𝒞 X where v = L X is horizontal."""
    return _task_coriolis_matrix(robot, q, v, task=task_of(frame, rows))


@lazily("task", q="nq", v="nv", tau="nv")
def task_acceleration(
    robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None
) -> Array:
    """Ẋ (..., m) = J M⁻¹ (τ - C v - g) + J̇ v: how joint forces accelerate the task. Altafini (2004), (18) corrected."""
    task = task_of(frame, rows)
    a = forward_dynamics(robot, q, v, tau)
    return mv(task.jacobian(robot, q), a) + mv(task.jacobian_rate(robot, q, _array(v, "v")), _array(v, "v"))


@lazily("nv", q="nq", v="nv", acceleration="task", null_torque="nv")
def task_torque(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    acceleration: ArrayLike,
    frame: str | AnyTask,
    rows: Sequence[int] | None = None,
    null_torque: ArrayLike | None = None,
) -> Array:
    """τ (..., nv) = Jᵀ (Λ Ẋ + μ + p) + (1 - Jᵀ Lᵀ) τ₀: the task gets the acceleration Ẋ (..., m) whatever τ₀ (..., nv) is."""
    task = task_of(frame, rows)
    inertia, mu, p = operational_space(robot, q, v, task)
    tau = mv(transpose(task.jacobian(robot, q)), mv(inertia, task_vector(task, acceleration, "acceleration")) + mu + p)
    return tau if null_torque is None else tau + null_space_torque(robot, q, null_torque, task)


@kernel("nv", q="nq", tau="nv", no_result=explain_task, double=True)
def _null_space_torque(robot: Robot, q: Array, tau: Array, task: AnyTask) -> Array:
    parts = split_of(robot, q, task)
    return nan_where_none(parts.inertia, tau - mv(transpose(parts.J), mv(transpose(parts.L), tau)), 1)


@lazily("nv", q="nq", tau="nv")
def null_space_torque(robot: Robot, q: ArrayLike, tau: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None) -> Array:
    """(1 - Jᵀ Lᵀ) τ (..., nv): the part of τ that does not accelerate the task."""
    return _null_space_torque(robot, q, tau, task=task_of(frame, rows))


# --- several tasks, the first before the second


def explain_conflict(robot: Robot, q: np.ndarray, task: tuple[AnyTask, ...], **_: object) -> None:
    """Raise an error that names the tasks which conflict, or says that the mass matrix is singular."""
    if np.all(np.isfinite(q)):
        explain_singular(robot, q)
        raise SingularTaskError(
            f"the tasks {', '.join(map(str, task))} of robot {robot.name!r} conflict in some state: one has no freedom left by those "
            "before it. Leave out rows, or give damping."
        )


@kernel("nv task", q="nq", no_result=explain_conflict, double=True)
def _prioritized_inverse(robot: Robot, q: Array, task: tuple[AnyTask, ...], damping: float = 0.0) -> Array:
    M = mass_matrix(robot, q)
    null = like(np.eye(robot.nv), q)
    G: Array = None
    inverses = []
    for one in task:
        J = one.jacobian(robot, q)
        free = J @ null
        Y = solve_spd(M, transpose(free))
        unit = like(np.eye(one.size), q)
        A = mirror(free @ Y)
        inverse = mirror(solve_spd(A + damping**2 * unit, unit))
        if not damping:
            inverse = nan_where_singular_task(one, J @ solve_spd(M, transpose(J)), inverse)
        L = Y @ inverse
        if damping:
            L = null @ L  # damped, `null` is not quite a projector, and what conflicts would come back into the tasks before
        G = L if G is None else concat([G - L @ (J @ G), L])
        null = null - L @ free
        inverses.append(inverse)
    for inverse in inverses:
        G = nan_where_none(inverse, G, 2)
    return G


@takes(robot=a_robot, tasks=sequence, damping=a_damping)
@lazily("nv task", q="nq")
def prioritized_inverse(robot: Robot, q: ArrayLike, tasks: Sequence[AnyTask | str], damping: float = 0.0) -> Array:
    """G (..., nv, Σ sizes): v = G X does the first task's part of X, then the second's as far as the first allows, and so on.

    Each step lifts with the M-orthogonal projector on what those before leave free: v_k = v_{k-1} + L_k (X_k - J_k v_{k-1}). A task that
    is not free beside those before it is an error for NumPy arrays, unless `damping` λ > 0, as for a posture q of all joints behind the
    pose of a frame. Then every task, the first too, is done but for about λ² times its inertia.
    """
    return _prioritized_inverse(robot, q, _tasks(robot, tasks, damping), damping)


@takes(robot=a_robot, tasks=sequence, accelerations=sequence, damping=a_damping)
def prioritized_torque(
    robot: Robot, q: ArrayLike, v: ArrayLike, tasks: Sequence[AnyTask | str], accelerations: Sequence[Array], damping: float = 0.0
) -> Array:
    """τ (..., nv) that gives each task its acceleration Ẋ_k (..., m_k), the first before the second: inverse dynamics of G (Ẋ - J̇ v)."""
    chosen = _tasks(robot, tasks, damping)
    if len(accelerations) != len(chosen):
        raise CoadjointError(f"there are {len(chosen)} tasks and {len(accelerations)} accelerations; expected one for each.")
    v = _array(v, "v")
    wanted = [
        task_vector(task, x, "acceleration") - mv(task.jacobian_rate(robot, _array(q, "q"), v), v)
        for task, x in zip(chosen, accelerations, strict=True)
    ]
    return inverse_dynamics(robot, q, v, mv(prioritized_inverse(robot, q, chosen, damping), concat(wanted)))


def _tasks(robot: Robot, tasks: Sequence[AnyTask | str], damping: float) -> tuple[AnyTask, ...]:
    chosen = tuple(task_of(x) for x in tasks)
    rows = sum(x.size for x in chosen)
    if not chosen:
        raise CoadjointError("no task is given; expected at least one.")
    if rows > robot.nv and not damping:
        raise CoadjointError(
            f"the tasks have {rows} rows, robot {robot.name!r} has {robot.nv} freedoms; leave out rows, or give damping."
        )
    return chosen


def _array(x: Any, name: str) -> Array:
    return numbers(x, name)
