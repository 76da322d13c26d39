"""The costs of a step and of the end of an optimal control problem: compiled functions of the state and the control, with derivatives.

Deviations z = (δq, δv, δu) are tangent vectors, q ⊕ δq as in `robot.integrate`. Rows of Hessians are filled up with zeros to multiples of
eight, as programs read them (`layout.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays import Array, concat, mirror, mv, stack, transpose
from ..dynamics import forward_dynamics
from ..dynamics.steps import rk4_step
from ..families import built
from ..memo import recent
from ..robot.robot import Robot
from .cost_sums import Sum
from .layout import filled

METHODS = ("euler", "rk4")
EXACT = 20
"""Up to this many freedoms second derivatives of the dynamics are compiled."""


class Costs:
    """A cost as compiled functions; with `final` that at the end, of the state alone."""

    final = True

    def __init__(self, robot: Robot, cost: Sum, B: np.ndarray, method: str = "euler", limited: bool = False) -> None:
        self.robot, self.cost, self.B, self.method, self.limited = robot, cost, B, method, limited
        self.n, self.m = robot.nv, B.shape[1]
        self.nx, self.nz = 2 * self.n, 2 * self.n + (0 if self.final else self.m)
        self.sx, self.sz = filled(self.nx), filled(self.nz)
        self.shapes: dict[str, tuple[int, ...]] = {"q": (robot.nq,), "v": (robot.nv,), "u": (self.m,), "numbers": (1 + cost.size,)}

    def __reduce__(self) -> Any:
        return type(self), (self.robot, self.cost, self.B, self.method, self.limited)

    @property
    def key(self) -> tuple[Any, ...]:
        return type(self).__name__, self.cost, self.B.shape, self.B.tobytes(), self.method, self.limited

    def made(self, name: str, fn: Callable[..., Any], shapes: Mapping[str, tuple[int, ...]]) -> Callable[..., Any]:
        return recent(self.robot, (name, self.key), lambda: built(self.robot, fn, shapes, name))

    def expansion(self, q: Array, v: Array, u: Array, numbers: Array, exact: bool) -> tuple[Array, Array, Array]:
        """The cost, its gradient (nz,) and its Hessian (nz, nz), of Gauss and Newton's kind unless exact."""
        from ..kernel.passes.derive import gradient, jacobian

        robot, n, nz = self.robot, self.n, self.nz
        scale = 1.0 if self.final else numbers[..., 0]
        z = free(q, nz)
        at = robot.integrate(q, z[:n]), v + z[n : 2 * n], u if self.final else u + z[2 * n :]
        total: Array = 0.0 * numbers[..., 0]
        slope, curve = 0.0 * z, np.zeros((nz, nz))
        for part, own, weight in self.cost.split(numbers[..., 1:]):
            r = part(*at, own)
            if weight is None or exact:
                value = r if weight is None else 0.5 * (weight * r * r).sum(-1)
                first = gradient(value, z)
                total, slope, curve = total + value, slope + first, curve + mirror(jacobian(first, z))
            else:
                J = jacobian(r, z)
                total, slope = total + 0.5 * (weight * r * r).sum(-1), slope + mv(transpose(J), weight * r)
                curve = curve + mirror(transpose(J) @ (weight[..., None] * J))
        zero = np.zeros(nz)
        total, slope, curve = (substitute(x, z, zero) for x in (total, slope, curve))
        return scale * total, scale * slope, scale * curve

    @functools.cached_property
    def model(self) -> Callable[..., Any]:
        """(q, v, u, numbers) -> cost (1,), gradient (nx,), Hessian (nx, sx) of Gauss and Newton's kind."""

        def model(q: Array, v: Array, u: Array, numbers: Array) -> tuple[Array, ...]:
            cost, slope, curve = self.expansion(q, v, u, numbers, exact=False)
            return stack([cost]), slope, wide(curve, self.sx)

        return self.made("model", model, self.shapes)

    @functools.cached_property
    def curvature(self) -> Callable[..., Any]:
        """(q, v, u, numbers) -> the exact Hessian (nx, sx)."""

        def curvature(q: Array, v: Array, u: Array, numbers: Array) -> Array:
            return wide(mirror(self.expansion(q, v, u, numbers, exact=True)[2]), self.sx)

        return self.made("curvature", curvature, self.shapes)

    @functools.cached_property
    def value(self) -> Callable[..., Any]:
        """(q, v, u, numbers) -> cost (1,)."""

        def value(q: Array, v: Array, u: Array, numbers: Array) -> Array:
            return stack([self.cost.value(q, v, u, numbers[..., 1:]) * (1.0 if self.final else numbers[..., 0])])

        return self.made("value", value, self.shapes)


class Steps(Costs):
    """Steps of the dynamics: q' = q ⊕ h v', v' = v + h a(q, v, B u), semi-implicit, or Runge and Kutta's."""

    final = False

    def step(self, q: Array, v: Array, u: Array, h: Array) -> tuple[Array, Array]:
        robot, tau = self.robot, mv(self.B, u)
        if self.method == "rk4":
            return rk4_step(robot, q, v, h, lambda q, v, t: forward_dynamics(robot, q, v, tau), h)
        v = v + h * forward_dynamics(robot, q, v, tau)
        return robot.integrate(q, h * v), v


def wide(A: Array, columns: int) -> Array:
    """A (..., k, columns), with columns of zeros."""
    return concat([A, np.zeros((A.shape[-2], columns - A.shape[-1]))])


def concat_rows(parts: Sequence[Array]) -> Array:
    return transpose(concat([transpose(x) for x in parts]))


def free(x: Array, size: int) -> Array:
    """New symbols of the trace that x belongs to."""
    from ..kernel.trace.expr import Expr
    from ..kernel.trace.trace import variables

    table = next(y.table for y in x.ravel().tolist() if isinstance(y, Expr))
    return variables(table, ("free", len(table.op)), (size,))


def substitute(y: Array, symbols: Array, values: np.ndarray) -> Array:
    """y with values in the place of symbols."""
    from ..kernel.passes.derive import substitute

    return substitute(y, symbols, values)
