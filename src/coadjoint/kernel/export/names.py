"""Valid names for inputs and outputs in other languages, and the indices of array elements."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...arguments import a_dictionary, a_name
from ...errors import CoadjointError
from ...words import short
from ..graph import Graph


def a_graph(x: Any, name: str) -> Graph:
    """x, if it is a graph; the graph of a controller."""
    if callable(getattr(x, "graph", None)):
        x = x.graph()
    if not isinstance(x, Graph):
        raise CoadjointError(f"{name} is {short(x)}; expected a graph, as from coadjoint.trace(fn, robot), or a controller.")
    return x


def new_names(x: Any, name: str) -> Any:
    """x, if it is a dictionary of texts."""
    for key, text in a_dictionary(x, name).items():
        a_name(text, f"{name}[{short(key)}]")
    return x


def identifier(name: str, taken: Iterable[str] = ()) -> str:
    """The name as an identifier of C and Python that is not yet taken."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII) or "f"
    if name[0].isdigit():
        name = "_" + name
    taken = set(taken)
    while name in taken:
        name += "_"
    return name


class ArgumentNames(NamedTuple):
    """Names of a graph's function and arguments in another language."""

    function: str
    inputs: list[str]
    outputs: list[str]
    prefix: str
    """A prefix that no argument's name combines with a number."""


def argument_names(graph: Graph, reserved: Iterable[str]) -> ArgumentNames:
    """Identifiers for the function, its inputs and its outputs, all different and none reserved."""
    function = identifier(graph.name, reserved)
    taken = {*reserved, function}
    found: list[str] = []
    for given in (*graph.input_names, *(f"out{k}" for k in range(len(graph.outputs)))):
        found.append(identifier(given, {*taken, *found}))
    prefix = "t"
    while any(x.startswith(prefix) and x[len(prefix) :].isdigit() for x in found):
        prefix += "_"
    count = len(graph.input_names)
    return ArgumentNames(function, found[:count], found[count:], prefix)


def places(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The indices of an array's elements, counted from 1, in row-major order."""
    for index in np.ndindex(*shape):
        yield tuple(k + 1 for k in index)


def optional(module: str, package: str) -> Any:
    """The module, or an error that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise CoadjointError(f"exporting to {module} needs {package}. Install it with: pip install {package}") from None
