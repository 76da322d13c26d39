"""The momentum observer: external joint forces and collisions from positions, velocities and motor forces, without accelerations.

With the momentum p = M v, dp/dt = τ + τ_ext + Cᵀ v - g. The residual

    r = K (p - p(0) - ∫ (τ + Cᵀ v - g + r) dt)      obeys      dr/dt = K (τ_ext - r):

it is the external force through a first-order filter. De Luca & Mattone (2003). Cᵀ v is ½ ∂(vᵀMv)/∂q, with the Christoffel matrix C.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import a_robot, floats, numbers, positive, takes
from ..arrays import Array, concat, like, mv, namespace, transpose, unmasked
from ..dynamics import coriolis_matrix, gravity_force, mass_matrix
from ..errors import CoadjointError
from ..families import built
from ..kernel.graph import Graph
from ..robot.robot import Robot
from ..words import short
from .controller import gain


class MomentumObserver:
    """Estimates of external joint forces at samples of period `period`. `state` and `update` are pure; nothing is kept."""

    def __init__(self, robot: Robot, gains: np.ndarray, period: float) -> None:
        self.robot, self.gains, self.period = robot, gains, period
        self._native: Any = None

    def state(self, q: Any, v: Any) -> np.ndarray:
        """The observer's state (..., 2 nv) at the start, where the external forces are taken as zero: the momentum, and r."""
        p = mv(mass_matrix(self.robot, q), floats(v, "v"))
        return np.concatenate([p, np.zeros_like(p)], axis=-1)

    def residual(self, state: Array) -> Array:
        """r (..., nv): the external joint forces, filtered."""
        return unmasked(state)[..., self.robot.nv :]

    def collided(self, state: Array, threshold: Any) -> Array:
        """True where some external joint force exceeds its threshold [N m or N], a number or (nv,), or is no number: (...)."""
        limit = np.asarray(numbers(threshold, "threshold"), dtype=float)
        if limit.shape not in ((), (self.robot.nv,)) or not (limit > 0).all():
            raise CoadjointError(f"threshold is {short(threshold)}; expected positive forces, a number or ({self.robot.nv},).")
        r = self.residual(state)
        xp = namespace(r)
        return ~(xp.abs(r) <= like(np.broadcast_to(limit, (self.robot.nv,)), r)).all(-1)

    def graph(self) -> Graph:
        """The expression graph of update(q, v, tau, state): for `coadjoint.export.c` and `coadjoint.export.js`."""
        from ..kernel.passes.simplify import simplify
        from ..kernel.trace.trace import trace

        return simplify(trace(self._update, self._shapes, "momentum_observer"))

    @property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        n = self.robot.nv
        return {"q": (self.robot.nq,), "v": (n,), "tau": (n,), "state": (2 * n,)}

    def update(self, q: Array, v: Array, tau: Array, state: Array) -> Array:
        """The state (..., 2 nv) after the sample q, v, before which the motors gave tau for one period."""
        if namespace(q, v, tau, state) is not np:
            return self._update(q, v, tau, state)
        if self._native is None:
            self._native = built(self.robot, self._update, self._shapes, "momentum_observer")
        found: Array = self._native(q, v, tau, state)
        return found

    def _update(self, q: Array, v: Array, tau: Array, state: Array) -> Array:
        """One step, implicit in r: p̂' = p̂ + h (τ + Cᵀv - g + r'), r' = K (p - p̂')."""
        robot, h, n = self.robot, self.period, self.robot.nv
        p = mv(mass_matrix(robot, q), v)
        known = tau + mv(transpose(coriolis_matrix(robot, q, v)), v) - gravity_force(robot, q)
        predicted = state[..., :n] + h * known
        implicit = np.linalg.inv(np.eye(n) + h * self.gains) @ self.gains
        r = mv(like(implicit, p), p - predicted)
        return concat([predicted + h * r, r])

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_native": None}

    def __repr__(self) -> str:
        return f"<momentum observer of {self.robot.name!r}, every {self.period:g} s>"


@takes(robot=a_robot, period=positive)
def momentum_observer(robot: Robot, *, gain_rate: Any, period: float = 1e-3) -> MomentumObserver:
    """An observer of external joint forces, with the rate K [1/s] of its filter: a number, a diagonal (nv,) or a matrix (nv, nv)."""
    return MomentumObserver(robot, gain(gain_rate, "gain_rate", robot.nv, of=robot.v_names), float(period))
