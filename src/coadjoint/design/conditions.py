"""The balance conditions of any robot: linear equations in the inertial parameters.

Kinetic and potential energy are linear in the ten parameters of every link (`dynamics/regressor.py`). So "T(q, v) = T(q', v) for all
q, q', v", which says that M is constant, and "U(q) = U(q') for all q, q'", which says that gravity has no effect, are linear
systems.
Energies are analytic functions, and as many random configurations as there are parameters give a complete set of equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arguments import a_robot, names, takes
from ..dynamics.composite import mass_matrix
from ..dynamics.regressor import kinetic_energy_regressor, potential_energy_regressor
from ..errors import CoadjointError, unknown
from ..robot.robot import Robot

GOALS = ("mass_matrix", "gravity")
"""The goals of balancing: a constant mass matrix, no effect of gravity."""

_RANK = 1e-9
"""Singular values below this fraction of the largest count as zero."""


def energy_differences(robot: Robot, goals: Sequence[str], rng: int = 0) -> np.ndarray:
    """Rows (rows, 10 n_links) whose products with the inertial parameters are differences of energies, relative to their size.

    Of T between two random configurations, at a random velocity of unit mean kinetic energy; of U relative to its mean square.
    """
    generator = np.random.default_rng(rng)
    count = 40 * robot.n_links + 40
    q = robot.random(generator, (2, count))
    rows = []
    if "mass_matrix" in goals:
        values, vectors = np.linalg.eigh(mass_matrix(robot, robot.random(generator, 64)).mean(0))
        if values[-1] <= 0:
            raise CoadjointError(f"robot {robot.name!r} moves no mass: there is nothing to balance.")
        u = generator.normal(size=(count, robot.nv))
        u *= np.sqrt(2.0) / np.linalg.norm(u, axis=-1, keepdims=True)
        v = u / np.sqrt(np.maximum(values, 1e-6 * values[-1])) @ vectors.T
        T = kinetic_energy_regressor(robot, q, v)
        rows.append(T[1] - T[0])
    if "gravity" in goals:
        U = potential_energy_regressor(robot, q)
        difference = U[1] - U[0]
        size = np.sqrt(np.mean((difference @ robot.inertial_parameters) ** 2))
        weights = np.sqrt(np.mean(np.sum((difference * robot.inertial_parameters) ** 2, axis=-1)))
        rows.append(difference / (max(size, weights) or 1.0))
    return np.concatenate(rows)


def check_goals(goals: str | Sequence[str]) -> tuple[str, ...]:
    """The goals as a list, each one a known name."""
    chosen = (goals,) if isinstance(goals, str) else tuple(goals)
    for goal in chosen:
        if goal not in GOALS:
            raise unknown("goal", goal, GOALS)
    if not chosen:
        raise CoadjointError(f"no goal is given; choose from {', '.join(GOALS)}.")
    return chosen


def parameter_names(robot: Robot) -> tuple[str, ...]:
    """The names of the inertial parameters (10 n_links): m_1, h_1x, …, I_1zz, in the frame of the link and about its origin."""
    ten = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
    return tuple(f"{x[0]}_{i + 1}{x[1:]}" for i in range(robot.n_links) for x in ten)


@dataclass(frozen=True)
class Conditions:
    """matrix @ inertial_parameters = 0, if and only if the robot is balanced."""

    goals: tuple[str, ...]
    matrix: np.ndarray
    """Rows (conditions, 10 n_links), each solved for one parameter, which stands in no other row."""
    names: tuple[str, ...]
    """Names of the parameters: m_k, first moments h_kx …, and inertias I_kxx … about the origin of the link's frame."""
    violated: np.ndarray
    """matrix @ inertial_parameters of the given robot."""

    @property
    def designs(self) -> np.ndarray:
        """An orthonormal basis (10 n_links, d) of all balanced parameters; not all of these are physically possible."""
        _, s, Vt = np.linalg.svd(self.matrix) if len(self.matrix) else (0, np.zeros(0), np.eye(len(self.names)))
        return Vt[len(s) :].T

    def __str__(self) -> str:
        return "\n".join(map(self._line, self.matrix)) or "no conditions: always balanced"

    def _line(self, row: np.ndarray) -> str:
        pivot = next(int(k) for k in _order(len(row)) if row[k])
        right = [(-row[k], self.names[k]) for k in np.flatnonzero(row) if k != pivot]
        text = ""
        for x, name in right:
            sign = (" - " if x < 0 else " + ") if text else "-" if x < 0 else ""
            text += sign + ("" if abs(x) == 1 else f"{abs(x):.5g} ") + name
        return f"{self.names[pivot]} = {text or '0'}"


@takes(robot=a_robot, goals=names)
def conditions(robot: Robot, goals: str | Sequence[str] = "mass_matrix") -> Conditions:
    """The conditions on the inertial parameters for a constant mass matrix ("mass_matrix"), for no effect of gravity ("gravity"),
    or both.

    For a planar chain these are Brockett, Stokes & Park's (1993), section 5, corrected; they hold for any chain or tree.
    """
    goals = check_goals(goals)
    rows = energy_differences(robot, goals)
    norms = np.linalg.norm(rows, axis=0)
    scale = np.where(norms > _RANK * np.max(norms, initial=0.0), norms, 0.0)
    scaled = np.divide(rows, scale, out=np.zeros_like(rows), where=scale > 0)
    _, s, Vt = np.linalg.svd(scaled, full_matrices=False)
    rank = int(np.sum(s > _RANK * s[0])) if s.size and s[0] > 0 else 0
    matrix = _reduced(Vt[:rank] * scale)
    return Conditions(goals, matrix, parameter_names(robot), matrix @ robot.inertial_parameters)


def _order(size: int) -> np.ndarray:
    """The order in which parameters are eliminated: first moments, products of inertia, moments of inertia; masses remain free."""
    rank = np.tile([3, 0, 0, 0, 2, 1, 1, 2, 1, 2], size // 10)
    return np.argsort(rank, kind="stable")


def _reduced(rows: np.ndarray) -> np.ndarray:
    """The reduced row echelon form in that order of columns, with rounding errors set to zero and near-integers and near-fractions
    made exact.
    """
    rows = rows / np.max(np.abs(rows), axis=1, initial=1e-300, keepdims=True)
    done = 0
    for k in _order(rows.shape[1]):
        if done == len(rows):
            break
        best = done + int(np.argmax(np.abs(rows[done:, k])))
        if abs(rows[best, k]) < 1e-7:
            continue
        rows[[done, best]] = rows[[best, done]]
        rows[done] /= rows[done, k]
        others = np.arange(len(rows)) != done
        rows[others] -= rows[others, k : k + 1] * rows[done]
        done += 1
    near = np.round(rows * 2) / 2
    return np.where(np.abs(rows - near) < 1e-9, near, rows)
