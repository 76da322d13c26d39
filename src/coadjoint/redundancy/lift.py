"""The horizontal lift: of all joint velocities that do a task, the one of least kinetic energy.

The task's Jacobian J splits the velocities of a robot into vertical ones, J v = 0, and horizontal ones, which are orthogonal to them
in the metric M of kinetic energy. Altafini (2004), (13). On horizontal velocities J is invertible, and the inverse is

    L = M⁻¹ Jᵀ Λ,   Λ = (J M⁻¹ Jᵀ)⁻¹,   J L = 1,   L = N⁻¹ (J N⁻¹)⁺ for any N with Nᵀ N = M.

It does not depend on the coordinates q are written in. With another weight W instead of M it is another inverse of J: with W = 1 the
pseudoinverse of Moore and Penrose, which does depend on them. L is that pseudoinverse exactly where M maps ker J to ker J.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arguments import a_damping, a_robot, check_core, finite, floats, numbers, takes
from ..arrays import Array, ArrayLike, like, mirror, mv, namespace, solve_spd, transpose
from ..dynamics.composite import mass_matrix
from ..dynamics.singular import explain_singular
from ..errors import CoadjointError
from ..kernel.dispatch import kernel
from ..robot.robot import Robot
from ..scale.deferred import lazily
from .task import AnyTask, Task, task_of

SINGULAR = 1e-10
"""A row of J whose part independent of the others is below this fraction of the mean square of rows, in the metric M⁻¹, counts as
dependent: rounding and the condition of M leave about 1e-12 of a zero.
"""
SINGULAR_SINGLE = 1e-5
"""The bound for arrays of single precision that are not NumPy's, which are computed in double precision."""


class SingularTaskError(CoadjointError):
    """A task has no inverse where its Jacobian has lost rank; the message names the configuration and the direction that cannot be
    moved.
    """


class Split(NamedTuple):
    """J, its weighted inverse L, Λ = (J W⁻¹ Jᵀ)⁻¹ and the weight W, at a configuration."""

    J: Array
    L: Array
    inertia: Array
    weight: Array

    def vertical(self, x: Array) -> Array:
        """(1 - L J) x for the columns of x (..., nv, k)."""
        return x - self.L @ (self.J @ x)


def split_of(robot: Robot, q: Array, task: AnyTask, weight: Array | None = None, damping: float = 0.0) -> Split:
    """The split by a weight (..., nv, nv), the mass matrix if None; NaN where J has lost rank, unless damped.

    damping λ: (J W⁻¹ Jᵀ + λ² 1)⁻¹ instead; then J L = 1 no longer holds.
    """
    if task.size > robot.nv:
        raise CoadjointError(
            f"the task {task} has {task.size} rows, robot {robot.name!r} has {robot.nv} freedoms; choose at most as many rows."
        )
    J = task.jacobian(robot, q)
    W = mass_matrix(robot, q) if weight is None else weight
    Y = solve_spd(W, transpose(J))
    A = mirror(J @ Y)
    one = like(np.eye(task.size), A)
    inverse = mirror(solve_spd(A + damping**2 * one, one))
    if not damping:
        inverse = nan_where_singular_task(task, A, inverse)
    return Split(J, Y @ inverse, inverse, W)


def nan_where_singular_task(task: AnyTask, A: Array, inverse: Array) -> Array:
    """The inverse (..., m, m), or NaN where the independent part of a row is below `SINGULAR` times the mean of A = J W⁻¹ Jᵀ over
    rows of its unit.

    1/inverse_kk is what the other rows leave free of row k. By rounding it may be negative where it is zero: machine code eliminates
    without roots, and does not stop there.
    """
    free: Array = None
    least = SINGULAR_SINGLE if str(getattr(A, "dtype", "")).endswith("float32") else SINGULAR
    for group in task.groups:
        mean = sum(A[..., k, k] for k in group) / len(group)
        for k in group:
            share = mean * inverse[..., k, k]
            share = (share < 1.0 / least) & (share > 0.0)  # false for NaN too
            free = share if free is None else free & share
    return namespace(inverse).where(free[..., None, None], inverse, np.nan)


def nan_where_none(inertia: Array, x: Array, core: int) -> Array:
    """x (...) with `core` axes, all of it NaN where Λ is: also what does not depend on it, as joints that do not move the task."""
    good = inertia[..., 0, 0] > 0.0
    return namespace(x).where(good[(..., *(None,) * core)], x, np.nan)


def explain_task(robot: Robot, q: np.ndarray, task: AnyTask, result: Any = None, **others: Any) -> None:
    """Raise an error that says why there is no inverse: the mass matrix is singular, or the task, where, and what cannot be done."""
    if not all(np.all(np.isfinite(x)) for x in (q, *others.values()) if isinstance(x, np.ndarray)):
        return
    explain_singular(robot, q)
    states = q.reshape(-1, robot.nq)
    k = int(np.argmin(dexterity(robot, states, task)))
    raise singular(robot, states[k], task, "" if q.ndim == 1 else f" in state {k}")


