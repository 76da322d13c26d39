"""Flat robots: in suitable coordinates q̃, their equations of motion are q̃'' = τ̃.

A robot is flat if its curvature vanishes everywhere. That is possible even if M is not constant: a point mass on a revolute and a
prismatic joint moves in flat polar coordinates. (Spong 1992, as cited by Park, Bobrow & Ploen (1995), section 5.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_robot, floats, states, takes, whole
from ..arrays import Array, ArrayLike, concat, dot, like, namespace, transpose
from ..dynamics.articulated import mass_matrix_inverse
from ..dynamics.composite import composite_inertias, mass_matrix
from ..dynamics.coriolis import coriolis_matrix
from ..dynamics.freedoms import freedoms, path_screws
from ..dynamics.newton_euler import subspaces
from ..errors import CoadjointError, ModelError
from ..kernel.dispatch import kernel
from ..kinematics.poses import relative_poses
from ..lie import inertia, se3
from ..robot.robot import Robot
from . import flow
from .curvature import curvature

TOLERANCE = 1e-9
"""Curvature below this fraction of the bending, or below its rounding error, counts as zero."""
ROUNDING = 1e-14


@kernel("nv nv", q="nq")
def bending(robot: Robot, q: Array) -> Array:
    """√(Σ m |∂_i ∂_j x|²) (..., nv, nv), the size of the second derivatives of the mass points x; for mimic joints a bound of it.

    ∂_i ∂_j x = ω_i × y for i nearer the base, y = ŝ_j x: the sum is tr(Y) |ω_i|² - ω_iᵀ Y ω_i, Y = Σ m y yᵀ over what j carries.
    """
    tree_q, n = robot.tree_q(q), robot.tree_nv
    f, S = relative_poses(robot, tree_q), subspaces(robot, tree_q)
    A, J = path_screws(robot, f, S), composite_inertias(robot, f)
    parts, place, at = [like(np.zeros(1), q)], np.zeros((n, n), dtype=int), 1
    for j, i in enumerate(freedoms(robot).link):
        path = freedoms(robot).path[i]
        moved = se3.hat(A[i][..., path.index(j), :])[..., :3, :]
        Y = moved @ like(inertia.pseudo(J[i]), q) @ transpose(moved)
        w = A[i][..., : path.index(j) + 1, :3]
        trace = (Y[..., 0, 0] + Y[..., 1, 1] + Y[..., 2, 2])[..., None]
        square = trace * dot(w, w) - dot(w @ Y, w)
        parts.append(namespace(square).where(square > 0.0, square, 0.0 * square) ** 0.5)
        for k in path[: path.index(j) + 1]:
            place[j, k] = place[k, j] = at
            at += 1
    lengths = concat(parts)
    lengths = lengths[..., place.reshape(-1)].reshape((*lengths.shape[:-1], n, n))
    if not robot.mimics:
        return lengths
    share = like(np.abs(np.asarray(robot._v_map)), q)
    return transpose(share) @ lengths @ share


@dataclass(frozen=True)
class Flatness:
    """The curvature of a robot over random configurations, against the bound by its second derivatives."""

    flat: bool
    largest: float
    """The largest |R_ijkl| / (|∂_i ∂_k x| |∂_j ∂_l x| + |∂_i ∂_l x| |∂_j ∂_k x|), between 0 and 1: how much is curvature."""
    tolerance: float
    configurations: int
    where: np.ndarray
    """The configuration (nq,) at which `largest` occurs."""
    freedoms: tuple[int, int, int, int]
    """The indices i, j, k, l of `largest`."""
    constant: bool
    """True if M is the same in all configurations, within the tolerance: then q itself is a flat coordinate."""

    def __str__(self) -> str:
        said = "flat" if self.flat else "not flat"
        of = "the mass matrix is constant" if self.constant else "the mass matrix is not constant"
        return f"{said}: {self.largest:.2g} of the bending is curvature at most, over {self.configurations} configurations; {of}"


@takes(robot=a_robot, configurations=whole)
def flatness(robot: Robot, configurations: int = 32, rng: Any = 0) -> Flatness:
    """The curvature of a robot at random configurations, as a `Flatness`.

    The comparison is dimensionless: by the equation of Gauss R_ijkl = ⟨II_ik, II_jl⟩ - ⟨II_il, II_jk⟩ where II_ik is part of the
    second derivative ∂_i ∂_k x of the mass points, so that |R_ijkl| is at most the sum of two products of √(Σ m |∂_i ∂_k x|²).
    """
    if configurations < 1:
        raise CoadjointError(f"configurations is {configurations}; expected 1 or more.")
    q = robot.random(rng, configurations)
    M = mass_matrix(robot, q)
    constant = bool(np.max(np.abs(M - M[0]), initial=0.0) <= 1e-12 * np.max(np.abs(M), initial=0.0))
    worst = _curved(robot, q[0], M[0])
    largest = worst[0]
    for state in range(1, configurations):  # one by one, as the tensor of a large robot is large
        found = _curved(robot, q[state], M[state])
        largest = max(largest, found[0])
        worst = max(worst, found, key=lambda x: x[0] / x[1])
    ratio, bound, where, indices = worst
    return Flatness(ratio <= bound, largest, bound, configurations, where, indices, constant)


def _curved(robot: Robot, q: np.ndarray, M: np.ndarray) -> tuple[float, float, np.ndarray, tuple[int, int, int, int]]:
    """The largest ratio of curvature to bending at q (nq,), its threshold, q, and the indices at which it occurs."""
    if not robot.nv:
        return 0.0, TOLERANCE, q, (0, 0, 0, 0)
    R, lengths = curvature(robot, q), bending(robot, q)
    scale = np.einsum("ik,jl->ijkl", lengths, lengths) + np.einsum("il,jk->ijkl", lengths, lengths)
    ratio = np.divide(np.abs(R), scale, out=np.zeros_like(R), where=scale > 0)
    values = np.linalg.eigvalsh(M)
    i, j, k, l = (int(x) for x in np.unravel_index(np.argmax(ratio), R.shape))
    return float(ratio[i, j, k, l]), max(TOLERANCE, ROUNDING * float(values[-1] / values[0])), q, (i, j, k, l)


def is_flat(robot: Robot) -> bool:
    """True if the curvature vanishes at 32 random configurations: |R_ijkl| is below 1e-9 of the bound by the second derivatives.

    `flatness` says by how much, and where.
    """
    return flatness(robot).flat


def flat_coordinates(
    robot: Robot, q: ArrayLike, origin: ArrayLike | None = None, frame: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """q̃ (..., nv) and N = ∂q̃/∂q (..., nv, nv) of a flat robot: Nᵀ N = M, and q̃'' = N⁻ᵀ τ for the forces τ that M a + C v = τ.

    q̃ is zero at `origin` (nq,), home if None, where N is `frame`, the Cholesky factor of M if None; all other such coordinates
    differ by a rotation. N is parallel: X_l N_ai = N_ak Γ̂ᵏ_li, integrated along the straight path in joint coordinates.
    """
    report = flatness(robot)
    if not report.flat:
        raise ModelError(f"robot {robot.name!r} is {report}. Coordinates in which its equations are q̃'' = τ̃ do not exist.")
    (q,) = states(robot, q=(q, robot.nq))
    (origin,) = states(robot, origin=(robot.neutral() if origin is None else origin, robot.nq))
    M = mass_matrix(robot, origin)
    start = transpose(np.linalg.cholesky(M)) if frame is None else floats(frame, "frame")
    if start.shape != M.shape or not np.allclose(start.T @ start, M, rtol=1e-9, atol=1e-12 * np.max(np.abs(M), initial=0.0)):
        raise CoadjointError("frame is not a square root of the mass matrix at the origin: frameᵀ frame must be M there.")
    n, batch = robot.nv, q.shape[:-1]
    v = robot.difference(origin, q)

    def rate(t: float, y: list[np.ndarray]) -> list[np.ndarray]:
        at = robot.integrate(origin, t * v)
        N = y[1].reshape(*batch, n, n)
        change = N @ mass_matrix_inverse(robot, at) @ coriolis_matrix(robot, at, v)
        return [(N @ v[..., None])[..., 0], change.reshape(*batch, n * n)]

    first = [np.zeros((*batch, n)), np.broadcast_to(start, (*batch, n, n)).reshape(*batch, n * n)]
    flat, N = flow.Solution(rate, first, 1.0, "the flat frame")(1.0)
    return flat, N.reshape(*batch, n, n)
