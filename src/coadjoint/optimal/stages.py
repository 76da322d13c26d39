"""What a motion costs and must keep at every instant: functions of the stage (q, v, a, jerk) with first and second derivatives.

A stage is an array (K, 4, n): K nodes, the position and its three derivatives. Costs are (K,), rows of limits (K, m).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..differentiating import derivative
from ..dynamics import (
    inverse_dynamics,
    inverse_dynamics_derivatives,
    inverse_dynamics_second_derivatives,
    kinetic_energy,
)
from ..errors import ShapeError
from ..motion.friction import friction_coefficients
from ..robot.robot import Robot


class Forces:
    """Joint forces at the nodes with their derivatives, computed when they are asked for."""

    def __init__(self, robot: Robot, stage: np.ndarray) -> None:
        self.robot, self.stage = robot, stage
        self.q, self.v, self.a = (np.ascontiguousarray(stage[:, k]) for k in range(3))
        self.damping = np.asarray(friction_coefficients(robot)[0], dtype=float)

    @cached_property
    def tau(self) -> np.ndarray:
        """(K, n), with the joints' viscous friction."""
        return np.asarray(inverse_dynamics(self.robot, self.q, self.v, self.a) + self.damping * self.v)

    @cached_property
    def jacobian(self) -> np.ndarray:
        """∂τ/∂(q, v, a, jerk) (K, n, 4, n)."""
        by_q, by_v, by_a = inverse_dynamics_derivatives(self.robot, self.q, self.v, self.a)
        by_v = by_v + np.diag(self.damping)
        return np.stack([by_q, by_v, by_a, np.zeros_like(by_q)], axis=2)

    @cached_property
    def second(self) -> tuple[np.ndarray, ...]:
        return inverse_dynamics_second_derivatives(self.robot, self.q, self.v, self.a)

    def curvature(self, weights: np.ndarray) -> np.ndarray:
        """Σ_r weights_r ∂²τ_r/∂stage² (K, 4, n, 4, n) for weights (K, n)."""
        K, n = weights.shape
        found = np.zeros((K, 4, n, 4, n))
        qq, qv, vv, qa = ((weights[:, None] @ x.reshape(K, n, n * n)).reshape(K, n, n) for x in self.second)
        found[:, 0, :, 0], found[:, 1, :, 1] = qq, vv
        found[:, 0, :, 1], found[:, 0, :, 2] = qv, qa
        found[:, 1, :, 0], found[:, 2, :, 0] = qv.swapaxes(-1, -2), qa.swapaxes(-1, -2)
        return found


def gram(weights: np.ndarray, J: np.ndarray) -> np.ndarray:
    """Σ_r weights_r J_r J_rᵀ (K, 4, n, 4, n) for weights (K, m) and J (K, m, 4, n)."""
    K, m, orders, n = J.shape
    flat = J.reshape(K, m, orders * n)
    return np.asarray(((weights[..., None] * flat).swapaxes(-1, -2) @ flat).reshape(K, orders, n, orders, n))


class Cost(Protocol):
    """A running cost ℓ."""

    def value(self, forces: Forces) -> np.ndarray:
        """ℓ (K,)."""

    def gradient(self, forces: Forces) -> np.ndarray:
        """∂ℓ/∂stage (K, 4, n)."""

    def hessian(self, forces: Forces) -> np.ndarray:
        """∂²ℓ/∂stage² (K, 4, n, 4, n)."""


class Effort:
    """ℓ = |τ|²."""

    def value(self, forces: Forces) -> np.ndarray:
        return np.asarray(np.einsum("kn,kn->k", forces.tau, forces.tau))

    def gradient(self, forces: Forces) -> np.ndarray:
        return np.asarray(2.0 * np.einsum("kr,krij->kij", forces.tau, forces.jacobian))

    def hessian(self, forces: Forces) -> np.ndarray:
        J = forces.jacobian
        return np.asarray(gram(2.0 * np.ones_like(forces.tau), J) + forces.curvature(2.0 * forces.tau))


class Energy:
    """ℓ = τᵀv + Σ r τ²: electrical power of drives that feed back what they brake, with losses r τ² in their windings."""

    def __init__(self, losses: np.ndarray) -> None:
        self.losses = losses

    def value(self, forces: Forces) -> np.ndarray:
        return np.asarray(np.einsum("kn,kn->k", forces.tau, forces.v + self.losses * forces.tau))

    def gradient(self, forces: Forces) -> np.ndarray:
        found = np.einsum("kr,krij->kij", forces.v + 2.0 * self.losses * forces.tau, forces.jacobian)
        found[:, 1] += forces.tau
        return np.asarray(found)

    def hessian(self, forces: Forces) -> np.ndarray:
        J = forces.jacobian
        found = gram(np.broadcast_to(2.0 * self.losses, forces.tau.shape), J)
        found += forces.curvature(forces.v + 2.0 * self.losses * forces.tau)
        found[:, 1] += J  # ∂/∂v_r of τ_r v_r, then by the stage
        found[:, :, :, 1] += np.moveaxis(J, 1, -1)
        return found


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

    def hessian(self, forces: Forces) -> np.ndarray:
        K, orders, n = forces.stage.shape
        found = np.zeros((K, orders, n, orders, n))
        found[:, self.order, :, self.order] = 2.0 * np.eye(n)
        return found


