"""One step of fixed length as a compiled function of the state: semi-implicit Euler, Runge and Kutta's, variational."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import Array
from ..constraints.constraint import Constraint
from ..constraints.rank import is_overconstrained
from ..dynamics import forward_dynamics
from ..dynamics.newton_euler import friction_force
from ..dynamics.steps import euler_step, rk4_step
from ..families import Family
from ..robot.robot import Robot
from ..traced import Traced, all_evaluated
from . import variational
from .constraint_projection import constrained_acceleration, project_state
from .equations_of_motion import SimulationError
from .friction import has_dry_friction
from .frictional_steps import Frictional
from .staged import Staged

CONVERGED = 1e-8
"""Largest relative change in the last turn of a step that passes: what is left is smaller by another factor O(h)."""


def state_step(
    family: Family,
    dt: float,
    control: Traced | Staged | None,
    method: str,
    friction: bool,
    constraint: Constraint | None,
    with_tau: bool,
) -> Callable[..., Any]:
    """The compiled step of these arguments: (q, v, tau or t, *numbers) -> (q', v')."""

    def step(robot: Robot, numbers: tuple[Array, ...], q: Array, v: Array, third: Array) -> tuple[Array, Array]:
        def force(q: Array, v: Array, t: Any) -> Array:
            return third if with_tau else 0.0 * v if control is None else control(q, v, t, *numbers)

        return moved(robot, q, v, _time(control, third), force, dt, method, friction, constraint)

    robot = family.robot
    key = ("step", dt, control, method, friction, constraint, is_hard(robot, constraint), with_tau)
    name, size = ("tau", robot.nv) if with_tau else ("t", _size(control))
    return family.compiled(key, step, "step", q=(robot.nq,), v=(robot.nv,), **{name: (size,)})


def _time(control: Traced | Staged | None, third: Array) -> Any:
    """The time of a control at the beginning of a step, or what stands for it."""
    return control.at(third) if isinstance(control, Staged) else third


def _size(control: Traced | Staged | None) -> int:
    return control.size if isinstance(control, Staged) else 1


def sampled_step(
    family: Family, dt: float, control: Traced | Staged, method: str, friction: bool, constraint: Constraint | None
) -> Callable[..., Any]:
    """The compiled step (q, v, state, t, *numbers) -> (q', v', state') under a control with a state, whose forces are held."""
    robot = family.robot

    def step(robot: Robot, numbers: tuple[Array, ...], q: Array, v: Array, state: Array, t: Array) -> tuple[Array, ...]:
        if isinstance(control, Staged):
            tau, following = control.sampled(q, v, state, control.at(t))
        else:
            tau, following = all_evaluated(control.graph, q, v, t, state)
        return (*moved(robot, q, v, t, lambda q, v, t: tau, dt, method, friction, constraint), following)

    key = ("sampled step", dt, control, method, friction, constraint, is_hard(robot, constraint))
    graph = control.law.graph if isinstance(control, Staged) else control.graph
    size = graph.input_shapes[graph.input_names.index("state")]
    return family.compiled(key, step, "sampled_step", q=(robot.nq,), v=(robot.nv,), state=size, t=(_size(control),))


def moved(
    robot: Robot,
    q: Array,
    v: Array,
    t: Array,
    force: Callable[[Array, Array, Array], Array],
    dt: float,
    method: str,
    friction: bool,
    constraint: Constraint | None,
) -> tuple[Array, Array]:
    """q', v' after one step "euler" or "rk4" under force(q, v, t), on the constraint."""
    one = euler_step if method == "euler" else rk4_step
    if friction and has_dry_friction(robot):
        dry = Frictional(robot, constraint, force, dt)
        return dry.euler(q, v, t) if method == "euler" else dry.rk4(q, v, t, rk4_step)

    def acceleration(q: Array, v: Array, t: Array) -> Array:
        if constraint is None:
            return forward_dynamics(robot, q, v, force(q, v, t), friction=friction)
        return constrained_acceleration(robot, constraint, q, v, force(q, v, t), friction)

    q, v = one(robot, q, v, t, acceleration, dt)
    return (q, v) if constraint is None else project_state(robot, constraint, q, v)


def variational_step(
    family: Family, control: Traced | Staged | None, friction: bool, constraint: Constraint | None, with_tau: bool
) -> Callable[..., Any]:
    """The compiled step (q, p, w, tau or t, h, *numbers) -> (q', p', w', how far from converged); see `variational.step`."""

    def step(robot: Robot, numbers: tuple[Array, ...], q: Array, p: Array, w: Array, third: Array, h: Array) -> tuple[Array, ...]:
        force = None if control is None else (lambda q, v: control(q, v, _time(control, third), *numbers))
        force = (lambda q, v: third) if with_tau else force
        if friction and has_dry_friction(robot):
            asked = lambda q, v, t: 0.0 * v if force is None else force(q, v)
            return Frictional(robot, constraint, asked, h).variational(q, p, w, third)
        return variational.step(robot, q, p, w, h, _with_friction(robot, friction, force), constraint)

    robot = family.robot
    key = ("variational step", control, friction, constraint, is_hard(robot, constraint), with_tau)
    name, size = ("tau", robot.nv) if with_tau else ("t", _size(control))
    shapes = {"q": (robot.nq,), "p": (robot.nv,), "w": (robot.nv,), name: (size,), "h": (1,)}
    return family.compiled(key, step, "variational_step", **shapes)


def is_hard(robot: Robot, constraint: Constraint | None) -> bool:
    return constraint is not None and is_overconstrained(robot, constraint)


def _with_friction(
    robot: Robot, friction: bool, force: Callable[[Array, Array], Array] | None
) -> Callable[[Array, Array], Array] | None:
    if not friction:
        return force

    def loss(v: Array) -> Array:
        return robot.from_tree(friction_force(robot, robot.tree_v(v)))

    return (lambda q, v: -loss(v)) if force is None else (lambda q, v: force(q, v) - loss(v))


def check_converged(left: np.ndarray, dt: float, first: int = 0) -> None:
    """Raise an error if the implicit equation of a variational step was not solved; `left` (..., steps), the first step of number
    `first`.
    """
    bad = ~(left < CONVERGED)
    if np.any(bad):
        k = int(np.argmax(bad.reshape(-1, bad.shape[-1]).any(0)))
        if np.isnan(left[..., k]).any():
            raise SimulationError(
                f"the motion is not finite after step {first + k} of {dt:g} s: the control gives no finite forces there, or the state is "
                "singular."
            )
        raise SimulationError(
            f"the variational step of {dt:g} s did not converge at step {first + k} (relative change {left[..., k].max():.2g}): the motion "
            f"is too fast for it, or the state is singular. Take shorter steps, such as {dt / 4:g} s."
        )
