"""Derivatives on the graph: exact, forward (by columns) and reverse (by rows), as new nodes of the same trace.

Both modes carry sparse rows: a node has a derivative only by the inputs it depends on, or for the outputs that depend on it,
so the structural zeros of a Jacobian cost nothing. At points where a function has no derivative, such as |x| at 0, one of the
one-sided derivatives (or their mean) is taken. In the branch of a `where` that is not chosen forward derivatives may be
infinite without harm; reverse ones may not, since 0·∞ is not a number: choose the argument before the function there,
√(where(x > 0, x, 1)).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from ...arrays import Array
from ...errors import TraceError
from ..graph import Graph
from ..ops import OPS
from ..trace import functions
from ..trace.builder import GraphBuilder
from ..trace.expr import Expr, Scalar, expr
from ..trace.symbols import Symbols, symbols
from ..trace.trace import trace, variables
from ..walk import needed
from .evaluate import evaluate

Mode = Literal["forward", "reverse"]
Row = dict[int, Scalar]
"""Derivatives of one node by the number of the input (forward), or of each output by one node (reverse)."""


def jacobian(outputs: Array, inputs: Array, mode: Mode | None = None) -> Symbols:
    """∂outputs/∂inputs, of shape (*outputs.shape, *inputs.shape); inputs are arguments of the traced function.

    The default mode is the one that makes fewer nodes.
    """
    outputs, inputs = symbols(outputs), symbols(inputs)
    ys, xs = outputs.ravel().tolist(), inputs.ravel().tolist()
    jacobian = np.zeros((len(ys), len(xs)), dtype=object) + 0.0
    if xs and any(isinstance(y, Expr) for y in ys):
        table, nodes = _inputs(xs)
        columns = {k: {c: 1.0} for c, k in enumerate(nodes)}
        active = _active(table, ys, nodes)
        if (mode or _cheaper(table, ys, nodes, active)) == "forward":
            rows = _forward(table, active, columns)
            for r, y in enumerate(ys):
                if isinstance(y, Expr):
                    for c, x in rows.get(y.index, {}).items():
                        jacobian[r, c] = x
        else:
            adjoints = _reverse(table, active, [(y, {r: 1.0}) for r, y in enumerate(ys)])
            for c, k in enumerate(nodes):
                for r, x in adjoints.get(k, {}).items():
                    jacobian[r, c] = x
    return symbols(jacobian.reshape(outputs.shape + inputs.shape))


def jvp(outputs: Array, inputs: Array, direction: Array) -> Symbols:
    """The derivative of the outputs along a direction of the inputs: J · direction, in the shape of the outputs."""
    outputs, inputs, direction = symbols(outputs), symbols(inputs), symbols(direction)
    ys = outputs.ravel().tolist()
    table, nodes = _inputs(inputs.ravel().tolist())
    seeds = {k: {0: x} for k, x in zip(nodes, _same(direction, inputs), strict=True) if isinstance(x, Expr) or x}
    rows = _forward(table, _active(table, ys, nodes), seeds)
    result = np.zeros(len(ys), dtype=object) + 0.0
    for r, y in enumerate(ys):
        if isinstance(y, Expr):
            result[r] = rows.get(y.index, {}).get(0, 0.0)
    return symbols(result.reshape(outputs.shape))


def vjp(outputs: Array, inputs: Array, weights: Array) -> Symbols:
    """The gradient of Σ weights · outputs: Jᵀ · weights, in the shape of the inputs, at a few times the cost of the outputs."""
    outputs, inputs, weights = symbols(outputs), symbols(inputs), symbols(weights)
    ys = outputs.ravel().tolist()
    table, nodes = _inputs(inputs.ravel().tolist())
    seeds = [(y, {0: w}) for y, w in zip(ys, _same(weights, outputs), strict=True) if isinstance(w, Expr) or w]
    adjoints = _reverse(table, _active(table, ys, nodes), seeds)
    result = np.zeros(len(nodes), dtype=object) + 0.0
    for c, k in enumerate(nodes):
        result[c] = adjoints.get(k, {}).get(0, 0.0)
    return symbols(result.reshape(inputs.shape))


def gradient(output: Array, inputs: Array) -> Symbols:
    """∂output/∂inputs of a scalar output, by the reverse mode."""
    return vjp(output, inputs, np.ones(np.shape(output)))


def jacobian_of(fn: Callable[[Array], Array], x: Array, mode: Mode | None = None) -> tuple[Symbols, Symbols]:
    """fn(x) and its Jacobian at x, which may be any array of symbols and numbers."""
    x = symbols(x)
    table = next((v.table for v in x.ravel().tolist() if isinstance(v, Expr)), None) or GraphBuilder()
    free = variables(table, ("free", len(table.op)), x.shape)
    y = symbols(fn(free))
    return substitute(y, free, x), substitute(jacobian(y, free, mode), free, x)


def derivative(graph: Graph, output: int = 0, wrt: int | str = 0, mode: Mode | None = None) -> Graph:
    """The graph of ∂output/∂wrt, on the same inputs, of shape (*shape of the output, *shape of the input)."""
    if isinstance(wrt, str):
        if wrt not in graph.input_names:
            raise TraceError(f"{graph.name} has no input {wrt!r}. Expected one of: {', '.join(graph.input_names)}.")
        wrt = graph.input_names.index(wrt)

    def of(*inputs: Array) -> Array:
        return jacobian(evaluate(graph, *inputs)[output], inputs[wrt], mode)

    shapes = dict(zip(graph.input_names, graph.input_shapes, strict=True))
    return trace(of, shapes, f"d_{graph.name}_d_{graph.input_names[wrt]}")


def substitute(outputs: Array, inputs: Array, values: Array) -> Symbols:
    """The outputs with the inputs, which are input nodes, replaced by the values."""
    outputs, inputs, values = symbols(outputs), symbols(inputs), symbols(values)
    ys = outputs.ravel().tolist()
    if not inputs.size:
        return outputs
    table, nodes = _inputs(inputs.ravel().tolist())
    new: dict[int, Any] = dict(zip(nodes, _same(values, inputs), strict=True))
    for k in _active(table, ys, nodes):
        if k in new:
            continue
        op, value = table.op[k], table.value[k]
        args = [new[j] if j in new else expr(table, j) for j in table.args[k]]
        if op == "block":
            new[k] = _solve(value, args)
        elif op == "part":
            new[k] = args[0][value]
        else:
            new[k] = functions.OPERATIONS[op](*args)
    result = np.empty(len(ys), dtype=object)
    result[:] = [new.get(y.index, y) if isinstance(y, Expr) else y for y in ys]
    return symbols(result.reshape(outputs.shape))


def _same(x: Symbols, like: Symbols) -> list[Scalar]:
    if x.shape != like.shape:
        x = symbols(np.broadcast_to(x, like.shape))
    return x.ravel().tolist()


def _inputs(xs: Sequence[Any]) -> tuple[GraphBuilder, list[int]]:
    """The builder and the nodes of the symbols to differentiate by."""
    for x in xs:
        if not isinstance(x, Expr) or x.table.op[x.index] != "input":
            raise TraceError(
                f"can differentiate only by arguments of the traced function, not by {x!r}. "
                "Write jacobian_of(fn, x) to differentiate a function at a computed x."
            )
    return xs[0].table, [x.index for x in xs]


# Which nodes take part, and how many derivatives each mode makes


def _active(table: GraphBuilder, ys: Iterable[Any], nodes: Sequence[int]) -> list[int]:
    """The nodes between inputs and outputs, both included, in order."""
    roots = [y.index for y in ys if isinstance(y, Expr)]
    args = table.args[: max(roots, default=-1) + 1]
    wanted = needed(args, roots)
    depends = bytearray(len(wanted))
    for k in nodes:
        if k < len(depends):
            depends[k] = 1
    active = []
    for k in range(min(nodes), len(wanted)):
        if wanted[k]:
            if not depends[k]:
                for j in args[k]:
                    if depends[j]:
                        depends[k] = 1
                        break
            if depends[k]:
                active.append(k)
    return active


def _cheaper(table: GraphBuilder, ys: Sequence[Any], nodes: Sequence[int], active: Sequence[int]) -> Mode:
    args = table.args
    columns: dict[int, int] = {k: 1 << c for c, k in enumerate(nodes)}
    forward = 0
    for k in active:
        mask = columns.get(k, 0)
        for j in args[k]:
            mask |= columns.get(j, 0)
        columns[k] = mask
        forward += mask.bit_count()
    rows: dict[int, int] = {}
    for r, y in enumerate(ys):
        if isinstance(y, Expr):
            rows[y.index] = rows.get(y.index, 0) | 1 << r
    reverse = 0
    for k in reversed(active):
        mask = rows.get(k, 0)
        reverse += mask.bit_count()
        for j in args[k]:
            rows[j] = rows.get(j, 0) | mask
    return "forward" if forward <= reverse else "reverse"


# The rules


def _partials(table: GraphBuilder, k: int, wanted: Container[int]) -> list[tuple[int, Scalar]]:
    """∂node/∂argument for each of the wanted arguments of a smooth operation."""
    args = table.args[k]
    values = [expr(table, j) for j in args]
    return [(j, by(Expr(table, k), *values)) for j, by in zip(args, OPS[table.op[k]].partials, strict=False) if j in wanted]


def _choice(table: GraphBuilder, k: int) -> tuple[Scalar, int, int] | None:
    """(condition, node if true, node if false) of where, min and max."""
    op, args = table.op[k], table.args[k]
    if op == "where":
        return expr(table, args[0]), args[1], args[2]
    choice = OPS[op].choice if op in OPS else None
    return (choice(*(expr(table, j) for j in args)), *args) if choice else None


def _forward(table: GraphBuilder, active: Sequence[int], seeds: dict[int, Row]) -> dict[int, Row]:
    """The derivatives of every active node by the numbered inputs."""
    rows: dict[int, Row] = dict(seeds)
    blocks: dict[int, dict[int, Row]] = {}
    none: Row = {}
    for k in active:
        if k in rows:
            continue
        op = table.op[k]
        if op == "part":
            rows[k] = blocks.get(table.args[k][0], {}).get(table.value[k], none)
            continue
        if op == "block":
            blocks[k] = _forward_block(table, k, rows)
            continue
        choice = _choice(table, k)
        row: Row = {}
        if choice is not None:
            condition, i, j = choice
            yes, no = rows.get(i, none), rows.get(j, none)
            for c in {**yes, **no}:
                row[c] = functions.where(condition, yes.get(c, 0.0), no.get(c, 0.0))
        else:
            for i, partial in _partials(table, k, {j for j in table.args[k] if rows.get(j)}):
                for c, x in rows.get(i, none).items():
                    term = partial * x
                    row[c] = row[c] + term if c in row else term
        rows[k] = {c: x for c, x in row.items() if isinstance(x, Expr) or x}
    return rows


def _reverse(table: GraphBuilder, active: Sequence[int], seeds: Sequence[tuple[Any, Row]]) -> dict[int, Row]:
    """The derivatives of the numbered outputs by every active node."""
    part_of = set(active)
    rows: dict[int, Row] = {}
    blocks: dict[int, dict[int, Row]] = {}

    def put(k: int, r: int, x: Scalar) -> None:
        if k in part_of and (isinstance(x, Expr) or x):
            row = rows.setdefault(k, {})
            row[r] = row[r] + x if r in row else x

    for y, seed in seeds:
        if isinstance(y, Expr):
            for r, x in seed.items():
                put(y.index, r, x)
    for k in reversed(active):
        op = table.op[k]
        if op == "block":
            if k in blocks:
                _reverse_block(table, k, blocks[k], put)
            continue
        row = rows.get(k)
        if not row:
            continue
        if op == "part":
            blocks.setdefault(table.args[k][0], {})[table.value[k]] = row
            continue
        if op == "input":
            continue
        choice = _choice(table, k)
        if choice is not None:
            condition, i, j = choice
            for r, x in row.items():
                put(i, r, functions.where(condition, x, 0.0))
                put(j, r, functions.where(condition, 0.0, x))
            continue
        for i, partial in _partials(table, k, part_of):
            for r, x in row.items():
                put(i, r, partial * x)
    return rows


# Blocks. X = A⁻¹B: dX = A⁻¹(dB - dA X); with X̄ the derivative by X: B̄ = A⁻¹X̄, Ā = -B̄Xᵀ.


def _solve(value: tuple[Any, ...], args: Sequence[Scalar]) -> list[Scalar]:
    """The parts of a block "spd_solve" with these arguments."""
    _, n, m = value
    A = [[args[_lower(i, j)] for j in range(n)] for i in range(n)]
    right = args[n * (n + 1) // 2 :]
    X = functions.spd_solve_block(A, [right[i * m : i * m + m] for i in range(n)])
    return [x for row in X for x in row]


def _lower(i: int, j: int) -> int:
    return i * (i + 1) // 2 + j if i >= j else j * (j + 1) // 2 + i


def _matrices(table: GraphBuilder, k: int) -> tuple[int, int, list[Scalar], list[list[Scalar]]]:
    """n, m, the lower triangle of A, and X."""
    kind, n, m = table.value[k]
    if kind != "spd_solve":
        raise TraceError(f"no derivative is known of the block {kind!r}")
    lower = [expr(table, j) for j in table.args[k][: n * (n + 1) // 2]]
    X = [[Expr(table, table.node("part", (k,), i * m + j)) for j in range(m)] for i in range(n)]
    return n, m, lower, X


def _forward_block(table: GraphBuilder, k: int, rows: dict[int, Row]) -> dict[int, Row]:
    n, m, lower, X = _matrices(table, k)
    args = table.args[k]
    none: Row = {}
    columns = sorted({c for j in args for c in rows.get(j, none)})
    if not columns:
        return {}
    right = args[n * (n + 1) // 2 :]
    B: list[list[Scalar]] = [[] for _ in range(n)]
    for c in columns:
        for i in range(n):
            dA = [rows.get(args[_lower(i, p)], none).get(c, 0.0) for p in range(n)]
            for j in range(m):
                x = rows.get(right[i * m + j], none).get(c, 0.0)
                for p in range(n):
                    x = x - dA[p] * X[p][j]
                B[i].append(x)
    dX = functions.spd_solve_block([[lower[_lower(i, j)] for j in range(n)] for i in range(n)], B)
    return {i * m + j: {c: dX[i][s * m + j] for s, c in enumerate(columns)} for i in range(n) for j in range(m)}


def _reverse_block(table: GraphBuilder, k: int, parts: dict[int, Row], put: Callable[[int, int, Scalar], None]) -> None:
    n, m, lower, X = _matrices(table, k)
    args = table.args[k]
    outputs = sorted({r for row in parts.values() for r in row})
    bar = [[parts.get(i * m + j, {}).get(r, 0.0) for r in outputs for j in range(m)] for i in range(n)]
    B = functions.spd_solve_block([[lower[_lower(i, j)] for j in range(n)] for i in range(n)], bar)
    right = args[n * (n + 1) // 2 :]
    for s, r in enumerate(outputs):
        for i in range(n):
            for j in range(m):
                put(right[i * m + j], r, B[i][s * m + j])
            for j in range(i + 1):
                x: Scalar = 0.0
                for p in range(m):
                    x = x - B[i][s * m + p] * X[j][p]
                    if i != j:
                        x = x - B[j][s * m + p] * X[i][p]
                put(args[_lower(i, j)], r, x)
