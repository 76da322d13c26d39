"""Optimal motion: timing along paths, motions of least cost between states."""

from .optimal_motion import OptimalMotion, optimal_motion

__all__ = ["OptimalMotion", "optimal_motion"]
