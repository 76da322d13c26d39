"""Motions as B-splines: q(t) = Σ B_j(t/T) c_j, with quadrature nodes at which costs are summed and limits are kept.

A clamped uniform spline of degree p: near each node only p + 1 control points matter, so that every sum over nodes is a sum of small
dense blocks. Bobrow, Martin, Sohl, Wang, Park & Kim (2001), Optimal robot motions for physical criteria.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.interpolate import BSpline

ORDERS = 4
"""Position, velocity, acceleration and jerk."""
NODES = 8
"""In a span, at least: one more than the degree, so that no oscillation of the spline is invisible."""
LEAST = 48
"""Nodes in all, at least: with fewer of them a motion of few spans can be cheap at the nodes and dear between them."""
DENSE = 40
"""Points between two knots at which the limits are checked."""


class Spline:
    """The basis of splines on [0, 1] of a degree, with so many spans, and Gauss nodes in each."""

    def __init__(self, spans: int, degree: int = 7, nodes: int | None = None) -> None:
        self.spans, self.degree = spans, degree
        self.per_span = nodes or max(NODES, -(-LEAST // spans))
        self.size = spans + degree
        """How many control points."""
        self.knots = np.concatenate([np.zeros(degree), np.linspace(0.0, 1.0, spans + 1), np.ones(degree)])
        self.nodes, self.weights = self.quadrature(self.per_span)
        self.basis = self.at(self.nodes)
        """(K, orders, size)"""
        self.first, self.second = np.triu_indices(degree + 1)
        """Pairs i ≤ j of the control points that matter in a span."""
        self.products = self._products(3, 3)
        self.jerk_products = np.ascontiguousarray(self._products(1, 1, ORDERS - 1))

    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Gauss nodes and weights (K,), `count` in every span."""
        x, w = np.polynomial.legendre.leggauss(count)
        nodes = ((np.arange(self.spans)[:, None] + 0.5 * (x + 1.0)) / self.spans).reshape(-1)
        return nodes, np.tile(0.5 * w / self.spans, self.spans)

    def at(self, s: np.ndarray) -> np.ndarray:
        """(K, orders, size): the basis functions at s (K,), with derivatives by s up to the third."""
        whole = BSpline(self.knots, np.eye(self.size), self.degree)
        found = np.stack([whole.derivative(k)(s) if k else whole(s) for k in range(ORDERS)], axis=1)
        return np.ascontiguousarray(found)

    @cached_property
    def greville(self) -> np.ndarray:
        """(size,): where the control points stand, the means of their knots."""
        return np.array([self.knots[k + 1 : k + 1 + self.degree].mean() for k in range(self.size)])

    @cached_property
    def dense(self) -> tuple[np.ndarray, np.ndarray]:
        """Places s (S,) at equal distances, many in every span, and the basis there."""
        s = np.linspace(0.0, 1.0, DENSE * self.spans + 1)
        return s, self.at(s)

    @cached_property
    def fine(self) -> tuple[np.ndarray, np.ndarray]:
        """The basis at four times as many Gauss nodes, and their weights."""
        s, w = self.quadrature(4 * self.per_span)
        return self.at(s), w

    def _products(self, rows: int, columns: int, least: int = 0) -> np.ndarray:
        """(spans, pairs, nodes · rows · columns): B_o,i B_p,j for orders o and p at the nodes of a span, (o, p) fastest."""
        width = self.degree + 1
        local = np.stack([self.basis[k * self.per_span : (k + 1) * self.per_span, :, k : k + width] for k in range(self.spans)])
        left = local[:, :, least : least + rows, self.first]
        right = local[:, :, least : least + columns, self.second]
        found = np.einsum("skoP,skpP->sPkop", left, right)
        return np.ascontiguousarray(found.reshape(self.spans, len(self.first), -1))

    def curve(self, c: np.ndarray, T: np.ndarray | float, s: np.ndarray) -> list[np.ndarray]:
        """q, v, a and jerk (..., K, n) at s (K,) of the motions with control points c (..., size, n) and durations T (...)."""
        stage = self.stage(self.at(s), c, np.asarray(T, dtype=float))
        return [np.ascontiguousarray(stage[..., order, :]) for order in range(ORDERS)]

    def stage(self, basis: np.ndarray, c: np.ndarray, T: np.ndarray) -> np.ndarray:
        """(..., K, orders, n) of control points (..., size, n) and durations (...), for a basis (K, orders, size)."""
        K = len(basis)
        found = basis.reshape(K * ORDERS, self.size) @ c
        return np.asarray(found.reshape(*c.shape[:-2], K, ORDERS, c.shape[-1]) * powers(T)[..., None, :, None])

    def fit(self, s: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Control points (..., size, n) of the splines nearest to points q (..., K, n) at s (K,), the first and last of them met."""
        whole = BSpline(self.knots, np.eye(self.size), self.degree)(s)
        ends = whole[[0, -1]]
        system = np.block([[whole.T @ whole + 1e-12 * np.eye(self.size), ends.T], [ends, np.zeros((2, 2))]])
        right = np.concatenate([whole.T @ q, q[..., [0, -1], :]], axis=-2)
        return np.asarray(np.linalg.solve(system, right)[..., : self.size, :])


def powers(T: np.ndarray) -> np.ndarray:
    """T^-order (..., orders)."""
    return np.asarray(np.asarray(T)[..., None] ** -np.arange(float(ORDERS)))
