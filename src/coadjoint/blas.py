"""Linear algebra of small matrices on one processor: `one_thread`.

OpenBLAS, which NumPy and SciPy bring, shares out products and factorisations of matrices of a hundred rows among all processors. That
gains nothing at this size, and its threads wait for each other: on a machine that does other work too, a fit takes five times as long.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from importlib import import_module
from threading import Lock
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

MODULES = ("numpy.linalg._umath_linalg", "scipy.linalg._flapack")
"""Extensions that are linked with OpenBLAS, NumPy's and SciPy's own."""
PREFIXES, SUFFIXES = ("scipy_", ""), ("64_", "")

_lock = Lock()
_inside = 0
_before: list[int] = []


@cache
def _libraries() -> tuple[tuple[Any, Any], ...]:
    """(get, set) of the number of threads of every OpenBLAS; none where another library does the linear algebra."""
    found = []
    for name in MODULES:
        try:
            library = ctypes.CDLL(import_module(name).__file__)
        except (ImportError, OSError, TypeError):
            continue
        for prefix, suffix in ((p, s) for p in PREFIXES for s in SUFFIXES):
            names = [f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set")]
            if all(hasattr(library, x) for x in names):
                found.append((getattr(library, names[0]), getattr(library, names[1])))
                break
    return tuple(found)


def threads() -> list[int]:
    """The number of threads that each OpenBLAS uses."""
    return [int(get()) for get, _ in _libraries()]


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra on one thread until the last of all such blocks has ended, in whichever thread it runs."""
    global _inside, _before
    with _lock:
        if not _inside:
            _before = threads()
            for _, change in _libraries():
                change(1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                for (_, change), number in zip(_libraries(), _before, strict=True):
                    change(number)


def on_one_thread(fn: Callable[P, R]) -> Callable[P, R]:
    """The function, with its linear algebra on one thread."""

    @wraps(fn)
    def alone(*args: P.args, **kwargs: P.kwargs) -> R:
        with one_thread():
            return fn(*args, **kwargs)

    return alone
