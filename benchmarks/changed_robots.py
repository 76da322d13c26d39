"""A thousand changed Pandas, one after the other, through plain calls: `python -m benchmarks.changed_robots [--robots 1000] [--sample 3]`.

Masses, inertias, lengths, gravity and friction of every robot are its own. Before: every robot compiles kernels of its own (a sample).
After: plain calls, which share the kernels of the structure. Then the time per state of a shared kernel beside that of one made for the
robot alone, and what robots with one joint more or less would pay for sharing as well. Times are of the processor, on an empty cache.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import coadjoint as cj
from coadjoint.kernel import structures
from coadjoint.kernel.pipeline import compiled
from coadjoint.kernel.runtime import cache, native

CALLS: dict[str, tuple[Any, int, dict[str, Any]]] = {
    "inverse_dynamics": (cj.inverse_dynamics, 3, {}),
    "forward_dynamics": (cj.forward_dynamics, 3, {}),
    "mass_matrix": (cj.mass_matrix, 1, {}),
    "pose": (cj.pose, 1, {"frame": "tip"}),
    "jacobian": (cj.jacobian, 1, {"frame": "tip"}),
    "inverse_dynamics_derivatives": (cj.inverse_dynamics_derivatives, 3, {}),
    "forward_dynamics_derivatives": (cj.forward_dynamics_derivatives, 3, {}),
}
"""name: function, how many arrays of states it takes, its other arguments."""
BATCH, ROUNDS, SINGLE = 4096, 40, 3000


def seconds(call: Callable[[], object], loops: int = 1) -> float:
    start = time.process_time()
    for _ in range(loops):
        call()
    return (time.process_time() - start) / loops


def changed(robot: cj.Robot, rng: np.random.Generator) -> cj.Robot:
    """The robot with its numbers off by up to a tenth, and gravity from another side."""
    for name in ("inertial", "lengths"):
        x = robot.parameters(name)
        robot = robot.with_parameters(name, x * rng.uniform(0.9, 1.1, len(x)))
    return robot.with_numbers(gravity=rng.normal(size=3) * 9.81, friction=rng.uniform(0, 1, 7), armature=rng.uniform(0, 1, 7))


def resident() -> float:
    """Memory of this process in MB; NaN where the system does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), float("nan"))


def first_calls(robots: int, sample: int) -> None:
    """First calls of many robots, and how often something was compiled."""
    panda, rng = cj.load("panda"), np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 7))
    made: list[str] = []
    compile_graph = native.compile_graph
    native.compile_graph = lambda graph, *args: made.append(graph.name) or compile_graph(graph, *args)  # type: ignore[func-returns-value]
    times: dict[str, list[float]] = {name: [] for name in CALLS}

    def call_all(robot: cj.Robot, keep: bool = True) -> None:
        for name, (fn, n, options) in CALLS.items():
            spent = seconds(lambda: fn(robot, *(q, v, a)[:n], **options))
            if keep:
                times[name].append(spent)

    shared = structures.shared
    structures.shared = lambda *_: None  # as it was: every robot has its own
    for _ in range(sample):
        call_all(changed(panda, rng))
    before = {name: median(x) for name, x in times.items()}
    structures.shared = shared
    for x in times.values():
        x.clear()
    del made[:]
    call_all(panda)
    first = {name: x.pop() for name, x in times.items()}
    call_all(changed(panda, rng))
    second = {name: x.pop() for name, x in times.items()}
    compilations, memory, start = len(made), resident(), time.process_time()
    for _ in range(robots - 2):
        call_all(changed(panda, rng))
    gc.collect()
    total = time.process_time() - start
    print("| first call | before, each robot | first robot | second | each of the others |\n|---|---|---|---|---|")
    for name in CALLS:
        cells = [f"{x[name] * 1e3:.0f} ms" for x in (before, first, second)]
        print(f"| {name} | {' | '.join(cells)} | {median(times[name]) * 1e3:.2f} ms |")
    print(
        f"\n{robots} changed Pandas, {len(CALLS)} functions each: {compilations} compilations for the first two robots,"
        f" {len(made) - compilations} for all others, which took {total:.1f} s of the processor with making the robots; compiled one by one"
        f" they would take {robots * sum(before.values()):.0f} s. Memory changed by {resident() - memory:+.1f} MB meanwhile; on disk"
        f" there are {cache.info()['kernels']} kernels, {cache.info()['bytes'] / 2**20:.1f} MB.\n"
    )
    native.compile_graph = compile_graph


def per_state() -> None:
    """A state in a batch, and a call with one state, with the kernel of the structure and with the robot's own."""
    panda, rng = cj.load("panda"), np.random.default_rng(1)
    robot, first = changed(panda, rng), panda
    states = rng.normal(size=(3, BATCH, 7))
    print("| function | states | own kernel | shared | ratio |\n|---|---|---|---|---|")
    for name, (fn, n, options) in CALLS.items():
        arrays, one = states[:n], [x[0].copy() for x in states[:n]]
        fn(first, *one, **options)
        fn(robot, *one, **options)
        assert "structure" in fn.kernel.in_use(robot)
        kernel, statics = (
            fn.kernel,
            {p.name: options.get(p.name, p.default) for p in fn.kernel.parameters if p.name in fn.kernel.statics},
        )
        own = compiled(kernel, robot, tuple(kernel.required), statics, np.float64, own=True).call
        result = own(*arrays)
        contenders = (lambda: own(*arrays, out=result, threads=1), lambda: fn(robot, *arrays, **options, out=result, threads=1))
        best = np.min([[seconds(call) for call in contenders] for _ in range(ROUNDS)], axis=0) / BATCH
        print(f"| {name} | {BATCH} | {best[0] * 1e9:.1f} ns | {best[1] * 1e9:.1f} ns | {best[1] / best[0]:.2f} |")
        singles = (lambda: fn(first, *one, **options), lambda: fn(robot, *one, **options))
        best = np.min([[seconds(call, SINGLE) for call in singles] for _ in range(9)], axis=0)
        print(f"| {name} | 1, plain call | {best[0] * 1e9:.0f} ns | {best[1] * 1e9:.0f} ns | {best[1] / best[0]:.2f} |")


def depth() -> None:
    """What a robot of six joints would pay for the kernel of one of seven, and what its own costs to make."""
    panda, rng = cj.load("panda"), np.random.default_rng(2)
    shorter = panda.lock({panda.joint_names[-1]: 0.0})
    print("\n| function | six joints | seven | ratio | first call of the six |\n|---|---|---|---|---|")
    for name in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
        fn, n, _ = CALLS[name]
        spent = seconds(lambda: fn(shorter, *rng.normal(size=(n, 6))))
        calls = []
        for robot in (shorter, panda):
            arrays = rng.normal(size=(n, BATCH, robot.nv))
            result = fn(robot, *arrays)
            calls.append(lambda robot=robot, arrays=arrays, result=result: fn(robot, *arrays, out=result, threads=1))
        best = np.min([[seconds(call) for call in calls] for _ in range(ROUNDS)], axis=0) / BATCH
        print(f"| {name} | {best[0] * 1e9:.1f} ns | {best[1] * 1e9:.1f} ns | {best[1] / best[0]:.2f} | {spent:.2f} s |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", type=int, default=1000)
    parser.add_argument("--sample", type=int, default=3, help="robots that compile kernels of their own")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COADJOINT_CACHE"] = f"{folder}/kernels"
        first_calls(args.robots, args.sample)
        per_state()
        depth()


if __name__ == "__main__":
    main()
