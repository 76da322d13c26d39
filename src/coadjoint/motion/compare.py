"""Measured joint forces beside those of a model: `compare` gives residuals for each joint, as a table and drawn."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import a_robot, positive, takes
from ..dynamics import inverse_dynamics
from ..errors import CoadjointError
from ..robot.robot import Robot
from ..words import printable
from .filtering import prepared
from .logs import check_reading, read_log
from .states import force_units


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Measured and computed joint forces (N, nv) at times (N,)."""

    robot: Robot
    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    measured: np.ndarray
    computed: np.ndarray
    notes: tuple[str, ...] = ()
    """Notes on how the log was prepared."""

    @property
    def residuals(self) -> np.ndarray:
        """Measured minus computed (N, nv)."""
        result: np.ndarray = self.measured - self.computed
        return result

    @property
    def rms(self) -> np.ndarray:
        """Root mean square of the residuals (nv,)."""
        result: np.ndarray = np.sqrt(np.mean(self.residuals**2, axis=0))
        return result

    @property
    def relative(self) -> np.ndarray:
        """The norm of each joint's residuals over that of its measured forces (nv,)."""
        size = np.linalg.norm(self.measured, axis=0)
        result: np.ndarray = np.linalg.norm(self.residuals, axis=0) / np.where(size > 0, size, 1.0)
        return result

    @property
    def total(self) -> float:
        """The norm of all residuals over that of all measured forces."""
        return float(np.linalg.norm(self.residuals) / (np.linalg.norm(self.measured) or 1.0))

    def plot(self, path: str | Path) -> None:
        """Draw measured and computed forces and their difference for every joint: .png, .svg, .pdf or .html."""
        from ..show.comparison import draw_comparison

        draw_comparison(path, self)

    def __str__(self) -> str:
        units = force_units(self.robot)
        head = f"{'joint':<20}{'rms residual':>14}{'mean':>12}{'largest':>12}{'rms measured':>14}{'relative':>10}"
        lines = [f"{printable(self.robot.name)}: measured and computed joint forces, {len(self.time)} rows", "", head]
        size = np.sqrt(np.mean(self.measured**2, axis=0))
        for k, name in enumerate(self.robot.v_names):
            r = self.residuals[:, k]
            row = f"{self.rms[k]:>14.4g}{r.mean():>12.4g}{np.abs(r).max():>12.4g}{size[k]:>14.4g}{100 * self.relative[k]:>9.1f}%"
            lines.append(f"{printable(name)[:19]:<20}{row}  {units[k]}")
        lines += ["", f"all joints: relative error {100 * self.total:.2f} %", *self.notes]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Comparison of {self.robot.name!r}: {len(self.time)} rows, relative error {100 * self.total:.2f} %>"


@takes(robot=a_robot, cutoff=positive)
def compare(robot: Robot, log: Any, *, cutoff: float | None = 10.0, friction: bool = True, **reading: Any) -> Comparison:
    """The joint forces that a log has beside τ(q, v, a) of the robot, `friction` of its joints included.

    `log` is a Log, or what `read_log` reads, with its options. Both sides go through the same zero-phase low-pass at `cutoff` Hz (None: no
    filter) at even times; velocities and accelerations that the log lacks are derivatives of the filtered positions.
    """
    check_reading(compare, reading)
    found = read_log(log, robot, **reading)
    if found.tau is None:
        raise CoadjointError(
            f"{found.source or 'the log'}: there are no measured joint forces: expected tau1 …, torque_0 … or effort."
        )
    if found.q.shape[1] != robot.nq or found.tau.shape[1] != robot.nv:
        raise CoadjointError(
            f"the log has {found.q.shape[1]} positions and {found.tau.shape[1]} forces; robot {robot.name!r} has {robot.nv}."
        )
    even, notes = prepared(robot, found, cutoff)
    assert even.v is not None
    assert even.a is not None
    assert even.tau is not None
    computed = inverse_dynamics(robot, even.q, even.v, even.a, friction=friction)
    return Comparison(robot, even.time, even.q, even.v, even.a, even.tau, np.asarray(computed), (*found.notes, *notes))
