"""Sharing work among threads: interrupts, threads that cannot be started, caps from outside, odd threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import coadjoint as cj
from coadjoint.kernel.runtime import threads

pytestmark = pytest.mark.native
linux = pytest.mark.skipif(sys.platform != "linux", reason="limits as on Linux")


def run(code: str, *, timeout: float = 120, **env: str) -> str:
    """The output of a new Python; a crash of it is a failure here."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        env=os.environ | {"COADJOINT_NATIVE": "1"} | env,
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


INTERRUPTED = """
import os, signal, threading, time
import numpy as np, coadjoint as cj
robot = cj.load("planar2r")

def interrupted(call, after=0.05):
    "Seconds from an interrupt to its answer; None if the call was over before."
    sent = []
    def later():
        time.sleep(after)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=later)
    try:
        thread.start()  # a busy machine may interrupt this already
        call()
        time.sleep(5)
    except KeyboardInterrupt:
        answered = time.perf_counter()
    thread.join()
    return answered - sent[0]
"""


@linux
def test_work_whose_thread_cannot_be_started_never_runs_later():
    """It used to stay in the queue and to run in a later call, on memory that was freed or the caller's again."""
    out = run("""
import gc, resource, time
import numpy as np, coadjoint as cj
import concurrent.futures.thread
robot = cj.load("planar2r")
N = 1_000_000
q = np.random.default_rng(0).standard_normal((N, 2))
cj.mass_matrix(robot, q[:10])
out = np.zeros((N, 2, 2))
memory = int(open("/proc/self/statm").read().split()[0]) * 4096
soft, hard = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (memory + (4 << 20), hard))  # no room for the stack of a thread
cj.mass_matrix(robot, q, out=out, threads=2)
resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
print(np.count_nonzero(out) > 0)
out[...] = 0.0
cj.mass_matrix(robot, np.zeros((100_000, 2)), threads=2)
time.sleep(0.5)
print(np.count_nonzero(out))
del out, q
gc.collect()
cj.mass_matrix(robot, np.zeros((100_000, 2)), threads=2)
""")
    assert out.split() == ["True", "0"]


def test_no_thread_writes_after_an_interrupt():
    out = run(
        INTERRUPTED
        + """
robot, N = cj.load("panda"), 400_000
q = np.random.default_rng(0).standard_normal((N, 7))
out = np.zeros((N, 7, 7))
cj.mass_matrix(robot, q, out=out, threads=5)
late = []
def call():
    cj.mass_matrix(robot, q, out=out, threads=5)
for k in range(8):
    out[...] = 0
    interrupted(call, 0.02)
    before = np.count_nonzero(out[::50])
    time.sleep(0.3)
    late.append(np.count_nonzero(out[::50]) - before)
print(any(late))
"""
    )
    assert out.split() == ["False"]


def test_arrays_that_nobody_else_owns_outlive_an_interrupt():
    run(
        INTERRUPTED
        + """
robot, N = cj.load("panda"), 400_000
cj.mass_matrix(robot, np.zeros((N, 7)), threads=5)
for k in range(8):
    box = [np.random.default_rng(0).standard_normal((N, 7))]
    interrupted(lambda: cj.mass_matrix(robot, box.pop(), threads=5), 0.02)
    time.sleep(0.3)
"""
    )


def test_long_runs_answer_an_interrupt_soon():
    """One thread or several, batches and many steps: between the pieces. The bound is loose, for busy machines; the work takes longer."""
    out = run(
        INTERRUPTED
        + """
panda = cj.load("panda")
q = np.zeros((2000, 7))
still = np.broadcast_to(q[:1], (40_000_000, 7))  # of no memory
energy = cj.compile(lambda robot, q: cj.kinetic_energy(robot, q, cj.forward_dynamics(robot, q, q, q)), panda)
cj.rollout(panda, q[:2], q[:2], dt=1e-6, steps=2, method="rk4")
waits = [
    interrupted(lambda: energy(still, threads=1)),
    interrupted(lambda: energy(still)),
    interrupted(lambda: energy(still, threads=3)),
    interrupted(lambda: cj.rollout(panda, q[:100], q[:100], dt=1e-6, steps=20_000, method="rk4")),
    interrupted(lambda: cj.rollout(panda, q[:1], q[:1], dt=1e-6, steps=1_000_000, method="rk4")),
]
print(*(f"{x:.3f}" for x in waits))
"""
    )
    assert max(map(float, out.split())) < 2.0, out


