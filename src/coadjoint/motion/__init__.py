"""Motions: tables of states, and a smooth motion for any robot."""

from .example_motion import smooth_motion
from .states import States, differentiate
from .tables import read_states, write_states

__all__ = ["States", "differentiate", "read_states", "smooth_motion", "write_states"]
