"""Functions of a robot and a state that every execution and every array library must agree on."""

from __future__ import annotations

import coadjoint as cj

FUNCTIONS = {
    "inverse_dynamics": lambda r, q, v, a: cj.inverse_dynamics(r, q, v, a),
    "inverse_dynamics_friction": lambda r, q, v, a: cj.inverse_dynamics(r, q, v, a, friction=True),
    "forward_dynamics": lambda r, q, v, a: cj.forward_dynamics(r, q, v, a),
    "bias_force": lambda r, q, v, a: cj.bias_force(r, q, v),
    "gravity_force": lambda r, q, v, a: cj.gravity_force(r, q),
    "mass_matrix": lambda r, q, v, a: cj.mass_matrix(r, q),
    "mass_matrix_inverse": lambda r, q, v, a: cj.mass_matrix_inverse(r, q),
    "forward_kinematics": lambda r, q, v, a: cj.forward_kinematics(r, q),
    "pose": lambda r, q, v, a: cj.pose(r, q, "tip"),
    "jacobian": lambda r, q, v, a: cj.jacobian(r, q, "tip", "world"),
    "jacobian_rate": lambda r, q, v, a: cj.jacobian_rate(r, q, v, "tip", "space"),
    "jacobian_derivative": lambda r, q, v, a: cj.jacobian_derivative(r, q, "tip"),
    "kinetic_energy": lambda r, q, v, a: cj.kinetic_energy(r, q, v),
    "potential_energy": lambda r, q, v, a: cj.potential_energy(r, q),
    "momentum": lambda r, q, v, a: cj.momentum(r, q, v),
    "centroidal_momentum": lambda r, q, v, a: cj.centroidal_momentum(r, q, v),
    "centroidal_momentum_matrix": lambda r, q, v, a: cj.centroidal_momentum_matrix(r, q),
    "joint_reactions": lambda r, q, v, a: cj.joint_reactions(r, q, v, a),
    "integrate": lambda r, q, v, a: r.integrate(q, v),
    "difference": lambda r, q, v, a: r.difference(q, r.integrate(q, 0.3 * v)),
}
"""name: fn(robot, q, v, a)."""
