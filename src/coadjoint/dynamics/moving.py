"""The velocity-dependent operator B of moving bodies, which appears in every derivative by velocity or configuration.

For mass points m at x with velocities ẋ, fixed in bodies that move with twists V_p, let

    Π = Σ_p V̂_p Σ_p = Σ m ẋ (x, 1)ᵀ = [Π₃ π],   Ψ = tr(Π₃) 1 - Π₃,

Σ_p the pseudo-inertia. A turn with ω of the velocities alone is the acceleration ω × ẋ, which takes the wrench

    B s = Σ m (x × (ω × ẋ), ω × ẋ) = (Ψ ω, ω × π),   s = (ω, v);   Bᵀ F = (Ψᵀ m + π × f, 0),   F = (m, f).

Bodies add up, and Π' = f Π fᵀ in another frame.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array, concat, cross, dot, like, mv, transpose
from ..lie import inertia, so3
from ..robot.robot import Robot


class Moving(NamedTuple):
    """The operator B of moving bodies, in one frame."""

    Psi: Array
    """(..., 3, 3)"""
    pi: Array
    """(..., 3): linear momentum."""

    def __add__(self, other: Moving) -> Moving:  # type: ignore[override]
        return Moving(self.Psi + other.Psi, self.pi + other.pi)

    def carried(self, f: Array) -> Moving:
        """The operator in the frame in which f (..., 4, 4) is given: the parent's, for the pose f of a link."""
        R, p = f[..., :3, :3], f[..., :3, 3]
        pi = mv(R, self.pi)
        shift = dot(pi, p)[..., None, None] * like(np.eye(3), pi) - pi[..., :, None] * p[..., None, :]
        return Moving(R @ self.Psi @ transpose(R) + shift, pi)

    def wrench(self, w: Array) -> Array:
        """B s (..., n, 6) of n turns ω (..., n, 3)."""
        return concat([w @ transpose(self.Psi), cross(w, self.pi[..., None, :])])

    def turning(self, F: Array) -> Array:
        """The angular part (..., n, 3) of Bᵀ F, the other being zero, of n wrenches or screws F (..., n, 6)."""
        return F[..., :3] @ self.Psi + cross(self.pi[..., None, :], F[..., 3:])


def moving(parameters: Array, V: Array) -> Moving:
    """One body with ten parameters (..., 10) that moves with the twist V (..., 6)."""
    w, v, m, h = V[..., :3], V[..., 3:], parameters[..., :1], parameters[..., 1:4]
    Pi = so3.hat(w) @ inertia.pseudo(parameters)[..., :3, :3] + v[..., :, None] * h[..., None, :]
    return Moving(dot(v, h)[..., None, None] * like(np.eye(3), V) - Pi, m * v + cross(w, h))


def composite_moving(robot: Robot, f: list[Array], V: list[Array]) -> list[Moving]:
    """Each link with all that it carries, in that link's frame."""
    found = [moving(robot.inertias[i], V[i]) for i in range(robot.n_links)]
    for i in reversed(robot.order):
        if robot.parents[i] >= 0:
            found[robot.parents[i]] = found[robot.parents[i]] + found[i].carried(f[i])
    return found
