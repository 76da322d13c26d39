"""Joint paths q(s), s from 0 to 1, many at a time: piecewise polynomials and users' own functions.

A path is asked for q, dq/ds and d²q/ds² at the points of cells, none of which has a break of the path inside it; at a break the
values are those of the side where the cell lies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline, PPoly

from ..arguments import check_labels
from ..arrays import to_numpy
from ..errors import CoadjointError, ShapeError
from ..robot.robot import Robot
from ..traced import check_pickles
from ..words import short
from .limits import horner

KINK = 1e-9
"""Largest jump of dq/ds, beside its size, that is no kink."""


CHECKED, OFF = 67, 1e-3
"""Cells of a user's path on which its derivatives are checked, and by how much they may differ, beside the largest."""
FEW = 64
"""Waypoints up to which the spline through them is a matrix times their differences."""

_WHOLE = np.array([0.0, 1.0])


class Splines:
    """Piecewise polynomials: for every path its breaks (m + 1,) from 0 to 1; coefficients (pieces, degree + 1, nv) of all, highest
    power first.
    """

    def __init__(self, breaks: Sequence[np.ndarray], c: np.ndarray) -> None:
        self.all_breaks, self.c = list(breaks), np.ascontiguousarray(c)
        self.first = np.array([0, *accumulate(len(x) - 1 for x in breaks)])

    @cached_property
    def left(self) -> np.ndarray:
        """(pieces,): where each begins."""
        return np.concatenate([x[:-1] for x in self.all_breaks])

    @cached_property
    def _keys(self) -> np.ndarray:
        """The first key of each path, in the order of paths."""
        return np.asarray(self.left + 2.0 * np.repeat(np.arange(len(self)), self.first[1:] - self.first[:-1]))

    def __len__(self) -> int:
        return len(self.all_breaks)

    def breaks(self, k: int) -> np.ndarray:
        """The places of path k where a piece begins or ends, 0 and 1 among them."""
        return self.all_breaks[k]

    def at(self, which: np.ndarray, middle: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, dq/ds, d²q/ds² (C, p, nv) of paths `which` (C,) at s (C, p), on the piece where `middle` (C,) lies."""
        c, d = self.polynomials(which, middle, s)
        q, dq, ddq = horner([c[..., k, :] for k in range(c.shape[-2])], d)
        return q, dq, ddq

    def polynomials(self, which: np.ndarray, middle: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The splines as polynomials c (C, p or 1, degree + 1, nv), highest power first, to be taken at d (C, p, 1)."""
        piece = np.searchsorted(self._keys, middle + 2.0 * which, side="right") - 1
        return self.c[piece][:, None], (s - self.left[piece][:, None])[..., None]


class Curves:
    """Users' functions: path(s), path(s, 1), path(s, 2) are q and its derivatives (..., nv) at s (...)."""

    def __init__(self, functions: Sequence[Callable[..., Any]], nv: int) -> None:
        self.functions, self.nv = list(functions), nv

    def __reduce__(self) -> Any:
        for fn in self.functions:
            check_pickles(fn, "the path", ", or give scipy's CubicSpline")
        return Curves, (self.functions, self.nv)

    def __len__(self) -> int:
        return len(self.functions)

    def breaks(self, k: int) -> np.ndarray:
        return _WHOLE

    def at(self, which: np.ndarray, middle: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        found = np.empty((3, *s.shape, self.nv))
        for k in np.unique(which):
            mine = which == k
            for order in range(3):
                found[order, mine] = self._values(int(k), s[mine].ravel(), order).reshape(*s[mine].shape, self.nv)
        return found[0], found[1], found[2]

    def polynomials(self, which: np.ndarray, middle: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        q, dq, ddq = self.at(which, middle, s)
        return np.stack([ddq / 2, dq, q], axis=-2), np.zeros((*s.shape, 1))

    def derivative(self, k: int, s: np.ndarray, order: int) -> np.ndarray:
        """dⁿq/dsⁿ (n, nv) of path k at s (n,)."""
        return self._values(k, s, order)

    def _values(self, k: int, s: np.ndarray, order: int) -> np.ndarray:
        name = f"path(s, {order})" if order else "path(s)"
        try:
            found = self.functions[k](s, order) if order else self.functions[k](s)
        except TypeError as error:
            raise CoadjointError(
                f"{name} failed: {error}. A path is a function of s and of the order of the derivative, as scipy's CubicSpline: "
                "path(s), path(s, 1) and path(s, 2)."
            ) from None
        found = np.asarray(to_numpy(found, name), dtype=float)
        if found.shape != (len(s), self.nv):
            raise ShapeError(f"{name} has shape {found.shape} for s of shape {s.shape}; expected {(len(s), self.nv)}.")
        if not np.all(np.isfinite(found)):
            j = np.argwhere(~np.isfinite(found))[0]
            raise CoadjointError(f"{name} is {found[tuple(j)]} at s = {s[j[0]]:.6g}, coordinate {j[1]}; expected finite numbers.")
        return found


def as_paths(robot: Robot, path: Any) -> tuple[Splines | Curves, bool]:
    """The paths, and whether a single one was given."""
    if isinstance(path, PPoly) or callable(path):
        return _of_functions(robot, [path]), True
    if isinstance(path, list | tuple) and path and all(callable(x) for x in path):
        return _of_functions(robot, list(path)), False
    check_labels("path", path, robot)
    try:
        points = np.asarray(to_numpy(path, "path"), dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise CoadjointError(
            f"path is {short(path)}; expected waypoints (N, {robot.nv}), or a function such as scipy's CubicSpline."
        ) from None
    if points.ndim not in (2, 3) or points.shape[-1] != robot.nv or points.shape[-2] < 2:
        raise ShapeError(
            f"path has shape {points.shape}; expected waypoints (N, {robot.nv}) for robot {robot.name!r}, at least two, or several "
            f"paths (paths, N, {robot.nv})."
        )
    if not np.isfinite(points).all():
        raise CoadjointError(f"waypoint {np.argwhere(~np.isfinite(points))[0].tolist()} of the path is not finite.")
    several = points.reshape(-1, *points.shape[-2:])
    if not len(several):
        raise ShapeError(f"path has shape {points.shape}: no path at all.")
    return _through(several), points.ndim == 2


def _through(points: np.ndarray) -> Splines:
    """The cubic splines through waypoints (paths, N, nv)."""
    paths, count, nv = points.shape
    if count > FEW:
        spline = CubicSpline(np.linspace(0.0, 1.0, count), np.moveaxis(points, 0, 1))
        return Splines([spline.x] * paths, np.moveaxis(spline.c, (2, 1, 0), (0, 1, 2)).reshape(-1, len(spline.c), nv))
    breaks, matrix = _interpolation(count)
    c = np.empty((paths, count - 1, 4, nv))
    # of differences: where a joint rests dq/ds is exactly zero
    c[:, :, :3] = (matrix @ (points[:, 1:] - points[:, :-1])).reshape(paths, count - 1, 3, nv)
    c[:, :, 3] = points[:, :-1]
    return Splines([breaks] * paths, c.reshape(-1, 4, nv))


@cache
def _interpolation(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Breaks, and the matrix (3 (N - 1), N - 1) from differences of N waypoints to the coefficients of their cubic spline, but those
    of power zero.
    """
    spline = CubicSpline(np.linspace(0.0, 1.0, count), np.tri(count, count - 1, -1))
    return spline.x, np.ascontiguousarray(np.moveaxis(spline.c[:3], 1, 0).reshape(-1, count - 1))


def _of_functions(robot: Robot, functions: list[Any]) -> Splines | Curves:
    if not all(isinstance(x, PPoly) for x in functions):
        curves = Curves(functions, robot.nv)
        for k in range(len(curves)):
            for order in range(3):
                curves._values(k, np.array([0.0, 1.0]), order)
            _check_function(robot, curves, k)
        return curves
    for x in functions:
        if x.c.ndim != 3 or x.c.shape[2] != robot.nv:
            raise ShapeError(f"the spline gives arrays of shape {x.c.shape[2:]}; expected ({robot.nv},) for robot {robot.name!r}.")
        if x.x[0] != 0.0 or x.x[-1] != 1.0:
            raise CoadjointError(
                f"the spline goes from {x.x[0]:g} to {x.x[-1]:g}; expected 0 to 1, as CubicSpline(numpy.linspace(0, 1, N), points)."
            )
        if not np.all(np.isfinite(x.c)):
            raise CoadjointError("a coefficient of the spline is not finite.")
    degree = max(len(x.c) for x in functions)
    padded = [x.c if len(x.c) == degree else np.pad(x.c, ((degree - len(x.c), 0), (0, 0), (0, 0))) for x in functions]
    c = np.concatenate([np.moveaxis(x, 1, 0) for x in padded]).astype(float)
    paths = Splines([np.asarray(x.x, dtype=float) for x in functions], c)
    _check_kinks(robot, paths)
    return paths


def _check_function(robot: Robot, curves: Curves, k: int) -> None:
    """An error where a derivative of a user's path is not that of the order before, or jumps: near kinks cells are halved."""
    nodes, weights = np.polynomial.legendre.leggauss(5)
    ends = np.linspace(0.0, 1.0, CHECKED + 1)
    for order in (1, 2):
        value = curves._values(k, ends, order - 1)
        middle, half = (ends[:-1] + ends[1:]) / 2, np.diff(ends)[0] / 2
        rates = curves._values(k, (middle[:, None] + half * nodes).ravel(), order).reshape(CHECKED, 5, -1)
        off = np.abs(np.diff(value, axis=0) / (2 * half) - np.einsum("p,cpj->cj", weights / 2, rates))
        size = float(np.abs(rates).max()) + float(np.abs(value).max()) * 1e-9
        i, j = np.unravel_index(int(np.argmax(off)), off.shape)
        if off[i, j] <= OFF * size:
            continue
        a, b = float(ends[i]), float(ends[i + 1])
        while b - a > 1e-5:  # what jumps less from cell to cell goes with their length
            parts = np.linspace(a, b, 4)
            y = curves._values(k, parts, order - 1)[:, j]
            half = (b - a) / 6
            at = ((parts[:-1] + parts[1:]) / 2)[:, None] + half * nodes
            rate = curves._values(k, at.ravel(), order)[:, j].reshape(3, 5) @ (weights / 2)
            worst = int(np.argmax(np.abs(np.diff(y) / (2 * half) - rate)))
            error = float(np.abs(np.diff(y) / (2 * half) - rate)[worst])
            a, b = float(parts[worst]), float(parts[worst + 1])
        if error <= OFF * size:
            continue
        left, right = curves._values(k, np.array([a, b]), 1)[:, j]
        if abs(right - left) > OFF * float(np.abs(rates).max() if order == 1 else np.abs(value).max()):
            raise CoadjointError(
                f"the path has a kink at s = {(a + b) / 2:.4g}: dq/ds of joint {robot.v_names[j]!r} jumps from {left:.6g} to "
                f"{right:.6g}. Round the corner, or time the parts on both sides one by one."
            )
        raise CoadjointError(
            f"path(s, {order}) is not the derivative of path({'s' if order == 1 else 's, 1'}) near s = {(a + b) / 2:.4g}: of joint "
            f"{robot.v_names[j]!r} they differ by {error:.4g}."
        )


def _check_kinks(robot: Robot, paths: Splines) -> None:
    """An error where q or dq/ds jumps at a break: a robot can pass there only by standing still."""
    length = np.concatenate([x[1:] - x[:-1] for x in paths.all_breaks])
    c = paths.c[:, None]
    q, dq, _ = horner([c[..., k, :] for k in range(c.shape[-2])], np.stack([0.0 * length, length], axis=1)[..., None])
    size = np.maximum.reduceat(np.abs(dq).max(axis=(1, 2)), paths.first[:-1])
    most = KINK * (1e-300 + np.repeat(size, paths.first[1:] - paths.first[:-1])[1:, None])
    inside = np.ones(len(length), dtype=bool)
    inside[paths.first[:-1]] = False  # a path begins there
    for what, y in (("q", q), ("dq/ds", dq)):
        rounding = 8.0 * np.finfo(float).eps * np.abs(y[1:, 0])
        bad = (np.abs(y[1:, 0] - y[:-1, 1]) > np.maximum(most, rounding)) & inside[1:, None]
        if bad.any():
            i, j = np.argwhere(bad)[0]
            raise CoadjointError(
                f"the path has a kink at s = {paths.left[i + 1]:.6g}: {what} of joint {robot.v_names[j]!r} jumps from "
                f"{y[i, 1, j]:.6g} to {y[i + 1, 0, j]:.6g}. Round the corner, or time the parts on both sides one by one."
            )
