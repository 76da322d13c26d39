"""Inverse dynamics under constraints: joint forces and multipliers of a motion, and the internal forces that are free.

τ + Aᵀ λ = M a + h decides τ only up to Aᵀ λ: a closed chain, or a hand that holds what the other hand holds, can press against itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arguments import a_robot, names, states, takes
from ..arrays import ArrayLike
from ..dynamics.newton_euler import inverse_dynamics
from ..errors import CoadjointError
from ..robot.robot import Robot
from .constraint import Constraint, checked
from .manifold import check_vanishing
from .metric_rows import DEPENDENT, pseudo_inverse
from .rank import ConstraintError


def actuated_rows(robot: Robot, actuated: Sequence[str] | None) -> np.ndarray:
    """A mask (nv,) of the actuated velocities: those of the named joints; all if none are named."""
    driven = np.full(robot.nv, actuated is None)
    for joint in [actuated] if isinstance(actuated, str) else actuated or ():
        driven[robot.v_slice(joint)] = True
    return driven


@takes(robot=a_robot, actuated=names)
def constrained_inverse_dynamics(
    robot: Robot,
    constraint: Constraint,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    actuated: Sequence[str] | None = None,
    wrenches: ArrayLike | None = None,
    friction: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Joint forces τ (..., nv) and multipliers λ (..., m) of a motion that keeps the constraint: τ + Aᵀ λ = M a + h.

    τ is zero except at the joints named in `actuated`, and has the smallest Σ τ² of all solutions; the others differ by
    `free_torques`. Errors say where the motion violates the constraint, or needs an actuator that does not exist.
    """
    q, v, a = states(robot, q=(q, robot.nq), v=(v, robot.nv), a=(a, robot.nv))
    constraint = checked(constraint, robot)
    A, labels = constraint.jacobian(robot, q), np.array(constraint.names(robot))
    rate = np.einsum("...ij,...j->...i", A, a) + constraint.bias(robot, q, v)
    size = 1.0 + np.abs(a).max(-1, keepdims=True) + np.abs(v).max(-1, keepdims=True) ** 2
    check_vanishing(
        rate, labels, 1e-6 * size, "a violates the constraint", "`a - constraint_inverse(robot, constraint, q) @ (A a + Ȧ v)`"
    )
    force = inverse_dynamics(robot, q, v, a, wrenches, friction)
    driven = actuated_rows(robot, actuated)
    # First what the passive joints ask of λ, then among those λ the one that spares the drives.
    passive, active = (np.swapaxes(A[..., :, rows], -1, -2) for rows in (~driven, driven))
    scale = np.abs(A).max((-2, -1))
    inverse = pseudo_inverse(passive, scale)
    needed = np.einsum("...ij,...j->...i", inverse, force[..., ~driven])
    missing = force[..., ~driven] - np.einsum("...ij,...j->...i", passive, needed)
    bad = np.abs(missing) > 1e-7 * (1.0 + np.abs(force).max(-1, keepdims=True))
    if bad.any():
        *state, k = np.argwhere(bad)[0]
        joint = np.array(robot.v_names)[~driven][k]
        raise ConstraintError(
            f"the motion needs a force of {missing[(*state, k)]:.4g} at {joint!r}, which has no drive and which no constraint gives. "
            "Name more joints in `actuated`, or ask for another motion."
        )
    open_ = np.eye(A.shape[-2]) - inverse @ passive
    spare = pseudo_inverse(active @ open_, scale)
    rest = force[..., driven] - np.einsum("...ij,...j->...i", active, needed)
    multipliers = needed + np.einsum("...ij,...jk,...k->...i", open_, spare, rest)
    tau = np.zeros_like(force)
    tau[..., driven] = force[..., driven] - np.einsum("...ij,...j->...i", active, multipliers)
    return tau, multipliers


@takes(robot=a_robot, actuated=names)
def free_torques(robot: Robot, constraint: Constraint, q: ArrayLike, actuated: Sequence[str] | None = None) -> np.ndarray:
    """A basis (nv, k) of the joint forces of the drives that change no motion at q (nq,), only the forces of the constraint.

    k = 0: the motion decides all torques. Columns are orthonormal.
    """
    (q,) = states(robot, q=(q, robot.nq))
    if q.ndim != 1:
        raise CoadjointError(f"q has shape {q.shape}; expected one configuration ({robot.nq},).")
    At, driven = checked(constraint).jacobian(robot, q).T, actuated_rows(robot, actuated)
    _, s, Vt = np.linalg.svd(At[~driven]) if (~driven).any() else (None, np.zeros(0), np.eye(At.shape[1]))
    rank = int((s > DEPENDENT * max(1.0, s.max(initial=0.0))).sum())
    U, s, _ = np.linalg.svd(At @ Vt[rank:].T, full_matrices=False)
    return U[:, s > DEPENDENT * max(1.0, s.max(initial=0.0))]
