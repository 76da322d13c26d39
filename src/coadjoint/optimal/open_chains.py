"""The error for robots whose loops a function would leave open."""

from __future__ import annotations

from ..errors import CoadjointError
from ..robot.robot import Robot


def check_open(robot: Robot, name: str, remedy: str) -> None:
    """An error for a robot with loops: the tree alone moves otherwise, and its joint forces are others."""
    for loop in robot.loops:
        raise CoadjointError(
            f"robot {robot.name!r} has the loop {loop.name!r}, from {loop.frame_a!r} to {loop.frame_b!r}, which `{name}` would leave open. "
            f"{remedy}"
        )
