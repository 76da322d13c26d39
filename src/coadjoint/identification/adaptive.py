"""Parameters estimated sample by sample: recursive least squares, and the natural gradient on possible bodies.

A sample is a state q, v, a and the joint forces τ measured there; e = τ - Y(q, v, a) φ̂ is the error of the estimate. An `Estimator` is a
pure function state, sample → state, written with array operations: it compiles, runs inside rollouts and serves an adaptive controller.

    least squares   K = P Xᵀ (λ R + X P Xᵀ)⁻¹,  θ' = θ + K e,  P' = (P - K X P) / λ         R = diag(σ²), λ ≤ 1 forgets
    natural         dΣ/dt = γ Σ G Σ,  tr(G Σ) = (Yᵀ R⁻¹ e) · φ                               Lee, Kwon & Park (2018)

With Σ the pseudo-inertia of a link, the natural law is the steepest descent of ½ eᵀ R⁻¹ e in the metric ½ tr(Σ⁻¹ dΣ Σ⁻¹ dΣ), which
depends neither on frames nor on the unit of length. On exact data the divergence Σᵢ log det Σ/Σ* + tr(Σ⁻¹ Σ*) - 4 falls at the rate
γ eᵀ R⁻¹ e. Natural estimates are kept as factors, Σ = F Fᵀ, and a sample multiplies F by A = 1 + X/2 + X²/8 ≈ exp(X/2), where X = γ Σ G,
made shorter than 1 where the data ask for more. The eigenvalues x of X are real and 1 + x/2 + x²/8 ≥ ½, so A is invertible: no gain and no
data make a link impossible. Coefficients of friction are positive numbers with the same law.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_flag, a_name, a_robot, finite, floats, names, positive, takes
from ..arrays import Array, concat, like, mv, namespace, solve_spd, stack, transpose, unmasked
from ..dynamics import drive_regressor, inverse_dynamics, regressor
from ..errors import CoadjointError, ShapeError
from ..families import built
from ..lie import inertia
from ..memo import recent
from ..motion.rollout import roll_states
from ..robot.robot import Robot
from ..robot.spring import refuse_springs
from .base_parameters import base_parameters
from .excitation_limits import sizes

Step = Callable[[Robot, Array, Array, Array, Array, Array], Array]
"""state' (k,) of (robot, state, q, v, a, τ)."""


@dataclass(frozen=True, eq=False, repr=False)
class Estimator:
    """An estimator of a robot's parameters: `state' = estimator(state, q, v, a, tau)`, native for NumPy arrays with batch axes in front."""

    robot: Robot
    names: tuple[str, ...]
    """Names of the numbers that are estimated."""
    initial: np.ndarray
    """The state (k,) before any sample."""
    step: Step
    """One sample as a pure function of arrays, for use in traced functions."""
    read: Callable[[np.ndarray], np.ndarray]
    """The estimated numbers (..., names) of states (..., k)."""
    key: tuple[Any, ...]

    def __call__(self, state: Any, q: Any, v: Any, a: Any, tau: Any) -> np.ndarray:
        """The state after one sample."""
        result: np.ndarray = self.native(state, q, v, a, tau)
        return result

    @property
    def native(self) -> Callable[..., np.ndarray]:
        """The compiled step: f(state, q, v, a, tau, out=None)."""
        n, robot = self.robot.nv, self.robot
        shapes = {"state": self.initial.shape, "q": (robot.nq,), "v": (n,), "a": (n,), "tau": (n,)}
        step: Callable[..., np.ndarray] = recent(
            robot, self.key, lambda: built(robot, lambda *arrays: self.step(robot, *arrays), shapes, "adaptation_step")
        )
        return step

    def run(self, q: Any, v: Any, a: Any, tau: Any, state: Any = None) -> np.ndarray:
        """The states (N + 1, k) from the first on, through samples q, v, a, tau (N, …), in one native loop."""
        robot = self.robot
        given = [np.asarray(unmasked(x), dtype=float) for x in (q, v, a, tau)]
        count = len(given[0]) if given[0].ndim else 0
        for name, x, size in zip(("q", "v", "a", "tau"), given, (robot.nq, robot.nv, robot.nv, robot.nv), strict=True):
            if x.shape != (count, size):
                raise ShapeError(f"{name} has shape {x.shape}; expected ({count or 'N'}, {size}).")
            if not np.isfinite(x).all():
                raise CoadjointError(f"{name} has numbers that are not finite; leave out these samples.")
        states = np.empty((1, count + 1, len(self.initial)))
        states[0, 0] = self.initial if state is None else finite(floats(state, "state"), "state")
        if count:
            roll_states(self.native, [states], [x[None] for x in given], 1)
        result: np.ndarray = states[0]
        return result

    def __repr__(self) -> str:
        return f"<{self.key[0]} of {len(self.names)} parameters of {self.robot.name!r}>"


def covariance(estimator: Estimator, state: Any) -> np.ndarray:
    """The covariance P (p, p) of the estimates of `recursive_least_squares`."""
    p = len(estimator.names)
    if len(estimator.initial) != p + p * (p + 1) // 2:
        raise CoadjointError(f"{estimator!r} has no covariance; `recursive_least_squares` has.")
    P = np.zeros((p, p))
    P[np.triu_indices(p)] = np.asarray(state, dtype=float)[p:]
    return P + np.triu(P, 1).T


