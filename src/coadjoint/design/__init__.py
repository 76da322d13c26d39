"""Design of mechanisms: numbers chosen for an objective; balancing of the mass matrix and of gravity."""

from . import objectives, studies
from .balance import Balance, balance, first_moments, is_balanced
from .conditions import Conditions, conditions
from .counterweights import Counterweight, Counterweights, counterweights
from .optimize import Design, optimize

__all__ = [
    "Balance",
    "Conditions",
    "Counterweight",
    "Counterweights",
    "Design",
    "balance",
    "conditions",
    "counterweights",
    "first_moments",
    "is_balanced",
    "objectives",
    "optimize",
    "studies",
]
