"""Instruments: states that the motion would have without noise, at the rows of a prepared log.

The robot of the last estimate is simulated in closed loop along the reference that the real one was given, with the gains of its
controller, u = f + kp (q_r - q) + kd (v_r - v); without gains the reference itself is taken, as if it were followed exactly. These states
are made ready (resampled, filtered, thinned) as the measured ones are, so that rows belong together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..dynamics import bias_force, forward_dynamics
from ..errors import CoadjointError, ShapeError
from ..motion.logs import Log, read_log
from ..robot.robot import Robot
from ..words import short
from .excitation_limits import sizes
from .friction import Friction
from .preparation import CUTOFF, Prepared, is_rough, prepare, slopes

OPTIONS = ("reference", "kp", "kd", "feedforward", "substeps")


@dataclass(frozen=True)
class Reference:
    """The commands that a log's robot followed: q_r, v_r, a_r and feedforward forces (N, nv) at its times."""

    log: Log
    cutoff: float | None
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    feedforward: np.ndarray


@dataclass(frozen=True)
class Instruments:
    """The references of all logs, and the controller."""

    robot: Robot
    references: tuple[Reference, ...]
    kp: np.ndarray
    kd: np.ndarray
    substeps: int

    @property
    def is_closed(self) -> bool:
        """True if a closed loop is simulated."""
        return bool(self.kp.any() or self.kd.any())

    def states(self, rigid: Robot, friction: Friction) -> Prepared:
        """The instruments' states by a model, at the rows of the prepared logs."""
        parts = []
        for r in self.references:
            q, v, a = self._simulated(rigid, friction, r) if self.is_closed else (r.q, r.v, r.a)
            has = r.log
            made = replace(has, q=q, v=None if has.v is None else v, a=None if has.a is None else a)
            parts.append(prepare(self.robot, made, r.cutoff))
        first = parts[0]
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(x, name) for x in parts])
            for name in ("time", "q", "v", "a", "tau", "used", "stretch", "known")
        }
        return replace(first, **joined)

    def _simulated(self, rigid: Robot, friction: Friction, r: Reference) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The closed loop from the reference's state on, begun again after gaps; Runge and Kutta's fourth order."""
        robot, coefficients = _with_armature(rigid, friction)
        friction = replace(friction, coefficients=coefficients)
        zero, loaded = np.zeros(self.robot.nv), bool(np.any(coefficients.get("load", 0.0)))
        factor = 1.0 + coefficients.pop("gain", zero)

        def rate(q: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
            load = np.asarray(bias_force(robot, q, v)) if loaded else zero
            return np.asarray(forward_dynamics(robot, q, v, (u - friction(q, v, zero, load)) / factor))

        q, v, a = (np.empty_like(r.q) for _ in range(3))
        cuts = [0, *(int(k) + 1 for k in r.log.gaps), len(r.log)]
        for first, last in pairwise(cuts):
            x, y = r.q[first], r.v[first]
            for k in range(first, last):
                u = r.feedforward[k] + self.kp * (r.q[k] - x) + self.kd * (r.v[k] - y)
                q[k], v[k], a[k] = x, y, rate(x, y, u)
                if k + 1 < last:
                    x, y = self._step(rate, r, k, x, y)
                    if not np.abs(x).max() < 1e6:
                        raise CoadjointError(
                            f"{r.log.source or 'the log'}: the simulated closed loop runs away after row {k + 1}: are kp and kd the "
                            "robot's, in N m/rad and N m s/rad? More substeps may help; without gains the reference itself is taken."
                        )
        return q, v, a

    def _step(self, rate: Any, r: Reference, k: int, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        h = (r.log.time[k + 1] - r.log.time[k]) / self.substeps
        for i in range(self.substeps):

            def slope(q: np.ndarray, v: np.ndarray, c: float, i: int = i) -> tuple[np.ndarray, np.ndarray]:
                w = (i + c) / self.substeps
                q_r, v_r, f = ((1 - w) * x[k] + w * x[k + 1] for x in (r.q, r.v, r.feedforward))
                return v, rate(q, v, f + self.kp * (q_r - q) + self.kd * (v_r - v))

            q1, v1 = slope(q, v, 0.0)
            q2, v2 = slope(q + 0.5 * h * q1, v + 0.5 * h * v1, 0.5)
            q3, v3 = slope(q + 0.5 * h * q2, v + 0.5 * h * v2, 0.5)
            q4, v4 = slope(q + h * q3, v + h * v3, 1.0)
            q, v = q + h / 6 * (q1 + 2 * q2 + 2 * q3 + q4), v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
        return q, v


def _with_armature(rigid: Robot, friction: Friction) -> tuple[Robot, dict[str, np.ndarray]]:
    """The robot with the rotors' inertia, and the other terms of friction."""
    others = {name: x for name, x in friction.coefficients.items() if name != "armature"}
    armature = friction.coefficients.get("armature")
    if armature is None or rigid.tree_nv != rigid.nv:
        return rigid, others
    return rigid.with_numbers(armature=np.maximum(armature, 0.0)).consolidated(), others


