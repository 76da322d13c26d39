"""The command `coadjoint`. Exit codes: 0 done, 1 wrong input (one line on stderr), 2 wrong usage, 130 interrupted."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

from . import __version__
from .errors import CoadjointError, ModelWarning

ROBOT = "a bundled robot (see `coadjoint zoo`) or a file: .urdf, .xml (MJCF), .json"


def parser() -> argparse.ArgumentParser:
    """The command line with its sub-commands, each a module of `commands` with a function `run`."""
    root = argparse.ArgumentParser(prog="coadjoint", description="Robot dynamics as geometry.")
    root.add_argument("--version", action="version", version=f"coadjoint {__version__}")
    commands = root.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(name: str, help: str, robot: bool = True) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
        if robot:
            command.add_argument("robot", metavar="ROBOT", help=ROBOT)
            command.add_argument("--base", choices=("fixed", "free"), default="fixed", help="may the base move? (default: fixed)")
            joints = "whether links of fixed joints become part of what carries them (default: merge)"
            command.add_argument("--fixed-joints", choices=("merge", "keep"), default="merge", help=joints)
        return command

    info = add("info", "show the tree, joints, limits, masses, frames and implausible inertias of a robot")
    info.add_argument("--json", action="store_true", help="print JSON")

    dynamics = add("dynamics", "compute joint forces, or accelerations, for a table of states")
    dynamics.add_argument(
        "--states",
        metavar="FILE",
        help="table of states, .csv, .npz or .parquet: time, q1…, v1…, a1… (or q.JOINT …); without it a smooth motion is used",
    )
    zarr = "; or .zarr, chunk after chunk, for states (.parquet, .zarr, .npy) of any number; started again it goes on"
    dynamics.add_argument("--out", metavar="FILE", help=f"write time, q, v, a, tau: .csv, .npz or .parquet{zarr}")
    dynamics.add_argument("--scheduler", metavar="ADDRESS", help="compute on a Dask cluster, tcp://…; needs --out FILE.zarr")
    dynamics.add_argument("--plot", metavar="FILE", help="draw the result: .png, .svg, .pdf or .html")
    dynamics.add_argument("--forward", action="store_true", help="accelerations from joint forces (columns tau1…) instead")
    dynamics.add_argument("--friction", action="store_true", help="with the joints' viscous and Coulomb friction")
    dynamics.add_argument("--differentiate", action="store_true", help="estimate missing v and a from the time column")

    equations = add("equations", "write the equations of motion in closed form")
    formats = ("text", "latex", "sympy", "c")
    equations.add_argument(
        "--format", choices=formats, default="text", help="text to read, LaTeX, Python for SymPy, or C (default: text)"
    )
    numbers = "numbers of the robot, or symbols such as m_1, l_1, I_1zz (default: numeric)"
    equations.add_argument("--parameters", choices=("numeric", "symbolic"), default="numeric", help=numbers)
    quantities = ("M", "C", "g", "U", "T", "gamma")
    quantity = (
        "which of M (mass matrix), C (Coriolis matrix), g (gravity), U, T (energies), gamma (Christoffel symbols) (default: M C g)"
    )
    equations.add_argument("--what", nargs="+", choices=quantities, default=["M", "C", "g"], metavar="X", help=quantity)
    equations.add_argument("--out", metavar="FILE", help="write to a file")

    geometry = add("geometry", "tell curvature, geodesics and balance of a robot, over two of its joints")
    which = "the two joints, by name or by number; without it the two whose plane is curved most"
    geometry.add_argument("--joints", nargs=2, metavar=("I", "J"), help=which)
    geometry.add_argument("--plot", metavar="FILE", help="draw it: .png, .svg, .pdf or .html")

    redundancy = add("redundancy", "tell what a robot can do besides its task, and how it drifts round a closed path")
    redundancy.add_argument("--frame", metavar="NAME", help="the frame that has the task (default: tip, or the last one)")
    rows = "rows of its twist (ω, v), 0 to 5, as 3 4 5 for the position; without it as many as leave freedoms"
    redundancy.add_argument("--rows", nargs="+", type=int, metavar="K", help=rows)
    redundancy.add_argument("--loops", type=int, default=3, metavar="N", help="how often round the path (default: 3)")
    redundancy.add_argument("--plot", metavar="FILE", help="draw it: .png, .svg, .pdf or .html")

    simulate = add("simulate", "let a robot move from a state, under gravity, and draw or film it")
    simulate.add_argument("--duration", type=float, default=5.0, metavar="S", help="seconds (default: 5)")
    simulate.add_argument("--q", type=float, nargs="+", metavar="X", help="the configuration to start from (default: home)")
    simulate.add_argument("--v", type=float, nargs="+", metavar="X", help="the velocity to start with (default: none)")
    methods = "adaptive (order 8), variational (order 2) or symplectic (order 4), which keep energy for long (default: adaptive)"
    simulate.add_argument("--method", choices=("adaptive", "variational", "symplectic"), default="adaptive", help=methods)
    simulate.add_argument("--step", type=float, default=1e-3, metavar="S", help="seconds of a variational step (default: 0.001)")
    simulate.add_argument("--samples", type=int, default=501, metavar="N", help="how many states to keep (default: 501)")
    simulate.add_argument("--friction", action="store_true", help="with the joints' viscous and Coulomb friction")
    simulate.add_argument("--out", metavar="FILE", help="write time, q, v, tau: .csv, .npz or .parquet")
    simulate.add_argument("--plot", metavar="FILE", help="draw positions, velocities and energies: .png, .svg, .pdf or .html")
    simulate.add_argument("--animate", metavar="FILE", help="film the robot as a stick figure: .gif, .html or .mp4")

    convert = add("convert", "write a robot as URDF, MJCF or JSON, by the extension", robot=False)
    convert.add_argument("robot", metavar="IN", help=ROBOT)
    convert.add_argument("out", metavar="OUT", help="the file to write: .urdf, .xml (MJCF) or .json")
    convert.add_argument("--force", action="store_true", help="overwrite OUT if it exists")

    add("zoo", "list the bundled robots", robot=False)

    cache = add("cache", "tell where compiled kernels are kept, and how many", robot=False)
    cache.add_argument("--clear", action="store_true", help="remove them; they are made again when needed")
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without τ shows ? instead of failing
            stream.reconfigure(errors="replace")
    args = parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", ModelWarning)
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            import_module(f".commands.{args.command}", __package__).run(args)
        sys.stdout.flush()
    except (CoadjointError, OSError, MemoryError) as error:
        if isinstance(error, BrokenPipeError):  # the reader of our output has gone, as with `| head`
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 141
        print(f"coadjoint: error: {_one_line(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ncoadjoint: interrupted; nothing was left half done.", file=sys.stderr)
        return 130
    return 0


def _one_line(message: object) -> str:
    return " ".join(str(message).split()) or type(message).__name__


def _show_warning(message: Warning | str, *_: object) -> None:
    print(f"coadjoint: warning: {_one_line(message)}", file=sys.stderr)
