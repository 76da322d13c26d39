"""The expression graph of a function, as `coadjoint.trace` gives it, as C source, JavaScript, LaTeX, SymPy or CasADi expressions."""

from .kernel.export import c, casadi, js, latex, sympy

__all__ = ["c", "casadi", "js", "latex", "sympy"]
