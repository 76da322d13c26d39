"""Sequential programs: functions with loops and branches on values, as machine code.

A traced function is straight-line code. An algorithm that decides as it goes, such as the search for switching points along a path, is
written as a program: a function in a small part of Python,

    numbers (float, int, bool), arrays (Floats, Ints: one axis, by index), if, while, for … in range, calls of other programs,
    vectors of eight numbers (load, store, where, minimum, maximum, least, largest, total, some), local arrays (empty),
    compiled functions bound to their arrays (Kernels: run, repeat),

with types in its signature. Called as written it is plain Python; `native_program` is the same as machine code. Numbers and NumPy
arrays of the module are constants of the program. Index arithmetic is of non-negative numbers.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .program_trial import Examples
from .runtime.bound import Kernels as Kernels

F = TypeVar("F", bound=Callable[..., Any])

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
    """True if one of eight is true."""
    return bool(np.any(x))


def sqrt(x: Any) -> Any:
    return np.sqrt(x) if isinstance(x, np.ndarray) else math.sqrt(x)


def run(kernels: Kernels, which: int, start: int, stop: int) -> int:
    """Compute rows start … stop - 1 of a bound function; not 0 where there was no memory."""
    return kernels.bound[which].run(start, stop)


def repeat(kernels: Kernels, which: int, steps: int, rows: int) -> int:
    """Compute `steps` steps of a bound function for its first rows; not 0 where there was no memory."""
    return kernels.bound[which].repeat(steps, rows)


_C: dict[str, Any] = {
    "float": ctypes.c_double,
    "int": ctypes.c_int64,
    "floats": ctypes.c_void_p,
    "ints": ctypes.c_void_p,
    "kernels": ctypes.c_void_p,
}


def native_program(fn: Callable[..., Any], examples: Examples) -> Callable[..., Any]:
    """A program as machine code where that is possible, else as written. Arrays must be contiguous, float64 or int64.

    The machine code proves itself on the examples first (`program_trial.py`). Python's lock is released while it runs. With
    COADJOINT_VERIFY=full the program runs as written, and each kernel that it calls is compared.
    """
    from .runtime.native import why_not
    from .selftest import verify_every_call

    if why_not() or verify_every_call():
        return _as_written(fn)
    try:
        code = _code(fn, examples)
    except (ImportError, OSError):
        return _as_written(fn)
    return _as_written(fn) if code is None else code.call


def runs(program: Callable[..., Any]) -> Callable[[F], F]:
    """A decorator that names the program behind a public function, for `explain`."""

    def mark(fn: F) -> F:
        fn.program = program  # type: ignore[attr-defined]
        return fn

    return mark


def is_program(fn: Any) -> bool:
    """True if a function has the signature of a program: every argument of a type that programs have."""
    if not inspect.isfunction(fn) or not fn.__code__.co_argcount:
        return False
    types = {"float", "int", "Floats", "Ints", "Kernels"}
    return all(x.annotation in types for x in inspect.signature(fn).parameters.values())


def prepared_program(fn: Callable[..., Any], examples: Examples, *arguments: Any) -> Callable[[], Any]:
    """`native_program` with its arguments, whose arrays may change their numbers from call to call."""
    run = native_program(fn, examples)
    code = getattr(run, "__self__", None)
    if not isinstance(code, _Code):
        return lambda: run(*arguments)
    return functools.partial(code.run_with, code.given(arguments), arguments)


def _as_written(fn: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return fn(*(x.reshape(-1) if isinstance(x, np.ndarray) else x for x in arguments))

    return run


class _Code:
    """Machine code of a program in memory."""

    def __init__(self, name: str, description: dict[str, Any], payload: bytes) -> None:
        from .runtime.jit import load as load_code

        self.owner = load_code(description["how"], payload, (name,))
        results: dict[str, Any] = {"float": ctypes.c_double, "int": ctypes.c_int64, "none": None}
        self.function = ctypes.CFUNCTYPE(results[description["returns"]], *(_C[x] for x in description["parameters"]))(
            self.owner.addresses[name]
        )

    def call(self, *arguments: Any) -> Any:
        return self.function(*self.given(arguments))

    def run_with(self, given: list[Any], kept: Any) -> Any:
        """The program with what `given` returned; `kept` are the arrays, which must live as long."""
        return self.function(*given)

    def given(self, arguments: tuple[Any, ...]) -> list[Any]:
        """Numbers, and addresses of arrays and of bound functions."""
        return [x.ctypes.data if isinstance(x, np.ndarray) else x.address if isinstance(x, Kernels) else x for x in arguments]


@functools.cache
def _code(fn: Callable[..., Any], examples: Examples) -> _Code | None:
    """The machine code of a program, from the cache if it was compiled before; None where it does not compute what is written."""
    from . import program_trial
    from .runtime import cache, cache_key
    from .selftest import same_sums

    key = cache_key.key(f"program {fn.__module__}.{fn.__qualname__} {inspect.getsource(fn)}")
    found = cache.load(key)
    if found is not None:
        code = _Code(fn.__name__, *found)
        if same_sums(found[0].get("sums"), program_trial.sums(code.call, examples)):
            return code
    description, payload = _compiled(fn)
    code = _Code(fn.__name__, description, payload)
    what = program_trial.disagreement(code.call, _as_written(fn), examples)
    if what:
        program_trial.warn(fn.__name__, what)
        return None
    description["sums"] = program_trial.sums(code.call, examples)
    cache.store(key, description, payload)
    return code


def _compiled(fn: Callable[..., Any]) -> tuple[dict[str, Any], bytes]:
    from .emit.sequential_module import parameters, returned
    from .pipeline import compile_program
    from .runtime.jit import pack

    how, payload = pack(compile_program(fn).code)
    return {"how": how, "parameters": [k for _, k in parameters(fn)], "returns": returned(fn)}, payload