def singular(robot: Robot, q: np.ndarray, task: AnyTask, where: str = "") -> SingularTaskError:
    """The error for a task without inverse at q (nq,)."""
    J = task.jacobian(robot, q)
    still = [k for k in range(task.size) if not np.any(np.abs(J[k]) > 1e-12)]
    if still and isinstance(task, Task):
        others = tuple(row for k, row in enumerate(task.rows) if k not in still)
        what = f"rows {tuple(task.rows[k] for k in still)} do not move; choose rows={others}" if others else "nothing moves it"
    else:
        what = f"the combination {np.round(singular_rows(robot, q, task), 3).tolist()} of its rows cannot be done"
    return SingularTaskError(
        f"the task {task} of robot {robot.name!r} is singular{where}, q = {q.tolist()}: {what}. Choose other rows, another "
        "configuration, or damping."
    )


@kernel("nv task", q="nq", weight="nv nv", no_result=explain_task, double=True)
def _weighted_inverse(robot: Robot, q: Array, task: AnyTask, weight: Array | None = None, damping: float = 0.0) -> Array:
    parts = split_of(robot, q, task, weight, damping)
    return nan_where_none(parts.inertia, parts.L, 2)


@lazily("nv task", q="nq", weight="nv nv")
@takes(damping=a_damping)
def weighted_inverse(
    robot: Robot,
    q: ArrayLike,
    frame: str | AnyTask,
    weight: Array | None = None,
    damping: float = 0.0,
    rows: Sequence[int] | None = None,
) -> Array:
    """W⁻¹ Jᵀ (J W⁻¹ Jᵀ)⁻¹ (..., nv, size): the inverse of J of least vᵀ W v; W = M if None, W = 1 for Moore and Penrose's.

    damping λ > 0 adds λ² 1 to what is inverted: it exists everywhere, but J L is no longer 1.
    """
    if type(weight) is np.ndarray and weight.shape[-2:] == (robot.nv, robot.nv) and not _definite(weight):
        raise CoadjointError("weight is not symmetric positive definite, so there is no least vᵀ W v.")
    given = {} if weight is None else {"weight": weight}
    return _weighted_inverse(robot, q, task=task_of(frame, rows), damping=float(damping), **given)


def _definite(W: np.ndarray) -> bool:
    return bool(np.allclose(W, transpose(W)) and np.min(np.linalg.eigvalsh(W), initial=1.0) > 0)


@lazily("nv task", q="nq")
def horizontal_lift(
    robot: Robot,
    q: ArrayLike,
    frame: str | AnyTask,
    rows: Sequence[int] | None = None,
    *,
    out: Array = None,
    threads: int | None = None,
) -> Array:
    """L (..., nv, 6 or len(rows)): the joint velocity L X is the one of least kinetic energy with the body twist X, or those rows of it.

    L = M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁻¹; J L = 1, and (L X)ᵀ M v = 0 for all v with J v = 0. Altafini (2004), (14), (23) corrected. `frame` may be a
    `Task` or `MapTask`. Where J has lost rank there is none: an error for NumPy arrays, NaN for traced ones.
    """
    return _weighted_inverse(robot, q, task=task_of(frame, rows), out=out, threads=threads)


@takes(robot=a_robot)
@lazily("nv task", q="nq")
def moore_penrose(robot: Robot, q: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None) -> Array:
    """J⁺ = Jᵀ (J Jᵀ)⁻¹ (..., nv, 6 or len(rows)). Altafini (2004), (19). It weighs radians against metres as they are written."""
    weight = like(np.eye(robot.nv), q if hasattr(q, "shape") else np.zeros(1))
    return _weighted_inverse(robot, q, task=task_of(frame, rows), weight=weight)


@kernel("task task", q="nq", no_result=explain_task, double=True)
def _effective_inertia(robot: Robot, q: Array, task: AnyTask) -> Array:
    return split_of(robot, q, task).inertia


@lazily("task task", q="nq")
def effective_inertia(
    robot: Robot,
    q: ArrayLike,
    frame: str | AnyTask,
    rows: Sequence[int] | None = None,
    *,
    out: Array = None,
    threads: int | None = None,
) -> Array:
    """Λ = (J M⁻¹ Jᵀ)⁻¹ (..., 6, 6), or of those rows: the inertia that the frame opposes to a wrench, Λ = Lᵀ M L.

    ½ Xᵀ Λ X is the least kinetic energy with the twist X. An error for NumPy arrays where J has lost rank.
    """
    return _effective_inertia(robot, q, task=task_of(frame, rows), out=out, threads=threads)


@kernel("nv", "nv", q="nq", v="nv", no_result=explain_task, double=True)
def _split_velocity(robot: Robot, q: Array, v: Array, task: AnyTask) -> tuple[Array, Array]:
    parts = split_of(robot, q, task)
    horizontal = nan_where_none(parts.inertia, mv(parts.L, mv(parts.J, v)), 1)
    return horizontal, v - horizontal


