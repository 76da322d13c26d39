"""Arrays indexed by the freedoms of a tree, assembled block by block."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Array, concat, transpose


def rows(*parts: Array) -> Array:
    """Matrices (..., m, n) one below the other."""
    return transpose(concat([transpose(x) for x in parts]))


class Blocks:
    """An array (..., *shape) assembled from blocks; a later block replaces an earlier one, and entries outside all blocks are
    zero.
    """

    def __init__(self, shape: tuple[int, ...], zero: Array) -> None:
        self.parts = [zero]
        self.place = np.zeros(shape, dtype=int)
        self.size = 1

    def put(self, places: Sequence[Sequence[int]], block: Array) -> None:
        """Insert a block (..., *sizes) at these indices of the array's axes."""
        sizes = tuple(len(p) for p in places)
        count = int(np.prod(sizes))
        self.place[np.ix_(*places)] = np.arange(self.size, self.size + count).reshape(sizes)
        self.parts.append(block.reshape((*block.shape[: block.ndim - len(sizes)], count)))
        self.size += count

    def array(self) -> Array:
        flat = concat(self.parts)
        return flat[..., self.place.reshape(-1)].reshape((*flat.shape[:-1], *self.place.shape))


def chosen(condition: np.ndarray, x: Array, y: Array) -> Array:
    """x (..., *shape) where the constant condition (*shape) holds, y elsewhere; in a trace, the entries not selected are never
    computed.
    """
    shape, count = condition.shape, condition.size
    flat = concat([z.reshape((*z.shape[: z.ndim - len(shape)], count)) for z in (x, y)])
    place = np.arange(count) + np.where(condition.reshape(-1), 0, count)
    return flat[..., place].reshape((*flat.shape[:-1], *shape))
