"""The elementary functions of symbols and numbers, and what each operation of a graph is on them.

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
from .builder import GraphBuilder, quotient
from .expr import Expr, Scalar, equal, expr, less, less_equal, logical_and, logical_not, logical_or, node_of, scalar, where

__all__ = ["equal", "less", "less_equal", "logical_and", "logical_not", "logical_or", "where"]


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
    x = scalar(x)
    if type(x) is float:
        return _sin(x)
    opposite = _negated(x)
    return _unary("sin", x) if opposite is None else -_unary("sin", opposite)


def cos(x: Scalar) -> Scalar:
    """The cosine; an even function."""
    x = scalar(x)
    if type(x) is float:
        return _cos(x)
    opposite = _negated(x)
    return _unary("cos", x if opposite is None else opposite)


def exp(x: Scalar) -> Scalar:
    """eˣ"""
    x = scalar(x)
    return _exp(x) if type(x) is float else _unary("exp", x)


def log(x: Scalar) -> Scalar:
    """The natural logarithm."""
    x = scalar(x)
    return _log(x) if type(x) is float else _unary("log", x)


def sqrt(x: Scalar) -> Scalar:
    """The square root."""
    x = scalar(x)
    return _sqrt(x) if type(x) is float else _unary("sqrt", x)


def floor(x: Scalar) -> Scalar:
    """The largest integer ≤ x."""
    x = scalar(x)
    if type(x) is float:
        return float(math.floor(x)) if math.isfinite(x) else x
    return _unary("floor", x)


def absolute(x: Scalar) -> Scalar:
    """|x|"""
    x = scalar(x)
    if type(x) is float:
        return abs(x)
    opposite = _negated(x)
    return _unary("abs", x if opposite is None else opposite)


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """The angle of the vector (x, y)."""
    y, x = scalar(y), scalar(x)
    if type(x) is float and type(y) is float:
        return math.atan2(y, x)
    table = (y if type(x) is float else x).table
    return Expr(table, table.node("atan2", (node_of(table, y), node_of(table, x))))


def _extremum(op: str, x: Scalar, y: Scalar) -> Scalar:
    x, y = scalar(x), scalar(y)
    if type(x) is float and type(y) is float:
        if math.isnan(x) or math.isnan(y):
            return math.nan
        return min(x, y) if op == "min" else max(x, y)
    table = (y if type(x) is float else x).table
    i, j = node_of(table, x), node_of(table, y)
    return x if i == j else Expr(table, table.node(op, (i, j)))


def minimum(x: Scalar, y: Scalar) -> Scalar:
    """The lesser of the two."""
    return _extremum("min", x, y)


def maximum(x: Scalar, y: Scalar) -> Scalar:
    """The greater of the two."""
    return _extremum("max", x, y)


def divide(x: Scalar, y: Scalar) -> Scalar:
    """x / y; of numbers as NumPy has it, x / 0 = ±inf."""
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
    """⌊x / y⌋"""
    return floor(divide(x, y))


def remainder(x: Scalar, y: Scalar) -> Scalar:
    """x - ⌊x / y⌋ y, of the sign of y."""
    return x - floor(divide(x, y)) * y


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


def folded(table: GraphBuilder, op: str, args: tuple[int, ...], value: Any) -> int:
    """The node op(args), folded as in a trace."""
    if op == "const":
        return table.const(value)
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
