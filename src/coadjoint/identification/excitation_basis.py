"""Curves that are linear in their coefficients: Fourier series and B-splines, with the coefficients that begin and end at rest.

    q(t) = start + Φ(t) c        v = Φ̇ c        a = Φ̈ c        c = Z x

Φ (N, m) holds m functions of time. Z spans the coefficients with v = a = 0 at both ends, and with q = start at the
beginning where a start is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import null_space

DEGREE = 5
"""The degree of B-splines: accelerations are then twice continuously differentiable."""


@dataclass(frozen=True)
class Basis:
    """Functions of time on [0, duration] of one kind."""

    kind: str
    size: int
    """The number of harmonics, or of pieces of a B-spline."""
    duration: float
    rest: bool
    """The curve begins and ends at rest, with zero acceleration."""
    from_start: bool
    """The curve begins at the coefficient-free part."""

    def raw(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Φ, Φ̇ and Φ̈ (N, m) before any condition."""
        if self.kind == "fourier":
            w = 2 * np.pi / self.duration * np.arange(1, self.size + 1)
            s, c, one = np.sin(np.outer(t, w)), np.cos(np.outer(t, w)), np.ones((len(t), 1))
            return np.hstack([one, s, c]), np.hstack([0 * one, w * c, -w * s]), np.hstack([0 * one, -w * w * s, -w * w * c])
        inner = np.linspace(0.0, self.duration, self.size + 1)
        knots = np.concatenate([np.zeros(DEGREE), inner, np.full(DEGREE, self.duration)])
        spline = BSpline(knots, np.eye(len(knots) - DEGREE - 1), DEGREE)
        return spline(t), spline(t, 1), spline(t, 2)

    def conditions(self) -> np.ndarray:
        """Rows that vanish on the coefficients of curves that are allowed."""
        ends = self.raw(np.array([0.0, self.duration]))
        rows = [ends[0][:1]] if self.from_start else []
        if self.rest:
            rows += [x[:1] if self.kind == "fourier" else x for x in ends[1:]]  # a Fourier series ends as it begins
        return np.concatenate([np.zeros((0, ends[0].shape[1])), *rows])

    def free(self) -> np.ndarray:
        """Z (m, free): the coefficients that are allowed, orthonormal."""
        rows = self.conditions()
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return null_space(rows) if len(rows) else np.eye(rows.shape[1])

    def at(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Φ Z, Φ̇ Z and Φ̈ Z (N, free)."""
        Z = self.free()
        p, v, a = self.raw(np.asarray(t, dtype=float))
        return p @ Z, v @ Z, a @ Z
