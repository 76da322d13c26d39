"""Threads × processes that call and compile against one empty cache, killed at random: results stay right, the cache loads.

Small by default; COADJOINT_STRESS=8x4x20 runs 8 threads in each of 4 processes for 20 rounds.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("llvmlite")

pytestmark = pytest.mark.native

WORKER = """
import os, random, sys, threading
sys.path.insert(0, {tests!r})
import numpy as np
from graph_helpers import SMOOTH, random_graph
from coadjoint.kernel.runtime import native
from coadjoint.kernel.passes.evaluate import evaluate

threads, seed = int(sys.argv[1]), int(sys.argv[2])
graphs = [random_graph(k, 30 + 60 * k, shapes=((3,), (2,)), out=((4,),), ops=SMOOTH) for k in range(6)]
inputs = [np.random.default_rng(0).uniform(-1, 1, (300, n)) for n in (3, 2)]
expected = [evaluate(g, *inputs)[0] for g in graphs]
wrong = []

def work(rng):
    for _ in range(12):
        k = rng.randrange(len(graphs))
        f = native.build(graphs[k])
        for _ in range(20):
            got = f(*inputs, threads=rng.choice([None, 1, 2]))
            if not np.allclose(got, expected[k], rtol=1e-11, atol=1e-11):
                wrong.append(k)
        if rng.random() < 0.3:
            native._alive.clear()

workers = [threading.Thread(target=work, args=(random.Random(seed + n),)) for n in range(threads)]
for w in workers:
    w.start()
for w in workers:
    w.join()
sys.stdout.flush()
os._exit(3 if wrong else 0)
"""


def test_one_cache_for_all(tmp_path):
    threads, processes, rounds = map(int, os.environ.get("COADJOINT_STRESS", "4x2x2").split("x"))
    environment = {**os.environ, "COADJOINT_CACHE": str(tmp_path), "COADJOINT_NATIVE": "1"}
    tmp_path.chmod(0o700)
    code = WORKER.format(tests=os.path.dirname(__file__))
    rng = random.Random(0)

    def start(seed):
        command = [sys.executable, "-c", code, str(threads), str(seed)]
        return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)

    for turn in range(rounds):
        if turn % 4 == 0:
            for path in tmp_path.iterdir():
                path.unlink()
        crew = [start(100 * turn + n) for n in range(processes)]
        doomed = rng.sample(crew, processes // 2)
        for victim in doomed:
            time.sleep(rng.uniform(0.2, 1.0))
            victim.send_signal(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
        for process in crew:
            _, errors = process.communicate(timeout=300)
            if process not in doomed:
                assert process.returncode == 0, errors
    last = start(12345)
    _, errors = last.communicate(timeout=300)
    assert last.returncode == 0, errors
    check = (
        "from coadjoint.kernel.runtime import cache; import os, sys; "
        "keys = [n[:-7] for n in os.listdir(sys.argv[1]) if n.endswith('.kernel')]; "
        "assert keys and all(cache.load(k) for k in keys), keys"
    )
    subprocess.run([sys.executable, "-c", check, str(tmp_path)], env=environment, check=True)
