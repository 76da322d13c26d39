"""The numbers of a design as variables of an optimisation: sets of a robot's parameters, bounds, and inertias of possible bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import CoadjointError, unknown
from ..lie import inertia
from ..robot.robot import Robot
from ..words import short

TRIANGLE = np.tril_indices(4)
SAME = (
    {"masses", "inertial"},
    {"lengths", "homes", "dh"},
    {"axes", "dh"},
    {"drives", "armature"},
    {"drives", "damping"},
    {"drives", "friction"},
)
"""Kinds of sets that describe the same numbers in different ways."""
ACTIVE = 1e-7
"""Bounds and constraints that are nearer than this are reached."""
MARGIN = 1e-6
"""The least distance from singular of a partly free link's pseudo-inertia, with its diagonal scaled to 1."""


@dataclass(frozen=True)
class Variables:
    """Sets of parameters, one after the other."""

    sets: tuple[str, ...]
    names: tuple[str, ...]
    """Every number as "set:number"."""
    own: np.ndarray
    """The robot's numbers."""
    free: frozenset[str]
    """The numbers that may change."""
    lower: np.ndarray
    upper: np.ndarray
    sizes: tuple[int, ...]

    def split(self, values: np.ndarray) -> list[np.ndarray]:
        """The numbers of each set."""
        return np.split(values, np.cumsum(self.sizes)[:-1])

    def place(self, name: str) -> int:
        """The place of a number in the vector."""
        if name not in self.free:
            raise unknown("number of the design", name, sorted(self.free))
        return self.names.index(name)

    def robot(self, robot: Robot, values: np.ndarray) -> Robot:
        """The robot with other numbers."""
        for name, x in zip(self.sets, self.split(values), strict=True):
            robot = robot.with_parameters(name, x)
        return robot

    def chart(self, fixed: Mapping[int, float]) -> Chart:
        """Coordinates of the optimisation, with some numbers held at values."""
        own = self.own.copy()
        for k, x in fixed.items():
            own[k] = x
        free = [k for k, name in enumerate(self.names) if name in self.free and k not in fixed]
        links = self._links()
        bodies = [k for k in links if all(j in free for j in range(k, k + 10))]
        parts = [k for k in links if k not in bodies and any(j in free or j in fixed for j in range(k, k + 10))]
        scalars = [j for j in free if not any(k <= j < k + 10 for k in bodies)]
        scales = [1.0 / np.sqrt(np.diag(inertia.pseudo(self.own[k : k + 10]))) for k in parts]
        return Chart(own, bodies, scalars, dict(zip(parts, scales, strict=True)), self.lower, self.upper)

    def _links(self) -> list[int]:
        """The first index of each link's ten numbers, if there are inertias among the sets."""
        if "inertial" not in self.sets:
            return []
        k = self.sets.index("inertial")
        first = sum(self.sizes[:k])
        return list(range(first, first + self.sizes[k], 10))


