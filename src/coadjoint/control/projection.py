"""The projection of a vector onto bounds on linear functions of it, in a metric, as straight code: a small quadratic program.

    least ½ (x - x₀)ᵀ H (x - x₀)    such that    lower ≤ B x ≤ upper

is solved by the primal-dual interior-point method of Mehrotra (1992) with a fixed number of iterations, so that it can be traced, runs
natively in batches, and is part of exported C. Rows of B are divided by their length in the metric H⁻¹ and all by the largest
violation, so that neither units nor scale matter. A row may be soft: its bound may be exceeded by softness times its multiplier.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from ..arrays import Array, concat, like, mv, namespace, solve_spd, transpose

ITERATIONS = 18
"""Enough for 1e-7 of the largest violation on random bounds: `test_limited_control` looks."""
ROUNDS = 2
"""Rounds of the polish, in each of which it is decided anew which bounds are reached."""
EQUAL, EXACT = 1e-8, 1e-10
"""The softness used in place of zero where bounds are made equations, and the error that rounding explains."""
POSSIBLE = 1e-8
"""The error up to which bounds count as kept exactly."""
LEAST = 1e-13
"""The least slack and multiplier, so that no division fails."""
NOTHING = 1e-13
"""The length of a row, of the longest one, below which x has no part in it."""
START = 10.0
"""The multipliers at first; violations are of size 1."""
INSIDE = 0.995
"""The part of the way to the boundary that a step may go."""


def project(H: Array, x0: Array, B: Array, lower: Array, upper: Array, softness: np.ndarray) -> Array:
    """x (..., n) nearest to x0 (..., n) in the metric H (..., n, n) with lower ≤ B x ≤ upper, B (..., m, n), bounds (..., m).

    Rows that do not depend on x are left out. softness (m,): zero for bounds that hold exactly. Exact bounds must be possible together: x
    is NaN or outside where they are not.
    """
    xp = namespace(H, x0, B, lower, upper)
    length = xp.sqrt((B * transpose(solve_spd(H, transpose(B)))).sum(-1))
    there = length > NOTHING * _most(length)[..., None]
    length = xp.where(there, length, 1.0 + 0.0 * length)
    at = mv(B, x0)
    room = concat([xp.where(there, x / length, 1.0 + 0.0 * length) for x in (upper - at, at - lower)])
    violation = _most(-room)
    within = violation <= 0.0
    scale = xp.where(within, 1.0 + 0.0 * violation, violation)[..., None]
    rows = xp.where(there[..., None], B / length[..., None], 0.0 * B)
    program = _Program(H, rows, room / scale, like(np.concatenate([softness, softness]), room))
    return x0 + xp.where(within[..., None], 0.0 * x0, scale * program.solution())


class _Program:
    """Least ½ yᵀHy with ±rows y - soft λ ≤ room (..., 2 m): the upper bounds, then the lower ones. s is the slack, λ the multiplier."""

    def __init__(self, H: Array, rows: Array, room: Array, soft: Array) -> None:
        self.H, self.rows, self.room, self.soft = H, rows, room, soft
        self.xp, self.one = namespace(H, rows, room), 0.0 * room + 1.0

    def solution(self) -> Array:
        """y (..., n)."""
        y, s, multipliers = 0.0 * self.back(self.room), self.xp.maximum(self.room, self.one), START * self.one
        for _ in range(ITERATIONS):
            y, s, multipliers = self.iterated(y, s, multipliers)
        y, multipliers = self.polished(y, s, multipliers)
        return self.exact(y, multipliers)

    def exact(self, y: Array, multipliers: Array) -> Array:
        """y (..., n) with no bound exceeded, also none that is soft, where that is possible and found; else y itself.

        Where H is far from a multiple of the identity multipliers are large, and soft bounds would give way though they need not.
        """
        hard = _Program(self.H, self.rows, self.room, 0.0 * self.soft)
        found, dual, reached = hard.rounds(y, multipliers, multipliers + hard.excess(y, multipliers))
        excess = hard.excess(found, dual)
        wrong = _most(concat([excess, -dual, reached * self.xp.abs(excess)]))
        return self.xp.where((wrong <= POSSIBLE)[..., None], found, y)

    def excess(self, y: Array, multipliers: Array) -> Array:
        """±rows y - soft λ - room (..., 2 m)."""
        along = mv(self.rows, y)
        return concat([along, -along]) - self.soft * multipliers - self.room

    def back(self, z: Array) -> Array:
        """±rowsᵀ z (..., n) for z (..., 2 m)."""
        m = self.rows.shape[-2]
        return mv(transpose(self.rows), z[..., :m] - z[..., m:])

    def weighted(self, weight: Array) -> Array:
        """H + Σ weight rowᵀ row (..., n, n) for weights (..., 2 m)."""
        m = self.rows.shape[-2]
        return self.H + transpose(self.rows) @ ((weight[..., :m] + weight[..., m:])[..., None] * self.rows)

    def iterated(self, y: Array, s: Array, multipliers: Array) -> tuple[Array, Array, Array]:
        """One predictor and corrector. Where rounding leaves no direction any more, the iterate stays."""
        xp = self.xp
        weight = 1.0 / (s / multipliers + self.soft)
        left, force, gap = self.weighted(weight), mv(self.H, y) + self.back(multipliers), -self.excess(y, multipliers) - s

        def direction(target: Array) -> tuple[Array, Array, Array]:
            """The Newton step towards s λ = target: ±rows dy - lead = (s/λ + soft) dλ."""
            lead = gap - target / multipliers + s
            dy = solve_spd(left, (self.back(weight * lead) - force)[..., None])[..., 0]
            along = mv(self.rows, dy)
            dl = weight * (concat([along, -along]) - lead)
            return dy, target / multipliers - s - s / multipliers * dl, dl

        mean = (s * multipliers).mean(-1)[..., None]
        _, ds, dl = direction(0.0 * self.room)
        reached = _to_boundary(s, ds, multipliers, dl)
        part = ((s + reached * ds) * (multipliers + reached * dl)).mean(-1)[..., None] / (mean + LEAST)
        dy, ds, dl = direction(part * part * part * mean - ds * dl)
        step = INSIDE * _to_boundary(s, ds, multipliers, dl)
        known = (step == step) & (dy[..., :1] == dy[..., :1])
        y, s, multipliers = (xp.where(known, x + step * dx, x) for x, dx in ((y, dy), (s, ds), (multipliers, dl)))
        return y, xp.maximum(s, LEAST * self.one), xp.maximum(multipliers, LEAST * self.one)

    def polished(self, y: Array, s: Array, multipliers: Array) -> tuple[Array, Array]:
        """y and λ with the bounds that are reached as equations, if that satisfies the conditions better."""
        found, dual, _ = self.rounds(y, multipliers, multipliers - s)
        before, after = (_most(concat([self.excess(x, z), -z])) for x, z in ((y, multipliers), (found, dual)))
        better = (after <= self.xp.maximum(before, 0.0 * before + EXACT))[..., None]
        return self.xp.where(better, found, y), self.xp.where(better, dual, multipliers)

    def rounds(self, y: Array, multipliers: Array, test: Array) -> tuple[Array, Array, Array]:
        """y and λ with the bounds that are reached as equations, and 1 for these, else 0.

        Which bounds are reached is decided anew in every round, first by test > 0, then by λ + excess > 0: a semismooth Newton method.
        """
        found, dual, reached = y, multipliers, self.one
        for _ in range(ROUNDS):
            reached = self.xp.where(test > 0.0, self.one, 0.0 * self.one)
            weight, dual = reached / (self.soft + EQUAL), reached * dual
            left = self.weighted(weight)
            for _ in range(2):
                force = mv(self.H, found) + self.back(dual + weight * self.excess(found, dual))
                found = found - solve_spd(left, force[..., None])[..., 0]
                dual = dual + weight * self.excess(found, dual)
            test = dual + self.excess(found, dual)
        return found, dual, reached


def _to_boundary(s: Array, ds: Array, multipliers: Array, dl: Array) -> Array:
    """The longest step (..., 1), 1 at most, after which s and λ are not negative."""
    xp, x, dx = namespace(s, ds), concat([s, multipliers]), concat([ds, dl])
    falling = dx < 0.0
    ratio = xp.where(falling, -x / xp.where(falling, dx, -1.0 + 0.0 * dx), 1.0 + 0.0 * x)
    return xp.minimum(-_most(-ratio), 1.0 + 0.0 * ratio[..., 0])[..., None]


def _most(x: Array) -> Array:
    """The largest entry (...) of x (..., n)."""
    return reduce(namespace(x).maximum, [x[..., k] for k in range(x.shape[-1])])
