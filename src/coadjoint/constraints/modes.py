"""Assembly modes of a closed mechanism, and configurations at which its number of freedoms changes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..arguments import a_dictionary, a_moving_robot, a_number, a_robot, states, takes, whole
from ..arrays import ArrayLike
from ..errors import CoadjointError
from ..robot.robot import Robot
from .constraint import Constraint, checked
from .manifold import closing_rows, largest_gap, newton_steps, not_closed, project
from .pseudo import null_space
from .rank import ConstraintError, decompose

MOST_STARTS = 1 << 20


@takes(robot=a_moving_robot, fixed=a_dictionary, starts=whole)
def assembly_modes(
    robot: Robot, constraint: Constraint, fixed: Mapping[str, float] | None = None, *, starts: int = 128
) -> np.ndarray:
    """All configurations (k, nq) found to close φ(q) = 0 with these joints held at these coordinates; angles are in (-π, π].

    Newton's method from configurations that fill the space of all joints evenly; in order of the coordinates. A planar four-bar with
    its crank held has two modes, one where the coupler and rocker are in line. What is found must be isolated: hold as many
    joints as the mechanism has freedoms. An error has the smallest gap where nothing closes.
    """
    from scipy.stats import qmc

    constraint = checked(constraint, robot)
    held = {joint: float(a_number(value, f"fixed[{joint!r}]")) for joint, value in (fixed or {}).items()}
    if not 1 <= starts <= MOST_STARTS:
        raise CoadjointError(f"starts is {starts}; expected 1 to {MOST_STARTS}.")
    for joint, value in held.items():
        constraint = constraint & Constraint.gear(robot, {joint: 1.0}, value)
    if not len(constraint.holonomic_rows(robot)):
        raise ConstraintError(
            f"the constraint ({', '.join(constraint.names(robot))}) is on velocities only: every configuration keeps it, and there are no "
            "modes. Give it a place, as in `Constraint.point(robot, frame, axes, at=…)`, or hold joints with `fixed`."
        )
    turning = np.zeros(robot.nq, dtype=bool)
    for i, kind in enumerate(robot.kinds):
        if kind.revolute and i not in robot.mimics:
            turning[robot._q_slices[i]] = True
    if not all(kind.nq == kind.nv for kind in robot.kinds):
        raise CoadjointError("assembly modes are sought over joints with plain coordinates; this robot has quaternions.")
    lower = np.where(turning, -np.pi, np.where(np.isfinite(robot.lower), robot.lower, -1.0))
    upper = np.where(turning, np.pi, np.where(np.isfinite(robot.upper), robot.upper, 1.0))
    points = qmc.Sobol(robot.nq, seed=np.random.default_rng(0)).random(1 << max(1, int(np.ceil(np.log2(starts)))))
    guesses = lower + (upper - lower) * points
    for joint, value in held.items():
        guesses[:, robot.q_slice(joint)] = value
    q, open_ = newton_steps(robot, constraint, guesses, 100, 0.0)
    if open_.all():
        nearest = min(q, key=lambda x: largest_gap(robot, constraint, x))
        raise not_closed(robot, constraint, nearest, "assembly_modes", "Lengths may not reach with these joints held so.")
    found = q[~open_]
    found[:, turning] = np.pi - np.mod(np.pi - found[:, turning], 2 * np.pi)
    modes: list[np.ndarray] = []
    for x in found[np.lexsort(np.round(found, 6).T[::-1])]:
        apart = [np.abs(np.where(turning, np.angle(np.exp(1j * (x - y))), x - y)).max() for y in modes]
        if all(d > 1e-5 for d in apart):
            modes.append(x)
    for x in modes:
        rank = int(decompose(robot, closing_rows(robot, constraint), x).rank)
        if rank < robot.nv and not is_singular(robot, constraint, x):
            raise ConstraintError(
                f"the mechanism still moves, with {robot.nv - rank} freedom{'s' * (robot.nv - rank > 1)}, so that its modes are not "
                "isolated. Hold that many more joints with `fixed`."
            )
    return np.array(modes)


@takes(robot=a_robot)
def is_singular(robot: Robot, constraint: Constraint, q: ArrayLike) -> bool:
    """True if the constraint has fewer independent rows at q (nq,) than at configurations nearby that keep it.

    There the freedoms change for an instant: a parallelogram folded flat, an arm's tip held at full stretch.
    """
    (q,) = states(robot, q=(q, robot.nq))
    if q.ndim != 1:
        raise CoadjointError(f"q has shape {q.shape}; expected one configuration ({robot.nq},).")
    constraint = checked(constraint, robot)
    here = int(decompose(robot, constraint, q).rank)
    S, rng = null_space(robot, constraint, q), np.random.default_rng(0)
    if not S.shape[-1]:
        return False
    for scale in (1e-2, 1e-3):
        away = S @ rng.normal(size=S.shape[-1])
        near = robot.integrate(q, away * scale / max(np.abs(away).max(), 1e-300))
        try:
            near = project(robot, constraint, near)
        except ConstraintError:  # what the rows allow here leads nowhere: an isolated configuration
            return True
        if np.abs(robot.difference(q, near)).max() < 1e-2 * scale or int(decompose(robot, constraint, near).rank) > here:
            return True
    return False
