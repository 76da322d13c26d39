"""Sound calls of the public functions, by name: a function, and arguments with which it works.

Functions are found by the names that their modules publish. Arguments are found by their names in VALID, or stand in SPECIAL where a
function needs others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

import coadjoint as cj
from coadjoint import control, costs
from coadjoint.constraints import Constraint
from coadjoint.errors import MissingPackageError
from coadjoint.redundancy import Task

MODULES = "constraints control design export geometry identification interop lie.inertia lie.quaternion lie.screw lie.se3 lie.so3"
MODULES += " motion optimal.costs redundancy scale"
LEFT_OUT = {
    "scale.stream",
    "motion.write_states",
    "motion.read_states",
    "report",
    "save",
    "identification.output_error",
    "control.estimates",
    "identification.drive_gains",
    "identification.elastic_joints",
    "scale.lazy",
}
"""Those that write files or take long; `SPECIAL` has calls of some of them."""
MADE = (cj.Frame, cj.Joint, cj.Link, cj.Log, cj.Loop, cj.Mimic, cj.Robot, cj.Shape, cj.Stage, cj.Target, cj.Contact, cj.Event, Task)
"""The classes that users make objects of."""

Call = tuple[Callable[..., Any], dict[str, Any]]
R = cj.load("planar2r")
for _link in R.link_names:
    R = R.with_inertia(_link, mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.2, 0.2))
Q, V = np.array([0.3, 0.9]), np.array([0.2, -0.1])
POSE = cj.pose(R, Q, "tip")
CONSTRAINT = Constraint.point(R, "tip", axes="x")
HOLD = control.hold(R, Q)
SOFT = control.pd(R, HOLD, kp=10.0, kd=5.0)
TIME = np.linspace(0, 2, 101)
LOG = cj.Log(
    TIME,
    np.sin(np.outer(TIME, [3, 5])),
    np.cos(np.outer(TIME, [3, 5])) * [3, 5],
    -np.sin(np.outer(TIME, [3, 5])) * [9, 25],
    np.ones((101, 2)),
)
MOTION = cj.simulate(R, Q, V, np.linspace(0, 0.1, 5))
STAGE = cj.Stage(3, [costs.control(0.1), costs.state(Q)])
A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
BODY = np.array([1.0, 0, 0, 0, 1, 0, 1, 0, 0, 1])
VALID: dict[str, Any] = {
    **{
        "robot": R,
        "q": Q,
        "v": V,
        "a": V,
        "tau": V,
        "x": V,
        "y": V + 1,
        "z": V,
        "dy": np.eye(2),
        "df": V,
        "j": V,
        "dj": V,
        "frame": "tip",
    },
    **{
        "t": np.linspace(0, 0.1, 3),
        "dt": 0.01,
        "duration": 0.5,
        "start": Q,
        "goal": Q + 0.1,
        "wrench": np.ones(6),
        "reference": HOLD,
    },
    **{
        "constraint": CONSTRAINT,
        "log": LOG,
        "fn": cj.gravity_force,
        "graph": cj.trace(cj.gravity_force, R),
        "stages": STAGE,
        "A": A,
    },
    **{"B": B, "Q": np.eye(2), "R": np.eye(1), "T": POSE, "V": np.ones(6), "F": np.ones(6), "W": np.ones(6), "xi": np.ones(6)},
    **{"w": np.ones(3), "s": 0.5, "S": np.arange(6.0), "p": np.ones(3), "parameters": BODY, "kp": 10.0, "kd": 5.0, "rate": 2.0},
    **{
        "damping": 3.0,
        "controller": SOFT,
        "motion": MOTION,
        "wrenches": np.zeros((2, 6)),
        "center": Q,
        "amplitude": 0.1,
        "frequency": 1.0,
    },
}
UR5, CART, UP = cj.load("ur5e"), cj.load("cartpole"), np.array([0, np.pi])
WORLD, TASKS = {"frame": Task("tip", [3], "world")}, [Task("tip", [3]), Task("tip", [4])]
LIMITS = {"velocity": 1.0, "acceleration": 5.0}
SPECIAL: dict[str, dict[str, Any]] = {
    **{key: {"start": POSE, "goal": np.eye(4)} for key in ("control.screw_motion", "geodesic_path")},
    **{key: {"rows": [3]} for key in ("effective_inertia", "horizontal_lift")},
    **{key: {"rows": np.zeros((3, 4))} for key in ("from_dh", "robot_from_dh")},
    **{key: dict(zip(("screws", "home"), cj.space_screws(R, "tip"), strict=True)) for key in ("product_of_exponentials", "to_dh")},
    **{key: {"v": np.zeros(2)} for key in ("constraints.check_state", "constraints.constrained_geodesic")},
    **{key: {"Sigma": np.eye(4)} for key in ("lie.inertia.from_pseudo", "lie.inertia.transform_pseudo")},
    **{key: {"R": np.eye(3)} for key in ("lie.quaternion.from_matrix", "lie.se3.pose", "lie.so3.log")},
    **{
        f"lie.quaternion.{name}": {"q": np.array([0, 0, 0, 1.0])} for name in ("conjugate", "log", "normalize", "rate", "to_matrix")
    },
    "calibrate": {"q": LOG.q, "points": cj.pose(R, LOG.q, "tip")[:, :3, 3], "frame": "tip"},
    "circle_path": {"start": POSE, "center": np.zeros(3), "axis": [0, 0, 1.0]},
    "excitation": {"duration": 2.0, "harmonics": 3, "position": (-1.0, 1.0), "velocity": 2.0, "acceleration": 5.0},
    "from_triangle": {"x": np.arange(6.0)},
    "identify": {"log": cj.Log(TIME, LOG.q, LOG.v, LOG.a, cj.inverse_dynamics(R, LOG.q, LOG.v, LOG.a))},
    "inverse_kinematics": {"target": POSE, "frame": "tip"},
    "inverse_kinematics_solutions": {
        "robot": UR5,
        "target": cj.pose(UR5, np.ones(6), UR5.link_names[-1]),
        "frame": UR5.link_names[-1],
    },
    "load": {"source": "planar2r"},
    "optimal_motion": {"goal": Q + 0.1, "duration": 1.0},
    "read_log": {"source": {"time": TIME, "q1": TIME, "q2": TIME}, "robot": R},
    "rollout": {"steps": 3},
    "spline_path": {"poses": np.stack([POSE, POSE])},
    "time_optimal": {"path": np.stack([Q, Q + 0.1, Q]), **LIMITS},
    "time_varying_lqr": {"q": np.tile(Q, (4, 1)), "v": np.tile(V, (4, 1)), "u": np.zeros((3, 2)), "Q": np.eye(4), "R": np.eye(2)},
    "triangle": {"a": np.eye(3)},
    "where": {"condition": Q > 0},
    "Contact": {"constraint": CONSTRAINT},
    "Event": {"when": lambda q, v, t: q[0]},
    "Frame": {"name": "f", "link": "a", "pose": POSE},
    "Joint": {"kind": "revolute", "screws": np.array([[0, 0, 1.0, 0, 0, 0]])},
    "Link": {"name": "a", "parent": "base", "joint": cj.Joint.revolute()},
    "Log": {"time": TIME, "q": LOG.q},
    "Loop": {"name": "l", "frame_a": "tip", "frame_b": "base"},
    "Mimic": {"joint": "a"},
    "Robot": {"name": "r", "links": R.links},
    "Shape": {"link": "a", "kind": "box"},
    "Stage": {"steps": 3, "costs": costs.control(1.0)},
    "Target": {"frame": "tip", "to": POSE},
    "constraints.assembly_modes": {"constraint": Constraint.point(R, "tip", axes="xy", at=POSE[:2, 3]), "starts": 16},
    "constraints.constrained_inverse_dynamics": {"a": np.zeros(2), "v": np.zeros(2)},
    "control.balance": {"robot": CART, "goal": UP, "actuated": ["slide"]},
    "control.controlled_lagrangian": {"robot": CART, "goal": UP, "actuated": "slide"},
    "control.adaptive": {"adaptation": 1.0},
    "control.controlled_metric": {"controller": control.controlled_lagrangian(CART, goal=UP, actuated="slide"), "q": [0, 3.0]},
    "control.controlled_symmetry": {"gravity": np.array([0, 0, -1.0])},
    "control.hybrid": {"force": np.zeros(1)},
    "control.impedance": {"reference": POSE, "stiffness": np.eye(6), "damping": np.eye(6)},
    "control.limited": {"effort": 5.0},
    "control.momentum_observer": {"gain_rate": 5.0},
    "control.partial_linearization": {"robot": CART, "reference": control.hold(CART, np.zeros(2)), "actuated": ["slide"]},
    "control.se3_tracking": {"reference": POSE, "rows": [3]},
    "control.swing_up": {"robot": CART, "goal": UP, "actuated": ["slide"], "kE": 1.0, "kv": 1.0},
    "control.workspace": {"tasks": [control.FrameTask("tip", POSE, 1.0, 1.0, rows=[3])]},
    "design.optimize": {"parameters": "masses", "objective": lambda robot: cj.total_mass(robot)},
    "geometry.flat_coordinates": {"robot": cj.load("planar1r"), "q": np.zeros(1)},
    "geometry.parallel_transport": {"curve": lambda t: (Q * t, Q)},
    "identification.natural_gradient": {"gain": 1.0},
    "lie.inertia.from_body": {"mass": 1.0, "com": np.zeros(3), "inertia": np.eye(3)},
    "lie.inertia.from_spatial": {"J": np.eye(6)},
    "lie.inertia.pseudo_dual": {"gradient": BODY},
    "lie.quaternion.multiply": {"p": np.array([0, 0, 0, 1.0]), "q": np.array([0, 0, 0, 1.0])},
    "lie.quaternion.rotation": {"u": np.zeros(3), "a": np.ones(3), "b": np.ones(3)},
    "lie.se3.exp_screw": {"S": np.array([0, 0, 1.0, 0, 0, 0]), "q": 0.5},
    "lie.se3.vee": {"X": np.zeros((4, 4))},
    "lie.so3.vee": {"W": np.zeros((3, 3))},
    "motion.differentiate": {"states": LOG},
    "optimal.costs.pose": {"target": POSE},
    "optimal.costs.position": {"target": np.zeros(3)},
    "redundancy.fibre": WORLD,
    "redundancy.follow": {"path": lambda t: (np.array([POSE[0, 3]]), np.zeros(1)), "duration": 0.1, **WORLD},
    "redundancy.inverse_brackets": {"inverse": lambda robot, q: cj.redundancy.moore_penrose(robot, q, "tip", [3]), "rows": [3]},
    "redundancy.lift_function": {"eta": np.ones(1)},
    "redundancy.optimize_self_motion": {"function": lambda robot, q: q[..., 0], **WORLD},
    "redundancy.prioritized_inverse": {"tasks": TASKS},
    "redundancy.prioritized_torque": {"tasks": TASKS, "accelerations": [np.zeros(1), np.zeros(1)]},
    "redundancy.self_motion": {"velocity": np.ones(2), **WORLD},
    "redundancy.task_torque": {"acceleration": np.zeros(1)},
    "redundancy.Task": {"frame": "tip"},
}


def published() -> dict[str, Callable[..., Any]]:
    """The public functions by their names after `coadjoint.`, and the classes that users make objects of."""
    found: dict[str, Callable[..., Any]] = {}
    for module in ("", *MODULES.split()):
        home = import_module(f"coadjoint.{module}".rstrip("."))
        names = getattr(home, "__all__", None) or [
            n for n, f in vars(home).items() if getattr(f, "__module__", "") == home.__name__
        ]
        for name in names:
            try:
                value = getattr(home, name)
            except MissingPackageError:  # an optional library that is not installed
                continue
            if name.startswith("_") or value in found.values() or inspect.ismodule(value) or not callable(value):
                continue
            if inspect.isfunction(value) or value in MADE:
                found[f"{module}.{name}".lstrip(".")] = value
    return found


@cache
def calls() -> dict[str, Call]:
    """Every call by the name of its function."""
    found: dict[str, Call] = {}
    for name, fn in published().items():
        parameters = inspect.signature(fn).parameters
        needed = {key for key, p in parameters.items() if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
        given = {key: VALID[key] for key in parameters if key in needed and key in VALID} | SPECIAL.get(name, {})
        if name.startswith("redundancy.") and "rows" in parameters and given.get("frame") == "tip":
            given.setdefault("rows", [3])
        if name not in LEFT_OUT:
            found[name] = fn, given
    return found
