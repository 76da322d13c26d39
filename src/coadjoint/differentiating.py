"""Derivatives of any function of a robot, ours or a user's, by its arrays and by every number of the robot.

The function is run once on symbols and its graph differentiated, exactly, by the rules of `kernel.derive`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .arrays import Array, namespace, transpose
from .compiling import PARAMETERS, SIZES, as_written, trace
from .errors import CoadjointError, unknown
from .kernel.dispatch import core_shape
from .kernel.graph import Graph
from .robot.parameters import FRAME_SETS, SETS
from .robot.robot import Robot


def differential(fn: Callable[..., Any], wrt: str = "q") -> Callable[..., Any]:
    """The function ∂fn/∂wrt of the same arguments, fn(robot, *arrays, **options), to run, `trace`, `compile` or differentiate again.

    wrt is one of fn's arrays, a set of the robot's parameters (see `Robot.parameters`: "inertial", "lengths", "dh:tip", …), or one of
    its arrays of numbers as they are ("inertias", "placements", "screws"), whose constraints are then the caller's. Axes of wrt come
    after those of the result; for "q" that is one of size nv, along the tangent vectors of `robot.integrate`.
    """
    names = [p.name for p in list(inspect.signature(fn).parameters.values())[1:]]
    known = [*names, *SETS, *(x for x in PARAMETERS if x not in SETS), *(f"{x}:frame" for x in FRAME_SETS)]
    if wrt not in known and wrt.partition(":")[0] not in FRAME_SETS:
        raise unknown("argument of the function or number of a robot", wrt, known)

    @functools.wraps(fn)
    def derivative(robot: Robot, *args: Any, **options: Any) -> Any:
        given = dict(zip(names, args, strict=False)) | options
        if wrt in names and not hasattr(given.get(wrt), "shape"):
            given[wrt] = np.asarray(given.get(wrt), dtype=float)
        arrays = {name: x for name, x in given.items() if hasattr(x, "shape")}
        if not namespace(*arrays.values(), *(getattr(robot, x) for x in PARAMETERS)).__name__.endswith("symbols"):
            return _evaluated(derivative, robot, arrays, {name: x for name, x in given.items() if name not in arrays})
        if wrt in names:
            results, several = _jacobians(lambda x: fn(robot, **(given | {wrt: x})), given[wrt], given.values())
            if wrt == "q":
                along = transpose(robot.rate(given["q"], np.eye(robot.nv)))
                results = [y @ along for y in results]
        elif wrt in PARAMETERS and wrt not in SETS:
            results, several = _jacobians(
                lambda x: fn(robot.with_numbers(**{wrt: x}), **given), getattr(robot, wrt), given.values()
            )
        else:
            results, several = _jacobians(
                lambda x: fn(robot.with_parameters(wrt, x), **given), robot.parameters(wrt), given.values()
            )
        return tuple(results) if several else results[0]

    return derivative


def _jacobians(fn: Callable[[Array], Any], at: Array, others: Any) -> tuple[list[Array], bool]:
    """The Jacobians of fn's results at a place that may be made of symbols and numbers, and whether there are several results."""
    from .kernel.derive import jacobian, substitute
    from .kernel.expr import Expr
    from .kernel.table import Table
    from .kernel.trace import variables

    arrays = [x for x in (at, *others) if isinstance(x, np.ndarray) and x.dtype == object]
    table = next((x.table for a in arrays for x in a.ravel().tolist() if isinstance(x, Expr)), None) or Table()
    free = variables(table, -1 - len(table.op), at.shape)
    results = fn(free)
    several = isinstance(results, tuple)
    return [substitute(jacobian(y, free), free, at) for y in (results if several else (results,))], several


def _evaluated(derivative: Callable[..., Any], robot: Robot, arrays: dict[str, Array], options: dict[str, Any]) -> Any:
    """The derivative of numbers, node by node of its graph."""
    if namespace(*arrays.values()) is not np:
        raise CoadjointError("`differential` takes NumPy arrays and symbols; JAX and PyTorch have their own ways.")
    cores = getattr(getattr(derivative, "kernel", None), "cores", SIZES)
    shapes = {name: core_shape(cores[name], robot) if name in cores else x.shape for name, x in arrays.items()}
    graph = trace(derivative, robot, shapes=shapes, **options)
    return _evaluate(graph, *(np.asarray(arrays[name], dtype=float) for name in graph.input_names))


def _evaluate(graph: Graph, *arrays: Array) -> Any:
    from .kernel.evaluate import evaluate

    found = evaluate(graph, *arrays)
    return found if len(found) > 1 else found[0]


def derivative(
    fn: Callable[..., Any],
    robot: Robot,
    wrt: str = "q",
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    parameters: Sequence[str] = (),
    dtype: Any = np.float64,
    **options: Any,
) -> Callable[..., Any]:
    """A native callable of ∂fn/∂wrt at this robot: f(*arrays, *parameters, out=None, threads=None), as `compile` gives it for fn.

    wrt: see `differential`; axes of wrt come last. `derivative(inverse_dynamics, panda, "inertial")` is the regressor, and
    `derivative(pose, panda, "dh:tip", frame="tip")` what a calibration needs. Where native code is impossible the graph is
    evaluated node by node.
    """
    from .kernel import native

    graph = trace(differential(fn, wrt), robot, shapes=shapes, parameters=parameters, **options)
    if native.available():
        return native.build(graph, dtype)
    return as_written(lambda _, **named: _evaluate(graph, *named.values()), robot, graph, (), {}, np.dtype(dtype))
