"""Symmetric positive definite systems with structural zeros, such as mass matrices of branched robots.

A = Lᵀ L, rows from the last to the first, as Featherstone does it: where children are numbered after their parents, the zeros of a
mass matrix stay zeros in L. One column of the right-hand side costs as many operations as L and the column have nonzeros. So the
code for one
column is straight, and a loop takes four columns at a time through it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .llvm import Body

DENSE = 0.7
"""From this fraction of nonzeros on, a full triangle is faster."""
CLASSES = 6
"""The most classes of columns, by sparsity pattern, that get code of their own."""

Columns = tuple[tuple[int, ...], frozenset[int]]
"""Columns of the right-hand side, and the rows of their nonzeros after the first substitution."""


class Sparse:
    """The layout of a sparse system in the area of its block, and the code that solves it in place."""

    def __init__(self, n: int, m: int, rows: Sequence[Sequence[int]], classes: Sequence[Columns]) -> None:
        self.n, self.m, self.rows, self.classes = n, m, [tuple(row) for row in rows], classes
        self.slot: dict[tuple[int, int], int] = {}
        for i, row in enumerate(self.rows):
            for j in (*row, i):
                self.slot[i, j] = len(self.slot)
        self.right = len(self.slot)
        order = [c for columns, _ in classes for c in columns]
        self.position = {c: p for p, c in enumerate(order)}
        self.support = {c: support for columns, support in classes for c in columns}
        self.size = self.right + n * m

    def part_slot(self, index: int) -> int:
        """The slot of a result."""
        row, column = divmod(index, self.m)
        return self.right + self.position[column] * self.n + row

    def argument_slot(self, index: int) -> int | None:
        """The slot of an argument; None for a structural zero, which is never read."""
        triangle = self.n * (self.n + 1) // 2
        if index >= triangle:
            row, column = divmod(index - triangle, self.m)
            return self.part_slot(index - triangle) if row in self.support[column] else None
        i = int(((8 * index + 1) ** 0.5 - 1) / 2)
        return self.slot.get((i, index - i * (i + 1) // 2))

    def emit(self, body: Body, area: str) -> None:
        """Emit the solution in place; NaN where the matrix is not positive definite. The diagonal of L is stored inverted."""
        v = body.lanes
        width = v.count * v.size

        def load(pointer: str, slot: int) -> str:
            return body.load(v.type, body.offset(pointer, slot * width), width)

        def store(value: str, pointer: str, slot: int) -> None:
            body.store(v.type, value, body.offset(pointer, slot * width), width)

        def minus(acc: str, x: str, y: str) -> str:
            return body.fma(body.op("fneg", x), y, acc)

        def of_L(i: int, j: int) -> str:
            return load(area, self.slot[i, j])

        roots = [i for i in range(self.n) if not self.rows[i]]  # one of each component: NaN of a pivot reaches the root of its own
        below = [[k for k in range(i + 1, self.n) if i in self.rows[k]] for i in range(self.n)]
        for i in reversed(range(self.n)):
            acc = of_L(i, i)
            for k in below[i]:
                x = of_L(k, i)
                acc = minus(acc, x, x)
            root = body.op("fdiv", body.const(1.0), body.intrinsic("sqrt", acc))
            root = body.select(body.compare("ogt", acc, body.const(0.0)), root, body.const(float("nan")))
            store(root, area, self.slot[i, i])
            for j in self.rows[i]:
                acc = of_L(i, j)
                for k in below[i]:
                    if j in self.rows[k]:
                        acc = minus(acc, of_L(k, i), of_L(k, j))
                store(body.op("fmul", acc, root), area, self.slot[i, j])

        poison = ""  # 0, or NaN if a pivot of any component was not positive
        if len(roots) > 1:
            products = [body.op("fmul", of_L(i, i), body.const(0.0)) for i in roots]
            poison = functools.reduce(lambda x, y: body.op("fadd", x, y), products)

        def sweep(columns: Sequence[str], rows: Sequence[int], before: Sequence[Sequence[int]], after: bool) -> None:
            """x_i = (x_i - Σ L x) / L_ii, row after row, over the rows before each."""
            for i in rows:
                accs = [load(x, i) for x in columns]
                for k in before[i]:
                    factor = of_L(i, k) if after else of_L(k, i)
                    accs = [minus(acc, factor, load(x, k)) for acc, x in zip(accs, columns, strict=True)]
                root = of_L(i, i)
                for acc, x in zip(accs, columns, strict=True):
                    store(body.fma(acc, root, poison) if poison and after else body.op("fmul", acc, root), x, i)

        def forth(columns: Sequence[str], support: frozenset[int]) -> None:
            for i in range(self.n):
                if i not in support:
                    for x in columns:
                        store(body.const(0.0), x, i)
            within = [[k for k in row if k in support] for row in below]
            sweep(columns, sorted(support, reverse=True), within, False)

        def back(columns: Sequence[str]) -> None:
            sweep(columns, range(self.n), self.rows, True)

        first = 0
        right = body.offset(area, self.right * width)
        for columns, support in self.classes:
            self._in_fours(body, right, first, first + len(columns), lambda xs, support=support: forth(xs, support))
            first += len(columns)
        self._in_fours(body, right, 0, self.m, back)

    def _in_fours(self, body: Body, right: str, start: int, stop: int, work: object) -> None:
        """Emit the work on columns start to stop, four at a time."""
        assert callable(work)
        step = self.n * body.lanes.count * body.lanes.size
        whole = start + (stop - start) // 4 * 4

        def turn(c: str, _: Sequence[str]) -> Sequence[str]:
            base = body.offset(right, body.new(f"mul i64 {c}, {step}"))
            work([body.offset(base, s * step) for s in range(4)])
            return []

        if whole > start:
            body.loop(str(start), str(whole), 4, [], turn)
        if stop > whole:
            work([body.offset(right, c * step) for c in range(whole, stop)])


def sparse(n: int, m: int, zeros: Sequence[bool]) -> Sparse | None:
    """The sparse layout of a block "spd_solve" with these structural zeros; None if a full triangle is better."""
    rows: list[set[int]] = [{j for j in range(i) if not zeros[i * (i + 1) // 2 + j]} for i in range(n)]
    for k in reversed(range(n)):  # what elimination fills
        for i in rows[k]:
            rows[i] |= {j for j in rows[k] if j < i}
    if sum(map(len, rows)) > DENSE * n * (n - 1) / 2:
        return None
    right = n * (n + 1) // 2
    supports: dict[frozenset[int], list[int]] = {}
    for c in range(m):
        support = {i for i in range(n) if not zeros[right + i * m + c]}
        for i in reversed(range(n)):
            if i in support:
                support |= rows[i]
        supports.setdefault(frozenset(support), []).append(c)
    return Sparse(n, m, [sorted(row) for row in rows], _merged(supports, rows))


def _merged(supports: dict[frozenset[int], list[int]], rows: Sequence[set[int]]) -> list[Columns]:
    """The classes of columns, merged to few: those whose common code has the least superfluous work."""
    bits = [sum(1 << j for j in row) for row in rows]

    def work(columns: Sequence[int], support: frozenset[int]) -> int:
        mask = sum(1 << i for i in support)
        return len(columns) * sum(1 + (bits[i] & mask).bit_count() for i in support)

    def joined(a: Columns, b: Columns) -> Columns:
        return (*a[0], *b[0]), a[1] | b[1]

    def loss(a: int, b: int) -> int:
        return work(*joined(classes[a], classes[b])) - work(*classes[a]) - work(*classes[b])

    classes = {k: (tuple(columns), support) for k, (support, columns) in enumerate(supports.items())}
    losses = {(a, b): loss(a, b) for a in classes for b in classes if a < b}
    while len(classes) > CLASSES:
        a, b = min(losses, key=lambda pair: losses[pair])
        new = max(classes) + 1
        classes[new] = joined(classes.pop(a), classes.pop(b))
        losses = {pair: x for pair, x in losses.items() if not {a, b} & {*pair}}
        losses |= {(k, new): loss(k, new) for k in classes if k != new}
    return list(classes.values())
