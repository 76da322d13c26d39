"""Controllers in work space: the motion of frames on SE(3), with the horizontal lift for what the task leaves free.

A frame at X with body twist V = J v follows X_d, V_d. Its errors are those of a joint that moves in SE(3) (`tracking_error`):

    log                  η = log(X⁻¹ X_d),                     w = Ad(X⁻¹ X_d) V_d - V
    double geodesic      η = (log(Rᵀ R_d), Rᵀ (p_d - p)),      w = (RᵀR_d ω_d - ω, Rᵀ(dp_d/dt - dp/dt))       Bullo & Murray (1999)

The joints' acceleration is a = L (A - J̇ v) + (1 - L J) a₀, with L the horizontal lift (Altafini (2004), section III) and A the
acceleration that the task asks for. So dw/dt + Kd w + Kp η = 0 holds for the frame whatever a₀ is: the error dynamics of the
joint-space controller are those of the workspace feedback. Altafini (2004), section IV.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_name, a_robot, finite, floats, one_of, sequence, takes
from ..arrays import Array, concat, cross, dot, like, mv, solve_spd, transpose
from ..dynamics import inverse_dynamics
from ..errors import CoadjointError, ShapeError
from ..kinematics import jacobian, pose
from ..lie import se3, so3
from ..redundancy.lift import effective_inertia
from ..redundancy.operational import prioritized_inverse, task_coriolis_matrix
from ..redundancy.task import ALL, Task
from ..robot.robot import Robot
from .controller import Controller, gain, times
from .force_references import MotionAndForce, as_force
from .pose_references import PoseReference, as_pose_reference

Gains = Mapping[str, Any]
ERRORS = ("log", "double-geodesic")
TWIST = ("ω about x", "ω about y", "ω about z", "v along x", "v along y", "v along z")
"""The rows of a body twist."""


@dataclass(frozen=True)
class FrameError:
    """Errors (..., 6) of a frame against its reference, and the reference's acceleration as seen from the frame."""

    position: Array
    """η"""
    velocity: Array
    """w"""
    acceleration: Array
    """The derivative of the transported reference twist along the motion."""
    spring: Any
    """From a force on η to the wrench whose power with w is that of the force with dη/dt."""


def frame_error(kind: str, X: Array, V: Array, X_d: Array, V_d: Array, A_d: Array) -> FrameError:
    """The error of a frame at X (..., 4, 4) with body twist V (..., 6) against the reference X_d, V_d, A_d = dV_d/dt."""
    between = se3.inverse(X) @ X_d
    if kind == "log":
        eta = se3.log(between)
        w = se3.Ad_act(between, V_d) - V
        ahead = se3.Ad_act(between, A_d) + se3.ad_act(w, V)
        return FrameError(eta, w, ahead, lambda f: mv(transpose(se3.dexp_inverse(eta)), f))
    R, way = between[..., :3, :3], between[..., :3, 3]
    omega, omega_d = V[..., :3], V_d[..., :3]
    turn = so3.log(R)
    seen_w, seen_v = mv(R, omega_d), mv(R, V_d[..., 3:])
    turning = seen_w - omega
    ahead = concat(
        [
            mv(R, A_d[..., :3]) + cross(turning, omega),
            mv(R, A_d[..., 3:] + cross(omega_d, V_d[..., 3:])) - cross(omega, seen_v),
        ]
    )
    back = lambda f: concat([mv(transpose(so3.dexp_inverse(turn)), f[..., :3]), f[..., 3:]])
    return FrameError(concat([turn, way]), concat([turning, seen_v - V[..., 3:]]), ahead, back)


@dataclass(frozen=True, eq=False)
class FrameTask:
    """Tracking of a frame by `workspace`: rows of its body twist, a reference on SE(3), and gains.

    reference: a pose (4, 4) to hold, or a function reference(t) -> X, V, A: the pose, its body twist (6,) and the derivative of the
    twist (6,). kp [1/s²] and kd [1/s]: numbers, diagonals (6,) or matrices (6, 6), positive definite. rows: which rows of the body
    twist (ω, v) are the task, as (3, 4, 5) for the position. error: "log" or "double-geodesic". With the second the Lyapunov function
    ½ |w|² + ½ ηᵀKp η is one if Kp takes distances alike in all directions and apart from angles.
    """

    frame: str
    reference: Any
    kp: Any
    kd: Any
    rows: Sequence[int] = ALL
    error: str = "log"

    def __post_init__(self) -> None:
        a_name(self.frame, "frame")
        one_of(*ERRORS)(self.error, "error")
        object.__setattr__(self, "kp", gain(self.kp, "kp", 6, of=TWIST))
        object.__setattr__(self, "kd", gain(self.kd, "kd", 6, of=TWIST))
        object.__setattr__(self, "rows", Task(self.frame, tuple(sequence(self.rows, "rows"))).rows)
        object.__setattr__(self, "reference", as_pose_reference(self.reference))

    @property
    def task(self) -> Task:
        """The rows that are tracked."""
        return Task(self.frame, tuple(self.rows))


