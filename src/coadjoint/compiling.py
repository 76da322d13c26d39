"""Users' own functions of a robot, traced and compiled like ours.

A function is written for a robot and arrays, from our functions and array operations. `trace` gives its expression graph, to
print (`coadjoint.export`) or to count; `compile` gives machine code of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .arguments import (
    a_dictionary,
    a_function,
    a_robot,
    a_type,
    check_inputs,
    check_outs,
    check_threads,
    names,
    real_array,
    sequence,
    takes,
    zero_or_more,
)
from .arrays import Array, any_lazy, concat, transpose
from .errors import CoadjointError, unknown
from .kernel.dispatch import KEYWORDS, core_shape, spread
from .kernel.graph import Graph
from .kernel.runtime.function import Recipe, Signature
from .robot.parameters import FRAME_SETS, SETS, check_together
from .robot.robot import Robot
from .scale import lazy
from .words import short

SIZES = {"q": "nq", "v": "nv", "a": "nv", "tau": "nv", "dv": "nv", "wrenches": "n_links 6"}
"""Core shapes of the arguments that have a conventional name."""

PARAMETERS = ("inertias", "placements", "screws", "gravity", "armature", "damping", "friction")
"""The robot's numbers that can be inputs: inertial (n_links, 10), kinematic (n_links, 4, 4) and (…, 6), and the rest."""


@takes(fn=a_function, robot=a_robot, shapes=a_dictionary, parameters=names)
def trace(
    fn: Callable[..., Any],
    robot: Robot,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    parameters: Sequence[str] = (),
    **options: Any,
) -> Graph:
    """The expression graph of fn(robot, *arrays, **options).

    Arrays named q, v, a, tau, dv and wrenches have the robot's sizes. `shapes` gives the shapes of others, and includes an optional
    argument such as `wrenches`. `parameters` names numbers of the robot (inertias, placements, screws, gravity, armature, damping,
    friction) or sets of its parameters (see `Robot.parameters`) that become further inputs, after the arrays, instead of constants.
    """
    from .kernel.passes.simplify import simplify

    return simplify(as_written(fn, robot, shapes=shapes, parameters=parameters, **options))


def as_written(
    fn: Callable[..., Any],
    robot: Robot,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    parameters: Sequence[str] = (),
    **options: Any,
) -> Graph:
    """The graph of `trace` before its algebra: a few per cent more operations, made in a third of the time."""
    from .kernel.trace.trace import trace as graph_of

    sizes = _shapes(fn, robot, dict(shapes or {}), options)
    for name in parameters:
        if name not in PARAMETERS and name.partition(":")[0] not in (*SETS, *FRAME_SETS):
            raise unknown("number of a robot", name, [*PARAMETERS, *(x for x in SETS if x not in PARAMETERS)])
    numbers = {name: (getattr(robot, name) if name in PARAMETERS else robot.parameters(name)).shape for name in parameters}

    def run(*arrays: Any) -> Any:
        given = dict(zip((*sizes, *numbers), arrays, strict=True))
        chosen = {name: given.pop(name) for name in numbers}
        return fn(with_values(robot, chosen), **given, **options)

    name = getattr(fn, "__name__", "function").replace("<lambda>", "function")
    return graph_of(run, sizes | numbers, name)


def with_values(robot: Robot, chosen: dict[str, Any]) -> Robot:
    """The robot with these numbers replaced: whole arrays or sets of parameters."""
    arrays = {name: x for name, x in chosen.items() if name in PARAMETERS}
    check_together([*arrays, *(name for name in chosen if name not in arrays)])
    if "placements" in arrays:  # the last row of a pose is no variable
        last = np.broadcast_to([0.0, 0.0, 0.0, 1.0], (robot.n_links, 1, 4))
        arrays["placements"] = transpose(concat([transpose(arrays["placements"][:, :3]), transpose(last)]))
    robot = robot.with_numbers(**arrays) if arrays else robot
    for name, x in chosen.items():
        robot = robot if name in arrays else robot.with_parameters(name, x)
    return robot


@takes(robot=a_robot, shapes=a_dictionary, parameters=names, dtype=a_type)
def compile(
    fn: Callable[..., Any],
    robot: Robot | None = None,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    parameters: Sequence[str] = (),
    dtype: Any = np.float64,
    **options: Any,
) -> Callable[..., Any]:
    """A native callable of fn's arrays, without the robot: f(*arrays, *parameters, out=None, threads=None).

    fn is one of our functions or a user's own, fn(robot, *arrays, **options); see `trace` for shapes and parameters. Arrays may have
    any batch axes in front. Variables that fn reads become constants with their present values. Where native code is impossible the
    callable runs fn as written. A controller knows its robot and is given alone: compile(controller) is a callable f(q, v, t), t of shape
    (..., 1), and for one with a state f(q, v, t, state), as its `graph()` says.
    """
    if callable(getattr(fn, "graph", None)):
        return _compiled_controller(fn, robot, shapes, parameters, dtype, options)
    a_function(fn, "fn")
    if robot is None:
        raise CoadjointError(f"compile({short(fn)}) needs a robot, compile(fn, robot); only controllers are compiled alone.")
    graph = trace(fn, robot, shapes=shapes, parameters=parameters, **options)
    recipe = Recipe(compile, (fn, robot), {"shapes": shapes, "parameters": parameters, "dtype": dtype} | options)

    def written(**named: Array) -> Any:
        chosen = {name: named.pop(name) for name in parameters}
        return fn(with_values(robot, chosen), **named, **options)

    return function_of(graph, dtype, written, recipe)


