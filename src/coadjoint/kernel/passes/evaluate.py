"""Evaluation of a graph node by node on arrays: slow and plain, the reference for all fast executions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...arguments import check_core
from ...arrays import Array
from ...errors import ShapeError
from ..graph import Graph
from ..ops import OPS
from ..trace import functions
from ..trace.symbols import Symbols, symbols

NUMPY: dict[str, Callable[..., Array]] = {name: op.numpy for name, op in OPS.items()}
"""The NumPy function of each operation."""


def evaluate(graph: Graph, *arrays: Array, operations: Mapping[str, Callable[..., Any]] | None = None) -> tuple[Array, ...]:
    """The outputs of a graph, always a tuple, for inputs with any batch axes in front of their shapes.

    Arrays of symbols give symbols: the graph is then traced anew into their trace. With `operations`, a function for each
    operation of the graph, it runs on arrays of anything else, such as mpmath's numbers; a function "spd_solve" among them is
    called with the matrices of a block.
    """
    inputs = [x if isinstance(x, np.ndarray) else np.asarray(x) for x in arrays]
    if len(inputs) != len(graph.input_names):
        raise ShapeError(f"{graph.name} takes {', '.join(graph.input_names)}, but {len(inputs)} arrays are given.")
    flat = []
    for name, shape, x in zip(graph.input_names, graph.input_shapes, inputs, strict=True):
        check_core(name, x, shape, f" for {graph.name}")
        flat.append(x.reshape(*x.shape[: x.ndim - len(shape)], math.prod(shape)).view(np.ndarray))
    symbolic = any(isinstance(x, Symbols) for x in inputs)
    if symbolic and any(x.ndim > 1 for x in flat):
        return _one_by_one(graph, flat, operations)
    if operations is None:
        operations = functions.OPERATIONS if symbolic else NUMPY
    values: list[Any] = []
    with np.errstate(all="ignore"):
        for op, args, value in zip(graph.op, graph.args, graph.value, strict=True):
            if op == "input":
                x = flat[value[0]][..., value[1]]
                values.append(x.item() if x.ndim == 0 and x.dtype == object else x)
            elif op == "const":
                values.append(value)
            elif op == "block":
                values.append(_block(value, [values[k] for k in args], symbolic, operations))
            elif op == "part":
                values.append(values[args[0]][value])
            else:
                values.append(operations[op](*[values[k] for k in args]))
    return tuple(
        _joined([values[k] for k in nodes], shape, flat, symbolic)
        for nodes, shape in zip(graph.outputs, graph.output_shapes, strict=True)
    )


def _one_by_one(graph: Graph, flat: list[Array], operations: Mapping[str, Callable[..., Any]] | None) -> tuple[Array, ...]:
    """The outputs for arrays of symbols with batch axes: the operations of symbols take one at a time."""
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in flat))
    wide = [np.broadcast_to(x, (*batch, x.shape[-1])) for x in flat]
    found = [np.empty((*batch, *shape), dtype=object) for shape in graph.output_shapes]
    for k in np.ndindex(*batch):
        one = (symbols(x[k].reshape(shape)) for x, shape in zip(wide, graph.input_shapes, strict=True))
        for whole, part in zip(found, evaluate(graph, *one, operations=operations), strict=True):
            whole[k] = part.item() if part.ndim == 0 else part
    return tuple(symbols(x) for x in found)


def _joined(values: list[Any], shape: tuple[int, ...], flat: list[Array], symbolic: bool) -> Array:
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in flat))
    if symbolic or (not batch and any(x.dtype == object for x in flat)):
        output = np.empty(len(values), dtype=object)
        for k, x in enumerate(values):
            output[k] = x
        return symbols(output.reshape(shape)) if symbolic else output.reshape(shape)
    if not values:
        return np.zeros((*batch, *shape))
    columns = [np.broadcast_to(x, batch) for x in values]
    return np.stack(columns, axis=-1).reshape((*batch, *shape))


def _block(value: tuple[Any, ...], arguments: list[Any], symbolic: bool, operations: Mapping[str, Callable[..., Any]]) -> list[Any]:
    """The parts of a block in row-major order."""
    kind, n, m = value
    if kind != "spd_solve":
        raise ValueError(f"no block is called {kind!r}")
    lower, right = arguments[: n * (n + 1) // 2], arguments[n * (n + 1) // 2 :]
    A = [[lower[max(i, j) * (max(i, j) + 1) // 2 + min(i, j)] for j in range(n)] for i in range(n)]
    B = [right[i * m : i * m + m] for i in range(n)]
    if symbolic:
        return [x for row in functions.spd_solve_block(A, B) for x in row]
    if "spd_solve" in operations:
        return [x for row in operations["spd_solve"](A, B) for x in row]
    signs: list[Any] = []

    def positive(d: Any) -> Any:
        signs.append(operations["lt"](0.0, d))
        return operations["where"](signs[-1], d, math.nan)

    X = ldl_solve(A, B, positive)
    definite = functools.reduce(operations["and"], signs)
    return [operations["where"](definite, x, math.nan) for row in X for x in row]


def ldl_solve(A: list[list[Any]], B: list[list[Any]], pivot: Callable[[Any], Any] = lambda d: d) -> list[list[Any]]:
    """A⁻¹B by LDLᵀ on lists of arrays or numbers of any kind; `pivot` is applied to every entry of D."""
    n, m = len(A), len(B[0])
    L: list[list[Any]] = [[None] * n for _ in range(n)]
    D: list[Any] = []
    X = [list(row) for row in B]
    for i in range(n):
        scaled: list[Any] = []
        for j in range(i):
            x = A[i][j]
            for k in range(j):
                x = x - scaled[k] * L[j][k]
            scaled.append(x)
            L[i][j] = x / D[j]
        d = A[i][i]
        for j in range(i):
            d = d - scaled[j] * L[i][j]
        D.append(pivot(d))
        for c in range(m):
            for j in range(i):
                X[i][c] = X[i][c] - L[i][j] * X[j][c]
    for c in range(m):
        for i in reversed(range(n)):
            X[i][c] = X[i][c] / D[i]
            for j in range(i + 1, n):
                X[i][c] = X[i][c] - L[j][i] * X[j][c]
    return X
