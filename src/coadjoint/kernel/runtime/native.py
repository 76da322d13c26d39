"""Native functions: a graph compiled for this processor, called like a Python function."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import threading
import weakref
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...errors import CoadjointError
from .. import selftest
from ..graph import Graph
from . import cache, cache_key
from .arguments import Shape, as_rows, check_inputs, check_out, real_array, rows
from .threads import cores, share

SHARE = 3e6
"""Work, in instructions, that is worth a thread: about 0.4 ms, several times what sharing out costs."""


def available() -> bool:
    """Whether native functions can be made here."""
    return why_not() == ""


def why_not() -> str:
    """Why native functions cannot be made here; empty if they can."""
    if os.environ.get("COADJOINT_NATIVE", "1").strip().lower() in ("0", "off", "no", "false"):
        return "native code is switched off by the environment variable COADJOINT_NATIVE"
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return "native code needs a 64-bit Python"
    return _broken or _llvmlite_missing()


_broken = ""
"""What went wrong when native code was last tried."""


@functools.cache
def _llvmlite_missing() -> str:
    # Not imported: that takes longer than loading a cached kernel.
    return "" if importlib.util.find_spec("llvmlite") else "llvmlite is not installed"


class NativeError(RuntimeError):
    """Native code cannot be made here; run the function as written instead."""


@dataclass(frozen=True)
class Signature:
    """What a compiled graph is called with and what it gives: all that is needed to call its code."""

    name: str
    dtype: str
    lanes: int
    input_names: tuple[str, ...]
    input_shapes: tuple[Shape, ...]
    output_shapes: tuple[Shape, ...]
    weight: int
    """Instructions for one block of lanes."""

    def text(self) -> str:
        """How it is called, as `inspect.signature` reads it."""
        arguments = ", ".join([*self.input_names, *(["/"] if self.input_names else []), "*", "out=None", "threads=None"])
        return f"{self.name}({arguments})"


class NativeFunction:
    """A compiled graph: f(*arrays, out=None, threads=None).

    Arrays have any batch axes in front, which broadcast; results are one array or a tuple of arrays. `out` is an array
    (a tuple of arrays) to write to. `threads`: how many to use; by default as many as the batch is worth.

    `call` is the same as a built-in function, without this class's overhead.
    """

    def __init__(self, code: Any, signature: Signature, slow: Callable[..., Any] | None = None) -> None:
        self.signature = signature
        self.general = _General(code, signature, slow)
        self.call: Callable[..., Any] = self.general.fast()

    def __call__(self, *arrays: Any, out: Any = None, threads: int | None = None, **named: Any) -> Any:
        if threads is None and not named:
            return self.call(*arrays) if out is None else self.call(*arrays, out=out)
        return self.general.compute(*arrays, out=out, threads=threads, **named)

    def __repr__(self) -> str:
        s = self.signature
        return f"<native function {s.text()}, {s.dtype}>"


class _General:
    """The way for every input that the machine code's own checks do not know: it owns the code."""

    def __init__(self, code: Any, signature: Signature, slow: Callable[..., Any] | None) -> None:
        self.code = code
        self.signature = signature
        self.dtype = np.dtype(signature.dtype)
        self.slow = slow
        # Instructions of one block of lanes, spread over its states.
        self.work = signature.weight / signature.lanes
        self._kept: list[Any] = []

    def fast(self) -> Callable[..., Any]:
        """The built-in function, or this object where there is none."""
        from .builtin import builtin, direct, fill_context

        one_thread = int(2 * SHARE / max(self.work, 1)) if cores() > 1 else 1 << 62
        self._kept += fill_context(self.code.context_address, self.signature.dtype, max(one_thread, 64))
        if not direct():
            return self
        doc = f"{self.signature.text()}\n--\n\nCompiled for this processor; {self.signature.dtype}."
        function, definition = builtin(self.code.call_address, self, self.signature.name, doc)
        self._kept.append(definition)
        return function

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        return (self.slow or self.compute)(*arrays, **named)

    def compute(self, *arrays: Any, out: Any = None, threads: int | None = None, **named: Any) -> Any:
        """Check, arrange, run."""
        s = self.signature
        given = [real_array(n, x, self.dtype) for n, x in zip(s.input_names, self._bind(arrays, named), strict=True)]
        batch = check_inputs(s.input_names, s.input_shapes, given)
        count = 1
        for n in batch:
            count *= n
        shapes = [batch + core for core in s.output_shapes]
        targets = [None] * len(shapes) if out is None else self._targets(out, shapes)
        if count == 0:
            empty = tuple(np.empty(shape, self.dtype) for shape in shapes)
            return out if out is not None else empty if len(empty) != 1 else empty[0]
        inputs = [rows(x, core, batch) for x, core in zip(given, s.input_shapes, strict=True)]
        outputs = []
        for target, core in zip(targets, s.output_shapes, strict=True):
            place = None if target is None else as_rows(target, core, batch)
            if place is not None and any(np.may_share_memory(place[0], x) for x, _ in inputs):
                place = None
            outputs.append(place or rows(np.empty(batch + core, self.dtype), core, batch))
        self._run(inputs, outputs, count, threads)
        results = []
        for target, (result, _) in zip(targets, outputs, strict=True):
            if target is not None and target is not result:
                target[...] = result
            results.append(result)
        if out is not None:
            return out
        return tuple(results) if len(results) != 1 else results[0]

    def _bind(self, arrays: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        s = self.signature
        values = list(arrays)
        for name in s.input_names[len(arrays) :]:
            if name not in named:
                break
            values.append(named.pop(name))
        if named:
            raise TypeError(f"{s.name}() got an unexpected or repeated argument {next(iter(named))!r}; it is {s.text()}")
        if len(values) != len(s.input_names):
            raise TypeError(f"{s.name}() takes {len(s.input_names)} arrays ({', '.join(s.input_names)}); {len(values)} given")
        return values

    def _targets(self, out: Any, shapes: list[Shape]) -> list[Any]:
        if len(shapes) == 1:
            outs, names = [out], ["out"]
        else:
            if not isinstance(out, tuple | list) or len(out) != len(shapes):
                raise CoadjointError(f"out must be a tuple of {len(shapes)} arrays: {self.signature.name} has as many results.")
            outs, names = list(out), [f"out[{k}]" for k in range(len(shapes))]
        for k, x in enumerate(outs):
            check_out(names[k], x, shapes[k], self.dtype)
            for other in range(k):
                if np.may_share_memory(outs[other], x):
                    raise CoadjointError(f"{names[other]} and {names[k]} share memory; results would overwrite each other.")
        return outs

    def _run(
        self,
        inputs: list[tuple[np.ndarray, int]],
        outputs: list[tuple[np.ndarray, int]],
        count: int,
        threads: int | None,
    ) -> None:
        pointers = [_words([x.ctypes.data for x, _ in side]) for side in (inputs, outputs)]
        strides = [_words([stride for _, stride in side]) for side in (inputs, outputs)]
        run = self.code.run

        def work(start: int, stop: int) -> int:
            return int(run(pointers[0], strides[0], pointers[1], strides[1], start, stop))

        self._share(work, count, self.work, threads)

    def _share(self, work: Callable[[int, int], int], count: int, weight: float, threads: int | None) -> None:
        """work(start, stop) on all states, which cost `weight` instructions each, by as many threads as they are worth."""
        if threads is None:
            threads = max(1, min(cores(), int(count * weight / SHARE)))
        elif threads < 1:
            raise CoadjointError(f"threads is {threads}; expected 1 or more.")
        grain = 8 * self.signature.lanes
        status = work(0, count) if threads == 1 else share(work, count, threads, grain)
        if status:
            raise MemoryError(f"{self.signature.name}: no memory for intermediate values")

    def repeat(self, inputs: list[np.ndarray], outputs: list[np.ndarray], steps: int, threads: int | None = None) -> None:
        """The function on inputs (N, steps, core), step after step, results written to outputs (N, steps, core).

        All are of the kernel's type with contiguous cores. Inputs of a step may be outputs of the one before.
        """
        sides = (inputs, outputs)
        pointers = [_words([x.ctypes.data for x in side]) for side in sides]
        strides = [_words([x.strides[0] for x in side]) for side in sides]
        further = [_words([x.strides[1] for x in side]) for side in sides]
        repeat = self.code.repeat

        def work(start: int, stop: int) -> int:
            return int(repeat(pointers[0], strides[0], pointers[1], strides[1], *further, steps, start, stop))

        self._share(work, len(outputs[0]), steps * self.work, threads)


def _words(numbers: list[int]) -> Any:
    return (ctypes.c_int64 * max(1, len(numbers)))(*numbers)


class _Kernel:
    """Loaded code and how it is called; shared by all functions made of one graph."""

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

    def run(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        """The results for states with one batch axis, always a tuple."""
        results = NativeFunction(self.code, self.signature).general.compute(*arrays, threads=1)
        return results if isinstance(results, tuple) else (results,)


_alive: weakref.WeakValueDictionary[str, _Kernel] = weakref.WeakValueDictionary()
_wrong: dict[str, str] = {}
"""Kernels that did not compute what their graphs do."""
_locks: dict[str, threading.Lock] = {}
_lock = threading.Lock()


def _after_fork() -> None:
    """Locks that other threads of the parent held are free in the child."""
    global _lock, _locks
    _lock, _locks = threading.Lock(), {}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def build(
    graph: Graph | Callable[[], Graph],
    dtype: Any = np.float64,
    slow: Callable[..., Any] | None = None,
    key: str | None = None,
) -> NativeFunction:
    """A graph as a native function, from the cache if it was compiled before.

    With a `key` that says all that decides the graph, a function that makes it will do: it is called only if there is
    nothing in the cache. `slow` is called, instead of our own general way, with whatever the machine code's own checks
    do not know at once: it should end in the function's `general.compute`.
    """
    reason = why_not()
    if reason:
        raise NativeError(f"no native code: {reason}.")
    name = np.dtype(dtype).name
    if name not in ("float64", "float32"):
        raise CoadjointError(f"kernels are of dtype float64 or float32, not {name}.")
    if key is None and isinstance(graph, Graph):
        key = cache_key.of_graph(graph)
    if key is None:
        raise TypeError("a function that makes a graph needs a key")
    try:
        full = cache_key.key(key, dtype=name)
    except (ImportError, OSError) as error:
        raise _is_broken(error) from error
    with _lock:
        mine = _locks.setdefault(full, threading.Lock())
    try:
        with mine:  # one thread makes it, the others wait for it
            kernel = _alive.get(full)
            if kernel is None:
                kernel = _alive[full] = _make(full, graph, name)
    except (ImportError, OSError) as error:  # llvmlite is broken, or memory may not be executed
        raise _is_broken(error) from error
    finally:
        with _lock:
            _locks.pop(full, None)
    function = NativeFunction(kernel.code, kernel.signature, slow)
    if selftest.verify_every_call():
        from ..verified import verified

        return verified(function, graph if isinstance(graph, Graph) else graph())
    return function


def _is_broken(error: Exception) -> NativeError:
    """What is raised now, and the reason that `why_not` gives from now on."""
    global _broken
    _broken = str(error)
    return NativeError(f"no native code: {error}.")


def _make(full: str, graph: Graph | Callable[[], Graph], dtype: str) -> _Kernel:
    found = cache.load(full)
    if found is not None:
        kernel = _Kernel(*found)
        if selftest.same_sums(found[0].get("sums"), selftest.sums(kernel.signature.input_shapes, kernel.run)):
            return kernel
    if full in _wrong:
        raise NativeError(_wrong[full])
    graph = graph if isinstance(graph, Graph) else graph()
    description, payload = compile_graph(graph, dtype)
    kernel = _Kernel(description, payload)
    what = selftest.disagreement(graph, dtype, kernel.run)
    if what:
        from ..verified import warn

        _wrong[full] = f"the kernel of {graph.name} is wrong: {what}."
        warn(graph, dtype, what)
        raise NativeError(_wrong[full])
    description["sums"] = selftest.sums(graph.input_shapes, kernel.run)
    cache.store(full, description, payload)
    return kernel


def compile_graph(graph: Graph, dtype: str, target: Any = None) -> tuple[dict[str, Any], bytes]:
    """(description, code): what the cache keeps of a graph."""
    from ..pipeline import compile_graph as compile_it
    from .jit import pack

    made = compile_it(graph, dtype, target)
    how, payload = pack(made.code)
    lanes, weight = made.lanes.count, made.plan.weight
    signature = Signature(graph.name, dtype, lanes, graph.input_names, graph.input_shapes, graph.output_shapes, weight)
    return {"how": how, "signature": asdict(signature)}, payload
