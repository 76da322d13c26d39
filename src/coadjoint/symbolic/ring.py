"""Trigonometric polynomials, such as the entries of a mass matrix.

A polynomial in symbols (lengths, masses, velocities, coordinates of slides) and in sines and cosines of angles is kept expanded
in its canonical form, as a Laurent polynomial in e^{iθ}: equal functions are equal polynomials, so that sin² + cos² = 1 and all
angle sums hold by themselves. Products add exponents, which are packed into one whole number each.

A graph run on these polynomials (`kernel/passes/evaluate.py`) gives the canonical form of what it computes.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import CoadjointError
from ..kernel.ops import OPS
from .formula import Symbol

_BITS = 8
_HALF = 1 << (_BITS - 1)
_ROUNDING = 1e-13


class TooLargeError(CoadjointError):
    """An expanded form has too many terms to be readable."""


class Ring:
    """The generators of polynomials, and the work spent on them.

    A generator is a `Symbol`, or (coordinate, unit) for e^{i unit q}. Quaternions are four symbols of which the last has its
    square replaced: w² = 1 - x² - y² - z².
    """

    def __init__(self, work: float = math.inf) -> None:
        self.generators: list[Symbol | tuple[int, float]] = []
        self.index: dict[Symbol | tuple[int, float], int] = {}
        self.angles: dict[int, int] = {}  # symbol of a coordinate -> which coordinate it is
        self.unit: dict[int, tuple[int, int, int]] = {}  # w of a quaternion -> its x, y, z
        self.work = work

    def position(self, generator: Symbol | tuple[int, float]) -> int:
        """The index of a generator, which is added if it is new."""
        if generator not in self.index:
            self.index[generator] = len(self.generators)
            self.generators.append(generator)
        return self.index[generator]

    def symbol(self, symbol: Symbol) -> Poly:
        return Poly(self, {1 << (_BITS * self.position(symbol)): 1.0 + 0.0j})

    def coordinate(self, symbol: Symbol, number: int) -> Poly:
        """The coordinate q[number], which may also stand within sines and cosines."""
        self.angles[self.position(symbol)] = number
        return self.symbol(symbol)

    def quaternion(self, symbols: Iterable[Symbol]) -> None:
        """Declare four symbols to be the parts x, y, z, w of a unit quaternion."""
        x, y, z, w = map(self.position, symbols)
        self.unit[w] = (x, y, z)

    def exponent(self, key: int, k: int) -> int:
        """The exponent of generator k in a monomial."""
        bias = (1 << (_BITS * (k + 1))) // (2 * _HALF - 1) * _HALF  # every field made positive, so that none borrows
        return ((key + bias) >> (_BITS * k) & (2 * _HALF - 1)) - _HALF

    def exponents(self, key: int) -> dict[int, int]:
        """The exponents of a monomial by the number of their generator."""
        found, k = {}, 0
        while key:
            e = ((key + _HALF) & (2 * _HALF - 1)) - _HALF
            if e:
                found[k] = e
            key = (key - e) >> _BITS
            k += 1
        return found


class Poly:
    """A polynomial: packed exponents -> complex coefficient."""

    __slots__ = ("ring", "terms")

    def __init__(self, ring: Ring, terms: dict[int, complex]) -> None:
        self.ring, self.terms = ring, terms

    def __add__(self, other: Any) -> Poly:
        small, large = (self.terms, _terms(other))
        if len(small) > len(large):
            small, large = large, small
        total = dict(large)
        for key, x in small.items():
            if key in total:
                y = total[key] + x
                if abs(y) <= _ROUNDING * abs(x):
                    del total[key]
                else:
                    total[key] = y
            else:
                total[key] = x
        return Poly(self.ring, total)

    __radd__ = __add__

    def __neg__(self) -> Poly:
        return Poly(self.ring, {key: -x for key, x in self.terms.items()})

    def __sub__(self, other: Any) -> Poly:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> Poly:
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> Poly:
        ring = self.ring
        if not isinstance(other, Poly):
            return Poly(ring, {key: x * other for key, x in self.terms.items()} if other else {})
        ring.work -= len(self.terms) * len(other.terms)
        if ring.work < 0:
            raise TooLargeError("the expanded equations are too large to read.")
        total: dict[int, complex] = {}
        size: dict[int, float] = {}
        right = list(other.terms.items())
        for i, x in self.terms.items():
            for j, y in right:
                key, z = i + j, x * y
                if key in total:
                    total[key] += z
                    size[key] += abs(z)
                else:
                    total[key] = z
                    size[key] = abs(z)
        product = Poly(ring, {key: x for key, x in total.items() if abs(x) > _ROUNDING * size[key]})
        return product.reduced() if ring.unit else product

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Poly:
        terms = _terms(other)
        if set(terms) != {0}:
            raise TooLargeError("the equations are not polynomials of sines and cosines.")
        return self * (1.0 / terms[0])

    def __rtruediv__(self, other: Any) -> Poly:
        return Poly(self.ring, _terms(other)) / self

    def reduced(self) -> Poly:
        """The polynomial with w² replaced by 1 - x² - y² - z² for every quaternion."""
        terms = self.terms
        for w, xyz in self.ring.unit.items():
            while high := {key for key in terms if self.ring.exponent(key, w) > 1}:
                rest = Poly(self.ring, {key: x for key, x in terms.items() if key not in high})
                for key in high:
                    lower = key - (2 << _BITS * w)
                    rest = rest + Poly(self.ring, {lower: terms[key]})
                    for k in xyz:
                        rest = rest + Poly(self.ring, {lower + (2 << _BITS * k): -terms[key]})
                terms = rest.terms
        return Poly(self.ring, terms)

    def phasor(self) -> tuple[int, float]:
        """Packed exponents and phase of e^{i x}, for x a sum of angles and a constant."""
        ring, key, phase = self.ring, 0, 0.0
        for term, x in self.terms.items():
            exponents = ring.exponents(term)
            if not exponents:
                phase = x.real
                continue
            ((k, e),) = exponents.items() if len(exponents) == 1 else ((-1, 0),)
            if e != 1 or k not in ring.angles:
                raise TooLargeError("the equations are not polynomials of sines and cosines.")
            factor = x.real
            whole = round(factor) if abs(factor - round(factor)) < 1e-9 else 0
            # A gear ratio that is not whole turns an angle of its own.
            angle = (ring.angles[k], 1.0 if whole else abs(factor))
            key += (whole or int(math.copysign(1, factor))) << (_BITS * ring.position(angle))
        return key, phase


def _terms(x: Any) -> dict[int, complex]:
    return x.terms if isinstance(x, Poly) else {0: complex(x)} if x else {}


def _turn(phase: float) -> complex:
    """e^{i phase}, exact for quarter turns."""
    quarters = phase / (math.pi / 2)
    if abs(quarters - round(quarters)) < 1e-14:
        return (1, 1j, -1, -1j)[round(quarters) % 4]
    return cmath.exp(1j * phase)


def _sin(x: Any) -> Any:
    if not isinstance(x, Poly):
        return math.sin(x)
    key, phase = x.phasor()
    e = _turn(phase)
    return Poly(x.ring, {key: e / 2j, -key: -e.conjugate() / 2j} if key else {0: complex(e.imag)})


def _cos(x: Any) -> Any:
    if not isinstance(x, Poly):
        return math.cos(x)
    key, phase = x.phasor()
    e = _turn(phase)
    return Poly(x.ring, {key: e / 2, -key: e.conjugate() / 2} if key else {0: complex(e.real)})


OPERATIONS: dict[str, Callable[..., Any]] = {name: OPS[name].number for name in ("add", "sub", "mul", "div", "neg")}
OPERATIONS |= {"sin": _sin, "cos": _cos}
"""The operations of a graph, on polynomials and numbers."""
