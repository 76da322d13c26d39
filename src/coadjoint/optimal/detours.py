"""Ways around obstacles, for motions to begin with: two trees of configurations that grow towards each other.

Kuffner & LaValle (2000), RRT-Connect; then corners are cut. The search is seeded: the same problem has the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .certificate import reaches
from .clearance import Clearances
from .rows import Coordinates, Rows
from .splines import Spline

TRIES = 3
"""Ways of which the shortest is taken."""
SAMPLES = 2000
"""Random configurations until a search is given up."""
SHORTCUTS = 120
MARGIN = 0.03
"""Metres that are kept beyond the clearance that is asked for, where both ends have so much."""
PART = 0.25
"""Places along an edge are at most this part of the thinnest pair apart."""


FINEST = 4
"""The factor by which a spline has more nodes where capsules are thin."""


def around(
    rows: Clearances,
    limits: Sequence[Rows],
    spline: Spline,
    start: np.ndarray,
    end: np.ndarray,
    batch: tuple[int, ...],
    report: Callable[[int, float], None] | None = None,
) -> tuple[np.ndarray | None, np.ndarray, bool]:
    """Configurations (*batch, K, n) of motions to begin with, how many times as far as straight ones they go (B,), and whether Ctrl-C
    ended the search for them.

    None if nothing is in the way of straight ones. Where no way is found the motion is straight, and the search has to do without.
    """
    lower, upper = np.minimum(start, end).min(0) - np.pi, np.maximum(start, end).max(0) + np.pi
    for one in limits:
        if isinstance(one, Coordinates) and one.order == 0:
            lower, upper = (np.where(np.isfinite(x), x, y) for x, y in ((one.lower, lower), (one.upper, upper)))
    detours = Detours(rows, lower, upper, report)
    s = np.linspace(0.0, 1.0, 4 * spline.size)
    longer, interrupted = np.ones(len(start)), False
    found = np.array([detours.timed(np.array([a, b]), s) for a, b in zip(start, end, strict=True)])
    try:
        for k, (a, b) in enumerate(zip(start, end, strict=True)):
            if not detours.clear(detours.between(a, b), 0.0).all() and (way := detours.way(a, b)) is not None:
                longer[k], found[k] = detours.long(way) / max(detours.length(a, b), 1e-9), detours.timed(way, s)
    except KeyboardInterrupt:
        interrupted = True
    ways = found.reshape(*batch, *found.shape[1:]) if (longer != 1.0).any() else None
    return ways, np.clip(longer, 1.0, 10.0), interrupted


def fine_enough(rows: Clearances, spline: Spline, control: np.ndarray) -> Spline:
    """A spline with enough nodes that no capsule of these motions (B, size, n) jumps over another between two nodes."""
    q = np.einsum("ks,bsn->bkn", spline.basis[:, 0], control)
    ends = rows.gaps(q.reshape(-1, q.shape[-1])).ends
    steps = np.linalg.norm(np.diff(ends.reshape(*q.shape[:2], -1, 3), axis=1), axis=-1).max(initial=0.0)
    times = int(np.clip(np.ceil(2.0 * steps / rows.bodies.thickness.min()), 1, FINEST))
    return spline if times == 1 else Spline(spline.spans, spline.degree, times * spline.per_span, spline.smooth)


class Detours:
    """Ways of one robot between capsules, within bounds (n,) of its coordinates."""

    def __init__(
        self, rows: Clearances, lower: np.ndarray, upper: np.ndarray, report: Callable[[int, float], None] | None = None
    ) -> None:
        self.rows, self.lower, self.upper, self.report = rows, lower, upper, report
        self.reach = reaches(rows, np.maximum(np.abs(lower), np.abs(upper))) + 1e-9
        self.step = PART * float(rows.bodies.thickness.min())

    def clear(self, q: np.ndarray, margin: float) -> np.ndarray:
        """True for configurations q (N, n) that are clear of everything by more than the required margin."""
        return np.asarray((self.rows.gaps(q).value >= self.rows.lower + margin).all(1))

    def between(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Configurations (N, n) from a, left out, to b."""
        count = max(1, int(np.ceil(self.length(a, b) / self.step)))
        return np.asarray(a + (np.arange(1, count + 1) / count)[:, None] * (b - a))

    def length(self, a: np.ndarray, b: np.ndarray) -> float:
        """A bound of how far any point moves from a to b."""
        return float(np.abs(b - a) @ self.reach)

    def way(self, start: np.ndarray, goal: np.ndarray) -> np.ndarray | None:
        """The shortest way (K, n) that is found, straight between its points; None if there is none."""
        room = float((self.rows.gaps(np.array([start, goal])).value - self.rows.lower).min())
        for margin in (min(MARGIN, 0.5 * room), 0.0):
            found = []
            for seed in range(TRIES):
                way = self._connected(start, goal, margin, np.random.default_rng(seed))
                if way is None:
                    break
                found.append(self._shortened(way, margin))
            if found:
                return min(found, key=self.long)
        return None

    def long(self, way: np.ndarray) -> float:
        """A bound of how far any point moves along a way."""
        return float((np.abs(np.diff(way, axis=0)) @ self.reach).sum())

    def _connected(self, start: np.ndarray, goal: np.ndarray, margin: float, rng: np.random.Generator) -> np.ndarray | None:
        trees = [_Tree(start), _Tree(goal)]
        farthest = 0.2 * self.length(self.lower, self.upper)
        for k in range(SAMPLES):
            if self.report is not None:
                self.report(0, np.inf)
            one, other = trees if k % 2 == 0 else trees[::-1]
            sample = rng.uniform(self.lower, self.upper) if k else (goal if one is trees[0] else start)
            at = one.nearest(sample, self.reach)
            part = min(1.0, farthest / max(self.length(one.points[at], sample), 1e-300))
            new = self._extend(one, at, one.points[at] + part * (sample - one.points[at]), margin)
            if new is None:
                continue
            target = one.points[new]
            met = self._extend(other, other.nearest(target, self.reach), target, margin)
            if met is not None and np.array_equal(other.points[met], target):
                first, second = (one, new), (other, met)
                ahead, back = (first, second) if one is trees[0] else (second, first)
                return np.concatenate([ahead[0].way(ahead[1])[::-1], back[0].way(back[1])[1:]])
        return None

    def _extend(self, tree: _Tree, at: int, to: np.ndarray, margin: float) -> int | None:
        """Grow towards a configuration as far as it is clear; the number of the new point, None if there is none."""
        places = self.between(tree.points[at], to)
        clear = self.clear(places, margin)
        count = len(places) if clear.all() else int(np.argmin(clear))
        return tree.add(places[count - 1] if count < len(places) else to, at) if count else None

    def _shortened(self, way: np.ndarray, margin: float) -> np.ndarray:
        """The way with corners cut: straight lines between random places on it, where they are clear."""
        rng = np.random.default_rng(0)
        for _ in range(SHORTCUTS):
            if len(way) < 3:
                break
            (i, x), (j, y) = sorted(zip(rng.integers(0, len(way) - 1, 2), rng.uniform(size=2), strict=True))
            if i == j:
                continue
            a, b = (way[k] + part * (way[k + 1] - way[k]) for k, part in ((i, x), (j, y)))
            if self.clear(self.between(a, b), margin).all():
                way = np.concatenate([way[: i + 1], [a, b], way[j + 1 :]])
        return way

    def timed(self, way: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Configurations (N, n) at parts s (N,) of the duration: at rest at both ends, a motion of least jerk along the way."""
        steps = np.abs(np.diff(way, axis=0)) @ self.reach
        at = np.concatenate([[0.0], np.cumsum(steps)])
        along = at[-1] * s**3 * (10 - 15 * s + 6 * s**2)
        return np.stack([np.interp(along, at, x) for x in way.T], axis=-1)


class _Tree:
    def __init__(self, root: np.ndarray) -> None:
        self.all, self.count, self.parents = np.zeros((2 * SAMPLES + 1, len(root))), 1, [-1]
        self.all[0] = root

    @property
    def points(self) -> np.ndarray:
        return self.all[: self.count]

    def nearest(self, q: np.ndarray, reach: np.ndarray) -> int:
        return int((np.abs(self.points - q) @ reach).argmin())

    def add(self, q: np.ndarray, parent: int) -> int:
        self.all[self.count] = q
        self.count += 1
        self.parents.append(parent)
        return self.count - 1

    def way(self, k: int) -> np.ndarray:
        """From a point to the root."""
        found = []
        while k >= 0:
            found.append(self.all[k])
            k = self.parents[k]
        return np.array(found)
