"""Output error: the parameters with which the simulated motion is the measured one.

Between samples the robot moves under the forces u = f + Kp (q_r - q) + Kd (v_r - v), by Runge and Kutta's fourth order. A log is cut into
stretches that are simulated side by side from free initial states, so that errors do not grow (multiple shooting). Residuals are

    direct     q_measured - q(t; θ)          f the measured forces; gains stabilise, or are 0
    inverse    τ_measured - u(t; θ)          f given, or 0; the gains are those of the robot's own controller

and their sensitivities S = ∂(q, v)/∂(θ, initial states) obey the variational equations, which Runge and Kutta's method turns into the exact
derivatives of its own solution:

    dS_q/dt = S_v,      dS_v/dt = ∂a/∂q S_q + ∂a/∂v S_v + M⁻¹ (∂u/∂x S - X ∂θ),      Y = X B.

Gauss–Newton steps go along possible bodies: a pseudo-inertia Σ = F Fᵀ becomes F exp(Λ) exp(Λ)ᵀ Fᵀ, Λ lower triangular, and of all steps
that change the base parameters as asked the shortest is taken. What the motion does not show stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_function_of, a_robot, one_of, positive, sequence, takes, whole
from ..arrays import unmasked
from ..blas import on_one_thread
from ..errors import CoadjointError, ShapeError
from ..lie import inertia
from ..memo import recent
from ..motion.logs import Log, read_log
from ..motion.states import differentiate
from ..robot.robot import Robot
from ..words import printable, short
from .base_parameters import BaseParameters, base_parameters
from .excitation_limits import check_joints, sizes
from .shooting import Estimate, Shooting

DRIVES = ("armature", "damping", "friction")
STEPS = 40
"""Most Gauss–Newton steps."""


@dataclass(frozen=True, eq=False, repr=False)
class OutputError:
    """Parameters fitted to a measured motion."""

    robot: Robot
    """The robot with the fitted numbers: every link is a possible body."""
    base: BaseParameters
    values: np.ndarray
    """The base parameters (r,)."""
    covariance: np.ndarray
    """(r, r), infinite on the diagonal where the motion shows nothing. Residuals of one stretch may be correlated if there are more than
    twice as many stretches as parameters; else all are taken to be independent."""
    rms: np.ndarray
    """The root mean square of the residuals of every joint (nv,): rad or m for "direct", N m or N for "inverse"."""
    steps: int
    converged: bool
    method: str

    @property
    def deviation(self) -> np.ndarray:
        """Standard deviations (r,) of the base parameters."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def interval(self, factor: float = 1.96) -> np.ndarray:
        """(r, 2): the values ∓ factor standard deviations, 95 % of normal ones."""
        return np.stack([self.values - factor * self.deviation, self.values + factor * self.deviation], axis=-1)

    def __repr__(self) -> str:
        return f"<OutputError ({self.method}) of {self.robot.name!r}: rms {self.rms.max():.3g}, {self.steps} steps>"

    def __str__(self) -> str:
        rows = [f"{n:12} {x:12.5g} ± {1.96 * d:.2g}" for n, x, d in zip(self._names, self.values, self.deviation, strict=True)]
        state = "" if self.converged else ", not converged"
        return "\n".join(
            [f"{printable(self.robot.name)}: {self.method} output error, rms {self.rms.max():.3g} at most{state}", *rows]
        )

    @property
    def _names(self) -> list[str]:
        return [self.base.names[k] for k in self.base.pivots]


