"""Derivatives of an optimal motion and its cost by the numbers of the robot: the implicit function theorem on the conditions of first
order.

With H the Hessian of the Lagrangian L plus Cᵀ Σ C, Σ = z/s, of the limits that hold, and E the equations, the conditions at p + dp give

    H dx - Eᵀ dy = -(∂²L/∂x∂p + Cᵀ Σ ∂c/∂p) dp,    E dx = -∂e/∂p dp,

the system of Newton's method with another right-hand side. The cost changes as the Lagrangian does with the motion held: ∂L/∂p.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..differentiating import derivative, differential
from ..errors import CoadjointError
from .by_parameters import ByParameters
from .clearance import Clearances
from .newton import solved
from .shot_sensitivity import ShotChanges
from .splines import ORDERS
from .stages import DYNAMIC, Curvature, Of
from .transcription import Here

if TYPE_CHECKING:
    from .motion_result import OptimalMotion


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Derivatives of an optimal motion by a set of the robot's parameters, which stand on the last axis, (..., P)."""

    parameters: str
    names: tuple[str, ...]
    """The meaning of every parameter."""
    cost: np.ndarray
    """(P,)"""
    duration: np.ndarray
    """(P,); zeros if the duration is given."""
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    """(N, nv, P) at the times of the motion, as parts of its duration."""
    control_points: np.ndarray
    """(size, nv, P)"""

    def __repr__(self) -> str:
        return f"<derivatives of an optimal motion by {len(self.names)} {self.parameters}>"


