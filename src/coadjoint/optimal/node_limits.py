"""Limits of joint forces and powers at the nodes of shooting, where the forces are variables themselves.

As functions of (q, v, a) they would be differentiated through the inverse dynamics and back, and what cancels would leave its rounding,
times multipliers over slacks.
"""

from __future__ import annotations

import numpy as np

from .rows import MotorPower, Rows, Torques
from .stages import Forces


def of_forces(rows: Rows) -> bool:
    """True if these limits are functions of velocities and joint forces."""
    return isinstance(rows, Torques | MotorPower)


def pull(rows: Rows, forces: Forces, weights: np.ndarray, into: np.ndarray) -> None:
    """Add Σ_r weights_r ∂row_r/∂(q, v, τ) to (N, 3 n)."""
    n = forces.q.shape[1]
    if isinstance(rows, MotorPower):
        into[:, n : 2 * n] += weights * forces.tau
        weights = weights * forces.v
    into[:, 2 * n :] += weights


def curve(rows: Rows, forces: Forces, weights: np.ndarray, sigma: np.ndarray, into: np.ndarray, convex: bool) -> None:
    """Add Σ_r sigma_r J_r J_rᵀ and, unless `convex`, Σ_r weights_r ∂²row_r by (q, v, τ) to (N, 3 n, 3 n)."""
    n = forces.q.shape[1]
    v, tau = (np.arange(first, first + n) for first in (n, 2 * n))
    if isinstance(rows, MotorPower):
        into[:, v, v] += sigma * forces.tau**2
        mixed = sigma * forces.v * forces.tau + (0.0 if convex else weights)
        into[:, v, tau] += mixed
        into[:, tau, v] += mixed
        sigma = sigma * forces.v**2
    into[:, tau, tau] += sigma
