"""Manipulability of a task at a configuration, its gradient, and its ellipsoids.

The joint velocities of unit size, in vᵀ v or in kinetic energy vᵀ M v, give twists that fill an ellipsoid, {X : Xᵀ A⁻¹ X ≤ 1}:

    velocity    A = J Jᵀ              twists of unit joint velocities (Yoshikawa 1985)
    mobility    A = J M⁻¹ Jᵀ = Λ⁻¹     twists of unit kinetic energy vᵀ M v; its inverse is the inertia ellipsoid
    inertia     A = Λ                 wrenches, and the inertia felt in each direction
    force       A = (J Jᵀ)⁻¹          wrenches held by unit joint forces
    acceleration A = J M⁻² Jᵀ         accelerations from rest by unit joint forces

Manipulability is √det A of the first two: the volume of the ellipsoid but for a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..arguments import a_robot, floats, one_of, takes
from ..arrays import Array, ArrayLike, like, namespace, solve_spd, transpose
from ..dynamics.christoffel import mass_matrix_derivative
from ..dynamics.composite import mass_matrix
from ..errors import CoadjointError
from ..kernel.dispatch import kernel
from ..robot.robot import Robot
from ..scale.deferred import lazily
from .lift import explain_task, nan_where_none, split_of
from .task import AnyTask, Task, task_of

METRICS = ("euclidean", "kinetic")
KINDS = ("velocity", "mobility", "inertia", "force", "acceleration")


def _weight(robot: Robot, q: Array, metric: str) -> Array | None:
    if metric not in METRICS:
        raise CoadjointError(f"metric is {metric!r}; choose from {', '.join(METRICS)}.")
    return None if metric == "kinetic" else like(np.eye(robot.nv), q)


def _root_determinant(A: Array) -> Array:
    """√det A (...) of a symmetric positive semidefinite matrix, by elimination; 0 where a pivot is not positive."""
    n, xp = A.shape[-1], namespace(A)
    rows = [[A[..., i, j] for j in range(n)] for i in range(n)]
    total = None
    for k in range(n):
        pivot = xp.where(rows[k][k] > 0.0, rows[k][k], 0.0 * rows[k][k])
        safe = xp.where(rows[k][k] > 0.0, rows[k][k], 1.0 + 0.0 * rows[k][k])
        total = pivot if total is None else total * pivot
        for i in range(k + 1, n):
            part = rows[k][i] / safe
            for j in range(i, n):
                rows[i][j] = rows[i][j] - part * rows[k][j]
    return xp.sqrt(total)


@kernel("", q="nq")
def _manipulability(robot: Robot, q: Array, task: AnyTask, metric: str = "euclidean") -> Array:
    W = _weight(robot, q, metric)
    J = task.jacobian(robot, q)
    return _root_determinant(J @ (transpose(J) if W is not None else solve_spd(mass_matrix(robot, q), transpose(J))))


@lazily("", q="nq")
@takes(metric=one_of(*METRICS))
def manipulability(
    robot: Robot, q: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None, metric: str = "euclidean"
) -> Array:
    """√det(J Jᵀ) (...), or √det(J M⁻¹ Jᵀ) with metric "kinetic", which does not depend on coordinates; 0 where the task is singular."""
    return _manipulability(robot, q, task_of(frame, rows), metric)


@kernel("nv", q="nq", no_result=explain_task, double=True)
def _manipulability_gradient(robot: Robot, q: Array, task: AnyTask, metric: str = "euclidean") -> Array:
    W = _weight(robot, q, metric)
    parts = split_of(robot, q, task, W)
    w = _manipulability(robot, q, task, metric)
    along, at = like(np.eye(robot.nv), q), q[..., None, :]
    dJ = task.jacobian_rate(robot, at, along + 0.0 * at[..., :1])  # (..., l, m, nv)
    change = (dJ * transpose(parts.L)[..., None, :, :]).sum((-2, -1))
    if W is None:
        spread = parts.L @ transpose(solve_spd(parts.weight, transpose(parts.J)))  # L Λ⁻¹ Lᵀ
        change = change - 0.5 * (mass_matrix_derivative(robot, q) * spread[..., None]).sum((-3, -2))
    return nan_where_none(parts.inertia, w[..., None] * change, 1)


@lazily("nv", q="nq")
@takes(metric=one_of(*METRICS))
def manipulability_gradient(
    robot: Robot, q: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None, metric: str = "euclidean"
) -> Array:
    """∂w/∂q (..., nv) of `manipulability`: w (tr(∂_l J L) - ½ tr(Λ⁻¹ Lᵀ ∂_l W L)) with the weighted inverse L.

    `coadjoint.derivative(manipulability, robot, frame="tip")` is the same by tracing.
    """
    return _manipulability_gradient(robot, q, task=task_of(frame, rows), metric=metric)


class Ellipsoid(NamedTuple):
    """{X : Xᵀ A⁻¹ X ≤ 1}: its half-axes are lengths times the columns of axes."""

    lengths: np.ndarray
    """(..., m), the longest first."""
    axes: np.ndarray
    """(..., m, m), a unit vector a column."""
    matrix: np.ndarray
    """A (..., m, m)"""


@takes(robot=a_robot, kind=one_of(*KINDS))
def ellipsoid(
    robot: Robot, q: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None, kind: str = "velocity"
) -> Ellipsoid:
    """One of the ellipsoids that the module lists. Choose rows of one unit, as (3, 4, 5): axes of mixed units have no length."""
    task, q = task_of(frame, rows), floats(q, "q")
    if isinstance(task, Task) and len({row < 3 for row in task.rows}) > 1:
        raise CoadjointError(
            f"the rows {task.rows} mix radians and metres; an ellipsoid takes rows of ω (0, 1, 2) or of v (3, 4, 5)."
        )
    J = task.jacobian(robot, q)
    A = J @ transpose(J)
    if kind in ("mobility", "inertia", "acceleration"):
        Y = np.linalg.solve(mass_matrix(robot, q), transpose(J))
        A = transpose(Y) @ Y if kind == "acceleration" else J @ Y
    values, vectors = np.linalg.eigh(A)
    values, vectors = np.maximum(values, 0.0)[..., ::-1], vectors[..., ::-1]
    if kind in ("inertia", "force"):
        with np.errstate(divide="ignore", invalid="ignore"):  # where the task is singular, a half-axis is inf and A is none
            values, vectors = 1.0 / values[..., ::-1], vectors[..., ::-1]
            A = (vectors * values[..., None, :]) @ transpose(vectors)
    return Ellipsoid(np.sqrt(values), vectors, A)
