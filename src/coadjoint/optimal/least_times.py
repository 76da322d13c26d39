"""The least duration: no joint goes from end to end faster than its own limits of velocity and acceleration let it."""

from __future__ import annotations

import numpy as np

from .rows import Coordinates
from .transcription import Transcription


def slowest_joint(problem: Transcription, c: np.ndarray) -> tuple[float, str]:
    """The seconds that the slowest joint needs alone between the ends of control points c (size, n), and its name.

    From rest to rest over a distance d under v and a these are d / v + v / a, or 2 √(d / a) where v is not reached. Zero where the end of
    the motion is not given.
    """
    if problem.free.stop == problem.spline.size:
        return 0.0, ""
    way = np.abs(c[-1] - c[0])
    rests = (
        problem.free == slice(2, problem.spline.size - 2)
        and np.array_equal(c[:2], c[[0, 0]])
        and np.array_equal(c[-2:], c[[-1, -1]])
    )
    v, a = np.full(way.shape, np.inf), np.full(way.shape, np.inf)
    names: tuple[str, ...] = ("",) * len(way)
    for rows in problem.limits:
        if isinstance(rows, Coordinates) and rows.order in (1, 2):
            fastest, names = np.maximum(rows.upper, -rows.lower), rows.names
            v, a = (np.minimum(v, fastest), a) if rows.order == 1 else (v, np.minimum(a, fastest))
    if not rests:
        a[:] = np.inf
    with np.errstate(invalid="ignore"):  # inf / inf where nothing limits a joint
        need = np.where(v * v < a * way, way / v + v / a, np.maximum(2.0 * np.sqrt(way / a), way / v))
    need = np.nan_to_num(need, nan=0.0)
    k = int(need.argmax())
    return float(need[k]), names[k]