class Chart:
    """z: logarithms and entries of the triangular roots of pseudo-inertias, then other numbers divided by their size.

    Links of which only some inertial numbers are free are kept possible by `margins`, the least eigenvalues of their pseudo-inertias. The
    bounds of whole bodies' numbers, which are no bounds of z, are margins, too.
    """

    def __init__(
        self,
        own: np.ndarray,
        bodies: list[int],
        scalars: list[int],
        parts: dict[int, np.ndarray],
        lower: np.ndarray,
        upper: np.ndarray,
    ) -> None:
        """parts: where the numbers of partly free links begin, with the scales (4,) of their pseudo-inertias."""
        self.own, self.bodies, self.scalars, self.parts = own, bodies, scalars, parts
        self.roots = [np.linalg.cholesky(inertia.pseudo(own[k : k + 10])) for k in bodies]
        width = upper - lower
        size = np.where(np.isfinite(width) & (width > 0), width, np.maximum(np.abs(own), 0.1))
        self.size = size[self.scalars]
        inner = [j for k in bodies for j in range(k, k + 10)]
        self.bounds = [(j, 1.0 / size[j], lower[j]) for j in inner if np.isfinite(lower[j])]
        self.bounds += [(j, -1.0 / size[j], upper[j]) for j in inner if np.isfinite(upper[j])]
        none = np.full(10 * len(bodies), np.inf)
        self.start = np.concatenate([np.zeros(10 * len(bodies)), own[self.scalars] / self.size])
        self.lower = np.concatenate([-none, lower[self.scalars] / self.size])
        self.upper = np.concatenate([none, upper[self.scalars] / self.size])
        self.start = np.clip(self.start, self.lower, self.upper)

    def values(self, z: np.ndarray) -> np.ndarray:
        """The numbers at z."""
        values = self.own.copy()
        for b, k in enumerate(self.bodies):
            root = self._root(b, z)
            values[k : k + 10] = inertia.from_pseudo(root @ root.T)
        values[self.scalars] = z[10 * len(self.bodies) :] * self.size
        return values

    def jacobian(self, z: np.ndarray) -> np.ndarray:
        """∂values/∂z."""
        found = np.zeros((self.own.size, z.size))
        for b, k in enumerate(self.bodies):
            root = self._root(b, z)
            for j, (row, column) in enumerate(zip(*TRIANGLE, strict=True)):
                step = np.zeros((4, 4))
                step[row, column] = np.exp(z[10 * b + j]) if row == column else 1.0
                change = self.roots[b] @ step @ root.T
                found[k : k + 10, 10 * b + j] = inertia.from_pseudo(change + change.T)
        first = 10 * len(self.bodies)
        found[self.scalars, range(first, z.size)] = self.size
        return found

    def margins(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The least eigenvalue of each partly free link's pseudo-inertia, scaled, less a margin, then bounds' distances; their gradients.

        Shapes (m,) and (m, n).
        """
        values, change = self.values(z), self.jacobian(z)
        found, slopes = [], []
        for k, scale in self.parts.items():
            D = np.diag(scale)
            w, U = np.linalg.eigh(D @ inertia.pseudo(values[k : k + 10]) @ D)
            u = D @ U[:, 0]
            found.append(w[0] - MARGIN)
            slopes.append(np.array([u @ inertia.pseudo(x) @ u for x in change[k : k + 10].T]))
        for j, sign, limit in self.bounds:
            found.append(sign * (values[j] - limit))
            slopes.append(sign * change[j])
        return np.array(found), np.array(slopes).reshape(len(found), z.size)

    def _root(self, b: int, z: np.ndarray) -> np.ndarray:
        """The root of a body's pseudo-inertia: that of the robot as it is, times a triangle with a positive diagonal."""
        part = z[10 * b : 10 * b + 10]
        triangle = np.zeros((4, 4))
        triangle[TRIANGLE] = part
        np.fill_diagonal(triangle, np.exp(np.diag(triangle)))
        root: np.ndarray = self.roots[b] @ triangle
        return root

    def stationarity(self, z: np.ndarray, slope: np.ndarray, rows: np.ndarray, values: np.ndarray) -> float:
        """The largest part of the gradient that neither a bound nor a constraint that is reached takes up."""
        from scipy.optimize import nnls

        near = ACTIVE * np.maximum(1.0, np.abs(z))
        unit = np.eye(z.size)
        normals = [*unit[z <= self.lower + near], *-unit[z >= self.upper - near]]
        normals += [row for row, x in zip(rows, values, strict=True) if x < ACTIVE]
        if normals:
            A = np.array(normals).T
            slope = slope - A @ nnls(A, slope)[0]
        return float(np.abs(slope).max(initial=0.0))


def variables(robot: Robot, wanted: Sequence[str], bounds: Mapping[str, tuple[float, float]]) -> Variables:
    """The sets that hold the wanted numbers, with bounds; errors name what is unknown or impossible."""
    if not wanted:
        raise CoadjointError("parameters is empty; expected sets of the robot's numbers, as 'masses' or 'lengths:link2'.")
    found = [_set_of(robot, name) for name in wanted]
    # Sets of the geometry come first: they are laid about the robot's own numbers, before inertias become variables.
    sets = tuple(
        sorted(dict.fromkeys(name for name, _ in found), key=lambda name: name.partition(":")[0] in ("masses", "inertial"))
    )
    _check_overlap(sets)
    numbers = {name: [f"{name}:{x}" for x in robot.parameter_names(name)] for name in sets}
    free = frozenset(f"{name}:{number}" for name, chosen in found for number in chosen)
    names = tuple(x for name in sets for x in numbers[name])
    own = np.concatenate([np.asarray(robot.parameters(name), dtype=float) for name in sets])
    lower, upper = np.full(own.size, -np.inf), np.full(own.size, np.inf)
    for name in sets:
        if name == "masses":  # zero has no body
            lower[[names.index(x) for x in numbers[name]]] = 1e-9
        if name in ("armature", "damping", "friction", "drives"):
            lower[[names.index(x) for x in numbers[name]]] = 0.0
    if not isinstance(bounds, Mapping):
        raise CoadjointError(f"bounds is {short(bounds)}; expected a mapping, as {{'masses': (0.5, 2.0)}}.")
    for name, pair in bounds.items():
        places = [k for k, x in enumerate(names) if x in free and (x in numbers.get(name, ()) or name in (x, x.rpartition(".")[0]))]
        if not places:
            raise unknown("number of the design", name, [*sets, *(x for x in names if x in free)])
        low, high = _pair(name, pair)
        least = lower[places].max()
        if high < least:
            raise CoadjointError(f"bounds of {name!r} are {low:g} … {high:g}; it cannot be less than {least:g}.")
        lower[places], upper[places] = np.maximum(low, lower[places]), high
    if "inertial" in sets:
        _check_bodies(robot, free)
    return Variables(sets, names, own, free, lower, upper, tuple(len(numbers[x]) for x in sets))


def _set_of(robot: Robot, name: str) -> tuple[str, tuple[str, ...]]:
    """A set, and those of its numbers that are named: all, those of one link, or one."""
    kind = name.partition(":")[0]
    if kind == "payload":
        raise CoadjointError(
            f"parameters has {name!r}; a payload begins as nothing. Give it to the robot first (with_payload), then design the numbers "
            "'inertial' of the link."
        )
    try:
        return name, robot.parameter_names(name)
    except CoadjointError:
        border = name.rfind(":")
        if border < 0:
            raise
        whole, part = name[:border], name[border + 1 :]
        known = robot.parameter_names(whole)
        chosen = tuple(x for x in known if x == part or x.rpartition(".")[0] == part)
        if not chosen:
            raise unknown(f"number of {whole!r}", part, known) from None
        return whole, chosen


def _pair(name: str, pair: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = (float(x) for x in pair)
    except (TypeError, ValueError, OverflowError):
        raise CoadjointError(f"bounds of {name!r} are {pair!r}; expected (lower, upper).") from None
    if not low <= high:
        raise CoadjointError(f"bounds of {name!r} are {low:g} … {high:g}; expected lower <= upper.")
    return low, high


def _check_overlap(sets: Sequence[str]) -> None:
    """Two sets that describe the same numbers cannot both be free: the second would replace what the first says."""
    kinds = [name.partition(":")[0] for name in sets]
    for group in SAME:
        both = [name for name, kind in zip(sets, kinds, strict=True) if kind in group]
        if len(both) > 1:
            raise CoadjointError(
                f"parameters has {both[0]!r} and {both[1]!r}, which describe the same numbers; choose one of them."
            )


def _check_bodies(robot: Robot, free: frozenset[str]) -> None:
    values = np.asarray(robot.parameters("inertial")).reshape(-1, 10)
    for link, row in zip(robot.link_names, values, strict=True):
        moved = any(x.startswith(f"inertial:{link}.") for x in free)
        if moved and np.linalg.eigvalsh(inertia.pseudo(row)).min() <= 0:
            raise CoadjointError(
                f"link {link!r} has no positive definite pseudo-inertia; a design of inertias starts from bodies with volume. "
                "Give it a mass and an inertia first, or leave it out of the parameters."
            )
