"""Arrays as machine code reads them: states evenly apart in memory, each of them contiguous."""

from __future__ import annotations

import math

import numpy as np

from ...arguments import Shape


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
