"""How forces and motions of a robot belong together."""

from .articulated import forward_dynamics, mass_matrix_inverse
from .christoffel import christoffel, mass_matrix_derivative
from .composite import mass_matrix
from .coriolis import coriolis_matrix
from .energy import kinetic_energy, potential_energy
from .momentum import center_of_mass, centroidal_momentum, centroidal_momentum_matrix, momentum, total_mass
from .newton_euler import bias_force, generalized_force, gravity_force, inverse_dynamics, joint_reactions, link_velocities

__all__ = [
    "bias_force",
    "center_of_mass",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "christoffel",
    "coriolis_matrix",
    "forward_dynamics",
    "generalized_force",
    "gravity_force",
    "inverse_dynamics",
    "joint_reactions",
    "kinetic_energy",
    "link_velocities",
    "mass_matrix",
    "mass_matrix_derivative",
    "mass_matrix_inverse",
    "momentum",
    "potential_energy",
    "total_mass",
]
