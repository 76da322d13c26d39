"""Making native functions: a graph compiled for this processor, or fetched from the cache."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import threading
import weakref
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from ...errors import CoadjointError
from .. import selftest
from ..alone import ASKED
from ..graph import Graph
from . import cache, cache_key
from .function import CompiledFunction, Kernel, Recipe, Signature


def available() -> bool:
    """True if native functions can be made here."""
    return why_not() == ""


def why_not() -> str:
    """The reason why native functions cannot be made here; empty if they can."""
    if os.environ.get("COADJOINT_NATIVE", "1").strip().lower() in ("0", "off", "no", "false"):
        return "native code is switched off by the environment variable COADJOINT_NATIVE"
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return "native code needs a 64-bit Python"
    return _broken or _llvmlite_missing()


_broken = ""
"""The failure of the last attempt to make native code."""


@functools.cache
def _llvmlite_missing() -> str:
    # Not imported: that takes longer than loading a cached kernel.
    return "" if importlib.util.find_spec("llvmlite") else "llvmlite is not installed"


class NativeError(RuntimeError):
    """Native code cannot be made here; run the function as written instead."""


_alive: weakref.WeakValueDictionary[str, Kernel] = weakref.WeakValueDictionary()
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
    otherwise: Callable[..., Any] | None = None,
    key: str | None = None,
    recipe: Recipe | None = None,
) -> CompiledFunction:
    """A graph as a native function, from the cache if it was compiled before.

    With a `key` that says all that decides the graph, a function that makes it will do: it is called only if there is
    nothing in the cache. `otherwise` is called with every input that the built-in function does not know at once, instead of
    the function's own `compute`, in which it should end. `recipe` makes the function again where it is unpickled.
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
    full = _full_key(key, name)
    asked = ASKED.get()
    if asked is not None:
        asked.setdefault(full, (graph, name))
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
    if selftest.verify_every_call():
        from ..verified import VerifiedFunction

        return VerifiedFunction(kernel, graph if isinstance(graph, Graph) else graph(), otherwise, recipe)
    return CompiledFunction(kernel, otherwise, recipe)


def made(key: str, dtype: Any) -> bool:
    """True if the kernel of that key is in memory or in the cache."""
    full = _full_key(key, np.dtype(dtype).name)
    return full in _alive or cache.has(full)


def _full_key(key: str, dtype: str) -> str:
    """The name of a kernel in the cache."""
    try:
        return cache_key.key(key, dtype=dtype)
    except (ImportError, OSError) as error:
        raise _is_broken(error) from error


def _is_broken(error: Exception) -> NativeError:
    """The error to raise; `why_not` gives its reason from now on."""
    global _broken
    _broken = str(error)
    return NativeError(f"no native code: {error}.")


def _make(full: str, graph: Graph | Callable[[], Graph], dtype: str) -> Kernel:
    found = cache.load(full)
    if found is not None:
        kernel = Kernel(*found)
        now = selftest.sums(kernel.signature.input_shapes, _runner(kernel), found[0].get("example"))
        if selftest.same_sums(found[0].get("sums"), now):
            return kernel
    if full in _wrong:
        raise NativeError(_wrong[full])
    graph = graph if isinstance(graph, Graph) else graph()
    description, payload = compile_graph(graph, dtype)
    description |= {} if graph.example is None else {"example": graph.example}
    kernel = Kernel(description, payload)
    what = selftest.disagreement(graph, dtype, _runner(kernel))
    if what:
        from ..verified import warn

        _wrong[full] = f"the kernel of {graph.name} is wrong: {what}."
        warn(graph, dtype, what)
        raise NativeError(_wrong[full])
    description["sums"] = selftest.sums(graph.input_shapes, _runner(kernel), graph.example)
    cache.store(full, description, payload)
    return kernel


def _runner(kernel: Kernel) -> Callable[..., tuple[np.ndarray, ...]]:
    """A function of arrays with one batch axis that returns the kernel's results, always as a tuple."""
    compute = CompiledFunction(kernel).compute

    def run(*arrays: Any) -> tuple[np.ndarray, ...]:
        results = compute(*arrays, threads=1)
        return results if isinstance(results, tuple) else (results,)

    return run


def compile_graph(graph: Graph, dtype: str, target: Any = None) -> tuple[dict[str, Any], bytes]:
    """(description, code): what the cache keeps of a graph."""
    from ..pipeline import compile_graph as compile_it
    from .jit import pack

    made = compile_it(graph, dtype, target)
    how, payload = pack(made.code)
    lanes, weight = made.lanes.count, made.plan.weight
    signature = Signature(graph.name, dtype, lanes, graph.input_names, graph.input_shapes, graph.output_shapes, weight)
    return {"how": how, "signature": asdict(signature)}, payload
