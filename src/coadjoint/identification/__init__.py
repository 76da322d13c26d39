"""Models from recordings: which parameters of a robot its motion shows, and motions that show them."""

from .base_parameters import BaseParameters, base_parameters
from .excitation import Excitation, excitation

__all__ = ["BaseParameters", "Excitation", "base_parameters", "excitation"]
