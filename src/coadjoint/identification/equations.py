"""The equations of a fit as normal matrices: per joint and per held-back block, of all columns that a model may use.

Every joint has the columns of the base parameters, their forces under a gravity along two horizontal directions (for a base that is mounted
askew), and its own terms of friction. A model is a choice of columns; fitting and judging it on held-back blocks then needs no rows again.
Memory does not grow with the length of a log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from ..dynamics import regressor
from ..memo import per_robot
from ..robot.robot import Robot
from .base_parameters import BaseParameters, base_parameters
from .friction import DRY, TERMS, Shape
from .preparation import Prepared

ROWS = 4096
"""Rows whose regressors are in memory at once."""
KEPT = 2 * 10**7
"""Numbers of regressors that are kept for the next use."""
LOCAL = TERMS[:-1]
"""Terms that have columns of their own: a gain's is a combination of the base parameters'."""
GAIN = len(LOCAL)
"""The number of the term `gain`."""
STRIBECK = LOCAL.index("stribeck")
"""The number of Stribeck's term."""


@dataclass
class Structure:
    """The meaning of the columns: base parameters of a robot whose gravity may have any direction if `tilt`."""

    robot: Robot
    base: BaseParameters
    horizontal: np.ndarray
    """(2, 3): directions across gravity, or (0, 3)."""
    tilted: tuple[Robot, ...]
    """The robot under a gravity along each of them."""
    shape: Shape
    """The dependence of friction on speed."""

    @property
    def blocks(self) -> int:
        return 1 + len(self.horizontal)

    @property
    def rank(self) -> int:
        return self.base.rank

    @property
    def size(self) -> int:
        """Columns of each joint: base parameters under each gravity, friction, and forces that are known."""
        return self.blocks * self.rank + len(LOCAL) + 1


def structure(robot: Robot, shape: Shape, tilt: bool) -> Structure:
    """The structure of a robot's equations."""
    return Structure(robot, *_gravities(robot, tilt), shape)


@per_robot
def _gravities(robot: Robot, tilt: bool) -> tuple[BaseParameters, np.ndarray, tuple[Robot, ...]]:
    """Base parameters, directions across gravity as long as it is, and the robot under each."""
    gravity = np.asarray(robot.gravity, dtype=float)
    if not (tilt and gravity.any()):
        return base_parameters(robot), np.zeros((0, 3)), ()
    _, _, rows = np.linalg.svd(gravity[None])
    horizontal = rows[1:] * np.linalg.norm(gravity)
    turned = robot.with_gravity(gravity + 0.31 * horizontal[0] + 0.23 * horizontal[1])
    return base_parameters(turned), horizontal, tuple(robot.with_gravity(x) for x in horizontal)


@dataclass
class Rows:
    """The regressors of a log's rows, a few at once; those of a log that is not long are computed once."""

    structure: Structure
    data: Prepared
    kept: dict[int, np.ndarray] = field(default_factory=dict)

    def __iter__(self) -> Iterator[slice]:
        return (slice(start, min(start + ROWS, len(self.data))) for start in range(0, len(self.data), ROWS))

    def base(self, k: slice) -> np.ndarray:
        """(n, nv, blocks rank): of the base parameters under each gravity."""
        if k.start in self.kept:
            return self.kept[k.start]
        s, q, v, a = self.structure, self.data.q[k], self.data.v[k], self.data.a[k]
        pivots, zero = list(s.base.pivots), np.zeros_like(v)
        states = [(s.robot, v, a), *((tilted, zero, zero) for tilted in s.tilted)]
        Y = np.concatenate([np.asarray(regressor(robot, q, v, a))[..., pivots] for robot, v, a in states], axis=-1)
        if self.data.tau.size * Y.shape[-1] <= KEPT:
            self.kept[k.start] = Y
        return Y

    def columns(self, k: slice, beta: np.ndarray) -> np.ndarray:
        """All columns (n, nv, P); loads are those of the base parameters."""
        s, data = self.structure, self.data
        Y = self.base(k)
        q, v, a = data.q[k], data.v[k], data.a[k]
        load = Y[..., : s.rank] @ beta + data.known[k]
        sign = s.shape.direction(v, a)
        own = [s.shape.column(name, q, v, a, load, sign if name in DRY else None) for name in LOCAL]
        return np.concatenate([Y, np.stack([*own, data.known[k]], axis=-1)], axis=-1)

    def level(self, s: Structure) -> Rows:
        """The rows of a structure without tilt, of which those with tilt know: Y = Y[pivots] @ matrix."""
        old = self.structure
        wide = old.base.matrix[:, list(s.base.pivots)]
        return Rows(s, self.data, {start: Y[..., : old.rank] @ wide for start, Y in self.kept.items()})


