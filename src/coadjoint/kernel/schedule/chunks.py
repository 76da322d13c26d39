"""Long lists of steps are cut into chunks, each a function that loops over some blocks of lanes.

So compile time grows linearly, and code and values stay in the nearest caches.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .steps import Step

SINGLE = 2000
"""A graph of at most this many instructions is one chunk."""
CHUNK = (700, 1100)
"""The shortest and the longest chunk of longer graphs; cuts are where the fewest values are live."""


@dataclass
class Chunk:
    """Consecutive steps that make one function."""

    steps: list[Step]
    keep: dict[int, int] = field(default_factory=dict)
    """Slots of the values that are computed here and read in later chunks."""


def cut(steps: list[Step]) -> list[list[Step]]:
    """The chunks of the steps. Dense blocks and writes of wide outputs are chunks of their own."""
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
    """Cut where the fewest values are live, every CHUNK[0] to CHUNK[1] instructions."""
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
