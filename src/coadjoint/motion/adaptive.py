"""Adaptive simulation: Dormand and Prince's method of order 8 on the configuration manifold, with events, impacts and rest.

The state (q, v) is integrated as it stands, dq/dt = E(q) v, whose solutions stay on the manifold; every step ends with a return to it
and to the constraints, which removes what the local error took away. Between steps the method's interpolant of order 7 gives the state
at any time; there the times of events are found, to rounding. Where stability limits the steps, as under a stiff control, an implicit
method (`radau.py`) takes over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from .dense import Dense
from .equations_of_motion import SLOW, TOUCHING, EquationsOfMotion, SimulationError
from .events import Event
from .trajectory import EventRecord, Piece

SAMPLES = 8
"""Points of a step at which events are sought; between them also at extrema of a signal."""
NOISE = 1e-14
"""Gaps, and forces of closed contacts, that are negative by less than this are rounding."""
CLOSE = 1e-6
"""The part of a motion up to which it is continued before a time at which its control fails."""
ZENO = 1e-6
"""A sequence of bounces that becomes shorter than this, in seconds, ends: further bounces would be lower than a picometre."""

MOST_STEPS = 1e9
"""The most steps that one motion may be expected to take: each is kept, in some kilobytes."""
STEPS = 25
"""The number of steps between tests for stiffness."""
STABLE = 4.5
"""Steps times the largest eigenvalue from which on it is: stability, at about 6.4, and not precision limits them; else it is below 3."""
LONG = 200
"""The least number of remaining steps for which a change of the method pays."""
MARGIN = 1e-12
"""Part of its dry friction by which a joint may be overloaded and still stick: rounding."""


def _samples(
    at: Callable[[float], np.ndarray], start: float, stop: float, before: np.ndarray
) -> Iterator[tuple[float, np.ndarray]]:
    """Times and signals along a step: evenly, and where a signal that turns back between has been on the other side of zero.

    `before` has the signals at the start, 0 of those that have just passed.
    """
    from scipy.optimize import minimize_scalar

    times = np.linspace(start, stop, SAMPLES + 1)
    little = 1e-3 * (times[1] - start)
    slope = at(start + little) - at(start)
    for left, right in pairwise(times):
        after = at(right)
        slope_after = at(right + little) - after if right < stop else after - at(right - little)
        back = (before * after > 0) & (before * slope < 0) & (after * slope_after > 0)
        again = (before == 0) & (slope * after < 0)
        turns = []
        for i in np.flatnonzero(back | again):
            sign = np.sign(after[i])
            away = lambda t, i=i, sign=sign: sign * at(t)[i]
            deepest = minimize_scalar(away, bounds=(left, right), method="bounded", options={"xatol": 1e-6 * little})
            if deepest.fun < -NOISE:
                turns.append(float(deepest.x))
        yield from ((t, at(t)) for t in sorted(turns))
        yield right, after
        before, slope = after, slope_after


class Flow:
    """A simulation in progress: the present state, the dense output and the events so far."""

    def __init__(
        self,
        mechanics: EquationsOfMotion,
        t: float,
        q: np.ndarray,
        v: np.ndarray,
        events: Sequence[Event],
        tolerance: float,
        stiff: bool = False,
    ) -> None:
        self.stiff, self.steps = stiff, 0
        self.mechanics, self.events, self.tolerance = mechanics, events, tolerance
        self.robot = mechanics.robot
        self.t, self.q, self.v = t, q, v
        self.pieces: list[Piece] = []
        self.happenings: list[EventRecord] = []
        self.hop = self.held = self.step = np.inf
        self.dry = np.flatnonzero(mechanics.dry)
        """The velocities with dry friction."""
        self._sample()
        self._decide(mechanics.contacts.gaps(q) <= TOUCHING)

    # --- what happens at a moment

    def _happened(self, kind: str, name: str, impact: Any = None, time: float | None = None) -> None:
        self.happenings.append(EventRecord(self.t if time is None else time, kind, name, self.q.copy(), self.v.copy(), impact))

    def _decide(self, touching: np.ndarray, loose: np.ndarray | None = None) -> None:
        """The touching rows that stay closed, the joints that stick, and the time after which contacts that open can touch again."""
        mechanics, contacts = self.mechanics, self.mechanics.contacts
        self.hop = np.inf
        if not len(contacts) and not mechanics.dry.any():
            return
        rate = contacts.jacobian(self.q) @ self.v
        at_rest = touching & (np.abs(rate) <= SLOW * (1.0 + np.abs(self.v).max()))
        before = mechanics.mode
        after, curve = mechanics.decide(self.q, self.v, self.t, at_rest, loose)
        mechanics.mode = after
        for kind, names, rows in (
            ("contact", contacts.names, after.closed & ~before.closed),
            ("release", contacts.names, before.closed & ~after.closed),
            ("stick", self.robot.v_names, after.sticking & ~before.sticking),
            ("slip", self.robot.v_names, before.sticking & ~after.sticking),
        ):
            for k in np.flatnonzero(rows):
                self._happened(kind, names[k])
        self.q, self.v = mechanics.project(self.q, self.v)
        soon = touching & ~after.closed & (rate > 0) & (curve < 0)
        if soon.any():
            self.hop = float(np.min(2 * rate[soon] / -curve[soon]))

    def _impact(self, rows: np.ndarray) -> None:
        """The impact of some rows and of all others that touch as well."""
        mechanics, contacts = self.mechanics, self.mechanics.contacts
        closed = mechanics.mode.closed
        touching = rows | closed | (contacts.gaps(self.q) <= TOUCHING)
        account = mechanics.hit(self.q, self.v, touching, contacts.restitution)
        self.v = account.v_after
        names = ", ".join(contacts.names[k] for k in np.flatnonzero(rows))
        self._happened("impact", names, account)
        mode, curve = mechanics.decide(self.q, self.v, self.t, closed & touching)
        rate, e = contacts.jacobian(self.q) @ self.v, contacts.restitution
        # Bounces end at their limit: each lasts 2 u / |curve|, the next is e times as long.
        falling = touching & (rate > 0) & (curve < 0) & (e < 1)
        bounce = np.full(len(contacts), np.inf)
        bounce[falling] = 2 * rate[falling] / -curve[falling]
        over = bounce < ZENO
        if over.any():
            self.q, self.v = mechanics.project(self.q, self.v, replace(mode, closed=closed | over))
            for k in np.flatnonzero(over & (rate > SLOW * (1.0 + np.abs(self.v).max()) * (e == 0))):
                self._happened("rest", contacts.names[k], time=self.t + float(bounce[k] / (1 - e[k])))
        self._decide(touching)

    # --- on to the next

    def advance(self, end: float, report: Callable[[float], None]) -> str:
        """Integrate to the time `end`, or to a terminal event, whose name is returned.

        Where a step asks the control at a time for which it has no forces, the motion goes on to just before that time.
        """
        near, failure = CLOSE * (end - self.t), None
        while self.t < end:
            until = end if failure is None else 0.5 * (self.t + failure.time)
            try:
                name = self._smooth(min(until, self._sample()), end, report)
            except SimulationError as error:
                if error.time == np.inf:
                    raise
                failure = error if failure is None or error.time < failure.time else failure
            else:
                if name:
                    return name
            if failure is not None and failure.time - self.t <= near:
                raise failure
        return ""

    def _sample(self) -> float:
        """Take the sample of the control that is due; the time up to which its forces are held."""
        if self.mechanics.sampled is None:
            return np.inf
        if not (self.mechanics.sampled.acted and self.t < self.held):
            self.held = self.mechanics.sampled.update(self.q, self.v, self.t)
            self._decide(self.mechanics.contacts.gaps(self.q) <= TOUCHING)
        return self.held

    def _solver(self, end: float) -> Any:
        """The method of order 8, or the implicit one for stiff motions, from the present state on."""
        from scipy.integrate import DOP853

        from .radau import Radau

        y = np.concatenate([self.q, self.v])
        with np.errstate(over="ignore", invalid="ignore"):
            self._check_finite(self.mechanics.rate(self.t, y), end)
        step = min(end - self.t, 0.5 * self.hop, self.step) if min(self.hop, self.step) < np.inf else None
        method = Radau if self.stiff else DOP853
        return method(self.mechanics.rate, self.t, y, end, first_step=step, rtol=self.tolerance, atol=self.tolerance)

    def _check_finite(self, rate: np.ndarray, end: float) -> None:
        if not np.isfinite(rate).all():
            raise SimulationError(
                f"the motion cannot be continued beyond t = {self.t:.6g} of {end:.6g}: the acceleration is not finite. The state is "
                f"singular, or velocities (up to {np.abs(self.v).max():.3g}) or forces are too large."
            )

    def _smooth(self, until: float, end: float, report: Callable[[float], None]) -> str:
        """Integrate to the next event, and handle it."""
        solver = self._solver(until)
        before, armed = self._signals(self.t, self.q, self.v), False
        while solver.status == "running":
            report(self.t)
            with np.errstate(over="ignore", invalid="ignore"):
                failure = solver.step()
            if solver.status == "failed" or not np.all(np.isfinite(solver.y)):
                why = "steps become too small" if failure else "the state is no longer finite"
                raise SimulationError(
                    f"the motion cannot be continued beyond t = {self.t:.6g} of {end:.6g}: {why}, as where the mass matrix or the "
                    "constraint is singular, or a control jumps (one that is sampled has a `period`)."
                )
            sol, start = solver.dense_output(), self.t
            found = self._first(sol, start, solver.t, before, armed) if len(before) else None
            if found is not None:
                time, crossed = found
                self._keep(sol, start, time)
                self.t, self.step = time, np.inf
                self.q, self.v = self.mechanics.project(*self._split(sol(time)))
                return self._fire(crossed)
            self._keep(sol, start, solver.t)
            self.t = float(solver.t)
            self.q, self.v = self.mechanics.project(*self._split(solver.y))
            self.steps += 1
            if solver.status != "running":
                break
            solver.y = np.concatenate([self.q, self.v])
            solver.f = self.mechanics.rate(self.t, solver.y)
            if self.steps % STEPS == 0:
                self._check_length(end)
                if self._is_stiff(solver, end):
                    self.stiff = True
                    break
            if len(before):
                before, armed = self._signals(self.t, self.q, self.v), True
        self.step = (
            max(float(solver.h_abs), float(solver.step_size)) if self.stiff or self.mechanics.sampled is not None else np.inf
        )
        return ""

    def _check_length(self, end: float) -> None:
        """Raise an error if the motion would take more steps than memory has room for."""
        start = self.pieces[0][0]
        expected = self.steps * ((end - start) / (self.t - start))
        if expected > MOST_STEPS:
            raise SimulationError(
                f"the motion until t = {end:.6g} would take about {expected:.2g} steps: {self.steps} led to t = {self.t:.6g}. Simulate a "
                "shorter time."
            )

    def _is_stiff(self, solver: Any, end: float) -> bool:
        """True if stability limits the steps, and many are still to come."""
        from .radau import jacobian

        if self.stiff or end - self.t < LONG * solver.step_size:
            return False
        J = jacobian(self.mechanics.rate, self.t, solver.y, solver.f)
        return bool(np.isfinite(J).all() and np.abs(np.linalg.eigvals(J)).max() * solver.step_size > STABLE)

    def _split(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return y[: self.robot.nq], y[self.robot.nq :]

    def _keep(self, sol: Any, start: float, stop: float) -> None:
        """Store a piece of dense output, projected onto the constraints."""
        self.pieces.append((start, stop, Dense(self.mechanics, sol)))

    def _signals(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The signals whose zeros are located: the events' functions; the gaps of open contacts and the forces of closed ones; of
        joints with dry friction
        the velocity, as long as they slip, and what is left of the friction, as long as they stick."""
        mechanics, mode = self.mechanics, self.mechanics.mode
        signals = [np.array([e.value(q, v, t) for e in self.events])]
        if len(mode.closed) or len(self.dry):
            force, hold = mechanics.holding_forces(q, v, t) if mode.holds else (0.0, np.zeros(self.robot.nv))
            left = (1.0 + MARGIN) * mechanics.dry - np.abs(hold)
            signals.append(np.where(mode.closed, force, mechanics.contacts.gaps(q)))
            signals.append(np.where(mode.sticking, left, mode.direction * v)[self.dry])
        return np.concatenate(signals)

    def _first(self, sol: Any, start: float, stop: float, before: np.ndarray, armed: bool) -> tuple[float, np.ndarray] | None:
        """The first time at which a signal passes zero, and which do."""
        from scipy.optimize import brentq

        k = len(self.events)

        def at(t: float) -> np.ndarray:
            return self._signals(t, *self._split(sol(t)))

        if not armed:  # what has just happened is not to happen again: a gap that is closed at the start must open first
            before = before.copy()
            before[k:] = np.where(before[k:] <= TOUCHING, np.finfo(float).tiny, before[k:])
            just = np.abs(before[:k]) <= 1e-10
            before[:k] = np.where(just, 0.0, before[:k])
        if self._all_far(at, start, stop, before):
            return None
        left = start
        for right, after in _samples(at, start, stop, before):
            crossed = (before > -NOISE) & (after <= -NOISE)
            crossed[:k] = [event.crossed(x, y) for event, x, y in zip(self.events, before[:k], after[:k], strict=True)]
            if crossed.any():
                found: dict[int, float] = {}
                for i in map(int, np.flatnonzero(crossed)):
                    low = at(left)[i]
                    touching = i >= k and low <= 0  # a gap that was closed and falls further: there it leaves what is rounding
                    level = NOISE if touching else 0.0
                    if low + level == 0 or np.sign(low + level) == np.sign(after[i] + level):
                        found[i] = left if left > start else right
                    else:
                        signal = lambda t, i=i, level=level: at(t)[i] + level
                        found[i] = brentq(signal, left, right, xtol=1e-15 * max(1.0, abs(right)), rtol=1e-15)
                first = min(found.values())
                near = 1e-12 * max(1.0, abs(first))
                return float(first), np.array([i in found and found[i] <= first + near for i in range(len(before))])
            left, before = right, after
        return None

    def _all_far(self, at: Callable[[float], np.ndarray], start: float, stop: float, before: np.ndarray) -> bool:
        """True if signals that go smoothly with the state, of friction and of closed contacts, stay far from zero along a short step."""
        if self.events or not self.mechanics.mode.closed.all():
            return False
        middle = at(0.5 * (start + stop))
        after = at(stop)
        swing = np.maximum(np.abs(middle - before), np.abs(after - middle))
        return bool(np.all(np.minimum(np.minimum(before, middle), after) > 4 * swing))

    def _fire(self, crossed: np.ndarray) -> str:
        """Handle the events at the present time."""
        k = len(self.events)
        for event, happens in zip(self.events, crossed[:k], strict=True):
            if not happens:
                continue
            if event.then is not None:
                self.q, self.v = self.mechanics.changed(event, self.t, self.q, self.v)
            self._happened("event", event.name)
            if event.terminal:
                return event.name
        mode, contacts = self.mechanics.mode, self.mechanics.contacts
        rows, joints = np.split(crossed[k:], [len(contacts)])
        loose = np.zeros(self.robot.nv)
        for i in self.dry[joints]:
            if mode.sticking[i]:  # it breaks loose, against the force that held it
                loose[i] = -np.sign(self.mechanics.holding_forces(self.q, self.v, self.t)[1][i])
            else:
                self.v[i] = 0.0
        hit = rows & ~mode.closed
        if hit.any():
            self._impact(hit)
        else:
            weak = rows & mode.closed  # these would pull
            self._decide((contacts.gaps(self.q) <= TOUCHING) & ~weak, loose)
        return ""
