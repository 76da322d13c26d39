"""Derivatives of an optimal control by the numbers of the robot: the implicit function theorem on the conditions of first order.

A number p acts in a semi-implicit step as joint forces do: the same motion asks for τ_p = ∂τ/∂p more. With the costate λ of the next state,
z = (δq, δv, δτ), D = ∂x'/∂z, H̃ the Hessian of λ · x' in z, and J = ∂(q, v, a)/∂z,

    ∂x'/∂p = -D_τ τ_p,    ∂²(λ · x')/∂z∂p = -Jᵀ ∂(Σ μ ∂τ/∂(q, v, a))/∂p - H̃_τ τ_p,    μ = D_τᵀ λ,

so that only inverse dynamics is differentiated by p. The changes of states, controls and costates solve one sparse system of equations: the
conditions of first order, linear in them. Controls and states at limits that push stay there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg

from ..arrays import Array
from ..differentiating import derivative, differential
from ..dynamics import forward_dynamics, forward_dynamics_derivatives, inverse_dynamics
from ..errors import CoadjointError
from ..robot.robot import Robot
from .by_control import ByControl
from .by_parameters import pulled_dynamics
from .cost_sums import Sum
from .costs import Term
from .differenced import STEP
from .shooting import EXACT

if TYPE_CHECKING:
    from .optimal_control import OptimalControl


@dataclass(frozen=True, eq=False, repr=False)
class ControlSensitivity:
    """Derivatives of an optimal control by a robot's parameters, which stand on the last axis, (..., P); batch axes in front."""

    parameters: str
    names: tuple[str, ...]
    """The meaning of every parameter."""
    cost: np.ndarray
    """(..., P)"""
    q: np.ndarray
    """(..., N + 1, nv, P): tangent vectors, as of `robot.integrate`."""
    v: np.ndarray
    """(..., N + 1, nv, P)"""
    u: np.ndarray
    """(..., N, m, P)"""

    def __repr__(self) -> str:
        return f"<derivatives of an optimal control by {len(self.names)} {self.parameters}>"


@dataclass(frozen=True, eq=False)
class Given:
    """What a problem was made of: the terms and numbers of its stages and of its end, the actuation, and the method of its steps."""

    stages: tuple[tuple[int, tuple[Term, ...], np.ndarray], ...]
    """Steps, terms, and numbers (P or 1, steps, 1 + n) of every stage."""
    terminal: tuple[Term, ...]
    final: np.ndarray
    """(P or 1, 1 + n)"""
    B: np.ndarray
    method: str


class _Cost:
    """A sum of terms as a function of any robot: what the traced sums of the steps have lost."""

    def __init__(self, robot: Robot, terms: Sequence[Term], m: int) -> None:
        self.terms, self.m = tuple(terms), m
        self.sizes = [[core[0] for _, _, core in term.values(robot, m)] for term in terms]

    def __call__(self, robot: Robot, q: Array, v: Array, u: Array, z: Array, numbers: Array) -> Array:
        n = robot.nv
        q, v, u = robot.integrate(q, z[..., :n]), v + z[..., n : 2 * n], u + z[..., 2 * n :]
        total, at = 0.0 * z[..., 0], 0
        for term, sizes in zip(self.terms, self.sizes, strict=True):
            given = []
            for size in sizes:
                given.append(numbers[..., at : at + size])
                at += size
            r = term.of(robot, q, v, u, *given)
            if term.weight is None:
                total = total + (r if np.shape(r) == () else r[..., 0])
                continue
            total = total + 0.5 * (numbers[..., at : at + r.shape[-1]] * r * r).sum(-1)
            at += r.shape[-1]
        return total


@dataclass
class _Expansion:
    """Derivatives of steps, or of the end, of one problem: of first and second order, and by the parameters."""

    slope: np.ndarray
    """(N, nz)"""
    H: np.ndarray
    """(N, nz, nz)"""
    by: np.ndarray
    """∂/∂p (N, P)"""
    mixed: np.ndarray
    """(N, nz, P)"""


def control_sensitivity(found: OptimalControl, parameters: str) -> ControlSensitivity:
    """Derivatives of the motion, its controls and its cost by a set of parameters, see `Robot.parameters`."""
    robot, given = found.robot, found.given
    if given is None:
        raise CoadjointError(
            "this motion has no problem with it: it was not made by `optimal_control`, or came through pickle with a cost that cannot; "
            "write that as a named function of a module."
        )
    if given.method != "euler":
        raise CoadjointError(f"derivatives of the optimum know semi-implicit steps; this motion has method={given.method!r}.")
    if not np.all(found.converged):
        bad = (
            f"{int(np.sum(~np.asarray(found.converged)))} of {found.converged.size} problems"
            if np.ndim(found.converged)
            else found.message
        )
        raise CoadjointError(f"derivatives belong to an optimum, and this motion is none: {bad}.")
    names, batch = tuple(robot.parameter_names(parameters)), found.u.shape[:-2]
    count = max(len(rows) for rows in (given.final, *(x[-1] for x in given.stages)))
    if count not in (1, int(np.prod(batch))):
        raise CoadjointError(
            f"this motion has batch axes {batch}, and was found among {count} problems; ask the whole result for derivatives."
        )
    one = _Problem(robot, given, parameters, len(names))
    parts = [
        one.solved(
            k,
            *(
                x.reshape(-1, *x.shape[len(batch) :])[k]
                for x in (found.q, found.v, found.u, found.multipliers, found.state_multipliers)
            ),
        )
        for k in range(int(np.prod(batch)))
    ]
    cost, q, v, u = (np.stack(x).reshape(*batch, *x[0].shape) for x in zip(*parts, strict=True))
    return ControlSensitivity(parameters, names, cost, q, v, u)


