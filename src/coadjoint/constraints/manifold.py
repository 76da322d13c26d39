"""Projection onto a constraint: nearest configurations and velocities, and assembly of mechanisms from a rough guess.

Newton's method with the metric: q ← q ⊕ -A♯ φ(q), the step of least kinetic energy that closes the gap to first order, damped while
the gap is wide. Redundant rows are allowed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import a_number, a_robot, states, takes, whole
from ..arrays import ArrayLike
from ..errors import CoadjointError
from ..robot.robot import Robot
from .constraint import Constraint, checked
from .projection import project_velocity
from .rank import ConstraintError, decompose

STEPS = 60
"""The most steps of Newton's method from one start; ten are typical."""
CLOSED = 1e-12
"""The gap, in metres or radians, that counts as closed; Newton's method continues below it to rounding."""


def closing_step(robot: Robot, constraint: Constraint, q: np.ndarray, damping: float) -> tuple[np.ndarray, np.ndarray]:
    """The step (..., nv) that closes φ(q) to first order, held short by the damping, and φ (..., m of holonomic rows)."""
    phi = constraint.residual(robot, q)
    return -decompose(robot, closing_rows(robot, constraint), q).change(phi, damping), phi


def closing_rows(robot: Robot, constraint: Constraint) -> Constraint:
    """The rows of the constraint that have a value φ(q), without those on velocities only."""
    return _Only(constraint, tuple(constraint.holonomic_rows(robot).tolist()))


class _Only(Constraint):
    """The rows of a constraint that have a value."""

    __slots__ = ("chosen", "whole")

    def __init__(self, whole: Constraint, chosen: tuple[int, ...]) -> None:
        super().__init__(whole.parts)
        self.whole, self.chosen = whole, chosen

    def names(self, robot: Robot) -> tuple[str, ...]:
        return tuple(self.whole.names(robot)[k] for k in self.chosen)

    def jacobian(self, robot: Robot, q: Any) -> Any:
        return self.whole.jacobian(robot, q)[..., self.chosen, :]


@takes(robot=a_robot, steps=whole)
def project(robot: Robot, constraint: Constraint, q: ArrayLike, v: ArrayLike | None = None, *, steps: int = STEPS) -> Any:
    """The configurations q (..., nq) brought onto φ(q) = 0 by the shortest steps in the metric; with v (..., nv) also P v there.

    For states near the constraint, such as the drift of a simulation. An error names the widest gap if one stays open; `assemble`
    searches farther.
    """
    (q,), constraint = states(robot, q=(q, robot.nq)), checked(constraint, robot)
    if len(constraint.holonomic_rows(robot)):
        q, open_ = newton_steps(robot, constraint, q, steps, 0.0)
        if open_.any():
            raise not_closed(robot, constraint, q[open_][0], "project", "Start nearer, or put it together with `assemble`.")
    if v is None:
        return q
    return q, project_velocity(robot, constraint, q, v)


def newton_steps(robot: Robot, constraint: Constraint, q: np.ndarray, steps: int, damping: float) -> tuple[np.ndarray, np.ndarray]:
    """q moved until φ no longer shrinks, and which states (...) are still open."""
    shape = q.shape[:-1]
    q = np.array(q, dtype=float).reshape(-1, robot.nq)
    best, gap = q.copy(), np.full(len(q), np.inf)
    moving = np.arange(len(q))
    for _ in range(steps):
        step, phi = closing_step(robot, constraint, q[moving], damping)
        width = np.abs(phi).max(-1)
        better = width < gap[moving]
        best[moving[better]], gap[moving[better]] = q[moving[better]], width[better]
        # Goes on while it gets better, or is still wide; at rounding it does neither.
        go = np.isfinite(width) & (better | (width > CLOSED)) & (width > 0)
        moving, step = moving[go], step[go]
        if not len(moving):
            break
        length = np.abs(step).max(-1, keepdims=True)
        q[moving] = robot.integrate(q[moving], step / np.maximum(1.0, length / 0.5))
    return best.reshape(*shape, robot.nq), (gap > CLOSED).reshape(shape)


