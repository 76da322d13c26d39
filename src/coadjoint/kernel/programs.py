"""Sequential programs: functions with loops and branches on values, as machine code.

A traced function is straight-line code. An algorithm that decides as it goes, such as the search for switching points along a path, is
written as a program: a function in a small part of Python,

    numbers (float, int, bool), arrays (Floats, Ints: one axis, by index), if, while, for … in range, calls of other programs,
    vectors of eight numbers (load, store, where, minimum, maximum, least, largest, total, some), local arrays (empty),

with types in its signature. Called as written it is plain Python; `native_program` is the same as machine code. Numbers and NumPy
arrays of the module are constants of the program. Index arithmetic is of non-negative numbers.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

Floats = np.ndarray
"""float64, one axis."""
Ints = np.ndarray
"""int64, one axis."""
WIDTH = 8
"""Numbers of a vector."""


def load(array: Floats, index: int) -> Any:
    """Eight numbers of an array from an index on."""
    return array[index : index + WIDTH].copy()


def store(array: Floats, index: int, x: Any) -> None:
    array[index : index + WIDTH] = x


def empty(size: int) -> Floats:
    """A local array, its numbers arbitrary."""
    return np.full(size, np.nan)


def splat(x: float) -> Any:
    """Eight times the same."""
    return np.full(WIDTH, x)


def where(test: Any, x: Any, y: Any) -> Any:
    return np.where(test, x, y)


def minimum(x: Any, y: Any) -> Any:
    return np.where(np.less(y, x), y, x)


def maximum(x: Any, y: Any) -> Any:
    return np.where(np.greater(y, x), y, x)


def least(x: Any) -> float:
    return float(np.min(x))


def largest(x: Any) -> float:
    return float(np.max(x))


def total(x: Any) -> float:
    return float(np.sum(x))


def some(x: Any) -> bool:
    """Whether one of eight is true."""
    return bool(np.any(x))


def sqrt(x: Any) -> Any:
    return np.sqrt(x) if isinstance(x, np.ndarray) else math.sqrt(x)


_C: dict[str, Any] = {"float": ctypes.c_double, "int": ctypes.c_int64, "floats": ctypes.c_void_p, "ints": ctypes.c_void_p}


def native_program(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A program as machine code where that is possible, else as written. Arrays must be contiguous, float64 or int64.

    Python's lock is released while it runs.
    """
    from .runtime.native import why_not

    if why_not():
        return _as_written(fn)
    try:
        return _code(fn).call
    except (ImportError, OSError):
        return _as_written(fn)


def _as_written(fn: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return fn(*(x.reshape(-1) if isinstance(x, np.ndarray) else x for x in arguments))

    return run


class _Code:
    """Machine code of a program, from the cache if it was compiled before."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        from .runtime import cache, cache_key
        from .runtime.jit import load as load_code

        key = cache_key.key(f"program {fn.__module__}.{fn.__qualname__} {inspect.getsource(fn)}")
        found = cache.load(key)
        if found is None:
            found = _compiled(fn)
            cache.store(key, *found)
        self.kinds = found[0]["parameters"]
        self.owner = load_code(found[0]["how"], found[1], (fn.__name__,))
        results: dict[str, Any] = {"float": ctypes.c_double, "int": ctypes.c_int64, "none": None}
        self.function = ctypes.CFUNCTYPE(results[found[0]["returns"]], *(_C[x] for x in self.kinds))(
            self.owner.addresses[fn.__name__]
        )

    def call(self, *arguments: Any) -> Any:
        given = [x.ctypes.data if isinstance(x, np.ndarray) else x for x in arguments]
        return self.function(*given)


@functools.cache
def _code(fn: Callable[..., Any]) -> _Code:
    return _Code(fn)


def _compiled(fn: Callable[..., Any]) -> tuple[dict[str, Any], bytes]:
    from .emit.sequential import module_text, parameters, returned
    from .runtime.jit import compile_program, pack
    from .runtime.target import host

    how, payload = pack(compile_program(module_text(fn), host()))
    return {"how": how, "parameters": [k for _, k in parameters(fn)], "returns": returned(fn)}, payload
