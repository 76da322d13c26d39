"""Closed chains in the studio: the loops of a robot's description are kept closed, whatever is asked."""

from __future__ import annotations

import numpy as np

from ...constraints import Constraint, assemble
from ...errors import CoadjointError
from ...kinematics import jacobian, pose
from ...lie import so3
from ...robot.robot import Robot

STEPS = 30
"""The most steps towards a place."""


def check_open(robot: Robot, name: str, remedy: str) -> None:
    """Refuse what would leave the loops of a description open."""
    for loop in robot.loops:
        raise CoadjointError(f"{name} would leave the loop {loop.name!r} of robot {robot.name!r} open. {remedy}")


def with_loops(robot: Robot, held: Constraint | None) -> Constraint | None:
    """The loops of the description, and what else is held."""
    parts = [Constraint.loops(robot)] if robot.loops else []
    parts += [held] if held is not None else []
    return Constraint.all(parts) if parts else None


def closed_reach(robot: Robot, target: np.ndarray, frame: str, q: np.ndarray) -> tuple[np.ndarray, float]:
    """The configuration next to q, with its loops closed, that brings a frame nearest to a place (3,) or pose (4, 4), and the distance.

    Gauss–Newton steps along the velocities that the loops permit; each is closed again, and halved where it comes no nearer.
    """
    loops = Constraint.loops(robot)
    q = assemble(robot, loops, q)
    off = _difference(robot, q, frame, target)
    for _ in range(STEPS):
        A, J = np.asarray(loops.jacobian(robot, q)), np.asarray(jacobian(robot, q, frame, "world"))
        _, sizes, rows = np.linalg.svd(A)
        free = rows[np.count_nonzero(sizes > 1e-9 * max(sizes.max(initial=0.0), 1e-300)) :].T
        J = (J if target.ndim == 2 else J[3:]) @ free
        step = free @ np.linalg.lstsq(np.vstack([J, 1e-6 * np.eye(J.shape[1])]), np.concatenate([off, np.zeros(J.shape[1])]))[0]
        step *= min(1.0, 0.3 / max(float(np.linalg.norm(step)), 1e-12))
        for _ in range(6):
            try:
                moved = assemble(robot, loops, np.clip(robot.integrate(q, step), robot.lower, robot.upper))
            except CoadjointError:
                moved = q
            if np.any(moved < robot.lower - 1e-9) or np.any(moved > robot.upper + 1e-9):
                moved = q
            left = _difference(robot, moved, frame, target)
            if np.linalg.norm(left) < np.linalg.norm(off):
                break
            step = 0.5 * step
        else:
            break
        nearer = np.linalg.norm(off) - np.linalg.norm(left)
        q, off = moved, left
        if np.linalg.norm(off) < 1e-9 or nearer < 1e-9:
            break
    return q, float(np.linalg.norm(off[-3:]))


def _difference(robot: Robot, q: np.ndarray, frame: str, target: np.ndarray) -> np.ndarray:
    """The remaining rotation and translation, in space axes; or the translation alone."""
    T = np.asarray(pose(robot, q, frame))
    if target.ndim == 1:
        return np.asarray(target - T[:3, 3])
    return np.concatenate([np.asarray(so3.log(target[:3, :3] @ T[:3, :3].T)), target[:3, 3] - T[:3, 3]])
