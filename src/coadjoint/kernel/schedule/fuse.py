"""Products that sums absorb: a·b + c is one instruction, rounded once, where the processor has fused multiply-add."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph import Graph


def fuse(graph: Graph, live: Sequence[int]) -> dict[int, int]:
    """The sum that absorbs each fused product. A product goes where all its uses can absorb it; a sum absorbs one product."""
    op, args = graph.op, graph.args
    returned = {k for output in graph.outputs for k in output}
    users: dict[int, list[int]] = {k: [] for k in range(len(graph)) if live[k] and op[k] == "mul" and k not in returned}
    for k in range(len(graph)):
        if live[k]:
            for a in args[k]:
                if a in users:
                    users[a].append(k)
    fused: dict[int, int] = {}

    def can(sum_: int, product: int) -> bool:
        return op[sum_] in ("add", "sub") and sum_ not in fused and args[sum_][0] != args[sum_][1] and product in args[sum_]

    # Products with few choices first: those with several uses, where the other operand does not want the same sum.
    for product, uses in users.items():
        if 1 < len(uses) <= 3 and all(can(u, product) for u in uses):
            others = [a for u in uses for a in args[u] if a != product]
            if all(not (o in users and len(users[o]) == 1) for o in others):
                for u in uses:
                    fused[u] = product
    for product, uses in users.items():
        if len(uses) == 1 and can(uses[0], product):
            fused[uses[0]] = product
    return fused


def operands(graph: Graph, fused: dict[int, int], k: int) -> tuple[int, ...]:
    """The operands of node k after fusing: the factors of the absorbed product, then the other operand."""
    product = fused.get(k)
    if product is None:
        return graph.args[k]
    first, second = graph.args[k]
    return (*graph.args[product], second if first == product else first)
