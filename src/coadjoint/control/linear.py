"""Regulators of the linearised robot: against the worst disturbance, and along a motion.

About rest or a motion, dx/dt = A x + B (u + w) with x = (δ, change of v), forces u of the motors and disturbing forces w of all joints.

    H∞                      u = -K x keeps ∫ xᵀQx + uᵀRu dt ≤ γ² ∫ wᵀw dt for every w:
                            AᵀP + PA + Q - P (B R⁻¹Bᵀ - γ⁻² B Bᵀ) P = 0,  K = R⁻¹BᵀP                 Doyle and others (1989)
    time-varying LQR        -dP/dt = AᵀP + PA + Q - P B R⁻¹ Bᵀ P along the motion, from its end back     Kalman (1960)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_robot, finite, floats, positive, takes
from ..arrays import Array, concat, dot, mv
from ..errors import CoadjointError
from ..motion.linearize import is_stabilizable, linearize
from ..motion.trajectory import Trajectory
from ..robot.robot import Robot
from ..words import short
from .controller import Controller, gain
from .references import hold
from .underactuated import motors_of, regulate, resting_force, value_of

Gains = Mapping[str, Any]
MARGIN = 1.05
"""The least attenuation that can be reached is not attained: the default is this much above it."""

NO_REGULATOR = (
    "there is no stabilising regulator: some motion that does not die out is beyond the reach of the motors, or state_cost "
    "does not see it."
)


@takes(robot=a_robot)
def h_infinity(
    robot: Robot,
    goal: Any,
    *,
    actuated: Sequence[str] | None = None,
    state_cost: Any = 1.0,
    force_cost: Any = 1.0,
    attenuation: float | None = None,
) -> Controller:
    """The H∞ regulator about rest at `goal` (nq,): disturbing joint forces w are attenuated to ∫ xᵀQx + uᵀRu ≤ γ² ∫ wᵀw.

    actuated: the joints with motors, all by default. state_cost Q and force_cost R as for `balance`. attenuation: γ; by default close
    above the least that is possible, and `controller.gains["attenuation"]` tells it. The Lyapunov function is xᵀPx of the linear model.
    """
    motors, reference = motors_of(robot, robot.joint_names if actuated is None else actuated), hold(robot, goal)
    q = reference(0.0)[0]
    tau = resting_force(robot, q, motors)
    A, B = linearize(robot, q, np.zeros(robot.nv), tau)
    Q = gain(state_cost, "state_cost", 2 * robot.nv, zero=True)
    R = gain(force_cost, "force_cost", len(motors))
    if not is_stabilizable(A, B[:, motors]):
        raise CoadjointError(NO_REGULATOR)
    problem = _Riccati(A, B[:, motors], B, Q, R)
    gamma = MARGIN * problem.least() if attenuation is None else float(positive(attenuation, "attenuation"))
    P = problem.solution(gamma)
    if P is None:
        raise CoadjointError(
            f"attenuation is {gamma:g}; no regulator reaches it. The least that is possible is {problem.least():.4g}: choose a larger one, "
            "or leave it out."
        )
    K = np.linalg.solve(R, B[:, motors].T @ P)
    gains = {"motors": motors, "K": K, "P": P, "tau": tau, "attenuation": gamma}
    return Controller(robot, "h_infinity", regulate, reference, gains, value_of)


@dataclass(frozen=True)
class _Riccati:
    A: np.ndarray
    B: np.ndarray
    D: np.ndarray
    Q: np.ndarray
    R: np.ndarray

    def solution(self, gamma: float) -> np.ndarray | None:
        """P ≥ 0 that stabilises, for the attenuation γ; None where there is none.

        The stable eigenvectors (X, Y) of the Hamiltonian matrix give P = Y X⁻¹.
        """
        from scipy.linalg import LinAlgError, schur

        n = len(self.A)
        S = self.B @ np.linalg.solve(self.R, self.B.T) - self.D @ self.D.T / gamma / gamma
        H = np.block([[self.A, -S], [-self.Q, -self.A.T]])
        if not np.isfinite(H).all():  # γ² is too small for a number
            return None
        try:
            _, U, stable = schur(H, output="real", sort="lhp")
        except LinAlgError:  # eigenvalues so close to the imaginary axis that rounding moves them across
            return None
        X, Y = U[:n, :n], U[n:, :n]
        if stable != n or np.linalg.cond(X) > 1e12:
            return None
        P = np.linalg.solve(X.T, Y.T).T
        P = 0.5 * (P + P.T)
        closed = self.A - S @ P
        good = np.linalg.eigvalsh(P).min() >= -1e-9 * np.abs(P).max() and np.linalg.eigvals(closed).real.max() < 0
        return P if good else None

    def least(self) -> float:
        """The least γ, to 1e-6 of itself, by bisection."""
        high = 1.0
        while self.solution(high) is None:
            high *= 4.0
            if high > 1e12:
                raise CoadjointError(NO_REGULATOR)
        low = high
        while low > 1e-12 and self.solution(low) is not None:
            low, high = 0.25 * low, low
        while high - low > 1e-6 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.solution(middle) is None else (low, middle)
        return high


@takes(robot=a_robot)
def lqr_tracking(
    robot: Robot, motion: Trajectory, *, state_cost: Any = 1.0, force_cost: Any = 1.0, final_cost: Any = None
) -> Controller:
    """The linear-quadratic regulator along a motion that has forces: τ = τ(t) - K(t) x, least ∫ xᵀQx + uᵀRu dt + x(T)ᵀ Q_T x(T).

    motion: a `Trajectory` with tau, as from `simulate` or `optimal_motion`. state_cost Q and final_cost Q_T, Q by default: of (error,
    velocity), numbers, diagonals (2 nv,) or matrices; force_cost R of the joint forces. Gains are those of the Riccati equation, exact at
    the motion's times and linear between; before and after the motion they stay. The Lyapunov function xᵀ P(t) x is the cost to go.
    """
    if not isinstance(motion, Trajectory) or motion.tau is None:
        raise CoadjointError(f"motion is {short(motion)}; expected a Trajectory with tau, as from `simulate` or `optimal_motion`.")
    n = robot.nv
    q, v, tau = (finite(floats(x, name), name).copy() for x, name in ((motion.q, "q"), (motion.v, "v"), (motion.tau, "tau")))
    if q.shape[-1] != robot.nq or q.ndim != 2 or len(q) < 2:
        raise CoadjointError(f"the motion has q of shape {q.shape}; expected (N, {robot.nq}) with at least two times.")
    time = np.array(motion.time, dtype=float)
    steps = np.diff(time)
    if not (steps > 0).all():
        k = int(np.flatnonzero(~(steps > 0))[0])
        raise CoadjointError(
            f"motion has the times {motion.time[k]:g} and {motion.time[k + 1]:g} at {k}; expected times that increase."
        )
    Q, R = gain(state_cost, "state_cost", 2 * n, zero=True), gain(force_cost, "force_cost", n)
    last = Q if final_cost is None else gain(final_cost, "final_cost", 2 * n, zero=True)
    A, B = (np.asarray(x) for x in linearize(robot, q, v, tau))
    P = _riccati_back(time, A, B, Q, R, last)
    K = np.linalg.solve(R, np.swapaxes(B, -1, -2) @ P)
    schedule = _Schedule(robot, time, q, v, tau, K, P)
    return Controller(robot, "lqr_tracking", _along, schedule, {"state_cost": Q, "force_cost": R}, _cost_along)


def _riccati_back(time: np.ndarray, A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray, last: np.ndarray) -> np.ndarray:
    """P (N, n, n) at the times, by exact steps of the linear Hamiltonian system with coefficients held at each interval's middle."""
    from scipy.linalg import expm

    n = Q.shape[0]
    P = np.empty_like(A)
    P[-1] = last
    middle_A, middle_B = 0.5 * (A[1:] + A[:-1]), 0.5 * (B[1:] + B[:-1])
    S = middle_B @ np.linalg.solve(R, np.swapaxes(middle_B, -1, -2))
    H = np.block([[middle_A, -S], [np.broadcast_to(-Q, middle_A.shape), -np.swapaxes(middle_A, -1, -2)]])
    flow = expm(-H * np.diff(time)[:, None, None])
    for k in range(len(time) - 2, -1, -1):
        X = flow[k, :n, :n] + flow[k, :n, n:] @ P[k + 1]
        Y = flow[k, n:, :n] + flow[k, n:, n:] @ P[k + 1]
        P[k] = np.linalg.solve(X.T, Y.T).T
        P[k] = 0.5 * (P[k] + P[k].T)
    return P


