"""Sharing a batch among threads that stay."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None


def cores() -> int:
    """Processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def _executor(workers: int) -> ThreadPoolExecutor:
    global _pool
    from concurrent.futures import ThreadPoolExecutor  # a slow import that most processes do not need

    with _lock:
        if _pool is None or _pool._max_workers < workers:
            # The old pool's threads end when its last work is done.
            _pool = ThreadPoolExecutor(max(workers, cores() - 1, 1), thread_name_prefix="coadjoint")
        return _pool


def _after_fork() -> None:
    """A child has none of its parent's threads."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def share(work: Callable[[int, int], int], n: int, threads: int, grain: int) -> int:
    """work(start, stop) over 0 … n in `threads` parts, each but the last a multiple of grain; the largest result."""
    part = -(-n // threads)
    part = -(-part // grain) * grain
    pieces = [(start, min(start + part, n)) for start in range(0, n, part)]
    if len(pieces) == 1:
        return work(0, n)
    try:
        pool = _executor(len(pieces) - 1)
        futures = [pool.submit(work, *piece) for piece in pieces[1:]]
    except RuntimeError:  # the interpreter is ending, or no thread can be started
        return work(0, n)
    return max(work(*pieces[0]), *(f.result() for f in futures))
