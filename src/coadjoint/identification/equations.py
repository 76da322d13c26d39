"""The equations of a fit as normal matrices: per joint and per held-back block, of all columns that a model may use.

Every joint has the columns of the base parameters, their forces under a gravity along two horizontal directions (for a base that is mounted
askew), and its own terms of friction. A model is a choice of columns; fitting and judging it on held-back blocks then needs no rows again.
Memory does not grow with the length of a log.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..dynamics import regressor
from ..memo import per_robot
from ..robot.robot import Robot
from .base_parameters import BaseParameters, base_parameters
from .friction import TERMS, WIDTHS, term
from .preparation import Prepared

ROWS = 4096
"""Rows whose regressors are in memory at once."""
SMOOTH = frozenset({"offset", "viscous", "armature"})
"""Terms without a width."""


def local_columns() -> tuple[tuple[str, int], ...]:
    """Terms of friction with the number of their width, in the order of the columns."""
    return tuple((name, k) for name in TERMS for k in range(1 if name in SMOOTH else len(WIDTHS)))


LOCAL = local_columns()


@dataclass
class Structure:
    """What the columns mean: base parameters of a robot whose gravity may have any direction if `tilt`."""

    robot: Robot
    base: BaseParameters
    horizontal: np.ndarray
    """(2, 3): directions across gravity, or (0, 3)."""
    tilted: tuple[Robot, ...]
    """The robot under a gravity along each of them."""
    widths: np.ndarray
    """(len(WIDTHS), nv)."""

    @property
    def blocks(self) -> int:
        return 1 + len(self.horizontal)

    @property
    def rank(self) -> int:
        return self.base.rank

    @property
    def size(self) -> int:
        """Columns of each joint."""
        return self.blocks * self.rank + len(LOCAL)


def structure(robot: Robot, v: np.ndarray, tilt: bool) -> Structure:
    """The structure of a robot's equations; speeds v (N, nv) set the widths of dry friction."""
    base, horizontal, tilted = _gravities(robot, tilt)
    speed = np.sqrt(np.mean(v * v, axis=0))
    speed = np.where(speed > 0, speed, 1.0)
    return Structure(robot, base, horizontal, tilted, np.outer(WIDTHS, speed))


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
    """The equations in the base parameters of a structure without tilt, of which those with tilt know: Y = Y[pivots] @ matrix."""
    old = eq.structure
    wide = np.zeros((old.size, s.size))
    wide[: old.rank, : s.rank] = old.base.matrix[:, list(s.base.pivots)]
    wide[old.blocks * old.rank :, s.rank :] = np.eye(len(LOCAL))
    return Equations(s, wide.T @ eq.G @ wide, eq.c @ wide, eq.yy, eq.count)


def columns(s: Structure, q: np.ndarray, v: np.ndarray, a: np.ndarray, inertial: np.ndarray) -> np.ndarray:
    """All columns (N, nv, P) at states; loads are those of the inertial parameters (10 n_links,)."""
    pivots = list(s.base.pivots)
    Y = np.asarray(regressor(s.robot, q, v, a))
    parts, zero = [Y[..., pivots]], np.zeros_like(v)
    parts += [np.asarray(regressor(tilted, q, zero, zero))[..., pivots] for tilted in s.tilted]
    load = Y @ inertial
    parts.append(np.stack([term(name, v, a, load, s.widths[k]) for name, k in LOCAL], axis=-1))
    return np.concatenate(parts, axis=-1)


def equations(s: Structure, data: Prepared, inertial: np.ndarray, folds: np.ndarray) -> Equations:
    """The normal matrices of rows, `folds` (N,) being the number of each row's block."""
    count, n, P = int(folds.max()) + 1, data.tau.shape[1], s.size
    G, c = np.zeros((count, n, P, P)), np.zeros((count, n, P))
    yy, rows = np.zeros((count, n)), np.zeros((count, n))
    for fold in range(count):
        which = np.flatnonzero(folds == fold)
        for start in range(0, len(which), ROWS):
            k = which[start : start + ROWS]
            X = columns(s, data.q[k], data.v[k], data.a[k], inertial)
            for j in range(n):
                use = data.used[k, j]
                Xj, y = X[use, j], data.tau[k[use], j]
                G[fold, j] += Xj.T @ Xj
                c[fold, j] += Xj.T @ y
                yy[fold, j] += y @ y
                rows[fold, j] += len(y)
    return Equations(s, G, c, yy, rows)