@dataclass(frozen=True)
class _Schedule:
    """The motion, its forces and its gains as functions of time; not traced: the law takes what it gives."""

    robot: Robot
    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    K: np.ndarray
    P: np.ndarray

    def __call__(self, t: Any) -> tuple[Array, ...]:
        t = float(np.clip(float(t), self.time[0], self.time[-1]))
        k = int(np.clip(np.searchsorted(self.time, t, side="right") - 1, 0, len(self.time) - 2))
        h = self.time[k + 1] - self.time[k]
        s = (t - self.time[k]) / h
        q = _between(self.robot, self.q[k : k + 2], self.v[k : k + 2], h, s)
        return (q, *((1.0 - s) * x[k] + s * x[k + 1] for x in (self.v, self.tau, self.K, self.P)))


def _between(robot: Robot, q: np.ndarray, v: np.ndarray, h: float, s: float) -> np.ndarray:
    """The configuration between two of them, with their velocities: a cubic in the chart at the first."""
    way = robot.difference(q[0], q[1])
    shift = (s**3 - 2 * s**2 + s) * h * v[0] + (3 * s**2 - 2 * s**3) * way + (s**3 - s**2) * h * v[1]
    return np.asarray(robot.integrate(q[0], shift))


def _deviation(robot: Robot, q: Array, v: Array, q_d: Array, v_d: Array) -> Array:
    """x = (δ, v - v_d) (..., 2 nv) with q = q_d ⊕ δ."""
    return concat([robot.difference(q_d, q), v - v_d])


def _along(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    q_d, v_d, tau, K, _ = desired
    return tau - mv(K, _deviation(robot, q, v, q_d, v_d))


def _cost_along(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    q_d, v_d, _, _, P = desired
    x = _deviation(robot, q, v, q_d, v_d)
    return dot(x, mv(P, x))
