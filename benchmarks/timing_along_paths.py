"""Timing along paths beside toppra: `python -m benchmarks.timing_along_paths`. Needs `pip install toppra`.

The Panda along cubic splines through five random points, which both libraries are given, within limits of velocity and acceleration,
then of velocity and joint force. Times are of the processor, the least of several rounds, both libraries in turn in one process:
of twenty paths one by one, each in a call of its own, and of all in one call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

import coadjoint as cj

ACCELERATION = np.array([15, 7.5, 10, 12.5, 15, 20, 20])
GRID = np.linspace(0, 1, 5)
ALONE = 20
"""Paths that are timed one by one."""


def toppra_duration(points: np.ndarray, robot: cj.Robot, count: int, torque: bool) -> float:
    """What toppra finds on so many grid points."""
    import toppra
    from toppra import algorithm, constraint

    toppra.setup_logging("ERROR")
    both = lambda x: np.c_[-x, x]
    limits = [constraint.JointVelocityConstraint(both(robot.velocity_limit))]
    if torque:
        inverse = lambda q, v, a: cj.inverse_dynamics(robot, *(np.asarray(x, dtype=float) for x in (q, v, a)))
        limits.append(constraint.JointTorqueConstraint(inverse, both(robot.effort_limit), np.zeros(robot.nv)))
    else:
        limits.append(constraint.JointAccelerationConstraint(both(ACCELERATION)))
    path = toppra.SplineInterpolator(GRID, points)
    found = algorithm.TOPPRA(limits, path, gridpoints=np.linspace(0, 1, count), parametrizer="ParametrizeConstAccel")
    return float(found.compute_trajectory(0, 0).duration)


def least(*calls: Callable[[], Any], rounds: int = 20) -> list[float]:
    """Processor time of each call, the least of rounds in turn."""
    found = [np.inf] * len(calls)
    for _ in range(rounds):
        for k, call in enumerate(calls):
            begin = time.process_time()
            call()
            found[k] = min(found[k], time.process_time() - begin)
    return found


def main(batch: int = 1000) -> None:
    robot = cj.load("panda")
    points = np.random.default_rng(0).uniform(-1, 1, (5, 7))
    many = np.random.default_rng(1).uniform(-1, 1, (batch, 5, 7))
    for torque in (False, True):
        limits: dict[str, Any] = {} if torque else {"acceleration": ACCELERATION, "effort": np.inf}
        print(f"velocity and {'joint force' if torque else 'acceleration'}")
        timing = cj.time_optimal(robot, CubicSpline(GRID, points), **limits)
        print(
            f"  coadjoint {timing.duration:.9f} s, {len(timing.switches)} arcs, largest excess of a limit {timing.excess(20001):.1e}"
        )
        for count in (101, 301, 1001):
            (taken,) = least(lambda torque=torque, count=count: toppra_duration(points, robot, count, torque), rounds=5)
            found = toppra_duration(points, robot, count, torque)
            print(f"  toppra    {found:.9f} s at {count} points ({found / timing.duration - 1:+.1e}), in {1e3 * taken:.2f} ms")
        timed = cj.time_optimal(robot, many, **limits)
        some = many[:ALONE]
        all_paths, ours, theirs = least(
            lambda limits=limits: cj.time_optimal(robot, many, **limits),
            lambda limits=limits, some=some: [cj.time_optimal(robot, x, **limits) for x in some],
            lambda torque=torque, some=some: [toppra_duration(x, robot, 101, torque) for x in some],
        )
        ours, theirs = ours / len(some), theirs / len(some)
        each = all_paths / batch
        excess = max(timed[k].excess(301) for k in range(batch) if k not in timed.errors)
        print(
            f"  one path: coadjoint {1e3 * ours:.2f} ms, toppra at 101 points {1e3 * theirs:.2f} ms: {theirs / ours:.2f} times as fast"
        )
        print(
            f"  {batch} paths in one call: {1e3 * each:.2f} ms each, {theirs / each:.2f} times as fast; {batch - len(timed.errors)} timed, "
            f"largest excess {excess:.1e}"
        )


if __name__ == "__main__":
    import sys

    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
