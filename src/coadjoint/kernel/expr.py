"""Symbolic scalars: every operation on one makes, or finds again, a node of the table it belongs to.

Constants stay plain floats and fold as they come: a node never has only constants as arguments, 0·x is the float 0.0,
1·x is x itself. Signs are pulled outwards, (-a)·b = -(a·b), until a sum swallows them, a + (-b) = a - b, so that what
differs by a sign only is computed once. As everywhere in computer algebra x is taken to be finite in 0·x and x - x.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import TraceError

Scalar = Any
"""An `Expr` or a plain number."""

TRUTH = frozenset(("lt", "le", "eq", "and", "or", "not"))
"""Operations whose result is a truth value."""

_NUMBERS = (float, int, np.floating, np.integer, np.bool_)
_COMMUTATIVE = frozenset(("add", "mul", "min", "max", "eq", "and", "or"))


class Table:
    """The nodes of one trace in the order they were made: node k is `op[k]` on `args[k]`, as in `Graph`.

    Every `Expr` knows its table, so traces in several threads do not see each other.
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
            k = self._append("const", (), c + 0.0)  # -0.0 becomes 0.0: both have one key
            self._consts[c] = k
        return k

    def node(self, op: str, args: tuple[int, ...], value: Any = None) -> int:
        """The node op(args), found again if it is there; nothing is folded."""
        if op in _COMMUTATIVE and args[0] > args[1]:
            args = (args[1], args[0])
        key = (op, args, value)
        k = self._found.get(key)
        if k is None:
            k = self._found[key] = self._append(op, args, value)
        return k

    def neg(self, i: int) -> int:
        """-i"""
        if self.op[i] == "neg":
            return self.args[i][0]
        return self.node("neg", (i,))

    def mul(self, i: int, j: int) -> int:
        """i·j, not both of them constant, neither of them 0 or ±1"""
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

    def add(self, i: int, j: int) -> int:
        """i + j; -1 if that is 0, which is not a node"""
        op = self.op
        if op[i] == "neg":
            i = self.args[i][0]
            if op[j] == "neg":
                return self.neg(self.add(i, self.args[j][0]))
            return self._subtract(j, i) if i != j else -1
        if op[j] == "neg":
            j = self.args[j][0]
            return self._subtract(i, j) if i != j else -1
        if i == j:
            return self.mul(self.const(2.0), i)
        key = (i, j) if i < j else (j, i)
        k = self._sums.get(key)
        if k is None:
            k = self._sums[key] = len(op)
            op.append("add")
            self.args.append(key)
            self.value.append(None)
        return k

    def sub(self, i: int, j: int) -> int:
        """i - j, i not the same as j"""
        if self.op[j] == "neg":
            return self.add(i, self.args[j][0])
        if self.op[i] == "neg":
            return self.neg(self.add(self.args[i][0], j))
        return self._subtract(i, j)

    def _subtract(self, i: int, j: int) -> int:
        key = (i, j)
        k = self._differences.get(key)
        if k is None:
            k = self._differences.get((j, i))
            if k is not None:
                return self.neg(k)
            k = self._differences[key] = self._append("sub", key)
        return k

    def div(self, i: int, j: int) -> int:
        """i / j, not both of them constant"""
        negative = False
        if self.op[i] == "neg":
            i = self.args[i][0]
            negative = True
        if self.op[j] == "neg":
            j = self.args[j][0]
            negative = not negative
        k = self._quotients.get((i, j))
        if k is None:
            k = self._quotients[i, j] = self._append("div", (i, j))
        return self.neg(k) if negative else k


