"""Following a path of the task: the lift of a path, with error control.

From a configuration over the start of a path, dq/dt = L (X + k e) with an inverse L of J, the velocity X that the path asks for and what is
missing to it, e. On the path e is zero and the solution is the lift of the path by L; k takes away what the steps of an integration
leave. Steps are chosen for a local error of 1e-12, and what is read off between them is brought onto the path by Newton's method along L.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arguments import a_damping, a_function_of, a_robot, count_up_to, positive, states, takes, times
from ..arrays import Array, ArrayLike, like, mv
from ..compiling import compile
from ..errors import CoadjointError
from ..geometry import flow
from ..kernel.dispatch import frozen
from ..kinematics.paths import Path
from ..memo import recent
from ..robot.robot import Robot
from .integrability import Inverse, constant_weight
from .lift import SingularTaskError, dexterity, singular, split_of
from .task import AnyTask, OfRobot, check_fibres, task_of

LOCAL = 1e-12
"""The tolerance of the local error of a step, relative and absolute."""
DAMPED = 1e-7
"""The bound where damping makes an error of its own, and the equation stiff."""
GAIN = 5.0
"""k in 1/s, for a path of 10 s: integration errors decay with the time constant 1/k, here a fiftieth of the path."""
NEAR = 0.02
"""A dexterity below this is reported as near a singularity."""
BEHIND = 1e-6
"""The tracking error before the final projection is about 1e-9; an error above this means that the rate returned by the path is not
its derivative.
"""
POLISH = 4


class TrackingError(CoadjointError):
    """A path cannot be followed; the message says from which time on and why."""


@dataclass(frozen=True)
class Method:
    """An inverse of the task's Jacobian: of a constant weight, of the mass matrix (weight None), or a user's own."""

    name: str
    weight: np.ndarray | None = field(default=None, compare=False)
    function: Inverse | None = None
    damping: float = 0.0

    def inverse(self, robot: Robot, q: Array, task: AnyTask) -> Array:
        """L (..., nv, size)."""
        if self.function is not None:
            return self.function(robot, q)
        weight = None if self.weight is None else like(self.weight, q)
        return split_of(robot, q, task, weight, self.damping).L

    @property
    def key(self) -> tuple[Any, ...]:
        return self.name, None if self.weight is None else self.weight.tobytes(), self.function, self.damping


def method(robot: Robot, inverse: Any = "lift", damping: float = 0.0) -> Method:
    """The inverse that "lift", "moore-penrose", a weight (nv, nv) or (nv,), or a function inverse(robot, q) -> (nv, size) names."""
    a_damping(damping, "damping")
    if callable(inverse):
        if damping:
            raise CoadjointError("damping is for our own inverses; damp within the function you give.")
        a_function_of("robot", "q")(inverse, "inverse")
        return Method(getattr(inverse, "__name__", "function"), None, OfRobot.now(inverse, robot))
    if isinstance(inverse, str) and inverse == "lift":
        return Method("lift", None, None, float(damping))
    name = inverse if isinstance(inverse, str) else "weighted"
    return Method(name, constant_weight(robot, inverse), None, float(damping))


@dataclass(frozen=True)
class Track:
    """A path of a task followed by a robot; `track(t)` gives q (..., *t.shape, nq) at any times of it."""

    robot: Robot
    task: AnyTask
    method: Method
    path: Callable[[Any], tuple[np.ndarray, np.ndarray]]
    duration: float
    solution: Any = field(repr=False)
    batch: tuple[int, ...] = ()
    time: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)
    """(N,) times over the whole path, at which the following is known."""
    q: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)
    """(..., N, nq)"""
    error: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)
    """(..., N): the error |e| with respect to the path: radians and metres together for the pose of a frame."""
    dexterity: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)
    """(..., N), from 0 (singular) to 1."""

    def __call__(self, t: Any) -> np.ndarray:
        t = times(t)
        if np.any((t < 0) | (t > self.duration * (1 + 1e-12))):
            raise CoadjointError(f"t is {t}; the path goes from 0 to {self.duration:g} s.")
        q = self.integrated(t)
        return q if self.method.damping else onto_task(self.robot, self.task, self.method, q, self.path(t)[0])

    def integrated(self, t: np.ndarray) -> np.ndarray:
        """The result of the integration at times t, before the projection onto the path."""
        flat = self.solution(np.minimum(t.ravel(), self.duration))
        q = np.moveaxis(flat.reshape(*self.batch, self.robot.nq, t.size), -1, -2).reshape(*self.batch, *t.shape, self.robot.nq)
        return self.robot.normalize(q)

    def velocity(self, t: Any) -> np.ndarray:
        """v (..., *t.shape, nv) = L X."""
        t = times(t)
        q, (target, rate) = self(t), self.path(t)
        return _rate(self.robot, self.task, self.method, 0.0)(q, *_spread(target, rate, q, self.task))[1]

    @property
    def drift(self) -> np.ndarray:
        """(..., nv): the difference of the last configuration from the first; on a closed path, the motion along the fibre."""
        return self.robot.difference(self.q[..., 0, :], self.q[..., -1, :])

    @property
    def beyond_limits(self) -> list[str]:
        """The coordinates that exceed their limits: an inverse of J does not take limits into account."""
        q = self.q.reshape(-1, self.robot.nq)
        outside = np.any((q < self.robot.lower - 1e-12) | (q > self.robot.upper + 1e-12), axis=0)
        return [name for name, out in zip(self.robot.q_names, outside, strict=True) if out]

    @property
    def near_singular(self) -> list[tuple[float, float]]:
        """The times with their dexterities where it is least and below 0.02, for the robot that comes nearest."""
        least = self.dexterity.reshape(-1, len(self.time)).min(0)
        inner = [k for k in range(len(least)) if least[k] < NEAR and least[k] == least[max(0, k - 5) : k + 6].min()]
        return [(float(self.time[k]), float(least[k])) for k in inner]

    def __str__(self) -> str:
        drift = float(np.max(np.linalg.norm(self.drift, axis=-1), initial=0.0))
        parts = [f"{self.duration:g} s followed by {self.method.name}: {np.max(self.error):.2g} off at most, drift {drift:.4g}"]
        parts += [f"near a singularity at {t:.4g} s (dexterity {d:.2g})" for t, d in self.near_singular]
        if self.beyond_limits:
            parts.append(f"beyond the limits of {', '.join(self.beyond_limits)}")
        if self.method.damping:
            parts.append(f"damped by {self.method.damping:g}, at the price of that error")
        return "; ".join(parts)


def _rate(robot: Robot, task: AnyTask, how: Method, gain: float) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """dq/dt and v, compiled, of q, target and its rate."""
    task = frozen(task, robot)

    def rate(robot: Robot, q: Array, target: Array, twist: Array) -> tuple[Array, Array]:
        wanted = task.wanted(robot, q, target, twist) + gain * task.gap(robot, q, target)
        v = mv(how.inverse(robot, q, task), wanted)
        return robot.rate(q, v), v

    shapes = dict(zip(("target", "twist"), task.target_shapes, strict=True))
    return recent(robot, ("track", task.key, how.key, gain), lambda: compile(rate, robot, shapes=shapes))


def _step(robot: Robot, task: AnyTask, how: Method) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """Newton's step L e and the error e, compiled."""
    task = frozen(task, robot)

    def step(robot: Robot, q: Array, target: Array) -> tuple[Array, Array]:
        gap = task.gap(robot, q, target)
        return mv(how.inverse(robot, q, task), gap), gap

    shapes = {"target": task.target_shapes[0]}
    return recent(robot, ("onto", task.key, how.key), lambda: compile(step, robot, shapes=shapes))


