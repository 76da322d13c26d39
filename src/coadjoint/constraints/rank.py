"""Linearly dependent rows: the rank, the redundant rows, and motion under them, by singular values.

With M = L Lᵀ the rows of A L⁻ᵀ, each divided by its length, have the singular values of the constraint: a row that the others imply
adds one that vanishes. States are solved here one batch at a time in NumPy, with as many digits as the singular values leave.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from ..arguments import a_robot, takes
from ..arrays import ArrayLike, mv, transpose
from ..dynamics.composite import mass_matrix
from ..dynamics.newton_euler import bias_force, friction_force
from ..dynamics.singular import explain_singular
from ..errors import CoadjointError, ShapeError
from ..memo import recent
from ..robot.robot import Robot
from . import metric_rows
from .constraint import Constraint, checked, robot_size
from .metric_rows import CONTRADICTION, DEPENDENT, ZERO, Decomposition


class ConstraintError(CoadjointError):
    """Constraints contradict each other, or a state violates them; the message names the rows."""


def vanishing(robot: Robot, A: np.ndarray) -> np.ndarray:
    """True for rows (..., m) of A (..., m, nv) that are zero up to rounding, relative to the others and the robot's size."""
    entries = np.abs(A).max(-1, initial=0.0)
    result: np.ndarray = entries <= ZERO * np.maximum(entries.max(-1, initial=0.0, keepdims=True), robot_size(robot))
    return result


def decompose(robot: Robot, constraint: Constraint, q: np.ndarray) -> Decomposition:
    """The decomposition at q (..., nq)."""
    M, A = mass_matrix(robot, q), checked(constraint).jacobian(robot, q)  # not frozen: it may be a part of one
    unknown = ~np.isfinite(A).all(-1)
    if unknown.any():
        *state, row = np.argwhere(unknown)[0]
        raise ConstraintError(
            f"row {constraint.names(robot)[row]!r} is not a number at q = {np.asarray(q)[tuple(state)].tolist()}: the constraint is not "
            "defined there, as a cable without length or a wheel that lies flat."
        )
    try:
        L = np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        explain_singular(robot, np.asarray(q, dtype=float))
        raise ConstraintError("the mass matrix is not that of a state: q is not a number.") from None
    return metric_rows.decompose(A, L, vanishing(robot, A))


def check_consistent(
    robot: Robot, constraint: Constraint, right: np.ndarray, rest: np.ndarray, length: np.ndarray, places: np.ndarray
) -> None:
    """Raise an error if the accelerations (k, m) of dependent rows contradict each other; it names the rows. places: the indices of
    the k states.
    """
    size = np.linalg.norm(right / length, axis=-1, keepdims=True)
    bad = np.abs(rest) > CONTRADICTION * size + 1e-10
    if bad.any():
        state, names = int(np.flatnonzero(bad.any(-1))[0]), constraint.names(robot)
        rows = [f"{names[k]} (by {rest[state, k] * length[state, k]:.3g})" for k in np.flatnonzero(bad[state])]
        where = f" in state {', '.join(map(str, places[state]))}" if places.shape[-1] else ""
        raise ConstraintError(
            f"rows of the constraint depend on each other and contradict{where}: the acceleration that velocities ask for cannot hold "
            f"in {', '.join(rows)}. Leave rows out, or bring q and v onto the constraint first: see `project`."
        )


def solve_irregular(
    robot: Robot,
    result: tuple[np.ndarray, np.ndarray],
    constraint: Constraint,
    q: Any,
    v: Any,
    tau: Any,
    wrenches: Any = None,
    friction: bool = False,
) -> None:
    """Write a and λ of the states for which λ is NaN into the result of `constrained_dynamics`."""
    a, multipliers = result
    states = np.isnan(multipliers).any(-1)
    batch = states.shape

    def pick(x: Any, core: tuple[int, ...]) -> np.ndarray:
        result: np.ndarray = np.broadcast_to(np.asarray(x, dtype=float), (*batch, *core))[states]
        return result

    q, v, tau = pick(q, (robot.nq,)), pick(v, (robot.nv,)), pick(tau, (robot.nv,))
    wrenches = None if wrenches is None else pick(wrenches, (robot.n_links, 6))
    given = np.isfinite(q).all(-1) & np.isfinite(v).all(-1) & np.isfinite(tau).all(-1)
    if wrenches is not None:
        given &= np.isfinite(wrenches).all((-1, -2))
    if not given.all():  # what is not a number has no motion: NaN stays, the rest is solved
        if not given.any():
            return
        inner = np.array(states)
        inner[states] = given
        states, q, v, tau = inner, q[given], v[given], tau[given]
        wrenches = None if wrenches is None else wrenches[given]
    explain_singular(robot, q)
    force = tau - bias_force(robot, q, v, wrenches)
    if friction:
        force = force - robot.from_tree(friction_force(robot, robot.tree_v(v)))
    d = decompose(robot, constraint, q)
    A, bias = constraint.jacobian(robot, q), constraint.bias(robot, q, v)
    free = d.inverse_metric(force)
    _, rest = d.multipliers(bias)
    check_consistent(robot, constraint, bias, rest, d.length, np.argwhere(states))
    found = -d.multipliers(mv(A, free) + bias)[0]
    a[states] = free + d.inverse_metric(mv(transpose(A), found))
    multipliers[states] = found


