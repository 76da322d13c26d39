# Written by tests/stub_of_the_api.py from the functions themselves.

from typing import Any, overload

import numpy as np

from .arrays import ArrayLike, Numbers
from . import arguments as arguments
from . import arrays as arrays
from . import blas as blas
from . import calibration as calibration
from . import checking as checking
from . import compiling as compiling
from . import constraints as constraints
from . import control as control
from . import design as design
from . import differentiating as differentiating
from . import dynamics as dynamics
from . import errors as errors
from . import explaining as explaining
from . import export as export
from . import families as families
from . import files as files
from . import geometry as geometry
from . import identification as identification
from . import interop as interop
from . import kernel as kernel
from . import kinematics as kinematics
from . import lie as lie
from . import memo as memo
from . import motion as motion
from . import optimal as optimal
from . import redundancy as redundancy
from . import robot as robot
from . import scale as scale
from . import show as show
from . import symbolic as symbolic
from . import traced as traced
from . import words as words
from .arrays import where as where
from .calibration.calibrate import calibrate as calibrate
from .calibration.result import Calibration as Calibration
from .compiling import compile as compile
from .compiling import trace as trace
from .constraints.constraint import Constraint as Constraint
from .constraints.impacts import impact as impact
from .constraints.impacts import impact_account as impact_account
from .constraints.projection import constraint_connection as constraint_connection
from .constraints.projection import constraint_projector as constraint_projector
from .design.balance import is_balanced as is_balanced
from .differentiating import derivative as derivative
from .differentiating import differential as differential
from .differentiating import jvp as jvp
from .differentiating import vjp as vjp
from .dynamics.derivatives import from_triangle as from_triangle
from .dynamics.derivatives import triangle as triangle
from .dynamics.momentum import total_mass as total_mass
from .dynamics.wrenches import wrench_at as wrench_at
from .errors import CoadjointError as CoadjointError
from .explaining import explain as explain
from .geometry.flatness import is_flat as is_flat
from .geometry.geodesics import geodesic as geodesic
from .identification.base_parameters import BaseParameters as BaseParameters
from .identification.base_parameters import base_parameters as base_parameters
from .identification.excitation import Excitation as Excitation
from .identification.excitation import excitation as excitation
from .identification.fitting import identify as identify
from .identification.result import Identification as Identification
from .kinematics.dh import DH as DH
from .kinematics.dh import from_dh as from_dh
from .kinematics.dh import to_dh as to_dh
from .kinematics.exponentials import body_screws as body_screws
from .kinematics.exponentials import path_coordinates as path_coordinates
from .kinematics.exponentials import product_of_exponentials as product_of_exponentials
from .kinematics.exponentials import relative_screws as relative_screws
from .kinematics.exponentials import space_screws as space_screws
from .kinematics.inverse import InverseKinematics as InverseKinematics
from .kinematics.inverse import inverse_kinematics as inverse_kinematics
from .kinematics.paths import circle_path as circle_path
from .kinematics.paths import geodesic_path as geodesic_path
from .kinematics.paths import spline_path as spline_path
from .kinematics.solutions import inverse_kinematics_solutions as inverse_kinematics_solutions
from .kinematics.targets import Target as Target
from .motion.chunks import LogChunks as LogChunks
from .motion.compare import Comparison as Comparison
from .motion.compare import compare as compare
from .motion.equations_of_motion import SimulationError as SimulationError
from .motion.events import Contact as Contact
from .motion.events import Event as Event
from .motion.linearize import controllability as controllability
from .motion.linearize import discretize as discretize
from .motion.linearize import equilibrium_force as equilibrium_force
from .motion.linearize import lqr as lqr
from .motion.logs import Log as Log
from .motion.logs import read_log as read_log
from .motion.rollout import rollout as rollout
from .motion.simulate import simulate as simulate
from .motion.trajectories import Trajectories as Trajectories
from .motion.trajectory import Trajectory as Trajectory
from .optimal import costs as costs
from .optimal.capsules import Capsule as Capsule
from .optimal.capsules import Sphere as Sphere
from .optimal.motion_result import OptimalMotion as OptimalMotion
from .optimal.motion_result import OptimalMotions as OptimalMotions
from .optimal.optimal_control import OptimalControl as OptimalControl
from .optimal.optimal_control import Stage as Stage
from .optimal.optimal_control import optimal_control as optimal_control
from .optimal.optimal_motion import optimal_motion as optimal_motion
from .optimal.receding import RecedingHorizon as RecedingHorizon
from .optimal.receding import receding_horizon as receding_horizon
from .optimal.time_optimal import time_optimal as time_optimal
from .optimal.timing import Timing as Timing
from .optimal.timing import Timings as Timings
from .optimal.tracking import TrackingGains as TrackingGains
from .optimal.tracking import time_varying_lqr as time_varying_lqr
from .redundancy.lift import effective_inertia as effective_inertia
from .redundancy.lift import horizontal_lift as horizontal_lift
from .robot.dh import robot_from_dh as robot_from_dh
from .robot.link import Frame as Frame
from .robot.link import Joint as Joint
from .robot.link import Link as Link
from .robot.link import Loop as Loop
from .robot.link import Mimic as Mimic
from .robot.load import load as load
from .robot.robot import Robot as Robot
from .robot.save import save as save
from .robot.shape import Shape as Shape
from .robot.spring import Spring as Spring
from .show.report import report as report
from .symbolic.equations import Equations as Equations
from .symbolic.equations import equations as equations

