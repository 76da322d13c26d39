"""Users' functions: traced at every use, with a bounded cache of compiled code keyed by the trace.

A user's function may read
variables that change between calls: gains, targets, attributes of an object. So the function itself is not a valid cache key. It is
traced each time, which usually takes less than a millisecond, and costly results (simplified graphs, machine code) are cached by
the content of that trace.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from .arrays import Array, namespace, stack

if TYPE_CHECKING:
    from .kernel.graph import Graph

T = TypeVar("T")

KEPT = 128
"""How many results of users' functions (compiled code, graphs) a robot caches; the least recently used is dropped first."""


class Recent:
    """A least-recently-used cache."""

    def __init__(self, size: int = KEPT) -> None:
        self.size = size
        self._made: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self._made)

    def get(self, key: Any, make: Callable[[], T]) -> T:
        """The cached value of this key; on a miss, make() is called. Two threads may both call it; neither waits for the other."""
        found: T | None = self._made.pop(key, None)
        if found is None:
            found = make()
        self._made[key] = found  # the last used stands last
        while len(self._made) > self.size:
            with contextlib.suppress(RuntimeError, StopIteration):  # another thread was quicker
                self._made.pop(next(iter(self._made)), None)
        return found


def recent(robot: Any, key: Any, make: Callable[[], T]) -> T:
    """The value of make(), cached on the robot under a key that determines it."""
    store: Recent = robot._cache.setdefault("recent", Recent())
    return store.get(key, make)


@dataclass(frozen=True)
class Traced:
    """A user's function as traced at one time. Two are equal if they perform the same operations in the same order."""

    digest: str
    graph: Graph = field(compare=False, repr=False)
    """The graph as traced, before simplification."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        return self.graph.output_shapes[0]

    def __call__(self, *arrays: Array) -> Array:
        """The first result, for arrays of every kind with batch axes in front."""
        return evaluated(self.graph, *arrays)


def traced(fn: Callable[..., Any], shapes: Mapping[str, tuple[int, ...]], name: str) -> Traced:
    """The trace of fn for arrays of these shapes; other variables that fn reads become constants with their present values."""
    from .kernel.runtime.cache_key import of_graph
    from .kernel.trace.trace import trace

    graph = trace(fn, shapes, name)
    return Traced(of_graph(graph), graph)


def evaluated(graph: Graph, *arrays: Array) -> Array:
    """The first output of a graph for arrays of any kind with batch axes in front."""
    import numpy as np

    from .kernel.ops import OPS
    from .kernel.passes.evaluate import evaluate

    xp = namespace(*arrays)
    if xp is np or xp.__name__.endswith("symbols"):
        return evaluate(graph, *arrays)[0]
    columns = []
    for x in arrays:
        parts = np.empty(x.shape[-1], dtype=object)
        for k in range(len(parts)):
            parts[k] = x[..., k]
        columns.append(parts)
    operations = {name: _lifted(getattr(xp, op.array), arrays[0]) for name, op in OPS.items()}
    (found,) = evaluate(graph, *columns, operations=operations)
    flat = stack([x + 0.0 * arrays[0][..., 0] for x in found.ravel().tolist()])
    return flat.reshape((*flat.shape[:-1], *found.shape))


def _lifted(operation: Callable[..., Array], reference: Array) -> Callable[..., Array]:
    """The operation of an array library, extended to accept plain Python numbers."""
    zero = 0.0 * reference[..., 0]
    return lambda *args: operation(*(x + zero if isinstance(x, float) else x for x in args))
