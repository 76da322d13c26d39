"""Constraints on the motion of a robot, holonomic and not, and its dynamics under them. Žefran & Bullo (2004), section 3."""

from .constraint import Constraint
from .derivatives import constrained_dynamics_derivatives
from .dynamics import constrained_dynamics
from .inverse import constrained_inverse_dynamics, free_torques
from .manifold import assemble, check_state, project
from .modes import assembly_modes, is_singular
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
from .pseudo import PseudoVelocities, null_space
from .rank import ConstraintError, Rank, constraint_rank
from .reduced import Reduced

__all__ = [
    "Constraint",
    "ConstraintError",
    "PseudoVelocities",
    "Rank",
    "Reduced",
    "assemble",
    "assembly_modes",
    "check_state",
    "constrained_dynamics",
    "constrained_dynamics_derivatives",
    "constrained_geodesic",
    "constrained_inverse_dynamics",
    "constrained_mass_matrix",
    "constraint_connection",
    "constraint_inverse",
    "constraint_jacobian_derivative",
    "constraint_projector",
    "constraint_rank",
    "effective_mass",
    "free_torques",
    "is_singular",
    "null_space",
    "project",
    "project_velocity",
]
