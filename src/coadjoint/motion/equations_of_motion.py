"""The equations that an adaptive simulation integrates: forces, constraints, closed contacts and sticking joints."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..constraints import constrained_dynamics
from ..constraints.complementarity import box_complementarity
from ..constraints.constraint import Constraint
from ..constraints.impacts import Impact, impact_account
from ..constraints.manifold import check_state
from ..constraints.metric_rows import least_squares
from ..constraints.rank import ConstraintError, is_overconstrained
from ..dynamics import forward_dynamics, mass_matrix_inverse
from ..errors import CoadjointError
from ..geometry.flow import configuration_rate
from ..robot.robot import Robot
from .constraint_projection import project_state
from .control import Control
from .events import Contacts, Event
from .friction import friction_coefficients
from .sampled import Sampled

TOUCHING = 1e-9
"""The gap, in metres, that counts as closed at an impact of another row."""
SLOW = 1e-9
"""The relative velocity of a row that counts as rest."""
AMPLIFIED, ROUNDING = 1e5, 1e-10
"""A projection onto the constraint is rejected if it is this many times longer than the violation, and more than rounding."""
FREE = 1e-9
"""Singular values of unit rows below this count as zero: forces along them change no motion."""
STILL = 1e-13
"""Relative velocity of a joint with dry friction that counts as rest."""


class SimulationError(CoadjointError):
    """A motion cannot be continued; the message says when and why. `motion` is the `Trajectory` up to there, None at the start."""

    motion: Any = None
    time: float = np.inf
    """The time at which the control failed, if that is the cause."""


class _Rows:
    """Rows of a matrix in the place of a constraint, for `impact`."""

    def __init__(self, A: np.ndarray) -> None:
        self.A = A

    def jacobian(self, robot: Robot, q: np.ndarray) -> np.ndarray:
        return self.A


def _shared(forces: np.ndarray, free: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """forces + free z (n + m,), those of n contacts and m joints, with the least max |force| / limit of the joints; contacts push."""
    from scipy.optimize import linprog

    n, k = len(forces) - len(limit), free.shape[1]
    contact, joint = free[:n], free[n:] / limit[:, None]
    part = forces[n:] / limit
    above = np.block([[-contact, np.zeros((n, 1))], [joint, -np.ones((len(limit), 1))], [-joint, -np.ones((len(limit), 1))]])
    found = linprog(np.eye(k + 1)[k], above, np.concatenate([forces[:n], -part, part]), bounds=(None, None))
    return forces + free @ found.x[:k] if found.status == 0 else forces


@dataclass(frozen=True)
class Mode:
    """The equations in effect until the next event: the closed contacts, the sticking joints, and the directions in which others
    slip.
    """

    closed: np.ndarray
    """(contact rows,) booleans"""
    sticking: np.ndarray
    """(nv,) booleans"""
    direction: np.ndarray
    """(nv,) the sign of v that dry friction opposes; 0 for joints that stick or have none."""

    @cached_property
    def holds(self) -> bool:
        """True if a contact or a joint is held."""
        return bool(self.closed.any() or self.sticking.any())


class EquationsOfMotion:
    """A robot with its control, constraints, contacts and friction; `mode` has the closed contacts and sticking joints."""

    def __init__(
        self, robot: Robot, control: Control | np.ndarray | None, constraint: Constraint | None, contacts: Contacts, friction: bool
    ) -> None:
        self.robot, self.constraint, self.contacts, self.friction = robot, constraint, contacts, friction
        self.control = control
        self.sampled: Sampled | None = None
        self.overconstrained = constraint is not None and is_overconstrained(robot, constraint)
        self.plain = all(kind.group is None for kind in robot.kinds)
        """True if dq/dt is v."""
        none = np.zeros(robot.nv)
        self.damping: np.ndarray
        self.dry: np.ndarray
        self.damping, self.dry = (np.asarray(x, dtype=float) for x in friction_coefficients(robot)) if friction else (none, none)
        """Viscous coefficients and dry friction (nv,)."""
        self.mode = Mode(np.zeros(len(contacts), dtype=bool), np.zeros(robot.nv, dtype=bool), none)

    def force(self, q: np.ndarray, v: np.ndarray, t: float) -> np.ndarray:
        """τ (nv,) in effect."""
        return self.control_force(q, v, t) if self.sampled is None else self.sampled.force

    def control_force(self, q: np.ndarray, v: np.ndarray, t: float) -> np.ndarray:
        """τ (nv,) of the control at this state."""
        if self.control is None:
            return np.zeros(self.robot.nv)
        if not callable(self.control):
            return self.control
        found = self.control(self.robot, q, v, t)
        try:
            tau = np.asarray(found, dtype=float)
        except (TypeError, ValueError):
            tau = np.zeros(0)
        if tau.shape != (self.robot.nv,) or not np.isfinite(tau).all():
            error = SimulationError(f"control gave {found!r} at t = {t:g}; expected {self.robot.nv} finite joint forces.")
            error.time = t
            raise error
        return tau

    def sample(self, start: float, period: float, delay: float) -> None:
        """Evaluate the control once per period from now on."""
        self.sampled = Sampled(self.control_force, start, period, delay)

    def forces(self, q: np.ndarray, v: np.ndarray, times: np.ndarray) -> np.ndarray:
        """τ (N, nv) along a motion."""
        if self.sampled is not None:
            return self.sampled.at(times)
        if self.control is None:
            return np.zeros(v.shape)
        return np.array([self.force(a, b, float(t)) for a, b, t in zip(q, v, times, strict=True)])

    def _applied(self, q: np.ndarray, v: np.ndarray, t: float, direction: np.ndarray) -> np.ndarray:
        """τ minus viscous friction and the dry friction of slipping joints."""
        tau = self.force(q, v, t)
        return tau - self.damping * v - self.dry * direction if self.friction else tau

    def motion(self, q: np.ndarray, v: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The acceleration (nv,), the force of every contact row, 0 of open ones, and that which holds sticking joints (nv,)."""
        mode = self.mode
        tau, force, hold = self._applied(q, v, t, mode.direction), np.zeros(len(self.contacts)), np.zeros(self.robot.nv)
        if not mode.holds and not self.overconstrained:
            if self.constraint is None:
                return forward_dynamics(self.robot, q, v, tau), force, hold
            return constrained_dynamics(self.robot, self.constraint, q, v, tau)[0], force, hold
        a = forward_dynamics(self.robot, q, v, tau)
        W = mass_matrix_inverse(self.robot, q)
        if self.constraint is None and not mode.closed.any():  # joints that stick are independent
            rows = W[mode.sticking]
            hold[mode.sticking] = held = np.linalg.solve(rows[:, mode.sticking], -a[mode.sticking])
            return np.where(mode.sticking, 0.0, a + held @ rows), force, hold
        A, bias = self._rows(q, v, mode.closed, mode.sticking)
        lam = least_squares(A @ W @ A.T, -(A @ a + bias), self.overconstrained)
        m, n = int(mode.sticking.sum()), int(mode.closed.sum())
        hold[mode.sticking] = lam[len(lam) - m :]
        force[mode.closed] = lam[len(lam) - m - n : len(lam) - m]
        a = a + W @ (A.T @ lam)
        a[mode.sticking] = 0.0
        return a, force, hold

    def holding_forces(self, q: np.ndarray, v: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
        """The force of every contact row and that which holds sticking joints (nv,).

        Constraints and closed contacts may leave open how joints share it, as two that a loop moves together do. It is then shared so
        that the joint nearest to its limit has most to spare: where one slips, no other sharing would have held it.
        """
        mode, m = self.mode, int(self.mode.sticking.sum())
        _, force, hold = self.motion(q, v, t)
        if not m or (self.constraint is None and not mode.closed.any()):
            return force, hold
        A = self._rows(q, v, mode.closed, mode.sticking)[0]
        length = np.linalg.norm(A, axis=1)
        scale = np.where(length > 0, length, 1.0)
        U, s, _ = np.linalg.svd(A / scale[:, None])
        free = U[:, int((s > FREE).sum()) :] / scale[:, None]
        n, parts = len(A) - m - int(mode.closed.sum()), free[len(A) - m :]
        if not free.shape[1] or np.abs(parts).max(initial=0.0) < FREE:
            return force, hold
        forces, limit = np.concatenate([force[mode.closed], hold[mode.sticking]]), self.dry[mode.sticking]
        found = _shared(forces, free[n:], limit)
        force[mode.closed], hold[mode.sticking] = np.split(found, [len(found) - m])
        return force, hold

    def rate(self, t: float, y: np.ndarray) -> np.ndarray:
        """The rate of the state y = (q, v)."""
        n, q, v = self.robot.nq, y[: self.robot.nq], y[self.robot.nq :]
        rate = np.empty(len(y))
        rate[:n] = v if self.plain else configuration_rate(self.robot, q, v)
        if self.constraint is None and not self.mode.holds:
            rate[n:] = forward_dynamics(self.robot, q, v, self._applied(q, v, t, self.mode.direction))
        else:
            rate[n:] = self.motion(q, v, t)[0]
        return rate

    def project(self, q: np.ndarray, v: np.ndarray, mode: Mode | None = None) -> tuple[np.ndarray, np.ndarray]:
        """States (..., nq), (..., nv) projected onto the constraints and the closed contacts of the mode, quaternions normalised.
        States whose projection is much longer than the violation, as near singular configurations, are not changed.
        """
        mode = self.mode if mode is None else mode
        if not mode.closed.any() and self.constraint is None:
            return q if self.plain else self.robot.normalize(q), np.where(mode.sticking, 0.0, v)
        if q.ndim > 1 and (mode.holds or self.overconstrained):
            parts = [self.project(a, b, mode) for a, b in zip(q, v, strict=True)]
            return np.array([a for a, _ in parts]), np.array([b for _, b in parts])
        q = self.robot.normalize(q)
        there = self._along_metric(q, v, mode)
        if self.constraint is None:
            return there
        values = self.constraint.residual(self.robot, q)
        gap = np.zeros(q.shape[:-1]) if values is None else np.abs(values).max(-1, initial=0.0)
        slip = np.abs(np.einsum("...ij,...j->...i", self.constraint.jacobian(self.robot, q), v)).max(-1, initial=0.0)
        speed = np.abs(v).max(-1)
        far = np.abs(self.robot.difference(q, there[0])).max(-1) > AMPLIFIED * gap + ROUNDING
        wild = np.abs(v - there[1]).max(-1) > AMPLIFIED * (slip + gap * speed) + ROUNDING * (1.0 + speed)
        back = (far | wild | ~np.isfinite(there[0]).all(-1) | ~np.isfinite(there[1]).all(-1))[..., None]
        return np.where(back, q, there[0]), np.where(back, np.where(mode.sticking, 0.0, v), there[1])

    def _along_metric(self, q: np.ndarray, v: np.ndarray, mode: Mode) -> tuple[np.ndarray, np.ndarray]:
        """q, v projected in the metric onto the constraints and the closed contacts of the mode."""
        if self.constraint is not None and not mode.holds and not self.overconstrained:
            return project_state(self.robot, self.constraint, q, v)
        for _ in range(3):
            A, W = self._rows(q, v, mode.closed, mode.sticking)[0], mass_matrix_inverse(self.robot, q)
            q = self.robot.integrate(q, W @ (A.T @ least_squares(A @ W @ A.T, -self._values(q, mode), self.overconstrained)))
        A, W = self._rows(q, v, mode.closed, mode.sticking)[0], mass_matrix_inverse(self.robot, q)
        for _ in range(2):
            v = v + W @ (A.T @ least_squares(A @ W @ A.T, -A @ v, self.overconstrained))
        return q, np.where(mode.sticking, 0.0, v)

    def changed(self, event: Event, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state to which an event changes q and v; an error if it is invalid, or violates constraints or contacts."""
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
        """Raise an error if a gap is negative, or closed while the row approaches; `when` is part of the message."""
        gaps, rates = self.contacts.gaps(q), self.contacts.jacobian(q) @ v
        for name, gap, rate in zip(self.contacts.names, gaps, rates, strict=True):
            if gap < -TOUCHING:
                raise CoadjointError(f"the contact {name!r} is penetrated by {-gap:.3g} m {when}; expected a gap of 0 or more.")
            if gap <= TOUCHING and rate < -SLOW * (1.0 + np.abs(v).max()):
                raise CoadjointError(
                    f"the contact {name!r} touches {when} while v closes it further, at {-rate:.3g} m/s; start before the impact, or "
                    "with the velocity after it, as `coadjoint.impact` gives it."
                )

    def _rows(
        self, q: np.ndarray, v: np.ndarray, contacts: np.ndarray, joints: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """A and Ȧ v of the constraint, then of the chosen contacts and of joints at rest."""
        A, bias = [self.contacts.jacobian(q)[contacts]], [self.contacts.bias(q, v)[contacts]]
        if self.constraint is not None:
            A.insert(0, self.constraint.jacobian(self.robot, q))
            bias.insert(0, self.constraint.bias(self.robot, q, v))
        if joints is not None:
            A.append(np.eye(self.robot.nv)[joints])
            bias.append(np.zeros(len(A[-1])))
        return np.concatenate(A), np.concatenate(bias)

    def _values(self, q: np.ndarray, mode: Mode) -> np.ndarray:
        """The values that must vanish, of the constraint and of the closed contacts; 0 for rows on velocities."""
        gaps = np.concatenate([self.contacts.gaps(q)[mode.closed], np.zeros(int(mode.sticking.sum()))])
        if self.constraint is None:
            return gaps
        values, rows = np.zeros(self.constraint.size(self.robot)), self.constraint.holonomic_rows(self.robot)
        if len(rows):
            values[rows] = self.constraint.residual(self.robot, q)
        return np.concatenate([values, gaps])

    def hit(self, q: np.ndarray, v: np.ndarray, touching: np.ndarray, restitution: np.ndarray) -> Impact:
        """The impact of the touching rows (booleans), the constraint kept. Friction, a bounded force, has no part in impulses."""
        A, _ = self._rows(q, v, touching)
        kept = len(A) - int(touching.sum())
        e = np.concatenate([np.zeros(kept), restitution[touching]])
        return impact_account(self.robot, _Rows(A), q, v, e, np.arange(len(A)) >= kept)

    def decide(
        self, q: np.ndarray, v: np.ndarray, t: float, touching: np.ndarray, loose: np.ndarray | None = None
    ) -> tuple[Mode, np.ndarray]:
        """The mode in which the motion continues, and the accelerations of all contact rows.

        Of the contacts that touch at rest (booleans) those stay closed that push, 0 ≤ λ ⊥ A a + Ȧ v ≥ 0; of the joints at rest those
        stick that a force within ±μ holds, and others start to slip against it. `loose` (nv,): the signs in which joints at rest begin
        to slip whatever the balance of the moment says, which is even where one breaks loose; 0 for others.
        """
        robot = self.robot
        loose = np.zeros(robot.nv) if loose is None else loose
        still = (self.dry > 0) & (np.abs(v) <= STILL * (1.0 + np.abs(v).max())) & (loose == 0)
        direction = np.where(still | (self.dry == 0), 0.0, np.where(loose != 0, loose, np.sign(v)))
        a = forward_dynamics(robot, q, v, self._applied(q, v, t, direction))
        A, bias = self._rows(q, v, touching, still)
        W = mass_matrix_inverse(robot, q)
        pushing, sticking = np.zeros(len(self.contacts), dtype=bool), still.copy()
        if len(A):
            m, n = int(still.sum()), int(touching.sum())
            kept = len(A) - m - n
            limit = np.concatenate([np.full(len(A) - m, np.inf), self.dry[still]])
            lam = box_complementarity(
                A @ W @ A.T, A @ a + bias, np.concatenate([limit[:kept] * -1.0, np.zeros(n), -self.dry[still]]), limit
            )
            a = a + W @ (A.T @ lam)
            pushing[touching] = lam[kept : kept + n] > 0
            slips = (np.abs(lam[kept + n :]) >= self.dry[still]) & (a[still] * lam[kept + n :] < 0)
            sticking[still] = ~slips
            direction[np.flatnonzero(still)[slips]] = -np.sign(lam[kept + n :][slips])
        if np.any(loose * a < 0):  # what was to break loose would turn back at once: the balance decides
            return self.decide(q, v, t, touching, np.where(loose * a < 0, 0.0, loose))
        return Mode(pushing, sticking, direction), self.contacts.jacobian(q) @ a + self.contacts.bias(q, v)
