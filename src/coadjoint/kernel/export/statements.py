"""A graph as straight-line statements of a language with C's expressions: one constant per node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..graph import Graph
from ..ops import TRUTH
from .names import ArgumentNames


@dataclass(frozen=True)
class Language:
    """The syntax of one language, for the parts of a graph."""

    number: Callable[[float], str]
    form: Callable[[str], str]
    """From an operation's name to its expression, with {} for the arguments."""
    constant: Callable[[str, str, bool], str]
    """(variable, expression, whether it is a truth value): the line that defines the variable."""
    solve: Callable[[str, int, int, list[str], list[str]], list[str]]
    """(variable, n, m, lower triangle of A, right-hand sides): lines after which variable[k] is element k of A⁻¹ B, n by m."""


def statements(graph: Graph, names: ArgumentNames, language: Language) -> tuple[list[str], list[list[str]]]:
    """The lines that compute all nodes, and the expressions of each output's elements in row-major order."""
    lines: list[str] = []
    terms: list[str] = []
    for k, (op, args, value) in enumerate(zip(graph.op, graph.args, graph.value, strict=True)):
        given = [terms[j] for j in args]
        variable = f"{names.prefix}{k}"
        terms.append(variable)
        if op == "const":
            terms[k] = language.number(value)
        elif op == "input":
            lines.append(language.constant(variable, f"{names.inputs[value[0]]}[{value[1]}]", False))
        elif op == "block":
            _, n, m = value
            size = n * (n + 1) // 2
            lines += language.solve(variable, n, m, given[:size], given[size:])
        elif op == "part":
            terms[k] = f"{given[0]}[{value}]"
        else:
            lines.append(language.constant(variable, language.form(op).format(*given), op in TRUTH))
    return lines, [[terms[k] for k in nodes] for nodes in graph.outputs]
