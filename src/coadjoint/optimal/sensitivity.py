"""Derivatives of an optimal motion and its cost by the numbers of the robot: the implicit function theorem on the conditions of first
order.

With W the Hessian of the Lagrangian L, C the limits that hold, z and s their multipliers and slacks, and E the equations, the conditions
at p + dp give

    W dx - Eᵀ dy - Cᵀ dz = -∂²L/∂x∂p dp,    E dx = -∂e/∂p dp,    C dx + (s/z) dz = -∂c/∂p dp;

limits that do not hold add Cᵀ Σ C to W and Cᵀ Σ ∂c/∂p to ∂²L/∂x∂p, Σ = z/s. The cost changes as the Lagrangian does with the motion
held: ∂L/∂p.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..differentiating import derivative, differential
from ..errors import CoadjointError
from .between_nodes import INEXACT
from .by_parameters import ByParameters
from .clearance import Clearances
from .drawn_again import Peaks, row_changes
from .held_limits import solver
from .newton import is_definite
from .shot_sensitivity import ShotChanges
from .splines import ORDERS
from .stages import DYNAMIC, Curvature, Forces, Of
from .transcription import Here, Transcription

if TYPE_CHECKING:
    from .motion_result import Conditions, OptimalMotion
    from .multiple_shooting import Shots


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
    drawn: float = 0.0
    """The part of the largest derivatives by which they would be others if limits were drawn in between the nodes for the changed robot."""

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
    if not is_definite(H, E):
        raise CoadjointError("the motion is no strict minimum: a neighbouring one costs the same, and derivatives do not exist.")
    z, s, held = conditions.z, conditions.s, np.flatnonzero(conditions.z[0] > conditions.s[0])
    sigma = z / s
    sigma[:, held] = 0.0
    by, given = ByParameters(problem.drives, parameters, len(names)), (z, sigma, conditions.y)
    changes = _Changes(here, by, *given) if isinstance(here, Here) else ShotChanges(here, by, *given)
    C = np.array([here.pull(one[None])[0] for one in np.eye(z.shape[1])[held]]).reshape(len(held), problem.variables)
    solve = solver(here.hessian(z, conditions.y, sigma)[0], E, C, s[0, held] / z[0, held])
    dx = solve(-changes.conditions, -changes.equations, -changes.limits[held])
    drawn = _drawn(conditions, changes, held, solve, dx)
    if drawn > INEXACT:
        warnings.warn(
            f"limits are drawn in between the nodes, and derivatives hold the amounts: drawn in anew for another robot, they would be "
            f"others by {drawn:.1e} of the largest; take more spans.",
            stacklevel=3,
        )
    spline, T = problem.spline, float(here.T[0])
    stage = problem.forces_at(here, places := spline.at(motion.time / T)).stage  # type: ignore[arg-type]
    q, v, a, _ = np.moveaxis(_moved(problem, places, stage, T, dc := changes.control(dx), dT := _by_time(problem, dx)), 1, 0)
    return Sensitivity(parameters, names, changes.cost, dT, q, v, a, dc, drawn)


def _by_time(problem: Transcription | Shots, dx: np.ndarray) -> np.ndarray:
    """The change of the duration (columns,)."""
    return np.asarray(dx[-1] if problem.free_time else np.zeros(dx.shape[1]))


def _moved(problem: Any, places: Any, stage: np.ndarray, T: float, dc: np.ndarray, dT: np.ndarray) -> np.ndarray:
    """The change (N, 4, n, columns) of the stage (N, 4, n) at places with control points (size, n, columns) and duration (columns,)."""
    one = np.full(1, T)
    found = np.stack([problem.spline.stage(places, dc[None, ..., k], one)[0] for k in range(dc.shape[-1])], axis=-1)
    return np.asarray(found - np.arange(ORDERS)[:, None, None] / T * stage[..., None] * dT)


def _drawn(conditions: Conditions, changes: _Changes | ShotChanges, held: np.ndarray, solve: Any, dx: np.ndarray) -> float:
    """The part by which derivatives would be others if limits were drawn in for the changed robot, see `drawn_again.py`."""
    here, problem = changes.here, changes.problem
    peaks = Peaks.of(conditions, here, held)
    if not len(peaks.kind):
        return 0.0
    places, T = problem.spline.at(problem.spline.dense[0][peaks.place]), float(here.T[0])
    at = problem.forces_at(here, places)  # type: ignore[arg-type]

    def heights(dx: np.ndarray, dc: np.ndarray, tau: np.ndarray | float) -> np.ndarray:
        stage = _moved(problem, places, at.stage, T, dc, _by_time(problem, dx))
        return peaks.change(problem.limits, at, (stage, changes.forces(places, at, stage, dx) + tau))

    nothing = np.zeros((len(dx), len(peaks.kind))), np.zeros((len(changes.equations), len(peaks.kind)))
    by_drawn = solve(*nothing, peaks.drawn)
    change = heights(dx, changes.control(dx), changes.explicit_forces(at))
    amounts = -np.linalg.lstsq(heights(by_drawn, changes.carried(by_drawn), 0.0), change, rcond=None)[0]
    motion, cost = changes.carried(by_drawn @ amounts), conditions.z[0, held] @ peaks.drawn @ amounts
    pairs = (motion, changes.control(dx)), (cost, changes.cost)
    return max(float(np.abs(other).max() / max(np.abs(x).max(), 1e-300)) for other, x in pairs)


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
        """The change of the control points (size, n, columns) with that of the variables (variables, columns)."""
        found = np.zeros((self.problem.spline.size, self.problem.robot.nv, dx.shape[1]))
        found[self.problem.free] = dx[: self.problem.variables - self.problem.free_time].reshape(-1, *found.shape[1:])
        return found

    carried = control

    def forces(self, places: Any, at: Forces, stage: np.ndarray, dx: np.ndarray) -> np.ndarray:
        """The change of joint forces (N, n, columns) at places with that of the stage (N, 4, n, columns)."""
        return np.asarray(at.jacobian @ stage[:, :DYNAMIC].reshape(len(stage), -1, stage.shape[-1]))

    def explicit_forces(self, at: Forces) -> np.ndarray:
        """Their change (N, n, P) with the robot alone."""
        some = Curvature(len(at.q), self.problem.robot.nv)
        some.of_forces(0.0, 0.0)
        return self.by.tau(at, some)

    @cached_property
    def limits(self) -> np.ndarray:
        """∂c/∂p (inequalities, P)."""
        still, at = np.zeros((len(self.tau), ORDERS, *self.tau.shape[1:])), self.here.forces
        changes = [row_changes(rows, at, still, self.tau) for rows in self.problem.limits]
        return self.problem.sides.changes(changes).reshape(-1, self.count) if changes else np.zeros((0, self.count))

    @property
    def running(self) -> np.ndarray:
        """∂ℓ/∂p (K, P)."""
        f, K = self.here.forces, len(self.scale)
        alone = Curvature(K, self.problem.robot.nv)
        for weight, cost in self.problem.costs:
            if not isinstance(cost, Of):
                cost.curve(f, np.full(K, weight), alone, False)
        return np.asarray(np.einsum("kr,krp->kp", alone.w, self.tau) + self.by.explicit(f, self.problem.costs))

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
        """∂²L/∂x∂p + Cᵀ Σ ∂c/∂p (variables, P), Σ of the limits that do not hold."""
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
