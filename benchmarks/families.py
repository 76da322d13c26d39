"""A thousand perturbed Pandas at once beside one after the other: `python -m benchmarks.families [--sample 10]`.

One after the other every robot has its own code, which is compiled for it; at once the numbers that differ are inputs of one kernel.
Compilation counts in both, on an empty cache. Times are of the processor, and those of one after the other are of a sample.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable

import numpy as np

import coadjoint as cj

ROBOTS, STEPS, DT = 1000, 100, 1e-3


def seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def rollouts(sample: int) -> tuple[float, float, float]:
    """Seconds of all robots at once, the first time and again, and of all one after the other, from a sample."""
    robot, rng = cj.load("panda"), np.random.default_rng(0)
    masses = robot.parameters("masses") * rng.uniform(0.9, 1.1, size=(ROBOTS, len(robot.parameters("masses"))))
    q, v = robot.random(rng, ROBOTS), 0.1 * rng.normal(size=(ROBOTS, 7))
    found = []

    def together() -> None:
        found.append(cj.rollout(robot, q, v, dt=DT, steps=STEPS, parameters={"masses": masses}, threads=1))

    def one(k: int) -> None:
        own = robot.with_parameters("masses", masses[k])
        qs, _ = cj.rollout(own, q[k], v[k], dt=DT, steps=STEPS, threads=1)
        assert np.abs(qs - found[0][0][k]).max() < 1e-9

    first, again = seconds(together), seconds(together)
    return first, again, ROBOTS * float(np.mean([seconds(lambda k=k: one(k)) for k in range(sample)]))


def simulations(sample: int) -> tuple[float, float, float]:
    """The same for half a second of adaptive simulation."""
    robot, rng = cj.load("panda"), np.random.default_rng(0)
    masses = robot.parameters("masses") * rng.uniform(0.9, 1.1, size=(ROBOTS, len(robot.parameters("masses"))))
    q, v, t, found = robot.random(rng, ROBOTS), np.zeros(7), np.linspace(0.0, 0.5, 51), []

    def together() -> None:
        found.append(cj.simulate(robot, q, v, t, parameters={"masses": masses}))

    def one(k: int) -> None:
        own = cj.simulate(robot.with_parameters("masses", masses[k]), q[k], v, t)
        assert np.abs(own.q - found[0].q[k]).max() < 1e-9

    first, again = seconds(together), seconds(together)
    return first, again, ROBOTS * float(np.mean([seconds(lambda k=k: one(k)) for k in range(sample)]))


def inverse_kinematics(sample: int) -> tuple[float, float, float]:
    """The same for inverse kinematics of Pandas whose links are off by a few millimetres and milliradians."""
    robot, rng = cj.load("panda"), np.random.default_rng(0)
    dh = robot.parameters("dh:tip") + 3e-3 * rng.normal(size=(ROBOTS, len(robot.parameters("dh:tip"))))
    pose = cj.compile(lambda robot, q: cj.pose(robot, q, "tip"), robot, parameters=["dh:tip"])
    T = pose(robot.random(rng, ROBOTS), dh)

    def together() -> None:
        assert cj.inverse_kinematics(robot, T, "tip", parameters={"dh:tip": dh}, threads=1).success.all()

    def one(k: int) -> None:
        assert cj.inverse_kinematics(robot.with_parameters("dh:tip", dh[k]), T[k], "tip", threads=1).success

    first, again = seconds(together), seconds(together)
    return first, again, ROBOTS * float(np.mean([seconds(lambda k=k: one(k)) for k in range(sample)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=10, help="robots that are run one after the other")
    sample = parser.parse_args().sample
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COADJOINT_CACHE"] = folder
        print(
            f"| {ROBOTS} perturbed Pandas | at once, first | again | one by one ({sample} measured) | times |\n|---|---|---|---|---|"
        )
        runs = {f"{STEPS} steps of a rollout": rollouts, "0.5 s simulated": simulations, "inverse kinematics": inverse_kinematics}
        for name, run in runs.items():
            first, again, each = run(sample)
            print(f"| {name} | {first:.2f} s | {again:.3f} s | {each:.0f} s | {each / first:.0f}, {each / again:.0f} |", flush=True)


if __name__ == "__main__":
    main()
