"""Sums of products read from a graph as polynomials, and polynomials built as sums of products again.

A polynomial maps monomials, sorted tuples of the nodes that are multiplied, to coefficients. Additions, subtractions and
multiplications that are used nowhere else are expanded; all other nodes are atoms of the monomials.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

from ..trace.builder import GraphBuilder

Monomial = tuple[int, ...]
Polynomial = dict[Monomial, float]

_DEGREE = 5
"""The largest degree of a monomial; a longer product keeps a product as one atom."""

SUMS = frozenset(("add", "sub", "neg"))


def ordinary(c: float) -> bool:
    """True if sums and products of a few such constants stay far from overflow and underflow: other constants are atoms."""
    return 1e-150 < abs(c) < 1e150


def polynomial(table: GraphBuilder, root: int, uses: list[int], find: Callable[[int], int]) -> tuple[Polynomial, int]:
    """The polynomial of the sum at `root`, summands that are used nowhere else expanded; and its number of summands before like
    terms are merged.
    """
    op, args = table.op, table.args
    terms: Polynomial = {}
    summands = 0
    stack = [(root, 1.0, True)]
    while stack:
        k, sign, open_ = stack.pop()
        kind = op[k]
        if open_ and kind in SUMS:
            *first, j = args[k]
            if first:
                i = find(first[0])
                stack.append((i, sign, uses[i] <= 1))
            j = find(j)
            stack.append((j, sign if kind == "add" else -sign, uses[j] <= 1))
            continue
        while kind == "neg":
            k = find(args[k][0])
            sign = -sign
            kind = op[k]
        coefficient, monomial = _factors(table, k, find) if kind == "mul" or kind == "const" else (1.0, (k,))
        if not ordinary(coefficient):
            coefficient, monomial = 1.0, (k,)
        accumulate(terms, monomial, sign * coefficient)
        summands += 1
    return terms, summands


def _factors(table: GraphBuilder, k: int, find: Callable[[int], int]) -> tuple[float, Monomial]:
    """The coefficient and the other factors of the product k."""
    op, args, value = table.op, table.args, table.value
    coefficient = 1.0
    factors: list[int] = []
    stack = [k]
    while stack:
        k = stack.pop()
        kind = op[k]
        if kind == "mul" and len(factors) + len(stack) < _DEGREE:
            i, j = args[k]
            stack += (find(i), find(j))
        elif kind == "const":
            coefficient *= value[k]
        elif kind == "neg":
            coefficient = -coefficient
            stack.append(find(args[k][0]))
        else:
            factors.append(k)
    factors.sort()
    return coefficient, tuple(factors)


def accumulate(terms: Polynomial, monomial: Monomial, coefficient: float) -> None:
    """terms += coefficient · monomial; a term that cancels up to rounding is removed."""
    if monomial in terms:
        old = terms[monomial]
        new = old + coefficient
        if abs(new) <= 4e-16 * (abs(old) + abs(coefficient)):
            del terms[monomial]
        else:
            terms[monomial] = new
    elif coefficient:
        terms[monomial] = coefficient


def expand(terms: Polynomial, inner: dict[int, Polynomial], limit: int) -> Polynomial | None:
    """The polynomial with the atoms of `inner` replaced by their polynomials. None if it exceeds `limit` terms on the way, or a
    coefficient is not ordinary.
    """
    result: Polynomial = {}
    for monomial, coefficient in terms.items():
        partial: list[tuple[Monomial, float]] = [((), coefficient)]
        for factor in monomial:
            if factor in inner:
                partial = [(m + n, a * b) for m, a in partial for n, b in inner[factor].items()]
                if len(partial) > limit or not all(ordinary(a) for _, a in partial):
                    return None
            else:
                partial = [((*m, factor), a) for m, a in partial]
        for m, a in partial:
            accumulate(result, tuple(sorted(m)), a)
        if len(result) > limit:
            return None
    return result


def pythagoras(terms: Polynomial, squared: dict[int, int]) -> Polynomial:
    """The polynomial with each square of a node x in `squared` replaced by 1 - y², y = squared[x]."""
    result: Polynomial = {}
    for monomial, coefficient in terms.items():
        for n, x in enumerate(monomial[:-1]):
            if monomial[n + 1] == x and x in squared:
                rest = monomial[:n] + monomial[n + 2 :]
                y = squared[x]
                accumulate(result, rest, coefficient)
                accumulate(result, tuple(sorted((*rest, y, y))), -coefficient)
                break
        else:
            accumulate(result, monomial, coefficient)
    return result


def united(terms: Polynomial, angle: dict[int, int], unit: Callable[[int, int], int]) -> Polynomial:
    """The polynomial with products of two sines or cosines of one angle merged to one atom."""
    result: Polynomial = {}
    for monomial, coefficient in terms.items():
        angles = [angle[x] for x in monomial if x in angle]
        if len(angles) == 2 and angles[0] == angles[1]:
            pair = [x for x in monomial if x in angle]
            rest = [x for x in monomial if x not in angle]
            monomial = tuple(sorted((*rest, unit(pair[0], pair[1]))))
        accumulate(result, monomial, coefficient)
    return result


@dataclass(frozen=True)
class Builder:
    """The builder of nodes for polynomials; it factors greedily."""

    table: GraphBuilder
    uses: list[int]
    constants_first: bool
    atoms: bool
    """True if atoms are factored out, not only constants."""
    angular: set[int]
    """Sines, cosines and their products: several factors of that kind in one monomial are multiplied first."""

    def build(self, terms: Polynomial) -> tuple[int, int]:
        """(node, sign) of the polynomial; the node of 0 if it is empty."""
        parts, constant = self._parts(terms)
        return self._sum(parts, constant)

    def _parts(self, terms: Polynomial) -> tuple[list[tuple[int, int]], float]:
        """The nodes to add, with their signs, and the number to add."""
        rest = dict(terms)
        constant = rest.pop((), 0.0)
        parts: list[tuple[int, int]] = []
        numbers, atoms = self._counts(rest) if len(rest) > 1 else ({}, {})
        while len(rest) > 1:
            number, atom = self._common(numbers, atoms)
            if number is None and atom is None:
                break
            inner: Polynomial = {}
            for monomial, coefficient in list(rest.items()):
                if number is not None:
                    if abs(coefficient) != number:
                        continue
                    inner[monomial] = 1.0 if coefficient > 0 else -1.0
                elif atom is not None and atom in monomial:
                    place = monomial.index(atom)
                    inner[monomial[:place] + monomial[place + 1 :]] = coefficient
                else:
                    continue
                del rest[monomial]
                if coefficient != 1.0 and coefficient != -1.0:
                    numbers[abs(coefficient)] -= 1
                if atoms:
                    for x in set(monomial):
                        atoms[x] -= 1
            node, sign = self.build(inner)
            factor = self.table.const(number) if number is not None else atom
            assert factor is not None
            parts.append((self.table.mul(factor, node), sign))
        parts += [(self._product(monomial, abs(c)), 1 if c > 0 else -1) for monomial, c in rest.items()]
        return parts, constant

    def _counts(self, terms: Polynomial) -> tuple[dict[float, int], dict[int, int]]:
        """The number of terms in which each constant and each atom occurs."""
        numbers: dict[float, int] = {}
        atoms: dict[int, int] = {}
        factored = self.atoms
        for monomial, coefficient in terms.items():
            if coefficient != 1.0 and coefficient != -1.0:
                size = abs(coefficient)
                numbers[size] = numbers.get(size, 0) + 1
            if factored:
                for x in set(monomial):
                    atoms[x] = atoms.get(x, 0) + 1
        return numbers, atoms

    def _common(self, numbers: dict[float, int], atoms: dict[int, int]) -> tuple[float | None, int | None]:
        """The constant or the atom to factor out next; neither if no two terms share one."""
        n = max(numbers.values()) if numbers else 0
        m = max(atoms.values()) if atoms else 0
        if n >= 2 and (self.constants_first or n >= m):
            return next(number for number, count in numbers.items() if count == n), None
        if m < 2:
            return None, None
        most = [x for x, count in atoms.items() if count == m]
        # Of atoms that occur equally often, what depends on an angle only stays whole.
        angular = self.angular
        for x in most:
            if x in angular:
                return None, x
        return None, most[0]

    def _product(self, monomial: Monomial, coefficient: float) -> int:
        """The node of a product; factors whose product exists already come first."""
        table = self.table
        factors = list(monomial)
        if coefficient != 1.0:
            factors.append(table.const(coefficient))
        while len(factors) > 2:
            i, j = self._first_pair(factors)
            second, first = factors.pop(j), factors.pop(i)
            factors.insert(0, table.mul(first, second))
        return table.mul(*factors) if len(factors) == 2 else factors[0]

    def _first_pair(self, factors: list[int]) -> tuple[int, int]:
        table, uses, angular = self.table, self.uses, self.angular
        size = len(uses)
        for (i, x), (j, y) in combinations(enumerate(factors), 2):
            k = table.product(x, y)
            if k is not None and (k >= size or uses[k]):
                return i, j
        alone = [n for n, k in enumerate(factors) if k in angular or table.op[k] == "const"]
        return (alone[0], alone[1]) if len(alone) > 1 else (0, 1)

    def _sum(self, parts: list[tuple[int, int]], constant: float) -> tuple[int, int]:
        """The node of the sum in the given order, up to a sign, with its first term positive: so opposite sums share a node."""
        table = self.table
        parts.sort()
        if not parts:
            return table.const(abs(constant)), -1 if constant < 0 else 1
        total, overall = parts[0]
        for node, sign in parts[1:]:
            total = table.add(total, node) if sign == overall else table.sub(total, node)
        if constant:
            total = table.add(total, table.const(constant * overall))
        if table.op[total] == "neg":
            return table.args[total][0], -overall
        return total, overall
