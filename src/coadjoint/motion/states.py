"""States of a robot over time, and the names of its coordinates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import CoadjointError
from ..robot.robot import Robot
from ..words import short


@dataclass(frozen=True, repr=False)
class States:
    """A table of states: time (N,), q (N, nq), v (N, nv), a (N, nv), tau (N, nv); None for what it does not have.

    `numbered`: its columns are called by number (`q1`), not by joint (`q.elbow`).
    """

    q: np.ndarray
    v: np.ndarray | None = None
    a: np.ndarray | None = None
    tau: np.ndarray | None = None
    time: np.ndarray | None = None
    numbered: bool = False

    def __len__(self) -> int:
        return len(self.q)

    def __repr__(self) -> str:
        has = [name for name in ("q", "v", "a", "tau") if getattr(self, name) is not None]
        parts = (["time"] if self.time is not None else []) + [f"{name} ({getattr(self, name).shape[-1]})" for name in has]
        return f"<States: {len(self)} rows of {', '.join(parts)}>"

    def columns(self, robot: Robot | None = None) -> dict[str, np.ndarray]:
        """Every column (N,) by its name: `time`, and `q.elbow` of a robot's joints, or `q1` by number where it is not given."""
        found = {} if self.time is None else {"time": self.time}
        for what in ("q", "v", "a", "tau"):
            x = getattr(self, what)
            if x is not None:
                numbers = [f"{what}{k + 1}" for k in range(x.shape[-1])]
                names = numbers if robot is None or self.numbered else column_names(robot, what, False)
                found |= dict(zip(names, x.T, strict=True))
        return found

    def to_dataframe(self, robot: Robot | None = None) -> Any:
        """The states as a table of pandas, with the names of `columns`."""
        try:
            import pandas
        except ImportError:
            raise CoadjointError("a data frame needs pandas, which is not installed: pip install pandas") from None
        return pandas.DataFrame(self.columns(robot))


def coordinate_names(robot: Robot, quantity: str) -> tuple[str, ...]:
    """A name for every coordinate of q or, for any other quantity, of v."""
    return robot.q_names if quantity == "q" else robot.v_names


def column_names(robot: Robot, quantity: str, numbered: bool) -> list[str]:
    """The columns of a quantity in a table: q1, q2, … or q.shoulder, q.elbow, …"""
    names = coordinate_names(robot, quantity)
    return [f"{quantity}{k + 1}" for k in range(len(names))] if numbered else [f"{quantity}.{name}" for name in names]


def turning(robot: Robot) -> np.ndarray:
    """True for angular velocities (nv,)."""
    turns = np.any(robot.screws[:, :3] != 0, axis=1)
    own = [turns[robot.tree_v_slices[i]] for i in range(robot.n_links) if i not in robot.mimics]
    return np.concatenate(own) if own else np.zeros(0, dtype=bool)


def force_units(robot: Robot) -> list[str]:
    """The unit of every generalised force: N where the coordinate is a length, N m where it is an angle."""
    return ["N m" if x else "N" for x in turning(robot)]


def differentiate(robot: Robot, states: States) -> tuple[States, list[str]]:
    """The states with v (from q) and a (from v) where they are missing, and the names of those, estimated from the time column.

    The slopes between neighbouring rows hold half-way between them; from there they are interpolated linearly to the rows,
    which is second order also for uneven times and at both ends. Noise is not removed.
    """
    if not all(hasattr(states, name) for name in ("q", "v", "a", "time")):
        raise CoadjointError(f"states is {short(states)}; expected States, as from coadjoint.motion.read_states.")
    made: list[str] = []
    v, a, time = states.v, states.a, states.time
    if v is not None and a is not None:
        return states, made
    if time is None:
        raise CoadjointError("differentiating needs the column 'time', which the table does not have.")
    if len(time) < 3:
        raise CoadjointError(f"differentiating needs at least 3 rows; the table has {len(time)}.")
    if np.any(stuck := np.diff(time) <= 0):
        k = int(np.argmax(stuck))
        raise CoadjointError(f"differentiating needs increasing times; row {k + 2} has {time[k + 1]:.9g} after {time[k]:.9g}.")
    if v is None:
        made.append("v")
        v = _rates(time, robot.difference(states.q[:-1], states.q[1:]))
    if a is None:
        made.append("a")
        a = _rates(time, np.diff(v, axis=0))
    return replace(states, v=v, a=a), made


def _rates(time: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Rates (N, n) at the times (N,) from the steps (N - 1, n) between them."""
    h = np.diff(time)[:, None]
    slope, middle = steps / h, (0.5 * (time[1:] + time[:-1]))[:, None]
    k = np.clip(np.arange(len(time)) - 1, 0, len(middle) - 2)
    weight = (time[:, None] - middle[k]) / (middle[k + 1] - middle[k])
    result: np.ndarray = slope[k] + weight * (slope[k + 1] - slope[k])
    return result
