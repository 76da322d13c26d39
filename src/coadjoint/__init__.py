"""Robot dynamics as geometry: see the README and `docs/`."""

from . import errors, interop, lie
from .compiling import compile, trace
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
from .kinematics import (
    DH,
    body_screws,
    forward_kinematics,
    from_dh,
    jacobian,
    jacobian_derivative,
    jacobian_rate,
    path_coordinates,
    pose,
    product_of_exponentials,
    relative_screws,
    space_screws,
    to_dh,
)
from .motion.rollout import rollout
from .robot import Frame, Joint, Link, Mimic, Robot, robot_from_dh
from .robot.load import load
from .robot.urdf_write import write_urdf

__version__ = "0.1.0"

__all__ = [
    "DH",
    "CoadjointError",
    "Frame",
    "Joint",
    "Link",
    "Mimic",
    "Robot",
    "bias_force",
    "body_screws",
    "center_of_mass",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "compile",
    "errors",
    "forward_dynamics",
    "forward_kinematics",
    "from_dh",
    "generalized_force",
    "gravity_force",
    "interop",
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
    "path_coordinates",
    "pose",
    "potential_energy",
    "product_of_exponentials",
    "relative_screws",
    "robot_from_dh",
    "rollout",
    "space_screws",
    "to_dh",
    "total_mass",
    "write_urdf",
]
