"""The order in which a graph is computed: sums collect their terms as these come to be, and a node is made when it is first needed.

Both keep few values alive at a time, which is what machine code with few registers wants.
"""

from __future__ import annotations

from dataclasses import replace

from ..graph import Graph
from ..trace.builder import GraphBuilder
from ..trace.functions import folded
from ..walk import postorder, uses

_SUMS = ("add", "sub")


def reassociate(graph: Graph) -> Graph:
    """The same graph with its sums reassociated and its nodes reordered; values change by rounding only."""
    table, number = _reassociated(graph)
    outputs = [[number[k] for k in row] for row in graph.outputs]
    order = postorder(table.args, (k for row in outputs for k in row))
    place = {k: n for n, k in enumerate(order)}
    return replace(
        graph,
        op=[table.op[k] for k in order],
        args=[tuple([place[j] for j in table.args[k]]) for k in order],
        value=[table.value[k] for k in order],
        outputs=tuple(tuple(place[k] for k in row) for row in outputs),
    )


def _reassociated(graph: Graph) -> tuple[GraphBuilder, dict[int, int]]:
    """The nodes with every sum taken in the order in which its terms can be known.

    And the new number of each old node, but for the partial sums that are gone.
    """
    op, args = graph.op, graph.args
    counts = uses(args, (k for row in graph.outputs for k in row))
    inside = bytearray(len(graph))
    for k, kind in enumerate(op):
        if kind in _SUMS:
            for j in args[k]:
                inside[j] = op[j] in _SUMS and counts[j] == 1
    table = GraphBuilder()
    number: dict[int, int] = {}
    depth: list[int] = []
    for k, kind in enumerate(op):
        if inside[k]:
            continue
        if kind in _SUMS:
            number[k] = _sum(table, depth, _terms(graph, k, inside, number))
        else:
            number[k] = folded(table, kind, tuple([number[j] for j in args[k]]), graph.value[k])
        _deepen(table, depth)
    return table, number


def _deepen(table: GraphBuilder, depth: list[int]) -> None:
    """The longest way from the inputs to each node, for the nodes that have none yet."""
    for k in range(len(depth), len(table.op)):
        depth.append(1 + max((depth[j] for j in table.args[k]), default=-1))


def _terms(graph: Graph, root: int, inside: bytearray, number: dict[int, int]) -> list[tuple[int, bool]]:
    """The new numbers of the terms of a sum, and whether each is subtracted."""
    terms: list[tuple[int, bool]] = []
    stack = [(root, False)]
    while stack:
        k, minus = stack.pop()
        if k == root or inside[k]:
            first, second = graph.args[k]
            stack.append((second, minus != (graph.op[k] == "sub")))
            stack.append((first, minus))
        else:
            terms.append((number[k], minus))
    return terms


def _sum(table: GraphBuilder, depth: list[int], terms: list[tuple[int, bool]]) -> int:
    """The terms added, those first that are known first, but for the first that is not subtracted, which begins."""
    terms.sort(key=lambda term: depth[term[0]])
    total, _ = terms.pop(next(n for n, (_, minus) in enumerate(terms) if not minus))
    for k, minus in terms:
        total = table.sub(total, k) if minus else table.add(total, k)
    return total
