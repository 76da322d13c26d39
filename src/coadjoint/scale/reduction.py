"""The results that a stream keeps of every chunk, and the identity by which a continued stream recognizes its reduction."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import CoadjointError
from ..words import short

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
        """Its name, and a digest of what it makes of examples shaped as these results: two functions of one name, or one that reads a
        variable which has changed, differ there.
        """
        digest = hashlib.sha256()
        for sample in samples:
            rng = np.random.default_rng(0)
            shape = (ROWS, *sample.shape[1:])
            example = rng.normal(size=shape) * 10.0 ** rng.uniform(-4, 4, size=shape)
            digest.update(self(example.astype(sample.dtype)).tobytes())
        return f"{self.name} {digest.hexdigest()[:16]}"
