"""Which values wait in memory inside a chunk.

There are few registers. A value that is not wanted for a while is better left in memory, where it may stand already because
a later chunk needs it, than kept: LLVM, which does not know that, would write it to the stack once more.
"""

from __future__ import annotations

from .chunks import Chunk

REACH = 32
"""After so many steps without use a value is read from memory again."""
SEGMENT = 32
"""Steps after which memory is addressed anew: LLVM would otherwise join all reads of a value to one, kept for all uses."""


def local_slots(chunk: Chunk, elsewhere: set[int]) -> tuple[dict[int, int], int]:
    """Places in the chunk's own memory for values that wait long between uses and have none elsewhere; how many places."""
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