class Expr:
    """A symbolic scalar: node `index` of `table`."""

    __slots__ = ("index", "table")
    __coadjoint_symbol__ = True
    __hash__ = None  # type: ignore[assignment]  # x == y is a symbol, so symbols cannot be keys
    shape: tuple[int, ...] = ()
    ndim = 0
    size = 1
    dtype = np.dtype(object)

    def __init__(self, table: Table, index: int) -> None:
        self.table = table
        self.index = index

    def __repr__(self) -> str:
        return f"<symbol {self.index}: {self.table.op[self.index]}>"

    def __mul__(self, other: Any) -> Scalar:
        table = self.table
        if type(other) is Expr:
            if other.table is not table:
                raise _foreign()
            return Expr(table, table.mul(self.index, other.index))
        if type(other) is not float:
            other = _operand(other)
            if type(other) is not float:
                return other if other is NotImplemented else self * other
        if other == 0.0:
            return 0.0
        if other == 1.0:
            return self
        if other == -1.0:
            return Expr(table, table.neg(self.index))
        if other < 0.0:
            return Expr(table, table.neg(table.mul(self.index, table.const(-other))))
        return Expr(table, table.mul(self.index, table.const(other)))

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Scalar:
        table = self.table
        if type(other) is Expr:
            if other.table is not table:
                raise _foreign()
            k = table.add(self.index, other.index)
            return Expr(table, k) if k >= 0 else 0.0
        if type(other) is not float:
            other = _operand(other)
            if type(other) is not float:
                return other if other is NotImplemented else self + other
        if other == 0.0:
            return self
        if other < 0.0:
            return Expr(table, table.sub(self.index, table.const(-other)))
        return Expr(table, table.add(self.index, table.const(other)))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Scalar:
        table = self.table
        if type(other) is Expr:
            if other.table is not table:
                raise _foreign()
            if other.index == self.index:
                return 0.0
            return Expr(table, table.sub(self.index, other.index))
        if type(other) is not float:
            other = _operand(other)
            if type(other) is not float:
                return other if other is NotImplemented else self - other
        return self + -other

    def __rsub__(self, other: Any) -> Scalar:
        other = _operand(other)
        if type(other) is not float:
            return other if other is NotImplemented else other - self
        table = self.table
        if other == 0.0:
            return Expr(table, table.neg(self.index))
        if other < 0.0:
            return Expr(table, table.neg(table.add(self.index, table.const(-other))))
        return Expr(table, table.sub(table.const(other), self.index))

    def __truediv__(self, other: Any) -> Scalar:
        other = _operand(other)
        table = self.table
        if type(other) is Expr:
            if other.table is not table:
                raise _foreign()
            return 1.0 if other.index == self.index else Expr(table, table.div(self.index, other.index))
        if type(other) is not float:
            return other
        if abs(math.frexp(other)[0]) == 0.5 and math.isfinite(1.0 / other):  # a power of two: 1/c is exact
            return self * (1.0 / other)
        if other < 0.0:
            return -(self / -other)
        return Expr(table, table.div(self.index, table.const(other)))

    def __rtruediv__(self, other: Any) -> Scalar:
        other = _operand(other)
        if type(other) is not float:
            return other if other is NotImplemented else other / self
        if other == 0.0:
            return 0.0
        if other < 0.0:
            return -(-other / self)
        return Expr(self.table, self.table.div(self.table.const(other), self.index))

    def __neg__(self) -> Expr:
        return Expr(self.table, self.table.neg(self.index))

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Scalar:
        return absolute(self)

    def __pow__(self, exponent: Any) -> Scalar:
        return power(self, exponent)

    def __rpow__(self, base: Any) -> Scalar:
        return power(base, self)

    def __floordiv__(self, other: Any) -> Scalar:
        return floor(divide(self, other))

    def __rfloordiv__(self, other: Any) -> Scalar:
        return floor(divide(other, self))

    def __mod__(self, other: Any) -> Scalar:
        return self - floor(divide(self, other)) * other

    def __rmod__(self, other: Any) -> Scalar:
        return other - floor(divide(other, self)) * self

    def __lt__(self, other: Any) -> Scalar:
        return _compare("lt", self, other)

    def __le__(self, other: Any) -> Scalar:
        return _compare("le", self, other)

    def __gt__(self, other: Any) -> Scalar:
        return _compare("lt", self, other, swapped=True)

    def __ge__(self, other: Any) -> Scalar:
        return _compare("le", self, other, swapped=True)

    def __eq__(self, other: object) -> Any:
        return _compare("eq", self, other)

    def __ne__(self, other: object) -> Any:
        equal = _compare("eq", self, other)
        return equal if equal is NotImplemented else logical_not(equal)

    def __getitem__(self, index: Any) -> Any:
        """As of a NumPy scalar: only new axes, x[..., None]."""
        from .symbols import symbols

        return symbols(self)[index]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        from .symbols import apply

        return apply(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        from .symbols import symbols

        return function(*(symbols(x) if isinstance(x, Expr) else x for x in args), **options)

    def __bool__(self) -> bool:
        raise TraceError(
            "the truth of a symbol is not known while a function is traced, so it may not decide an if, while, and, or, "
            "not, min() or max(). Write coadjoint.where(condition, a, b) for a choice, & | ~ between conditions."
        )

    def __float__(self) -> float:
        raise TraceError(
            "a symbol has no number while a function is traced, so float(), int(), round(), math functions and "
            "np.asarray(..., dtype=float) cannot take it. Keep it in arrays, and take functions from "
            "xp = coadjoint.arrays.namespace(x), as in xp.sin(x)."
        )

    __int__ = __index__ = __complex__ = __round__ = __float__  # type: ignore[assignment]

    def __iter__(self) -> Any:
        raise TraceError("a symbol is a scalar and cannot be iterated over; iterate over the array that holds it.")


class Truth(Expr):
    """A symbolic truth value, to choose by in `where`; in arithmetic it counts as 1 or 0."""

    __slots__ = ()

    def _number(self) -> Scalar:
        return where(self, 1.0, 0.0)

    def __and__(self, other: Any) -> Scalar:
        return logical_and(self, other)

    def __or__(self, other: Any) -> Scalar:
        return logical_or(self, other)

    def __invert__(self) -> Scalar:
        return logical_not(self)

    __rand__, __ror__ = __and__, __or__

    def __xor__(self, other: Any) -> Scalar:
        return logical_or(logical_and(self, logical_not(other)), logical_and(logical_not(self), other))

    __rxor__ = __xor__

    def __mul__(self, other: Any) -> Scalar:
        return self._number() * other

    def __add__(self, other: Any) -> Scalar:
        return self._number() + other

    def __sub__(self, other: Any) -> Scalar:
        return self._number() - other

    def __rsub__(self, other: Any) -> Scalar:
        return other - self._number()

    def __truediv__(self, other: Any) -> Scalar:
        return self._number() / other

    def __rtruediv__(self, other: Any) -> Scalar:
        return other / self._number()

    def __neg__(self) -> Scalar:
        return -self._number()

    __rmul__, __radd__ = __mul__, __add__


def _foreign() -> TraceError:
    return TraceError(
        "symbols of two traces meet: a traced function used a symbol kept from another trace. Pass what the function "
        "depends on as an argument; keep no symbols in global variables, caches or closures."
    )


def _operand(x: Any) -> Any:
    """x as an Expr or a float; NotImplemented if it is neither."""
    kind = type(x)
    if kind is Expr or kind is float:
        return x
    if kind is Truth:
        return x._number()
    return float(x) if isinstance(x, _NUMBERS) else NotImplemented


def _scalar(x: Any) -> Scalar:
    x = _operand(x)
    if x is NotImplemented:
        raise TraceError("a traced function works on numbers and symbols only; it was given something else.")
    return x


def _index(table: Table, x: Scalar) -> int:
    """The node of an Expr or a float."""
    if type(x) is float:
        return table.const(x)
    if x.table is not table:
        raise _foreign()
    return int(x.index)


def is_symbol(x: Any) -> bool:
    """Whether x is a symbol and not a number."""
    return isinstance(x, Expr)


def expr(table: Table, index: int) -> Scalar:
    """Node `index` as what stands in arrays: a float if it is a constant."""
    op = table.op[index]
    if op == "const":
        return table.value[index]
    return Truth(table, index) if op in TRUTH else Expr(table, index)


# Truth values


def _compare(op: str, x: Scalar, y: Any, swapped: bool = False) -> Any:
    x, y = _operand(x), _operand(y)
    if x is NotImplemented or y is NotImplemented:
        return NotImplemented
    if swapped:
        x, y = y, x
    if type(x) is float:
        if type(y) is float:
            return bool(getattr(operator, op)(x, y))
        table = y.table
    else:
        table = x.table
    return Truth(table, table.node(op, (_index(table, x), _index(table, y))))


def less(x: Scalar, y: Scalar) -> Scalar:
    """x < y"""
    return _compare("lt", x, y)


def less_equal(x: Scalar, y: Scalar) -> Scalar:
    """x ≤ y"""
    return _compare("le", x, y)


def equal(x: Scalar, y: Scalar) -> Scalar:
    """x = y"""
    return _compare("eq", x, y)


def _truth(x: Any) -> Any:
    """x as a Truth or a bool: a number is true unless it is 0."""
    if type(x) is Truth or type(x) is bool:
        return x
    if type(x) is Expr:
        return logical_not(_compare("eq", x, 0.0))
    return bool(x)


def logical_and(x: Any, y: Any) -> Any:
    """Both."""
    x, y = _truth(x), _truth(y)
    if type(x) is bool:
        return y if x else False
    if type(y) is bool:
        return x if y else False
    if x.index == y.index:
        return x
    return Truth(x.table, x.table.node("and", (x.index, _index(x.table, y))))


def logical_or(x: Any, y: Any) -> Any:
    """One of them, or both."""
    x, y = _truth(x), _truth(y)
    if type(x) is bool:
        return True if x else y
    if type(y) is bool:
        return True if y else x
    if x.index == y.index:
        return x
    return Truth(x.table, x.table.node("or", (x.index, _index(x.table, y))))


def logical_not(x: Any) -> Any:
    """The opposite."""
    x = _truth(x)
    if type(x) is bool:
        return not x
    if x.table.op[x.index] == "not":
        return Truth(x.table, x.table.args[x.index][0])
    return Truth(x.table, x.table.node("not", (x.index,)))


def where(condition: Any, x: Scalar, y: Scalar) -> Scalar:
    """x where the condition holds, y elsewhere."""
    condition, x, y = _truth(condition), _scalar(x), _scalar(y)
    if type(condition) is bool:
        return x if condition else y
    table, i = condition.table, condition.index
    if type(x) is float and type(y) is float and x == y:
        return x
    if table.op[i] == "not":
        i, x, y = table.args[i][0], y, x
    j, k = _index(table, x), _index(table, y)
    return x if j == k else Expr(table, table.node("where", (i, j, k)))


# Functions of numbers and symbols


def _number(function: Callable[[float], float], overflow: float = math.nan) -> Callable[[float], float]:
    """The function of `math` with what NumPy gives where `math` raises."""

    def safe(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return overflow if x == 0.0 else math.nan
        except OverflowError:
            return overflow

    return safe


_sin, _cos, _sqrt = _number(math.sin), _number(math.cos), _number(math.sqrt)
_exp, _log = _number(math.exp, math.inf), _number(math.log, -math.inf)


def _unary(op: str, x: Expr) -> Expr:
    return Expr(x.table, x.table.node(op, (x.index,)))


def _negated(x: Expr) -> Expr | None:
    """y if x is -y."""
    table = x.table
    return Expr(table, table.args[x.index][0]) if table.op[x.index] == "neg" else None


def sin(x: Scalar) -> Scalar:
    """The sine; an odd function."""
    x = _scalar(x)
    if type(x) is float:
        return _sin(x)
    opposite = _negated(x)
    return _unary("sin", x) if opposite is None else -_unary("sin", opposite)


def cos(x: Scalar) -> Scalar:
    """The cosine; an even function."""
    x = _scalar(x)
    if type(x) is float:
        return _cos(x)
    opposite = _negated(x)
    return _unary("cos", x if opposite is None else opposite)


def exp(x: Scalar) -> Scalar:
    """eˣ"""
    x = _scalar(x)
    return _exp(x) if type(x) is float else _unary("exp", x)


def log(x: Scalar) -> Scalar:
    """The natural logarithm."""
    x = _scalar(x)
    return _log(x) if type(x) is float else _unary("log", x)


def sqrt(x: Scalar) -> Scalar:
    """The square root."""
    x = _scalar(x)
    return _sqrt(x) if type(x) is float else _unary("sqrt", x)


def floor(x: Scalar) -> Scalar:
    """The largest integer ≤ x."""
    x = _scalar(x)
    if type(x) is float:
        return float(math.floor(x)) if math.isfinite(x) else x
    return _unary("floor", x)


def absolute(x: Scalar) -> Scalar:
    """|x|"""
    x = _scalar(x)
    if type(x) is float:
        return abs(x)
    opposite = _negated(x)
    return _unary("abs", x if opposite is None else opposite)


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """The angle of the vector (x, y)."""
    y, x = _scalar(y), _scalar(x)
    if type(x) is float and type(y) is float:
        return math.atan2(y, x)
    table = (y if type(x) is float else x).table
    return Expr(table, table.node("atan2", (_index(table, y), _index(table, x))))


def _extremum(op: str, x: Scalar, y: Scalar) -> Scalar:
    x, y = _scalar(x), _scalar(y)
    if type(x) is float and type(y) is float:
        if x != x or y != y:
            return math.nan
        return min(x, y) if op == "min" else max(x, y)
    table = (y if type(x) is float else x).table
    i, j = _index(table, x), _index(table, y)
    return x if i == j else Expr(table, table.node(op, (i, j)))


def minimum(x: Scalar, y: Scalar) -> Scalar:
    """The lesser of the two."""
    return _extremum("min", x, y)


def maximum(x: Scalar, y: Scalar) -> Scalar:
    """The greater of the two."""
    return _extremum("max", x, y)


def divide(x: Scalar, y: Scalar) -> Scalar:
    """x / y; of numbers as NumPy has it, x / 0 = ±inf."""
    x, y = _scalar(x), _scalar(y)
    if type(y) is float and y == 0.0:
        if type(x) is float:
            return math.copysign(math.inf, x) * math.copysign(1.0, y) if x and x == x else math.nan
        return Expr(x.table, x.table.div(x.index, x.table.const(y)))
    return x / y


def _number_power(x: float, exponent: float) -> float:
    try:
        return math.pow(x, exponent)
    except ValueError:
        return math.inf if x == 0.0 else math.nan
    except OverflowError:
        return -math.inf if x < 0.0 and exponent % 2.0 else math.inf


def power(x: Scalar, exponent: Any) -> Scalar:
    """x to a power that is a number (integers and halves exactly), or a positive number to any power."""
    x, exponent = _scalar(x), _scalar(exponent)
    if type(exponent) is not float:
        if type(x) is float and x > 0.0:
            return exp(exponent * math.log(x))
        raise TraceError(
            f"a symbol as exponent needs a positive number as base, but the base is {x!r}. "
            "Write xp.exp(exponent * xp.log(base)) where the base is positive."
        )
    if type(x) is float:
        return _number_power(x, exponent)
    if exponent < 0.0:
        return 1.0 / power(x, -exponent)
    whole, half = divmod(exponent, 1.0)
    if half not in (0.0, 0.5) or whole > 64.0:
        return exp(exponent * log(x))
    result: Scalar = sqrt(x) if half else 1.0
    n = int(whole)
    while n:
        if n & 1:
            result = result * x
        x, n = x * x, n >> 1
    return result


def sign(x: Scalar) -> Scalar:
    """-1, 0 or 1."""
    x = _scalar(x)
    return where(less(0.0, x), 1.0, where(less(x, 0.0), -1.0, x))


def tan(x: Scalar) -> Scalar:
    """The tangent."""
    return divide(sin(x), cos(x))


def asin(x: Scalar) -> Scalar:
    """The arc sine."""
    return atan2(x, sqrt((1.0 - x) * (1.0 + x)))


def acos(x: Scalar) -> Scalar:
    """The arc cosine."""
    return atan2(sqrt((1.0 - x) * (1.0 + x)), x)


def atan(x: Scalar) -> Scalar:
    """The arc tangent."""
    return atan2(x, 1.0)


def hypot(x: Scalar, y: Scalar) -> Scalar:
    """√(x² + y²)"""
    return sqrt(x * x + y * y)


def ceil(x: Scalar) -> Scalar:
    """The least integer ≥ x."""
    return -floor(-x)


OPERATIONS: dict[str, Callable[..., Scalar]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": divide,
    "neg": operator.neg,
    "sqrt": sqrt,
    "sin": sin,
    "cos": cos,
    "atan2": atan2,
    "exp": exp,
    "log": log,
    "abs": absolute,
    "floor": floor,
    "min": minimum,
    "max": maximum,
    "lt": less,
    "le": less_equal,
    "eq": equal,
    "and": logical_and,
    "or": logical_or,
    "not": logical_not,
    "where": where,
}
"""What each operation of a graph is on numbers and symbols."""


def spd_solve_block(A: Any, B: Any) -> list[list[Scalar]]:
    """A⁻¹B by the block "spd_solve" of nested lists A (n, n) and B (n, m)."""
    n, m = len(B), len(B[0])
    arguments = [_scalar(A[i][j]) for i in range(n) for j in range(i + 1)] + [_scalar(x) for row in B for x in row]
    table = next((x.table for x in arguments if type(x) is Expr), None)
    if table is None:
        solution = np.linalg.solve(np.array(A, dtype=float), np.array(B, dtype=float))
        return [[float(x) for x in row] for row in solution]
    block = table.node("block", tuple(_index(table, x) for x in arguments), ("spd_solve", n, m))
    return [[Expr(table, table.node("part", (block,), i * m + j)) for j in range(m)] for i in range(n)]
