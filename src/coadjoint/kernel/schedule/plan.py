"""From a graph to a plan: the order of computation, the chunks, and the slots of values that live across chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..emit.sparse_solve import Sparse
from ..graph import Graph
from ..walk import needed
from .chunks import SINGLE, Chunk, cut
from .dense_layout import Full
from .fuse import fuse
from .slots import place
from .steps import load_steps, node_steps, store_steps


@dataclass
class Plan:
    """Everything the emitter needs."""

    chunks: list[Chunk]
    fused: dict[int, int]
    """Sums and differences that absorb a product: add or sub -> mul."""
    slots: dict[int, int]
    feeds: dict[int, list[int]]
    """Slots inside the areas of dense blocks to which a value is also written when it is computed."""
    areas: dict[int, tuple[int, Full | Sparse]]
    """The first slot of the area of each dense block, and its layout."""
    n_slots: int
    weight: int


def plan(graph: Graph, fma: bool, widths: Sequence[int]) -> Plan:
    """The plan of a graph. `widths`: how many columns may be loaded or stored together."""
    live = needed(graph.args, (k for output in graph.outputs for k in output))
    fused = fuse(graph, live) if fma else {}
    steps = node_steps(graph, live, fused)
    steps = load_steps(graph, steps, widths)
    steps = store_steps(graph, steps, widths)
    chunks = [Chunk(part) for part in cut(steps)]
    slots = place(graph, chunks)
    return Plan(chunks, fused, slots.of, slots.feeds, slots.areas, slots.count, sum(s.weight for s in steps))


def plan_alone(graph: Graph, scheme: Plan) -> Plan | None:
    """The plan for a single state: one chunk that loads and stores number by number; None if it would be too long."""
    steps = [step for chunk in scheme.chunks for step in chunk.steps if step.kind in ("node", "trig", "block")]
    if scheme.weight > SINGLE or any(step.kind == "block" for step in steps):
        return None
    chunk = Chunk(store_steps(graph, load_steps(graph, steps, (1,)), (1,), wide=None))
    return Plan([chunk], scheme.fused, {}, {}, {}, 0, scheme.weight)
