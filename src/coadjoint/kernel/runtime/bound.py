"""Compiled functions bound to their arrays, as sequential programs call them (`kernel.programs.run`)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .function import CompiledFunction

RECORD = 8
"""Words of a bound function: addresses of `@run` and `@repeat`; pointers and strides of inputs, then of outputs; strides over steps of
both."""


class Bound:
    """A function and its arrays: inputs and outputs (rows, *core), or (rows, steps, *core) where `stepped`.

    One row, or one step, of an input stands for all. Cores are contiguous. Inputs of a step may be outputs of the one before.
    """

    def __init__(
        self, function: Callable[..., Any], inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], stepped: bool = False
    ) -> None:
        self.function, self.inputs, self.outputs, self.stepped = function, list(inputs), list(outputs), stepped
        owner = getattr(function, "__self__", function)
        self.native = isinstance(owner, CompiledFunction)
        self.record = np.zeros(RECORD, dtype=np.int64)
        if isinstance(owner, CompiledFunction):
            self.code = owner.kernel.code
            self._words = [_words(side, stepped) for side in (self.inputs, self.outputs)]
            (ins, instrides, insteps), (outs, outstrides, outsteps) = self._words
            addresses = (_address(self.code.run), _address(self.code.repeat))
            self.record[:] = *addresses, *(x.ctypes.data for x in (ins, instrides, outs, outstrides, insteps, outsteps))

    def run(self, start: int, stop: int) -> int:
        """Run the kernel as `@run` does, in Python."""
        self._compute([x if len(x) == 1 else x[start:stop] for x in self.inputs], [x[start:stop] for x in self.outputs])
        return 0

    def repeat(self, steps: int, rows: int) -> int:
        """Run the kernel step by step as `@repeat` does, in Python."""
        for t in range(steps):
            self._compute(
                [(x if len(x) == 1 else x[:rows])[:, t if x.shape[1] > 1 else 0] for x in self.inputs],
                [x[:rows, t] for x in self.outputs],
            )
        return 0

    def _compute(self, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
        found = self.function(*inputs)
        for place, x in zip(outputs, found if isinstance(found, tuple) else (found,), strict=True):
            place[...] = x


class Kernels:
    """Bound functions, by number."""

    def __init__(self, bound: Sequence[Bound]) -> None:
        self.bound = list(bound)
        self._records = np.concatenate([x.record for x in self.bound])
        self.address = self._records.ctypes.data

    @property
    def native(self) -> bool:
        """True if machine code may call them."""
        return all(x.native for x in self.bound)


def _words(arrays: Sequence[np.ndarray], stepped: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pointers, strides over rows and strides over steps."""
    for x in arrays:
        lead = 2 if stepped else 1
        core = np.lib.stride_tricks.as_strided(x, x.shape[lead:], x.strides[lead:])
        if not core.flags.c_contiguous or x.dtype != np.float64:
            raise TypeError(f"the core {x.shape[lead:]} of an array of a bound function is not contiguous float64")
    rows = [x.strides[0] if len(x) > 1 else 0 for x in arrays]
    steps = [x.strides[1] if stepped and x.shape[1] > 1 else 0 for x in arrays]
    return tuple(np.array([*values, 0], dtype=np.int64) for values in ([x.ctypes.data for x in arrays], rows, steps))  # type: ignore[return-value]


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
