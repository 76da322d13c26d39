"""`python -m fuzz.faults`: everything around the library fails, at random and at every place; what is left must be right.

Processes are killed while they compile, writes fail or are interrupted one by one, disk and memory run out, homes are missing, and
interrupts come at random times. After every fault there must be no crash, no wrong number, no lost file: each trial ends as "right" (the
number is there), "refused" (an error that says so) or "ended" (the process was killed, as intended); everything else is a failure.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import coadjoint as cj
from coadjoint.kernel.runtime import cache_key, native

ROBOT = cj.load("planar3r")
Q = np.random.default_rng(0).standard_normal((40, ROBOT.nq))
MINE = ("thesis.tmp", ".notes.tmp", "old.kernel", "letter.txt")
"""Files of the user's in the cache's folder, which must stay."""


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "mass": lambda robot: cj.mass_matrix(robot, Q),
    "force": lambda robot: cj.inverse_dynamics(robot, Q, Q, Q),
    "free": lambda robot: cj.forward_dynamics(robot, Q, Q, Q),
}
"""What is computed in the trials."""


def expected() -> dict[str, np.ndarray]:
    """The same as written."""
    os.environ["COADJOINT_NATIVE"] = "0"
    found = {name: f(cj.load("planar3r")) for name, f in FUNCTIONS.items()}
    os.environ["COADJOINT_NATIVE"] = "1"
    return found


EXPECTED = expected()
cache_key.surroundings()  # once, not in every process


def compute(names: Sequence[str] = tuple(FUNCTIONS)) -> str:
    """Compile, or load from the cache, and compare: "right" or "wrong"."""
    native._alive.clear()
    robot = cj.load("planar3r")
    fine = all(np.allclose(FUNCTIONS[name](robot), EXPECTED[name], rtol=1e-9, atol=1e-9) for name in names)
    return "right" if fine else "wrong"


def child(work: Callable[[], str], kill_after: float | None = None, longest: float = 120.0) -> str:
    """The outcome of work in a process of its own."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        outcome = "error"
        try:
            os.close(read)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            outcome = work()
        except (MemoryError, OSError, cj.CoadjointError) as error:
            outcome = "refused" if not isinstance(error, BlockingIOError) else "error"
        except BaseException as error:
            outcome = f"error {type(error).__name__}: {str(error)[:80]}"
        finally:
            with contextlib.suppress(BaseException):
                os.write(write, outcome.encode())
            os._exit(0)
    os.close(write)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(pid, signal.SIGKILL)
    stop = time.monotonic() + longest
    while (done := os.waitpid(pid, os.WNOHANG))[0] == 0:
        if time.monotonic() > stop:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(read)
            return "hang"
        time.sleep(0.0005)
    said = os.read(read, 200).decode()
    os.close(read)
    status = done[1]
    if os.WIFSIGNALED(status):
        return "ended" if os.WTERMSIG(status) == signal.SIGKILL and not said else said or f"crash, signal {os.WTERMSIG(status)}"
    return said or "nothing"


@contextlib.contextmanager
def places() -> Iterator[Path]:
    """A folder with a cache of its own, in which the user keeps files, too."""
    root = Path(tempfile.mkdtemp(prefix="faults"))
    before = {name: os.environ.get(name) for name in ("COADJOINT_CACHE", "XDG_STATE_HOME", "HOME")}
    os.environ |= {"COADJOINT_CACHE": str(root / "cache"), "XDG_STATE_HOME": str(root / "state"), "HOME": str(root)}
    (root / "cache").mkdir(mode=0o700)
    for name in MINE:
        (root / "cache" / name).write_text("mine")
        os.utime(root / "cache" / name, (0, 0))
    try:
        yield root
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
        shutil.rmtree(root, ignore_errors=True)


def sound(root: Path, names: Sequence[str] = tuple(FUNCTIONS)) -> str:
    """After a fault: the numbers are right, twice, and the user's files are there."""
    outcomes = {child(lambda: compute(names)), child(lambda: compute(names))}
    if outcomes != {"right"}:
        return f"afterwards {sorted(outcomes)}"
    lost = [name for name in MINE if not (root / "cache" / name).exists() or (root / "cache" / name).read_text() != "mine"]
    return f"lost {lost}" if lost else ""


