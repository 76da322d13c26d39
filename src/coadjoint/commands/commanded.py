"""The motion that a robot was told to make, among the columns of its log: what estimators by simulation need."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import CoadjointError
from ..motion.columns import UNITS
from ..motion.logs import Log
from ..motion.states import turning
from ..robot.robot import Robot
from ..words import short
from .robots import one_number

SIMULATING = ("instrumental_variables", "output_error", "inverse_output_error")
FAR = 0.25
"""The distance of a reference from the measured positions, relative to their range, from which on it is another quantity or unit."""


def add_simulation_options(parser: argparse.ArgumentParser) -> None:
    """Options of estimators that simulate a robot and its controller."""
    group = parser.add_argument_group("estimators by simulation")
    told = "columns of the commanded positions, and perhaps velocities and accelerations: q_des, cmd{} or a,b,c; units as those of q, v, a"
    group.add_argument("--reference", metavar="NAMES", nargs="+", help=told)
    for name, unit in (("kp", "N m/rad"), ("kd", "N m s/rad")):
        group.add_argument(
            f"--{name}", type=one_number, metavar="K", nargs="+", help=f"gains of the controller, {unit}: one, or joint by joint"
        )


def check_simulation(args: argparse.Namespace, robot: Robot) -> None:
    """Refuse options that do not belong together, before any log is read."""
    given = [name for name in ("reference", "kp", "kd") if getattr(args, name)]
    if given and args.method not in SIMULATING:
        raise CoadjointError(f"--{given[0]} is of estimators by simulation: choose --method {', '.join(SIMULATING)}.")
    if args.method == "instrumental_variables" and not args.reference:
        raise CoadjointError("--method instrumental_variables needs the motion that the robot was told to make: --reference q_des.")
    if args.method == "inverse_output_error" and not (args.kp or args.kd):
        raise CoadjointError("--method inverse_output_error simulates the controller: --kp and --kd are its gains.")
    if args.method in SIMULATING[1:] and len(args.log) > 1:
        raise CoadjointError(f"--method {args.method} simulates one log; {len(args.log)} are given.")
    if args.method in SIMULATING[1:] and args.reference and len(args.reference) != 2:
        raise CoadjointError(f"--method {args.method} takes commanded positions and velocities: --reference q_des v_des.")
    if args.reference and len(args.reference) > 3:
        raise CoadjointError(
            f"--reference has {len(args.reference)} names; expected those of positions, velocities and accelerations."
        )
    for name in ("kp", "kd"):
        if (gains := getattr(args, name)) and len(gains) not in (1, robot.nv):
            raise CoadjointError(f"--{name} has {len(gains)} numbers; expected one, or {robot.nv}, joint by joint.")


def simulation(args: argparse.Namespace, robot: Robot, logs: Sequence[Log], units: dict[str, str]) -> dict[str, Any] | None:
    """The argument `simulation` of `identify`; `units` are those that were stated for the log's own columns."""
    if args.method not in SIMULATING:
        return None
    found: dict[str, Any] = {}
    for name in ("kp", "kd"):
        if gains := getattr(args, name):
            found[name] = gains[0] if len(gains) == 1 else gains
    if args.reference:
        references = [_reference(robot, log, args.reference, units) for log in logs]
        found["reference"] = references if args.method == SIMULATING[0] else references[0]
    return found


def _reference(robot: Robot, log: Log, names: Sequence[str], units: dict[str, str]) -> tuple[np.ndarray, ...]:
    made = []
    for what, name in zip("qva", names, strict=False):
        x = _columns(robot, log, name)
        factor = UNITS[what][units[what].lower()] if what in units else 1.0
        made.append(x * np.where(turning(robot) != (factor == 1e-3), factor, 1.0))
    off = np.sqrt(np.mean((made[0] - log.q) ** 2, axis=0))
    worst = int(np.argmax(off / np.ptp(log.q, axis=0).clip(1e-3)))
    if off[worst] > FAR * max(float(np.ptp(log.q[:, worst])), 1e-3):
        raise CoadjointError(
            f"{log.source}: --reference {names[0]}: the commanded positions of {robot.v_names[worst]} are {off[worst]:.3g} away from the "
            "measured ones (root mean square), of which they are no command: are the names right, and the unit?"
        )
    return tuple(made)


def _columns(robot: Robot, log: Log, name: str) -> np.ndarray:
    """(N, nv): the columns of a family, of a pattern with {} or of a list."""
    for names in _spelled(robot, name):
        if all(x in log.extra for x in names):
            array = np.column_stack([log.extra[x] for x in names])
            if array.shape[1] == robot.nv:
                return array
    has = ", ".join(f"{x} ({1 if y.ndim == 1 else y.shape[1]})" for x, y in log.extra.items()) or "none"
    raise CoadjointError(
        f"{log.source}: --reference {short(name)} are not {robot.nv} columns beside those that were read. There are: {has}."
    )


def _spelled(robot: Robot, name: str) -> Iterator[list[str]]:
    yield [name]
    if "," in name:
        yield name.split(",")
    if "{}" in name:
        yield [name.replace("{}", joint) for joint in robot.v_names]
        for first in (0, 1):
            yield [name.replace("{}", str(first + k)) for k in range(robot.nv)]
        yield [name.replace("{}", "").rstrip("_. ")]
