"""Functions of a robot as graphs that other libraries differentiate: each derivative is again a graph and is compiled.

A `Program` f has two derivatives. `along` is y' = ∂f/∂x x', linear in the directions x'; `pulled_back` is x̄ = (∂f/∂x)ᵀ ȳ, linear in the
weights ȳ. Either is the transpose of the other, so that with these two the rules of forward and reverse differentiation are closed:
any order of derivative is one of them, of one of them, of f.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ..arrays import Array, concat
from ..compiling import trace, with_values
from ..kernel.graph import Graph
from ..kernel.passes.simplify import simplify
from ..kernel.runtime import cache_key, native
from ..kernel.runtime.function import CompiledFunction
from ..kernel.trace.trace import trace as graph_of
from ..robot.robot import Robot

Places = tuple[int, ...]
T = TypeVar("T")


class Program:
    """A graph, compiled when it is first run. Two programs of equal graphs are equal."""

    def __init__(
        self,
        graph: Graph,
        written: Callable[..., Any],
        linear: Places = (),
        origin: tuple[str, Program, Places, Places] | None = None,
    ) -> None:
        self.graph = graph
        self.written = written
        """The function as written, on arrays of any library, unless this is a derivative."""
        self.linear = linear
        """The inputs in which the function is jointly linear."""
        self.origin = origin
        """The origin of a derivative: its kind ("along" or "pulled_back"), the differentiated program, the inputs and the outputs."""
        self.key = cache_key.of_graph(graph)
        self._made: dict[Any, Any] = {}
        self._lock = threading.Lock()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"{self.graph.name}({', '.join(self.graph.input_names)})"

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """The signature of a function that runs the program: its inputs, by position or by name."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind) for name in self.graph.input_names])

    def _once(self, key: Any, make: Callable[[], T]) -> T:
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            found: T = self._made[key]
            return found

    def native(self, dtype: Any) -> CompiledFunction:
        """The machine code for float64 or float32."""
        return self._once(np.dtype(dtype).name, lambda: native.build(self.graph, dtype))

    def call(self, dtype: Any) -> Callable[..., Any]:
        """The machine code as a built-in function."""
        compiled = self.native(dtype)
        return self._once(("call", compiled.signature.dtype), lambda: compiled.call)

    def along(self, inputs: Places, outputs: Places | None = None) -> Program:
        """(inputs, directions of the chosen inputs) → directions of the outputs."""
        chosen = tuple(range(len(self.graph.outputs))) if outputs is None else outputs
        return self._once(("along", inputs, chosen), lambda: self._derived("along", inputs, chosen))

    def pulled_back(self, inputs: Places, outputs: Places | None = None) -> Program:
        """(inputs, weights of the chosen outputs) → the gradient of Σ weights · outputs by each chosen input."""
        chosen = tuple(range(len(self.graph.outputs))) if outputs is None else outputs
        return self._once(("pulled_back", inputs, chosen), lambda: self._derived("pulled_back", inputs, chosen))

    def transposed(self, linear: Places, outputs: Places) -> tuple[Program, Places]:
        """(inputs of the origin, weights of the chosen outputs) → weights of the chosen linear inputs; for a derivative only."""
        assert self.origin is not None
        kind, base, inputs, of = self.origin
        first = len(base.graph.input_names)
        # The directions (weights) are the last inputs; directions belong to `inputs`, weights to the outputs `of`.
        if kind == "along":
            return base.pulled_back(tuple(inputs[k - first] for k in linear), tuple(of[k] for k in outputs)), tuple(range(first))
        return base.along(tuple(inputs[k] for k in outputs), tuple(of[k - first] for k in linear)), tuple(range(first))

    def _derived(self, kind: str, inputs: Places, outputs: Places) -> Program:
        g = self.graph
        n = len(g.input_names)
        if kind == "along":
            further = [(f"d{g.input_names[k]}", g.input_shapes[k]) for k in inputs]
        else:
            further = [(f"weights{k}", g.output_shapes[k]) for k in outputs]
        shapes = dict(zip(g.input_names, g.input_shapes, strict=True))
        for name, shape in further:
            while name in shapes:
                name = f"d{name}"
            shapes[name] = shape

        def run(*arrays: Array) -> tuple[Array, ...]:
            from ..kernel.passes import derive
            from ..kernel.passes.evaluate import evaluate

            results = evaluate(g, *arrays[:n])
            x, y, d = (_joined(part) for part in ([arrays[k] for k in inputs], [results[k] for k in outputs], arrays[n:]))
            if kind == "along":
                return _split(derive.jvp(y, x, d), [g.output_shapes[k] for k in outputs])
            return _split(derive.vjp(y, x, d), [g.input_shapes[k] for k in inputs])

        graph = simplify(graph_of(run, shapes, f"{g.name}_{kind}"))
        return Program(graph, self.written, tuple(range(n, len(shapes))), (kind, self, inputs, outputs))


def _joined(arrays: Sequence[Array]) -> Array:
    return concat([x.reshape(-1) for x in arrays])


def _split(flat: Array, shapes: Sequence[tuple[int, ...]]) -> tuple[Array, ...]:
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    return tuple(flat[end - int(np.prod(shape)) : end].reshape(shape) for end, shape in zip(ends, shapes, strict=True))


def program(fn: Callable[..., Any], robot: Robot, shapes: Any, parameters: Sequence[str], options: dict[str, Any]) -> Program:
    """The program of fn(robot, *arrays, **options); arguments as for `compile`."""
    graph = trace(fn, robot, shapes=shapes, parameters=parameters, **options)

    @functools.wraps(fn)
    def written(*arrays: Array) -> Any:
        named = dict(zip(graph.input_names, arrays, strict=True))
        chosen = {name: named.pop(name) for name in parameters}
        return fn(with_values(robot, chosen) if chosen else robot, **named, **options)

    return Program(graph, written)
