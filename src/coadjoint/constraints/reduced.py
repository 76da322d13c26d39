"""Independent coordinates: a closed mechanism described by as many coordinates as it has freedoms.

With the velocities split into independent ones s and dependent ones d, A v = 0 gives v = S ṡ with S = (1, -A_d⁻¹ A_s), and as S is
constant in its first rows, Ṡ ṡ = (0, -A_d⁻¹ Ȧ v). Then (22) of Žefran & Bullo (2004) is

    m(s) s̈ + Sᵀ (h + M Ṡ ṡ) = Sᵀ τ,     m = Sᵀ M S.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arguments import floats, states
from ..dynamics.composite import mass_matrix
from ..dynamics.newton_euler import bias_force
from ..errors import CoadjointError, unknown
from ..robot.robot import Robot
from .constraint import Constraint, checked
from .manifold import assemble
from .metric_rows import pseudo_inverse
from .rank import ConstraintError, decompose


class Reduced:
    """The equations of a constrained robot in independent coordinates, chosen near one configuration."""

    def __init__(self, robot: Robot, constraint: Constraint, q: Any, independent: Sequence[str] | None = None) -> None:
        """`independent` has names of `robot.v_names`; by default, the choice with the best conditioned A_d at q (nq,)."""
        (q,) = states(robot, q=(q, robot.nq))
        if q.ndim != 1:
            raise CoadjointError(f"q has shape {q.shape}; expected one configuration ({robot.nq},).")
        self.robot, self.constraint = robot, (constraint := checked(constraint, robot))
        names = robot.v_names
        rank = int(decompose(robot, constraint, q).rank)
        self.freedoms = robot.nv - rank
        A = constraint.jacobian(robot, q)
        if independent is None:
            from scipy.linalg import qr

            order = qr(A / np.linalg.norm(A, axis=1, keepdims=True).clip(1e-300), pivoting=True, mode="r")[1]
            chosen = sorted(order[rank:].tolist())
        else:
            independent = [independent] if isinstance(independent, str) else list(independent)
            for name in independent:
                if name not in names:
                    raise unknown("velocity", name, names)
            chosen = [names.index(name) for name in independent]
            if len(set(chosen)) != self.freedoms:
                raise ConstraintError(f"{len(set(chosen))} coordinates are chosen; the robot has {self.freedoms} freedoms at q.")
        self.s = np.array(chosen, dtype=int)
        self.d = np.array([k for k in range(robot.nv) if k not in chosen], dtype=int)
        self.independent = tuple(names[k] for k in self.s)
        self.dependent = tuple(names[k] for k in self.d)
        self._check_regular(A)

    def _check_regular(self, A: np.ndarray) -> None:
        values = self._leading(A)
        worst = values.min() if values.size else 1.0
        if worst < 1e-7:
            raise ConstraintError(
                f"{', '.join(self.independent)} cannot lead: at this configuration the others ({', '.join(self.dependent)}) move "
                "without them, a dead centre. Choose others, or leave the choice to the library."
            )

    def _leading(self, A: np.ndarray) -> np.ndarray:
        """The smallest relevant singular value (...) of A_d, rows scaled to length one."""
        scaled = A / np.linalg.norm(A, axis=-1, keepdims=True).clip(1e-300)
        values = np.linalg.svd(scaled[..., self.d], compute_uv=False)
        return values[..., len(self.d) - 1] if len(self.d) else np.ones(A.shape[:-2])

    def is_singular(self, q: Any, below: float = 1e-6) -> np.ndarray:
        """True if the independent coordinates no longer determine the others at q (..., nq): dead centres and changes of mode."""
        return self._leading(self.constraint.jacobian(self.robot, floats(q, "q"))) < below

    def _solve(self, A: np.ndarray, right: np.ndarray) -> np.ndarray:
        """A_d⁻¹ right, also with redundant rows."""
        result: np.ndarray = pseudo_inverse(A[..., self.d], np.abs(A).max((-2, -1))) @ right
        return result

    def basis(self, q: Any) -> np.ndarray:
        """S (..., nv, freedoms)."""
        q = floats(q, "q")
        A = self.constraint.jacobian(self.robot, q)
        S = np.zeros((*q.shape[:-1], self.robot.nv, self.freedoms))
        S[..., self.s, np.arange(self.freedoms)] = 1.0
        S[..., self.d, :] = -self._solve(A, A[..., self.s])
        return S

    def velocity(self, q: Any, rates: Any) -> np.ndarray:
        """v (..., nv) of independent velocities (..., freedoms)."""
        result: np.ndarray = np.einsum("...ij,...j->...i", self.basis(q), np.asarray(rates, dtype=float))
        return result

    def inertia(self, q: Any) -> np.ndarray:
        """m = Sᵀ M S (..., freedoms, freedoms)."""
        S = self.basis(q)
        result: np.ndarray = np.swapaxes(S, -1, -2) @ mass_matrix(self.robot, q) @ S
        return result

    def rate(self, q: Any, v: Any) -> np.ndarray:
        """Ṡ ṡ (..., nv)."""
        A, bias = self.constraint.jacobian(self.robot, q), self.constraint.bias(self.robot, q, v)
        found = np.zeros((*bias.shape[:-1], self.robot.nv))
        found[..., self.d] = -self._solve(A, bias[..., None])[..., 0]
        return found

    def dynamics(self, q: Any, rates: Any, tau: Any) -> np.ndarray:
        """s̈ (..., freedoms) for independent velocities (..., freedoms) and joint forces τ (..., nv)."""
        S, M = self.basis(q), mass_matrix(self.robot, q)
        v = np.einsum("...ij,...j->...i", S, np.asarray(rates, dtype=float))
        force = np.asarray(tau, dtype=float) - bias_force(self.robot, q, v) - np.einsum("...ij,...j->...i", M, self.rate(q, v))
        St = np.swapaxes(S, -1, -2)
        return np.linalg.solve(St @ M @ S, (St @ force[..., None]))[..., 0]

    def configuration(self, values: Any, guess: Any) -> np.ndarray:
        """q (nq,) that closes with these values of the independent coordinates (joints of one freedom), near a guess."""
        values = np.asarray(values, dtype=float).reshape(-1)
        guess = np.array(guess, dtype=float)
        if values.shape != (self.freedoms,):
            raise CoadjointError(f"values has shape {values.shape}; expected ({self.freedoms},): {', '.join(self.independent)}.")
        for name, value in zip(self.independent, values, strict=True):
            guess[self.robot.q_slice(name)] = value
        return assemble(self.robot, self.constraint, guess, fixed=self.independent)
