"""Base parameters: the combinations of inertial parameters that the joint forces show.

The forces are τ = Y(q, v, a) φ, and Y has dependent columns for every robot: the first link of a fixed arm shows one of its ten numbers.
Which combinations are visible follows from the structure, one joint at a time, by subspaces of at most ten dimensions:

Let π_k(q) be the inertia of all that joint k carries, as one body in the frame of link k. The mass matrix and gravity depend on φ by
d·I(π_k) S alone, where S is a screw of joint k and d one of a joint nearer the base, of joint k itself, or gravity's direction. Over
all configurations of the joints nearer the base, d fills a subspace D_k: the smallest one that holds what comes from the parent and S,
and that the bracket with S maps to itself. So φ changes no force if and only if, for every joint, the functionals

    Z_k = { d·I(·) S : d in D_k }  and  { g L_S : g known at link k }

vanish on π_k at home. Here L_S is the rate at which ten parameters change along the screw S, and g runs through the functionals that
joints nearer the base know of π_k; what they know may not change while joint k moves. As π_k at home are ten new coordinates
for every link, the number of base parameters is the sum of the dimensions of Z_k. No samples and no tolerance on a large matrix are
needed. Wensing, Niemeyer & Slotine (2024) give an equivalent recursion.

Mimic joints and constraints restrict the motion, and some of these combinations become dependent; armature, damping and friction add
columns of their own. For these the structure of the free tree gives X with Y = X B, B being its base, and the dependent columns of X are
found from states drawn at random on the constraints (`_dependent`). This is generic: the rows of X are analytic functions on the states,
so those that lie in a given proper subspace which does not hold all of them have measure zero. A new random state therefore enlarges the
span of the earlier ones with probability 1 until the span is complete. Twice as many rows as columns are drawn. Numbers are rounded: a
combination whose part in the forces is below 1e-8 of the others' counts as hidden.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_triangular, svdvals

from ..arguments import a_flag, takes
from ..constraints.constraint import Constraint, checked
from ..constraints.manifold import STEPS, assemble, newton_steps
from ..constraints.rank import decompose
from ..dynamics import drive_regressor, regressor
from ..errors import CoadjointError
from ..kernel.dispatch import as_written
from ..lie import inertia, se3
from ..robot.parameters import INERTIAL
from ..robot.robot import Robot

_RANK = 1e-8
"""Relative size below which a direction counts as rounding: files write angles with ten digits."""
_PIVOTS = (0.1, 1e-3, 1e-6)
_SPATIAL = inertia.spatial(np.eye(10))
_PSEUDO = inertia.pseudo(np.eye(10))
_LENGTHS = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
"""The power of length in each of ten parameters."""


@dataclass(frozen=True)
class BaseParameters:
    """The visible combinations of a robot's inertial parameters."""

    names: tuple[str, ...]
    """Names of all parameters, as in `robot.parameter_names("inertial")`, then those of "drives" if these were asked for."""
    matrix: np.ndarray
    """(rank, parameters): base parameters = matrix @ robot.inertial_parameters, with the drives' behind them if these were asked for. In
    reduced row echelon form: each row is named after a parameter that no other row has."""
    pivots: tuple[int, ...]
    """The parameter that names each row."""

    @property
    def rank(self) -> int:
        """The number of visible combinations."""
        return len(self.matrix)

    @property
    def invisible(self) -> tuple[str, ...]:
        """Names of the parameters that change no force."""
        return tuple(name for name, column in zip(self.names, self.matrix.T, strict=True) if not column.any())

    @property
    def combinations(self) -> tuple[str, ...]:
        """Every base parameter as text: 'link2.Izz + link3.Iyy - 0.0825 link4.hx'."""
        return tuple(self._text(k) for k in range(self.rank))

    def values(self, robot: Robot) -> np.ndarray:
        """The base parameters (rank,) of a robot of this structure."""
        parameters = np.asarray(robot.inertial_parameters)
        if len(self.names) > len(parameters):
            parameters = np.concatenate([parameters, robot.parameters("drives")])
        result: np.ndarray = self.matrix @ parameters
        return result

    def _text(self, row: int) -> str:
        first = self.pivots[row]
        others = [k for k in np.flatnonzero(self.matrix[row]) if k != first]
        terms = [self.names[first]]
        for k in others:
            c = float(self.matrix[row, k])
            size = "" if abs(abs(c) - 1.0) < _RANK else f"{abs(c):.4g} "
            terms.append(f"{'-' if c < 0 else '+'} {size}{self.names[k]}")
        return " ".join(terms)

    def __repr__(self) -> str:
        return f"<{self.rank} base parameters of {self._parameters}>"

    @property
    def _parameters(self) -> str:
        drives = len(self.names) - sum(name.rpartition(".")[2] in INERTIAL for name in self.names)
        return f"{len(self.names) - drives} inertial parameters" + (f" and {drives} of drives" if drives else "")

    def __str__(self) -> str:
        return "\n".join([f"{self.rank} base parameters of {self._parameters}", *self.combinations])


