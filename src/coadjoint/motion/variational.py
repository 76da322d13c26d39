"""Variational integration on the configuration manifold: steps that are stationary points of a discrete action.

The discrete Lagrangian of a step from q to q⁺ = q exp(ξ) is that of the middle m = q exp(ξ/2) at the velocity v = ξ/h,

    L_d = h (T(m, v) - U(m)),

and p = -D₁ L_d, p⁺ = D₂ L_d (Marsden & West 2001), forces τ acting half at either end of the middle. Written at m, with
the momenta seen from there, μ = Ad*_{exp ξ/2} p and p⁺ = Ad*_{exp ξ/2} μ⁺, and f = ∂(T - U)/∂q:

    μ⁺ = μ + h (f + τ),    M(m) v = ½ (dexp(ξ/2) + dexp(-ξ/2))ᵀ μ + h/2 dexp(ξ/2)ᵀ (f + τ).

For angles and lengths that is M(m) v = p + h/2 (f + τ). The map (q, p) -> (q⁺, p⁺) is symplectic, symmetric and of second order;
momenta that a symmetry conserves, it conserves. So its energy oscillates within O(h²) and has no trend.

Holonomic constraints c(q) = 0 act as impulses Aᵀ Λ at both ends of a step: the first such that c(q⁺) = 0, the second such that
A M⁻¹ p⁺ = 0 (RATTLE on any manifold). Nonholonomic ones hold in the middle of a step, A(m) v = 0, and at its ends.

The implicit equation is solved by a chord iteration with M⁻¹ at a predicted middle: every turn gains a factor O(h), a fixed number of
turns is straight code, and the size of the last correction is a result of the step.

Armature of spherical, planar and free joints has, in this library, no gyroscopic part: the equations of motion are then not Lagrange's, and
what takes that part away is a force of the step. It does no work; the step is still symmetric and of second order.
"""

from __future__ import annotations

from collections.abc import Callable

from ..arrays import Array, dot, mv, namespace
from ..constraints.constraint import Constraint
from ..constraints.metric_rows import inverse
from ..dynamics import mass_matrix
from ..robot.robot import Robot
from .constraint_projection import ConstraintRows, row_rates
from .discrete_mechanics import armature_force, coadjoint, dexp_dual, momentum_and_force
from .friction import locked

ITERATIONS = 12
"""Steps of the chord iteration."""
REST = 1e-4
"""Velocity below which the last correction is measured by this and not by the velocity."""
CLOSING = 1e-6
"""The tolerance under constraints, in metres a step: φ(q⁺)/h has the rounding of φ divided by the step."""
SUZUKI = 1.0 / (4.0 - 4.0 ** (1.0 / 3.0))
COMPOSITIONS = {2: (1.0,), 4: (SUZUKI, SUZUKI, 1.0 - 4.0 * SUZUKI, SUZUKI, SUZUKI)}
"""Lengths of the steps, as parts of a whole one, that together are of the order. Suzuki (1990)."""


def step(
    robot: Robot,
    q: Array,
    p: Array,
    w: Array,
    h: Array,
    force: Callable[[Array, Array], Array] | None = None,
    constraint: Constraint | None = None,
    iterations: int = ITERATIONS,
    held: Array | None = None,
) -> tuple[Array, Array, Array, Array]:
    """One step of length h (..., 1) from q and the momentum p: q⁺, p⁺, the velocity in its middle, and how far from converged (..., 1).

    w (..., nv) guesses that velocity; force(q, v) gives the joint forces. held (..., nv): 1 for joints that are locked, whose w is 0.
    """

    def middle(v: Array) -> Array:
        return robot.integrate(q, (h / 2) * v)

    W = inverse(mass_matrix(robot, middle(w)))
    closing = None if constraint is None else ConstraintRows(robot, constraint, q, W, held)
    W = W if held is None else locked(W, held)

    def equation(v: Array, p: Array) -> tuple[Array, Array, Array]:
        """The residual of the equation for v, the midpoint m, and p⁺."""
        m, x = middle(v), (h / 2) * v
        Mv, f = momentum_and_force(robot, m, v)
        f = f if force is None else f + force(m, v)
        f = f if (gyroscopic := armature_force(robot, v)) is None else f + gyroscopic
        mu = coadjoint(robot, x, p)
        even = 0.5 * (dexp_dual(robot, x, mu) + dexp_dual(robot, -x, mu))
        return Mv - even - (h / 2) * dexp_dual(robot, x, f), m, coadjoint(robot, x, mu + h * f)

    v, pushed, change = w, p, 0.0 * w
    for _ in range(iterations):
        left, m, _ = equation(v, pushed)
        push: Array | float = 0.0
        if closing is not None and constraint is not None:
            push = closing.impulse(_rates(robot, constraint, q, m, v, h) - mv(closing.A, mv(W, left)))
            pushed = pushed + push
        change = mv(W, push - left)
        v = v + change
    _, _, p = equation(v, pushed)
    q = robot.integrate(q, h * v)
    if constraint is not None:
        p = ConstraintRows(robot, constraint, q, inverse(mass_matrix(robot, q)), held).tangent(p)
    slow = REST**2 if constraint is None else REST**2 + (CLOSING / h[..., 0]) ** 2
    return q, p, v, namespace(v).sqrt(dot(change, change) / (dot(v, v) + slow))[..., None]


def _rates(robot: Robot, constraint: Constraint, q: Array, m: Array, v: Array, h: Array) -> Array:
    """The residual of the constraint (..., rows), as velocities: φ(q⁺)/h of holonomic rows, A(m) v of others."""
    holonomic = constraint.holonomic_rows(robot)
    values = constraint.residual(robot, robot.integrate(q, h * v)) / h if len(holonomic) else None
    rows = constraint.jacobian(robot, q)
    velocities = 0.0 * rows[..., 0] if len(holonomic) == rows.shape[-2] else mv(constraint.jacobian(robot, m), v)
    return row_rates(robot, constraint, values, velocities)
