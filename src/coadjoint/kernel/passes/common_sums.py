"""Partial sums that several sums contain are computed once: a + b + c and d - a - b need a + b once."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from ..trace.builder import GraphBuilder
from .polynomial import SUMS

_LENGTH = 40
"""Sums with more terms are not considered."""

Pair = tuple[int, int, int]
"""Two summands a < b and the sign of the second relative to the first."""


def shared_sums(table: GraphBuilder, roots: Sequence[int], uses: list[int], find: Callable[[int], int]) -> dict[int, int]:
    """The new nodes of sums that share a partial sum with another."""
    sums: dict[int, dict[int, int]] = {}
    where: dict[Pair, set[int]] = {}
    for root in roots:
        terms = _terms(table, root, uses, find)
        if terms is not None and 2 <= len(terms) <= _LENGTH:
            sums[root] = terms
            for pair in _pairs(terms):
                where.setdefault(pair, set()).add(root)
    heap = [(-len(at), pair) for pair, at in where.items() if len(at) > 1]
    heapq.heapify(heap)
    changed: set[int] = set()
    while heap:
        count, pair = heapq.heappop(heap)
        at = where[pair]
        if len(at) < 2:
            continue
        if len(at) != -count:
            heapq.heappush(heap, (-len(at), pair))
            continue
        a, b, relative = pair
        node = table.add(a, b) if relative > 0 else table.sub(a, b)
        sign = 1
        if table.op[node] == "neg":
            node, sign = table.args[node][0], -1
        for root in sorted(at):
            terms = sums[root]
            if node in terms:
                continue
            changed.add(root)
            for old in _pairs(terms):
                if old[0] in (a, b) or old[1] in (a, b):
                    where[old].discard(root)
            terms[node] = terms.pop(a) * sign
            del terms[b]
            for other in terms:
                if other != node:
                    new = _pair(node, terms[node], other, terms[other])
                    rows = where.setdefault(new, set())
                    rows.add(root)
                    if len(rows) > 1:
                        heapq.heappush(heap, (-len(rows), new))
        where[pair] = set()
    return {root: _sum(table, sums[root]) for root in changed}


def _terms(table: GraphBuilder, root: int, uses: list[int], find: Callable[[int], int]) -> dict[int, int] | None:
    """The summands of a sum and their signs; None if one occurs twice."""
    terms: dict[int, int] = {}
    stack = [(root, 1, True)]
    while stack:
        k, sign, open_ = stack.pop()
        kind = table.op[k]
        if kind in SUMS and open_:
            second = sign if kind == "add" else -sign
            for j, s in zip(table.args[k], (second,) if kind == "neg" else (sign, second), strict=True):
                j = find(j)
                stack.append((j, s, uses[j] <= 1))
            continue
        while table.op[k] == "neg":
            k = find(table.args[k][0])
            sign = -sign
        if k in terms:
            return None
        terms[k] = sign
    return terms


def _pair(a: int, sign_a: int, b: int, sign_b: int) -> Pair:
    return (a, b, sign_a * sign_b) if a < b else (b, a, sign_a * sign_b)


def _pairs(terms: dict[int, int]) -> list[Pair]:
    nodes = list(terms.items())
    return [_pair(*x, *y) for n, x in enumerate(nodes) for y in nodes[:n]]


def _sum(table: GraphBuilder, terms: dict[int, int]) -> int:
    """The node of the sum, a positive summand first if there is one."""
    order = sorted(terms, key=lambda k: (terms[k] < 0, k))
    first = order[0]
    total = first if terms[first] > 0 else table.neg(first)
    for k in order[1:]:
        total = table.add(total, k) if terms[k] > 0 else table.sub(total, k)
    return total
