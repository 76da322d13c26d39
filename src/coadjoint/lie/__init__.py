"""Lie groups: rotations, poses, quaternions, screws and inertias."""

from . import se3, so3

__all__ = ["se3", "so3"]
