"""From a graph to steps: what is computed when, in which chunk, and where values wait between chunks.

A graph becomes a list of steps: nodes, groups of sines and cosines, dense blocks, loads of input columns and stores of
output columns. Long lists are cut into chunks, each a function that loops over some blocks of lanes, so that compile
time grows linearly and code and values stay in the nearest caches; values that cross a cut wait in slots of scratch
memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..emit.sparse_solve import Sparse
from ..graph import Graph
from ..ops import COST
from .dense_layout import Full, layout
from .list_schedule import sequence

SINGLE = 2000
"""Up to so many instructions a graph is one chunk."""
CHUNK = (700, 1100)
"""Shortest and longest chunk of longer graphs; the cut goes where fewest values cross."""
TRIG_GROUP = 8
"""Most arguments whose sines and cosines are computed together."""
TRIG_WINDOW = 24
"""How many angles ahead are looked at for that."""
ANGLE = 4
"""How many operations may be brought forward to have an angle earlier, such as the sum of a coordinate and an offset."""
WIDE = 64
"""Columns from which on an output is written by a loop, block after block of lanes, so that memory sees even streams."""


@dataclass
class Step:
    """One thing to emit."""

    kind: str  # node, trig, block, load, store, write
    what: Any
    """The node; the arguments of a trig group; (array, column, width) of a load, store or write."""
    defs: tuple[int, ...] = ()
    uses: tuple[int, ...] = ()
    weight: int = 1


@dataclass
class Chunk:
    """Consecutive steps that make one function."""

    steps: list[Step]
    keep: dict[int, int] = field(default_factory=dict)
    """Slots of values made here and read in later chunks."""


@dataclass
class Plan:
    """Everything the emitter needs."""

    chunks: list[Chunk]
    fused: dict[int, int]
    """Sums and differences that absorb a product: add or sub -> mul."""
    slots: dict[int, int]
    feeds: dict[int, list[int]]
    """Slots inside the areas of dense blocks that a value is also written to when it is made."""
    areas: dict[int, tuple[int, Full | Sparse]]
    """First slot of the area of each dense block, and how it lies there."""
    n_slots: int
    weight: int


def plan(graph: Graph, fma: bool, widths: Sequence[int]) -> Plan:
    """Order, fuse, group, cut and place. `widths`: how many columns may be loaded or stored together."""
    live = _live(graph)
    fused = _fuse(graph, live) if fma else {}
    steps = _store_steps(graph, _load_steps(graph, _steps(graph, live, fused), widths), widths)
    chunks = [Chunk(s) for s in _cut(steps)]
    slots, feeds, areas, n_slots = _place(graph, chunks)
    return Plan(chunks, fused, slots, feeds, areas, n_slots, sum(s.weight for s in steps))


def plan_alone(graph: Graph, scheme: Plan) -> Plan | None:
    """The same computations in one chunk that loads and stores number by number: for one state; None if they are too many."""
    steps = [step for chunk in scheme.chunks for step in chunk.steps if step.kind in ("node", "trig", "block")]
    if scheme.weight > SINGLE or any(step.kind == "block" for step in steps):
        return None
    chunk = Chunk(_store_steps(graph, _load_steps(graph, steps, (1,)), (1,), wide=None))
    return Plan([chunk], scheme.fused, {}, {}, {}, 0, scheme.weight)


def _live(graph: Graph) -> list[bool]:
    """Which nodes an output depends on."""
    live = [False] * len(graph)
    for output in graph.outputs:
        for k in output:
            live[k] = True
    for k in range(len(graph) - 1, -1, -1):
        if live[k]:
            for a in graph.args[k]:
                live[a] = True
    return live


def _fuse(graph: Graph, live: Sequence[bool]) -> dict[int, int]:
    """Which sum absorbs which product. A product goes where all its uses can absorb it; a sum absorbs one product."""
    op, args = graph.op, graph.args
    returned = {k for output in graph.outputs for k in output}
    users: dict[int, list[int]] = {k: [] for k in range(len(graph)) if live[k] and op[k] == "mul" and k not in returned}
    for k in range(len(graph)):
        if live[k]:
            for a in args[k]:
                if a in users:
                    users[a].append(k)
    fused: dict[int, int] = {}

    def can(sum_: int, product: int) -> bool:
        return op[sum_] in ("add", "sub") and sum_ not in fused and args[sum_][0] != args[sum_][1] and product in args[sum_]

    # Products with few choices first: those with several uses, where the other operand does not want the same sum.
    for product, uses in users.items():
        if 1 < len(uses) <= 3 and all(can(u, product) for u in uses):
            others = [a for u in uses for a in args[u] if a != product]
            if all(not (o in users and len(users[o]) == 1) for o in others):
                for u in uses:
                    fused[u] = product
    for product, uses in users.items():
        if len(uses) == 1 and can(uses[0], product):
            fused[uses[0]] = product
    return fused


def operands(graph: Graph, fused: dict[int, int], k: int) -> tuple[int, ...]:
    """What node k reads once products are absorbed: the product's factors, then the other operand."""
    product = fused.get(k)
    if product is None:
        return graph.args[k]
    first, second = graph.args[k]
    return (*graph.args[product], second if first == product else first)


