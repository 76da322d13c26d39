"""Steps that are chosen by their control: their derivatives and second derivatives along a trajectory, and the forward pass.

The next state deviates by x' = T G z; of a semi-implicit step

    G = [[1, 0, 0], [h ∂a/∂q, 1 + h ∂a/∂v, h ∂a/∂τ B]],    T = [[Ad exp(-h v'), h dexp(-h v')], [0, 1]].
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import Array, concat, mirror, mv, stack, transpose, where
from ..dynamics import forward_dynamics, forward_dynamics_derivatives, inverse_dynamics
from ..motion.discrete_mechanics import coadjoint, dexp_dual
from .shooting import Steps, concat_rows, free, substitute, wide


class ByControl(Steps):
    """The compiled functions of the steps of one stage."""

    def dynamics(self, q: Array, v: Array, u: Array, h: Array) -> Array:
        """∂x'/∂z (nx, nz)."""
        robot, n = self.robot, self.n
        if self.method == "rk4":
            from ..kernel.passes.derive import jacobian

            z = free(q, self.nz)
            return substitute(jacobian(self._moved(q, v, u, h, z), z), z, np.zeros(self.nz))
        one, tau = np.eye(n), mv(self.B, u)
        by_q, by_v, by_tau = forward_dynamics_derivatives(robot, q, v, tau)
        G = concat_rows([concat([one, np.zeros((n, n + self.m))]), concat([h * by_q, one + h * by_v, h * (by_tau @ self.B)])])
        x = h * (v + h * forward_dynamics(robot, q, v, tau))
        T = concat([coadjoint(robot, -x[None], one), h * dexp_dual(robot, -x[None], one)])
        return concat_rows([T @ G, G[n:]])

    def _moved(self, q: Array, v: Array, u: Array, h: Array, z: Array) -> Array:
        """The deviation (nx,) after the step of a state and control that deviate by z (nz,)."""
        robot, n = self.robot, self.n
        q1, v1 = self.step(q, v, u, h)
        q2, v2 = self.step(robot.integrate(q, z[:n]), v + z[n : 2 * n], u + z[2 * n :], h)
        return concat([robot.difference(q1, q2), v2 - v1])

    @functools.cached_property
    def model(self) -> Callable[..., Any]:
        """(q, v, u, numbers, q', v') -> cost (1,), gradient (nz,), Hessian (nz, sz) of Gauss and Newton's kind, ∂x'/∂z (nx, sz), and the
        gap (nx,) between where the step ends and (q', v')."""

        def model(q: Array, v: Array, u: Array, numbers: Array, q_next: Array, v_next: Array) -> tuple[Array, ...]:
            h = numbers[..., 0]
            cost, slope, curve = self.expansion(q, v, u, numbers, exact=False)
            q1, v1 = self.step(q, v, u, h)
            gap = concat([self.robot.difference(q_next, q1), v1 - v_next])
            return stack([cost]), slope, wide(curve, self.sz), wide(self.dynamics(q, v, u, h), self.sz), gap

        return self.made("model", model, self.shapes | {"q_next": (self.robot.nq,), "v_next": (self.n,)})

    @functools.cached_property
    def linear(self) -> Callable[..., Any]:
        """(q, v, u, h (1,)) -> ∂x'/∂z (nx, sz)."""

        def linear(q: Array, v: Array, u: Array, h: Array) -> Array:
            return wide(self.dynamics(q, v, u, h[..., 0]), self.sz)

        return self.made("linear", linear, {"q": (self.robot.nq,), "v": (self.n,), "u": (self.m,), "h": (1,)})

    @functools.cached_property
    def curvature(self) -> Callable[..., Any]:
        """(q, v, u, numbers, costate (nx,)) -> the Hessian (nz, sz) of cost + costate · (q', v') in z."""

        def curvature(q: Array, v: Array, u: Array, numbers: Array, costate: Array) -> Array:
            _, _, curve = self.expansion(q, v, u, numbers, exact=True)
            return wide(mirror(curve + self._second(q, v, u, numbers[..., 0], costate)), self.sz)

        return self.made("curvature", curvature, self.shapes | {"costate": (self.nx,)})

    def _second(self, q: Array, v: Array, u: Array, h: Array, costate: Array) -> Array:
        """The Hessian (nz, nz) in z of costate · (q', v') of a semi-implicit step.

        With s(δq, δv, a) that product for a given acceleration, and μ = M⁻¹ ∂s/∂a, the Lagrangian s - μ · (τ(q, v, a) - B u) has no
        slope in a, and its Hessian in (δq, δv, a) pulled back along a(z) is the one wanted: only inverse dynamics is differentiated.
        """
        from ..kernel.passes.derive import gradient, jacobian

        robot, n, m = self.robot, self.n, self.m
        tau = mv(self.B, u)
        by_q, by_v, by_tau = forward_dynamics_derivatives(robot, q, v, tau)
        a = forward_dynamics(robot, q, v, tau)
        y = free(q, 3 * n)
        moved, speed, rate = robot.integrate(q, y[:n]), v + y[n : 2 * n], a + y[2 * n :]
        s = h * (costate[n:] * rate).sum(-1)
        after = robot.integrate(q, h * (v + h * a))
        s = s + (costate[:n] * robot.difference(after, robot.integrate(moved, h * (speed + h * rate)))).sum(-1)
        pull = substitute(gradient(s, y), y, np.zeros(3 * n))[2 * n :]
        mu = mv(by_tau, pull)
        lagrangian = s - (mu * inverse_dynamics(robot, moved, speed, rate)).sum(-1)
        curve = mirror(substitute(jacobian(gradient(lagrangian, y), y), y, np.zeros(3 * n)))
        one, zero = np.eye(n), np.zeros((n, n))
        J = concat_rows(
            [
                concat([one, zero, np.zeros((n, m))]),
                concat([zero, one, np.zeros((n, m))]),
                concat([by_q, by_v, by_tau @ self.B]),
            ]
        )
        return mirror(transpose(J) @ (curve @ J))

    @functools.cached_property
    def forward(self) -> Callable[..., Any]:
        """(q, v, cost, q̄, v̄, u, K, k, gap, length, numbers[, low, high]) -> q', v', cost', u of a step of the forward pass."""
        robot, n, m = self.robot, self.n, self.m

        def forward(q: Array, v: Array, cost: Array, q0: Array, v0: Array, u: Array, *rest: Array) -> tuple[Array, ...]:
            K, k, gap, length, numbers, *box = rest
            away = concat([robot.difference(q0, q), v - v0])
            u = u + length * k + mv(K[..., : self.nx], away)
            if box:
                u = where(u < box[0], box[0], u)
                u = where(u > box[1], box[1], u)
            missed, h = (1.0 - length) * gap, numbers[..., 0]
            cost = cost + stack([h * self.cost.value(q, v, u, numbers[..., 1:])])
            q, v = self.step(q, v, u, h)
            return robot.integrate(q, -missed[..., :n]), v - missed[..., n:], cost, u

        state: dict[str, tuple[int, ...]] = {"q": (robot.nq,), "v": (n,), "cost": (1,)}
        old = {"q0": (robot.nq,), "v0": (n,), "u": (m,)}
        gains = {"K": (m, self.sx), "k": (m,), "gap": (2 * n,), "length": (1,), "numbers": self.shapes["numbers"]}
        box = {"low": (m,), "high": (m,)} if self.limited else {}
        return self.made("forward", forward, state | old | gains | box)
