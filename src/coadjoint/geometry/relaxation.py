"""Relaxation of paths between two configurations: the energy of a path is minimised until it is a geodesic, locally the shortest.

A path is a row of configurations q_0 … q_K, with d_k = q_{k+1} - q_k and M_k, C_k at the middle of each step. Its energy

    E = K/2 Σ d_kᵀ M_k d_k    has the gradient    K (M_{k-1} d_{k-1} - M_k d_k + ½ C_{k-1}ᵀ d_{k-1} + ½ C_kᵀ d_k)

by q_k: for C by Christoffel's symbols, C(d)ᵀ d is the gradient of ½ dᵀ M d, for the frames of spherical, planar and free joints too.
Each step follows the gradient in the metric on paths, Σ dᵀ M d: Newton's method without the curvature term.
"""

from __future__ import annotations

import numpy as np

from ..arrays import mv, transpose
from ..dynamics.composite import mass_matrix
from ..dynamics.coriolis import coriolis_matrix
from ..robot.robot import Robot

STEPS = 24
"""Segments of a path."""
TURNS = 150
TIGHT = 1e-7
"""A path is relaxed when a step would lower its energy by less than this fraction."""
SHORTEST_STEP = 1e-3


def energy(robot: Robot, q: np.ndarray) -> np.ndarray:
    """½ ∫ ⟨v, v⟩ dt (...) of paths (..., K + 1, nq) that take a unit of time."""
    d = robot.difference(q[..., :-1, :], q[..., 1:, :])
    M = mass_matrix(robot, robot.integrate(q[..., :-1, :], 0.5 * d))
    result: np.ndarray = 0.5 * d.shape[-2] * np.einsum("...ki,...kij,...kj->...", d, M, d)
    return result


def relaxed(robot: Robot, q: np.ndarray) -> np.ndarray:
    """The paths (S, K + 1, nq) relaxed, their ends fixed."""
    q = q.copy()
    moving = np.ones(len(q), dtype=bool)
    least = energy(robot, q)
    for _ in range(TURNS):
        now = np.flatnonzero(moving)
        if not len(now):
            break
        step, slope = _descent(robot, q[now])
        factor = np.ones(len(now))
        going = slope > TIGHT * least[now]
        moving[now[~going]] = False
        while going.any():
            now, step, slope, factor = now[going], step[going], slope[going], factor[going]
            new = q[now]
            new[:, 1:-1] = robot.integrate(new[:, 1:-1], factor[:, None, None] * step)
            found = energy(robot, new)
            better = found < least[now] - 1e-4 * factor * slope
            q[now[better]], least[now[better]] = new[better], found[better]
            factor = 0.5 * factor
            moving[now[~better & (factor < SHORTEST_STEP)]] = False
            going = ~better & (factor >= SHORTEST_STEP)
    return q


def _descent(robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The step (S, K - 1, nv) of the inner configurations of paths, and the decrease of the energy (S,) to first order."""
    d = robot.difference(q[:, :-1], q[:, 1:])
    middle = robot.integrate(q[:, :-1], 0.5 * d)
    M, C = mass_matrix(robot, middle), coriolis_matrix(robot, middle, d)
    K = d.shape[1]
    p, turn = mv(M, d), 0.5 * mv(transpose(C), d)
    gradient = K * (p[:, :-1] - p[:, 1:] + turn[:, :-1] + turn[:, 1:])
    step = -_solve(K * (M[:, :-1] + M[:, 1:]), -K * M[:, 1:-1], gradient)
    return step, -np.einsum("ski,ski->s", gradient, step)


def _solve(diagonal: np.ndarray, beside: np.ndarray, b: np.ndarray) -> np.ndarray:
    """x (S, K, n) of a symmetric block-tridiagonal system: blocks (S, K, n, n) on the diagonal, (S, K - 1, n, n) beside it."""
    n, size = b.shape[-1], np.einsum("...ii->...", diagonal)[..., None, None] / b.shape[-1]
    D, x = diagonal + 1e-13 * size * np.eye(n), b.copy()
    for k in range(1, x.shape[1]):
        gain = transpose(np.linalg.solve(D[:, k - 1], beside[:, k - 1]))
        D[:, k] -= gain @ beside[:, k - 1]
        x[:, k] -= mv(gain, x[:, k - 1])
    for k in reversed(range(x.shape[1])):
        if k + 1 < x.shape[1]:
            x[:, k] -= mv(beside[:, k], x[:, k + 1])
        x[:, k] = np.linalg.solve(D[:, k], x[:, k, :, None])[..., 0]
    return x
