"""Names for repeated subexpressions: in expanded formulas, and in a graph that is written step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..kernel.graph import Graph
from ..kernel.passes.simplify import simplify
from .arrange import factor_key
from .formula import Formula, Power, Product, Quotient, Sum, Symbol, Trig, rebuilt, size, walk

Definitions = list[tuple[Symbol, Formula]]

LETTER = "x"
"""Named parts are x_1, x_2, …"""
INLINE = 8
"""A step with fewer symbols than this is not named, even if it is used twice."""


def named_parts(definitions: Definitions, arrays: Mapping[str, np.ndarray]) -> tuple[Definitions, dict[str, np.ndarray]]:
    """The formulas with a name for every bracket that occurs more than once."""
    entries = list(dict.fromkeys(f for array in arrays.values() for f in array.reshape(-1).tolist()))
    formulas = [f for _, f in definitions] + entries
    counts = Counter(part for f in formulas for part in walk(f) if isinstance(part, Sum) and part != f)
    names: dict[Formula, Formula] = {}
    own: Definitions = []
    for bracket in sorted((f for f, count in counts.items() if count > 1), key=size):
        symbol = Symbol(f"{LETTER}_{len(own) + 1}", "named")
        own.append((symbol, rebuilt(bracket, names)))
        names[bracket] = symbol
    changed = {}
    for key, array in arrays.items():
        changed[key] = np.empty_like(array)
        for index in np.ndindex(array.shape):
            changed[key][index] = rebuilt(array.item(index), names)
    return own + [(symbol, rebuilt(f, names)) for symbol, f in definitions], changed


def step_by_step(
    graph: Graph, outputs: Sequence[str], symbols: Sequence[Sequence[Symbol]], before: int = 0
) -> tuple[Definitions, dict[str, np.ndarray]]:
    """The graph as definitions, numbered from `before`, and arrays of formulas; `symbols` name the elements of its inputs."""
    graph = simplify(graph)
    uses = [0] * len(graph)
    for args in graph.args:
        for k in args:
            uses[k] += 1
    formulas: list[Formula] = []
    definitions: Definitions = []
    for k, (op, args, value) in enumerate(zip(graph.op, graph.args, graph.value, strict=True)):
        f = _formula(op, [formulas[j] for j in args], value, symbols)
        n = size(f)
        turned = op in ("sin", "cos") and isinstance(f, Sum)
        if turned or (isinstance(f, Sum | Product | Quotient) and ((uses[k] > 1 and n >= INLINE) or n > 12 * INLINE)):
            symbol = Symbol(f"{LETTER}_{before + len(definitions) + 1}", "named")
            definitions.append((symbol, f))
            f = symbol
        formulas.append(f)
    arrays = {}
    for name, nodes, shape in zip(outputs, graph.outputs, graph.output_shapes, strict=True):
        flat = np.empty(len(nodes), dtype=object)
        flat[:] = [formulas[k] for k in nodes]
        arrays[name] = flat.reshape(shape)
    return definitions, arrays


def _formula(op: str, args: list[Formula], value: Any, symbols: Sequence[Sequence[Symbol]]) -> Formula:
    if op == "input":
        argument, place = value
        result: Formula = symbols[argument][place]
        return result
    if op == "const":
        return Product(float(value))
    if op in ("sin", "cos"):
        return _wave(op, args[0], symbols[0])
    if op == "div":
        return Quotient(args[0], args[1])
    if op == "neg":
        return _negative(args[0])
    if op == "mul":
        return _product(args)
    if op in ("add", "sub"):
        second = args[1] if op == "add" else _negative(args[1])
        return Sum((*_terms(args[0]), *_terms(second)))
    raise NotImplementedError(f"no formula for the operation {op!r}")


def _terms(f: Formula) -> tuple[Formula, ...]:
    return f.terms if isinstance(f, Sum) else (f,)


def _negative(f: Formula) -> Formula:
    if isinstance(f, Product):
        return Product(-f.coefficient, f.factors)
    return Sum(tuple(_negative(x) for x in f.terms)) if isinstance(f, Sum) else Product(-1.0, (f,))


def _product(args: list[Formula]) -> Formula:
    coefficient, powers = 1.0, dict[Formula, int]()
    for f in args:
        coefficient *= f.coefficient if isinstance(f, Product) else 1.0
        for factor in f.factors if isinstance(f, Product) else (f,):
            base, e = (factor.base, factor.exponent) if isinstance(factor, Power) else (factor, 1)
            powers[base] = powers.get(base, 0) + e
    factors = tuple(base if e == 1 else Power(base, e) for base, e in powers.items())
    if coefficient != 1.0 and len(factors) == 1 and isinstance(factors[0], Sum):  # 2 (½ x + y) is x + 2 y
        return Sum(tuple(_product([Product(coefficient), term]) for term in factors[0].terms))
    return Product(coefficient, tuple(sorted(factors, key=factor_key)))


def _wave(function: str, angle: Formula, q: Sequence[Any]) -> Formula:
    """A sine or cosine of a coordinate, times a number and plus a constant: that is expanded."""
    factors, phase = dict[int, float](), 0.0
    for term in _terms(angle):
        if isinstance(term, Product) and not term.factors:
            phase += term.coefficient
            continue
        x, symbol = (term.coefficient, term.factors[0]) if isinstance(term, Product) else (1.0, term)
        k = q.index(symbol)
        factors[k] = factors.get(k, 0.0) + x
    pairs = tuple(factors.items())
    if not phase:
        return Trig(function, pairs)
    c, s = float(np.cos(phase)), float(np.sin(phase))
    if function == "sin":
        first, second = Product(c, (Trig("sin", pairs),)), Product(s, (Trig("cos", pairs),))
    else:
        first, second = Product(c, (Trig("cos", pairs),)), Product(-s, (Trig("sin", pairs),))
    kept = [x for x in (first, second) if abs(x.coefficient) > 1e-15]
    return kept[0] if len(kept) == 1 else Sum(tuple(kept))
