"""The expression graph of a function, from `coadjoint.trace`, as C source, JavaScript, WebAssembly, LaTeX, SymPy or CasADi expressions."""

from .kernel.export import c, casadi, js, latex, sympy, wasm

__all__ = ["c", "casadi", "js", "latex", "sympy", "wasm"]
