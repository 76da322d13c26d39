"""`explain`: the stages of a compilation, for inspection."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .arguments import a_type, takes
from .compiling import trace
from .errors import CoadjointError
from .kernel.alone import ALONE, ASKED
from .kernel.dump import graph_text, plan_text
from .kernel.graph import Graph
from .kernel.pipeline import Compilation, CompiledProgram, compile_graph, compile_program
from .kernel.programs import is_program
from .kernel.runtime.function import CompiledFunction
from .kernel.runtime.native import why_not
from .robot.robot import Robot
from .scale.task import kernel_of
from .words import short

ARITHMETIC = ("mul", "add", "sub", "neg", "div")


@dataclass(frozen=True)
class Explanation:
    """The stages of a compilation; printing it gives a summary.

    `traced` and `graph` are the expression graphs before and after simplification, `plan` the steps in their chunks, `llvm` the text
    that LLVM compiles, `code` the object file, `target` the processor; `assembly` is its code as text. `graph_text()` and
    `plan_text()` show graph and plan line by line. `plain_calls` says which kernel plain calls of the function on this robot use: one of
    its own, which is the one explained, or that of its structure (docs/execution.md).
    """

    made: Compilation
    plain_calls: str = ""

    @property
    def traced(self) -> Graph:
        """The expression graph before simplification."""
        return self.made.graph.traced or self.made.graph

    @property
    def graph(self) -> Graph:
        """The expression graph after simplification, which is compiled."""
        return self.made.graph

    @property
    def plan(self) -> Any:
        """The schedule: steps in chunks, and memory slots for values that live across chunks."""
        return self.made.plan

    @property
    def llvm(self) -> str:
        """LLVM's intermediate representation."""
        return self.made.llvm

    @property
    def code(self) -> bytes:
        """The object file that LLVM made."""
        return self.made.code

    @property
    def target(self) -> Any:
        """The processor that the code is for."""
        return self.made.target

    @cached_property
    def assembly(self) -> str:
        """The machine code as text."""
        from .kernel.runtime.jit import assembly

        return assembly(self.llvm, self.target)

    @property
    def spills(self) -> int:
        """The number of spilled values, which are kept in memory within a chunk because registers do not suffice."""
        from .kernel.schedule.spills import local_slots

        return sum(len(local_slots(chunk, set(self.plan.slots))[0]) for chunk in self.plan.chunks)

    def graph_text(self) -> str:
        """The simplified graph as text, one node per line."""
        return graph_text(self.graph)

    def plan_text(self) -> str:
        """The plan as text, one step per line."""
        return plan_text(self.plan)

    def counts(self) -> dict[str, tuple[int, int]]:
        """The number of operations of each kind, before and after simplification."""
        before, after = self.traced.count(), self.graph.count()
        names = [op for op in (*ARITHMETIC, *sorted({*before, *after} - {*ARITHMETIC})) if op in before or op in after]
        return {op: (before.get(op, 0), after.get(op, 0)) for op in names if op not in ("const", "part")}

    def __str__(self) -> str:
        g, scheme, target = self.graph, self.plan, self.target

        def shapes(names: Sequence[str], sizes: Sequence[tuple[int, ...]]) -> str:
            return ", ".join(f"{n} {s}" for n, s in zip(names, sizes, strict=True))

        results = [f"result {k}" if len(g.outputs) > 1 else "result" for k in range(len(g.outputs))]
        lanes = self.made.lanes
        lines = [
            f"{g.name}: {shapes(g.input_names, g.input_shapes)} -> {shapes(results, g.output_shapes)}",
            "",
            "operations    as traced  simplified",
            *(f"  {op:10}{before:11d}{after:12d}" for op, (before, after) in self.counts().items()),
            f"  {'all nodes':10}{len(self.traced):11d}{len(g):12d}",
            "",
            f"plan       chunks: {len(scheme.chunks)}, of {', '.join(str(len(c.steps)) for c in scheme.chunks[:12])} steps",
            f"           {len(scheme.fused)} products fused into sums, {scheme.n_slots} slots between chunks, {self.spills} spills",
            f"           about {scheme.weight} instructions for {lanes.count} states at once",
            f"LLVM       {len(self.llvm.splitlines())} lines, {len(self.code)} bytes of object code",
            f"processor  {target.cpu}, {target.vector_bits} bits: {lanes.count} x {lanes.dtype}{', fma' if target.fma else ''}",
            *([f"in use     plain calls on this robot have {self.plain_calls}"] if self.plain_calls else []),
        ]
        return "\n".join(lines)

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class ProgramExplanation(Explanation):
    """The stages of the compilation of a sequential program: a function with loops and branches, which has no graph; printing it gives a
    summary.

    `llvm` is the text before LLVM's own passes, `code` the object file that they leave, `target` the processor, `functions` the program
    and the programs that it calls.
    """

    made: CompiledProgram  # type: ignore[assignment]

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """The program, and the programs that it calls."""
        return self.made.functions

    @property
    def traced(self) -> Graph:
        raise self._no("graph")

    @property
    def graph(self) -> Graph:
        raise self._no("graph")

    @property
    def plan(self) -> Any:
        raise self._no("plan")

    def counts(self) -> dict[str, tuple[int, int]]:
        raise self._no("count of operations")

    def _no(self, what: str) -> CoadjointError:
        return CoadjointError(
            f"{self.functions[0].__name__} is a program with loops and branches and has no {what}; see functions, llvm, assembly and code."
        )

    def __str__(self) -> str:
        entry, *others = self.functions
        width = max(len(fn.__name__) for fn in self.functions)
        sizes = {fn: len(inspect.getsource(fn).splitlines()) for fn in self.functions}
        return "\n".join(
            [
                f"{entry.__name__}{inspect.signature(entry)}".replace("'", ""),
                "",
                *([f"called by {self.plain_calls}"] if self.plain_calls else []),
                f"source     {sum(sizes.values())} lines in {entry.__module__} and the functions it calls:",
                *(f"           {fn.__name__:{width}}  {sizes[fn]:4d} lines" for fn in others),
                f"LLVM       {len(self.llvm.splitlines())} lines, {len(self.code)} bytes of object code",
                f"processor  {self.target.cpu}, {self.target.vector_bits} bits",
            ]
        )

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class CallExplanation(Explanation):
    """The kernels that one call of a function runs, such as `simulate`, in the order in which they are asked for.

    `kernels` has an `Explanation` of each; printing the whole gives a table: operations, instructions and bytes.
    """

    made: tuple[Compilation, ...]  # type: ignore[assignment]
    name: str = ""

    @cached_property
    def kernels(self) -> tuple[Explanation, ...]:
        """An explanation of every kernel."""
        return tuple(Explanation(made) for made in self.made)

    @property
    def traced(self) -> Graph:
        raise self._no("graph")

    @property
    def graph(self) -> Graph:
        raise self._no("graph")

    @property
    def plan(self) -> Any:
        raise self._no("plan")

    @property
    def llvm(self) -> str:
        raise self._no("text for LLVM")

    @property
    def code(self) -> bytes:
        raise self._no("object file")

    @property
    def target(self) -> Any:
        return self.made[0].target

    def counts(self) -> dict[str, tuple[int, int]]:
        """The number of operations of each kind in all kernels, before and after simplification."""
        parts = [kernel.counts() for kernel in self.kernels]
        names = dict.fromkeys(op for part in parts for op in part)
        zero = (0, 0)
        return {op: (sum(x.get(op, zero)[0] for x in parts), sum(x.get(op, zero)[1] for x in parts)) for op in names}

    def _no(self, what: str) -> CoadjointError:
        return CoadjointError(f"{self.name} has no {what} of its own; see that of kernels[k].")

    def __str__(self) -> str:
        graphs = [made.graph for made in self.made]
        operations = [sum(after for _, after in kernel.counts().values()) for kernel in self.kernels]
        width = max(6, *(len(g.name) for g in graphs))
        calls = [", ".join(f"{n} {s}" for n, s in zip(g.input_names, g.input_shapes, strict=True)) for g in graphs]
        lines = [
            f"  {g.name:{width}}{count:12d}{made.plan.weight:14d}{len(made.code):11d}  {call}"
            for g, count, made, call in zip(graphs, operations, self.made, calls, strict=True)
        ]
        return "\n".join(
            [
                f"{self.name} runs {len(graphs)} kernel{'s' * (len(graphs) > 1)}:",
                "",
                f"  {'kernel':{width}}{'operations':>12}{'instructions':>14}{'bytes':>11}  inputs",
                *lines,
                "",
                f"processor  {self.target.cpu}, {self.target.vector_bits} bits; instructions are for all lanes of a vector at once",
            ]
        )

    __repr__ = __str__


