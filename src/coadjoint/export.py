"""The expression graph of a function, as `coadjoint.trace` gives it, as C source, LaTeX, SymPy or CasADi expressions."""

from .kernel.export import c, casadi, latex, sympy

__all__ = ["c", "casadi", "latex", "sympy"]
