"""Motion along a fibre: the joints move, the task does not.

The velocity (1 - L J) u is the vertical velocity nearest to u in the metric of kinetic energy. Every configuration is brought back
onto the fibre by Newton's method along the horizontal lift, so that the task is constant to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_flag, a_function_of, a_robot, check_core, floats, positive, states, takes, times, whole
from ..arrays import Array, ArrayLike, mv
from ..compiling import compile
from ..differentiating import derivative
from ..dynamics.composite import mass_matrix
from ..errors import CoadjointError, ShapeError
from ..geometry import flow
from ..kernel.dispatch import frozen
from ..kinematics.poses import pose
from ..robot.robot import Robot
from .lift import SingularTaskError, dexterity, singular, split_velocity, vertical_basis, vertical_projector
from .task import AnyTask, MapTask, check_fibres, task_of
from .tracking import gap, method, onto_task

Function = Callable[[Robot, Array], Array]
"""A number from the robot and q, written with array operations."""


def _still(robot: Robot, q: np.ndarray, task: AnyTask) -> np.ndarray:
    """The present value of the task."""
    return np.asarray(task._run(robot, 0, q)) if isinstance(task, MapTask) else pose(robot, q, task.frame)


def _needs_freedom(robot: Robot, task: AnyTask) -> None:
    check_fibres(robot, task)
    if robot.nv <= task.size:
        raise CoadjointError(
            f"robot {robot.name!r} has {robot.nv} freedoms and task {task} {task.size} rows: nothing is left to move."
        )


def _one(robot: Robot, q: Any) -> np.ndarray:
    """q (nq,) as numbers."""
    numbers = floats(q, "q")
    if numbers.shape != (robot.nq,) or not np.all(np.isfinite(numbers)):
        what = f"has shape {numbers.shape}" if numbers.shape != (robot.nq,) else "has entries that are not finite"
        raise ShapeError(f"q {what}; expected one configuration ({robot.nq},) of robot {robot.name!r}.")
    return numbers


@takes(robot=a_robot)
def self_motion(
    robot: Robot,
    q: ArrayLike,
    velocity: ArrayLike | Callable[[np.ndarray], Any],
    t: ArrayLike,
    frame: str | AnyTask,
    rows: Sequence[int] | None = None,
) -> np.ndarray:
    """q (..., *t.shape, nq) from q (..., nq) along the fibre with dq/dt = (1 - L J) u, the vertical part of the velocity u (..., nv).

    u may be a function u(q) -> (..., nv) of NumPy arrays. Steps adapt to a local error of 1e-13; the task stays.
    """
    task = frozen(task_of(frame, rows), robot)
    _needs_freedom(robot, task)
    (start,) = states(robot, q=(q, robot.nq))
    push: Callable[[np.ndarray], Any] = a_function_of("q")(velocity, "velocity") if callable(velocity) else lambda _: velocity

    def rate(_: float, y: list[np.ndarray]) -> list[np.ndarray]:
        u = floats(push(y[0]), "velocity")
        check_core("velocity", u, (robot.nv,), f" for robot {robot.name!r}")
        try:
            u = np.broadcast_to(u, (*start.shape[:-1], robot.nv))
        except ValueError:
            raise ShapeError(
                f"velocity has shape {u.shape}; expected one that broadcasts with {(*start.shape[:-1], robot.nv)}."
            ) from None
        return [robot.rate(y[0], split_velocity(robot, y[0], u, task)[1])]

    t = times(t)
    target = _still(robot, start, task)
    found = robot.normalize(flow.Solution(rate, [start], t, "the motion along the fibre")(t)[0])
    core = len(task.target_shapes[0])
    target = target.reshape(*start.shape[:-1], *(1,) * t.ndim, *target.shape[target.ndim - core :])
    return onto_task(robot, task, method(robot), found, target)


@takes(robot=a_robot, step=positive, longest=positive)
def fibre(
    robot: Robot, q: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None, step: float = 0.02, longest: float = 50.0
) -> np.ndarray:
    """Configurations (N, nq) along the fibre through q (nq,), for a robot with one freedom more than its task, about `step` apart in q.

    It ends where it comes back to the start (which is then the last once more), at a singularity, or after `longest` in Σ|dq|. Angles
    count modulo 2π for coming back.
    """
    task = frozen(task_of(frame, rows), robot)
    check_fibres(robot, task)
    if robot.nv != task.size + 1:
        raise CoadjointError(f"robot {robot.name!r} has {robot.nv} freedoms; a fibre that is a curve needs {task.size + 1}.")
    if not (np.isfinite(step) and step > 0 and longest > 0):
        raise CoadjointError(f"step is {step!r} and longest {longest!r}; expected positive numbers.")
    q = _one(robot, q)
    target, how = _still(robot, q, task), method(robot)
    found, way, direction = [q], 0.0, np.zeros(0)
    turning = np.array([np.any(s[:3] != 0) for s in np.asarray(robot.screws)]) if not robot.mimics else np.zeros(robot.nv, bool)

    def along(at: np.ndarray, before: np.ndarray) -> np.ndarray:
        n = vertical_basis(robot, at, task)[:, 0]
        n = n / np.linalg.norm(n)
        result: np.ndarray = n if not before.size or n @ before >= 0 else -n
        return result

    while way < longest:
        at = found[-1]
        try:
            n1 = along(at, direction)
            n2 = along(robot.integrate(at, 0.5 * step * n1), n1)  # the midpoint rule; Newton's method does the rest
        except SingularTaskError:
            if len(found) == 1:
                raise
            break
        new = onto_task(robot, task, how, robot.integrate(at, step * n2), target)
        if np.max(np.abs(gap(robot, task, new, target))) > 1e-9 or dexterity(robot, new, task) < 1e-6:
            break
        found.append(new)
        way, direction = way + step, n2
        back = robot.difference(new, q)
        if turning.shape == back.shape:
            back = np.where(turning, (back + np.pi) % (2 * np.pi) - np.pi, back)
        if way > 3 * step and np.linalg.norm(back) < 0.75 * step:
            found.append(robot.integrate(new, back))
            break
    return np.array(found)


@dataclass(frozen=True)
class Optimum:
    """The result of an optimisation on a fibre."""

    q: np.ndarray
    value: float
    start: float
    """The value where it started."""
    slope: float
    """√⟨grad, grad⟩ of the function along the fibre, where it ended."""
    iterations: int
    converged: bool


@takes(robot=a_robot, function=a_function_of("robot", "q"), maximize=a_flag, tolerance=positive, iterations=whole)
def optimize_self_motion(
    robot: Robot,
    q: ArrayLike,
    function: Function,
    frame: str | AnyTask,
    rows: Sequence[int] | None = None,
    *,
    maximize: bool = False,
    tolerance: float = 1e-8,
    iterations: int = 500,
) -> Optimum:
    """The configuration on the fibre through q (nq,) where function(robot, q) is least, or largest, nearby.

    Steepest descent in the metric of kinetic energy, with steps of Barzilai and Borwein and a test that the value falls. It ends where the
    vertical gradient, in kinetic units, is below `tolerance` times that at the start or 1, whichever is larger. Joint limits are not kept:
    add to the function what grows towards them.
    """
    task = frozen(task_of(frame, rows), robot)
    _needs_freedom(robot, task)
    q = _one(robot, q)
    sign = -1.0 if maximize else 1.0
    value, slope = compile(function, robot), derivative(function, robot)
    target, how = _still(robot, q, task), method(robot)

    def downhill(at: np.ndarray) -> tuple[np.ndarray, float]:
        """Minus the gradient along the fibre, and its kinetic size."""
        M = mass_matrix(robot, at)
        g = -sign * np.linalg.solve(M, np.asarray(slope(at)).reshape(robot.nv))
        g = mv(vertical_projector(robot, at, task), g)
        return g, float(np.sqrt(max(g @ M @ g, 0.0)))

    if np.shape(value(q)) != ():
        raise ShapeError(
            f"function gives an array of shape {np.shape(value(q))}; expected one number, to be made least or largest."
        )
    first = now = sign * float(value(q))
    g, size = downhill(q)
    enough, length, k = tolerance * max(1.0, size), 0.1 / max(1e-12, float(np.linalg.norm(g))), 0
    while size > enough and k < iterations:
        k += 1
        while True:
            new = onto_task(robot, task, how, robot.integrate(q, length * g), target)
            there = sign * float(value(new)) if np.max(np.abs(gap(robot, task, new, target))) < 1e-9 else np.inf
            if there <= now - 1e-4 * length * size**2 or length * float(np.linalg.norm(g)) < 1e-12:
                break
            length *= 0.3
        if not there <= now:
            break
        new_g, new_size = downhill(new)
        step, change = robot.difference(q, new), g - new_g
        M = mass_matrix(robot, new)
        curved = float(step @ M @ change)
        length = float(step @ M @ step) / curved if curved > 0 else 3 * length
        length = min(length, 0.5 / max(1e-12, float(np.linalg.norm(new_g))))
        q, g, size, now = new, new_g, new_size, there
    if dexterity(robot, q, task) < 1e-9:
        raise SingularTaskError(str(singular(robot, q, task, " where the optimisation led")))
    return Optimum(q, sign * now, sign * first, size, k, size <= enough)
