"""Algebra on the graph: fewer operations for the same values, exact but for rounding.

Sums of products are read as polynomials and built again where that is cheaper: like terms merge, common factors come out,
sin² + cos² = 1, and what two sums compute before they are multiplied into a third is expanded where the products then meet or
cancel. So, of Jᵢ V̇ᵢ - ad*(Jᵢ Vᵢ), remain the few products of velocities that the equations of a rigid body have, each
computed once; and a symmetric block turned about an axis costs four multiplications. Every change is accepted by its count.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ...errors import KernelWarning
from ..graph import Graph, verify
from .common_sums import shared_sums
from .polynomial import SUMS, Polynomial, expand
from .reassociate import reassociate
from .rewrite import Rewrite, cost

_OCCURRENCES = 6
_TERMS = 12
_LIMIT = 64
"""The limits for expanding a sum into others: its number of terms, its number of uses, and the size of the result."""


def simplify(graph: Graph) -> Graph:
    """The simplified graph of the same function, with at most as many operations; its `traced` is the original. A failure here is a
    bug of this library, not the user's: a KernelWarning reports it, and the graph is used unsimplified.
    """
    try:
        best = next((g for g in _simplified(graph) if cost(g) < cost(graph)), graph)
        verify(best)
    except Exception as error:
        what = f"the graph of {graph.name} could not be simplified ({type(error).__name__}: {error}), and is compiled as it is"
        warnings.warn(f"{what}. This is an error in coadjoint: please report it.", KernelWarning, stacklevel=2)
        return graph
    return best if best is graph else replace(best, traced=graph.traced or graph)


def _simplified(graph: Graph) -> Iterator[Graph]:
    """The passes in order; of two final forms, the cheaper one is returned."""
    work = Rewrite(graph)
    expand_sums(work)
    refactor_sums(work)
    share_sums(work)
    result = work.graph()
    yield reassociate(result)
    yield result


def share_sums(work: Rewrite) -> None:
    """Compute the common partial sums of several sums once."""
    for old, new in shared_sums(work.table, work.roots(), work.uses, work.find).items():
        work.replace(old, new)


def expand_sums(work: Rewrite) -> None:
    """Multiply out sums where the products meet or cancel."""
    groups, users, angles = _groups(work)
    by_angle: dict[int, list[list[int]]] = {}
    alone: list[list[int]] = []
    for group, angle in zip(groups, angles, strict=True):
        if angle is not None:
            by_angle.setdefault(angle, []).append(group)
        else:
            alone.append(group)
    for together in by_angle.values():
        if len(together) == 1 or not _expand(work, [k for group in together for k in group], users):
            alone += together
    for group in sorted(alone):
        _expand(work, group, users)


def _expand(work: Rewrite, group: list[int], users: dict[int, list[int]]) -> bool:
    inner = {}
    for k in group:
        k = work.find(k)
        if work.uses[k] and work.table.op[k] in SUMS:
            inner[k] = work.polynomial(k)
    into = dict.fromkeys(work.find(u) for k in group for u in users[k])
    roots = [k for k in into if work.uses[k] and work.table.op[k] in SUMS and k not in inner]
    expanded = []
    for k in roots:
        terms = expand(work.polynomial(k), inner, _LIMIT)
        if terms is None:
            return False
        expanded.append(terms)
    return work.rebuild(roots, expanded)


def _groups(work: Rewrite) -> tuple[list[list[int]], dict[int, list[int]], list[int | None]]:
    """Groups of sums whose products meet when they are multiplied out; the sums that use each; and the angle whose sine and cosine
    multiply each group, if there is one.
    """
    terms = {k: work.polynomial(k) for k in work.roots()}
    users: dict[int, list[int]] = {}
    for k, poly in terms.items():
        for monomial in poly:
            for atom in monomial:
                if atom in terms:
                    users.setdefault(atom, []).append(k)
    candidates = {k for k, at in users.items() if len(at) <= _OCCURRENCES and 2 <= len(terms[k]) <= _TERMS}
    meetings = _Meetings(work, terms, candidates)
    for poly in terms.values():
        meetings.look(poly)
    groups = meetings.groups()
    turned = meetings.turned
    return groups, users, [max((turned[k] for k in group if k in turned), default=None) for group in groups]


class _Meetings:
    """A union-find structure of the candidates that would have common products if they were multiplied out."""

    def __init__(self, work: Rewrite, terms: dict[int, Polynomial], candidates: set[int]) -> None:
        self.angle, self.terms, self.candidates = work.angle, terms, candidates
        self.cosine_of = {s: work.cosines[x] for x, s in work.sines.items() if x in work.cosines}
        self.leader: dict[int, int] = {}
        self.met: set[int] = set()
        self.turned: dict[int, int] = {}
        """The angle whose sine or cosine multiplies a candidate."""

    def look(self, poly: Polynomial) -> None:
        """The products of one sum, each candidate in it multiplied out."""
        first: dict[tuple[Any, ...], int | None] = {}
        for monomial in poly:
            factor = max((f for f in monomial if f in self.candidates), default=None)  # the last made, if there are several
            if factor is None:
                self._meet(first.setdefault(_even(monomial, self.cosine_of), None), None)
                continue
            place = monomial.index(factor)
            rest = monomial[:place] + monomial[place + 1 :]
            if len(rest) == 1 and rest[0] in self.angle:
                self.turned[factor] = self.angle[rest[0]]
            for inner in self.terms[factor]:
                for key in self._keys(tuple(sorted(rest + inner))):
                    self._meet(first.setdefault(key, factor), factor)

    def _keys(self, product: tuple[int, ...]) -> list[tuple[Any, ...]]:
        """The keys by which products meet: the product itself; squares of sine and cosine meet whatever they multiply."""
        squares = [("square", self.angle[x]) for x, y in pairwise(product) if x == y and x in self.angle]
        return [_even(product, self.cosine_of), *squares]

    def _meet(self, a: int | None, b: int | None) -> None:
        if a == b:
            return
        self.met.update(k for k in (a, b) if k is not None)
        if a is not None and b is not None:
            a, b = self._lead(a), self._lead(b)
            self.leader[max(a, b)] = min(a, b)

    def _lead(self, k: int) -> int:
        leader = self.leader
        while leader.setdefault(k, k) != k:
            leader[k] = leader[leader[k]]
            k = leader[k]
        return k

    def groups(self) -> list[list[int]]:
        """The groups of candidates that meet."""
        groups: dict[int, list[int]] = {}
        for k in sorted(self.met):
            groups.setdefault(self._lead(k), []).append(k)
        return list(groups.values())


def refactor_sums(work: Rewrite) -> None:
    """Take common factors out of single sums."""
    for k in work.roots():
        k = work.find(k)
        if not work.uses[k] or work.table.op[k] not in SUMS:
            continue
        terms, summands = work.summands(k)
        if len(terms) <= _LIMIT and (len(terms) < summands or _promising(terms)):
            work.rebuild([k], [terms])


def _promising(terms: Polynomial) -> bool:
    """True if two terms have a factor in common, or a factor is squared."""
    seen: set[float] = set()
    for monomial, coefficient in terms.items():
        keys = {*monomial, -abs(coefficient)} - {-1.0}
        if not seen.isdisjoint(keys) or len(set(monomial)) < len(monomial):
            return True
        seen |= keys
    return False


def _even(monomial: tuple[int, ...], trigonometric: dict[int, int]) -> tuple[int, ...]:
    """The monomial with the squares of sines counted as squares of cosines."""
    for n, x in enumerate(monomial[:-1]):
        if monomial[n + 1] == x and x in trigonometric:
            y = trigonometric[x]
            return tuple(sorted((*monomial[:n], *monomial[n + 2 :], y, y)))
    return monomial
