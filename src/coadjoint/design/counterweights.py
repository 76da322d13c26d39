"""Counterweights that make the mass matrix constant, or gravity vanish, or come as near as bounds allow.

A counterweight is a set of points with mass, m_g ≥ 0, on a grid in a box on its link: so every solution can be built. Parameters
of the links are linear in these masses, and balance conditions are linear in the parameters (`conditions.py`), so that

    1. linear programming finds the least masses that meet all conditions, if any; they are then met to rounding; 2. otherwise the
    sum of the squares of all energy differences is minimised, with m_g ≥ 0 and a bound on the mass on each link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_robot, count_up_to, names, numbers, takes
from ..errors import CoadjointError
from ..lie import inertia
from ..robot.robot import Robot
from ..words import short
from .balance import Balance, balance
from .conditions import check_goals, energy_differences

_RANK = 1e-11


@dataclass(frozen=True)
class Counterweight:
    """A body to be fixed to a link, also given as a set of point masses."""

    link: str
    mass: float
    center: np.ndarray
    """Centre of mass (3,) in the frame of the link."""
    inertia: np.ndarray
    """(3, 3) about that centre, in the axes of the link's frame."""
    points: np.ndarray
    """(k, 3) in the frame of the link."""
    masses: np.ndarray
    """(k,), of the points."""

    def __str__(self) -> str:
        x, y, z = self.center
        return f"{self.link}: {self.mass:.4g} kg at ({x:.4g}, {y:.4g}, {z:.4g})"


@dataclass(frozen=True)
class Counterweights:
    """A robot before and after counterweights were fixed to it."""

    before: Robot
    robot: Robot
    """The robot with the counterweights."""
    weights: tuple[Counterweight, ...]
    residual: tuple[float, float]
    """Root mean square of relative energy differences between configurations, before and after; 0 is balanced."""
    balance: tuple[Balance, Balance]
    """`balance` before and after."""

    @property
    def mass(self) -> float:
        """The mass of all counterweights."""
        return sum(w.mass for w in self.weights)

    @property
    def exact(self) -> bool:
        """True if the conditions hold up to rounding, not only as well as the bounds allow."""
        return self.residual[1] <= 1e-12 * max(1.0, self.residual[0])

    def __str__(self) -> str:
        lines = [
            f"energy differences between configurations: {self.residual[0]:.3g} before, {self.residual[1]:.3g} after (relative, rms)"
        ]
        return "\n".join([*lines, *map(str, self.weights), f"{self.mass:.4g} kg in all"])


@takes(robot=a_robot, links=names, goals=names, grid=count_up_to(100))
def counterweights(
    robot: Robot,
    links: Sequence[str] | None = None,
    goals: str | Sequence[str] = "mass_matrix",
    *,
    box: Any = None,
    max_mass: float | Mapping[str, float] = np.inf,
    grid: int = 5,
) -> Counterweights:
    """Counterweights on `links` (all if None) that balance a robot, with as little mass as possible.

    goals: "mass_matrix" (M constant), "gravity" (g = 0), or both. box (2, 3): the corners between which masses may be, in the frame of
    the link, or a dictionary of them by link; a cube about the joint, of half the robot's largest distance to each side, if None.
    max_mass: of the counterweight on each link (kg), one number or by link. grid: points along each side of the box.
    """
    goals = check_goals(goals)
    names = list(dict.fromkeys(robot.link_names if links is None else links))
    indices = [robot.link_index(name) for name in names]
    if -1 in indices or not names:
        raise CoadjointError("counterweights go on links that move; name at least one, and not the base.")
    limits = _limits(names, max_mass)
    if not isinstance(grid, int) or grid < 2:
        raise CoadjointError(f"grid is {grid!r}; expected a whole number, 2 or more.")
    points = [_grid(corners, grid) for corners in _boxes(robot, names, box)]
    rows = energy_differences(robot, goals)
    _, s, Vt = np.linalg.svd(rows, full_matrices=False)
    R = s[s > _RANK * s[0], None] * Vt[s > _RANK * s[0]]
    columns = []
    for i, where in zip(indices, points, strict=True):
        ten = inertia.from_body(np.ones(len(where)), where, np.zeros((len(where), 3, 3)))
        columns.append(R[:, 10 * i : 10 * i + 10] @ ten.T)
    owner = np.repeat(np.arange(len(names)), [len(x) for x in points])
    distances = np.concatenate(
        [np.linalg.norm(where - joint_point(robot, i), axis=-1) for i, where in zip(indices, points, strict=True)]
    )
    cost = 1.0 + 1e-4 * (distances / np.max(distances, initial=1e-300)) ** 2  # of equal masses the one nearer the joint
    masses = _solve(np.concatenate(columns, axis=1), -R @ robot.inertial_parameters, cost, owner, limits)
    weights, parameters = [], np.array(robot.inertias)
    for k, (name, i) in enumerate(zip(names, indices, strict=True)):
        own = masses[owner == k]
        used = own > 0
        if used.any():
            m, x = own[used], points[k][used]
            ten = inertia.from_body(m, x, np.zeros((len(m), 3, 3))).sum(0)
            parameters[i] += ten
            mass, center, central = inertia.to_body(ten)
            weights.append(Counterweight(name, float(mass), center, central, x, m))
    changed = robot.with_inertial_parameters(parameters.reshape(-1))
    size = np.sqrt(len(rows))
    residual = tuple(float(np.linalg.norm(R @ r.inertial_parameters) / size) for r in (robot, changed))
    return Counterweights(robot, changed, tuple(weights), residual, (balance(robot), balance(changed)))  # type: ignore[arg-type]


