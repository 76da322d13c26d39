"""Forward dynamics by articulated bodies, and the inverse of the mass matrix.

From the tips to the base each link takes up what it carries, its joints free to move: the articulated inertia J^A and bias B
with F = J^A V̇ + B for the wrench through the link's joint,

    U = J^A S,  D = Sᵀ U + armature,  u = τ - Sᵀ B,
    J^A_parent += f (J^A - U D⁻¹ Uᵀ) f*,  B_parent += f (B + (J^A - U D⁻¹ Uᵀ) c + U D⁻¹ u),

then from the base outward V̇' = f* V̇_parent + c, a = D⁻¹ (u - Uᵀ V̇'), V̇ = V̇' + S a. O(n); c is the acceleration that velocities alone give.

A D that vanishes is a motion of the joint that moves no mass: the mass matrix is singular, and the acceleration is not a number.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, block, concat, cross, like, mirror, mv, namespace, solve_spd, transpose
from ..errors import SingularMassMatrixError
from ..kernel.dispatch import kernel
from ..kinematics.poses import relative_poses
from ..lie import inertia, se3
from ..robot.robot import Robot
from .composite import mass_matrix
from .newton_euler import along, bias_force, friction_force, subspaces, velocities

SINGULAR = 1e-14
"""A joint's articulated inertia below this part of what it carries is zero but for rounding."""
SINGULAR_SINGLE = 5e-6
"""The same in single precision."""


def inertia_scale(robot: Robot) -> np.ndarray:
    """The size (nv,) of the diagonal of M over a few configurations; an error names a joint that moves no mass at all."""
    if "inertia_scale" not in robot._cache:
        M = mass_matrix.source(robot, robot.random(np.random.default_rng(0), 8))
        diagonal = np.atleast_2d(np.einsum("...ii->...i", M)).max(0) if robot.nv else np.zeros(0)
        for name in robot.joint_names:
            if np.any(diagonal[robot.v_slice(name)] <= 0):
                raise SingularMassMatrixError(_singular(robot, name, "moves no mass"))
        robot._cache["inertia_scale"] = diagonal
    return robot._cache["inertia_scale"]


def _singular(robot: Robot, joint: str, what: str) -> str:
    link = robot.links[robot.joint_index(joint)].name
    return (
        f"the mass matrix of robot {robot.name!r} is singular: joint {joint!r} {what}. "
        f"Give link {link!r} (or what it carries) mass and inertia, the joint an armature, or lock the joint."
    )


def explain_singular(robot: Robot, q: np.ndarray, **_: object) -> None:
    """Raise an error that names the first state whose mass matrix is singular, and the joint; do nothing if there is none."""
    if not np.all(np.isfinite(q)):
        return
    scale = inertia_scale(robot)
    for state, x in enumerate(q.reshape(-1, robot.nq)):
        # In the order of elimination from the tips, the first pivot to vanish belongs to a motion that moves no mass.
        M = mass_matrix.source(robot, x)
        values, vectors = np.linalg.eigh(M / np.sqrt(np.outer(scale, scale)))
        if values[0] <= 4 * SINGULAR:
            weakest = int(np.argmax(np.abs(vectors[:, 0])))
            joint = next(name for name in robot.joint_names if robot.v_slice(name).start <= weakest < robot.v_slice(name).stop)
            where = "" if q.ndim == 1 else f" in state {state}"
            raise SingularMassMatrixError(_singular(robot, joint, f"moves no mass{where}, q = {x.tolist()}"))


def transform_articulated(f: Array, J: Array) -> Array:
    """Ad_{f⁻¹}ᵀ J Ad_{f⁻¹} (..., 6, 6) for a symmetric J = [[A, B], [Bᵀ, C]], by 3×3 blocks: turn by R, then move by p.

    C' = R C Rᵀ, B' = R B Rᵀ + [p] C', A' = R A Rᵀ - R B Rᵀ [p] + [p] B'ᵀ; one triangle of A' and C' is enough.
    """
    R, p = f[..., :3, :3], f[..., None, :3, 3]
    Rt = transpose(R)
    A, B, C = (R @ X @ Rt for X in (J[..., :3, :3], J[..., :3, 3:], J[..., 3:, 3:]))
    C = mirror(C)
    moved = B + transpose(cross(p, C))
    A = mirror(A + cross(p, B) + transpose(cross(p, moved)))
    return block([[A, moved], [transpose(moved), C]])


