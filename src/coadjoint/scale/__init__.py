"""Batches that outgrow memory or one machine: Dask and xarray arrays, and streams from files to files; see docs/scale.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .deferred import call_lazily

__all__ = ["lazy", "stream"]


def __getattr__(name: str) -> Any:
    if name == "stream":
        from .streaming import stream

        return stream
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def lazy(fn: Callable[..., Any], *args: Any, core: int | Sequence[int] = 1, **options: Any) -> Any:
    """fn(robot, *arrays, **options) on Dask or xarray arrays, for functions that do not take them by themselves.

    fn is called with NumPy arrays, chunk after chunk, also once with no states, (0, …), when the graph is built. Its arguments, a robot
    first or none, have any batch axes in front, as have its results: one array or a tuple. core: how many axes of each array are not
    batch axes, one number for all or one for each. To run on other processes fn must be importable there, or be run by Dask's own
    cluster, which sends functions whole.
    """
    robot = args[:1] if args and hasattr(args[0], "links") else ()
    arrays = args[len(robot) :]
    counts = [core] * len(arrays) if isinstance(core, int) else list(core)
    cores = {f"array{k}": " ".join(f"core{k}_{axis}" for axis in range(n)) for k, n in enumerate(counts)}
    call = _Positional(fn)
    return call_lazily(
        call, None, cores, {**({"robot": robot[0]} if robot else {}), **dict(zip(cores, arrays, strict=True)), **options}
    )


class _Positional:
    """fn called with its arrays by position."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn, self.__name__ = fn, getattr(fn, "__name__", "function")

    def __call__(self, *robot: Any, **named: Any) -> Any:
        arrays = [named.pop(f"array{k}") for k in range(sum(name.startswith("array") for name in named))]
        return self.fn(*robot, *arrays, **named)
