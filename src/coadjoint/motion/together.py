"""Simulation of many robots of one structure, or of one from many states, in one call.

Smooth motions, also under constraints, are integrated together by compiled code (`dormand_prince.py`). What has to be located in time
(events, contacts, dry friction, samples of a control) belongs to one motion, and so does the implicit method of stiff ones: there the
members run one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from ..arrays import Array
from ..constraints.constraint import Constraint
from ..dynamics import forward_dynamics
from ..families import Family
from ..robot.robot import Robot
from .constraint_checks import check_kept
from .constraint_projection import constrained_acceleration, project_state
from .control import Control, traced_control
from .dormand_prince import At, DormandPrince
from .equations_of_motion import SimulationError
from .rollout import TOUCHED
from .staged import outside
from .trajectories import Trajectories
from .trajectory import Trajectory

MEMBERS = 1024
"""The number of members integrated together: enough to make the overhead of calls small, few enough for the cache."""


@dataclass
class Run:
    """The integration of members in progress: states q (N, times, nq), v (N, times, nv), NaN where not computed yet."""

    family: Family
    numbers: list[np.ndarray]
    """None, or the numbers (N, size) that differ."""
    times: np.ndarray
    q: np.ndarray
    v: np.ndarray
    control: Control | np.ndarray | Any | None
    """A function, forces (N, nv), or a controller whose reference must be evaluated outside of compiled steps."""
    constraint: Constraint | None
    friction: bool
    tolerance: float
    report: Callable[[float], None]
    stopped: np.ndarray = field(init=False)
    alone: dict[int, Trajectory] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.stopped = np.full(len(self.q), "", dtype=object)

    # --- together

    def together(self, alone: Callable[[int, float, np.ndarray, np.ndarray], Trajectory]) -> None:
        """Integrate all members by compiled code; alone(k, t, q, v) continues one that has become stiff."""
        rate, settle = self._compiled()
        try:
            for first in range(0, len(self.q), MEMBERS):
                self._block(np.arange(first, min(first + MEMBERS, len(self.q))), rate, settle, alone)
        except KeyboardInterrupt:
            self.stopped[np.isnan(self.q[:, -1, 0]) & (self.stopped == "")] = "interrupted"

    def _compiled(self) -> tuple[Callable[..., np.ndarray], Callable[..., np.ndarray] | None]:
        """The rate of states y = (q, v) and the projection onto the manifold, of members by index."""
        family, constraint, friction, nq, nv = (
            self.family,
            self.constraint,
            self.friction,
            self.family.robot.nq,
            self.family.robot.nv,
        )
        force = traced_control(family, self.control) if callable(self.control) else None

        def accelerated(robot: Robot, numbers: tuple[Array, ...], q: Array, v: Array, third: Array) -> tuple[Array, Array]:
            tau = third if force is None else force(q, v, third, *numbers)
            if constraint is None:
                return robot.rate(q, v), forward_dynamics(robot, q, v, tau, friction=friction)
            return robot.rate(q, v), constrained_acceleration(robot, constraint, q, v, tau, friction)

        third = {"tau": (nv,)} if force is None else {"t": (1,)}
        key = ("rate", force, constraint, friction)
        run = family.compiled(key, accelerated, "rate", q=(nq,), v=(nv,), **third)
        forces = np.zeros((len(self.q), nv)) if self.control is None else self.control

        def rate(rows: np.ndarray, t: np.ndarray, y: np.ndarray) -> np.ndarray:
            given = t[:, None] if force is not None else forces[rows]  # type: ignore[index]
            return np.concatenate(run(y[:, :nq], y[:, nq:], given, *(x[rows] for x in self.numbers)), axis=-1)

        if constraint is None and not _turns(family.robot):
            return rate, None

        def back(robot: Robot, _: tuple[Array, ...], q: Array, v: Array) -> tuple[Array, Array]:
            return (robot.normalize(q), v) if constraint is None else project_state(robot, constraint, q, v)

        returned = family.compiled(("settled", constraint), back, "settled", q=(nq,), v=(nv,))

        def settle(rows: np.ndarray, y: np.ndarray) -> np.ndarray:
            return np.concatenate(returned(y[:, :nq], y[:, nq:], *(x[rows] for x in self.numbers)), axis=-1)

        return rate, settle

    def _block(self, members: np.ndarray, rate: Any, settle: Any, alone: Any) -> None:
        """Some members from the first time to the last."""
        times, nq = self.times, self.family.robot.nq
        start, end = float(times[0]), float(times[-1])
        y = np.concatenate([self.q[members, 0], self.v[members, 0]], axis=-1)
        of_block = lambda rows, t, y: rate(members[rows], t, y)
        back = None if settle is None else lambda rows, y: settle(members[rows], y)
        flow = DormandPrince(of_block, back, start, y, end, self.tolerance)

        def write(rows: np.ndarray, before: np.ndarray, after: np.ndarray, at: At) -> None:
            wanted = np.searchsorted(times, [before, after], side="right")
            counts = wanted[1] - wanted[0]
            if counts.any():
                k = np.repeat(np.arange(len(rows)), counts)
                index = np.concatenate([np.arange(a, b) for a, b in wanted.T])
                states = at(k, times[index])
                if settle is not None:
                    states = settle(members[rows[k]], states)
                self.q[members[rows[k]], index], self.v[members[rows[k]], index] = states[:, :nq], states[:, nq:]

        while len(flow.live):
            flow.advance(write)
            self.report((members[0] + float(((flow.t - start) / (end - start)).sum())) / len(self.q))
            self._leave(flow, members, alone)

    def _leave(self, flow: DormandPrince, members: np.ndarray, alone: Any) -> None:
        """Handle the members that cannot continue together."""
        nq = self.family.robot.nq
        for k in flow.failed:
            self._failed(
                int(members[k]),
                f"the motion cannot be continued beyond t = {flow.t[k]:.6g} of {flow.end:.6g}: steps become too small, or the acceleration "
                "is not finite, as where the mass matrix or the constraint is singular, or a control jumps.",
            )
        for k in flow.stiff:
            m = int(members[k])
            later = self.times > flow.t[k]
            try:
                rest = alone(m, float(flow.t[k]), flow.y[k, :nq], flow.y[k, nq:])
            except SimulationError as error:
                self._failed(m, str(error))
                continue
            self.stopped[m] = rest.stopped
            n = min(int(later.sum()), len(rest.q) - 1)
            first = len(self.times) - int(later.sum())
            self.q[m, first : first + n], self.v[m, first : first + n] = rest.q[1 : n + 1], rest.v[1 : n + 1]
            if rest.stopped == "interrupted":
                raise KeyboardInterrupt
        flow.failed, flow.stiff = [], []

    # --- one by one

    def one_by_one(self, alone: Callable[[int], Trajectory]) -> None:
        """Integrate every member by itself: alone(k) is its motion."""
        for k in range(len(self.q)):
            try:
                motion = alone(k)
            except SimulationError as error:
                self._failed(k, str(error))
                motion = error.motion
            if motion is None:
                continue
            self.alone[k] = motion
            n = int(np.isin(self.times, motion.time).sum())
            self.q[k, :n], self.v[k, :n] = motion.q[:n], motion.v[:n]
            self.stopped[k] = self.stopped[k] or motion.stopped
            self.report((k + 1) / len(self.q))
            if motion.stopped == "interrupted":
                self.stopped[k:] = "interrupted"
                return

    # --- the result

    def _failed(self, k: int, message: str) -> None:
        self.stopped[k], self.errors[k] = "error", message

    def result(self, batch: tuple[int, ...]) -> Trajectories:
        """All motions; an error, which has them, where some could not be continued."""
        family, robot = self.family, self.family.robot
        if self.constraint is not None and not self.alone:
            reached = self.stopped == ""
            last = [x[reached, -1] for x in (self.q, self.v)]
            check_kept(family, self.constraint, last, [x[reached] for x in self.numbers], (int(reached.sum()),))
        tau = self._forces()

        def shaped(x: np.ndarray) -> np.ndarray:
            return x.reshape((*batch, *x.shape[1:]))

        numbers = self.numbers[0] if self.numbers else np.zeros((len(self.q), 0))
        found = Trajectories(
            *(robot, self.times, shaped(self.q), shaped(self.v), shaped(tau), (), self.constraint, shaped(self.stopped), ()),
            numbers=shaped(numbers),
            names=family.names,
            alone=self.alone,
        )
        if self.errors:
            k = min(self.errors)
            which = ", ".join(map(str, np.unravel_index(k, batch)))
            more = f" {len(self.errors)} of {len(self.q)} members failed." if len(self.errors) > 1 else ""
            error = SimulationError(
                f"member {which}: {self.errors[k]}{more} All motions up to there are kept: `motion` of this error."
            )
            error.motion = found
            raise error
        return found

    def _forces(self) -> np.ndarray:
        """τ (N, times, nv) of the control along the motions."""
        tau, control = np.zeros(self.v.shape), cast(Any, self.control)
        if self.alone:
            for k, motion in self.alone.items():
                n = int(np.isin(self.times, motion.time).sum())
                tau[k, :n] = motion.tau[:n]
            tau[np.isnan(self.q[..., 0])] = np.nan
        elif callable(self.control) and self.v.size:
            robot, force = self.family.robot, traced_control(self.family, self.control)
            run = self.family.compiled(
                ("force", force),
                lambda robot, numbers, q, v, t: force(q, v, t, *numbers),
                "force",
                q=(robot.nq,),
                v=(robot.nv,),
                t=(1,),
            )
            tau = run(
                self.q, self.v, np.broadcast_to(self.times[:, None], (*self.q.shape[:2], 1)), *(x[:, None] for x in self.numbers)
            )
        elif outside(control) is not None and self.v.size:
            tau = np.asarray(control.force(self.q, self.v, self.times))
        elif isinstance(self.control, np.ndarray):
            tau = tau + self.control[:, None]
        return tau


def not_reached(shape: tuple[int, int, int]) -> np.ndarray:
    """An array of NaN, filled bit by bit, so that an interrupt is answered between two bits."""
    x = np.empty(shape)
    some = max(1, TOUCHED // max(1, x[:1].nbytes))
    for k in range(0, len(x), some):
        x[k : k + some] = np.nan
    return x


def _turns(robot: Robot) -> bool:
    """True if q has quaternions, which must be normalised after steps."""
    return bool(robot.quaternions)
