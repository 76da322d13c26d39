"""A simulated motion: its states, events and energies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import unmasked
from ..constraints.constraint import Constraint
from ..constraints.impacts import Impact
from ..dynamics import kinetic_energy, potential_energy
from ..errors import CoadjointError
from ..robot.robot import Robot
from ..words import printable
from .states import States
from .tables import read_states, write_states

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class EventRecord:
    """The record of an event: a user's event, an impact, a contact that closes or opens, a joint that sticks or slips."""

    time: float
    kind: str
    """"event", "impact", "contact" (set in), "rest" (limit of ever shorter bounces), "release", "stick" or "slip" (of dry friction)."""
    name: str
    q: np.ndarray
    v: np.ndarray
    """The velocity afterwards."""
    impact: Impact | None = None
    """The account of an impact; its rows are those of the constraints first, then those of the contacts that touched."""

    def __str__(self) -> str:
        return f"t = {self.time:.9g}: {self.kind} {self.name}" + (f" ({self.impact})" if self.impact is not None else "")

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name!r} at {self.time:.9g} s>"


FOR_ALL = {"for_all": True}
"""Marks fields without batch axes."""

Piece = tuple[float, float, Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]]
"""(start, end, function that returns q, v at times between)."""


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """States q (N, nq), v (N, nv) at times (N,), and the motion between them: `trajectory(t)` gives q(t), v(t)."""

    robot: Robot = field(metadata=FOR_ALL)
    time: np.ndarray = field(metadata=FOR_ALL)
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    """Joint forces of the control (N, nv)."""
    happenings: tuple[EventRecord, ...] = field(default=(), metadata=FOR_ALL)
    constraints: Constraint | None = field(default=None, metadata=FOR_ALL)
    stopped: Any = ""
    """The reason why the motion ended early: "" (it did not), "interrupted", or the name of the event."""
    pieces: Sequence[Piece] = field(default=(), metadata=FOR_ALL)
    """Dense output; without it states are interpolated."""

    def __len__(self) -> int:
        return len(self.time)

    def __call__(self, t: Any) -> tuple[np.ndarray, np.ndarray]:
        """q (*t.shape, nq) and v (*t.shape, nv) at any times of the motion, behind its batch axes if it has some; at an impact, the state
        after it.

        From the integrator's own dense output where it has one; else by cubic curves through neighbouring states, of fourth order.
        """
        t = np.asarray(unmasked(t), dtype=float)
        first, last = self.time[0], self.end
        slack = 1e-12 * max(1.0, abs(last))
        if t.size and not (t.min() >= first - slack and t.max() <= last + slack):
            raise CoadjointError(f"t goes from {t.min():g} to {t.max():g}; the motion from {first:g} to {last:g} s.")
        flat = np.clip(t.ravel(), first, last)
        if not self.pieces:
            q, v = self._interpolated(flat)
        else:
            q, v = np.empty((flat.size, self.robot.nq)), np.empty((flat.size, self.robot.nv))
            index = np.searchsorted([start for start, _, _ in self.pieces], flat, side="right") - 1
            for k in np.unique(index):
                rows = index == k
                q[rows], v[rows] = self.pieces[k][2](flat[rows])
        return q.reshape(*q.shape[:-2], *t.shape, self.robot.nq), v.reshape(*v.shape[:-2], *t.shape, self.robot.nv)

    @property
    def end(self) -> float:
        """The time up to which the motion is known."""
        return float(self.pieces[-1][1] if self.pieces else self.time[-1])

    def _interpolated(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cubic on the tangent space of the state before: q = q_k ⊕ x(t), x' = v to first order in x."""
        if len(self) == 1:
            return np.repeat(self.q, len(t), -2), np.repeat(self.v, len(t), -2)
        k = np.clip(np.searchsorted(self.time, t, side="right") - 1, 0, len(self) - 2)
        h = (self.time[k + 1] - self.time[k])[:, None]
        s = (t - self.time[k])[:, None] / h
        q0, v0, v1 = self.q[..., k, :], self.v[..., k, :], self.v[..., k + 1, :]
        x1 = self.robot.difference(q0, self.q[..., k + 1, :])
        x = (s**3 - 2 * s**2 + s) * h * v0 + (3 * s**2 - 2 * s**3) * x1 + (s**3 - s**2) * h * v1
        v = (3 * s**2 - 4 * s + 1) * v0 + (6 * s - 6 * s**2) * x1 / h + (3 * s**2 - 2 * s) * v1
        return self.robot.integrate(q0, x), v

    # --- what can be asked

    @property
    def kinetic_energy(self) -> np.ndarray:
        """T (N,)."""
        return kinetic_energy(self.robot, self.q, self.v)

    @property
    def potential_energy(self) -> np.ndarray:
        """U (N,)."""
        return potential_energy(self.robot, self.q)

    @property
    def energy(self) -> np.ndarray:
        """T + U (N,)."""
        result: np.ndarray = self.kinetic_energy + self.potential_energy
        return result

    @property
    def impacts(self) -> tuple[EventRecord, ...]:
        """The records of impacts."""
        return tuple(x for x in self.happenings if x.kind == "impact")

    def drift(self) -> tuple[float, float]:
        """The largest value of a holonomic row, and the largest velocity of any row, over all states; 0 without constraints."""
        if self.constraints is None:
            return 0.0, 0.0
        values = self.constraints.residual(self.robot, self.q)
        rates = np.einsum("nij,nj->ni", self.constraints.jacobian(self.robot, self.q), self.v)
        return 0.0 if values is None else float(np.abs(values).max()), float(np.abs(rates).max())

    @property
    def states(self) -> States:
        """The states as a table."""
        return States(self.q, self.v, None, self.tau, self.time)

    # --- files

    def to_dataframe(self) -> Any:
        """The states as a table of pandas: `time`, and a column for every coordinate, as `q.elbow`."""
        return self.states.to_dataframe(self.robot)

    def save(self, path: str | Path) -> None:
        """Write time, q, v and tau: .npz, .parquet or .csv; `Trajectory.load` reads them again. To keep everything, use
        `pickle`.
        """
        write_states(path, self.robot, self.states)

    @staticmethod
    def load(path: str | Path, robot: Robot) -> Trajectory:
        """The motion of a robot in a table with time, q and v, and tau if it has that, as `save` writes it.

        Between its states the motion is interpolated. Events, constraints and the reason of the end are not in a table.
        """
        states = read_states(path, robot, ("q", "v"))
        if states.time is None or states.v is None:
            raise CoadjointError(f"{path}: the column 'time' is missing, without which states are no motion.")
        if np.any(stuck := np.diff(states.time) <= 0):
            k = int(np.argmax(stuck))
            raise CoadjointError(
                f"{path}: times must increase; row {k + 2} has {states.time[k + 1]:.9g} after {states.time[k]:.9g}."
            )
        tau = np.zeros_like(states.v) if states.tau is None else states.tau
        return Trajectory(robot, states.time, robot.normalize(states.q), states.v, tau)

    def plot(self, path: str | Path | None = None) -> Figure:
        """The figure of positions, velocities and energies, which notebooks show; saved if a path is given: .png, .svg, .pdf, .html."""
        from ..show.trajectories import draw_trajectory

        return draw_trajectory(path, self)

    def animate(
        self,
        path: str | Path | None = None,
        *,
        frames_per_second: float = 25.0,
        speed: float = 1.0,
        report: Callable[[float], None] | None = None,
    ) -> Any:
        """The film of the links as a stick figure, which notebooks play; saved if a path is given: .gif, .html, or .mp4 with ffmpeg.

        `report` gets the completed fraction.
        """
        from ..show.animation import animate

        return animate(path, self, frames_per_second=frames_per_second, speed=speed, report=report)

    def show(self, path: str | Path | None = None) -> Path:
        """Open the page of the robot that plays this motion in a browser; it is written to `path`, or to a temporary folder."""
        from ..show.notebook import show_motion

        return show_motion(self, path)

    def _repr_html_(self) -> str | None:
        from ..show.notebook import motion_html

        return motion_html(self)

    def __str__(self) -> str:
        e, happened = self.energy, self._happened()
        name = printable(self.robot.name)
        text = f"{name}: {len(self)} states from {self.time[0]:g} to {self.time[-1]:g} s, energy {e[0]:.6g} to {e[-1]:.6g} J"
        return text + (f", {happened}" if happened else "") + (f"; stopped: {self.stopped}" if self.stopped else "")

    def __repr__(self) -> str:
        text = f"<Trajectory of {self.robot.name!r}: {len(self)} states, {self.time[0]:g} … {self.time[-1]:g} s, "
        return text + (self._happened() or "nothing happened") + (f", stopped: {self.stopped}>" if self.stopped else ">")

    def _happened(self) -> str:
        """The number of events of each kind."""
        kinds = [x.kind for x in self.happenings]
        return ", ".join(f"{kinds.count(k)} {k}{'s' * (kinds.count(k) > 1)}" for k in dict.fromkeys(kinds))
