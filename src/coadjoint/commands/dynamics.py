"""`coadjoint dynamics`: joint forces, or accelerations, for a table of states."""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace

import numpy as np

from ..arguments import a_moving_robot
from ..dynamics import forward_dynamics, inverse_dynamics
from ..errors import CoadjointError, LogWarning, ReadError, SingularMassMatrixError
from ..motion.compare import compare
from ..motion.example_motion import smooth_motion
from ..motion.log_checks import degree_suspicion
from ..motion.logs import read_log, read_table
from ..motion.states import States, differentiate, force_units
from ..motion.tables import MissingColumnsError, as_states, check_input, write_states
from ..robot.plausibility import impossible_inertias
from ..robot.robot import Robot
from ..show.terminal import Progress, number, table
from ..words import cut, in_a_shell, printable
from . import _stream as stream
from .logs import add_log_options, log_options
from .robots import add_robot, check_files, name_of, read_robot, tell

HELP = "compute joint forces, or accelerations, for a table of states"

CHUNK = 16384
"""Rows computed in one call: enough for speed, few enough to limit memory and to show progress."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    states = "table of states, .csv, .tsv, .gz, .npz, .parquet, .bag, .mcap: time, q1…, v1…, a1… (or q.JOINT …, position_0 …)"
    parser.add_argument("log", metavar="LOG", nargs="?", help=f"{states}; without it a smooth motion is used")
    parser.add_argument("--states", metavar="FILE", help="the same as LOG")
    measured = "compare the joint forces of the table, tau1…, with computed ones, through a zero-phase filter"
    parser.add_argument("--measured", metavar="FILE", nargs="?", const="", help=measured)
    parser.add_argument("--cutoff", metavar="HZ", type=float, default=10.0, help="of that filter; 0: none (default: 10)")
    zarr = "or .zarr, chunk after chunk, for any number of states (.parquet, .zarr, .npy); started again it goes on"
    parser.add_argument("--out", metavar="FILE", help=f"write time, q, v, a, tau: .csv, .npz, .parquet; {zarr}")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="compute on a Dask cluster, tcp://…; needs --out FILE.zarr")
    parser.add_argument("--plot", metavar="FILE", help="draw the result: .png, .svg, .pdf or .html")
    parser.add_argument("--forward", action="store_true", help="accelerations from joint forces (columns tau1…) instead")
    parser.add_argument("--friction", action="store_true", help="with the joints' viscous and Coulomb friction")
    parser.add_argument("--differentiate", action="store_true", help="estimate missing v and a from the time column")
    parser.add_argument("--rate", type=float, metavar="HZ", help="with --measured: rows per second of a table without times")
    add_log_options(parser, times=True)


def run(args: argparse.Namespace) -> None:
    given = [x for x in (args.log, args.states, args.measured) if x]
    if len(given) > 1:
        raise CoadjointError(f"two tables are given, {cut(given[0])} and {cut(given[1])}; expected one.")
    args.states = given[0] if given else None
    if args.measured is not None:
        return _compare(args)
    if not stream.is_stream(args):
        _check_files(args)
    robot = read_robot(args.robot, args.base, args.fixed_joints)
    tell((*robot.notes, *impossible_inertias(robot)))
    a_moving_robot(robot, "robot")
    if stream.is_stream(args):
        return stream.run(args, robot)
    states, notes = _states(args, robot)
    result = compute(robot, states, args.forward, args.friction)
    print(summary(robot, result, args.forward))
    for note in notes:
        print(in_a_shell(note))
    if args.out:
        with Progress(f"writing {args.out}") as report:
            write_states(args.out, robot, result, report)
        print(f"wrote {args.out}")
    if args.plot:
        from ..show.plots import draw_states

        draw_states(args.plot, robot, result, forward=args.forward)
        print(f"drew {args.plot}")


def _compare(args: argparse.Namespace) -> None:
    """Measured against computed joint forces."""
    if not args.states:
        raise CoadjointError("--measured needs a table with time, q and tau: coadjoint dynamics ROBOT LOG --measured")
    if args.forward or args.differentiate or args.scheduler:
        raise CoadjointError("--measured compares joint forces; it goes without --forward, --differentiate and --scheduler.")
    _check_files(args)
    robot = read_robot(args.robot, args.base, args.fixed_joints)
    tell((*robot.notes, *impossible_inertias(robot)))
    with Progress(f"reading {args.states}") as report, warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)  # its notes are printed
        log = read_log(args.states, robot, **log_options(args), rate=args.rate, report=report)
    result = compare(robot, log, cutoff=args.cutoff or None, friction=args.friction)
    print(in_a_shell(str(result)))
    if args.out:
        write_states(args.out, robot, States(result.q, result.v, result.a, result.computed, result.time))
        print(f"wrote {args.out}")
    if args.plot:
        result.plot(args.plot)
        print(f"drew {args.plot}")


def _check_files(args: argparse.Namespace) -> None:
    """Check the names of all files before any work."""
    if args.states:
        check_input(args.states)
    check_files(args, args.states)


def _states(args: argparse.Namespace, robot: Robot) -> tuple[States, list[str]]:
    """The states to compute with, and remarks about them for the user."""
    if not args.states:
        motion = smooth_motion(robot)
        notes = [f"states: a smooth motion of {motion.time[-1]:g} s, as no --states are given"]  # type: ignore[index]
        if args.forward:
            motion = compute(robot, motion, False, args.friction)
            notes.append("joint forces: those of that motion by inverse dynamics")
        return motion, notes
    needs = ["q", "tau"] if args.forward else ["q"]
    if not args.differentiate:
        needs = ["q", "v", "tau"] if args.forward else ["q", "v", "a"]
    options = log_options(args)
    if options.pop("times") != "error" or args.rate is not None:
        raise CoadjointError(
            "--times and --rate are of --measured: the rows of other states need no times, or are taken as they are."
        )
    with Progress(f"reading {args.states}") as report:
        try:
            found = read_table(args.states, robot, needs=("q", *needs), extra=False, **options, report=report)
        except MissingColumnsError as error:
            if {"q", "tau"} & set(error.missing):
                raise
            raise ReadError(f"{error} With a time column, --differentiate estimates what is missing.") from None
    states, notes = as_states(found, robot), list(found.notes)
    if (doubt := degree_suspicion(robot, states.q)) and "q" not in found.stated:
        notes.append(doubt)
    if args.differentiate:
        # A forward problem needs no accelerations: whatever stands there will be replaced.
        given = replace(states, a=states.q[:, :0]) if args.forward else states
        given, made = differentiate(robot, given)
        states = replace(states, v=given.v, a=None if args.forward else given.a)
        notes += [f"{x}: estimated by central differences over time, not smoothed" for x in made]
    if not args.forward and states.tau is not None:
        notes.append("the tau of the table was not used")
    return states, notes


def compute(robot: Robot, states: States, forward: bool, friction: bool) -> States:
    """The states with tau by inverse dynamics, or with a by forward dynamics; a result that is not finite is an error."""
    known = states.tau if forward else states.a
    assert states.v is not None
    assert known is not None
    result = np.empty((len(states), robot.nv))
    function = forward_dynamics if forward else inverse_dynamics
    with Progress("computing") as report, np.errstate(all="ignore"):  # what is no number is looked for below
        for start in range(0, len(states), CHUNK):
            rows = slice(start, start + CHUNK)
            result[rows] = function(robot, states.q[rows], states.v[rows], known[rows], friction=friction)
            report(min(1.0, rows.stop / len(states)))
    if not np.isfinite(result).all():
        row = int(np.argmin(np.isfinite(result).all(axis=1)))
        if forward:
            raise SingularMassMatrixError(
                f"row {row + 1}: the mass matrix of robot {robot.name!r} is singular there, or the numbers are too large; "
                "accelerations do not exist. `coadjoint info` shows links without mass."
            )
        raise CoadjointError(f"row {row + 1}: the joint forces are not finite; the numbers of this row are too large.")
    return replace(states, a=result) if forward else replace(states, tau=result)


def summary(robot: Robot, states: States, forward: bool) -> str:
    """The largest and the root-mean-square value of every coordinate, its limit, and whether that is exceeded."""
    assert states.tau is not None
    names, units = robot.v_names, force_units(robot)
    rows = []
    for k, name in enumerate(names):
        tau, limit = states.tau[:, k], robot.effort_limit[k]
        over = int(np.sum(np.abs(tau) > limit))
        verdict = "" if not np.isfinite(limit) else f"exceeded in {_rows(over)}" if over else "kept"
        row = [name, number(np.max(np.abs(tau))), number(_rms(tau)), units[k], number(limit), verdict]
        if forward:
            assert states.a is not None
            unit = "rad/s²" if units[k] == "N m" else "m/s²"
            row = [name, number(np.max(np.abs(states.a[:, k]))), number(_rms(states.a[:, k])), unit, *row[1:2], *row[3:]]
        rows.append(row)
    head, align = ["joint", "max |τ|", "rms τ", "", "limit", ""], "lrrlrl"
    if forward:
        head, align = ["joint", "max |a|", "rms a", "", "max |τ|", "", "limit", ""], "lrrlrlrl"
    span = ""
    if states.time is not None:
        span = f" over {states.time[-1] - states.time[0]:.4g} s"
    what = "accelerations" if forward else "joint forces"
    count = "1 state" if len(states) == 1 else f"{len(states)} states"
    lines = [f"{name_of(robot)}: {what} for {count}{span}", "", table(head, rows, align), ""]
    return "\n".join(lines + _outside(robot, states))


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n} rows"


def _rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(x * x)))


def _outside(robot: Robot, states: States) -> list[str]:
    """A line for every coordinate whose position or velocity leaves its limits."""
    lines = []
    for what, x, low, high in (
        ("position", states.q, robot.lower, robot.upper),
        ("velocity", states.v, -robot.velocity_limit, robot.velocity_limit),
    ):
        assert x is not None
        outside = np.sum((x < low) | (x > high), axis=0)
        names = robot.q_names if what == "position" else robot.v_names
        for k in np.flatnonzero(outside):
            lines.append(
                f"{printable(names[k])}: {what} outside its limits {number(low[k])} … {number(high[k])} in {_rows(outside[k])}"
            )
    return lines