def _steps(graph: Graph, live: Sequence[bool], fused: dict[int, int]) -> list[Step]:
    """The computations in an order that keeps few values waiting, sines and cosines gathered into groups."""
    op, args = graph.op, graph.args
    absorbed = set(fused.values())
    order = [k for k in range(len(graph)) if live[k] and op[k] not in ("const", "input", "part") and k not in absorbed]

    def reads(k: int) -> list[int]:
        return [args[a][0] if op[a] == "part" else a for a in operands(graph, fused, k)]

    order = sequence(order, reads)
    trig: dict[int, list[int]] = {}
    parts: dict[int, list[int]] = {}
    for k in range(len(graph)):
        if live[k] and op[k] in ("sin", "cos"):
            trig.setdefault(args[k][0], []).append(k)
        elif live[k] and op[k] == "part":
            parts.setdefault(args[k][0], []).append(k)
    ready = [op[k] in ("const", "input") for k in range(len(graph))]
    steps: list[Step] = []

    def emit(k: int) -> None:
        made = tuple(parts.get(k, ())) if op[k] == "block" else (k,)
        uses = tuple(dict.fromkeys(a for a in operands(graph, fused, k) if op[a] != "const"))
        steps.append(Step("block" if op[k] == "block" else "node", k, made, uses, COST[op[k]]))
        for n in (k, *made):
            ready[n] = True

    def within_reach(angle: int) -> list[int] | None:
        """Up to ANGLE nodes, in order, that are all that is missing for the angle; None if there are more."""
        missing: list[int] = []
        stack = [angle]
        while stack:
            k = stack.pop()
            if ready[k] or k in missing:
                continue
            if len(missing) == ANGLE or op[k] in ("sin", "cos", "part"):
                return None
            missing.append(k)
            stack.extend(operands(graph, fused, k))
        return sorted(missing)

    angles = list(dict.fromkeys(args[k][0] for k in order if op[k] in ("sin", "cos")))
    first = 0
    for k in order:
        if ready[k]:
            continue
        if op[k] in ("sin", "cos"):
            while all(ready[n] for n in trig[angles[first]]):
                first += 1
            group: list[int] = []
            for angle in angles[first : first + TRIG_WINDOW]:
                if len(group) == TRIG_GROUP:
                    break
                if not all(ready[n] for n in trig[angle]):
                    missing = within_reach(angle)
                    if missing is not None:
                        for n in missing:
                            emit(n)
                        group.append(angle)
            made = tuple(n for angle in group for n in trig[angle])
            steps.append(
                Step("trig", group, made, tuple(a for a in group if op[a] != "const"), (COST["sin"] + COST["cos"]) * len(group))
            )
            for n in made:
                ready[n] = True
        else:
            emit(k)
    return steps


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


def _load_steps(graph: Graph, steps: list[Step], widths: Sequence[int]) -> list[Step]:
    """Loads of input columns, each just before its first use."""
    where: dict[int, tuple[int, int, int]] = {}
    members: dict[tuple[int, int, int], list[int]] = {}
    groups = [columns(_size(shape), widths) for shape in graph.input_shapes]
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


def _store_steps(graph: Graph, steps: list[Step], widths: Sequence[int], wide: int | None = WIDE) -> list[Step]:
    """Stores of output columns, each as soon as all its values are there; wide outputs whole, at the end."""
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


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


def _cut(steps: list[Step]) -> list[list[Step]]:
    """Chunks of steps. Dense blocks and the writing of wide outputs stand alone."""
    runs: list[list[Step]] = [[]]
    for step in steps:
        if step.kind in ("block", "write"):
            runs += [[step], []]
        else:
            runs[-1].append(step)
    chunks: list[list[Step]] = []
    for run in runs:
        if not run:
            continue
        if sum(s.weight for s in run) <= SINGLE:
            chunks.append(run)
        else:
            chunks += _cut_run(run)
    return chunks