def instruments(
    robot: Robot, log: Any, cutoff: float | str | None, options: Mapping[str, Any] | None, **reading: Any
) -> Instruments:
    """The instruments of logs; `options` has `reference` (of each log, if there are several) and perhaps kp, kd, feedforward, substeps."""
    given = dict(options or {})
    if strange := [x for x in given if x not in OPTIONS]:
        raise CoadjointError(f"simulation has {short(strange[0])}; choose among {', '.join(OPTIONS)}.")
    if robot.nq != robot.nv:
        raise CoadjointError(f"robot {robot.name!r} has joints of several coordinates; instruments need joints of one each.")
    several = isinstance(log, list | tuple)
    logs = [read_log(x, robot, **reading) for x in (log if several else [log])]
    wanted = given.get("reference")
    if wanted is None:
        raise CoadjointError(
            "method 'instrumental_variables' needs the motion that the robot was told to make: simulation={'reference': q_r}, or "
            "(q_r, v_r), or (q_r, v_r, a_r), each as long as the log; a list of these for several logs."
        )
    references = list(wanted) if several else [wanted]
    forces = list(given["feedforward"]) if several and "feedforward" in given else [given.get("feedforward")] * len(logs)
    if len(references) != len(logs) or len(forces) != len(logs):
        raise ShapeError(f"there are {len(logs)} logs and {len(references)} references; expected one for each.")
    made = tuple(_reference(robot, x, cutoff, r, f) for x, r, f in zip(logs, references, forces, strict=True))
    gains = [
        np.zeros(robot.nv) if given.get(name) is None else sizes(robot, name, given[name], np.ones(robot.nv), False)
        for name in ("kp", "kd")
    ]
    substeps = given.get("substeps", 1)
    if not isinstance(substeps, int) or substeps < 1:
        raise CoadjointError(f"simulation['substeps'] is {short(substeps)}; expected a whole number from 1.")
    return Instruments(robot, made, gains[0], gains[1], substeps)


def _reference(robot: Robot, log: Log, cutoff: float | str | None, given: Any, feedforward: Any) -> Reference:
    shape = (len(log), robot.nv)
    parts = list(given) if isinstance(given, tuple | list) and np.ndim(given[0]) == 2 else [given]
    arrays = [_rows(x, "simulation['reference']", shape) for x in parts]
    while len(arrays) < 3:
        arrays.append(np.gradient(arrays[-1], log.time, axis=0, edge_order=2) if _uneven(log) else slopes(arrays[-1], log.rate))
    force = np.zeros(shape) if feedforward is None else _rows(feedforward, "simulation['feedforward']", shape)
    return Reference(log, resolved(robot, log, cutoff), arrays[0], arrays[1], arrays[2], force)


def _uneven(log: Log) -> bool:
    step = np.diff(log.time)
    return bool(np.ptp(step) > 1e-6 * step.mean())


def _rows(x: Any, name: str, shape: tuple[int, int]) -> np.ndarray:
    try:
        array = np.asarray(x, dtype=float)
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(0)
    if array.shape != shape or not np.isfinite(array).all():
        raise ShapeError(f"{name} has shape {array.shape}; expected finite numbers {shape}, as the log.")
    return array


def resolved(robot: Robot, log: Log, cutoff: float | str | None) -> float | None:
    """The frequency that `prepare` filters this log at."""
    if cutoff != "auto":
        return None if cutoff is None else float(cutoff)
    frequency = min(CUTOFF, 0.2 * log.rate)
    if robot.nq != robot.nv or (log.v is not None and log.a is not None and not is_rough(log, frequency)):
        return None
    return frequency
