"""`coadjoint move`: the motion of least cost between two configurations."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from ..arguments import a_moving_robot
from ..errors import CoadjointError
from ..optimal import Capsule, OptimalMotion, optimal_motion
from ..optimal.motion_arguments import COSTS
from ..optimal.optimal_motion import TRANSCRIPTIONS
from ..show.terminal import Progress, number, table
from .control import configuration, home
from .robots import add_robot, check_files, one_number, read_robot, tell

HELP = "find the motion of least effort, energy, jerk or time between two configurations, within the limits"
ITERATIONS = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument(
        "--from", dest="start", type=one_number, nargs="+", metavar="X", help="the first configuration (default: home)"
    )
    parser.add_argument("--to", type=one_number, nargs="+", metavar="X", required=True, help="the last configuration")
    parser.add_argument("--cost", choices=COSTS, default="effort", help="what is least, integrated over time (default: effort)")
    free = "seconds, or free (default: twice what the velocity limits ask for; chosen for the cost time)"
    parser.add_argument("--duration", metavar="S", help=free)
    ball = "a sphere (4 numbers: centre, radius) or a capsule (7: both ends, radius) to keep clear of; may stand several times"
    parser.add_argument("--obstacle", type=one_number, nargs="+", action="append", default=[], metavar="X", help=ball)
    parser.add_argument("--clearance", type=float, default=0.0, metavar="M", help="metres to keep from obstacles (default: 0)")
    parser.add_argument("--self-collision", action="store_true", help="keep links apart that are not neighbours")
    ways = "how the motion is made up of numbers (default: splines)"
    parser.add_argument("--transcription", choices=TRANSCRIPTIONS, default="splines", help=ways)
    parser.add_argument("--spans", type=int, default=16, metavar="N", help="polynomials that make up the motion (default: 16)")
    parser.add_argument("--out", metavar="FILE", help="write time, q, v, a, tau: .csv, .npz or .parquet")
    parser.add_argument(
        "--plot", metavar="FILE", help="draw positions, forces against limits, and the iterations: .png, .svg, .pdf or .html"
    )


def run(args: argparse.Namespace) -> None:
    duration = _duration(args.duration)
    obstacles = [_obstacle(numbers) for numbers in args.obstacle]
    check_files(args)
    robot = read_robot(args.robot, args.base, args.fixed_joints)
    tell(robot.notes)
    a_moving_robot(robot, "robot")
    start = configuration("--from", args.start, robot, home(robot))
    goal = configuration("--to", args.to, robot, start)
    with Progress("iterating") as progress:
        options: dict[str, Any] = {"spans": args.spans, "iterations": ITERATIONS, "transcription": args.transcription}
        if obstacles or args.self_collision:
            options |= {"obstacles": obstacles, "clearance": args.clearance, "self_collision": args.self_collision}
        report = lambda k, error: progress(k / ITERATIONS)
        motion = optimal_motion(robot, start, goal, duration, args.cost, report=report, **options)
    print(motion)
    print()
    print(_summary(motion))
    if np.isfinite(motion.clearance):
        print(f"\nleast distance of links and obstacles: {motion.clearance:.4g} m")
    if args.out:
        motion.save(args.out)
        print(f"wrote {args.out}")
    if args.plot:
        from ..show.optimal import draw_optimal

        draw_optimal(args.plot, motion)
        print(f"drew {args.plot}")


def _obstacle(numbers: list[float]) -> Capsule:
    if len(numbers) not in (4, 7):
        raise CoadjointError(f"--obstacle has {len(numbers)} numbers; expected 4 (centre, radius) or 7 (both ends, radius).")
    return Capsule(numbers[:3], numbers[-4:-1], numbers[-1])


def _summary(motion: OptimalMotion) -> str:
    robot, rows = motion.robot, []
    for k, name in enumerate(robot.v_names):
        pairs = [(float(np.abs(x[:, k]).max()), limit[k]) for x, limit in _limited(motion)]
        rows.append([name, *(number(x) for pair in pairs for x in pair)])
    return table(("joint", "largest speed", "limit", "largest force", "limit"), rows, "lrrrr")


def _limited(motion: OptimalMotion) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(motion.v, motion.robot.velocity_limit), (motion.tau, motion.robot.effort_limit)]


def _duration(given: str | None) -> float | str | None:
    if given is None or given == "free":
        return given
    try:
        seconds = float(given)
    except ValueError:
        seconds = np.nan
    if not (np.isfinite(seconds) and seconds > 0):
        raise CoadjointError(f"--duration is {given}; expected a positive number of seconds, or free.")
    return seconds
