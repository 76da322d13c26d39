"""Time-varying linear-quadratic regulation about a trajectory: `time_varying_lqr`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_robot, one_of, takes
from ..dynamics import from_triangle, triangle
from ..errors import CoadjointError, ShapeError
from ..kernel.runtime.function import run_steps
from ..robot.robot import Robot
from .posing import actuation_matrix, numbers
from .shooting import METHODS, Steps, Sum


@dataclass(frozen=True, eq=False)
class TrackingGains:
    """Feedback along a trajectory: δu = K δx, with δx = (q ⊖ q*, v - v*) (2 nv,)."""

    K: np.ndarray
    """(..., N, m, 2 nv)"""
    P: np.ndarray
    """(..., N + 1, 2 nv, 2 nv): the cost to go is ½ δxᵀ P δx."""
    A: np.ndarray
    """(..., N, 2 nv, 2 nv): δx' = A δx + B δu."""
    B: np.ndarray
    """(..., N, 2 nv, m)"""


@takes(robot=a_robot, method=one_of(*METHODS))
def time_varying_lqr(
    robot: Robot,
    q: Any,
    v: Any,
    u: Any,
    *,
    dt: Any,
    Q: Any,
    R: Any,
    Q_end: Any = None,
    actuation: Any = None,
    method: str = "euler",
    threads: int | None = None,
) -> TrackingGains:
    """Gains that make ½ Σ (δxᵀ Q δx + δuᵀ R δu) + ½ δxᵀ Q_end δx least along states q (..., N + 1, nq), v and controls u (..., N, m).

    A and B are the exact derivatives of a step of length dt, a number or (N,); the motion may have more states at its end than the N that
    steps begin with. Q (2 nv, 2 nv) or its diagonal, R (m, m) or its diagonal; Q_end is Q by default. Batch axes go in front.
    """
    B = actuation_matrix(robot, actuation)
    m, nx = B.shape[1], 2 * robot.nv
    q, v, u = (numbers(x, name, "an array") for x, name in ((q, "q"), (v, "v"), (u, "u")))
    if u.ndim < 2 or u.shape[-1] != m or not u.shape[-2]:
        raise ShapeError(f"u has shape {u.shape}; expected (..., N, {m}) with at least one step.")
    N = u.shape[-2]
    for x, size, name in ((q, robot.nq, "q"), (v, robot.nv, "v")):
        if x.ndim < 2 or x.shape[-1] != size or x.shape[-2] not in (N, N + 1):
            raise ShapeError(
                f"{name} has shape {x.shape}; expected (..., {N + 1}, {size}), a state at the start of each step and one more."
            )
    h = numbers(dt, "dt", f"a positive number or ({N},)")
    if h.shape not in ((), (N,)) or not (h > 0).all():
        raise CoadjointError(f"dt is {dt!r}; expected a positive number of seconds, or ({N},) of them.")
    cost_x, cost_u = _weight("Q", Q, nx), _weight("R", R, m, definite=True)
    cost_end = cost_x if Q_end is None else _weight("Q_end", Q_end, nx)

    batch = np.broadcast_shapes(q.shape[:-2], v.shape[:-2], u.shape[:-2])
    steps = Steps(robot, Sum(()), B, method, False, direct=False)
    states = [
        np.broadcast_to(x[..., :N, :], (*batch, N, x.shape[-1])).reshape(-1, N, x.shape[-1]) for x in (robot.normalize(q), v, u)
    ]
    entries = steps.linear(*states, np.broadcast_to(h[..., None], (N, 1)))
    T, G = steps.whole(entries)
    H = np.zeros((nx + m, nx + m))
    H[:nx, :nx], H[nx:, nx:] = cost_x, cost_u
    count = len(entries)
    V, K = np.empty((count, N + 1, nx * (nx + 1) // 2)), np.empty((count, N, m * nx))
    V[:, -1] = triangle(cost_end)

    def constant(x: np.ndarray) -> np.ndarray:
        return np.broadcast_to(x, (count, N, x.size))

    given = [constant(triangle(H)), constant(np.zeros(nx + m)), constant(np.zeros(nx)), constant(np.zeros(1))]
    back, p, told = V[:, ::-1], np.zeros((count, N + 1, nx)), np.empty((count, N, 3))
    outputs = [back[:, 1:], p[:, 1:], K[:, ::-1], np.empty((count, N, m)), told]
    run_steps(steps.backward, [back[:, :-1], p[:, :-1], entries[:, ::-1], *given], outputs, threads)
    if not (told[..., 0] > 0).all():
        raise CoadjointError("the cost is not convex in the controls along the trajectory; Q must be positive semidefinite.")
    AB = T @ G
    return TrackingGains(
        K.reshape(*batch, N, m, nx),
        from_triangle(V).reshape(*batch, N + 1, nx, nx),
        AB[..., :nx].reshape(*batch, N, nx, nx),
        AB[..., nx:].reshape(*batch, N, nx, m),
    )


def _weight(name: str, x: Any, size: int, definite: bool = False) -> np.ndarray:
    W = numbers(x, name, f"({size}, {size}) or its diagonal")
    W = np.eye(size) * W if W.ndim < 2 and W.shape in ((), (1,), (size,)) else W
    if W.shape != (size, size):
        raise ShapeError(f"{name} has shape {W.shape}; expected ({size}, {size}) or its diagonal ({size},).")
    if not np.allclose(W, W.T):
        raise CoadjointError(f"{name} is not symmetric.")
    least = float(np.linalg.eigvalsh(W)[0])
    if least < -1e-9 * max(1.0, float(np.abs(W).max())) or (definite and least <= 0):
        raise CoadjointError(
            f"{name} has the eigenvalue {least:.3g}; expected a positive {'' if definite else 'semi'}definite matrix."
        )
    return W
