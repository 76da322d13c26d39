"""Kernels of a robot alone.

Robots of one structure share kernels, which differ from a robot's own by rounding, and whether a call takes the shared one depends on what
a process did before. Tasks in many processes, whose results must agree to the bit, take the robot's own.
"""

from contextvars import ContextVar

ALONE: ContextVar[bool] = ContextVar("ALONE", default=False)
"""True while every kernel that is made is for its robot alone."""
