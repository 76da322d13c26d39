"""Kinematic calibration: from measured points, poses, distances or contacts to the geometry of the robot that was measured."""

from .calibrate import Calibration, calibrate

__all__ = ["Calibration", "calibrate"]