def _explained_call(fn: Callable[..., Any], robot: Robot, arguments: dict[str, Any]) -> CallExplanation:
    """The kernels of the call fn(robot, **arguments), which is made on a copy of the robot for which nothing is compiled yet."""
    asked: dict[str, tuple[Any, str]] = {}
    listing, alone = ASKED.set(asked), ALONE.set(True)
    try:
        fn(pickle.loads(pickle.dumps(robot)), **arguments)
    finally:
        ASKED.reset(listing)
        ALONE.reset(alone)
    name = getattr(fn, "__name__", short(fn))
    if not asked:
        why = why_not() or "it computes with NumPy alone, or its kernels belong to its arguments"
        raise CoadjointError(f"this call of {name} compiled nothing: {why}.")
    graphs = [(graph() if callable(graph) else graph, dtype) for graph, dtype in asked.values()]
    return CallExplanation(tuple(compile_graph(graph, dtype) for graph, dtype in graphs), name=name)


def _is_call(fn: Callable[..., Any], robot: Robot, arguments: dict[str, Any]) -> bool:
    """True if fn is a function of this library without a graph of its own, and the arguments are those of a call."""
    if kernel_of(fn) is not None or not str(getattr(fn, "__module__", "")).startswith(f"{__package__}."):
        return False
    try:
        inspect.signature(fn).bind(robot, **arguments)
    except TypeError:
        return False
    return True


