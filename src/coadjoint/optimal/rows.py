"""Limits of a motion: rows of functions of the stage that are kept between a lower and an upper bound, with their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from .stages import DYNAMIC, Curvature, Forces

KINDS = ("position", "velocity", "acceleration", "jerk")


class Rows(Protocol):
    """Functions of the stage that are kept between limits."""

    kind: str
    """The kind as users name it: "velocity", "effort", …"""
    lower: np.ndarray
    upper: np.ndarray
    """(m,)"""
    names: tuple[str, ...]

    def value(self, forces: Forces) -> np.ndarray:
        """(N, m)"""

    def pull(self, forces: Forces, weights: np.ndarray, into: np.ndarray) -> None:
        """Add Σ_r weights_r ∂row_r/∂stage to (N, 4, n), for weights (N, m)."""

    def push(self, forces: Forces, moved: np.ndarray) -> np.ndarray:
        """The change (N, m) with that of the stage (N, 4, n)."""

    def curve(self, forces: Forces, weights: np.ndarray, sigma: np.ndarray, into: Curvature, convex: bool) -> None:
        """Add Σ_r sigma_r J_r J_rᵀ and, unless `convex`, Σ_r weights_r ∂²row_r/∂stage²; weights and sigma are (N, m)."""


class Coordinates:
    """The position (order 0), velocity, acceleration or jerk of every joint."""

    def __init__(self, order: int, lower: np.ndarray, upper: np.ndarray, names: tuple[str, ...]) -> None:
        self.order, self.lower, self.upper, self.names = order, lower, upper, names
        self.kind = KINDS[order]

    def value(self, forces: Forces) -> np.ndarray:
        return forces.stage[:, self.order]

    def pull(self, forces: Forces, weights: np.ndarray, into: np.ndarray) -> None:
        into[:, self.order] += weights

    def push(self, forces: Forces, moved: np.ndarray) -> np.ndarray:
        return moved[:, self.order]

    def curve(self, forces: Forces, weights: np.ndarray, sigma: np.ndarray, into: Curvature, convex: bool) -> None:
        into.diagonal[:, self.order] += sigma


class Torques:
    """The joint forces."""

    kind = "effort"

    def __init__(self, limit: np.ndarray, names: tuple[str, ...]) -> None:
        self.lower, self.upper, self.names = -limit, limit, names

    def value(self, forces: Forces) -> np.ndarray:
        return forces.tau

    def pull(self, forces: Forces, weights: np.ndarray, into: np.ndarray) -> None:
        into[:, :DYNAMIC] += forces.pull(weights)

    def push(self, forces: Forces, moved: np.ndarray) -> np.ndarray:
        return forces.push(moved)

    def curve(self, forces: Forces, weights: np.ndarray, sigma: np.ndarray, into: Curvature, convex: bool) -> None:
        into.of_forces(0.0 if convex else weights, sigma)


class MotorPower:
    """The power τ v of every joint, whose derivative is v_r J_r + τ_r e_r."""

    kind = "power"

    def __init__(self, limit: np.ndarray, names: tuple[str, ...]) -> None:
        self.lower, self.upper, self.names = -limit, limit, names

    def value(self, forces: Forces) -> np.ndarray:
        return np.asarray(forces.tau * forces.v)

    def pull(self, forces: Forces, weights: np.ndarray, into: np.ndarray) -> None:
        into[:, :DYNAMIC] += forces.pull(weights * forces.v)
        into[:, 1] += weights * forces.tau

    def push(self, forces: Forces, moved: np.ndarray) -> np.ndarray:
        return np.asarray(forces.push(moved) * forces.v + forces.tau * moved[:, 1])

    def curve(self, forces: Forces, weights: np.ndarray, sigma: np.ndarray, into: Curvature, convex: bool) -> None:
        v, tau = forces.v, forces.tau
        into.of_forces(0.0, sigma * v**2, sigma * v * tau)
        into.diagonal[:, 1] += sigma * tau**2
        if not convex:
            into.of_forces(weights * v, 0.0, weights)


def same_limits(these: Sequence[Rows], those: Sequence[Rows]) -> bool:
    """True if limits are of the same kinds, with the same bounds."""
    if [x.kind for x in these] != [x.kind for x in those]:
        return False
    return all(np.array_equal(getattr(a, x), getattr(b, x)) for a, b in zip(these, those, strict=True) for x in ("lower", "upper"))
