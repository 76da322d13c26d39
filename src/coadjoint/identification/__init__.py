"""Models from recordings: which parameters of a robot its motion shows, and what they are."""

from .base_parameters import BaseParameters, base_parameters
from .fitting import identify
from .result import Identification

__all__ = ["BaseParameters", "Identification", "base_parameters", "identify"]
