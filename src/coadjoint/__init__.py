"""Robot dynamics as geometry.

    import coadjoint as cj

    robot = cj.load("panda")                     # or "arm.urdf", "arm.xml" (MJCF), "arm.json"
    tau = cj.inverse_dynamics(robot, q, v, a)    # leading axes of arrays are batch axes, in every function

The README and `docs/` describe all functions; `docs/conventions.md` says what every number means.

Robots, kinematics and dynamics are imported with the package; all other modules on first use. Type checkers and editors read
`__init__.pyi`, which `python tests/stub_of_the_api.py` writes from the functions themselves.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from . import errors, lie
from ._version import __version__ as __version__
from .arrays import where
from .dynamics import (
    bias_force,
    center_of_mass,
    centroidal_momentum,
    centroidal_momentum_matrix,
    christoffel,
    coriolis_matrix,
    drive_regressor,
    forward_dynamics,
    forward_dynamics_derivatives,
    forward_dynamics_second_derivatives,
    from_triangle,
    generalized_force,
    gravity_force,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    inverse_dynamics_second_derivatives,
    joint_reactions,
    kinetic_energy,
    kinetic_energy_regressor,
    link_velocities,
    mass_matrix,
    mass_matrix_derivative,
    mass_matrix_inverse,
    momentum,
    momentum_regressor,
    potential_energy,
    potential_energy_regressor,
    regressor,
    total_mass,
    triangle,
)
from .errors import CoadjointError
from .kinematics import (
    DH,
    body_screws,
    forward_kinematics,
    from_dh,
    jacobian,
    jacobian_derivative,
    jacobian_rate,
    path_coordinates,
    pose,
    product_of_exponentials,
    relative_screws,
    space_screws,
    to_dh,
)
from .robot import Frame, Joint, Link, Mimic, Robot, robot_from_dh
from .robot.load import load

_LATER = {
    "calibration": ("Calibration", "calibrate"),
    "compiling": ("compile", "trace"),
    "constraints": ("Constraint", "constrained_dynamics", "constraint_connection", "constraint_projector"),
    "constraints.impacts": ("impact", "impact_account"),
    "control": (),
    "design": ("is_balanced",),
    "differentiating": ("derivative", "differential", "jvp", "vjp"),
    "explaining": ("explain",),
    "export": (),
    "geometry": (
        "connection",
        "covariant_derivative",
        "curvature",
        "geodesic",
        "is_flat",
        "ricci_curvature",
        "scalar_curvature",
        "sectional_curvature",
    ),
    "identification": ("BaseParameters", "Excitation", "Identification", "base_parameters", "excitation", "identify"),
    "interop": (),
    "kinematics.inverse": ("InverseKinematics", "Target", "inverse_kinematics"),
    "kinematics.solutions": ("inverse_kinematics_solutions",),
    "motion.compare": ("Comparison", "compare"),
    "motion.events": ("Contact", "Event"),
    "motion.logs": ("Log", "read_log"),
    "motion.equations_of_motion": ("SimulationError",),
    "motion.linearize": ("controllability", "discretize", "equilibrium_force", "linearize", "lqr"),
    "motion.rollout": ("rollout",),
    "motion.simulate": ("simulate",),
    "motion.trajectories": ("Trajectories",),
    "motion.trajectory": ("Trajectory",),
    "dynamics.wrenches": ("wrench_at",),
    "kinematics.paths": ("circle_path", "geodesic_path", "spline_path"),
    "optimal": ("OptimalMotion", "OptimalMotions", "Timing", "Timings", "optimal_motion", "time_optimal"),
    "redundancy": ("effective_inertia", "horizontal_lift"),
    "robot.save": ("save",),
    "scale": (),
    "symbolic": ("Equations", "equations"),
}
"""Modules that are imported on first use, and the names that the package exports from them."""

_HOME = {name: module for module, names in _LATER.items() for name in names}


_MODULES = (
    "arguments",
    "arrays",
    "calibration",
    "checking",
    "compiling",
    "constraints",
    "control",
    "design",
    "differentiating",
    "dynamics",
    "errors",
    "explaining",
    "export",
    "families",
    "files",
    "geometry",
    "identification",
    "interop",
    "kernel",
    "kinematics",
    "lie",
    "memo",
    "motion",
    "optimal",
    "redundancy",
    "robot",
    "scale",
    "show",
    "symbolic",
    "traced",
    "words",
)
"""Modules and folders that are always attributes of the package, whatever was imported before."""

_INTERNAL = {"arguments", "compiling", "differentiating", "explaining", "families", "files", "memo", "traced", "words"}
"""Modules that `dir` leaves out: their public names are names of the package."""


def __getattr__(name: str) -> _Any:
    if name in _HOME:
        value = getattr(_import_module(f".{_HOME[name]}", __name__), name)
    elif name in _MODULES:
        value = _import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES} - _INTERNAL | {*(name for name in globals() if name.startswith("__"))})


__all__ = [
    "DH",
    "BaseParameters",
    "Calibration",
    "CoadjointError",
    "Comparison",
    "Constraint",
    "Contact",
    "Equations",
    "Event",
    "Excitation",
    "Frame",
    "Identification",
    "InverseKinematics",
    "Joint",
    "Link",
    "Log",
    "Mimic",
    "OptimalMotion",
    "OptimalMotions",
    "Robot",
    "SimulationError",
    "Target",
    "Timing",
    "Timings",
    "Trajectories",
    "Trajectory",
    "base_parameters",
    "bias_force",
    "body_screws",
    "calibrate",
    "center_of_mass",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "christoffel",
    "circle_path",
    "compare",
    "compile",
    "connection",
    "constrained_dynamics",
    "constraint_connection",
    "constraint_projector",
    "constraints",
    "controllability",
    "coriolis_matrix",
    "covariant_derivative",
    "curvature",
    "derivative",
    "differential",
    "discretize",
    "drive_regressor",
    "effective_inertia",
    "equations",
    "equilibrium_force",
    "errors",
    "excitation",
    "explain",
    "export",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "forward_dynamics_second_derivatives",
    "forward_kinematics",
    "from_dh",
    "from_triangle",
    "generalized_force",
    "geodesic",
    "geodesic_path",
    "geometry",
    "gravity_force",
    "horizontal_lift",
    "identify",
    "impact",
    "impact_account",
    "interop",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_dynamics_second_derivatives",
    "inverse_kinematics",
    "inverse_kinematics_solutions",
    "is_balanced",
    "is_flat",
    "jacobian",
    "jacobian_derivative",
    "jacobian_rate",
    "joint_reactions",
    "jvp",
    "kinetic_energy",
    "kinetic_energy_regressor",
    "lie",
    "linearize",
    "link_velocities",
    "load",
    "lqr",
    "mass_matrix",
    "mass_matrix_derivative",
    "mass_matrix_inverse",
    "momentum",
    "momentum_regressor",
    "optimal_motion",
    "path_coordinates",
    "pose",
    "potential_energy",
    "potential_energy_regressor",
    "product_of_exponentials",
    "read_log",
    "redundancy",
    "regressor",
    "relative_screws",
    "ricci_curvature",
    "robot_from_dh",
    "rollout",
    "save",
    "scalar_curvature",
    "scale",
    "sectional_curvature",
    "simulate",
    "space_screws",
    "spline_path",
    "time_optimal",
    "to_dh",
    "total_mass",
    "trace",
    "triangle",
    "vjp",
    "where",
    "wrench_at",
]
