"""Derivatives of any function of a robot, ours or a user's, by its arrays and by every number of the robot.

The function is run once on symbols and its graph differentiated, exactly, by the rules of `kernel.derive`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .arguments import a_dictionary, a_function, a_name, a_robot, a_type, floats, names, some_names, takes
from .arrays import Array, concat, mv, namespace, refuse_lazy, transpose
from .compiling import PARAMETERS, SIZES, function_of, trace
from .errors import CoadjointError, unknown
from .kernel.dispatch import core_shape, written_to
from .kernel.graph import Graph
from .kernel.runtime.function import Recipe
from .robot.parameters import FRAME_SETS, SETS, check_together
from .robot.robot import Robot
from .traced import check_pickles


@takes(fn=a_function, wrt=a_name)
def differential(fn: Callable[..., Any], wrt: str = "q") -> Callable[..., Any]:
    """The function ∂fn/∂wrt of the same arguments, fn(robot, *arrays, **options), to run, `trace`, `compile` or differentiate again.

    wrt is one of fn's arrays, a set of the robot's parameters (see `Robot.parameters`: "inertial", "lengths", "dh:tip", …), or one of
    its arrays of numbers as they are ("inertias", "placements", "screws"), whose constraints are then the caller's. Axes of wrt come
    after those of the result; for "q" that is one of size nv, along the tangent vectors of `robot.integrate`.
    """
    return _Differential(fn, wrt, _check(fn, [wrt]))


class _Differential:
    """∂fn/∂wrt, called as fn is; it pickles if fn does."""

    def __init__(self, fn: Callable[..., Any], wrt: str, names: list[str]) -> None:
        self.__name__ = "differential"
        functools.update_wrapper(self, fn)
        vars(self).pop("source", None)  # that of fn
        self._fn, self._wrt, self._names = fn, wrt, names

    def __call__(self, robot: Robot, *args: Any, **options: Any) -> Any:
        wrt = self._wrt
        out = options.pop("out", None)
        try:
            inspect.signature(self._fn).bind(robot, *args, **options)
        except TypeError as error:
            raise TypeError(f"{self!r}: {error}") from None
        given = dict(zip(self._names, args, strict=False)) | options
        for name, x in given.items():
            refuse_lazy(x, name)
        arrays = {name: np.asanyarray(x) if name == wrt else x for name, x in given.items() if name == wrt or hasattr(x, "shape")}
        if not namespace(*arrays.values(), *(getattr(robot, x) for x in PARAMETERS)).__name__.endswith("symbols"):
            found = _evaluated(self, robot, arrays, {name: x for name, x in given.items() if name not in arrays})
            return written_to(out, found, self.__name__)
        from .kernel.passes.derive import jacobian, substitute

        here = _Place(self._fn, robot, given, [wrt])
        found = [substitute(jacobian(y, here.free), here.free, here.at).reshape(y.shape + here.shapes[0]) for y in here.results]
        if wrt == "q":
            along = transpose(robot.rate(given["q"], np.eye(robot.nv)))
            found = [y @ along for y in found]
        return tuple(found) if here.several else found[0]

    def __reduce__(self) -> Any:
        check_pickles(self._fn, repr(self))
        return differential, (self._fn, self._wrt)

    def __repr__(self) -> str:
        return f"<the differential of {self.__name__} by {self._wrt}>"


@takes(fn=a_function, robot=a_robot, wrt=a_name, shapes=a_dictionary, parameters=names, dtype=a_type)
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
    further = {"shapes": shapes, "parameters": parameters} | options
    recipe = Recipe(derivative, (fn, robot, wrt), further | {"dtype": dtype})
    return built_function(trace(differential(fn, wrt), robot, **further), dtype, recipe)


@takes(fn=a_function, robot=a_robot, wrt=some_names, dtype=a_type)
def jvp(
    fn: Callable[..., Any], robot: Robot, wrt: str | Sequence[str] = "q", *, dtype: Any = np.float64, **options: Any
) -> Callable[..., Any]:
    """A native callable f(*arrays, *directions): the derivative of fn along a direction of each of wrt, at little more than fn's cost.

    `jvp(inverse_dynamics, robot, ["q", "v", "a"])(q, v, a, dq, dv, da)` is ∂τ/∂q dq + ∂τ/∂v dv + M da without a matrix. The direction of
    q is a tangent vector (nv,). Options are those of `derivative`.
    """
    chosen = [wrt] if isinstance(wrt, str) else list(wrt)
    _check(fn, chosen)

    def product(here: _Place, robot: Robot, given: dict[str, Any], directions: Sequence[Array]) -> list[Array]:
        from .kernel.passes.derive import jvp as along
        from .kernel.passes.derive import substitute

        moved = [robot.rate(given["q"], d) if name == "q" else d for name, d in zip(chosen, directions, strict=True)]
        direction = concat([d.reshape(-1) for d in moved])
        return [substitute(along(y, here.free, direction), here.free, here.at) for y in here.results]

    return _product(fn, chosen, robot, product, [f"d{name}" for name in chosen], dtype, options, jvp)


@takes(fn=a_function, robot=a_robot, wrt=some_names, dtype=a_type)
def vjp(
    fn: Callable[..., Any], robot: Robot, wrt: str | Sequence[str] = "q", *, dtype: Any = np.float64, **options: Any
) -> Callable[..., Any]:
    """A native callable f(*arrays, weights): the gradient of Σ weights · fn by wrt, at a few times fn's cost; a tuple for several wrt.

    weights have the shape of fn's result, which must be one array; the gradient by q is a covector (nv,).
    """
    chosen = [wrt] if isinstance(wrt, str) else list(wrt)
    _check(fn, chosen)

    def product(here: _Place, robot: Robot, given: dict[str, Any], weights: Sequence[Array]) -> list[Array]:
        from .kernel.passes.derive import substitute
        from .kernel.passes.derive import vjp as pulled_back

        flat = substitute(pulled_back(here.results[0], here.free, weights[0]), here.free, here.at)
        found, start = [], 0
        for name, shape in zip(chosen, here.shapes, strict=True):
            stop = start + int(np.prod(shape))
            part = flat[start:stop].reshape(shape)
            found.append(mv(robot.rate(given["q"], np.eye(robot.nv)), part) if name == "q" else part)
            start = stop
        return found

    return _product(fn, chosen, robot, product, ["weights"], dtype, options, vjp)


def _check(fn: Callable[..., Any], chosen: Iterable[str]) -> list[str]:
    """The names of fn's arguments after the robot; an error if fn cannot be differentiated with respect to one of wrt."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)  # not `out` and `threads` of ours
    names = [p.name for p in list(inspect.signature(fn).parameters.values())[1:] if p.kind in kinds]
    known = [*names, *SETS, *_WHOLE, *(f"{x}:frame" for x in FRAME_SETS)]
    for wrt in chosen:
        if wrt not in known and wrt.partition(":")[0] not in FRAME_SETS:
            raise unknown("argument of the function or number of a robot", wrt, known)
    return names