def test_caps_from_outside(monkeypatch):
    monkeypatch.setattr(threads, "processors", lambda: 16)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("COADJOINT_THREADS", raising=False)
    assert (threads.cores(), threads.most_threads(5), threads.most_threads(10**9)) == (16, 5, 64)
    monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
    assert (threads.cores(), threads.most_threads(5)) == (3, 3)
    monkeypatch.setenv("COADJOINT_THREADS", "4")
    assert (threads.cores(), threads.most_threads(5), threads.most_threads(2)) == (4, 4, 2)
    monkeypatch.setenv("COADJOINT_THREADS", "100")
    assert threads.cores() == 16
    monkeypatch.setenv("COADJOINT_THREADS", "many")
    with pytest.raises(cj.CoadjointError, match="COADJOINT_THREADS is 'many'; expected a whole number"):
        threads.cores()


def test_the_cap_holds_for_batches():
    code = """
import threading
import numpy as np, coadjoint as cj
robot = cj.load("planar2r")
cj.mass_matrix(robot, np.zeros((3_000_000, 2)), threads=10**9)
print(threading.active_count())
"""
    assert int(run(code)) <= 4 * threads.processors()
    assert int(run(code, COADJOINT_THREADS="1")) == 1
    assert int(run(code, OMP_NUM_THREADS="2")) <= 2


def test_errors_and_failures_of_pieces_reach_the_caller():
    def fails(start, stop):
        if start >= 8:
            raise ZeroDivisionError
        time.sleep(0.01)
        yield 0

    with pytest.raises(ZeroDivisionError):
        threads.share(fails, threads.split(100, 4, 8, 8), 4)

    def status(start, stop):
        yield 3 if start == 40 else 0

    assert threads.share(status, threads.split(100, 4, 8, 8), 4) == 3
    assert threads.share(status, threads.split(100, 1, 8, 8), 1) == 3


def test_small_stacks():
    """Scratch memory of a kernel does not overflow the stack of a thread that has little."""
    run("""
import threading
import numpy as np, coadjoint as cj
robot = cj.load("panda")
cj.connection(robot, np.zeros((24, 7)))
threading.stack_size(65536)
for k in range(3):
    thread = threading.Thread(target=lambda: cj.connection(robot, np.zeros((24, 7))))
    thread.start()
    thread.join()
""")


def test_a_thread_that_compiles_when_the_process_ends():
    for wait in (0.6, 0.7, 0.8, 0.9):
        run(
            f"""
import threading, time
import coadjoint as cj
import coadjoint.kernel.runtime.jit
names = ["panda", "puma560", "ur5e"]
def work():
    for name in names:
        for f in (cj.forward_dynamics_derivatives, cj.inverse_dynamics_derivatives, cj.mass_matrix):
            cj.compile(f, cj.load(name))
threading.Thread(target=work, daemon=True).start()
time.sleep({wait})
""",
            COADJOINT_CACHE="off",
        )


def test_sub_interpreters_end():
    """One that computed natively, destroyed or not, does not keep the process from ending."""
    interpreters = pytest.importorskip("_xxsubinterpreters")
    del interpreters
    for end in ("", "i.destroy(made)"):
        run(
            f"""
import _xxsubinterpreters as i
made = i.create()
i.run_string(made, '''
import warnings
warnings.simplefilter("ignore")
import numpy as np, coadjoint as cj
assert np.isfinite(cj.mass_matrix(cj.load("planar2r"), np.zeros((3_000_000, 2)))).all()
''')
{end}
""",
            timeout=60,
        )


def test_a_robot_that_was_used_can_be_collected():
    """The definition of a built-in function used to be freed before the function."""
    for _ in range(2):  # compiling, and from the cache
        run(
            """
import gc
import numpy as np, coadjoint as cj
q = np.zeros((3, 2))
for k in range(10):
    robot = cj.load("planar2r")
    cj.mass_matrix(robot, q), cj.gravity_force(robot, q), cj.pose(robot, q, "link2")
    del robot
    gc.collect()
""",
            PYTHONMALLOC="malloc",
            MALLOC_PERTURB_="2",
        )


def test_helpers_run_at_the_same_time():
    """Pieces are really taken by several threads."""
    seen = set()
    both = threading.Barrier(2, timeout=20)

    def work(start, stop):
        seen.add(threading.get_ident())
        both.wait()
        yield 0

    threads.share(work, threads.split(16, 2, 8, 8), 2)
    assert len(seen) == 2
    assert np.array_equal(threads.split(16, 2, 8, 8), [(0, 8), (8, 16)])
