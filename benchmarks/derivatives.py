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


def pinocchio(robot: cj.Robot) -> Callable[[str], Callable[[], object]]:
    """Calls of Pinocchio's functions by name, at one state."""
    import pinocchio as pin

    model = cj.interop.pinocchio.to_pinocchio(robot)
    data, rng = model.createData(), np.random.default_rng(0)
    q = cj.interop.pinocchio.q_to_pinocchio(robot, model, robot.random(rng))
    v, a = rng.normal(size=(2, model.nv))
    return lambda name: lambda: getattr(pin, name)(model, data, q, v, a)


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
            start = time.perf_counter()
            fn(robot, q[0], v[0], a[0])
            first = time.perf_counter() - start
            out = fn(robot, q, v, a)
            call = lambda fn=fn, out=out: fn(robot, q, v, a, out=out, threads=1)  # noqa: E731
            timings = measure({"ours": (call, STATES), "theirs": (peers(peer), 1)}, 25)
            ratio, low, high = timings["theirs"].ratio_to(timings["ours"])
            ours, theirs = (timings[x].best * 1e6 for x in ("ours", "theirs"))
            print(
                f"| {name} | {function} | {first:.1f} s | {ours:.3f} µs | {theirs:.2f} µs | **{ratio:.1f}** ({low:.1f} … {high:.1f}) |",
                flush=True,
            )


if __name__ == "__main__":
    main()