def sensitivity(motion: OptimalMotion, parameters: str) -> Sensitivity:
    """Derivatives of the motion and of its cost by a set of parameters, see `Robot.parameters`."""
    motion._solved()
    if not motion.converged or motion.conditions is None:
        raise CoadjointError(
            f"derivatives belong to an optimum, and this motion is none: {motion.message or 'it was not optimised'}."
        )
    robot, conditions = motion.robot, motion.conditions
    problem = conditions.problem
    names = tuple(robot.parameter_names(parameters))
    for rows in problem.limits:
        if isinstance(rows, Clearances) and np.any(derivative(rows.points.of, robot, parameters)(motion.q[len(motion) // 2])):
            raise CoadjointError(
                f"{parameters!r} moves the robot's bodies, and these keep clear: derivatives by it go without obstacles."
            )
    here, H, E = conditions.hessian()
    by, given = ByParameters(problem.drives, parameters, len(names)), (conditions.z, conditions.z / conditions.s, conditions.y)
    changes = _Changes(here, by, *given) if isinstance(here, Here) else ShotChanges(here, by, *given)
    found = solved(H, E, -changes.conditions, -changes.equations)
    if found is None:
        raise CoadjointError("the motion is no strict minimum: a neighbouring one costs the same, and derivatives do not exist.")
    dc = changes.control(found[0])
    dT = found[0][-1] if problem.free_time else np.zeros(len(names))
    spline, T = problem.spline, motion.time[-1]
    places, one = spline.at(motion.time / T), np.ones(1)
    moved = np.stack([spline.stage(places, dc[None, ..., k], one)[0] for k in range(len(names))], axis=-1)  # type: ignore[arg-type]
    orders = enumerate((motion.q, motion.v, motion.a))
    q, v, a = (moved[:, order] / T**order - order / T * x[..., None] * dT for order, x in orders)
    return Sensitivity(parameters, names, changes.cost, dT, q, v, a, dc)


class _Changes:
    """Derivatives by P parameters of what makes up a problem of splines, its motion held."""

    def __init__(self, here: Here, by: ByParameters, z: np.ndarray, sigma: np.ndarray, y: np.ndarray) -> None:
        self.here, self.by, self.count, self.problem = here, by, by.count, here.problem
        self.curvature = here.curvature(z, sigma)
        self.tau = by.tau(here.forces, self.curvature)
        """∂τ/∂p (K, n, P)"""
        self.scale = self.problem.spline.weights * here.T[0]
        self.y = y[0, self.problem.equality.linear :]

    def control(self, dx: np.ndarray) -> np.ndarray:
        """The change of the control points (size, n, P) with that of the variables (variables, P)."""
        found = np.zeros((self.problem.spline.size, self.problem.robot.nv, self.count))
        found[self.problem.free] = dx[: self.problem.variables - self.problem.free_time].reshape(-1, *found.shape[1:])
        return found

    @property
    def running(self) -> np.ndarray:
        """∂ℓ/∂p (K, P)."""
        f, K = self.here.forces, len(self.scale)
        alone = Curvature(K, self.problem.robot.nv)
        for weight, cost in self.problem.costs:
            if not isinstance(cost, Of):
                cost.curve(f, np.full(K, weight), alone, False)
        return np.asarray(np.einsum("kr,krp->kp", alone.w, self.tau)) + self.by.explicit(f, self.problem.costs)

    @property
    def cost(self) -> np.ndarray:
        """∂L/∂p (P,)."""
        found = np.einsum("kr,krp->p", self.curvature.w, self.tau) + self.scale @ self.by.explicit(
            self.here.forces, self.problem.costs
        )
        goal, closure = self._goal, self._closure
        return np.asarray(found - self.y[: len(goal)] @ goal - self.y[len(goal) :] @ closure)

    @property
    def conditions(self) -> np.ndarray:
        """∂²L/∂x∂p + Cᵀ Σ ∂c/∂p (variables, P)."""
        n = self.problem.robot.nv
        covector = np.zeros((len(self.scale), ORDERS, n, self.count))
        covector[:, :DYNAMIC] = self.by.mixed(self.here.forces, self.curvature, self.tau, self.problem.costs, self.scale)
        found = np.stack([self.here.pulled(covector[None, ..., p])[0] for p in range(self.count)], axis=-1)
        if self.problem.free_time:
            found[-1] += self.problem.spline.weights @ self.running
        at = self.problem.variables - self.problem.free_time
        goal, equality = self._goal_jacobian, self.problem.equality
        if len(goal):
            found[at - n : at] -= np.einsum("g,gip->ip", self.y[: len(goal)], goal)
        if equality.closure is not None and equality.points is not None:
            y = self.y[len(goal) :].reshape(-1, equality.closure.size)
            q = equality.points @ self.here.control[0]
            mixed = self.by(differential(equality.closure.weighted, "q"), q, y, y=(equality.closure.size,))
            found[:at] -= np.einsum("js,jip->sip", equality.points[:, self.problem.free], mixed).reshape(at, -1)
        return found

    @property
    def equations(self) -> np.ndarray:
        """∂e/∂p (equations, P)."""
        return np.concatenate([np.zeros((self.problem.equality.linear, self.count)), self._goal, self._closure])

    @property
    def _closure(self) -> np.ndarray:
        """∂φ/∂p (points m, P) at all points where the constraints are met."""
        equality = self.problem.equality
        if equality.closure is None or equality.points is None:
            return np.zeros((0, self.count))
        return self.by(equality.closure.gap, equality.points @ self.here.control[0]).reshape(-1, self.count)

    @property
    def _goal(self) -> np.ndarray:
        """∂g/∂p (g, P)."""
        return self._of_goal(lambda goal: goal.fn)

    @property
    def _goal_jacobian(self) -> np.ndarray:
        """∂²g/∂q∂p (g, n, P)."""
        return self._of_goal(lambda goal: differential(goal.fn, "q"))

    def _of_goal(self, fn: Any) -> np.ndarray:
        equality = self.problem.equality
        if equality.goal is None or equality.targets is None:
            return np.zeros((0, self.count))
        return self.by(fn(equality.goal), self.here.control[0, -1], equality.targets[0], target=equality.goal.shape)
