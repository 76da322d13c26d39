"""`coadjoint dynamics --out FILE.zarr`: states that need not fit into memory, processed in chunks, here or on a cluster."""

from __future__ import annotations

import argparse

from ..dynamics import forward_dynamics, inverse_dynamics
from ..errors import CoadjointError
from ..robot.robot import Robot
from ..scale.streaming import stream
from ..show.terminal import Progress


def is_stream(args: argparse.Namespace) -> bool:
    """True if the command is executed in chunks: its output is a Zarr group, or a cluster executes it."""
    return bool(args.scheduler) or str(args.out or "").lower().rstrip("/").endswith(".zarr")


def run(args: argparse.Namespace, robot: Robot) -> None:
    if not str(args.out or "").lower().rstrip("/").endswith(".zarr"):
        raise CoadjointError("--scheduler needs --out FILE.zarr, which is written chunk after chunk.")
    if not args.states:
        raise CoadjointError("--out FILE.zarr needs --states: .parquet, .zarr or .npy.")
    for name in ("plot", "differentiate"):
        if getattr(args, name):
            raise CoadjointError(f"--{name} needs all states at once; leave it out, or write to .csv, .npz or .parquet.")
    fn, what, quantity = (forward_dynamics, "accelerations", "a") if args.forward else (inverse_dynamics, "joint forces", "tau")
    with Progress(f"computing {args.out}") as report:
        try:
            found = stream(
                fn, robot, args.states, args.out, names=(quantity,), scheduler=args.scheduler, report=report, friction=args.friction
            )
        except KeyboardInterrupt:
            print(f"\n{args.out} is not complete: the same command goes on where it stopped.")
            raise
    print(f"{robot.name}: {what} for {found[quantity].shape[0]} states, array {quantity!r} of {args.out}")
