"""Random functions of users, over every operation there is: simplified, native, exported C, NumPy and JAX, against the graph."""

from __future__ import annotations

import importlib.util
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from coadjoint import arrays
from coadjoint.kernel.passes.simplify import simplify
from coadjoint.kernel.trace.trace import trace
from coadjoint.kernel.trial import Trial, attempt

from ._executions import SLACK, compiler, differs, in_c, natively, proves_itself, simplified

NATIVE, C, JAX = 4, 8, 8
UNARY = (
    "sin",
    "cos",
    "tan",
    "exp",
    "log",
    "sqrt",
    "abs",
    "floor",
    "ceil",
    "sign",
    "square",
    "negative",
    "atan",
    "asin",
    "acos",
    "tanh",
    "log1p",
)
BINARY = ("add", "subtract", "multiply", "divide", "atan2", "minimum", "maximum", "hypot", "power", "remainder", "floor_divide")
RELATIONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
LOGIC = ("logical_and", "logical_or")
CONSTANTS = (0.0, 1.0, -1.0, 0.5, 2.0, 1.5707963, 1e-12, 0.1, 3.0, -0.25)
Step = tuple[str, tuple[int, ...], float]


def program(rng: np.random.Generator, inputs: int) -> list[Step]:
    """Steps (operation, the values it takes, a constant), each making one value; half of them sums and products."""
    steps: list[Step] = []
    for k in range(int(rng.choice([4, 12, 40]))):
        weights = (0.5, 0.15, 0.15, 0.1, 0.07, 0.03)
        kind = rng.choice(6, p=weights)
        pools = (
            ("add", "subtract", "multiply", "negative"),
            UNARY,
            BINARY,
            ("where",),
            ("affine", "power of a number"),
            ("solve",),
        )
        steps.append((str(rng.choice(pools[kind])), tuple(rng.integers(0, inputs + k, 4).tolist()), float(rng.choice(CONSTANTS))))
    return steps


def call(steps: list[Step], x: Any) -> Any:
    """The last values of a program, for an array (..., inputs) of any library."""
    xp = arrays.namespace(x)
    values = [x[..., k] for k in range(x.shape[-1])]
    for op, (i, j, k, l), c in steps:
        a, b, d, e = values[i], values[j], values[k], values[l]
        values.append(_step(xp, op, a, b, d, e, c))
    return arrays.stack(values[-min(8, len(values)) :])


def _step(xp: Any, op: str, a: Any, b: Any, d: Any, e: Any, c: float) -> Any:
    if op == "where":
        return xp.where((a < b) & ~(d <= c) | (a == e), d, c * e)
    if op == "affine":
        return a * c + c
    if op == "power of a number":
        return a**2 + abs(b) ** 0.5 + c
    if op == "solve":
        p, q, r = a * a + 1.0, b, d * d + c
        return arrays.solve_spd(arrays.matrix([[p, q], [q, r]]), arrays.matrix([[e], [a]]))[..., 0, 0]
    if op == "power":
        return xp.power(a, 3.0)
    if op == "square":
        return a * a
    names = {"atan2": "arctan2", "atan": "arctan", "asin": "arcsin", "acos": "arccos"}
    function: Callable[..., Any] = getattr(xp, names.get(op, op))
    return function(a) if op in UNARY else function(a, b)


def run(seed: int) -> dict[str, int]:
    """One random function."""
    rng = np.random.default_rng(seed)
    inputs = int(rng.integers(1, 6))
    steps = program(rng, inputs)
    tally: dict[str, int] = {}

    def note(execution: str, what: str) -> None:
        if what:
            print(f"FAILED functions --seed {seed}: {execution}: {what}")
        outcome = f"FAILED {execution}" if what else execution
        tally[outcome] = tally.get(outcome, 0) + 1

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            graph = trace(lambda x: call(steps, x), {"x": (inputs,)}, "f")
            x = rng.normal(size=(5, inputs))
            x[3], x[4] = rng.choice([0.0, 1.0, -1.0, 0.5], size=inputs), 0.0
            trial = attempt(graph, [x], "float64")
            compiled = simplify(graph)
            note("simplified", simplified(compiled, trial))
            note("NumPy", _differs_where_finite(trial, call(steps, x)))
            if seed % NATIVE == 0:
                note("native", natively(compiled, trial))
                note("native, float32", proves_itself(compiled, "float32"))
            if seed % C == 0 and compiler():
                note("C", in_c(compiled, trial))
            if seed % JAX == 0 and importlib.util.find_spec("jax"):
                note("JAX", _differs_where_finite(trial, _in_jax(steps, x)))
    except Exception as error:
        traceback.print_exc()
        print(f"FAILED functions --seed {seed}: {type(error).__name__}: {error}")
        tally[f"FAILED by {type(error).__name__}"] = 1
    return tally


def _differs_where_finite(trial: Trial, result: np.ndarray) -> str:
    """In a graph 0·x and x - x are 0 and x / x is 1 whatever x is; as written they may be NaN."""
    return differs(trial, [np.where(np.isfinite(result), result, trial.expected[0])], SLACK)


def _in_jax(steps: list[Step], x: np.ndarray) -> np.ndarray:
    import jax

    with jax.enable_x64():
        return np.asarray(call(steps, jax.numpy.asarray(x)))
