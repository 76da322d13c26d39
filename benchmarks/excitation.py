"""`python -m benchmarks.excitation`: base parameters, exciting motions, and estimates sample by sample: seconds and figures.

The published log of the Panda (Gaz et al. 2019) stands beside the designs, in the same figures, where its file is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import coadjoint as cj
from coadjoint.identification import natural_gradient, recursive_least_squares
from coadjoint.identification.excitation import condition, log_information

LOG = Path(__file__).parents[2] / "shared" / "data" / "panda_log" / "excitation.csv"


def timed(fn: Callable[[], Any]) -> tuple[Any, float]:
    """What fn returns, and seconds of the processor."""
    start = time.process_time()
    found = fn()
    return found, time.process_time() - start


def humanoids() -> list[tuple[str, cj.Robot]]:
    """Two with mimic joints, from `example-robot-data`."""
    try:
        files = metadata.distribution("example-robot-data").files or []
    except metadata.PackageNotFoundError:
        return []
    paths = [Path(str(f.locate())) for f in files if f.name in ("talos_full_v2.urdf", "romeo.urdf")]
    return [(path.stem, cj.load(path, base="free")) for path in paths]


def main() -> None:
    panda = cj.load("panda")
    print("base parameters, seconds of one processor\n")
    for name, robot in [("panda", panda), *humanoids()]:
        base, seconds = timed(lambda robot=robot: cj.base_parameters(robot))
        print(f"  {name:16} {base.rank:4} of {len(base.names):4}, {len(robot.mimics):2} mimic joints: {seconds:.2f} s")
    print("\nexciting motions of the Panda, 20 s, 5 harmonics, from rest to rest; the first includes compiling\n")
    for criterion in ("information", "condition"):
        for kind in ("fourier", "bspline"):
            motion, seconds = timed(lambda c=criterion, k=kind: cj.excitation(panda, 20.0, kind=k, criterion=c))
            print(
                f"  {criterion:12} {kind:8} condition number {motion.condition:6.2f}, log det {motion.log_det:6.1f}, "
                f"{100 * motion.slack:.2f} % of the tightest limit left, {seconds:.1f} s"
            )
    base, weight = cj.base_parameters(panda), np.ones(7)
    if LOG.exists():
        A = log_information(panda, base, str(LOG), weight)
        print(f"  the published log (12.6 s): condition number {condition(A):6.2f}, log det {np.linalg.slogdet(A)[1]:6.1f}")
    print("\none sample of the Panda, microseconds of one processor in a loop of 2000, and seconds to compile\n")
    rng = np.random.default_rng(0)
    q, v, a = panda.random(rng, (2000,)), rng.normal(size=(2000, 7)), rng.normal(size=(2000, 7))
    tau = cj.inverse_dynamics(panda, q, v, a)
    start = panda.with_inertial_parameters(1.2 * panda.inertial_parameters)
    for name, make in {
        "natural gradient, all links": lambda: natural_gradient(start, gain=1e-3),
        "least squares, payload": lambda: recursive_least_squares(panda, payload=panda.frame_names[-1]),
        "least squares, 43 base parameters": lambda: recursive_least_squares(panda),
    }.items():
        estimator, compiling = timed(lambda make=make: (e := make(), e.native)[0])
        best = min(timed(lambda e=estimator: e.run(q, v, a, tau))[1] for _ in range(7))
        print(f"  {name:34} {best / 2000 * 1e6:6.2f} µs, compiled in {compiling:.1f} s")


if __name__ == "__main__":
    main()
