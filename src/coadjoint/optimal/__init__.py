"""Optimal motion: timing along paths, motions of least cost between states."""

from .optimal_motion import OptimalMotion, optimal_motion
from .time_optimal import time_optimal
from .timing import Switch, Timing, Timings

__all__ = ["OptimalMotion", "Switch", "Timing", "Timings", "optimal_motion", "time_optimal"]
