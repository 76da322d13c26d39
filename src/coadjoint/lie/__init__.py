"""Lie groups: rotations, poses, quaternions, screws and inertias."""

from . import inertia, quaternion, screw, se3, so3

__all__ = ["inertia", "quaternion", "screw", "se3", "so3"]