def _number(robot: Robot, name: str) -> Array:
    """The robot's numbers of that name: a set of parameters, or one of its arrays."""
    return getattr(robot, name) if name in _WHOLE else robot.parameters(name)


_WHOLE = [x for x in PARAMETERS if x not in SETS]


class _Place:
    """fn's results as expressions in free symbols, which replace some of its arguments or of the robot's numbers."""

    def __init__(self, fn: Callable[..., Any], robot: Robot, given: dict[str, Any], chosen: Sequence[str]) -> None:
        from .kernel.trace.builder import GraphBuilder
        from .kernel.trace.expr import Expr
        from .kernel.trace.symbols import Symbols, symbols
        from .kernel.trace.trace import variables

        at = [given[x] if x in given else _number(robot, x) for x in chosen]
        arrays = [x for x in (*at, *given.values(), *(getattr(robot, x) for x in PARAMETERS)) if isinstance(x, Symbols)]
        table = next((x.table for a in arrays for x in a.ravel().tolist() if isinstance(x, Expr)), None) or GraphBuilder()
        self.shapes = [x.shape for x in at]
        self.at = symbols(concat([x.reshape(-1) for x in at]))
        check_together([x for x in chosen if x not in given])
        self.free = variables(table, ("free", len(table.op)), self.at.shape)
        start = 0
        for name, x in zip(chosen, at, strict=True):
            part = self.free[start : start + x.size].reshape(x.shape)
            start += x.size
            if name in given:
                given = given | {name: part}
            else:
                robot = robot.with_numbers(**{name: part}) if name in _WHOLE else robot.with_parameters(name, part)
        found = fn(robot, **given)
        self.several = isinstance(found, tuple)
        self.results = [symbols(y) for y in (found if self.several else (found,))]