@takes(robot=a_robot, payload=a_name, drives=a_flag, forgetting=positive, prior=positive)
def recursive_least_squares(
    robot: Robot,
    *,
    payload: str | None = None,
    drives: bool = False,
    forgetting: float = 1.0,
    noise: Any = None,
    prior: float = 1e3,
) -> Estimator:
    """Least squares of the base parameters, or of the ten parameters of a `payload` at a frame, sample by sample.

    The estimate after N samples minimises Σ λ^(N-k) |τ_k - X_k θ|² / σ² + λ^N |θ - θ₀|² / prior², θ₀ being the robot's own numbers (0 for a
    payload). `drives` adds armature, damping and Coulomb friction; `noise` is σ (nv,), 1 without; `forgetting` λ is near 1, as 0.999.
    """
    if forgetting > 1:
        raise CoadjointError(
            f"forgetting is {forgetting:g}; expected a factor from 0 to 1, as 0.999: what a sample counts one sample later."
        )
    refuse_springs(robot, "this estimator")
    weight = sizes(robot, "noise", noise, np.ones(robot.nv), True) ** 2
    if payload is None:
        base = base_parameters(robot, drives=drives)
        names, theta = tuple(base.names[k] for k in base.pivots), base.values(robot)
        law = _LeastSquares(len(theta), forgetting, weight, chosen=tuple(base.pivots), drives=drives)
    else:
        link, pose = robot.frame(payload)
        if link < 0:
            raise CoadjointError(f"payload {payload!r} stands on the base, which bears any load; name a frame that moves.")
        names, theta = robot.parameter_names(f"payload:{payload}"), np.zeros(10)
        carried = np.asarray(inertia.transform(pose, np.eye(10))).T
        law = _LeastSquares(len(theta), forgetting, weight, link=link, carried=carried)
    p = len(theta)
    if not prior < 1e150:
        raise CoadjointError(f"prior is {prior:g}, whose square overflows; expected less than 1e150.")
    initial = np.concatenate([theta, (prior**2 * np.eye(p))[np.triu_indices(p)]])
    key = ("recursive least squares", payload, drives, forgetting, tuple(weight))
    return Estimator(robot, names, initial, law.step, law.read, key)


@dataclass(frozen=True, eq=False)
class _LeastSquares:
    """The law of `recursive_least_squares`, for p parameters: those of the base, or of a payload on a link."""

    p: int
    forgetting: float
    weight: np.ndarray
    chosen: tuple[int, ...] = ()
    """Columns of the regressor that are base parameters."""
    drives: bool = False
    link: int = -1
    carried: np.ndarray | None = None
    """(10, 10): from a payload's parameters to those of the link that bears it."""

    def columns(self, robot: Robot, q: Array, v: Array, a: Array) -> tuple[Array, Array | None]:
        """X (nv, p), and the forces that do not depend on the parameters."""
        Y = regressor(robot, q, v, a)
        if self.carried is not None:
            own = Y[..., 10 * self.link : 10 * self.link + 10]
            return own @ like(self.carried, q), inverse_dynamics(robot, q, v, a)
        return (concat([Y, drive_regressor(robot, v, a)]) if self.drives else Y)[..., list(self.chosen)], None

    def step(self, robot: Robot, state: Array, q: Array, v: Array, a: Array, tau: Array) -> Array:
        p, forgetting = self.p, self.forgetting
        upper = np.triu_indices(p)
        place = np.zeros((p, p), dtype=int)
        place[upper] = place.T[upper] = np.arange(len(upper[0]))
        X, known = self.columns(robot, q, v, a)
        estimate, P = state[..., :p], state[..., p:][..., place]
        e = tau - mv(X, estimate) - (0.0 if known is None else known)
        G = X @ P
        K = solve_spd(G @ transpose(X) + like(np.diag(forgetting * self.weight), q), G)
        moved = [(P[..., i, j] - (G[..., :, i] * K[..., :, j]).sum(-1)) / forgetting for i, j in zip(*upper, strict=True)]
        return concat([estimate + mv(transpose(K), e), stack(moved)])

    def read(self, state: np.ndarray) -> np.ndarray:
        return np.asarray(state)[..., : self.p]


