"""Motion under constraints, with the forces that keep them. Žefran & Bullo (2004), (19), (20): M a + h = τ + Aᵀ λ, A a + Ȧ v = 0.

    λ = -(A M⁻¹ Aᵀ)⁻¹ (A a₀ + Ȧ v),  a = a₀ + M⁻¹ Aᵀ λ,      a₀ the acceleration without the constraint

Rows are scaled by their length |A_k| in the metric M⁻¹, so that units do not matter. Where each stands at an angle to all the others
this is what runs natively. Elsewhere rows depend on each other (or nearly so), and for NumPy arrays the state is solved by singular
values (`rank.py`): dependent rows share their load, contradicting ones are an error.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, concat, like, mv, namespace, solve_spd, transpose
from ..dynamics.articulated import forward_dynamics, mass_matrix_inverse
from ..dynamics.composite import mass_matrix
from ..dynamics.newton_euler import bias_force, friction_force
from ..dynamics.singular import SINGULAR, inertia_scale
from ..kernel.dispatch import as_written, kernel
from ..lie import inertia
from ..memo import per_robot, recent
from ..robot.robot import Robot
from .constraint import Constraint, checked, constraint_bias, constraint_jacobian, robot_size
from .metric_rows import ZERO, MetricRows
from .rank import solve_irregular


def zero_rows(robot: Robot, constraint: Constraint, A: Array) -> tuple[list[int], float]:
    """The rows that vanish at configurations drawn at random, such as those of a planar loop across its plane, and what counts as zero.

    Where the robot's own numbers are variables: the rows of A (m, nv), traced, that are zero whatever these are.
    """
    robot = robot.original
    if not robot.has_plain_numbers:
        gone = (
            [k for k, row in enumerate(A.tolist()) if all(type(x) is float and x == 0.0 for x in row)] if A.dtype == object else []
        )
        return gone, ZERO

    def make() -> tuple[list[int], float]:
        A = as_written(constraint_jacobian)(robot, constraint, robot.random(np.random.default_rng(0), 8))
        entries = np.abs(A).reshape(-1, *A.shape[-2:]).max((0, 2))
        least = ZERO * max(robot_size(robot), float(entries.max(initial=0.0)))
        return np.flatnonzero(entries <= least).tolist(), least

    return recent(robot, ("zero rows", constraint), make)


def always_regular(robot: Robot) -> bool:
    """True if the mass matrix is positive definite at every q: each joint moves a link that has inertia of its own about it."""
    return robot.original.has_plain_numbers and _always_regular(robot.original)


@per_robot
def _always_regular(robot: Robot) -> bool:
    least = 1e4 * SINGULAR * inertia_scale(robot).max(initial=0.0)
    own = [
        np.linalg.eigvalsh(S @ inertia.spatial(robot.inertias[i]) @ S.T + np.diag(robot.armature[robot.tree_v_slices[i]])).min()
        for i in range(robot.n_links)
        if len(S := robot.joint_screws(i)) and not robot.kind(i).serial
    ]
    plain = not any(kind.serial for kind in robot.kinds)
    return plain and all(x > least for x in own)


class Rows:
    """The rows of a constraint at q that are not nothing, and what solves with them in the metric; all (..., m', ·)."""

    def __init__(self, robot: Robot, constraint: Constraint, q: Array, v: Array | None = None, force: Array | None = None) -> None:
        A = constraint_jacobian(robot, constraint, q)
        self.size = A.shape[-2]
        gone, least = zero_rows(robot, constraint, A)
        self.kept = [k for k in range(self.size) if k not in gone]
        xp = namespace(A)
        self.regular: Array = xp.abs(A[..., gone, :]).sum((-2, -1)) <= least * len(gone) * robot.nv if gone else None
        self.A = A[..., self.kept, :]
        self.bias: Array = None
        if v is not None:
            bias = constraint_bias(robot, constraint, q, v)
            self.bias = bias[..., self.kept]
            if gone:  # nothing cannot accelerate
                self.regular = self.regular & (xp.abs(bias[..., gone]).sum(-1) <= 1e2 * (least + ZERO * xp.abs(bias).sum(-1)))
        if not self.kept:
            return
        m, right = len(self.kept), transpose(self.A)
        right = right if force is None else concat([right, force[..., None]])
        # Where M may be singular, its inverse tells.
        solution = solve_spd(mass_matrix(robot, q), right) if always_regular(robot) else mass_matrix_inverse(robot, q) @ right
        self.free = solution[..., m:]
        """M⁻¹ force (..., nv, 1) where that is given"""
        self.metric = MetricRows(self.A, solution[..., :m])

    def solve(self, b: Array) -> Array:
        """(A M⁻¹ Aᵀ)⁻¹ b (..., m', k) for b (..., m', k); NaN where rows depend on each other."""
        return self.metric.solve(b, self.regular)

    def where_regular(self, x: Array) -> Array:
        """x (..., k), NaN in states where a row that vanishes elsewhere does not."""
        return x if self.regular is None else namespace(x).where(self.regular[..., None], x, np.nan)

    def spread(self, x: Array) -> Array:
        """(..., m', k) as rows of the whole constraint, zero for those that vanish."""
        if len(self.kept) == self.size:
            return x
        place = [self.kept.index(k) if k in self.kept else len(self.kept) for k in range(self.size)]
        zero = 0.0 * x[..., :1, :]
        return transpose(concat([transpose(x), transpose(zero)]))[..., place, :]


@kernel("nv", "m", q="nq", v="nv", tau="nv", wrenches="n_links 6", no_result=solve_irregular, double=True)
def constrained_dynamics(
    robot: Robot, constraint: Constraint, q: Array, v: Array, tau: Array, wrenches: Array | None = None, friction: bool = False
) -> tuple[Array, Array]:
    """a (..., nv) and the multipliers λ (..., m) of M a + h = τ + Aᵀ λ, A a + Ȧ v = 0: Žefran & Bullo (2004), (20).

    Aᵀ λ is the force that enforces the constraint. Where rows depend on each other, a is the same and λ the shortest (rows scaled
    to
    the same length in the metric M⁻¹); rows that contradict each other are an error. For arrays of other libraries than NumPy both
    are NaN there. Other arguments are those of `forward_dynamics`.
    """
    force = tau - bias_force(robot, q, v, wrenches)
    if friction:
        force = force - robot.from_tree(friction_force(robot, robot.tree_v(v)))
    rows = Rows(robot, checked(constraint), q, v, force)
    if not rows.kept:
        a = forward_dynamics(robot, q, v, tau, wrenches, friction)
        return a, rows.where_regular(0.0 * a[..., :1] + like(np.zeros(rows.size), q))
    a = rows.free[..., 0]
    multipliers = -rows.solve((mv(rows.A, a) + rows.bias)[..., None])
    return a + (rows.metric.inverse_A @ multipliers)[..., 0], rows.spread(multipliers)[..., 0]
