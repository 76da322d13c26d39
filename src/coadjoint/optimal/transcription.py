"""A motion between states as a problem of finitely many variables: the control points of a spline and, if it is free, the duration.

With the stage z = (q, v, a, jerk) = (B₀, B₁/T, B₂/T², B₃/T³) c at every node, the cost is T Σ w ℓ(z) plus a multiple of T. Every derivative
is a sum over nodes of small blocks Φᵀ G Φ, Φ = ∂z/∂(c, T), with the terms of second order in (c, T) added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..robot.robot import Robot
from .splines import ORDERS, Spline
from .stages import Cost, Forces, Rows

_POWERS = np.arange(ORDERS)


@dataclass(frozen=True)
class Equality:
    """Equations on the motion: rows @ c (flattened over control points, for every joint) = right, and goal(q(T)) = 0."""

    rows: np.ndarray
    """(k, size): the same combination of control points for every joint."""
    right: np.ndarray
    """(k, n)"""
    goal: Callable[[np.ndarray], np.ndarray] | None = None
    """(g,) of the last configuration (n,)."""
    goal_jacobian: Callable[[np.ndarray], np.ndarray] | None = None
    goal_second: Callable[[np.ndarray], np.ndarray] | None = None


@dataclass(frozen=True)
class Transcription:
    """The problem: variables x are the free control points, joint by joint for each, and then T if it is free."""

    robot: Robot
    spline: Spline
    costs: Sequence[tuple[float, Cost]]
    time_weight: float
    limits: Sequence[Rows]
    fixed: np.ndarray
    """(size, n): control points; those that are free are only where the search begins."""
    free: np.ndarray
    """(size,): whether a control point is a variable."""
    duration: float | None
    """None if it is free."""
    equality: Equality

    def split(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """The control points (size, n) and the duration."""
        c = self.fixed.copy()
        n = self.robot.nv
        count = int(self.free.sum()) * n
        c[self.free] = x[:count].reshape(-1, n)
        return c, float(self.duration if self.duration is not None else x[count])

    def join(self, c: np.ndarray, T: float) -> np.ndarray:
        """The variables of control points and a duration."""
        return np.concatenate([c[self.free].reshape(-1), [] if self.duration is not None else [T]])

    def at(self, x: np.ndarray) -> Here:
        """The problem near x."""
        return Here(self, *self.split(x))

    def values(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """The cost, the inequalities and the equalities at x."""
        c, T = self.split(x)
        if T <= 0:
            return np.inf, np.zeros(0), np.zeros(0)
        here = Here(self, c, T)
        return here.f, here.c, here.e


class Here:
    """The problem at control points and a duration, with all derivatives."""

    def __init__(self, problem: Transcription, control: np.ndarray, T: float) -> None:
        self.problem, self.control, self.T = problem, control, T
        spline = problem.spline
        self.stage = np.stack(spline.combine(spline.basis, spline.first, control, T), axis=1)
        self.forces = Forces(problem.robot, self.stage)

    # --- values

    @cached_property
    def running(self) -> np.ndarray:
        """ℓ (K,)."""
        parts = [weight * cost.value(self.forces) for weight, cost in self.problem.costs]
        return np.sum(parts, axis=0) if parts else np.zeros(len(self.stage))

    @cached_property
    def f(self) -> float:
        return float(self.T * (self.problem.spline.weights @ self.running) + self.problem.time_weight * self.T)

    @cached_property
    def c(self) -> np.ndarray:
        parts = []
        for rows in self.problem.limits:
            value = rows.value(self.forces)
            below, above = np.isfinite(rows.lower), np.isfinite(rows.upper)
            parts += [(value - rows.lower)[:, below].reshape(-1), (rows.upper - value)[:, above].reshape(-1)]
        return np.concatenate([np.zeros(0), *parts])

    @cached_property
    def e(self) -> np.ndarray:
        equality = self.problem.equality
        linear = (equality.rows @ self.control - equality.right).reshape(-1)
        return linear if equality.goal is None else np.concatenate([linear, equality.goal(self.control[-1])])

    # --- first derivatives

    @cached_property
    def stage_gradient(self) -> np.ndarray:
        """∂ℓ/∂stage (K, 4, n)."""
        parts = [weight * cost.gradient(self.forces) for weight, cost in self.problem.costs]
        return np.sum(parts, axis=0) if parts else np.zeros_like(self.stage)

    def gradient(self) -> np.ndarray:
        return self._gradient

    @cached_property
    def _gradient(self) -> np.ndarray:
        w = self.problem.spline.weights
        found = self._pulled(self.T * w[:, None, None] * self.stage_gradient)
        if self.problem.duration is None:
            found[-1] += w @ self.running + self.problem.time_weight
        return found

    def _by_time(self) -> np.ndarray:
        """∂stage/∂T (K, 4, n)."""
        return np.asarray(-(_POWERS[:, None] / self.T) * self.stage)

    def _pulled(self, g: np.ndarray) -> np.ndarray:
        """Φᵀ g (variables,) for covectors g (K, 4, n)."""
        problem, spline = self.problem, self.problem.spline
        near = np.einsum("okj,kon->kjn", spline.basis / self.T ** _POWERS[:, None, None], g)
        whole = np.zeros_like(self.control)
        np.add.at(whole, spline.first[:, None] + np.arange(spline.degree + 1), near)
        parts = [whole[problem.free].reshape(-1)]
        if problem.duration is None:
            parts.append(np.array([np.vdot(g, self._by_time())]))
        return np.concatenate(parts)

    def _pushed(self, dx: np.ndarray) -> np.ndarray:
        """Φ dx (K, 4, n)."""
        problem, spline = self.problem, self.problem.spline
        n, count = self.control.shape[1], int(problem.free.sum())
        whole = np.zeros_like(self.control)
        whole[problem.free] = dx[: count * n].reshape(-1, n)
        found = np.stack(spline.combine(spline.basis, spline.first, whole, self.T), axis=1)
        return found + dx[-1] * self._by_time() if problem.duration is None else found

    @cached_property
    def jacobians(self) -> list[np.ndarray]:
        """∂rows/∂stage (K, m, 4, n) of every kind of limit."""
        return [rows.jacobian(self.forces) for rows in self.problem.limits]

    def _by_row(self, z: np.ndarray, sign: float) -> list[np.ndarray]:
        """z (inequalities,) of lower limits plus `sign` times those of upper limits, (K, m) of every kind."""
        found, at, K = [], 0, len(self.stage)
        for rows in self.problem.limits:
            whole = np.zeros((K, len(rows.lower)))
            for finite, factor in ((np.isfinite(rows.lower), 1.0), (np.isfinite(rows.upper), sign)):
                count = K * int(finite.sum())
                whole[:, finite] += factor * z[at : at + count].reshape(K, -1)
                at += count
            found.append(whole)
        return found

    def pull(self, z: np.ndarray) -> np.ndarray:
        covector = np.zeros_like(self.stage)
        for weights, jacobian in zip(self._by_row(z, -1.0), self.jacobians, strict=True):
            covector += np.einsum("km,kmon->kon", weights, jacobian)
        return self._pulled(covector)

    def push(self, dx: np.ndarray) -> np.ndarray:
        moved = self._pushed(dx)
        parts = []
        for rows, jacobian in zip(self.problem.limits, self.jacobians, strict=True):
            change = np.einsum("kmon,kon->km", jacobian, moved)
            parts += [change[:, np.isfinite(rows.lower)].reshape(-1), -change[:, np.isfinite(rows.upper)].reshape(-1)]
        return np.concatenate([np.zeros(0), *parts])

    def equality_jacobian(self) -> np.ndarray:
        return self._equality_jacobian

    @cached_property
    def _equality_jacobian(self) -> np.ndarray:
        problem, equality = self.problem, self.problem.equality
        n = self.control.shape[1]
        rows = np.kron(equality.rows[:, problem.free], np.eye(n))
        if equality.goal_jacobian is not None:
            J = equality.goal_jacobian(self.control[-1])
            last = np.zeros((len(J), int(problem.free.sum()) * n))
            last[:, -n:] = J
            rows = np.concatenate([rows, last])
        return np.concatenate([rows, np.zeros((len(rows), 1))], axis=1) if problem.duration is None else rows

    # --- second derivatives

    def hessian(self, z: np.ndarray, y: np.ndarray, sigma: np.ndarray, convex: bool = False) -> np.ndarray:
        problem, w, T = self.problem, self.problem.spline.weights, self.T
        G = np.zeros((*self.stage.shape, *self.stage.shape[1:]))
        for weight, cost in problem.costs:
            G += (weight * T * w)[:, None, None, None, None] * cost.hessian(self.forces)
        covector = T * w[:, None, None] * self.stage_gradient
        barrier, barriers = self._by_row(sigma, 1.0), np.zeros_like(G)
        for rows, weights, barred, J in zip(problem.limits, self._by_row(z, -1.0), barrier, self.jacobians, strict=True):
            curved = rows.curvature(self.forces, -weights)
            if curved is not None:
                G += curved
            barriers += rows.gram(barred, J)
            covector -= np.einsum("km,kmon->kon", weights, J)
        H = self._assembled((_semidefinite(G) if convex else G) + barriers, covector)
        if problem.equality.goal_second is not None and not convex:
            n, count = self.control.shape[1], len(problem.equality.rows) * self.control.shape[1]
            at = int(problem.free.sum()) * n
            second = problem.equality.goal_second(self.control[-1])
            H[at - n : at, at - n : at] -= np.einsum("g,gij->ij", y[count:], second)
        return H

    def _assembled(self, G: np.ndarray, covector: np.ndarray) -> np.ndarray:
        """Σ Φᵀ G Φ + Σ covector · ∂²stage, with the terms of the factor T."""
        problem, spline, T = self.problem, self.problem.spline, self.T
        K, _, n = self.stage.shape
        basis = np.moveaxis(spline.basis / T ** _POWERS[:, None, None], 0, 1)  # (K, 4, p + 1)
        size, width = spline.size, spline.degree + 1
        half = basis.swapaxes(-1, -2) @ G.reshape(K, ORDERS, -1)  # (K, p + 1, n · 4 · n)
        half = half.reshape(K, width * n, ORDERS, n).swapaxes(-1, -2)
        local = (half @ basis[:, None]).reshape(K, width, n, n, width).swapaxes(-1, -2)
        whole = np.zeros((size, n, size, n))
        for span in range(spline.spans):
            rows = spline.first == span
            whole[span : span + width, :, span : span + width] += local[rows].sum(0)
        free = problem.free
        found = whole[free][:, :, free].reshape(int(free.sum()) * n, -1)
        if problem.duration is not None:
            return np.asarray(found)
        by_time = self._by_time()
        cross = np.einsum("konpl,kpl->kon", G, by_time)  # of the stage with T
        cross -= (_POWERS[:, None] / T) * covector  # ∂²stage/∂c∂T = -order/T Φ
        cross += spline.weights[:, None, None] * self.stage_gradient  # from the factor T
        column = self._pulled(cross)
        second = np.einsum("kon,konpl,kpl->", by_time, G, by_time, optimize=True)
        second += np.vdot(covector, (_POWERS * (_POWERS + 1))[:, None] / T**2 * self.stage)
        second += 2.0 * np.vdot(spline.weights[:, None, None] * self.stage_gradient, by_time)
        bordered = np.zeros((len(found) + 1,) * 2)
        bordered[:-1, :-1], bordered[:-1, -1], bordered[-1, :-1], bordered[-1, -1] = found, column[:-1], column[:-1], second
        return bordered


def _semidefinite(G: np.ndarray) -> np.ndarray:
    """Symmetric matrices (K, 4, n, 4, n) with their negative eigenvalues made zero, node by node."""
    K, orders, n = G.shape[:3]
    values, vectors = np.linalg.eigh(G.reshape(K, orders * n, orders * n))
    positive = (vectors * np.maximum(values, 0.0)[:, None]) @ vectors.swapaxes(-1, -2)
    return np.asarray(positive.reshape(G.shape))
