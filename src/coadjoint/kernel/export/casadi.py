"""A graph as a CasADi function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...arguments import takes
from ..graph import Graph
from ..ops import OPS
from ..passes.evaluate import evaluate
from .names import a_graph, identifier, optional


@takes(graph=a_graph)
def casadi(graph: Graph) -> Any:
    """A casadi.Function of the same inputs, outputs out0, out1, …; vectors are columns, more than two axes are joined to rows."""
    ca = optional("casadi", "casadi")
    inputs, matrices = [], []
    names: list[str] = []
    for name, shape in zip(graph.input_names, graph.input_shapes, strict=True):
        names.append(identifier(name, names))
        matrix = ca.SX.sym(names[-1], *_two(shape))
        array = np.empty(_two(shape), dtype=object)
        for place in np.ndindex(*array.shape):
            array[place] = matrix[place]
        matrices.append(matrix)
        inputs.append(array.reshape(shape))
    outputs = []
    for array, shape in zip(evaluate(graph, *inputs, operations=_operations(ca)), graph.output_shapes, strict=True):
        matrix = ca.SX(*_two(shape))
        for place, x in np.ndenumerate(array.reshape(_two(shape))):
            matrix[place] = x
        outputs.append(matrix)
    results = [identifier(f"out{k}", names) for k in range(len(outputs))]
    return ca.Function(identifier(graph.name), matrices, outputs, names, results)


def _two(shape: tuple[int, ...]) -> tuple[int, int]:
    if len(shape) < 2:
        return (shape[0] if shape else 1), 1
    return int(np.prod(shape[:-1])), shape[-1]


def _operations(ca: Any) -> dict[str, Callable[..., Any]]:
    return {name: op.casadi(ca) if op.casadi else op.number for name, op in OPS.items()}
