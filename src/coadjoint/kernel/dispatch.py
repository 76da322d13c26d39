"""The decorator where the executions of one source meet.

A function marked `@kernel("nv", q="nq", v="nv")` is written for a robot and arrays whose core shapes are named so, and returns
an array whose core shape is the first. The wrapper checks the arrays, brings the robot's numbers to their kind, runs the function
as written, and gives the result all batch axes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..arrays import Array, asfloat, broadcast_batch, like, namespace
from ..errors import CoadjointError, ShapeError

F = TypeVar("F", bound=Callable[..., Any])


def kernel(*returns: str, explain: Callable[..., None] | None = None, **cores: str) -> Callable[[F], F]:
    """Declare the core shapes of a function's results and array arguments by the robot's sizes: `wrenches="n_links 6"`.

    A function whose first result is nan where there is none gives `explain`, which is called with the robot and the arrays when
    that happens to NumPy arrays, to raise an error that says why.
    """

    def decorate(source: F) -> F:
        signature = inspect.signature(source)

        @functools.wraps(source)
        def call(robot: Any, *args: Any, **options: Any) -> Any:
            bound = signature.bind(robot, *args, **options)
            bound.apply_defaults()
            arrays, batch = check(robot, {name: (bound.arguments[name], core) for name, core in cores.items()})
            bound.arguments.update(arrays)
            reference = next(x for x in arrays.values() if x is not None)
            bound.arguments["robot"] = robot.like(reference)
            result = source(*bound.args, **bound.kwargs)
            if len(returns) == 1:
                result = spread(result, batch, len(returns[0].split()), reference)
                if explain is not None and type(result) is np.ndarray and result.dtype != object and np.isnan(result).any():
                    explain(robot, **arrays)
                return result
            return tuple(spread(x, batch, len(core.split()), reference) for x, core in zip(result, returns, strict=True))

        call.source = source  # type: ignore[attr-defined]
        call.cores = cores  # type: ignore[attr-defined]
        call.returns = returns  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


def check(robot: Any, named: dict[str, tuple[Any, str]]) -> tuple[dict[str, Array | None], tuple[int, ...]]:
    """Each array as floating-point numbers of one array library, its last axes as declared; and the batch shape of all."""
    if not hasattr(robot, "links"):
        raise CoadjointError(f"the first argument is {type(robot).__name__}; expected a Robot, as from coadjoint.load('panda').")
    arrays: dict[str, Array | None] = {}
    batches: dict[str, tuple[Array, int]] = {}
    for name, (x, core) in named.items():
        if x is None:
            arrays[name] = None
            continue
        try:
            x = asfloat(x)
        except (ValueError, TypeError):
            raise ShapeError(f"{name} is {x!r}; expected numbers.") from None
        wanted = tuple(int(size) if size.isdigit() else getattr(robot, size) for size in core.split())
        if tuple(x.shape[-len(wanted) :]) != wanted:
            sizes = ", ".join(map(str, wanted))
            meaning = ", ".join(f"{size} = {n}" for size, n in zip(core.split(), wanted, strict=True) if not size.isdigit())
            raise ShapeError(f"{name} has shape {tuple(x.shape)}; expected (..., {sizes}) for robot {robot.name!r} ({meaning}).")
        arrays[name] = x
        batches[name] = (x, len(wanted))
    batch = broadcast_batch(**batches)
    given = [x for x, _ in batches.values()]
    xp = namespace(*given)
    if xp is not np and not xp.__name__.endswith("symbols"):
        reference = next(x for x in given if namespace(x) is xp)
        for name, x in arrays.items():
            if x is not None and namespace(x) is not xp:
                arrays[name] = like(x, reference)
    return arrays, batch


def spread(x: Array, batch: tuple[int, ...], core: int, reference: Array) -> Array:
    """The result with all batch axes, also where it does not depend on the arguments that have them."""
    xp = namespace(x, reference)
    if not hasattr(x, "shape") or namespace(x) is not xp:
        x = xp.asarray(x) if xp.__name__.startswith("jax") else like(x, reference)
    shape = (*batch, *x.shape[x.ndim - core :])
    if tuple(x.shape) == shape:
        return x
    x = xp.broadcast_to(x, shape)
    return x.copy() if xp is np else x
