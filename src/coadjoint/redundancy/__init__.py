"""Redundant robots as geometry: tasks as submersions, horizontal lifts, operational space. See docs/redundancy.md."""

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
from .manipulability import Ellipsoid, ellipsoid, manipulability, manipulability_gradient
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

__all__ = [
    "Ellipsoid",
    "MapTask",
    "OperationalSpace",
    "SingularTaskError",
    "Task",
    "dexterity",
    "effective_inertia",
    "ellipsoid",
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
    "prioritized_inverse",
    "prioritized_torque",
    "singular_rows",
    "split_velocity",
    "task_acceleration",
    "task_coriolis_matrix",
    "task_torque",
    "vertical_basis",
    "vertical_brackets",
    "vertical_projector",
    "weighted_inverse",
]