@takes(robot=a_robot, gain=positive, links=names, drives=a_flag)
def natural_gradient(
    robot: Robot, *, gain: float, links: Sequence[str] | None = None, drives: bool = False, noise: Any = None
) -> Estimator:
    """The natural gradient on the inertias of `links`, or of all, and with `drives` on armature, damping and friction of every joint.

    `gain` γ: how far a sample moves the estimates; as of any gradient, one that is too large for the forces makes them wander.
    They begin at the robot's own numbers, which must be those of possible bodies, and stay possible: every pseudo-inertia positive
    definite, every coefficient positive. `noise` is σ (nv,), 1 without.
    """
    chosen = [robot.link_index(x) for x in (robot.link_names if links is None else links)]
    if not chosen:
        raise CoadjointError("links is empty; expected at least one.")
    own = robot.inertial_parameters.reshape(-1, 10)
    for k in chosen:
        if np.linalg.eigvalsh(inertia.pseudo(own[k])).min() <= 0:
            raise CoadjointError(
                f"link {robot.link_names[k]!r} has no positive definite pseudo-inertia, from which the natural gradient starts; give it "
                "a mass and the inertia of a body with volume, or leave it out of `links`."
            )
    factors = np.linalg.cholesky(inertia.pseudo(own[chosen]))
    coefficients = np.asarray(robot.parameters("drives"), dtype=float) if drives else np.zeros(0)
    if (coefficients <= 0).any():
        name = robot.parameter_names("drives")[int(np.argmin(coefficients))]
        raise CoadjointError(
            f"{name} is {coefficients.min():g}; the natural gradient starts from positive numbers: give it a small one."
        )
    weight = sizes(robot, "noise", noise, np.ones(robot.nv), True) ** -2.0
    names = tuple(
        f"{robot.link_names[k]}.{x}" for k in chosen for x in ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
    )
    names += robot.parameter_names("drives") if drives else ()
    key = ("natural gradient", tuple(chosen), drives, gain, tuple(weight))
    law = _Natural(tuple(chosen), drives, gain, weight)
    return Estimator(robot, names, np.concatenate([factors.reshape(-1), coefficients]), law.step, law.read, key)


@dataclass(frozen=True, eq=False)
class _Natural:
    """The law of `natural_gradient`, for the links `chosen`."""

    chosen: tuple[int, ...]
    drives: bool
    gain: float
    weight: np.ndarray

    @property
    def n(self) -> int:
        """Numbers of the factors."""
        return 16 * len(self.chosen)

    def step(self, robot: Robot, state: Array, q: Array, v: Array, a: Array, tau: Array) -> Array:
        chosen = self.chosen
        Y = regressor(robot, q, v, a)
        F = [state[..., 16 * k : 16 * k + 16].reshape((*state.shape[:-1], 4, 4)) for k in range(len(chosen))]
        Sigma = [f @ transpose(f) for f in F]
        known = like(robot.inertial_parameters, q)
        e = tau
        for i in range(robot.n_links):
            phi = inertia.from_pseudo(Sigma[chosen.index(i)]) if i in chosen else known[..., 10 * i : 10 * i + 10]
            e = e - mv(Y[..., 10 * i : 10 * i + 10], phi)
        loss, D = state[..., self.n :], drive_regressor(robot, v, a) if self.drives else None
        e = e if D is None else e - mv(D, loss)
        pulled = self.gain * e * like(self.weight, q)
        moved = []
        for i, f, S in zip(chosen, F, Sigma, strict=True):
            g = mv(transpose(Y[..., 10 * i : 10 * i + 10]), pulled)
            X = S @ inertia.pseudo_dual(g)
            moved.append((_transport(X) @ f).reshape((*state.shape[:-1], 16)))
        if D is not None:
            x = loss * mv(transpose(D), pulled)
            x = x / namespace(x).sqrt(1.0 + x * x)
            moved.append(loss * (1.0 + 0.5 * x + 0.125 * x * x) ** 2)
        return concat(moved)

    def read(self, state: np.ndarray) -> np.ndarray:
        F = np.asarray(state)[..., : self.n].reshape(*np.shape(state)[:-1], len(self.chosen), 4, 4)
        found = np.asarray(inertia.from_pseudo(F @ np.swapaxes(F, -1, -2)))
        return np.concatenate([found.reshape(*np.shape(state)[:-1], -1), np.asarray(state)[..., self.n :]], axis=-1)


def _transport(X: Array) -> Array:
    """A = 1 + X/2 + X²/8 of X, which is first made shorter than 1: tr X² is the sum of squares of its eigenvalues, which are real."""
    squares = X @ X
    trace = sum(squares[..., k, k] for k in range(4))
    X = X / namespace(X).sqrt(1.0 + trace)[..., None, None]
    return like(np.eye(4), X) + 0.5 * X + 0.125 * (X @ X)


def estimated(estimator: Estimator, state: Any) -> Robot:
    """The robot with the estimates of a `natural_gradient` in the place of its numbers."""
    robot, values = estimator.robot, estimator.read(np.asarray(state, dtype=float))
    if values.ndim != 1:
        raise ShapeError(f"state has shape {np.shape(state)}; expected {estimator.initial.shape}.")
    whole = dict(zip(robot.parameter_names("inertial"), robot.inertial_parameters.tolist(), strict=True))
    if estimator.key[0] != "natural gradient":
        raise CoadjointError(f"{estimator!r} estimates combinations, of which no robot can be made; `natural_gradient` has one.")
    drives = dict(zip(robot.parameter_names("drives"), robot.parameters("drives").tolist(), strict=True))
    for name, x in zip(estimator.names, values.tolist(), strict=True):
        (whole if name in whole else drives)[name] = x
    return robot.with_inertial_parameters(np.array(list(whole.values()))).with_parameters("drives", np.array(list(drives.values())))
