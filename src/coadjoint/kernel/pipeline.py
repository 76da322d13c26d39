"""From a function and a robot to machine code: trace, simplify, compile, or fetch what was compiled before."""

from __future__ import annotations

from typing import Any

from .dispatch import core_shape
from .graph import Graph
from .runtime.native import NativeError, available, build


def compiled(kernel: Any, robot: Any, given: tuple[str, ...], statics: dict[str, Any], dtype: Any) -> Any:
    """The native function of a kernel for a robot, with these arrays given; None where the as-written path must serve."""
    if not available() or not robot.has_plain_numbers:
        return None
    plain = {name: x.identity(robot) if hasattr(x, "identity") else x for name, x in statics.items()}
    what = repr((kernel.source.__module__, kernel.source.__qualname__, given, plain, robot.fingerprint))
    try:
        return build(lambda: traced(kernel, robot, given, statics), dtype, key=what)
    except NativeError:
        return None


def traced(kernel: Any, robot: Any, given: tuple[str, ...], statics: dict[str, Any]) -> Graph:
    """The graph of a kernel for a robot, simplified."""
    from .passes.simplify import simplify  # imported here: a kernel from the cache needs neither
    from .trace.trace import trace

    sizes = {name: core_shape(kernel.cores[name], robot) for name in given}
    run = lambda *arrays: kernel.call(robot, **dict(zip(given, arrays, strict=True)), **statics)  # noqa: E731
    return simplify(trace(run, sizes, kernel.source.__name__))