@takes(drives=a_flag)
def base_parameters(robot: Robot, constraints: Constraint | None = None, *, drives: bool = False) -> BaseParameters:
    """The combinations of the inertial parameters that the joint forces of a robot show, from its structure.

    The row space of the result is that of all regressors: `cj.regressor(robot, q, v, a)` = X @ matrix for every state. `constraints`
    (closed loops, rolling) hold the robot to states with φ(q) = 0, A v = 0, A a = -Ȧ v, and their unknown forces hide all but N(q)ᵀ τ,
    where N is a basis of the velocities that they allow: then the row space is that of all Nᵀ Y. `drives` adds armature, damping and
    Coulomb friction of every freedom, the columns of `cj.drive_regressor`.
    """
    if not isinstance(robot, Robot):
        raise CoadjointError(f"the first argument is {type(robot).__name__}; expected a Robot, as from coadjoint.load('panda').")
    unit = _length(robot)
    units = np.tile(unit**_LENGTHS, robot.n_links)
    names = tuple(f"{link}.{number}" for link in robot.link_names for number in INERTIAL)
    matrix, pivots = _echelon(_visible(robot, unit), _preference(robot.n_links))
    if drives:
        further = robot.parameter_names("drives")
        matrix = np.block(
            [[matrix, np.zeros((len(matrix), len(further)))], [np.zeros((len(further), len(names))), np.eye(len(further))]]
        )
        pivots = (*pivots, *range(len(names), len(names) + len(further)))
        names, units = names + further, np.concatenate([units, np.ones(len(further))])
    if (robot.mimics or constraints is not None or drives) and len(matrix):
        independent = _dependent(_rows(robot, constraints, drives, pivots, len(matrix)) * units[list(pivots)])
        order = _preference(robot.n_links) + list(range(10 * robot.n_links, len(names)))
        matrix, pivots = _echelon(independent @ matrix, order)
    return BaseParameters(names, matrix / units * units[list(pivots), None], pivots)


def _visible(robot: Robot, unit: float) -> np.ndarray:
    """Rows (rank, 10 n_links) that span the visible combinations of a tree whose joints move freely.

    Lengths are measured in `unit`, a typical one, so that all numbers are of order 1 and rounding differs clearly from the rest.
    """
    n = robot.n_links
    homes = np.array(robot.placements, dtype=float)
    homes[:, :3, 3] /= unit
    gravity = np.asarray(robot.gravity, dtype=float)
    ground = np.concatenate([np.zeros(3), gravity / np.linalg.norm(gravity)])[None] if gravity.any() else np.zeros((0, 6))
    directions, known, vanish = ([np.zeros((0, size))] * n for size in (6, 10, 10))
    for i in robot.order:
        parent, home = robot.parents[i], homes[i]
        d = se3.Ad_inv_act(home, ground if parent < 0 else directions[parent])
        g = np.zeros((0, 10)) if parent < 0 else known[parent] @ _transform(home)
        z = np.zeros((0, 10))
        for screws in _steps(robot, i, unit):
            d = _closed(np.concatenate([d, screws]), [np.swapaxes(se3.ad(s), -1, -2) for s in screws])
            g = _closed(g, [_rate(s) for s in screws])
            felt = np.einsum("di,kij,sj->dsk", d, _SPATIAL, screws).reshape(-1, 10)
            z = _span(np.concatenate([z, felt, *(g @ _rate(s) for s in screws)]))
            g = _span(np.concatenate([g, felt]))
        directions[i], known[i], vanish[i] = d, g, z
    rows = [z @ carried for z, carried in zip(vanish, _composites(robot, homes), strict=True)]
    return np.concatenate([np.zeros((0, 10 * n)), *rows])


