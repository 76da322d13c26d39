"""Checks and conversion of the arguments of compiled functions, in every execution."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...arrays import Array, asfloat, broadcast_batch, not_real
from ...errors import CoadjointError, ShapeError

Shape = tuple[int, ...]


def check_core(name: str, x: Array, core: Shape, whose: str = "") -> None:
    """ShapeError if the last axes of an array are not those of its core; `whose` says why they should be."""
    shape = tuple(x.shape)
    if len(shape) < len(core) or shape[len(shape) - len(core) :] != core:
        expected = f"(..., {', '.join(map(str, core))})" if core else "(...)"
        raise ShapeError(f"{name} has shape {shape}; expected {expected}{whose}.")


def check_inputs(names: Sequence[str], core_shapes: Sequence[Shape], arrays: Sequence[Array]) -> Shape:
    """The batch shape that the arrays broadcast to; ShapeError names the argument that does not fit."""
    for name, core, x in zip(names, core_shapes, arrays, strict=True):
        check_core(name, x, core)
    batches = {tuple(x.shape)[: len(x.shape) - len(core)] for core, x in zip(core_shapes, arrays, strict=True)}
    if len(batches) == 1:
        return batches.pop()
    return broadcast_batch(**{n: (x, len(c)) for n, c, x in zip(names, core_shapes, arrays, strict=True)})


def real_array(name: str, x: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """x as an array of the kernel's type, masked entries NaN; an error unless it has real numbers."""
    array = asfloat(x, name)
    if array.dtype == object:
        raise not_real(name, x)
    return np.asarray(array, dtype)


def as_rows(x: np.ndarray, core: Shape, batch: Shape) -> tuple[np.ndarray, int] | None:
    """(x, batch stride in bytes) if all states of x lie evenly apart, each of them contiguous; otherwise None."""
    n_core = len(core)
    flags = x.flags
    if flags.c_contiguous and flags.aligned and x.dtype.isnative and (x.ndim == n_core or x.shape == batch + core):
        return x, 0 if x.ndim == n_core else x.itemsize * math.prod(core)
    expected = x.itemsize
    for size, stride in zip(reversed(x.shape[x.ndim - n_core :]), reversed(x.strides[x.ndim - n_core :]), strict=True):
        if size != 1 and stride != expected:
            return None
        expected *= size
    if not flags.aligned or not x.dtype.isnative:
        return None
    lead = (1,) * (len(batch) - (x.ndim - n_core)) + x.shape[: x.ndim - n_core]
    strides = (0,) * (len(batch) - (x.ndim - n_core)) + x.strides[: x.ndim - n_core]
    step: int | None = None
    expected = 0
    for whole, size, stride in zip(reversed(batch), reversed(lead), reversed(strides), strict=True):
        if whole == 1:
            continue
        stride = stride if size != 1 else 0
        if step is None:
            step = stride
        elif stride != expected:
            return None
        expected = stride * whole
    return x, step or 0


def rows(x: np.ndarray, core: Shape, batch: Shape) -> tuple[np.ndarray, int]:
    """`as_rows`, copying x where needed."""
    found = as_rows(x, core, batch)
    if found is None:
        full = np.empty(batch + core, x.dtype.newbyteorder("="))
        full[...] = x
        found = as_rows(full, core, batch)
        assert found is not None
    return found


def check_threads(threads: Any) -> int | None:
    """The requested number of threads, checked; None for as many as the work is worth."""
    if threads is None:
        return None
    try:
        number = operator.index(threads)
    except TypeError:
        number = 0
    if number < 1:
        raise CoadjointError(f"threads is {threads!r}; expected a whole number, 1 or more.")
    return number


def check_outs(function: str, out: Any, shapes: Sequence[Shape], dtype: Any) -> list[np.ndarray]:
    """The arrays of `out`, one for each result; errors for those that results of these shapes cannot be written to."""
    if len(shapes) == 1:
        outs, names = [out], ["out"]
    else:
        if not isinstance(out, tuple | list) or len(out) != len(shapes):
            raise CoadjointError(f"out must be a tuple of {len(shapes)} arrays: {function} has as many results.")
        outs, names = list(out), [f"out[{k}]" for k in range(len(shapes))]
    for k, (x, shape) in enumerate(zip(outs, shapes, strict=True)):
        _check_out(names[k], x, shape, dtype)
        for other in range(k):
            if _overlap(outs[other], x):
                raise CoadjointError(f"{names[other]} and {names[k]} share memory; results would overwrite each other.")
    return outs


def _check_out(name: str, out: Any, shape: Shape, dtype: Any) -> None:
    if not isinstance(out, np.ndarray):
        raise CoadjointError(f"{name} is a {type(out).__name__}; expected a NumPy array to write to.")
    if out.shape != shape:
        raise ShapeError(f"{name} has shape {out.shape}; the result has shape {shape}.")
    if out.dtype != dtype:
        raise CoadjointError(f"{name} has dtype {out.dtype}; the result has dtype {dtype}.")
    if not out.flags.writeable:
        raise CoadjointError(f"{name} is read-only.")
    if any(n > 1 and stride == 0 for n, stride in zip(out.shape, out.strides, strict=True)):
        raise CoadjointError(f"{name} has the same memory for several entries; results would overwrite each other.")


def _overlap(x: np.ndarray, y: np.ndarray) -> bool:
    try:
        return np.shares_memory(x, y, max_work=10_000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True
