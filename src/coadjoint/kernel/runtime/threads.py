"""A pool of persistent threads that share a batch in small pieces; interrupts are handled between pieces. The calling thread takes
pieces like the others. A helper that starts late finds no piece left, so a thread that cannot be started does no harm. However a
call ends, no helper is inside one of its pieces when it returns.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ...errors import CoadjointError

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

PER_PROCESSOR = 4
"""The most threads per processor, whatever is requested: more would only wait for each other."""

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_workers = 0


def processors() -> int:
    """Processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def cap() -> int | None:
    """The most threads that COADJOINT_THREADS, or else OMP_NUM_THREADS, allows; None if neither is set."""
    chosen = os.environ.get("COADJOINT_THREADS", "").strip()
    if chosen:
        if not chosen.isdecimal() or int(chosen) < 1:
            raise CoadjointError(f"the environment variable COADJOINT_THREADS is {chosen!r}; expected a whole number, 1 or more.")
        return int(chosen)
    other = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # "4,2": nested levels
    return int(other) if other.isdecimal() and int(other) > 0 else None


def cores() -> int:
    """The number of threads among which a large batch is shared."""
    if not _main_interpreter():
        return 1
    return min(processors(), cap() or processors())


def most_threads(wanted: int) -> int:
    """The number of threads used for a requested number."""
    if not _main_interpreter():
        return 1
    return min(wanted, cap() or PER_PROCESSOR * processors())


@functools.cache
def _main_interpreter() -> bool:
    """True if this is not a sub-interpreter: threads that stay would keep those from ending."""
    try:
        current, main = ctypes.pythonapi.PyInterpreterState_Get, ctypes.pythonapi.PyInterpreterState_Main
    except AttributeError:  # another Python than CPython
        return True
    current.restype = main.restype = ctypes.c_void_p
    return bool(current() == main())


def _executor(workers: int) -> ThreadPoolExecutor:
    global _pool, _workers
    from concurrent.futures import ThreadPoolExecutor  # a slow import that most processes do not need

    with _lock:
        if _pool is None or _workers < workers:
            # The threads of an older pool end when their last work is done.
            _workers = max(workers, cores() - 1, 1)
            _pool = ThreadPoolExecutor(_workers, thread_name_prefix="coadjoint")
        return _pool


def _forget(pool: ThreadPoolExecutor) -> None:
    """Drop a pool that could not start a thread, with its queue."""
    global _pool
    with _lock:
        _pool = None if _pool is pool else _pool


def _after_fork() -> None:
    """Reset the pool in a forked child, which has none of its parent's threads."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

Work = Callable[[int, int], Iterable[int]]
"""work(start, stop) computes these states bit by bit: it yields a status after each bit, 0 if that went well."""


def _nothing(start: int, stop: int) -> Iterable[int]:
    return ()


def split(n: int, threads: int, grain: int, most: int) -> list[tuple[int, int]]:
    """0 … n in pieces, at least one a thread if there are enough, of at most about `most` states, all starts multiples of grain."""
    size = max(min(-(-n // threads), most), 1)
    size = -(-size // grain) * grain
    starts = list(range(0, n, size))
    if len(starts) > 1 and n - starts[-1] < grain:  # too little for a piece of its own
        starts.pop()
    return list(zip(starts, [*starts[1:], n][: len(starts)], strict=True))


class _Job:
    """Pieces of work that several threads take one after another."""

    def __init__(self, work: Work, pieces: Iterable[tuple[int, int]]) -> None:
        self.work, self.pieces = work, deque(pieces)
        self.status, self.error = 0, None  # type: tuple[int, BaseException | None]
        self.ended = False
        self.helpers = 0
        self.left_alone = threading.Condition()

    def take(self) -> None:
        """Do pieces until none is left or the job has ended."""
        while not self.ended:
            try:
                piece = self.pieces.popleft()
            except IndexError:
                return
            for status in self.work(*piece):
                if status:
                    self.status, self.ended = status, True
                if self.ended:
                    return

    def help(self) -> None:
        """`take` in another thread, which the job's owner waits for."""
        with self.left_alone:
            if self.ended:
                return
            self.helpers += 1
        try:
            self.take()
        except BaseException as error:
            self.error, self.ended = error, True
        finally:
            with self.left_alone:
                self.helpers -= 1
                self.left_alone.notify_all()

    def wait(self) -> None:
        """Wait until no other thread is inside a piece; call it when no piece is left, or the job has ended."""
        with self.left_alone:
            while self.helpers:
                self.left_alone.wait()


def share(work: Work, pieces: list[tuple[int, int]], threads: int) -> int:
    """Do all pieces, by up to so many threads, this one among them; the status of one that failed, or 0."""
    job = _Job(work, pieces)
    try:
        helpers = min(threads, len(pieces)) - 1
        if helpers > 0:
            pool = _executor(helpers)
            try:
                for _ in range(helpers):
                    pool.submit(job.help)
            except RuntimeError:  # the interpreter is ending, or no thread can be started; what is queued will find an ended job
                _forget(pool)
        job.take()
        job.wait()
    finally:  # an interrupt, or all is done: nothing new begins, and what is under way ends after its bit
        job.ended = True
        job.wait()
        job.work = _nothing  # a helper that was never started must not keep the arrays
    if job.error is not None:
        raise job.error
    return job.status
