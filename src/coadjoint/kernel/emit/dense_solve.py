"""Dense operations that run as loops over scratch memory, each number a vector of lanes."""

from __future__ import annotations

from collections.abc import Sequence

from .llvm import Body


def spd_solve(body: Body, area: str, n: int, m: int) -> None:
    """A⁻¹B by Cholesky's A = L Lᵀ, in place; NaN where A is not positive definite.

    `area` holds the lower triangle of A row by row, then the m columns of B. An odd n is made even with a unit row, so
    that columns go in pairs: two columns by four rows fill the registers. The columns of B are further rows of the
    triangle, which is the forward substitution. The diagonal of L is kept inverted.
    """
    v = body.lanes
    width = v.count * v.size
    even = n + n % 2
    right = even * (even + 1) // 2

    def at(pointer: str, index: str) -> str:
        return body.new(f"getelementptr {v.type}, ptr {pointer}, i64 {index}")

    def load(pointer: str) -> str:
        return body.load(v.type, pointer, width)

    def store(value: str, pointer: str) -> None:
        body.store(v.type, value, pointer, width)

    def row(i: str) -> str:
        """The first number of row i of the triangle."""
        product = body.new(f"mul i64 {i}, {body.new(f'add i64 {i}, 1')}")
        return at(area, body.new(f"lshr i64 {product}, 1"))

    def minus(acc: str, x: str, y: str) -> str:
        return body.fma(body.op("fneg", x), y, acc)

    def inverse_root(x: str) -> str:
        root = body.op("fdiv", body.const(1.0), body.intrinsic("sqrt", x))
        return body.select(body.compare("ogt", x, body.const(0.0)), root, body.const(float("nan")))

    if n % 2:
        for i in range(n + 1):
            store(body.const(1.0 if i == n else 0.0), at(area, str(n * (n + 1) // 2 + i)))
        for r in range(m):
            store(body.const(0.0), at(area, str(right + r * even + n)))

    def columns(j: str, _: Sequence[str]) -> Sequence[str]:
        first, second = row(j), row(body.new(f"add i64 {j}, 1"))
        corner = [at(first, j), at(second, j), at(at(second, j), "1")]

        def diagonal(k: str, acc: Sequence[str]) -> Sequence[str]:
            x, y = load(at(first, k)), load(at(second, k))
            return [minus(acc[0], x, x), minus(acc[1], y, x), minus(acc[2], y, y)]

        a, b, c = body.loop("0", j, 1, [load(p) for p in corner], diagonal)
        root = inverse_root(a)
        side = body.op("fmul", b, root)
        root2 = inverse_root(minus(c, side, side))
        for value, pointer in zip((root, side, root2), corner, strict=True):
            store(value, pointer)

        def rows(starts: Sequence[str]) -> None:
            places = [at(p, j) for p in starts]
            nexts = [at(p, "1") for p in places]

            def product(k: str, acc: Sequence[str]) -> Sequence[str]:
                x, y = load(at(first, k)), load(at(second, k))
                values = [load(at(p, k)) for p in starts]
                return [minus(acc[2 * r + s], z, w) for r, z in enumerate(values) for s, w in enumerate((x, y))]

            given = [load(p) for pair in zip(places, nexts, strict=True) for p in pair]
            acc = body.loop("0", j, 1, given, product)
            for r in range(len(starts)):
                left = body.op("fmul", acc[2 * r], root)
                store(left, places[r])
                store(body.op("fmul", minus(acc[2 * r + 1], left, side), root2), nexts[r])

        def below(count: int, start: str, stop: str) -> None:
            def turn(i: str, _: Sequence[str]) -> Sequence[str]:
                rows([row(body.new(f"add i64 {i}, {r}")) for r in range(count)])
                return []

            body.loop(start, stop, count, [], turn)

        start = body.new(f"add i64 {j}, 2")
        fours = body.new(f"and i64 {body.new(f'sub i64 {even}, {start}')}, -4")
        middle = body.new(f"add i64 {start}, {fours}")
        below(4, start, middle)
        below(2, middle, str(even))
        in_columns_of_b(rows)
        return []

    def in_columns_of_b(work: object) -> None:
        """Do the work on the columns of B, four at a time."""
        assert callable(work)
        whole = m - m % 4

        def turn(r: str, _: Sequence[str]) -> Sequence[str]:
            base = at(at(area, str(right)), body.new(f"mul i64 {r}, {even}"))
            work([at(base, str(s * even)) for s in range(4)])
            return []

        if whole:
            body.loop("0", str(whole), 4, [], turn)
        if m % 4:
            work([at(area, str(right + s * even)) for s in range(whole, m)])

    def back(starts: Sequence[str]) -> None:
        def pair(i: str, _: Sequence[str]) -> Sequence[str]:
            upper, lower = row(i), row(body.new(f"add i64 {i}, 1"))
            root, root2 = load(at(upper, i)), load(at(at(lower, i), "1"))
            side = load(at(lower, i))
            xs = []
            for p in starts:
                place = at(p, i)
                after = at(place, "1")
                y = body.op("fmul", load(after), root2)
                x = body.op("fmul", minus(load(place), side, y), root)
                store(y, after)
                store(x, place)
                xs.append((x, y))

            def spread(k: str, _: Sequence[str]) -> Sequence[str]:
                a, b = load(at(upper, k)), load(at(lower, k))
                for p, (x, y) in zip(starts, xs, strict=True):
                    place = at(p, k)
                    store(minus(minus(load(place), a, x), b, y), place)
                return []

            body.loop("0", i, 1, [], spread)
            return []

        body.loop(str(even - 2), "-1", -2, [], pair)

    body.loop("0", str(even), 2, [], columns)
    in_columns_of_b(back)