class _Problem:
    """The derivatives of one problem after the other."""

    def __init__(self, robot: Robot, given: Given, parameters: str, count: int) -> None:
        self.robot, self.given, self.parameters, self.count = robot, given, parameters, count
        self.n, self.m = robot.nv, given.B.shape[1]
        self.steps = ByControl(robot, Sum(()), np.eye(self.n))

    def solved(
        self, k: int, q: np.ndarray, v: np.ndarray, u: np.ndarray, held: np.ndarray, held_x: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """∂(cost, q, v, u)/∂p of problem k; held: the multipliers of limits of controls (N, m), held_x those of states (N + 1, 2 n)."""
        n, N, S = self.n, len(u), self._controls()
        parts, h, first = [], np.zeros((N, 1)), 0
        for steps, terms, numbers in self.given.stages:
            at = slice(first, first + steps)
            rows = numbers[k if len(numbers) > 1 else 0]
            h[at] = rows[:, :1]
            parts.append(self._cost(terms, q[at], v[at], u[at], rows[:, 1:], rows[:, 0]))
            first += steps
        run = _Expansion(*(np.concatenate(x) for x in zip(*(vars(part).values() for part in parts), strict=True)))
        numbers = self.given.final[k if len(self.given.final) > 1 else 0]
        end = self._cost(self.given.terminal, q[N:], v[N:], np.zeros((1, self.m)), numbers[None, 1:], np.ones(1))

        tau = u @ self.given.B.T
        D = self.steps.linear(q[:N], v[:N], tau, h)[..., : 3 * n]
        AB = D @ S
        costate = np.zeros((N + 1, 2 * n))
        costate[N] = end.slope[0, : 2 * n] + held_x[N]
        for i in reversed(range(N)):
            costate[i] = run.slope[i, : 2 * n] + AB[i, :, : 2 * n].T @ costate[i + 1] + held_x[i]
        step = self._step(q[:N], v[:N], tau, h, D, costate[1:])
        H, mixed = run.H + S.T @ step.H @ S, run.mixed + S.T @ step.mixed
        cost = run.by.sum(0) + end.by[0] + np.einsum("kx,kxp->p", costate[1:], step.by)
        dx, du = _newton(H, end.H[0, : 2 * n, : 2 * n], AB, mixed, end.mixed[0, : 2 * n], step.by, held != 0, held_x != 0)
        return cost, dx[:, :n], dx[:, n:], du

    def _controls(self) -> np.ndarray:
        """∂(δq, δv, δτ)/∂(δq, δv, δu)."""
        return np.asarray(scipy.linalg.block_diag(np.eye(2 * self.n), self.given.B))

    def _cost(
        self, terms: Sequence[Term], q: np.ndarray, v: np.ndarray, u: np.ndarray, numbers: np.ndarray, scale: np.ndarray
    ) -> _Expansion:
        nz, P = 2 * self.n + self.m, self.count
        N = len(q)
        if not terms:
            return _Expansion(np.zeros((N, nz)), np.zeros((N, nz, nz)), np.zeros((N, P)), np.zeros((N, nz, P)))
        fn = _Cost(self.robot, terms, self.m)
        shapes = {"u": (self.m,), "z": (nz,), "numbers": (numbers.shape[-1],)}
        at = q, v, u, np.zeros((N, nz)), numbers

        def made(fn: Any, wrt: str) -> np.ndarray:
            found = np.asarray(derivative(fn, self.robot, wrt, shapes=shapes)(*at))
            return np.asarray(found * scale.reshape(N, *[1] * (found.ndim - 1)))

        slope = differential(fn, "z")
        by, mixed = made(fn, self.parameters), made(slope, self.parameters)
        return _Expansion(made(fn, "z"), made(slope, "z"), by.reshape(N, P), mixed.reshape(N, nz, P))

    def _step(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, h: np.ndarray, D: np.ndarray, costate: np.ndarray) -> Any:
        """Of costate · x' in (δq, δv, δτ); `by` is ∂x'/∂p (N, 2 n, P)."""
        robot, n, N, P = self.robot, self.n, len(q), self.count
        a = forward_dynamics(robot, q, v, tau)
        mu = np.einsum("kxi,kx->ki", D[:, :, 2 * n :], costate)
        tau_p = np.asarray(derivative(inverse_dynamics, robot, self.parameters)(q, v, a)).reshape(N, n, P)
        weighted = derivative(pulled_dynamics, robot, self.parameters, shapes={"w": (n,)})(q, v, a, mu)
        H = self._curvature(q, v, tau, h, costate)
        J = np.concatenate([np.broadcast_to(np.eye(2 * n, 3 * n), (N, 2 * n, 3 * n)), _accelerations(robot, q, v, tau)], axis=1)
        mixed = -J.swapaxes(-1, -2) @ np.asarray(weighted).reshape(N, 3 * n, P) - H[:, :, 2 * n :] @ tau_p
        return _Expansion(mu, H, -D[:, :, 2 * n :] @ tau_p, mixed)

    def _curvature(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, h: np.ndarray, costate: np.ndarray) -> np.ndarray:
        """The Hessian (N, 3 n, 3 n) of costate · x'; of many freedoms by differences, of which the symmetric part is that Hessian."""
        n = self.n
        if n <= EXACT:
            return np.asarray(self.steps.curvature(q, v, tau, h, costate))[..., : 3 * n]
        one = STEP * np.eye(3 * n)[:, None]
        sides = []
        for z in (one, -one):
            at = self.robot.integrate(q, z[..., :n]), v + z[..., n : 2 * n], tau + z[..., 2 * n :]
            sides.append(np.einsum("ikxz,kx->kzi", self.steps.linear(*at, h)[..., : 3 * n], costate))
        found = (sides[0] - sides[1]) / (2.0 * STEP)
        return np.asarray(0.5 * (found + found.swapaxes(-1, -2)))


def _accelerations(robot: Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """∂a/∂(q, v, τ) (N, n, 3 n)."""
    return np.concatenate([np.asarray(x) for x in forward_dynamics_derivatives(robot, q, v, tau)], axis=-1)


def _newton(
    H: np.ndarray,
    H_end: np.ndarray,
    AB: np.ndarray,
    mixed: np.ndarray,
    mixed_end: np.ndarray,
    moved: np.ndarray,
    held: np.ndarray,
    held_x: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The changes of states (N + 1, nx, P) and controls (N, m, P): the conditions of first order, linear about a solution.

    H (N, nz, nz), ∂x'/∂z (N, nx, nz), the derivatives by p of the gradients (N, nz, P) and of the next states (N, nx, P), and which
    controls (N, m) and states (N + 1, nx) stay at their limits. Unknowns are, step by step, δu, the change of the next costate, and δx'.
    """
    N, nx, nz = AB.shape
    P, m = mixed.shape[-1], nz - nx
    per = m + 2 * nx
    rows, columns, values = [], [], []
    right = np.zeros((N * per, P))

    def put(row: int, column: int, block: np.ndarray, keep: np.ndarray) -> None:
        i, j = np.nonzero(keep[:, None] & np.ones(block.shape[1], dtype=bool))
        rows.append(row + i)
        columns.append(column + j)
        values.append(block[i, j])

    every = np.ones(nx, dtype=bool)
    for k in range(N):
        u, costate, after = k * per, k * per + m, k * per + m + nx
        before = u - nx  # of the state in which the step begins
        A, B, free = AB[k, :, :nx], AB[k, :, nx:], ~held[k]
        put(u, u, H[k, nx:, nx:], free)
        put(u, costate, B.T, free)
        put(u, u, np.eye(m), ~free)
        right[u : u + m] = np.where(free[:, None], -mixed[k, nx:], 0.0)
        put(costate, after, -np.eye(nx), every)
        put(costate, u, B, every)
        right[costate : costate + nx] = -moved[k]
        if k:
            put(u, before, H[k, nx:, :nx], free)
            put(costate, before, A, every)
        # the gradient by the next state
        going = ~held_x[k + 1]
        put(after, after, np.eye(nx), ~going)
        put(after, costate, -np.eye(nx), going)
        gradient = mixed_end
        if k + 1 < N:
            put(after, after, H[k + 1, :nx, :nx], going)
            put(after, after + nx, H[k + 1, :nx, nx:], going)
            put(after, after + nx + m, AB[k + 1, :, :nx].T, going)
            gradient = mixed[k + 1, :nx]
        else:
            put(after, after, H_end, going)
        right[after : after + nx] = np.where(going[:, None], -gradient, 0.0)
    matrix = scipy.sparse.coo_matrix(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(N * per, N * per)
    )
    try:
        found = scipy.sparse.linalg.splu(matrix.tocsc()).solve(right)
    except RuntimeError:
        found = np.full_like(right, np.nan)
    if not np.isfinite(found).all():
        raise CoadjointError("the motion is no strict minimum: a neighbouring one costs the same, and derivatives do not exist.")
    steps = found.reshape(N, per, P)
    return np.concatenate([np.zeros((1, nx, P)), steps[:, m + nx :]]), steps[:, :m]
