"""Equations as a LaTeX document that prints: pages, matrices as matrices, and formulas that break between their terms.

A formula of a seven-jointed arm is wider than a page. Each stands in a paragraph of its own, as mathematics in text, so that TeX itself
breaks its lines at signs and its pages between formulas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .formula import Formula, Symbol, Trig, size
from .printer import Latex
from .write import LETTERS, blocks, entry, is_short, trigs

if TYPE_CHECKING:
    from .equations import Equations

TITLES = {
    "": "Abbreviations",
    "M": r"Mass matrix $M(q)$",
    "C": r"Coriolis matrix $C(q, \dot q)$",
    "g": "Gravity $g(q)$",
    "U": "Potential energy $U(q)$",
    "T": r"Kinetic energy $T(q, \dot q)$",
    "gamma": r"Christoffel symbols $\Gamma(q)$",
}
COLUMNS = 12
"""The widest matrix that stands on a page."""
SPECIAL = {"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
HEAD = r"""\documentclass[10pt,a4paper]{article}
\usepackage[T1]{fontenc}
\usepackage[margin=22mm]{geometry}
\usepackage{amsmath}
\setcounter{MaxMatrixCols}{%d}
\setlength{\parindent}{0pt}
\setlength{\emergencystretch}{3em}
\relpenalty=10000
\binoppenalty=0
\newcommand{\formula}[1]{{\raggedright\hangindent=2.2em\hangafter=1 $#1$\par}\smallskip}
\begin{document}
"""


class Paragraph(Latex):
    """Formulas whose brackets are no obstacle for the end of a line."""

    def brackets(self, text: str) -> str:
        return f"({text})"

    def trig(self, trig: Trig) -> str:
        return super().trig(trig).replace(r"\left(", "(").replace(r"\right)", ")")


def document(e: Equations, digits: int) -> str:
    """The whole document."""
    printer = Paragraph(digits, is_short(e), bool(e.parameters))
    parts = [HEAD % max(COLUMNS, 10) + rf"\section*{{Equations of motion of {escaped(e.robot.name)}}}", _opening(e)]
    for name, block in blocks(e):
        parts.append(rf"\subsection*{{{TITLES[name]}}}")
        array = e.arrays.get(name)
        seen: set[str] = set()
        if array is not None and array.ndim in (1, 2) and 1 < max(array.shape) <= COLUMNS:
            shown, seen = _matrix(name, array, printer)
            parts.append(shown)
        parts += [
            rf"\formula{{{printer.symbol(Symbol(symbol, 'named'))} = {printer(f)}}}" for symbol, f in block if symbol not in seen
        ]
    if printer.short:
        plain = Paragraph(digits)
        waves = [f"${printer(t)} = {plain(t)}$" for t in trigs(e.formulas())]
        parts += [r"\subsection*{Sines and cosines}", r"{\raggedright " + ", ".join(waves) + r".\par}"]
    if e.parameters:
        rows = [
            rf"${printer.symbol(p.symbol)} = {printer.number(p.value) if p.value >= 0 else '-' + printer.number(-p.value)}$"
            for p in e.parameters
        ]
        parts += [r"\subsection*{Parameters}", r"{\raggedright " + ", ".join(rows) + r".\par}"]
    return "\n".join([*parts, r"\end{document}"])


def _opening(e: Equations) -> str:
    names = [f"$q_{{{k + 1}}}$ {escaped(name)}" for k, name in enumerate(e.robot.q_names)]
    law = r"\[ M(q)\,\ddot q + C(q, \dot q)\,\dot q + g(q) = \tau \]"
    return f"{law}\n{{\\raggedright SI units, angles in radians. Coordinates: {', '.join(names)}.\\par}}"


def _matrix(name: str, array: np.ndarray, printer: Latex) -> tuple[str, set[str]]:
    """The matrix or column with short entries written in and names for the long ones, and the names of those that were written in."""
    letter = LETTERS.get(name, name)
    written: set[str] = set()
    mirrored = array.ndim == 2 and all(array[i, j] == array[j, i] for i, j in np.ndindex(array.shape))

    def cell(index: tuple[int, ...], f: Formula) -> str:
        title = entry(letter, sorted(index) if mirrored else index)
        if size(f) <= 1 and f != Symbol(title, "named"):
            written.add(title)
            return printer(f)
        return printer.symbol(Symbol(title, "named"))

    rows = [[cell(index, f) for index, f in row] for row in _rows(array)]
    body = r" \\ ".join(" & ".join(row) for row in rows)
    arguments = r"(q, \dot q)" if name in ("C", "T") else "(q)"
    return rf"\[ {letter}{arguments} = \begin{{pmatrix}} {body} \end{{pmatrix}} \]\par", written


def _rows(array: np.ndarray) -> list[list[tuple[tuple[int, ...], Formula]]]:
    if array.ndim == 1:
        return [[((i,), f)] for i, f in enumerate(array.tolist())]
    return [[((i, j), array[i, j]) for j in range(array.shape[1])] for i in range(array.shape[0])]


def escaped(name: str) -> str:
    """A name as text: every character stands for itself, and what these fonts do not have is a question mark."""
    kept = (x if " " <= x <= "~" else "?" for x in name)
    return "".join(SPECIAL.get(x, f"\\{x}" if x in "#$%&_" else f"{{{x}}}" if x in "<>\"'`-" else x) for x in kept)
