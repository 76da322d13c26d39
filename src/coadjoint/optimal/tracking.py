"""Time-varying linear-quadratic regulation about a trajectory: `time_varying_lqr`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_robot, one_of, takes
from ..errors import CoadjointError, ShapeError
from ..kernel.programs import native_program, runs
from ..robot.robot import Robot
from .by_control import ByControl
from .control_examples import backward_examples
from .cost_sums import Sum
from .layout import Memory
from .posing import actuation_matrix, numbers
from .riccati_programs import backward
from .shooting import METHODS


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


@runs(backward)
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
    steps = ByControl(robot, Sum(()), B, method)
    states = [
        np.broadcast_to(x[..., :N, :], (*batch, N, x.shape[-1])).reshape(-1, N, x.shape[-1]) for x in (robot.normalize(q), v, u)
    ]
    D = steps.linear(*states, np.broadcast_to(h[..., None], (N, 1)), threads=threads)
    K, V = np.empty((len(D), N, m, nx)), np.empty((len(D), N + 1, nx, nx))
    room = Memory(N, robot.nq, robot.nv, m, spans=1, by_velocity=False, limited=False, bounded=False, together=0, room=0)
    room["H"][:, :nx, :nx], room["H"][:, nx:, nx : nx + m], room["H_END"][0, :, :nx] = cost_x, cost_u, cost_end
    run = native_program(backward, backward_examples)
    for k in range(len(D)):
        room["DYNAMICS"][:] = D[k]
        if not run(room.at, room.numbers) > 0.0:
            raise CoadjointError("the cost is not convex in the controls along the trajectory; Q must be positive semidefinite.")
        K[k], V[k] = room["GAINS"][..., :nx], room["VALUE"][..., :nx]
    return TrackingGains(
        K.reshape(*batch, N, m, nx),
        V.reshape(*batch, N + 1, nx, nx),
        D[..., :nx].reshape(*batch, N, nx, nx),
        D[..., nx : nx + m].reshape(*batch, N, nx, m),
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
