"""Orders and signs of a log's columns that agree better with the description: one change after the other, until none helps.

A change gives the columns of positions, of forces or of both another order and other signs. What a description and friction leave of each
joint's force is compared, each joint counting as much as any other, whatever its forces: a wrist as much as a shoulder. Friction is any
offset and a drag that takes energy away, so that a force of the wrong sign is not explained by a drag that gives it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..dynamics import inverse_dynamics
from ..robot.robot import Robot

TRIED = 0.3
"""The part of a joint's force that is left, above which other orders and signs are tried."""
BETTER = 0.35
"""The part of what was left that may be left after a change, in the product over all joints."""
LIKE = 0.5
"""The part of a force that may be left of joints that a change concerns."""
FINE = 0.02
"""A part of a force that is as good as nothing."""
ANY = 5
"""Joints up to which every order of positions is tried where three joints or more are in doubt; of more joints those that turn three."""


@dataclass(frozen=True)
class Change:
    """Columns of `what` ("positions", "forces", "both") taken in this order, times these signs."""

    what: str
    order: np.ndarray
    sign: np.ndarray

    @property
    def concerned(self) -> np.ndarray:
        """The joints whose columns change."""
        return np.flatnonzero((self.order != np.arange(len(self.order))) | (self.sign < 0))

    def of(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(x[:, self.order] * self.sign)


@dataclass(frozen=True)
class Finding:
    """A change, and the part of all forces that is left before and after it, in percent."""

    change: Change
    before: float
    after: float


def left_over(expected: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """(n,): what is left of forces (N, n) beside expected ones, an offset and drag μ sign v + d v with μ, d ≥ 0, relative to the forces."""
    y, y0 = tau - expected, tau - tau.mean(0)
    y = y - y.mean(0)
    drag = np.stack([v, np.sign(v)])
    drag = drag - drag.mean(1, keepdims=True)
    G, c = np.einsum("ank,bnk->kab", drag, drag), np.einsum("ank,nk->ka", drag, y)
    own = np.einsum("kaa->ka", G)
    gain = np.where((own > 0) & (c > 0), c * c / np.where(own > 0, own, 1.0), 0.0).max(1)  # one of the two alone
    det = own.prod(1) - G[:, 0, 1] ** 2
    both = det > 1e-9 * own.prod(1)
    x = np.stack([own[:, 1] * c[:, 0] - G[:, 0, 1] * c[:, 1], own[:, 0] * c[:, 1] - G[:, 0, 1] * c[:, 0]], 1)
    x = x / np.where(both, det, 1.0)[:, None]
    gain = np.where(both & (x.min(1) > 0), np.maximum(gain, (x * c).sum(1)), gain)
    return np.asarray(np.sqrt(((y * y).sum(0) - gain).clip(0) / (y0 * y0).sum(0).clip(1e-300)))


def changes(robot: Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray, tau: np.ndarray, told: np.ndarray) -> list[Finding]:
    """Changes that agree better, the best first; `told` (nv,): the joints with a force that is measured."""
    found: list[Finding] = []
    expected = np.asarray(inverse_dynamics(robot, q, v, a))
    left = left_over(expected, v, tau)
    for _ in range(robot.nv):
        if not left[told].max(initial=0.0) > TRIED:
            break
        best: tuple[float, Change] | None = None
        for change in _candidates(robot, expected, q, v, tau, told, bool((told & (left > TRIED)).sum() > 2)):
            new = _after(robot, change, q, v, a, tau)
            value = _score(new, left, told)
            if (best is None or value < best[0]) and new[change.concerned].max() < LIKE:
                best = value, change
        if best is None or best[0] > np.log(BETTER):
            break
        change = best[1]
        before = _percent(expected, tau)
        if change.what != "forces":
            q, v, a = change.of(q), change.of(v), change.of(a)
        if change.what != "positions":
            tau, told = change.of(tau), told[change.order]
        expected = np.asarray(inverse_dynamics(robot, q, v, a))
        left = left_over(expected, v, tau)
        found.append(Finding(change, before, _percent(expected, tau)))
    return found


def _percent(expected: np.ndarray, tau: np.ndarray) -> float:
    return 100.0 * float(np.linalg.norm(tau - expected) / max(float(np.linalg.norm(tau)), 1e-300))


def _score(new: np.ndarray, old: np.ndarray, told: np.ndarray) -> float:
    """The logarithm of the product over all joints of what is left, relative to before."""
    return float(np.log(np.maximum(new, FINE) / np.maximum(old, FINE))[told].sum())


def _after(robot: Robot, change: Change, q: np.ndarray, v: np.ndarray, a: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """The residual forces (nv,) after a change."""
    if change.what != "forces":
        q, v, a = change.of(q), change.of(v), change.of(a)
    expected = np.asarray(inverse_dynamics(robot, q, v, a))
    return left_over(expected, v, tau if change.what == "positions" else change.of(tau))


def _candidates(
    robot: Robot, expected: np.ndarray, q: np.ndarray, v: np.ndarray, tau: np.ndarray, told: np.ndarray, many: bool
) -> Iterator[Change]:
    """Signs of one joint or of all forces, two columns exchanged, all in reverse, the best order of forces; `many`: further orders."""
    n = robot.nv
    same, plus = np.arange(n), np.ones(n)
    one = [(same, np.where(same == k, -1.0, 1.0)) for k in np.flatnonzero(told)]
    for i, j in combinations(np.flatnonzero(told), 2):
        order = same.copy()
        order[[i, j]] = j, i
        one.append((order, plus))
    one += [(same[::-1], plus)] if n > 2 else []
    moves = np.abs(v).max(0) > 0
    further = [(order, plus) for order in _orders(np.flatnonzero(told), n)] if many else []
    for what in ("forces", "positions", "both") if q.shape == v.shape else ("forces",):
        for x in one if what == "forces" else [*one, *further]:
            change = Change(what, *x)
            if what == "forces" or moves[change.concerned].any():
                yield change
    yield Change("forces", same, -plus)
    matrix = np.stack([left_over(expected[:, [k] * n], v[:, [k] * n], tau) for k in range(n)])
    _, order = linear_sum_assignment(np.log(np.maximum(matrix, FINE)))
    if np.any(order != same):
        yield Change("forces", order, plus)


def _orders(joints: np.ndarray, n: int) -> Iterator[np.ndarray]:
    """Orders that move three of these joints or more: all of them, or of many joints those that turn three."""
    for size in range(3, len(joints) + 1) if len(joints) <= ANY else (3,):
        for some in combinations(joints, size):
            for other in permutations(some):
                if all(i != j for i, j in zip(some, other, strict=True)):
                    order = np.arange(n)
                    order[list(some)] = other
                    yield order
