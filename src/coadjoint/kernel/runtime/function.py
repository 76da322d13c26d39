"""Compiled functions: machine code in memory and how it is called."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arguments import Shape, check_inputs, check_outs, check_threads, real_array
from ...arrays import any_lazy
from ...scale.deferred import call_compiled_lazily
from ..graph import Graph
from . import builtin, pool
from .arguments import as_rows, rows
from .threads import cores, most_threads, share, split

SHARE = 3e6
"""Work, in instructions, that is worth a thread: about 0.4 ms, several times what sharing out costs."""
PIECE = 1e7
"""Work, in instructions, between two looks at whether to stop: about 1.3 ms; many times that where results are fresh memory."""


@dataclass(frozen=True)
class Signature:
    """The inputs and results of a compiled graph: all that is needed to call its code."""

    name: str
    dtype: str
    lanes: int
    input_names: tuple[str, ...]
    input_shapes: tuple[Shape, ...]
    output_shapes: tuple[Shape, ...]
    weight: int
    """Instructions for one block of lanes."""

    def text(self) -> str:
        """The signature as text, as `inspect.signature` reads it."""
        arguments = ", ".join([*self.input_names, *(["/"] if self.input_names else []), "*", "out=None", "threads=None"])
        return f"{self.name}({arguments})"

    def shapes(self) -> str:
        """The core shapes of arguments and results, for people."""

        def one(shape: tuple[int, ...]) -> str:
            return f"(..., {', '.join(map(str, shape))})" if shape else "(...)"

        inputs = ", ".join(f"{name} {one(shape)}" for name, shape in zip(self.input_names, self.input_shapes, strict=True))
        return f"{inputs or 'nothing'} -> {', '.join(map(one, self.output_shapes))}"

    def bind(self, arrays: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """The arrays, given by place and by name, in order."""
        values = list(arrays)
        for name in self.input_names[len(arrays) :]:
            if name not in named:
                break
            values.append(named.pop(name))
        if named:
            raise TypeError(f"{self.name}() got an unexpected or repeated argument {next(iter(named))!r}; it is {self.text()}")
        if len(values) != len(self.input_names):
            raise TypeError(
                f"{self.name}() takes {len(self.input_names)} arrays ({', '.join(self.input_names)}); {len(values)} given"
            )
        return values


class Kernel:
    """Machine code in memory and its signature; shared by all functions made of one graph."""

    def __init__(self, description: dict[str, Any], payload: bytes) -> None:
        from .jit import Code

        self.code = Code(description["how"], payload)
        s = description["signature"]
        self.signature = Signature(
            s["name"],
            s["dtype"],
            s["lanes"],
            tuple(s["input_names"]),
            tuple(map(tuple, s["input_shapes"])),
            tuple(map(tuple, s["output_shapes"])),
            s["weight"],
        )
        work = self.work()
        alone = int(PIECE / work)
        sizes = [math.prod(shape) * np.dtype(s["dtype"]).itemsize for shape in self.signature.output_shapes]
        self._kept = builtin.fill_context(
            self.code.context_address,
            s["dtype"],
            most=max(min(int(2 * SHARE / work), alone) if cores() > 1 else alone, 64),
            longest=max(alone, 64),
            fresh=max(min(pool.SMALL // max(size, 1) for size in sizes), 1) if sizes else 1 << 62,
            pool=functools.partial(_results, self.signature.output_shapes, np.dtype(s["dtype"])),
        )

    def work(self) -> float:
        """Instructions for one state: those of one block of lanes, spread over its states."""
        return max(self.signature.weight / self.signature.lanes, 1.0)


def _results(cores: tuple[Shape, ...], dtype: np.dtype[Any], count: int) -> Any:
    """Large arrays for the results of so many states."""
    made = tuple(pool.empty((count, *core), dtype) for core in cores)
    return made if len(made) != 1 else made[0]


class Recipe:
    """The call that made a compiled function, to make it again where it is unpickled: make(*arguments, **options)."""

    def __init__(self, make: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.make, self.arguments, self.options = make, arguments, options

    def __call__(self) -> Any:
        return self.make(*self.arguments, **self.options)


class CompiledFunction:
    """A compiled graph: f(*arrays, out=None, threads=None).

    Arrays have any batch axes in front, which broadcast; results are one array or a tuple of arrays. `out` is an array
    (a tuple of arrays) to write to. `threads`: how many to use; by default as many as the batch is worth.

    This object takes every input. `call` is a built-in function that reads ordinary arrays in machine code, with nothing of Python before
    the kernel, and hands every other input to this object, its `__self__`, or to `otherwise`.
    """

    kind = "a kernel of its own"
    spent = False
    """It was made for its robot alone: there is none that would pay more."""
    graph: Graph | None = None
    """The graph that the function was made of, where that is kept for `explain`: for users' own functions."""

    def __init__(self, kernel: Kernel, otherwise: Callable[..., Any] | None = None, recipe: Recipe | None = None) -> None:
        self.kernel = kernel
        self.otherwise = otherwise
        self.recipe = recipe

    @property
    def signature(self) -> Signature:
        return self.kernel.signature

    @property
    def call(self) -> Callable[..., Any]:
        """The built-in function; this object itself where machine code does not understand this Python or this NumPy."""
        if not builtin.direct():
            return self
        s = self.signature
        doc = f"{s.text()}\n--\n\n{s.name}, compiled for this processor ({s.dtype}): {s.shapes()}."
        result: Callable[..., Any] = builtin.builtin(self.kernel.code.call_address, self, s.name, doc)
        return result

    def __reduce__(self) -> Any:
        if self.recipe is None:
            raise TypeError(f"{self!r} cannot be pickled; pickle the function and the robot that it was compiled from.")
        if self.call is self:  # no built-in function, which would be pickled as an attribute of this object
            return self.recipe, ()
        return _Remade, (self.recipe,)

    def __repr__(self) -> str:
        s = self.signature
        return f"<compiled function {s.text()}: {s.shapes()}; {s.dtype}>"

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        return (self.otherwise or self.compute)(*arrays, **named)

    def compute(self, *arrays: Any, out: Any = None, threads: Any = None, **named: Any) -> Any:
        """Check all arguments, and run."""
        s, dtype = self.signature, np.dtype(self.signature.dtype)
        if any_lazy(arrays) or any_lazy(named.values()):
            return call_compiled_lazily(self, dict(zip(s.input_names, s.bind(arrays, named), strict=True)), out, threads)
        given = [real_array(n, x, dtype) for n, x in zip(s.input_names, s.bind(arrays, named), strict=True)]
        return self.run(given, check_inputs(s.input_names, s.input_shapes, given), out, check_threads(threads))

    def run(self, given: list[np.ndarray], batch: Shape, out: Any, threads: int | None) -> Any:
        """The results for arrays that were checked, of the kernel's type, with these batch axes."""
        s, dtype = self.signature, np.dtype(self.signature.dtype)
        count = math.prod(batch)
        shapes = [batch + core for core in s.output_shapes]
        targets = [None] * len(shapes) if out is None else check_outs(s.name, out, shapes, dtype)
        if count == 0:
            empty = tuple(np.empty(shape, dtype) for shape in shapes)
            return out if out is not None else empty if len(empty) != 1 else empty[0]
        inputs = [rows(x, core, batch) for x, core in zip(given, s.input_shapes, strict=True)]
        outputs = []
        for target, core in zip(targets, s.output_shapes, strict=True):
            place = None if target is None else as_rows(target, core, batch)
            if place is not None and any(np.may_share_memory(place[0], x) for x, _ in inputs):
                place = None
            outputs.append(place or rows(pool.empty(batch + core, dtype), core, batch))
        self._run(inputs, outputs, count, threads)
        results = []
        for target, (result, _) in zip(targets, outputs, strict=True):
            if target is not None and target is not result:
                target[...] = result
            results.append(result)
        if out is not None:
            return out
        return tuple(results) if len(results) != 1 else results[0]

    def _run(
        self,
        inputs: list[tuple[np.ndarray, int]],
        outputs: list[tuple[np.ndarray, int]],
        count: int,
        threads: int | None,
    ) -> None:
        sides = (inputs, outputs)
        pointers = [_words([x.ctypes.data for x, _ in side]) for side in sides]
        strides = [_words([stride for _, stride in side]) for side in sides]
        code = self.kernel.code

        def work(start: int, stop: int, owned: Any = sides) -> Iterator[int]:  # it owns code and arrays, also in another thread
            yield code.run(pointers[0], strides[0], pointers[1], strides[1], start, stop)

        self._share(work, count, self.kernel.work(), threads)

    def steps(self, inputs: list[np.ndarray], outputs: list[np.ndarray], threads: Any = None) -> None:
        """The function on inputs (N, steps, core), step after step, results written to outputs (N, steps, core).

        All are of the kernel's type, outputs with contiguous cores. Inputs of a step may be outputs of the one before; one row, or one
        step, of an input stands for all of them.
        """
        inputs = [x if x.strides[-1] == x.itemsize or x.shape[-1] == 1 else np.ascontiguousarray(x) for x in inputs]
        sides, (count, steps) = (inputs, outputs), outputs[0].shape[:2]
        strides = [_words([x.strides[0] if len(x) == count else 0 for x in side]) for side in sides]
        further = [_words([x.strides[1] if x.shape[1] == steps else 0 for x in side]) for side in sides]
        places = [[(x.ctypes.data, x.strides[1]) for x in side] for side in sides]
        code, weight = self.kernel.code, self.kernel.work()

        def work(start: int, stop: int) -> Iterator[int]:
            some = max(1, int(PIECE / weight / (stop - start)))  # steps at a time
            for first in range(0, steps, some):
                pointers = [_words([at + first * far for at, far in side]) for side in places]
                last = min(some, steps - first)
                yield code.repeat(pointers[0], strides[0], pointers[1], strides[1], *further, last, start, stop)

        self._share(work, len(outputs[0]), steps * weight, check_threads(threads))

    def _share(self, work: Callable[[int, int], Iterator[int]], count: int, weight: float, threads: int | None) -> None:
        """Compute all states, which cost `weight` instructions each, by as many threads as they are worth."""
        threads = max(1, min(cores(), int(count * weight / SHARE))) if threads is None else most_threads(threads)
        pieces = split(count, threads, 8 * self.signature.lanes, int(PIECE / weight))
        if any(work(*pieces[0])) if len(pieces) == 1 else share(work, pieces, threads):
            raise MemoryError(f"{self.signature.name}: no memory for intermediate values")


class _Remade:
    """A placeholder for a compiled function while its built-in function is unpickled, as an attribute of it: every attribute is that."""

    def __init__(self, recipe: Recipe) -> None:
        self._made = recipe()

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, "_made")


def run_steps(function: Callable[..., Any], inputs: list[np.ndarray], outputs: list[np.ndarray], threads: Any = None) -> None:
    """A function, compiled or not, on inputs (N, steps, core), step after step, results written to outputs (N, steps, core).

    Inputs of a step may be outputs of the one before; one row, or one step, of an input stands for all of them. A compiled function
    takes all steps in machine code.
    """
    owner = getattr(function, "__self__", function)
    if isinstance(owner, CompiledFunction):
        owner.steps(inputs, outputs, threads)
        return
    for k in range(outputs[0].shape[1]):
        out = tuple(x[:, k] for x in outputs)
        function(*(x[:, k if x.shape[1] > 1 else 0] for x in inputs), out=out if len(out) != 1 else out[0], threads=threads)


def _words(numbers: list[int]) -> Any:
    return (ctypes.c_int64 * max(1, len(numbers)))(*numbers)
