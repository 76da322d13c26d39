"""Memory for large results, used again: fresh pages from the system cost several times the computing.

A block goes back to the pool when the last array on it, view or not, is gone. Arrays from the pool are ordinary ones whose `base` is the
owner of their block. There is no lock: blocks move in and out of the pool by single operations that are atomic, so any thread may let an
array go at any time, also in the middle of an allocation.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

from ...arguments import Shape

SMALL = 1 << 18
"""Bytes; smaller results are left to the allocator, which keeps memory of that size."""
LIMIT = 1 << 28
"""Bytes of all blocks that wait in the pool; beyond it those that wait for longest are freed."""
ALIGNMENT = 64
SLACK = 1.25
"""The largest ratio of a block's size to the size needed."""

Block = tuple[int, int, np.ndarray]
"""Bytes, the first address that is aligned, and the memory itself."""

_free: deque[Block] = deque()


class _Owner:
    """The owner of a block while arrays are on it."""

    __slots__ = ("__array_interface__", "_block")

    def __init__(self, block: Block, shape: Shape, typestr: str) -> None:
        self._block = block
        self.__array_interface__ = {"shape": shape, "typestr": typestr, "data": (block[1], False), "version": 3}

    def __del__(self) -> None:
        if _free is not None:  # as at the end of the interpreter
            _free.append(self._block)
            _trim()


def empty(shape: Shape, dtype: np.dtype[Any]) -> np.ndarray:
    """A new array whose entries are not set."""
    size = math.prod(shape) * dtype.itemsize
    if not SMALL <= size <= LIMIT // 2:
        return np.empty(shape, dtype)
    return np.asarray(_Owner(_taken(size) or _new(size), shape, dtype.str))


def _new(size: int) -> Block:
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = memory.ctypes.data
    return size, start + -start % ALIGNMENT, memory


def _taken(size: int) -> Block | None:
    """A block of about that size out of the pool."""
    for _ in range(len(_free)):
        try:
            block = _free.popleft()
        except IndexError:  # another thread took the last one
            return None
        if size <= block[0] <= SLACK * size:
            return block
        _free.append(block)
    return None


def _trim() -> None:
    try:
        while sum(block[0] for block in tuple(_free)) > LIMIT:
            _free.popleft()
    except (IndexError, RuntimeError):  # another thread was here: it looks after the limit
        pass


def clear() -> None:
    """Free all blocks that wait."""
    _free.clear()