def kills(times: int, rng: random.Random) -> Counter[str]:
    """Processes killed while they compile and write to one cache."""
    tally: Counter[str] = Counter()
    for _ in range(-(-times // 25)):
        with places() as root:
            for _ in range(25):
                tally[child(compute, kill_after=rng.uniform(0.0, 0.4))] += 1
                if rng.random() < 0.3:
                    for path in (root / "cache").glob("?" * 64 + ".kernel"):
                        path.unlink()
            tally[sound(root) or "sound"] += 1
    return tally


class Failing:
    """Functions of `os` that touch files, of which call number `at` does something else."""

    NAMES = ("open", "mkdir", "replace", "link", "unlink", "utime", "close")

    def __init__(self, at: int, fault: Callable[[], Any]) -> None:
        self.at, self.fault, self.calls = at, fault, 0

    def __enter__(self) -> Failing:
        self.kept = {name: getattr(os, name) for name in self.NAMES}
        for name, function in self.kept.items():
            setattr(os, name, self._counted(function))
        return self

    def __exit__(self, *_: object) -> None:
        for name, function in self.kept.items():
            setattr(os, name, function)

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            self.calls += 1
            if self.calls == self.at:
                self.fault()
            return function(*args, **options)

        return counted


def _raise(error: BaseException) -> Callable[[], Any]:
    def fault() -> Any:
        raise error

    return fault


FAULTS: dict[str, Callable[[], Any]] = {
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "no space": _raise(OSError(28, "No space left on device")),
    "no permission": _raise(PermissionError(13, "Permission denied")),
    "interrupted": _raise(KeyboardInterrupt()),
}


def writes(times: int, rng: random.Random) -> Counter[str]:
    """Every single call that touches a file fails, is interrupted, or is the last one of a killed process."""
    del times, rng
    here = sorted(Path().iterdir())
    tally: Counter[str] = Counter()
    for kind, fault in FAULTS.items():
        at = 0
        while True:
            at += 1

            def work(at: int = at, fault: Callable[[], Any] = fault) -> str:
                from coadjoint.kernel.runtime import folder

                folder.BY_DESCRIPTOR = True  # the table of functions that take descriptors holds the true ones
                with Failing(at, fault) as failing, contextlib.suppress(KeyboardInterrupt):
                    compute(["mass"])
                return "over" if failing.calls < at else compute(["mass"])

            with places() as root:
                outcome = child(work)
                if outcome == "over":
                    break
                tally[f"{kind}: {outcome}"] += 1
                tally[sound(root, ["mass"]) or "sound"] += 1
            if sorted(Path().iterdir()) != here:
                tally["files in the working directory"] += 1
    return tally


def disk(times: int, rng: random.Random) -> Counter[str]:
    """Files cannot grow beyond some size; and, where this user may mount one, a tiny disk that is full."""
    tally: Counter[str] = Counter()
    for _ in range(times):
        with places() as root:
            most = rng.choice([0, 1, 31, 32, 100, 4000, rng.randrange(40_000)])

            def work(most: int = most) -> str:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
                return compute()

            tally[child(work)] += 1
            tally[sound(root) or "sound"] += 1
    if sys.platform == "linux" and os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for size in ("4k", "16k", "64k"):
            with places() as root:
                for name in ("cache", "state"):
                    (root / name).mkdir(exist_ok=True)
                    if libc.mount(b"tmpfs", str(root / name).encode(), b"tmpfs", 0, f"size={size},mode=700".encode()):
                        tally["no mount"] += 1
                try:
                    tally[f"tmpfs of {size}: {child(compute)}"] += 1
                finally:
                    for name in ("cache", "state"):
                        libc.umount2(str(root / name).encode(), 2)
    return tally


def homes(times: int, rng: random.Random) -> Counter[str]:
    """No home, one that does not exist, one that cannot be written, odd values of the variables."""
    del times, rng
    here = sorted(Path().iterdir())
    tally: Counter[str] = Counter()
    values = ["", "/nowhere", "/proc/1", "/dev/null", "relative", "~", "~nobody_of_that_name/x", "/", "\x01", "/tmp/" + "x" * 300]
    for variable in ("HOME", "COADJOINT_CACHE", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        for value in values:
            for alone in (False, True):
                with places():

                    def work(variable: str = variable, value: str = value, alone: bool = alone) -> str:
                        if alone:
                            for other in ("HOME", "COADJOINT_CACHE", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
                                os.environ.pop(other, None)
                            os.environ["COADJOINT_CACHE"] = os.environ.get("COADJOINT_CACHE", "/nowhere/at/all")
                        os.environ[variable] = value
                        return compute()

                    tally[child(work)] += 1
                    if sorted(Path().iterdir()) != here:
                        tally[f"files in the working directory, {variable}={value!r}"] += 1
                        here = sorted(Path().iterdir())
    return tally


def memory(times: int, rng: random.Random) -> Counter[str]:
    """Address space for a little more than what is used already."""
    tally: Counter[str] = Counter()
    for _ in range(times):
        with places() as root:
            more = rng.randrange(200) << 20

            def work(more: int = more) -> str:
                used = int(Path("/proc/self/statm").read_text().split()[0]) * 4096
                resource.setrlimit(resource.RLIMIT_AS, (used + more, resource.RLIM_INFINITY))
                return compute()

            outcome = child(work)
            # LLVM itself gives up without memory: then the process ends by its own hand.
            tally["LLVM gave up" if outcome == f"crash, signal {signal.SIGABRT.value}" else outcome] += 1
            tally[sound(root) or "sound"] += 1
    return tally


def interrupts(times: int, rng: random.Random) -> Counter[str]:
    """Interrupts at random times in compiling, batches shared among threads, simulation and rollouts; then the same again, undisturbed."""
    tally: Counter[str] = Counter()
    big = np.tile(Q, (3000, 1))
    q, v = Q[:20], 0.1 * Q[:20]

    def roll() -> np.ndarray:
        return cj.rollout(ROBOT, q, v, dt=1e-4, steps=500)[0]

    def simulate() -> np.ndarray:
        return cj.simulate(ROBOT, q[0], v[0], np.linspace(0.0, 0.3, 5)).q

    def batch() -> np.ndarray:
        return cj.mass_matrix(ROBOT, big.copy(), threads=3)

    def compiled() -> np.ndarray:
        native._alive.clear()
        with places():
            return cj.mass_matrix(cj.load("planar3r"), Q)

    works = {"compile": compiled, "batch": batch, "simulate": simulate, "rollout": roll}

    def trials(seed: int) -> str:
        mine = random.Random(seed)
        told: Counter[str] = Counter()
        right, took = {}, {}
        for name, work in works.items():
            work()
            begin = time.perf_counter()
            right[name] = work()
            took[name] = time.perf_counter() - begin
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        for _ in range(25):
            name = mine.choice(list(works))
            found = None
            try:
                signal.setitimer(signal.ITIMER_REAL, mine.uniform(1e-5, 1.2 * took[name]))
                try:
                    found = works[name]()
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
            stopped = found is None or (name == "simulate" and len(found) < len(right[name]))
            told["interrupted" if stopped else "in time"] += 1
            again = works[name]()
            if again.shape != right[name].shape or not np.allclose(again, right[name], rtol=1e-12, atol=1e-12):
                return f"wrong after an interrupted {name}"
        return f"right {told['interrupted']} {told['in time']}"

    done = 0
    while done < times:
        outcome = child(lambda: trials(rng.randrange(1 << 30)), longest=600.0)
        done += 25
        words = outcome.split()
        if words[0] == "right" and len(words) == 3:
            tally["interrupted, then right"] += int(words[1])
            tally["in time, then right"] += int(words[2])
        else:
            tally[outcome] += 1
    return tally


def saves(times: int, rng: random.Random) -> Counter[str]:
    """Processes killed while they save a robot over an older file: one of the two is there, whole."""
    tally: Counter[str] = Counter()
    other = cj.load("planar2r")
    while tally.total() < times:
        with places() as root:
            path = root / "robot.json"
            cj.save(other, path)

            def work(path: Path = path) -> str:
                for k in range(1000):
                    cj.save((ROBOT, other)[k % 2], path)
                return "right"

            tally[child(work, kill_after=rng.uniform(0.0, 0.05))] += 1
            try:
                if cj.load(path) not in (ROBOT, other):
                    tally["lost"] += 1
            except cj.CoadjointError:
                tally["unreadable"] += 1
    return tally


PARTS: dict[str, tuple[Callable[[int, random.Random], Counter[str]], int]] = {
    "kills": (kills, 1000),
    "writes": (writes, 1),
    "disk": (disk, 100),
    "homes": (homes, 1),
    "memory": (memory, 100),
    "interrupts": (interrupts, 1000),
    "saves": (saves, 100),
}
FINE = ("right", "refused", "ended", "sound", "no mount", "LLVM gave up", "interrupted, then right", "in time, then right")


def fine(outcome: str) -> bool:
    """Whether a trial may end so."""
    return outcome.rpartition(": ")[2] in FINE


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.faults", description=__doc__.split("\n\n")[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="which faults (default: all)")
    parser.add_argument("--times", type=int, help="how many trials of each kind")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    failed = 0
    for name in given.parts or PARTS:
        part, times = PARTS[name]
        begin = time.monotonic()
        tally = part(given.times or times, random.Random(given.seed))
        print(f"{name} ({time.monotonic() - begin:.0f} s):", flush=True)
        for outcome, count in sorted(tally.items()):
            failed += 0 if fine(outcome) else count
            print(f"    {count:6d}  {outcome}{'' if fine(outcome) else '    <- a failure'}", flush=True)
    print("no failure" if not failed else f"{failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
