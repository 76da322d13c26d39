"""A primal-dual interior-point method with exact second derivatives, for many small problems of one kind at once.

    minimise f(x)  subject to  c(x) ≥ 0,  e(x) = 0.

With slacks s > 0, c(x) - s = 0, and multipliers z > 0, the perturbed conditions are ∇f - Cᵀz - Eᵀy = 0, s z = μ. Newton's step solves

    (W + Cᵀ Σ C) dx - Eᵀ dy = -(∇f - Cᵀz - Eᵀy) + Cᵀ(μ/s - z - Σ (c - s)),    E dx = -e,    Σ = z/s,

with W the Hessian of the Lagrangian, or a positive semidefinite matrix near it where it is indefinite along the equalities. Steps are
cut so that s and z stay positive and an ℓ₁ merit function falls; μ falls as the conditions are met. Nocedal & Wright (2006), chapter 19;
Wächter & Biegler (2006). Every array has the problems as its first axis; each problem has its own steps, μ and end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from .newton import negative, newton_step

PATIENCE = 12
"""Steps with a convex model where the Hessian is indefinite: they lead to the nearest valley, but slowly out of a saddle. After so many of
them the Hessian itself is taken, its negative eigenvalues made positive."""
HALVINGS = 30
"""The number of times that a step is halved."""
BETTER = 0.5
"""The part to which a step must reduce the error where rounding hides whether the merit function falls."""
LEAST = 1e-16
"""The least slack: those of inequalities that cannot be met would vanish."""
INTERRUPTED = "interrupted: this is the best so far"


class Local(Protocol):
    """Problems near one point each."""

    @property
    def f(self) -> np.ndarray:
        """(b,)"""

    @property
    def c(self) -> np.ndarray:
        """(b, m), c ≥ 0 where the constraints hold."""

    @property
    def e(self) -> np.ndarray:
        """(b, k), 0 where they hold."""

    @property
    def size(self) -> np.ndarray:
        """(b,), positive: the size of the cost here, which gradients are compared with; that of a first guess would say nothing."""

    @property
    def gradient(self) -> np.ndarray:
        """(b, n)"""

    @property
    def equality_jacobian(self) -> np.ndarray:
        """E (b, k, n)"""

    def some(self, rows: np.ndarray) -> Local:
        """Some of the problems."""

    def pull(self, z: np.ndarray) -> np.ndarray:
        """Cᵀ z (b, n)."""

    def push(self, dx: np.ndarray) -> np.ndarray:
        """C dx (b, m)."""

    def longest(self, dx: np.ndarray) -> np.ndarray:
        """The longest step (b,) along dx within which the problems are what they are here."""

    def hessian(self, z: np.ndarray, y: np.ndarray, sigma: np.ndarray, convex: bool = False) -> np.ndarray:
        """W + Cᵀ diag(sigma) C (b, n, n), its upper triangle; if `convex`, a positive semidefinite matrix in the place of W."""


class Problems(Protocol):
    """Problems of one kind, by number."""

    def at(self, x: np.ndarray, which: np.ndarray) -> Local:
        """Problems `which` (b,) near x (b, n)."""

    def values(self, x: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """f, c and e alone."""


@dataclass
class Solution:
    """The points at which the method stopped, for B problems."""

    x: np.ndarray
    s: np.ndarray
    """Slacks (B, m)."""
    z: np.ndarray
    """Multipliers (B, m) of the inequalities, ≥ 0."""
    y: np.ndarray
    """Multipliers (B, k) of the equalities."""
    mu: np.ndarray
    error: np.ndarray
    """(B,): the largest violation of the conditions of first order, beside the size of the cost or the mean of the multipliers."""
    converged: np.ndarray
    """(B,): these conditions hold to the tolerance, and the Hessian has no negative eigenvalue along the constraints that hold."""
    message: list[str]
    table: list[list[dict[str, float]]] = field(default_factory=list)
    """A row for every iteration: cost, violation, error, barrier, length of the step, whether the Hessian was indefinite."""
    interrupted: bool = False

    def part(self, rows: np.ndarray) -> Solution:
        """The solutions of some problems."""
        x, s, z, y, mu, error, converged = (getattr(self, name)[rows] for name in ("x", "s", "z", "y", "mu", "error", "converged"))
        return Solution(x, s, z, y, mu, error, converged, [self.message[k] for k in rows], [self.table[k] for k in rows])

    def put(self, rows: np.ndarray, other: Solution) -> None:
        """Replace the solutions of some problems, and append to their tables."""
        for name in ("x", "s", "z", "y", "mu", "error", "converged"):
            getattr(self, name)[rows] = getattr(other, name)
        for k, row in enumerate(rows):
            self.message[row] = other.message[k]
            self.table[row] = self.table[row] + other.table[k]
        self.interrupted = self.interrupted or other.interrupted


def start(problems: Problems, which: np.ndarray, x: np.ndarray) -> Solution:
    """Slacks and multipliers to begin with at x (b, n)."""
    local, b = problems.at(x, which), len(x)
    s = np.maximum(local.c, 1e-2 * np.maximum(1.0, np.abs(local.c)))
    mu = 0.3 * np.maximum(np.abs(local.f), 1e-3) / max(1, s.shape[1]) if s.shape[1] else np.zeros(b)
    nothing = np.zeros(local.e.shape)
    return Solution(
        x, s, mu[:, None] / s, nothing, mu, np.full(b, np.inf), np.zeros(b, dtype=bool), [""] * b, [[] for _ in range(b)]
    )


def again(problems: Problems, which: np.ndarray, found: Solution, rows: np.ndarray, moved: np.ndarray) -> Solution:
    """The start for the next solution, from solutions `rows`, after inequalities fell by `moved` (b, m) ≥ 0."""
    x, z = found.x[rows], found.z[rows]
    c = problems.values(x, which)[1]
    mu = np.maximum(found.mu[rows], 1e-3 * (z * moved).max(1, initial=0.0))
    s = np.maximum(np.maximum(c, np.minimum(mu[:, None] / np.maximum(z, 1e-300), moved)), 1e-12)
    b = len(x)
    nothing = np.full(b, np.inf), np.zeros(b, dtype=bool)
    return Solution(x, s, np.maximum(z, mu[:, None] / s), found.y[rows], mu, *nothing, [""] * b, [[] for _ in range(b)])


def solve(
    problems: Problems,
    which: np.ndarray,
    begin: Solution,
    *,
    tolerance: float = 1e-9,
    iterations: int = 200,
    report: Callable[[int, float], None] | None = None,
) -> Solution:
    """The minimisers near begin.x of problems `which` (B,). Ctrl-C returns what is there."""
    found = begin
    found.message = [f"stopped after {iterations} iterations"] * len(which)
    largest, penalty = found.mu.copy(), np.ones(len(which))
    saddles, active = np.zeros(len(which), dtype=int), np.arange(len(which))
    try:
        for k in range(iterations):
            going = _iterate(problems, which, found, active, saddles, penalty, largest, tolerance)
            error, active = float(found.error[active].max(initial=0.0)), active[going]
            if report is not None:
                report(k, error)
            if not active.size:
                break
    except KeyboardInterrupt:
        found.interrupted = True
        for row in active:
            found.message[row] = INTERRUPTED
    return found


def _iterate(
    problems: Problems,
    which: np.ndarray,
    found: Solution,
    active: np.ndarray,
    saddles: np.ndarray,
    penalty: np.ndarray,
    largest: np.ndarray,
    tolerance: float,
) -> np.ndarray:
    """One step of the active problems, in place; which of them (a,) go on."""
    x, s, z, y, mu = (getattr(found, name)[active] for name in ("x", "s", "z", "y", "mu"))
    local = problems.at(x, which[active])
    error = _error(local, s, z, y, np.zeros(len(x)))
    found.error[active] = error
    mu = _lowered(local, s, z, y, mu, largest[active], tolerance)
    step = newton_step(local, s, z, y, mu, saddles[active] < PATIENCE)
    done = error < tolerance
    _judge(found, active, local, step.definite, done, s, z, y, error)
    for row, *values in zip(active, local.f, _violation(local, s), error, mu, ~step.definite, strict=True):
        found.table[row].append(dict(zip(("cost", "violation", "error", "barrier", "indefinite"), values, strict=True)))
    saddles[active] += ~step.definite
    longest, longest_dual = np.minimum(_within(s, step.ds), local.longest(step.dx)), _within(z, step.dz)
    multipliers = np.concatenate([y + step.dy, z + step.dz, np.zeros((len(x), 1))], axis=1)
    penalty[active] = np.maximum(penalty[active], 2.0 * np.abs(multipliers).max(1))
    alpha, better, c = _search(problems, which[active], local, x, s, step.dx, step.ds, mu, penalty[active], longest, ~done)
    new_x = x + alpha[:, None] * step.dx
    new_s = np.where(better[:, None], np.maximum(_slacks(c, s + alpha[:, None] * step.ds), LEAST), s)
    new_y, new_z = y + alpha[:, None] * step.dy, z + longest_dual[:, None] * step.dz
    if s.shape[1]:
        new_z = np.clip(new_z, mu[:, None] / (1e10 * new_s), 1e10 * mu[:, None] / new_s)
    stuck = np.flatnonzero(~better & ~done)
    if stuck.size:  # rounding hides the fall of the merit function: the conditions themselves decide
        near = problems.at((x + longest[:, None] * step.dx)[stuck], which[active[stuck]])
        slack = _slacks(near.c, (s + longest[:, None] * step.ds)[stuck])
        dual = (z + longest_dual[:, None] * step.dz)[stuck], (y + longest[:, None] * step.dy)[stuck]
        after = _error(near, slack, *dual, np.zeros(len(stuck)))
        accepted = stuck[after < BETTER * error[stuck]]
        chosen = after < BETTER * error[stuck]
        new_x[accepted], new_s[accepted] = (x + longest[:, None] * step.dx)[accepted], slack[chosen]
        new_z[accepted], new_y[accepted] = dual[0][chosen], dual[1][chosen]
        better[accepted], alpha[accepted] = True, longest[accepted]
    for k in np.flatnonzero(~better & ~done):
        found.message[active[k]] = f"no further progress: the conditions of first order hold to {error[k]:.1e}"
    going = better & ~done
    moved = active[going]
    for name, value in (("x", new_x), ("s", new_s), ("z", new_z), ("y", new_y), ("mu", mu)):
        getattr(found, name)[moved] = value[going]
    for row, length in zip(active, alpha, strict=True):
        found.table[row][-1]["step"] = length
    return going


def _judge(
    found: Solution,
    active: np.ndarray,
    local: Local,
    definite: np.ndarray,
    done: np.ndarray,
    s: np.ndarray,
    z: np.ndarray,
    y: np.ndarray,
    error: np.ndarray,
) -> None:
    """Say of the problems that are `done` whether they are at a minimum."""
    minimum = definite.copy()
    if (done & ~definite).any():
        H, E = local.hessian(z, y, _ratio(z, s)), local.equality_jacobian
        for k in np.flatnonzero(done & ~definite):
            minimum[k] = not negative(H[k], E[k])
    for k in np.flatnonzero(done):
        what = "optimal: " if minimum[k] else "a saddle, from where the cost falls; begin with another guess: "
        found.message[active[k]] = f"{what}the conditions of first order hold to {error[k]:.1e}"
        found.converged[active[k]] = minimum[k]


def _lowered(
    local: Local,
    s: np.ndarray,
    z: np.ndarray,
    y: np.ndarray,
    mu: np.ndarray,
    largest: np.ndarray,
    tolerance: float,
) -> np.ndarray:
    """The barrier's μ, lower where its conditions hold."""
    m = s.shape[1]
    if not m:
        return mu
    mu, least = mu.copy(), tolerance * local.size / m
    stationary = _stationary(local, z, y)
    for _ in range(20):
        ready = (_error(local, s, z, y, mu, stationary) < 10 * mu / local.size) & (mu > 0.1 * least)
        if not ready.any():
            break
        lower = np.maximum(0.09 * least, np.minimum(0.2 * mu, largest * (mu / np.maximum(largest, 1e-300)) ** 1.5))
        mu = np.where(ready, lower, mu)
    return mu


