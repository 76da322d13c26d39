"""Dynamically balanced mechanisms: their mass matrix is constant, so that M a = τ - g without velocity terms.

Brockett, Stokes & Park (1993), section 5. The balance conditions of a planar chain there need a sign and a position corrected:

    m_k p_kk = -(Σ_{j>k} m_j) p_{k,k+1},   k = 2 … n,   p_{k,k+1} the position of joint k + 1 (not of a centre of mass),

both positions seen from joint k: the centre of mass of link k, with all that it carries put at the joint that carries it, is on axis k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_robot, takes, whole
from ..dynamics.christoffel import mass_matrix_derivative
from ..dynamics.composite import mass_matrix
from ..dynamics.regressor import regressor
from ..errors import CoadjointError, ModelError
from ..robot.robot import Robot

TOLERANCE = 1e-11
"""Relative errors below this count as rounding."""


@dataclass(frozen=True)
class Balance:
    """The distance of a robot's mass matrix from a constant one, and of its gravity force from zero, over random configurations."""

    constant: bool
    """True if M is the same in every configuration: all ∂M vanish, up to rounding."""
    weightless: bool
    """True if g(q) = 0 in every configuration."""
    variation: float
    """The root mean square of |N⁻ᵀ (M - M̄) N⁻¹| / √nv, where M̄ = Nᵀ N is the mean: 0 for constant, whatever the units of the joints."""
    slope: float
    """The largest |∂_l M_ij| / √(M_ii M_jj), per radian or metre."""
    freedoms: tuple[int, int, int]
    """The i, j, l of the largest slope."""
    where: np.ndarray
    """The configuration (nq,) of the largest slope."""
    gravity: np.ndarray
    """The largest |g_k| (nv,) found."""

    def __str__(self) -> str:
        i, j, l = (k + 1 for k in self.freedoms)
        said = "the mass matrix is constant"
        if not self.constant:
            most = f"most in M_{i},{j} with coordinate {l}: {self.slope:.3g} of it per unit"
            said = f"the mass matrix varies by {100 * self.variation:.3g} % (rms), {most}"
        forces = ", ".join(f"{x:.3g}" if x > TOLERANCE * np.max(self.gravity) else "0" for x in self.gravity)
        return f"{said}; " + ("gravity does nothing" if self.weightless else f"gravity up to {forces}")


@takes(robot=a_robot, configurations=whole)
def balance(robot: Robot, configurations: int = 64, rng: Any = 0) -> Balance:
    """The variation of a robot's mass matrix and its gravity force at random configurations, as a `Balance`.

    M is an analytic function: if all its derivatives vanish at configurations drawn at random, they vanish everywhere.
    """
    if configurations < 2:
        raise CoadjointError(f"configurations is {configurations}; expected 2 or more, as they are compared.")
    if not robot.nv:
        return Balance(True, True, 0.0, 0.0, (0, 0, 0), robot.neutral(), np.zeros(0))
    q = robot.random(rng, configurations)
    M, dM = mass_matrix(robot, q), mass_matrix_derivative(robot, q)
    size = np.sqrt(np.max(np.diagonal(M, axis1=-2, axis2=-1), axis=0))
    scale = (size[:, None] * size)[..., None]
    slopes = np.divide(np.abs(dM), scale, out=np.zeros_like(dM), where=scale > 0)
    state, i, j, l = (int(k) for k in np.unravel_index(np.argmax(slopes), slopes.shape))
    slope = float(slopes[state, i, j, l])
    still = np.zeros((configurations, robot.nv))
    shares = regressor(robot, q, still, still) * robot.inertial_parameters
    gravity, possible = np.abs(shares.sum(-1)), np.abs(shares).sum(-1)
    return Balance(
        constant=slope <= TOLERANCE,
        weightless=bool(np.all(gravity <= TOLERANCE * np.max(possible))),
        variation=_variation(M),
        slope=slope,
        freedoms=(i, j, l),
        where=q[state],
        gravity=np.max(gravity, axis=0),
    )


def _variation(M: np.ndarray) -> float:
    mean = M.mean(0)
    values, vectors = np.linalg.eigh(mean)
    moving = values > 1e-12 * values[-1]  # what moves no mass at all does not vary either
    N = vectors[:, moving] / np.sqrt(values[moving])
    change = N.T @ (M - mean) @ N
    return float(np.sqrt(np.mean(np.sum(change**2, axis=(-2, -1))) / max(1, int(moving.sum()))))


def is_balanced(robot: Robot) -> bool:
    """True if the mass matrix is constant: dynamically balanced in the sense of Brockett, Stokes & Park (1993). See `balance`."""
    return balance(robot).constant


@takes(robot=a_robot)
def first_moments(robot: Robot) -> np.ndarray:
    """b_k (n_links, 3) = m_k p_kk + Σ_j (mass beyond joint j) p_kj over the joints j on link k, orthogonal to the joint axes, in
    the link's frame.

    For revolute joints with parallel axes, in a chain or a tree. Positions are seen from joint k. The mass matrix is constant if b_k = 0
    for every link that does not hang on the base, and, where the joints on each link are apart from its own, only then. If b_k = 0
    for all links, gravity orthogonal to the axes has no effect either.
    """
    axes, points = [], []
    for i in range(robot.n_links):
        joint = robot.links[i].joint
        if not robot.kind(i).revolute:
            raise ModelError(
                f"joint {joint.name!r} is {joint.kind}; a planar mechanism has revolute joints with parallel axes only."
            )
        S = robot.joint_screws(i)[0]
        axes.append(S[:3] / np.linalg.norm(S[:3]))
        points.append(np.cross(S[:3], S[3:]))
    beyond, b = robot.inertias[:, 0].copy(), np.zeros((robot.n_links, 3))
    for i in reversed(robot.order):
        b[i] += robot.inertias[i, 1:4] - robot.inertias[i, 0] * points[i]
        parent = robot.parents[i]
        if parent >= 0:
            R, p = robot.placements[i][:3, :3], robot.placements[i][:3, 3]
            if np.linalg.norm(np.cross(R @ axes[i], axes[parent])) > 1e-9:
                names = robot.joint_names[i], robot.joint_names[parent]
                raise ModelError(
                    f"the axes of joints {names[0]!r} and {names[1]!r} are not parallel; see `conditions` for any robot."
                )
            b[parent] += beyond[i] * (R @ points[i] + p - points[parent])
            beyond[parent] += beyond[i]
    return np.array([x - w * (w @ x) for x, w in zip(b, axes, strict=True)]).reshape(-1, 3)
