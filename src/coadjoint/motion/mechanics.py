"""The equations that an adaptive simulation integrates: forces, constraints, and the contacts that are closed at the moment."""

from __future__ import annotations

import numpy as np

from ..constraints import constrained_dynamics
from ..constraints.complementarity import NOTHING, complementarity
from ..constraints.constraint import Constraint
from ..constraints.impacts import Impact, impact_account
from ..constraints.manifold import check_state
from ..constraints.rank import ConstraintError
from ..dynamics import forward_dynamics, mass_matrix_inverse
from ..errors import CoadjointError
from ..geometry.flow import configuration_rate
from ..robot.robot import Robot
from .control import Control
from .events import Contacts, Event
from .holding import settled

TOUCHING = 1e-9
"""Gaps, in metres, that count as closed at an impact of another row."""
SLOW = 1e-9
"""Relative velocity of a row that counts as rest."""


class _Rows:
    """Rows of a matrix in the place of a constraint, for `impact`."""

    def __init__(self, A: np.ndarray) -> None:
        self.A = A

    def jacobian(self, robot: Robot, q: np.ndarray) -> np.ndarray:
        return self.A


def _solve(G: np.ndarray, b: np.ndarray) -> np.ndarray:
    """G⁻¹ b, rows scaled to about the same length, by powers of two; the shortest where they are redundant."""
    length = np.sqrt(np.diag(G))
    scale = np.exp2(np.round(np.log2(np.where(length > NOTHING, length, 1.0))))
    return np.linalg.lstsq(G / np.outer(scale, scale), b / scale, rcond=1e-11)[0] / scale


