"""Impacts: velocities jump where constraints become active. Žefran & Bullo (2004), section 4.

Momentum changes only across the surface of impact, M (v⁺ - v⁻) = Aᵀ Λ, (30); how much is an extra law, Newton's restitution:

    bilateral rows     A v⁺ = -e A v⁻,    so that with e = 0    v⁺ = P v⁻, the projection along the metric M     (31)
    unilateral rows    0 ≤ Λ ⊥ A v⁺ - e max(0, -A v⁻) ≥ 0:      they push only, and what separates may do so

Energy is never gained if no row separates before, ΔT = ½ Σ (1 - e) Λ A v⁻, nor by plastic impacts. All rows at once: of balls that
touch, one row each, that is the simultaneous impact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_robot, finite, numbers
from ..arrays import ArrayLike, mv, transpose
from ..dynamics import kinetic_energy, mass_matrix, mass_matrix_inverse, momentum
from ..errors import CoadjointError, ShapeError
from ..robot.robot import Robot
from .complementarity import CONTRADICTION, complementarity
from .constraint import checked
from .rank import decompose


@dataclass(frozen=True)
class Impact:
    """The account of an impact; batch axes in front. m is the number of rows."""

    v_before: np.ndarray
    v_after: np.ndarray
    impulse: np.ndarray
    """Λ (..., m)"""
    approach: np.ndarray
    """A v⁻ (..., m): negative where a unilateral row is hit."""
    separation: np.ndarray
    """A v⁺ (..., m)"""
    momentum_change: np.ndarray
    """M (v⁺ - v⁻) (..., nv), which is Aᵀ Λ."""
    space_momentum_change: np.ndarray
    """(..., 6): the change of angular momentum about the origin of space and of linear momentum, which the environment absorbs."""
    energy_before: np.ndarray
    energy_after: np.ndarray
    work: np.ndarray
    """½ Λ (A v⁻ + A v⁺) (..., m): the work of each row; their sum is the change of kinetic energy."""

    @property
    def energy_change(self) -> np.ndarray:
        """ΔT (...), which is ≤ 0 if no row separates before (A v⁻ > 0), or the impact is plastic."""
        result: np.ndarray = self.energy_after - self.energy_before
        return result

    def __str__(self) -> str:
        if self.v_after.ndim > 1:
            return f"{self.v_after[..., 0].size} impacts, ΔT from {np.min(self.energy_change):.4g} to {np.max(self.energy_change):.4g} J"
        rows = "; ".join(
            f"row {k}: {a:.4g} → {s:.4g} m/s, impulse {i:.4g} N s"
            for k, (a, s, i) in enumerate(zip(self.approach, self.separation, self.impulse, strict=True))
        )
        return f"{rows}; T {float(self.energy_before):.6g} → {float(self.energy_after):.6g} J"


def impact(
    robot: Robot, constraint: Any, q: ArrayLike, v: ArrayLike, restitution: Any = 0.0, unilateral: Any = False
) -> tuple[np.ndarray, np.ndarray]:
    """v⁺ (..., nv) and the impulses Λ (..., m) when the rows of the constraint are hit at q (..., nq) with v (..., nv).

    restitution: 0 (plastic) to 1 (elastic), unilateral: whether a row only pushes, A v⁺ ≥ 0; each for all rows or per row (m,). One
    number as restitution is that of the unilateral rows where there are any: bilateral rows among them are kept, A v⁺ = 0. Give the
    rows that are hit: one that separates before, A v > 0, and is pushed all the same by what the others do, may gain energy.
    """
    q, v, A, e, one_sided = _checked(robot, constraint, q, v, restitution, unilateral)
    u = mv(A, v)
    target = np.where(one_sided, e * np.maximum(-u, 0.0), -e * u)
    if not one_sided.any():
        return _bilateral(robot, constraint, q, v, target - u)
    W = mass_matrix_inverse(robot, q)
    G = np.broadcast_to(A @ W @ transpose(A), (*u.shape, u.shape[-1]))
    impulse = np.empty(u.shape)
    for k in np.ndindex(u.shape[:-1]):
        impulse[k] = complementarity(G[k], u[k] - target[k], one_sided)
    return v + mv(W, mv(transpose(A), impulse)), impulse


def _bilateral(robot: Robot, constraint: Any, q: np.ndarray, v: np.ndarray, jump: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """v⁺ and Λ for A (v⁺ - v) = jump (..., m), a whole batch at once, by the singular values of rows in the metric."""
    d = decompose(robot, constraint, q)
    impulse, rest = d.multipliers(jump)
    if np.any(np.abs(rest) > 1e-8 * np.abs(jump / d.length).max(-1, keepdims=True, initial=np.finfo(float).tiny)):
        raise CoadjointError(CONTRADICTION)
    return v + d.change(jump), impulse


def impact_account(
    robot: Robot, constraint: Any, q: ArrayLike, v: ArrayLike, restitution: Any = 0.0, unilateral: Any = False
) -> Impact:
    """The impact of the same arguments with its accounts of momentum and energy."""
    v_after, impulse = impact(robot, constraint, q, v, restitution, unilateral)
    q, v, A, _, _ = _checked(robot, constraint, q, v, restitution, unilateral)
    v = np.broadcast_to(v, v_after.shape)
    before, after = mv(A, v), mv(A, v_after)
    return Impact(
        v_before=v,
        v_after=v_after,
        impulse=impulse,
        approach=before,
        separation=after,
        momentum_change=mv(mass_matrix(robot, q), v_after - v),
        space_momentum_change=momentum(robot, q, v_after) - momentum(robot, q, v),
        energy_before=kinetic_energy(robot, q, v),
        energy_after=kinetic_energy(robot, q, v_after),
        work=0.5 * impulse * (before + after),
    )


def _checked(
    robot: Robot, constraint: Any, q: Any, v: Any, restitution: Any, unilateral: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """q, v, A, and e and unilateral of every row, checked."""
    a_robot(robot, "robot")
    q, v = (np.asarray(robot._checked(x, name, n)) for x, name, n in ((q, "q", robot.nq), (v, "v", robot.nv)))
    finite(q, "q"), finite(v, "v")
    if not callable(getattr(type(constraint), "jacobian", None)):
        checked(constraint)
    A = np.asarray(constraint.jacobian(robot, q))
    m = A.shape[-2]
    try:
        one_sided = np.asarray(unilateral)
    except ValueError:  # rows of different lengths
        one_sided = np.zeros(0)
    if one_sided.dtype != bool:
        raise CoadjointError(f"unilateral is {unilateral!r}; expected True or False, for all rows or one for each of the {m}.")
    e = np.asarray(numbers(restitution, "restitution"))
    for name, x in (("restitution", e), ("unilateral", one_sided)):
        if x.shape not in ((), (m,)):
            raise ShapeError(f"{name} has shape {x.shape}; expected one value, or one for each of the {m} rows of the constraint.")
    check_restitution(e)
    if not e.ndim and one_sided.any():
        e = np.where(one_sided, e, 0.0)
    return q, v, A, np.broadcast_to(e, m), np.broadcast_to(one_sided, m)


def check_restitution(e: np.ndarray) -> None:
    """An error for coefficients outside [0, 1]."""
    wrong = ~((e >= 0) & (e <= 1))
    if np.any(wrong):
        where = f" of row {int(np.argmax(wrong))}" if e.ndim else ""
        value = float(e[wrong][0]) if e.ndim else float(e)
        what = "makes bodies pass through each other" if value < 0 else "makes energy" if value > 1 else "is no number"
        raise CoadjointError(f"restitution{where} is {value:g}, which {what}; expected 0 (plastic) to 1 (elastic).")
