"""Values that come from the page and go to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import CoadjointError
from ...robot.robot import Robot


def numbers(data: dict[str, Any], name: str, *shape: int) -> np.ndarray:
    """An array of finite numbers, or an error that names it."""
    try:
        x = np.asarray(data.get(name), dtype=float)
    except (TypeError, ValueError, OverflowError):
        x = np.zeros(0)
    if x.shape != shape or not np.isfinite(x).all():
        raise CoadjointError(f"{name} must be {' x '.join(map(str, shape))} finite numbers.")
    return x


def number(data: dict[str, Any], name: str, low: float, high: float, default: float) -> float:
    """A number between two others."""
    x = data.get(name, default)
    if isinstance(x, bool) or not isinstance(x, int | float) or not low <= x <= high:
        raise CoadjointError(f"{name} must be a number from {low:g} to {high:g}.")
    return float(x)


def frame_of(robot: Robot, data: dict[str, Any], name: str = "frame") -> str:
    """The name of a frame of the robot."""
    found = data.get(name)
    if not isinstance(found, str):
        raise CoadjointError(f"{name} must be the name of a frame.")
    robot.frame(found)
    return found


def finite(x: np.ndarray) -> list[float | None]:
    """The numbers, flattened, with None in place of NaN and infinity."""
    return [float(y) if np.isfinite(y) else None for y in np.ravel(x)]
