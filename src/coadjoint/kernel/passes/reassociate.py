"""Reassociation of sums and reordering of nodes: a sum adds its terms as they become available, and a node is computed just before
its first use. Both reduce the number of live values, because registers are few.
"""

from __future__ import annotations

from dataclasses import replace

from ..graph import Graph
from ..trace.builder import GraphBuilder
from ..trace.functions import folded
from ..walk import postorder, uses

_SUMS = ("add", "sub")


def reassociate(graph: Graph) -> Graph:
    """The graph with its sums reassociated and its nodes reordered; values change by rounding only."""
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
    """The nodes, with every sum in the order in which its terms become available; and the new number of each old node, except
    removed partial sums.
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
    """Extend the depths (longest path from the inputs) to nodes that have none yet."""
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
    """The node of the sum, terms that are available earlier first; it begins with one that is not subtracted."""
    terms.sort(key=lambda term: depth[term[0]])
    total, _ = terms.pop(next(n for n, (_, minus) in enumerate(terms) if not minus))
    for k, minus in terms:
        total = table.sub(total, k) if minus else table.add(total, k)
    return total
