"""Steps of an optimal control problem as compiled functions: their values, derivatives and second derivatives along a trajectory.

A state x = (q, v) moves by q' = q ⊕ h v', v' = v + h a(q, v, B u), semi-implicitly, or by Runge and Kutta's method. Deviations z =
(δq, δv, δu) are tangent vectors, q ⊕ δq as in `robot.integrate`. A step's derivative is written T G: for the semi-implicit one

    G = [[1, 0, 0], [h ∂a/∂q, 1 + h ∂a/∂v, h ∂a/∂τ B]],    T = [[Ad exp(-h v'), h dexp(-h v')], [0, 1]],

so that what is constant in them, found when they are traced, costs nothing in the backward pass.

Where every joint has its motor and no limit, the backward pass goes by the velocity w = v' in the place of u, of which the next state is
a constant function: δu = E (δq, δv, δw) with E = B⁻¹ (∂τ/∂q, ∂τ/∂v - M/h, M/h), derivatives of inverse dynamics. What this moves into
the Hessians is computed for all steps at once, and one step of the recursion, which has to wait for the next, has a third of the work.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array, concat, mirror, mv, stack, transpose, where
from ..dynamics import (
    forward_dynamics,
    forward_dynamics_derivatives,
    from_triangle,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    triangle,
)
from ..dynamics.steps import rk4_step
from ..errors import ShapeError
from ..families import built
from ..memo import recent
from ..motion.discrete_mechanics import coadjoint, dexp_dual
from ..robot.robot import Robot
from ..traced import Traced, traced
from .costs import Term
from .riccati import adjoint_step, backward_step

METHODS = ("euler", "rk4")
LARGEST = 10
"""Up to this many freedoms the backward pass is compiled; beyond, the products of matrices run in NumPy, whose loops are shorter code."""
EXACT = 20
"""Up to this many freedoms second derivatives of the dynamics are compiled."""


class Pattern:
    """Where an array has constants, and where which of its other entries."""

    def __init__(self, nodes: Sequence[int], op: Sequence[str], value: Sequence[Any], shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.nodes = list(dict.fromkeys(k for k in nodes if op[k] != "const"))
        slots = {k: i for i, k in enumerate(self.nodes)}
        constants = list(dict.fromkeys(value[k] for k in nodes if op[k] == "const"))
        self.constants = np.array(constants)
        self.index = np.array([slots[k] if k in slots else len(slots) + constants.index(value[k]) for k in nodes], dtype=int)
        self.first = [list(nodes).index(k) for k in self.nodes]
        """The places, in the whole array, of the entries that differ."""

    @property
    def size(self) -> int:
        return len(self.nodes)

    @property
    def key(self) -> tuple[Any, ...]:
        return self.shape, self.constants.tobytes(), self.index.tobytes()

    def whole(self, entries: Array) -> Array:
        """The array (..., *shape) from its entries (..., size)."""
        constants = np.broadcast_to(self.constants, (*entries.shape[:-1], len(self.constants)))
        return concat([entries, constants])[..., self.index].reshape((*entries.shape[:-1], *self.shape))


@dataclass(frozen=True)
class Sum:
    """A traced sum of terms: residuals with weights, and functions."""

    parts: tuple[tuple[Traced, int, int], ...]
    """The traced residual or function of (q, v, u, numbers), how many numbers it reads, and how many weights (0: a function)."""

    @property
    def size(self) -> int:
        return sum(n + k for _, n, k in self.parts)

    def split(self, numbers: Array) -> list[tuple[Traced, Array, Array | None]]:
        found, at = [], 0
        for part, n, k in self.parts:
            weight = numbers[..., at + n : at + n + k] if k else None
            found.append((part, numbers[..., at : at + n], weight))
            at += n + k
        return found

    def value(self, q: Array, v: Array, u: Array, numbers: Array) -> Array:
        """(...)."""
        total: Array = 0.0 * q[..., 0] if q.shape[-1] else 0.0 * v.sum(-1)
        for part, reads, weight in self.split(numbers):
            r = part(q, v, u, reads)
            total = total + (r if weight is None else 0.5 * (weight * r * r).sum(-1))
        return total


def traced_sum(robot: Robot, m: int, terms: Sequence[Term]) -> tuple[Sum, list[np.ndarray]]:
    """The sum of the terms for m controls, and the numbers (..., n) that it reads."""
    parts, numbers = [], []
    for term in terms:
        values = term.values(robot, m)
        sizes = [core[0] for _, _, core in values]

        def run(q: Array, v: Array, u: Array, reads: Array, term: Term = term, sizes: list[int] = sizes) -> Array:
            ends = np.cumsum([0, *sizes])
            given = [reads[..., i:j] for i, j in itertools.pairwise(ends)]
            found = term.of(robot, q, v, u, *given)
            if term.weight is None and np.shape(found) not in ((), (1,)):
                raise ShapeError(f"the cost {term.name} gave an array of shape {np.shape(found)}; expected a number.")
            if term.weight is None:
                return found if np.shape(found) == () else found[..., 0]
            if len(np.shape(found)) != 1:
                raise ShapeError(f"the residual {term.name} gave an array of shape {np.shape(found)}; expected (k,).")
            return found

        shapes = {"q": (robot.nq,), "v": (robot.nv,), "u": (m,), "reads": (sum(sizes),)}
        found = traced(run, shapes, "cost")
        count = 0
        numbers += [x for _, x, _ in values]
        if term.weight is not None:
            (count,) = found.shape
            if term.weight.shape[-1] not in (1, count):
                raise ShapeError(
                    f"the weight of the cost {term.name} has shape {term.weight.shape}; expected a number or (..., {count})."
                )
            numbers.append(np.broadcast_to(term.weight, (*term.weight.shape[:-1], count)))
        parts.append((found, sum(sizes), count))
    return Sum(tuple(parts)), numbers


class Steps:
    """The compiled functions of the steps of one stage, and of the terminal cost where `final`."""

    def __init__(
        self, robot: Robot, cost: Sum, B: np.ndarray, method: str, limited: bool, final: bool = False, direct: bool | None = None
    ) -> None:
        self.robot, self.cost, self.B, self.method, self.limited, self.final = robot, cost, B, method, limited, final
        self.n, self.m = robot.nv, B.shape[1]
        self.nx, self.nz = 2 * self.n, 2 * self.n + (0 if final else self.m)
        if direct is None:
            direct = method == "euler" and not limited and not final and robot.nv <= LARGEST and _invertible(B)
        self.direct = direct
        """Whether the backward pass goes by velocities; see above."""
        self.key = (cost, B.shape, B.tobytes(), method, limited, final, direct)
        self.shapes: dict[str, tuple[int, ...]] = {"q": (robot.nq,), "v": (robot.nv,), "u": (self.m,), "numbers": (1 + cost.size,)}
        if not final:
            self.pattern_T, self.pattern_G = recent(robot, ("patterns", self.key), self._patterns)

    def _made(self, name: str, fn: Callable[..., Any], shapes: Mapping[str, tuple[int, ...]], *more: Any) -> Callable[..., Any]:
        return recent(self.robot, (name, self.key, *more), lambda: built(self.robot, fn, shapes, name))

    # --- a step and its derivatives

    def step(self, q: Array, v: Array, u: Array, h: Array) -> tuple[Array, Array]:
        robot, tau = self.robot, mv(self.B, u)
        if self.method == "rk4":
            return rk4_step(robot, q, v, h, lambda q, v, t: forward_dynamics(robot, q, v, tau), h)
        v = v + h * forward_dynamics(robot, q, v, tau)
        return robot.integrate(q, h * v), v

    def _linear(self, q: Array, v: Array, u: Array, numbers: Array) -> tuple[Array, Array]:
        """T and G at a state."""
        robot, n, h = self.robot, self.n, numbers[..., 0]
        one = np.eye(n)
        if self.method == "rk4":
            moved = lambda z: self._tangent(q, v, u, h, z)
            return np.eye(self.nx), _jacobian(moved, np.zeros(self.nz), q)
        tau = mv(self.B, u)
        by_q, by_v, by_tau = forward_dynamics_derivatives(robot, q, v, tau)
        G = concat_rows([concat([one, np.zeros((n, n + self.m))]), concat([h * by_q, one + h * by_v, h * (by_tau @ self.B)])])
        x = h * (v + h * forward_dynamics(robot, q, v, tau))
        turned = coadjoint(robot, -x[None], one)
        spread = dexp_dual(robot, -x[None], one)
        return concat_rows([concat([turned, h * spread]), concat([np.zeros((n, n)), one])]), G

    def _tangent(self, q: Array, v: Array, u: Array, h: Array, z: Array) -> Array:
        """The deviation (nx,) after the step of a state and control that deviate by z (nz,)."""
        robot, n = self.robot, self.n
        q1, v1 = self.step(q, v, u, h)
        q2, v2 = self.step(robot.integrate(q, z[:n]), v + z[n : 2 * n], u + z[2 * n :], h)
        return concat([robot.difference(q1, q2), v2 - v1])

    def _patterns(self) -> tuple[Pattern, Pattern]:
        from ..kernel.trace.trace import trace

        graph = trace(self._linear, self.shapes, "linear")
        return tuple(  # type: ignore[return-value]
            Pattern(nodes, graph.op, graph.value, shape) for nodes, shape in zip(graph.outputs, graph.output_shapes, strict=True)
        )

    def _expansion(self, q: Array, v: Array, u: Array, numbers: Array, exact: bool) -> tuple[Array, Array, Array]:
        """The cost of a step, its gradient (nz,) and its Hessian (nz, nz), of Gauss and Newton's kind unless exact."""
        from ..kernel.passes.derive import gradient, jacobian

        h, reads = numbers[..., 0], numbers[..., 1:]
        robot, n, nz = self.robot, self.n, self.nz
        scale = 1.0 if self.final else h

        def at(z: Array) -> tuple[Array, Array, Array]:
            return robot.integrate(q, z[:n]), v + z[n : 2 * n], u if self.final else u + z[2 * n :]

        z = _free(q, nz)
        total: Array = 0.0 * numbers[..., 0]
        slope, curve = 0.0 * z, np.zeros((nz, nz))
        for part, own, weight in self.cost.split(reads):
            r = part(*at(z), own)
            if weight is None or exact:
                value = r if weight is None else 0.5 * (weight * r * r).sum(-1)
                first = gradient(value, z)
                total, slope, curve = total + value, slope + first, curve + jacobian(first, z)
            else:
                J = jacobian(r, z)
                total, slope = total + 0.5 * (weight * r * r).sum(-1), slope + mv(transpose(J), weight * r)
                curve = curve + mirror(transpose(J) @ (weight[..., None] * J))
        zero = np.zeros(nz)
        total, slope, curve = (_substitute(x, z, zero) for x in (total, slope, curve))
        return scale * total, scale * slope, scale * curve

    # --- compiled

    @functools.cached_property
    def model(self) -> Callable[..., Any]:
        """(q, v, u, numbers, q', v') -> cost (1,), gradient (nz,), triangle of the Hessian, entries of T and of G, and the gap (nx,)
        between where the step ends and (q', v'); of a terminal cost (q, v, u, numbers) -> the first three. Where `direct`, the Hessian is
        by velocities, and there are two more: the gradient by velocities, and E (m · nz)."""

        def end(q: Array, v: Array, u: Array, numbers: Array) -> tuple[Array, ...]:
            cost, slope, curve = self._expansion(q, v, u, numbers, exact=False)
            return stack([cost]), slope, triangle(curve)

        def model(q: Array, v: Array, u: Array, numbers: Array, q_next: Array, v_next: Array) -> tuple[Array, ...]:
            parts = zip(self._linear(q, v, u, numbers), (self.pattern_T, self.pattern_G), strict=True)
            entries = [x.reshape(-1)[p.first] for x, p in parts]
            q1, v1 = self.step(q, v, u, numbers[..., 0])
            gap = concat([self.robot.difference(q_next, q1), v1 - v_next])
            if not self.direct:
                return (*end(q, v, u, numbers), concat(entries), gap)
            cost, slope, curve = self._expansion(q, v, u, numbers, exact=False)
            E = self._exchange(q, v, u, numbers[..., 0])
            S = self._by_velocity(E)
            turned = mv(transpose(S), slope)
            return stack([cost]), slope, triangle(self._turned(curve, S)), concat(entries), gap, turned, E.reshape(-1)

        if self.final:
            return self._made("model", end, self.shapes)
        return self._made("model", model, self.shapes | {"q_next": (self.robot.nq,), "v_next": (self.n,)})

    @functools.cached_property
    def linear(self) -> Callable[..., Any]:
        """(q, v, u, h (1,)) -> the entries of T and of G."""

        def linear(q: Array, v: Array, u: Array, h: Array) -> Array:
            parts = zip(self._linear(q, v, u, h), (self.pattern_T, self.pattern_G), strict=True)
            return concat([x.reshape(-1)[p.first] for x, p in parts])

        return self._made("linear", linear, {"q": (self.robot.nq,), "v": (self.n,), "u": (self.m,), "h": (1,)})

    @functools.cached_property
    def curvature(self) -> Callable[..., Any]:
        """(q, v, u, numbers, costate (nx,)[, E]) -> triangle of the Hessian of cost + costate · (q', v') in z, or by velocities."""

        def curvature(q: Array, v: Array, u: Array, numbers: Array, costate: Array, *E: Array) -> Array:
            _, _, curve = self._expansion(q, v, u, numbers, exact=True)
            curve = curve if self.final else curve + self._second(q, v, u, numbers[..., 0], costate)
            return triangle(self._turned(curve, self._by_velocity(E[0].reshape((self.m, self.nz)))) if E else curve)

        more = {"E": (self.m * self.nz,)} if self.direct else {}
        return self._made("curvature", curvature, self.shapes | {"costate": (self.nx,)} | more)

    # --- velocities in the place of controls

    def _exchange(self, q: Array, v: Array, u: Array, h: Array) -> Array:
        """E (m, nz)."""
        a = forward_dynamics(self.robot, q, v, mv(self.B, u))
        by_q, by_v, M = inverse_dynamics_derivatives(self.robot, q, v, a)
        return np.linalg.inv(self.B) @ concat([by_q, by_v - M / h, M / h])

    def _by_velocity(self, E: Array) -> Array:
        """S (nz, nz): z = S (δq, δv, δw)."""
        return concat_rows([concat([np.eye(self.nx), np.zeros((self.nx, self.m))]), E])

    def _turned(self, curve: Array, S: Array) -> Array:
        return mirror(transpose(S) @ (curve @ S))

    @functools.cached_property
    def gains(self) -> Callable[..., Any]:
        """(K, k) of velocities and E -> (K, k) of controls."""
        m, nx = self.m, self.nx

        def gains(K: Array, k: Array, E: Array) -> tuple[Array, Array]:
            E = E.reshape((m, self.nz))
            return (E[:, :nx] + E[:, nx:] @ K.reshape((m, nx))).reshape(-1), mv(E[:, nx:], k)

        shapes = {"K": (m * nx,), "k": (m,), "E": (m * self.nz,)}
        return recent(self.robot, ("gains", m, nx), lambda: built(self.robot, gains, shapes, "gains"))

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
        y = _free(q, 3 * n)
        moved, speed, rate = robot.integrate(q, y[:n]), v + y[n : 2 * n], a + y[2 * n :]
        s = h * (costate[n:] * rate).sum(-1)
        after = robot.integrate(q, h * (v + h * a))
        s = s + (costate[:n] * robot.difference(after, robot.integrate(moved, h * (speed + h * rate)))).sum(-1)
        pull = _substitute(gradient(s, y), y, np.zeros(3 * n))[2 * n :]
        mu = mv(by_tau, pull)
        lagrangian = s - (mu * inverse_dynamics(robot, moved, speed, rate)).sum(-1)
        curve = _substitute(jacobian(gradient(lagrangian, y), y), y, np.zeros(3 * n))
        one, zero = np.eye(n), np.zeros((n, n))
        J = concat_rows(
            [
                concat([one, zero, np.zeros((n, m))]),
                concat([zero, one, np.zeros((n, m))]),
                concat([by_q, by_v, by_tau @ self.B]),
            ]
        )
        return mirror(transpose(J) @ (0.5 * (curve + transpose(curve)) @ J))

    def whole(self, entries: Array) -> tuple[Array, Array]:
        """T and G from their entries."""
        split = self.pattern_T.size
        return self.pattern_T.whole(entries[..., :split]), self.pattern_G.whole(entries[..., split:])

    @functools.cached_property
    def backward(self) -> Callable[..., Any]:
        """One step of the backward pass: see `riccati.backward_step`; V and H as triangles, T and G as their entries, T alone where
        G is constant because it goes by velocities."""
        nx, nz, m = self.nx, self.nz, self.m
        by_velocity = np.eye(nz)[[*range(self.n), *range(nx, nz)]] if self.direct else None

        def backward(
            V: Array, p: Array, entries: Array, H: Array, g: Array, gap: Array, shift: Array, *box: Array
        ) -> tuple[Array, ...]:
            T, G = self.whole(entries) if by_velocity is None else (self.pattern_T.whole(entries), by_velocity)
            V, p, K, k, told = backward_step(
                from_triangle(V), p, T, G, from_triangle(H), g, gap, shift, *(box if box else (None, None))
            )
            return triangle(V), p, K.reshape((*K.shape[:-2], m * nx)), k, told

        shapes: dict[str, tuple[int, ...]] = {
            "V": (nx * (nx + 1) // 2,),
            "p": (nx,),
            "entries": (self.pattern_T.size + (0 if self.direct else self.pattern_G.size),),
            "H": (nz * (nz + 1) // 2,),
            "g": (nz,),
            "gap": (nx,),
            "shift": (1,),
        }
        if self.limited:
            shapes |= {"low": (m,), "high": (m,)}
        if self.n > LARGEST:
            return functools.partial(_written, backward)
        return recent(
            self.robot,
            ("backward", self.pattern_T.key, None if self.direct else self.pattern_G.key, self.limited),
            lambda: built(self.robot, backward, shapes, "backward"),
        )

    @functools.cached_property
    def adjoint(self) -> Callable[..., Any]:
        """(p, entries, g) -> ∂J/∂x, ∂J/∂u."""

        def adjoint(p: Array, entries: Array, g: Array) -> tuple[Array, Array]:
            return adjoint_step(p, *self.whole(entries), g)

        shapes = {"p": (self.nx,), "entries": (self.pattern_T.size + self.pattern_G.size,), "g": (self.nz,)}
        return recent(
            self.robot,
            ("adjoint", self.pattern_T.key, self.pattern_G.key),
            lambda: built(self.robot, adjoint, shapes, "adjoint"),
        )

    @functools.cached_property
    def forward(self) -> Callable[..., Any]:
        """(q, v, cost, q̄, v̄, u, K, k, gap, length, numbers[, low, high]) -> q', v', cost', u of a step of the forward pass."""
        robot, n, m = self.robot, self.n, self.m

        def forward(q: Array, v: Array, cost: Array, q0: Array, v0: Array, u: Array, *rest: Array) -> tuple[Array, ...]:
            K, k, gap, length, numbers, *box = rest
            away = concat([robot.difference(q0, q), v - v0])
            u = u + length * k + mv(K.reshape((*K.shape[:-1], m, 2 * n)), away)
            if box:
                u = where(u < box[0], box[0], u)
                u = where(u > box[1], box[1], u)
            missed, h = (1.0 - length) * gap, numbers[..., 0]
            cost = cost + stack([h * self.cost.value(q, v, u, numbers[..., 1:])])
            q, v = self.step(q, v, u, h)
            return robot.integrate(q, -missed[..., :n]), v - missed[..., n:], cost, u

        state: dict[str, tuple[int, ...]] = {"q": (robot.nq,), "v": (n,), "cost": (1,)}
        old = {"q0": (robot.nq,), "v0": (n,), "u": (m,)}
        gains = {"K": (m * 2 * n,), "k": (m,), "gap": (2 * n,), "length": (1,), "numbers": self.shapes["numbers"]}
        box = {"low": (m,), "high": (m,)} if self.limited else {}
        return self._made("forward", forward, state | old | gains | box)

    @functools.cached_property
    def value(self) -> Callable[..., Any]:
        """(q, v, u, numbers) -> cost (1,)."""

        def value(q: Array, v: Array, u: Array, numbers: Array) -> Array:
            return stack([self.cost.value(q, v, u, numbers[..., 1:]) * (1.0 if self.final else numbers[..., 0])])

        return self._made("value", value, self.shapes)


def _invertible(B: np.ndarray) -> bool:
    return B.shape[0] == B.shape[1] and float(np.linalg.cond(B)) < 1e8


def _written(fn: Callable[..., Any], *arrays: Array, out: tuple[np.ndarray, ...], threads: int | None) -> None:
    """fn in NumPy, its results written to `out`."""
    for place, x in zip(out, fn(*arrays), strict=True):
        place[...] = x


def concat_rows(parts: Sequence[Array]) -> Array:
    return transpose(concat([transpose(x) for x in parts]))


def _free(x: Array, size: int) -> Array:
    """New symbols of the trace that x belongs to."""
    from ..kernel.trace.expr import Expr
    from ..kernel.trace.trace import variables

    table = next(y.table for y in x.ravel().tolist() if isinstance(y, Expr))
    return variables(table, ("free", len(table.op)), (size,))


def _substitute(y: Array, free: Array, values: np.ndarray) -> Array:
    from ..kernel.passes.derive import substitute

    return substitute(y, free, values)


def _jacobian(fn: Callable[[Array], Array], z: np.ndarray, inside: Array) -> Array:
    from ..kernel.passes.derive import jacobian

    free = _free(inside, len(z))
    return _substitute(jacobian(fn(free), free), free, z)
