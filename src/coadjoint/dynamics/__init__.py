"""Dynamics: the relation of forces and motion of a robot."""

from .articulated import forward_dynamics, mass_matrix_inverse
from .christoffel import christoffel, mass_matrix_derivative
from .composite import mass_matrix
from .coriolis import coriolis_matrix
from .derivatives import forward_dynamics_derivatives, from_triangle, inverse_dynamics_derivatives, triangle
from .energy import kinetic_energy, potential_energy
from .momentum import center_of_mass, centroidal_momentum, centroidal_momentum_matrix, momentum, total_mass
from .newton_euler import bias_force, generalized_force, gravity_force, inverse_dynamics, joint_reactions, link_velocities
from .regressor import drive_regressor, kinetic_energy_regressor, momentum_regressor, potential_energy_regressor, regressor
from .second_derivatives import forward_dynamics_second_derivatives, inverse_dynamics_second_derivatives
from .springs import spring_force

__all__ = [
    "bias_force",
    "center_of_mass",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "christoffel",
    "coriolis_matrix",
    "drive_regressor",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "forward_dynamics_second_derivatives",
    "from_triangle",
    "generalized_force",
    "gravity_force",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_dynamics_second_derivatives",
    "joint_reactions",
    "kinetic_energy",
    "kinetic_energy_regressor",
    "link_velocities",
    "mass_matrix",
    "mass_matrix_derivative",
    "mass_matrix_inverse",
    "momentum",
    "momentum_regressor",
    "potential_energy",
    "potential_energy_regressor",
    "regressor",
    "spring_force",
    "total_mass",
    "triangle",
]
