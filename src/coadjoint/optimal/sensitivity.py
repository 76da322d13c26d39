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

from ..arrays import Array, mv, stack, transpose
from ..differentiating import derivative, differential
from ..dynamics import inverse_dynamics, inverse_dynamics_derivatives
from ..errors import CoadjointError
from ..motion.friction import friction_coefficients
from ..robot.robot import Robot
from .clearance import Clearances
from .newton import solved
from .splines import ORDERS
from .stages import DYNAMIC, Curvature, Of
from .transcription import Here, Transcription

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


def forces(robot: Robot, q: Array, v: Array, a: Array) -> Array:
    """τ with the joints' viscous friction (nv,)."""
    return inverse_dynamics(robot, q, v, a) + friction_coefficients(robot)[0] * v


def weighted_forces(robot: Robot, q: Array, v: Array, a: Array, w: Array) -> Array:
    """Σ_r w_r ∂τ_r/∂(q, v, a) (3, nv)."""
    by_q, by_v, by_a = (mv(transpose(x), w) for x in inverse_dynamics_derivatives(robot, q, v, a))
    return stack([by_q, by_v + friction_coefficients(robot)[0] * w, by_a], axis=-2)


def sensitivity(motion: OptimalMotion, parameters: str) -> Sensitivity:
    """Derivatives of the motion and of its cost by a set of parameters, see `Robot.parameters`."""
    motion._solved()
    if not motion.converged or motion.conditions is None:
        raise CoadjointError(
            f"derivatives belong to an optimum, and this motion is none: {motion.message or 'it was not optimised'}."
        )
    robot, conditions = motion.robot, motion.conditions
    problem = conditions.problem
    if not isinstance(problem, Transcription):
        raise CoadjointError('derivatives of the optimum are there for the transcriptions "splines" and "collocation".')
    if problem.equality.closure is not None:
        raise CoadjointError("derivatives of the optimum are there for motions without constraints=.")
    names = tuple(robot.parameter_names(parameters))
    for rows in problem.limits:
        if isinstance(rows, Clearances) and np.any(derivative(rows.points.of, robot, parameters)(motion.q[len(motion) // 2])):
            raise CoadjointError(
                f"{parameters!r} moves the robot's bodies, and these keep clear: derivatives by it go without obstacles."
            )
    _, H, E = conditions.hessian()
    here = problem.at(conditions.x, np.zeros(1, dtype=int))
    changes = _Changes(here, conditions.z, conditions.z / conditions.s, conditions.y, parameters, len(names))
    found = solved(H, E, -changes.conditions(), -changes.equations)
    if found is None:
        raise CoadjointError("the motion is no strict minimum: a neighbouring one costs the same, and derivatives do not exist.")
    spline = problem.spline
    count, n = problem.variables - problem.free_time, robot.nv
    dc = np.zeros((spline.size, n, len(names)))
    dc[problem.free] = found[0][:count].reshape(-1, n, len(names))
    dT = found[0][-1] if problem.free_time else np.zeros(len(names))
    s = motion.time / motion.time[-1]
    basis, T = spline.at(s), motion.time[-1]
    moved = np.einsum("kos,snp->oknp", basis, dc)
    q, v, a = (moved[order] / T**order - order / T * x[..., None] * dT for order, x in enumerate((motion.q, motion.v, motion.a)))
    return Sensitivity(parameters, names, changes.cost, dT, q, v, a, dc)


class _Changes:
    """Derivatives by P parameters of what makes up a problem, its motion held."""

    def __init__(self, here: Here, z: np.ndarray, sigma: np.ndarray, y: np.ndarray, parameters: str, count: int) -> None:
        self.here, self.parameters, self.count = here, parameters, count
        self.problem, self.robot = here.problem, here.problem.robot
        self.curvature = here.curvature(z, sigma)
        f = here.forces
        self.tau = self._by(forces, f.q, f.v, f.a) if self.curvature.forces else np.zeros((*f.tau.shape, count))
        """∂τ/∂p (K, n, P)"""
        self.scale = self.problem.spline.weights * here.T[0]
        self.y = y[0, self.problem.equality.linear :]

    def _by(self, fn: Any, *arrays: np.ndarray, **shapes: tuple[int, ...]) -> np.ndarray:
        found = np.asarray(derivative(fn, self.robot, self.parameters, shapes=shapes or None)(*arrays))
        return found.reshape(*found.shape[: found.ndim - 1], self.count)

    @property
    def running(self) -> np.ndarray:
        """∂ℓ/∂p (K, P)."""
        f, K = self.here.forces, len(self.scale)
        alone = Curvature(K, self.robot.nv)
        for weight, cost in self.problem.costs:
            if not isinstance(cost, Of):
                cost.curve(f, np.full(K, weight), alone, False)
        found = np.einsum("kr,krp->kp", alone.w, self.tau)
        for weight, cost in self.problem.costs:
            if isinstance(cost, Of):
                found += weight * self._by(cost.stacked, cost.stage(f), x=(len(cost.places), self.robot.nv))
        return np.asarray(found)

    @property
    def cost(self) -> np.ndarray:
        """∂L/∂p (P,)."""
        found = np.einsum("kr,krp->p", self.curvature.w, self.tau) - self.y @ self._goal
        for weight, cost in self.problem.costs:
            if isinstance(cost, Of):
                part = self._by(cost.stacked, cost.stage(self.here.forces), x=(len(cost.places), self.robot.nv))
                found = found + weight * self.scale @ part
        return np.asarray(found)

    def conditions(self) -> np.ndarray:
        """∂²L/∂x∂p + Cᵀ Σ ∂c/∂p (variables, P)."""
        f, C, n = self.here.forces, self.curvature, self.robot.nv
        covector = np.zeros((len(self.scale), ORDERS, n, self.count))
        if C.forces:
            mixed = self._by(weighted_forces, f.q, f.v, f.a, C.w, w=(n,))
            gram = np.einsum("kri,krp->kip", f.jacobian, C.d[..., None] * self.tau)
            covector[:, :DYNAMIC] = mixed + gram.reshape(mixed.shape)
            covector[:, 1] += C.c[..., None] * self.tau
        for weight, cost in self.problem.costs:
            if isinstance(cost, Of):
                x = cost.stage(f)
                part = self._by(differential(cost.stacked, "x"), x, x=x.shape[1:])
                covector[:, cost.places] += weight * self.scale[:, None, None, None] * part
        found = np.stack([self.here.pulled(covector[None, ..., p])[0] for p in range(self.count)], axis=-1)
        if self.problem.free_time:
            found[-1] += self.problem.spline.weights @ self.running
        if self.y.size:
            at = self.problem.variables - self.problem.free_time
            found[at - n : at] -= np.einsum("g,gip->ip", self.y, self._goal_jacobian)
        return found

    @property
    def equations(self) -> np.ndarray:
        """∂e/∂p (equations, P)."""
        return np.concatenate([np.zeros((self.problem.equality.linear, self.count)), self._goal])

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
        return self._by(fn(equality.goal), self.here.control[0, -1], equality.targets[0], target=equality.goal.shape)
