"""The equations of motion of a robot in closed form, for reading.

    M(q) a + C(q, v) v + g(q) = τ,   T = ½ vᵀ M v,   g = ∂U/∂q,   C_kj = Γ_ijk v_i

The functions of the library are run on symbols, expanded to their canonical form as trigonometric polynomials, and written in the way
that reads best. Where that would fill pages, as for an arm with seven joints and general centres of mass, the formulas follow the
computation step by step, with names for repeated subexpressions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_moving_robot, check_core, names, one_of, whole
from ..arrays import Array
from ..dynamics.christoffel import christoffel
from ..dynamics.composite import mass_matrix
from ..dynamics.coriolis import coriolis_matrix
from ..dynamics.energy import kinetic_energy, potential_energy
from ..dynamics.newton_euler import gravity_force
from ..errors import CoadjointError, unknown
from ..kernel.graph import Graph
from ..kernel.passes.evaluate import evaluate
from ..kernel.trace.trace import trace
from ..robot.robot import Robot
from ..words import short
from . import write
from .arrange import arranged
from .document import document
from .formula import Formula, Power, Product, Sum, Symbol, size, value, walk
from .harmonics import real_terms, runs
from .parameters import Parameter, Parameters
from .ring import OPERATIONS, Ring, TooLargeError
from .shared import named_parts, step_by_step
from .write import entry

FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "M": (mass_matrix, ("q",)),
    "C": (coriolis_matrix, ("q", "v")),
    "g": (gravity_force, ("q",)),
    "U": (potential_energy, ("q",)),
    "T": (kinetic_energy, ("q", "v")),
    "gamma": (christoffel, ("q",)),
}
"""The quantities that can be requested: for each, its function and the arrays that it takes."""

LONG = 250
"""Above this size, repeated subexpressions get short names."""
TERMS, ENTRY = 4500, 1500
"""The most terms of a readable expanded form: in all, and in one entry."""
TALL = 1500
"""Above this size, a quantity is expanded only if that is at most twice as long as its step-by-step form."""
WORK = 2e5
"""The number of products of single terms after which expansion is abandoned: a fraction of a second."""


@dataclass(frozen=True)
class Equations:
    """The equations of a robot as formulas; print it, or see `text`, `latex`, `c`, `python` and `sympy`."""

    robot: Robot
    arrays: Mapping[str, np.ndarray]
    """Formulas by name (M, C, g, U, T, gamma), in arrays of their shapes."""
    definitions: tuple[tuple[Symbol, Formula], ...]
    """The named subexpressions of the formulas; each may use those before it."""
    parameters: tuple[Parameter, ...]
    """The numbers that are kept as symbols; none if all are numbers."""
    in_steps: tuple[str, ...]
    """The quantities that are too large to be expanded; they are written step by step, as they are computed."""

    @property
    def size(self) -> int:
        """The number of symbols, functions and numbers in all formulas."""
        return sum(size(f) for f in self.formulas())

    def formulas(self) -> list[Formula]:
        """All formulas: the definitions, then every distinct entry."""
        entries = [f for array in self.arrays.values() for f in array.reshape(-1).tolist()]
        return [f for _, f in self.definitions] + list(dict.fromkeys(entries))

    def __call__(self, q: Array, v: Array | None = None, parameters: Mapping[str, float] | None = None) -> dict[str, np.ndarray]:
        """The numbers that the formulas give at q (..., nq) and v (..., nv), with other values for parameters if given by name."""
        q = np.asarray(q, dtype=float)
        check_core("q", q, (self.robot.nq,))
        symbols: dict[str, Any] = {p.name: p.value for p in self.parameters}
        for name, x in (parameters or {}).items():
            if name not in symbols:
                raise unknown("parameter", name, symbols)
            symbols[name] = x
        symbols |= {f"q_{k + 1}": q[..., k] for k in range(self.robot.nq)}
        if v is not None:
            v = np.asarray(v, dtype=float)
            symbols |= {f"v_{k + 1}": v[..., k] for k in range(self.robot.nv)}
        elif "T" in self.arrays or "C" in self.arrays:
            raise CoadjointError("C and T need the velocity v as well.")
        for symbol, f in self.definitions:
            symbols[symbol.name] = value(f, symbols, q)
        batch = q.shape[:-1] if v is None else np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        results = {}
        for key, array in self.arrays.items():
            flat = [np.broadcast_to(value(f, symbols, q), batch) for f in array.reshape(-1).tolist()]
            results[key] = np.stack(flat, axis=-1).reshape((*batch, *array.shape)) if flat else np.zeros((*batch, *array.shape))
        return results

    def text(self, digits: int = 5) -> str:
        """The equations as plain text, numbers rounded to `digits` digits."""
        return write.text(self, _digits(digits))

    def latex(self, digits: int = 5) -> str:
        """The equations as a LaTeX `aligned` environment for use in math mode, numbers rounded to `digits` digits."""
        return write.latex(self, _digits(digits))

    def document(self, digits: int = 5) -> str:
        """The equations as a LaTeX document to be printed: pages, matrices as matrices, long formulas over several lines."""
        return document(self, _digits(digits))

    def mathml(self, digits: int = 5) -> str:
        """The equations as a MathML element, which browsers typeset without help, numbers rounded to `digits` digits."""
        return write.mathml(self, _digits(digits))

    def c(self) -> str:
        """The equations as C99, one function per quantity, numbers in full precision."""
        return write.c(self)

    def python(self) -> str:
        """Python code that builds SymPy expressions, numbers in full precision."""
        return write.python(self)

    def sympy(self) -> dict[str, Any]:
        """The SymPy expressions, matrices and arrays by name, including the symbols."""
        from ..kernel.export.names import optional

        optional("sympy", "sympy")
        names: dict[str, Any] = {}
        exec(self.python(), names)
        return {key: x for key, x in names.items() if not key.startswith("__")}

    def __str__(self) -> str:
        return self.text()

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"


def _digits(digits: Any) -> int:
    """The checked argument `digits`."""
    if isinstance(digits, str | os.PathLike):
        raise CoadjointError(
            f"digits is {short(digits)}; expected a whole number. The equations are returned as text: Path({short(digits)}).write_text(…)."
        )
    if whole(digits, "digits") < 1:
        raise CoadjointError(f"digits is {digits}; expected 1 or more.")
    return int(digits)


def equations(robot: Robot, what: Sequence[str] = ("M", "C", "g"), parameters: str = "numeric") -> Equations:
    """The closed form of a robot's mass matrix M, Coriolis matrix C, gravity g, energies U and T, Christoffel symbols gamma.

    `parameters` are "numeric", or "symbolic": masses, lengths and inertias stay symbols with the names of textbooks (see
    `symbolic/parameters.py`). The result prints as text and gives LaTeX, C, SymPy, and numbers when called. Numbers that agree to
    1e-11 count as equal, and sums that cancel to that accuracy as zero: files contain 1.570796327 for π/2.
    """
    if not hasattr(robot, "links"):
        raise CoadjointError(f"the first argument is {type(robot).__name__}; expected a Robot, as from coadjoint.load('planar2r').")
    wanted = [what] if isinstance(what, str) else names(what, "what")
    for name in wanted:
        if name not in FUNCTIONS:
            raise unknown("quantity", name, FUNCTIONS)
    one_of("numeric", "symbolic")(parameters, "parameters")
    a_moving_robot(robot, "robot")
    return _Writer(_Model(robot, parameters == "symbolic"), wanted).equations()


class _Model:
    """A robot, its symbols, and its functions as graphs."""

    def __init__(self, robot: Robot, symbolic: bool) -> None:
        self.robot = robot
        self.parameters = Parameters(robot) if symbolic else None
        self.list = tuple(self.parameters.list) if self.parameters else ()
        self.q = [Symbol(f"q_{k + 1}", "q") for k in range(robot.nq)]
        self.v = [Symbol(f"v_{k + 1}", "v") for k in range(robot.nv)]

    def graph(self, *names: str) -> Graph:
        """The graph of these quantities as functions of q, v and the parameters."""
        shapes = {"q": (self.robot.nq,), "v": (self.robot.nv,), "p": (len(self.list),)}

        def run(q: Array, v: Array, p: Array) -> tuple[Array, ...]:
            robot = self.parameters.symbolic(p) if self.parameters else self.robot
            given = {"q": q, "v": v}
            return tuple(function(robot, *(given[x] for x in arguments)) for function, arguments in (FUNCTIONS[n] for n in names))

        return trace(run, shapes, "equations")

    def symbols(self) -> tuple[list[Symbol], ...]:
        return self.q, self.v, [p.symbol for p in self.list]

    def polynomials(self, name: str) -> np.ndarray:
        """A quantity in its canonical form."""
        ring = Ring(WORK)
        q = [ring.coordinate(x, k) for k, x in enumerate(self.q)]
        for _, place in self.robot.quaternions:
            ring.quaternion(self.q[place])
        inputs = []
        for polys in (q, [ring.symbol(x) for x in self.v], [ring.symbol(p.symbol) for p in self.list]):
            array = np.empty(len(polys), dtype=object)
            array[:] = polys
            inputs.append(array)
        return evaluate(self.graph(name), *inputs, operations=OPERATIONS)[0]


class _Writer:
    """Expands quantities where possible, and writes the others step by step."""

    def __init__(self, model: _Model, wanted: Sequence[str]) -> None:
        self.model, self.wanted, self.run = model, wanted, runs(model.robot)
        self.arrays: dict[str, np.ndarray] = {}
        self.definitions: list[tuple[Symbol, Formula]] = []

    def equations(self) -> Equations:
        for name in self.wanted:
            if name not in ("C", "T"):
                self.expand(name)
        for name, source, by_names in (("C", "gamma", _coriolis), ("T", "M", _kinetic)):
            if name in self.wanted and self.expand(source):
                if _size(self.arrays.values()) > LONG:
                    self.arrays[name] = by_names(self.model.v, self.arrays[source], self.definitions)
                else:
                    self.expand(name)
        arrays = {name: self.arrays[name] for name in self.wanted if name in self.arrays}
        definitions = self.definitions
        if _size(arrays.values()) + sum(size(f) for _, f in definitions) > LONG:
            definitions, arrays = named_parts(definitions, arrays)
        steps = [name for name in self.wanted if name not in arrays]
        if steps:
            more, in_steps = step_by_step(self.model.graph(*steps), steps, self.model.symbols(), len(definitions))
            definitions, arrays = definitions + more, arrays | in_steps
        ordered = {name: arrays[name] for name in self.wanted}
        formulas = [f for array in ordered.values() for f in array.flat] + [f for _, f in definitions]
        used = {x for f in formulas for x in walk(f)}
        parameters = tuple(p for p in self.model.list if p.symbol in used)
        return Equations(self.model.robot, ordered, tuple(definitions), parameters, tuple(steps))

    def expand(self, name: str) -> bool:
        """Expand a quantity if it is not too large; the result tells whether it was done."""
        if name in self.arrays:
            return True
        try:
            polys = self.model.polynomials(name)
        except TooLargeError:
            return False
        counts = [len(getattr(x, "terms", ())) for x in polys.flat]
        if sum(counts) > TERMS or max(counts) > ENTRY:
            return False
        written = np.empty_like(polys)
        for index in np.ndindex(polys.shape):
            written[index] = arranged(real_terms(polys[index], self.run))
        if _size([written]) > TALL:
            definitions, steps = step_by_step(self.model.graph(name), [name], self.model.symbols())
            if _size([written]) > 2 * (_size([steps[name]]) + sum(size(f) for _, f in definitions)):
                return False
        self.arrays[name] = written
        return True


def _size(arrays: Any) -> int:
    return sum(size(f) for array in arrays for f in set(array.flat))


def _is_zero(f: Formula) -> bool:
    return isinstance(f, Product) and f.coefficient == 0.0


def _named(array: np.ndarray, index: tuple[int, ...], name: str, definitions: list[tuple[Symbol, Formula]]) -> Formula:
    """An entry, replaced by a name that is defined at its first use; short entries are kept."""
    f: Formula = array[index]
    symbol = Symbol(entry(name, index), "named")
    if size(f) <= 1:
        return f
    definitions.append((symbol, f))
    array[index] = symbol
    if array.ndim > 1 and array[index[1::-1] + index[2:]] == f:
        array[index[1::-1] + index[2:]] = symbol
    return symbol


def _coriolis(v: list[Symbol], gamma: np.ndarray, definitions: list[tuple[Symbol, Formula]]) -> np.ndarray:
    """C_kj = Σ_i Γ_ijk v_i."""
    n = len(v)
    C = np.empty((n, n), dtype=object)
    symmetric = all(gamma[i, j, k] == gamma[j, i, k] for i, j, k in np.ndindex(gamma.shape))  # but for joints that are groups
    for k, j in np.ndindex(n, n):
        terms = []
        for i in range(n):
            first, second = (j, i) if symmetric and j < i else (i, j)
            if not _is_zero(gamma[first, second, k]):
                terms.append(_scaled(_named(gamma, (first, second, k), "Γ", definitions), 1.0, v[i]))
        C[k, j] = _total(terms)
    return C


def _kinetic(v: list[Symbol], M: np.ndarray, definitions: list[tuple[Symbol, Formula]]) -> np.ndarray:
    """T = ½ Σ M_ij v_i v_j."""
    n, terms = len(v), []
    for i in range(n):
        for j in range(i, n):
            if not _is_zero(M[i, j]):
                square = (Power(v[i], 2),) if i == j else (v[i], v[j])
                terms.append(_scaled(_named(M, (i, j), "M", definitions), 0.5 if i == j else 1.0, *square))
    T = np.empty((), dtype=object)
    T[()] = _total(terms)
    return T


def _scaled(f: Formula, x: float, *factors: Formula) -> Formula:
    if isinstance(f, Product):
        return Product(f.coefficient * x, (*f.factors, *factors))
    return Product(x, (f, *factors))


def _total(terms: list[Formula]) -> Formula:
    return Product(0.0) if not terms else terms[0] if len(terms) == 1 else Sum(tuple(terms))
