"""List scheduling: an order of the nodes with few live values, as registers are few. Of several orders, the best one has the fewest
values that live across windows of code, of a length that registers, and scratch memory, can serve.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from ..walk import postorder

STRETCHES = ((48, 4), (500, 1))
"""(length of a window of code, weight of a value that is live into it): for registers, and for scratch memory."""


def sequence(nodes: Sequence[int], reads: Callable[[int], Sequence[int]]) -> list[int]:
    """The nodes, given in a valid order, in a better one. `reads(k)`: the operands of node k; those that are not among the nodes
    are always available.
    """
    place = {k: n for n, k in enumerate(nodes)}
    args = [[place[a] for a in dict.fromkeys(reads(k)) if a in place] for k in nodes]
    users: list[list[int]] = [[] for _ in nodes]
    for n, row in enumerate(args):
        for a in row:
            users[a].append(n)
    given = list(range(len(nodes)))
    depth = [0] * len(nodes)
    for n, row in enumerate(args):
        depth[n] = 1 + max((depth[a] for a in row), default=0)
    deep = postorder(args, (n for n in given if not users[n]), depth.__getitem__)  # the longest way first
    by_depth = sorted(given, key=depth.__getitem__)
    orders = [given, *(_backwards(args, users, base) for base in (given, deep, by_depth))]
    best = min(orders, key=lambda order: _waiting(args, order))
    return [nodes[n] for n in best]


def _backwards(args: list[list[int]], users: list[list[int]], base: list[int]) -> list[int]:
    """An order built from the last node to the first: of the nodes whose users are all placed, the one most of whose arguments are
    live already; ties by the base order.
    """
    count = len(args)
    rank = [0] * count  # latest first
    for n, k in enumerate(base):
        rank[k] = count - 1 - n
    at = base[::-1]
    left = [len(row) for row in users]
    gain = [len(row) for row in args]  # arguments that would begin to wait, less one if the node itself waits
    waits = bytearray(count)
    done = bytearray(count)
    heap = [(gain[k] + 1) * count + rank[k] for k in range(count) if not left[k]]
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        score, r = divmod(heapq.heappop(heap), count)
        k = at[r]
        if done[k] or score != gain[k] + 1:
            continue  # an old entry
        done[k] = 1
        order.append(k)
        for a in args[k]:
            left[a] -= 1
            if not waits[a]:
                waits[a] = 1
                gain[a] -= 1
                for u in users[a]:
                    gain[u] -= 1
                    if not left[u] and not done[u]:
                        heapq.heappush(heap, (gain[u] + 1) * count + rank[u])
            if not left[a]:
                heapq.heappush(heap, (gain[a] + 1) * count + rank[a])
    order.reverse()
    return order


def _waiting(args: list[list[int]], order: list[int]) -> int:
    """The number of values that live across windows of code, counted once per window."""
    total = 0
    place = [0] * len(order)
    for n, k in enumerate(order):
        place[k] = n
    for length, weight in STRETCHES:
        crossing = {(a, n // length) for n, k in enumerate(order) for a in args[k] if place[a] // length != n // length}
        total += weight * (len(crossing) + len({a for a, _ in crossing}))
    return total
