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
start = time.perf_counter()
getattr(cj, function)(robot, *arrays)
first = time.perf_counter() - start
peak = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
print(json.dumps([first, float(peak[0]) if peak else float("nan")]))
"""


def first_calls(name: str, function: str) -> dict[str, float]:
    """Seconds of the first call in a fresh process with no kernel in the cache and with one, and the peak memory in MB."""
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"COADJOINT_CACHE": f"{folder}/kernels", "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages have their bytecode
        subprocess.run([sys.executable, "-c", SCRIPT, name, function], env=env, capture_output=True, check=True)
        shutil.rmtree(f"{folder}/kernels", ignore_errors=True)
        runs = []
        for _ in range(3):
            result = subprocess.run(
                [sys.executable, "-c", SCRIPT, name, function], env=env, capture_output=True, text=True, check=True
            )
            runs.append(json.loads(result.stdout))
    return {"cold": runs[0][0], "cached": min(runs[1][0], runs[2][0]), "memory": runs[0][1] / 1024}
