"""The stages of the compiler in order: from a function and a robot to a graph, and from a graph to machine code.

    trace → expand sums → refactor sums → share sums → reassociate → plan → lower → object code

`traced` runs the first of them, `passes.simplify` the next four, `compile_graph` the others; `compiled` fetches what was compiled
before. `compile_program` is all of it for a sequential program. README.md, in this folder, walks through them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .alone import ALONE
from .dispatch import core_shape
from .graph import Graph, verify
from .runtime.abi import NUMBERS
from .runtime.native import NativeError, available, build, made

if TYPE_CHECKING:
    from .emit.llvm import Lanes
    from .runtime.target import Target
    from .schedule.plan import Plan


@dataclass(frozen=True)
class Compilation:
    """A graph and everything that was made of it on the way to machine code."""

    graph: Graph
    """The graph as compiled; `graph.traced` is the graph as traced, where that is another."""
    target: Target
    lanes: Lanes
    plan: Plan
    llvm: str
    code: bytes
    """An object file."""


def compile_graph(graph: Graph, dtype: str, target: Target | None = None) -> Compilation:
    """A simplified graph as object code for a processor, by default this one."""
    from .emit.entry import define_call
    from .emit.llvm import Lanes
    from .emit.lower import lower, widths
    from .emit.step_loop import define_repeat
    from .runtime.jit import compile_ir
    from .runtime.target import host
    from .schedule.plan import plan

    target = target or host()
    lanes = Lanes(dtype, target.lanes(dtype))
    verify(graph)
    scheme = plan(graph, target.fma, widths(lanes))
    module = lower(graph, scheme, lanes, target)
    define_call(module, lanes, graph.input_shapes, graph.output_shapes, counted=graph.input_names[:1] == (NUMBERS,))
    define_repeat(module, lanes, len(graph.input_shapes), len(graph.output_shapes))
    text = module.text()
    made = Compilation(graph, target, lanes, scheme, text, compile_ir(text, target))
    if os.environ.get("COADJOINT_DUMP"):
        from .dump import dump

        dump(made, Path(os.environ["COADJOINT_DUMP"]))
    return made


@dataclass(frozen=True)
class CompiledProgram:
    """A sequential program (`programs.py`) and what was made of it."""

    functions: tuple[Callable[..., Any], ...]
    """The program, and the programs it calls."""
    target: Target
    llvm: str
    """LLVM's text as written; LLVM's passes then optimise it."""
    code: bytes


def compile_program(fn: Callable[..., Any]) -> CompiledProgram:
    """A sequential program as object code for this processor."""
    from .emit.sequential import module_of
    from .runtime.jit import compile_text
    from .runtime.target import host

    module, target = module_of(fn), host()
    text = module.text()
    return CompiledProgram(tuple(module.known.values()), target, text, compile_text(text, target))


def compiled(kernel: Any, robot: Any, given: tuple[str, ...], statics: dict[str, Any], dtype: Any, own: bool = False) -> Any:
    """The native function of a kernel for a robot, with these arrays given; None where the as-written path must serve.

    It is one for this robot alone if there is such a one, or if it is the first of its structure, or if `own`; else it is shared.
    """
    if not available() or not robot.has_plain_numbers:
        return None
    plain = {name: x.identity(robot) if hasattr(x, "identity") else x for name, x in statics.items()}
    what = repr((kernel.source.__module__, kernel.source.__qualname__, given, plain, robot.fingerprint))
    try:
        if not own and not ALONE.get() and not made(what, dtype):
            from .structures import shared

            found = shared(kernel, robot, given, statics, dtype)
            if found is not None:
                return found
        return build(lambda: traced(kernel, robot, given, statics), dtype, key=what)
    except NativeError:
        return None


def traced(kernel: Any, robot: Any, given: tuple[str, ...], statics: dict[str, Any]) -> Graph:
    """The graph of a kernel for a robot, simplified."""
    from .passes.simplify import simplify  # imported here: a kernel from the cache needs neither
    from .trace.trace import trace

    sizes = {name: core_shape(kernel.cores[name], robot) for name in given}
    run = lambda *arrays: kernel.call(robot, **dict(zip(given, arrays, strict=True)), **statics)
    return simplify(trace(run, sizes, kernel.source.__name__))
