"""Every program proves itself: its machine code is run on examples beside the program as written.

Sums of what it gives there are kept in its file, and checked when it is loaded, as for kernels (`selftest.py`). An example
is far from ties, so that rounding decides nothing in it.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import KernelWarning
from .runtime.bound import Bound
from .selftest import summed

TOLERANCE = 1e-7
"""The error of a result, beside its largest entry, that amplified rounding explains in an example."""

_RUN = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 2)
_REPEAT = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 6, *[ctypes.c_int64] * 3)


@dataclass(frozen=True)
class Example:
    """Arguments of a program, and which arrays among them hold its results afterwards."""

    arguments: tuple[Any, ...]
    results: tuple[np.ndarray, ...]


Examples = Callable[[], Sequence[Example]]
"""Makes the examples of a program, always the same."""


class Called(Bound):
    """A Python function bound to its arrays, which machine code may call."""

    def __init__(self, function: Callable[..., Any], inputs: Any, outputs: Any, stepped: bool = False) -> None:
        super().__init__(function, inputs, outputs, stepped)
        self._called = (
            _RUN(lambda *given: self.run(*given[-2:])),
            _REPEAT(lambda *given: self.repeat(given[-3], given[-1])),
        )
        self.record[:2] = [ctypes.cast(x, ctypes.c_void_p).value or 0 for x in self._called]


def results(run: Callable[..., Any], examples: Sequence[Example]) -> list[np.ndarray]:
    """The values that a program returns and leaves in its arrays, of each example."""
    found = []
    for example in examples:
        returned = run(*example.arguments)
        found += [np.array([0.0 if returned is None else float(returned)]), *(x.copy() for x in example.results)]
    return found


def sums(run: Callable[..., Any], examples: Examples) -> list[list[float]]:
    """The sums of each result, as `selftest.sums` for a kernel."""
    return [summed(x) for x in results(run, examples())]


def disagreement(run: Callable[..., Any], written: Callable[..., Any], examples: Examples) -> str:
    """The difference between machine code and the program as written, in words; empty if none."""
    for k, (x, y) in enumerate(zip(results(run, examples()), results(written, examples()), strict=True)):
        size = float(np.max(np.abs(y), initial=0.0, where=np.isfinite(y)))
        with np.errstate(invalid="ignore"):
            bad = ~((x == y) | (np.abs(x - y) <= TOLERANCE * size) | (np.isnan(x) & np.isnan(y)))
        if bad.any():
            place = tuple(int(i) for i in np.argwhere(bad)[0])
            got, wanted = float(x[place]), float(y[place])
            return f"{int(bad.sum())} of {bad.size} entries of result {k} differ; entry {place} is {got!r}, as written {wanted!r}"
    return ""


def warn(name: str, what: str) -> None:
    """Say that the machine code of a program is wrong."""
    warnings.warn(
        f"the machine code of the program {name} does not compute what its source does: {what}. It is not used; results come from the "
        "source, slowly. This is an error in coadjoint: please report it, with the processor and the versions of coadjoint and llvmlite.",
        KernelWarning,
        stacklevel=2,
    )
