"""Pseudo-velocities: motion described by as many velocities as there are freedoms. Žefran & Bullo (2004), (21), (22).

v = S(q) η,   Sᵀ M S dη/dt + Sᵀ (M Ṡ η + h) = Sᵀ τ,   A S = 0, h the forces of velocities and gravity at v
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arguments import floats
from ..arrays import Array, ArrayLike, mv, solve_spd, transpose
from ..dynamics.composite import mass_matrix
from ..dynamics.newton_euler import bias_force
from ..errors import CoadjointError, ShapeError
from ..kernel.dispatch import kernel
from ..robot.robot import Robot
from ..traced import Traced, evaluated, traced
from .constraint import Constraint, checked
from .functions import graph_of, unpacked
from .rank import ConstraintError


class PseudoVelocities:
    """Velocities v = S(q) η for a basis fn(q) -> S (nv, k), written with array operations for q (nq,).

    fn is run on symbols each time it is used, and sees the present values of the variables that it reads; `frozen` keeps those of one
    moment.
    """

    __slots__ = ("fn",)
    fn: Callable[[Array], Array]

    def __init__(self, fn: Callable[[Array], Array]) -> None:
        if not callable(fn):
            raise CoadjointError(f"expected a function of q that returns S (nv, k), not {fn!r}.")
        self.fn = fn

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PseudoVelocities) and self.fn == other.fn

    def __hash__(self) -> int:
        return hash(self.fn)

    def _traced(self, robot: Robot) -> Traced:
        """The present trace of fn."""
        if isinstance(self.fn, Traced):
            return self.fn

        def run(q: Array) -> Array:
            from ..kernel.trace.symbols import symbols

            S = symbols(unpacked(self.fn(q)))
            if S.ndim != 2 or S.shape[0] != robot.nv:
                raise ShapeError(f"the basis has shape {S.shape}; expected ({robot.nv}, k), a column for each pseudo-velocity.")
            return S

        return traced(run, {"q": (robot.nq,)}, "basis")

    def frozen(self, robot: Robot) -> PseudoVelocities:
        """This basis with the function as traced now: later changes of the variables that it reads have no effect."""
        return self if isinstance(self.fn, Traced) else PseudoVelocities(self._traced(robot))

    def identity(self, robot: Robot) -> str:
        """A text that identifies the basis, for the key of compiled code."""
        return self._traced(robot).digest

    def basis(self, robot: Robot, q: Array) -> Array:
        """S (..., nv, k)."""
        return pseudo_basis(robot, self, q)

    def velocity(self, robot: Robot, q: Array, eta: Array) -> Array:
        """v = S η (..., nv), (21)."""
        return mv(self.basis(robot, q), eta)

    def of(self, robot: Robot, q: Array, v: Array) -> Array:
        """η (..., k) of a velocity in the span of S, in any other the nearest by kinetic energy: (Sᵀ M S)⁻¹ Sᵀ M v."""
        S, M = self.basis(robot, q), mass_matrix(robot, q)
        St = transpose(S) @ M
        return solve_spd(St @ S, mv(St, v)[..., None])[..., 0]

    def inertia(self, robot: Robot, q: Array) -> Array:
        """Sᵀ M S (..., k, k): the constrained mass matrix."""
        S = self.basis(robot, q)
        return transpose(S) @ mass_matrix(robot, q) @ S

    def rate(self, robot: Robot, q: Array, eta: Array) -> Array:
        """Ṡ η (..., nv), Ṡ along v = S η."""
        basis = self._traced(robot)

        def run(q: Array, eta: Array) -> Array:
            from ..kernel.passes.derive import jvp

            v = mv(basis(q), eta)
            return jvp(v, q, robot.rate(q, v))

        return evaluated(graph_of(robot, (basis, "rate"), run, q=(robot.nq,), eta=(basis.shape[1],)), q, eta)

    def dynamics(self, robot: Robot, q: Array, eta: Array, tau: Array) -> Array:
        """dη/dt (..., k) under joint forces τ (..., nv), (22)."""
        S, M = self.basis(robot, q), mass_matrix(robot, q)
        h = bias_force(robot, q, mv(S, eta)) + mv(M, self.rate(robot, q, eta))
        St = transpose(S)
        return solve_spd(St @ M @ S, mv(St, tau - h)[..., None])[..., 0]

    def check(self, robot: Robot, constraint: Constraint, q: Any) -> None:
        """An error where A S = 0 does not hold at q, or S has not as many columns as the robot has freedoms."""
        A, S = checked(constraint).jacobian(robot, q), self.basis(robot, q)
        wrong = np.abs(A @ S).max(-1)
        if (wrong > 1e-9 * (1.0 + np.abs(A).max() * np.abs(S).max())).any():
            name = constraint.names(robot)[int(np.argmax(wrong.reshape(-1, wrong.shape[-1]).max(0)))]
            raise ConstraintError(f"the basis moves against row {name!r}: A S is {wrong.max():.3g} there, expected 0.")
        freedoms = robot.nv - np.linalg.matrix_rank(A)
        if np.any(freedoms != S.shape[-1]):
            raise ConstraintError(f"the basis has {S.shape[-1]} columns; the constraint leaves {np.max(freedoms)} freedoms.")


@kernel("nv k", q="nq")
def pseudo_basis(robot: Robot, basis: PseudoVelocities, q: Array) -> Array:
    """S(q) (..., nv, k)."""
    return basis._traced(robot)(q)


def null_space(robot: Robot, constraint: Constraint, q: ArrayLike) -> np.ndarray:
    """A basis S (..., nv, freedoms) of the velocities that a constraint allows at q, orthonormal in the metric: Sᵀ M S = 1.

    From singular values: not a smooth function of q. All q of a batch have the same number of freedoms.
    """
    from .rank import decompose

    d = decompose(robot, constraint, floats(q, "q"))
    ranks = np.unique(d.rank)
    if not len(ranks):
        raise ConstraintError("q is an empty batch, and the number of freedoms is only known at a configuration; give one or more.")
    if len(ranks) > 1:
        raise ConstraintError(
            f"the constraint has rank {' and '.join(map(str, ranks))} in the batch; take states of one rank at a time."
        )
    r = int(ranks[0])
    W = np.swapaxes(d.Wt[..., :r, :], -1, -2)
    full = np.linalg.qr(W, mode="complete")[0][..., r:]
    return np.linalg.solve(np.swapaxes(d.L, -1, -2), full)
