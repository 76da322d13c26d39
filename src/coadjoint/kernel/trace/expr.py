"""Symbolic scalars: every operation on them makes a node of their builder, or finds an existing one. Constants are plain floats and
are folded: a node never has only constants as arguments, 0·x is the float 0.0,
1·x is x itself. As everywhere in computer algebra x is taken to be finite in 0·x and x - x.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import TraceError
from ..ops import OPS, TRUTH
from .builder import GraphBuilder

Scalar = Any
"""An `Expr` or a plain number."""

_NUMBERS = (float, int, np.floating, np.integer, np.bool_)


class Expr:
    """A symbolic scalar: node `index` of `table`."""

    __slots__ = ("index", "table")
    __coadjoint_symbol__ = True
    __hash__ = None  # type: ignore[assignment]  # x == y is a symbol, so symbols cannot be keys
    shape: tuple[int, ...] = ()
    ndim = 0
    size = 1
    dtype = np.dtype(object)

    def __init__(self, table: GraphBuilder, index: int) -> None:
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
            other = operand(other)
            if type(other) is not float:
                return other if other is NotImplemented else self * other
        if other == 0.0:
            return 0.0
        return self if other == 1.0 else Expr(table, table.scale(other, self.index))

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Scalar:
        table = self.table
        if type(other) is Expr:
            if other.table is not table:
                raise _foreign()
            k = table.add(self.index, other.index)
            return Expr(table, k) if table.op[k] != "const" else table.value[k]
        if type(other) is not float:
            other = operand(other)
            if type(other) is not float:
                return other if other is NotImplemented else self + other
        return self if other == 0.0 else Expr(table, table.add(self.index, table.const(other)))

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
            other = operand(other)
            if type(other) is not float:
                return other if other is NotImplemented else self - other
        return self + -other

    def __rsub__(self, other: Any) -> Scalar:
        other = operand(other)
        if type(other) is not float:
            return other if other is NotImplemented else other - self
        return Expr(self.table, self.table.sub(self.table.const(other), self.index))

    def __truediv__(self, other: Any) -> Scalar:
        other = operand(other)
        table = self.table
        if type(other) is Expr:
            if other.table is not table:
                raise _foreign()
            return 1.0 if other.index == self.index else Expr(table, table.div(self.index, other.index))
        if type(other) is not float:
            return other
        return Expr(table, table.div(self.index, table.const(other)))

    def __rtruediv__(self, other: Any) -> Scalar:
        other = operand(other)
        if type(other) is not float:
            return other if other is NotImplemented else other / self
        if other == 0.0:
            return 0.0
        return Expr(self.table, self.table.div(self.table.const(other), self.index))

    def __neg__(self) -> Expr:
        return Expr(self.table, self.table.neg(self.index))

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Scalar:
        return _function("absolute", self)

    def __pow__(self, exponent: Any) -> Scalar:
        return _function("power", self, exponent)

    def __rpow__(self, base: Any) -> Scalar:
        return _function("power", base, self)

    def __floordiv__(self, other: Any) -> Scalar:
        return _function("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Scalar:
        return _function("floor_divide", other, self)

    def __mod__(self, other: Any) -> Scalar:
        return _function("remainder", self, other)

    def __rmod__(self, other: Any) -> Scalar:
        return _function("remainder", other, self)

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
        """Indexing as for a NumPy scalar: only new axes, x[..., None]."""
        from .symbols import symbols

        return symbols(self)[index]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        from .symbols import apply

        return apply(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        from .symbols import symbols

        def lifted(x: Any) -> Any:
            if isinstance(x, (list, tuple)):
                return type(x)(map(lifted, x))
            return symbols(x) if isinstance(x, Expr) else x

        return function(*lifted(args), **{key: lifted(x) for key, x in options.items()})

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

    __int__ = __index__ = __complex__ = __round__ = __float__

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


def _function(name: str, *args: Any) -> Scalar:
    from . import functions

    if any(operand(x) is NotImplemented for x in args):
        return NotImplemented
    return getattr(functions, name)(*args)


def _foreign() -> TraceError:
    return TraceError(
        "symbols of two traces meet: a traced function used a symbol kept from another trace. Pass what the function "
        "depends on as an argument; keep no symbols in global variables, caches or closures."
    )


def operand(x: Any) -> Any:
    """x as an Expr or a float; NotImplemented if it is neither."""
    kind = type(x)
    if kind is Expr or kind is float:
        return x
    if kind is Truth:
        return x._number()
    return float(x) if isinstance(x, _NUMBERS) else NotImplemented


def scalar(x: Any) -> Scalar:
    x = operand(x)
    if x is NotImplemented:
        raise TraceError("a traced function works on numbers and symbols only; it was given something else.")
    return x


def node_of(table: GraphBuilder, x: Scalar) -> int:
    """The node of an Expr or a float."""
    if type(x) is float:
        return table.const(x)
    if x.table is not table:
        raise _foreign()
    return int(x.index)


def expr(table: GraphBuilder, index: int) -> Scalar:
    """Node `index` as an element of arrays: an Expr, or a float if it is a constant."""
    op = table.op[index]
    if op == "const":
        return table.value[index]
    return Truth(table, index) if op in TRUTH else Expr(table, index)


# Truth values


def _compare(op: str, x: Scalar, y: Any, swapped: bool = False) -> Any:
    x, y = operand(x), operand(y)
    if x is NotImplemented or y is NotImplemented:
        return NotImplemented
    if swapped:
        x, y = y, x
    if type(x) is float:
        if type(y) is float:
            return bool(OPS[op].number(x, y))
        table = y.table
    else:
        table = x.table
    return Truth(table, table.node(op, (node_of(table, x), node_of(table, y))))


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
    """x and y."""
    x, y = _truth(x), _truth(y)
    if type(x) is bool:
        return y if x else False
    if type(y) is bool:
        return x if y else False
    if x.index == y.index:
        return x
    return Truth(x.table, x.table.node("and", (x.index, node_of(x.table, y))))


def logical_or(x: Any, y: Any) -> Any:
    """x or y."""
    x, y = _truth(x), _truth(y)
    if type(x) is bool:
        return True if x else y
    if type(y) is bool:
        return True if y else x
    if x.index == y.index:
        return x
    return Truth(x.table, x.table.node("or", (x.index, node_of(x.table, y))))


def logical_not(x: Any) -> Any:
    """not x."""
    x = _truth(x)
    if type(x) is bool:
        return not x
    if x.table.op[x.index] == "not":
        return Truth(x.table, x.table.args[x.index][0])
    return Truth(x.table, x.table.node("not", (x.index,)))


def where(condition: Any, x: Scalar, y: Scalar) -> Scalar:
    """x where the condition holds, y elsewhere."""
    condition, x, y = _truth(condition), scalar(x), scalar(y)
    if type(condition) is bool:
        return x if condition else y
    table, i = condition.table, condition.index
    if type(x) is float and type(y) is float and x == y:
        return x
    if table.op[i] == "not":
        i, x, y = table.args[i][0], y, x
    j, k = node_of(table, x), node_of(table, y)
    if table.op[j] == "where" and table.args[j][2] == k:  # where(c, where(d, x, y), y): one choice by both
        return where(logical_and(Truth(table, i), Truth(table, table.args[j][0])), expr(table, table.args[j][1]), y)
    return x if j == k else Expr(table, table.node("where", (i, j, k)))
