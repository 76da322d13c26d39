"""The equations of motion of a robot in closed form: as formulas, LaTeX, SymPy or C."""

from .equations import Equations, equations

__all__ = ["Equations", "equations"]
