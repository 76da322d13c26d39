"""Steps that are chosen by the velocity w = v' after them, where every joint has its motor and configurations are vectors.

The next state (q + h w, w) is then linear in what is chosen, and the control u = B⁻¹ τ(q, v, (w - v) / h) is inverse dynamics, computed
for all steps at once: no step has to wait for the one before. With δu = E (δq, δv, δw),

    E = B⁻¹ (∂τ/∂q, ∂τ/∂v - M/h, M/h),

a cost's derivatives by (q, v, u) become those by (q, v, w).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import Array, concat, mirror, mv, stack, transpose
from ..dynamics import inverse_dynamics, inverse_dynamics_derivatives, mass_matrix_inverse
from ..robot.robot import Robot
from .shooting import Steps, concat_rows, free, substitute, wide

REGULAR = 1e8
"""The largest condition of B that is inverted."""


def goes_by_velocity(robot: Robot, B: np.ndarray) -> bool:
    """True if every joint has a motor and one coordinate."""
    square = B.shape[0] == B.shape[1] and float(np.linalg.cond(B)) < REGULAR
    return square and robot.nq == robot.nv and all(kind.group is None for kind in robot.kinds)


class ByVelocity(Steps):
    """The compiled functions of the steps of one stage."""

    def control(self, q: Array, v: Array, w: Array, h: Array) -> Array:
        """u (m,)."""
        return mv(np.linalg.inv(self.B), inverse_dynamics(self.robot, q, v, (w - v) / h))

    def _turned(self, curve: Array, E: Array) -> Array:
        """Sᵀ C S for z = S (δq, δv, δw)."""
        S = concat_rows([concat([np.eye(self.nx), np.zeros((self.nx, self.m))]), E])
        return mirror(transpose(S) @ (curve @ S))

    @property
    def _given(self) -> dict[str, tuple[int, ...]]:
        return {"q": (self.n,), "v": (self.n,), "w": (self.n,), "numbers": self.shapes["numbers"]}

    @functools.cached_property
    def model(self) -> Callable[..., Any]:
        """(q, v, w, numbers) -> cost (1,), u (m,), gradients (nz,) by (q, v, u) and by (q, v, w), Hessian (nz, sz) by (q, v, w) of
        Gauss and Newton's kind, E (m, sz), ∂w/∂u (n, m)."""
        nx = self.nx

        def model(q: Array, v: Array, w: Array, numbers: Array) -> tuple[Array, ...]:
            h = numbers[..., 0]
            by_q, by_v, M = inverse_dynamics_derivatives(self.robot, q, v, (w - v) / h)
            E = np.linalg.inv(self.B) @ concat([by_q, by_v - M / h, M / h])
            u = self.control(q, v, w, h)
            cost, slope, curve = self.expansion(q, v, u, numbers, exact=False)
            turned = concat([slope[:nx], np.zeros(self.m)]) + mv(transpose(E), slope[nx:])
            response = h * (mass_matrix_inverse(self.robot, q) @ self.B)
            return stack([cost]), u, slope, turned, wide(self._turned(curve, E), self.sz), wide(E, self.sz), response

        return self.made("model", model, self._given)

    @functools.cached_property
    def curvature(self) -> Callable[..., Any]:
        """(q, v, w, numbers, u, gradient (nz,) by (q, v, u), E (m, sz)) -> the exact Hessian (nz, sz) by (q, v, w)."""

        def curvature(q: Array, v: Array, w: Array, numbers: Array, u: Array, slope: Array, E: Array) -> Array:
            _, _, curve = self.expansion(q, v, u, numbers, exact=True)
            second = self._second(q, v, w, numbers[..., 0], slope[self.nx :])
            return wide(mirror(self._turned(curve, E[:, : self.nz]) + second), self.sz)

        return self.made("curvature", curvature, self._given | {"u": (self.m,), "slope": (self.nz,), "E": (self.m, self.sz)})

    def _second(self, q: Array, v: Array, w: Array, h: Array, weight: Array) -> Array:
        """The Hessian (nz, nz) of weight · u by (q, v, w): of joint forces by (q, v, a), which are linear in a, at a = (w - v) / h."""
        from ..kernel.passes.derive import gradient, jacobian

        n = self.n
        y = free(q, 3 * n)
        tau = inverse_dynamics(self.robot, q + y[:n], v + y[n : 2 * n], (w - v) / h + y[2 * n :])
        slope = gradient((mv(np.linalg.inv(self.B).T, weight) * tau).sum(-1), y)
        curve = substitute(jacobian(slope[: 2 * n], y), y, np.zeros(3 * n))
        qq, qv, qa, vv = (curve[i : i + n, j : j + n] for i, j in ((0, 0), (0, n), (0, 2 * n), (n, n)))
        zero = np.zeros((n, n))  # below the diagonal nothing is read
        return mirror(concat_rows([concat([qq, qv - qa / h, qa / h]), concat([zero, vv, zero]), np.zeros((n, 3 * n))]))

    @functools.cached_property
    def forward(self) -> Callable[..., Any]:
        """(q, v, w, numbers) -> u (m,), cost (1,)."""

        def forward(q: Array, v: Array, w: Array, numbers: Array) -> tuple[Array, Array]:
            h = numbers[..., 0]
            u = self.control(q, v, w, h)
            return u, stack([h * self.cost.value(q, v, u, numbers[..., 1:])])

        return self.made("forward", forward, self._given)
