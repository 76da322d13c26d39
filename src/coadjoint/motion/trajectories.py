"""Simulated motions of many robots, or of one from many states, at the same times."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..arrays import Array
from ..dynamics import kinetic_energy, potential_energy
from ..errors import CoadjointError
from ..families import Family
from ..robot.robot import Robot
from ..words import printable
from .states import States
from .trajectory import FOR_ALL, Trajectory


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories(Trajectory):
    """States q (..., N, nq), v (..., N, nv) and forces tau (..., N, nv) at times (N,), with batch axes in front.

    `motions[k]` is the `Trajectory` of one member with the robot that moved, `motions[2:5]` some of them. States that a member did not
    reach, as behind the event that stopped it, are NaN, and `stopped` (...,) says why: "" for members that went to the end.
    """

    stopped: np.ndarray = field(default_factory=lambda: np.zeros((), dtype=object))
    """(...,) texts: "", "interrupted", "error" or the name of the event."""
    numbers: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """The robots' numbers that differ (..., numbers); none where it is one robot."""
    names: tuple[str, ...] = field(default=(), metadata=FOR_ALL)
    """The name of the numbers that differ, such as "masses"."""
    alone: dict[int, Trajectory] = field(default_factory=dict, metadata=FOR_ALL)
    """Motions of members that were integrated one by one, with what happened on the way."""

    @property
    def batch(self) -> tuple[int, ...]:
        """The sizes of the batch axes."""
        return tuple(self.q.shape[:-2])

    def __getitem__(self, index: Any) -> Trajectory:
        """The motion of one member, or those of some: `index` chooses along the batch axes."""
        count = int(np.prod(self.batch))
        try:
            chosen = np.arange(count).reshape(self.batch)[index]
        except IndexError:
            raise CoadjointError(f"there is no motion {index}; the batch axes are {self.batch}.") from None
        arrays = (self.q, self.v, self.tau, self.stopped, self.numbers)
        q, v, tau, stopped, numbers = (np.asarray(x).reshape(count, *x.shape[len(self.batch) :])[chosen] for x in arrays)
        if np.ndim(chosen):
            alone = {k: self.alone[int(m)] for k, m in enumerate(chosen.ravel()) if int(m) in self.alone}
            return Trajectories(
                self.robot, self.time, q, v, tau, (), self.constraints, stopped, (), numbers, self.names, alone
            )  # fmt: skip
        if int(chosen) in self.alone:
            return self.alone[int(chosen)]
        reached = ~np.isnan(q[:, 0])
        return Trajectory(
            self._family.member(numbers),
            self.time[reached],
            q[reached],
            v[reached],
            tau[reached],
            (),
            self.constraints,
            str(stopped),
        )

    @property
    def _family(self) -> Family:
        return Family.of(self.robot, self.names)

    @property
    def kinetic_energy(self) -> np.ndarray:
        """T (..., N)."""
        return self._energy("kinetic energy", lambda robot, q, v: kinetic_energy(robot, q, v))

    @property
    def potential_energy(self) -> np.ndarray:
        """U (..., N)."""
        return self._energy("potential energy", lambda robot, q, v: potential_energy(robot, q))

    def _energy(self, name: str, energy: Any) -> np.ndarray:
        robot = self.robot
        if not self.names:
            return np.asarray(energy(robot, self.q, self.v))

        def run(robot: Robot, _: tuple[Array, ...], q: Array, v: Array) -> Array:
            return energy(robot, q, v) + 0.0 * q[..., 0]

        found = self._family.compiled(name, run, name.replace(" ", "_"), q=(robot.nq,), v=(robot.nv,))
        numbers = np.broadcast_to(self.numbers[..., None, :], (*self.q.shape[:-1], self.numbers.shape[-1]))
        return np.asarray(found(self.q, self.v, numbers))

    def drift(self) -> tuple[float, float]:
        """The largest value of a holonomic row, and the largest velocity of any row, over all states; 0 without constraints."""
        if self.constraints is None:
            return 0.0, 0.0
        each = [self[np.unravel_index(k, self.batch)].drift() for k in range(int(np.prod(self.batch)))]
        return max((x for x, _ in each), default=0.0), max((x for _, x in each), default=0.0)

    # --- of one motion only

    @property
    def states(self) -> States:
        """Only a single motion can do this; see motions[k]."""
        self._refuse("the table of states")

    def plot(self, path: str | Path | None = None) -> Any:
        """Only a single motion can do this; see motions[k]."""
        self._refuse("a plot")

    def animate(self, path: str | Path | None = None, **_: Any) -> Any:
        """Only a single motion can do this; see motions[k]."""
        self._refuse("a film")

    def _refuse(self, what: str) -> NoReturn:
        one = ", ".join("0" for _ in self.batch)
        raise CoadjointError(f"{what} is of one motion, and these have the batch axes {self.batch}; choose one, as motions[{one}].")

    def __str__(self) -> str:
        name = printable(self.robot.name)
        early = (
            int(np.count_nonzero(self.stopped != "")) if isinstance(self.stopped, np.ndarray) else 0
        )  # not those still to be computed
        text = f"{name}: motions {self.batch} of {len(self)} states from {self.time[0]:g} to {self.time[-1]:g} s"
        return text + (f", {early} of them stopped early" if early else "")

    def __repr__(self) -> str:
        return f"<Trajectories of {self.robot.name!r}: {self.batch} of {len(self)} states, {self.time[0]:g} … {self.time[-1]:g} s>"
