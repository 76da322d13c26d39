"""The expression graph: what tracing makes, and what lowering, differentiation and printing read.

A `Graph` is a straight-line program on scalars. Node `k` applies `op[k]` to the nodes `args[k]`, all of which come before
it, and `value[k]` holds what is not a node: the number of a constant, the place of an input, the size of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

ARITY: dict[str, int] = {
    "input": 0,  # value: (index of the argument, flat index within it)
    "const": 0,  # value: float
    "add": 2,
    "sub": 2,
    "mul": 2,
    "div": 2,
    "neg": 1,
    "sqrt": 1,
    "sin": 1,
    "cos": 1,
    "atan2": 2,
    "exp": 1,
    "log": 1,
    "abs": 1,
    "floor": 1,
    "min": 2,
    "max": 2,
    "lt": 2,  # lt, le, eq, and, or, not are truth values; they may only feed each other and `where`
    "le": 2,
    "eq": 2,
    "and": 2,
    "or": 2,
    "not": 1,
    "where": 3,  # condition, value if true, value if false
    "block": -1,  # value: (kind, *sizes); a dense operation run as loops; only `part` nodes read it
    "part": 1,  # value: flat index of the result of the block args[0]
}
"""Operations and how many arguments each takes; -1: as many as its value says.

Block kinds:
    ("spd_solve", n, m): args are the lower triangle of a symmetric positive definite A, row by row (n(n+1)/2), then B
    row by row (n·m); the parts are A⁻¹B row by row (n·m), all of them NaN where A is not positive definite.
"""


@dataclass(frozen=True)
class Graph:
    """A traced function: inputs, nodes in topological order, outputs."""

    name: str
    input_names: tuple[str, ...]
    input_shapes: tuple[tuple[int, ...], ...]
    op: Sequence[str]
    args: Sequence[tuple[int, ...]]
    value: Sequence[Any]
    outputs: tuple[tuple[int, ...], ...]
    """Node numbers of each output, flat in row-major order."""
    output_shapes: tuple[tuple[int, ...], ...]
    traced: Graph | None = field(default=None, compare=False, repr=False)
    """The graph as traced, where this one was rewritten: what it must compute."""

    def __len__(self) -> int:
        return len(self.op)

    def count(self) -> dict[str, int]:
        """How many nodes of each operation there are."""
        counts: dict[str, int] = {}
        for op in self.op:
            counts[op] = counts.get(op, 0) + 1
        return counts