def _product(
    fn: Callable[..., Any],
    chosen: Sequence[str],
    robot: Robot,
    product: Callable[..., list[Array]],
    further: Sequence[str],
    dtype: Any,
    options: dict[str, Any],
    maker: Callable[..., Any],
) -> Callable[..., Any]:
    """The native callable of a product with directions or weights, which are arguments after those of fn; `maker` makes it."""
    recipe = Recipe(maker, (fn, robot, list(chosen)), {"dtype": dtype} | options)
    graph = trace(fn, robot, **options)
    shapes = dict(zip(graph.input_names, graph.input_shapes, strict=True))
    parameters = options.pop("parameters", ())
    arrays = {x: shapes[x] for x in shapes if x not in parameters}
    options.pop("shapes", None)
    if further == ["weights"]:
        if len(graph.outputs) != 1:
            raise CoadjointError(f"{graph.name} has {len(graph.outputs)} results; `vjp` takes a function of one.")
        sizes = {"weights": graph.output_shapes[0]}
    else:
        sizes = {f"d{x}": (robot.nv,) if x == "q" else shapes[x] if x in shapes else _number(robot, x).shape for x in chosen}

    def run(robot: Robot, **named: Any) -> Any:
        given = {x: named[x] for x in arrays} | options
        found = product(_Place(fn, robot, given, chosen), robot, given, [named[x] for x in sizes])
        return tuple(found) if len(found) > 1 else found[0]

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    run.__signature__ = inspect.Signature([inspect.Parameter(x, kind) for x in ("robot", *arrays, *sizes)])  # type: ignore[attr-defined]
    run.__name__ = graph.name
    return built_function(trace(run, robot, shapes=arrays | sizes, parameters=parameters), dtype, recipe)


def built_function(graph: Graph, dtype: Any, recipe: Recipe | None = None) -> Callable[..., Any]:
    """The graph as a callable: machine code, or node by node where there is none."""
    return function_of(graph, dtype, lambda **named: _evaluate(graph, *named.values()), recipe)


def _evaluated(derivative: Callable[..., Any], robot: Robot, arrays: dict[str, Array], options: dict[str, Any]) -> Any:
    """The derivative at numeric arguments, evaluated node by node."""
    if namespace(*arrays.values()) is not np:
        raise CoadjointError("`differential` takes NumPy arrays and symbols; JAX and PyTorch have their own ways.")
    cores = getattr(getattr(derivative, "kernel", None), "cores", SIZES)
    shapes = {name: core_shape(cores[name], robot) if name in cores else x.shape for name, x in arrays.items()}
    graph = trace(derivative, robot, shapes=shapes, **options)
    return _evaluate(graph, *(floats(arrays[name], name) for name in graph.input_names))


def _evaluate(graph: Graph, *arrays: Array) -> Any:
    from .kernel.passes.evaluate import evaluate

    found = evaluate(graph, *arrays)
    return found if len(found) > 1 else found[0]
