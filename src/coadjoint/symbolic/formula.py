"""Formulas: sums of products of symbols, sines and cosines, possibly in brackets, with names for repeated parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Union

import numpy as np

from ..arrays import Array


@dataclass(frozen=True)
class Symbol:
    """A name with an index, as m_2 or I_2zz. `kind` says what it is: mass, length, inertia, gravity, q, v or named."""

    name: str
    kind: str


@dataclass(frozen=True)
class Trig:
    """sin or cos of a sum of coordinates: `angle` has pairs (number of the coordinate, factor)."""

    function: str
    angle: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Power:
    base: Formula
    exponent: int


@dataclass(frozen=True)
class Product:
    """A number times factors; without factors the number itself."""

    coefficient: float
    factors: tuple[Formula, ...] = ()


@dataclass(frozen=True)
class Sum:
    terms: tuple[Formula, ...]


@dataclass(frozen=True)
class Quotient:
    above: Formula
    below: Formula


Formula = Union[Symbol, Trig, Power, Product, Sum, Quotient]  # noqa: UP007  # named within the classes above


def parts(f: Formula) -> tuple[Formula, ...]:
    """The direct parts of a formula."""
    if isinstance(f, Power):
        return (f.base,)
    if isinstance(f, Product):
        return f.factors
    if isinstance(f, Sum):
        return f.terms
    return (f.above, f.below) if isinstance(f, Quotient) else ()


def walk(f: Formula) -> Iterator[Formula]:
    """The formula and everything in it, parts before the whole."""
    for part in parts(f):
        yield from walk(part)
    yield f


def size(f: Formula) -> int:
    """The length of a formula: its number of symbols, functions, and numbers other than ±1."""
    own = isinstance(f, Symbol | Trig) or (isinstance(f, Product) and (abs(f.coefficient) != 1 or not f.factors))
    return int(own) + sum(map(size, parts(f)))


def rebuilt(f: Formula, change: Mapping[Formula, Formula]) -> Formula:
    """The formula with parts replaced, the largest first."""
    if f in change:
        return change[f]
    if isinstance(f, Power):
        return Power(rebuilt(f.base, change), f.exponent)
    if isinstance(f, Product):
        return Product(f.coefficient, tuple(rebuilt(x, change) for x in f.factors))
    if isinstance(f, Sum):
        return Sum(tuple(rebuilt(x, change) for x in f.terms))
    return Quotient(rebuilt(f.above, change), rebuilt(f.below, change)) if isinstance(f, Quotient) else f


def value(f: Formula, symbols: Mapping[str, Any], q: Array) -> Any:
    """The formula's number (...) for the values of its symbols and the coordinates q (..., nq)."""
    if isinstance(f, Symbol):
        return symbols[f.name]
    if isinstance(f, Trig):
        return getattr(np, f.function)(sum(factor * q[..., k] for k, factor in f.angle))
    if isinstance(f, Power):
        return value(f.base, symbols, q) ** f.exponent
    if isinstance(f, Quotient):
        return value(f.above, symbols, q) / value(f.below, symbols, q)
    values = [value(x, symbols, q) for x in parts(f)]
    if isinstance(f, Sum):
        return sum(values[1:], values[0])
    product = f.coefficient
    for x in values:
        product = product * x
    return product