@takes(robot=a_robot, method=one_of("direct", "inverse"), horizon=positive, substeps=whole, report=a_function_of("part"))
@on_one_thread
def output_error(
    robot: Robot,
    log: Any,
    *,
    method: str = "direct",
    horizon: float = 0.25,
    drives: bool | Sequence[str] = False,
    kp: Any = None,
    kd: Any = None,
    reference: Any = None,
    feedforward: Any = None,
    hold: str = "linear",
    substeps: int = 1,
    report: Callable[[float], None] | None = None,
) -> OutputError:
    """The robot whose simulated motion is that of a log (q and tau at growing times, what `cj.read_log` reads), from `robot` on.

    method "direct" compares positions, "inverse" the forces of the controller u = feedforward + kp (q_r - q) + kd (v_r - v), whose gains
    (a number, (nv,) or {joint: number}) it needs. `reference` is (q_r, v_r), each (N, nv); the measured motion without. Gains given for
    "direct" pull the simulated motion to the measured one, for arms that are unstable. `horizon` is the length of the stretches in
    seconds, whose initial states are free. Forces between samples: hold "linear" or "zero". `drives` also fits armature, damping and
    Coulomb friction (smoothed near standstill), or those of "armature", "damping", "friction" that are named; they begin at the robot's,
    made positive; `substeps` divide every step of the log.
    """
    one_of("linear", "zero")(hold, "hold")
    check_joints(robot)
    if substeps < 1:
        raise CoadjointError(f"substeps is {substeps}; expected 1 or more.")
    read = read_log(log, robot)
    if read.tau is None:
        raise CoadjointError(
            "the log has no joint forces; output error simulates the motion that they cause: add tau1 … or columns={'tau': […]}."
        )
    chosen = _drives(drives)
    base = recent(robot, ("base parameters", chosen), lambda: _base(robot, chosen))
    time, q, v, tau, ff, q_r, v_r = _stretches(robot, read, horizon, reference, feedforward, method)
    gains = {name: np.zeros(robot.nv) if k is None else _gains(robot, name, k) for name, k in (("kp", kp), ("kd", kd))}
    inverse, linear = method == "inverse", hold == "linear"
    problem = Problem(robot, base, time, q, v, tau, ff, q_r, v_r, gains["kp"], gains["kd"], inverse, linear, substeps, bool(chosen))
    if method == "inverse" and not (problem.kp.any() or problem.kd.any()):
        raise CoadjointError("method 'inverse' compares the forces of the controller, and needs its gains: give kp and kd.")
    return problem.solve(report)


def _drives(given: Any) -> tuple[str, ...]:
    """The numbers of drives that are fitted."""
    names = (DRIVES if given else ()) if isinstance(given, bool) else tuple(sequence(given, "drives"))
    for name in names:
        one_of(*DRIVES)(name, "drives")
    return tuple(name for name in DRIVES if name in names)


def _base(robot: Robot, drives: tuple[str, ...]) -> BaseParameters:
    """Base parameters with these drives; damping and friction are always distinguishable from inertias, armature is not."""
    if not drives or "armature" in drives or robot.mimics:
        return base_parameters(robot, drives=bool(drives))
    own, further, n = base_parameters(robot), robot.parameter_names("drives"), robot.tree_nv
    chosen = [k for name in drives for k in range(DRIVES.index(name) * n, (DRIVES.index(name) + 1) * n)]
    matrix = np.zeros((own.rank + len(chosen), own.matrix.shape[1] + len(further)))
    matrix[: own.rank, : own.matrix.shape[1]] = own.matrix
    matrix[np.arange(own.rank, len(matrix)), own.matrix.shape[1] + np.array(chosen)] = 1.0
    return BaseParameters((*own.names, *further), matrix, (*own.pivots, *(own.matrix.shape[1] + k for k in chosen)))


def _gains(robot: Robot, name: str, given: Any) -> np.ndarray:
    return sizes(robot, name, given, np.full(robot.nv, np.nan) if isinstance(given, dict) else np.ones(robot.nv), False)


def _stretches(robot: Robot, log: Log, horizon: float, reference: Any, feedforward: Any, method: str) -> tuple[np.ndarray, ...]:
    """time (S, K + 1), q, v, τ, f, q_r, v_r (S, K + 1, nv) of S stretches."""
    states, _ = differentiate(robot, log.states)
    n, count = robot.nv, len(log)
    step = float(np.median(np.diff(log.time)))
    steps = max(round(horizon / step), 1)
    stretches = (count - 1) // steps
    if not stretches or steps < 2:
        raise CoadjointError(
            f"a stretch of {horizon:g} s has {steps} steps, and the log {count} rows; expected 2 steps and one stretch at least."
        )
    v = np.asarray(states.v)
    tau = np.asarray(log.tau)
    ff = (
        tau
        if feedforward is None and method == "direct"
        else np.zeros((count, n))
        if feedforward is None
        else _rows(feedforward, "feedforward", count, n)
    )
    pair = (log.q, v) if reference is None else reference
    try:
        q_r, v_r = pair
    except (TypeError, ValueError, OverflowError):
        raise ShapeError(f"reference is {short(reference)}; expected (q_r, v_r), each ({count}, {n}).") from None
    q_r, v_r = _rows(q_r, "reference[0]", count, n), _rows(v_r, "reference[1]", count, n)
    index = np.arange(stretches)[:, None] * steps + np.arange(steps + 1)
    return tuple(np.asarray(x)[index] for x in (log.time, log.q, v, tau, ff, q_r, v_r))


