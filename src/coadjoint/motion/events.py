"""Events, where a function of the state crosses zero, and contacts, where a gap closes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_flag, numbers
from ..constraints.constraint import Constraint, checked
from ..constraints.impacts import check_restitution
from ..errors import CoadjointError
from ..robot.robot import Robot


@dataclass(frozen=True)
class Event:
    """The time at which when(q, v, t) crosses zero.

    direction: 1 for upwards only, -1 for downwards only, 0 for both. The motion ends there if `terminal`; otherwise it continues,
    from the state that then(q, v) -> (q, v) returns, if given.
    """

    when: Callable[[np.ndarray, np.ndarray, float], Any]
    direction: int = 0
    terminal: bool = False
    then: Callable[[np.ndarray, np.ndarray], tuple[Any, Any]] | None = None
    name: str = "event"

    def __post_init__(self) -> None:
        if not callable(self.when):
            raise CoadjointError(f"the event {self.name!r} has when = {self.when!r}; expected a function of q, v and t.")
        if not isinstance(self.direction, int | float | np.number) or self.direction not in (-1, 0, 1):
            raise CoadjointError(f"the event {self.name!r} has direction {self.direction!r}; expected 1, -1 or 0.")
        if self.then is not None and not callable(self.then):
            raise CoadjointError(f"the event {self.name!r} has then = {self.then!r}; expected a function of q and v.")
        a_flag(self.terminal, f"terminal of the event {self.name!r}")

    def value(self, q: np.ndarray, v: np.ndarray, t: float) -> float:
        """when(q, v, t); an error if it is not a number."""
        found = self.when(q, v, t)
        try:
            value = np.asarray(found, dtype=float)
        except (TypeError, ValueError):
            value = np.zeros(0)
        if value.size != 1 or not np.isfinite(value).all():
            raise CoadjointError(
                f"the event {self.name!r} gave {found!r} at t = {t:g}; expected one finite number, which passes zero."
            )
        return float(value.item())

    def crossed(self, before: float, after: float) -> bool:
        """True if the event lies between two values of the function."""
        up, down = before < 0 <= after, before > 0 >= after
        return up if self.direction > 0 else down if self.direction < 0 else up or down


@dataclass(frozen=True)
class Contact:
    """The values φ(q) of a holonomic constraint are gaps, φ ≥ 0: where one closes there is an impact, and then rest or rebound.

    restitution: 0 to 1. Contact is without friction: it pushes along A, and never pulls.
    """

    constraint: Constraint
    restitution: float = 0.0
    name: str = ""

    def __post_init__(self) -> None:
        checked(self.constraint)
        numbers(self.restitution, "restitution")
        e = np.asarray(self.restitution)
        if e.ndim or e.dtype.kind not in "fiu":
            raise CoadjointError(f"restitution is {self.restitution!r}; expected one number for a contact.")
        check_restitution(e.astype(float))


def joint_stops(robot: Robot, restitution: float) -> list[Contact]:
    """Contacts at all position limits: a stop at each end of a joint. What follows another joint stops that one.

    An error for limits of joints with several freedoms.
    """
    stops = []
    for i, link in enumerate(robot.links):
        joint = link.joint
        limits = [
            (side, sign, float(x[0])) for side, sign, x in (("lower", 1.0, joint.lower), ("upper", -1.0, joint.upper)) if len(x)
        ]
        if not np.isfinite(np.concatenate([joint.lower, joint.upper])).any():
            continue
        if robot.kind(i).nv != 1 or robot.kind(i).nq != 1:
            raise CoadjointError(
                f"joint {joint.name!r} is {joint.kind} and has position limits; stops are for joints with one freedom. Take a `Contact`."
            )
        leader, ratio, offset = robot.mimics.get(i, (i, 1.0, 0.0))
        for side, sign, limit in limits:
            if np.isfinite(limit) and ratio:
                gap = Constraint.gear(robot, {robot.links[leader].joint.name: sign * ratio}, sign * (limit - offset))
                stops.append(Contact(gap, restitution, f"{side} stop of {joint.name}"))
    return stops


class Contacts:
    """All contacts of a motion, row by row."""

    def __init__(self, robot: Robot, contacts: list[Contact]) -> None:
        self.robot, self.names = robot, [name for c in contacts for name in _names(robot, c)]
        self.restitution = np.array([c.restitution for c in contacts for _ in _names(robot, c)], dtype=float)
        self.whole = Constraint.all(c.constraint for c in contacts).frozen(robot) if contacts else None

    def __len__(self) -> int:
        return len(self.names)

    def gaps(self, q: np.ndarray) -> np.ndarray:
        """φ (..., rows)."""
        return np.zeros((*q.shape[:-1], 0)) if self.whole is None else np.asarray(self.whole.residual(self.robot, q))

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        """A (..., rows, nv)."""
        return np.zeros((0, self.robot.nv)) if self.whole is None else np.asarray(self.whole.jacobian(self.robot, q))

    def bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Ȧ v (..., rows)."""
        return np.zeros(0) if self.whole is None else np.asarray(self.whole.bias(self.robot, q, v))


def _names(robot: Robot, contact: Contact) -> list[str]:
    """A name for every row; an error for rows without a gap."""
    own = contact.constraint.names(robot)
    if len(contact.constraint.holonomic_rows(robot)) < len(own):
        raise CoadjointError(
            f"the contact {contact.name or own[0]!r} has no gap: some of its rows hold velocities, or leave open where. Take a holonomic "
            "constraint, as Constraint.point(robot, frame, 'z', at=0)."
        )
    return [contact.name or x for x in own]
