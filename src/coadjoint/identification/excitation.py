"""Exciting motions: those that show the parameters of a robot best under its limits.

The motion is a Fourier series (Swevers et al. 1997) or a B-spline whose coefficients maximise log det of the information matrix

    A = A₀ + ∫ Xᵀ diag(σ⁻²) X dt,       Y(q, v, a) = X B,

where B are the base parameters, X the regressor's columns at their names, σ the noise of the joint forces and A₀ what logs that one has
already show. Scaling of columns changes log det by a constant, so the optimum does not depend on units. The condition number is that of
the regressor with every column divided by its length, diag(A)^(-½) A diag(A)^(-½), the square root of its ratio of eigenvalues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import a_flag, a_function_of, a_number, count_up_to, floats, one_of, positive, takes, zero_or_more
from ..arrays import Array, concat, namespace, unmasked
from ..blas import on_one_thread
from ..compiling import compile
from ..differentiating import vjp
from ..dynamics import drive_regressor, regressor
from ..errors import CoadjointError, ShapeError
from ..memo import recent
from ..motion.logs import read_log
from ..motion.states import States, differentiate
from ..motion.tables import write_states
from ..motion.trajectory import Trajectory
from ..robot.robot import Robot
from ..words import printable, short
from .base_parameters import BaseParameters, base_parameters
from .excitation_basis import Basis
from .excitation_design import DENSE, Design
from .excitation_limits import SLOW, Limits, bounds, check_joints, read_planes, read_spheres, sizes

PER_HARMONIC = 40
MOST_ROWS = 1e7
"""Samples of a design for every harmonic, or piece of a B-spline."""


@dataclass(frozen=True, eq=False, repr=False)
class Excitation:
    """A designed motion: states q, v, a (N, nv) and torques τ at times (N,); `motion(t)` gives q, v, a at any time."""

    robot: Robot
    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray
    """The torques that the robot as given needs, friction included."""
    base: BaseParameters
    information: np.ndarray
    """A (r, r) of the base parameters: the motion's own, and that of the logs it complements."""
    limits: Limits
    basis: Basis
    center: np.ndarray
    coefficients: np.ndarray
    """(free, nv): q = center + Φ(t) coefficients, see `excitation_basis.py`."""
    seen: int
    """The number of base parameters that the motion, and the logs, show."""

    @property
    def condition(self) -> float:
        """Condition number of the base regressor with columns of length 1, logs included; infinite where a parameter is not shown."""
        return condition(self.information)

    @property
    def log_det(self) -> float:
        """log det of the information."""
        return float(np.linalg.slogdet(self.information)[1])

    @property
    def slack(self) -> float:
        """The distance to the tightest limit, as a part of that limit, checked densely; never negative."""
        t = np.linspace(0.0, self.basis.duration, DENSE * PER_HARMONIC * self.basis.size + 1)
        return -float(self.limits.violation(*self(t)).max())

    def __len__(self) -> int:
        return len(self.time)

    def __call__(self, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v, a (*t.shape, nv) at times within the duration."""
        t = np.asarray(unmasked(t), dtype=float)
        if t.size and not (t.min() >= -1e-9 and t.max() <= self.basis.duration * (1 + 1e-12)):
            raise CoadjointError(f"t goes from {t.min():g} to {t.max():g}; the motion from 0 to {self.basis.duration:g} s.")
        p, d, dd = self.basis.at(np.clip(t.ravel(), 0.0, self.basis.duration))
        c = self.coefficients
        return tuple(x.reshape(*t.shape, len(self.center)) for x in (self.center + p @ c, d @ c, dd @ c))

    @property
    def states(self) -> States:
        """The motion as a table."""
        return States(self.q, self.v, self.a, self.tau, self.time)

    @property
    def trajectory(self) -> Trajectory:
        """The motion as a Trajectory, to film."""
        return Trajectory(self.robot, self.time, self.q, self.v, self.tau)

    def save(self, path: str | Path) -> None:
        """Write time, q, v, a and tau: .csv, .npz or .parquet."""
        write_states(path, self.robot, self.states)

    def to_dataframe(self) -> Any:
        """The states as a table of pandas."""
        return self.states.to_dataframe(self.robot)

    def plot(self, path: str | Path) -> None:
        """Draw positions, velocities and torques beside their limits: .png, .svg, .pdf or .html."""
        from ..show.excitation import draw_excitation

        draw_excitation(path, self)

    def __str__(self) -> str:
        kind = f"{self.basis.size} harmonics" if self.basis.kind == "fourier" else f"B-spline of {self.basis.size} pieces"
        shown = f"{self.seen} of {self.base.rank} base parameters shown"
        return (
            f"{printable(self.robot.name)}: {self.basis.duration:g} s, {kind}; {shown}, condition number {self.condition:.3g} (columns of "
            f"length 1), log det {self.log_det:.4g}; the tightest limit has {100 * self.slack:.2g} % left"
        )

    def __repr__(self) -> str:
        return f"<Excitation of {self.robot.name!r}: {self.basis.duration:g} s, condition number {self.condition:.3g}>"


def condition(information: np.ndarray) -> float:
    """The condition number of a regressor whose columns have length 1, from its information matrix Xᵀ X (r, r)."""
    size = np.sqrt(np.diag(information))
    if not len(size) or not (size > 0).all():
        return float("inf")
    e = np.linalg.eigvalsh(information / np.outer(size, size))
    return float(np.sqrt(e[-1] / e[0])) if e[0] > 1e-13 * e[-1] else float("inf")


def base_regressor(robot: Robot, base: BaseParameters) -> Callable[..., Array]:
    """X(robot, q, v, a) (..., nv, r) with Y = X @ base.matrix: Y's columns that name the base parameters; Coulomb friction smoothed."""
    inertial = [k for k in base.pivots if k < 10 * robot.n_links]
    others = [k - 10 * robot.n_links for k in base.pivots if k >= 10 * robot.n_links]

    def X(robot: Robot, q: Array, v: Array, a: Array) -> Array:
        columns = [regressor(robot, q, v, a)[..., inertial]]
        if others:
            D, n = drive_regressor(robot, v, a), robot.tree_nv
            slow = namespace(v).tanh(robot.tree_v(v) / SLOW)[..., None, :] * np.eye(n)
            back = np.swapaxes(robot.tree_v(np.eye(robot.nv)), -1, -2) if robot.mimics else np.eye(n)
            smooth = np.swapaxes(back, 0, 1) @ slow
            columns.append(concat([D[..., : 2 * n], smooth])[..., others])
        return concat(columns)

    return X


@takes(
    duration=positive,
    kind=one_of("fourier", "bspline"),
    criterion=one_of("information", "condition"),
    rate=positive,
    harmonics=count_up_to(1000),
    seed=zero_or_more,
    tries=count_up_to(10**4),
    rest=a_flag,
    drives=a_flag,
    clearance=a_number,
    report=a_function_of("part"),
)
@on_one_thread
def excitation(
    robot: Robot,
    duration: float = 20.0,
    *,
    harmonics: int = 5,
    kind: str = "fourier",
    start: Any = None,
    rest: bool = True,
    position: Any = None,
    velocity: Any = None,
    acceleration: Any = None,
    effort: Any = None,
    spheres: Sequence[Any] = (),
    planes: Sequence[Any] = (),
    clearance: float = 0.0,
    logs: Any = (),
    drives: bool = False,
    noise: Any = None,
    criterion: str = "information",
    rate: float = 100.0,
    seed: int = 0,
    tries: int = 1,
    report: Callable[[float], None] | None = None,
) -> Excitation:
    """The motion of that duration which shows the base parameters of a robot best, as far as a local search finds it.

    kind: "fourier", a periodic series of so many `harmonics` of 1/duration, or "bspline", a curve of degree 5 with 2 · harmonics pieces.
    It begins and ends at rest with zero acceleration unless `rest` is False, and begins at `start` (nq,) if that is given. Limits are
    the robot's; position {joint: (lower, upper)} or (lower, upper), and velocity, acceleration, effort as a number, (nv,) or
    {joint: number} replace them. `spheres` [(link or frame, center, radius)] keep `clearance` from each other unless they are on one
    link or on neighbouring ones; those on the base are obstacles, and all stay above `planes` [(normal, offset)], n·x ≥ offset.

    `logs`: recorded motions (what `cj.read_log` reads, States, Trajectories) whose information is added: the motion complements them.
    `drives` adds armature, damping and Coulomb friction to the parameters. `noise` σ (nv,) of the joint forces weighs them, 1 N m without.

    criterion "information" maximises log det A (D-optimal: the least volume of the parameters' confidence ellipsoid, whatever the scaling
    of columns); "condition" maximises log det of A with columns of length 1, which makes parameters independent but not large in the
    forces. The gradient is exact. All limits hold at ten times as many times as the design has samples: a motion that exceeds one is
    drawn towards a posture that keeps all, or an error says which limit no posture keeps. `tries` local searches, the best counts.
    """
    check_joints(robot)
    limits = Limits(
        robot,
        *bounds(robot, position),
        sizes(robot, "velocity", velocity, robot.velocity_limit, True),
        sizes(robot, "acceleration", acceleration, np.full(robot.nv, np.inf), False),
        sizes(robot, "effort", effort, robot.effort_limit, False),
        read_spheres(robot, spheres),
        read_planes(planes),
        float(clearance),
    )
    if not (duration >= 1e-6 and duration * rate <= MOST_ROWS):
        raise CoadjointError(
            f"duration is {duration:g} s, at {rate:g} rows per second; expected 1e-6 s or more, and at most {MOST_ROWS:g} rows."
        )
    if harmonics < (1 if not rest else 3):
        raise CoadjointError(f"harmonics is {harmonics}; a motion {'from rest to rest needs 3' if rest else 'needs 1'} or more.")
    base = recent(robot, ("base parameters", drives), lambda: base_parameters(robot, drives=drives))
    weight = sizes(robot, "noise", noise, np.ones(robot.nv), True) ** -2.0
    basis = Basis(kind, harmonics if kind == "fourier" else 2 * harmonics, float(duration), rest, start is not None)
    X = base_regressor(robot, base)
    key = ("exciting", base.pivots)
    native, pulled = recent(robot, key, lambda: (compile(X, robot), vjp(X, robot, ["q", "v", "a"])))
    known = log_information(robot, base, logs, weight)
    rng = np.random.default_rng(seed)
    posture = _posture(limits, start, rng)
    t = np.linspace(0.0, duration, PER_HARMONIC * basis.size + 1)[:-1]
    dt = np.full(len(t), duration / len(t))
    scale = _scales(native, limits, rng, weight, known)
    design = Design(
        limits, basis, posture, native, pulled, weight, scale, known * np.outer(scale, scale), criterion == "condition", t, dt
    )
    best = None
    for k in range(max(tries, 1)):
        x = rng.normal(size=(basis.free().shape[1], robot.nv)) * (0.3 / np.sqrt(basis.size))
        x = design.solve(x.reshape(-1), _part(report, k, tries))
        x = _kept(design, x)
        value = design.criterion(x)[0]
        best = (value, x) if best is None or value < best[0] else best
    assert best is not None
    return _result(design, base, best[1], rate, known)


def _part(report: Callable[[float], None] | None, k: int, of: int) -> Callable[[float], None] | None:
    """The report of the k-th search."""
    return None if report is None else lambda part: report((k + part) / of)


def _scales(native: Any, limits: Limits, rng: np.random.Generator, weight: np.ndarray, known: np.ndarray) -> np.ndarray:
    """1/length of every column at random states within the limits: only numbers near 1 are gained by it."""
    n = limits.robot.nv
    q, v, a = (rng.uniform(-1, 1, size=(200, n)) for _ in range(3))
    half, middle = 0.5 * (limits.upper - limits.lower), 0.5 * (limits.upper + limits.lower)
    X = native(middle + half * q, limits.velocity * v, limits.velocity * a)
    size = np.sqrt((weight[:, None] * X**2).sum((0, 1)) / len(X) + np.diag(known) * 1e-3)
    return 1.0 / np.where(size > 0, size, 1.0)


def _posture(limits: Limits, start: Any, rng: np.random.Generator) -> np.ndarray:
    """A configuration (nv,) at which the robot can rest: the start, or the one nearest to the middle of the limits that was found."""
    robot = limits.robot
    zero = np.zeros(robot.nv)
    if start is not None:
        q = floats(start, "start")
        if q.shape != (robot.nq,) or not np.isfinite(q).all():
            raise ShapeError(f"start is {short(start)}; expected {robot.nq} finite numbers.")
        if float(limits.violation(q, zero, zero)) > 0:
            raise CoadjointError(
                f"the robot cannot rest at the start: {limits.worst(q, zero, zero)}. Start elsewhere, or widen the limit."
            )
        return q
    middle, half = 0.5 * (limits.upper + limits.lower), 0.5 * (limits.upper - limits.lower)
    q = middle + half * np.concatenate([np.zeros((1, robot.nv)), rng.uniform(-0.9, 0.9, size=(2000, robot.nv))])
    rest = np.zeros_like(q)
    g = limits.violation(q, rest, rest)
    fits = g < -0.02
    if fits.any():
        found = np.flatnonzero(fits)
        result: np.ndarray = q[found[np.argmin((((q[found] - middle) / half) ** 2).sum(-1))]]
        return result
    best = q[int(np.argmin(g))]
    raise CoadjointError(
        f"no posture was found at which robot {robot.name!r} keeps all limits; nearest: {limits.worst(best, zero, zero)}. "
        "Widen this limit, make spheres smaller or leave some out, or give a `start` that keeps them."
    )


def _kept(design: Design, x: np.ndarray) -> np.ndarray:
    """x, drawn towards the posture until all limits hold at dense times: its coefficients times the largest factor that was found."""

    def keeps(s: float) -> bool:
        return float(design.limits.violation(*design.dense_motion(s * x)).max()) <= 0

    low, high = 0.0, 1.0
    if keeps(high):
        return x
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low * x


def _result(design: Design, base: BaseParameters, x: np.ndarray, rate: float, known: np.ndarray) -> Excitation:
    limits, basis = design.limits, design.basis
    time = np.linspace(0.0, basis.duration, max(round(basis.duration * rate), 2) + 1)
    c = x.reshape(-1, len(design.center)) * design.half
    p, d, dd = basis.at(time)
    q, v, a = design.center + p @ c, d @ c, dd @ c
    A, _ = design.information(*design.motion(x))
    A = A / np.outer(design.scale, design.scale)
    if not np.isfinite(A).all():
        raise CoadjointError(
            "the limits of position, velocity or acceleration are so large that the forces overflow; give smaller ones."
        )
    size = np.sqrt(np.diag(A))
    size[size == 0] = 1.0
    seen = int((np.linalg.eigvalsh(A / np.outer(size, size)) > 1e-10 * len(A)).sum())
    return Excitation(limits.robot, time, q, v, a, limits.torque(q, v, a), base, A, limits, basis, design.center, c, seen)


def log_information(robot: Robot, base: BaseParameters, logs: Any, weight: np.ndarray) -> np.ndarray:
    """Σ ∫ Xᵀ diag(weight) X dt (r, r) over recorded motions: what `cj.read_log` reads, v and a by differences where they are missing."""
    A = np.zeros((base.rank, base.rank))
    X = base_regressor(robot, base)
    several = logs if isinstance(logs, list | tuple) else [logs]
    for log in several:
        states, _ = differentiate(robot, _states(robot, log))
        q, v, a, dt = states.q, states.v, states.a, np.gradient(np.asarray(states.time))
        dt[[0, -1]] *= 0.5
        for part in range(0, len(dt), 4096):
            rows = slice(part, part + 4096)
            x = X(robot, q[rows], v[rows], a[rows])  # type: ignore[index]
            x = x * np.sqrt(weight[:, None] * dt[rows, None, None])
            x = x.reshape(-1, base.rank)
            A += x.T @ x
    return A


def _states(robot: Robot, log: Any) -> States:
    if isinstance(log, States | Trajectory | Excitation):
        return log if isinstance(log, States) else log.states
    read = read_log(log, robot)
    return States(read.q, read.v, read.a, None, read.time)
