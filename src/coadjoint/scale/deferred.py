"""Functions of a robot on Dask and xarray arrays: deferred evaluation, chunk by chunk.

A function has core axes, the last ones of each argument, and batch axes in front. On Dask arrays the batch axes may be in chunks: the
result has the same chunks, and each becomes one task, on one thread. Shapes are checked, names of frames looked up, and the kernel made,
when the graph is built: the function is called once on an empty batch.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ..arrays import any_lazy, broadcast_batch, is_dask, is_labelled, not_real, refuse_lazy
from ..errors import CoadjointError, ShapeError
from .task import Task, by_argument, check_robot, fields, parameter, whole

F = TypeVar("F", bound=Callable[..., Any])
Core = str | Callable[..., Any]
"""The core axes of an argument, named by their sizes as for `kernel`: "nq", "n_links 6"; a function where they depend on its shape.
Of the argument `parameters`, a mapping of arrays, a function of the robot and the mapping: the core axes of every array."""
SETS = "parameters"


def lazily(*returns: str, **cores: Core) -> Callable[[F], F]:
    """A decorator that lets fn(robot, …) take Dask and xarray arrays. The core axes are declared as for `kernel`, which includes
    this decorator.
    """

    def decorate(fn: F) -> F:
        signature = inspect.signature(fn)

        @functools.wraps(fn)
        def call(*args: Any, **options: Any) -> Any:
            if not any_lazy([*args, *options.values(), *_values(options.get(SETS))]):
                return fn(*args, **options)
            return call_lazily(call, returns, cores, signature.bind(*args, **options).arguments)

        return call  # type: ignore[return-value]

    return decorate


def call_kernel_lazily(kernel: Any, arguments: Mapping[str, Any]) -> Any:
    """The deferred call of a kernel, some of whose arguments are lazy."""
    from ..kernel.dispatch import check

    def check_shapes(robot: Any, shapes: Mapping[str, tuple[int, ...]]) -> None:
        check(robot, {name: (np.broadcast_to(0.0, shape), kernel.cores[name]) for name, shape in shapes.items()})

    return call_lazily(kernel.public, kernel.returns, kernel.cores, arguments, check_shapes)


def call_compiled_lazily(function: Any, arrays: Mapping[str, Any], out: Any, threads: int | None) -> Any:
    """The deferred call of a compiled function, some of whose arrays are lazy."""
    from ..arguments import check_inputs

    s = function.signature
    cores = {
        name: " ".join(f"{name}_{k}" for k in range(len(shape))) for name, shape in zip(s.input_names, s.input_shapes, strict=True)
    }
    wanted = dict(zip(s.input_names, s.input_shapes, strict=True))

    def check_shapes(_: Any, shapes: Mapping[str, tuple[int, ...]]) -> None:
        check_inputs(list(shapes), [wanted[name] for name in shapes], [np.broadcast_to(0.0, shape) for shape in shapes.values()])

    return call_lazily(function, None, cores, {**arrays, "out": out, "threads": threads or 1}, check_shapes)


def call_lazily(
    fn: Callable[..., Any],
    returns: Sequence[str] | None,
    cores: Mapping[str, Core],
    arguments: Mapping[str, Any],
    check_shapes: Callable[[Any, Mapping[str, tuple[int, ...]]], None] | None = None,
) -> Any:
    """The deferred call fn(**arguments), robot included, some of the arrays being lazy."""
    options = dict(arguments)
    robot = options.pop("robot", None)
    if robot is not None and not hasattr(robot, "links"):
        raise CoadjointError(f"the first argument is {type(robot).__name__}; expected a Robot, as from coadjoint.load('panda').")
    if options.get("out") is not None:
        raise CoadjointError("out is given beside Dask or xarray arrays, whose results are made later; leave it out.")
    options.pop("out", None)
    sets = cores.get(SETS)
    arrays = {name: options.pop(name) for name in cores if name != SETS and options.get(name) is not None}
    if callable(sets) and isinstance(numbers := options.get(SETS), Mapping):
        cores = {**cores, **{parameter(name): core for name, core in sets(robot, options.pop(SETS)).items()}}
        arrays |= {parameter(name): x for name, x in numbers.items()}
    for name, x in options.items():
        refuse_lazy(x, name)
    own = {name: core(arrays[name]) if callable(core := cores[name]) else core for name in arrays}

    def run(plain: Mapping[str, Any]) -> Any:
        if any(map(is_dask, plain.values())):
            return _on_chunks(fn, robot, plain, own, options, check_shapes)
        return fn(*(() if robot is None else (robot,)), **by_argument(plain), **options)

    if not any(map(is_labelled, arrays.values())):
        return run(arrays)
    from .labels import call_labelled

    return call_labelled(robot, getattr(fn, "__name__", None), arrays, own, returns, run)


def _values(parameters: Any) -> Sequence[Any]:
    """The arrays of an argument `parameters` {name: array}."""
    return list(parameters.values()) if isinstance(parameters, Mapping) else []


def _on_chunks(
    fn: Callable[..., Any],
    robot: Any,
    arrays: Mapping[str, Any],
    cores: Mapping[str, str],
    options: Mapping[str, Any],
    check_shapes: Callable[[Any, Mapping[str, tuple[int, ...]]], None] | None,
) -> Any:
    """The function on Dask arrays."""
    if robot is not None:
        check_robot(robot)
    checked = {name: _floating(name, x) for name, x in arrays.items()}
    counts = {name: len(cores[name].split()) for name in arrays}
    # Arrays of the same shapes without memory; a size that Dask does not know yet counts as 1.
    shells = {name: np.broadcast_to(0.0, [1 if math.isnan(n) else n for n in x.shape]) for name, x in checked.items()}
    if check_shapes:
        check_shapes(robot, {name: x.shape for name, x in shells.items()})
    for name, x in shells.items():
        if x.ndim < counts[name]:
            raise ShapeError(f"{name} has shape {x.shape}; expected (..., {', '.join(cores[name].split())}).")
    broadcast_batch(**{name: (x, counts[name]) for name, x in shells.items()})
    task = Task(fn, robot, tuple(arrays), options, alone=True)
    none = [np.empty((0, *x.shape[x.ndim - counts[name] :]), checked[name].dtype) for name, x in shells.items()]
    sample = task.result(*none)
    found = _mapped(task, list(checked.values()), list(counts.values()), [np.asarray(x) for x in fields(sample)])
    return whole(sample, found, robot)


def _mapped(task: Task, arrays: list[Any], counts: list[int], sample: Sequence[np.ndarray]) -> tuple[Any, ...]:
    """The results of the task as Dask arrays, one task for each chunk of the batch; `sample` has the results for an empty batch,
    (0, …).
    """
    import dask.array as da

    inner = [",".join(f"i{k}x{axis}" for axis in range(n)) for k, n in enumerate(counts)]
    outer = [",".join(f"o{k}x{axis}" for axis in range(x.ndim - 1)) for k, x in enumerate(sample)]
    several = len(sample) > 1
    found = da.apply_gufunc(
        task,
        ",".join(f"({x})" for x in inner) + "->" + ",".join(f"({x})" for x in outer),
        *_aligned(arrays, counts),
        output_dtypes=[x.dtype for x in sample] if several else sample[0].dtype,
        output_sizes={f"o{k}x{axis}": n for k, x in enumerate(sample) for axis, n in enumerate(x.shape[1:])},
    )
    return tuple(found) if several else (found,)


def _aligned(arrays: list[Any], counts: list[int]) -> list[Any]:
    """The arrays as Dask arrays of common chunks in the batch and one chunk in the core."""
    import dask.array as da

    arrays = [da.asarray(x) for x in arrays]
    arrays = [x.rechunk({x.ndim - 1 - k: -1 for k in range(n)}) if n else x for x, n in zip(arrays, counts, strict=True)]
    pairs: list[Any] = []
    for k, (x, n) in enumerate(zip(arrays, counts, strict=True)):
        lead = x.ndim - n
        pairs += [x, tuple(("batch", lead - axis) if axis < lead else ("core", k, axis) for axis in range(x.ndim))]
    _, arrays = da.core.unify_chunks(*pairs)
    return arrays


def _floating(name: str, x: Any) -> Any:
    """A NumPy or Dask array of floating-point numbers."""
    if not is_dask(x):
        try:
            x = np.asarray(x)
        except (ValueError, TypeError):
            raise not_real(name, x) from None
    if x.dtype.kind not in "fiub":
        raise CoadjointError(f"{name} has dtype {x.dtype}; expected real numbers.")
    return x if x.dtype.kind == "f" else x.astype(np.float64)
