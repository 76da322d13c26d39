"""A graph as something else to read or run: C source, LaTeX, SymPy and CasADi expressions."""

from .c import c
from .casadi import casadi
from .latex import latex
from .sympy import sympy

__all__ = ["c", "casadi", "latex", "sympy"]
