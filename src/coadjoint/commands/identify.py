"""`coadjoint identify`: the model of a robot from its log."""

from __future__ import annotations

import argparse
from typing import Any

from ..errors import CoadjointError
from ..files import check_output
from ..identification import identify
from ..identification.bounds import bound_rows
from ..identification.estimators import METHODS
from ..identification.friction import TERMS
from ..identification.preparation import check_cutoff
from ..identification.priors import PRIORS, checked_prior
from ..identification.simulated import SIMULATED
from ..motion.logs import read_log
from ..robot.save import check_format, save
from ..show.identification import check_report
from ..show.terminal import Progress
from ..words import in_a_shell
from .commanded import add_simulation_options, check_simulation, simulation
from .logs import add_log_options, log_options
from .robots import add_robot, one_number, read_robot, tell

HELP = "identify inertias, friction and offsets of a robot from a log of its motion"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument(
        "log", metavar="LOG", nargs="+", help="tables with time, q, tau and perhaps v, a: .csv, .tsv, .parquet, .npz, bags"
    )
    parser.add_argument("--out", metavar="FILE", help="write the identified robot: .json, .urdf or .xml (MJCF)")
    parser.add_argument("--report", metavar="FILE", help="write a page with figures and tables: .html")
    parser.add_argument(
        "--cutoff", type=float, metavar="HZ", help="frequency of the zero-phase low-pass (default: 10 where needed)"
    )
    parser.add_argument(
        "--gains", type=one_number, nargs="+", metavar="K", help="force for a current of one, joint by joint: tau is currents"
    )
    methods = ("auto", *METHODS, *SIMULATED)
    parser.add_argument("--method", choices=methods, default="auto", help="the estimator (default: auto, the maximum posterior)")
    parser.add_argument(
        "--friction",
        choices=("auto", *TERMS),
        nargs="+",
        metavar="TERM",
        default=["auto"],
        help=f"terms of friction and drives, or auto, which chooses among them: {', '.join(TERMS)}",
    )
    parser.add_argument(
        "--delay", type=float, metavar="SECONDS", help="how late forces are recorded; 0: they are not (default: what the log shows)"
    )
    parser.add_argument(
        "--prior", metavar="KIND", default="auto", help=f"{', '.join(PRIORS)}, or a number: the weight of the entropic one"
    )
    parser.add_argument(
        "--mass", nargs=3, action="append", metavar=("LINK", "LOW", "HIGH"), help="bounds of a link's mass in kg; may be repeated"
    )
    parser.add_argument("--total-mass", nargs=2, type=float, metavar=("LOW", "HIGH"), help="bounds of the mass of all links in kg")
    parser.add_argument("--parameters", action="store_true", help="print all parameters with their intervals")
    parser.add_argument("--rate", type=float, metavar="HZ", help="rows per second of a table without times")
    add_simulation_options(parser)
    add_log_options(parser, times=True)


def run(args: argparse.Namespace) -> None:
    for path in (args.out, args.report):
        if path:
            check_output(path, *args.log)
    if args.out:
        check_format(args.out)
    if args.report:
        check_report(args.report)
    prior = _prior(args.prior)
    bounds = _bounds(args.mass, args.total_mass)
    cutoff, options = "auto" if args.cutoff is None else args.cutoff, log_options(args)
    check_cutoff(cutoff)
    robot = read_robot(args.robot, args.base, args.fixed_joints)
    tell(robot.notes)
    if not robot.nv:
        raise CoadjointError(f"robot {robot.name!r} has no joint that moves.")
    bound_rows(robot, bounds)
    check_simulation(args, robot)
    logs = []
    for path in args.log:
        with Progress(f"reading {path}") as report:
            logs.append(read_log(path, robot, **options, rate=args.rate, report=report))
    with Progress("identifying") as report:
        report(0.0)
        fit = identify(
            robot,
            logs,
            cutoff=cutoff,
            gains=args.gains,
            method=args.method,
            prior=prior,
            bounds=bounds,
            friction=args.friction,
            delay="auto" if args.delay is None else args.delay,
            simulation=simulation(args, robot, logs, options["units"]),
        )
    print(in_a_shell(str(fit)))
    for text in fit.advice:
        print(f"advice: {text}")
    if args.parameters:
        print()
        print(fit.parameters)
    if args.out:
        save(fit.robot, args.out)
        print(f"wrote {args.out}")
    if args.report:
        fit.report(args.report)
        print(f"wrote {args.report}")


def _prior(given: str) -> str | float:
    """A kind of prior or a weight, checked."""
    try:
        prior: str | float = float(given)
    except ValueError:
        prior = given
    checked_prior(prior, None)
    return prior


def _bounds(mass: list[list[str]] | None, total: list[float] | None) -> dict[str, Any] | None:
    """Bounds as `identify` takes them."""
    found: dict[str, Any] = {}
    for link, *ends in mass or ():
        try:
            interval = tuple(float(x) for x in ends)
        except ValueError:
            raise CoadjointError(f"--mass {link} {' '.join(ends)}: expected a link, and its least and most mass in kg.") from None
        if link in found.setdefault("mass", {}):
            raise CoadjointError(f"--mass {link} is given twice.")
        found["mass"][link] = interval
    if total is not None:
        found["total_mass"] = tuple(total)
    return found or None
