"""A million steps of the variational integrator: energy without trend, loop closure at rounding. `python -m benchmarks.long_runs`

The trend is the slope of a line through the energies of all stretches, times the length of the run, beside how far energy oscillates
within a stretch; where it is not above its own uncertainty there is none. Runge and Kutta's method of fourth order with the same
step stands beside it.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np

import coadjoint as cj
from coadjoint import Constraint
from coadjoint.robot.zoo.textbook import planar_nr

STRETCHES = 200


def systems() -> list[tuple[str, cj.Robot, np.ndarray, Constraint | None, float]]:
    """Name, robot, start at rest, constraint and step of every run."""
    panda = cj.load("panda")
    bent = np.array([0.1, 0.3, 0.2, -1.5, 0.3, 1.2, 0.1])
    four_bar = planar_nr(3, [0.3, 0.9, 0.7]).with_frame("anchor", "base", cj.lie.se3.pose(np.eye(3), np.array([0.8, 0.0, 0.0])))
    loop = Constraint.loop(four_bar, "anchor", "tip", "revolute")
    closed = cj.constraints.assemble(four_bar, loop, [0.3, 0.6, -2.0])
    return [
        ("double pendulum", cj.load("planar2r"), np.array([0.3, 0.2]), None, 1e-3),
        ("Panda, 7 joints", panda, bent, None, 5e-4),
        ("four-bar, loop of 5 equations", four_bar, closed, loop, 1e-3),
        ("Panda, tip held at a point", panda, bent, Constraint.point(panda, panda.frame_names[-1], "xyz").at(panda, bent), 5e-4),
    ]


def run(robot: cj.Robot, q: np.ndarray, constraint: Constraint | None, step: float, steps: int, method: str) -> dict[str, Any]:
    """Energies (mean and range of every stretch), drift and time of a run from rest."""
    v, each = np.zeros(robot.nv), steps // STRETCHES
    first: float | None = None
    means, ranges, closure, begin = [], [], 0.0, time.perf_counter()
    for _ in range(STRETCHES):
        qs, vs = cj.rollout(robot, q, v, steps=each, dt=step, method=method, constraints=constraint)
        energy = cj.kinetic_energy(robot, qs, vs) + cj.potential_energy(robot, qs)
        first = float(energy[0]) if first is None else first
        means.append(float(energy.mean()) - first)
        ranges.append(float(np.ptp(energy)))
        if constraint is not None:
            closure = max(closure, float(np.abs(constraint.residual(robot, qs)).max()))
        q, v = qs[-1], vs[-1]
    return {"means": np.array(means), "range": float(np.median(ranges)), "closure": closure, "time": time.perf_counter() - begin}


def trend(means: np.ndarray) -> tuple[float, float]:
    """The change of a line through the means over the run, and the uncertainty of that."""
    x = np.linspace(-0.5, 0.5, len(means))
    slope = float(x @ means / (x @ x))
    rest = means - means.mean() - slope * x
    return slope, float(np.sqrt(rest @ rest / (len(x) - 2) / (x @ x)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000, help="steps of each run (default: a million)")
    steps = parser.parse_args().steps
    print(f"{steps} steps each, energies in J\n")
    print(f"{'':32}{'method':>12}{'step':>8}{'oscillates':>12}{'trend':>12}{'±':>10}{'closure':>10}{'µs/step':>9}")
    good = True
    for name, robot, q, constraint, step in systems():
        for method in ("variational", "rk4"):
            found = run(robot, q, constraint, step, steps, method)
            slope, error = trend(found["means"])
            closure = f"{found['closure']:10.1e}" if constraint is not None else f"{'-':>10}"
            row = f"{found['range']:12.2e}{slope:12.1e}{error:10.1e}{closure}{1e6 * found['time'] / steps:9.2f}"
            print(f"{name:32}{method:>12}{step:8.0e}{row}", flush=True)
            if method == "variational":
                good = good and abs(slope) < max(4 * error, 0.05 * found["range"]) and found["closure"] < 1e-12
    print("\nvariational: no trend, closure below 1e-12" if good else "\na bound was missed")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
