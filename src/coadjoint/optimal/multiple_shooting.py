"""Motions as multiple shooting: states and joint forces at nodes, and the motion between them integrated from each.

Between two nodes joint forces are linear in time and the state x = (q, v) follows v̇ = a(q, v, τ) in steps of Runge and Kutta; the cost is
summed at their stages. That the state arrives where the next node is are equations. Bock & Plitt (1984).

Derivatives are exact. With Z = ∂(q, v, τ)/∂p at every stage, p = (x_k, τ_k, τ_k+1, T), and ω the multiplier of its slope (v, a), found
backwards through the steps, the Hessian is Σ Zᵀ ∂²(ωᵀ(v, a) + h b ℓ) Z, with ∂²a = -M⁻¹ ∂²(inverse dynamics) along (q, v, a).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from ..robot.robot import Robot
from . import node_limits
from .clearance import Clearances
from .drives import OpenChain
from .quintics import Places, Quintics
from .rows import Rows, Torques, same_limits
from .shot_stages import Stage
from .sides import Sides
from .splines import ORDERS
from .stages import DYNAMIC, Cost, Curvature, Forces
from .transcription import TINY

STEPS = 8
"""Steps of the integrator between two nodes."""
LOOKS = 8
"""Places in a span at which limits are kept, at most; at the first of them alone those of joint forces, which are linear."""
RULE = ((0.0, 0.0, 1 / 6), (0.5, 0.5, 1 / 3), (0.5, 0.5, 1 / 3), (1.0, 1.0, 1 / 6))
"""The time of every stage, its step along the slope before, and its weight."""


Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Shots:
    """B problems: variables are q, v and τ at every node, and then T if it is free."""

    robot: Robot
    spans: int
    costs: Sequence[tuple[float, Cost]]
    time_weight: float
    limits: Sequence[Rows]
    begin: np.ndarray
    """(B, spans + 1, 3, n): where the search begins."""
    durations: np.ndarray
    free_time: bool
    rows: np.ndarray
    """(k, nodes, 3, n): linear equations on what is at the nodes."""
    right: np.ndarray
    """(B, k)"""
    drawn: Sequence[np.ndarray]
    steps: int = STEPS

    @cached_property
    def drives(self) -> OpenChain:
        return OpenChain(self.robot)

    @property
    def closure(self) -> None:
        return None

    @property
    def first(self) -> np.ndarray:
        """The variables (B, variables) at which the search begins."""
        return self.join(self.begin, self.durations)

    @cached_property
    def looks(self) -> int:
        """Places in a span at which limits are kept: where steps of the integrator begin."""
        return min(LOOKS, self.steps) if any(not isinstance(x, Torques) for x in self.limits) else 1

    @cached_property
    def nodes(self) -> np.ndarray:
        """The times (places,) at which limits are kept, as parts of the duration."""
        return np.linspace(0.0, 1.0, self.spans * self.looks + 1)

    @cached_property
    def variables(self) -> int:
        return int(self.begin[0].size) + self.free_time

    @cached_property
    def sides(self) -> Sides:
        counts = [int(np.isfinite(np.concatenate([x.lower, x.upper])).sum()) for x in self.limits]
        linear = np.array(
            [isinstance(x, Torques) for x, count in zip(self.limits, counts, strict=True) for _ in range(count)], bool
        )
        at_nodes = np.arange(len(self.nodes)) % self.looks == 0
        return Sides(self.limits, np.flatnonzero(at_nodes[:, None] | ~linear))

    @cached_property
    def spline(self) -> Quintics:
        """Polynomials of degree 5 with the positions, velocities and accelerations after every step of the integrator."""
        return Quintics(self.spans * self.steps)

    def split(self, x: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The states at the nodes (b, nodes, 3, n), and durations (b,)."""
        count = self.variables - self.free_time
        return x[:, :count].reshape(len(x), *self.begin.shape[1:]), (x[:, count] if self.free_time else self.durations[which])

    def join(self, at: np.ndarray, T: np.ndarray) -> np.ndarray:
        return np.concatenate([at.reshape(len(at), -1), *([T[:, None]] if self.free_time else [])], axis=1)

    def part(self, chosen: slice) -> Shots:
        """Some of the problems."""
        some = {"begin": self.begin[chosen], "durations": self.durations[chosen], "right": self.right[chosen]}
        return replace(self, **some, drawn=[x[chosen] for x in self.drawn])  # type: ignore[arg-type]

    def is_like(self, other: Shots) -> bool:
        """True if other motions have the same nodes, ends, limits and, if given, durations, though perhaps not the same robot."""
        if (self.spans, self.free_time, self.begin.shape) != (other.spans, other.free_time, other.begin.shape):
            return False
        pairs = [(self.rows, other.rows), (self.right, other.right)]
        pairs += [] if self.free_time else [(self.durations, other.durations)]
        return same_limits(self.limits, other.limits) and all(np.array_equal(a, b) for a, b in pairs)

    def at(self, x: np.ndarray, which: np.ndarray) -> Flight:
        return Flight(self, which, *self.split(x, which))

    def values(self, x: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        at, T = self.split(x, which)
        here = Flight(self, which, at, np.where(T > 0, T, 1.0))
        with np.errstate(all="ignore"):  # what runs away is no step
            return np.where(T > 0, here.f, np.inf), here.c, here.e

    def control(self, here: Flight) -> np.ndarray:
        """Control points (b, 3 (steps + 1), n) of the motion as it was integrated."""
        b, n = len(here.T), self.robot.nv
        steps = np.stack([stage.forces.stage[:, :DYNAMIC] for stage in here.stages[:: len(RULE)]], axis=1)
        whole = np.concatenate([steps.reshape(b, -1, DYNAMIC, n), here.last_stage], axis=1)
        return np.asarray((whole * here.T[:, None, None, None] ** np.arange(DYNAMIC)[:, None]).reshape(b, -1, n))

    def forces_at(self, here: Flight, places: Places) -> Forces:
        """The stages at these places, (b S): the integrated motion, and joint forces that are linear between the nodes."""
        stage = self.spline.stage(places, self.control(here), here.T)
        tau = self.between(places, here.nodes[:, :, 2])
        return Forces(self.drives, stage.reshape(-1, ORDERS, self.robot.nv), tau.reshape(-1, self.robot.nv))

    def between(self, places: Places, u: np.ndarray) -> np.ndarray:
        """Joint forces (b, S, n) at places, from those at the nodes (b, nodes, n)."""
        k = np.minimum((places.s * self.spans).astype(int), self.spans - 1)
        part = (places.s * self.spans - k)[:, None]
        return np.asarray((1 - part) * u[:, k] + part * u[:, k + 1])

    def exact(self, here: Flight) -> np.ndarray:
        """The costs (b,) in twice as many steps."""
        return replace(self, steps=2 * self.steps).at(self.join(here.nodes, here.T), here.which).f

    def missed(self, here: Flight) -> np.ndarray:
        """The distance (b,) of the final states from those of twice as many steps."""
        finer = replace(self, steps=2 * self.steps).at(self.join(here.nodes, here.T), here.which)
        return np.asarray(np.abs(finer.arrived - here.arrived).reshape(len(here.T), -1).max(1))


class Flight:
    """Problems at what is at their nodes (b, nodes, 3, n) and durations (b,), with all derivatives: see `interior_point.Local`."""

    def __init__(self, problem: Shots, which: np.ndarray, nodes: np.ndarray, T: np.ndarray) -> None:
        self.problem, self.which, self.nodes, self.T = problem, which, nodes, T
        self.h = np.repeat(T / (problem.spans * problem.steps), problem.spans)[:, None]
        self.rate = 1.0 / (problem.spans * problem.steps)
        """dh/dT"""

    def some(self, rows: np.ndarray) -> Flight:
        return Flight(self.problem, self.which[rows], self.nodes[rows], self.T[rows])

    # --- values

    @cached_property
    def _flown(self) -> tuple[list[Stage], np.ndarray]:
        """The stages of every span, and where the states arrive (b spans, 2 n)."""
        n = self.problem.robot.nv
        X = self.nodes[:, :-1, :2].reshape(-1, 2 * n)
        first, last = self.nodes[:, :-1, 2].reshape(-1, n), self.nodes[:, 1:, 2].reshape(-1, n)
        stages: list[Stage] = []
        for step in range(self.problem.steps):
            slope, moved = np.zeros_like(X), np.zeros_like(X)
            for time, along, weight in RULE:
                part = (step + time) / self.problem.steps
                stages.append(Stage(self.problem, X + along * self.h * slope, (1 - part) * first + part * last))
                slope = stages[-1].slope
                moved = moved + weight * slope
            X = X + self.h * moved
        return stages, X

    @property
    def stages(self) -> list[Stage]:
        return self._flown[0]

    @property
    def arrived(self) -> np.ndarray:
        return self._flown[1]

    @cached_property
    def _weights(self) -> np.ndarray:
        return np.tile([weight for *_, weight in RULE], self.problem.steps)

    @cached_property
    def f(self) -> np.ndarray:
        total = sum(w * stage.running for w, stage in zip(self._weights, self.stages, strict=True)) * self.h[:, 0]
        return np.asarray(np.reshape(total, (len(self.T), -1)).sum(1) + self.problem.time_weight * self.T)

    @cached_property
    def size(self) -> np.ndarray:
        total = sum(w * np.abs(stage.running) for w, stage in zip(self._weights, self.stages, strict=True)) * np.abs(self.h[:, 0])
        return np.asarray(np.reshape(total, (len(self.T), -1)).sum(1) + self.problem.time_weight * self.T + TINY)

    @cached_property
    def at_places(self) -> Stage:
        """What is at the places where limits are kept (b places)."""
        n, last = self.problem.robot.nv, self.nodes[:, -1]
        X = self.at_all([stage.X for stage in self._looked(self.stages)], last[:, :2].reshape(-1, 2 * n))
        return Stage(self.problem, X, self.at_all([stage.u for stage in self._looked(self.stages)], last[:, 2]))

    def _looked(self, of_stages: Sequence[Kept]) -> Sequence[Kept]:
        """Of what is there for every stage, what belongs to the places of a span at which limits are kept."""
        return of_stages[:: len(RULE) * self.problem.steps // self.problem.looks]

    def at_all(self, looked: Sequence[np.ndarray], last: np.ndarray) -> np.ndarray:
        """(b places, …) of what is at the places of spans, (b spans, …) each, and at the end (b, …)."""
        whole = np.stack(looked, axis=1).reshape(len(last), -1, *last.shape[1:])
        return np.ascontiguousarray(np.concatenate([whole, last[:, None]], axis=1).reshape(-1, *last.shape[1:]))

    def by_span(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The parts (b spans, looks, …) and (b, …) of what is at all places (b places, …)."""
        x = x.reshape(len(self.T), -1, *x.shape[1:])
        return x[:, :-1].reshape(-1, self.problem.looks, *x.shape[2:]), x[:, -1]

    @cached_property
    def looked_tangents(self) -> np.ndarray:
        """∂(q, v, τ)/∂p (b spans, looks, 3 n, P) at the places where limits are kept."""
        return np.stack(self._looked(self.tangents[0]), axis=1)

    @property
    def last_stage(self) -> np.ndarray:
        """(b, 1, 3, n) at the end."""
        return self.by_span(self.at_places.forces.stage)[1][:, None, :DYNAMIC]

    @cached_property
    def c(self) -> np.ndarray:
        drawn = [x[self.which] for x in self.problem.drawn]
        return self.problem.sides.value(self.at_places.forces, drawn, len(self.problem.nodes))

    @cached_property
    def e(self) -> np.ndarray:
        b, _, _, n = self.nodes.shape
        gap = self.arrived.reshape(b, -1, 2, n) - self.nodes[:, 1:, :2]
        linear = np.einsum("kjoi,bjoi->bk", self.problem.rows, self.nodes) - self.problem.right[self.which]
        return np.concatenate([gap.reshape(b, -1), linear], axis=1)

    # --- first derivatives: by p = (x_k, τ_k, τ_k+1, T)

    @cached_property
    def tangents(self) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
        """∂(q, v, τ)/∂p (N, 3 n, P) and the derivatives of slopes (N, 2 n, P) of every stage, and of where states arrive (N, 2 n, P)."""
        n, N = self.problem.robot.nv, len(self.arrived)
        P, h = 4 * n + 1, self.h[:, :, None]
        dX = np.broadcast_to(np.eye(2 * n, P), (N, 2 * n, P))
        points, slopes = [], []
        for step in range(self.problem.steps):
            slope, moved = np.zeros((2, N, 2 * n))
            dslope, dmoved = np.zeros((2, N, 2 * n, P))
            for k, (time, along, weight) in enumerate(RULE):
                stage, part = self.stages[len(RULE) * step + k], (step + time) / self.problem.steps
                dx = dX + along * h * dslope
                dx[:, :, -1] += along * self.rate * slope
                du = np.concatenate([np.zeros((n, 2 * n)), (1 - part) * np.eye(n), part * np.eye(n), np.zeros((n, 1))], axis=1)
                points.append(np.concatenate([dx, np.broadcast_to(du, (N, n, P))], axis=1))
                slope, dslope = stage.slope, np.concatenate([dx[:, n:], stage.A @ points[-1]], axis=1)
                slopes.append(dslope)
                moved, dmoved = moved + weight * slope, dmoved + weight * dslope
            dX = dX + h * dmoved
            dX[:, :, -1] += self.rate * moved
        return points, slopes, dX

    @cached_property
    def _cost_slopes(self) -> list[np.ndarray]:
        """∂ℓ/∂p (N, P) at every stage."""
        pairs = zip(self.stages, self.tangents[0], strict=True)
        return [(stage.pulled(stage.covector[:, :DYNAMIC])[:, None] @ Z)[:, 0] for stage, Z in pairs]

    @cached_property
    def gradient(self) -> np.ndarray:
        found = np.zeros((len(self.arrived), 4 * self.problem.robot.nv + 1))
        for w, stage, slope in zip(self._weights, self.stages, self._cost_slopes, strict=True):
            found += w * self.h * slope
            found[:, -1] += w * self.rate * stage.running
        whole = self.spread(found)
        if self.problem.free_time:
            whole[:, -1] += self.problem.time_weight
        return whole

    def spread(self, g: np.ndarray) -> np.ndarray:
        """(b, variables) of covectors by p (b spans, P)."""
        b, K, _, n = self.nodes.shape
        g = g.reshape(b, K - 1, -1)
        found = np.zeros((b, K, 3 * n))
        found[:, :-1] += g[..., : 3 * n]
        found[:, 1:, 2 * n :] += g[..., 3 * n : 4 * n]
        parts = [found.reshape(b, -1), *([g[..., -1].sum(1)[:, None]] if self.problem.free_time else [])]
        return np.concatenate(parts, axis=1)

    @cached_property
    def equality_jacobian(self) -> np.ndarray:
        b, K, _, n = self.nodes.shape
        D = self.tangents[2].reshape(b, K - 1, 2 * n, -1)
        found = np.zeros((b, K - 1, 2 * n, K, 3 * n))
        for k in range(K - 1):
            found[:, k, :, k] = D[:, k, :, : 3 * n]
            found[:, k, :, k + 1] -= np.eye(2 * n, 3 * n)
            found[:, k, :, k + 1, 2 * n :] += D[:, k, :, 3 * n : 4 * n]
        linear = np.broadcast_to(self.problem.rows.reshape(-1, K * 3 * n), (b, len(self.problem.rows), K * 3 * n))
        whole = np.concatenate([found.reshape(b, -1, K * 3 * n), linear], axis=1)
        if not self.problem.free_time:
            return whole
        by_time = np.concatenate([D[..., -1].reshape(b, -1), np.zeros((b, linear.shape[1]))], axis=1)
        return np.concatenate([whole, by_time[..., None]], axis=2)

    def own(self, dx: np.ndarray) -> np.ndarray:
        """The changes of p (b spans, P) with those of the variables (b, variables)."""
        b, K, _, n = self.nodes.shape
        at = dx[:, : K * 3 * n].reshape(b, K, 3 * n)
        dT = np.broadcast_to(dx[:, None, -1:] if self.problem.free_time else 0.0, (b, K - 1, 1))
        return np.concatenate([at[:, :-1], at[:, 1:, 2 * n :], dT], axis=2).reshape(b * (K - 1), -1)

    def by_row(self, z: np.ndarray, sign: float) -> list[np.ndarray]:
        """z (b, inequalities) of lower limits plus `sign` times those of upper limits, (b places, m) of every kind."""
        return self.problem.sides.by_row(z, len(self.problem.nodes), sign)

    def limit_covector(self, z: np.ndarray) -> np.ndarray:
        """Σ z ∂c/∂(q, v, a) at the places (b places, 3, n), of all limits but those of joint forces."""
        found = np.zeros_like(self.at_places.forces.stage)
        for rows, weights in zip(self.problem.limits, self.by_row(z, -1.0), strict=True):
            if not node_limits.of_forces(rows):
                rows.pull(self.at_places.forces, weights, found)
        return found[:, :DYNAMIC]

    def _pulled(self, z: np.ndarray) -> np.ndarray:
        """Σ z ∂c/∂(q, v, τ) at the places (b places, 3 n)."""
        found = self.at_places.pulled(self.limit_covector(z))
        for rows, weights in zip(self.problem.limits, self.by_row(z, -1.0), strict=True):
            if node_limits.of_forces(rows):
                node_limits.pull(rows, self.at_places.forces, weights, found)
        return found

    def pull(self, z: np.ndarray) -> np.ndarray:
        if not z.size:
            return np.zeros((len(z), self.problem.variables))
        looked, last = self.by_span(self._pulled(z))
        found = self.spread(np.einsum("sli,slip->sp", looked, self.looked_tangents))
        size = self.nodes[0].size
        found[:, size - last.shape[1] : size] += last
        return found

    def push(self, dx: np.ndarray) -> np.ndarray:
        b, _, _, n = self.nodes.shape
        if not self.problem.limits:
            return np.zeros((b, 0))
        dy = np.moveaxis(np.einsum("slip,sp->sli", self.looked_tangents, self.own(dx)), 1, 0)
        size = self.nodes[0].size
        dy = self.at_all(list(dy), dx[:, size - 3 * n : size])
        moved = np.zeros((len(dy), ORDERS, n))
        moved[:, :2], moved[:, 2] = dy[:, : 2 * n].reshape(-1, 2, n), (self.at_places.A @ dy[..., None])[..., 0]
        return self.problem.sides.those(self.problem.sides.push(self.at_places.forces, moved).reshape(b, -1))

    def longest(self, dx: np.ndarray) -> np.ndarray:
        b, _, _, n = self.nodes.shape
        found = np.ones(b)
        for rows in self.problem.limits:
            if isinstance(rows, Clearances):
                dy = np.moveaxis(np.einsum("slip,sp->sli", self.looked_tangents[:, :, :n], self.own(dx)), 1, 0)
                moved = self.at_all(list(dy), dx[:, self.nodes[0].size - 3 * n :][:, :n])
                found = np.minimum(found, rows.longest(self.at_places.forces, moved).reshape(b, -1).min(1))
        return found

    # --- second derivatives

    def hessian(self, z: np.ndarray, y: np.ndarray, sigma: np.ndarray, convex: bool = False) -> np.ndarray:
        b, K, _, n = self.nodes.shape
        found = self._span_hessian(y, z, convex)
        H = np.zeros((b, self.problem.variables, self.problem.variables))
        if z.size:
            at = self.at_places
            curvature, direct = self.limit_curvature(z, sigma, convex)
            slope = None if convex else -self.limit_covector(z)[:, 2]
            looked, last = self.by_span(at.bent(curvature, slope) + direct)
            for k in range(self.problem.looks):
                Z = self.looked_tangents[:, k]
                found += Z.swapaxes(-1, -2) @ looked[:, k] @ Z
            own = slice(3 * n * (K - 1), 3 * n * K)
            H[:, own, own] += last
        parts = found.reshape(b, K - 1, 4 * n + 1, 4 * n + 1)
        for k in range(K - 1):
            first = 3 * n * k
            places = np.r_[
                first : first + 3 * n, first + 5 * n : first + 6 * n, *([H.shape[1] - 1] if self.problem.free_time else [])
            ]
            H[:, places[:, None], places] += parts[:, k, : len(places), : len(places)]
        return H

    def limit_curvature(self, z: np.ndarray, sigma: np.ndarray, convex: bool) -> tuple[Curvature, np.ndarray]:
        """What limits add at the places: of functions of (q, v, a), and of (q, v, τ) (b places, 3 n, 3 n)."""
        n, N = self.problem.robot.nv, len(self.at_places.X)
        curvature, direct = Curvature(N, n), np.zeros((N, 3 * n, 3 * n))
        for rows, weights, barred in zip(self.problem.limits, self.by_row(z, -1.0), self.by_row(sigma, 1.0), strict=True):
            if node_limits.of_forces(rows):
                node_limits.curve(rows, self.at_places.forces, -weights, barred, direct, convex)
            else:
                rows.curve(self.at_places.forces, -weights, barred, curvature, convex)
        return curvature, direct

    def adjoints(self, y: np.ndarray, z: np.ndarray) -> Iterator[tuple[int, float, np.ndarray, np.ndarray]]:
        """The number of every stage, its weight, the multiplier of its slope over h (N, 2 n), and the derivative of the Lagrangian by its
        acceleration (N, n), from the last stage to the first.
        """
        n, N = self.problem.robot.nv, len(self.arrived)
        after, every = -y[:, : N // len(y) * 2 * n].reshape(N, 2 * n), self.problem.steps // self.problem.looks
        by_limits = self.by_span(self._pulled(z))[0][..., : 2 * n] if z.size else np.zeros((N, self.problem.looks, 2 * n))
        for step in reversed(range(self.problem.steps)):
            before, ahead = after.copy(), np.zeros((N, 2 * n))
            next_along = 0.0
            for k in reversed(range(len(RULE))):
                _, along, weight = RULE[k]
                index = len(RULE) * step + k
                stage, each = self.stages[index], weight * after + next_along * ahead
                covector = weight * self.h[:, :, None] * stage.covector[:, :DYNAMIC]
                covector[:, 1] += self.h * each[:, :n]
                covector[:, 2] += self.h * each[:, n:]
                yield index, weight, each, covector[:, 2]
                ahead, next_along = stage.pulled(covector)[:, : 2 * n], along
                before += ahead
            after = before if step % every else before - by_limits[:, step // every]

    def _span_hessian(self, y: np.ndarray, z: np.ndarray, convex: bool) -> np.ndarray:
        """(N, P, P) of the cost and of -yᵀe in every span."""
        n, N = self.problem.robot.nv, len(self.arrived)
        points, slopes, _ = self.tangents
        found = np.zeros((N, 4 * n + 1, 4 * n + 1))
        h = self.h[:, 0]
        for index, weight, each, total in self.adjoints(y, z):
            stage, Z = self.stages[index], points[index]
            curvature = Curvature(N, n)
            for w, cost in self.problem.costs:
                cost.curve(stage.forces, w * weight * h, curvature, convex)
            found += Z.swapaxes(-1, -2) @ stage.bent(curvature, None if convex else total) @ Z
            if not convex:
                along_time = self.rate * ((each[:, None] @ slopes[index])[:, 0] + weight * self._cost_slopes[index])
                found[:, -1] += along_time
                found[:, :, -1] += along_time
        return found
