"""Every kernel proves itself: run at a few random states beside the plain evaluation of the graph as traced (`trial.py`).

The sums of its results at one state are kept in its file, and checked when it is loaded.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._version import __version__
from ..arrays import Array
from .graph import Graph

STATES = 6


NEAR = 0.01
"""The relative distance from the numbers of a robot at which a kernel for its structure is tried."""


def states(shapes: Sequence[tuple[int, ...]], count: int = STATES, example: Sequence[float] | None = None) -> list[Array]:
    """Inputs for `count` states, always the same: of both signs, positive, and small; where they look like poses, poses.

    With an example, the first input is that for the first state, and near it for the others.
    """
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
    if example is not None:
        inputs[0] = np.asarray(example) * (1.0 + NEAR * inputs[0] * (np.arange(count) > 0)[:, None])
    return inputs


def _rotations(x: Array) -> Array:
    q = np.linalg.qr(x)[0]
    return q * np.sign(np.linalg.det(q))[..., None, None]


def disagreement(graph: Graph, dtype: str, run: Callable[..., Sequence[Array]]) -> str:
    """The difference between a kernel, `run(*inputs)` on states with one batch axis, and its graph, in words; empty if none."""
    from .trial import attempt  # here: a kernel from the cache needs none of it

    trial = attempt(graph.traced or graph, states(graph.input_shapes, example=graph.example), dtype)
    for count in (1, 3 * STATES + 1):  # one state has code of its own; many are blocks of lanes, and some that remain
        some = trial.repeated(count)
        text = some.described(run(*some.inputs))
        if text:
            return text
    return ""


def sums(
    shapes: Sequence[tuple[int, ...]], run: Callable[..., Sequence[Array]], example: Sequence[float] | None = None
) -> list[list[float]]:
    """The sums of each result at the first state, by `summed`."""
    return [summed(x) for x in run(*states(shapes, 1, example))]


def summed(x: Array) -> list[float]:
    """The number of NaN or infinite entries, Σ|x| of the others, and a sum of them that every entry changes."""
    x = np.asarray(x, dtype=float).ravel()
    finite = np.where(np.isfinite(x), x, 0.0)
    weights = 1.0 + np.arange(x.size) * 0.6180339887498949 % 1.0
    return [float(np.count_nonzero(finite != x)), float(np.abs(finite).sum()), float(finite @ weights)]


def same_sums(kept: Any, now: list[list[float]]) -> bool:
    """True if a kernel from the cache gives what it gave when it was made."""
    if not isinstance(kept, list) or len(kept) != len(now):
        return False
    return all(a[0] == b[0] and abs(a[2] - b[2]) <= 1e-9 * (a[1] + b[1]) for a, b in zip(kept, now, strict=True))


def save(graph: Graph, dtype: str, what: str) -> str:
    """Write the graph, as traced and as compiled, to a file for a report; its path, or a word why there is none."""
    import platform
    import tempfile

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
    """True if COADJOINT_VERIFY=full asks to compare every call of a kernel with the evaluation of its graph."""
    return os.environ.get("COADJOINT_VERIFY", "").strip().lower() == "full"
