"""Sums of the terms of `cj.costs`, traced: what the steps of a stage, or the end, cost."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..errors import ShapeError
from ..robot.robot import Robot
from ..traced import Traced, traced
from .costs import Term


@dataclass(frozen=True)
class Sum:
    """A traced sum of terms: residuals with weights, and functions."""

    parts: tuple[tuple[Traced, int, int], ...]
    """The traced residual or function of (q, v, u, numbers), how many numbers it reads, and how many weights (0: a function)."""

    @property
    def size(self) -> int:
        return sum(n + k for _, n, k in self.parts)

    def split(self, numbers: Array) -> list[tuple[Traced, Array, Array | None]]:
        found, at = [], 0
        for part, n, k in self.parts:
            weight = numbers[..., at + n : at + n + k] if k else None
            found.append((part, numbers[..., at : at + n], weight))
            at += n + k
        return found

    def value(self, q: Array, v: Array, u: Array, numbers: Array) -> Array:
        """(...)."""
        total: Array = 0.0 * q[..., 0] if q.shape[-1] else 0.0 * v.sum(-1)
        for part, reads, weight in self.split(numbers):
            r = part(q, v, u, reads)
            total = total + (r if weight is None else 0.5 * (weight * r * r).sum(-1))
        return total


def traced_sum(robot: Robot, m: int, terms: Sequence[Term]) -> tuple[Sum, list[np.ndarray]]:
    """The sum of the terms for m controls, and the numbers (..., n) that it reads."""
    parts, numbers = [], []
    for term in terms:
        values = term.values(robot, m)
        sizes = [core[0] for _, _, core in values]

        def run(q: Array, v: Array, u: Array, reads: Array, term: Term = term, sizes: list[int] = sizes) -> Array:
            ends = np.cumsum([0, *sizes])
            given = [reads[..., i:j] for i, j in itertools.pairwise(ends)]
            found = term.of(robot, q, v, u, *given)
            if term.weight is None and np.shape(found) not in ((), (1,)):
                raise ShapeError(f"the cost {term.name} gave an array of shape {np.shape(found)}; expected a number.")
            if term.weight is None:
                return found if np.shape(found) == () else found[..., 0]
            if len(np.shape(found)) != 1:
                raise ShapeError(f"the residual {term.name} gave an array of shape {np.shape(found)}; expected (k,).")
            return found

        shapes = {"q": (robot.nq,), "v": (robot.nv,), "u": (m,), "reads": (sum(sizes),)}
        found = traced(run, shapes, "cost")
        count = 0
        numbers += [x for _, x, _ in values]
        if term.weight is not None:
            (count,) = found.shape
            if term.weight.shape[-1] not in (1, count):
                raise ShapeError(
                    f"the weight of the cost {term.name} has shape {term.weight.shape}; expected a number or (..., {count})."
                )
            numbers.append(np.broadcast_to(term.weight, (*term.weight.shape[:-1], count)))
        parts.append((found, sum(sizes), count))
    return Sum(tuple(parts)), numbers