__version__: str
@overload
def bias_force(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    wrenches: Numbers | None = None,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def bias_force(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    wrenches: ArrayLike | None = None,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def center_of_mass(
    robot: Robot,
    q: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def center_of_mass(
    robot: Robot,
    q: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def centroidal_momentum(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def centroidal_momentum(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def centroidal_momentum_matrix(
    robot: Robot,
    q: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def centroidal_momentum_matrix(
    robot: Robot,
    q: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def christoffel(
    robot: Robot,
    q: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def christoffel(
    robot: Robot,
    q: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def connection(
    robot: Robot,
    q: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def connection(
    robot: Robot,
    q: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def constrained_dynamics(
    robot: Robot,
    constraint: Constraint,
    q: Numbers,
    v: Numbers,
    tau: Numbers,
    wrenches: Numbers | None = None,
    friction: bool = False,
    *,
    out: tuple[np.ndarray, np.ndarray] | None = None,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]: ...
@overload
def constrained_dynamics(
    robot: Robot,
    constraint: Constraint,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    friction: bool = False,
    *,
    out: tuple[np.ndarray, np.ndarray] | None = None,
    threads: int | None = None,
) -> tuple[Any, Any]: ...
@overload
def coriolis_matrix(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def coriolis_matrix(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def covariant_derivative(
    robot: Robot,
    q: Numbers,
    x: Numbers,
    y: Numbers,
    dy: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def covariant_derivative(
    robot: Robot,
    q: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    dy: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def curvature(
    robot: Robot,
    q: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def curvature(
    robot: Robot,
    q: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def drive_regressor(
    robot: Robot,
    v: Numbers,
    a: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def drive_regressor(
    robot: Robot,
    v: ArrayLike,
    a: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def forward_dynamics(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    tau: Numbers,
    wrenches: Numbers | None = None,
    friction: bool = False,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def forward_dynamics(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    friction: bool = False,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def forward_dynamics_derivatives(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    tau: Numbers,
    wrenches: Numbers | None = None,
    friction: bool = False,
    *,
    out: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
@overload
def forward_dynamics_derivatives(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    friction: bool = False,
    *,
    out: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    threads: int | None = None,
) -> tuple[Any, Any, Any]: ...
@overload
def forward_dynamics_second_derivatives(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    tau: Numbers,
    *,
    out: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
@overload
def forward_dynamics_second_derivatives(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    out: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None,
    threads: int | None = None,
) -> tuple[Any, Any, Any, Any]: ...
@overload
def forward_kinematics(
    robot: Robot,
    q: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def forward_kinematics(
    robot: Robot,
    q: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def generalized_force(
    robot: Robot,
    q: Numbers,
    wrenches: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def generalized_force(
    robot: Robot,
    q: ArrayLike,
    wrenches: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def gravity_force(
    robot: Robot,
    q: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def gravity_force(
    robot: Robot,
    q: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def inverse_dynamics(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    a: Numbers,
    wrenches: Numbers | None = None,
    friction: bool = False,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def inverse_dynamics(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    wrenches: ArrayLike | None = None,
    friction: bool = False,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def inverse_dynamics_derivatives(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    a: Numbers,
    wrenches: Numbers | None = None,
    friction: bool = False,
    *,
    out: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
@overload
def inverse_dynamics_derivatives(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    wrenches: ArrayLike | None = None,
    friction: bool = False,
    *,
    out: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    threads: int | None = None,
) -> tuple[Any, Any, Any]: ...
@overload
def inverse_dynamics_second_derivatives(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    a: Numbers,
    *,
    out: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
@overload
def inverse_dynamics_second_derivatives(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    out: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None,
    threads: int | None = None,
) -> tuple[Any, Any, Any, Any]: ...
@overload
def jacobian(
    robot: Robot,
    q: Numbers,
    frame: str,
    reference: str = 'body',
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def jacobian(
    robot: Robot,
    q: ArrayLike,
    frame: str,
    reference: str = 'body',
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def jacobian_derivative(
    robot: Robot,
    q: Numbers,
    frame: str,
    reference: str = 'body',
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def jacobian_derivative(
    robot: Robot,
    q: ArrayLike,
    frame: str,
    reference: str = 'body',
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def jacobian_rate(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    frame: str,
    reference: str = 'body',
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def jacobian_rate(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    frame: str,
    reference: str = 'body',
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def joint_reactions(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    a: Numbers,
    wrenches: Numbers | None = None,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def joint_reactions(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    wrenches: ArrayLike | None = None,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def kinetic_energy(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def kinetic_energy(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def kinetic_energy_regressor(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def kinetic_energy_regressor(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def linearize(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    tau: Numbers,
    wrenches: Numbers | None = None,
    friction: bool = False,
    *,
    out: tuple[np.ndarray, np.ndarray] | None = None,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]: ...
@overload
def linearize(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    friction: bool = False,
    *,
    out: tuple[np.ndarray, np.ndarray] | None = None,
    threads: int | None = None,
) -> tuple[Any, Any]: ...
@overload
def link_velocities(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def link_velocities(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def mass_matrix(
    robot: Robot,
    q: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def mass_matrix(
    robot: Robot,
    q: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def mass_matrix_derivative(
    robot: Robot,
    q: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def mass_matrix_derivative(
    robot: Robot,
    q: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def mass_matrix_inverse(
    robot: Robot,
    q: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def mass_matrix_inverse(
    robot: Robot,
    q: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def momentum(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def momentum(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def momentum_regressor(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def momentum_regressor(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def pose(
    robot: Robot,
    q: Numbers,
    frame: str,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def pose(
    robot: Robot,
    q: ArrayLike,
    frame: str,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def potential_energy(
    robot: Robot,
    q: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def potential_energy(
    robot: Robot,
    q: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def potential_energy_regressor(
    robot: Robot,
    q: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def potential_energy_regressor(
    robot: Robot,
    q: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def regressor(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    a: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def regressor(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def ricci_curvature(
    robot: Robot,
    q: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def ricci_curvature(
    robot: Robot,
    q: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def scalar_curvature(
    robot: Robot,
    q: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def scalar_curvature(
    robot: Robot,
    q: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def sectional_curvature(
    robot: Robot,
    q: Numbers,
    x: Numbers,
    y: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def sectional_curvature(
    robot: Robot,
    q: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def spring_force(
    robot: Robot,
    q: Numbers,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray: ...
@overload
def spring_force(
    robot: Robot,
    q: ArrayLike,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> Any: ...
__all__ = [
    "DH",
    "BaseParameters",
    "Calibration",
    "Capsule",
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
    "LogChunks",
    "Loop",
    "Mimic",
    "OptimalControl",
    "OptimalMotion",
    "OptimalMotions",
    "RecedingHorizon",
    "Robot",
    "Shape",
    "SimulationError",
    "Sphere",
    "Spring",
    "Stage",
    "Target",
    "Timing",
    "Timings",
    "TrackingGains",
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
    "costs",
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
    "optimal_control",
    "optimal_motion",
    "path_coordinates",
    "pose",
    "potential_energy",
    "potential_energy_regressor",
    "product_of_exponentials",
    "read_log",
    "receding_horizon",
    "redundancy",
    "regressor",
    "relative_screws",
    "report",
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
    "spring_force",
    "time_optimal",
    "time_varying_lqr",
    "to_dh",
    "total_mass",
    "trace",
    "triangle",
    "vjp",
    "where",
    "wrench_at",
]