@lazily("nv", "nv", q="nq", v="nv")
def split_velocity(
    robot: Robot, q: ArrayLike, v: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None
) -> tuple[Array, Array]:
    """The horizontal and the vertical part of v, (..., nv) each: orthogonal in M, and only the first does the task. Altafini (13)."""
    return _split_velocity(robot, q, v, task=task_of(frame, rows))


@kernel("nv nv", q="nq", no_result=explain_task, double=True)
def _vertical_projector(robot: Robot, q: Array, task: AnyTask) -> Array:
    parts = split_of(robot, q, task)
    return nan_where_none(parts.inertia, parts.vertical(like(np.eye(robot.nv), q)), 2)


@lazily("nv nv", q="nq")
def vertical_projector(robot: Robot, q: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None) -> Array:
    """1 - L J (..., nv, nv): the M-orthogonal projector on the velocities that do nothing to the task."""
    return _vertical_projector(robot, q, task=task_of(frame, rows))


def lift_function(
    robot: Robot, q: ArrayLike, eta: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None
) -> tuple[Array, Array]:
    """dϑ = Jᵀ η and grad ϑ = M⁻¹ Jᵀ η, (..., nv) each, of a function of the pose seen as a function ϑ of q. Altafini (24) corrected.

    η (..., 6 or len(rows)): its differential by body twists, d θ(T exp(t X))/dt = η·X. The gradient is horizontal.
    """
    task = task_of(frame, rows)
    force = mv(transpose(task.jacobian(robot, q)), task_vector(task, eta, "eta"))
    return force, _gradient(robot, q, force)


def task_vector(task: AnyTask, x: Any, name: str) -> Array:
    """x (..., size) as an array; an error where it has not as many numbers as the task has rows."""
    x = numbers(x, name)
    check_core(name, x, (task.size,), f" for task {task}")
    return x


def _gradient(robot: Robot, q: Array, force: Array) -> Array:
    from ..geometry.metric import gradient

    return gradient(robot, q, force)


def vertical_basis(robot: Robot, q: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None) -> np.ndarray:
    """Columns (..., nv, nv - size) that span the vertical velocities, orthonormal in M; their order and sign are arbitrary.

    Where J has lost rank there are more vertical velocities than these columns can span: an error.
    """
    task = task_of(frame, rows)
    q = finite(floats(q, "q"), "q")
    effective_inertia(robot, q, task)
    root = np.linalg.cholesky(mass_matrix(robot, q))  # M = root rootᵀ
    seen = transpose(np.linalg.solve(root, transpose(task.jacobian(robot, q))))  # J root⁻ᵀ
    _, _, right = np.linalg.svd(seen)
    return np.linalg.solve(transpose(root), transpose(right[..., task.size :, :]))


def horizontal_basis(robot: Robot, q: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None) -> np.ndarray:
    """Columns (..., nv, size) that span the horizontal velocities, orthonormal in M: L G⁻ᵀ with Λ = G Gᵀ."""
    task = task_of(frame, rows)
    G = np.linalg.cholesky(effective_inertia(robot, q, task))
    return transpose(np.linalg.solve(G, transpose(horizontal_lift(robot, q, task))))


def dexterity(robot: Robot, q: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None) -> np.ndarray:
    """The distance (...) of a task from singular, from 0 to 1: the root of the least eigenvalue of J M⁻¹ Jᵀ, its rows scaled.

    Rows of one unit (of ω, of v, of a `MapTask`) are divided by their root mean square, so it is free of units and, with all of ω or v, of
    the frame's axes; 0 where J has lost rank, 1 where all directions are equal.
    """
    return np.sqrt(np.maximum(np.linalg.eigvalsh(_scaled(robot, q, task_of(frame, rows)))[..., 0], 0.0))


def singular_rows(robot: Robot, q: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None) -> np.ndarray:
    """The combination (size,) of rows in which the robot is least mobile at q (nq,), in units of rows scaled to unit inertia."""
    _, vectors = np.linalg.eigh(_scaled(robot, q, task_of(frame, rows)))
    return vectors[..., :, 0]


def _scaled(robot: Robot, q: Any, task: AnyTask) -> np.ndarray:
    q = floats(q, "q")
    J = task.jacobian(robot, q)
    try:
        A = J @ np.linalg.solve(mass_matrix(robot, q), transpose(J))
    except np.linalg.LinAlgError:
        explain_singular(robot, q)
        raise
    size = np.einsum("...kk->...k", A).copy()
    for group in task.groups:
        size[..., group] = np.mean(size[..., group], axis=-1, keepdims=True)
    size = np.sqrt(np.where(size > 0, size, 1.0))
    result: np.ndarray = A / (size[..., :, None] * size[..., None, :])
    return result
