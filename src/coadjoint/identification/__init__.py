"""Models from recordings: which parameters of a robot its motion shows."""

from .base_parameters import BaseParameters, base_parameters

__all__ = ["BaseParameters", "base_parameters"]
