"""Models from recordings: which parameters of a robot its motion shows, motions that show them, and estimates of them."""

from .adaptive import Estimator, natural_gradient, recursive_least_squares
from .base_parameters import BaseParameters, base_parameters
from .drives import DriveGains, drive_gains
from .elastic import ElasticJoints, elastic_joints
from .excitation import Excitation, excitation
from .fitting import identify
from .output_error import OutputError, output_error
from .result import Identification

__all__ = [
    "BaseParameters",
    "DriveGains",
    "ElasticJoints",
    "Estimator",
    "Excitation",
    "Identification",
    "OutputError",
    "base_parameters",
    "drive_gains",
    "elastic_joints",
    "excitation",
    "identify",
    "natural_gradient",
    "output_error",
    "recursive_least_squares",
]