@takes(robot=a_robot, frame=a_name)
def se3_tracking(
    robot: Robot,
    frame: str,
    reference: Any,
    *,
    kp: Any,
    kd: Any,
    error: str = "log",
    rows: Sequence[int] = ALL,
    posture: Any = None,
    posture_kp: float = 10.0,
    posture_kd: float = 6.0,
) -> Controller:
    """Tracking of a frame on SE(3) with feedforward: dw/dt + Kd w + Kp η = 0. Arguments as for `FrameTask` and `workspace`."""
    one = FrameTask(frame, reference, kp, kd, rows, error)
    return workspace(robot, [one], posture=posture, posture_kp=posture_kp, posture_kd=posture_kd)


@takes(robot=a_robot)
def workspace(
    robot: Robot, tasks: Sequence[FrameTask], *, posture: Any = None, posture_kp: float = 10.0, posture_kd: float = 6.0
) -> Controller:
    """Tracking of several frames, the first before the second, and a posture with what is left.

    Each task gets the acceleration that it asks for as far as those before it allow, by M-orthogonal projections. What all of
    them leave free goes to the `posture` q₀ (nq,) by a₀ = posture_kp (q₀ - q) - posture_kd v, and without a posture it is damped.
    The forces are NaN where a task is singular.
    """
    tasks = tuple(sequence(tasks, "tasks"))
    if not tasks or not all(isinstance(x, FrameTask) for x in tasks):
        raise CoadjointError(f"tasks is {tasks!r}; expected a list of FrameTask.")
    for x in tasks:
        robot.frame(x.frame)
    if sum(len(x.rows) for x in tasks) > robot.nv:
        raise CoadjointError(f"the tasks have more rows than robot {robot.name!r} has freedoms, {robot.nv}; leave out rows.")
    gains = {"tasks": tasks} | _posture(robot, posture, posture_kp, posture_kd)
    alone = len(tasks) == 1 and tuple(tasks[0].rows) == ALL and has_energy(tasks[0].error, tasks[0].kp)
    energy = _energy_of_frame if alone else None
    return Controller(robot, "workspace", _workspace, _References(tuple(x.reference for x in tasks)), gains, energy)


@takes(robot=a_robot, frame=a_name)
def impedance(
    robot: Robot,
    frame: str,
    reference: Any,
    *,
    stiffness: Any,
    damping: Any,
    inertia: Any = None,
    wrench: Any = None,
    error: str = "log",
    posture: Any = None,
    posture_kp: float = 10.0,
    posture_kd: float = 6.0,
) -> Controller:
    """Impedance of a frame, a spring and damper on SE(3): Λ dw/dt + (𝒞 + D) w + dexp⁻¹(η)ᵀ K η = -F under a wrench F of the world.

    stiffness K and damping D: numbers, diagonals (6,) or matrices (6, 6) in the axes of the frame, angular part first. Λ is the robot's
    own effective inertia, so that no force sensor is needed and ½ wᵀΛw + ½ ηᵀKη falls by wᵀD w. With `inertia` I (6, 6) the frame moves
    as such a body, I dw/dt + D w + dexp⁻¹(η)ᵀ K η = -F, if `wrench` is F as a sensor measures it: a function of time that gives (6,), in
    the axes of the frame at its origin; without it, a wrench still acts through Λ. Other arguments as for `se3_tracking`. For an arm
    without redundancy that holds a pose, the law is τ = Jᵀ F + g with the wrench F of the spring and damper.
    """
    robot.frame(frame)
    one_of(*ERRORS)(error, "error")
    if wrench is not None and inertia is None:
        raise CoadjointError(
            "wrench is given without inertia; the robot's own inertia needs no measured wrench. Give inertia, too."
        )
    gains = {
        "frame": frame,
        "error": error,
        "stiffness": gain(stiffness, "stiffness", 6, of=TWIST),
        "damping": gain(damping, "damping", 6, of=TWIST),
        "inertia": None if inertia is None else gain(inertia, "inertia", 6, of=TWIST),
    } | _posture(robot, posture, posture_kp, posture_kd)
    energy = _energy_of_impedance if inertia is None and has_energy(error, gains["stiffness"]) else None
    desired = as_pose_reference(reference)
    if wrench is not None:
        desired = MotionAndForce(desired, as_force(wrench, "wrench", 6, "components of a wrench"))
    return Controller(robot, "impedance", _impedance, desired, gains, energy)


