"""Robot dynamics as geometry: see the README and `docs/`."""

from . import errors, lie
from .dynamics import (
    bias_force,
    center_of_mass,
    centroidal_momentum,
    centroidal_momentum_matrix,
    forward_dynamics,
    generalized_force,
    gravity_force,
    inverse_dynamics,
    joint_reactions,
    kinetic_energy,
    link_velocities,
    mass_matrix,
    mass_matrix_inverse,
    momentum,
    potential_energy,
    total_mass,
)
from .errors import CoadjointError
from .kinematics import forward_kinematics, jacobian, jacobian_derivative, jacobian_rate, pose
from .robot import Frame, Joint, Link, Mimic, Robot
from .robot.load import load

__version__ = "0.1.0"

__all__ = [
    "CoadjointError",
    "Frame",
    "Joint",
    "Link",
    "Mimic",
    "Robot",
    "bias_force",
    "center_of_mass",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "errors",
    "forward_dynamics",
    "forward_kinematics",
    "generalized_force",
    "gravity_force",
    "inverse_dynamics",
    "jacobian",
    "jacobian_derivative",
    "jacobian_rate",
    "joint_reactions",
    "kinetic_energy",
    "lie",
    "link_velocities",
    "load",
    "mass_matrix",
    "mass_matrix_inverse",
    "momentum",
    "pose",
    "potential_energy",
    "total_mass",
]