@kernel("nv", q="nq", v="nv", tau="nv", wrenches="n_links 6", explain=explain_singular, joint_space=True)
def forward_dynamics(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Array | None = None, friction: bool = False) -> Array:
    """The acceleration a (..., nv) that joint forces τ and wrenches on the links give: M a = τ - C v - g + the share of the wrenches.

    The inverse of `inverse_dynamics`, with the same arguments, by articulated bodies in O(n); with mimic joints by solving with M.
    `friction=True` lets the joints' viscous and Coulomb friction oppose the motion.
    A singular mass matrix is an error for NumPy arrays, and nan for traced ones.
    """
    if robot.mimics:
        force = tau - bias_force(robot, q, v, wrenches)
        if friction:
            force = force - robot.from_tree(friction_force(robot, robot.tree_v(v)))
        return mv(mass_matrix_inverse(robot, q), force)
    q = robot.tree_q(q)
    f, S = relative_poses(robot, q), subspaces(robot, q)
    V, own = velocities(robot, f, S, v)
    if friction:
        tau = tau - friction_force(robot, v)
    n = robot.n_links
    J: list[Array] = [inertia.spatial(robot.inertias[i]) for i in range(n)]
    B: list[Array] = []
    c: list[Array | None] = []
    for i in range(n):
        B.append(-se3.ad_dual_act(V[i], inertia.apply(robot.inertias[i], V[i])))
        if wrenches is not None:
            B[i] = B[i] - wrenches[..., i, :]
        c.append(None)
        if own[i] is not None:
            bias = robot.kind(i).bias(robot.joint_screws(i), q[..., robot.tree_q_slices[i]], v[..., robot.tree_v_slices[i]])
            c[i] = se3.ad_act(V[i], own[i]) if bias is None else se3.ad_act(V[i], own[i]) + bias
    U: list[Array] = [None] * n
    D: list[Array] = [None] * n
    u: list[Array] = [None] * n
    for i in reversed(robot.order):
        parent, dofs = robot.parents[i], robot.tree_v_slices[i]
        passed, force = J[i], B[i]
        if own[i] is not None:
            U[i] = J[i] @ transpose(S[i])  # (..., 6, nv)
            D[i] = S[i] @ U[i] + _diagonal(robot.armature[..., dofs])
            u[i] = tau[..., dofs] - mv(S[i], B[i])
            if parent >= 0:
                gain = transpose(solve_spd(D[i], transpose(U[i])))  # U D⁻¹
                passed = mirror(J[i] - gain @ transpose(U[i]))
                force = B[i] + mv(passed, c[i]) + mv(gain, u[i])
        if parent >= 0:
            J[parent] = J[parent] + transform_articulated(f[i], passed)
            B[parent] = B[parent] + se3.Ad_inv_dual_act(f[i], force)
    fall = concat([like(np.zeros(3), q), -robot.gravity])
    A: list[Array] = [None] * n
    a: list[Array] = [None] * n
    for i in robot.order:
        A[i] = se3.Ad_inv_act(f[i], fall if robot.parents[i] < 0 else A[robot.parents[i]])
        if own[i] is not None:
            A[i] = A[i] + c[i]
            rest = u[i] - mv(transpose(U[i]), A[i])
            a[i] = solve_spd(D[i], rest[..., None])[..., 0]
            A[i] = A[i] + along(S[i], a[i])
    moving = [a[i] for i in range(n) if own[i] is not None]
    return _regular(robot, D, concat(moving)) if moving else tau


def _diagonal(x: Array) -> Array:
    """The diagonal matrix of a vector (..., k)."""
    return x[..., None] * like(np.eye(x.shape[-1]), x)


def _smallest_inertia(robot: Robot, x: Array) -> np.ndarray | None:
    """Below this (nv,) an inertia is zero but for rounding; None where the robot's numbers are variables and their size is unknown."""
    original = robot._cache.get("original", robot)
    if not all(type(getattr(original, key)) is np.ndarray for key in ("placements", "screws", "inertias", "armature")):
        return None
    return (SINGULAR_SINGLE if "float32" in str(x.dtype) else SINGULAR) * inertia_scale(original)


def _regular(robot: Robot, D: list[Array], a: Array) -> Array:
    """a, or nan where some joint's articulated inertia has vanished but for rounding."""
    smallest, regular = _smallest_inertia(robot, a), True
    if smallest is None:
        return a
    for i, dofs in enumerate(robot.tree_v_slices):
        for k in range(dofs.stop - dofs.start):
            regular = regular & (D[i][..., k, k] > float(smallest[dofs.start + k]))
    return namespace(a).where(regular[..., None], a, np.nan)


@kernel("nv nv", q="nq", explain=explain_singular, joint_space=True)
def mass_matrix_inverse(robot: Robot, q: Array) -> Array:
    """M(q)⁻¹ (..., nv, nv): the metric on forces.

    A singular mass matrix is an error for NumPy arrays, and nan for traced ones.
    """
    inverse = mirror(solve_spd(mass_matrix(robot, q), like(np.eye(robot.nv), q)))
    smallest, regular = _smallest_inertia(robot, inverse), True
    if smallest is None or not robot.nv:
        return inverse
    for k in range(robot.nv):  # where a pivot vanishes, the diagonal of the inverse is its reciprocal
        regular = regular & (inverse[..., k, k] * float(smallest[k]) < 1.0) & (inverse[..., k, k] > 0.0)
    return namespace(inverse).where(regular[..., None, None], inverse, np.nan)