@dataclass
class Equations:
    """Normal matrices (blocks, nv, P, P), right sides (blocks, nv, P), Σ τ² and counts (blocks, nv)."""

    structure: Structure
    G: np.ndarray
    c: np.ndarray
    yy: np.ndarray
    count: np.ndarray

    def total(self, without: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The sums over all blocks, or over all but one."""
        keep = [k for k in range(len(self.G)) if k != without]
        return self.G[keep].sum(0), self.c[keep].sum(0), self.yy[keep].sum(0), self.count[keep].sum(0)


def level(eq: Equations, s: Structure) -> Equations:
    """The equations in the base parameters of a structure without tilt."""
    old = eq.structure
    wide = np.zeros((old.size, s.size))
    wide[: old.rank, : s.rank] = old.base.matrix[:, list(s.base.pivots)]
    wide[old.blocks * old.rank :, s.rank :] = np.eye(len(LOCAL) + 1)
    return Equations(s, wide.T @ eq.G @ wide, eq.c @ wide, eq.yy, eq.count)


def equations(rows: Rows, beta: np.ndarray, folds: np.ndarray) -> Equations:
    """The normal matrices of rows, `folds` (N,) being the number of each row's block; known forces are taken off the measured ones."""
    s, data = rows.structure, rows.data
    count, n, P = int(folds.max()) + 1, data.tau.shape[1], s.size
    G, c = np.zeros((count, n, P, P)), np.zeros((count, n, P))
    yy, number = np.zeros((count, n)), np.zeros((count, n))
    for k in rows:
        used = data.used[k].T
        X = np.swapaxes(rows.columns(k, beta), 0, 1) * used[..., None]
        y = (data.tau[k] - data.known[k]).T * used
        for fold in np.unique(folds[k]):
            own = folds[k] == fold
            Z, t = np.ascontiguousarray(X[:, own]), y[:, own]
            G[fold] += np.swapaxes(Z, 1, 2) @ Z
            c[fold] += (t[:, None] @ Z)[:, 0]
            yy[fold] += (t * t).sum(1)
            number[fold] += used[:, own].sum(1)
    return Equations(s, G, c, yy, number)


def with_speeds(
    eq: Equations, rows: Rows, beta: np.ndarray, folds: np.ndarray, joints: list[int], speeds: list[np.ndarray]
) -> list[Equations]:
    """The equations for each of these speeds (nv,) of Stribeck's term, of which that column of some joints is made anew."""
    s, data = eq.structure, rows.data
    place, shape = s.blocks * s.rank + STRIBECK, s.shape
    made = [replace(eq, G=eq.G.copy(), c=eq.c.copy()) for _ in speeds]
    for other in made:
        other.G[:, joints, place], other.G[:, joints, :, place], other.c[:, joints, place] = 0.0, 0.0, 0.0
    for k in rows:
        X, v = rows.columns(k, beta), data.v[k]
        sign, y = shape.direction(v, data.a[k]), data.tau[k] - data.known[k]
        for j in joints:
            for fold in np.unique(folds[k]):
                own = (folds[k] == fold) & data.used[k, j]
                Z = X[own, j]
                for other, speed in zip(made, speeds, strict=True):
                    x = sign[own, j] * np.exp(-np.abs(v[own, j]) / speed[j])
                    cross = x @ Z
                    cross[place] = x @ x
                    other.G[fold, j, place] += cross
                    other.G[fold, j, :, place] += cross
                    other.G[fold, j, place, place] -= cross[place]
                    other.c[fold, j, place] += x @ y[own, j]
    return made
