"""Motions as B-splines: q(t) = Σ B_j(t/T) c_j, with quadrature nodes at which costs are summed and limits are kept.

A clamped uniform spline of degree p: near each node only p + 1 control points matter, so that every sum over nodes is a sum of small
dense blocks. Bobrow, Martin, Sohl, Wang, Park & Kim (2001), Optimal robot motions for physical criteria.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import BSpline

ORDERS = 4
"""Position, velocity, acceleration and jerk."""


class Spline:
    """The basis of splines on [0, 1] of a degree, with so many spans, and Gauss nodes in each."""

    def __init__(self, spans: int, degree: int = 7, nodes: int = 6) -> None:
        self.spans, self.degree = spans, degree
        self.size = spans + degree
        """How many control points."""
        self.knots = np.concatenate([np.zeros(degree), np.linspace(0.0, 1.0, spans + 1), np.ones(degree)])
        x, w = np.polynomial.legendre.leggauss(nodes)
        span = np.arange(spans)[:, None]
        self.nodes = ((span + 0.5 * (x + 1.0)) / spans).reshape(-1)
        self.weights = np.tile(0.5 * w / spans, spans)
        self.first = np.repeat(np.arange(spans), nodes)
        """(K,): the first control point that matters at each node."""
        self.basis = self.local(self.nodes)

    def local(self, s: np.ndarray) -> np.ndarray:
        """(orders, K, degree + 1): the basis functions that are not zero at s (K,), with derivatives by s up to the third."""
        first = self.first_at(s)
        whole = BSpline(self.knots, np.eye(self.size), self.degree)
        found = np.stack([whole.derivative(k)(s) if k else whole(s) for k in range(ORDERS)])
        columns = first[:, None] + np.arange(self.degree + 1)
        return np.take_along_axis(found, np.broadcast_to(columns, (ORDERS, *columns.shape)), axis=-1)

    def first_at(self, s: np.ndarray) -> np.ndarray:
        """The first control point that matters at s (K,)."""
        return np.asarray(np.minimum((np.asarray(s) * self.spans).astype(int), self.spans - 1))

    def curve(self, c: np.ndarray, T: float, s: np.ndarray) -> list[np.ndarray]:
        """q, v, a and jerk (K, n) at s (K,) of the motion with control points c (size, n) and duration T."""
        return self.combine(self.local(s), self.first_at(s), c, T)

    def combine(self, basis: np.ndarray, first: np.ndarray, c: np.ndarray, T: float) -> list[np.ndarray]:
        near = c[first[:, None] + np.arange(self.degree + 1)]
        return [np.einsum("kj,kjn->kn", basis[order], near) / T**order for order in range(ORDERS)]

    def fit(self, s: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Control points (size, n) of the spline nearest to points q (K, n) at s (K,), the first and last of them met."""
        whole = BSpline(self.knots, np.eye(self.size), self.degree)(s)
        ends = whole[[0, -1]]
        system = np.block([[whole.T @ whole + 1e-12 * np.eye(self.size), ends.T], [ends, np.zeros((2, 2))]])
        return np.linalg.solve(system, np.concatenate([whole.T @ q, q[[0, -1]]]))[: self.size]
