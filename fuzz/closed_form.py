"""Inverse kinematics in closed form on random arms of every kind: each pose solved, the configuration that made it among the solutions.

    PYTHONPATH=src:tests python -m fuzz.closed_form --arms 1000 --poses 20

It runs as written; with --native as machine code, which takes about a second to make for each arm.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

import coadjoint as cj
from coadjoint.kinematics import solutions
from test_inverse_kinematics_solutions import apart, arms


def as_written(fn: Callable[..., Any], robot: cj.Robot, *, shapes: Any, **statics: Any) -> Callable[..., Any]:
    """In the place of `compile`: the function itself."""
    return lambda target, threads=None: fn(robot, target, **statics)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--arms", type=int, default=100, help="of each kind")
    parser.add_argument("--poses", type=int, default=20, help="of each arm")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--native", action="store_true", help="as machine code")
    args = parser.parse_args()
    with np.errstate(all="ignore"), mock.patch.object(solutions, "compile", solutions.compile if args.native else as_written):
        _tally(args)


def _tally(args: argparse.Namespace) -> None:
    tally: dict[str, np.ndarray] = {}
    for seed in range(args.seed, args.seed + args.arms):
        rng = np.random.default_rng(seed)
        for kind, robot in arms(rng).items():
            q = rng.uniform(-np.pi, np.pi, (args.poses, 6))
            T = cj.pose(robot, q, "tip")
            found = cj.inverse_kinematics_solutions(robot, T, "tip")
            nearest = np.min(np.where(found.valid, apart(found.q, q[:, None]), np.inf), axis=-1)
            wanted = np.broadcast_to(T[:, None], (*found.valid.shape, 4, 4))[found.valid]
            left = np.max(np.abs(cj.pose(robot, found.q[found.valid], "tip") - wanted), initial=0.0)
            row = tally.setdefault(kind, np.zeros(5))
            row[:3] += args.poses, (found.count > 0).sum(), (nearest < 1e-5).sum()
            row[3:] = max(row[3], nearest.max()), max(row[4], left)
            if nearest.max() > 1e-5:
                print(
                    f"seed {seed}, {kind}: a configuration is not among the solutions, the nearest is {nearest.max():.1e} off",
                    flush=True,
                )
    for kind, (poses, solved, among, worst, left) in tally.items():
        print(
            f"{kind}: {poses:.0f} poses, {solved:.0f} solved, {among:.0f} originals found (to {worst:.1e}), poses reached to {left:.1e}"
        )


if __name__ == "__main__":
    main()
