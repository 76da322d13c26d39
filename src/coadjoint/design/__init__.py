"""Design of mechanisms: balancing of the mass matrix and of gravity."""

from .balance import Balance, balance, first_moments, is_balanced
from .conditions import Conditions, conditions
from .counterweights import Counterweight, Counterweights, counterweights

__all__ = [
    "Balance",
    "Conditions",
    "Counterweight",
    "Counterweights",
    "balance",
    "conditions",
    "counterweights",
    "first_moments",
    "is_balanced",
]