class Mechanics:
    """A robot with its control, constraints and contacts; `closed` (booleans) says which contact rows are kept."""

    def __init__(
        self, robot: Robot, control: Control | np.ndarray | None, constraint: Constraint | None, contacts: Contacts, friction: bool
    ) -> None:
        self.robot, self.constraint, self.contacts, self.friction = robot, constraint, contacts, friction
        self.control = control
        self.closed = np.zeros(len(contacts), dtype=bool)

    def force(self, q: np.ndarray, v: np.ndarray, t: float) -> np.ndarray:
        """τ (nv,)."""
        if self.control is None:
            return np.zeros(self.robot.nv)
        if not callable(self.control):
            return self.control
        tau = np.asarray(self.control(self.robot, q, v, t), dtype=float)
        if tau.shape != (self.robot.nv,) or not np.all(np.isfinite(tau)):
            raise CoadjointError(f"control gave {tau!r} at t = {t:g}; expected {self.robot.nv} finite joint forces.")
        return tau

    def motion(self, q: np.ndarray, v: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
        """The acceleration (nv,), and the force of every contact row, 0 of open ones."""
        tau, force = self.force(q, v, t), np.zeros(len(self.contacts))
        if not self.closed.any():
            if self.constraint is None:
                return forward_dynamics(self.robot, q, v, tau, friction=self.friction), force
            return constrained_dynamics(self.robot, self.constraint, q, v, tau, friction=self.friction)[0], force
        a = forward_dynamics(self.robot, q, v, tau, friction=self.friction)
        A, bias = self._rows(q, v, self.closed)
        W = mass_matrix_inverse(self.robot, q)
        lam = _solve(A @ W @ A.T, -(A @ a + bias))
        force[self.closed] = lam[len(lam) - int(self.closed.sum()) :]
        return a + W @ (A.T @ lam), force

    def rate(self, t: float, y: np.ndarray) -> np.ndarray:
        """The rate of the state y = (q, v)."""
        q, v = y[: self.robot.nq], y[self.robot.nq :]
        return np.concatenate([configuration_rate(self.robot, q, v), self.motion(q, v, t)[0]])

    def settle(self, q: np.ndarray, v: np.ndarray, closed: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """States (..., nq), (..., nv) brought back to the constraints and the closed contacts, quaternions to length one."""
        closed = self.closed if closed is None else closed
        if not closed.any():
            if self.constraint is None:
                return self.robot.normalize(q), v
            return settled(self.robot, self.constraint, q, v)
        if q.ndim > 1:
            parts = [self.settle(a, b, closed) for a, b in zip(q, v, strict=True)]
            return np.array([a for a, _ in parts]), np.array([b for _, b in parts])
        q = self.robot.normalize(q)
        for _ in range(3):
            A, W = self._rows(q, v, closed)[0], mass_matrix_inverse(self.robot, q)
            q = self.robot.integrate(q, W @ (A.T @ _solve(A @ W @ A.T, -self._values(q, closed))))
        A, W = self._rows(q, v, closed)[0], mass_matrix_inverse(self.robot, q)
        for _ in range(2):
            v = v + W @ (A.T @ _solve(A @ W @ A.T, -A @ v))
        return q, v

    def changed(self, event: Event, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state that an event makes of q and v; an error for one that is none, or breaks the constraints or contacts."""
        found = event.then(q.copy(), v.copy())  # type: ignore[misc]
        where = f"after the event {event.name!r}, at t = {t:g}"
        try:
            q, v = (np.asarray(x, dtype=float) for x in found)
            good = q.shape == (self.robot.nq,) and v.shape == (self.robot.nv,) and np.isfinite(q).all() and np.isfinite(v).all()
        except (TypeError, ValueError):
            good = False
        if not good:
            raise CoadjointError(
                f"{where}, there is no state: `then` gave {found!r}; expected q ({self.robot.nq},) and v ({self.robot.nv},) of finite "
                "numbers."
            )
        if self.constraint is not None:
            try:
                check_state(self.robot, self.constraint, q, v)
            except ConstraintError as error:
                raise ConstraintError(f"{where}: {error}") from None
        self.check_contacts(q, v, where)
        return self.robot.normalize(q), v

    def check_contacts(self, q: np.ndarray, v: np.ndarray, when: str) -> None:
        """An error where a gap is negative, or closes already while the row approaches; `when` this is."""
        gaps, rates = self.contacts.gaps(q), self.contacts.jacobian(q) @ v
        for name, gap, rate in zip(self.contacts.names, gaps, rates, strict=True):
            if gap < -TOUCHING:
                raise CoadjointError(f"the contact {name!r} is penetrated by {-gap:.3g} m {when}; expected a gap of 0 or more.")
            if gap <= TOUCHING and rate < -SLOW * (1.0 + np.abs(v).max()):
                raise CoadjointError(
                    f"the contact {name!r} touches {when} while v closes it further, at {-rate:.3g} m/s; start before the impact, or "
                    "with the velocity after it, as `coadjoint.impact` gives it."
                )

    def _rows(self, q: np.ndarray, v: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A and Ȧ v of the constraint and, behind, of the chosen contacts."""
        A, bias = self.contacts.jacobian(q)[chosen], self.contacts.bias(q, v)[chosen]
        if self.constraint is None:
            return A, bias
        own = self.constraint.jacobian(self.robot, q), self.constraint.bias(self.robot, q, v)
        return np.concatenate([own[0], A]), np.concatenate([own[1], bias])

    def _values(self, q: np.ndarray, closed: np.ndarray) -> np.ndarray:
        """What is to vanish of the constraint and of closed contacts; 0 for rows on velocities."""
        gaps = self.contacts.gaps(q)[closed]
        if self.constraint is None:
            return gaps
        values, rows = np.zeros(self.constraint.size(self.robot)), self.constraint.holonomic_rows(self.robot)
        if len(rows):
            values[rows] = self.constraint.residual(self.robot, q)
        return np.concatenate([values, gaps])

    def hit(self, q: np.ndarray, v: np.ndarray, touching: np.ndarray, restitution: np.ndarray) -> Impact:
        """The impact of the touching rows (booleans), the constraint kept."""
        A, _ = self._rows(q, v, touching)
        kept = len(A) - int(touching.sum())
        e = np.concatenate([np.zeros(kept), restitution[touching]])
        return impact_account(self.robot, _Rows(A), q, v, e, np.arange(len(A)) >= kept)

    def resting(self, q: np.ndarray, v: np.ndarray, t: float, candidates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which of the candidate rows, which touch at rest, stay closed: 0 ≤ λ ⊥ A a + Ȧ v ≥ 0. Also the accelerations of all rows."""
        a = forward_dynamics(self.robot, q, v, self.force(q, v, t), friction=self.friction)
        A, bias = self._rows(q, v, candidates)
        W = mass_matrix_inverse(self.robot, q)
        kept = len(A) - int(candidates.sum())
        closed = np.zeros(len(self.contacts), dtype=bool)
        if len(A):
            lam = complementarity(A @ W @ A.T, A @ a + bias, np.arange(len(A)) >= kept)
            a = a + W @ (A.T @ lam)
            closed[candidates] = lam[kept:] > 0
        return closed, self.contacts.jacobian(q) @ a + self.contacts.bias(q, v)