def _steps(robot: Robot, i: int, unit: float) -> list[np.ndarray]:
    """The screws of joint i, those together that move as one group; the two axes of a universal joint follow each other."""
    screws = np.array(robot.screws[robot.tree_v_slices[i]], dtype=float)
    screws[:, 3:] /= unit
    screws /= np.linalg.norm(screws, axis=-1, keepdims=True).clip(1e-300)
    if robot.kind(i).serial:
        return [screws[:1], screws[1:]]
    return [screws] if len(screws) else []


def _length(robot: Robot) -> float:
    """A typical distance between joints."""
    lengths = np.linalg.norm(np.asarray(robot.placements, dtype=float)[:, :3, 3], axis=-1)
    lengths = lengths[lengths > 0]
    return float(np.median(lengths)) if len(lengths) else 1.0


def _transform(T: np.ndarray) -> np.ndarray:
    """X (10, 10): ten parameters in the parent's frame are X @ those in the child's, T being its pose."""
    return np.asarray(inertia.transform(T, np.eye(10))).T


def _rate(screw: np.ndarray) -> np.ndarray:
    """L (10, 10): d/dq of the ten parameters of a body that moves along the screw: Σ' = [S] Σ + Σ [S]ᵀ."""
    moved = se3.hat(screw) @ _PSEUDO
    return np.asarray(inertia.from_pseudo(moved + np.swapaxes(moved, -1, -2))).T