def _ratio(z: np.ndarray, s: np.ndarray) -> np.ndarray:
    return np.asarray(z / s)


def _slacks(c: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The slacks: values of the constraints that hold; for the others, the slacks of the step."""
    return np.where(c > 0, c, s)


def _violation(local: Local, s: np.ndarray) -> np.ndarray:
    return np.asarray(np.maximum(np.abs(local.c - s).max(1, initial=0.0), np.abs(local.e).max(1, initial=0.0)))


def _stationary(local: Local, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """∇f - Cᵀz - Eᵀy (b, n)."""
    return np.asarray(local.gradient - local.pull(z) - (y[:, None] @ local.equality_jacobian)[:, 0])


def _error(
    local: Local,
    s: np.ndarray,
    z: np.ndarray,
    y: np.ndarray,
    mu: np.ndarray,
    stationary: np.ndarray | None = None,
) -> np.ndarray:
    stationary = _stationary(local, z, y) if stationary is None else stationary
    mean = (np.abs(z).sum(1) + np.abs(y).sum(1)) / (z.shape[1] + y.shape[1] + 1)
    size = np.maximum(local.size, mean)
    slack = np.abs(s * z - mu[:, None]).max(1, initial=0.0)
    return np.asarray(np.maximum(np.maximum(np.abs(stationary).max(1, initial=0.0), slack) / size, _violation(local, s)))


def _within(x: np.ndarray, dx: np.ndarray) -> np.ndarray:
    """The longest steps (b,), at most 1, that leave x positive."""
    steps = np.where(dx < 0, -0.995 * x / np.where(dx < 0, dx, -1.0), np.inf)
    return np.asarray(np.minimum(1.0, steps.min(1, initial=1.0)))


def _search(
    problems: Problems,
    which: np.ndarray,
    local: Local,
    x: np.ndarray,
    s: np.ndarray,
    dx: np.ndarray,
    ds: np.ndarray,
    mu: np.ndarray,
    penalty: np.ndarray,
    longest: np.ndarray,
    wanted: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first step (b,) of longest, longest/2, … at which the merit function falls enough, whether there is one, and c there."""

    def merit(f: np.ndarray, c: np.ndarray, e: np.ndarray, s: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.asarray(f - mu[rows] * np.log(s).sum(1) + penalty[rows] * (np.abs(c - s).sum(1) + np.abs(e).sum(1)))

    pending = np.arange(len(x))
    now = merit(local.f, local.c, local.e, s, pending)
    violation = np.abs(local.c - s).sum(1) + np.abs(local.e).sum(1)
    slope = (local.gradient * dx).sum(1) - mu * (ds / s).sum(1) - penalty * violation
    noise = 1e-13 * (np.abs(now) + 1.0)
    alpha, better, reached = longest.copy(), np.zeros(len(x), dtype=bool), local.c.copy()
    pending = pending[wanted]
    for _ in range(HALVINGS):
        if not pending.size:
            break
        f, c, e = problems.values(x[pending] + alpha[pending, None] * dx[pending], which[pending])
        slack = _slacks(c, s[pending] + alpha[pending, None] * ds[pending])
        held = ((c > 0) | (local.c[pending] <= 0)).all(1)  # what holds goes on to hold
        with np.errstate(invalid="ignore"):
            after = merit(f, c, e, slack, pending)
            falls = after <= now[pending] + 1e-4 * alpha[pending] * np.minimum(slope[pending], 0.0) + noise[pending]
        good = held & np.isfinite(f) & falls
        reached[pending[good]], better[pending[good]] = c[good], True
        pending = pending[~good]
        alpha[pending] *= 0.5
    alpha[~better] = 0.0
    return alpha, better, reached
