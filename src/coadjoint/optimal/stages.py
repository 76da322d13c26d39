"""Costs and limits at every instant of a motion: functions of the stage (q, v, a, jerk) with first and second derivatives.

A stage is an array (N, 4, n): N nodes, of one or of many motions, the position and its three derivatives. Costs are (N,), rows of
limits (N, m). Second derivatives are summed in a `Curvature`: what comes from joint forces is there three weights for every joint.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..compiling import compile as compiled
from ..differentiating import derivative, differential
from ..dynamics import kinetic_energy
from ..errors import ShapeError
from ..robot.robot import Robot
from .drives import Drives

DYNAMIC = 3
"""Position, velocity and acceleration: what joint forces depend on."""


class Forces:
    """Joint forces at the nodes with their derivatives, computed when they are asked for."""

    def __init__(self, drives: Drives, stage: np.ndarray, tau: np.ndarray | None = None) -> None:
        self.drives, self.stage, self._tau = drives, stage, tau
        self.q, self.v, self.a = (np.ascontiguousarray(stage[:, k]) for k in range(DYNAMIC))
        self._kept: dict[int, Any] = {}

    def once(self, owner: object, make: Callable[[], Any]) -> Any:
        """The result of `make`, computed once for this owner at these nodes."""
        if id(owner) not in self._kept:
            self._kept[id(owner)] = make()
        return self._kept[id(owner)]

    @cached_property
    def tau(self) -> np.ndarray:
        """(N, n), with the joints' viscous friction."""
        return self.drives.tau(self.q, self.v, self.a) if self._tau is None else self._tau

    @cached_property
    def jacobian(self) -> np.ndarray:
        """∂τ/∂(q, v, a) (N, n, 3 n)."""
        return self.drives.jacobian(self.q, self.v, self.a)

    def pull(self, weights: np.ndarray) -> np.ndarray:
        """Σ_r weights_r ∂τ_r/∂(q, v, a) (N, 3, n) for weights (N, n)."""
        return np.asarray((weights[:, None] @ self.jacobian).reshape(len(weights), DYNAMIC, -1))

    def push(self, moved: np.ndarray) -> np.ndarray:
        """The change (N, n) of τ with that of the stage (N, 4, n)."""
        return np.asarray((self.jacobian @ moved[:, :DYNAMIC].reshape(len(moved), -1, 1))[..., 0])


class Curvature:
    """A sum of second derivatives by the stage, (N, 4, n, 4, n), kept in parts."""

    def __init__(self, N: int, n: int) -> None:
        self.w, self.d, self.c = (np.zeros((N, n)) for _ in range(3))
        """Weights of ∂²τ, of J Jᵀ and of J eᵀ + e Jᵀ, see `force_curvature`."""
        self.forces = False
        """True if any of these is in use."""
        self.diagonal = np.zeros((N, 4, n))
        self.dense: np.ndarray | None = None
        """(N, 9, n, n), or None"""

    def of_forces(self, w: np.ndarray | float, d: np.ndarray | float, c: np.ndarray | float = 0.0) -> None:
        self.forces = True
        self.w += w
        self.d += d
        self.c += c

    def add(self, blocks: np.ndarray) -> None:
        self.dense = blocks if self.dense is None else self.dense + blocks

    def blocks(self, forces: Forces) -> np.ndarray:
        """By (q, v, a) (N, 9, n, n): blocks qq, qv, qa, vq, …, aa."""
        N, _, n = self.diagonal.shape
        if self.forces:
            found = forces.drives.curvature(forces.q, forces.v, forces.a, self.w, self.d, self.c)
        else:
            found = np.zeros((N, DYNAMIC**2, n, n))
        if self.dense is not None:
            found += self.dense
        entries = np.arange(n)
        for order in range(DYNAMIC):
            found[:, order * (DYNAMIC + 1), entries, entries] += self.diagonal[:, order]
        return found


class Cost(Protocol):
    """A running cost ℓ."""

    def value(self, forces: Forces) -> np.ndarray:
        """ℓ (N,)."""

    def gradient(self, forces: Forces) -> np.ndarray:
        """∂ℓ/∂stage (N, 4, n)."""

    def curve(self, forces: Forces, scale: np.ndarray, into: Curvature, convex: bool) -> None:
        """Add scale (N,) times ∂²ℓ/∂stage², or if `convex` a positive semidefinite matrix in its place."""


class Effort:
    """ℓ = |τ|²."""

    def value(self, forces: Forces) -> np.ndarray:
        return np.asarray(np.einsum("kn,kn->k", forces.tau, forces.tau))

    def gradient(self, forces: Forces) -> np.ndarray:
        return _with_jerk(forces.pull(2.0 * forces.tau))

    def curve(self, forces: Forces, scale: np.ndarray, into: Curvature, convex: bool) -> None:
        twice = 2.0 * scale[:, None]
        into.of_forces(0.0 if convex else twice * forces.tau, twice)