def _span(rows: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the span of the rows."""
    sizes = np.linalg.norm(rows, axis=-1)
    rows = rows[sizes > _RANK] / sizes[sizes > _RANK, None]
    if not len(rows):
        return rows
    _, s, basis = np.linalg.svd(rows, full_matrices=False)
    result: np.ndarray = basis[s > _RANK * s[0]]
    return result


def _closed(rows: np.ndarray, maps: list[np.ndarray]) -> np.ndarray:
    """The smallest subspace that holds the rows and that every map, applied from the right, takes into itself."""
    basis = _span(rows)
    while True:
        larger = _span(np.concatenate([basis, *(basis @ A for A in maps)]))
        if len(larger) == len(basis):
            return basis
        basis = larger


def _composites(robot: Robot, homes: np.ndarray) -> list[np.ndarray]:
    """The matrices (10, 10 n_links), for every link k, that give the composite π_k at home of the inertial parameters of all links."""
    n = robot.n_links
    carried = [np.eye(10 * n)[10 * i : 10 * i + 10] for i in range(n)]
    for i in reversed(robot.order):
        parent = robot.parents[i]
        if parent >= 0:
            carried[parent] = carried[parent] + _transform(homes[i]) @ carried[i]
    return carried


def _rows(robot: Robot, constraints: Constraint | None, drives: bool, pivots: tuple[int, ...], columns: int) -> np.ndarray:
    """X (rows, columns) at random states that keep the constraints, with Nᵀ Y = X B: as B is 1 at its pivots, X is Nᵀ Y there."""
    rng = np.random.default_rng(0)
    if constraints is None:
        count = 2 * columns // max(robot.nv, 1) + 10
        q, v, a = robot.random(rng, (count,)), rng.normal(size=(count, robot.nv)), rng.normal(size=(count, robot.nv))
        allowed = None
    else:
        q, v, a, allowed = _constrained_states(robot, checked(constraints, robot), rng, columns)
    Y = as_written(regressor)(robot, q, v, a)  # compiling would take longer than so few states
    if drives:
        Y = np.concatenate([Y, as_written(drive_regressor)(robot, v, a)], axis=-1)
    Y = Y[..., list(pivots)]
    answer: np.ndarray = (Y if allowed is None else np.swapaxes(allowed, -1, -2) @ Y).reshape(-1, len(pivots))
    return answer


def _constrained_states(
    robot: Robot, constraint: Constraint, rng: np.random.Generator, columns: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """q, v, a at random on the constraint, and the velocities that it allows there, N (..., nv, freedoms)."""
    count = 2 * columns + 10  # one freedom is the least; what does not close is left out
    q = robot.random(rng, (count,))
    if len(constraint.holonomic_rows(robot)):
        home = assemble(robot, constraint, robot.neutral())  # an error says where a mechanism does not close
        near = robot.integrate(np.broadcast_to(home, q.shape), rng.normal(size=(count, robot.nv)))
        q = np.concatenate([q, near])
        q, _ = newton_steps(robot, constraint, q, STEPS, 1e-3)
        q, open_ = newton_steps(robot, constraint, q, STEPS, 0.0)
        q = np.concatenate([q[~open_], home[None]])
    d = decompose(robot, constraint, q)
    ranks, times = np.unique(d.rank, return_counts=True)
    usual = int(ranks[np.argmax(times)])  # a configuration of another rank is singular
    q, freedoms = q[d.rank == usual], robot.nv - usual
    if not freedoms:
        raise CoadjointError(f"the constraint leaves robot {robot.name!r} no freedom; nothing moves that could show a parameter.")
    q = q[: max(columns // freedoms * 2 + 10, 20)]
    A = constraint.jacobian(robot, q)
    U, s, Wt = np.linalg.svd(A)
    N = np.swapaxes(Wt[:, usual:], -1, -2)
    v = (N @ rng.normal(size=(len(q), freedoms, 1)))[..., 0]
    inverse = np.swapaxes(Wt[:, :usual], -1, -2) / s[:, None, :usual] @ np.swapaxes(U[..., :usual], -1, -2)
    a = (N @ rng.normal(size=(len(q), freedoms, 1)))[..., 0] - (inverse @ constraint.bias(robot, q, v)[..., None])[..., 0]
    return q, v, a, N


def _dependent(X: np.ndarray) -> np.ndarray:
    """(rank, columns): a basis of the row space of X, from a QR factorisation with pivoting, X P = Q (R₁ R₂): (1, R₁⁻¹ R₂) Pᵀ."""
    sizes = np.linalg.norm(X, axis=0)
    X = X / np.where(sizes > 1e-11 * sizes.max(), sizes, sizes.max())  # what the motion hides is rounding, not a column
    R, order = qr(X, mode="r", pivoting=True, check_finite=False)
    s = svdvals(R[: X.shape[1]], check_finite=False)
    rank = int((s > _RANK * s[0]).sum())
    basis = np.zeros((rank, X.shape[1]))
    basis[:, order] = np.concatenate([np.eye(rank), solve_triangular(R[:rank, :rank], R[:rank, rank:])], axis=1)
    result: np.ndarray = basis * sizes
    return result


def _preference(links: int) -> list[int]:
    """The order in which parameters give base parameters their names: moments about z and in the plane first, masses last, tips first."""
    kinds = [9, 4, 5, 6, 8, 1, 2, 7, 3, 0]
    return [10 * i + k for k in kinds for i in reversed(range(links))]


def _echelon(rows: np.ndarray, order: list[int]) -> tuple[np.ndarray, tuple[int, ...]]:
    """(reduced row echelon form, its pivots), rows in the order of the parameters.

    Pivots are chosen in the order given, large ones first: a small pivot would make rounding large.
    """
    work = rows / np.abs(rows).max(axis=-1, initial=1e-300, keepdims=True)
    pivots: dict[int, int] = {}
    free = np.ones(len(work), dtype=bool)
    for least in _PIVOTS:
        for k in order if free.any() else ():
            row = int(np.argmax(np.abs(work[:, k]) * free))
            if k in pivots or not free[row] or abs(work[row, k]) < least:
                continue
            work[row] /= work[row, k]
            others = np.flatnonzero(work[:, k])
            others = others[others != row]
            used = np.flatnonzero(work[row])
            work[np.ix_(others, used)] -= work[others, k : k + 1] * work[row, used]
            work[others, k] = 0.0
            pivots[k], free[row] = row, False
    chosen = sorted(pivots)
    matrix = work[[pivots[k] for k in chosen]]
    matrix[np.abs(matrix) < 1e-9] = 0.0
    return matrix, tuple(chosen)
