"""Exports of a graph: C and JavaScript source, WebAssembly, LaTeX, SymPy and CasADi expressions."""

from .c import c
from .casadi import casadi
from .js import js
from .latex import latex
from .sympy import sympy
from .wasm import wasm

__all__ = ["c", "casadi", "js", "latex", "sympy", "wasm"]
