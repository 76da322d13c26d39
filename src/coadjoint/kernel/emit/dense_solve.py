"""Dense operations that run as loops over scratch memory, each number a vector of lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .llvm import Body

Values = Sequence[str]


def spd_solve(body: Body, area: str, n: int, m: int) -> None:
    """A⁻¹B by Cholesky's A = L Lᵀ, in place; NaN where A is not positive definite.

    `area` holds the lower triangle of A row by row, then the m columns of B. An odd n is padded to even by a unit row, so that
    columns are processed in pairs: tiles of two columns by four rows fill the registers. The columns of B are further rows of the
    triangle, which is the forward substitution. The diagonal of L is kept inverted.
    """
    solve = _Solve(body, area, n, m)
    if n % 2:
        solve.pad()
    body.loop("0", str(solve.even), 2, [], solve.two_columns)
    solve.in_columns_of_b(solve.back)


class _Solve:
    """The code generator of one system."""

    def __init__(self, body: Body, area: str, n: int, m: int) -> None:
        self.body, self.area, self.n, self.m = body, area, n, m
        self.type, self.width = body.lanes.type, body.lanes.count * body.lanes.size
        self.even = n + n % 2
        self.right = self.even * (self.even + 1) // 2

    # Shorthands

    def at(self, pointer: str, index: str) -> str:
        return self.body.new(f"getelementptr {self.type}, ptr {pointer}, i64 {index}")

    def load(self, pointer: str) -> str:
        return self.body.load(self.type, pointer, self.width)

    def store(self, value: str, pointer: str) -> None:
        self.body.store(self.type, value, pointer, self.width)

    def row(self, i: str) -> str:
        """The index of the first number of row i of the triangle."""
        product = self.body.new(f"mul i64 {i}, {self.body.new(f'add i64 {i}, 1')}")
        return self.at(self.area, self.body.new(f"lshr i64 {product}, 1"))

    def minus(self, acc: str, x: str, y: str) -> str:
        """acc - x·y"""
        return self.body.fma(self.body.op("fneg", x), y, acc)

    def inverse_root(self, x: str) -> str:
        """1/√x, NaN unless x > 0."""
        body = self.body
        root = body.op("fdiv", body.const(1.0), body.intrinsic("sqrt", x))
        return body.select(body.compare("ogt", x, body.const(0.0)), root, body.const(float("nan")))

    def pad(self) -> None:
        """A unit row below an odd triangle, zeros below the columns of B."""
        n, const = self.n, self.body.const
        for i in range(n + 1):
            self.store(const(1.0 if i == n else 0.0), self.at(self.area, str(n * (n + 1) // 2 + i)))
        for r in range(self.m):
            self.store(const(0.0), self.at(self.area, str(self.right + r * self.even + n)))

    # Factors, and the forward substitution

    def two_columns(self, j: str, _: Values) -> Values:
        """Columns j and j + 1 of L: their corner on the diagonal, then all rows below it and those of B."""
        body = self.body
        first, second = self.row(j), self.row(body.new(f"add i64 {j}, 1"))
        root, side, root2 = self._corner(j, first, second)

        def rows(starts: Values) -> None:
            self._rows(j, first, second, starts, (root, side, root2))

        def below(count: int, start: str, stop: str) -> None:
            def turn(i: str, _: Values) -> Values:
                rows([self.row(body.new(f"add i64 {i}, {r}")) for r in range(count)])
                return []

            body.loop(start, stop, count, [], turn)

        start = body.new(f"add i64 {j}, 2")
        fours = body.new(f"and i64 {body.new(f'sub i64 {self.even}, {start}')}, -4")
        middle = body.new(f"add i64 {start}, {fours}")
        below(4, start, middle)
        below(2, middle, str(self.even))
        self.in_columns_of_b(rows)
        return []

    def _corner(self, j: str, first: str, second: str) -> tuple[str, str, str]:
        """The two by two triangle of L at (j, j): 1/L_jj, L_j+1,j and 1/L_j+1,j+1."""
        body, at, load, minus = self.body, self.at, self.load, self.minus
        corner = [at(first, j), at(second, j), at(at(second, j), "1")]

        def diagonal(k: str, acc: Values) -> Values:
            x, y = load(at(first, k)), load(at(second, k))
            return [minus(acc[0], x, x), minus(acc[1], y, x), minus(acc[2], y, y)]

        a, b, c = body.loop("0", j, 1, [load(p) for p in corner], diagonal)
        root = self.inverse_root(a)
        side = body.op("fmul", b, root)
        root2 = self.inverse_root(minus(c, side, side))
        for value, pointer in zip((root, side, root2), corner, strict=True):
            self.store(value, pointer)
        return root, side, root2

    def _rows(self, j: str, first: str, second: str, starts: Values, corner: tuple[str, str, str]) -> None:
        """The numbers in columns j and j + 1 of the rows that begin at `starts`."""
        body, at, load, minus = self.body, self.at, self.load, self.minus
        root, side, root2 = corner
        places = [at(p, j) for p in starts]
        nexts = [at(p, "1") for p in places]

        def product(k: str, acc: Values) -> Values:
            x, y = load(at(first, k)), load(at(second, k))
            values = [load(at(p, k)) for p in starts]
            return [minus(acc[2 * r + s], z, w) for r, z in enumerate(values) for s, w in enumerate((x, y))]

        given = [load(p) for pair in zip(places, nexts, strict=True) for p in pair]
        acc = body.loop("0", j, 1, given, product)
        for r in range(len(starts)):
            left = body.op("fmul", acc[2 * r], root)
            self.store(left, places[r])
            self.store(body.op("fmul", minus(acc[2 * r + 1], left, side), root2), nexts[r])

    # Backward substitution

    def in_columns_of_b(self, work: Callable[[Values], None]) -> None:
        """Do the work on the columns of B, four at a time."""
        body, even, m = self.body, self.even, self.m
        whole = m - m % 4

        def turn(r: str, _: Values) -> Values:
            base = self.at(self.at(self.area, str(self.right)), body.new(f"mul i64 {r}, {even}"))
            work([self.at(base, str(s * even)) for s in range(4)])
            return []

        if whole:
            body.loop("0", str(whole), 4, [], turn)
        if m % 4:
            work([self.at(self.area, str(self.right + s * even)) for s in range(whole, m)])

    def back(self, starts: Values) -> None:
        """Solve with Lᵀ for the columns that begin at `starts`, two rows at a time, from the last."""

        def pair(i: str, _: Values) -> Values:
            self._two_rows(i, starts)
            return []

        self.body.loop(str(self.even - 2), "-1", -2, [], pair)

    def _two_rows(self, i: str, starts: Values) -> None:
        body, at, load, minus = self.body, self.at, self.load, self.minus
        upper, lower = self.row(i), self.row(body.new(f"add i64 {i}, 1"))
        root, root2 = load(at(upper, i)), load(at(at(lower, i), "1"))
        side = load(at(lower, i))
        xs = []
        for p in starts:
            place = at(p, i)
            after = at(place, "1")
            y = body.op("fmul", load(after), root2)
            x = body.op("fmul", minus(load(place), side, y), root)
            self.store(y, after)
            self.store(x, place)
            xs.append((x, y))

        def spread(k: str, _: Values) -> Values:
            a, b = load(at(upper, k)), load(at(lower, k))
            for p, (x, y) in zip(starts, xs, strict=True):
                place = at(p, k)
                self.store(minus(minus(load(place), a, x), b, y), place)
            return []

        body.loop("0", i, 1, [], spread)
