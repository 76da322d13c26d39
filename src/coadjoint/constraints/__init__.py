"""Constraints on the motion of a robot, holonomic and not, and its dynamics under them. Žefran & Bullo (2004), section 3."""

from .constraint import Constraint
from .dynamics import constrained_dynamics
from .manifold import assemble, check_state, project
from .projection import (
    constrained_geodesic,
    constrained_mass_matrix,
    constraint_connection,
    constraint_inverse,
    constraint_jacobian_derivative,
    constraint_projector,
    effective_mass,
    project_velocity,
)
from .rank import ConstraintError, Rank, constraint_rank

__all__ = [
    "Constraint",
    "ConstraintError",
    "Rank",
    "assemble",
    "check_state",
    "constrained_dynamics",
    "constrained_geodesic",
    "constrained_mass_matrix",
    "constraint_connection",
    "constraint_inverse",
    "constraint_jacobian_derivative",
    "constraint_projector",
    "constraint_rank",
    "effective_mass",
    "project",
    "project_velocity",
]
