"""Kernels of a robot alone, and a list of those that a call asks for.

Robots of one structure share kernels, which differ from a robot's own by rounding, and whether a call takes the shared one depends on what
a process did before. Tasks in many processes, whose results must agree to the bit, take the robot's own.
"""

from contextvars import ContextVar
from typing import Any

ALONE: ContextVar[bool] = ContextVar("ALONE", default=False)
"""True while every kernel that is made is for its robot alone."""

ASKED: ContextVar[dict[str, tuple[Any, str]] | None] = ContextVar("ASKED", default=None)
"""The kernels that are asked for, where `explain` lists them: by key, the graph or a function that makes it, and the type."""
