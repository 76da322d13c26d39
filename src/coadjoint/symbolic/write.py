"""Equations as a text: for the terminal, LaTeX, C and Python with SymPy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .formula import Formula, Product, Symbol, Trig, walk
from .printer import C, Latex, MathML, Printer, Python, identifier, short_name
from .shared import LETTER

if TYPE_CHECKING:
    from .equations import Equations

WIDTH = 110
LETTERS = {"gamma": "Γ"}
_SHORT_ABOVE = 24
"""The number of sines and cosines above which each gets a short name."""


def entry(name: str, index: Iterable[int]) -> str:
    """The name of an entry: M_12, C_1,10."""
    numbers = [str(k + 1) for k in index]
    return "_".join([name, *([("" if max(map(len, numbers)) == 1 else ",").join(numbers)] if numbers else [])])


def entries(e: Equations, name: str, zeros: bool) -> list[tuple[tuple[int, ...], Formula]]:
    """The entries to be printed: one of each pair of a symmetric array, and zeros only on request."""
    array: Any = e.arrays[name]
    kept = []
    for index in np.ndindex(array.shape):
        mirrored = index[1::-1] + index[2:]
        known = len(index) > 1 and mirrored < index and array[mirrored] == array[index] and _symmetric(array)
        if not known and (zeros or not _is_zero(array[index])):
            kept.append((index, array[index]))
    return kept


def _symmetric(array: np.ndarray) -> bool:
    return all(array[i] == array[i[1::-1] + i[2:]] for i in np.ndindex(array.shape))


def _is_zero(f: Formula) -> bool:
    return isinstance(f, Product) and f.coefficient == 0.0


def trigs(formulas: Iterable[Formula]) -> list[Trig]:
    """The sines and cosines, in the order of their coordinates."""
    found = {x for f in formulas for x in walk(f) if isinstance(x, Trig)}
    return sorted(found, key=lambda t: (t.angle, t.function != "sin"))


def is_short(e: Equations) -> bool:
    return sum(isinstance(x, Trig) for f in e.formulas() for x in walk(f)) > _SHORT_ABOVE


def blocks(e: Equations) -> list[tuple[str, list[tuple[str, Formula]]]]:
    """Names and formulas of every quantity in turn, each after its definitions; the name "" marks definitions."""
    named: dict[str, list[tuple[str, Formula]]] = {}
    for symbol, f in e.definitions:
        named.setdefault(symbol.name.partition("_")[0], []).append((symbol.name, f))
    found = [("", named.pop(LETTER))] if LETTER in named else []
    for name, array in e.arrays.items():
        letter = LETTERS.get(name, name)
        needs = {"C": "Γ", "T": "M"}.get(name, letter)
        if needs != letter and needs not in (LETTERS.get(x, x) for x in e.arrays):
            found.append(("", named.pop(needs, [])))
        kept = [(entry(letter, index), f) for index, f in entries(e, name, zeros=array.size <= 9 and array.ndim < 3)]
        own = [(title, f) for title, f in kept if f != Symbol(title, "named")]
        found.append((name, [*named.pop(letter, []), *(own if kept else [(letter, Product(0.0))])]))
    return [block for block in found if block[1]]


def text(e: Equations, digits: int) -> str:
    printer = Printer(digits, is_short(e), bool(e.parameters))
    parts = []
    for _, block in blocks(e):
        lines = []
        for name, f in block:
            first, *rest = printer.lines(f, WIDTH)
            lines += [f"{name} = {first}", *(f"{'':{len(name)}}   {line}" for line in rest)]
        parts.append("\n".join(lines))
    if printer.short:
        printer.short = False
        waves = [f"{short_name(t)} = {printer(t)}" for t in trigs(e.formulas())]
        parts.append("\n".join(_filled(waves)))
    return "\n\n".join(parts)


def _filled(items: list[str]) -> list[str]:
    lines = [""]
    for item in items:
        if lines[-1] and len(lines[-1]) + len(item) > WIDTH:
            lines.append("")
        lines[-1] += (", " if lines[-1] else "") + item
    return lines


def latex(e: Equations, digits: int) -> str:
    printer = Latex(digits, is_short(e), bool(e.parameters))
    lines = []
    for name, block in blocks(e):
        whole = _matrix(e, name, printer) if name else None
        if whole is not None:
            lines.append(whole)
            continue
        for symbol, f in block:
            first, *rest = printer.lines(f, 2 * WIDTH)
            lines += [f"{printer.symbol(Symbol(symbol, 'named'))} &= {first}", *(rf"&\quad {{}} {line}" for line in rest)]
    if printer.short:
        for t in trigs(e.formulas()):
            lines.append(f"{printer(t)} &= {Latex(digits)(t)}")
    return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"


def _matrix(e: Equations, name: str, printer: Latex) -> str | None:
    """A small matrix or vector in matrix notation."""
    array = e.arrays[name]
    if array.ndim not in (1, 2) or array.size > 9 or e.definitions:
        return None
    rows = [[printer(f) for f in row] for row in (array if array.ndim == 2 else array[:, None]).tolist()]
    if max(len(cell) for row in rows for cell in row) > WIDTH:
        return None
    arguments = r"(q, \dot q)" if name == "C" else "(q)"
    return rf"{name}{arguments} &= \begin{{bmatrix}} " + r" \\ ".join(" & ".join(row) for row in rows) + r" \end{bmatrix}"


def mathml(e: Equations, digits: int) -> str:
    printer = MathML(digits, is_short(e), bool(e.parameters))
    rows: list[str] = []

    def row(name: str, text: str) -> None:
        left = f"<mtd class='right'>{name}<mo>=</mo></mtd>" if name else "<mtd></mtd>"
        rows.append(f"<mtr>{left}<mtd class='left'>{text}</mtd></mtr>")

    for name, block in blocks(e):
        whole = _mathml_matrix(e, name, printer) if name else None
        if whole is not None:
            row(f"<mi>{name}</mi>", whole)
            continue
        for symbol, f in block:
            first, *rest = printer.lines(f, 12 * WIDTH)
            row(printer.symbol(Symbol(symbol, "named")), first)
            for line in rest:
                row("", line)
    if printer.short:
        for t in trigs(e.formulas()):
            row(printer(t), MathML(digits)(t))
    return f"<math display='block'><mtable>{''.join(rows)}</mtable></math>"


def _mathml_matrix(e: Equations, name: str, printer: MathML) -> str | None:
    """A small matrix or vector in matrix notation, where LaTeX has one."""
    if _matrix(e, name, Latex(printer.digits, printer.short, printer.fractions)) is None:
        return None
    array = e.arrays[name]
    cells = [[printer(f) for f in row] for row in (array if array.ndim == 2 else array[:, None]).tolist()]
    table = "".join("<mtr>" + "".join(f"<mtd>{cell}</mtd>" for cell in row) + "</mtr>" for row in cells)
    return f"<mrow><mo class='fence'>[</mo><mtable class='bracketed'>{table}</mtable><mo class='fence'>]</mo></mrow>"


def _needed(e: Equations, formulas: list[Formula]) -> tuple[list[tuple[Symbol, Formula]], list[Formula]]:
    """The definitions that the formulas need, and all formulas including these."""
    wanted = {x for f in formulas for x in walk(f) if isinstance(x, Symbol)}
    kept: list[tuple[Symbol, Formula]] = []
    for symbol, f in reversed(e.definitions):
        if symbol in wanted:
            kept.insert(0, (symbol, f))
            wanted |= {x for x in walk(f) if isinstance(x, Symbol)}
    return kept, [f for _, f in kept] + formulas


def c(e: Equations) -> str:
    printer = C(short=True)
    stem = identifier(e.robot.name) or "robot"
    stem = f"_{stem}" if stem[0].isdigit() else stem
    symbols = {p.symbol: k for k, p in enumerate(e.parameters)}
    lines = [f"/* Equations of motion of {e.robot.name!r}: M a + C v + g = tau. Arrays are in row-major order."]
    if e.parameters:
        lines += ["   p:"] + [f"   p[{k}] = {identifier(x.name)}, {x.meaning}; {x.value!r}" for k, x in enumerate(e.parameters)]
    lines = [line.replace("*/", "* /") for line in lines]
    lines[-1] += " */"
    lines += ["#include <math.h>", ""]
    for name, array in e.arrays.items():
        formulas = array.reshape(-1).tolist()
        definitions, everything = _needed(e, formulas)
        names = {x.name: x for f in everything for x in walk(f) if isinstance(x, Symbol)}
        takes = ["q", "v"] if name in ("C", "T") else ["q"]
        arguments = [*(f"const double *{x}" for x in (*takes, *(["p"] if e.parameters else []))), "double *out"]
        lines += [f"void {stem}_{name}({', '.join(arguments)})", "{"]
        used = {x.kind for x in names.values()} | {"q" for f in everything for x in walk(f) if isinstance(x, Trig)}
        unused = [x for x in takes if x not in used] + (
            ["p"] if e.parameters and not names.keys() & {x.name for x in symbols} else []
        )
        lines += [f"    (void){x};" for x in unused]
        lines += [f"    const double {identifier(x.name)} = p[{k}];" for x, k in symbols.items() if x.name in names]
        for t in trigs(everything):
            lines.append(f"    const double {identifier(short_name(t))} = {C(short=False).trig(t)};")
        lines += [f"    const double {identifier(symbol.name)} = {printer(f)};" for symbol, f in definitions]
        known: dict[Formula, int] = {}
        for place, f in enumerate(formulas):
            lines.append(f"    out[{place}] = {f'out[{known[f]}]' if f in known else printer(f)};")
            known.setdefault(f, place)
        lines += ["}", ""]
    return "\n".join(lines)


def python(e: Equations) -> str:
    printer = Python(short=True)
    symbols = [Symbol(f"q_{k + 1}", "q") for k in range(e.robot.nq)]
    if "C" in e.arrays or "T" in e.arrays:
        symbols += [Symbol(f"v_{k + 1}", "v") for k in range(e.robot.nv)]
    symbols += [p.symbol for p in e.parameters]
    lines = ["from sympy import ImmutableDenseNDimArray, Matrix, Rational, Symbol, cos, sin", ""]
    lines += [f"{printer.symbol(x)} = Symbol({identifier(x.name)!r}, real=True)" for x in symbols]
    lines += [f"{identifier(short_name(t))} = {Python(short=False).trig(t)}" for t in trigs(e.formulas())]
    lines += [f"{identifier(symbol.name)} = {printer(f)}" for symbol, f in e.definitions]
    for name, array in e.arrays.items():
        lines.append(f"{name} = {_nested(array, printer)}")
    return "\n".join(lines) + "\n"


def _nested(array: np.ndarray, printer: Python) -> str:
    if array.ndim == 0:
        return printer(array.item())
    flat = ", ".join(printer(f) for f in array.reshape(-1).tolist())
    if array.ndim <= 2:
        return f"Matrix({array.shape[0]}, {array.shape[1] if array.ndim == 2 else 1}, [{flat}])"
    return f"ImmutableDenseNDimArray([{flat}], {array.shape})"
