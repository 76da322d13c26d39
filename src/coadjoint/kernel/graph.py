"""The expression graph: the result of tracing, and the input of lowering, differentiation and printing.

A `Graph` is a straight-line program on scalars. Node `k` applies `op[k]` to the nodes `args[k]`, all of which come before
it, and `value[k]` holds what is not a node: the number of a constant, the index of an input, the size of a block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .ops import OPS, TRUTH

ARITY: dict[str, int | None] = {
    "input": 0,  # value: (index of the argument, flat index within it)
    "const": 0,  # value: float
    "block": None,  # value: (kind, *sizes); a dense operation run as loops; only `part` nodes read it
    "part": 1,  # value: flat index of the result of the block args[0]
} | {name: op.arity for name, op in OPS.items()}
"""Kinds of nodes and how many arguments each takes: the operations of `ops.OPS`, and four more. None: as many as the value says.

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
    """The graph before rewriting, if this one was rewritten: the reference for its values."""
    example: tuple[float, ...] | None = field(default=None, compare=False, repr=False)
    """The first input of a kernel for a structure: the numbers of a robot, at and near which the kernel proves itself."""

    def __len__(self) -> int:
        return len(self.op)

    def count(self) -> dict[str, int]:
        """The number of nodes of each operation."""
        counts: dict[str, int] = {}
        for op in self.op:
            counts[op] = counts.get(op, 0) + 1
        return counts


def verify(graph: Graph) -> Graph:
    """The graph itself, if it is sound: else an AssertionError that names the node.

    Arguments precede their node, as many as its operation takes; truth values feed only `and`, `or`, `not` and the condition
    of `where`; parts are read of blocks, and nothing else reads a block; outputs are numbers.
    """

    def demand(truth: bool, k: int, what: str) -> None:
        if not truth:
            raise AssertionError(f"node {k} ({graph.op[k]}{graph.args[k]}) of {graph.name}: {what}")

    sizes = [_size(shape) for shape in graph.input_shapes]
    for k, (op, args, value) in enumerate(zip(graph.op, graph.args, graph.value, strict=True)):
        demand(op in ARITY, k, "no such operation")
        demand(ARITY[op] in (len(args), None), k, "wrong number of arguments")
        demand(all(0 <= j < k for j in args), k, "an argument does not stand before it")
        for place, j in enumerate(args):
            wants_truth = op in ("and", "or", "not") or (op == "where" and place == 0)
            demand((graph.op[j] in TRUTH) == wants_truth, k, f"argument {j} is {graph.op[j]}")
            demand((graph.op[j] == "block") == (op == "part"), k, f"argument {j} is {graph.op[j]}")
        if op == "input":
            demand(0 <= value[0] < len(sizes) and 0 <= value[1] < sizes[value[0]], k, f"no such input {value}")
        elif op == "const":
            demand(type(value) is float, k, f"its value is {value!r}")
        elif op == "block":
            _, n, m = value
            demand(len(args) == n * (n + 1) // 2 + n * m, k, "wrong number of arguments")
        elif op == "part":
            _, n, m = graph.value[args[0]]
            demand(0 <= value < n * m, k, f"no part {value}")
    for shape, nodes in zip(graph.output_shapes, graph.outputs, strict=True):
        if len(nodes) != _size(shape):
            raise AssertionError(f"{graph.name}: an output of shape {shape} has {len(nodes)} entries")
        for k in nodes:
            demand(0 <= k < len(graph) and graph.op[k] not in TRUTH and graph.op[k] != "block", k, "is an output")
    return graph


def _size(shape: tuple[int, ...]) -> int:
    return math.prod(shape)
