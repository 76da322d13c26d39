"""`python -m benchmarks.derivatives [robot …]`: derivatives and regressors in batches beside Pinocchio called from Python.

Pinocchio has no Python call for second derivatives: ours of inverse dynamics are compared with its first ones.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import coadjoint as cj

from .robots import robots
from .timing import measure

STATES = 4096

PEERS = {
    "inverse_dynamics_derivatives": "computeRNEADerivatives",
    "forward_dynamics_derivatives": "computeABADerivatives",
    "regressor": "computeJointTorqueRegressor",
    "inverse_dynamics_second_derivatives": "computeRNEADerivatives",
}
"""Our functions, and Pinocchio's."""


SMALLER: dict[str, tuple[Callable[[cj.Robot], Callable[..., object]], int, str]] = {
    "mass matrix": (lambda r: cj.compile(cj.mass_matrix, r), 1, "crba"),
    "mass matrix, triangle": (lambda r: cj.compile(mass_triangle, r), 1, "crba"),
    "∂τ dx (jvp)": (lambda r: cj.jvp(cj.inverse_dynamics, r, ["q", "v", "a"]), 6, "computeRNEADerivatives"),
    "wᵀ∂τ (vjp)": (lambda r: cj.vjp(cj.inverse_dynamics, r, ["q", "v", "a"]), 4, "computeRNEADerivatives"),
}
"""What writes fewer numbers than the derivatives: how it is made, of how many arrays, and Pinocchio's function."""


def mass_triangle(robot: cj.Robot, q: np.ndarray) -> np.ndarray:
    return cj.triangle(cj.mass_matrix(robot, q))


def pinocchio(robot: cj.Robot) -> Callable[[str], Callable[[], object]]:
    """Calls of Pinocchio's functions by name, at one state."""
    import pinocchio as pin

    model = cj.interop.pinocchio.to_pinocchio(robot)
    data, rng = model.createData(), np.random.default_rng(0)
    q = cj.interop.pinocchio.q_to_pinocchio(robot, model, robot.random(rng))
    v, a = rng.normal(size=(2, model.nv))
    return lambda name: lambda: getattr(pin, name)(model, data, q, *(() if name == "crba" else (v, a)))


def main() -> None:
    chosen = robots(sys.argv[1:] or ["panda", "humanoid"])
    print(f"Batches of {STATES}, one thread, written to arrays that are there (out=)\n")
    print("| robot | function | first call | per state | Pinocchio | times slower (quartiles) |\n|---|---|---|---|---|---|")
    for name, robot in chosen.items():
        rng = np.random.default_rng(0)
        q, (v, a) = robot.random(rng, STATES), rng.normal(size=(2, STATES, robot.nv))
        peers = pinocchio(robot)
        for function, peer in PEERS.items():
            fn = getattr(cj, function)
            if robot.nv > fn.kernel.largest:
                continue
            start = time.process_time()
            fn(robot, q[0], v[0], a[0])
            first = time.process_time() - start
            out = fn(robot, q, v, a)
            row(name, function, first, lambda fn=fn, out=out: fn(robot, q, v, a, out=out, threads=1), peers(peer))
        for label, (make, count, peer) in SMALLER.items():
            start = time.process_time()
            fn = make(robot)
            arrays = [q, v, a, *rng.normal(size=(3, STATES, robot.nv))][:count]
            out = fn(*arrays)
            row(name, label, time.process_time() - start, lambda fn=fn, x=arrays, out=out: fn(*x, out=out, threads=1), peers(peer))


def row(robot: str, function: str, first: float, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
    """One line of the table, measured."""
    timings = measure({"ours": (ours, STATES), "theirs": (theirs, 1)}, 25)
    ratio, low, high = timings["theirs"].ratio_to(timings["ours"])
    here, there = (timings[x].best * 1e6 for x in ("ours", "theirs"))
    print(
        f"| {robot} | {function} | {first:.1f} s | {here:.3f} µs | {there:.2f} µs | **{ratio:.1f}** ({low:.1f} … {high:.1f}) |",
        flush=True,
    )


if __name__ == "__main__":
    main()
