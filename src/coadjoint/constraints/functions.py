"""Constraints that users write as functions of q: run on symbols, and differentiated there.

The function gets q (nq,) without batch axes. It is traced anew each time the constraint is used, so that it sees the present values
of the variables it reads; `Written.frozen` keeps the present trace as a graph, which then runs on arrays of every kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array, mv
from ..errors import CoadjointError, ShapeError
from ..memo import recent
from ..robot.robot import Robot
from ..traced import Traced, check_pickles, evaluated, traced
from .parts import Part


def graph_of(robot: Robot, key: Any, run: Callable[..., Any], **shapes: tuple[int, ...]) -> Any:
    """The simplified graph of `run` on symbols of these shapes; `key` must determine it for this robot."""

    def make() -> Any:
        from ..kernel.passes.simplify import simplify
        from ..kernel.trace.trace import trace

        return simplify(trace(run, shapes, "constraint"))

    return recent(robot, ("graph", key), make)


def unpacked(x: Any) -> Any:
    """An array of symbols from NumPy's array of arrays with one symbol each, as made by np.array([[q[0], 1.0]])."""
    array = np.asanyarray(x)
    if array.dtype == object:
        for index in np.ndindex(array.shape):
            if isinstance(array[index], np.ndarray) and array[index].ndim == 0 and array.ndim:
                array[index] = array[index].item()
    return array


@dataclass(frozen=True)
class Written(Part):
    """fn(q) -> φ (m,), or with `is_jacobian` fn(q) -> A (m, nv), as a user wrote it."""

    fn: Callable[[Array], Array]
    is_jacobian: bool

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise CoadjointError(f"expected a function of q, not {self.fn!r}.")

    @property
    def name(self) -> str:
        return str(getattr(self.fn, "__name__", type(self.fn).__name__)).replace("<lambda>", "row")

    def frozen(self, robot: Robot) -> Function:
        found = traced(lambda q: self._checked(robot, self.fn(q)), {"q": (robot.nq,)}, "constraint")
        return Function(self.name, self.is_jacobian, found)

    def held(self, robot: Robot, q: np.ndarray) -> Function:
        return self.frozen(robot)

    def _checked(self, robot: Robot, x: Any) -> Any:
        from ..kernel.trace.symbols import symbols

        x = symbols(unpacked(x))
        wanted = 2 if self.is_jacobian else 1
        if x.ndim == wanted - 1:
            x = x[None]
        if x.ndim != wanted or not x.shape[0] or (self.is_jacobian and x.shape[1] != robot.nv):
            expected = f"(m, {robot.nv}), rows A of A v = 0" if self.is_jacobian else "(m,), values that vanish"
            raise ShapeError(f"the constraint {self.name!r} returned an array of shape {x.shape}; expected {expected}.")
        return x

    def names(self, robot: Robot) -> tuple[str, ...]:
        return self.frozen(robot).names(robot)

    def holonomic(self, robot: Robot) -> tuple[bool, ...]:
        return self.frozen(robot).holonomic(robot)

    def identity(self, robot: Robot) -> str:
        return self.frozen(robot).identity(robot)

    def __reduce__(self) -> Any:
        frozen = ", or pickle `constraint.frozen(robot)`, which has what the function computes now"
        check_pickles(self.fn, f"the constraint {self.name!r}", frozen)
        return Written, (self.fn, self.is_jacobian)


@dataclass(frozen=True)
class Function(Part):
    """A user's function as traced."""

    name: str
    is_jacobian: bool
    computed: Traced

    def names(self, robot: Robot) -> tuple[str, ...]:
        m = self.computed.shape[0]
        return (self.name,) if m == 1 else tuple(f"{self.name} {k}" for k in range(m))

    def holonomic(self, robot: Robot) -> tuple[bool, ...]:
        return (not self.is_jacobian,) * self.computed.shape[0]

    def value(self, robot: Robot, q: Array) -> Array | None:
        return None if self.is_jacobian else self.computed(q)

    def _rows(self, robot: Robot, q: Array) -> Array:
        """A (m, nv) on symbols."""
        if self.is_jacobian:
            return self.computed(q)
        from ..arrays import transpose
        from ..kernel.passes.derive import jacobian_of

        by_q = jacobian_of(self.computed, q)[1]
        return by_q @ transpose(robot.rate(q, np.eye(robot.nv)))

    def jacobian(self, robot: Robot, q: Array) -> Array:
        if self.is_jacobian:
            return self.computed(q)
        return evaluated(graph_of(robot, (self, "jacobian"), lambda q: self._rows(robot, q), q=(robot.nq,)), q)

    def bias(self, robot: Robot, q: Array, v: Array) -> Array:
        def run(q: Array, v: Array) -> Array:
            from ..kernel.passes.derive import jvp

            return jvp(mv(self._rows(robot, q), v), q, robot.rate(q, v))

        return evaluated(graph_of(robot, (self, "bias"), run, q=(robot.nq,), v=(robot.nv,)), q, v)

    def identity(self, robot: Robot) -> str:
        return f"{self.is_jacobian} {self.computed.digest}"