class Rank(NamedTuple):
    """The number of independent rows of a constraint at a configuration, and the rows that are implied by the others."""

    rank: int
    freedoms: int
    """nv - rank: in how many directions the robot can move."""
    redundant: tuple[str, ...]
    """The names of the rows that are implied by earlier ones; removing them changes no motion."""
    singular_values: np.ndarray
    """Singular values of the rows divided by their lengths in the metric, the largest first."""

    def __str__(self) -> str:
        text = f"rank {self.rank}, {self.freedoms} freedom{'s' * (self.freedoms != 1)}"
        return text + (f"; implied by other rows: {', '.join(self.redundant)}" if self.redundant else "")


def note_overconstrained(robot: Robot, constraint: Constraint, q: np.ndarray, *others: Robot) -> None:
    """Find out, once, whether a constraint that q (nq,) satisfies is overconstrained; `is_overconstrained` then says so.

    It then says so of other robots of the same structure as well.
    """
    if recent(robot, ("overconstrained", constraint), lambda: _moves_only_there(robot, constraint, q)):
        for each in (robot, *others):
            each._overconstrained.get(constraint, lambda: True)


def _moves_only_there(robot: Robot, constraint: Constraint, q: np.ndarray) -> bool:
    """True if the rank is less at q and at configurations nearby that satisfy the constraint than at others."""
    from .manifold import project

    anywhere = decompose(robot, constraint, robot.random(np.random.default_rng(0), 4)).rank.max()
    d = decompose(robot, constraint, q)
    if d.rank >= anywhere:
        return False
    allowed = np.linalg.solve(d.L.T, np.linalg.svd(d.U * d.s @ d.Wt)[2][int(d.rank) :].T)
    near = []
    for way in (sign * 0.05 * x / np.abs(x).max() for x in allowed.T for sign in (1, -1)):
        with suppress(CoadjointError):  # at a singular configuration not every motion that A allows is one
            near.append(project(robot, constraint, robot.integrate(q, way)))
    return bool(near) and all(decompose(robot, constraint, x).rank < anywhere for x in near)


def is_overconstrained(robot: Robot, constraint: Constraint) -> bool:
    """True if rows of a constraint depend on each other where it holds, and not elsewhere, as those of Bennett's linkage.

    Known from the first simulation on, which has a configuration that satisfies it.
    """
    return constraint in robot.original._overconstrained


@takes(robot=a_robot)
def constraint_rank(robot: Robot, constraint: Constraint, q: ArrayLike) -> Rank:
    """The rank of a constraint at one configuration q (nq,), and its redundant rows."""
    q, constraint = np.asarray(robot._checked(q, "q", robot.nq), dtype=float), checked(constraint, robot)
    if q.ndim != 1:
        raise ShapeError(f"q has shape {q.shape}; expected one configuration, ({robot.nq},).")
    d = decompose(robot, constraint, q)
    B = d.U * d.s @ d.Wt
    redundant, basis = [], np.zeros((robot.nv, 0))
    for name, row in zip(constraint.names(robot), B, strict=True):
        rest = row - basis @ (basis.T @ row)
        rest = rest - basis @ (basis.T @ rest)
        if basis.shape[1] == d.rank or np.linalg.norm(rest) <= np.sqrt(DEPENDENT) * 1e-2:
            redundant.append(name)
        else:
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
    return Rank(int(d.rank), robot.nv - int(d.rank), tuple(redundant), d.s)