class Energy:
    """ℓ = τᵀv + Σ r τ²: electrical power of drives that feed back what they brake, with losses r τ² in their windings."""

    def __init__(self, losses: np.ndarray) -> None:
        self.losses = losses

    def value(self, forces: Forces) -> np.ndarray:
        return np.asarray(np.einsum("kn,kn->k", forces.tau, forces.v + self.losses * forces.tau))

    def gradient(self, forces: Forces) -> np.ndarray:
        found = _with_jerk(forces.pull(forces.v + 2.0 * self.losses * forces.tau))
        found[:, 1] += forces.tau
        return found

    def curve(self, forces: Forces, scale: np.ndarray, into: Curvature, convex: bool) -> None:
        some = scale[:, None]
        if convex:
            into.of_forces(0.0, 2.0 * self.losses * some)
        else:  # ∂/∂v_r of τ_r v_r, then by the stage: the third weight
            into.of_forces(some * (forces.v + 2.0 * self.losses * forces.tau), 2.0 * self.losses * some, some)


class Power:
    """ℓ = |a derivative of q|²: order 1 velocity, 2 acceleration, 3 jerk."""

    def __init__(self, order: int) -> None:
        self.order = order

    def value(self, forces: Forces) -> np.ndarray:
        x = forces.stage[:, self.order]
        return np.asarray(np.einsum("kn,kn->k", x, x))

    def gradient(self, forces: Forces) -> np.ndarray:
        found = np.zeros_like(forces.stage)
        found[:, self.order] = 2.0 * forces.stage[:, self.order]
        return found

    def curve(self, forces: Forces, scale: np.ndarray, into: Curvature, convex: bool) -> None:
        into.diagonal[:, self.order] += 2.0 * scale[:, None]


class Of:
    """A cost given by a function fn(robot, q, v, a) -> number, differentiated by tracing."""

    def __init__(self, robot: Robot, fn: Callable[..., Any], arguments: str = "qva") -> None:
        self.robot, self.fn, self.arguments = robot, fn, arguments
        self.places = ["qva".index(x) for x in arguments]
        shapes = {"x": (len(arguments), robot.nv)}
        self._value = compiled(self.stacked, robot, shapes=shapes)
        self._gradient = derivative(self.stacked, robot, "x", shapes=shapes)
        self._hessian = derivative(differential(self.stacked, "x"), robot, "x", shapes=shapes)

    def __reduce__(self) -> tuple[Any, ...]:
        return Of, (self.robot, self.fn, self.arguments)

    def stacked(self, robot: Robot, x: Any) -> Any:
        """fn of its arguments in one array (k, n)."""
        return self.fn(robot, *(x[..., k, :] for k in range(len(self.arguments))))

    def stage(self, forces: Forces) -> np.ndarray:
        return np.ascontiguousarray(forces.stage[:, self.places])

    def value(self, forces: Forces) -> np.ndarray:
        found = np.asarray(self._value(self.stage(forces)))
        if found.shape != (len(forces.stage),):
            raise ShapeError(f"the cost gave an array of shape {found.shape[1:]} for one state; expected a number.")
        return found

    def gradient(self, forces: Forces) -> np.ndarray:
        found = np.zeros_like(forces.stage)
        found[:, self.places] = self._gradient(self.stage(forces))
        return found

    def curve(self, forces: Forces, scale: np.ndarray, into: Curvature, convex: bool) -> None:
        H = scale[:, None, None, None, None] * self._hessian(self.stage(forces))
        into.add(_blocks(_semidefinite(H) if convex else H, self.places))


def _with_jerk(covector: np.ndarray) -> np.ndarray:
    """(N, 4, n) from (N, 3, n)."""
    return np.concatenate([covector, np.zeros_like(covector[:, :1])], axis=1)


def _blocks(H: np.ndarray, places: list[int]) -> np.ndarray:
    """(N, 9, n, n) of H (N, k, n, k, n), whose k parts are those of (q, v, a) at these places."""
    N, _, n = H.shape[:3]
    found = np.zeros((N, DYNAMIC, DYNAMIC, n, n))
    for i, a in enumerate(places):
        for j, b in enumerate(places):
            found[:, a, b] = H[:, i, :, j]
    return found.reshape(N, DYNAMIC**2, n, n)


def _semidefinite(H: np.ndarray) -> np.ndarray:
    """Symmetric matrices (N, k, n, k, n) with their negative eigenvalues made zero, node by node."""
    N, k, n = H.shape[:3]
    values, vectors = np.linalg.eigh(H.reshape(N, k * n, k * n))
    positive = (vectors * np.maximum(values, 0.0)[:, None]) @ vectors.swapaxes(-1, -2)
    return np.asarray(positive.reshape(H.shape))


def _kinetic_energy(robot: Robot, q: Any, v: Any) -> Any:
    return kinetic_energy(robot, q, v)


def action(robot: Robot) -> Of:
    """ℓ = ½ vᵀ M v."""
    return Of(robot, _kinetic_energy, "qv")
