"""The builder of a graph, with hash-consing and constant folding.

Every method takes any nodes and returns a node: a sum that cancels is the constant 0, a product with 0 the constant 0. As
everywhere in computer algebra x is taken to be finite in 0·x and x - x, and not 0 in x / x. Signs are pulled outwards,
(-a)·b = -(a·b), until a sum takes them in, a + (-b) = a - b, so that what differs by a sign only is computed once; and b - a is
-(a - b) where a - b is there.
"""

from __future__ import annotations

import math
from typing import Any

from ..op import quotient
from ..ops import COMMUTATIVE


class GraphBuilder:
    """The nodes of one trace in the order they were made: node k is `op[k]` on `args[k]`, as in `Graph`.

    Every `Expr` knows its builder, so traces in several threads do not see each other.
    """

    __slots__ = ("_consts", "_differences", "_found", "_products", "_quotients", "_sums", "args", "op", "value")

    def __init__(self) -> None:
        self.op: list[str] = []
        self.args: list[tuple[int, ...]] = []
        self.value: list[Any] = []
        self._consts: dict[float, int] = {}
        self._sums: dict[tuple[int, ...], int] = {}
        self._differences: dict[tuple[int, ...], int] = {}
        self._products: dict[tuple[int, ...], int] = {}
        self._quotients: dict[tuple[int, ...], int] = {}
        self._found: dict[Any, int] = {}

    def _append(self, op: str, args: tuple[int, ...], value: Any = None) -> int:
        k = len(self.op)
        self.op.append(op)
        self.args.append(args)
        self.value.append(value)
        return k

    def const(self, c: float) -> int:
        """The node of a constant."""
        k = self._consts.get(c)
        if k is None:
            c = math.nan if c != c else c or 0.0
            k = self._consts.get(c)
        if k is None:
            k = self._consts[c] = self._append("const", (), c)
        return k

    def node(self, op: str, args: tuple[int, ...], value: Any = None) -> int:
        """The node op(args), new or existing; without folding."""
        if op in COMMUTATIVE and args[0] > args[1]:
            args = (args[1], args[0])
        key = (op, args, value)
        k = self._found.get(key)
        if k is None:
            k = self._found[key] = self._append(op, args, value)
        return k

    def neg(self, i: int) -> int:
        """-i"""
        op = self.op[i]
        if op == "neg":
            return self.args[i][0]
        if op == "const":
            return self.const(-self.value[i])
        return self.node("neg", (i,))

    def mul(self, i: int, j: int) -> int:
        """i·j"""
        op = self.op
        if op[i] == "const":
            return self.scale(self.value[i], j)
        if op[j] == "const":
            return self.scale(self.value[j], i)
        return self._multiply(i, j)

    def scale(self, c: float, i: int) -> int:
        """c·i"""
        if self.op[i] == "const":
            return self.const(c * self.value[i])
        if c == 0.0:
            return self.const(0.0)
        if c == 1.0:
            return i
        if c == -1.0:
            return self.neg(i)
        if c < 0.0:
            return self.neg(self._multiply(self.const(-c), i))
        return self._multiply(self.const(c), i)

    def _multiply(self, i: int, j: int) -> int:
        op = self.op
        negative = False
        if op[i] == "neg":
            i = self.args[i][0]
            negative = True
        if op[j] == "neg":
            j = self.args[j][0]
            negative = not negative
        key = (i, j) if i < j else (j, i)
        k = self._products.get(key)
        if k is None:
            k = self._products[key] = len(op)
            op.append("mul")
            self.args.append(key)
            self.value.append(None)
        return self.neg(k) if negative else k

    def product(self, i: int, j: int) -> int | None:
        """The node i·j if it exists."""
        return self._products.get((i, j) if i < j else (j, i))

    def forget(self, size: int) -> None:
        """Remove all nodes but the first `size`."""
        found = {"add": self._sums, "sub": self._differences, "mul": self._products, "div": self._quotients}
        for op, args, value in zip(self.op[size:], self.args[size:], self.value[size:], strict=True):
            if op in found:
                del found[op][args]
            elif op == "const":
                del self._consts[value]
            else:
                del self._found[op, args, value]
        del self.op[size:], self.args[size:], self.value[size:]

    def add(self, i: int, j: int) -> int:
        """i + j"""
        op = self.op
        if op[i] == "const":
            i, j = j, i
        if op[j] == "const":
            c = self.value[j]
            if op[i] == "const":
                return self.const(self.value[i] + c)
            if c == 0.0:
                return i
            if c < 0.0:
                return self.sub(i, self.const(-c))
        if op[i] == "neg":
            i = self.args[i][0]
            if op[j] == "neg":
                return self.neg(self.add(i, self.args[j][0]))
            return self._subtract(j, i)
        if op[j] == "neg":
            return self._subtract(i, self.args[j][0])
        if i == j:
            return self._multiply(self.const(2.0), i)
        key = (i, j) if i < j else (j, i)
        k = self._sums.get(key)
        if k is None:
            k = self._sums[key] = len(op)
            op.append("add")
            self.args.append(key)
            self.value.append(None)
        return k

    def sub(self, i: int, j: int) -> int:
        """i - j"""
        op = self.op
        if op[j] == "const":
            c = self.value[j]
            if op[i] == "const":
                return self.const(self.value[i] - c)
            if c == 0.0:
                return i
            if c < 0.0:
                return self.add(i, self.const(-c))
        elif op[i] == "const":
            c = self.value[i]
            if c == 0.0:
                return self.neg(j)
            if c < 0.0:
                return self.neg(self.add(j, self.const(-c)))
        if op[j] == "neg":
            return self.add(i, self.args[j][0])
        if op[i] == "neg":
            return self.neg(self.add(self.args[i][0], j))
        return self._subtract(i, j)

    def _subtract(self, i: int, j: int) -> int:
        if i == j:
            return self.const(0.0)
        key = (i, j)
        k = self._differences.get(key)
        if k is None:
            k = self._differences.get((j, i))
            if k is not None:
                return self.neg(k)
            k = self._differences[key] = self._append("sub", key)
        return k

    def div(self, i: int, j: int) -> int:
        """i / j"""
        op = self.op
        if op[j] == "const":
            c = self.value[j]
            if op[i] == "const":
                return self.const(quotient(self.value[i], c))
            if abs(math.frexp(c)[0]) == 0.5 and math.isfinite(1.0 / c):  # a power of two: 1/c is exact
                return self.scale(1.0 / c, i)
            if c < 0.0:
                return self.neg(self.div(i, self.const(-c)))
        elif i == j:
            return self.const(1.0)
        elif op[i] == "const":
            c = self.value[i]
            if c == 0.0:
                return i
            if c < 0.0:
                return self.neg(self.div(self.const(-c), j))
        negative = False
        if op[i] == "neg":
            i = self.args[i][0]
            negative = True
        if op[j] == "neg":
            j = self.args[j][0]
            negative = not negative
        k = self._quotients.get((i, j))
        if k is None:
            k = self._quotients[i, j] = self._append("div", (i, j))
        return self.neg(k) if negative else k
