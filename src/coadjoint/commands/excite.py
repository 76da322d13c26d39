"""`coadjoint excite`: design the motion that shows a robot's parameters best, and write or draw it."""

from __future__ import annotations

import argparse

import numpy as np

from ..errors import CoadjointError
from ..identification.excitation import Excitation, excitation
from ..motion.logs import read_log
from ..show.terminal import Progress, number, table
from .logs import add_log_options, log_options
from .robots import add_robot, check_files, one_number, read_robot, tell

HELP = "design a motion that shows the robot's parameters best, for identification"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("--duration", type=float, default=20.0, metavar="S", help="seconds (default: 20)")
    parser.add_argument(
        "--harmonics", type=int, default=5, metavar="N", help="of 1/duration; pieces of a B-spline are twice as many"
    )
    parser.add_argument("--kind", choices=("fourier", "bspline"), default="fourier", help="of curve (default: fourier)")
    criterion = "information (least confidence ellipsoid) or condition (least condition number)"
    parser.add_argument("--criterion", choices=("information", "condition"), default="information", help=criterion)
    parser.add_argument("--start", type=one_number, nargs="+", metavar="X", help="the configuration to begin and rest at")
    parser.add_argument("--velocity", type=float, metavar="X", help="limit of all velocities, in the place of the robot's")
    parser.add_argument("--acceleration", type=float, metavar="X", help="limit of all accelerations")
    parser.add_argument("--floor", type=float, metavar="Z", help="height that all --sphere keep above")
    spheres = "a sphere on a link or frame (on the base: an obstacle); may be repeated"
    parser.add_argument("--sphere", nargs=5, action="append", metavar=("LINK", "X", "Y", "Z", "RADIUS"), help=spheres)
    parser.add_argument("--log", action="append", default=[], metavar="FILE", help="a recorded motion that this one complements")
    parser.add_argument("--drives", action="store_true", help="also armature, damping and Coulomb friction")
    parser.add_argument("--rate", type=float, default=100.0, metavar="HZ", help="rows a second in the table (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="of the search")
    parser.add_argument("--out", metavar="FILE", help="write time, q, v, a, tau: .csv, .npz or .parquet")
    parser.add_argument("--plot", metavar="FILE", help="draw the motion beside its limits: .png, .svg, .pdf or .html")
    add_log_options(parser, times=True)


def run(args: argparse.Namespace) -> None:
    check_files(args, *args.log)
    robot = read_robot(args.robot, args.base, args.fixed_joints)
    tell(robot.notes)
    logs = [read_log(path, robot, **log_options(args)) for path in args.log]
    with Progress("designing") as report:
        motion = excitation(
            robot,
            args.duration,
            harmonics=args.harmonics,
            kind=args.kind,
            criterion=args.criterion,
            start=args.start,
            velocity=args.velocity,
            acceleration=args.acceleration,
            spheres=[_sphere(x) for x in args.sphere or ()],
            planes=[] if args.floor is None else [((0.0, 0.0, 1.0), args.floor)],
            logs=logs,
            drives=args.drives,
            rate=args.rate,
            seed=args.seed,
            report=report,
        )
    print(motion)
    print()
    print(summary(motion))
    if args.out:
        motion.save(args.out)
        print(f"wrote {args.out}")
    if args.plot:
        motion.plot(args.plot)
        print(f"drew {args.plot}")


def _sphere(words: list[str]) -> tuple[str, list[float], float]:
    try:
        *center, radius = map(float, words[1:])
    except ValueError:
        raise CoadjointError(f"--sphere {' '.join(words)}: expected a link or frame, three coordinates and a radius.") from None
    return words[0], center, radius


def summary(motion: Excitation) -> str:
    """The largest velocity, acceleration and torque of every joint, its range, and the limits."""
    L, rows = motion.limits, []
    for k, name in enumerate(motion.robot.v_names):
        most = [float(np.abs(x[:, k]).max()) for x in (motion.v, motion.a, motion.tau)]
        span = f"{number(motion.q[:, k].min())} … {number(motion.q[:, k].max())}"
        limits = f"{number(L.lower[k])} … {number(L.upper[k])}"
        rows.append(
            [name, span, limits, number(most[0]), number(L.velocity[k]), number(most[1]), number(most[2]), number(L.effort[k])]
        )
    header = ("joint", "position", "limits", "max |v|", "limit", "max |a|", "max |tau|", "limit")
    return table(header, rows, "lrrrrrrr")
