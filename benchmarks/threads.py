"""What several threads gain, and what the default chooses."""

from __future__ import annotations

import time

import numpy as np

import coadjoint as cj

from .timing import measure

BATCHES = (64, 1024, 4096, 16384, 65536)


def threads(made: dict[str, cj.Robot], rounds: int) -> list[dict]:
    """Inverse dynamics by one thread, by as many as there are processors, and by as many as the library chooses."""
    from coadjoint.kernel.runtime.threads import cores

    if cores() == 1:
        return []
    print(f"\n| inverse dynamics | states | 1 thread | {cores()} threads | default |\n|---|---|---|---|---|")
    rows = []
    for name, robot in made.items():
        rng = np.random.default_rng(0)
        for batch in BATCHES:
            q, v = robot.random(rng, batch), rng.normal(size=(batch, robot.nv))
            out = np.empty((batch, robot.nv))
            call = lambda n, r=robot, q=q, v=v, out=out: cj.inverse_dynamics(r, q, v, v, out=out, threads=n)
            ways = {str(n): (lambda n=n, call=call: call(n), batch) for n in (1, cores(), None)}
            found = measure(ways, rounds, clock=time.perf_counter)
            seconds = {key: timing.best for key, timing in found.items()}
            rows.append({"robot": name, "states": batch, "seconds": seconds})
            cells = " | ".join(f"{t * 1e9:.0f} ns" for t in seconds.values())
            print(f"| {name} | {batch} | {cells} |", flush=True)
    return rows
