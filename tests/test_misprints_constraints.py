"""Misprints of Žefran & Bullo (2004), section 3: what is printed fails, what is meant holds."""

from __future__ import annotations

import numpy as np

import coadjoint as cj
from coadjoint import Constraint, constraints
from random_robots import random_robot, random_velocity


def motion():
    """A constrained motion without gravity: robot, q, v in D, τ, a, Aᵀ λ, and ∇_v v."""
    robot = random_robot(3, 5, ("revolute", "prismatic"), tree=False).with_gravity((0, 0, 0))
    constraint, rng = Constraint.point(robot, "tip", "xz"), np.random.default_rng(0)
    q, tau = robot.random(rng), random_velocity(robot, rng)
    v = constraints.project_velocity(robot, constraint, q, random_velocity(robot, rng))
    a, multipliers = cj.constrained_dynamics(robot, constraint, q, v, tau)
    return robot, constraint, q, v, tau, a, constraint.jacobian(robot, q).T @ multipliers


def test_the_force_in_23_is_a_vector():
    """∇_v v = Λ + F with the Λ of (19), a covector / with M⁻¹ Λ."""
    robot, _, q, v, tau, a, force = motion()
    Mi = cj.mass_matrix_inverse(robot, q)
    acceleration = a + np.einsum("kij,i,j", cj.connection(robot, q), v, v)
    size = np.abs(acceleration).max()
    assert np.abs(acceleration - (force + Mi @ tau)).max() > 1e-2 * size
    np.testing.assert_allclose(acceleration, Mi @ force + Mi @ tau, atol=1e-11 * size)


def test_the_force_in_25_is_made_a_vector_first():
    """∇̃_v v = P(Y) / P(M⁻¹ Y)."""
    robot, constraint, q, v, tau, a, _ = motion()
    P, Mi = cj.constraint_projector(robot, constraint, q), cj.mass_matrix_inverse(robot, q)
    acceleration = a + np.einsum("ijk,j,k", cj.constraint_connection(robot, constraint, q), v, v)
    size = np.abs(acceleration).max()
    assert np.abs(acceleration - P @ tau).max() > 1e-2 * size
    np.testing.assert_allclose(acceleration, P @ Mi @ tau, atol=1e-11 * size)