class Of:
    """A cost given by a function fn(robot, q, v, a) -> number, differentiated by tracing."""

    def __init__(self, robot: Robot, fn: Callable[..., Any], arguments: tuple[str, ...] = ("q", "v", "a")) -> None:
        self.arguments, n = arguments, robot.nv

        def stacked(robot: Robot, x: Any) -> Any:
            return fn(robot, *(x[..., k, :] for k in range(len(arguments))))

        shapes = {"x": (len(arguments), n)}
        from ..compiling import compile as compiled

        self._value = compiled(stacked, robot, shapes=shapes)
        self._gradient = derivative(stacked, robot, "x", shapes=shapes)
        first = _differential(stacked)
        self._hessian = derivative(first, robot, "x", shapes=shapes)

    def _stage(self, forces: Forces) -> np.ndarray:
        return np.ascontiguousarray(forces.stage[:, ["qva".index(x) for x in self.arguments]])

    def value(self, forces: Forces) -> np.ndarray:
        found = np.asarray(self._value(self._stage(forces)))
        if found.shape != (len(forces.stage),):
            raise ShapeError(f"the cost gave an array of shape {found.shape[1:]} for one state; expected a number.")
        return found

    def gradient(self, forces: Forces) -> np.ndarray:
        found = np.zeros_like(forces.stage)
        found[:, ["qva".index(x) for x in self.arguments]] = self._gradient(self._stage(forces))
        return found

    def hessian(self, forces: Forces) -> np.ndarray:
        K, orders, n = forces.stage.shape
        found = np.zeros((K, orders, n, orders, n))
        places = ["qva".index(x) for x in self.arguments]
        inner = self._hessian(self._stage(forces))
        for i, a in enumerate(places):
            for j, b in enumerate(places):
                found[:, a, :, b] = inner[:, i, :, j]
        return found


def _differential(fn: Callable[..., Any]) -> Callable[..., Any]:
    from ..differentiating import differential

    return differential(fn, "x")


def action(robot: Robot) -> Of:
    """ℓ = ½ vᵀ M v."""
    return Of(robot, lambda robot, q, v: kinetic_energy(robot, q, v), ("q", "v"))


class Rows(Protocol):
    """Functions of the stage that are kept between limits."""

    lower: np.ndarray
    upper: np.ndarray
    """(m,), or (K, m) where they are drawn in by different amounts at different nodes; infinite at all nodes or at none."""
    names: tuple[str, ...]

    def value(self, forces: Forces) -> np.ndarray:
        """(K, m)"""

    def jacobian(self, forces: Forces) -> np.ndarray:
        """(K, m, 4, n)"""

    def curvature(self, forces: Forces, weights: np.ndarray) -> np.ndarray | None:
        """Σ_r weights_r ∂²row_r/∂stage² (K, 4, n, 4, n) for weights (K, m), or None where it is zero."""

    def gram(self, weights: np.ndarray, J: np.ndarray) -> np.ndarray:
        """Σ_r weights_r J_r J_rᵀ (K, 4, n, 4, n) for weights (K, m) and the Jacobian J."""


class Coordinates:
    """The position (order 0), velocity, acceleration or jerk of every joint."""

    def __init__(self, order: int, lower: np.ndarray, upper: np.ndarray, names: tuple[str, ...]) -> None:
        self.order, self.lower, self.upper, self.names = order, lower, upper, names

    def value(self, forces: Forces) -> np.ndarray:
        return forces.stage[:, self.order]

    def jacobian(self, forces: Forces) -> np.ndarray:
        K, orders, n = forces.stage.shape
        found = np.zeros((K, n, orders, n))
        found[:, :, self.order] = np.eye(n)
        return found

    def curvature(self, forces: Forces, weights: np.ndarray) -> None:
        return None

    def gram(self, weights: np.ndarray, J: np.ndarray) -> np.ndarray:
        K, n = weights.shape
        found = np.zeros((K, 4, n, 4, n))
        found[:, self.order, range(n), self.order, range(n)] = weights
        return found


class _Curved:
    """Rows whose Jacobian is dense."""

    def gram(self, weights: np.ndarray, J: np.ndarray) -> np.ndarray:
        return gram(weights, J)


class Torques(_Curved):
    """The joint forces."""

    def __init__(self, limit: np.ndarray, names: tuple[str, ...]) -> None:
        self.lower, self.upper, self.names = -limit, limit, names

    def value(self, forces: Forces) -> np.ndarray:
        return forces.tau

    def jacobian(self, forces: Forces) -> np.ndarray:
        return forces.jacobian

    def curvature(self, forces: Forces, weights: np.ndarray) -> np.ndarray:
        return forces.curvature(weights)


class MotorPower(_Curved):
    """The power τ v of every joint."""

    def __init__(self, limit: np.ndarray, names: tuple[str, ...]) -> None:
        self.lower, self.upper, self.names = -limit, limit, names

    def value(self, forces: Forces) -> np.ndarray:
        return np.asarray(forces.tau * forces.v)

    def jacobian(self, forces: Forces) -> np.ndarray:
        found = forces.jacobian * forces.v[:, :, None, None]
        n = forces.v.shape[-1]
        found[:, range(n), 1, range(n)] += forces.tau
        return np.asarray(found)

    def curvature(self, forces: Forces, weights: np.ndarray) -> np.ndarray:
        found = forces.curvature(weights * forces.v)
        cross = forces.jacobian * weights[:, :, None, None]
        found[:, 1] += cross
        found[:, :, :, 1] += np.moveaxis(cross, 1, -1)
        return found
