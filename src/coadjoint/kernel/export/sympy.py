"""A graph as SymPy expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from ...arguments import takes
from ..graph import Graph
from ..ops import OPS
from ..passes.evaluate import evaluate, ldl_solve
from .names import a_graph, new_names, optional, places


@takes(graph=a_graph, names=new_names)
def sympy(graph: Graph, names: Mapping[str, str] | None = None) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """The inputs by name and the outputs as SymPy's matrices: vectors as columns, scalars as expressions, more axes as arrays.

    Elements of the input q are the symbols q_1, q_2, … (A_1_2 for two axes); `names` gives other names to inputs. Constants
    that are short fractions become rational numbers, others stay floating-point numbers.
    """
    sp = optional("sympy", "sympy")
    symbols = {}
    inputs = []
    for name, shape in zip(graph.input_names, graph.input_shapes, strict=True):
        letter = (names or {}).get(name, name)
        array = np.empty(int(np.prod(shape)), dtype=object)
        array[:] = [sp.Symbol("_".join([letter, *map(str, place)]), real=True) for place in places(shape)]
        inputs.append(array.reshape(shape))
        symbols[name] = _shaped(sp, inputs[-1])
    outputs = evaluate(graph, *inputs, operations=_operations(sp))
    return symbols, tuple(_shaped(sp, x) for x in outputs)


def _shaped(sp: Any, array: np.ndarray) -> Any:
    elements = [_number(sp, x) for x in array.ravel().tolist()]
    if array.ndim == 0:
        return elements[0]
    if array.ndim <= 2:
        return sp.Matrix(array.shape[0], array.shape[1] if array.ndim == 2 else 1, elements)
    return sp.ImmutableDenseNDimArray(elements, array.shape)


def _number(sp: Any, x: Any) -> Any:
    """A float as an exact fraction if it is a short one."""
    if not isinstance(x, float):
        return x
    if not np.isfinite(x):
        return sp.nan if np.isnan(x) else sp.oo if x > 0 else -sp.oo
    near = Fraction(x).limit_denominator(1000)
    return sp.Rational(near.numerator, near.denominator) if float(near) == x else sp.Float(x)


def _operations(sp: Any) -> dict[str, Callable[..., Any]]:
    def lifted(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: function(*[_number(sp, x) for x in args])

    forms = {name: lifted(op.sympy(sp) if op.sympy else op.number) for name, op in OPS.items()}
    return forms | {"spd_solve": ldl_solve}  # the formula, without a test of the pivots
