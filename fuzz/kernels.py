"""Public kernels on random mechanisms: simplified, native, exported C, as written in NumPy and JAX, against the graph as traced."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import traceback
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

import coadjoint as cj
from coadjoint.geometry import curvature, gauss, metric
from coadjoint.kernel.dispatch import Kernel, core_shape
from coadjoint.kernel.passes.simplify import simplify
from coadjoint.kernel.trace.trace import trace
from coadjoint.kernel.trial import attempt

from ._executions import SLACK, compiler, differs, in_c, natively, proves_itself, simplified
from ._mechanisms import mechanism

NATIVE, CALLED, C, JAX = 16, 80, 96, 1600
"""Every so many cases these executions, which take longer, are compared, too."""
LARGEST = 9
"""Most freedoms of the robots."""
ENORMOUS = 1e9
"""Results larger than that are those of a mass matrix that is nearly singular, and the function as written rounds otherwise."""
STATICS = {"frame": "tip", "reference": "body", "friction": True}
HEAVY = {"curvature": 3, "ricci_curvature": 3, "scalar_curvature": 3, "inverse_dynamics_second_derivatives": 3, "linearize": 5,
         "forward_dynamics_second_derivatives": 2, "connection": 5, "covariant_derivative": 5, "sectional_curvature": 4,
         "curvature_operator": 4, "forward_dynamics_derivatives": 4, "inverse_dynamics_derivatives": 5,
         "christoffel": 6, "mass_matrix_derivative": 6, "jacobian_derivative": 6}  # fmt: skip
"""Most freedoms of the robots on which these, which are long, are tried."""


@functools.cache
def kernels() -> list[Callable[..., Any]]:
    """Every public function that is a kernel of a robot and arrays."""
    named = [getattr(cj, name) for name in sorted(cj.__all__)] + [
        getattr(m, x) for m in (curvature, gauss, metric) for x in vars(m)
    ]
    found = [f for f in named if isinstance(getattr(f, "kernel", None), Kernel) and set(f.kernel.statics) <= set(STATICS)]
    return list(dict.fromkeys(found))


def run(seed: int) -> dict[str, int]:
    """One kernel on one mechanism."""
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = _moving(rng)
        possible = [f for f in kernels() if robot.nv <= HEAVY.get(f.__name__, LARGEST)]
        function = possible[int(rng.integers(len(possible)))]
        name = function.__name__
        try:
            return _compared(seed, rng, robot, function)
        except cj.CoadjointError:
            return {"refused": 1}
        except Exception as error:
            traceback.print_exc()
            print(f"FAILED kernels --seed {seed}: {name}: {type(error).__name__}: {error}")
            return {f"FAILED by {type(error).__name__}": 1}


def _moving(rng: np.random.Generator) -> cj.Robot:
    """The first robot drawn whose numbers are possible and which moves, but not in too many ways."""
    while True:
        with contextlib.suppress(cj.CoadjointError):
            robot = mechanism(rng, int(rng.choice([1, 2, 2, 3, 5])))
            if 0 < robot.nv <= LARGEST:
                return robot


def _compared(seed: int, rng: np.random.Generator, robot: cj.Robot, function: Callable[..., Any]) -> dict[str, int]:
    kernel: Kernel = function.kernel  # type: ignore[attr-defined]
    statics = {name: STATICS[name] for name in kernel.statics}
    sizes = {name: core_shape(kernel.cores[name], robot) for name in kernel.required}
    graph = trace(lambda *x: kernel.call(robot, **dict(zip(sizes, x, strict=True)), **statics), sizes, function.__name__)
    inputs = [_states(rng, robot, name, shape) for name, shape in sizes.items()]
    trial = attempt(graph, inputs, "float64")
    arrays = dict(zip(sizes, inputs, strict=True))
    tally: dict[str, int] = {}

    def note(execution: str, what: str) -> None:
        if what:
            print(f"FAILED kernels --seed {seed}: {function.__name__} {execution}: {what}")
        outcome = f"FAILED {execution}" if what else execution
        tally[outcome] = tally.get(outcome, 0) + 1

    compiled = simplify(graph)
    note("simplified", simplified(compiled, trial))
    if any(np.abs(x[np.isfinite(x)]).max(initial=0.0) > ENORMOUS for x in trial.expected):
        return {**tally, "nearly singular": 1}
    slack = SLACK if kernel.no_result is None else max(SLACK, _amplified(robot, arrays["q"]))
    with mock.patch.object(Kernel, "native", _none):  # nor are the kernels that it calls compiled
        note("as written", differs(trial, _tuple(kernel.source(robot, **arrays, **statics)), slack))
    if seed % NATIVE == 0:
        note("native", natively(compiled, trial))
    if seed % CALLED == 0:
        note("native, float32", proves_itself(compiled, "float32"))
        note("called", differs(trial, _tuple(function(robot, **arrays, **statics)), slack))
    if seed % C == 0 and compiler():
        note("C", in_c(compiled, trial))
    if seed % JAX == 0 and importlib.util.find_spec("jax"):
        note("JAX", differs(trial, _in_jax(function, robot, arrays, statics), slack))
    return tally


def _amplified(robot: cj.Robot, q: np.ndarray) -> float:
    """The relative size of a rounding error that the inverse of the mass matrix has amplified."""
    with mock.patch.object(Kernel, "native", _none):
        return float(np.finfo(float).eps * np.linalg.cond(cj.mass_matrix(robot, q)).max())


def _none(*_: Any) -> None:
    """In the place of `Kernel.native`: no machine code."""


def _tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def _in_jax(function: Callable[..., Any], robot: cj.Robot, arrays: dict[str, np.ndarray], statics: dict[str, Any]) -> Any:
    import jax

    with jax.enable_x64():
        return _tuple(function(robot, **{name: jax.numpy.asarray(x) for name, x in arrays.items()}, **statics))


def _states(rng: np.random.Generator, robot: cj.Robot, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Four states: two at random, one of zeros, one of quarter turns or round numbers."""
    if name != "q":
        x = rng.normal(size=(4, *shape))
        x[2] = 0.0
        x[3] = rng.choice([0.0, 1.0, -1.0, 0.5], size=shape)
        return x
    q = robot.random(rng, 4)
    steps = np.stack([np.zeros(robot.nv), rng.choice([0.0, np.pi / 2, -np.pi / 2, np.pi, 0.5], size=robot.nv)])
    q[2:] = robot.integrate(np.broadcast_to(robot.neutral(), (2, robot.nq)), steps)
    return q
