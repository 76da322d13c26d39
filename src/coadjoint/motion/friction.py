"""Friction of the joints: viscous, d v, and dry (Coulomb), a set: |f| ≤ μ where v = 0, and f = -μ sign(v) elsewhere.

A joint sticks as long as a force within ±μ can hold it. What the forces of all sticking joints are, together with those of constraints
and contacts, is one problem of complementarity in the metric M⁻¹; see `box_complementarity`.
"""

from __future__ import annotations

import numpy as np

from ..robot.robot import Robot


def friction_coefficients(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """The viscous coefficients d and the dry friction μ of every velocity, (nv,) each; joints add that of those which mimic them."""
    one = np.ones(robot.nv)
    ratio = robot.tree_v(one)
    return np.asarray(robot.from_tree(robot.damping * ratio)), np.asarray(robot.from_tree(robot.friction * np.sign(ratio)))
