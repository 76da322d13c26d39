"""The elementary functions of symbols and numbers, and the table of operations on them.

Of numbers alone they are the functions of NumPy, infinities and NaN included; of symbols they make nodes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...arrays import solve_spd
from ...errors import TraceError
from ..op import quotient
from ..ops import OPS
from .builder import GraphBuilder
from .expr import Expr, Scalar, equal, expr, less, less_equal, logical_and, logical_not, logical_or, node_of, scalar, where

__all__ = ["equal", "less", "less_equal", "logical_and", "logical_not", "logical_or", "where"]


def _negated(x: Expr) -> Expr | None:
    """y if x is -y."""
    table = x.table
    return Expr(table, table.args[x.index][0]) if table.op[x.index] == "neg" else None


def _unary(name: str) -> Callable[[Scalar], Scalar]:
    op = OPS[name]

    def function(x: Scalar) -> Scalar:
        x = scalar(x)
        if type(x) is float:
            return op.number(x)
        opposite = _negated(x) if op.parity else None
        y = x if opposite is None else opposite
        result = Expr(y.table, y.table.node(name, (y.index,)))
        return -result if opposite is not None and op.parity == "odd" else result

    function.__doc__ = f"numpy.{op.numpy.__name__} of a number or symbol."
    return function


def _binary(name: str) -> Callable[[Scalar, Scalar], Scalar]:
    op = OPS[name]

    def function(x: Scalar, y: Scalar) -> Scalar:
        x, y = scalar(x), scalar(y)
        if type(x) is float and type(y) is float:
            return op.number(x, y)
        table = (y if type(x) is float else x).table
        i, j = node_of(table, x), node_of(table, y)
        return x if i == j and op.choice else Expr(table, table.node(name, (i, j)))

    function.__doc__ = f"numpy.{op.numpy.__name__} of numbers and symbols."
    return function


sin, cos, exp, log, sqrt, floor, absolute = (_unary(name) for name in ("sin", "cos", "exp", "log", "sqrt", "floor", "abs"))
atan2, fmod, minimum, maximum = (_binary(name) for name in ("atan2", "fmod", "min", "max"))


def divide(x: Scalar, y: Scalar) -> Scalar:
    """x / y; for numbers with NumPy's values, x / 0 = ±inf."""
    x, y = scalar(x), scalar(y)
    return quotient(x, y) if type(x) is float and type(y) is float else x / y


def _number_power(x: float, exponent: float) -> float:
    try:
        return math.pow(x, exponent)
    except ValueError:
        return math.inf if x == 0.0 else math.nan
    except OverflowError:
        return -math.inf if x < 0.0 and exponent % 2.0 else math.inf


def floor_divide(x: Scalar, y: Scalar) -> Scalar:
    """The integer n with x = n y + remainder(x, y), as NumPy's: 0.9 // 0.1 is 8, as 0.1 is a little more than a tenth; x / 0 for y = 0."""
    x, y = scalar(x), scalar(y)
    if type(x) is float and type(y) is float:
        return _of_numbers(np.floor_divide, x, y)
    m = fmod(x, y)
    n = divide(x - m, y) - where(_opposite(m, y), 1.0, 0.0)  # an integer but for rounding
    below = floor(n)
    nearest = below + where(less(0.5, n - below), 1.0, 0.0)
    if type(y) is float and y != 0.0:
        return nearest
    same = type(x) is Expr and type(y) is Expr and x.index == y.index  # 0 // 0, which x / x = 1 would hide
    return where(equal(y, 0.0), math.nan if same else divide(x, y), nearest)


def remainder(x: Scalar, y: Scalar) -> Scalar:
    """x - n y with n = ⌊x / y⌋, without rounding error unless x and y are of opposite signs; of the sign of y, as NumPy's."""
    x, y = scalar(x), scalar(y)
    if type(x) is float and type(y) is float:
        return _of_numbers(np.remainder, x, y)
    m = fmod(x, y)
    return where(_opposite(m, y), m + y, m)


def _of_numbers(function: np.ufunc, x: float, y: float) -> float:
    with np.errstate(all="ignore"):
        return float(function(x, y))


def _opposite(x: Scalar, y: Scalar) -> Any:
    """True if x and y are of opposite signs; 0 has none."""
    return logical_or(logical_and(less(x, 0.0), less(0.0, y)), logical_and(less(0.0, x), less(y, 0.0)))


def power(x: Scalar, exponent: Any) -> Scalar:
    """x to a power that is a number (integers and halves exactly), or a positive number to any power."""
    x, exponent = scalar(x), scalar(exponent)
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
    x = scalar(x)
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


_SPECIAL: dict[str, Callable[..., Scalar]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": divide,
    "neg": operator.neg,
    "lt": less,
    "le": less_equal,
    "eq": equal,
    "and": logical_and,
    "or": logical_or,
    "not": logical_not,
    "where": where,
}
OPERATIONS = {name: _SPECIAL.get(name) or (_unary if op.arity == 1 else _binary)(name) for name, op in OPS.items()}
"""The function of each operation of a graph on numbers and symbols."""


_FOLDED: dict[str, Callable[..., int]] = {
    "neg": GraphBuilder.neg,
    "add": GraphBuilder.add,
    "sub": GraphBuilder.sub,
    "mul": GraphBuilder.mul,
    "div": GraphBuilder.div,
}
"""The operations that a builder folds itself, on nodes."""


def folded(table: GraphBuilder, op: str, args: tuple[int, ...], value: Any) -> int:
    """The node op(args), folded as in a trace."""
    if op == "const":
        return table.const(value)
    if op in _FOLDED:
        return _FOLDED[op](table, *args)
    if op in OPERATIONS:
        result = OPERATIONS[op](*[expr(table, k) for k in args])
        return result.index if isinstance(result, Expr) else table.const(float(result))
    return table.node(op, args, value)


def spd_solve_block(A: Any, B: Any) -> list[list[Scalar]]:
    """A⁻¹B by the block "spd_solve" of nested lists A (n, n) and B (n, m); NaN where A is not positive definite."""
    n, m = len(B), len(B[0])
    arguments = [scalar(A[i][j]) for i in range(n) for j in range(i + 1)] + [scalar(x) for row in B for x in row]
    table = next((x.table for x in arguments if type(x) is Expr), None)
    if table is None:
        solution = solve_spd(np.array(A, dtype=float), np.array(B, dtype=float))
        return [[float(x) for x in row] for row in solution]
    block = table.node("block", tuple(node_of(table, x) for x in arguments), ("spd_solve", n, m))
    return [[Expr(table, table.node("part", (block,), i * m + j)) for j in range(m)] for i in range(n)]
