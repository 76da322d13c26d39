"""Reference values of a graph at some states, with bounds on rounding errors: for comparison with kernels.

Rounding errors can be of any size: sums cancel, choices are near a tie, systems are nearly singular. So
the graph is evaluated several times, every number in it, constants and inputs too, changed at random by some thousand units in the
last place. What the results then scatter by is what rounding can explain. An error in a kernel is larger by many orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import Array, solve_spd
from .graph import Graph
from .passes.evaluate import NUMPY

COPIES = 7
"""The number of evaluations with noise; if a difference is found, many more decide."""
MANY = 48
NOISE = {"float64": 2.0**-40, "float32": 2.0**-17}
"""Relative size of the noise: 4096 and 64 units in the last place."""
ROWS = 509
"""Different rows of noise; a prime, so that nodes that belong together do not share one."""


@dataclass(frozen=True)
class Trial:
    """States, the reference results there, and the tolerated differences; NaN where rounding decides the result."""

    graph: Graph
    dtype: str
    inputs: list[Array]
    expected: list[Array]
    allowed: list[Array]

    def repeated(self, count: int) -> Trial:
        """The states repeated cyclically, `count` in all."""
        again = [[np.resize(x, (count, *x.shape[1:])) for x in side] for side in (self.inputs, self.expected, self.allowed)]
        return Trial(self.graph, self.dtype, *again)

    def wrong(self, results: Sequence[Array]) -> list[Array]:
        """True for entries of the results, (states, *shape) each, that rounding does not explain."""
        found = []
        with np.errstate(all="ignore"):
            for got, expected, allowed in zip(results, self.expected, self.allowed, strict=True):
                close = np.abs(np.asarray(got, dtype=float) - expected) <= allowed
                pole = (allowed > np.abs(expected)) & (allowed * NOISE[self.dtype] > 1.0)  # nothing but rounding, amplified
                found.append(np.isfinite(allowed) & ~close & ~pole)
        return found

    def described(self, results: Sequence[Array]) -> str:
        """A description of the first difference that rounding does not explain, also under more noise; empty if there is none."""
        if not any(bad.any() for bad in self.wrong(results)):
            return ""
        closer = attempt(self.graph, self.inputs, self.dtype, MANY, seed=2)
        bounds = [np.maximum(x, y) for x, y in zip(self.allowed, closer.allowed, strict=True)]
        for k, bad in enumerate(replace(self, allowed=bounds).wrong(results)):
            if bad.any():
                place = tuple(int(i) for i in np.argwhere(bad)[0])
                got, wanted, allowed = (float(x[place]) for x in (results[k], self.expected[k], bounds[k]))
                return (
                    f"{int(bad.sum())} of {bad.size} entries of result {k} differ; entry {place[1:]} is {got!r}, as written "
                    f"{wanted!r}, and rounding explains {allowed:.1e}"
                )
        return ""


def attempt(graph: Graph, inputs: Sequence[Array], dtype: str, copies: int = COPIES, seed: int = 1) -> Trial:
    """The results of the graph for inputs (states, *shape), and their scatter under noise."""
    count = len(inputs[0]) if inputs else 1
    rows = [np.asarray(x, dtype=dtype).astype(float).reshape(count, -1).T for x in inputs]
    noise = np.random.default_rng(seed).uniform(-NOISE[dtype], NOISE[dtype], size=(ROWS, copies + 1, count)) + 1.0
    noise[:, 0] = 1.0
    noise = noise.reshape(ROWS, -1)
    found = _run(graph, [np.tile(x, copies + 1) for x in rows], noise)
    single = _run(graph, [x.astype(np.float32) for x in rows], None) if dtype == "float32" else None
    expected, allowed = [], []
    for k, shape in enumerate(graph.output_shapes):
        y = found[k].reshape(-1, copies + 1, count)
        with np.errstate(all="ignore"):
            spread = np.abs(y[:, 1:] - y[:, :1]).max(axis=1, initial=0.0)
            size = np.abs(y[:, 0]).max(axis=0, initial=0.0, where=np.isfinite(y[:, 0]))
            bound = 4.0 * spread + NOISE[dtype] * size
            if single is not None:  # what single precision overflows or loses
                bound += 16.0 * np.abs(single[k].astype(float) - y[:, 0])
        expected.append(y[:, 0].T.reshape(count, *shape))
        allowed.append(bound.T.reshape(count, *shape))
    return Trial(graph, dtype, list(inputs), expected, allowed)


def _run(graph: Graph, rows: list[Array], noise: Array | None) -> list[Array]:
    """The outputs (size, columns) of the graph, node by node; with noise every number is multiplied by a row of it."""
    columns = rows[0].shape[1] if rows else 1 if noise is None else noise.shape[1]
    kind = rows[0].dtype.type if rows else np.float64
    values: list[Any] = []
    last = {j: k for k, args in enumerate(graph.args) for j in args}
    last.update((k, len(graph)) for nodes in graph.outputs for k in nodes)
    with np.errstate(all="ignore"):
        for k, (op, args, value) in enumerate(zip(graph.op, graph.args, graph.value, strict=True)):
            if op == "block":
                x = _solved(value, [values[j] for j in args], columns)
            elif op == "part":
                x = values[args[0]][value]
            elif op == "input":
                x = rows[value[0]][value[1]]
            elif op == "const":
                x = np.asarray(value, dtype=kind)
            elif op == "atan2" and noise is not None:  # the sign of a zero is not kept: the cut is a tie
                x = NUMPY[op](values[args[0]] + 1e-300 * (noise[k % ROWS] - 1.0), values[args[1]])
            elif op == "eq" and noise is not None:
                a, b = (np.broadcast_to(values[j], (columns,)) for j in args)
                x = _equal(a, b, noise[k % ROWS])
            else:
                x = NUMPY[op](*[values[j] for j in args])
            if noise is not None and op != "block" and x.dtype.kind == "f":
                x = x * noise[k % ROWS]
            values.append(x)
            for j in args:
                if last[j] == k:  # so that memory holds what is still needed
                    values[j] = None
    return [
        np.stack([np.broadcast_to(values[k], (columns,)) for k in nodes]) if nodes else np.zeros((0, columns))
        for nodes in graph.outputs
    ]


def _equal(x: Array, y: Array, noise: Array) -> Array:
    """x == y, where they are equal but for rounding without noise in some copies only: noise alone would never let them be equal."""
    count = int((noise == 1.0).sum())
    a, b = x[:count], y[:count]
    near = np.abs(a - b) <= NOISE["float64"] * (np.abs(a) + np.abs(b))
    equal: Array = np.where(noise == 1.0, x == y, (x == y) | (np.resize(near, x.shape) & (noise > 1.0)))
    return equal


def _solved(value: tuple[Any, ...], args: list[Any], columns: int) -> Array:
    """The parts (n·m, columns) of a block "spd_solve"."""
    _, n, m = value
    numbers = np.stack([np.broadcast_to(x, (columns,)) for x in args], axis=-1)
    lower = np.tril_indices(n)
    A = np.zeros((columns, n, n), numbers.dtype)
    A[:, lower[0], lower[1]] = numbers[:, : len(lower[0])]
    return solve_spd(A, numbers[:, len(lower[0]) :].reshape(columns, n, m)).reshape(columns, n * m).T
