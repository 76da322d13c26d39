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
"""The least number of nodes in a span: one more than the degree, so that no oscillation of the spline is invisible."""
LEAST = 48
"""Nodes in all, at least: with fewer of them a motion of few spans can be cheap at the nodes and dear between them."""
DENSE, ALL = 40, 640
"""Places in a span, and in the whole motion, at least, at which the limits are checked."""
LEFT = 1e-13
"""The distance before a knot of the place that belongs to the span before it."""


class Spline:
    """The basis of splines on [0, 1] of given degree and number of spans, and the Gauss nodes in each span.

    smooth: how many derivatives are continuous where spans meet, all but the last if None.
    """

    def __init__(self, spans: int, degree: int = 7, nodes: int | None = None, smooth: int | None = None) -> None:
        self.spans, self.degree, self.smooth = spans, degree, degree - 1 if smooth is None else smooth
        self.per_span = nodes or max(NODES, -(-LEAST // spans))
        self.stride = degree - self.smooth
        """The number of control points from one span to the next."""
        self.size = degree + 1 + self.stride * (spans - 1)
        """The number of control points."""
        inner = np.repeat(np.linspace(0.0, 1.0, spans + 1)[1:-1], self.stride)
        self.knots = np.concatenate([np.zeros(degree + 1), inner, np.ones(degree + 1)])
        self.nodes, self.weights = self.quadrature(self.per_span)
        self.basis = self.at(self.nodes)
        """(K, orders, size)"""
        self.first, self.second = np.triu_indices(degree + 1)
        """Pairs i ≤ j of the control points that matter in a span."""
        self.products = self._products(3, 3)
        self.jerk_products = np.ascontiguousarray(self._products(1, 1, ORDERS - 1))

    def is_like(self, other: Spline) -> bool:
        """True if another has the same knots and nodes."""
        return np.array_equal(self.knots, other.knots) and np.array_equal(self.nodes, other.nodes)

    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Gauss nodes and weights (K,), `count` in every span."""
        x, w = np.polynomial.legendre.leggauss(count)
        nodes = ((np.arange(self.spans)[:, None] + 0.5 * (x + 1.0)) / self.spans).reshape(-1)
        return nodes, np.tile(0.5 * w / self.spans, self.spans)

    def at(self, s: np.ndarray) -> np.ndarray:
        """(K, orders, size): the basis functions at s (K,), with derivatives by s up to the third."""
        whole = BSpline(self.knots, np.eye(self.size), self.degree)
        found = np.stack([whole(s, nu=k) for k in range(ORDERS)], axis=1)
        return np.ascontiguousarray(found)

    @cached_property
    def greville(self) -> np.ndarray:
        """(size,): where the control points stand, the means of their knots."""
        return np.array([self.knots[k + 1 : k + 1 + self.degree].mean() for k in range(self.size)])

    @cached_property
    def dense(self) -> tuple[np.ndarray, np.ndarray]:
        """Places s (S,), as many at equal distances in every span, both of its ends among them, and the basis there.

        Where spans meet, both sides are looked at: accelerations and joint forces may jump there.
        """
        inside = np.linspace(0.0, 1.0 - LEFT, max(DENSE, -(-ALL // self.spans)) + 1)
        s = ((np.arange(self.spans)[:, None] + inside) / self.spans).reshape(-1)
        s[-1] = 1.0
        return s, self.at(s)

    @cached_property
    def fine(self) -> tuple[np.ndarray, np.ndarray]:
        """The basis at four times as many Gauss nodes, and their weights."""
        s, w = self.quadrature(4 * self.per_span)
        return self.at(s), w

    def _products(self, rows: int, columns: int, least: int = 0) -> np.ndarray:
        """(spans, pairs, nodes · rows · columns): B_o,i B_p,j for orders o and p at the nodes of a span, (o, p) fastest."""
        width = self.degree + 1
        near = [(slice(k * self.per_span, (k + 1) * self.per_span), k * self.stride) for k in range(self.spans)]
        local = np.stack([self.basis[nodes, :, first : first + width] for nodes, first in near])
        left = local[:, :, least : least + rows, self.first]
        right = local[:, :, least : least + columns, self.second]
        found = np.einsum("skoP,skpP->sPkop", left, right)
        return np.ascontiguousarray(found.reshape(self.spans, len(self.first), -1))

    def curve(self, c: np.ndarray, T: np.ndarray | float, s: np.ndarray) -> list[np.ndarray]:
        """q, v, a and jerk (..., K, n) at s (K,) of the motions with control points c (..., size, n) and durations T (...)."""
        stage = self.stage(self.at(s), c, np.asarray(T, dtype=float))
        return [np.ascontiguousarray(stage[..., order, :]) for order in range(ORDERS)]

    def largest(self, c: np.ndarray, order: int) -> np.ndarray:
        """Bounds (spans, n) of |dq/ds| of an order in every span, by the control points of that derivative, for those of q (size, n)."""
        t, degree = self.knots, self.degree
        for _ in range(order):
            width = t[degree + 1 : -1] - t[1 : -degree - 1]
            c = degree * np.diff(c, axis=0) / np.where(width > 0, width, np.inf)[:, None]
            t, degree = t[1:-1], degree - 1
        last = np.searchsorted(t, (np.arange(self.spans) + 0.5) / self.spans, side="right")
        return np.array([np.abs(c[k - degree - 1 : k]).max(0) for k in last])

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
