"""Models from recordings: which parameters of a robot its motion shows, what they are, and motions that show them."""

from .base_parameters import BaseParameters, base_parameters
from .excitation import Excitation, excitation
from .fitting import identify
from .result import Identification

__all__ = ["BaseParameters", "Excitation", "Identification", "base_parameters", "excitation", "identify"]
