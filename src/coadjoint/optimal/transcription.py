"""Motions between states as problems of finitely many variables: the control points of a spline and, if it is free, the duration.

With the stage z = (q, v, a, jerk) = (B₀, B₁/T, B₂/T², B₃/T³) c at every node, the cost is T Σ w ℓ(z) plus a multiple of T. Every derivative
is a sum over nodes of small blocks Φᵀ G Φ, Φ = ∂z/∂(c, T), with the terms of second order in (c, T) added. Many motions of one robot
are treated at once: all arrays have the motions as their first axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..robot.robot import Robot
from .clearance import Clearances
from .drives import Closure, Drives
from .equalities import Equality
from .rows import Rows, same_limits
from .sides import Sides
from .splines import ORDERS, Spline, powers
from .stages import DYNAMIC, Cost, Curvature, Forces

_ORDER = np.arange(ORDERS)[:, None]


TINY = 1e-30
"""A cost that counts as zero."""


@dataclass(frozen=True)
class Transcription:
    """B problems of one kind: variables x are the free control points, joint by joint for each, and then T if it is free."""

    robot: Robot
    spline: Spline
    costs: Sequence[tuple[float, Cost]]
    time_weight: float
    limits: Sequence[Rows]
    fixed: np.ndarray
    """(B, size, n): control points; those that are free are only where the search begins."""
    free: slice
    """The control points that are variables."""
    durations: np.ndarray
    """(B,); where the search begins if they are free."""
    free_time: bool
    equality: Equality
    drives: Drives
    drawn: Sequence[np.ndarray]
    """By how much every limit is drawn in, (B, K, m) of every kind."""

    @cached_property
    def variables(self) -> int:
        """The number of variables of a problem."""
        count = len(range(*self.free.indices(self.spline.size))) * self.robot.nv
        return count + self.free_time

    @cached_property
    def sides(self) -> Sides:
        """The limits at the nodes as inequalities."""
        return Sides(self.limits)

    @property
    def nodes(self) -> np.ndarray:
        """The times (K,) at which limits are kept, as parts of the duration."""
        return self.spline.nodes

    @property
    def closure(self) -> Closure | None:
        return self.equality.closure

    @property
    def first(self) -> np.ndarray:
        """The variables (B, variables) at which the search begins."""
        return self.join(self.fixed, self.durations)

    def control(self, here: Here) -> np.ndarray:
        """Control points (b, size, n)."""
        return here.control

    def forces_at(self, here: Here, basis: np.ndarray) -> Forces:
        """The forces (b S) at places with this basis (S, orders, size)."""
        return Forces(self.drives, self.spline.stage(basis, here.control, here.T).reshape(-1, ORDERS, self.robot.nv))

    def exact(self, here: Here) -> np.ndarray:
        """The costs (b,) on four times as many nodes."""
        basis, w = self.spline.fine
        forces = self.forces_at(here, basis)
        running = np.zeros((len(here.T), len(w)))
        for weight, cost in self.costs:
            running += weight * cost.value(forces).reshape(running.shape)
        return np.asarray(here.T * (running @ w + self.time_weight))

    def split(self, x: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The control points (b, size, n) and the durations (b,) of variables (b, variables) of these problems (b,)."""
        c = self.fixed[which]
        count = self.variables - self.free_time
        c[:, self.free] = x[:, :count].reshape(len(x), -1, self.robot.nv)
        return c, (x[:, count] if self.free_time else self.durations[which])

    def join(self, c: np.ndarray, T: np.ndarray) -> np.ndarray:
        """The variables (b, variables) of control points (b, size, n) and durations (b,)."""
        parts = [c[:, self.free].reshape(len(c), -1), *([T[:, None]] if self.free_time else [])]
        return np.concatenate(parts, axis=1)

    def part(self, chosen: slice) -> Transcription:
        """Some of the problems."""
        return replace(
            self,
            fixed=self.fixed[chosen],
            durations=self.durations[chosen],
            equality=self.equality.part(chosen),
            drawn=[x[chosen] for x in self.drawn],
        )

    def is_like(self, other: Transcription) -> bool:
        """True if other motions have the same splines, ends, limits and, if given, durations, though perhaps not the same robot."""
        if (self.free, self.free_time) != (other.free, other.free_time) or not self.spline.is_like(other.spline):
            return False
        ends = np.r_[: self.free.start, self.free.stop : self.spline.size]
        pairs = [(self.fixed[:, ends], other.fixed[:, ends])]
        pairs += [] if self.free_time else [(self.durations, other.durations)]
        return same_limits(self.limits, other.limits) and all(np.array_equal(a, b) for a, b in pairs)

    def at(self, x: np.ndarray, which: np.ndarray) -> Here:
        """The problems near x (b, variables)."""
        return Here(self, which, *self.split(x, which))

    def values(self, x: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The costs, the inequalities and the equalities at x; the cost is infinite where a duration is not positive."""
        c, T = self.split(x, which)
        here = Here(self, which, c, np.where(T > 0, T, 1.0))
        return np.where(T > 0, here.f, np.inf), here.c, here.e


class Here:
    """Problems at control points (b, size, n) and durations (b,), with all derivatives."""

    def __init__(self, problem: Transcription, which: np.ndarray, control: np.ndarray, T: np.ndarray) -> None:
        self.problem, self.which, self.control, self.T = problem, which, control, T
        self.stage = problem.spline.stage(problem.spline.basis, control, T)
        b, K, _, n = self.stage.shape
        self.forces = Forces(problem.drives, self.stage.reshape(b * K, ORDERS, n))

    def some(self, rows: np.ndarray) -> Here:
        """Some of the problems."""
        return Here(self.problem, self.which[rows], self.control[rows], self.T[rows])

    # --- values

    @cached_property
    def running(self) -> np.ndarray:
        """ℓ (b, K)."""
        found = np.zeros(self.stage.shape[:2])
        for weight, cost in self.problem.costs:
            found += weight * cost.value(self.forces).reshape(found.shape)
        return found

    @cached_property
    def f(self) -> np.ndarray:
        return np.asarray(self.T * (self.running @ self.problem.spline.weights + self.problem.time_weight))

    @cached_property
    def size(self) -> np.ndarray:
        """T Σ w |ℓ| and the cost of time: that of costs that change their sign too."""
        return np.asarray(self.T * (np.abs(self.running) @ self.problem.spline.weights + self.problem.time_weight) + TINY)

    @cached_property
    def c(self) -> np.ndarray:
        drawn = [x[self.which] for x in self.problem.drawn]
        return self.problem.sides.value(self.forces, drawn, self.stage.shape[1])

    @cached_property
    def e(self) -> np.ndarray:
        return self.problem.equality.value(self.control, self.which)

    # --- first derivatives

    @cached_property
    def stage_gradient(self) -> np.ndarray:
        """∂ℓ/∂stage (b, K, 4, n)."""
        found = np.zeros_like(self.stage)
        for weight, cost in self.problem.costs:
            found += weight * cost.gradient(self.forces).reshape(found.shape)
        return found

    @cached_property
    def gradient(self) -> np.ndarray:
        w = self.problem.spline.weights
        found = self.pulled((self.T[:, None] * w)[:, :, None, None] * self.stage_gradient)
        if self.problem.free_time:
            found[:, -1] += self.running @ w + self.problem.time_weight
        return found

    @cached_property
    def _by_time(self) -> np.ndarray:
        """∂stage/∂T (b, K, 4, n)."""
        return np.asarray(-(_ORDER / self.T[:, None, None, None]) * self.stage)

    def pulled(self, g: np.ndarray) -> np.ndarray:
        """Φᵀ g (b, variables) for covectors g (b, K, 4, n)."""
        problem, spline = self.problem, self.problem.spline
        b, K, _, n = g.shape
        scaled = (g * powers(self.T)[:, None, :, None]).reshape(b, K * ORDERS, n)
        whole = spline.basis.reshape(K * ORDERS, -1).T @ scaled
        parts = [whole[:, problem.free].reshape(b, -1)]
        if problem.free_time:
            parts.append((g * self._by_time).reshape(b, -1).sum(1, keepdims=True))
        return np.concatenate(parts, axis=1)

    def pushed(self, dx: np.ndarray) -> np.ndarray:
        """Φ dx (b, K, 4, n)."""
        problem = self.problem
        whole = np.zeros_like(self.control)
        count = problem.variables - problem.free_time
        whole[:, problem.free] = dx[:, :count].reshape(len(dx), -1, problem.robot.nv)
        found = problem.spline.stage(problem.spline.basis, whole, self.T)
        return found + dx[:, -1, None, None, None] * self._by_time if problem.free_time else found

    def by_row(self, z: np.ndarray, sign: float) -> list[np.ndarray]:
        """z (b, inequalities) of lower limits plus `sign` times those of upper limits, (b K, m) of every kind."""
        return self.problem.sides.by_row(z, self.stage.shape[1], sign)

    def pull(self, z: np.ndarray) -> np.ndarray:
        return self.pulled(self.covector(z)) if z.size else np.zeros((len(z), self.problem.variables))

    def covector(self, z: np.ndarray) -> np.ndarray:
        """Σ z ∂c/∂stage (b, K, 4, n)."""
        found = np.zeros_like(self.forces.stage)
        for rows, weights in zip(self.problem.limits, self.by_row(z, -1.0), strict=True):
            rows.pull(self.forces, weights, found)
        return found.reshape(self.stage.shape)

    def push(self, dx: np.ndarray) -> np.ndarray:
        moved = self.pushed(dx).reshape(self.forces.stage.shape)
        return self.problem.sides.push(self.forces, moved).reshape(len(dx), -1)

    def longest(self, dx: np.ndarray) -> np.ndarray:
        """The longest step (b,), at most 1, within which no capsule jumps over another at a node."""
        b = len(dx)
        found = np.ones(b)
        for rows in self.problem.limits:
            if isinstance(rows, Clearances):
                moved = self.pushed(dx).reshape(self.forces.stage.shape)[:, 0]
                found = np.minimum(found, rows.longest(self.forces, moved).reshape(b, -1).min(1))
        return found

    @cached_property
    def equality_jacobian(self) -> np.ndarray:
        rows = self.problem.equality.jacobian(self.control, self.which)[:, :, self.problem.free]
        rows = rows.reshape(len(rows), rows.shape[1], self.problem.variables - self.problem.free_time)
        return np.concatenate([rows, np.zeros((*rows.shape[:2], 1))], axis=2) if self.problem.free_time else rows

    # --- second derivatives

    def curvature(self, z: np.ndarray, sigma: np.ndarray, convex: bool = False) -> Curvature:
        """The second derivative of the Lagrangian by the stages, without equalities, with Cᵀ diag(sigma) C."""
        b, K, _, n = self.stage.shape
        found = Curvature(b * K, n)
        scale = (self.T[:, None] * self.problem.spline.weights).reshape(-1)
        for weight, cost in self.problem.costs:
            cost.curve(self.forces, weight * scale, found, convex)
        both = zip(self.problem.limits, self.by_row(z, -1.0), self.by_row(sigma, 1.0), strict=True)
        for rows, weights, barred in both:
            rows.curve(self.forces, -weights, barred, found, convex)
        return found

    def hessian(self, z: np.ndarray, y: np.ndarray, sigma: np.ndarray, convex: bool = False) -> np.ndarray:
        """W + Cᵀ diag(sigma) C (b, variables, variables), the upper triangle; if `convex`, a semidefinite matrix in the place of W."""
        curvature = self.curvature(z, sigma, convex)
        b, K, _, n = self.stage.shape
        G = curvature.blocks(self.forces).reshape(b, K, DYNAMIC**2, n, n)
        jerk = curvature.diagonal[:, ORDERS - 1].reshape(b, K, n)
        H = self._assembled(G, jerk)
        if self.problem.free_time:
            H = self._bordered(H, G, jerk, self.T[:, None, None, None] * self._weighted - self.covector(z))
        if not convex:
            self.problem.equality.curve(self.control, self.which, y, H, self.problem.free)
        return H

    @cached_property
    def _weighted(self) -> np.ndarray:
        """w ∂ℓ/∂stage (b, K, 4, n)."""
        return np.asarray(self.problem.spline.weights[:, None, None] * self.stage_gradient)

    def _assembled(self, G: np.ndarray, jerk: np.ndarray) -> np.ndarray:
        """Σ Φᵀ G Φ (b, variables, variables) by control points, the upper triangle; G (b, K, 9, n, n), jerk (b, K, n)."""
        problem, spline = self.problem, self.problem.spline
        b, _, _, n = self.stage.shape
        first, last, _ = problem.free.indices(spline.size)
        scale = powers(self.T)
        both = (scale[:, :DYNAMIC, None] * scale[:, None, :DYNAMIC]).reshape(b, 1, 1, DYNAMIC**2, 1)
        blocks = (G.reshape(b, spline.spans, spline.per_span, DYNAMIC**2, n * n) * both).reshape(b, spline.spans, -1, n * n)
        local = (spline.products @ blocks).reshape(b, spline.spans, -1, n, n)
        if jerk.any():
            third = jerk.reshape(b, spline.spans, spline.per_span, n) * (scale[:, -1] ** 2)[:, None, None, None]
            local[..., range(n), range(n)] += spline.jerk_products @ third
        count, width = last - first, spline.degree + 1
        whole = np.zeros((b, count, count, n, n))
        for span in range(spline.spans):
            begin = span * spline.stride
            at, stop = 0, min(begin + width, last) - first
            for i in range(width):
                row = begin + i - first
                if 0 <= row < stop:
                    whole[:, row, row:stop] += local[:, span, at : at + stop - row]
                at += width - i
        H = np.zeros((b, count * n + problem.free_time, count * n + problem.free_time))
        H[:, : count * n, : count * n] = whole.swapaxes(2, 3).reshape(b, count * n, count * n)
        return H

    def _bordered(self, H: np.ndarray, G: np.ndarray, jerk: np.ndarray, covector: np.ndarray) -> np.ndarray:
        """H with its last column, by a free duration: Φᵀ G ∂z/∂T, the terms of second order and those of the factor T."""
        b, K, _, n = self.stage.shape
        by_time, T = self._by_time, self.T[:, None, None, None]
        along = np.zeros_like(by_time)
        blocks = G.reshape(b, K, DYNAMIC, DYNAMIC, n, n)
        along[:, :, :DYNAMIC] = np.einsum("bkopij,bkpj->bkoi", blocks, by_time[:, :, :DYNAMIC])
        along[:, :, -1] = jerk * by_time[:, :, -1]
        cross = along - (_ORDER / T) * covector + self._weighted  # ∂²stage/∂c∂T = -order/T Φ; the factor T
        H[:, :, -1] = self.pulled(cross)
        total = by_time * (along + 2.0 * self._weighted) + covector * (_ORDER * (_ORDER + 1)) / T**2 * self.stage
        H[:, -1, -1] = total.reshape(b, -1).sum(1)
        return H