def _spread(target: np.ndarray, rate: np.ndarray, q: np.ndarray, task: AnyTask) -> tuple[np.ndarray, np.ndarray]:
    shapes = task.target_shapes
    return np.broadcast_to(target, (*q.shape[:-1], *shapes[0])), np.broadcast_to(rate, (*q.shape[:-1], *shapes[1]))


def onto_task(robot: Robot, task: AnyTask, how: Method, q: np.ndarray, target: np.ndarray) -> np.ndarray:
    """q projected onto the target by Newton's method along the inverse, as long as steps help."""
    step = _step(robot, task, how)
    target = np.broadcast_to(target, (*q.shape[:-1], *task.target_shapes[0]))
    for _ in range(POLISH):
        change, gap = step(q, target)
        if not np.all(np.isfinite(change)) or np.max(np.abs(gap), initial=0.0) < 1e-15:
            break
        q = robot.integrate(q, change)
    return q


def gap(robot: Robot, task: AnyTask, q: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The error with respect to the target (..., size)."""
    return task.gap(robot, q, np.broadcast_to(target, (*q.shape[:-1], *task.target_shapes[0])))


@takes(robot=a_robot, duration=positive, damping=a_damping, points=count_up_to(10**6))
def follow(
    robot: Robot,
    q: ArrayLike,
    path: Path | Callable[[Any], tuple[Any, Any]],
    frame: str | AnyTask,
    rows: Sequence[int] | None = None,
    *,
    duration: float | None = None,
    inverse: Any = "lift",
    damping: float = 0.0,
    points: int = 401,
) -> Track:
    """Follow a path of a task from q (..., nq), which must lie over its start, by an inverse of the Jacobian, the lift by default.

    path: a `Path`, or a function of t that gives a pose (..., 4, 4) and its body twist (..., 6) for a frame, a value and its rate for a
    `MapTask`, with `duration` in seconds. inverse: see `method`. The result says how far it was off at `points` times, and where it came
    near a singularity or beyond joint limits, which are not kept; a singularity that is met is an error, unless `damping` > 0 lets the
    robot deviate there, which `error` tells.
    """
    task, how = frozen(task_of(frame, rows), robot), method(robot, inverse, damping)
    span = duration if duration is not None else getattr(path, "duration", None)
    if span is None:
        raise CoadjointError("duration is None; expected how many seconds of the path to follow.")
    span = positive(span, "duration")
    if isinstance(points, bool) or not isinstance(points, int | np.integer) or points < 2:
        raise CoadjointError(f"points is {points!r}; expected a whole number, 2 or more.")
    check_fibres(robot, task)
    (start,) = states(robot, q=(q, robot.nq))
    off = gap(robot, task, start, np.asarray(path(0.0)[0]))
    if np.max(np.abs(off), initial=0.0) > 1e-6:
        raise TrackingError(
            f"the path starts {np.max(np.abs(off)):.3g} away from where task {task} is at q; start it at pose(robot, q, frame), or find "
            "a q for its start by inverse kinematics."
        )
    solution = _integrate(robot, task, how, start, path, float(span))
    track = Track(robot, task, how, path, float(span), solution, start.shape[:-1])
    t = np.linspace(0.0, span, points)
    at = track(t)
    error = np.linalg.norm(gap(robot, task, at, path(t)[0]), axis=-1)
    behind = np.linalg.norm(gap(robot, task, track.integrated(t), path(t)[0]), axis=-1)
    if not damping and max(np.max(behind, initial=0.0), np.max(error, initial=0.0)) > BEHIND:
        k = int(np.argmax(np.max(behind.reshape(-1, points), axis=0)))
        raise TrackingError(
            f"task {task} is {np.max(behind):.2g} behind the path at {t[k]:.4g} s: path({t[k]:.4g}) returned (target, rate), and "
            "rate is not d(target)/dt (for a pose its body twist, T⁻¹ dT/dt), or a singularity is close. "
            "Compare rate with differences of target."
        )
    return Track(robot, task, how, path, float(span), solution, start.shape[:-1], t, at, error, dexterity(robot, at, task))


def _integrate(robot: Robot, task: AnyTask, how: Method, start: np.ndarray, path: Any, span: float) -> Any:
    """The dense solution of dq/dt = L (X + k e)."""
    from scipy.integrate import solve_ivp

    rate = _rate(robot, task, how, GAIN * 10.0 / span)
    shape, states = start.shape, max(1, start[..., 0].size)

    def derivative(t: float, y: np.ndarray) -> np.ndarray:
        q = y.reshape(shape)
        target, twist = path(t)
        return rate(q, *_spread(np.asarray(target), np.asarray(twist), q, task))[0].ravel()

    tolerance = max((DAMPED if how.damping else LOCAL) / np.sqrt(states), flow.SMALLEST)
    with np.errstate(over="ignore", invalid="ignore"):
        scheme = "LSODA" if how.damping else "DOP853"
        found = solve_ivp(derivative, (0.0, span), start.ravel(), scheme, dense_output=True, rtol=tolerance, atol=tolerance)
    if not found.success or not np.all(np.isfinite(found.y)):
        good = int(np.sum(np.all(np.isfinite(found.y), axis=0))) - 1
        last = found.y[:, max(good, 0)].reshape(-1, robot.nq)
        worst = last[int(np.argmin(dexterity(robot, last, task)))]
        where = f" where the path is met at t = {found.t[max(good, 0)]:.6g} of {span:.6g} s"
        raise SingularTaskError(str(singular(robot, worst, task, where)))
    return found.sol