def _compiled_controller(controller: Any, robot: Any, shapes: Any, parameters: Any, dtype: Any, options: Any) -> Callable[..., Any]:
    """The graph of a controller as a native callable."""
    from .kernel.passes.evaluate import evaluate

    if shapes or parameters or options or not (robot is None or robot is controller.robot):
        raise CoadjointError(f"{short(controller)} is made for its robot already; compile it alone, compile(controller).")
    graph = controller.graph()

    def written(**named: Array) -> Any:
        found = evaluate(graph, *named.values())
        return found if len(found) > 1 else found[0]

    return function_of(graph, dtype, written, Recipe(compile, (controller,), {"dtype": dtype}))


def function_of(graph: Graph, dtype: Any, written: Callable[..., Any], recipe: Recipe | None) -> Callable[..., Any]:
    """The graph as a built-in function; where native code is impossible `written`, called with the graph's inputs by name."""
    from .kernel.runtime import native

    try:
        made = native.build(graph, dtype, recipe=recipe)
    except native.NativeError:
        return WrittenFunction(graph, np.dtype(dtype), written, recipe)
    made.graph = graph
    return made.call  # nothing in Python stands before the kernel


def _shapes(
    fn: Callable[..., Any], robot: Robot, shapes: dict[str, Sequence[int]], options: dict[str, Any]
) -> dict[str, tuple[int, ...]]:
    """The core shape of every array that fn takes, in the order of its arguments."""
    names = list(inspect.signature(fn).parameters.values())
    if not names:
        raise CoadjointError("the function takes no arguments; expected fn(robot, *arrays).")
    found: dict[str, tuple[int, ...]] = {}
    cores = getattr(getattr(fn, "kernel", None), "cores", SIZES)
    for p in names[1:]:
        if p.name in shapes:
            what = f"shapes[{p.name!r}]"
            found[p.name] = tuple(zero_or_more(n, what) for n in sequence(shapes.pop(p.name), what))
        elif p.name in options or p.default is not inspect.Parameter.empty:
            continue
        elif p.name in cores:
            found[p.name] = core_shape(cores[p.name], robot)
        else:
            raise CoadjointError(
                f"the shape of argument {p.name!r} is not known; give it, as in shapes={{{p.name!r}: (3,)}}, or its value."
            )
    if shapes:
        raise unknown("argument of the function", next(iter(shapes)), [p.name for p in names[1:]])
    return found


class WrittenFunction:
    """The result of `compile` where native code is impossible: it runs the function as written, f(*arrays, out=None,
    threads=None).
    """

    def __init__(self, graph: Graph, dtype: np.dtype[Any], written: Callable[..., Any], recipe: Recipe | None) -> None:
        self.signature = Signature(
            graph.name, dtype.name, 1, graph.input_names, graph.input_shapes, graph.output_shapes, len(graph)
        )
        self.__name__ = self.__qualname__ = graph.name
        self.__doc__ = f"{graph.name} as written, without native code ({dtype}): {self.signature.shapes()}."
        places = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in graph.input_names]
        self.__signature__ = inspect.Signature([*places, *(p.replace(annotation=inspect.Parameter.empty) for p in KEYWORDS)])
        self.graph, self.written, self.recipe = graph, written, recipe

    def __call__(self, *arrays: Any, out: Any = None, threads: Any = None, **named: Any) -> Any:
        s, dtype = self.signature, np.dtype(self.signature.dtype)
        values = s.bind(arrays, named)
        if any_lazy(values):
            return lazy(self, *values, core=[len(shape) for shape in s.input_shapes])
        given = [real_array(n, x, dtype) for n, x in zip(s.input_names, values, strict=True)]
        batch = check_inputs(s.input_names, s.input_shapes, given)
        check_threads(threads)
        shapes = [batch + core for core in s.output_shapes]
        targets = None if out is None else check_outs(s.name, out, shapes, dtype)
        result = self.written(**dict(zip(s.input_names, given, strict=True)))
        results = [
            spread(x, batch, len(core), np.empty(0, dtype)) for x, core in zip(_several(result), s.output_shapes, strict=True)
        ]
        results = [x.astype(dtype, copy=False) for x in results]
        if targets is None:
            return tuple(results) if len(results) != 1 else results[0]
        for x, y in zip(results, targets, strict=True):
            y[...] = x
        return out

    def __reduce__(self) -> Any:
        return self.recipe, ()

    def __repr__(self) -> str:
        s = self.signature
        return f"<function {s.text()} as written: {s.shapes()}; {s.dtype}>"


def _several(result: Any) -> Any:
    return result if isinstance(result, tuple | list) else (result,)
