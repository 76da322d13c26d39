"""Redundant robots as geometry: tasks as submersions, horizontal lifts, operational space. See docs/redundancy.md."""

from .conditions import Repeatability, Submersion, pseudoinverse_defect, repeatability, submersion
from .ellipsoids import Ellipsoid, ellipsoid, manipulability, manipulability_gradient
from .fibres import Optimum, fibre, optimize_self_motion, self_motion
from .integrability import inverse_brackets, lift_brackets, oneill_tensor, vertical_brackets
from .lift import (
    SingularTaskError,
    dexterity,
    effective_inertia,
    horizontal_basis,
    horizontal_lift,
    lift_function,
    moore_penrose,
    singular_rows,
    split_velocity,
    vertical_basis,
    vertical_projector,
    weighted_inverse,
)
from .operational import (
    OperationalSpace,
    null_space_torque,
    operational_space,
    prioritized_inverse,
    prioritized_torque,
    task_acceleration,
    task_coriolis_matrix,
    task_torque,
)
from .task import MapTask, Task
from .tracking import Track, TrackingError, follow

__all__ = [
    "Ellipsoid",
    "MapTask",
    "OperationalSpace",
    "Optimum",
    "Repeatability",
    "SingularTaskError",
    "Submersion",
    "Task",
    "Track",
    "TrackingError",
    "dexterity",
    "effective_inertia",
    "ellipsoid",
    "fibre",
    "follow",
    "horizontal_basis",
    "horizontal_lift",
    "inverse_brackets",
    "lift_brackets",
    "lift_function",
    "manipulability",
    "manipulability_gradient",
    "moore_penrose",
    "null_space_torque",
    "oneill_tensor",
    "operational_space",
    "optimize_self_motion",
    "prioritized_inverse",
    "prioritized_torque",
    "pseudoinverse_defect",
    "repeatability",
    "self_motion",
    "singular_rows",
    "split_velocity",
    "submersion",
    "task_acceleration",
    "task_coriolis_matrix",
    "task_torque",
    "vertical_basis",
    "vertical_brackets",
    "vertical_projector",
    "weighted_inverse",
]
