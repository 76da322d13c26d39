"""Optimal motion: timing along paths, motions of least cost between states."""

from .motion_result import OptimalMotion, OptimalMotions
from .optimal_motion import optimal_motion
from .time_optimal import time_optimal
from .timing import Switch, Timing, Timings

__all__ = ["OptimalMotion", "OptimalMotions", "Switch", "Timing", "Timings", "optimal_motion", "time_optimal"]
