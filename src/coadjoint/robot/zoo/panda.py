"""The Franka Emika Panda."""

from __future__ import annotations

import numpy as np

from ..dh import robot_from_dh
from ..link import Frame
from ..robot import Robot

_PI2 = np.pi / 2

# θ, d, a, α, modified convention.
_ROWS = (
    (0.0, 0.333, 0.0, 0.0),
    (0.0, 0.0, 0.0, -_PI2),
    (0.0, 0.316, 0.0, _PI2),
    (0.0, 0.0, 0.0825, _PI2),
    (0.0, 0.384, -0.0825, -_PI2),
    (0.0, 0.0, 0.0, _PI2),
    (0.0, 0.0, 0.088, _PI2),
)
_FLANGE = 0.107

# lower and upper limit (rad), velocity (rad/s), torque (N m)
_LIMITS = (
    (-2.8973, 2.8973, 2.1750, 87.0),
    (-1.7628, 1.7628, 2.1750, 87.0),
    (-2.8973, 2.8973, 2.1750, 87.0),
    (-3.0718, -0.0698, 2.1750, 87.0),
    (-2.8973, 2.8973, 2.6100, 12.0),
    (-0.0175, 3.7525, 2.6100, 12.0),
    (-2.8973, 2.8973, 2.6100, 12.0),
)

# mass (kg), centre of mass (m), xx xy xz yy yz zz about it (kg m²), in the link's frame
_BODIES = (
    (4.970684, (3.875e-3, 2.081e-3, -4.762e-2), (7.0337e-1, -1.39e-4, 6.772e-3, 7.0661e-1, 1.9169e-2, 9.117e-3)),
    (0.646926, (-3.141e-3, -2.872e-2, 3.495e-3), (7.962e-3, -3.925e-3, 1.0254e-2, 2.811e-2, 7.04e-4, 2.5995e-2)),
    (3.228604, (2.7518e-2, 3.9252e-2, -6.6502e-2), (3.7242e-2, -4.761e-3, -1.1396e-2, 3.6155e-2, -1.2805e-2, 1.083e-2)),
    (3.587895, (-5.317e-2, 1.04419e-1, 2.7454e-2), (2.5853e-2, 7.796e-3, -1.332e-3, 1.9552e-2, 8.641e-3, 2.8323e-2)),
    (1.225946, (-1.1953e-2, 4.1065e-2, -3.8437e-2), (3.5549e-2, -2.117e-3, -4.037e-3, 2.9474e-2, 2.29e-4, 8.627e-3)),
    (1.666555, (6.0149e-2, -1.4117e-2, -1.0517e-2), (1.964e-3, 1.09e-4, -1.158e-3, 4.354e-3, 3.41e-4, 5.433e-3)),
    (0.735522, (1.0517e-2, -4.252e-3, 6.1597e-2), (1.2516e-2, -4.28e-4, -1.196e-3, 1.0027e-2, -7.41e-4, 4.815e-3)),
)


def panda() -> Robot:
    """The Franka Emika Panda, 7 revolute joints, without a hand; frames "flange" and "tip", which is the same.

    Kinematics and limits: Franka Control Interface documentation, "Denavit–Hartenberg parameters" and "Limits for Panda".
    Inertias: Gaz, Cognetti, Oliva, Robuffo Giordano & De Luca, Dynamic identification of the Franka Emika Panda robot with
    retrieval of feasible parameters using penalty-based optimization, IEEE RA-L 4 (2019), 4147-4154. Rotors are part of these
    inertias; single ones of them need not be those of the links, only what they give together at the joints was measured.
    """
    joints = [
        {"lower": lower, "upper": upper, "velocity": velocity, "effort": effort} for lower, upper, velocity, effort in _LIMITS
    ]
    masses, coms, six = zip(*_BODIES, strict=True)
    xx, xy, xz, yy, yz, zz = np.transpose(six)
    inertias = np.moveaxis(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), -1, 0)
    robot = robot_from_dh(_ROWS, "modified", masses=masses, coms=coms, inertias=inertias, joints=joints, name="panda")
    flange = np.eye(4)
    flange[2, 3] = _FLANGE
    return Robot("panda", robot.links, [Frame("flange", "link7", flange), Frame("tip", "link7", flange)])