@takes(dtype=a_type)
def explain(
    fn: Callable[..., Any],
    robot: Robot | None = None,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    parameters: Sequence[str] = (),
    dtype: Any = np.float64,
    **options: Any,
) -> Explanation:
    """An `Explanation` of how fn is compiled for a robot, stage by stage; the arguments are those of `compile`.

    A function that `compile`, `jvp` or `vjp` returned, and a controller, know their robot and are given alone: explain(controller).
    Functions that run a sequential program (time_optimal, optimal_control, receding_horizon, time_varying_lqr) give a
    `ProgramExplanation`, for all robots the same. Functions that iterate (simulate, rollout, identify, inverse_kinematics) are explained
    with the arguments of a call, explain(cj.rollout, robot, q=q, v=v, dt=1e-3, steps=10): the call is made, and a `CallExplanation`
    lists the kernels that it runs. Print the result for a summary: operations before and after simplification, the plan, sizes, the
    processor.
    """
    program = getattr(fn, "program", None) or (fn if is_program(fn) else None)
    if program is not None:
        return ProgramExplanation(compile_program(program), "" if program is fn else fn.__name__)
    owner = getattr(fn, "__self__", fn)
    graph = getattr(owner, "graph", None)
    if graph is not None or isinstance(owner, CompiledFunction):
        if robot is not None or shapes or parameters or options:
            raise CoadjointError(f"{short(fn)} is made for its robot already; explain it alone, explain(fn).")
        if graph is None:
            raise CoadjointError(f"{short(fn)} keeps no graph; explain the function and the robot that it was made of.")
        signature = getattr(owner, "signature", None)
        graph = graph() if callable(graph) else graph
        return Explanation(compile_graph(graph, np.dtype(dtype).name if signature is None else signature.dtype))
    if robot is None:
        raise CoadjointError(
            f"explain({short(fn)}) needs a robot, explain(fn, robot); only controllers and the results of `compile` are explained alone."
        )
    call = dict(options) | ({"shapes": shapes} if shapes else {}) | ({"parameters": parameters} if parameters else {})
    if _is_call(fn, robot, call):
        return _explained_call(fn, robot, call)
    kernel = kernel_of(fn)
    try:
        graph = trace(fn, robot, shapes=shapes, parameters=parameters, **options)
    except CoadjointError as error:
        if kernel is not None or not str(getattr(fn, "__module__", "")).startswith(f"{__package__}."):
            raise
        raise CoadjointError(
            f"{getattr(fn, '__name__', fn)} cannot be explained: {error} A function that iterates, as simulate and rollout do, has no "
            "graph of its own: give all arguments of a call, as in explain(coadjoint.simulate, robot, q=q, v=v, t=1.0), and the kernels "
            "that it runs are listed."
        ) from error
    in_use = "" if kernel is None else kernel.in_use(robot) or "no kernel yet"
    return Explanation(compile_graph(graph, np.dtype(dtype).name), in_use)
