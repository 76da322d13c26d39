"""Traversals of the nodes of a graph, which are in topological order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

Args = Sequence[tuple[int, ...]]


def needed(args: Args, roots: Iterable[int]) -> bytearray:
    """1 for each node that the roots need, themselves included, else 0."""
    marks = bytearray(len(args))
    for k in roots:
        marks[k] = 1
    for k in reversed(range(len(args))):
        if marks[k]:
            for j in args[k]:
                marks[j] = 1
    return marks


def uses(args: Args, roots: Iterable[int]) -> list[int]:
    """The number of uses of each node, as an argument or a root."""
    counts = [0] * len(args)
    for row in args:
        for k in row:
            counts[k] += 1
    for k in roots:
        counts[k] += 1
    return counts


def postorder(args: Args | Sequence[Sequence[int]], roots: Iterable[int], key: Callable[[int], int] = int) -> list[int]:
    """The nodes that the roots need in depth-first postorder; of several arguments, the one with the largest key first."""
    seen = bytearray(len(args))
    order: list[int] = []
    for root in roots:
        stack = [(root, False)]
        while stack:
            k, ready = stack.pop()
            if ready:
                order.append(k)
            elif not seen[k]:
                seen[k] = 1
                stack.append((k, True))
                stack += [(j, False) for j in sorted(args[k], key=key) if not seen[j]]
    return order
