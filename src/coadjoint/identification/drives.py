"""Drive gains: the joint force for a current of one, from currents and forces that are known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from ..arguments import a_robot, takes
from ..errors import CoadjointError
from ..motion.logs import check_reading, read_log
from ..robot.robot import Robot
from ..words import printable
from .preparation import Prepared, prepare
from .reversals import reversals
from .statistics import meat

LEAST = 0.05
"""The part of a current that the known force must explain for its gain to be known."""


@dataclass(frozen=True)
class DriveGains:
    """Gains of drives with 95 % intervals (nv,); prints as a table."""

    names: tuple[str, ...]
    values: np.ndarray
    """NaN where the motion does not show the gain."""
    lower: np.ndarray
    upper: np.ndarray

    def __str__(self) -> str:
        rows = [f"{'joint':<24}{'gain':>12}{'95 % interval':>28}"]
        for name, x, low, high in zip(self.names, self.values, self.lower, self.upper, strict=True):
            said = f"{x:>12.4g}{f'{low:.4g} … {high:.4g}':>28}" if np.isfinite(x) else f"{'':>12}{'not shown by the motion':>28}"
            rows.append(f"{printable(name)[:23]:<24}{said}")
        return "\n".join(rows)


@takes(robot=a_robot)
def drive_gains(
    robot: Robot, log: Any, desired: str = "tau_des", *, cutoff: float | str | None = "auto", **reading: Any
) -> DriveGains:
    """The gain k of each drive, k i = τ + friction, from logs whose `tau` are currents i and that have forces τ in the columns `desired`.

    τ may be desired forces of a controller whose model is good, or those of a force sensor. i = τ / k + friction is fitted joint by joint
    by least squares, friction being offset, viscous, dry, in proportion to the load and to the root of speed, and a rotor's; the intervals
    know that residuals are correlated. A gain is NaN where τ moves the current too little to tell.
    """
    check_reading(drive_gains, reading)
    logs = [read_log(x, robot, **reading) for x in (log if isinstance(log, list | tuple) else [log])]
    for x in logs:
        known = x.extra.get(desired)
        if known is None or np.shape(known) != (len(x), robot.nv):
            has = ", ".join(x.extra) or "none"
            raise CoadjointError(
                f"{x.source or 'the log'}: {desired!r} has no {robot.nv} columns of known forces; other columns are: {has}."
            )
    currents = prepare(robot, logs, cutoff)
    forces = prepare(robot, [replace(x, tau=np.asarray(x.extra[desired], dtype=float)) for x in logs], cutoff)
    folds = np.minimum(np.arange(len(currents)) * 5 // len(currents), 4)
    shape = reversals(currents, forces.tau[..., None], np.zeros_like(forces.tau), folds)
    values, lower, upper = (np.full(robot.nv, np.nan) for _ in range(3))
    for j in range(robot.nv):
        found = _gain(currents, forces.tau[:, j], shape.direction(currents.v, currents.a)[:, j], j)
        if found is not None:
            values[j], lower[j], upper[j] = found
    return DriveGains(tuple(robot.v_names), values, lower, upper)


def _gain(data: Prepared, force: np.ndarray, sign: np.ndarray, j: int) -> tuple[float, float, float] | None:
    """A gain with its interval, or None."""
    use = data.used[:, j]
    v, a, t, s = data.v[use, j], data.a[use, j], force[use], sign[use]
    root = v / np.sqrt(np.abs(v) + 0.03 * max(float(v.std()), 1e-12))
    X = np.stack([t, np.ones_like(v), v, s, np.abs(t) * s, root, a], axis=1)
    size = np.sqrt((X * X).mean(0))
    scale = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh((X / scale).T @ (X / scale))
    V = (vectors / np.sqrt(values.clip(1e-10 * values[-1]))) / scale[:, None]
    y = data.tau[use, j]
    x = V @ (V.T @ (X.T @ y))
    residual = y - X @ x
    order = int(np.clip(len(y) // 50, 1, 24))
    middle = meat(X, residual, data.stretch[use], order, X @ V)
    spread = float(np.sqrt((V @ (V.T @ middle @ V) @ V.T)[0, 0])) * float(stdtrit(len(y) / order, 0.975))
    if not x[0] - spread > 0 or x[0] * t.std() < LEAST * y.std():
        return None
    return 1.0 / float(x[0]), 1.0 / float(x[0] + spread), 1.0 / float(x[0] - spread)
