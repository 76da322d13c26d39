"""Laws with their references as machine code: the reference inside it where it can be traced, else evaluated outside at every time.

A reference is any function of time. One that is written with array operations is traced and runs inside the compiled law. One that is
not, as a spline of SciPy, a look-up in a table, a function with an `if`, or a stream from elsewhere, is called with each time as a
number, in their order, and what it gives goes into the compiled law as an input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..arrays import Array, like
from ..errors import TraceError
from ..families import built
from ..kernel.graph import Graph
from ..robot.robot import Robot

Law = Callable[..., Any]
Shapes = Mapping[str, tuple[int, ...]]


class UntracedReference(TraceError):
    """A reference that cannot be traced stands where it must be."""


def desired_at(reference: Law, t: Any, beside: Array | None = None) -> tuple[Array, ...]:
    """reference(t), plain numbers as arrays of the library of `beside`; for a symbol, an error that tells what to do where it cannot be
    traced.
    """
    if not hasattr(t, "__coadjoint_symbol__"):
        return tuple(like(x, beside) if beside is not None and type(x) is np.ndarray else x for x in reference(t))
    try:
        return tuple(reference(t))
    except Exception as problem:  # whatever a user's function does with a symbol: with a number it may be right
        raise UntracedReference(
            f"the reference cannot be traced ({problem}). It is evaluated outside of the compiled step by `simulate`, `rollout`, "
            "`closed_loop`, `force` and `step`; here, write it with array operations, as `coadjoint.where` for a choice."
        ) from None


def desired_during(reference: Law, times: np.ndarray) -> list[np.ndarray]:
    """The values of the reference at times (...): arrays (..., *shape)."""
    each = [[np.asarray(x, dtype=float) for x in reference(float(t))] for t in times.reshape(-1)]
    return [np.stack(x).reshape(*times.shape, *x[0].shape) for x in zip(*each, strict=True)]


def is_traced(reference: Law) -> bool:
    """True if a reference can be traced."""
    from ..kernel.trace.trace import trace

    try:
        trace(lambda t: desired_at(reference, t[..., 0]), {"t": (1,)}, "reference")
    except UntracedReference:
        return False
    return True


def compiled(robot: Robot, law: Law, reference: Law, shapes: Shapes, name: str) -> Callable[..., Any]:
    """law(*arrays, *desired) as machine code: a function of arrays of these shapes, among them the time t (1,)."""
    try:
        return built(robot, _whole(law, reference, shapes), shapes, name)
    except UntracedReference:
        return _outside(robot, law, reference, shapes, name)


def graph_of(law: Law, reference: Law, shapes: Shapes, name: str) -> Graph:
    """The graph of the force; where the reference cannot be traced, its values take the place of t, as desired0, desired1, …"""
    from ..kernel.passes.simplify import simplify
    from ..kernel.trace.trace import trace

    try:
        return simplify(trace(_whole(law, reference, shapes), shapes, name))
    except UntracedReference:
        return simplify(trace(law, _given(shapes, desired_during(reference, np.array(0.0))), name))


def _whole(law: Law, reference: Law, shapes: Shapes) -> Law:
    at = list(shapes).index("t")
    return lambda *arrays: law(*arrays[:at], *arrays[at + 1 :], *desired_at(reference, arrays[at][..., 0]))


def _given(shapes: Shapes, desired: list[np.ndarray], axes: int = 0) -> dict[str, tuple[int, ...]]:
    own = {name: shape for name, shape in shapes.items() if name != "t"}
    return own | {f"desired{k}": x.shape[axes:] for k, x in enumerate(desired)}


def _outside(robot: Robot, law: Law, reference: Law, shapes: Shapes, name: str) -> Callable[..., Any]:
    """The law for a reference that is evaluated at the times of every call, and not once more."""
    at = list(shapes).index("t")
    made: list[Callable[..., Any]] = []

    def run(*arrays: Any) -> Any:
        times = arrays[at][..., 0]
        desired = desired_during(reference, times)
        if not made:
            made.append(built(robot, law, _given(shapes, desired, times.ndim), name))
        return made[0](*arrays[:at], *arrays[at + 1 :], *desired)

    return run
