"""A graph being rewritten: the saving of each change is counted before the change is made.

The nodes are in a builder; `uses` counts the uses of each, and `same` records which node replaced which. To try a change,
the arguments of the roots are cut, the new nodes linked, the newly needed nodes counted, and everything undone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

from ..graph import Graph
from ..ops import COST
from ..trace.builder import GraphBuilder
from ..trace.functions import folded
from ..trace.trace import reachable
from ..walk import needed, uses
from .order import Order, in_order
from .polynomial import SUMS, Builder, Polynomial, ordinary, polynomial, pythagoras, united

_WAYS = ((True, True), (True, False), (False, True))
"""Strategies to build a polynomial: whether constants are factored out before atoms, and whether atoms are factored out."""


def cost(graph: Graph) -> float:
    """The cost of a graph, in additions; a multiplication that can be fused into an addition is nearly free."""
    counts = uses(graph.args, (k for row in graph.outputs for k in row))
    return sum(_cost(graph.op, graph.args, counts, k) for k in range(len(graph)))


_FUSED = 0.25


def _cost(op: Sequence[str], args: Sequence[tuple[int, ...]], uses: Sequence[int], k: int) -> float:
    kind = op[k]
    if kind == "add" or kind == "sub":
        i, j = args[k]
        fused = (op[i] == "mul" and uses[i] == 1) or (op[j] == "mul" and uses[j] == 1)
        return _FUSED if fused else 1.0
    return COST[kind]


class Rewrite:
    """A graph being rewritten: its nodes, how often each is used, and which node each was replaced by."""

    def __init__(self, graph: Graph) -> None:
        self.source = graph
        self.table, number = _reread(graph)
        self.outputs = [[number[k] for k in row] for row in graph.outputs]
        self.same: dict[int, int] = {}
        self.cut: set[int] = set()
        self.kept: set[int] = set()
        self.journal: list[int] = []
        """The counts made since the last commit: k for one more use of node k, ~k for one less."""
        self.order = Order(len(self.table.op))
        size = self.size = len(self.table.op)
        roots = [k for row in self.outputs for k in row]
        live = needed(self.table.args, roots)
        self.uses = uses([row if live[k] else () for k, row in enumerate(self.table.args)], roots)
        self.angle = {k: self.table.args[k][0] for k in range(size) if self.table.op[k] in ("sin", "cos")}
        self.angular = set(self.angle)
        self.cosines = {self.table.args[k][0]: k for k in range(size) if self.table.op[k] == "cos"}
        self.sines = {self.table.args[k][0]: k for k in range(size) if self.table.op[k] == "sin"}

    def find(self, k: int) -> int:
        """The node that replaced k, or k itself."""
        same = self.same
        while k in same:
            k = same[k]
        return k

    def roots(self) -> list[int]:
        """The sums that are not the summand of exactly one other sum."""
        op, args, uses, find = self.table.op, self.table.args, self.uses, self.find
        inside = bytearray(len(op))
        for k in range(len(uses)):
            if uses[k] and op[k] in SUMS:
                for j in args[k]:
                    j = find(j)
                    if uses[j] == 1:
                        inside[j] = 1
        return [k for k in range(len(uses)) if uses[k] and op[k] in SUMS and not inside[k]]

    def polynomial(self, root: int) -> Polynomial:
        """The polynomial of the sum at a root."""
        return self.summands(root)[0]

    def summands(self, root: int) -> tuple[Polynomial, int]:
        """The polynomial of the sum at a root, and its present number of summands."""
        return polynomial(self.table, root, self.uses, self.find)

    def rebuild(self, roots: list[int], terms: list[Polynomial]) -> bool:
        """Rebuild the roots from their polynomials by the cheapest of several strategies, if that reduces the cost."""
        variants = self._variants(terms)
        self.kept = {k for poly in terms for monomial in poly for k in monomial}
        owned = self._cut(roots)
        self._undo(0)
        present = self._sum_of_costs(owned)
        self._cut(roots)
        costs = [self._try(roots, variant, *_WAYS[0]) for variant in variants]
        best = min(costs)
        variant, way = variants[costs.index(best)], _WAYS[0]
        for other in _WAYS[1:] if any(_repeats(poly) for poly in terms) else ():
            new = self._try(roots, variant, *other)
            if new < best:
                best, way = new, other
        if best > present - 1e-9:
            self._undo(0)
            return False
        size = len(self.table.op)
        built = self._build(variant, *way)
        if self._link(roots, built) is None or not all(self._precedes(new, k) for k, new in zip(roots, built, strict=True)):
            self._undo(0)
            for k in range(size, len(self.table.op)):
                self.order.label.pop(k, None)
            self._forget(size)
            return False
        self._drop_unused()
        for k, new in zip(roots, built, strict=True):
            if k != new:
                self.same[k] = new
                self.uses[k] = 0
        return True

    def replace(self, old: int, new: int) -> None:
        """Replace `old` by `new`, unless `new` depends on `old`."""
        if self.find(new) != old and self.order.put_before(new, old, self.table.args, self.find):
            self.same[old] = new

    def _precedes(self, new: int, old: int) -> bool:
        """True if `new` can be computed before `old`, and so can replace it."""
        return new == old or self.order.put_before(new, old, self.table.args, self.find, self.cut)

    def _forget(self, size: int) -> None:
        """Remove the nodes that were made last."""
        self.table.forget(size)
        del self.uses[size:]

    def _try(self, roots: list[int], terms: list[Polynomial], constants_first: bool, atoms: bool) -> float:
        """The cost of the roots, whose arguments are cut, if they were built this way."""
        size, start = len(self.table.op), len(self.journal)
        built = self._build(terms, constants_first, atoms)
        cost = self._sum_of_costs(self._link(roots, built))
        self._undo(start)
        self._forget(size)
        return cost

    def _variants(self, terms: list[Polynomial]) -> list[list[Polynomial]]:
        """The polynomials, and their variants by sin² + cos² = 1 with products of sine and cosine of one angle as atoms."""
        angle = self.angle
        pairs = {(x, y) for poly in terms for m in poly for x, y in combinations(m, 2) if x in angle and angle[x] == angle.get(y)}
        if not pairs:
            return [terms]
        squares = {x for x, y in pairs if x == y}
        to_cosine = {s: self.cosines[angle[s]] for s in squares if self.table.op[s] == "sin" and angle[s] in self.cosines}
        to_sine = {c: self.sines[angle[c]] for c in squares if self.table.op[c] == "cos" and angle[c] in self.sines}
        changes: list[dict[int, int]] = [{}, *(change for change in (to_cosine, to_sine) if change)]
        return [terms, *([united(pythagoras(p, change), angle, self._unit) for p in terms] for change in changes)]

    def _unit(self, x: int, y: int) -> int:
        k = self.table.mul(x, y)
        self.uses.extend([0] * (len(self.table.op) - len(self.uses)))
        self.angular.add(k)
        return k

    def _build(self, terms: list[Polynomial], constants_first: bool, atoms: bool) -> list[int]:
        builder = Builder(self.table, self.uses, constants_first, atoms, self.angular)
        built = []
        for poly in terms:
            node, sign = builder.build(poly)
            built.append(node if sign > 0 else self.table.neg(node))
        return built

    # How often nodes are used, changed with a journal so that a try can be taken back

    def _cut(self, roots: list[int]) -> list[int]:
        """Cut the arguments of the roots; returns the nodes that become unused, and the roots."""
        uses, args, journal, same, find, kept = self.uses, self.table.args, self.journal, self.same, self.find, self.kept
        cut = self.cut = set(roots)
        freed = list(roots)
        stack = [j for k in roots for j in args[k]]
        while stack:
            k = stack.pop()
            if k in same:
                k = find(k)
            uses[k] -= 1
            journal.append(~k)
            if not uses[k] and k not in cut and k not in kept:
                freed.append(k)
                stack += args[k]
        return freed

    def _link(self, roots: list[int], built: list[int]) -> list[int] | None:
        """Replace the roots, whose arguments were cut, by `built`; returns the newly used nodes, or None if that is impossible."""
        uses, args, journal, same, find = self.uses, self.table.args, self.journal, self.same, self.find
        cut, kept = self.cut, self.kept
        uses.extend([0] * (len(self.table.op) - len(uses)))
        owned: list[int] = []
        for root, new in sorted(zip(roots, built, strict=True), reverse=True):
            if new != root and (new in cut or new in self.same):  # a form that was given up before would lead back to the root
                return None
            stack: list[int] = []
            if new == root or not uses[new]:
                owned.append(new)
                stack += args[new]
            if new != root:
                uses[new] += uses[root]
                journal += [new] * uses[root]
            while stack:
                k = stack.pop()
                if k in same:
                    k = find(k)
                    if k in cut:
                        return None
                if not uses[k] and k not in cut and k not in kept:
                    owned.append(k)
                    stack += args[k]
                uses[k] += 1
                journal.append(k)
        return owned

    def _drop_unused(self) -> None:
        """Commit the links; atoms that are no longer used release their arguments."""
        self.journal.clear()
        stack = [k for k in self.kept if not self.uses[k]]
        while stack:
            for j in self.table.args[stack.pop()]:
                j = self.find(j)
                self.uses[j] -= 1
                if not self.uses[j]:
                    stack.append(j)

    def _undo(self, start: int) -> None:
        uses = self.uses
        for k in self.journal[start:]:
            if k >= 0:
                uses[k] -= 1
            else:
                uses[~k] += 1
        del self.journal[start:]

    def _sum_of_costs(self, nodes: list[int] | None) -> float:
        if nodes is None:
            return math.inf
        op, args, uses, find = self.table.op, self.table.args, self.uses, self.find
        total = 0.0
        for k in nodes:
            kind = op[k]
            if kind == "add" or kind == "sub":
                i, j = args[k]
                i, j = find(i), find(j)
                fused = (op[i] == "mul" and uses[i] == 1) or (op[j] == "mul" and uses[j] == 1)
                total += _FUSED if fused else 1.0
            else:
                total += COST[kind]
        return total

    # Back to a graph

    def graph(self) -> Graph:
        """The present graph, its nodes close to their old positions."""
        table = self.table
        op, args, value = table.op, [tuple(map(self.find, row)) for row in table.args], table.value
        outputs = [[self.find(k) for k in row] for row in self.outputs]
        order = in_order(args, [k for row in outputs for k in row], self.size)
        final = GraphBuilder()
        number: dict[int, int] = {}
        for k in order:
            number[k] = folded(final, op[k], tuple([number[j] for j in args[k]]), value[k])
        roots = [number[k] for row in outputs for k in row]
        new_op, new_args, new_value, place = reachable(final.op, final.args, final.value, roots)
        source = self.source
        return Graph(
            name=source.name,
            input_names=source.input_names,
            input_shapes=source.input_shapes,
            op=new_op,
            args=new_args,
            value=new_value,
            outputs=tuple(tuple(place[number[k]] for k in row) for row in outputs),
            output_shapes=source.output_shapes,
        )


def _repeats(terms: Polynomial) -> bool:
    """True if a constant factor occurs twice."""
    sizes = [abs(coefficient) for coefficient in terms.values() if abs(coefficient) != 1.0]
    return len(set(sizes)) < len(sizes)


def _reread(graph: Graph) -> tuple[GraphBuilder, list[int]]:
    """The nodes of the graph folded into a new builder, and their numbers there. Divisions by constants, and by a divisor of
    several nodes, become multiplications by the reciprocal.
    """
    divisors: dict[int, int] = {}
    for op, args in zip(graph.op, graph.args, strict=True):
        if op == "div":
            divisors[args[1]] = divisors.get(args[1], 0) + 1
    table = GraphBuilder()
    number: list[int] = []
    for op, args, value in zip(graph.op, graph.args, graph.value, strict=True):
        new = tuple([number[j] for j in args])
        if op == "div":
            if table.op[new[1]] == "const":
                divisor = table.value[new[1]]
                if ordinary(divisor):
                    op, new = "mul", (new[0], table.const(1.0 / divisor))
            elif divisors[args[1]] > 1:
                op, new = "mul", (new[0], table.div(table.const(1.0), new[1]))
        elif op == "mul":
            new = _one_constant(table, *new)
        number.append(folded(table, op, new, value))
    return table, number


def _one_constant(table: GraphBuilder, i: int, j: int) -> tuple[int, int]:
    """The factors c₁ and c₂·x as c₁·c₂ and x."""
    if table.op[j] == "const":
        i, j = j, i
    if table.op[i] == "const" and table.op[j] == "mul":
        a, b = table.args[j]
        for c, x in ((a, b), (b, a)):
            if table.op[c] == "const" and ordinary(table.value[i]) and ordinary(table.value[c]):
                return table.const(table.value[i] * table.value[c]), x
    return i, j
