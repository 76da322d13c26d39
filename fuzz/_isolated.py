"""Inputs tried in a process of their own, with limits, which is started again when it dies."""

from __future__ import annotations

import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

SLOWEST = 2.0
"""Seconds of computing an input may take."""

LARGEST = 512 * 2**20
"""Bytes of memory the inputs of one process may take beyond what it had before."""

CHUNK = 2000
"""Inputs of one process."""


def tallies(run: Callable[[int], str], first: int, count: int, seconds: float, slowest: float = SLOWEST) -> dict[str, int]:
    """How often each outcome of `run(seed)` was met. What is FAILED is printed with its seed: death, a hang, memory, or as `run` says."""
    tally: dict[str, int] = {}
    start, seed, said = time.monotonic(), first, time.monotonic()
    while seed < first + count and time.monotonic() - start < seconds:
        stop = min(seed + CHUNK, first + count)
        outcomes = _chunk(run, seed, stop, slowest)
        for k, outcome in outcomes:
            tally[outcome] = tally.get(outcome, 0) + 1
            if outcome.startswith("FAILED"):
                print(f"seed {k}: {outcome}", flush=True)
        seed = outcomes[-1][0] + 1
        if time.monotonic() - said > 60:
            said = time.monotonic()
            print(
                f"{seed - first} inputs, {sum(n for x, n in tally.items() if x.startswith('FAILED'))} failed",
                file=sys.stderr,
                flush=True,
            )
    return tally


def _chunk(run: Callable[[int], str], first: int, stop: int, slowest: float) -> list[tuple[int, str]]:
    """Outcomes of the seeds from `first` to `stop`, or to the one at which the process died."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(run, range(first, stop), writing, slowest)
    os.close(writing)
    data, lasting = b"", True
    while lasting:
        ready, _, _ = select.select([reading], [], [], 30 * slowest)
        part = os.read(reading, 1 << 16) if ready else b""
        if not ready:
            os.kill(child, signal.SIGKILL)
        data, lasting = data + part, bool(part)
    os.close(reading)
    status = os.waitpid(child, 0)[1]
    lines = data.decode().split("\n")[:-1]
    found = [(int(seed), outcome) for seed, _, outcome in (line.partition("\t") for line in lines)]
    if len(found) < stop - first:
        death = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
        found.append((first + len(found), f"FAILED: the process died ({death})"))
    return found


def _work(run: Callable[[int], str], seeds: range, pipe: int, slowest: float) -> None:
    """In the child: run the seeds one after another and write a line for each."""
    code = 1
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[5])  # private and writable: threads reserve more than they use
        resource.setrlimit(resource.RLIMIT_DATA, (pages * resource.getpagesize() + LARGEST,) * 2)
        signal.signal(signal.SIGPROF, _too_slow)
        for seed in seeds:
            before, memory = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            signal.setitimer(signal.ITIMER_PROF, max(20 * SLOWEST, 2 * slowest))  # of computing: others may use the machine too
            try:
                outcome = run(seed)
            except Slow:
                outcome = "FAILED: a hang"
            except MemoryError:
                outcome = "FAILED: MemoryError"
            except BaseException as error:
                outcome = f"FAILED: {type(error).__name__}: {' '.join(str(error).split())[:100]}"
            signal.setitimer(signal.ITIMER_PROF, 0)
            if (took := time.process_time() - before) > slowest:
                outcome = f"FAILED: slow ({took:.0f} s)"
            if (grown := resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) * 1024 > LARGEST:
                outcome = f"FAILED: {grown >> 10} MiB of memory"
            os.write(pipe, f"{seed}\t{outcome}\n".encode("utf-8", "replace"))
        code = 0
    finally:
        os._exit(code)


class Slow(BaseException):
    """Raised by the alarm; no `except Exception` catches it."""


def _too_slow(*_: object) -> None:
    raise Slow
