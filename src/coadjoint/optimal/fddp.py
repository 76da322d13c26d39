"""Differential dynamic programming with feasibility, on many problems at once.

An iteration linearises all steps of a trajectory, solves the linear-quadratic problem backward in time, and rolls the controls
u + α k + K δx forward. A guess of states and controls that do not fit has gaps; a step α leaves the part 1 - α of each (Mastalli et al.,
2020). Steps are accepted by the merit function J + ν Σ |gap|. Hessians are exact, with the dynamics' own second derivatives, where the
backward pass finds them convex, and of Gauss and Newton's kind elsewhere: so convergence is quadratic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..kernel.runtime.function import run_steps
from ..robot.robot import Robot
from .shooting import Steps

LENGTHS = 2.0 ** -np.arange(12)
"""Lengths of steps that are tried."""
TOGETHER = 4
"""How many of them at once for few problems: as many as processors compute at no extra cost."""
FEW = 8
SHIFTS = (1e-9, 1e9)
"""The least and the largest shift of Quu; below the least it is 0."""
FEASIBLE = 1e-9
"""The gap up to which second derivatives of the dynamics are taken."""


@dataclass
class Span:
    """A run of steps with the same functions."""

    steps: Steps
    start: int
    stop: int
    numbers: np.ndarray
    """(P or 1, stop - start, ...): lengths of steps, references, weights."""


@dataclass
class Path:
    """Trajectories of P problems."""

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray

    def of(self, rows: Any) -> Path:
        return Path(self.q[rows], self.v[rows], self.u[rows])


@dataclass
class Local:
    """Values and derivatives along trajectories."""

    cost: np.ndarray
    """(P,)"""
    gap: np.ndarray
    """(P, N, nx): where a step ends, less the next state."""
    g: list[np.ndarray]
    H: list[np.ndarray]
    entries: list[np.ndarray]
    turned: list[tuple[np.ndarray, ...]]
    """Gradients by velocities, and E, of spans that go by them (`Steps.direct`)."""
    g_end: np.ndarray
    H_end: np.ndarray
    costate: np.ndarray
    """∂J/∂x (P, N + 1, nx)."""
    slope: np.ndarray
    """∂J/∂u (P, N, m)."""


@dataclass
class Policy:
    """The result of a backward pass."""

    K: np.ndarray
    """(P, N, m · nx)"""
    k: np.ndarray
    V: np.ndarray
    """Triangles of the value's Hessian (P, N + 1, ...)."""
    p: np.ndarray
    least: np.ndarray
    """The least pivot (P,); not positive where the problem is not convex."""
    change: np.ndarray
    """The expected change of cost (P, 2): linear and quadratic in the length."""


