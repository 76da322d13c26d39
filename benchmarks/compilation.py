"""First calls: cold, from the disk cache, and how compilation grows with the robot."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile

SCRIPT = """
import json, sys, time
from pathlib import Path
import numpy as np
import coadjoint as cj
from benchmarks.robots import robots
name, function = sys.argv[1:]
robot = robots([name])[name]
q = robot.neutral()
arrays = [q] + [np.zeros(robot.nv)] * 2
start = time.process_time()
getattr(cj, function)(robot, *arrays)
first = time.process_time() - start
peak = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
print(json.dumps([first, float(peak[0]) if peak else float("nan")]))
"""


def first_calls(name: str, function: str, rounds: int = 3) -> dict[str, float]:
    """Seconds of the first call in a fresh process with no kernel in the cache and with one, the best of some; the peak memory in MB."""
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"COADJOINT_CACHE": f"{folder}/kernels", "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages have their bytecode

        def first() -> tuple[float, float]:
            command = [sys.executable, "-c", SCRIPT, name, function]
            seconds, memory = json.loads(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)
            return seconds, memory / 1024

        first()
        cold, cached = [], []
        while len(cold) < rounds and sum(seconds for seconds, _ in cold) < 3.0:
            shutil.rmtree(f"{folder}/kernels", ignore_errors=True)
            cold.append(first())
            cached.append(first())
    return {"cold": min(cold)[0], "cached": min(cached)[0], "memory": max(memory for _, memory in cold)}
