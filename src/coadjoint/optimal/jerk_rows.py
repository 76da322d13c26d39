"""Limits of jerk along a path, and all other limits with them, as rows in X = σ̇² and its derivatives.

A robot that begins at rest with limited jerk has s ~ t³, so that ṡ² ~ s^(4/3) is not smooth in s. In σ with s = σ³ (10 - 15 σ + 6 σ²), or
σ³ where only the start is at rest, it is: X = σ̇² is positive from end to end, and q(s(σ)) rests by itself. With ' = d/dσ

    ṡ = s' √X,    s̈ = ½ s' X' + s'' X,    q⃛ = √X (½ q' X'' + 3/2 q'' X' + q''' X),

and every limit is h ≥ 0 for

    h = γ + c / √X + e √X - α · (X, X', X'')
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .limits import Limits, horner
from .paths import Curves, Splines

SLOWEST = 1e-9
"""dq/dσ below which a limit of power does not matter."""


@dataclass(frozen=True)
class RestMap:
    """s(σ) on 0 ≤ σ ≤ 1, which rests at the ends that do."""

    start: bool
    end: bool

    def __call__(self, sigma: np.ndarray) -> tuple[np.ndarray, ...]:
        """s and its three derivatives."""
        if self.start and self.end:
            back = 1.0 - sigma
            s = sigma**3 * (10.0 - 15.0 * sigma + 6.0 * sigma**2)
            return s, 30.0 * (sigma * back) ** 2, 60.0 * sigma * back * (back - sigma), 60.0 * (1.0 - 6.0 * sigma * back)
        if self.start:
            return sigma**3, 3.0 * sigma**2, 6.0 * sigma, 6.0 + 0.0 * sigma
        if self.end:
            back = 1.0 - sigma
            return 1.0 - back**3, 3.0 * back**2, -6.0 * back, 6.0 + 0.0 * sigma
        return sigma, 1.0 + 0.0 * sigma, 0.0 * sigma, 0.0 * sigma

    def inverse(self, s: np.ndarray) -> np.ndarray:
        low, high = np.zeros_like(s), np.ones_like(s)
        for _ in range(60):
            middle = (low + high) / 2
            over = self(middle)[0] > s
            low, high = np.where(over, low, middle), np.where(over, middle, high)
        return np.asarray(np.where(s >= 1.0, 1.0, np.where(s <= 0.0, 0.0, (low + high) / 2)))


class Rows:
    """The rows of one path, computed at places of cells."""

    def __init__(self, limits: Limits, jerk: np.ndarray, paths: Splines | Curves, path: int, ends: tuple[float, float]) -> None:
        """jerk (nv,): the limits; ends: the largest ṡ² at both ends, 0 at rest."""
        self.limits, self.jerk, self.paths, self.path, self.ends = limits, jerk, paths, path, ends
        self.unit = 1.0
        """The unit of X."""
        self.jerked = np.flatnonzero(np.isfinite(jerk))
        self.map = RestMap(ends[0] == 0.0, ends[1] == 0.0)
        names = [*limits.names, *(("jerk", limits.robot.v_names[j]) for j in self.jerked)]
        self.names = (("speed", ""), *(x for x in names for _ in range(2)))

    def breaks(self) -> np.ndarray:
        """The places σ at which the path has breaks or dry friction turns: no cell has one inside."""
        s = [self.paths.breaks(self.path)]
        dry = np.flatnonzero(np.asarray(self.limits.constants[1]) != 0)
        if len(dry):
            s += [self._turns(dry)]
        return self.map.inverse(np.unique(np.concatenate(s)))

    def _turns(self, rows: np.ndarray) -> np.ndarray:
        """Places where dq/ds of the joints of rows changes its sign."""
        R, breaks = self.limits.rows, self.paths.breaks(self.path)
        fine = np.unique(np.concatenate([np.linspace(0.0, 1.0, 2001), breaks]))
        low, high = fine[:-1], fine[1:]
        middle = (low + high) / 2
        way: Callable[[np.ndarray], np.ndarray] = lambda s: self._kernel(middle, s)[:, 3 * R + rows]
        first, last = way(low + 1e-12), way(high - 1e-12)
        found = []
        for k in range(len(rows)):
            some = np.flatnonzero(first[:, k] * last[:, k] < 0)
            a, b, m = low[some], high[some], middle[some]
            for _ in range(50):
                half = (a + b) / 2
                same = self._kernel(m, half)[:, 3 * R + rows[k]] * first[some, k] > 0
                a, b = np.where(same, half, a), np.where(same, b, half)
            found.append((a + b) / 2)
        return np.concatenate(found)

    def _kernel(self, middle: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Rows (n, 4 R + V) at places s (n,), on the pieces where `middle` (n,) lies."""
        c, d = self.paths.polynomials(np.full(len(s), self.path), middle, s[:, None])
        return np.asarray(self.limits.kernel(c.shape[-2])(c, d, self.limits.scale))[:, 0]

    def third(self, middle: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, ...]:
        """dq/ds, d²q/ds², d³q/ds³ (n, nv) at places."""
        which = np.full(len(s), self.path)
        if isinstance(self.paths, Curves):
            return tuple(self.paths.derivative(self.path, s, order) for order in (1, 2, 3))
        c, d = self.paths.polynomials(which, middle, s[:, None])
        c, d = c[:, 0], d[:, 0]
        order = c.shape[-2]
        slopes = [(order - 1 - k) * c[..., k, :] for k in range(order - 1)]
        return horner(slopes, d)

    def __call__(self, nodes: np.ndarray, sigma: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """α (N, P, rows, 3), γ, c and e (N, P, rows) at places σ (N, P) of cells."""
        s, s1, s2, s3 = (x.ravel() for x in self.map(sigma))
        middle = np.repeat(self.map((nodes[:-1] + nodes[1:]) / 2)[0], sigma.shape[1])
        limits, n, R = self.limits, len(self.limits.names), self.limits.rows
        found = self._kernel(middle, s)
        a, b, g, way = (found[:, k * R : k * R + n] for k in range(4))
        damping, dry, slow = limits.constants[:, :n]
        centre = np.repeat(np.sign(way.reshape(*sigma.shape, n).sum(axis=1)), sigma.shape[1], axis=0)
        rest, root = g + dry * centre, damping * way * s1[:, None]
        powered = np.broadcast_to(slow > 0, rest.shape)
        one, none = np.where(powered, 0.0, 1.0), np.zeros_like(rest)
        c = np.where(powered, 1.0 / np.maximum(np.abs(way) * s1[:, None], SLOWEST), 0.0)
        alpha = np.stack([a * s2[:, None] + b * (s1**2)[:, None], 0.5 * a * s1[:, None], none], axis=-1)
        q1, q2, q3 = (x[:, self.jerked] for x in self.third(middle, s))
        p1 = q1 * s1[:, None]
        p2 = q2 * (s1**2)[:, None] + q1 * s2[:, None]
        p3 = q3 * (s1**3)[:, None] + 3.0 * q2 * (s1 * s2)[:, None] + q1 * s3[:, None]
        most = self.jerk[self.jerked]
        beta = np.stack([p3 / most, 1.5 * p2 / most, 0.5 * p1 / most], axis=-1)
        flat = np.zeros_like(p1)
        speed = found[:, 4 * R :].max(axis=-1) * s1**2
        for end, place in ((0, 0.0), (1, 1.0)):
            if 0.0 < self.ends[end] < 1e29:
                at = sigma.ravel() == place
                speed[at] = np.maximum(speed[at], s1[at] ** 2 / self.ends[end])
        cap = np.zeros((len(s), 1, 3))
        cap[:, 0, 0] = speed
        alphas = np.concatenate([cap, _both(alpha, -alpha), _both(beta, -beta)], axis=1)
        gammas = np.concatenate([np.ones((len(s), 1)), _both(one - rest, one + rest), _both(flat, flat)], axis=1)
        inverse = np.concatenate([np.zeros((len(s), 1)), _both(c, c), _both(flat + 1.0, flat + 1.0)], axis=1)
        roots = np.concatenate([np.zeros((len(s), 1)), _both(-root, root), _both(flat, flat)], axis=1)
        shape = (*sigma.shape, -1)
        root_unit = np.sqrt(self.unit)
        return (
            self.unit * alphas.reshape(*shape, 3),
            gammas.reshape(shape),
            inverse.reshape(shape) / root_unit,
            root_unit * roots.reshape(shape),
        )


def _both(upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """Rows of upper and of lower bounds in turn."""
    stacked = np.stack([upper, lower], axis=2)
    return np.asarray(stacked.reshape(upper.shape[0], -1, *upper.shape[2:]))
