"""The order of the nodes of a graph while it is rewritten.

A node may replace another only if it does not depend on it. Because of hash-consing, a new form can contain, deep inside, a node
whose own new form contains the node to be replaced: a cycle.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Sequence

_ROOM = 240
"""Bits between the labels of neighbouring nodes of the source, for labels of new nodes between them."""
_DEPTH = 12
"""Bits of the longest chain of nodes that is labelled at once."""


class Order:
    """A label for every node, larger than the labels of the nodes it reads, or equal.

    If all of `new` is labelled below `old`, then no path leads from `new` to a user of `old`, and replacing makes no cycle.
    """

    def __init__(self, size: int) -> None:
        self.label: dict[int, int] = {k: k << _ROOM for k in range(size)}

    def put_before(
        self, new: int, old: int, args: Sequence[tuple[int, ...]], find: Callable[[int], int], fixed: Collection[int] = ()
    ) -> bool:
        """Label `new` and its arguments below `old`, if possible; nodes in `fixed` keep their labels."""
        label = self.label
        limit = label[old]
        above: list[int] = []
        floor = 0
        seen: set[int] = set()
        stack = [(find(new), False)]
        while stack:
            k, ready = stack.pop()
            if ready:
                above.append(k)
                continue
            if k in seen:
                continue
            seen.add(k)
            known = label.get(k)
            if known is not None and known < limit:
                floor = max(floor, known)
            elif k == old or k in fixed:
                return False
            else:
                stack.append((k, True))
                stack += [(find(j), False) for j in args[k]]
        step = (limit - floor) >> _DEPTH
        labels: dict[int, int] = {}
        for k in above:
            labels[k] = step + max((labels.get(j, label.get(j, 0)) for j in map(find, args[k])), default=floor)
            if not step or labels[k] >= limit:
                return False
        label.update(labels)
        return True


def in_order(args: Sequence[tuple[int, ...]], roots: Sequence[int], old: int) -> list[int]:
    """The nodes that the roots need in topological order; the first `old` of them otherwise keep their order."""
    needed: set[int] = set()
    stack = list(roots)
    while stack:
        k = stack.pop()
        if k not in needed:
            needed.add(k)
            stack += args[k]
    users: dict[int, list[int]] = {}
    waiting: dict[int, int] = {}
    for k in needed:
        waiting[k] = len(args[k])
        for j in args[k]:
            users.setdefault(j, []).append(k)
    # A new node has a high number but belongs where its last argument is.
    place: dict[int, int] = {}
    ready = [(k, k) for k in needed if not args[k]]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        at, k = heapq.heappop(ready)
        place[k] = at
        order.append(k)
        for user in users.get(k, ()):
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, (user if user < old else max(place[j] for j in args[user]), user))
    if len(order) < len(needed):
        raise AssertionError("a rewritten graph has a cycle")
    return order
