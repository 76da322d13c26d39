"""Slots of scratch memory for values that live across chunks; a slot is reused after the last read of its value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..emit.sparse_solve import Sparse
from ..graph import Graph
from .chunks import Chunk
from .dense_layout import Full, layout


@dataclass
class Slots:
    """The assignment of slots."""

    of: dict[int, int] = field(default_factory=dict)
    """The slot of each value that has one."""
    feeds: dict[int, list[int]] = field(default_factory=dict)
    """Slots inside the areas of dense blocks to which a value is also written when it is computed."""
    areas: dict[int, tuple[int, Full | Sparse]] = field(default_factory=dict)
    """The first slot of the area of each dense block, and its layout."""
    count: int = 0


def place(graph: Graph, chunks: Sequence[Chunk]) -> Slots:
    """Assign slots to all values, and record in each chunk which values it must store."""
    lives = _Lives(graph, chunks)
    slots, free = Slots(), _Free()
    ending: dict[int, list[tuple[int, int]]] = {}
    for c, chunk in enumerate(chunks):
        for first, count in ending.pop(c, ()):
            free.give(first, count)
        for block in lives.starting.get(c, ()):
            lies = layout(graph, block)
            first = free.take(lies.size)
            slots.areas[block] = first, lies
            ending.setdefault(lives.area_dies[block] + 1, []).append((first, lies.size))
            _feed(graph, block, first, lies, slots.feeds)
        for step in chunk.steps:
            if step.kind == "write":  # its loop reads slots only, so constants need some, too
                for k in graph.outputs[step.what[0]]:
                    if graph.op[k] == "const" and k not in slots.of:
                        slots.of[k] = chunk.keep[k] = free.take(1)
            for k in step.defs:
                if k in lives.in_area:
                    first, lies = slots.areas[lives.in_area[k]]
                    slots.of[k] = first + lies.part_slot(graph.value[k])
                elif lives.dies.get(k, c) > c:
                    slots.of[k] = chunk.keep[k] = free.take(1)
                    ending.setdefault(lives.dies[k] + 1, []).append((slots.of[k], 1))
    slots.count = free.top
    return slots


def _feed(graph: Graph, block: int, first: int, lies: Full | Sparse, feeds: dict[int, list[int]]) -> None:
    """Have the arguments of a block written to its area when they are computed."""
    for index, k in enumerate(graph.args[block]):
        if graph.op[k] not in ("const", "part"):
            slot = lies.argument_slot(index)
            assert slot is not None
            feeds.setdefault(k, []).append(first + slot)


class _Lives:
    """Live ranges, in chunks, of values and of the areas of blocks."""

    def __init__(self, graph: Graph, chunks: Sequence[Chunk]) -> None:
        born = {k: c for c, chunk in enumerate(chunks) for step in chunk.steps for k in step.defs}
        self.dies: dict[int, int] = {}
        self.starting: dict[int, list[int]] = {}
        """The blocks whose areas begin to be filled in each chunk."""
        self.in_area: dict[int, int] = {}
        """The block whose area holds a value: its parts."""
        made_in: dict[int, int] = {}
        for c, chunk in enumerate(chunks):
            for step in chunk.steps:
                if step.kind == "block":
                    made_in[step.what] = c
                    self.in_area.update(dict.fromkeys(step.defs, step.what))
                    begin = min((born[k] for k in step.uses if graph.op[k] != "part"), default=c)
                    self.starting.setdefault(begin, []).append(step.what)
                for k in step.uses:
                    if step.kind != "block" or graph.op[k] == "part":  # other arguments of a block go straight to its area
                        self.dies[k] = c
        self.area_dies = dict(made_in)
        for k, block in self.in_area.items():
            self.area_dies[block] = max(self.area_dies[block], self.dies.get(k, made_in[block]))


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
