"""All solutions of inverse kinematics in closed form: many targets in one kernel, joint limits, whole turns, refinement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from ..arguments import a_flag, a_name, a_number, a_robot, takes
from ..arrays import Array, cross, dot, is_deferred, like, namespace, stack
from ..compiling import compile
from ..errors import CoadjointError
from ..families import Family
from ..memo import per_robot
from ..robot.robot import Robot
from ..scale.deferred import lazily
from .closed_form import Arm, recognise, solve
from .exponentials import screw_path
from .inverse import reached_pose, search_kernel
from .levenberg import clamped, search
from .targets import RIGID, Target

ROUGH, GOOD = 1e-5, 1e-12
"""A candidate with an error above ROUGH is not a solution; one with an error above GOOD is refined by Newton's method."""

AT_LIMIT = 1e-12
"""An angle that exceeds a limit by at most this, by rounding, is set to the limit."""
NEARBY = 1e-3
"""Replaces both `ROUGH` and `AT_LIMIT` for the solutions of an ideal arm near the robot's, before they are refined."""


STEPS = 12
"""The most steps of Newton's method: two or three suffice, except near singularities, where it converges slowly."""


@dataclass(frozen=True, eq=False, repr=False)
class Solutions:
    """All configurations that reach the targets: q (..., 8, nq); `valid` (..., 8) marks the solutions, the other rows are NaN.

    Each angle is within ±π, or, if that violates the limits, shifted by the fewest whole turns that satisfy them.
    """

    robot: Robot = field(metadata={"for_all": True})
    q: np.ndarray
    valid: np.ndarray
    moved: np.ndarray = field(metadata={"for_all": True})
    """The coordinates (6,) of q that were solved for."""

    def __repr__(self) -> str:
        if is_deferred(self.valid):
            return f"<Solutions of {self.robot.name!r}: targets {self.valid.shape[:-1]}, not computed yet>"
        n = np.asarray(self.count)
        many = f"{n.min(initial=8)} to {n.max(initial=0)} solutions each" if n.size > 1 else f"{int(n.sum())} solutions"
        return f"<Solutions of {self.robot.name!r}: {n.size} target{'s' * (n.size != 1)}, {many}>"

    @property
    def count(self) -> np.ndarray:
        """The number of solutions of every target (...,); coinciding solutions are counted as often as they occur."""
        result: np.ndarray = self.valid.sum(-1)
        return result

    def of(self, *index: int, turns: bool = False, apart: float = 1e-6) -> np.ndarray:
        """The distinct solutions (m, nq) of one target of the batch; with `turns` also those whole turns away within the limits."""
        if len(index) != self.q.ndim - 2:
            raise CoadjointError(f"of{index} does not name one target; give {self.q.ndim - 2} numbers, one for each batch axis.")
        found = self.q[index][self.valid[index]]
        kept: list[np.ndarray] = []
        for q in found:
            if all(np.abs(_wrapped(q - other)).max() > apart for other in kept):
                kept.append(q)
        if turns:
            kept = [copy for q in kept for copy in self._turns(q)]
        return np.array(kept).reshape(-1, self.robot.nq)

    def _turns(self, q: np.ndarray) -> list[np.ndarray]:
        """q with every angle shifted by all whole turns within the limits; by up to three turns each way for joints without
        limits.
        """
        lower, upper = (np.clip(x, -6 * np.pi, 6 * np.pi) for x in (self.robot.lower, self.robot.upper))
        choices = []
        for k in range(self.robot.nq):
            turns = range(
                int(np.ceil((lower[k] - q[k] - AT_LIMIT) / (2 * np.pi))), int((upper[k] - q[k] + AT_LIMIT) // (2 * np.pi)) + 1
            )
            choices.append([q[k] + 2 * np.pi * n for n in turns] if k in self.moved else [q[k]])
        return [np.clip(copy, self.robot.lower, self.robot.upper) for copy in product(*choices)]


@lazily("solution nq", "solution", target="4 4")
@takes(robot=a_robot, frame=a_name, limits=a_flag, tolerance=a_number)
def inverse_kinematics_solutions(
    robot: Robot, target: Any, frame: str, *, limits: bool = True, tolerance: float = 1e-9, threads: int | None = None
) -> Solutions:
    """All configurations, at most eight, that bring a frame to the poses `target` (..., 4, 4), in closed form.

    For arms of six revolute joints with a spherical wrist, or with three parallel axes, recognised by their screws (`closed_form.py`);
    an error says why a robot is none of them. limits: leave out what is beyond the joint limits. tolerance: of position (m) and
    rotation (rad). A target out of reach has no solution: `inverse_kinematics` gives the nearest pose. Where rounded numbers in a file
    make axes parallel, or meet, only to 3e-5, solutions of the ideal arm are refined until the robot itself reaches the pose.

    Joints that do not move the frame stay at home, or at the limit nearest to it.
    """
    arm, moved = _closed_form(robot, frame)
    goal = Target(frame, target).checked(robot, values=False)
    if goal.size != 12:
        raise CoadjointError(f"the target of frame {frame!r} is a position; closed forms need poses (..., 4, 4).")
    if not 0 < tolerance <= ROUGH:
        raise CoadjointError(f"tolerance is {tolerance!r}; expected a positive number of radians and metres, {ROUGH:g} at most.")
    q, off, rigid = _compiled(robot, frame, bool(limits))(goal.to, threads=threads)
    if not np.all(rigid <= RIGID):
        goal.checked(robot)  # which says what is wrong
    if robot.nq != 6 or list(moved) != list(range(6)):
        angles, q = q, np.broadcast_to(clamped(robot, robot.neutral()), (*off.shape, robot.nq)).copy()
        q[..., moved] = angles
        q[np.isnan(angles).any(-1)] = np.nan
    rough = (off > GOOD**2) & (off <= ROUGH**2) if arm.exact else off <= NEARBY**2
    if rough.any():
        poses = np.broadcast_to(goal.to[..., None, :, :], (*off.shape, 4, 4))
        q[rough], off[rough] = _polished(robot, goal, q[rough], poses[rough], limits)
        q[rough & (off > tolerance**2)] = np.nan
    return Solutions(robot, q, off <= tolerance**2, moved)


@per_robot
def _closed_form(robot: Robot, frame: str) -> tuple[Arm, np.ndarray]:
    """The arm that ends in a frame, and the coordinates (6,) of q that move it."""
    path, _ = screw_path(robot, frame)
    return recognise(robot, frame), np.array([robot._q_slices[i].start for i in path if robot.kind(i).nv])


@per_robot
def _compiled(robot: Robot, frame: str, limits: bool) -> Callable[..., Any]:
    """`_all` for this arm."""
    arm, moved = _closed_form(robot, frame)
    ranges = (robot.lower[moved], robot.upper[moved]) if limits else (np.full(6, -np.inf), np.full(6, np.inf))
    return compile(_all, robot, shapes={"target": (4, 4)}, arm=arm, ranges=ranges)


@per_robot
def _without_limits(robot: Robot) -> Robot:
    for link in robot.links:
        if link.joint.mimic is None:
            robot = robot.with_joint(link.joint.name, lower=-np.inf, upper=np.inf)
    return robot


def _all(robot: Robot, target: Array, arm: Arm, ranges: tuple[np.ndarray, np.ndarray]) -> tuple[Array, Array, Array]:
    """`solve`, with every angle shifted into its limits by whole turns; NaN where that is impossible or the pose is not reached."""
    q, off = solve(robot, target, arm)
    xp, beyond, rough = namespace(q), AT_LIMIT if arm.exact else NEARBY, ROUGH if arm.exact else NEARBY
    columns = []
    for k, (lower, upper) in enumerate(zip(*ranges, strict=True)):
        x = q[..., k]
        if np.isfinite(lower) and lower > -np.pi - beyond:
            low = xp.less(x, lower - beyond)
            x = xp.where(low, x + 2 * np.pi * xp.ceil((lower - beyond - x) / (2 * np.pi)), x)
        if np.isfinite(upper) and upper < np.pi + beyond:
            high = xp.less(upper + beyond, x)
            x = xp.where(high, x - 2 * np.pi * xp.ceil((x - upper - beyond) / (2 * np.pi)), x)
        if np.isfinite(lower):
            off = xp.where(xp.less(x, lower - beyond), np.inf, off)
            x = xp.where(xp.less(x, lower), 0.0 * x + lower, x)
        if np.isfinite(upper):
            off = xp.where(xp.less(upper + beyond, x), np.inf, off)
            x = xp.where(xp.less(upper, x), 0.0 * x + upper, x)
        columns.append(x)
    reached = xp.less_equal(off, rough**2)
    return stack([xp.where(reached, x, np.nan) for x in columns]), off, _rigid(target)


def _rigid(target: Array) -> Array:
    """A rough distance (..., 1) of matrices from rigid motions: the test of `Target.checked`, inside the kernel."""
    xp = namespace(target)
    x, y, z = (target[..., :3, k] for k in range(3))
    right = cross(x, y) - z  # x × y = z has everything in it but the lengths of x and y
    last = target[..., 3, :] - like(np.array([0.0, 0.0, 0.0, 1.0]), target)
    parts = [dot(x, x) - 1.0, dot(y, y) - 1.0, dot(x, y), *(right[..., k] for k in range(3)), *(last[..., k] for k in range(4))]
    return sum(xp.abs(part) for part in parts)[..., None]


def _polished(robot: Robot, goal: Target, q: np.ndarray, poses: np.ndarray, limits: bool) -> tuple[np.ndarray, np.ndarray]:
    """Every solution refined by steps of Newton's method, kept where they help, and its remaining error."""
    own = Family(robot if limits else _without_limits(robot), None)
    flat = poses[:, :3].reshape(-1, 12)
    step, reached = search_kernel(own, [goal], search, ("goal",)), search_kernel(own, [goal], reached_pose, ("goal",))
    best, least = q, reached(q, flat)[0].max(-1)
    for _ in range(STEPS):
        if np.all(least <= GOOD**2):
            break
        q = step(q, flat)[0]
        now = reached(q, flat)[0].max(-1)
        best, least = np.where((now < least)[:, None], q, best), np.fmin(now, least)
    return best, least


def _wrapped(x: np.ndarray) -> np.ndarray:
    """Angles within ±π."""
    return x - 2 * np.pi * np.round(x / (2 * np.pi))
