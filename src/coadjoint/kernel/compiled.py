"""From a function and a robot to machine code: trace, simplify, compile, or fetch what was compiled before."""

from __future__ import annotations

import hashlib
import threading
import weakref
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .dispatch import core_shape
from .graph import Graph
from .native import available, build
from .trace import trace

_SHARED: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
_LOCKS: dict[str, threading.Lock] = {}
_GUARD = threading.Lock()


def compiled(kernel: Any, robot: Any, given: tuple[str, ...], statics: dict[str, Any], dtype: Any) -> Any:
    """The native function of a kernel for a robot, with these arrays given; None where the as-written path must serve."""
    if not available() or not robot.has_plain_numbers:
        return None
    text = repr((kernel.source.__module__, kernel.source.__qualname__, given, statics, np.dtype(dtype).name, robot.fingerprint))
    key = hashlib.sha256((source_stamp() + text).encode()).hexdigest()
    with _GUARD:
        lock = _LOCKS.setdefault(key, threading.Lock())
    with lock:
        found = _SHARED.get(key)
        if found is None:
            found = build(traced(kernel, robot, given, statics), dtype)
            _SHARED[key] = found
    with _GUARD:
        _LOCKS.pop(key, None)
    return found


def traced(kernel: Any, robot: Any, given: tuple[str, ...], statics: dict[str, Any]) -> Graph:
    """The graph of a kernel for a robot."""
    sizes = {name: core_shape(kernel.cores[name], robot) for name in given}
    run = lambda *arrays: kernel.general(robot, **dict(zip(given, arrays, strict=True)), **statics)  # noqa: E731
    return trace(run, sizes, kernel.source.__name__)


@cache
def source_stamp() -> str:
    """What tells this version of the library's own code from any other."""
    from .. import __version__

    root = Path(__file__).parents[1]
    files = sorted(root.rglob("*.py"))
    stats = [(str(f.relative_to(root)), f.stat().st_size, f.stat().st_mtime_ns) for f in files]
    return hashlib.sha256(repr((__version__, stats)).encode()).hexdigest()
