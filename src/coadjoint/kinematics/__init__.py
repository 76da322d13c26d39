"""Kinematics: the poses and velocities of links, by the product of exponentials and its derivatives."""

from .dh import DH, from_dh, to_dh
from .exponentials import body_screws, path_coordinates, product_of_exponentials, relative_screws, space_screws
from .jacobian import jacobian, jacobian_derivative, jacobian_rate
from .poses import forward_kinematics, pose

__all__ = [
    "DH",
    "body_screws",
    "forward_kinematics",
    "from_dh",
    "jacobian",
    "jacobian_derivative",
    "jacobian_rate",
    "path_coordinates",
    "pose",
    "product_of_exponentials",
    "relative_screws",
    "space_screws",
    "to_dh",
]
