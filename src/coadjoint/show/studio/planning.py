"""Optimal motions between two configurations, for the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...constraints import Constraint
from ...errors import unknown
from ...kinematics import pose
from ...optimal import optimal_motion, time_optimal
from ...robot.robot import Robot
from .values import finite, frame_of, number, numbers

COSTS = ("effort", "action", "energy", "time")
"""The costs of a motion that is found; "path" keeps to the straight line and is as fast as the limits permit."""
LINE = 5
"""Waypoints of the straight line: the spline through them is that line."""


def planned(robot: Robot, data: dict[str, Any]) -> dict[str, Any]:
    """The motion of least cost from `start` to `goal`, with its joint forces and the path of a frame."""
    start, goal, frame = numbers(data, "start", robot.nq), numbers(data, "goal", robot.nq), frame_of(robot, data)
    cost = data.get("cost", "effort")
    if cost == "path":
        timing = time_optimal(robot, start + np.linspace(0.0, 1.0, LINE)[:, None] * (goal - start))
        time = np.linspace(0.0, timing.duration, 241)
        q, v, _ = timing(time)
        tau, value, found = timing.effort(time), timing.duration, True
    elif cost in COSTS:
        duration = None if data.get("duration") is None or cost == "time" else number(data, "duration", 0.01, 100.0, 1.0)
        loops = Constraint.loops(robot) if robot.loops else None
        motion = optimal_motion(robot, start, goal, duration, cost, constraints=loops)
        time, q, v, tau, value, found = motion.time, motion.q, motion.v, motion.tau, motion.cost, motion.converged
    else:
        raise unknown("cost", cost, (*COSTS, "path"))
    return {
        "time": time.tolist(),
        "q": q.tolist(),
        "v": v.tolist(),
        "tau": [finite(x) for x in np.asarray(tau)],
        "limits": finite(robot.effort_limit),
        "path": pose(robot, q, frame)[:, :3, 3].tolist(),
        "cost": float(value),
        "found": bool(found),
    }
