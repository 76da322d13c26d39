"""An identification by output error: the fit by forces is where it starts, motions (or a controller's forces) are what it explains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import CoadjointError
from ..motion.logs import read_log
from ..robot.robot import Robot
from ..words import short
from .base_parameters import BaseParameters, base_parameters
from .excitation_limits import SLOW
from .friction import Friction, Shape
from .output_error import OutputError, output_error
from .result import Identification

OPTIONS = ("horizon", "kp", "kd", "reference", "feedforward", "hold", "substeps")
DRIVES = {"armature": "armature", "viscous": "damping", "coulomb": "friction"}
"""The terms of friction that are fitted, in the order of a robot's numbers, and those numbers' names."""


SIMULATED = ("output_error", "inverse_output_error")


@dataclass
class Simulated:
    """The result of output error, in the terms of an identification."""

    rigid: Robot
    friction: Friction
    base: BaseParameters
    estimate: np.ndarray
    covariance: np.ndarray
    unknowns: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def by_simulation(fit: Identification, log: Any, method: str, options: Mapping[str, Any] | None, **reading: Any) -> Identification:
    """An identification by forces, carried on by output error."""
    found = by_output_error(fit.rigid, fit.friction, log, method == "inverse_output_error", options, **reading)
    made = replace(
        fit,
        rigid=found.rigid,
        friction=found.friction,
        base_matrix=found.base,
        estimate=found.estimate,
        covariance=found.covariance,
        unknowns=found.unknowns,
        notes=(*fit.notes, *found.notes),
    )
    return replace(made, predicted=made.torque(fit.data.q, fit.data.v, fit.data.a))


def by_output_error(
    rigid: Robot, friction: Friction, log: Any, inverse: bool, options: Mapping[str, Any] | None, **reading: Any
) -> Simulated:
    """The fit of a log by output error, from a rigid robot and its friction on; offsets stay as they are."""
    given = dict(options or {})
    if strange := [x for x in given if x not in OPTIONS]:
        raise CoadjointError(f"simulation has {short(strange[0])}; choose among {', '.join(OPTIONS)}.")
    if isinstance(log, list | tuple):
        if len(log) != 1:
            raise CoadjointError(
                f"there are {len(log)} logs; output error simulates one, in stretches: join them, or choose the best one."
            )
        log = log[0]
    read = read_log(log, rigid, **reading)
    if read.tau is None:
        raise CoadjointError(f"{read.source or 'the log'}: there are no measured joint forces.")
    if rigid.nv != rigid.tree_nv:
        raise CoadjointError(f"robot {rigid.name!r} has mimic joints; output error needs joints of their own.")
    found = friction.coefficients
    zero = np.zeros(rigid.nv)
    drives = tuple(name for name in DRIVES if np.any(found.get(name, 0.0)))
    others = [name for name, x in found.items() if name not in (*DRIVES, "offset") and np.any(x)]
    kept = {"offset": found["offset"]} if np.any(found.get("offset", 0.0)) else {}
    start = rigid.with_numbers(**{key: np.maximum(found.get(name, zero), 0.0) for name, key in DRIVES.items()}).consolidated()
    known = kept.get("offset", zero)
    notes = ["offsets stay as the fit by forces has them"] if kept else []
    if others:
        notes.append(f"friction in simulated motions is viscous and Coulomb: {', '.join(others)} left out")
    fit = output_error(
        start,
        replace(read, tau=read.tau - known),
        method="inverse" if inverse else "direct",
        drives=[DRIVES[name] for name in drives],
        **given,
    )
    if not fit.converged:
        notes.append(f"output error did not converge in {fit.steps} steps")
    return _result(fit, friction, kept, drives, tuple(notes))


def _result(
    fit: OutputError, friction: Friction, kept: dict[str, np.ndarray], drives: tuple[str, ...], notes: tuple[str, ...]
) -> Simulated:
    robot = fit.robot
    names = tuple(robot.v_names)
    coefficients = dict(kept)
    coefficients |= {name: np.asarray(getattr(robot, DRIVES[name])) for name in drives}
    base = base_parameters(robot)
    unknowns = tuple((joint, name) for name in drives for joint in names)
    wanted = np.zeros((base.rank + len(unknowns), fit.base.matrix.shape[1]))
    wanted[: base.rank, : base.matrix.shape[1]] = base.matrix
    columns = [list(DRIVES).index(name) * robot.nv + k for name in drives for k in range(robot.nv)]
    wanted[base.rank + np.arange(len(columns)), base.matrix.shape[1] + np.array(columns, dtype=int)] = 1.0
    L = np.linalg.lstsq(fit.base.matrix.T, wanted.T, rcond=None)[0].T
    hidden = np.abs(wanted - L @ fit.base.matrix).max(axis=1) > 1e-8 * np.abs(wanted).max()
    finite = np.isfinite(np.diag(fit.covariance))
    covariance = L[:, finite] @ fit.covariance[np.ix_(finite, finite)] @ L[:, finite].T
    hidden |= (np.abs(L[:, ~finite]) > 1e-10).any(axis=1)
    covariance[hidden, hidden] = np.inf
    zero = np.zeros(robot.nv)
    plain = robot.with_numbers(armature=zero, damping=zero, friction=zero).consolidated()
    values = np.concatenate([base.values(plain), *(coefficients[name] for name in drives)])
    shape = Shape(np.full(robot.nv, SLOW), zero, np.full(robot.nv, 10.0 * SLOW))
    return Simulated(plain, Friction(names, shape, coefficients), base, values, covariance, unknowns, notes)
