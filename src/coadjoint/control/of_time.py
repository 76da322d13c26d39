"""Users' functions of time, as they are when a controller is made of them.

A function that is written with array operations is traced once, when it is given: the variables that it reads become constants with the
values that they have then, for `force`, `lyapunov`, `simulate`, `rollout`, `closed_loop` and exported C alike. A function that cannot be
traced is called at every time that is asked for, and reads its variables anew. So is one whose trace does not give what it gives itself, as
of a function that asks for the type of t, or catches the error that tells it that t is no number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import CoadjointError, TraceError
from ..kernel.trace.symbols import Symbols
from ..kernel.trace.trace import trace
from ..traced import all_evaluated

SOME_TIMES = (0.0, 0.3, 1.7, 12.9, 103.1)
"""Times at which a trace is compared with its function: parts of seconds, and times at which whole seconds or periods have passed."""


class OfTime:
    """A function of time that gives arrays: what its trace gives, or what it gives itself where it cannot be traced."""

    def __init__(self, given: Callable[[Any], tuple[Array, ...]]) -> None:
        self.given = given
        self.problem = ""
        """The reason why the function cannot be traced."""
        try:
            self.graph: Any = trace(lambda t: self._at_symbol(t[..., 0]), {"t": (1,)}, "reference")
            self._compare()
        except Exception as problem:  # whatever a user's function does with a symbol: with a number it may be right
            self.graph, self.problem = None, str(problem)

    def _at_symbol(self, t: Symbols) -> tuple[Array, ...]:
        found = tuple(_flat(x) for x in self.given(t))
        if not any(x.dtype == object for x in found):  # it may read a stream, or what changes later
            raise TraceError("it does not depend on t; give what is constant itself")
        return found

    def _compare(self) -> None:
        """An error if the trace does not give what the function gives for some number."""
        for t in SOME_TIMES:
            with np.errstate(all="ignore"):
                try:
                    own = self.given(t)
                except Exception:  # it may be made for other times
                    continue
                traced = all_evaluated(self.graph, np.array([t]))
            for name, x, y in zip(("first", "second", "third"), own, traced, strict=False):
                if not np.allclose(np.asarray(x, dtype=float), y, rtol=1e-6, atol=1e-9, equal_nan=True):
                    raise TraceError(f"the {name} of its results at t = {t:g} is another one for a number than for a symbol")

    def __call__(self, t: Any) -> tuple[Array, ...]:
        if self.graph is not None:
            return all_evaluated(self.graph, t[..., None] if hasattr(t, "shape") else np.array([t], dtype=float))
        if hasattr(t, "__coadjoint_symbol__"):
            raise TraceError(self.problem)
        return self.given(t)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | ({"given": None} if self.graph is not None else {})


def plain(x: Any, what: str) -> Array:
    """The result of a user's function as an array; an error if entries are masked: there is no number there."""
    if isinstance(x, np.ma.MaskedArray):
        if np.ma.getmaskarray(x).any():
            at = tuple(int(k) for k in np.argwhere(np.ma.getmaskarray(x))[0])
            raise CoadjointError(f"{what} has a masked entry at {list(at)}; give a number for every entry, as by `.filled(…)`.")
        return x.data
    return x if hasattr(x, "shape") else np.asarray(x)


def _flat(x: Any) -> Array:
    """An array of symbols also where a user wrote np.array([np.sin(t), …]), whose elements are arrays (,) of one symbol."""
    if type(x) is not np.ndarray or x.dtype != object:
        return x
    found = np.empty(x.shape, dtype=object)
    found.ravel()[:] = [e.item() if isinstance(e, np.ndarray) else e for e in x.ravel()]
    return found.view(Symbols)
