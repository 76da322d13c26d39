"""Optimal motion: timing along paths, motions of least cost between states, optimal control with feedback."""

from . import costs
from .capsules import Capsule, Sphere
from .motion_result import OptimalMotion, OptimalMotions
from .optimal_control import OptimalControl, Stage, optimal_control
from .optimal_motion import optimal_motion
from .receding import RecedingHorizon, receding_horizon
from .time_optimal import time_optimal
from .timing import Switch, Timing, Timings
from .tracking import TrackingGains, time_varying_lqr

__all__ = [
    "Capsule",
    "OptimalControl",
    "OptimalMotion",
    "OptimalMotions",
    "RecedingHorizon",
    "Sphere",
    "Stage",
    "Switch",
    "Timing",
    "Timings",
    "TrackingGains",
    "costs",
    "optimal_control",
    "optimal_motion",
    "receding_horizon",
    "time_optimal",
    "time_varying_lqr",
]
