"""`coadjoint timing`: the fastest motion along a path of waypoints."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CoadjointError
from ..motion.states import States
from ..motion.tables import read_states, write_states
from ..optimal import Timing, time_optimal
from ..robot.robot import Robot
from ..show.terminal import Progress, table
from .robots import add_robot, check_files, one_number, read_robot, tell

HELP = "find the fastest motion along a path within limits of velocity, acceleration, effort, power, jerk and at frames"
LIMITS = ("velocity", "acceleration", "effort", "power", "jerk")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("path", metavar="PATH", help="waypoints: a table with columns q1 … qn or q.joint: .csv, .npz or .parquet")
    for name, unit in (("velocity", "rad/s"), ("acceleration", "rad/s²"), ("effort", "N m"), ("power", "W"), ("jerk", "rad/s³")):
        what = f"limits of {name} [{unit}], one or one for each joint; inf: none"
        own = " (default: the robot's)" if name in ("velocity", "effort") else " (default: none)"
        parser.add_argument(f"--{name}", type=one_number, nargs="+", metavar="X", help=what + own)
    parser.add_argument(
        "--frame-speed",
        nargs=3,
        action="append",
        default=[],
        metavar=("FRAME", "W", "V"),
        help="its angular and linear speed [rad/s, m/s]",
    )
    parser.add_argument(
        "--frame-acceleration",
        nargs=3,
        action="append",
        default=[],
        metavar=("FRAME", "A", "B"),
        help="its angular and linear acceleration along each of its axes [rad/s², m/s²]",
    )
    parser.add_argument(
        "--grip",
        nargs=4,
        action="append",
        default=[],
        metavar=("FRAME", "KG", "M", "F"),
        help="moment and force along each axis of a frame that hold this mass there [N m, N]",
    )
    parser.add_argument(
        "--start-speed", type=float, default=0.0, metavar="X", help="ds/dt at the start, s from 0 to 1 (default: 0)"
    )
    parser.add_argument("--end-speed", type=float, default=0.0, metavar="X", help="ds/dt at the end (default: 0)")
    parser.add_argument("--samples", type=int, default=1001, metavar="N", help="how many states to write (default: 1001)")
    parser.add_argument("--out", metavar="FILE", help="write time, q, v, a, tau: .csv, .npz or .parquet")
    parser.add_argument("--plot", metavar="FILE", help="draw the phase plane, speeds and efforts: .png, .svg, .pdf or .html")


def run(args: argparse.Namespace) -> None:
    check_files(args, args.path if Path(args.path).is_file() else None)
    if args.samples < 2:
        raise CoadjointError(f"--samples is {args.samples}; expected 2 or more.")
    robot = read_robot(args.robot, args.base, args.fixed_joints)
    tell(robot.notes)
    limits: dict[str, Any] = {name: _limit(robot, name, getattr(args, name)) for name in LIMITS}
    limits |= {
        "frame_speed": {frame: _numbers("frame-speed", x) for frame, *x in args.frame_speed} or None,
        "frame_acceleration": {frame: np.repeat(_numbers("frame-acceleration", x), 3) for frame, *x in args.frame_acceleration}
        or None,
        "grip": {f: (_numbers("grip", [m])[0], np.repeat(_numbers("grip", x), 3)) for f, m, *x in args.grip} or None,
    }
    waypoints = read_states(args.path, robot, needs=("q",)).q
    with Progress("timing") as report:
        speeds = {"start_speed": args.start_speed, "end_speed": args.end_speed}
        timing = time_optimal(robot, waypoints, **limits, **speeds, report=report)
    print(f"{timing.duration:.9g} s along {len(waypoints)} waypoints")
    print()
    print(timing.report())
    print()
    print(summary(robot, timing))
    if args.out:
        write_states(args.out, robot, sampled(timing, args.samples))
        print(f"wrote {args.out}")
    if args.plot:
        from ..show.timing import draw_timing

        draw_timing(args.plot, timing)
        print(f"drew {args.plot}")


def sampled(timing: Timing, samples: int) -> States:
    """States of the motion at equal times."""
    t = np.linspace(0.0, timing.duration, samples)
    q, v, a = timing(t)
    return States(q, v, a, timing.effort(t), time=t)


def summary(robot: Robot, timing: Timing) -> str:
    """The largest part of every limit that is used, by joint."""
    use = timing.use(np.linspace(0.0, timing.duration, 2001))
    columns = [name for name, x in use.items() if x.shape[-1] == robot.nv and name in LIMITS and np.any(x > 0)]
    rows = [[name, *(f"{100 * use[c][:, j].max():.1f} %" for c in columns)] for j, name in enumerate(robot.v_names)]
    return table(("joint", *(f"of {c}" for c in columns)), rows, "l" + "r" * len(columns))


def _numbers(name: str, given: list[str]) -> np.ndarray:
    try:
        return np.array([float(x) for x in given])
    except ValueError:
        raise CoadjointError(f"--{name} has {' '.join(given)}; expected numbers, inf where there is no limit.") from None


def _limit(robot: Robot, name: str, given: list[float] | None) -> np.ndarray | None:
    if given is None:
        return None
    if len(given) not in (1, robot.nv):
        raise CoadjointError(
            f"--{name} has {len(given)} numbers; expected one, or {robot.nv}, one for each of {', '.join(robot.v_names)}."
        )
    return np.broadcast_to(np.array(given), (robot.nv,)).copy()
