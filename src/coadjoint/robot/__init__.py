"""Mechanisms: joints as screws, links, the immutable Robot, and its readers."""

from .dh import robot_from_dh
from .link import Frame, Joint, Link, Loop, Mimic
from .robot import Robot
from .shape import Shape
from .spring import Spring

__all__ = ["Frame", "Joint", "Link", "Loop", "Mimic", "Robot", "Shape", "Spring", "robot_from_dh"]
