"""Limits at nodes as inequalities: a row with a lower limit gives one, c = value - lower ≥ 0, with an upper limit another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .rows import Rows
from .stages import Forces


class Sides:
    """The inequalities of all kinds of limits at K nodes of b motions: of every node those of one kind after the other, lower before upper.

    Iterating gives, for every kind, which of its rows have a lower and which an upper limit, as indices or a slice.
    """

    def __init__(self, limits: Sequence[Rows], kept: np.ndarray | None = None) -> None:
        """kept: the numbers of the inequalities that are there, of those of all nodes; None for all."""
        self.limits, self.kept = limits, kept
        finite = [(np.isfinite(rows.lower), np.isfinite(rows.upper)) for rows in limits]
        self._pairs = [[slice(0, len(x)) if x.all() else np.flatnonzero(x) for x in pair] for pair in finite]

    def __iter__(self) -> Iterator[list[Any]]:
        return iter(self._pairs)

    @property
    def columns(self) -> int:
        """The number of inequalities of a node."""
        return sum(len(np.arange(len(rows.names))[side]) for rows, pair in zip(self.limits, self, strict=True) for side in pair)

    def value(self, forces: Forces, drawn: Sequence[np.ndarray], nodes: int) -> np.ndarray:
        """c (b, inequalities) for what is at the nodes (b K); every limit is drawn in by (b, K, m) of its kind."""
        count = len(forces.stage) // nodes
        parts = [np.zeros((count, nodes, 0))]
        for rows, inside, (below, above) in zip(self.limits, drawn, self, strict=True):
            value = rows.value(forces).reshape(count, nodes, -1)
            parts.append(value[..., below] - (rows.lower[below] + inside[..., below]))
            parts.append((rows.upper[above] - inside[..., above]) - value[..., above])
        return self.those(np.concatenate(parts, axis=-1).reshape(count, -1))

    def those(self, c: np.ndarray) -> np.ndarray:
        """The inequalities that are there, of all (b, …)."""
        return c if self.kept is None else c[:, self.kept]

    def by_row(self, z: np.ndarray, nodes: int, sign: float) -> list[np.ndarray]:
        """z (b, inequalities) of lower limits plus `sign` times those of upper limits, (b K, m) of every kind."""
        if self.kept is not None:
            whole = np.zeros((len(z), nodes * self.columns))
            whole[:, self.kept] = z
            z = whole
        z, found, at = z.reshape(len(z) * nodes, -1), [], 0
        for rows, sides in zip(self.limits, self, strict=True):
            whole = np.zeros((len(z), len(rows.names)))
            for entries, factor in zip(sides, (1.0, sign), strict=True):
                count = entries.stop if isinstance(entries, slice) else len(entries)
                whole[:, entries] += factor * z[:, at : at + count]
                at += count
            found.append(whole)
        return found

    def push(self, forces: Forces, moved: np.ndarray) -> np.ndarray:
        """The change of c (b K, inequalities of a node) as what is at the nodes moves by (b K, 4, n)."""
        parts = [np.zeros((len(moved), 0))]
        for rows, (below, above) in zip(self.limits, self, strict=True):
            change = rows.push(forces, moved)
            parts += [change[:, below], -change[:, above]]
        return np.concatenate(parts, axis=1)

    def changes(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        """The change of c (b K, inequalities of a node, columns) with that of the rows of every kind (b K, m, columns)."""
        pairs = zip(rows, self, strict=True)
        return np.concatenate([x for part, (below, above) in pairs for x in (part[:, below], -part[:, above])], axis=1)
