"""Every kernel proves itself: run at a few random states beside the plain evaluation of the graph as traced.

The two differ by rounding, and rounding can be anything between nothing and all digits: sums that cancel, choices near a tie,
systems that are nearly singular. So the graph as traced is evaluated several times, every number in it, constants and inputs
too, changed at random by some thousand units in the last place. What the results then scatter by is what rounding can explain.
An error in a kernel is larger by many orders.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import Array, solve_spd
from .graph import Graph

STATES = 6
COPIES = 7
"""Evaluations with noise beside the one without; on a difference, many more decide."""
MANY = 48
NOISE = {"float64": 2.0**-40, "float32": 2.0**-17}
"""Relative size of the noise: 4096 and 64 units in the last place."""
ROWS = 509
"""Different rows of noise; a prime, so that nodes that belong together do not share one."""


@dataclass(frozen=True)
class Trial:
    """States, what a kernel must give there, and how much it may differ; NaN where rounding decides."""

    graph: Graph
    dtype: str
    inputs: list[Array]
    expected: list[Array]
    allowed: list[Array]

    def repeated(self, count: int) -> Trial:
        """The states again and again, `count` in all."""
        again = [[np.resize(x, (count, *x.shape[1:])) for x in side] for side in (self.inputs, self.expected, self.allowed)]
        return Trial(self.graph, self.dtype, *again)

    def wrong(self, results: Sequence[Array]) -> list[Array]:
        """Which entries of the results, (states, *shape) each, rounding does not explain."""
        found = []
        with np.errstate(all="ignore"):
            for got, expected, allowed in zip(results, self.expected, self.allowed, strict=True):
                close = np.abs(np.asarray(got, dtype=float) - expected) <= allowed
                pole = ~np.isfinite(got) & (allowed > np.abs(expected)) & (allowed * NOISE[self.dtype] > 1.0)
                found.append(np.isfinite(allowed) & ~close & ~pole)
        return found

    def described(self, results: Sequence[Array]) -> str:
        """The first of the differences that rounding does not explain, also if it is looked at more closely; empty if none."""
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


def states(shapes: Sequence[tuple[int, ...]], count: int = STATES) -> list[Array]:
    """Inputs for `count` states, always the same: of both signs, positive, and small; where they look like poses, poses."""
    inputs, first = [], 7
    for shape in shapes:
        k = np.arange(first, first + count * math.prod(shape), dtype=float)
        first += k.size
        x = (2.0 * (k * k * 0.6180339887498949 % 1.0) - 1.0).reshape(count, *shape)  # quicker than a generator, and as irregular
        x[1::3] = 0.2 + np.abs(x[1::3])
        x[2::3] *= 0.3
        if shape[-2:] == (4, 4):
            x[..., :3, :3] = _rotations(x[..., :3, :3])
            x[..., 3, :] = (0.0, 0.0, 0.0, 1.0)
        inputs.append(x)
    return inputs


def _rotations(x: Array) -> Array:
    q = np.linalg.qr(x)[0]
    return q * np.sign(np.linalg.det(q))[..., None, None]


def attempt(graph: Graph, inputs: Sequence[Array], dtype: str, copies: int = COPIES, seed: int = 1) -> Trial:
    """What the graph gives for inputs (states, *shape), and by how much its results scatter under noise."""
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
    from .passes.evaluate import NUMPY  # here: a kernel from the cache needs none of it

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


def _solved(value: tuple[Any, ...], args: list[Any], columns: int) -> Array:
    """The parts (n·m, columns) of a block "spd_solve"."""
    _, n, m = value
    numbers = np.stack([np.broadcast_to(x, (columns,)) for x in args], axis=-1)
    lower = np.tril_indices(n)
    A = np.zeros((columns, n, n), numbers.dtype)
    A[:, lower[0], lower[1]] = numbers[:, : len(lower[0])]
    return solve_spd(A, numbers[:, len(lower[0]) :].reshape(columns, n, m)).reshape(columns, n * m).T


# A kernel beside its graph


def disagreement(graph: Graph, dtype: str, run: Callable[..., Sequence[Array]]) -> str:
    """What a kernel, `run(*inputs)` on states with one batch axis, does other than its graph; empty if nothing."""
    trial = attempt(graph.traced or graph, states(graph.input_shapes), dtype)
    for count in (1, 3 * STATES + 1):  # one state has code of its own; many are blocks of lanes, and some that remain
        some = trial.repeated(count)
        text = some.described(run(*some.inputs))
        if text:
            return text
    return ""


def sums(shapes: Sequence[tuple[int, ...]], run: Callable[..., Sequence[Array]]) -> list[list[float]]:
    """Of each result at the first state: how many entries are NaN, Σ|x|, and a sum that every entry changes."""
    found = []
    for x in run(*states(shapes, 1)):
        x = np.asarray(x, dtype=float).ravel()
        finite = np.where(np.isfinite(x), x, 0.0)
        weights = 1.0 + np.arange(x.size) * 0.6180339887498949 % 1.0
        found.append([float(np.count_nonzero(finite != x)), float(np.abs(finite).sum()), float(finite @ weights)])
    return found


def same_sums(kept: Any, now: list[list[float]]) -> bool:
    """Whether a kernel from the cache gives what it gave when it was made."""
    if not isinstance(kept, list) or len(kept) != len(now):
        return False
    return all(a[0] == b[0] and abs(a[2] - b[2]) <= 1e-9 * (a[1] + b[1]) for a, b in zip(kept, now, strict=True))


def save(graph: Graph, dtype: str, what: str) -> str:
    """Write the graph, as traced and as compiled, to a file for a report; its path, or a word why there is none."""
    import platform
    import tempfile

    from .. import __version__

    def plain(g: Graph | None) -> Any:
        names = ("name", "input_names", "input_shapes", "op", "args", "value", "outputs", "output_shapes")
        return None if g is None else {name: getattr(g, name) for name in names}

    content = {
        "version": __version__,
        "machine": [platform.machine(), platform.platform(), platform.processor(), np.__version__],
        "dtype": dtype,
        "what": what,
        "compiled": plain(graph),
        "traced": plain(graph.traced),
    }
    try:
        number, path = tempfile.mkstemp(prefix="coadjoint-kernel-", suffix=".json")
        with os.fdopen(number, "w", encoding="utf-8") as file:
            json.dump(content, file)
    except OSError as error:
        return f"(not saved: {error})"
    return path


def verify_every_call() -> bool:
    """Whether COADJOINT_VERIFY=full asks to compare every call of a kernel with the evaluation of its graph."""
    return os.environ.get("COADJOINT_VERIFY", "").strip().lower() == "full"
