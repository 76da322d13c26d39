"""Controls: functions control(robot, q, v, t), and objects with force(q, v, t)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arguments import a_function_of
from ..arrays import Array
from ..errors import CoadjointError, ShapeError
from ..families import Family
from ..robot.robot import Robot
from ..traced import Traced, traced

Control = Callable[[Robot, Any, Any, Any], Any]
"""The joint forces τ (nv,) from the robot, q, v and the time t."""


def as_function(control: Any) -> Control:
    """A control as a function: itself, or the method force(q, v, t) of an object."""
    force = getattr(control, "force", None)
    if callable(force):
        a_function_of("q", "v", "t")(force, "force")
        return lambda robot, q, v, t: force(q, v, t)
    if callable(control):
        function: Control = a_function_of("robot", "q", "v", "t")(control, "control")
        return function
    raise CoadjointError(
        f"control is {type(control).__name__}; expected a function control(robot, q, v, t), or an object with force(q, v, t)."
    )


def is_sampled(control: Any) -> bool:
    """True if a control has a state of its own, moved on by step(q, v, t, state) every `period` seconds from its `initial` one."""
    return all(hasattr(control, name) for name in ("step", "start", "initial", "period"))


def check_controller(robot: Robot, control: Any, times: Any) -> None:
    """An error for a controller of a robot with other coordinates; and let it refuse times (N,) at which its reference is beyond the
    robot's limits, before any work is done.
    """
    own = getattr(control, "robot", getattr(getattr(control, "controller", None), "robot", None))
    if isinstance(own, Robot) and (own.nq, own.nv) != (robot.nq, robot.nv):
        raise CoadjointError(
            f"the controller was made for robot {own.name!r} with {own.nq} coordinates; robot {robot.name!r} has "
            f"{robot.nq}. Make one for this robot."
        )
    check = getattr(control, "check_reference", None)
    if callable(check):
        check(times)


def traced_control(family: Family, control: Control) -> Traced:
    """τ (nv,) of q, v, t (1,) and the numbers, if any, that differ from robot to robot; other variables that the control reads are
    constants with their present values.
    """
    robot = family.robot

    def run(q: Array, v: Array, t: Array, *numbers: Array) -> Array:
        tau = control(family.member(*numbers) if numbers else robot, q, v, t[..., 0])
        if np.shape(tau) != (robot.nv,):
            raise ShapeError(f"control gave an array of shape {np.shape(tau)}; expected {robot.nv} joint forces, ({robot.nv},).")
        return tau

    shapes = {"q": (robot.nq,), "v": (robot.nv,), "t": (1,)} | ({"numbers": (family.size,)} if family else {})
    return traced(run, shapes, "control")


def traced_step(family: Family, control: Any) -> Traced:
    """The forces (nv,) and the next state (k,) of a control that `is_sampled`, of q, v, t (1,) and its state (k,)."""
    robot = family.robot
    shapes = {"q": (robot.nq,), "v": (robot.nv,), "t": (1,), "state": np.shape(control.initial)}
    return traced(lambda q, v, t, state: control.step(q, v, t[..., 0], state), shapes, "control")
