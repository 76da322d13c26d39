"""Designs: `python -m benchmarks.design`. Some numbers of the Panda against fifty motions; the studies."""

from __future__ import annotations

import time

import numpy as np

import coadjoint as cj
from coadjoint import design
from coadjoint.motion.example_motion import smooth_motion


def main() -> None:
    robot = cj.load("panda")
    single = smooth_motion(robot, 2.0, 50.0)
    rng = np.random.default_rng(0)
    turns = rng.uniform(-0.4, 0.4, (50, 1, 7))
    size = rng.uniform(0.3, 1.0, (50, 1, 7))
    states = {"q": single.q * size + turns, "v": single.v * size, "a": single.a * size}
    free = ["masses", "lengths", "armature", "axes"]
    bounds = {"masses": (0.5, 6.0), "lengths": (0.05, 0.5), "armature": (0.0, 0.5), "axes": (-0.05, 0.05)}
    start = time.process_time()
    found = design.optimize(robot, free, design.objectives.effort, states=states, bounds=bounds)
    seconds = time.process_time() - start
    steps = states["q"].shape[1]
    print(f"{len(found.parameters)} numbers, 50 motions of {steps} states: {seconds:.2f} s of processor time")
    print(f"  cost {found.start_cost:.5g} -> {found.cost:.5g}")
    print(f"  {found.message}")
    for name, study in design.studies.STUDIES.items():
        start = time.process_time()
        found = study()
        print(f"{name}: {time.process_time() - start:.2f} s, cost {found.start_cost:.5g} -> {found.cost:.5g}; {found.message}")


if __name__ == "__main__":
    main()
