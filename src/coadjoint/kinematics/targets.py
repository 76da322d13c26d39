"""Targets of inverse kinematics: poses or positions of frames, in all rows or in chosen ones, and the robot's error with respect to
them.

A frame at (R, p) and its target (R*, p*) differ by six numbers in the axes of the target,

    w = log(Rᵀ R*)        the rotation vector from the one to the other, the same in the axes of both: R w = R* w
    d = R*ᵀ (p* - p)      in the axes of the target; in those of space where the target is a position

the logarithm of SO(3) × R³. Not that of SE(3), whose linear part mixes the two: here |w| and |d| are the angle and the distance
themselves, and the gradient of ½ |w|² + ½ |d|² is -Jᵀ (w, d) with the plain Jacobian J of the frame, at any distance. So the
nearest pose, where a target is out of reach, has a clear meaning: for a position it is the orthogonal projection.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array, mv, refuse_lazy, stack, to_numpy, transpose
from ..errors import CoadjointError, ShapeError
from ..lie import so3
from ..robot.robot import Robot
from .jacobian import assemble_columns, body_columns

ROWS = ("wx", "wy", "wz", "x", "y", "z")
"""The six rows: rotation about the axes of the target, and distance along them."""


@dataclass(frozen=True, eq=False, repr=False)
class Target:
    """The target of a frame: `to` is a pose (..., 4, 4), or a position (..., 3) with the orientation left free.

    rows: which of (wx, wy, wz, x, y, z) count, in the axes of the target, all if None; a pose with rows (3, 4, 5) and one with
    (0, 1, 3, 4, 5), which leaves the turn about its own z free, are examples. weight: of all rows or one for each, 1 being a metre and
    a radian; where all targets can be reached together weights do not matter (but far beyond 0.01 and 100 the search needs more
    starts), where not they say what is nearest.
    """

    frame: str
    to: Any
    rows: Sequence[int] | None = None
    weight: Any = 1.0

    def __repr__(self) -> str:
        to = f"array {np.shape(self.to)}" if hasattr(self.to, "shape") or _numbers(self.to) else repr(self.to)
        rows = "" if self.rows is None else f", rows={tuple(self.rows)!r}"
        return f"Target({self.frame!r}, {to}{rows}{'' if np.all(self.weight == 1.0) else f', weight={self.weight!r}'})"

    def checked(self, robot: Robot, values: bool = True) -> Target:
        """This target with arrays of numbers, its rows named and its weights one for each; an error says what is wrong.

        values: look also whether the poses are rigid motions.
        """
        robot.frame(self.frame)
        where = f"the target of frame {self.frame!r}"
        refuse_lazy(self.to, where)
        given = to_numpy(self.to, where)
        to = np.asarray(given, dtype=float) if _numbers(given) else None
        if to is None or (to.shape[-2:] != (4, 4) and to.shape[-1:] != (3,)):
            shape = "no array of numbers" if to is None else f"of shape {to.shape}"
            raise ShapeError(f"{where} is {shape}; expected a pose (..., 4, 4) or a position (..., 3).")
        whole = to.shape[-2:] == (4, 4)
        if values and not np.all(np.isfinite(to)):
            raise CoadjointError(f"{where} has entries that are not finite.")
        if values and whole:
            _check_poses(to, where)
        possible = range(6) if whole else range(3, 6)
        rows = tuple(possible) if self.rows is None else _whole(self.rows)
        if not rows or len(set(rows)) != len(rows) or any(row not in possible for row in rows):
            of = ", ".join(f"{k} {ROWS[k]}" for k in possible)
            raise CoadjointError(f"{where} has rows {self.rows!r}; choose each once from {of}.")
        weight = np.asarray(self.weight, dtype=float) if _numbers(self.weight) else np.zeros(0)
        if weight.shape not in ((), (len(rows),)) or not np.all(np.isfinite(weight) & (weight > 0)):
            raise CoadjointError(
                f"{where} has weight {self.weight!r}; expected a positive number, or {len(rows)}, one for each row."
            )
        order = np.argsort(rows)
        weights = tuple(float(x) for x in np.broadcast_to(weight, len(rows))[order])
        return Target(self.frame, to, tuple(sorted(rows)), weights)

    @property
    def size(self) -> int:
        """Numbers that give the target to a kernel: 12 of a pose, 3 of a position."""
        return 12 if self.to.shape[-2:] == (4, 4) else 3

    @property
    def key(self) -> tuple[Any, ...]:
        """Everything but the numbers of `to`: the key of the compiled kernel."""
        return self.frame, self.size, self.rows, self.weight

    def flat(self, batch: tuple[int, ...]) -> np.ndarray:
        """`to` as (N, size), for the batch axes of all targets."""
        core = self.to[..., :3, :] if self.size == 12 else self.to
        shape = core.shape[-2:] if self.size == 12 else core.shape[-1:]
        return np.broadcast_to(core, (*batch, *shape)).reshape(-1, self.size)


def core_of(to: Any) -> str:
    """The core axes of an array of targets: poses or positions."""
    return "4 4" if tuple(to.shape[-2:]) == (4, 4) else "3"


def _numbers(x: Any) -> bool:
    try:
        return np.asarray(x).dtype.kind in "fiu"
    except ValueError:  # lists of uneven length
        return False


def _whole(rows: Any) -> tuple[int, ...]:
    """The rows as integers; an empty list if they are anything else."""
    try:
        return tuple(operator.index(row) for row in rows)
    except TypeError:
        return ()


RIGID = 1e-6
"""The largest error of RᵀR = 1 and of the last row of a pose."""


def _check_poses(poses: np.ndarray, where: str) -> None:
    """Raise an error if one of the matrices is not a rigid motion; it says what is wrong with the first."""
    a = poses.reshape(-1, 16).T.copy().reshape(4, 4, -1)  # entry by entry: long rows are quicker than small matrices
    x, y, z = (a[:3, k] for k in range(3))

    def product(u: Any, v: Any) -> Array:
        return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]

    skew = abs(product(x, x) - 1.0)
    for u, v, one in ((y, y, 1.0), (z, z, 1.0), (x, y, 0.0), (y, z, 0.0), (z, x, 0.0)):
        skew = np.maximum(skew, abs(product(u, v) - one))
    det = product(x, (y[1] * z[2] - y[2] * z[1], y[2] * z[0] - y[0] * z[2], y[0] * z[1] - y[1] * z[0]))
    last = abs(a[3, 0]) + abs(a[3, 1]) + abs(a[3, 2]) + abs(a[3, 3] - 1.0)
    skew, det, last = (each.reshape(poses.shape[:-2]) for each in (skew, det, last))
    wrong = (skew > RIGID) | (last > RIGID) | (det < 0.0)
    if wrong.any():
        index = tuple(int(k) for k in np.argwhere(wrong)[0])
        which = f"{where}{list(index) if index else ''} is no rigid motion"
        if last[index] > RIGID:
            raise CoadjointError(f"{which}: its last row is {poses[index][3].tolist()}, expected 0, 0, 0, 1.")
        if skew[index] > RIGID:
            raise CoadjointError(
                f"{which}: RᵀR differs from 1 by {skew[index]:.2g}; make R orthogonal, as by its singular vectors."
            )
        raise CoadjointError(f"{which}: det R is -1, a reflection; exchange two of its columns or change the sign of one.")


def residual(robot: Robot, q: Array, goal: Array, targets: Sequence[Target]) -> tuple[Array, Array, Array]:
    """The weighted rows e (..., m) of all targets, J (..., m, nv) with ė = -J v, and what is left, (..., 2 targets).

    goal (..., Σ size) has the numbers of the targets. Left are |w|² and |d|² of the chosen rows, without weights, target by target.
    Three rows of one weight are rotated to the axes of the frame, and w is derived as if it were small: neither changes |e|² or Jᵀe,
    the gradient, and both save work.
    """
    e: list[Array] = []
    J: list[Array] = []
    left: list[Array] = []
    offset = 0
    for target in targets:
        T, columns = body_columns(robot, q, target.frame)
        A = assemble_columns(robot, columns, q)
        R, p = T[..., :3, :3], T[..., :3, 3]
        to = goal[..., offset : offset + target.size]
        offset += target.size
        if target.size == 12:
            to = to.reshape((*to.shape[:-1], 3, 4))
            turn = transpose(R) @ to[..., :3]  # from the axes of the frame to those of the target
            w, d = so3.log(turn), mv(transpose(R), to[..., 3] - p)
        else:
            turn, w, d = transpose(R), 0.0 * p, mv(transpose(R), to - p)
        chosen = list(zip(target.rows or (), target.weight, strict=True))
        for start, part in ((0, w), (3, d)):
            rows = [row - start for row, _ in chosen if start <= row < start + 3]
            weights = [weight for row, weight in chosen if start <= row < start + 3]
            B = A[..., start : start + 3, :]
            if len(rows) < 3 or len(set(weights)) > 1:
                part, B = (part, so3.dexp_inverse(part) @ B) if start == 0 else (mv(transpose(turn), part), transpose(turn) @ B)
            e += [weight * part[..., row] for row, weight in zip(rows, weights, strict=True)]
            J += [weight * B[..., row, :] for row, weight in zip(rows, weights, strict=True)]
            left.append(sum((part[..., row] ** 2 for row in rows), 0.0 * q[..., 0]))
    return stack(e), stack(J, axis=-2), stack(left)
