"""The closed form of a robot's equations as something to read: formulas, LaTeX, SymPy, C."""

from .equations import Equations, equations

__all__ = ["Equations", "equations"]
