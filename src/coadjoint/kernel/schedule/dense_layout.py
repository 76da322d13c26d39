"""The layout of dense blocks in scratch memory, and the code that computes them there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..emit.dense_solve import spd_solve
from ..emit.sparse_solve import Sparse, sparse
from ..graph import Graph

if TYPE_CHECKING:
    from ..emit.llvm import Body


class Full:
    """A system "spd_solve" without zeros: a triangle, then the columns of the right side."""

    def __init__(self, n: int, m: int) -> None:
        self.n, self.m, self.even = n, m, n + n % 2
        self.right = self.even * (self.even + 1) // 2
        self.size = self.right + m * self.even

    def part_slot(self, index: int) -> int:
        """The slot of a result."""
        row, column = divmod(index, self.m)
        return self.right + column * self.even + row

    def argument_slot(self, index: int) -> int | None:
        """The slot of an argument."""
        triangle = self.n * (self.n + 1) // 2
        return index if index < triangle else self.part_slot(index - triangle)

    def emit(self, body: Body, area: str) -> None:
        """Emit the solution in place."""
        spd_solve(body, area, self.n, self.m)


def layout(graph: Graph, block: int) -> Full | Sparse:
    """The layout of a block: sparse if its structural zeros save enough, else full."""
    kind, n, m = graph.value[block]
    assert kind == "spd_solve"
    zeros = [graph.op[k] == "const" and graph.value[k] == 0.0 for k in graph.args[block]]
    return sparse(n, m, zeros) or Full(n, m)