def _limits(names: Sequence[str], max_mass: float | Mapping[str, float]) -> np.ndarray:
    given = max_mass if isinstance(max_mass, Mapping) else dict.fromkeys(names, max_mass)
    for name, x in given.items():
        if name not in names:
            raise CoadjointError(f"max_mass is given for {name!r}, which carries no counterweight; these do: {', '.join(names)}.")
        mass = numbers(x, f"max_mass of {name!r}")
        if mass.ndim or not mass >= 0:
            raise CoadjointError(f"max_mass of {name!r} is {short(x)}; expected a mass in kg, 0 or more.")
    return np.array([float(given.get(name, np.inf)) for name in names])


def _boxes(robot: Robot, names: Sequence[str], box: Any) -> list[np.ndarray]:
    """The corners (2, 3) of the box on each link."""
    given = box if isinstance(box, Mapping) else {} if box is None else dict.fromkeys(names, box)
    distances = np.concatenate([robot.placements[:, :3, 3], inertia.to_body(robot.inertias)[1]])
    reach = float(np.max(np.linalg.norm(distances, axis=-1)))
    boxes = []
    for name in names:
        joint = joint_point(robot, robot.link_index(name))
        own = given.get(name, [joint - 0.5 * reach, joint + 0.5 * reach])
        try:
            corners = np.asarray(own, dtype=float)
        except (TypeError, ValueError, OverflowError):
            corners = np.zeros(0)
        if corners.shape != (2, 3) or not np.all(np.isfinite(corners)) or np.any(corners[0] > corners[1]):
            corner = "two corners [[x, y, z], [x, y, z]], the lower first"
            raise CoadjointError(f"the box on {name!r} is {short(own)}; expected {corner}.")
        boxes.append(corners)
    for name in given:
        if name not in names:
            raise CoadjointError(f"a box is given for {name!r}, which carries no counterweight; these do: {', '.join(names)}.")
    return boxes


def joint_point(robot: Robot, i: int) -> np.ndarray:
    """The point of the joint's first axis that is nearest to the origin of the link's frame."""
    S = robot.joint_screws(i)
    return np.cross(S[0, :3], S[0, 3:]) if len(S) else np.zeros(3)


def _grid(corners: np.ndarray, n: int) -> np.ndarray:
    sides = [np.unique(np.linspace(low, high, n)) for low, high in corners.T]
    return np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 3)


def _solve(A: np.ndarray, b: np.ndarray, cost: np.ndarray, owner: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Masses m ≥ 0, at most `limits` on each link: the cheapest with A m = b if there are any, else those with the least |A m - b|."""
    felt = np.linalg.norm(A, axis=0) > _RANK * np.linalg.norm(A)  # what has no effect, such as mass on a fixed axis, is left away
    m = np.zeros(len(owner))
    if felt.any():
        A, cost, own = A[:, felt], cost[felt], owner[felt]
        found = _exact(A, b, cost, own, limits)
        m[felt] = _polished(A, b, found) if found is not None else _least_squares(A, b, own, limits)
    total = np.bincount(owner, m, len(limits))
    over = np.divide(limits, total, out=np.ones_like(total), where=total > limits)  # what rounding put above
    result: np.ndarray = m * over[owner]
    return result


def _exact(A: np.ndarray, b: np.ndarray, cost: np.ndarray, owner: np.ndarray, limits: np.ndarray) -> np.ndarray | None:
    """The solution of A m = b of least cost by linear programming, or None."""
    from scipy.optimize import linprog

    U, s, _ = np.linalg.svd(A, full_matrices=False)
    kept = U[:, s > _RANK * s[0]].T  # equations that depend on each other upset linear programming
    if np.linalg.norm(b - kept.T @ (kept @ b)) > 1e-9 * np.linalg.norm(b):
        return None
    bounded = np.flatnonzero(np.isfinite(limits))
    scale = 1.0 / np.max(np.abs(kept @ A))
    found = linprog(
        cost,
        A_ub=(owner == bounded[:, None]).astype(float) if bounded.size else None,
        b_ub=limits[bounded] if bounded.size else None,
        A_eq=kept @ A * scale,
        b_eq=kept @ b * scale,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    result: np.ndarray | None = found.x
    return result


def _least_squares(A: np.ndarray, b: np.ndarray, owner: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """The least-squares solution with m ≥ 0, with a small penalty on |m|; limits are imposed by slack variables with large
    weights.
    """
    from scipy.optimize import nnls

    bounded = np.flatnonzero(np.isfinite(limits))
    size = np.linalg.norm(A, axis=0).max()
    left = np.concatenate([A, 1e-6 * size * np.eye(len(owner)), 1e3 * size * (owner == bounded[:, None])])
    slack = np.concatenate([np.zeros((len(b) + len(owner), len(bounded))), 1e3 * size * np.eye(len(bounded))])
    right = np.concatenate([b, np.zeros(len(owner)), 1e3 * size * limits[bounded]])
    m, _ = nnls(np.concatenate([left, slack], axis=1), right, maxiter=100 * left.shape[1])
    result: np.ndarray = m[: len(owner)]
    return result


def _polished(A: np.ndarray, target: np.ndarray, m: np.ndarray) -> np.ndarray:
    """The significant masses, refined to solve the equations to rounding; negligible masses are dropped."""
    m = np.where(m > 1e-9 * np.max(m, initial=0.0), m, 0.0)
    for _ in range(3):
        used = np.flatnonzero(m)
        if not used.size:
            break
        step, *_ = np.linalg.lstsq(A[:, used], target - A @ m, rcond=1e-12)
        m = m.copy()
        m[used] = np.maximum(m[used] + step, 0.0)
    return m
