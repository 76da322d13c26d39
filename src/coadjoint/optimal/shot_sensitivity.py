"""How the conditions of first order of multiple shooting change with the robot's numbers, while the values at the nodes are held.

The states between the nodes follow the robot: their tangents Y = ∂(q, v, a)/∂p are integrated along with them, and a stage adds
Zᵀ Sᵀ (G Y + N) to the derivative of the gradient. Here G is its Hessian by (q, v, a) and N = ∂²/∂(q, v, a)∂p, both of h b ℓ - μᵀ τ(q, v, a)
with μ = M⁻¹ times the multiplier of the acceleration, S = ∂(q, v, a)/∂(q, v, τ), and Z = ∂(q, v, τ)/∂x.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from .by_parameters import ByParameters
from .drawn_again import row_changes
from .multiple_shooting import RULE, Flight
from .shot_stages import Stage
from .splines import ORDERS
from .stages import DYNAMIC, Curvature, Forces


class ShotChanges:
    """Derivatives by P parameters of what makes up one problem of shooting, with the multipliers of its solution."""

    def __init__(self, here: Flight, by: ByParameters, z: np.ndarray, sigma: np.ndarray, y: np.ndarray) -> None:
        self.here, self.by, self.problem, self.n = here, by, here.problem, here.problem.robot.nv
        self.z, self.sigma, self.y = z, sigma, y

    @cached_property
    def _tau(self) -> list[np.ndarray]:
        """∂τ/∂p (N, n, P) of every stage."""
        return [self._own_tau(stage) for stage in self.here.stages]

    def _own_tau(self, stage: Stage) -> np.ndarray:
        some = Curvature(len(stage.X), self.n)
        some.of_forces(0.0, 0.0)
        return self.by.tau(stage.forces, some)

    def _pushed(self, stage: Stage, tau: np.ndarray) -> np.ndarray:
        """∂a/∂p (N, n, P) of a state under given forces: -M⁻¹ ∂τ/∂p."""
        return np.asarray(-stage.A[:, :, 2 * self.n :] @ tau)

    @cached_property
    def _tangents(self) -> tuple[list[np.ndarray], np.ndarray]:
        """∂(q, v, a)/∂p (N, 3 n, P) of every stage, and of where states arrive (N, 2 n, P)."""
        here, n, h = self.here, self.n, self.here.h[:, :, None]
        dX = np.zeros((len(here.arrived), 2 * n, self.by.count))
        found: list[np.ndarray] = []
        for step in range(self.problem.steps):
            dslope, moved = np.zeros_like(dX), np.zeros_like(dX)
            for k, (_, along, weight) in enumerate(RULE):
                index = len(RULE) * step + k
                stage, dx = here.stages[index], dX + along * h * dslope
                da = stage.A[:, :, : 2 * n] @ dx + self._pushed(stage, self._tau[index])
                found.append(np.concatenate([dx, da], axis=1))
                dslope = found[-1][:, n:]
                moved = moved + weight * dslope
            dX = dX + h * moved
        return found, dX

    @property
    def equations(self) -> np.ndarray:
        """∂e/∂p (equations, P)."""
        linear = np.zeros((len(self.problem.rows), self.by.count))
        return np.concatenate([self._tangents[1].reshape(-1, self.by.count), linear])

    @property
    def cost(self) -> np.ndarray:
        """∂L/∂p (P,)."""
        return self._derivatives[0]

    @property
    def conditions(self) -> np.ndarray:
        """∂²L/∂x∂p + Cᵀ Σ ∂c/∂p (variables, P), Σ of the limits that do not hold."""
        return self._derivatives[1]

    @cached_property
    def _derivatives(self) -> tuple[np.ndarray, np.ndarray]:
        here, h, count = self.here, self.here.h[:, 0], self.by.count
        points, tangents = here.tangents[0], self._tangents[0]
        cost, spans = np.zeros(count), np.zeros((len(h), 4 * self.n + 1, count))
        for index, weight, each, total in here.adjoints(self.y, self.z):
            stage, Y, tau = here.stages[index], tangents[index], self._tau[index]
            curvature = Curvature(len(h), self.n)
            for w, one in self.problem.costs:
                one.curve(stage.forces, w * weight * h, curvature, False)
            running = self.by.explicit(stage.forces, self.problem.costs)
            running += np.einsum("kr,krp->kp", curvature.w / (weight * h[:, None]), tau)
            bent = self._bent(stage, curvature, total, Y, tau, weight * h)
            cost += np.einsum("kr,krp->p", curvature.w, tau) + (weight * h) @ self.by.explicit(stage.forces, self.problem.costs)
            spans += points[index].swapaxes(-1, -2) @ bent
            running += np.einsum("ki,kip->kp", stage.covector[:, :DYNAMIC].reshape(len(h), -1), Y)
            spans[:, -1] += here.rate * (np.einsum("ki,kip->kp", each, Y[:, self.n :]) + weight * running)
        last = np.zeros((3 * self.n, count))
        if self.z.size:
            stage, Y = here.at_places, self._at_places
            curvature, direct = here.limit_curvature(self.z, self.sigma, False)
            tau = self._own_tau(stage)
            bent = self._bent(stage, curvature, -here.limit_covector(self.z)[:, 2], Y, tau, None)
            looked, ends = here.by_span(bent + direct[:, :, : 2 * self.n] @ Y[:, : 2 * self.n])  # the robot does not change τ there
            cost += np.einsum("kr,krp->p", curvature.w, tau)
            spans += np.einsum("slij,slip->sjp", here.looked_tangents, looked)
            last = ends[0]
        found = np.stack([here.spread(spans[..., p])[0] for p in range(count)], axis=-1)
        size = here.nodes[0].size
        found[size - 3 * self.n : size] += last
        return cost, found

    def _bent(
        self, stage: Stage, curvature: Curvature, slope: np.ndarray, Y: np.ndarray, tau: np.ndarray, scale: np.ndarray | None
    ) -> np.ndarray:
        """Sᵀ (G Y + N) (N, 3 n, P) by (q, v, τ); of costs times scale (N,), or of limits alone."""
        G, S = stage.parts(curvature, slope)
        costs, by_node = (self.problem.costs, scale) if scale is not None else ((), np.zeros(len(Y)))
        N = self.by.mixed(stage.forces, curvature, tau, costs, by_node)
        return np.asarray(S.swapaxes(-1, -2) @ (G @ Y + N.reshape(Y.shape)))

    @cached_property
    def _at_places(self) -> np.ndarray:
        """∂(q, v, a)/∂p (places, 3 n, P) where limits are kept; at the end the state is a variable."""
        every = len(RULE) * self.problem.steps // self.problem.looks
        return self.here.at_all(self._tangents[0][::every], self._at_end[None])

    @cached_property
    def _at_end(self) -> np.ndarray:
        """(3 n, P)"""
        at = self.here.at_places
        da = self._pushed(at, self._own_tau(at))[-1]
        return np.concatenate([np.zeros((2 * self.n, self.by.count)), da])

    @cached_property
    def limits(self) -> np.ndarray:
        """∂c/∂p (inequalities, P); joint forces are variables: the robot does not change them."""
        at, P = self.here.at_places.forces, self.by.count
        moved = np.zeros((len(at.q), ORDERS, self.n, P))
        moved[:, :DYNAMIC] = self._at_places.reshape(-1, DYNAMIC, self.n, P)
        changes = [row_changes(x, at, moved, np.zeros_like(moved[:, 0])) for x in self.problem.limits]
        sides = self.problem.sides
        return sides.those(sides.changes(changes).reshape(1, -1, P))[0] if changes else np.zeros((0, P))

    def forces(self, places: Any, at: Forces, stage: np.ndarray, dx: np.ndarray) -> np.ndarray:
        """The change of joint forces (N, n, columns) at places with that of the variables (variables, columns)."""
        u = dx[: self.here.nodes[0].size].reshape(*self.here.nodes.shape[1:], -1)[:, 2]
        return np.asarray(np.moveaxis(self.problem.between(places, np.moveaxis(u, -1, 0)), 0, -1))

    def explicit_forces(self, at: Forces) -> np.ndarray:
        """Their change with the robot alone: none."""
        return np.zeros((*at.q.shape, self.by.count))

    def control(self, dx: np.ndarray) -> np.ndarray:
        """The change of the control points of the integrated motion (3 (steps + 1), n, P) with that of the variables (variables, P)."""
        begins = range(0, len(self.here.stages), len(RULE))
        steps = np.stack([self._tangents[0][k] for k in begins], axis=1).reshape(-1, DYNAMIC, self.n, self.by.count)
        own = np.concatenate([steps, self._at_end.reshape(1, DYNAMIC, self.n, -1)])
        return np.asarray(self.carried(dx) + self._scaled(own).reshape(-1, self.n, self.by.count))

    def carried(self, dx: np.ndarray) -> np.ndarray:
        """The same (3 (steps + 1), n, columns) without what the robot itself changes."""
        here, problem, n, P = self.here, self.problem, self.n, dx.shape[1]
        nodes, dT = dx[: here.nodes[0].size].reshape(*here.nodes.shape[1:], P), dx[-1] if problem.free_time else np.zeros(P)
        own = np.concatenate([nodes[:-1].reshape(-1, 3 * n, P), nodes[1:, 2], np.broadcast_to(dT, (len(nodes) - 1, 1, P))], axis=1)
        points, slopes, _ = here.tangents
        steps = [np.concatenate([points[k][:, :n] @ own, slopes[k] @ own], axis=1) for k in range(0, len(points), len(RULE))]
        da = here.at_places.A[-1] @ nodes[-1].reshape(3 * n, P)
        moved = np.concatenate([np.stack(steps, axis=1).reshape(-1, DYNAMIC, n, P), np.stack([*nodes[-1, :2], da])[None]])
        c = problem.control(here)[0].reshape(-1, DYNAMIC, n)
        powers = np.arange(DYNAMIC)[:, None, None]
        return np.asarray(self._scaled(moved) + powers / here.T[0] * c[..., None] * dT).reshape(-1, n, P)

    def _scaled(self, moved: np.ndarray) -> np.ndarray:
        """Derivatives by time as those by s (…, 3, n, columns)."""
        return np.asarray(moved * self.here.T[0] ** np.arange(DYNAMIC)[:, None, None])