@takes(robot=a_robot, tries=whole, seed=whole)
def assemble(
    robot: Robot, constraint: Constraint, guess: ArrayLike | None = None, *, fixed: Any = (), tries: int = 64, seed: int = 0
) -> np.ndarray:
    """A configuration (nq,) that closes φ(q) = 0, near a rough guess (neutral without one).

    `fixed` names joints that keep the coordinates of the guess. First from the guess itself; else from configurations around it, near
    and far, and the closed one nearest to the guess. An error has the smallest gap that was found where none closes, row by row.
    """
    start = robot.neutral() if guess is None else np.asarray(robot._checked(guess, "guess", robot.nq), dtype=float)
    (start,) = states(robot, q=(start, robot.nq))
    if start.ndim != 1:
        raise CoadjointError(f"guess has shape {start.shape}; expected one configuration ({robot.nq},).")
    constraint = checked(constraint, robot)
    if not len(constraint.holonomic_rows(robot)):
        return start.copy()
    kept = [fixed] if isinstance(fixed, str) else list(fixed)
    for joint in kept:
        constraint = constraint & _kept(robot, joint, start)
    q, open_ = newton_steps(robot, constraint, start, STEPS, 0.0)
    if not open_:
        return q
    still = [k for joint in kept for k in range(*robot.v_slice(joint).indices(robot.nv))]
    away = np.random.default_rng(seed).normal(size=(tries, robot.nv)) * np.geomspace(0.1, np.pi, tries)[:, None]
    away[:, still] = 0.0
    # Damped, every start comes as near as it can, also where lengths do not reach; then Newton's method closes what closes.
    found, _ = newton_steps(robot, constraint, robot.integrate(np.broadcast_to(start, (tries, robot.nq)), away), STEPS, 1e-3)
    found, open_ = newton_steps(robot, constraint, np.concatenate([found, q[None]]), STEPS, 0.0)
    if open_.all():
        nearest = min(found, key=lambda x: largest_gap(robot, constraint, x))
        raise not_closed(robot, constraint, nearest, "assemble", "Lengths may not reach, or rows contradict each other.")
    return min(found[~open_], key=lambda x: float(np.abs(robot.difference(start, x)).max()))


def _kept(robot: Robot, joint: str, q: np.ndarray) -> Constraint:
    value = q[robot.q_slice(joint)]
    if value.size != 1:
        raise CoadjointError(f"joint {joint!r} has {value.size} coordinates; `fixed` takes joints with one.")
    return Constraint.gear(robot, {joint: 1.0}, float(value[0]))


def largest_gap(robot: Robot, constraint: Constraint, q: np.ndarray) -> float:
    return float(np.abs(constraint.residual(robot, q)).max())


def not_closed(robot: Robot, constraint: Constraint, q: np.ndarray, who: str, remedy: str) -> ConstraintError:
    phi = constraint.residual(robot, q)
    names = np.array(constraint.names(robot))[constraint.holonomic_rows(robot)]
    widest = np.argsort(-np.abs(phi))[:4]
    rows = ", ".join(f"{names[k]} by {phi[k]:.3g}" for k in widest if abs(phi[k]) > CLOSED)
    return ConstraintError(
        f"{who}: the mechanism does not close: the smallest gap found is {np.abs(phi).max():.3g} ({rows}), at q = {q.tolist()}. {remedy}"
    )


@takes(robot=a_robot, tolerance=a_number)
def check_state(robot: Robot, constraint: Constraint, q: ArrayLike, v: ArrayLike, tolerance: float = 1e-6) -> None:
    """Raise an error that names the row and its value if q (..., nq) is off the constraint or v (..., nv) violates A v = 0."""
    q, v = states(robot, q=(q, robot.nq), v=(v, robot.nv))
    constraint = checked(constraint, robot)
    names = np.array(constraint.names(robot))
    phi = constraint.residual(robot, q)
    if phi is not None:
        check_vanishing(
            phi,
            names[constraint.holonomic_rows(robot)],
            tolerance,
            "q is off the constraint",
            "`constraints.project(robot, constraint, q)`",
        )
    speed = np.abs(v).max(-1, keepdims=True, initial=0.0)
    slip = np.einsum("...ij,...j->...i", constraint.jacobian(robot, q), v)
    check_vanishing(
        slip,
        names,
        tolerance * (1.0 + speed),
        "v violates the constraint",
        "`constraints.project_velocity(robot, constraint, q, v)`",
    )


def check_vanishing(values: np.ndarray, names: np.ndarray, tolerance: Any, what: str, remedy: str) -> None:
    wrong = ~(np.abs(values) <= tolerance)
    if wrong.any():
        *state, k = np.argwhere(wrong)[0]
        where = f" in state {', '.join(map(str, state))}" if state else ""
        raise ConstraintError(
            f"{what}{where}: row {str(names[k])!r} is {values[(*state, k)]:.6g}, expected 0. Bring it there with {remedy}."
        )
