"""Spills: the values that are kept in memory within a chunk. Registers are few. A value that is not used for a while is better
reloaded from memory, where it may be already because a later chunk needs it. LLVM, which does not know that, would store it on the
stack once more.
"""

from __future__ import annotations

from .chunks import Chunk

REACH = 32
"""After this many steps without use, a value is reloaded from memory."""
SEGMENT = 32
"""Steps after which memory addresses are recomputed: otherwise LLVM would merge all loads of a value to one, kept in a register."""


def local_slots(chunk: Chunk, elsewhere: set[int]) -> tuple[dict[int, int], int]:
    """Spill slots in the chunk's own memory for values with long gaps between uses and no other slot; and the number of these
    slots.
    """
    last: dict[int, int] = {}
    waiting: set[int] = set()
    for now, step in enumerate(chunk.steps):
        for k in (*step.uses, *step.defs):
            if now - last.get(k, now) > REACH and k not in elsewhere:
                waiting.add(k)
            last[k] = now
    free: list[int] = []
    slots: dict[int, int] = {}
    ending: dict[int, list[int]] = {}
    count = 0
    for now, step in enumerate(chunk.steps):
        free += ending.pop(now, ())
        for k in step.defs:
            if k in waiting:
                if not free:
                    free.append(count)
                    count += 1
                slots[k] = free.pop()
                ending.setdefault(last[k] + 1, []).append(slots[k])
    return slots, count
