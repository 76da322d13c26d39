"""`coadjoint control`: track a motion with a controller, and print, write or draw how well it does."""

from __future__ import annotations

import argparse
import inspect
from typing import Any

import numpy as np

from ..arguments import a_moving_robot
from ..control import Controller, computed_torque, passivity_based, pd, pd_plus, point_to_point, verify
from ..errors import CoadjointError, unknown
from ..motion.simulate import simulate
from ..motion.trajectory import Trajectory
from ..robot.robot import Robot
from ..show.terminal import Progress, number, table
from .robots import add_robot, check_files, one_number, read_robot, tell

HELP = "track a motion with a controller; draw errors, joint forces and the Lyapunov function"

CONTROLLERS = ("pd", "computed-torque", "pd-plus", "passivity-based")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    laws = (
        f"the law: {', '.join(CONTROLLERS)} (default: computed-torque); those that need goals of their own are called from Python"
    )
    parser.add_argument("--controller", default="computed-torque", metavar="LAW", help=laws)
    parser.add_argument("--duration", type=float, default=2.0, metavar="S", help="seconds of the reference motion (default: 2)")
    parser.add_argument(
        "--from", dest="start", type=one_number, nargs="+", metavar="X", help="where the reference starts (default: home)"
    )
    parser.add_argument("--to", type=one_number, nargs="+", metavar="X", help="where the reference ends (default: some way off)")
    parser.add_argument(
        "--error", type=float, default=0.1, metavar="X", help="how far off the robot starts, each joint (default: 0.1)"
    )
    parser.add_argument("--rate", type=float, default=10.0, metavar="R", help="errors decay about as exp(-R t) (default: 10)")
    sampled = "sample the controller every S seconds and hold its forces (default: continuous)"
    parser.add_argument("--period", type=float, metavar="S", help=sampled)
    parser.add_argument(
        "--friction", action="store_true", help="the robot has its joints' friction, which the controller does not know"
    )
    parser.add_argument("--out", metavar="FILE", help="write time, q, v, tau: .csv, .npz or .parquet")
    parser.add_argument(
        "--plot",
        nargs="?",
        const="control.png",
        metavar="FILE",
        help="draw errors, joint forces and the Lyapunov function: .png, .svg, .pdf or .html (default: control.png)",
    )
    parser.add_argument("--animate", metavar="FILE", help="a film of the robot: .gif, .mp4 or .html")


def run(args: argparse.Namespace) -> None:
    _check(args)
    robot = read_robot(args.robot, args.base, args.fixed_joints)
    tell(robot.notes)
    a_moving_robot(robot, "robot")
    start = configuration("--from", args.start, robot, home(robot))
    goal = configuration("--to", args.to, robot, robot.integrate(start, 0.3 * np.cos(np.arange(robot.nv))))
    controller = _controller(args, robot, start, goal)
    q = robot.integrate(start, args.error * np.cos(2.0 * np.arange(robot.nv)))
    times = np.linspace(0.0, 1.5 * args.duration, 601)
    with Progress("simulating") as report:
        options: dict[str, Any] = {"period": args.period, "friction": args.friction, "report": report}
        motion = simulate(robot, q, np.zeros(robot.nv), times, control=controller, **options)
    errors = tracking(controller, motion)
    print(_summary(robot, motion, errors))
    print()
    print(verify(controller, motion))
    if args.out:
        motion.save(args.out)
        print(f"wrote {args.out}")
    if args.plot:
        from ..show.control import draw_control

        draw_control(args.plot, controller, motion, errors)
        print(f"drew {args.plot}")
    if args.animate:
        with Progress("filming") as report:
            motion.animate(args.animate, report=report)
        print(f"wrote {args.animate}")


def tracking(controller: Controller, motion: Trajectory) -> np.ndarray:
    """The errors (N, nv) of a motion against the controller's reference."""
    return np.array(
        [motion.robot.difference(q, controller.reference(float(t))[0]) for t, q in zip(motion.time, motion.q, strict=True)]
    )


