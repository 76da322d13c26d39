"""Optimal motion: the fastest timing along a path."""

from .time_optimal import time_optimal
from .timing import Switch, Timing, Timings

__all__ = ["Switch", "Timing", "Timings", "time_optimal"]
