"""The Riemannian geometry of kinetic energy: the metric of a robot is its mass matrix."""

from .boundary import GeodesicsBetween, distance, geodesics_between, logarithm
from .curvature import curvature, ricci_curvature, scalar_curvature
from .flatness import Flatness, flat_coordinates, flatness, is_flat
from .flow import GeodesicError, configuration_rate
from .gauss import curvature_operator, sectional_curvature
from .geodesics import Geodesic, exponential, geodesic
from .metric import connection, covariant_derivative, divergence, gradient, inner_product
from .transport import jacobi_field, parallel_transport

__all__ = [
    "Flatness",
    "Geodesic",
    "GeodesicError",
    "GeodesicsBetween",
    "configuration_rate",
    "connection",
    "covariant_derivative",
    "curvature",
    "curvature_operator",
    "distance",
    "divergence",
    "exponential",
    "flat_coordinates",
    "flatness",
    "geodesic",
    "geodesics_between",
    "gradient",
    "inner_product",
    "is_flat",
    "jacobi_field",
    "logarithm",
    "parallel_transport",
    "ricci_curvature",
    "scalar_curvature",
    "sectional_curvature",
]
