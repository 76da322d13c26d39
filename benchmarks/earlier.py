"""This commit beside an earlier one: `python -m benchmarks.earlier COMMIT [--robots panda ur5e …] [--rounds 21] [--starts 5]`.

Every call of the table in both, in turn, each in a process of its own, one thread: a plain call on one state and on 4,096, the call with
`out=` on 4,096; then, in fresh processes in turn, the import and the first call with an empty cache. Times are of the processor, medians
of the rounds. In brackets stand the quartiles of the rounds' own ratios; above 1 this commit is slower. Results are compared first.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
FUNCTIONS = (
    "inverse_dynamics",
    "forward_dynamics",
    "mass_matrix",
    "coriolis_matrix",
    "mass_matrix_inverse",
    "forward_kinematics",
    "inverse_dynamics_derivatives",
    "forward_dynamics_derivatives",
    "regressor",
    "christoffel",
)
STATES = 4096
LEAST = 0.01
"""Seconds that the calls of one round take together."""

COMMON = """
import json, sys, time
started = time.process_time()
import coadjoint as cj
imported = time.process_time() - started
import numpy as np

def arguments(name, n):
    robot = cj.load(name)
    rng = np.random.default_rng(0)
    shape = (n,) if n > 1 else ()
    q = rng.uniform(-1, 1, (*shape, robot.nq))
    v, a = rng.uniform(-1, 1, (2, *shape, robot.nv))
    arity = {"mass_matrix": 1, "mass_matrix_inverse": 1, "forward_kinematics": 1, "christoffel": 1, "coriolis_matrix": 2}
    return robot, lambda function: (q, v, a)[: arity.get(function, 3)]
"""
ROUNDS = (
    COMMON
    + """
from timeit import Timer
calls = {}
for line in sys.stdin:
    name, function, n, out, least = json.loads(line)
    key = name, function, n, out
    if key in calls:
        timer, loops = calls[key]
        print(json.dumps(timer.timeit(loops) / loops), flush=True)
        continue
    robot, given = arguments(name, n)
    arrays = given(function)
    f = getattr(cj, function)
    result = f(robot, *arrays)
    if out:
        compiled = cj.compile(f, robot, threads=1)
        space = compiled(*arrays)
        timer = Timer("f(*arrays, out=space)", globals={"f": compiled, "arrays": arrays, "space": space}, timer=time.process_time)
    else:
        timer = Timer("f(robot, *arrays)", globals={"f": f, "robot": robot, "arrays": arrays}, timer=time.process_time)
    parts = result if isinstance(result, tuple) else (result,)
    sums = [float(np.abs(np.asarray(part)).sum()) for part in parts]
    for k in range(4):  # plain calls take the kernel made for the robot once they pay for it
        timer.timeit(3)
    loops = max(1, int(least / max(timer.timeit(3) / 3, 1e-8)))
    calls[key] = timer, loops
    print(json.dumps(sums), flush=True)
"""
)
START = (
    COMMON
    + """
name, function = sys.argv[1:]
robot, given = arguments(name, 1)
started = time.process_time()
getattr(cj, function)(robot, *given(function))
print(json.dumps([imported, time.process_time() - started]))
"""
)


def sources(commit: str, folder: Path) -> Path:
    """The sources of a commit, unpacked."""
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as file:
        file.extractall(folder, filter="data")
    return folder / "src"


class Version:
    """One version of the library: its sources, its cache of kernels, a process that runs its calls."""

    def __init__(self, source: Path, cache: Path) -> None:
        self.cache = cache
        threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS")}
        self.env = os.environ | threads | {"PYTHONPATH": str(source), "COADJOINT_CACHE": str(cache), "COADJOINT_THREADS": "1"}
        self.env |= {"PYTHONPYCACHEPREFIX": f"{cache}-bytecode"}
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", ROUNDS], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, *words: object) -> Any:
        """The answer of the process: sums of the results at the first time, then seconds a call."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of {self.env['PYTHONPATH']} ended at {words}")
        return json.loads(line)

    def start(self, name: str, function: str) -> tuple[float, float]:
        """Seconds of the import and of a first call, in a fresh process without a cache of kernels."""
        shutil.rmtree(self.cache, ignore_errors=True)
        command = [sys.executable, "-P", "-c", START, name, function]
        first, call = json.loads(subprocess.run(command, env=self.env, stdout=subprocess.PIPE, text=True, check=True).stdout)
        return first, call


def row(label: str, before: list[float], now: list[float]) -> str:
    """A line of the table."""
    scale, unit = next(
        (s, u) for s, u in ((1, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns")) if s * statistics.median(before) >= 1 or u == "ns"
    )
    low, high = np.percentile(np.array(now) / np.array(before), [25, 75])
    first, second = statistics.median(before), statistics.median(now)
    return f"| {label} | {scale * first:.3g} {unit} | {scale * second:.3g} {unit} | **{second / first:.3f}** ({low:.3f} … {high:.3f}) |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.earlier", description=__doc__.partition("\n")[0])
    parser.add_argument("commit")
    parser.add_argument("--robots", nargs="+", default=["panda", "ur5e"])
    parser.add_argument("--functions", nargs="+", default=list(FUNCTIONS))
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--starts", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        versions = [
            Version(sources(options.commit, folder / "before"), folder / "cache-before"),
            Version(ROOT / "src", folder / "cache-now"),
        ]
        print(
            f"load average: {os.getloadavg()[0]:.2f}\n\n| robot, call | {options.commit} | now | ratio (quartiles) |\n|---|---|---|---|"
        )
        for robot in options.robots:
            for function in options.functions:
                for n, out, label in (
                    (1, False, "one state"),
                    (STATES, False, f"{STATES} states"),
                    (STATES, True, f"{STATES} states, out="),
                ):
                    words = robot, function, n, out, LEAST
                    before, now = (version.ask(*words) for version in versions)
                    if not np.allclose(before, now, rtol=1e-9):
                        raise SystemExit(f"{function} of {robot} differs: sums {before} and {now}")
                    rounds = [[version.ask(*words) for version in versions] for _ in range(options.rounds)]
                    print(row(f"{robot}, {function}, {label}", *map(list, zip(*rounds, strict=True))), flush=True)
        for version in versions:
            version.process.kill()
        imports: list[list[float]] = [[], []]
        for function in options.functions:
            calls: list[list[float]] = [[], []]
            for _ in range(options.starts + 1):
                for k, version in enumerate(versions):
                    seconds = version.start(options.robots[0], function)
                    imports[k].append(seconds[0])
                    calls[k].append(seconds[1])
            print(row(f"{options.robots[0]}, {function}, first call", calls[0][1:], calls[1][1:]), flush=True)
        print(row("import", imports[0][2:], imports[1][2:]))
        print(f"\nload average: {os.getloadavg()[0]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