def has_energy(error: str, stiffness: np.ndarray) -> bool:
    """True if ½ ηᵀKη is the potential of the spring: always for "log"; for "double-geodesic" if K takes distances alike in all directions
    and apart from angles, else its rate depends on how the reference turns.
    """
    far = stiffness[3:, 3:]
    return error == "log" or bool(np.allclose(far, far[0, 0] * np.eye(3)) and not stiffness[:3, 3:].any())


@dataclass(frozen=True)
class _References:
    """The references of all tasks, one after the other."""

    each: tuple[PoseReference, ...]

    def __call__(self, t: Any) -> tuple[Array, ...]:
        return tuple(x for reference in self.each for x in reference(t))


def as_posture(robot: Robot, posture: Any) -> np.ndarray | None:
    """The configuration (nq,) that a user gives, or None."""
    if posture is None:
        return None
    posture = floats(posture, "posture")
    if posture.shape != (robot.nq,):
        raise ShapeError(f"posture has shape {posture.shape}; expected ({robot.nq},).")
    return finite(posture, "posture").copy()


def _posture(robot: Robot, posture: Any, kp: float, kd: float) -> dict[str, Any]:
    return {
        "posture": as_posture(robot, posture),
        "posture_kp": gain(kp, "posture_kp", robot.nv, True, robot.v_names),
        "posture_kd": gain(kd, "posture_kd", robot.nv, True, robot.v_names),
    }


def _null_acceleration(gains: Gains, robot: Robot, q: Array, v: Array) -> Array:
    """a₀ (..., nv): what the robot would do without a task."""
    damped = -times(gains["posture_kd"], v)
    if gains["posture"] is None:
        return damped
    return damped + times(gains["posture_kp"], robot.difference(q, like(gains["posture"], q)))


def _error(kind: str, robot: Robot, q: Array, v: Array, frame: str, desired: Sequence[Array]) -> FrameError:
    return frame_error(kind, pose(robot, q, frame), mv(jacobian(robot, q, frame), v), *desired)


def _forces(gains: Gains, robot: Robot, q: Array, v: Array, tasks: Sequence[Task], wanted: Sequence[Array]) -> Array:
    """τ (..., nv) that gives each task its acceleration, the first before the second, and the rest of the robot a₀."""
    free = [x - mv(task.jacobian_rate(robot, q, v), v) for task, x in zip(tasks, wanted, strict=True)]
    G = prioritized_inverse(robot, q, tasks)
    rest = _null_acceleration(gains, robot, q, v)
    done = concat([mv(task.jacobian(robot, q), rest) for task in tasks])
    return inverse_dynamics(robot, q, v, rest + mv(G, concat(free) - done))


def _workspace(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    wanted = []
    for k, one in enumerate(gains["tasks"]):
        error = _error(one.error, robot, q, v, one.frame, desired[3 * k : 3 * k + 3])
        A = error.acceleration + times(one.kd, error.velocity) + error.spring(times(one.kp, error.position))
        wanted.append(A[..., list(one.rows)])
    return _forces(gains, robot, q, v, [one.task for one in gains["tasks"]], wanted)


def _energy_of_frame(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    one = gains["tasks"][0]
    error = _error(one.error, robot, q, v, one.frame, desired)
    return 0.5 * dot(error.velocity, error.velocity) + 0.5 * dot(error.position, times(one.kp, error.position))


def _impedance(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    frame, measured = gains["frame"], desired[3:]
    error = _error(gains["error"], robot, q, v, frame, desired[:3])
    wrench = times(gains["damping"], error.velocity) + error.spring(times(gains["stiffness"], error.position))
    if gains["inertia"] is None:
        wrench = wrench + mv(task_coriolis_matrix(robot, q, v, frame), error.velocity)
        # Λ⁻¹ = J M⁻¹ Jᵀ: the acceleration that the wrench gives the frame
        A = error.acceleration + solve_spd(effective_inertia(robot, q, frame), wrench[..., None])[..., 0]
        return _forces(gains, robot, q, v, [Task(frame)], [A])
    wrench = wrench + sum(measured)
    A = error.acceleration + mv(like(np.linalg.inv(gains["inertia"]), wrench), wrench)
    tau = _forces(gains, robot, q, v, [Task(frame)], [A])
    return tau - mv(transpose(jacobian(robot, q, frame)), measured[0]) if measured else tau


def _energy_of_impedance(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    error = _error(gains["error"], robot, q, v, gains["frame"], desired)
    inertial = mv(effective_inertia(robot, q, gains["frame"]), error.velocity)
    return 0.5 * dot(error.velocity, inertial) + 0.5 * dot(error.position, times(gains["stiffness"], error.position))
