"""Adaptive simulation: Dormand and Prince's method of order 8 on the configuration manifold, with events, impacts and rest.

The state (q, v) is integrated as it stands, dq/dt = E(q) v, whose solutions stay on the manifold; every step ends with a return to it
and to the constraints, which removes what the local error took away. Between steps the method's interpolant of order 7 gives the state
at any time; there the times of events are found, to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import CoadjointError
from .dense import Dense
from .events import Event
from .mechanics import SLOW, TOUCHING, Mechanics
from .trajectory import Happening, Piece

SAMPLES = 8
"""Points of a step between which events are looked for; between them, where a signal turns back."""
NOISE = 1e-14
"""Gaps, and forces of closed contacts, below zero by less than this are rounding."""
ZENO = 1e-6
"""Bounces that last shorter than this, in seconds, and become ever shorter are over: they rise no more than a picometre."""


class SimulationError(CoadjointError):
    """A motion cannot be continued; the message says when and why."""


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
            away = lambda t, i=i, sign=sign: sign * at(t)[i]  # noqa: E731
            deepest = minimize_scalar(away, bounds=(left, right), method="bounded", options={"xatol": 1e-6 * little})
            if deepest.fun < -NOISE:
                turns.append(float(deepest.x))
        yield from ((t, at(t)) for t in sorted(turns))
        yield right, after
        before, slope = after, slope_after


class Flow:
    """A motion on its way: the present state, the pieces and the happenings so far."""

    def __init__(
        self, mechanics: Mechanics, t: float, q: np.ndarray, v: np.ndarray, events: Sequence[Event], tolerance: float
    ) -> None:
        self.mechanics, self.events, self.tolerance = mechanics, events, tolerance
        self.robot = mechanics.robot
        self.t, self.q, self.v = t, q, v
        self.pieces: list[Piece] = []
        self.happenings: list[Happening] = []
        self.hop = np.inf
        gaps = mechanics.contacts.gaps(q)
        self._settle_contacts(gaps <= TOUCHING)

    # --- what happens at a moment

    def _happened(self, kind: str, name: str, impact: Any = None, time: float | None = None) -> None:
        self.happenings.append(Happening(self.t if time is None else time, kind, name, self.q.copy(), self.v.copy(), impact))

    def _settle_contacts(self, touching: np.ndarray) -> None:
        """Which touching rows stay closed, and how soon the others can touch again."""
        mechanics, contacts = self.mechanics, self.mechanics.contacts
        self.hop = np.inf
        if not len(contacts):
            return
        rate = contacts.jacobian(self.q) @ self.v
        still = touching & (np.abs(rate) <= SLOW * (1.0 + np.abs(self.v).max()))
        before = mechanics.closed
        mechanics.closed, curve = mechanics.resting(self.q, self.v, self.t, still)
        for k in np.flatnonzero(mechanics.closed & ~before):
            self._happened("contact", contacts.names[k])
        for k in np.flatnonzero(before & ~mechanics.closed):
            self._happened("release", contacts.names[k])
        self.q, self.v = mechanics.settle(self.q, self.v)
        soon = touching & ~mechanics.closed & (rate > 0) & (curve < 0)
        if soon.any():
            self.hop = float(np.min(2 * rate[soon] / -curve[soon]))

    def _impact(self, rows: np.ndarray) -> None:
        """The impact of some rows and of all others that touch as well."""
        mechanics, contacts = self.mechanics, self.mechanics.contacts
        touching = rows | mechanics.closed | (contacts.gaps(self.q) <= TOUCHING)
        account = mechanics.hit(self.q, self.v, touching, contacts.restitution)
        self.v = account.v_after
        names = ", ".join(contacts.names[k] for k in np.flatnonzero(rows))
        self._happened("impact", names, account)
        _, curve = mechanics.resting(self.q, self.v, self.t, mechanics.closed & touching)
        rate, e = contacts.jacobian(self.q) @ self.v, contacts.restitution
        # Bounces end at their limit: each lasts 2 u / |curve|, the next is e times as long.
        falling = touching & (rate > 0) & (curve < 0) & (e < 1)
        bounce = np.full(len(contacts), np.inf)
        bounce[falling] = 2 * rate[falling] / -curve[falling]
        over = bounce < ZENO
        if over.any():
            self.q, self.v = mechanics.settle(self.q, self.v, mechanics.closed | over)
            for k in np.flatnonzero(over & (rate > SLOW * (1.0 + np.abs(self.v).max()) * (e == 0))):
                self._happened("rest", contacts.names[k], time=self.t + float(bounce[k] / (1 - e[k])))
        self._settle_contacts(touching)

    # --- on to the next

    def advance(self, end: float, report: Callable[[float], None]) -> str:
        """Go on to the time `end`, or to a terminal event, whose name is returned."""
        while self.t < end:
            name = self._smooth(end, report)
            if name:
                return name
        return ""

    def _smooth(self, end: float, report: Callable[[float], None]) -> str:
        """Integrate until something happens, and let it."""
        from scipy.integrate import DOP853

        n = self.robot.nq
        first = min(end - self.t, 0.5 * self.hop) if np.isfinite(self.hop) else None
        solver = DOP853(
            self.mechanics.rate,
            self.t,
            np.concatenate([self.q, self.v]),
            end,
            first_step=first,
            rtol=self.tolerance,
            atol=self.tolerance,
        )
        before, armed = self._signals(self.t, self.q, self.v), False
        while solver.status == "running":
            report(self.t)
            with np.errstate(over="ignore", invalid="ignore"):
                failure = solver.step()
            if solver.status == "failed" or not np.all(np.isfinite(solver.y)):
                why = "steps become too small" if failure else "the state is no longer finite"
                raise SimulationError(
                    f"the motion cannot be continued beyond t = {self.t:.6g} of {end:.6g}: {why}, as where the mass matrix or the "
                    "constraint is singular. Ask for earlier times, or start elsewhere."
                )
            sol, start = solver.dense_output(), self.t
            found = self._first(sol, start, solver.t, before, armed) if len(before) else None
            if found is not None:
                time, crossed = found
                self._keep(sol, start, time)
                self.t = time
                self.q, self.v = self.mechanics.settle(*np.split(sol(time), [n]))
                return self._let(crossed)
            self._keep(sol, start, solver.t)
            self.t = float(solver.t)
            self.q, self.v = self.mechanics.settle(*np.split(solver.y, [n]))
            solver.y = np.concatenate([self.q, self.v])
            solver.f = self.mechanics.rate(self.t, solver.y)
            if len(before):
                before, armed = self._signals(self.t, self.q, self.v), True
        return ""

    def _keep(self, sol: Any, start: float, stop: float) -> None:
        """A piece of dense output, on the constraints."""
        self.pieces.append((start, stop, Dense(self.mechanics, sol)))

    def _signals(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """What is watched: the events' functions, the gaps of open contacts and the forces of closed ones."""
        events = [e.value(q, v, t) for e in self.events]
        closed = self.mechanics.closed
        if not len(closed):
            return np.array(events)
        force = self.mechanics.motion(q, v, t)[1] if closed.any() else 0.0
        return np.concatenate([events, np.where(closed, force, self.mechanics.contacts.gaps(q))])

    def _first(self, sol: Any, start: float, stop: float, before: np.ndarray, armed: bool) -> tuple[float, np.ndarray] | None:
        """The first time at which a signal passes zero, and which do."""
        from scipy.optimize import brentq

        n, k = self.robot.nq, len(self.events)
        at = lambda t: self._signals(t, *np.split(sol(t), [n]))  # noqa: E731
        if not armed:  # what has just happened is not to happen again: a gap that is closed at the start must open first
            before = before.copy()
            before[k:] = np.where(before[k:] <= TOUCHING, np.finfo(float).tiny, before[k:])
            just = np.abs(before[:k]) <= 1e-10
            before[:k] = np.where(just, 0.0, before[:k])
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
                        signal = lambda t, i=i, level=level: at(t)[i] + level  # noqa: E731
                        found[i] = brentq(signal, left, right, xtol=1e-15 * max(1.0, abs(right)), rtol=1e-15)
                first = min(found.values())
                near = 1e-12 * max(1.0, abs(first))
                return float(first), np.array([i in found and found[i] <= first + near for i in range(len(before))])
            left, before = right, after
        return None

    def _let(self, crossed: np.ndarray) -> str:
        """Let happen what was found at the present time."""
        k = len(self.events)
        for event, happens in zip(self.events, crossed[:k], strict=True):
            if not happens:
                continue
            if event.then is not None:
                self.q, self.v = self.mechanics.changed(event, self.t, self.q, self.v)
            self._happened("event", event.name)
            if event.terminal:
                return event.name
        closed = self.mechanics.closed
        hit = crossed[k:] & ~closed
        if hit.any():
            self._impact(hit)
        elif crossed[k:].any():  # a closed contact would pull
            gaps = self.mechanics.contacts.gaps(self.q)
            weak = crossed[k:] & closed
            self.mechanics.closed = closed & ~weak
            names = self.mechanics.contacts.names
            for i in np.flatnonzero(weak):
                self._happened("release", names[i])
            self._settle_contacts((gaps <= TOUCHING) & ~weak)
        elif len(closed):
            self._settle_contacts(self.mechanics.contacts.gaps(self.q) <= TOUCHING)
        return ""
