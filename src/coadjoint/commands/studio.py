"""`coadjoint studio`: the page of a robot with Python behind it."""

from __future__ import annotations

import argparse

from ..arguments import a_moving_robot
from ..errors import CoadjointError
from ..show.page.source import source_of
from ..show.studio.server import serve
from ..words import printable
from .robots import add_robot, read_robot

HELP = "open the page of a robot with Python behind it: inverse kinematics, geodesics, curvature, constraints"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("--port", type=int, default=0, help="the port on 127.0.0.1 (default: a free one)")
    parser.add_argument("--no-browser", action="store_true", help="print the address and open no browser")


def run(args: argparse.Namespace) -> None:
    if not 0 <= args.port < 65536:
        raise CoadjointError(f"--port is {args.port}; expected a number from 0 to 65535.")
    robot = read_robot(args.robot, args.base, args.fixed_joints)
    a_moving_robot(robot, "robot")
    source = source_of(args.robot, args.base, args.fixed_joints)
    serve(robot, args.port, browser=not args.no_browser, source=source, tell=lambda text: print(printable(text), flush=True))
