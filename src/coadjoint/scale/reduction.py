"""The results that a stream keeps of every chunk, and the identity by which a continued stream recognizes its reduction."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..errors import CoadjointError
from ..words import short
from .identities import text_of

ROWS = 256
"""Rows of the example that a reduction is recognized by."""


class Reduction:
    """reduce(x, axis=0) as a row of numbers, shaped as one row of x."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        if not callable(fn):
            raise CoadjointError(f"reduce is {short(fn)}; expected a function such as numpy.sum.")
        self.fn, self.name = fn, getattr(fn, "__name__", type(fn).__name__)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        row = np.asarray(self.fn(x, axis=0))
        if row.shape != x.shape[1:] or row.dtype.kind not in "bfiu":
            raise CoadjointError(
                f"reduce {self.name!r} gives {row.dtype} of shape {row.shape} for results of shape {x.shape}; expected real numbers of "
                f"shape {x.shape[1:]}, as numpy.sum(x, axis=0) has."
            )
        return row.astype(x.dtype)[None]

    def identity(self, samples: list[np.ndarray]) -> str:
        """Its name, and a digest of the numbers that it holds and of what it makes of examples shaped as these results: two functions of
        one name, or one that reads a variable which has changed, differ there.
        """
        digest = hashlib.sha256(_held(self.fn, _package(self.fn), {}).encode())
        for sample in samples:
            rng = np.random.default_rng(0)
            shape = (ROWS, *sample.shape[1:])
            example = rng.normal(size=shape) * 10.0 ** rng.uniform(-4, 4, size=shape)
            digest.update(self(example.astype(sample.dtype)).tobytes())
        return f"{self.name} {digest.hexdigest()[:16]}"


def _held(x: Any, package: str, seen: dict[int, Any]) -> str:
    """The numbers and texts that a function of a package holds: constants, defaults, attributes, variables that it reads, and those of the
    package's functions among them. What else there is, as modules and other packages, is the same in the next process.
    """
    if x is None or isinstance(x, bool | int | float | complex | str | bytes | np.generic):
        return repr(x)
    if isinstance(x, np.ndarray) and x.dtype.kind != "O":
        return text_of(x, None)
    if id(x) in seen or isinstance(x, ModuleType | type):
        return ""
    seen[id(x)] = x  # kept, so that nothing else gets its number
    if isinstance(x, list | tuple):
        return f"({','.join(_held(y, package, seen) for y in x)})"
    if isinstance(x, set | frozenset):
        return f"({','.join(sorted(_held(y, package, seen) for y in x))})"
    if isinstance(x, Mapping):
        return _held([(key, x[key]) for key in sorted(x, key=str)], package, seen)
    if isinstance(x, CodeType):
        return _held(x.co_consts, package, seen)
    if isinstance(x, functools.partial):
        return _held((x.func, x.args, x.keywords), package, seen)
    if isinstance(x, MethodType):
        return _held((x.__func__, x.__self__), package, seen)
    if _package(x) != package:
        return ""
    if isinstance(x, FunctionType):
        return _held((x.__code__, x.__defaults__, x.__kwdefaults__, _read(x)), package, seen)
    return _held((getattr(x, "__dict__", {}), vars(type(x)).get("__call__")), package, seen)


def _package(x: Any) -> str:
    """The package that a function or an object comes from."""
    return str(getattr(x, "__module__", None)).partition(".")[0]


def _read(fn: FunctionType) -> dict[str, Any]:
    """The variables that a function reads, by name."""
    try:
        found = inspect.getclosurevars(fn)
    except ValueError:  # one has no value yet
        return {}
    return {**found.globals, **found.nonlocals}
