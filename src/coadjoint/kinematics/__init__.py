"""Where the links of a robot are and how they move: the product of exponentials and its derivatives."""

from .jacobian import jacobian, jacobian_derivative, jacobian_rate
from .poses import forward_kinematics, pose

__all__ = ["forward_kinematics", "jacobian", "jacobian_derivative", "jacobian_rate", "pose"]
