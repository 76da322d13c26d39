"""Objectives of designs: functions of a robot and states, one number for each state, written with array operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import Array, dot, like, namespace, solve_spd, transpose
from ..dynamics import (
    gravity_force,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    joint_reactions,
    mass_matrix,
    mass_matrix_derivative,
)
from ..geometry import scalar_curvature
from ..kinematics import jacobian, pose
from ..lie import inertia
from ..redundancy.lift import effective_inertia as inertia_at
from ..robot.robot import Robot


def effort(robot: Robot, q: Array, v: Array, a: Array) -> Array:
    """|τ|² (...) of a motion."""
    tau = inverse_dynamics(robot, q, v, a)
    return dot(tau, tau)


def holding(robot: Robot, q: Array) -> Array:
    """|g|² (...) of the forces that hold the robot at rest, with gravity and springs."""
    g = gravity_force(robot, q)
    return dot(g, g)


def softness(robot: Robot, q: Array) -> Array:
    """Σ 1/ω² (...) of the natural frequencies ω (rad/s) of small motions about a rest q that gravity and springs hold stable.

    It is tr(K⁻¹ M) with the stiffness K = ∂g/∂q, and at least 1/ω² of the lowest frequency (Dunkerley): where it is least, that is high.
    """
    stiffness = inverse_dynamics_derivatives(robot, q, 0.0 * q, 0.0 * q)[0]
    shape = solve_spd(0.5 * (stiffness + transpose(stiffness)), mass_matrix(robot, q))
    return sum(shape[..., i, i] for i in range(robot.nv))


def carrying(frame: str) -> Callable[..., Array]:
    """The objective |τ|² (...) of a motion q, v, a with a point mass `load` (..., 1) at a frame: forces are linear in masses."""

    def effort_with_load(robot: Robot, q: Array, v: Array, a: Array, load: Array) -> Array:
        link, T = robot.frame(frame)
        one = inertia.transform(T, np.eye(10)[0]) * np.eye(robot.n_links)[link][:, None]
        empty = inverse_dynamics(robot, q, v, a)
        loaded = inverse_dynamics(robot.with_numbers(inertias=robot.inertias + one), q, v, a)
        tau = empty + load * (loaded - empty)
        return dot(tau, tau)

    return effort_with_load


def curvature(robot: Robot, q: Array) -> Array:
    """The square of the scalar curvature (...): zero for a robot whose mass matrix is constant in some coordinates."""
    R = scalar_curvature(robot, q)
    return R * R


def variation(robot: Robot, q: Array) -> Array:
    """Σ (∂_l M_ij)² (...): zero at every q for a dynamically balanced robot."""
    dM = mass_matrix_derivative(robot, q)
    return (dM * dM).sum((-3, -2, -1))


def base_reaction(robot: Robot, q: Array, v: Array, a: Array) -> Array:
    """|F|² + |moment|² (...) that the links on the base pass to it, less what gravity alone passes, in the frames of these links."""
    total = joint_reactions(robot, q, v, a)
    rest = joint_reactions(robot, q, 0.0 * v, 0.0 * a)
    roots = [i for i, parent in enumerate(robot.parents) if parent < 0]
    part = (total - rest)[..., roots, :]
    return (part * part).sum((-2, -1))


def isotropy(frame: str, length: float = 1.0) -> Callable[..., Array]:
    """The objective k tr((JJᵀ)²)/tr(JJᵀ)² - 1 (...) of a frame's position and rotation (rotations times `length`): zero if isotropic."""

    def measure(robot: Robot, q: Array) -> Array:
        J = jacobian(robot, q, frame) * like(np.array([length] * 3 + [1.0] * 3)[:, None], q)
        A = J @ transpose(J)
        trace = namespace(A).einsum("...kk->...", A)
        return 6.0 * (A * A).sum((-2, -1)) / (trace * trace) - 1.0

    return measure


def reach(frame: str, length: float = 1.0) -> Callable[..., Array]:
    """The objective |p - p_target|² + length² |R - R_target|²/2 (...) of a frame; the position alone if length is 0.

    states: q and target (..., 12), the upper three rows of a pose, row by row.
    """

    def distance(robot: Robot, q: Array, target: Array) -> Array:
        X = pose(robot, q, frame)[..., :3, :]
        wanted = target.reshape((*target.shape[:-1], 3, 4))
        gap = X - wanted
        position, rotation = gap[..., 3], gap[..., :3]
        return dot(position, position) + 0.5 * length * length * (rotation * rotation).sum((-2, -1))

    return distance


def effective_mass(frame: str, axis: Any) -> Callable[..., Array]:
    """The objective 1/(uᵀ Λ⁻¹ u) (...): the mass that the environment meets when it pushes the frame along u (3,), in the frame's axes."""
    u = np.concatenate([np.zeros(3), np.asarray(axis, dtype=float) / np.linalg.norm(axis)])

    def mass(robot: Robot, q: Array) -> Array:
        Lambda = inertia_at(robot, q, frame)
        along = like(u, q)
        return 1.0 / dot(along, solve_spd(Lambda, along[..., None] + 0.0 * Lambda[..., :1])[..., 0])

    return mass


def lowest_inertia(robot: Robot, q: Array) -> Array:
    """tr(M)/nv (...): for given joint stiffness, natural frequencies grow as it falls."""
    return namespace(q).einsum("...kk->...", mass_matrix(robot, q)) / robot.nv
