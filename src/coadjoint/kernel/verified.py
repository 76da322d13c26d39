"""COADJOINT_VERIFY=full: every call of a kernel beside the plain evaluation of its graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..arguments import Shape
from ..errors import KernelWarning
from . import selftest
from .graph import Graph
from .runtime.function import CompiledFunction, Kernel, Recipe
from .trial import attempt

CHUNK = 64
"""States that are evaluated at once."""


class VerifiedFunction(CompiledFunction):
    """A compiled function whose results are compared, and replaced by those of the graph where they are wrong."""

    def __init__(
        self, kernel: Kernel, graph: Graph, otherwise: Callable[..., Any] | None = None, recipe: Recipe | None = None
    ) -> None:
        super().__init__(kernel, otherwise, recipe)
        self.source = graph

    @property
    def call(self) -> Callable[..., Any]:
        """This object: no call may pass it by."""
        return self

    def run(self, given: list[np.ndarray], batch: Shape, out: Any, threads: int | None) -> Any:
        """Run the kernel on copies of the inputs, compare, return: public functions and compiled ones all come here."""
        s = self.signature
        given = [np.array(x) for x in given]  # `out` may be one of them
        result = super().run(given, batch, out, threads)
        results = list(result) if len(s.output_shapes) != 1 else [result]
        flat = [np.broadcast_to(x, (*batch, *core)).reshape(-1, *core) for x, core in zip(given, s.input_shapes, strict=True)]
        found = [x.reshape(-1, *core) for x, core in zip(results, s.output_shapes, strict=True)]
        for start in range(0, len(found[0]) if found else 0, CHUNK):
            some = slice(start, start + CHUNK)
            self._compare([x[some] for x in flat], [x[some] for x in found])
        for x, y in zip(results, found, strict=True):
            x[...] = y.reshape(x.shape)
        return result

    def _compare(self, inputs: list[np.ndarray], results: list[np.ndarray]) -> None:
        trial = attempt(self.source.traced or self.source, inputs, self.signature.dtype)
        what = trial.described(results)
        if what:
            warn(self.source, self.signature.dtype, what)
            for x, y in zip(results, trial.expected, strict=True):
                x[...] = y

    def steps(self, inputs: list[np.ndarray], outputs: list[np.ndarray], threads: Any = None) -> None:
        """Step after step, each compared."""
        for step in range(outputs[0].shape[1]):
            result = self.compute(*(x[:, step] for x in inputs), threads=threads)
            for x, y in zip(outputs, result if isinstance(result, tuple) else (result,), strict=True):
                x[:, step] = y


def warn(graph: Graph, dtype: str, what: str) -> None:
    """Say that a kernel is wrong, and where its graph is."""
    path = selftest.save(graph, dtype, what)
    warnings.warn(
        f"the compiled kernel of {graph.name} does not compute what its source does: {what}. It is not used; results come from the "
        f"source. This is an error in coadjoint: please report it with the file {path}.",
        KernelWarning,
        stacklevel=2,
    )
