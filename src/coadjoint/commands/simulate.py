"""`coadjoint simulate`: simulate a robot, and print, write, plot or animate its motion."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from ..arguments import a_moving_robot
from ..constraints.constraint import Constraint
from ..constraints.manifold import assemble
from ..errors import CoadjointError
from ..motion.simulate import simulate
from ..motion.trajectory import Trajectory
from ..robot.plausibility import impossible_inertias
from ..robot.robot import Robot
from ..show.terminal import Progress, number, table
from .robots import add_robot, check_files, one_number, read_robot, tell

HELP = "simulate a robot from a state under gravity; draw or animate the motion"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("--duration", type=float, default=5.0, metavar="S", help="seconds (default: 5)")
    parser.add_argument("--q", type=one_number, nargs="+", metavar="X", help="the configuration to start from (default: home)")
    parser.add_argument("--v", type=one_number, nargs="+", metavar="X", help="the velocity to start with (default: none)")
    methods = (
        "adaptive (order 8), implicit (order 9, for stiff motions), variational (order 2) or symplectic (order 4), for long ones"
    )
    choices = ("adaptive", "implicit", "variational", "symplectic")
    parser.add_argument("--method", choices=choices, default="adaptive", help=methods)
    parser.add_argument("--step", type=float, default=1e-3, metavar="S", help="seconds of a variational step (default: 0.001)")
    parser.add_argument("--samples", type=int, default=501, metavar="N", help="how many states to keep (default: 501)")
    parser.add_argument("--friction", action="store_true", help="with the joints' viscous and Coulomb friction")
    stops = "stops at the position limits, with restitution E from 0 (plastic) to 1 (elastic)"
    parser.add_argument("--stops", type=float, metavar="E", help=stops)
    parser.add_argument("--out", metavar="FILE", help="write time, q, v, tau: .csv, .npz or .parquet")
    parser.add_argument("--plot", metavar="FILE", help="draw positions, velocities and energies: .png, .svg, .pdf or .html")
    parser.add_argument("--animate", metavar="FILE", help="animate the robot as a stick figure: .gif, .html or .mp4")


def run(args: argparse.Namespace) -> None:
    check_files(args)
    if not (np.isfinite(args.duration) and args.duration > 0):
        raise CoadjointError(f"--duration is {args.duration:g}; expected a positive number of seconds.")
    if args.samples < 2:
        raise CoadjointError(f"--samples is {args.samples}; expected 2 or more.")
    robot, loops = _robot(args)
    tell((*robot.notes, *impossible_inertias(robot)))
    a_moving_robot(robot, "robot")
    q = _numbers("--q", args.q, robot.nq, robot.neutral())
    v = _numbers("--v", args.v, robot.nv, np.zeros(robot.nv))
    if loops is not None and args.q is None:
        q = assemble(robot, loops, q)
    times = np.linspace(0.0, args.duration, args.samples)
    with Progress("simulating") as report:
        options = {"method": args.method, "step": args.step, "friction": args.friction, "stops": args.stops}
        trajectory = simulate(robot, q, v, times, constraints=loops, report=report, **options)
    print(trajectory)
    print()
    print(summary(robot, trajectory))
    if args.out:
        trajectory.save(args.out)
        print(f"wrote {args.out}")
    if args.plot:
        trajectory.plot(args.plot)
        print(f"drew {args.plot}")
    if args.animate:
        with Progress("filming") as report:
            trajectory.animate(args.animate, report=report)
        print(f"wrote {args.animate}")


def _robot(args: argparse.Namespace) -> tuple[Robot, Constraint | None]:
    """The robot, and the loops that its description closes."""
    if Path(args.robot).suffix.lower() == ".xml" and Path(args.robot).is_file():
        from ..constraints.mjcf import read_mjcf

        return read_mjcf(args.robot, args.base, args.fixed_joints)
    robot = read_robot(args.robot, args.base, args.fixed_joints)
    return robot, Constraint.loops(robot) if robot.loops else None


def _numbers(name: str, given: list[float] | None, size: int, default: np.ndarray) -> np.ndarray:
    if given is None:
        return default
    if len(given) != size:
        raise CoadjointError(f"{name} has {len(given)} numbers; the robot has {size} coordinates there.")
    return np.array(given)


def summary(robot: Robot, trajectory: Trajectory) -> str:
    """The range of every coordinate, its largest velocity, their limits, and the energies."""
    rows = []
    for k, name in enumerate(robot.v_names):
        fastest, limit = np.max(np.abs(trajectory.v[:, k])), robot.velocity_limit[k]
        rows.append(
            [name, number(fastest), number(limit), _verdict(fastest > limit, np.isfinite(limit)), *_range(robot, trajectory, name)]
        )
    if trajectory.constraints is not None:
        rows.append(["loops open by", f"{trajectory.drift()[0]:.1e}", *[""] * 5])
    e = trajectory.energy
    scale = np.ptp(trajectory.potential_energy) + trajectory.kinetic_energy.max()
    return "\n".join(
        [
            table(("joint", "max |v|", "limit", "", "position", "limits", ""), rows, "lrrlrrl"),
            "",
            f"energy {e[0]:.9g} J at first, {e[-1]:.9g} J at last; largest change {np.abs(e - e[0]).max():.2g} J "
            f"({np.abs(e - e[0]).max() / scale if scale else 0.0:.1e} of the energy exchanged)",
        ]
    )


def _verdict(exceeded: bool, limited: bool) -> str:
    return "exceeded" if exceeded else "kept" if limited else ""


def _range(robot: Robot, trajectory: Trajectory, name: str) -> list[str]:
    """The range of the coordinate of that name, its limits, and whether it stayed within them; empty for a velocity that is not the
    rate of a coordinate.
    """
    if name not in robot.q_names:
        return ["", "", ""]
    k = robot.q_names.index(name)
    q, lower, upper = trajectory.q[:, k], robot.lower[k], robot.upper[k]
    limited = bool(np.isfinite(lower) or np.isfinite(upper))
    beyond = bool(q.min() < lower - 1e-9 or q.max() > upper + 1e-9)
    limits = f"{number(lower)} … {number(upper)}" if limited else "-"
    return [f"{number(q.min())} … {number(q.max())}", limits, _verdict(beyond, limited)]