def _rows(x: Any, name: str, count: int, n: int) -> np.ndarray:
    array = np.asarray(unmasked(x), dtype=float)
    if array.shape != (count, n) or not np.isfinite(array).all():
        raise ShapeError(f"{name} has shape {array.shape}; expected finite numbers ({count}, {n}).")
    return array


class Problem(Shooting):
    """The fit of a robot to a log in stretches."""

    def reduced(self, res: np.ndarray, J: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
        """The normal matrix (r, r) and vector of θ with initial states eliminated, and what gives these back."""
        r, S = self.base.rank, len(res)
        J, res = (J * weight[:, None]).reshape(S, -1, J.shape[-1]), (res * weight).reshape(S, -1)
        H, g = np.swapaxes(J, -1, -2) @ J, np.einsum("snk,sn->sk", J, res)
        own = H[:, r:, r:]
        own = own + 1e-13 * np.einsum("sii->s", own)[:, None, None] * np.eye(own.shape[-1])
        back = np.linalg.solve(own, np.concatenate([H[:, r:, :r], g[:, r:, None]], axis=-1))
        A = (H[:, :r, :r] - H[:, :r, r:] @ back[..., :r]).sum(0)
        b = (g[:, :r] - (H[:, :r, r:] @ back[..., r:])[..., 0]).sum(0)
        return A, b, back

    def solve(self, report: Callable[[float], None] | None = None) -> OutputError:
        """Gauss–Newton steps, damped where one is too long, with every joint weighed by its residuals."""
        e, start = self.initial(), np.concatenate([self.q[:, 0], self.v[:, 0]], axis=-1)
        res, J = self.residuals(e, start)
        _check_finite(res)
        damping, converged, steps = 1e-3, False, 0
        while steps < STEPS and not converged:
            steps += 1
            rms = np.sqrt((res**2).mean((0, 1)))
            if not rms.any():  # the motion is already the measured one
                converged = True
                break
            weight = 1.0 / np.maximum(rms, 1e-6 * rms.max())
            A, b, back = self.reduced(res, J, weight)
            cost, better = float(((res * weight) ** 2).sum()), False
            for _ in range(12):
                moved, beta, change = self._moved(e, A, b, damping)
                shifted = start + back[..., -1] - back[..., :-1] @ beta
                with np.errstate(all="ignore"):
                    new, new_J = self.residuals(moved, shifted)
                    value = float(((new * weight) ** 2).sum())
                if np.isfinite(value) and value <= cost * (1 + 1e-12):
                    better = True
                    break
                damping = max(damping, 1e-9) * 10
            if report:
                report(steps / STEPS)
            if not better:
                converged = change < 1e-6  # no step of any length helps: rounding
                break
            e, start, res, J, damping = moved, shifted, new, new_J, damping / 30
            converged = change < 1e-9 or (cost - value < 1e-10 * cost and change < 1e-4)
        return self._result(e, res, J, steps, converged)

    def initial(self) -> Estimate:
        own = self.robot.inertial_parameters.reshape(-1, 10)
        Sigma = np.asarray(inertia.pseudo(own), dtype=float)
        e, U = np.linalg.eigh(Sigma)
        if (Sigma[:, 3, 3] <= 0).any():
            k = int(np.argmin(Sigma[:, 3, 3]))
            raise CoadjointError(
                f"link {self.robot.link_names[k]!r} has no mass; give it a small one, from which the fit can start."
            )
        e = np.maximum(e, 1e-6 * e[:, -1:])  # a body without volume gets some
        drives = np.asarray(self.robot.parameters("drives"), dtype=float)
        return Estimate(
            np.linalg.cholesky(U * e[:, None, :] @ np.swapaxes(U, -1, -2)), np.where(self._free, np.maximum(drives, 1e-3), drives)
        )

    @property
    def _free(self) -> np.ndarray:
        """(3 n,): which numbers of the drives are fitted."""
        if not self.with_drives:
            return np.zeros(3 * self.robot.tree_nv, dtype=bool)
        return np.asarray(self.base.matrix[:, 10 * self.robot.n_links :].any(axis=0))

    def values(self, e: Estimate) -> np.ndarray:
        """The base parameters (r,)."""
        numbers = np.concatenate([e.inertial, e.drives]) if self.with_drives else e.inertial
        result: np.ndarray = self.base.matrix @ numbers
        return result

    def _tangent(self, e: Estimate) -> np.ndarray:
        """C (r, size of δ): the change of base parameters by δ."""
        T = e.tangent
        if self.with_drives:
            T = np.block([[T, np.zeros((len(T), len(e.drives)))], [np.zeros((len(e.drives), len(T))), np.diag(e.drives)]])
        result: np.ndarray = self.base.matrix @ T
        return result

    def _moved(self, e: Estimate, A: np.ndarray, b: np.ndarray, damping: float) -> tuple[Estimate, np.ndarray, float]:
        """The possible robot nearest to e with the base parameters of a damped step, their change (r,), and the length of δ.

        (A + damping K⁻¹) Δβ = b, with the metric K = C Cᵀ that δ gives to base parameters. Then Newton's method on δ, as φ(δ) is curved.
        """
        C = self._tangent(e)
        K = C @ C.T
        step = K @ np.linalg.solve(A @ K + (damping + 1e-15) * float(np.trace(A @ K)) / len(A) * np.eye(len(A)), b)
        longest = float(np.abs(C.T @ np.linalg.solve(K, step)).max())
        step = step / max(1.0, longest)
        wanted, moved = self.values(e) + step, e
        for _ in range(8):
            missing = wanted - self.values(moved)
            if np.abs(missing).max() <= 1e-13 * np.abs(wanted).max():
                break
            C = self._tangent(moved)
            delta = C.T @ np.linalg.solve(C @ C.T, missing)
            moved = moved.moved(delta / max(1.0, float(np.abs(delta).max())))
        return moved, self.values(moved) - self.values(e), min(longest, 1.0)

    def _result(self, e: Estimate, res: np.ndarray, J: np.ndarray, steps: int, converged: bool) -> OutputError:
        robot, base = self.robot, self.base
        free = res[..., 0].size * robot.nv - res.shape[0] * 2 * robot.nv - base.rank
        rms = np.sqrt((res**2).mean((0, 1)))
        sigma = rms * np.sqrt(res.size / max(free, 1))
        weight = 1.0 / np.where(sigma > 0, sigma, 1.0)
        A, _, _ = self.reduced(res, J, weight)
        size = np.sqrt(np.maximum(np.diag(A), 1e-300))
        values, vectors = np.linalg.eigh(A / np.outer(size, size))
        hidden = values <= 1e-12  # beside a diagonal of ones
        inverse = (vectors / np.where(hidden, np.inf, values)) @ vectors.T / np.outer(size, size)
        count = len(res)
        if count > 2 * base.rank:
            parts = np.array([self.reduced(res[k : k + 1], J[k : k + 1], weight)[1] for k in range(count)])
            inverse = inverse @ (parts.T @ parts) @ inverse * (count / (count - base.rank))
        unseen = (vectors[:, hidden] ** 2).sum(-1) > 1e-6
        inverse[unseen, unseen] = np.inf
        fitted = robot.with_inertial_parameters(e.inertial)
        fitted = fitted.with_parameters("drives", e.drives) if self.with_drives else fitted
        name = "inverse" if self.inverse else "direct"
        return OutputError(fitted, base, base.values(fitted), inverse, rms, steps, converged, name)


def _check_finite(res: np.ndarray) -> None:
    if not np.isfinite(res).all():
        s = int(np.argmax(~np.isfinite(res).all((1, 2))))
        raise CoadjointError(
            f"the simulated motion leaves all bounds in stretch {s}: take a shorter horizon, gains kp and kd that pull it to the log, more "
            "substeps, or a better robot to start from."
        )