@dataclass
class Problem:
    """P problems of one shape."""

    robot: Robot
    spans: list[Span]
    final: Steps
    final_numbers: np.ndarray
    """(P or 1, ...)"""
    q0: np.ndarray
    v0: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    """(P or 1, N or 1, m) each."""
    threads: int | None = None

    @property
    def count(self) -> int:
        return len(self.q0)

    @property
    def horizon(self) -> int:
        return self.spans[-1].stop

    @property
    def nx(self) -> int:
        return 2 * int(self.robot.nv)

    @property
    def m(self) -> int:
        return int(self.spans[0].steps.m)

    def some(self, rows: np.ndarray) -> Problem:
        """Some of the problems."""
        if len(rows) == self.count:
            return self

        def part(x: np.ndarray) -> np.ndarray:
            return x if len(x) == 1 else x[rows]

        spans = [Span(s.steps, s.start, s.stop, part(s.numbers)) for s in self.spans]
        low, high = (None if x is None else part(x) for x in (self.low, self.high))
        return Problem(
            self.robot, spans, self.final, part(self.final_numbers), self.q0[rows], self.v0[rows], low, high, self.threads
        )

    # --- the passes

    def local(self, path: Path, costates: bool = True) -> Local:
        """Values and first derivatives; Hessians of Gauss and Newton's kind."""
        P, N = path.u.shape[:2]
        gap = np.empty((P, N, self.nx))
        g, H, entries, turned = [], [], [], []
        cost = np.zeros(P)
        for s in self.spans:
            at = slice(s.start, s.stop)
            after = slice(s.start + 1, s.stop + 1)
            given = (path.q[:, at], path.v[:, at], path.u[:, at], s.numbers, path.q[:, after], path.v[:, after])
            c, slope, curve, linear, gap[:, at], *more = _flat(s.steps.model, *given)
            turned.append(tuple(more))
            cost += c[..., 0].sum(-1)
            g.append(slope)
            H.append(curve)
            entries.append(linear)
        c, g_end, H_end = self.final.model(*self._end(path), _rows(self.final_numbers, P))
        costate, slope = np.empty((P, N + 1, self.nx)), np.empty((P, N, self.m))
        found = Local(cost + c[:, 0], gap, g, H, entries, turned, g_end, H_end, costate, slope)
        if costates:
            costate[:, -1] = g_end
            for s, first, linear in zip(reversed(self.spans), reversed(g), reversed(entries), strict=True):
                back = costate[:, s.start : s.stop + 1][:, ::-1]
                known = [back[:, :-1], linear[:, ::-1], first[:, ::-1]]
                run_steps(s.steps.adjoint, known, [back[:, 1:], slope[:, s.start : s.stop][:, ::-1]], self.threads)
        return found

    def curvature(self, path: Path, local: Local) -> tuple[list[np.ndarray], np.ndarray]:
        """The exact Hessians: of the steps, and of the terminal cost."""
        found = []
        for s, turned in zip(self.spans, local.turned, strict=True):
            at, after = slice(s.start, s.stop), slice(s.start + 1, s.stop + 1)
            given = (path.q[:, at], path.v[:, at], path.u[:, at], s.numbers, local.costate[:, after])
            found += _flat(s.steps.curvature, *given, *turned[1:])
        return found, self.final.curvature(*self._end(path), _rows(self.final_numbers, len(path.u)), local.costate[:, -1].copy())

    def backward(self, path: Path, local: Local, H: list[np.ndarray], H_end: np.ndarray, shift: np.ndarray) -> Policy:
        P, N, nx, m = *path.u.shape[:2], self.nx, self.m
        V, p = np.empty((P, N + 1, nx * (nx + 1) // 2)), np.empty((P, N + 1, nx))
        K, k, told = np.empty((P, N, m * nx)), np.empty((P, N, m)), np.empty((P, N, 3))
        V[:, -1], p[:, -1] = H_end, local.g_end
        box = [] if self.low is None or self.high is None else [self.low - path.u, self.high - path.u]
        shifts = shift[:, None, None]
        for s, curve, first, linear, turned in list(zip(self.spans, H, local.g, local.entries, local.turned, strict=True))[::-1]:
            at, ends = slice(s.start, s.stop), slice(s.start, s.stop + 1)
            V1, p1 = V[:, ends][:, ::-1], p[:, ends][:, ::-1]
            if turned:
                first, linear = turned[0], linear[..., : s.steps.pattern_T.size]
            further = [linear, curve, first, local.gap[:, at], shifts, *(x[:, at] for x in box)]
            results = [x[:, at][:, ::-1] for x in (K, k, told)]
            run_steps(
                s.steps.backward,
                [V1[:, :-1], p1[:, :-1], *(x[:, ::-1] for x in further)],
                [V1[:, 1:], p1[:, 1:], *results],
                self.threads,
            )
            if turned:
                K[:, at], k[:, at] = _flat(s.steps.gains, K[:, at], k[:, at], turned[1])
        return Policy(K, k, V, p, told[..., 0].min(-1), told[..., 1:].sum(-2))

    def forward(self, path: Path, local: Local, policy: Policy, lengths: np.ndarray) -> tuple[Path, np.ndarray]:
        """Trajectories for all problems and all of A lengths (P · A of them, the lengths of a problem one after the other), and their
        costs (P, A)."""
        P, N, A = *path.u.shape[:2], len(lengths)
        R, robot = P * A, self.robot

        def spread(x: np.ndarray) -> np.ndarray:
            return x if len(x) == 1 or A == 1 else np.repeat(x, A, axis=0)

        new = Path(np.empty((R, N + 1, robot.nq)), np.empty((R, N + 1, robot.nv)), np.empty((R, N, self.m)))
        cost = np.empty((R, N + 1, 1))
        new.q[:, 0], new.v[:, 0], cost[:, 0] = spread(self.q0), spread(self.v0), 0.0
        long = np.tile(lengths, P).reshape(R, 1, 1)
        box = [] if self.low is None or self.high is None else [spread(self.low), spread(self.high)]
        for s in self.spans:
            at = slice(s.start, s.stop)
            old = [path.q[:, at], path.v[:, at], path.u[:, at], policy.K[:, at], policy.k[:, at], local.gap[:, at]]
            given = [*map(spread, old), long, spread(s.numbers), *box]
            states = [x[:, s.start : s.stop + 1] for x in (new.q, new.v, cost)]
            outputs = [*(x[:, 1:] for x in states), new.u[:, at]]
            run_steps(s.steps.forward, [*(x[:, :-1] for x in states), *given], outputs, self.threads)
        end = self.final.value(*self._end(new), _rows(spread(self.final_numbers), R))
        return new, (cost[:, -1, 0] + end[:, 0]).reshape(P, A)

    def _end(self, path: Path) -> tuple[np.ndarray, ...]:
        """The last states, and no control."""
        return path.q[:, -1].copy(), path.v[:, -1].copy(), np.zeros((len(path.u), self.m))

    def projected(self, path: Path, local: Local) -> np.ndarray:
        """The largest entry (P,) of ∂J/∂u, less what limits hold back."""
        u = path.u - local.slope
        if self.low is not None and self.high is not None:
            u = np.clip(u, self.low, self.high)
        return np.asarray(np.abs(path.u - u).max((-1, -2), initial=0.0))


@dataclass
class Outcome:
    """Where the iterations ended."""

    path: Path
    cost: np.ndarray
    error: np.ndarray
    K: np.ndarray
    k: np.ndarray
    V: np.ndarray
    p: np.ndarray
    costate: np.ndarray
    slope: np.ndarray
    converged: np.ndarray
    iterations: np.ndarray
    message: list[str]
    table: list[dict[str, Any]] = field(default_factory=list)


def solve(
    problem: Problem,
    path: Path,
    *,
    tolerance: float,
    iterations: int,
    exact: bool = True,
    report: Callable[[int, float], None] | None = None,
) -> Outcome:
    """Locally optimal trajectories near the given ones. Ctrl-C returns what is there."""
    return _Solver(problem, path, tolerance, exact).run(iterations, report)


class _Solver:
    def __init__(self, problem: Problem, path: Path, tolerance: float, exact: bool) -> None:
        P, N, m, nx = problem.count, problem.horizon, problem.m, problem.nx
        self.problem, self.path, self.tolerance, self.exact = problem, path, tolerance, exact
        self.shift, self.penalty = np.zeros(P), np.zeros(P)
        self.cost, self.error, self.gap = np.full(P, np.nan), np.full(P, np.inf), np.full(P, np.inf)
        self.K, self.k = np.zeros((P, N, m * nx)), np.zeros((P, N, m))
        self.V, self.p = np.zeros((P, N + 1, nx * (nx + 1) // 2)), np.zeros((P, N + 1, nx))
        self.costate, self.slope = np.zeros((P, N + 1, nx)), np.zeros((P, N, m))
        self.converged, self.taken = np.zeros(P, dtype=bool), np.zeros(P, dtype=int)
        self.full, self.failed = np.ones(P, dtype=bool), np.zeros(P, dtype=bool)
        self.message = [""] * P
        self.active = np.arange(P)
        self.table: list[dict[str, Any]] = []

    def run(self, iterations: int, report: Callable[[int, float], None] | None) -> Outcome:
        try:
            for count in range(iterations + 1):
                self._iterate(last=count == iterations)
                if report is not None:
                    report(count, float(np.max(self.error[np.isfinite(self.error)], initial=0.0)))
                if not len(self.active):
                    break
            for k in self.active:
                self.message[k] = (
                    f"stopped after {iterations} iterations: the conditions of first order hold to {self.error[k]:.1e}"
                )
        except KeyboardInterrupt:
            for k in self.active:
                self.message[k] = "interrupted: this is the best so far"
        return Outcome(
            self.path,
            self.cost,
            self.error,
            self.K,
            self.k,
            self.V,
            self.p,
            self.costate,
            self.slope,
            self.converged,
            self.taken,
            self.message,
            self.table,
        )

    def _iterate(self, last: bool) -> None:
        """One iteration of all problems that go on."""
        rows = self.active
        problem, path = self.problem.some(rows), self.path.of(rows) if len(rows) < self.problem.count else self.path
        local = problem.local(path)
        self._note(rows, local)
        gap = np.abs(local.gap).max((-1, -2), initial=0.0)
        self.gap[rows], self.error[rows] = gap, np.maximum(problem.projected(path, local), gap)
        self.table.append({"cost": float(self.cost.sum()), "error": float(self.error.max()), "gap": float(self.gap.max())})
        done = self.error[rows] < self.tolerance
        policy, exact = self._policy(problem, path, local, gap)
        found = policy.least > 0
        self._keep(rows, policy)
        for k, good in zip(rows, done & found, strict=True):
            if good:
                self.message[k] = f"optimal: the conditions of first order hold to {self.error[k]:.1e}"
        self.converged[rows[done & found]] = True
        bad = ~found
        for k in rows[bad]:
            self.message[k] = "no direction of descent was found: a cost is not convex in the controls, or not a number"
        go = ~done & found
        if last:
            self.active = rows[go]
            return
        accepted, lengths = self._search(problem, path, local, policy, go)
        self.taken[rows[go & accepted]] += 1
        self.table[-1] |= {
            "step": float(np.min(lengths[go & accepted], initial=1.0)),
            "shift": float(self.shift[rows].max(initial=0.0)),
            "exact": int(exact.sum()),
        }
        up = go & ~accepted
        self.shift[rows[up]] = np.maximum(SHIFTS[0], 10.0 * np.maximum(self.shift[rows[up]], SHIFTS[0]))
        stuck = up & (self.shift[rows] > SHIFTS[1])
        for k in rows[stuck]:
            self.message[k] = f"no further progress: the conditions of first order hold to {self.error[k]:.1e}"
        self.active = rows[go & ~stuck]

    def _note(self, rows: np.ndarray, local: Local) -> None:
        self.cost[rows] = local.cost
        if len(rows) == self.problem.count:
            self.costate, self.slope = local.costate, local.slope
            return
        self.costate[rows], self.slope[rows] = local.costate, local.slope

    def _keep(self, rows: np.ndarray, policy: Policy) -> None:
        if len(rows) == self.problem.count:  # nothing to be copied
            self.K, self.k, self.V, self.p = policy.K, policy.k, policy.V, policy.p
            return
        self.K[rows], self.k[rows], self.V[rows], self.p[rows] = policy.K, policy.k, policy.V, policy.p

    def _policy(self, problem: Problem, path: Path, local: Local, gap: np.ndarray) -> tuple[Policy, np.ndarray]:
        """The backward pass with exact Hessians where that is convex, else with those of Gauss and Newton's kind, shifted if need be."""
        rows = self.active
        # Exact Hessians are tried after steps of full length; where they were not convex, at every other iteration.
        exact = (gap < FEASIBLE) & self.exact & self.full[rows] & ~self.failed[rows]
        self.failed[rows] = False
        H, H_end = local.H, local.H_end
        if exact.any():
            H2, H2_end = problem.curvature(path, local)
            choose = exact[:, None, None]
            H = H2 if exact.all() else [np.where(choose, x, y) for x, y in zip(H2, H, strict=True)]
            H_end = H2_end if exact.all() else np.where(exact[:, None], H2_end, H_end)
        policy = problem.backward(path, local, H, H_end, self.shift[rows])
        again = ~(policy.least > 0)
        while again.any():
            now = np.flatnonzero(again)
            first = exact[now]
            exact[now] = False
            self.failed[rows[now[first]]] = True
            shifted = self.shift[rows[now]]
            shifted[~first] = np.maximum(SHIFTS[0], 10.0 * shifted[~first])
            self.shift[rows[now]] = shifted
            part = Local(
                local.cost[now],
                local.gap[now],
                [x[now] for x in local.g],
                [],
                [x[now] for x in local.entries],
                [tuple(x[now] for x in turned) for turned in local.turned],
                local.g_end[now],
                local.H_end[now],
                local.costate[now],
                local.slope[now],
            )
            some = problem.some(now).backward(path.of(now), part, [x[now] for x in local.H], part.H_end, shifted)
            for name in ("K", "k", "V", "p", "least", "change"):
                getattr(policy, name)[now] = getattr(some, name)
            again[now] = ~(some.least > 0) & (shifted <= SHIFTS[1])
        return policy, exact

    def _search(self, problem: Problem, path: Path, local: Local, policy: Policy, go: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take the best of the first lengths that lower the merit function enough; whether there was one (P,), and its length."""
        rows, count = self.active, len(go)
        missed = np.abs(local.gap).sum((-1, -2))
        needed = 2.0 * np.abs(policy.p).max((-1, -2), initial=0.0)
        self.penalty[rows] = np.where(missed > 0, np.maximum(self.penalty[rows], needed), self.penalty[rows])
        weight = self.penalty[rows] * missed
        slope = np.minimum(policy.change[:, 0], 0.0) - 0.5 * weight
        before = local.cost + weight
        accepted, taken, left, first = np.zeros(count, dtype=bool), np.zeros(count), np.flatnonzero(go), 0
        while len(left) and first < len(LENGTHS):
            some = LENGTHS[first : first + (TOGETHER if len(left) <= FEW else 1)]
            first += len(some)
            part, whole = (problem.some(left), len(left) == count)
            near = path if whole else path.of(left)
            here = local if whole else _gaps(local, left)
            plan = policy if whole else _gains(policy, left)
            new, cost = part.forward(near, here, plan, some)
            merit = cost + (1.0 - some) * weight[left, None]
            noise = 1e-13 * (1.0 + np.abs(before[left, None]))
            good = merit <= before[left, None] + 1e-4 * some * slope[left, None] + noise
            best = np.argmin(np.where(good, merit, np.inf), axis=1)
            for i, place in enumerate(left):
                if good[i, best[i]]:
                    row = i * len(some) + best[i]
                    k = rows[place]
                    self.path.q[k], self.path.v[k], self.path.u[k] = new.q[row], new.v[row], new.u[row]
                    accepted[place], taken[place] = True, some[best[i]]
            left = left[~accepted[left]]
        self.full[rows] = taken == 1.0
        down = accepted & (taken >= 0.5)
        lower = self.shift[rows] / 10.0
        self.shift[rows] = np.where(down, np.where(lower < SHIFTS[0], 0.0, lower), self.shift[rows])
        return accepted, taken


def _flat(function: Callable[..., Any], *arrays: np.ndarray) -> list[np.ndarray]:
    """The results (P, N, ...) of a compiled function for arrays (P, N, ...), all in a row where that needs no copies: such calls are
    shortest. Arrays may have one row for all."""
    P, N = arrays[0].shape[:2]
    if P == 1:
        arrays = tuple(x[0] for x in arrays)
    found = function(*arrays)
    return [x.reshape(P, N, *x.shape[1:]) if P == 1 else x for x in (found if isinstance(found, tuple) else (found,))]


def _rows(x: np.ndarray, count: int) -> np.ndarray:
    """As many rows (count, ...), from so many or from one."""
    return x if len(x) == count else np.repeat(x, count, axis=0)


def _gaps(local: Local, rows: np.ndarray) -> Local:
    return Local(local.cost[rows], local.gap[rows], [], [], [], [], local.g_end, local.H_end, local.costate, local.slope)


def _gains(policy: Policy, rows: np.ndarray) -> Policy:
    return Policy(policy.K[rows], policy.k[rows], policy.V, policy.p, policy.least[rows], policy.change[rows])
