"""The geometry of constraints: projectors, the connection of constrained motion and its geodesics. Žefran & Bullo (2004), section 3.1.

D = ker A are the velocities that a constraint allows. With A♯ = M⁻¹ Aᵀ (A M⁻¹ Aᵀ)⁻¹, the inverse of A that is orthogonal to D in the
metric M,

    P⊥ = A♯ A,  P = 1 - P⊥                               onto D⊥ and D, orthogonal in M
    ∇̃_X Y = ∇_X Y + (∇_X P⊥) Y,                          (26); = P ∇_X Y for Y in D, (27)
    ∇̃_v v = P M⁻¹ (τ - dU) while A v = 0                 (25)

and as P⊥ is idempotent and self-adjoint, ∇_j P⊥ = X_j + X_j* with X_j = A♯ (∂_j A - A Γ_j) P and X* = M⁻¹ Xᵀ M.
"""

from __future__ import annotations

import numpy as np

from ..arguments import a_robot, numbers, states, takes, times
from ..arrays import Array, ArrayLike, like, mv, namespace, transpose
from ..dynamics.articulated import mass_matrix_inverse
from ..dynamics.composite import mass_matrix
from ..geometry.metric import connection
from ..kernel.dispatch import kernel
from ..robot.robot import Robot
from ..scale.deferred import lazily
from ..traced import evaluated
from .constraint import Constraint, checked, constraint_jacobian
from .dynamics import Rows
from .functions import graph_of
from .rank import decompose


def _by_singular_values(robot: Robot, result: np.ndarray, constraint: Constraint, q: np.ndarray) -> None:
    """Write A♯ of the states whose rows depend on each other into the result."""
    q = np.broadcast_to(q, (*result.shape[:-2], robot.nq))
    states = np.isnan(result).any((-2, -1)) & np.isfinite(q).all(-1)
    result[states] = decompose(robot, constraint, q[states]).pseudo_inverse()


@kernel("nv m", q="nq", no_result=_by_singular_values, double=True)
def constraint_inverse(robot: Robot, constraint: Constraint, q: Array) -> Array:
    """A♯ (..., nv, m) = M⁻¹ Aᵀ (A M⁻¹ Aᵀ)⁻¹: the velocity of least kinetic energy with A v = y is A♯ y.

    Where rows depend on each other, the one of least |y| as well; A A♯ A = A always. For arrays of other libraries than NumPy it
    is NaN there.
    """
    rows = Rows(robot, checked(constraint), q)
    if not rows.kept:
        none = rows.where_regular(0.0 * q[..., :1] + like(np.zeros(robot.nv * rows.size), q))
        return none.reshape((*none.shape[:-1], robot.nv, rows.size))
    inverse = rows.metric.inverse_A @ rows.solve(like(np.eye(len(rows.kept)), q))
    return transpose(rows.spread(transpose(inverse)))


@lazily("nv nv", q="nq")
def constraint_projector(robot: Robot, constraint: Constraint, q: ArrayLike) -> Array:
    """P (..., nv, nv): the orthogonal projector, in the metric M, onto the velocities that a constraint allows. 1 - P is P⊥."""
    inverse = constraint_inverse(robot, constraint, q)
    return like(np.eye(robot.nv), inverse) - inverse @ constraint_jacobian(robot, constraint, q)


@kernel("m nv nv", q="nq", largest=24)
def constraint_jacobian_derivative(robot: Robot, constraint: Constraint, q: Array) -> Array:
    """∂A[..., r, k]/∂q_j as (..., m, nv, nv), j last, along the tangent vectors of `robot.integrate`."""
    plain = robot.original

    def run(q: Array) -> Array:
        from ..kernel.passes.derive import jacobian_of

        by_q = jacobian_of(lambda x: constraint_jacobian(plain, constraint, x), q)[1]
        return by_q @ transpose(robot.rate(q, np.eye(robot.nv)))

    return evaluated(graph_of(robot, (checked(constraint, robot), "derivative"), run, q=(robot.nq,)), q)


@lazily("nv nv nv", q="nq")
def constraint_connection(robot: Robot, constraint: Constraint, q: ArrayLike) -> Array:
    """Γ̃ⁱ_jk (..., i, j, k) of the constraint connection, Žefran & Bullo (2004), (26): ∇̃_{X_j} X_k = Γ̃ⁱ_jk X_i.

    It has torsion. While A v = 0, aⁱ + Γ̃ⁱ_jk vʲ vᵏ = (P M⁻¹ (τ - g))ⁱ.
    """
    G = connection(robot, q)
    inverse, M, Mi = constraint_inverse(robot, constraint, q), mass_matrix(robot, q), mass_matrix_inverse(robot, q)
    A, dA = constraint_jacobian(robot, constraint, q), constraint_jacobian_derivative(robot, constraint, q)
    P = like(np.eye(robot.nv), inverse) - inverse @ A
    xp = namespace(G)
    change = dA - xp.einsum("...rl,...ljk->...rkj", A, G)  # ∇_j A, j last
    X = xp.einsum("...ir,...rlj,...lk->...ijk", inverse, change, P)
    adjoint = xp.einsum("...ia,...bja,...bk->...ijk", Mi, X, M)
    return G + X + adjoint


def constrained_mass_matrix(robot: Robot, constraint: Constraint, q: ArrayLike) -> Array:
    """Pᵀ M P (..., nv, nv): kinetic energy of the part of a velocity that a constraint allows; its rank is that of P."""
    P = constraint_projector(robot, constraint, q)
    return transpose(P) @ mass_matrix(robot, q) @ P


def effective_mass(robot: Robot, constraint: Constraint, q: ArrayLike) -> Array:
    """(A M⁻¹ Aᵀ)⁻¹ (..., m, m) = A♯ᵀ M A♯: the inertia that the rows of a constraint feel."""
    inverse = constraint_inverse(robot, constraint, q)
    return transpose(inverse) @ mass_matrix(robot, q) @ inverse


@takes(robot=a_robot)
def constrained_geodesic(
    robot: Robot, constraint: Constraint, q: ArrayLike, v: ArrayLike, t: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """q(t) (..., *t.shape, nq) and v(t) of the motion ∇̃_v v = 0 that has q and v at t = 0: no forces but those of the constraint.

    A v = 0 at t = 0, or an error says which row is violated. The step adapts to a local error of 1e-13.
    """
    from ..geometry import flow
    from .dynamics import constrained_dynamics
    from .manifold import check_state

    q0, v0 = states(robot, q=(q, robot.nq), v=(v, robot.nv))
    constraint = checked(constraint, robot)
    check_state(robot, constraint, q0, v0)
    weightless = robot.with_gravity((0.0, 0.0, 0.0))
    still = np.zeros(robot.nv)

    def rate(t: float, y: list[np.ndarray]) -> list[np.ndarray]:
        return [flow.configuration_rate(robot, *y), constrained_dynamics(weightless, constraint, y[0], y[1], still)[0]]

    curve = flow.Solution(rate, [q0, v0], times(t), "the motion")
    found_q, found_v = curve(times(t))
    return robot.normalize(found_q), found_v


def project_velocity(robot: Robot, constraint: Constraint, q: ArrayLike, v: ArrayLike) -> Array:
    """P v (..., nv): the nearest velocity, in kinetic energy, that a constraint allows."""
    P = constraint_projector(robot, constraint, q)
    return mv(P, robot._checked(numbers(v, "v"), "v", robot.nv))
