"""Users' functions, traced at every use.

A user's function may read variables that change between calls: gains, targets, attributes of an object. So the function itself is
not a valid cache key. It is traced each time, which usually takes less than a millisecond, and costly results (simplified graphs,
machine code) are cached by the content of that trace (`memo.recent`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .arrays import Array, namespace, stack
from .errors import CoadjointError


@dataclass(frozen=True)
class Traced:
    """A user's function as traced at one time. Two are equal if they perform the same operations in the same order."""

    digest: str
    graph: Any = field(compare=False, repr=False)
    """The graph as traced, before simplification."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        shape: tuple[int, ...] = self.graph.output_shapes[0]
        return shape

    def __call__(self, *arrays: Array) -> Array:
        """The first result, for arrays of every kind with batch axes in front."""
        return evaluated(self.graph, *arrays)


def traced(fn: Callable[..., Any], shapes: Mapping[str, tuple[int, ...]], name: str) -> Traced:
    """The trace of fn for arrays of these shapes; other variables that fn reads become constants with their present values."""
    from .kernel.runtime.cache_key import of_graph
    from .kernel.trace.trace import trace

    graph = trace(fn, shapes, name)
    return Traced(of_graph(graph), graph)


def check_pickles(fn: Any, what: str, remedy: str = "") -> None:
    """An error that names what a user's function belongs to if it cannot be pickled, and cloudpickle, which can, is not in use."""
    import pickle
    import sys

    try:
        pickle.dumps(fn)
    except Exception as error:
        if not any(name.endswith("cloudpickle") for name in list(sys.modules)):
            raise CoadjointError(
                f"{what} cannot be pickled, because its function cannot: {error}. Write it as a named function of a module{remedy}."
            ) from error


def evaluated(graph: Any, *arrays: Array) -> Array:
    """The first output of a graph for arrays of any kind with batch axes in front."""
    return all_evaluated(graph, *arrays)[0]


def all_evaluated(graph: Any, *arrays: Array) -> tuple[Array, ...]:
    """All outputs of a traced function, as arrays."""
    import numpy as np

    from .kernel.ops import OPS
    from .kernel.passes.evaluate import evaluate

    xp = namespace(*arrays)
    if xp is np or xp.__name__.endswith("symbols"):
        return evaluate(graph, *arrays)
    columns = []
    for x in arrays:
        parts = np.empty(x.shape[-1], dtype=object)
        for k in range(len(parts)):
            parts[k] = x[..., k]
        columns.append(parts)
    operations = {name: _lifted(getattr(xp, op.array), arrays[0]) for name, op in OPS.items()}

    def joined(found: Array) -> Array:
        flat = stack([x + 0.0 * arrays[0][..., 0] for x in found.ravel().tolist()])
        return flat.reshape((*flat.shape[:-1], *found.shape))

    return tuple(joined(found) for found in evaluate(graph, *columns, operations=operations))


def _lifted(operation: Callable[..., Array], reference: Array) -> Callable[..., Array]:
    """The operation of an array library, extended to accept plain Python numbers."""
    zero = 0.0 * reference[..., 0]
    return lambda *args: operation(*(x + zero if isinstance(x, float) else x for x in args))
