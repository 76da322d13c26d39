"""Constraints that users write as functions of q: run once on symbols, and differentiated there.

The function gets q (nq,) without batch axes. What it computes is kept as a graph, which then runs on arrays of every kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array, mv, namespace, stack
from ..errors import CoadjointError, ShapeError
from ..robot.robot import Robot
from .parts import Part


def graph_of(robot: Robot, key: Any, run: Callable[..., Any], **shapes: tuple[int, ...]) -> Any:
    """The simplified graph of `run` on symbols of these shapes, made once for a robot."""
    kept = robot._cache.setdefault("constraint graphs", {})
    if key not in kept:
        from ..kernel.passes.simplify import simplify
        from ..kernel.trace.trace import trace

        kept[key] = simplify(trace(run, shapes, "constraint"))
    return kept[key]


def evaluated(graph: Any, *arrays: Array) -> Array:
    """The one output of a graph for arrays of any kind with batch axes in front."""
    from ..kernel.ops import OPS
    from ..kernel.passes.evaluate import evaluate

    xp = namespace(*arrays)
    if xp is np or xp.__name__.endswith("symbols"):
        return evaluate(graph, *arrays)[0]
    columns = []
    for x in arrays:
        parts = np.empty(x.shape[-1], dtype=object)
        for k in range(len(parts)):
            parts[k] = x[..., k]
        columns.append(parts)
    operations = {name: _lifted(getattr(xp, op.array), arrays[0]) for name, op in OPS.items()}
    (found,) = evaluate(graph, *columns, operations=operations)
    flat = stack([x + 0.0 * arrays[0][..., 0] for x in found.ravel().tolist()])
    return flat.reshape((*flat.shape[:-1], *found.shape))


def _lifted(operation: Callable[..., Array], reference: Array) -> Callable[..., Array]:
    """An operation of an array library that also takes plain numbers."""
    zero = 0.0 * reference[..., 0]
    return lambda *args: operation(*(x + zero if isinstance(x, float) else x for x in args))


def _unpacked(x: Any) -> Any:
    """An array of symbols where NumPy has made one of arrays that hold one symbol each: np.array([[q[0], 1.0]])."""
    array = np.asanyarray(x)
    if array.dtype == object:
        for index in np.ndindex(array.shape):
            if isinstance(array[index], np.ndarray) and array[index].ndim == 0 and array.ndim:
                array[index] = array[index].item()
    return array


@dataclass(frozen=True)
class Function(Part):
    """fn(q) -> φ (m,), or with `is_jacobian` fn(q) -> A (m, nv)."""

    fn: Callable[[Array], Array]
    is_jacobian: bool

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise CoadjointError(f"expected a function of q, not {self.fn!r}.")
        try:
            hash(self.fn)
        except TypeError:
            raise CoadjointError(f"the function {self.fn!r} has no hash; give one that has, such as a plain function.") from None

    @property
    def name(self) -> str:
        return str(getattr(self.fn, "__name__", type(self.fn).__name__)).replace("<lambda>", "row")

    def names(self, robot: Robot) -> tuple[str, ...]:
        m = self._graph(robot).output_shapes[0][0]
        return (self.name,) if m == 1 else tuple(f"{self.name} {k}" for k in range(m))

    def holonomic(self, robot: Robot) -> tuple[bool, ...]:
        return (not self.is_jacobian,) * self._graph(robot).output_shapes[0][0]

    def _graph(self, robot: Robot) -> Any:
        """fn itself."""
        return graph_of(robot, (self, "value"), lambda q: self._checked(robot, self.fn(q)), q=(robot.nq,))

    def _checked(self, robot: Robot, x: Any) -> Any:
        from ..kernel.trace.symbols import symbols

        x = symbols(_unpacked(x))
        wanted = 2 if self.is_jacobian else 1
        if x.ndim == wanted - 1:
            x = x[None]
        if x.ndim != wanted or not x.shape[0] or (self.is_jacobian and x.shape[1] != robot.nv):
            expected = f"(m, {robot.nv}), rows A of A v = 0" if self.is_jacobian else "(m,), values that vanish"
            raise ShapeError(f"the constraint {self.name!r} returned an array of shape {x.shape}; expected {expected}.")
        return x

    def value(self, robot: Robot, q: Array) -> Array | None:
        return None if self.is_jacobian else evaluated(self._graph(robot), q)

    def _rows(self, robot: Robot, q: Array) -> Array:
        """A (m, nv) on symbols."""
        if self.is_jacobian:
            return evaluated(self._graph(robot), q)
        from ..arrays import transpose
        from ..kernel.passes.derive import jacobian_of

        by_q = jacobian_of(lambda x: evaluated(self._graph(robot), x), q)[1]
        return by_q @ transpose(robot.rate(q, np.eye(robot.nv)))

    def jacobian(self, robot: Robot, q: Array) -> Array:
        if self.is_jacobian:
            return evaluated(self._graph(robot), q)
        return evaluated(graph_of(robot, (self, "jacobian"), lambda q: self._rows(robot, q), q=(robot.nq,)), q)

    def bias(self, robot: Robot, q: Array, v: Array) -> Array:
        def run(q: Array, v: Array) -> Array:
            from ..kernel.passes.derive import jvp

            return jvp(mv(self._rows(robot, q), v), q, robot.rate(q, v))

        return evaluated(graph_of(robot, (self, "bias"), run, q=(robot.nq,), v=(robot.nv,)), q, v)

    def identity(self, robot: Robot) -> str:
        from ..kernel.runtime.cache_key import of_graph

        return f"{self.is_jacobian} {of_graph(self._graph(robot))}"