def _cut_run(steps: list[Step]) -> list[list[Step]]:
    """Cut where the fewest values cross, every CHUNK[0] to CHUNK[1] instructions."""
    last_use = {k: place for place, step in enumerate(steps) for k in step.uses}
    crossing, alive = [], 0
    ends: dict[int, int] = {}
    for place, step in enumerate(steps):
        alive -= ends.pop(place, 0)
        for k in step.defs:
            end = last_use.get(k, place)
            if end > place:
                alive += 1
                ends[end] = ends.get(end, 0) + 1
        crossing.append(alive)
    chunks: list[list[Step]] = []
    first = 0
    while first < len(steps):
        best: int | None = None
        weight, place = 0, first
        while place < len(steps) and weight + steps[place].weight <= CHUNK[1]:
            weight += steps[place].weight
            if weight >= CHUNK[0] and (best is None or crossing[place] <= crossing[best]):
                best = place
            place += 1
        if place == len(steps) or best is None:
            best = max(place - 1, first)
        chunks.append(steps[first : best + 1])
        first = best + 1
    return chunks


def _place(
    graph: Graph, chunks: list[Chunk]
) -> tuple[dict[int, int], dict[int, list[int]], dict[int, tuple[int, Full | Sparse]], int]:
    """Slots for values that cross chunks, each used again once its value has been read for the last time."""
    born = {k: c for c, chunk in enumerate(chunks) for step in chunk.steps for k in step.defs}
    dies: dict[int, int] = {}
    blocks: list[tuple[int, int]] = []  # (chunk, node)
    area_born: dict[int, int] = {}
    for c, chunk in enumerate(chunks):
        for step in chunk.steps:
            if step.kind == "block":
                blocks.append((c, step.what))
                area_born[step.what] = min((born[k] for k in step.uses if graph.op[k] != "part"), default=c)
            for k in step.uses:
                if step.kind != "block" or graph.op[k] == "part":  # other arguments of a block go straight to its area
                    dies[k] = c
    area_dies = {block: max((dies.get(k, c) for k in chunks[c].steps[0].defs), default=c) for c, block in blocks}
    in_area = {k: block for c, block in blocks for k in chunks[c].steps[0].defs}
    slots: dict[int, int] = {}
    feeds: dict[int, list[int]] = {}
    areas: dict[int, tuple[int, Full | Sparse]] = {}
    free = _Free()
    starting: dict[int, list[int]] = {}
    for block, c in area_born.items():
        starting.setdefault(c, []).append(block)
    ending: dict[int, list[tuple[int, int]]] = {}
    for c, chunk in enumerate(chunks):
        for first, count in ending.pop(c, ()):
            free.give(first, count)
        for block in starting.get(c, ()):
            lies = layout(graph, block)
            areas[block] = first, _ = free.take(lies.size), lies
            ending.setdefault(area_dies[block] + 1, []).append((first, lies.size))
            for index, k in enumerate(graph.args[block]):
                if graph.op[k] not in ("const", "part"):
                    slot = lies.argument_slot(index)
                    assert slot is not None
                    feeds.setdefault(k, []).append(first + slot)
        for step in chunk.steps:
            if step.kind == "write":  # its loop reads slots only, so constants need some, too
                for k in graph.outputs[step.what[0]]:
                    if graph.op[k] == "const" and k not in slots:
                        slots[k] = chunk.keep[k] = free.take(1)
            for k in step.defs:
                if k in in_area:
                    first, lies = areas[in_area[k]]
                    slots[k] = first + lies.part_slot(graph.value[k])
                elif dies.get(k, c) > c:
                    slots[k] = free.take(1)
                    chunk.keep[k] = slots[k]
                    ending.setdefault(dies[k] + 1, []).append((slots[k], 1))
    return slots, feeds, areas, free.top


class _Free:
    """Slots not in use: single ones last in, first out; runs from the top."""

    def __init__(self) -> None:
        self.top = 0
        self.single: list[int] = []
        self.runs: list[tuple[int, int]] = []

    def take(self, count: int) -> int:
        if count == 1:
            if self.single:
                return self.single.pop()
        else:
            for place, (first, length) in enumerate(self.runs):
                if length >= count:
                    self.runs.pop(place)
                    if length > count:
                        self.runs.append((first + count, length - count))
                    return first
        first = self.top
        self.top += count
        return first

    def give(self, first: int, count: int) -> None:
        if count == 1:
            self.single.append(first)
        else:
            self.runs.append((first, count))