def _controller(args: argparse.Namespace, robot: Robot, start: np.ndarray, goal: np.ndarray) -> Controller:
    """The chosen law with gains that give errors the asked rate, for the inertias at the start."""
    from ..dynamics import mass_matrix

    reference, rate = point_to_point(robot, start, goal, args.duration), args.rate
    inertias = np.diag(mass_matrix(robot, start))
    if args.controller == "computed-torque":
        return computed_torque(robot, reference, kp=rate**2, kd=2 * rate)
    if args.controller == "passivity-based":
        return passivity_based(robot, reference, rate=rate, damping=2 * rate * inertias)
    law, goal_or_motion = (pd, goal) if args.controller == "pd" else (pd_plus, reference)
    return law(robot, goal_or_motion, kp=rate**2 * inertias, kd=2 * rate * inertias)


def home(robot: Robot) -> np.ndarray:
    """Home, or the middle of the limits for joints whose limits do not hold it."""
    q, low, high = robot.neutral(), robot.lower, robot.upper
    outside = (q < low) | (q > high)
    return np.where(outside, 0.5 * (np.where(outside, low, 0.0) + np.where(outside, high, 0.0)), q)


def _check(args: argparse.Namespace) -> None:
    if args.controller not in CONTROLLERS:
        raise _other_law(args.controller)
    for name, x in (("--duration", args.duration), ("--rate", args.rate), *([("--period", args.period)] if args.period else [])):
        if not (np.isfinite(x) and x > 0):
            raise CoadjointError(f"{name} is {x:g}; expected a positive number.")
    check_files(args)


def _other_law(name: str) -> CoadjointError:
    """The error for a law that the command does not run; it says how to call it if there is one."""
    from .. import control

    laws = [x for x in control.__all__ if x.islower() and inspect.isfunction(getattr(control, x)) and _gives_controller(x)]
    if (python := name.replace("-", "_")) in laws:
        return CoadjointError(
            f"--controller is {name}, which needs a goal of its own: call coadjoint.control.{python} from Python and give it to "
            f"`simulate`. The command runs {', '.join(CONTROLLERS)}."
        )
    return unknown(
        "controller", name, [*CONTROLLERS, *(x.replace("_", "-") for x in laws if x.replace("_", "-") not in CONTROLLERS)]
    )


def _gives_controller(name: str) -> bool:
    from .. import control

    return str(inspect.signature(getattr(control, name)).return_annotation) in ("Controller", "SampledController")


def configuration(name: str, given: list[float] | None, robot: Robot, default: np.ndarray) -> np.ndarray:
    """The configuration that an option gives, normalized and within the limits; `default` without it."""
    if given is None:
        return default
    if len(given) != robot.nq:
        raise CoadjointError(f"{name} has {len(given)} numbers; the configuration of robot {robot.name!r} has {robot.nq}.")
    q = robot.normalize(np.array(given))
    for k, coordinate in enumerate(robot.q_names):
        if not robot.lower[k] <= q[k] <= robot.upper[k]:
            raise CoadjointError(
                f"{name} has {q[k]:g} for {coordinate}, whose limits are {robot.lower[k]:g} and {robot.upper[k]:g}; choose one between."
            )
    return q


def _summary(robot: Robot, motion: Trajectory, errors: np.ndarray) -> str:
    rows = []
    for k, name in enumerate(robot.v_names):
        largest, limit = float(np.abs(motion.tau[:, k]).max()), robot.effort_limit[k]
        verdict = "exceeded" if largest > limit else "kept" if np.isfinite(limit) else ""
        rows.append([name, f"{abs(errors[0, k]):.2e}", f"{abs(errors[-1, k]):.2e}", number(largest), number(limit), verdict])
    return table(("joint", "error at first", "at last", "largest force", "limit", ""), rows, "lrrrrl")
