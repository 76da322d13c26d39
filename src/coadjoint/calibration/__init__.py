"""Kinematic calibration: from measured points, poses, distances or contacts to the geometry of the robot that was measured."""

from .calibrate import calibrate
from .result import Calibration

__all__ = ["Calibration", "calibrate"]
