"""A function of arrays, run once on symbols, becomes an expression graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import TraceError
from ..graph import Graph
from ..walk import needed
from .builder import GraphBuilder
from .expr import Expr, Truth, where
from .symbols import Symbols, symbols


def trace(fn: Callable[..., Any], shapes: Mapping[str, tuple[int, ...]], name: str | None = None) -> Graph:
    """The graph of `fn`, called with one array of symbols for each of `shapes`, in their order.

    The arrays have no batch axes. `fn` returns an array or a tuple of arrays, of symbols or numbers. A branch on a value (`if x >
    0`) raises a TraceError: write it with `where`.
    """
    name = name or str(getattr(fn, "__name__", "function"))
    table = GraphBuilder()
    inputs = [variables(table, k, shape) for k, shape in enumerate(shapes.values())]
    try:
        with np.errstate(all="ignore"):  # inf and NaN are numbers like any other here
            returned = fn(*inputs)
    except (TypeError, AttributeError) as error:
        if isinstance(error, TraceError) or not any(word in str(error) for word in ("Expr", "dtype('O')")):
            raise
        raise TraceError(
            f"{name} cannot be traced: {error}. Its arrays hold symbols then, of which NumPy's functions for numbers know nothing: "
            "write it with arithmetic, coadjoint.where and coadjoint.arrays.solve_spd(A, B), A⁻¹B for symmetric positive definite A."
        ) from error
    except ValueError as error:
        if isinstance(error.__cause__, TraceError):  # NumPy hides it where it fills an array
            raise error.__cause__ from None
        raise
    except SystemError as error:
        cause: BaseException | None = error
        while isinstance(cause, SystemError):  # NumPy went on after an interrupt, perhaps more than once
            cause = cause.__cause__
        if isinstance(cause, KeyboardInterrupt):
            raise cause from None
        raise
    outputs = [_output(x, name) for x in (returned if isinstance(returned, (tuple, list)) else (returned,))]
    nodes = [[_node(table, x) for x in output.ravel().tolist()] for output in outputs]
    op, args, value, number = reachable(table.op, table.args, table.value, [k for row in nodes for k in row])
    return Graph(
        name=name,
        input_names=tuple(shapes),
        input_shapes=tuple(tuple(shape) for shape in shapes.values()),
        op=op,
        args=args,
        value=value,
        outputs=tuple(tuple(number[k] for k in row) for row in nodes),
        output_shapes=tuple(output.shape for output in outputs),
    )


def variables(table: GraphBuilder, argument: int | tuple[str, int], shape: Sequence[int]) -> Symbols:
    """Argument number `argument` of a traced function: an array of new input nodes. Other arguments are variables that are substituted."""
    array = np.empty(math.prod(shape), dtype=object)
    array[:] = [Expr(table, table.node("input", (), (argument, k))) for k in range(array.size)]
    return symbols(array.reshape(tuple(shape)))


_NO_ARRAY = "{} returned {}; a traced function returns an array or a tuple of arrays."


def _output(x: Any, name: str) -> Array:
    try:
        if x is not None and not isinstance(x, (str, dict, set)):
            return symbols(x).view(np.ndarray)
    except TypeError as error:
        raise TraceError(_NO_ARRAY.format(name, type(x).__name__)) from error
    raise TraceError(_NO_ARRAY.format(name, type(x).__name__))


def _node(table: GraphBuilder, x: Any) -> int:
    """The node of an element of an output."""
    if isinstance(x, Truth):
        x = where(x, 1.0, 0.0)
    if isinstance(x, Expr):
        if x.table is not table:
            raise TraceError("a traced function returned a symbol of another trace; return only what it computed.")
        return x.index
    try:
        return table.const(float(x))
    except (TypeError, ValueError):
        raise TraceError(f"a traced function returned {x!r} inside an array; only numbers and symbols can be.") from None


def reachable(
    op: Sequence[str], args: Sequence[tuple[int, ...]], value: Sequence[Any], roots: Sequence[int]
) -> tuple[list[str], list[tuple[int, ...]], list[Any], dict[int, int]]:
    """The nodes that the roots need, in the same order, and a map from their old numbers to the new ones."""
    kept = [k for k, wanted in enumerate(needed(args, roots)) if wanted]
    number = {k: new for new, k in enumerate(kept)}
    return (
        [op[k] for k in kept],
        [tuple([number[j] for j in args[k]]) for k in kept],
        [value[k] for k in kept],
        number,
    )
