"""From nodes to steps: their order, sines and cosines in groups, loads before first uses, stores as early as possible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..graph import Graph
from ..ops import COST
from .fuse import operands
from .list_schedule import sequence

TRIG_GROUP = 8
"""The most angles whose sines and cosines are computed together."""
TRIG_WINDOW = 24
"""The number of angles ahead that are considered for a group."""
ANGLE = 4
"""The number of operations that may be moved forward to compute an angle earlier, such as the sum of a coordinate and an offset."""
WIDE = 64
"""An output with at least this many columns is written by a loop, block by block, as contiguous streams."""


@dataclass
class Step:
    """One step of the plan, to be emitted."""

    kind: str  # node, trig, block, load, store, write
    what: Any
    """The node; the arguments of a trig group; (array, column, width) of a load, store or write."""
    defs: tuple[int, ...] = ()
    uses: tuple[int, ...] = ()
    weight: int = 1


def node_steps(graph: Graph, live: Sequence[int], fused: dict[int, int]) -> list[Step]:
    """The computations in an order with few live values, sines and cosines in groups."""
    op, args = graph.op, graph.args
    absorbed = set(fused.values())
    order = [k for k in range(len(graph)) if live[k] and op[k] not in ("const", "input", "part") and k not in absorbed]

    def reads(k: int) -> list[int]:
        return [args[a][0] if op[a] == "part" else a for a in operands(graph, fused, k)]

    return _Steps(graph, live, fused, sequence(order, reads)).steps


class _Steps:
    """The builder of steps for nodes in the given order, except for sines and cosines, which are computed with the first of their
    group.
    """

    def __init__(self, graph: Graph, live: Sequence[int], fused: dict[int, int], order: Sequence[int]) -> None:
        self.graph, self.fused = graph, fused
        self.ready = [op in ("const", "input") for op in graph.op]
        self.steps: list[Step] = []
        self.trig: dict[int, list[int]] = {}
        """The sine and cosine of each angle."""
        self.parts: dict[int, list[int]] = {}
        for k in range(len(graph)):
            if live[k] and graph.op[k] in ("sin", "cos"):
                self.trig.setdefault(graph.args[k][0], []).append(k)
            elif live[k] and graph.op[k] == "part":
                self.parts.setdefault(graph.args[k][0], []).append(k)
        self.angles = list(dict.fromkeys(graph.args[k][0] for k in order if graph.op[k] in ("sin", "cos")))
        self.first = 0
        """The first angle whose sine and cosine may be missing."""
        for k in order:
            if not self.ready[k]:
                if graph.op[k] in ("sin", "cos"):
                    self._group()
                else:
                    self._node(k)

    def _node(self, k: int) -> None:
        op = self.graph.op
        made = tuple(self.parts.get(k, ())) if op[k] == "block" else (k,)
        uses = tuple(dict.fromkeys(a for a in operands(self.graph, self.fused, k) if op[a] != "const"))
        self.steps.append(Step("block" if op[k] == "block" else "node", k, made, uses, COST[op[k]]))
        for n in (k, *made):
            self.ready[n] = True

    def _group(self) -> None:
        """The group of sines and cosines of the next angles that are available, or nearly so."""
        while self._done(self.angles[self.first]):
            self.first += 1
        group: list[int] = []
        for angle in self.angles[self.first : self.first + TRIG_WINDOW]:
            if len(group) == TRIG_GROUP:
                break
            missing = None if self._done(angle) else self._missing(angle)
            if missing is not None:
                for n in missing:
                    self._node(n)
                group.append(angle)
        made = tuple(n for angle in group for n in self.trig[angle])
        uses = tuple(a for a in group if self.graph.op[a] != "const")
        self.steps.append(Step("trig", group, made, uses, (COST["sin"] + COST["cos"]) * len(group)))
        for n in made:
            self.ready[n] = True

    def _done(self, angle: int) -> bool:
        return all(self.ready[n] for n in self.trig[angle])

    def _missing(self, angle: int) -> list[int] | None:
        """The nodes, in order, that are missing for the angle; None if there are more than ANGLE."""
        missing: list[int] = []
        stack = [angle]
        while stack:
            k = stack.pop()
            if self.ready[k] or k in missing:
                continue
            if len(missing) == ANGLE or self.graph.op[k] in ("sin", "cos", "part"):
                return None
            missing.append(k)
            stack.extend(operands(self.graph, self.fused, k))
        return sorted(missing)


def columns(count: int, widths: Sequence[int]) -> list[tuple[int, int]]:
    """(first column, width) of groups that cover `count` columns; the last of a width may overlap the one before."""
    groups: list[tuple[int, int]] = []
    for width in widths:
        if width <= count:
            groups = [(c, width) for c in range(0, count - width + 1, width)]
            if count % width:
                groups.append((count - width, width))
            break
    return groups


def load_steps(graph: Graph, steps: list[Step], widths: Sequence[int]) -> list[Step]:
    """Loads of input columns, each just before its first use."""
    where: dict[int, tuple[int, int, int]] = {}
    members: dict[tuple[int, int, int], list[int]] = {}
    groups = [columns(math.prod(shape), widths) for shape in graph.input_shapes]
    starts = [{c: (g, w) for g, w in reversed(gs) for c in range(g, g + w)} for gs in groups]
    for k in range(len(graph)):
        if graph.op[k] == "input":
            array, column = graph.value[k]
            first, width = starts[array][column]
            where[k] = (array, first, width)
            members.setdefault(where[k], []).append(k)
    done: set[tuple[int, int, int]] = set()
    wanted = {k for step in steps for k in step.uses} | {k for output in graph.outputs for k in output}
    result: list[Step] = []

    def bring(nodes: Sequence[int]) -> None:
        for k in nodes:
            group = where.get(k)
            if group is not None and group not in done:
                done.add(group)
                made = tuple(m for m in members[group] if m in wanted)
                result.append(Step("load", group, made, (), 4 * group[2]))

    for step in steps:
        bring(step.uses)
        result.append(step)
    for output in graph.outputs:
        bring(output)
    return result


def store_steps(graph: Graph, steps: list[Step], widths: Sequence[int], wide: int | None = WIDE) -> list[Step]:
    """Stores of output columns, each as soon as all its values are available; wide outputs as a whole, at the end."""
    made_at = {k: place for place, step in enumerate(steps) for k in step.defs}
    first_of_all: list[Step] = []
    at: dict[int, list[Step]] = {}
    last: list[Step] = []
    for array, output in enumerate(graph.outputs):
        if wide is not None and len(output) >= wide:
            uses = tuple(dict.fromkeys(k for k in output if graph.op[k] != "const"))
            last.append(Step("write", (array, 0, len(output)), (), uses, len(output)))
            continue
        for first, width in columns(len(output), widths):
            uses = tuple(dict.fromkeys(k for k in output[first : first + width] if graph.op[k] != "const"))
            place = max((made_at[k] for k in uses), default=None)
            stores = first_of_all if place is None else at.setdefault(place, [])
            stores.append(Step("store", (array, first, width), (), uses, 4 * width))
    result = first_of_all
    for place, step in enumerate(steps):
        result.append(step)
        result.extend(at.get(place, ()))
    return result + last
